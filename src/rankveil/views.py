"""Two tables side by side, and what measures ask of them: ranks, moments, neighbours, each computed only once.

A measure names what it works on by its positional arguments. A name that ends in `_x` is of the original table, one in
`_y` of the masked one: `rank_x` is `Side.rank` of the original.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankveil import ranks
from rankveil.canonical import crossed
from rankveil.errors import NotApplicableError
from rankveil.execute import in_threads
from rankveil.linkage import Linker
from rankveil.moments import effective_size
from rankveil.multivariate import Standardised, by_column, correlation, standardised, weighted
from rankveil.seeds import Seed
from rankveil.summaries.changes import Changes
from rankveil.summaries.correlations import RankBasis, RankCanonical, rank_products, spearman
from rankveil.summaries.movements import Counts, Distances, Movements, Powers, caught, percents
from rankveil.summaries.pairwise import PairMoments, PairSums, Pairwise, Sample, Together

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
T = TypeVar("T")


class Side:
    """One of the two tables: complete records, one column for each attribute.

    Where cells are missing (NaN), only the values, the weights and the moments of pairs of columns mean something.

    Where records have weights, moments are those of the population that they stand for; ranks are those of the records.
    """

    def __init__(
        self, values: Array, *, weight: Array | None = None, bands: Mapping[int, Callable[[Array], Array]] | None = None
    ) -> None:
        self.values = values
        self._weight = weight
        self._bands = bands or {}
        """For columns that were released in bands: the place of the band in which a number lies."""

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @cached_property
    def weight(self) -> Array | None:
        """How many subjects each record stands for, or None when that is not known."""
        if self._weight is not None and not np.any(self._weight > 0):
            raise NotApplicableError("no record that has the values that it needs has a weight above 0")
        return self._weight

    @cached_property
    def _ordered(self) -> tuple[Rows, Array]:
        order, rank = ranks.orders_and_ranks(self.values)
        for j in self._bands:  # bands stand in the order of their numbers
            rank[:, j] = ranks.average_ranks(self.level[:, j])
        return order, rank

    @cached_property
    def level(self) -> Array:
        """The values at the level at which the columns were released: bands at their places."""
        if not self._bands:
            return self.values
        made = np.array(self.values, order="F")
        for j, place in self._bands.items():
            there = ~np.isnan(made[:, j])
            made[there, j] = place(made[there, j])
        return made

    @property
    def order(self) -> Rows:
        """For each column the rows from the smallest value to the largest."""
        return self._ordered[0]

    @property
    def rank(self) -> Array:
        """Average ranks, column by column."""
        return self._ordered[1]

    @cached_property
    def sorted(self) -> Array:
        """The values of each column in order."""
        return by_column(lambda j: self.values[self.order[:, j], j], shape=self.values.shape)

    @cached_property
    def sorted_weight(self) -> Array | None:
        """The weights of the records in the order of each column's values, or None."""
        weight = self.weight
        return None if weight is None else by_column(lambda j: weight[self.order[:, j]], shape=self.values.shape)

    @cached_property
    def standardised(self) -> Standardised:
        """The table with mean 0 and standard deviation 1 in every column, and what brings it back."""
        return standardised(self.values, self.weight)

    @property
    def standard(self) -> Array:
        """(x - mean) / sd; 0 in a constant column."""
        return self.standardised.z

    @property
    def mean(self) -> Array:
        """The mean of each column."""
        return self.standardised.mean

    @property
    def spread(self) -> Array:
        """The population standard deviation of each column."""
        return self.standardised.spread

    @cached_property
    def correlation(self) -> Array:
        """The correlations of the columns; those of a constant column, with itself too, are 0."""
        return correlation(self.standard, self.weight)

    @cached_property
    def squares(self) -> Array:
        """The mean of z_a^2 z_b^2 over the records, for each two standardised columns a and b."""
        second = np.square(self.standard)
        if self.weight is None:
            return crossed(second, second) / len(self)
        second = weighted(second, self.weight)
        return crossed(second, second)

    @cached_property
    def cubes(self) -> Array:
        """The mean of z_a^3 z_b over the records, for each two standardised columns a (rows) and b."""
        third = np.square(self.standard)
        third *= self.standard
        if self.weight is None:
            return crossed(third, self.standard) / len(self)
        return crossed(weighted(third, self.weight), weighted(self.standard, self.weight))

    @cached_property
    def fourth(self) -> Array:
        """The mean of z^4 in each column."""
        second = np.square(self.standard)
        if self.weight is not None:
            second = weighted(second, self.weight)
        power = np.array([float(crossed(second[:, [j]], second[:, [j]])[0, 0]) for j in range(second.shape[1])])
        return power / len(self) if self.weight is None else power

    @cached_property
    def sample(self) -> tuple[Sample, ...]:
        """For each column how many records there are, and as how many they count."""
        known = Sample(len(self), effective_size(self.values, self.weight), self.weight is not None)
        return tuple(known for _ in range(self.values.shape[1]))

    @cached_property
    def shared(self) -> Counts:
        """How many records have both of two columns."""
        there = (~np.isnan(self.values)).astype(np.float64)
        return np.rint(crossed(there, there)).astype(np.int64)

    @cached_property
    def pairs(self) -> PairMoments:
        """Moments of every two columns, over the records that have both."""
        there = ~np.isnan(self.values)
        if there.all():
            return Together(self, self.sample[0])
        weight = self.weight
        own = [
            Side(self.values[rows, j : j + 1], weight=None if weight is None else weight[rows])
            for j, rows in enumerate(there.T)
        ]
        centre, spread = np.zeros(len(own)), np.zeros(len(own))
        z = np.full(self.values.shape, np.nan, order="F")
        for j, side in enumerate(own):
            if len(side):
                centre[j], spread[j], z[there[:, j], j] = side.mean[0], side.spread[0], side.standard[:, 0]
        share = None if weight is None else weight / np.max(weight)
        return Pairwise(PairSums.of(z, share), centre, spread, weight is not None)

    @cached_property
    def rank_basis(self) -> RankBasis:
        """What orthonormal columns that span the centred ranks say of these."""
        return RankBasis.of_ranks(self.rank)


