"""Original and masked in, measures out: what holds, what does not apply and why, and gates for pipelines."""

from __future__ import annotations

import inspect
import math
import operator
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankveil import catalogue
from rankveil.catalogue import Array, Measure, Value, get_measure
from rankveil.errors import NotApplicableError, ParameterError
from rankveil.execute import in_threads
from rankveil.pairing import Pair, View, pair_tables
from rankveil.ranks import rank_changes
from rankveil.table import listed

AUDIT_SCHEMA = "rankveil/audit/1"

_SIGNS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


@dataclass(frozen=True)
class Gate:
    """A rule that must not come true, such as `cm2<0.05`."""

    rule: str
    measure: str
    sign: str
    limit: float

    @classmethod
    def parse(cls, rule: str) -> Gate:
        """Read `measure<number` (or <=, >, >=)."""
        found = re.fullmatch(r"\s*(\w+)\s*(<=|>=|<|>)\s*([-+.\deE]+)\s*", rule)
        try:
            if not found:
                raise ValueError
            gate = cls(rule.strip(), found[1], found[2], float(found[3]))
        except ValueError:
            raise ParameterError(f"a gate reads like 'cm2<0.05', not {rule!r}") from None
        get_measure(gate.measure)
        return gate

    def judge(self, value: float | None) -> dict[str, Any]:
        """Whether the rule stayed untrue; a measure that does not apply cannot vouch for anything, so it fails."""
        ok = value is not None and not _SIGNS[self.sign](value, self.limit)
        return {"rule": self.rule, "value": value, "ok": ok}


