"""Small summaries of a partition's columns that can be merged, in any order, into those of the whole table.

Means and moments are kept in units of a power of two near the largest magnitude, so that values like 1e300 do no harm.
Sums of values carry what rounding took from them; sums of squares around the mean are merged by the formulas of Chan,
Golub and LeVeque (1979) and, for the third and fourth power, Pébay (2008), which lose nothing where subtracting sums of
powers would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankveil.moments import scale_of
from rankveil.partitions.loops import central_sums, sums

Array = NDArray[np.float64]
Columns = Sequence[Array]
"""The values of a partition, column by column, none of them missing."""

_AT_A_TIME = 4096
"""Records whose standardised powers fit in a processor's cache."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Of each column the count, the extremes, the mean, and the second to fourth central moment."""

    count: int
    low: Array
    high: Array
    unit: Array
    """Sums are in units of this, a power of two."""
    total: Array
    lost: Array
    """The sum of each column is total + lost, where lost is what rounding took from total."""
    powers: Array
    """Sums of the second, third and fourth power of what values are above the mean, one row for each power."""

    @classmethod
    def of(cls, columns: Columns) -> Self:
        """Those of some records."""
        m, count = len(columns), len(columns[0])
        low, high = np.full(m, np.inf), np.full(m, -np.inf)
        unit, total, lost, powers = np.ones(m), np.zeros(m), np.zeros(m), np.zeros((3, m))
        for j, values in enumerate(columns):
            if count == 0:
                continue
            low[j], high[j] = values.min(), values.max()
            unit[j] = scale_of(np.array([low[j], high[j]]))
            if low[j] == high[j]:
                total[j], lost[j] = _product(low[j] / unit[j], count)
                continue
            total[j], lost[j] = sums(values, unit[j])
            powers[:, j] = central_sums(values, unit[j], *_divided(total[j], lost[j], count))
        return cls(count, low, high, unit, total, lost, powers)

    def merged(self, other: Moments) -> Moments:
        """Those of both parts together."""
        if self.count == 0 or other.count == 0:
            return other if self.count == 0 else self
        unit = np.maximum(self.unit, other.unit)
        a, b = self._in(unit), other._in(unit)
        total, lost = _added(a.total, a.lost, b.total, b.lost)
        return Moments(
            a.count + b.count,
            np.minimum(a.low, b.low),
            np.maximum(a.high, b.high),
            unit,
            total,
            lost,
            _merged_powers(a, b),
        )

    def _in(self, unit: Array) -> Moments:
        """The same in larger units."""
        down = self.unit / unit
        powers = self.powers * down ** np.array([[2.0], [3.0], [4.0]])
        return Moments(self.count, self.low, self.high, unit, self.total * down, self.lost * down, powers)

    @property
    def constant(self) -> NDArray[np.bool_]:
        """Which columns have one value only."""
        return np.asarray(self.low == self.high)

    @property
    def mean(self) -> Array:
        """The mean of each column."""
        return np.where(self.constant, self.low, _divided(self.total, self.lost, self.count)[0] * self.unit)

    @property
    def spread(self) -> Array:
        """The population standard deviation of each column, exactly 0 for a constant one."""
        return np.where(self.constant, 0.0, np.sqrt(self.powers[0] / self.count) * self.unit)

    def standardised_moment(self, order: int) -> Array:
        """The mean of the third or fourth power of standardised values; 0 in a constant column."""
        second = np.where(self.constant, 1.0, self.powers[0] / self.count)
        found = self.powers[order - 2] / self.count / second ** (order / 2)
        return np.where(self.constant, 0.0, found)

    def standardised(self, j: int, values: Array) -> Array:
        """(x - mean) / sd of values of column j; 0 in a constant column."""
        if self.low[j] == self.high[j]:
            return np.zeros(len(values))
        mean, rest = _divided(self.total[j], self.lost[j], self.count)
        found: Array = values / self.unit[j]
        found -= mean
        found -= rest
        found /= np.sqrt(self.powers[0, j] / self.count)
        return found


def _product(value: Any, count: int) -> tuple[Any, Any]:
    """value * count as a number and what rounding took from it (Dekker): both factors as halves of 26 bits."""
    product = value * count
    one, two = _halves(value), _halves(float(count))
    return product, ((one[0] * two[0] - product) + one[0] * two[1] + one[1] * two[0]) + one[1] * two[1]


def _halves(value: Any) -> tuple[Any, Any]:
    much = value * (2.0**27 + 1)
    upper = much - (much - value)
    return upper, value - upper


def _divided(total: Any, lost: Any, count: int) -> tuple[Any, Any]:
    """(total + lost) / count as a number and what rounding took from it."""
    mean = (total + lost) / count
    product, rest = _product(mean, count)
    return mean, (((total - product) - rest) + lost) / count