class View:
    """The original and the masked records that are compared; paired when row i of both is the same subject's."""

    def __init__(
        self,
        x: Side,
        y: Side,
        *,
        names: tuple[str, ...],
        original: Rows,
        masked: Rows,
        paired: bool,
        seed: Seed,
    ) -> None:
        self.sides = {"x": x, "y": y}
        self.names = names
        self.original, self.masked = original, masked
        """The rows (from 0) of the original and of the masked table that stand here."""
        self.paired = paired
        self._seed = seed

    def __len__(self) -> int:
        return len(self.sides["x"])

    def __getattr__(self, name: str) -> Any:
        fact, _, side = name.rpartition("_")
        if side not in ("x", "y") or fact.startswith("_"):
            raise AttributeError(f"a view has no {name}")
        return getattr(self.sides[side], fact)

    @property
    def x(self) -> Array:
        """The original values."""
        return self.sides["x"].values

    @property
    def y(self) -> Array:
        """The masked values."""
        return self.sides["y"].values

    @property
    def rows(self) -> Rows:
        """The numbers of the original records, from 1 as in the file."""
        return self.original + 1

    @cached_property
    def strict_order_y(self) -> Rows:
        """For each column the rows from the smallest masked value to the largest, ties in the order of their draws."""
        order: Rows = self.order_y
        made = np.empty_like(order)
        rows = int(self.masked.max(initial=-1)) + 1

        def settle(j: int) -> None:
            column = self.y[:, j]
            made[:, j] = order[:, j]
            if ranks.has_ties(column, order[:, j]):
                draws = self._seed.stream("ties", self.names[j]).bits(rows)[self.masked]
                made[:, j] = ranks.strict_order(column, ties=draws, order=order[:, j])

        in_threads(settle, range(len(self.names)), size=order.size)
        return made

    @cached_property
    def z(self) -> Array:
        """Reverse-mapped values: the original values in the order of the masked ones."""
        return self._put(self.sorted_x)

    @cached_property
    def rank_z(self) -> Array:
        """Average ranks of the reverse-mapped values."""
        rank, order = self.rank_x, self.order_x
        return self._put(by_column(lambda j: rank[order[:, j], j], shape=rank.shape))

    @cached_property
    def rank_spearman_z(self) -> tuple[float | None, ...]:
        """Spearman's correlation of each original column with the reverse-mapped one; None for a constant column."""
        return spearman(self.rank_x, self.rank_z)

    @cached_property
    def rank_canonical(self) -> RankCanonical:
        """The ranks of both tables beside each other, for canonical correlations."""
        return RankCanonical(self.rank_basis_x, self.rank_basis_y, rank_products(self.rank_x, self.rank_y))

    def _distances(self, j: int) -> Distances:
        """How far the records moved in column j."""
        return Distances.of(self.rank_x[:, j], self.rank_y[:, j], records=len(self), times=2)

    @cached_property
    def rank_movements(self) -> tuple[Movements, ...]:
        """For each column how far the records moved in all, and at most."""
        return self._each_column(lambda j: Movements.of(self._distances(j)))

    @cached_property
    def rank_powers(self) -> tuple[Powers, ...]:
        """For each column the sums of powers of the distances by which records moved."""
        return self._each_column(lambda j: Powers.of(self._distances(j), later=lambda: self._distances(j).doubled))

    @cached_property
    def rank_within(self) -> Counts:
        """How many ranks (or subjects, by weights) lie within 1, 2, ... percent of the masked ones, and in none."""
        weight = self.weight_x
        if weight is None:
            return np.stack([each.within for each in self.rank_movements], axis=1)
        return np.stack(
            self._each_column(lambda j: caught(percents(self._distances(j).doubled, len(self)), weight)), axis=1
        )

    @cached_property
    def value_changes(self) -> tuple[Changes, ...]:
        """For each column how far the values changed."""
        weight, spread = self.weight_x, self.spread_x
        return self._each_column(
            lambda j: Changes.of(self.x[:, j], self.y[:, j], spread=float(spread[j]), weight=weight)
        )

    @cached_property
    def value_within(self) -> Counts:
        """How many values lie within 1, 2, ... percent of the standard deviation of the masked ones, and in none."""
        return np.stack([each.within for each in self.value_changes], axis=1)

    def _each_column(self, make: Callable[[int], T]) -> tuple[T, ...]:
        return tuple(in_threads(make, range(len(self.names)), size=self.x.size))

    def _put(self, in_order: Array) -> Array:
        """What belongs to the ranks of the original, at the records that have these ranks in the masked table."""
        if len(self.sides["x"]) != len(self.sides["y"]):
            raise ValueError("reverse mapping needs as many masked values as original ones")

        def column(j: int) -> Array:
            put = np.empty(len(self))
            put[self.strict_order_y[:, j]] = in_order[:, j]
            return put

        return by_column(column, shape=in_order.shape)

    @cached_property
    def scaled_y(self) -> Array:
        """The masked values in the units of the original: (y - mean_x) / sd_x, 0 where the original is constant."""
        return self.sides["x"].standardised.applied(self.y)

    @cached_property
    def euclidean_ranks(self) -> Linker:
        """The rank vectors of the masked records, ready for questions by Euclidean distance."""
        return Linker(np.ascontiguousarray(self.rank_y), metric="euclidean")

    @cached_property
    def maximum_ranks(self) -> Linker:
        """The rank vectors of the masked records, ready for questions by the largest difference."""
        return Linker(np.ascontiguousarray(self.rank_y), metric="maximum")


