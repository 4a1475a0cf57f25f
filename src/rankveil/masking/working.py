"""A table while the steps of a plan are at work on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil import categories as categorising
from rankveil import metadata
from rankveil.catalogue import Array, Outcome
from rankveil.categories import Categories
from rankveil.errors import ParameterError
from rankveil.masking.account import RowNumbers
from rankveil.rows import HERE, Rows
from rankveil.table import Table


@dataclass(frozen=True, eq=False)
class Current:
    """A column as the steps so far have left it."""

    values: Array
    kind: str
    categories: Categories | None
    """What its values are places of; None for numbers."""
    temporal: Any = None
    """The Arrow type of dates or times behind its numbers; None for others."""

    @property
    def has_hierarchy(self) -> bool:
        return self.categories is not None and self.categories.hierarchy is not None


@dataclass(frozen=True, eq=False)
class Households:
    """Records in groups, in the order in which the groups come: streams are read from the first row on."""

    codes: NDArray[np.int64]
    first: RowNumbers
    """The first record of each group."""
    of: RowNumbers
    """The group of each record."""

    @classmethod
    def of_codes(cls, codes: NDArray[np.int64]) -> Households:
        """The groups of records that have these numbers."""
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        places = np.argsort(first)
        back = np.empty_like(places)
        back[places] = np.arange(places.size)
        return cls(codes, first[places], back[inverse])

    def leads(self, values: Array) -> RowNumbers:
        """The first record of each group that has a value, or the first of all where none has."""
        there = ~np.isnan(values)
        if there[self.first].all():
            return self.first
        found = self.first.copy()
        rows = np.flatnonzero(there)[::-1]
        found[self.of[rows]] = rows  # of several the one that is written last, which comes first
        return found

    def share(self, values: Array) -> bool:
        """Whether a column belongs to the groups: nowhere two values in one, and somewhere two records with the same.

        Cells may be missing for some of a group, or for all of it in one way.
        """
        there = ~np.isnan(values)
        lead = values[self.leads(values)][self.of]
        if not np.all((values == lead) | ~there):
            return False
        if np.any(np.bincount(self.of[there], minlength=self.first.size) > 1):
            return True
        alike = metadata.gap_numbers(values) == metadata.gap_numbers(values[self.first][self.of])
        return bool(np.all(there | alike) and np.all(there == there[self.first][self.of]))

    def spread(self, made: Array, before: Array, *, keep: bool) -> Array:
        """What a group has now, for each of its records; cells that were missing in their own way are so again.

        `keep` says that no method has changed what is missing.
        """
        gone = np.isnan(before)
        if not gone.any():
            return made[self.of]
        own = gone if keep else gone & ~np.isnan(before[self.leads(before)][self.of])
        return np.where(own, before, made[self.of])


class Work:
    """A table while the steps of a plan are at work on it; the table itself stays as it is."""

    def __init__(self, table: Table, rows: Rows = HERE) -> None:
        self.table, self.rows = table, rows
        self.changed: dict[str, Current] = {}
        self.relabelled: set[str] = set()
        self.order: RowNumbers | None = None
        self.dropped: list[str] = []
        self.notes: list[str] = []

    def __len__(self) -> int:
        return len(self.table) if self.order is None else self.order.size

    def current(self, name: str, *, as_labels: bool = False) -> Current:
        """A column as it is now; `as_labels` makes labels of numbers."""
        found = self.changed.get(name)
        if found is None:
            cells = self.table.cells(name)
            if as_labels and cells.kind != "nominal" and not cells.levels:
                known = self.table.categories(name)
                kind = "ordinal" if cells.kind == "ordinal" else "nominal"
                return Current(self.taken(self.table.codes(name, known)), kind, known)
            values = self.taken(self.table.values(name))
            if cells.kind != "nominal" and not cells.levels:
                return Current(values, cells.kind, None, cells.temporal)
            known = self.table.categories(name)
            hierarchy = (self.table.schema.hierarchies or {}).get(name)
            return Current(values, cells.kind, replace(known, hierarchy=hierarchy))  # levels too may have groups
        if as_labels and found.categories is None:
            if not self.rows.alone:
                raise ParameterError(f"column {name}: masked numbers are not taken as labels of a table in parts")
            different, codes = np.unique(found.values, return_inverse=True)
            places = np.where(np.isnan(found.values), found.values, codes)
            words = tuple(f"{value:.17g}" for value in different[~np.isnan(different)])
            counts = np.bincount(codes, minlength=different.size)[: len(words)].astype(float)
            return Current(places, "nominal", categorising.ordinal(words, counts))
        return found

    def taken(self, values: Array) -> Array:
        """What belongs to the original rows, in the rows that there are now."""
        return values if self.order is None else values[self.order]

    def put(self, name: str, outcome: Outcome, before: Current) -> None:
        """The column with what a method made of it."""
        if outcome.levels is None:
            self.changed[name] = replace(before, values=outcome.values)
            if before.categories is not None and not self.table.labels(name):  # numbers that were taken as labels
                self.relabelled.add(name)
            return
        self.relabelled.add(name)
        there = ~np.isnan(outcome.values)
        counts = self.rows.tally(outcome.values[there].astype(np.intp), len(outcome.levels)).astype(float)
        hierarchy = before.categories.hierarchy if before.categories else None
        if before.kind != "nominal":
            levels = replace(categorising.ordinal(outcome.levels, counts), hierarchy=hierarchy)
            self.changed[name] = Current(outcome.values, "ordinal", levels)
            return
        made = categorising.nominal(outcome.levels, counts, hierarchy)
        place = {label: code for code, label in enumerate(made.labels)}
        moved = np.array([place[label] for label in outcome.levels], dtype=float)
        values = outcome.values.copy()
        values[there] = moved[values[there].astype(np.intp)]
        self.changed[name] = Current(values, "nominal", made)

    def take(self, rows: RowNumbers) -> None:
        """Some rows, in another order."""
        self.changed = {name: replace(each, values=each.values[rows]) for name, each in self.changed.items()}
        self.order = rows if self.order is None else self.order[rows]
        self.rows = self.rows.with_only(rows.size)
        self.__dict__.pop("groups", None)

    @cached_property
    def groups(self) -> Households | None:
        """The groups of the records, where a column says which."""
        codes = self.table.group
        return None if codes is None else Households.of_codes(codes if self.order is None else codes[self.order])

    @property
    def units(self) -> int:
        """How many records there are, or groups of them."""
        return self.rows.count(len(self)) if self.groups is None else self.groups.first.size

    def of_groups(self, names: Iterable[str]) -> set[str]:
        """The columns whose values are the same for all records of every group."""
        groups = self.groups
        if groups is None or groups.first.size == len(self):
            return set()
        return {name for name in names if groups.share(self.current(name).values)}
