"""How far the records of an attribute moved: a mergeable summary of the permutation distances |rank_x - rank_y|.

It serves the permutation level, the power means and interval disclosure by ranks. Doubled distances are whole numbers,
so their sum, the extremes and the counts are exact. Sums of powers are those of doubled distances divided by a power of
two above them all, or of 1 divided by them, so that none leaves the range of numbers up to the tenth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankveil.partitions.loops import distances, power_sums

Array = NDArray[np.float64]
Integers = NDArray[np.integer[Any]]

HIGHEST = 10
"""Power means go from minus to plus this."""

WIDEST = 10
"""Intervals reach 1, 2, ... up to so many percent of the ranks."""


@dataclass(frozen=True, eq=False)
class Movements:
    """The permutation distances of an attribute over some of all records."""

    records: int
    """How many records the ranks go over."""
    count: int
    unmoved: int
    smallest: int
    """The smallest and the largest doubled distance."""
    largest: int
    total: int
    """The sum of the doubled distances."""
    within: NDArray[np.int64]
    """How many are first caught by an interval of 1, 2, ... percent of all ranks, and by none."""
    positive: Array
    """Sums of (p / unit)^k for k = 1, 2, ..."""
    negative: Array
    """Sums of (1 / p)^k for k = 1, 2, ...; of no use as soon as a record did not move, as power means are 0 then."""
    logarithms: float
    """The sum of the logarithms of the doubled distances; likewise."""
    asked: Mapping[float, float] = field(default_factory=dict)
    """For other exponents alpha the sum of (p / largest)^alpha, or (p / smallest)^alpha if alpha is negative."""

    @classmethod
    def of(cls, ranks_x: Integers, ranks_y: Integers, *, records: int, alphas: tuple[float, ...] = ()) -> Self:
        """Those of doubled ranks among so many records; `alphas` are exponents that are no whole numbers up to 10."""
        if ranks_x.size == 0:
            none = np.zeros(HIGHEST)
            return cls(
                records, 0, 0, 0, 0, 0, np.zeros(WIDEST + 1, np.int64), none, none, 0.0, dict.fromkeys(alphas, 0.0)
            )
        found, total, within = distances(ranks_x, ranks_y, float(records), WIDEST)
        smallest, largest = int(found.min()), int(found.max())
        unmoved = int(found.size - np.count_nonzero(found))
        return cls(
            records,
            found.size,
            unmoved,
            smallest,
            largest,
            int(total),
            within,
            power_sums(found, HIGHEST, unit_of(records), False),
            np.zeros(HIGHEST) if unmoved else power_sums(found, HIGHEST, 1.0, True),
            0.0 if unmoved else float(np.sum(np.log(found))),
            {alpha: _power_sum(found, alpha, largest if alpha > 0 else smallest) for alpha in alphas},
        )

    def merged(self, other: Movements) -> Movements:
        """Those of both parts together."""
        if self.count == 0 or other.count == 0:
            return other if self.count == 0 else self
        smallest, largest = min(self.smallest, other.smallest), max(self.largest, other.largest)
        asked = {}
        for alpha in self.asked:
            unit = largest if alpha > 0 else smallest
            asked[alpha] = self._asked_in(alpha, unit) + other._asked_in(alpha, unit)
        return Movements(
            self.records,
            self.count + other.count,
            self.unmoved + other.unmoved,
            smallest,
            largest,
            self.total + other.total,
            self.within + other.within,
            self.positive + other.positive,
            self.negative + other.negative,
            self.logarithms + other.logarithms,
            asked,
        )

    def _asked_in(self, alpha: float, unit: int) -> float:
        """The sum of powers in another unit, at least as far out."""
        own = self.largest if alpha > 0 else self.smallest
        return self.asked[alpha] * (own / unit) ** alpha if own and unit else 0.0

    def power_mean(self, alpha: float) -> float:
        """(mean of p^alpha)^(1/alpha) of the distances p, the geometric mean for alpha = 0."""
        if self.largest == 0 or (self.unmoved and alpha <= 0):
            return 0.0
        if alpha == 0:
            return float(np.exp(self.logarithms / self.count)) / 2
        if not is_whole(alpha):
            unit, total = float(self.largest if alpha > 0 else self.smallest), self.asked[alpha]
        elif alpha > 0:
            unit, total = unit_of(self.records), float(self.positive[int(alpha) - 1])
        else:
            unit, total = 1.0, float(self.negative[int(-alpha) - 1])
        return unit / 2 * float((total / self.count) ** (1 / alpha))


def unit_of(records: int) -> float:
    """A power of two above all doubled distances of so many records."""
    return float(2 ** (2 * records).bit_length())


def is_whole(alpha: float) -> bool:
    """Whether the power mean of this exponent is known without being asked for."""
    return alpha == int(alpha) and abs(alpha) <= HIGHEST


def _power_sum(found: Array, alpha: float, unit: int) -> float:
    return float(np.sum((found / unit) ** alpha)) if unit else 0.0


def share_caught(within: NDArray[np.int64]) -> float:
    """The share of values caught, averaged over the intervals: one caught by some is caught by every wider one."""
    times = WIDEST - np.arange(WIDEST + 1)
    return int(within @ times) / max(int(within.sum()), 1) / WIDEST
