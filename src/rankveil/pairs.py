"""An original and a masked table side by side: their records in views, and what is computed from them only once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rankveil.categories import Categories
from rankveil.dates import has_zero, in_days
from rankveil.errors import PairError, listing
from rankveil.levels import Generality
from rankveil.linkage import Linker
from rankveil.matching import Domains, Known
from rankveil.seeds import Seed
from rankveil.views import Column, Side, View

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Mapping_ = Literal["rows", "key", "secret", "none"]


def none_complete(empty: Sequence[str] = (), *, what: str = "") -> PairError:
    """The error where no record is complete, with the columns that have no value at all.

    >>> str(none_complete(["TAX"], what="masked"))
    'no masked record is complete in all the columns, as TAX has no value; leave it out with --columns'
    """
    said = f"no {what} record is complete in all the columns".replace("  ", " ")
    if not empty:
        return PairError(f"{said}; choose others with --columns")
    has, it = ("has", "it") if len(empty) == 1 else ("have", "them")
    return PairError(f"{said}, as {listing(empty)} {has} no value; leave {it} out with --columns")


def said_of_gaps(incomplete: int, of: int, what: str = "") -> str:
    """How many records have missing values.

    >>> said_of_gaps(3, 10, "masked")
    '3 of 10 masked records have missing values, left out where those are needed'
    """
    return f"{incomplete} of {of} {what} records have missing values, left out where those are needed".replace(
        "  ", " "
    )


@dataclass(eq=False, repr=False)
class Pair:
    """An original and a masked table over the same columns, rows matched as far as they can be."""

    names: tuple[str, ...]
    x: Array
    y: Array
    original: Rows
    masked: Rows
    mapping: Mapping_
    seed: Seed
    notes: list[str]
    unsampled: tuple[Array, Array, Rows, Rows] | None = None
    """All complete records of both tables and their rows, where they do not correspond and one has more."""
    by: Domains | None = None
    beside: Pair | None = None
    """A pair with the same original, whose ranks and moments serve here too."""
    kinds: tuple[str, ...] = ()
    """The kind of each column; numeric all of them when nothing is said."""
    categories: tuple[Categories | None, ...] = ()
    """What the values of each column stand for; None for numbers."""
    known: tuple[Known, Known] = (Known(), Known())
    """What given roles say of all records of the original and of the masked table."""
    temporal: tuple[Any, ...] = ()
    """The type of each column of dates or times; None for others."""
    everything: tuple[Array, Array] | None = None
    """All records of both tables in their own order, with and without a partner, complete or not."""
    all_rows: tuple[Rows, Rows] | None = None
    """The rows of `everything` in both tables; those from the first on where nothing is said."""
    bands: Mapping[str, Callable[[Array], Array]] = field(default_factory=dict)
    """For columns of numbers that were released in bands: the place of the band in which a number lies."""
    released: Callable[[], Sequence[Generality]] | None = None
    """How general the released cells are."""

    def __post_init__(self) -> None:
        self.kinds = self.kinds or ("numeric",) * len(self.names)
        self.categories = self.categories or (None,) * len(self.names)
        self.temporal = self.temporal or (None,) * len(self.names)
        self._parts: dict[tuple[str, ...], Pair] = {}
        self._in_days: Pair | None = None

    def __len__(self) -> int:
        return len(self.x)

    @property
    def records(self) -> int:
        """How many records are compared: those that correspond, or all of the smaller table where none do."""
        return len(self) if self.mapping != "none" else min(self.sizes)

    def of_kinds(self, kinds: Sequence[str]) -> Pair | None:
        """The pair on the columns of some kinds, and on the records that are complete in those; None if none is."""
        return self._only(name for name, kind in zip(self.names, self.kinds, strict=True) if kind in kinds)

    def with_zeros(self) -> Pair | None:
        """The pair on the columns whose 0 means nothing, so on no dates or times of day; None if there is none."""
        return self._only(name for name, kind in zip(self.names, self.temporal, strict=True) if has_zero(kind))

    def only(self, names: Sequence[str]) -> Pair:
        """The pair on some columns."""
        made = self._only(names)
        assert made is not None
        return made

    def _only(self, some: Iterable[str]) -> Pair | None:
        names = tuple(some)
        if names == self.names:
            return self
        if names and names not in self._parts:
            self._parts[names] = self._part([self.names.index(name) for name in names])
        return self._parts.get(names)

    def in_days(self) -> Pair:
        """The pair with dates and times in days, whatever the units in which they are kept."""
        if all(kind is None or pa.types.is_date32(kind) for kind in self.temporal):
            return self
        if self._in_days is None:
            every, sampled = self.everything, self.unsampled
            self._in_days = replace(
                self,
                x=self._days(self.x),
                y=self._days(self.y),
                unsampled=sampled and (self._days(sampled[0]), self._days(sampled[1]), sampled[2], sampled[3]),
                everything=every and (self._days(every[0]), self._days(every[1])),
                beside=None if self.beside is None else self.beside.in_days(),
                bands={name: self.bands[name] for name in self.bands if self.temporal[self.names.index(name)] is None},
            )
        return self._in_days

    def with_category_in(self, names: Iterable[str]) -> Pair:
        """The pair with every masked cell of some columns in one category, that no original record has."""
        places = [self.names.index(name) for name in names]
        y = np.array(self.y, order="F")
        y[:, places] = -1.0
        every = None
        if self.everything is not None:
            every = self.everything[0], np.array(self.everything[1], order="F")
            every[1][:, places] = -1.0
        return replace(self, y=y, everything=every)

    def _days(self, values: Array) -> Array:
        made = np.array(values, order="F")
        for j, kind in enumerate(self.temporal):
            if kind is not None:
                made[:, j] = in_days(made[:, j], kind)
        return made

    def _part(self, places: list[int]) -> Pair:
        names, kinds = (tuple(each[j] for j in places) for each in (self.names, self.kinds))
        categories, temporal = (tuple(each[j] for j in places) for each in (self.categories, self.temporal))
        if self.mapping == "none" and self.everything is not None:
            x, y = (np.asfortranarray(each[:, places]) for each in self.everything)
            made = unpaired(names, x, y, *self._all[2:], seed=self.seed, notes=[], by=self.by, known=self.known)
            return replace(made, kinds=kinds, categories=categories, temporal=temporal, bands=self.bands)
        return replace(
            self,
            names=names,
            x=np.asfortranarray(self.x[:, places]),
            y=np.asfortranarray(self.y[:, places]),
            kinds=kinds,
            categories=categories,
            temporal=temporal,
            notes=[],
            unsampled=self.unsampled and (*_columns_of(self.unsampled[:2], places), *self.unsampled[2:]),
            everything=self.everything and _columns_of(self.everything, places),
            beside=None if self.beside is None else self.beside._only(names),
        )

    @property
    def rankings(self) -> dict[str, str]:
        """By what the categories of a column are ordered, for those that are no numbers."""
        found = zip(self.names, self.categories, strict=True)
        return {name: categories.ranking for name, categories in found if categories is not None}

    @cached_property
    def complete(self) -> NDArray[np.bool_]:
        """Which rows have every value on both sides."""
        return np.asarray(~(np.isnan(self.x) | np.isnan(self.y)).any(axis=1))

    @property
    def linkable(self) -> View:
        """The records that are complete in all columns, of which there must be some."""
        if not self.complete.any():
            if self.mapping == "none":
                bare = np.any([np.isnan(each).all(axis=0) for each in self._all[:2]], axis=0)
            else:
                bare = (np.isnan(self.x) | np.isnan(self.y)).all(axis=0)
            raise none_complete([self.names[j] for j in np.flatnonzero(bare)])
        return self.table

    @cached_property
    def table(self) -> View:
        """The records that are complete in all columns."""
        made = self._view(slice(None), self.complete)
        if self.beside is not None and np.array_equal(self.beside.complete, self.complete):
            made.sides["x"] = self.beside.table.sides["x"]
        return made

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """For each column the records that have it on both sides."""
        if self.complete.all():
            return tuple(Column(self.table, j) for j in range(len(self.names)))
        there = ~(np.isnan(self.x) | np.isnan(self.y))
        return tuple(Column(self._view(slice(j, j + 1), there[:, j]), 0) for j in range(len(self.names)))

    @cached_property
    def whole(self) -> View:
        """All records that are complete on their own side: what a user of either table has, partners or not."""
        if self.mapping == "none":
            return self.table if self.unsampled is None else self._make(*self.unsampled, names=self.names)
        x, y, _, _ = self._all
        there = tuple(np.asarray(~np.isnan(each).any(axis=1)) for each in (x, y))
        if not (there[0].any() and there[1].any()) or self._alike(*there):
            return self.table
        return self._of_all(slice(None), *there)

    @cached_property
    def gaps(self) -> bool:
        """Whether some record of either table has a missing cell."""
        return any(bool(np.isnan(each).any()) for each in self._all[:2])

    @cached_property
    def every(self) -> View:
        """All records of both tables with their missing cells: what measures of pairs of columns choose from."""
        x, y, original, masked = self._all
        return self._make(x, y, original, masked, names=self.names, paired=False)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many records the original and the masked table have."""
        return len(self._all[0]), len(self._all[1])

    @property
    def available(self) -> View:
        """All records of both tables, NaN where a value is missing; `whole` where nothing is."""
        return self.every if self.gaps else self.whole

    @cached_property
    def whole_columns(self) -> tuple[Column, ...]:
        """For each column all records that have it on their own side."""
        if self.mapping == "none" and not self.gaps:
            return tuple(Column(self.whole, j) for j in range(len(self.names)))
        x, y, _, _ = self._all
        if self.mapping == "none":
            own = [(~np.isnan(x[:, j]), ~np.isnan(y[:, j])) for j in range(len(self.names))]
            return tuple(Column(self._of_all(slice(j, j + 1), *there), 0) for j, there in enumerate(own))
        made = []
        for j, paired in enumerate(self.columns):
            there = ~np.isnan(x[:, j]), ~np.isnan(y[:, j])
            empty = not (there[0].any() and there[1].any())
            alike = empty or self._alike(*there)
            made.append(paired if alike else Column(self._of_all(slice(j, j + 1), *there), 0))
        return tuple(made)

    @property
    def _all(self) -> tuple[Array, Array, Rows, Rows]:
        if self.everything is None:
            return self.unsampled or (self.x, self.y, self.original, self.masked)
        x, y = self.everything
        return x, y, *(self.all_rows or (np.arange(len(x)), np.arange(len(y))))

    def _alike(self, x: NDArray[np.bool_], y: NDArray[np.bool_]) -> bool:
        """Whether nobody is lost: all records have partners, and the same cells are there on both sides."""
        return x.size == y.size == len(self) and np.array_equal(x[self._place(0)], y[self._place(1)])

    def _place(self, side: int) -> Rows | slice:
        return slice(None) if self.everything is None else (self.original, self.masked)[side]

    def _of_all(self, columns: slice, there_x: NDArray[np.bool_], there_y: NDArray[np.bool_]) -> View:
        x, y, original, masked = self._all
        ours, theirs = np.asfortranarray(x[there_x, columns]), np.asfortranarray(y[there_y, columns])
        return self._make(ours, theirs, original[there_x], masked[there_y], names=self.names[columns], paired=False)

    @cached_property
    def nearest(self) -> View:
        """Every masked record beside the original one nearest to it (standardised Euclidean distance, lowest row)."""
        whole = self.whole
        scale = np.ascontiguousarray(whole.standard_x)
        found = Linker(scale, metric="euclidean").matches(np.ascontiguousarray(whole.scaled_y)).first
        x = np.asfortranarray(whole.x[found])
        return self._make(x, whole.y, whole.original[found], whole.masked, names=self.names, paired=True)

    def domains(self) -> dict[str, Pair | str]:
        """The pair on each subdomain, or why there is none."""
        if self.by is None:
            return {}
        made: dict[str, Pair | str] = {}
        for code, level in enumerate(self.by.levels):
            try:
                made[level] = self._domain(code)
            except PairError as why:
                made[level] = str(why)
        return made

    def _domain(self, code: int) -> Pair:
        by = self.by
        assert by is not None
        if self.mapping != "none":
            rows = np.flatnonzero(by.original[self.original] == code)
            if rows.size == 0:
                raise PairError("no record")
            parts = self.x[rows], self.y[rows], self.original[rows], self.masked[rows]
            return replace(
                self,
                x=parts[0],
                y=parts[1],
                original=parts[2],
                masked=parts[3],
                notes=[],
                by=None,
                beside=None,
                everything=None,
                released=None,
            )
        assert by.masked is not None
        x, y, original, masked = self._all
        ours, theirs = by.original[original] == code, by.masked[masked] == code
        parts = x[ours], y[theirs], original[ours], masked[theirs]
        made = unpaired(self.names, *parts, seed=self.seed, notes=[], known=self.known)
        what: dict[str, Any] = {"kinds": self.kinds, "categories": self.categories, "temporal": self.temporal}
        return replace(made, bands=self.bands, **what)

    def _view(self, columns: slice, rows: NDArray[np.bool_]) -> View:
        x, y = self.x[:, columns], self.y[:, columns]
        if rows.all():
            return self._make(x, y, self.original, self.masked, names=self.names[columns])
        return self._make(x[rows], y[rows], self.original[rows], self.masked[rows], names=self.names[columns])

    def _make(
        self,
        x: Array,
        y: Array,
        original: Rows,
        masked: Rows,
        *,
        names: tuple[str, ...],
        paired: bool | None = None,
    ) -> View:
        bands = {j: self.bands[name] for j, name in enumerate(names) if name in self.bands}
        return View(
            Side(x, weight=self._weight(0, original), bands=bands),
            Side(y, weight=self._weight(1, masked)),
            names=names,
            original=original,
            masked=masked,
            paired=self.mapping != "none" if paired is None else paired,
            seed=self.seed,
        )

    def _weight(self, side: int, rows: Rows) -> Array | None:
        survey = self.known[side].survey
        return None if survey is None else survey[rows]


