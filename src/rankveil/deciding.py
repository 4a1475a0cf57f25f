"""A table read as the decisions on its columns say: the one place where they become kinds and roles.

What a person declared stands. What a manifest tells of masked columns comes next, then what the data say
(`rankveil.decisions`). Columns that a person names are read as they look: numbers are numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from rankveil.decisions import decide, one_of_each
from rankveil.errors import TableError
from rankveil.schema import NAMING_ROLES, Decision, Role, Schema
from rankveil.table import HEAVIEST, Table

_KINDS = ("numeric", "ordinal", "nominal")


def decided_table(
    table: Table,
    *,
    named: Collection[str] = (),
    concluded: bool = True,
    manifest: Any = None,
    released: Collection[str] = (),
    alone: bool = False,
    numbers: Collection[str] = (),
) -> Table:
    """The table with the decisions on all columns, and with the kinds and roles that follow from them.

    `named` are columns that a person chose: they are read as they look. With `concluded=False` a person chose all that
    matter, so that nothing is added but the decisions, the role of identifiers, and what a manifest tells of masked
    columns. Where all columns have one value only they are all there is, and used. `released` identifiers pass through.
    `alone`: records belong to no groups and have no weights unless a person said so. `numbers` are columns whose
    numbers are numbers whatever they look like.

    >>> import pyarrow as pa
    >>> people = pa.table({"hid": [1, 1, 2, 2], "sex": [1, 2, 2, 1], "income": [10.5, 20.0, 31.5, 7.25]})
    >>> made = decided_table(Table(people))
    >>> made.cells("sex").kind, made.schema.roles, made.usable()
    ('nominal', {'hid': 'group', 'sex': 'quasi-identifier', 'income': 'confidential'}, ('sex', 'income'))
    """
    base = table.with_schema(table.schema.given)
    decisions = decisions_of(table)
    told = _told(manifest, decisions)
    given, made = base.schema, _Concluded(base)
    for name, each in decisions.items():
        column = told.get(name)
        if column is not None and column.masked and not column.pseudonym:
            made.as_masked(each, column)
        elif name not in named and each.role == "identifier":
            made.roles[name] = "other" if name in released else "identifier"
        elif concluded and name not in named:
            made.as_decided(each, column, kind=name not in numbers)
            if alone:
                made.in_parts(each)
    if not any(role in NAMING_ROLES for role in {**made.roles, **(given.roles or {})}.values()):
        constant = {name for name, each in decisions.items() if each.constant and each.role == "other"}
        made.roles = {name: role for name, role in made.roles.items() if name not in constant}
    schema = Schema(
        {**made.kinds, **(given.kinds or {})},
        {**made.levels, **(given.levels or {})},
        {**made.roles, **(given.roles or {})},
        tuple(dict.fromkeys((*given.missing, *made.missing))),
        given.hierarchies,
        decisions,
        given,
    )
    return table.with_schema(schema)


def decisions_of(table: Table) -> dict[str, Decision]:
    """The decision on every column, made once for a table."""
    known = table.schema.decisions
    if known is not None and all(name in known for name in table.names):
        return {name: known[name] for name in table.names}
    return {each.name: each for each in one_of_each(decide(table.with_schema(table.schema.given)))}


class _Concluded:
    """Kinds, orders, roles and missing markers that are concluded, for columns of which nobody declared them."""

    def __init__(self, base: Table) -> None:
        self.base = base
        self.kinds: dict[str, str] = {}
        self.levels: dict[str, tuple[str, ...]] = {}
        self.roles: dict[str, str] = {}
        self.missing: list[str] = []

    def as_decided(self, made: Decision, told: _Told | None, *, kind: bool = True) -> None:
        """A column as the decision says; one that is not in the release cannot be measured."""
        role = str(made.role)
        if told is not None:
            role = told.role or role  # as it was declared where it was masked
            if told.dropped and role not in ("identifier", "group"):
                role = "other"
            if role == "group" and not told.role and not told.pseudonym:
                role = "other"  # nobody masked by these groups
        unreadable = made.undecided or made.kind == "text" or not self._readable(made.name)
        if (role == "weight" and not self._counts(made.name)) or (role in NAMING_ROLES and unreadable):
            role = "other"
        self.roles[made.name] = role
        if role in NAMING_ROLES:
            self.missing += made.missing
        if role in NAMING_ROLES and kind:
            self._kind(made, {"ordered": "ordinal", "unordered": "nominal"}.get(made.kind))

    def as_masked(self, made: Decision, told: _Told) -> None:
        """A column as it was masked, and measured therefore."""
        role = told.role or made.role
        if role in NAMING_ROLES:
            self.roles[made.name] = role
        if told.kind != "numeric":
            self._kind(made, told.kind)
        self.missing += made.missing

    def in_parts(self, made: Decision) -> None:
        """A column of a table in parts: no group, no weight, and numbers that nobody need count one by one."""
        role = self.roles[made.name]
        if role in ("weight", "group"):
            self.roles[made.name] = "other"
        elif role == "confidential" and made.name not in self.kinds and self.base.cells(made.name).kind == "numeric":
            del self.roles[made.name]

    def _kind(self, made: Decision, kind: str | None) -> None:
        name = made.name
        if name in (self.base.schema.kinds or {}) or name in (self.base.schema.levels or {}):
            return
        if name in (self.base.schema.hierarchies or {}):
            return
        cells = self.base.cells(name)
        if cells.kind == "numeric" and not cells.is_text and np.isinf(cells.numbers()).any():
            return  # no category, and refused as a number
        if kind == "nominal" and cells.kind != "nominal":
            self.kinds[name] = "nominal"
        elif kind == "ordinal" and made.levels and cells.is_text:
            self.levels[name] = made.levels
        elif kind == "ordinal" and cells.kind != "ordinal" and (cells.kind == "numeric" or not cells.is_text):
            self.kinds[name] = "ordinal"

    def _readable(self, name: str) -> bool:
        """Whether the cells of a column can be taken as numbers or labels."""
        cells = self.base.cells(name)
        kind = cells.cells.type
        return not cells.doubtful and not pa.types.is_nested(kind) and not isinstance(kind, pa.BaseExtensionType)

    def _counts(self, name: str) -> bool:
        """Whether all cells of a column can be weights."""
        cells = self.base.cells(name)
        if cells.kind != "numeric" or cells.temporal is not None:
            return False
        try:
            values = self.base.values(name)
        except TableError:
            return False
        return bool(np.all((values >= 0) & (values <= HEAVIEST)) and values.any())


@dataclass(frozen=True)
class _Told:
    """What a manifest tells of a column."""

    kind: str
    masked: bool
    dropped: bool
    pseudonym: bool
    role: str
    """The role that a person gave it; the empty text where it was concluded."""


def _told(manifest: Any, names: Collection[str]) -> dict[str, _Told]:
    """What a manifest tells of the columns of a table, as far as it can be read; nothing without one.

    Of several a column is what it is in the first that masks it.
    """
    found: dict[str, _Told] = {}
    for each in reversed(manifest) if isinstance(manifest, list | tuple) else [manifest]:
        content = getattr(each, "content", each)
        told = _columns_of(content, names) if isinstance(content, Mapping) else {}
        found |= {name: column for name, column in told.items() if column.masked or name not in found}
    return found


def _columns_of(content: Mapping[str, Any], names: Collection[str]) -> dict[str, _Told]:
    pseudonyms = {
        str(name)
        for step in _each(content.get("steps"))
        if step.get("method") == "pseudonymise"
        for name in step.get("columns") or ()
    }
    found = {}
    for each in _each(content.get("columns")):
        name, kind, role = each.get("name"), each.get("kind"), each.get("role")
        if name not in names or kind not in _KINDS:
            continue
        declared = each.get("role_is_a_guess") is False and role in get_args(Role)
        found[str(name)] = _Told(
            kind=str(kind),
            masked=each.get("masked") is True,
            dropped=each.get("dropped") is True,
            pseudonym=name in pseudonyms,
            role=str(role) if declared else "",
        )
    return found


def _each(given: Any) -> list[Mapping[str, Any]]:
    """The entries of a list in a manifest, which may be damaged."""
    return [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
