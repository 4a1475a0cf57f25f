"""Ranks and ties, reverse mapping, permutation distances.

*Average* ranks (ties share their mean rank) serve the measures, permutation distances and linkage; *strict* ranks
(1..n, ties broken by draws) serve reverse mapping and swapping, which need a bijection. Rank 1 is the smallest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankveil.categories import Categories
from rankveil.execute import in_threads
from rankveil.kernels.sorting import spread_ranks
from rankveil.seeds import Stream
from rankveil.sorting import in_order, order_of, quickly

Array = NDArray[np.float64]
Order = NDArray[np.intp]


def average_ranks(x: Array) -> Array:
    """Ranks from 1, ties sharing their mean rank; a table is ranked column by column.

    >>> average_ranks(np.array([30.0, 10.0, 10.0, 20.0]))
    array([4. , 1.5, 1.5, 3. ])
    """
    if x.ndim == 1:
        return _ordered(x)[1]
    ranks = np.empty(x.shape, order="F")

    def rank(j: int) -> None:
        ranks[:, j] = _ordered(x[:, j])[1]

    in_threads(rank, range(x.shape[1]), size=x.size)
    return ranks


def orders_and_ranks(x: Array) -> tuple[Order, Array]:
    """For each column of a table its rows from the smallest value to the largest, ties in any order, and its ranks.

    >>> order, ranks = orders_and_ranks(np.array([[30.0], [10.0], [20.0]]))
    >>> order[:, 0], ranks[:, 0]
    (array([1, 2, 0]), array([3., 1., 2.]))
    """
    order, ranks = np.empty(x.shape, dtype=np.intp, order="F"), np.empty(x.shape, order="F")

    def put(j: int) -> None:
        order[:, j], ranks[:, j] = _ordered(x[:, j])

    in_threads(put, range(x.shape[1]), size=x.size)
    return order, ranks


def _ordered(x: Array) -> tuple[Order, Array]:
    """The rows of a column from the smallest value to the largest, and the average ranks."""
    found = quickly(x)
    if found is None:
        order = np.argsort(x)
        return order, _average_ranks(x, order)
    codes, places = found
    ranks = np.empty(x.size)
    spread_ranks(codes, places, 0, ranks)
    ranks /= 2  # they are doubled
    return places.astype(np.intp), ranks


def has_ties(x: Array, order: Order) -> bool:
    """Whether a value stands in the column more than once, by the column's order."""
    ordered = x[order]
    return bool(np.any(ordered[1:] == ordered[:-1]))


def _average_ranks(x: Array, order: Order) -> Array:
    starts, ends = tie_blocks(x[order])
    ranks = np.empty(x.size)
    if starts.size == x.size:
        ranks[order] = np.arange(1.0, x.size + 1)
    else:
        ranks[order] = np.repeat((starts + ends + 1) / 2, ends - starts)
    return ranks


def tie_blocks(ordered: Array | NDArray[np.uint64]) -> tuple[Order, Order]:
    """Where each run of equal values of a sorted array starts and ends (one past its last).

    >>> tie_blocks(np.array([1.0, 1.0, 5.0]))
    (array([0, 2]), array([2, 3]))
    """
    if ordered.size == 0:
        nothing = np.empty(0, dtype=np.intp)
        return nothing, nothing
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return np.concatenate(([0], cuts)), np.concatenate((cuts, [ordered.size]))


def strict_order(x: Array | NDArray[np.uint64], *, ties: NDArray[np.uint64], order: Order | None = None) -> Order:
    """The rows from the smallest value to the largest, equal values in the order of their draws.

    `order` is the column's order with ties in any order, when it is known.

    >>> strict_order(np.array([5.0, 1.0, 1.0]), ties=np.array([0, 9, 3], dtype=np.uint64))
    array([2, 1, 0])
    """
    order = order_of(x) if order is None else order.copy()
    starts, ends = tie_blocks(x[order])
    if starts.size == x.size:
        return order
    lengths = ends - starts
    tied = np.repeat(lengths > 1, lengths)
    rows = order[tied]
    run = np.repeat(np.arange(np.count_nonzero(lengths > 1), dtype=np.uint64), lengths[lengths > 1])
    order[tied] = rows[_within_runs(run, ties[rows], rows)]
    return order


def _within_runs(run: NDArray[np.uint64], draws: NDArray[np.uint64], rows: Order) -> Order:
    """Positions sorted by run, then draw, then row, so that neither the sort's algorithm nor its stability shows.

    One sort of a single word: the run in its upper bits, the draw's upper bits below. Two draws that agree in those
    bits are so rare that everything is then sorted again the slow way.
    """
    width = int(run[-1]).bit_length()
    word = draws if width == 0 else (run << np.uint64(64 - width)) | (draws >> np.uint64(width))
    order = order_of(word)
    ordered = word[order]
    if np.any(ordered[1:] == ordered[:-1]):
        return np.lexsort((rows, draws, run))
    return order