class Column:
    """One column of a view: whatever the view has for each column, of this one."""

    def __init__(self, view: View, j: int) -> None:
        self._view, self._j = view, j

    def __len__(self) -> int:
        return len(self._view)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many records of the original and of the masked table have it."""
        return len(self._view.sides["x"]), len(self._view.sides["y"])

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._view, name)
        if name in _OF_RECORDS or found is None:
            return found
        return found[self._j] if isinstance(found, tuple) else found[..., self._j]


class Ragged:
    """Sorted columns of different lengths side by side, each taken by itself: table[:, j]."""

    def __init__(self, columns: Sequence[Any]) -> None:
        self.columns = columns
        self.shape = (max(len(each) for each in columns), len(columns))
        self.size = sum(len(each) for each in columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: tuple[Any, int]) -> Any:
        rows, column = which
        if rows != slice(None) and rows is not Ellipsis:
            raise IndexError("columns of different lengths are taken one by one")
        return self.columns[column]


class Beside:
    """Columns side by side, each with the records that it has: whatever is known of each column by itself."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return max(len(column) for column in self.columns)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = [getattr(column, name) for column in self.columns]
        if name.startswith("sorted_"):
            return None if found[0] is None else Ragged(found)
        return np.array(found) if isinstance(found[0], np.ndarray | float) else tuple(found)


_OF_RECORDS = ("original", "masked", "rows", "paired", "weight_x", "weight_y")
"""What a view has for each record, or for all together, and not for each column."""