@dataclass(eq=False)
class Audit:
    """The measures of a release."""

    records: int
    attributes: tuple[str, ...]
    mapping: str
    values: dict[str, Value]
    not_applicable: dict[str, str]
    gates: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pair: Pair | None = None

    def __getitem__(self, name: str) -> float:
        """The value of a measure; one that does not apply says why."""
        if name in self.not_applicable:
            raise NotApplicableError(f"{name}: {self.not_applicable[name]}")
        if name not in self.values:
            get_measure(name)
            raise ParameterError(f"{name} was not asked for; this audit has {', '.join(self.values)}")
        return self.values[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    @property
    def ok(self) -> bool:
        """Whether every gate held."""
        return all(gate["ok"] for gate in self.gates)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `rankveil audit`."""
        shown = {}
        for name, value in self.values.items():
            entry = get_measure(name)
            shown[name] = {
                "value": value.value,
                "family": entry.family,
                "better": entry.better,
                "bounds": [bound if math.isfinite(bound) else None for bound in entry.bounds],
                "details": dict(value.details),
            }
        return {
            "schema": AUDIT_SCHEMA,
            "records": self.records,
            "attributes": list(self.attributes),
            "mapping": self.mapping,
            "measures": shown,
            "not_applicable": self.not_applicable,
            "gates": self.gates,
            "notes": self.notes,
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row per measure, for tables."""
        return [
            {
                "measure": name,
                "title": get_measure(name).title,
                "family": get_measure(name).family,
                "value": value.value,
                "better": get_measure(name).better,
            }
            for name, value in self.values.items()
        ]

    def to_frame(self) -> Any:
        """A data frame with one row per measure: pandas when it is installed, otherwise pyarrow."""
        try:
            import pandas as pd
        except ImportError:
            import pyarrow as pa

            return pa.Table.from_pylist(self.rows())
        return pd.DataFrame(self.rows()).set_index("measure")

    def report(self, path: str | os.PathLike[str], *, command: str | None = None) -> None:
        """Write the audit as one self-contained page for internal use, whole or not at all."""
        from rankveil.files import Staged, check_writable
        from rankveil.report.documents import audit_page

        check_writable(path, table=False)
        page = audit_page(self.to_dict(), self.rank_changes(), command=command)
        with Staged() as staged:
            staged.add(path, lambda file: file.write(page.encode("utf-8")))

    def rank_changes(self) -> dict[str, Array]:
        """For each attribute how many ranks its records moved; empty without a mapping."""
        if self.pair is None or self.pair.mapping == "none":
            return {}
        views = zip(self.pair.names, self.pair.columns, strict=True)
        return {name: rank_changes(view.rank_x, view.rank_y) for name, view in views if len(view)}

    def __repr__(self) -> str:
        """In short, and without the original values that the pair holds."""
        measured = ", ".join(f"{name} {value.value:.4g}" for name, value in self.values.items())
        return f"Audit({self.records} records, {measured or 'no measure applies'})"

    def _repr_html_(self) -> str:
        import html

        lines = "".join(
            f"<tr><td>{row['measure']}</td><td>{html.escape(row['title'])}</td><td>{row['value']:.4g}</td>"
            f"<td>{row['better']}</td></tr>"
            for row in self.rows()
        )
        return f"<table><tr><th>measure</th><th></th><th>value</th><th>better</th></tr>{lines}</table>"


def measure_pair(pair: Pair, *, names: Sequence[str] | None = None, gates: Sequence[str] = ()) -> Audit:
    """Every chosen measure (all by default) of a pair; what does not apply is recorded, not raised."""
    rules = [Gate.parse(rule) for rule in listed(gates)]
    chosen = list(catalogue.measures()) if names is None else list(dict.fromkeys(listed(names)))
    chosen += [rule.measure for rule in rules if rule.measure not in chosen]
    entries = [get_measure(name) for name in chosen]
    values: dict[str, Value] = {}
    not_applicable: dict[str, str] = {}
    for entry in entries:
        try:
            values[entry.id] = _checked(entry, _evaluate(entry, pair))
        except NotApplicableError as why:
            not_applicable[entry.id] = str(why)
    made = Audit(
        records=len(pair),
        attributes=pair.names,
        mapping=pair.mapping,
        values=values,
        not_applicable=not_applicable,
        notes=[*pair.notes, *(f"{name}: {note}" for name, value in values.items() for note in value.notes)],
        pair=pair,
    )
    made.gates = [rule.judge(values[rule.measure].value if rule.measure in values else None) for rule in rules]
    return made


def _evaluate(entry: Measure, pair: Pair) -> Value:
    if entry.mapping and pair.mapping == "none":
        raise NotApplicableError("it needs to know which masked record derives from which original one")
    if entry.per == "table":
        return _run(entry, pair.table, pair, "table")
    return _per_attribute(entry, pair)


def _run(entry: Measure, view: View, pair: Pair, name: str) -> Value:
    if len(view) == 0:
        raise NotApplicableError("no record has the values that it needs")
    drawn = {}
    if "rng" in inspect.signature(entry.function).parameters:
        drawn["rng"] = pair.seed.stream("measure", entry.id, name)
    made = entry(*(getattr(view, need) for need in entry.needs), **drawn)
    return made if isinstance(made, Value) else Value(float(made))


def _per_attribute(entry: Measure, pair: Pair) -> Value:
    """Every attribute on its own records; the headline is their mean, maximum or minimum."""

    def attempt(j: int) -> Value | str:
        try:
            return _run(entry, pair.columns[j], pair, pair.names[j])
        except NotApplicableError as why:
            return str(why)

    made = in_threads(attempt, range(len(pair.names)), size=pair.x.size)
    done = {name: value for name, value in zip(pair.names, made, strict=True) if isinstance(value, Value)}
    skipped = {name: value for name, value in zip(pair.names, made, strict=True) if isinstance(value, str)}
    if not done:
        raise NotApplicableError(f"in no column: {next(iter(skipped.values()))}")
    numbers = [value.value for value in done.values()]
    headline = {"mean": math.fsum(numbers) / len(numbers), "max": max(numbers), "min": min(numbers)}[entry.headline]
    details: dict[str, Any] = {"per_attribute": {name: value.value for name, value in done.items()}}
    for key in next(iter(done.values())).details:
        details[key] = {name: value.details[key] for name, value in done.items()}
    lengths = {name: len(view) for name, view in zip(pair.names, pair.columns, strict=True)}
    if any(length != len(pair) for length in lengths.values()):
        details["records"] = lengths
        details["left_out"] = {name: len(pair) - length for name, length in lengths.items()}
    if skipped:
        details["not_applicable"] = skipped
    notes = tuple(f"column {name} left out: {why}" for name, why in skipped.items())
    return Value(headline, details, notes)


def _checked(entry: Measure, value: Value) -> Value:
    """A number within the declared bounds: anything else is a mistake of the measure, not a result."""
    low, high = entry.bounds
    slack = 1e-9
    if not (low - slack <= value.value <= high + slack):
        raise ArithmeticError(f"{entry.id} gave {value.value}, outside its bounds {low} to {high}")
    return value


def audit(
    original: Any,
    masked: Any,
    *,
    measures: Sequence[str] | None = None,
    fail_if: Sequence[str] = (),
    **matching: Any,
) -> Audit:
    """Every measure that applies to a release, made by whatever tool.

    `matching` says how the tables belong together: columns, key, mapping, secret, seed, and the columns' schema.
    """
    return measure_pair(pair_tables(original, masked, **matching), names=measures, gates=fail_if)
