"""What is published of a masking (everything but the randomness), and what stays secret."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil._version import __version__
from rankveil.columns import Cells
from rankveil.errors import FileError, ParameterError
from rankveil.masking import Account
from rankveil.plans import Plan, Step, plain_json
from rankveil.seeds import Seed
from rankveil.table import Table

MANIFEST_SCHEMA = "rankveil/manifest/1"
SECRET_SCHEMA = "rankveil/secret/1"


@dataclass(frozen=True, eq=False)
class Manifest:
    """The public account of a release: methods, parameters, facts, counts; never the seed or a hash of the original."""

    content: Mapping[str, Any]

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(self.content, indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """A manifest read back."""
        return cls(_parsed(text, MANIFEST_SCHEMA, "manifest"))

    def __getitem__(self, name: str) -> Any:
        return self.content[name]

    def permutes(self, names: Iterable[str]) -> bool:
        """Whether these columns have all their original values, whatever was done to the others of the release."""
        if self.content.get("marginals") == "kept":
            return True
        wanted, changed = set(names), set[str]()
        try:
            told = {column["name"]: column["role"] for column in self.content["columns"]}
            for step in self.content["steps"]:
                columns = wanted if step["facts"]["works_on"] == "records" else set(step["columns"])
                if step["method"] == "reverse_map":
                    changed -= columns
                elif step["facts"]["marginals"] == "changed":
                    changed |= columns
        except (KeyError, TypeError):
            return False  # somebody else's manifest that says less
        # groups of different sizes may have changed places, of which a manifest does not tell enough
        return told.keys() >= wanted and "group" not in told.values() and not changed & wanted

    def __repr__(self) -> str:
        steps = " then ".join(step["method"] for step in self.content["steps"])
        return f"Manifest({steps}, {self.content['records']['out']} records)"


@dataclass(frozen=True, eq=False)
class Secret:
    """What the protector keeps: the seed, a fingerprint of the original, and the mapping when rows were reordered."""

    seed: Seed
    fingerprint: str
    order: NDArray[np.intp] | None = field(default=None)

    def to_json(self) -> str:
        """For the secret file, and nothing else."""
        mapping = None if self.order is None else (self.order + 1).tolist()
        return json.dumps(
            {
                "schema": SECRET_SCHEMA,
                "seed": self.seed.reveal(),
                "original_fingerprint": self.fingerprint,
                "mapping": mapping,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Secret:
        """A secret read back; its errors never quote it."""
        plain = _parsed(text, SECRET_SCHEMA, "secret")
        try:
            mapping = plain.get("mapping")
            if not isinstance(mapping, list | None):
                raise ValueError
            order = None if mapping is None else np.asarray(mapping) - 1
            whole = order is None or (order.ndim == 1 and (order.dtype.kind == "i" or order.size == 0))
            if not whole or (order is not None and (np.unique(order).size < order.size or order.min(initial=0) < 0)):
                raise ValueError
            if not isinstance(plain["seed"], str):  # a seed of null would draw a fresh one
                raise ValueError
            return cls(Seed.of(plain["seed"]), str(plain["original_fingerprint"]), order)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise FileError("the secret file is damaged: seed, fingerprint or mapping cannot be read") from None

    def __repr__(self) -> str:
        return "Secret(hidden)"


def content_of(manifest: Any, *, records: int) -> Mapping[str, Any] | None:
    """What the manifest of a release of so many records says, however it is given; None where there is none."""
    content = manifest.content if isinstance(manifest, Manifest) else manifest
    if content is None:
        return None
    if not isinstance(content, Mapping):
        raise ParameterError(f"manifest must be a Manifest or its content, not {type(manifest).__name__}")
    counts = content.get("records")
    if not isinstance(counts, Mapping) or counts.get("out") != records:
        raise FileError(
            "the manifest is that of another release, of another number of records; name the right one with "
            "--manifest, or leave it out with --no-manifest"
        )
    return content


def _parsed(text: str, schema: str, what: str) -> dict[str, Any]:
    try:
        plain = plain_json(text)
    except ValueError:
        raise FileError(f"this is not a {what}: it is not JSON") from None
    if not isinstance(plain, dict) or plain.get("schema") != schema:
        raise FileError(f"this is not a {what}: its schema is not {schema}")
    return plain


def fingerprint(table: Table) -> str:
    """A hash by which the protector recognises the original; it stays in the secret."""
    return put_together(column_fingerprint(name, partial(_as_one, table.cells(name))) for name in table.names)


def _as_one(cells: Cells) -> tuple[Cells]:
    return (cells,)


def put_together(columns: Iterable[bytes]) -> str:
    """The fingerprint of a table from those of its columns, in order."""
    return hashlib.sha256(b"".join(columns)).hexdigest()


def column_fingerprint(name: str, parts: Callable[[], Iterable[Cells]]) -> bytes:
    """A hash of a column, the same however it is cut; its parts are looked at three times."""
    missing = np.concatenate([np.zeros(0, dtype=bool), *(cells.missing for cells in parts())])
    digest = hashlib.sha256(f"{len(name)}:{name}:{missing.size}:".encode())
    digest.update(np.packbits(missing).tobytes())
    for which in (0, 1):
        for cells in parts():
            digest.update(cells.content()[which])
    return digest.digest()


def describe(
    table: Table,
    plan: Plan,
    applied: Account,
    *,
    published: Mapping[str, Any] | None = None,
    measured: Sequence[str] = (),
) -> Manifest:
    """The manifest of a release."""
    mapping = _mapping(plan)
    out = applied.released
    content = {
        "schema": MANIFEST_SCHEMA,
        "rankveil": __version__,
        "date": datetime.date.today().isoformat(),
        "steps": [
            {**_step(step, columns, counts), **_of_units(table, applied, number)}
            for number, (step, columns, counts) in enumerate(
                zip(plan.steps, applied.columns, applied.counts, strict=True)
            )
        ],
        "mapping": mapping,
        "marginals": _marginals(plan, applied),
        "guarantees": _guarantees(table, plan, applied),
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "role": column.role,
                "role_is_a_guess": not column.role_given,
                "masked": column.name in applied.masked,
                "dropped": column.name in applied.dropped,
                "missing": column.missing,
                **_of_categories(table, column.name, applied),
            }
            for column in table.columns.values()
        ],
        "records": {"in": len(table), "out": out, "left_out": len(table) - out},
        "disclosive_parameters": _disclosive(plan, applied),
        **({"warnings": warned} if (warned := cautions(plan, applied)) else {}),
        "for_users": _for_users(table, plan, applied),
        "measures": dict(published or {}),
        "measured_columns": list(measured),
    }
    return Manifest(content)


def _of_categories(table: Table, name: str, applied: Account) -> dict[str, Any]:
    """How the categories of a masked column are ordered, and what missing cells it has after masking."""
    told: dict[str, Any] = {}
    if name in applied.masked and table.labels(name):
        told["ranked_by"] = table.categories(name).ranking
    if name in applied.masked:
        gone = applied.missing[name]
        if gone != table.columns[name].missing:
            told["missing_in_release"] = gone
    return told


def _step(step: Step, columns: tuple[str, ...], counts: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    entry = step.entry
    described: dict[str, Any] = {"method": entry.id, "title": entry.title, "columns": list(columns)}
    if entry.works_on in ("records", "names"):
        described["parameters"] = entry.used(step.bound())
        described["facts"] = entry.facts(step.bound())
    else:
        bound = {name: entry.used(step.bound(name)) for name in columns}
        described["parameters"] = bound[columns[0]] if not step.per_column else _common(bound)
        described["per_column"] = {
            name: {key: value for key, value in given.items() if described["parameters"].get(key, ...) != value}
            for name, given in bound.items()
        }
        described["per_column"] = {name: given for name, given in described["per_column"].items() if given}
        facts = [entry.facts(step.bound(name)) for name in columns]
        # each column may have its own sd, and all of them be local
        described["facts"] = {**facts[0], "local": all(each["local"] for each in facts)}
    if counts:
        described["counts"] = {name: dict(given) for name, given in counts.items()}
    described["source"] = entry.source
    return described


def _common(bound: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The parameters that are the same in every column."""
    rows = list(bound.values())
    return {key: value for key, value in rows[0].items() if all(row.get(key, ...) == value for row in rows)}


