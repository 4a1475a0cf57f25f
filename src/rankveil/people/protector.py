"""The protector: masks, publishes, and certifies (d, v, f)-permuted privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil import auditing, masking
from rankveil.catalogue import get_measure
from rankveil.errors import ParameterError, listing
from rankveil.manifest import Manifest, Secret, describe, fingerprint
from rankveil.pairing import Pair, pair_tables
from rankveil.people.chance import whole
from rankveil.people.diversity import CRITERIA, MEANT, Criterion, Diversity
from rankveil.people.subject import choose
from rankveil.plans import Plan, Step, make_step
from rankveil.ranks import SortedColumn
from rankveil.seeds import SAFE_BITS, Seed
from rankveil.table import Table, listed

Array = NDArray[np.float64]

CERTIFY_SCHEMA = "rankveil/certify/1"
F = Literal["mapping", "minimax", "euclidean"]


@dataclass(frozen=True, eq=False)
class Release:
    """A masked table with its public manifest and its secret."""

    data: Any
    manifest: Manifest
    secret: Secret
    changed: Mapping[str, int]
    """How many cells of each masked column are different now."""
    passed_through: tuple[str, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Release({self.manifest!r}, masked: {', '.join(self.changed)})"

    def _repr_html_(self) -> str:
        from rankveil.report.notebook import shown

        steps = ", then ".join(step["method"] for step in self.manifest["steps"])
        words = f"A release of {self.manifest['records']['out']} records, masked by {steps}. {' '.join(self.notes)}"
        return shown(words.strip(), grids=[("", ("column", "cells changed"), list(self.changed.items()))])


def mask(
    data: Any,
    method: str | Step | Plan = "rank_swap",
    *,
    columns: Sequence[str] | None = None,
    then: Sequence[str | Step] = (),
    seed: Seed | int | str | bytes | None = None,
    publish: Sequence[str] = (),
    replicate: int = 0,
    schema: Any = None,
    decimal: str | None = None,
    **parameters: Any,
) -> Release:
    """Mask a table by a method or a plan; the same kind of table comes out, and the one given stays as it is.

    The seed is drawn from the operating system unless one is given (for studies). `publish` names measures whose
    values go into the manifest.
    """
    table = Table.of(data, schema=schema, decimal=decimal)
    plan = Plan.of(method, columns=columns, **parameters)
    for step in (then,) if isinstance(then, str | Step) else then:
        plan = plan.then(step if isinstance(step, Step) else make_step(step, {}))
    publish = listed(publish)
    for name in publish:
        get_measure(name)
    secret_seed = Seed.of(seed)
    applied = masking.apply(table, plan, seed=secret_seed, replicate=replicate)
    out, notes = table.replaced(
        applied.values,
        order=applied.order,
        labels=applied.labels,
        dropped=applied.dropped,
        emptied=applied.emptied,
    )
    secret = Secret(secret_seed, fingerprint(table), applied.order)
    published: dict[str, Any] = {}
    measured: tuple[str, ...] = ()
    if publish:
        kept = table.schema.only(name for name in table.names if name not in applied.dropped)
        made = auditing.audit(table, Table(out, schema=kept, decimal=table.decimal), measures=publish, secret=secret)
        published = {name: value.value for name, value in made.values.items()}
        measured = made.attributes
        notes += [f"{name} is not published: {why}" for name, why in made.not_applicable.items()]
    passed = tuple(name for name in table.names if name not in (*applied.masked, *applied.dropped))
    notes += [*applied.notes, *_warnings(table, passed, plan, applied)]
    changed = _changed(table, applied)
    if changed and not any(changed.values()) and any(step.method != "identity" for step in plan.steps):
        notes.append("warning: no cell changed; the release is the original as far as the masked columns go")
    if seed is not None and secret_seed.bits < SAFE_BITS:
        notes.append(f"the seed has fewer than {SAFE_BITS} bits: good for studies, not for a release")
    return Release(
        data=out,
        manifest=describe(table, plan, applied, published=published, measured=measured),
        secret=secret,
        changed=changed,
        passed_through=passed,
        notes=tuple(notes),
    )


def _changed(table: Table, applied: masking.Applied) -> dict[str, int]:
    counts = {}
    for name, masked in applied.values.items():
        before = table.values(name) if applied.order is None else table.values(name)[applied.order]
        if name in applied.labels:
            same = _label_of(before, table.labels(name)) == _label_of(masked, applied.labels[name])
        else:
            same = (masked == before) | (np.isnan(masked) & np.isnan(before))
        counts[name] = int(np.sum(~same))
    return counts


def _label_of(values: Array, labels: tuple[str, ...]) -> NDArray[np.object_]:
    """What the values stand for: labels, or the numbers themselves; None where they are missing."""
    words = np.array([*labels, None], dtype=object)
    gone = np.isnan(values)
    if not labels:
        return np.array([None if missing else f"{value:.17g}" for value, missing in zip(values, gone, strict=True)])
    return words[np.where(gone, len(labels), np.nan_to_num(values)).astype(np.intp)]


def _warnings(table: Table, passed: Sequence[str], plan: Plan, applied: masking.Applied) -> list[str]:
    told = []
    steps = zip(plan.steps, applied.columns, strict=True)
    pseudonyms = {name for step, columns in steps if step.entry.role == "identifier" for name in columns}
    if table.has_row_labels and all(step.entry.works_on != "records" for step in plan.steps):
        told.append("warning: the index of the table passed unmasked; reset it before release if it tells who is who")
    for name in passed:
        if table.columns[name].looks_like_identifier:
            told.append(f"warning: column {name} looks like an identifier and passed unmasked; drop it before release")
    if passed and any(step.entry.works_on != "records" for step in plan.steps):
        told.append(f"passed through unmasked: {listing(passed, most=10)}")
    released = [name for name in applied.masked if name not in pseudonyms]
    masked_ids = [name for name in released if table.columns[name].looks_like_identifier]
    if masked_ids:
        told.append(f"masked like other values, but named like an identifier: {listing(masked_ids)}")
    return told


@dataclass(eq=False)
class Certificate:
    """Whether a release satisfies (d, v, f)-permuted privacy, and the largest d and v that it does."""

    pair: Pair
    f: F
    criterion: Criterion
    record_d: Array
    """For every complete record and attribute the permutation distance of f(record)."""
    record_v: Array
    """And the diversity of the released values within that distance."""
    d: Array
    v: Array
    failing_rows: NDArray[np.intp]
    largest_d: Array
    largest_v: Array
    notes: list[str]

    @property
    def holds(self) -> bool:
        """Whether every record is as protected as asked."""
        return self.failing_rows.size == 0

    def record(self, row: int) -> dict[str, Any]:
        """Definition 1 for one original record (numbered from 1): its own d, and the diversity v within it."""
        found = np.flatnonzero(self.pair.table.original == row - 1)
        if found.size == 0:
            raise ParameterError(f"there is no complete original record {row}")
        return self._record(int(found[0]))

    def _record(self, i: int) -> dict[str, Any]:
        row = self.pair.table.original[i]
        return {
            "record": int(row) + 1,
            "d": [whole(each) for each in self.record_d[i]],
            "v": _written(self.record_v[i]),
            "ok": bool(row not in self._failing),
        }

    @cached_property
    def _failing(self) -> set[int]:
        return set(self.failing_rows.tolist())

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `rankveil certify`."""
        return {
            "schema": CERTIFY_SCHEMA,
            "holds": self.holds,
            "records": len(self.pair.table),
            "attributes": list(self.pair.names),
            "mapping": self.pair.mapping,
            "rankings": self.pair.rankings,
            "f": self.f,
            "d": [whole(each) for each in self.d],
            "v": _written(self.v),
            "diversity": self.criterion,
            "failing": (self.failing_rows + 1).tolist(),
            "largest": {"d": [whole(each) for each in self.largest_d], "v": _written(self.largest_v)},
            "each": [self._record(i) for i in range(len(self.pair.table))],
            "notes": self.notes,
        }

    def __repr__(self) -> str:
        verdict = "holds" if self.holds else f"fails for {self.failing_rows.size} records"
        return f"Certificate(d={[whole(each) for each in self.d]}, {verdict})"

    def _repr_html_(self) -> str:
        from rankveil.report.notebook import shown

        failing = f"{self.failing_rows.size} of {len(self.pair.table)} records are less protected than asked."
        words = f"Permuted privacy holds for all {len(self.pair.table)} records." if self.holds else failing
        largest = zip(self.pair.names, self.d, self.v, self.largest_d, self.largest_v, strict=True)
        rows = [(name, *(None if each is None else float(each) for each in given)) for name, *given in largest]
        heads = ("attribute", "d asked", "v asked", "largest d", "v there")
        return shown(words, grids=[(f"diversity: {self.criterion}", heads, rows)])