def strict_ranks(x: Array, *, ties: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Ranks 1..n, equal values in the order of their draws; a table (with a table of draws) column by column.

    >>> strict_ranks(np.array([5.0, 1.0, 1.0]), ties=np.array([0, 9, 3], dtype=np.uint64))
    array([3, 2, 1])
    """
    ranks = np.empty(x.shape, dtype=np.int64, order="F")
    if x.ndim == 1:
        ranks[strict_order(x, ties=ties)] = np.arange(1, x.size + 1)
        return ranks

    def rank(j: int) -> None:
        ranks[strict_order(x[:, j], ties=ties[:, j]), j] = np.arange(1, x.shape[0] + 1)

    in_threads(rank, range(x.shape[1]), size=x.size)
    return ranks


def reverse_map(x: Array, y: Array, *, rng: Stream) -> Array:
    """Z: the values of x in the order of y, z_i = the value of x whose rank is rank(y_i).

    Algorithm 1 of Domingo-Ferrer and Muralidhar (2016). A table is mapped column by column.

    >>> from rankveil.seeds import Seed
    >>> reverse_map(np.array([10.0, 20.0, 30.0]), np.array([9.0, 41.0, 22.0]), rng=Seed.of(0).stream("z"))
    array([10., 30., 20.])
    """
    if x.shape != y.shape:
        raise ValueError("reverse mapping needs as many masked values as original ones")
    if x.ndim == 1:
        z = np.empty(y.size)
        z[strict_order(y, ties=rng.bits(y.size))] = in_order(x)
        return z
    table = np.empty(x.shape, order="F")
    draws = [rng.bits(y.shape[0]) for _ in range(x.shape[1])]

    def map_column(j: int) -> None:
        table[strict_order(y[:, j], ties=draws[j]), j] = in_order(x[:, j])

    in_threads(map_column, range(x.shape[1]), size=x.size)
    return table


def ranks_within(percent: float, *, n: int) -> int:
    """How many ranks `percent` of n records are, rounded down.

    >>> ranks_within(18.4, n=375)
    69
    """
    return int(n * percent / 100 * (1 + 1e-12))  # 375 * 18.4 / 100 is a little less than 69


def rank_changes(rank_x: Array, rank_y: Array) -> Array:
    """|rank(x_i) - rank(y_i)| for every record: the permutation distance of Muralidhar and Domingo-Ferrer (2015)."""
    return np.abs(rank_x - rank_y)


class SortedColumn:
    """A released column sorted once: the value nearest to any x, its rank, and the ranks around it."""

    def __init__(self, y: Array, *, categories: Categories | None = None) -> None:
        self.values = np.sort(y)
        self.starts, self.ends = tie_blocks(self.values)
        self.distinct = self.values[self.starts]
        self.ranks = (self.starts + self.ends + 1) / 2
        self.nominal = categories if categories is not None and not categories.ordered else None
        """What the values are places of, where the order of the places is no order of the categories themselves."""

    def apart(self) -> Array | None:
        """How far each two of the different categories are apart by their hierarchy; None where there is none."""
        if self.nominal is None or self.nominal.hierarchy is None:
            return None
        labels = [self.nominal.labels[place] for place in self._places(self.nominal, self.distinct)]
        return self.nominal.hierarchy.distances(labels)

    @staticmethod
    def _places(categories: Categories, values: Array) -> Order:
        return np.searchsorted(categories.values, values)

    def nearest(self, x: Array) -> Order:
        """For each x the index of the distinct value closest to it, the smaller one when two are equally close.

        A category of a hierarchy is closest to the one at the smallest distance in it, so to itself where it is there.
        """
        if self.nominal is not None and self.nominal.hierarchy is not None:
            labels = self.nominal.labels
            there = [labels[place] for place in self._places(self.nominal, self.distinct)]
            wanted, which = np.unique(self._places(self.nominal, x), return_inverse=True)
            apart = self.nominal.hierarchy.distances([labels[place] for place in wanted], there)
            near: Order = np.argmin(apart, axis=1)
            return near[which]
        above = np.searchsorted(self.distinct, x).clip(0, self.distinct.size - 1)
        below = np.maximum(above - 1, 0)
        # halves, so that values near the largest number do not overflow
        high, low, half = self.distinct[above] / 2, self.distinct[below] / 2, x / 2
        gap_above, gap_below = np.abs(high - half), np.abs(half - low)
        # 1.2 is equally close to 1.1 and 1.3 for the person who typed it: forgive the rounding of decimals
        slack = 4 * np.finfo(float).eps * np.maximum(np.abs(half), np.maximum(np.abs(high), np.abs(low)))
        around = np.stack((x, self.distinct[above], self.distinct[below]))
        exact = (around == np.rint(around)) & (np.abs(around) < 2.0**53)
        slack[exact.all(axis=0)] = 0.0  # whole numbers have no rounding
        found = self.distinct[above] == x  # whatever stands beside it, however near
        return np.where((gap_below <= gap_above + slack) & ~found, below, above)

    def window(self, rank: Array, reach: Array) -> tuple[Order, Order]:
        """The first and one past the last distinct value whose rank is within `reach` of `rank`."""
        first = np.searchsorted(self.ranks, rank - reach, side="left")
        last = np.searchsorted(self.ranks, rank + reach, side="right")
        return first, last
