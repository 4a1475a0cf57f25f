"""What is published of a masking (everything but the randomness), and what stays secret."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil import digests, memory
from rankveil._version import __version__
from rankveil.catalogue import get_method
from rankveil.columns import Cells
from rankveil.errors import FileError, ParameterError
from rankveil.markup import html_table
from rankveil.masking import Account
from rankveil.masking.guarantees import guarantees, said_of_others
from rankveil.plans import Plan, Step, plain_json
from rankveil.seeds import Seed, Stream
from rankveil.table import Table

MANIFEST_SCHEMA = "rankveil/manifest/1"
_MAPPINGS = ("kept", "reordered", "none")
"""How the records of a release correspond to those of the original."""
SECRET_SCHEMA = "rankveil/secret/2"
_OLD_SECRET = "rankveil/secret/1"
"""Of releases whose draws came from the seed itself, with a fingerprint that told formats apart."""
LISTED = 1_000_000
"""Records up to which a secret lists the mapping; of more it holds the key of the shuffle, which makes it again."""
_SORTING = 32
"""Bytes that the mapping of a record takes while it is made again."""

OTHER_TABLE = "the release is not the table that its manifest describes: its content has another digest"
"""What is said of a release that was changed after its manifest was written."""
_ORDER_KEPT = (
    "the rows stand in the original's order: whoever knows that order knows which record is whose, and in a column by "
    "which it is sorted, sorting puts the released values back"
)


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
        return cls(_with_mapping(_parsed(text, MANIFEST_SCHEMA, "manifest")))

    def __getitem__(self, name: str) -> Any:
        return self.content[name]

    def with_digest(self, digest: str) -> Manifest:
        """The same of a release whose content has this digest."""
        return Manifest({**self.content, "digest": digest})

    def permutes(self, names: Iterable[str]) -> bool:
        """Whether these columns have all their original values, whatever was done to the others of the release."""
        if self.content.get("marginals") == "kept":
            return True
        wanted, changed = set(names), set[str]()
        try:
            if self.content["records"]["left_out"]:
                return False
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

    def _repr_html_(self) -> str:
        """What was done, to which columns, and what holds: tables instead of JSON."""
        content, counts = self.content, self.content.get("records", {})
        words = (
            f"Manifest of a release of {counts.get('out', '?')} records, made of {counts.get('in', '?')}. "
            f"Mapping: {content.get('mapping', '?')}. Guarantees: {'; '.join(content.get('guarantees') or ['none'])}."
        )
        steps = [
            (number, step["method"], ", ".join(step.get("columns", ())), _parameters(step))
            for number, step in enumerate(content.get("steps", ()), start=1)
        ]
        columns = [
            (
                each["name"],
                each.get("kind", ""),
                each.get("role", ""),
                "left out" if each.get("dropped") else "masked" if each.get("masked") else "as it was",
            )
            for each in content.get("columns", ())
        ]
        grids: list[tuple[str, tuple[str, ...], list[Any]]] = [
            ("Steps", ("step", "method", "columns", "parameters"), steps),
            ("Columns", ("column", "kind", "role", "in the release"), columns),
        ]
        return f"<p>{escape(words)}</p>" + "".join(html_table(head, rows, caption=said) for said, head, rows in grids)


def _parameters(step: Mapping[str, Any]) -> str:
    """The parameters of a step as a person writes them; those of single columns after a dot."""
    told = {**step.get("parameters", {})}
    for name, own in (step.get("per_column") or {}).items():
        told |= {f"{parameter}.{name}": value for parameter, value in own.items() if value != told.get(parameter)}
    return ", ".join(f"{name}={value}" for name, value in told.items() if value is not None)


@dataclass(frozen=True, eq=False)
class Secret:
    """What the protector keeps: the seed, a fingerprint of the original, and the mapping when rows were reordered.

    With the original, the plan of the manifest, the seed and the replicate the release can be made again by the same
    version, and with the key of the pseudonyms where they had one of their own, which lies in no secret.
    """

    seed: Seed
    fingerprint: str | None
    """None in the secrets of older versions, whose fingerprint was another one."""
    order: NDArray[np.intp] | None = field(default=None)
    replicate: int = 0
    own_key: bool = False
    """Whether the pseudonyms had a key of their own."""
    shuffle: Stream | None = field(default=None)
    """The stream that makes the whole mapping, where it is a shuffle of all rows: a long one is written as its key."""

    def to_json(self) -> str:
        """For the secret file, and nothing else."""
        mapping: Any = None
        if self.order is not None and self.shuffle is not None and self.order.size > LISTED:
            mapping = {"records": self.order.size, "shuffled_by": self.shuffle.reveal()}
        elif self.order is not None:
            mapping = (self.order + 1).tolist()
        return json.dumps(
            {
                "schema": SECRET_SCHEMA,
                "seed": self.seed.reveal(),
                "original_fingerprint": self.fingerprint,
                "replicate": self.replicate,
                "pseudonyms": "a key of their own" if self.own_key else "from the seed",
                "mapping": mapping,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Secret:
        """A secret read back; its errors never quote it."""
        plain = _parsed(text, SECRET_SCHEMA, "secret", older=(_OLD_SECRET,))
        try:
            mapping, shuffle = plain.get("mapping"), None
            if isinstance(mapping, dict):
                shuffle = Stream.revealed(mapping["shuffled_by"])
                mapping = _made_again(shuffle, mapping["records"])
            elif not isinstance(mapping, list | None):
                raise ValueError
            order = None if mapping is None else np.asarray(mapping) - 1
            whole = order is None or (order.ndim == 1 and (order.dtype.kind == "i" or order.size == 0))
            if not whole or (order is not None and (np.unique(order).size < order.size or order.min(initial=0) < 0)):
                raise ValueError
            if not isinstance(plain["seed"], str):  # a seed of null would draw a fresh one
                raise ValueError
            seed, told = Seed.of(plain["seed"]), str(plain["original_fingerprint"])
            if plain["schema"] == _OLD_SECRET:
                return cls(seed, None, order)
            replicate = plain["replicate"]
            if not isinstance(replicate, int) or isinstance(replicate, bool) or replicate < 0:
                raise ValueError
            return cls(seed, told, order, replicate, plain["pseudonyms"] != "from the seed", shuffle)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise FileError("the secret file is damaged: seed, fingerprint or mapping cannot be read") from None

    def is_of(self, original: Table) -> bool | None:
        """Whether this is the original that was masked; None where an old secret does not tell."""
        return None if self.fingerprint is None else fingerprint(original) == self.fingerprint

    def __repr__(self) -> str:
        return "Secret(hidden)"


def said_of_secret(manifest: Manifest, secret: Secret) -> str:
    """What the secret of this release would tell others: with which words to keep it."""
    told = ["it is known which record is whose"] if secret.order is not None else []
    for step in manifest["steps"]:
        entry = get_method(step["method"])
        given = [{**step["parameters"], **own} for own in ({}, *step.get("per_column", {}).values())]
        repeats = entry.reproducible_with is None or any(each.get(entry.reproducible_with) for each in given)
        if entry.seed_tells and repeats:
            told.append(f"{entry.seed_tells} ({entry.id})")
    if told:
        return f"with it {'; '.join(dict.fromkeys(told))}"
    return (
        "it undoes nothing of this masking, but has a fingerprint by which a guess of the whole original is confirmed"
    )


def _made_again(shuffle: Stream, records: Any) -> NDArray[np.intp]:
    """The rows from 1 that a shuffle puts in their places, as a list of them would say."""
    if not isinstance(records, int) or isinstance(records, bool) or records < 0:
        raise ValueError
    need = records * _SORTING
    if need > memory.available():
        raise FileError(f"the mapping of {records} records needs {memory.shown(need)} of memory, and less is free")
    return shuffle.order(records) + 1


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
    return _with_mapping(content)


def _with_mapping(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a manifest says, unless it says of the mapping what none can say."""
    if content.get("mapping", "kept") not in _MAPPINGS:
        raise FileError(
            f"the manifest is damaged: its mapping must be {' or '.join(_MAPPINGS)}, not {content['mapping']!r}"
        )
    return content


