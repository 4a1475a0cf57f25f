"""Moments of every two columns, over the records that have both.

Where all columns have the same records these are the moments of the table. Where some cells are missing, a pair of
columns has the records that have both of its values (pairwise deletion): each pair is exact, and no record is left out
because of a third column. Sums of powers of standardised columns can be merged, so tables in memory and in partitions
are measured alike. A column whose variance over the records of a pair is below 1e-12 of its mean square there counts as
constant in that pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rankveil.canonical import crossed

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

_LEAST = 2
"""Records that two columns must have in common."""

_CONSTANT = 1e-12
"""A variance below this part of the mean square is rounding."""


class Sample(NamedTuple):
    """How many records there are, as how many of equal weight they count, and whether they have weights."""

    records: int
    size: float
    weighted: bool


class Moments(Protocol):
    """Moments of a table all of whose columns have the same records."""

    @property
    def mean(self) -> Array:
        """Of each column."""

    @property
    def spread(self) -> Array:
        """Of each column."""

    @property
    def correlation(self) -> Array:
        """Of each two columns."""

    @property
    def squares(self) -> Array:
        """The mean of z_a^2 z_b^2."""

    @property
    def cubes(self) -> Array:
        """The mean of z_a^3 z_b."""


class PairMoments(Protocol):
    """Entry (a, b) is over the records that have both columns: of column a, or of the product of both."""

    @property
    def records(self) -> Counts:
        """How many records have both."""

    @property
    def there(self) -> Flags:
        """Which pairs have records enough to be compared."""

    @property
    def size(self) -> Array:
        """As how many of equal weight they count."""

    @property
    def weighted(self) -> bool:
        """Whether they have weights."""

    @property
    def mean(self) -> Array:
        """The mean of column a."""

    @property
    def spread(self) -> Array:
        """The population standard deviation of column a."""

    @property
    def correlation(self) -> Array:
        """The correlation of a and b; 0 where one is constant."""

    @property
    def squares(self) -> Array:
        """The mean of z_a^2 z_b^2."""

    @property
    def cubes(self) -> Array:
        """The mean of z_a^3 z_b."""

    @property
    def fourth(self) -> Array:
        """The mean of z_a^4."""


@dataclass(frozen=True, eq=False)
class Together:
    """Those of columns that all have the same records."""

    table: Moments
    sample: Sample

    @property
    def _shape(self) -> tuple[int, int]:
        return self.table.mean.size, self.table.mean.size

    @property
    def records(self) -> Counts:
        """How many records have both."""
        return np.full(self._shape, self.sample.records)

    @property
    def there(self) -> Flags:
        """Every pair."""
        return np.ones(self._shape, dtype=np.bool_)

    @property
    def size(self) -> Array:
        """As how many of equal weight they count."""
        return np.full(self._shape, self.sample.size)

    @property
    def weighted(self) -> bool:
        """Whether they have weights."""
        return self.sample.weighted

    @property
    def mean(self) -> Array:
        """The mean of column a."""
        return np.broadcast_to(self.table.mean[:, None], self._shape)

    @property
    def spread(self) -> Array:
        """The population standard deviation of column a."""
        return np.broadcast_to(self.table.spread[:, None], self._shape)

    @property
    def correlation(self) -> Array:
        """The correlation of a and b; 0 where one is constant."""
        return self.table.correlation

    @property
    def squares(self) -> Array:
        """The mean of z_a^2 z_b^2."""
        return self.table.squares

    @property
    def cubes(self) -> Array:
        """The mean of z_a^3 z_b."""
        return self.table.cubes

    @property
    def fourth(self) -> Array:
        """The mean of z_a^4."""
        return np.broadcast_to(np.diag(self.table.squares)[:, None], self._shape)


@dataclass(frozen=True, eq=False)
class PairSums:
    """Sums over the records that have both of two columns, each standardised over all records that have it."""

    records: Counts
    weight: Array
    """The sum of their weights, or their number."""
    weight_squares: Array
    powers: Array
    """Of z_a, z_a^2, z_a^3 and z_a^4 where b is there too."""
    products: Array
    """Of z_a z_b, z_a^2 z_b, z_a^3 z_b and z_a^2 z_b^2."""

    @classmethod
    def of(cls, z: Array, weight: Array | None = None) -> Self:
        """Those of some records; missing cells are NaN."""
        there = ~np.isnan(z)
        flags = there.astype(np.float64)
        one = np.where(there, z, 0.0)
        two = one * one
        three, four = two * one, two * two
        share = np.ones(len(z)) if weight is None else weight
        weighed = flags * share[:, None]
        own = one * share[:, None]
        both = two * share[:, None]
        return cls(
            np.rint(crossed(flags, flags)).astype(np.int64),
            crossed(weighed, flags),
            crossed(weighed, weighed),
            np.stack([crossed(each, weighed) for each in (one, two, three, four)]),
            np.stack([crossed(one, own), crossed(two, own), crossed(three, own), crossed(two, both)]),
        )

    def merged(self, other: PairSums) -> PairSums:
        """Those of both parts together."""
        return PairSums(
            self.records + other.records,
            self.weight + other.weight,
            self.weight_squares + other.weight_squares,
            self.powers + other.powers,
            self.products + other.products,
        )


@dataclass(frozen=True, eq=False)
class Pairwise:
    """Moments of every two columns from their sums; `centre` and `scale` are what the columns were standardised by."""

    sums: PairSums
    centre: Array
    scale: Array
    weighted: bool = False

    @property
    def records(self) -> Counts:
        """How many records have both."""
        return self.sums.records

    @property
    def there(self) -> Flags:
        """Which pairs have at least two records in common: one alone does not vary."""
        return np.asarray(self.sums.records >= _LEAST)

    @cached_property
    def size(self) -> Array:
        """As how many of equal weight they count."""
        squares = self.sums.weight_squares
        return np.divide(self.sums.weight**2, squares, out=np.zeros_like(squares), where=squares > 0)

    @cached_property
    def _means(self) -> tuple[Array, Array]:
        weight = np.where(self.sums.weight > 0, self.sums.weight, 1.0)
        return self.sums.powers / weight, self.sums.products / weight

    @cached_property
    def _variance(self) -> Array:
        (first, second, *_), _ = self._means
        found = second - first**2
        return np.asarray(np.where(found > _CONSTANT * second, found, 0.0))

    @cached_property
    def mean(self) -> Array:
        """The mean of column a."""
        return np.asarray(self.centre[:, None] + self.scale[:, None] * self._means[0][0])

    @cached_property
    def spread(self) -> Array:
        """The population standard deviation of column a."""
        return np.asarray(self.scale[:, None] * np.sqrt(self._variance))

    @cached_property
    def _unit(self) -> Array:
        """The root of the variance, 1 where it is 0; what is divided by it is made 0 there."""
        return np.sqrt(np.where(self._variance > 0, self._variance, 1.0))

    def _standardised(self, central: Array, a: int, b: int) -> Array:
        """A central moment of order a in the one column and b in the other, of standardised columns."""
        varies = (self._variance > 0) & ((self._variance.T > 0) | (b == 0))
        found: Array = np.where(varies, central / self._unit**a / self._unit.T**b, 0.0)
        return found

    @cached_property
    def correlation(self) -> Array:
        """The correlation of a and b; 0 where one is constant."""
        (mean, *_), (product, *_) = self._means
        found = np.clip(self._standardised(product - mean * mean.T, 1, 1), -1.0, 1.0)
        np.fill_diagonal(found, np.diag(self._variance) > 0)
        return found

    @cached_property
    def squares(self) -> Array:
        """The mean of z_a^2 z_b^2."""
        (one, two, *_), (p11, p21, _, p22) = self._means
        a, b = one, one.T
        central = p22 - 2 * b * p21 - 2 * a * p21.T + b**2 * two + a**2 * two.T + 4 * a * b * p11 - 3 * a**2 * b**2
        return self._standardised(central, 2, 2)

    @cached_property
    def cubes(self) -> Array:
        """The mean of z_a^3 z_b."""
        (one, two, three, _), (p11, p21, p31, _) = self._means
        a, b = one, one.T
        central = p31 - 3 * a * p21 + 3 * a**2 * p11 - b * three + 3 * a * b * two - 3 * a**3 * b
        return self._standardised(central, 3, 1)

    @cached_property
    def fourth(self) -> Array:
        """The mean of z_a^4."""
        (one, two, three, four), _ = self._means
        return self._standardised(four - 4 * one * three + 6 * one**2 * two - 3 * one**4, 4, 0)
