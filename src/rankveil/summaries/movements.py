"""How far the records of an attribute moved: mergeable summaries of the permutation distances |rank_x - rank_y|.

Doubled distances are whole numbers, so their sum, the extremes and the counts are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankveil.kernels import SMALL
from rankveil.kernels.summing import distances, power_sums

Array = NDArray[np.float64]
Ranks = NDArray[Any]
Counts = NDArray[np.number[Any]]
"""How many there are, or the sums of their weights."""

HIGHEST = 10
"""Power means go from minus to plus this."""

WIDEST = 10
"""Intervals reach 1, 2, ... up to so many percent."""


class Distances(NamedTuple):
    """The permutation distances of an attribute over some of all records."""

    records: int
    """How many records the ranks go over."""
    doubled: Array
    total: int
    within: NDArray[np.int64]
    """How many are first caught by an interval of 1, 2, ... percent of all ranks, and by none."""

    @classmethod
    def of(cls, ranks_x: Ranks, ranks_y: Ranks, *, records: int, times: int = 1) -> Distances:
        """Those of doubled ranks, or with times=2 of ranks, among so many records."""
        if ranks_x.size >= SMALL:
            found, total, within = distances(ranks_x, ranks_y, float(times), float(records), WIDEST)
            return cls(records, found, int(total), within)
        found = times * np.abs(np.subtract(ranks_x, ranks_y, dtype=np.float64))
        within = np.bincount(_first(percents(found, records)), minlength=WIDEST + 1)
        return cls(records, found, int(found.sum()), within)


def percents(doubled: Array, records: int) -> Array:
    """Doubled distances in percent of all ranks."""
    return doubled / 2 * 100 / records


def caught(percents: Array, weight: Array | None = None) -> Counts:
    """How many are first caught by an interval of 1, 2, ... percent, and by none; with weights, what these add up to.

    >>> caught(np.array([0.0, 1.5, 99.0]))
    array([1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    """
    return np.bincount(_first(percents), weights=weight, minlength=WIDEST + 1)


def _first(percents: Array) -> NDArray[np.intp]:
    return np.clip(np.ceil(percents), 1, WIDEST + 1).astype(np.intp) - 1


def share_caught(within: Counts) -> float:
    """The share of values caught, averaged over the intervals: one caught by some is caught by every wider one."""
    times = WIDEST - np.arange(WIDEST + 1)
    whole = float(within.sum())
    return float(within @ times) / whole / WIDEST if whole else 0.0


@dataclass(frozen=True, eq=False)
class Movements:
    """How far the records of an attribute moved in all, and at most."""

    count: int
    total: int
    """The sum of the doubled distances."""
    largest: int
    """The largest doubled distance."""
    within: NDArray[np.int64]
    """How many are first caught by an interval of 1, 2, ... percent of all ranks, and by none."""

    @classmethod
    def of(cls, moved: Distances) -> Self:
        """From the distances of some records."""
        return cls(moved.doubled.size, moved.total, int(moved.doubled.max(initial=0.0)), moved.within)

    def merged(self, other: Movements) -> Movements:
        """Those of both parts together."""
        return Movements(
            self.count + other.count,
            self.total + other.total,
            max(self.largest, other.largest),
            self.within + other.within,
        )


@dataclass(frozen=True, eq=False)
class Powers:
    """Sums of powers of the permutation distances of an attribute, from which power means are made.

    They are those of doubled distances divided by a power of two above them all, or of 1 divided by them, so that none
    leaves the range of numbers up to the tenth.
    """

    records: int
    """How many records the ranks go over."""
    count: int
    unmoved: int
    smallest: int
    """The smallest and the largest doubled distance."""
    largest: int
    positive: Array
    """Sums of (p / unit)^k for k = 1, 2, ..."""
    negative: Array
    """Sums of (1 / p)^k for k = 1, 2, ...; of no use as soon as a record did not move, as power means are 0 then."""
    logarithms: float
    """The sum of the logarithms of the doubled distances; likewise."""
    asked: Mapping[float, float] = field(default_factory=dict)
    """For other exponents alpha the sum of (p / largest)^alpha, or (p / smallest)^alpha if alpha is negative."""

    @classmethod
    def of(cls, moved: Distances, *, alphas: tuple[float, ...] = (), later: Callable[[], Array] | None = None) -> Self:
        """From the distances of some records; `alphas` are exponents that are no whole numbers up to 10.

        `later` gives the doubled distances again, for whatever exponent is asked for.
        """
        found = moved.doubled
        if found.size == 0:
            none = np.zeros(HIGHEST)
            return cls(moved.records, 0, 0, 0, 0, none, none, 0.0, dict.fromkeys(alphas, 0.0))
        smallest, largest = int(found.min()), int(found.max())
        unmoved = int(found.size - np.count_nonzero(found))
        asked = {alpha: power_sum(found, alpha) for alpha in alphas}
        return cls(
            moved.records,
            found.size,
            unmoved,
            smallest,
            largest,
            _power_sums(found, unit_of(moved.records), inverse=False),
            np.zeros(HIGHEST) if unmoved else _power_sums(found, 1.0, inverse=True),
            0.0 if unmoved else float(np.sum(np.log(found))),
            asked if later is None else _Later(later),
        )

    def merged(self, other: Powers) -> Powers:
        """Those of both parts together."""
        if self.count == 0 or other.count == 0:
            return other if self.count == 0 else self
        smallest, largest = min(self.smallest, other.smallest), max(self.largest, other.largest)
        asked = {}
        for alpha in self.asked:
            unit = largest if alpha > 0 else smallest
            asked[alpha] = self._asked_in(alpha, unit) + other._asked_in(alpha, unit)
        return Powers(
            self.records,
            self.count + other.count,
            self.unmoved + other.unmoved,
            smallest,
            largest,
            self.positive + other.positive,
            self.negative + other.negative,
            self.logarithms + other.logarithms,
            asked,
        )

    def _asked_in(self, alpha: float, unit: int) -> float:
        """The sum of powers in another unit, at least as far out."""
        own = self.largest if alpha > 0 else self.smallest
        return self.asked[alpha] * (own / unit) ** alpha if own and unit else 0.0

    def mean(self, alpha: float) -> float:
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


class _Later(dict[float, float]):
    """Sums of powers that are added up when somebody asks for them."""

    def __init__(self, doubled: Callable[[], Array]) -> None:
        super().__init__()
        self._doubled = doubled

    def __missing__(self, alpha: float) -> float:
        self[alpha] = power_sum(self._doubled(), alpha)
        return self[alpha]


def unit_of(records: int) -> float:
    """A power of two above all doubled distances of so many records."""
    return float(2 ** (2 * records).bit_length())


def is_whole(alpha: float) -> bool:
    """Whether the power mean of this exponent is known without being asked for."""
    return alpha == int(alpha) and abs(alpha) <= HIGHEST


def power_sum(found: Array, alpha: float) -> float:
    """The sum of (p / largest)^alpha, or (p / smallest)^alpha if alpha is negative; 0 if one would divide by 0."""
    unit = float(found.max() if alpha > 0 else found.min())
    return float(np.sum((found / unit) ** alpha)) if unit else 0.0


def _power_sums(found: Array, unit: float, *, inverse: bool) -> Array:
    """The sums of the first, second, ... power of p / unit, or of unit / p."""
    if found.size >= SMALL:
        sums: Array = power_sums(found, HIGHEST, unit, inverse)
        return sums
    share = unit / found if inverse else found / unit
    power, made = np.ones_like(share), np.empty(HIGHEST)
    for k in range(HIGHEST):
        power *= share
        made[k] = power.sum()
    return made
