"""What the steps of a plan did, and what is to be told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankveil import metadata
from rankveil.catalogue import Array
from rankveil.table import Table

RowNumbers = NDArray[np.intp]
Counts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Grid:
    """The grid on which a column is released, and what rounding to it did."""

    step: float
    """Released numbers are multiples of it; for dates and times it is told in days."""
    drawn: int = 0
    """How many cells the steps had given another value, in a column whose records correspond."""
    back: int = 0
    """In how many of them rounding put the original value back."""

    def merged(self, other: Grid) -> Grid:
        """Of both parts of a table together."""
        return Grid(self.step, self.drawn + other.drawn, self.back + other.back)


@dataclass(frozen=True, eq=False, kw_only=True)
class Account:
    """What is to be told of the steps of a plan; accounts of the parts of a table are merged."""

    columns: tuple[tuple[str, ...], ...]
    """The columns that each step worked on."""
    counts: tuple[Mapping[str, Mapping[str, int]], ...]
    """For each step and column, how many values were clipped, clamped and so on."""
    notes: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    """What the values of a column are places of now, where that is no longer what it was."""
    dropped: tuple[str, ...]
    """The columns that are not in the release."""
    of_groups: tuple[frozenset[str], ...]
    """For each step the columns that were masked on one record of each group."""
    weight: str | None
    """The column of weights, where they were multiplied because records were left out."""
    weighed_by: tuple[float, ...]
    """By what each step multiplied the weights; 1 where it left no records out."""
    released: int
    """How many records are released."""
    missing: Mapping[str, int]
    """How many cells of each masked column are missing now."""
    changed: Mapping[str, int]
    """How many cells of each masked column are different now."""
    grids: Mapping[str, Grid]
    """The grids of the columns whose numbers were computed from draws."""

    @property
    def masked(self) -> tuple[str, ...]:
        """All columns that some step worked on."""
        return tuple(self.missing)

    def with_step(self, columns: tuple[str, ...]) -> Account:
        """With one more step, on some columns, of which nothing was counted."""
        return replace(
            self,
            columns=(*self.columns, columns),
            counts=(*self.counts, {}),
            of_groups=(*self.of_groups, frozenset()),
            weighed_by=(*self.weighed_by, 1.0),
        )

    def merged(self, other: Account) -> Account:
        """That of both parts together."""
        return Account(
            columns=self.columns,
            counts=tuple(_added(a, b) for a, b in zip(self.counts, other.counts, strict=True)),
            notes=tuple(dict.fromkeys((*self.notes, *other.notes))),
            labels=self.labels,
            dropped=self.dropped,
            of_groups=self.of_groups,
            weight=self.weight,
            weighed_by=self.weighed_by,
            released=self.released + other.released,
            missing={name: count + other.missing[name] for name, count in self.missing.items()},
            changed={name: count + other.changed[name] for name, count in self.changed.items()},
            grids={name: grid.merged(other.grids[name]) for name, grid in self.grids.items()},
        )

    def apart(self, number: int) -> bool:
        """Whether columns of groups and of records were masked apart from each other by a step."""
        return 0 < len(self.of_groups[number]) < len(self.columns[number])


_THE_SAME = ("categories",)
"""Counts that are not of records: they are the same in every part of a table."""


def _added(one: Counts, other: Counts) -> dict[str, dict[str, int]]:
    """What was counted in two parts, for each column."""
    made: dict[str, dict[str, int]] = {name: dict(given) for name, given in one.items()}
    for name, given in other.items():
        own = made.setdefault(name, {})
        for what, count in given.items():
            own[what] = max(own.get(what, 0), count) if what in _THE_SAME else own.get(what, 0) + count
    return made


@dataclass(frozen=True, eq=False, kw_only=True)
class Applied:
    """What the steps of a plan did; the fields that an account has too say the same."""

    values: Mapping[str, Array]
    """The masked columns, by name."""
    order: RowNumbers | None
    """The original row of each released row, when rows were reordered or some left out."""
    columns: tuple[tuple[str, ...], ...]
    counts: tuple[Counts, ...]
    notes: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    dropped: tuple[str, ...]
    of_groups: tuple[frozenset[str], ...]
    weights: Mapping[str, Array]
    """The column of weights as it is released, where records were left out."""
    weighed_by: tuple[float, ...]
    grids: Mapping[str, Grid]

    @property
    def masked(self) -> tuple[str, ...]:
        """All columns that some step worked on."""
        return tuple(self.values)

    @property
    def steps(self) -> dict[str, float]:
        """The step of each column's grid, as a manifest tells it."""
        return {name: grid.step for name, grid in self.grids.items()}

    def account(self, table: Table) -> Account:
        """What is to be told of it."""
        return Account(
            columns=self.columns,
            counts=self.counts,
            notes=self.notes,
            labels=self.labels,
            dropped=self.dropped,
            of_groups=self.of_groups,
            weight=next(iter(self.weights), None),
            weighed_by=self.weighed_by,
            released=len(table) if self.order is None else self.order.size,
            missing={name: int(np.isnan(values).sum()) for name, values in self.values.items()},
            changed={name: self._changed(table, name) for name in self.values},
            grids=self.grids,
        )

    def _changed(self, table: Table, name: str) -> int:
        """How many cells of a column are different now."""
        masked, labels = self.values[name], self.labels.get(name)
        before = table.values(name) if self.order is None else table.values(name)[self.order]
        if labels is not None:
            same = _label_of(before, table.labels(name)) == _label_of(masked, labels)
        else:
            same = (masked == before) | (np.isnan(masked) & np.isnan(before))
        words = table.cells(name).gap_words()
        recoded = np.isnan(masked) & np.isnan(before) & (_code_of(masked, words) != _code_of(before, words))
        return int(np.sum(~same | recoded))


def _code_of(values: Array, words: Sequence[str | None]) -> NDArray[np.int64]:
    """The number of each cell's missing code, all that are empty alike."""
    numbers = metadata.gap_numbers(values)
    coded = np.array([word is not None for word in words])[np.maximum(numbers, 0)]
    return np.where(coded, numbers, 0)


def _label_of(values: Array, labels: tuple[str, ...]) -> NDArray[np.object_]:
    """What the values stand for: labels, or the numbers themselves; None where they are missing."""
    words = np.array([*labels, None], dtype=object)
    gone = np.isnan(values)
    if not labels:
        return np.array([None if missing else f"{value:.17g}" for value, missing in zip(values, gone, strict=True)])
    return words[np.where(gone, len(labels), np.nan_to_num(values)).astype(np.intp)]