def _columns_of(sides: tuple[Array, Array], places: list[int]) -> tuple[Array, Array]:
    """Some columns of both tables."""
    x, y = sides
    return np.asfortranarray(x[:, places]), np.asfortranarray(y[:, places])


def take_rows(matrix: Array, rows: Rows) -> Array:
    if rows.size == matrix.shape[0] and np.array_equal(rows, np.arange(rows.size)):
        return matrix
    return np.asfortranarray(matrix[rows])


def unpaired(
    names: tuple[str, ...],
    x: Array,
    y: Array,
    original: Rows,
    masked: Rows,
    *,
    seed: Seed,
    notes: list[str],
    by: Domains | None = None,
    known: tuple[Known, Known] = (Known(), Known()),
) -> Pair:
    """Complete records of both sides; where as many are needed, the larger side sampled down, and said so.

    Without a complete record there is still what measures take column by column, unless a column has no value at all.
    """
    if not any((~np.isnan(x[:, j])).any() and (~np.isnan(y[:, j])).any() for j in range(x.shape[1])):
        raise none_complete()
    sides = []
    told: dict[str, Any] = {"by": by, "known": known, "everything": (x, y), "all_rows": (original, masked)}
    for what, values in (("original", x), ("masked", y)):
        missing = np.isnan(values)
        rows = np.flatnonzero(~missing.any(axis=1))
        if rows.size < values.shape[0]:
            notes.append(said_of_gaps(values.shape[0] - rows.size, values.shape[0], what))
        sides.append(rows)
    whole = (take_rows(x, sides[0]), take_rows(y, sides[1]), original[sides[0]], masked[sides[1]])
    n = min(rows.size for rows in sides)
    if sides[0].size == sides[1].size:
        return Pair(names, *whole, "none", seed, notes, **told)
    for side, what in enumerate(("original", "masked")):
        rows = sides[side]
        if rows.size > n:
            sides[side] = np.sort(rows[seed.stream("sample", what).order(rows.size)[:n]])
            notes.append(
                f"where as many original as masked records are needed, {n} of the {rows.size} {what} ones are used, "
                "drawn by the seed"
            )
    some = (take_rows(x, sides[0]), take_rows(y, sides[1]), original[sides[0]], masked[sides[1]])
    return Pair(names, *some, "none", seed, notes, unsampled=whole, **told)