def other_table(manifest: Any, table: Table) -> str | None:
    """A note where a table is not the one that a manifest describes; None where it is, or the manifest tells no digest.

    The order of its rows and the format of its file make no difference.
    """
    content = manifest.content if isinstance(manifest, Manifest) else manifest
    told = content.get("digest") if isinstance(content, Mapping) else None
    if not digests.is_comparable(told) or digests.digest_of(table) == told:
        return None
    return OTHER_TABLE


def _parsed(text: str, schema: str, what: str, *, older: Sequence[str] = ()) -> dict[str, Any]:
    try:
        plain = plain_json(text)
    except ValueError:
        raise FileError(f"this is not a {what}: it is not JSON") from None
    given = plain.get("schema") if isinstance(plain, dict) else None
    if isinstance(given, str) and given not in (schema, *older) and given.startswith(schema[: schema.rindex("/") + 1]):
        raise FileError(
            f"this {what} is of another version of rankveil: its schema is {given[:40]}, and {schema} is read here"
        )
    if given not in (schema, *older):
        raise FileError(f"this is not a {what}: its schema is not {schema}")
    return dict(plain)


def fingerprint(table: Table) -> str:
    """A hash by which the protector recognises the original; it stays in the secret."""
    return put_together(column_fingerprint(name, partial(_as_one, table.cells(name))) for name in table.names)