def _of_units(table: Table, applied: Account, number: int) -> dict[str, Any]:
    """What a step did by groups: which counts are of groups, not of records; and by what it multiplied the weights."""
    told: dict[str, Any] = {}
    grouped = [name for name in applied.counts[number] if name in applied.of_groups[number]]
    if grouped:
        told["counts_of_groups"] = grouped
    if applied.weighed_by[number] != 1:
        told["weights"] = {"column": applied.weight, "multiplied_by": applied.weighed_by[number]}
    return told


def _mapping(plan: Plan) -> str:
    facts = [step.entry.mapping for step in plan.steps]
    return "none" if "none" in facts else "reordered" if "reordered" in facts else "kept"


def _marginals(plan: Plan, applied: Account) -> str:
    """Kept when, in every column, the last step that could change them restores or keeps them."""
    changed: set[str] = set()
    for step, columns, of_groups in zip(plan.steps, applied.columns, applied.of_groups, strict=True):
        if step.method == "reverse_map":
            changed -= set(columns) - of_groups
        elif step.entry.marginals == "changed":
            changed |= set(columns)
        else:  # values of groups that have different numbers of records
            changed |= of_groups
    return "changed" if changed else "kept"


def _guarantees(table: Table, plan: Plan, applied: Account) -> list[str]:
    """What the steps guarantee of the columns on which no other step has made it void."""
    told = []
    for number, step in enumerate(plan.steps):
        if step.entry.guarantee is None:
            continue
        gaps = any(table.columns[name].missing for name in applied.columns[number])
        if step.entry.works_on == "columns" and applied.apart(number):
            continue  # columns of groups and of records were masked apart from each other
        if gaps and step.entry.works_on == "columns" and not step.entry.changes_missing:
            continue  # a missing cell stood at its column's mean, which every record changes, and it shows in its group
        columns = [name for name in applied.columns[number] if _stands(plan, applied, number, name)]
        whole = len(columns) == len(applied.columns[number])
        if columns and (whole or step.entry.works_on == "column"):
            bound = {name: step.bound(name) for name in columns}
            told += step.entry.guarantee(bound, applied.counts[number])
    return told


