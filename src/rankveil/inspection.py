"""A first look at a table: its columns, their kinds and roles, missing values, ties, what would be masked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankveil.columns import Cells
from rankveil.deciding import decided_table
from rankveil.errors import TableError
from rankveil.hierarchy import Hierarchy
from rankveil.markup import html_table
from rankveil.rolesfile import roles_file
from rankveil.schema import Decision, listed
from rankveil.table import Table

INSPECT_SCHEMA = "rankveil/inspect/1"


@dataclass(frozen=True)
class Groups:
    """The hierarchy that a person gave to a column."""

    name: str
    categories: tuple[int, ...]
    """How many there are on each level, from the leaves up."""


@dataclass(frozen=True)
class Look:
    """What a person should know of a column before it is masked."""

    name: str
    kind: str
    kind_given: bool
    role: str
    role_given: bool
    levels: tuple[str, ...]
    missing: int
    distinct: int | None
    """How many different values there are; None when they cannot be compared."""
    ties: float | None
    """The share of the values that stand more than once."""
    why_not_numeric: str | None
    masked: bool
    """Whether masking would change it unless other columns are chosen."""
    problem: str | None
    """Why masking would refuse the table because of this column, or a hierarchy that does not fit it."""
    hierarchy: Groups | None
    decision: Decision
    """What it is, what a release does with it, and why."""

    @property
    def looks_like_identifier(self) -> bool:
        """Whether it names people."""
        return self.decision.role == "identifier"


@dataclass(frozen=True)
class Inspection:
    """A table seen column by column, with what a release does with each."""

    records: int
    columns: tuple[Look, ...]
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Look:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def masked(self) -> tuple[str, ...]:
        """The columns that would be masked."""
        return tuple(column.name for column in self.columns if column.masked)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `rankveil inspect`."""
        return {
            "schema": INSPECT_SCHEMA,
            "records": self.records,
            "columns": [_plain(column) for column in self.columns],
            "masked": list(self.masked),
            "notes": list(self.notes),
        }

    def roles(self, *, missing: Sequence[str] = (), hierarchies: Mapping[str, str] | None = None) -> str:
        """The decisions as the file that `--roles` reads, with each reason as a comment.

        `missing` and the paths of `hierarchies` are what was declared already.
        """
        return roles_file([column.decision for column in self.columns], missing=missing, hierarchies=hierarchies or {})

    def __repr__(self) -> str:
        return f"Inspection({self.records} records, {len(self.columns)} columns, {len(self.masked)} would be masked)"

    def _repr_html_(self) -> str:
        """The decision on every column with its reason, as a table."""
        heads = ("column", "kind", "role", "action", "missing", "different", "reason")
        rows = [
            (
                look.name,
                look.decision.kind,
                look.decision.role,
                look.decision.action,
                f"{look.missing:,}",
                "" if look.distinct is None else f"{look.distinct:,}",
                look.decision.reason,
            )
            for look in self.columns
        ]
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        first = f"<p>{self.records:,} records, {len(self.columns)} columns</p>"
        return f"{first}{html_table(heads, rows)}{notes}"


def inspect(
    data: Any, *, columns: Sequence[str] | None = None, schema: Any = None, decimal: str | None = None
) -> Inspection:
    """Look at a table without changing or masking anything; `columns` are those a person means to mask.

    >>> import pyarrow as pa
    >>> seen = inspect(pa.table({"INCOME": [10, 20, 20, None], "TOWN": ["a", "b", "b", "a"]}))
    >>> seen.masked, seen["INCOME"].missing, round(seen["INCOME"].ties, 2)
    (('INCOME', 'TOWN'), 1, 0.67)
    """
    table = decided_table(Table.of(data, schema=schema, decimal=decimal), named=listed(columns or ()))
    decisions = table.schema.decisions or {}
    notes = []
    try:
        usable = table.usable(columns)
        chosen = usable if columns is not None else tuple(name for name in usable if decisions[name].action == "mask")
    except TableError as error:
        if columns is not None:
            raise
        chosen = ()
        notes.append(f"nothing would be masked: {error}")
    looks = tuple(_look(table, name, each, masked=name in chosen) for name, each in decisions.items())
    return Inspection(len(table), looks, tuple(notes))


def _plain(look: Look) -> dict[str, Any]:
    """A column of the JSON document."""
    made = look.decision
    decision = {"kind": made.kind, "role": made.role, "action": made.action, "reason": made.reason}
    ordered = {"levels": list(made.levels), "missing": list(made.missing)}
    plain = {**asdict(look), "looks_like_identifier": look.looks_like_identifier}
    return {**plain, "levels": list(look.levels), "decision": {**decision, **ordered}}


def _look(table: Table, name: str, decision: Decision, *, masked: bool) -> Look:
    column, cells = table.columns[name], table.cells(name)
    hierarchy = (table.schema.hierarchies or {}).get(name)
    problem, counts = None, None
    if column.kind != "nominal" or hierarchy is not None:
        try:
            values = table.values(name)
            counts = np.unique(values[~np.isnan(values)], return_counts=True)[1]
        except TableError as error:
            problem = str(error)
    if counts is None:
        counts = _counts(cells)
    return Look(
        name=name,
        kind=column.kind,
        kind_given=column.kind_given,
        role=column.role,
        role_given=column.role_given,
        levels=column.levels,
        missing=column.missing,
        distinct=None if counts is None else int(counts.size),
        ties=None if counts is None else float(counts[counts > 1].sum() / max(counts.sum(), 1)),
        why_not_numeric=column.why or None,
        masked=masked,
        problem=problem if masked or hierarchy is not None else None,
        hierarchy=None if hierarchy is None else _groups(hierarchy),
        decision=decision,
    )


def _groups(hierarchy: Hierarchy) -> Groups:
    return Groups(hierarchy.name, tuple(len(set(level)) for level in zip(*hierarchy.rows, strict=True)))


def _counts(cells: Cells) -> Any:
    """How often each value stands, or None for values that cannot be compared."""
    try:
        return pc.value_counts(cells.present).field("counts").to_numpy(zero_copy_only=False)
    except pa.ArrowNotImplementedError:
        return None