def _as_one(cells: Cells) -> tuple[Cells]:
    return (cells,)


def put_together(columns: Iterable[bytes]) -> str:
    """The fingerprint of a table from those of its columns, in order."""
    return hashlib.sha256(b"".join(columns)).hexdigest()


def column_fingerprint(name: str, parts: Callable[[], Iterable[Cells]]) -> bytes:
    """A hash of a column, the same however it is cut and in whatever format it lies; its parts are looked at twice."""
    missing = np.concatenate([np.zeros(0, dtype=bool), *(cells.missing for cells in parts())])
    digest = hashlib.sha256(f"rankveil/fingerprint/2:{len(name)}:{name}:{missing.size}:".encode())
    digest.update(np.packbits(missing).tobytes())
    for cells in parts():
        digest.update(digests.codes_of(cells.present, decimal=cells.decimal).astype("<u8").tobytes())
    return digest.digest()


def describe(
    table: Table,
    plan: Plan,
    applied: Account,
    *,
    digest: str,
    published: Mapping[str, Any] | None = None,
    measured: Sequence[str] = (),
    order_kept: bool = False,
) -> Manifest:
    """The manifest of a release whose content has this digest; `order_kept`: published in the original's order."""
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
        **_row_order(plan, kept=order_kept),
        "marginals": _marginals(table, plan, applied),
        "guarantees": guarantees(table, plan, applied),
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
                **_of_grid(column.name, applied),
            }
            for column in table.columns.values()
        ],
        "records": {"in": len(table), "out": out, "left_out": len(table) - out},
        "digest": digest,
        "disclosive_parameters": _disclosive(plan, applied),
        **({"warnings": warned} if (warned := cautions(plan, applied)) else {}),
        "for_users": [*_for_users(table, plan, applied), *([_ORDER_KEPT] if order_kept and not plan.reorders else [])],
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


def _of_grid(name: str, applied: Account) -> dict[str, Any]:
    """The grid on which a column's numbers are released, where they were computed from draws."""
    return {"grid": applied.grids[name].step} if name in applied.grids else {}


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


def _row_order(plan: Plan, *, kept: bool) -> dict[str, str]:
    """What is published of the order of the rows; nothing before it is known in which order they are published."""
    if plan.reorders:
        return {"row_order": "shuffled"}
    return {"row_order": "kept"} if kept else {}


def _marginals(table: Table, plan: Plan, applied: Account) -> str:
    """Kept when, in every column, the last step that could change them restores or keeps them."""
    if applied.released < len(table):
        return "changed"  # the values of those who were left out are lost
    changed: set[str] = set()
    for step, columns, of_groups in zip(plan.steps, applied.columns, applied.of_groups, strict=True):
        if step.method == "reverse_map":
            changed -= set(columns) - of_groups
        elif step.entry.marginals == "changed":
            changed |= set(columns)
        else:  # values of groups that have different numbers of records
            changed |= of_groups
    return "changed" if changed else "kept"


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
    told = [
        f"{step.method}: {step.entry.tells}{said_of_others(table, plan, applied, number)}"
        for number, step in enumerate(plan.steps)
        if step.entry.tells
    ]
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
    if applied.grids:
        told.append(
            "numbers that were computed from draws were rounded to multiples of their column's grid (columns[].grid; "
            "dates and times: in days) after all steps: that adds about grid^2 / 12 to their variances, and what is "
            f"said to be exact was exact before it: {', '.join(applied.grids)}"
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
