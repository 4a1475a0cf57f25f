"""Population moments that do not overflow: of values like 1e300, and of 1e-300 beside 1e12.

Records may have weights: one of weight w counts as w equal records, and one of weight 0 is no part of the population.
Sums without weights are exact, and rounded once: they are the same whatever the order of the records, and in how many
parts a table is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankveil.kernels.exact import LIMBS, add_exactly

Array = NDArray[np.float64]

_UNIT = 1074
"""Exact sums count in 2^-1074, the least positive number."""

_FEW = 5_000
"""Values up to which Python's own exact sum is quick enough, and nothing is compiled."""


def exact(x: Array) -> int:
    """The sum in units of 2^-1074: a whole number, of which nothing is rounded.

    >>> exact(np.array([1e300, 1.0, -1e300])) == 2**1074
    True
    """
    values = np.ascontiguousarray(x, np.float64)
    if values.size <= _FEW:
        return _few(values)
    limbs = np.zeros(LIMBS, np.int64)
    bits = values.view(np.uint64)
    for start in range(0, values.size, 2**28):
        add_exactly.compiled(bits[start : start + 2**28], limbs)
    return sum(int(limb) << (32 * k) for k, limb in enumerate(limbs.tolist()))


def _few(values: Array) -> int:
    """The same without a compiled loop: numbers with the same exponent are added as whole numbers."""
    digits, exponents = np.frexp(values)
    whole = np.ldexp(digits, 53).astype(np.int64)
    upper, lower = whole >> 26, whole & (2**26 - 1)  # whose sums 64 bits hold
    found = 0
    for exponent in np.unique(exponents).tolist():
        alike = exponents == exponent
        both = (int(upper[alike].sum()) << 26) + int(lower[alike].sum())
        found += both << (exponent - 53 + _UNIT + _SPARE)
    return found >> _SPARE


_SPARE = 64
"""Bits below the least positive number, for the digits of subnormal ones, all of them 0."""


def rounded(total: int) -> float:
    """An exact sum as the nearest number, infinite where there is none so large."""
    try:
        return total / (1 << _UNIT)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def total(x: Array) -> float:
    """The sum, rounded once.

    >>> total(np.array([1e16, 1.0, 1.0, -1e16]))
    2.0
    """
    if x.size <= _FEW:
        try:
            return math.fsum(x.tolist())
        except OverflowError:  # of what is added on the way
            pass
    return rounded(exact(x))