def _added(a: Array, a_lost: Array, b: Array, b_lost: Array) -> tuple[Array, Array]:
    """The sum of two sums, each with what rounding took from it."""
    first = a + b
    part = first - a
    rest = (a - (first - part)) + (b - part) + a_lost + b_lost
    total = first + rest
    return total, rest - (total - first)


def _merged_powers(a: Moments, b: Moments) -> Array:
    """Central sums of two parts around the mean of both."""
    n_a, n_b = float(a.count), float(b.count)
    n = n_a + n_b
    (mean_a, rest_a), (mean_b, rest_b) = _divided(a.total, a.lost, a.count), _divided(b.total, b.lost, b.count)
    gap = (mean_b - mean_a) + (rest_b - rest_a)
    share_a, share_b = n_a / n, n_b / n
    a2, a3, a4 = a.powers
    b2, b3, b4 = b.powers
    second = a2 + b2 + gap**2 * n_a * share_b
    third = a3 + b3 + gap**3 * n_a * share_b * (share_a - share_b) + 3 * gap * (share_a * b2 - share_b * a2)
    fourth = (
        a4
        + b4
        + gap**4 * n_a * share_b * (share_a**2 - share_a * share_b + share_b**2)
        + 6 * gap**2 * (share_a**2 * b2 + share_b**2 * a2)
        + 4 * gap * (share_a * b3 - share_b * a3)
    )
    return np.stack((second, third, fourth))


@dataclass(frozen=True, eq=False)
class Products:
    """Sums of products of standardised columns, from a second look at the values when the moments are known."""

    count: int
    first: Array
    """Of z_a z_b for each two columns."""
    squares: Array
    """Of z_a^2 z_b^2."""
    cubes: Array
    """Of z_a^3 z_b, a in the rows."""

    @classmethod
    def of(cls, columns: Columns, moments: Moments, *, fourth: bool = True) -> Self:
        """Those of some records, standardised by the moments of all; `fourth` asks for those of the fourth order."""
        m, count = len(columns), len(columns[0])
        first, squares, cubes = (np.zeros((m, m)) for _ in range(3))
        for start in range(0, count, _AT_A_TIME):
            some = slice(start, min(start + _AT_A_TIME, count))
            z = np.stack([moments.standardised(j, columns[j][some]) for j in range(m)])
            first += z @ z.T
            if fourth:
                second = z * z
                squares += second @ second.T
                cubes += (second * z) @ z.T
        return cls(count, first, squares, cubes)

    def merged(self, other: Products) -> Products:
        """Those of both parts together."""
        return Products(
            self.count + other.count,
            self.first + other.first,
            self.squares + other.squares,
            self.cubes + other.cubes,
        )

    def correlation(self, moments: Moments) -> Array:
        """The correlations of the columns; those of a constant column, with itself too, are 0."""
        found: Array = np.clip(self.first / max(self.count, 1), -1.0, 1.0)
        np.fill_diagonal(found, ~moments.constant)
        return found


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each value of a column is there: for columns with few different values."""

    values: Array
    """The different values in order."""
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, values: Array) -> Self:
        """Those of some records.

        >>> Counts.of(np.array([2.0, 1.0, 2.0])).counts
        array([1, 2])
        """
        different, counts = np.unique(values, return_counts=True)
        return cls(different, counts.astype(np.int64))

    def merged(self, other: Counts) -> Counts:
        """Those of both parts together."""
        different, which = np.unique(np.concatenate((self.values, other.values)), return_inverse=True)
        counts = np.zeros(different.size, np.int64)
        np.add.at(counts, which, np.concatenate((self.counts, other.counts)))
        return Counts(different, counts)


@dataclass(frozen=True, eq=False)
class Bins:
    """How many values of a column lie in each of some intervals: [edge, next edge), the ends open."""

    edges: Array
    counts: NDArray[np.int64]
    """One more than there are edges: what lies below the first comes first."""

    @classmethod
    def of(cls, values: Array, edges: Array) -> Self:
        """Those of some records.

        >>> Bins.of(np.array([0.0, 1.0, 1.5, 7.0]), np.array([1.0, 2.0])).counts
        array([1, 2, 1])
        """
        places = np.searchsorted(edges, values, side="right")
        return cls(edges, np.bincount(places, minlength=edges.size + 1).astype(np.int64))

    def merged(self, other: Bins) -> Bins:
        """Those of both parts together."""
        if not np.array_equal(self.edges, other.edges):
            raise ValueError("both parts must have the same edges")
        return Bins(self.edges, self.counts + other.counts)