def _stands(plan: Plan, applied: Account, number: int, name: str) -> bool:
    """Whether what a step guarantees of a column survives the other steps that work on it."""
    survives = plan.steps[number].entry.survives
    for k, other in enumerate(plan.steps):
        if k > number and other.entry.leaves_out and survives == "value-wise":
            return False  # who shared their values with a record may be left out
        if k == number or name not in applied.columns[k] or other.entry.works_on in ("records", "names"):
            continue
        if k < number and not _may_come_first(other, name, survives):
            return False
        if k > number and not _leaves_standing(other, name, survives):
            return False
        if k > number and survives == "data-free" and other.entry.works_on == "columns":
            together = {*applied.columns[k], *other.parameters.get("given", ())}
            if not together <= set(applied.columns[number]):
                return False  # it brings in columns that are not covered
    return True


def _may_come_first(earlier: Step, name: str, survives: str) -> bool:
    """Whether what is guaranteed of the later step's input holds of the original too."""
    if survives == "data-free":  # one record of the original must be one record of what the earlier step made
        return bool(earlier.entry.facts(earlier.bound(name))["local"])
    return survives == "value-wise"  # otherwise: the distance is to what the earlier step made, not to the original


def _leaves_standing(later: Step, name: str, survives: str) -> bool:
    entry = later.entry
    if survives == "data-free":
        # what looks at the values that it gets and at nothing else cannot weaken what holds of them
        return "original" not in entry.needs or (bool(entry.from_data) and not entry.taken(later.bound(name)))
    return survives == "value-wise" and entry.post and entry.id != "reverse_map"


def cautions(plan: Plan, applied: Account) -> list[str]:
    """What is known to undo a step with its parameters."""
    told = []
    for step, columns in zip(plan.steps, applied.columns, strict=True):
        if step.entry.caution is not None:
            bound = {name: step.bound(name) for name in columns}
            told += [f"{step.method}: {sentence}" for sentence in step.entry.caution(bound)]
    return told


def _disclosive(plan: Plan, applied: Account) -> list[str]:
    flags = []
    for step, columns in zip(plan.steps, applied.columns, strict=True):
        taken: dict[tuple[str, str], list[str]] = {}
        for name in columns if step.entry.works_on in ("column", "columns") else ():
            for told in step.entry.taken(step.bound(name)).items():
                taken.setdefault(told, []).append(name)
        for (what, why), names in taken.items():
            flags.append(f"{step.method}: {what} was taken from the original in {', '.join(names)}: {why}")
    return flags


def _for_users(table: Table, plan: Plan, applied: Account) -> list[str]:
    told = [f"{step.method}: {step.entry.tells}" for step in plan.steps if step.entry.tells]
    for step, columns in zip(plan.steps, applied.columns, strict=True):
        filled = step.entry.works_on == "columns" and not step.entry.changes_missing
        seen = (*columns, *step.parameters.get("given", ())) if filled else ()
        if any(table.columns[name].missing for name in seen):
            told.append(
                f"{step.method}: missing cells stood at their column's mean meanwhile, so what is said of means, "
                "covariances or groups may hold only of the table filled in that way"
            )
    for step, columns, of_groups in zip(plan.steps, applied.columns, applied.of_groups, strict=True):
        if of_groups and step.entry.tells:
            told.append(
                f"{step.method}: masked on one record of each group, so what is said of means, distributions and ranks "
                f"holds of groups, not of all records: {', '.join(name for name in columns if name in of_groups)}"
            )
    corrected = _corrected(table, plan, applied)
    if corrected:
        told.append(f"rv.correct(masked, manifest) computes the {corrected} corrected for the masking")
    return told


def _corrected(table: Table, plan: Plan, applied: Account) -> str:
    """What `rv.correct` can work out, in words."""
    found = {}
    for name in applied.masked:
        steps = [step for step, columns in zip(plan.steps, applied.columns, strict=True) if name in columns]
        steps = [step for step in steps if step.entry.works_on not in ("records", "names")]
        if table.columns[name].kind == "numeric":
            found[name] = all(step.entry.correction or step.method == "round" for step in steps)
        else:
            found[name] = all(step.entry.share_correction or step.entry.marginals == "kept" for step in steps)
    numeric = [able for name, able in found.items() if table.columns[name].kind == "numeric"]
    others = [name for name, able in found.items() if table.columns[name].kind != "numeric" and able]
    words = ["means and covariances"] if numeric and all(numeric) else []
    words += [f"shares of the categories of {', '.join(others)}"] if others and all(numeric) else []
    return " and the ".join(words)