def certify(
    original: Any,
    masked: Any,
    *,
    d: float | Sequence[float] | Mapping[str, float] | None = None,
    v: float | Sequence[float] | Mapping[str, float] | None = None,
    diversity: Criterion = "variance",
    f: F | None = None,
    **matching: Any,
) -> Certificate:
    """(d, v, f)-permuted privacy of a release (Definitions 1 and 2); without `d`, the largest that holds.

    f is the mapping where there is one, otherwise the subject's own choice (the record at the smallest maximum rank
    distance). `matching` says how the tables belong together, as in `audit`.
    """
    if diversity not in CRITERIA:
        raise ParameterError(f"diversity must be {' or '.join(CRITERIA)}, not {diversity!r}")
    both = pair_tables(original, masked, **matching)
    notes = list(both.notes)
    f = f or ("mapping" if both.mapping != "none" else "minimax")
    if f == "mapping" and both.mapping == "none":
        raise ParameterError("f cannot be the mapping when there is none; choose minimax or euclidean")
    view, m = both.linkable, len(both.names)
    released = [SortedColumn(view.y[:, j], categories=both.categories[j]) for j in range(m)]
    nominal = [name for j, name in enumerate(both.names) if released[j].nominal]
    if nominal and diversity in MEANT:
        notes.append(f"{MEANT[diversity]} ({listing(nominal)})")
    ranks = np.column_stack([column.ranks[column.nearest(view.x[:, j])] for j, column in enumerate(released)])
    rows = np.arange(len(view)) if f == "mapping" else choose(ranks, view.rank_y, f)
    record_d = np.abs(view.rank_y[rows] - ranks)
    columns = tuple(Diversity(column) for column in released)
    largest_d = record_d.min(axis=0)
    around = _around(columns, diversity, ranks, largest_d)
    worst = np.max if diversity == "closeness" else np.min
    largest_v = worst(around, axis=0)
    anything = 1.0 if diversity == "closeness" else 0.0
    wanted_d = largest_d if d is None else _per_attribute("d", d, both.names, otherwise=0.0)
    if v is None:
        wanted_v = largest_v if d is None else np.full(m, anything)
    else:
        wanted_v = _per_attribute("v", v, both.names, otherwise=anything)
    diverse = around if np.array_equal(wanted_d, largest_d) else _around(columns, diversity, ranks, wanted_d)
    # a limit computed from the same data must hold for it, also a variance too large for a number
    slack = np.where(np.isfinite(wanted_v), 1e-12 * np.abs(wanted_v), 0.0)
    enough = diverse <= wanted_v + slack if diversity == "closeness" else diverse >= wanted_v - slack
    ok = ((record_d >= wanted_d) & enough).all(axis=1)
    if f != "mapping":
        known = "not known" if both.mapping == "none" else "not used"
        notes.append(f"f is the subject's own ({f}): the mapping is {known}")
    return Certificate(
        pair=both,
        f=f,
        criterion=diversity,
        record_d=record_d,
        record_v=_around(columns, diversity, ranks, record_d),
        d=wanted_d,
        v=wanted_v,
        failing_rows=np.sort(view.original[~ok]),
        largest_d=largest_d,
        largest_v=largest_v,
        notes=notes,
    )


