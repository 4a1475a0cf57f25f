"""Original and masked side by side: which record belongs to which, and what is computed from them only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil.categories import Categories
from rankveil.errors import PairError, listing
from rankveil.linkage import Linker
from rankveil.matching import (
    Domains,
    Known,
    common_columns,
    domains,
    known_of,
    masked_values,
    match_key,
    matrix,
    read_alike,
    shared_categories,
    stacked,
)
from rankveil.seeds import Seed
from rankveil.table import Table
from rankveil.views import Column, Side, View

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Mapping_ = Literal["rows", "key", "secret", "none"]


_NONE_COMPLETE = "no record is complete in all the columns; choose others with --columns"


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

    def __post_init__(self) -> None:
        self.kinds = self.kinds or ("numeric",) * len(self.names)
        self.categories = self.categories or (None,) * len(self.names)
        self.temporal = self.temporal or (None,) * len(self.names)
        self._parts: dict[tuple[str, ...], Pair] = {}

    def __len__(self) -> int:
        return len(self.x)

    def of_kinds(self, kinds: Sequence[str]) -> Pair | None:
        """The pair on the columns of some kinds, and on the records that are complete in those; None if none is."""
        names = tuple(name for name, kind in zip(self.names, self.kinds, strict=True) if kind in kinds)
        if names == self.names:
            return self
        if names and names not in self._parts:
            self._parts[names] = self._part([self.names.index(name) for name in names])
        return self._parts.get(names)

    def _part(self, places: list[int]) -> Pair:
        names, kinds = (tuple(each[j] for j in places) for each in (self.names, self.kinds))
        categories, temporal = (tuple(each[j] for j in places) for each in (self.categories, self.temporal))
        if self.mapping == "none" and self.everything is not None:
            x, y = (np.asfortranarray(each[:, places]) for each in self.everything)
            rows_x, rows_y = np.arange(len(x)), np.arange(len(y))
            made = _unpaired(names, x, y, rows_x, rows_y, seed=self.seed, notes=[], by=self.by, known=self.known)
            return replace(made, kinds=kinds, categories=categories, temporal=temporal)
        return replace(
            self,
            names=names,
            x=np.asfortranarray(self.x[:, places]),
            y=np.asfortranarray(self.y[:, places]),
            kinds=kinds,
            categories=categories,
            temporal=temporal,
            notes=[],
            everything=self._columns_of_all(places),
            beside=None if self.beside is None else self.beside.of_kinds(tuple(dict.fromkeys(kinds))),
        )

    def _columns_of_all(self, places: list[int]) -> tuple[Array, Array] | None:
        if self.everything is None:
            return None
        x, y = self.everything
        return np.asfortranarray(x[:, places]), np.asfortranarray(y[:, places])

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
            raise PairError(_NONE_COMPLETE)
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
    def whole_columns(self) -> tuple[Column, ...]:
        """For each column all records that have it on their own side."""
        if self.mapping == "none":
            return tuple(Column(self.whole, j) for j in range(len(self.names)))
        x, y, _, _ = self._all
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
            return self.x, self.y, self.original, self.masked
        x, y = self.everything
        return x, y, np.arange(len(x)), np.arange(len(y))

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
            )
        assert by.masked is not None
        x, y, original, masked = self.unsampled or (self.x, self.y, self.original, self.masked)
        ours, theirs = by.original[original] == code, by.masked[masked] == code
        parts = x[ours], y[theirs], original[ours], masked[theirs]
        made = _unpaired(self.names, *parts, seed=self.seed, notes=[], known=self.known)
        return replace(made, kinds=self.kinds, categories=self.categories, temporal=self.temporal, everything=None)

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
        return View(
            Side(x, weight=self._weight(0, original)),
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


def pair(
    original: Table,
    masked: Table,
    *,
    columns: Sequence[str] | None = None,
    key: str | None = None,
    mapping: bool = True,
    order: Rows | None = None,
    by: str | None = None,
    seed: Seed | int = 0,
    beside: Pair | None = None,
) -> Pair:
    """Match records by row, by `key`, by the secret's `order`, or (mapping=False) not at all.

    `by` names a column of subdomains; `beside` is a pair of the same original with another masked table.
    """
    seed = Seed.of(seed)
    notes: list[str] = []
    if sum((key is not None, order is not None, not mapping)) > 1:
        raise PairError("give one of key, secret and no mapping: they contradict each other")
    masked = read_alike(original, masked)
    aside = [key] if key is not None else []
    if by is not None and by not in masked.names:
        aside.append(by)
    names = common_columns(original, masked, columns, aside, notes)
    grouped = None if by is None else domains(original, masked, by, mapping=mapping)
    shared = tuple(shared_categories(original, masked, name) for name in names)
    of_masked = [
        partial(masked_values, original, masked, name, categories, notes)
        for name, categories in zip(names, shared, strict=True)
    ]
    y = stacked(of_masked, rows=len(masked), what="masked")
    what: dict[str, Any] = {
        "kinds": tuple(original.cells(name).kind for name in names),
        "categories": shared,
        "temporal": tuple(original.cells(name).temporal for name in names),
        "known": known_of(original, masked),
    }
    notes += _said_of_rankings(names, shared)
    rows_x, rows_y = np.arange(len(original)), np.arange(len(masked))
    if not mapping:
        x = matrix(original, names, what="original")
        made = _unpaired(names, x, y, rows_x, rows_y, seed=seed, notes=notes, by=grouped, known=what["known"])
        if what["known"][0].survey is not None and what["known"][1].survey is None:
            notes.append("the masked table has no weights: its records count once each")
        return replace(made, **what)
    how: Mapping_ = "rows"
    if key is not None:
        how = "key"
        rows_x, rows_y = match_key(original, masked, key, notes)
    elif order is not None:
        how = "secret"
        if order.size != len(masked) or order.max(initial=-1) >= len(original):
            raise PairError(f"the secret maps {order.size} records, the files have {len(original)} and {len(masked)}")
        rows_x = order
        if order.size < len(original):
            notes.append(f"{len(original) - order.size} of the {len(original)} original records are not in the release")
    elif len(original) != len(masked):
        raise PairError(
            f"the original has {len(original)} records and the masked table {len(masked)}; "
            "name a key column with --key, or say --no-mapping for synthetic data"
        )
    if beside is not None and (beside.names != names or not np.array_equal(beside.original, rows_x)):
        beside = None
    kept = None if beside is None else beside.everything
    all_x = matrix(original, names, what="original") if kept is None else kept[0]
    x = beside.x if beside is not None else _rows(all_x, rows_x)
    first, second = what["known"]
    if first.survey is not None and second.survey is None:  # a masked record has its original's weight
        weight = np.zeros(len(masked))
        weight[rows_y] = first.survey[rows_x]
        what["known"] = (first, replace(second, survey=weight))
    what |= {"by": grouped, "beside": beside, "everything": (all_x, y)}
    made = Pair(names, x, _rows(y, rows_y), rows_x, rows_y, how, seed, notes, **what)
    incomplete = len(made) - int(made.complete.sum())
    if not any(len(column) for column in made.columns):
        raise PairError(_NONE_COMPLETE)
    if incomplete:
        notes.append(f"{incomplete} of {len(made)} records have missing values, left out where those are needed")
    return made


def _said_of_rankings(names: Sequence[str], shared: Sequence[Categories | None]) -> list[str]:
    """By what nominal columns are ranked: those ranked alike together."""
    by: dict[str, list[str]] = {}
    for name, categories in zip(names, shared, strict=True):
        if categories is not None and not categories.ordered:
            by.setdefault(categories.ranking, []).append(name)
    return [f"ranked by {ranking}: {listing(some, most=10)}" for ranking, some in by.items()]


def reverse_map(original: Any, masked: Any, **matching: Any) -> Any:
    """Z: the masked table with each value replaced by the original value of the same rank (Algorithm 1).

    Sorted columns of Z and of the original are equal; ranks of Z and of the masked table are. A masked value whose
    record has no original one cannot be replaced, and is an error.
    """
    declared = {name: matching.pop(name) for name in ("schema", "decimal") if name in matching}
    first = Table.of(original, **declared)
    table = read_alike(first, Table.of(masked, **declared))
    both = pair_tables(first, table, **matching)
    if both.mapping == "none" and len(both) != len(table):
        raise PairError("reverse mapping needs as many original records as masked ones")
    replaced = {}
    for name, view in zip(both.names, both.columns, strict=True):
        y, z = table.cells(name).missing, np.full(len(table), np.nan)
        z[view.masked] = view.z
        alone = np.flatnonzero(np.isnan(z) & ~y)
        if alone.size:
            raise PairError(
                f"column {name}: masked rows {listing(alone + 1)} have no original value to take a rank's place from; "
                "leave them out"
            )
        replaced[name] = z
    return table.replaced(replaced, labels={name: first.labels(name) for name in both.names})[0]


def _rows(matrix: Array, rows: Rows) -> Array:
    if rows.size == matrix.shape[0] and np.array_equal(rows, np.arange(rows.size)):
        return matrix
    return np.asfortranarray(matrix[rows])


def _unpaired(
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
    """Complete records of both sides; where as many are needed, the larger side sampled down, and said so."""
    sides = []
    told: dict[str, Any] = {"by": by, "known": known, "everything": (x, y)}
    for what, values in (("original", x), ("masked", y)):
        rows = np.flatnonzero(~np.isnan(values).any(axis=1))
        if rows.size < values.shape[0]:
            notes.append(f"{values.shape[0] - rows.size} {what} records have missing values and are left out")
        if rows.size == 0:
            raise PairError(f"no {what} record is complete in all the columns; choose others with --columns")
        sides.append(rows)
    whole = (_rows(x, sides[0]), _rows(y, sides[1]), original[sides[0]], masked[sides[1]])
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
    some = (_rows(x, sides[0]), _rows(y, sides[1]), original[sides[0]], masked[sides[1]])
    return Pair(names, *some, "none", seed, notes, unsampled=whole, **told)


def pair_tables(
    original: object,
    masked: object,
    *,
    columns: Sequence[str] | None = None,
    key: str | None = None,
    mapping: bool = True,
    secret: object = None,
    by: str | None = None,
    seed: Seed | int = 0,
    beside: Pair | None = None,
    **declared: Any,
) -> Pair:
    """`pair` for frames as people have them; `secret` gives the order of a release, `declared` goes to `Table.of`."""
    if secret is not None and not hasattr(secret, "order"):
        raise PairError("secret must be the secret of a release, as in release.secret or Secret.from_json(text)")
    return pair(
        Table.of(original, **declared),
        Table.of(masked, **declared),
        columns=columns,
        key=key,
        mapping=mapping,
        order=getattr(secret, "order", None),
        by=by,
        seed=seed,
        beside=beside,
    )