@dataclass(frozen=True)
class Summary:
    """Of values their number, extremes and sum; those of parts of the records can be merged."""

    count: int
    low: float
    high: float
    near: float
    """The sum, rounded once."""
    exact: int = 0
    """The sum itself, unless the values are all there are."""

    @classmethod
    def of(cls, x: Array) -> Self:
        """Those of a part of the values."""
        if x.size == 0:
            return cls(0, math.inf, -math.inf, 0.0)
        found = exact(x)
        return cls(x.size, float(x.min()), float(x.max()), rounded(found), found)

    @classmethod
    def of_all(cls, x: Array) -> Self:
        """Those of all values, which are not merged with others."""
        if x.size == 0:
            return cls(0, math.inf, -math.inf, 0.0)
        near = total(x)
        return cls(x.size, float(x.min()), float(x.max()), near, 0 if math.isfinite(near) else exact(x))

    def merged(self, other: Summary) -> Summary:
        """Those of both parts together."""
        low, high, found = min(self.low, other.low), max(self.high, other.high), self.exact + other.exact
        return Summary(self.count + other.count, low, high, rounded(found), found)

    @property
    def constant(self) -> bool:
        """Whether all values are the same."""
        return self.count == 0 or self.low == self.high

    @property
    def scale(self) -> float:
        """A power of two near the largest magnitude."""
        return scale_of(np.array([self.low, self.high])) if self.count else 1.0

    @property
    def mean(self) -> float:
        """The mean; 0 of no values."""
        if self.constant:
            return self.low if self.count else 0.0
        # a sum too large for a number may have a mean that is not
        return self.near / self.count if math.isfinite(self.near) else rounded(self.exact // self.count)

    def gaps(self, x: Array) -> Array:
        """What values are above the mean, in units of the scale."""
        scale = self.scale
        found: Array = x / scale - self.mean / scale
        return found

    def width(self, squares: float) -> float:
        """The population standard deviation in units of the scale, from the sum of all squared gaps."""
        return 0.0 if self.constant else math.sqrt(squares / self.count)


@dataclass(frozen=True)
class Sums:
    """Exact sums of several things over a part of the records; parts are merged."""

    exact: tuple[int, ...]

    @classmethod
    def of(cls, values: Iterable[Array]) -> Self:
        """Those of some records."""
        return cls(tuple(exact(each) for each in values))

    def merged(self, other: Sums) -> Sums:
        """Those of both parts together."""
        return Sums(tuple(a + b for a, b in zip(self.exact, other.exact, strict=True)))

    @property
    def rounded(self) -> list[float]:
        """As numbers."""
        return [rounded(each) for each in self.exact]


def scale_of(x: Array) -> float:
    """A power of two near the largest magnitude (1 for zeros), so that dividing by it loses nothing."""
    largest = float(np.max(np.abs(x))) if x.size else 0.0
    if largest == 0.0 or not np.isfinite(largest):
        return 1.0
    # frexp of a subnormal has an exponent below the smallest normal power of two, that of 1e308 one above the largest
    return float(2.0 ** min(max(int(np.frexp(largest)[1]), -1000), 1023))


def mean(x: Array, weight: Array | None = None) -> float:
    """The mean.

    >>> mean(np.array([1e308, 1e308]))
    1e+308
    >>> mean(np.array([1.0, 5.0]), np.array([3.0, 1.0]))
    2.0
    """
    x, weight = counted(x, weight)
    if is_constant(x):
        return float(x[0])
    if weight is None:
        return Summary.of_all(x).mean
    scale = scale_of(x)
    return average(x / scale, weight) * scale


def standard_deviation(x: Array, weight: Array | None = None) -> float:
    """The population standard deviation, exactly 0 for a constant column.

    >>> standard_deviation(np.array([0.1, 0.1, 0.1]))
    0.0
    """
    x, weight = counted(x, weight)
    if is_constant(x):
        return 0.0
    if weight is None:
        found = Summary.of_all(x)
        return found.width(total(np.square(found.gaps(x)))) * found.scale
    scale = scale_of(x)
    scaled = x / scale
    return math.sqrt(average(np.square(scaled - average(scaled, weight)), weight)) * scale


def is_constant(x: Array) -> bool:
    """Whether all values are the same."""
    return x.size == 0 or bool(np.all(x == x[0]))


def counted(x: Array, weight: Array | None) -> tuple[Array, Array | None]:
    """The records (values, or rows of a table) whose weight is above 0, and their weights."""
    if weight is None or bool(np.all(weight > 0)):
        return x, weight
    return x[weight > 0], weight[weight > 0]


def average(values: NDArray[Any], weight: Array | None = None) -> float:
    """The mean of numbers of ordinary size, such as a share of the records; with weights, of those they stand for.

    >>> average(np.array([True, False]), np.array([3.0, 1.0]))
    0.75
    """
    if weight is None:
        return float(np.mean(values))
    unit = weight / scale_of(weight)
    return float(np.sum(values * unit)) / float(np.sum(unit))


def effective_size(x: NDArray[Any], weight: Array | None = None) -> float:
    """How many records of equal weight say as much as these: (sum w)^2 / sum w^2 (Kish 1965), or their number.

    >>> effective_size(np.zeros(3), np.array([2.0, 2.0, 0.0]))
    2.0
    """
    if weight is None:
        return float(len(x))
    unit = weight / scale_of(weight)
    return float(np.sum(unit)) ** 2 / float(np.sum(np.square(unit)))


def quantiles(ordered: Array, shares: Array, weight: Array | None = None) -> Array:
    """The quantiles of sorted values, linear between them and the same as they where two are equal.

    Of n values, share q lies at place q (n - 1). Weights that are whole numbers count repeated values. Others lay the
    values end to end, each as long as its weight, and a quantile is the mean over a piece of length 1 (or of the mean
    weight, if that is less) that starts at q (total - length): for whole numbers that is the same.

    >>> quantiles(np.array([1.0, 2.0, 4.0]), np.array([0.25, 0.75]))
    array([1.5, 3. ])
    >>> quantiles(np.array([1.0, 4.0]), np.array([0.5]), np.array([2.0, 2.0]))
    array([2.5])
    """
    ordered, weight = counted(ordered, weight)
    if weight is not None:
        return _weighted_quantiles(ordered, shares, weight)
    place = shares * (len(ordered) - 1)
    before = np.floor(place).astype(np.intp)
    low, high = ordered[before], ordered[np.minimum(before + 1, len(ordered) - 1)]
    part = place - before
    found: Array = np.clip((1 - part) * low + part * high, low, high)
    return found


def _weighted_quantiles(ordered: Array, shares: Array, weight: Array) -> Array:
    upto = np.cumsum(weight)
    length = min(1.0, float(upto[-1]) / len(upto))
    start = shares * (upto[-1] - length)
    first = np.minimum(np.searchsorted(upto, start, side="right"), len(upto) - 1)
    last = np.clip(np.searchsorted(upto, start + length, side="left"), first, len(upto) - 1)
    found: Array = ordered[first]
    for k in np.flatnonzero(ordered[last] > ordered[first]):
        piece = slice(first[k], last[k] + 1)
        parts = np.diff(np.clip(upto[piece], start[k], start[k] + length), prepend=start[k])
        value = np.sum(parts / np.sum(parts) * ordered[piece])
        found[k] = np.clip(value, ordered[first[k]], ordered[last[k]])
    return found


def of_replicates(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean of replicates, their standard deviation, and half the 95 % interval of the mean (Student's t).

    >>> of_replicates([0.0, 2.0])[:2]
    (1.0, 1.4142135623730951)
    """
    n, unit = len(values), scale_of(np.asarray(values, np.float64))  # squares of large numbers would be too large
    scaled = [value / unit for value in values]
    centre = math.fsum(scaled) / n
    sd = math.sqrt(math.fsum((value - centre) ** 2 for value in scaled) / max(n - 1, 1))
    if sd == 0.0:
        return centre * unit, 0.0, 0.0
    from scipy.stats import t

    return centre * unit, sd * unit, float(t.ppf(0.975, n - 1)) * sd / math.sqrt(n) * unit