def _written(v: Array) -> list[float | None]:
    """Diversities for JSON, which has no infinite numbers: a variance that is too large is none."""
    return [whole(each) if np.isfinite(each) else None for each in v.tolist()]


def _around(columns: Sequence[Diversity], criterion: Criterion, ranks: Array, d: Array) -> Array:
    """For every record and attribute the diversity of the released values within d of its nearest one."""
    reach = np.broadcast_to(d, ranks.shape)
    return np.column_stack([column.of(criterion, ranks[:, j], reach[:, j]) for j, column in enumerate(columns)])


def _per_attribute(
    what: str,
    given: float | Sequence[float] | Mapping[str, float],
    names: Sequence[str],
    *,
    otherwise: float,
) -> Array:
    """One number for every attribute; `otherwise` for those that a mapping leaves out."""
    if isinstance(given, Mapping):
        strangers = [name for name in given if name not in names]
        if strangers:
            raise ParameterError(f"{what}: there is no attribute {listing(strangers)} among {listing(names, most=10)}")
        values = np.array([float(given.get(name, otherwise)) for name in names])
    else:
        try:
            values = np.atleast_1d(np.asarray(given, dtype=np.float64))
        except (TypeError, ValueError):
            raise ParameterError(f"{what} must be numbers of 0 or more, not {given!r}") from None
        if values.size == 1:
            values = np.repeat(values, len(names))
    if values.shape != (len(names),):
        raise ParameterError(f"{what} needs one number for each of the {len(names)} attributes, not {values.size}")
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ParameterError(f"{what} must be numbers of 0 or more")
    return values
