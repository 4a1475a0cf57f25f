"""How far the values of an attribute changed: a mergeable summary of x and y side by side.

It serves the losses of values (`il1`, `il1s`, `loss_values_mse`, ...) and interval disclosure by standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankveil.kernels import SMALL
from rankveil.kernels.summing import change_sums
from rankveil.moments import scale_of
from rankveil.summaries.movements import WIDEST, Counts, caught

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Changes:
    """The changes of an attribute over some records. With weights, sums are weighted in units of the largest weight."""

    unit: float
    """Differences are in units of this, a power of two."""
    count: int
    """How many records there are."""
    weight: float
    """Their number too, or the sum of their weights."""
    there: int
    """How many original values are not 0."""
    weight_there: float
    variation: float
    """The sum of |x - y| / |x| over these."""
    absolute: float
    """The sum of |x - y|."""
    squared: float
    """The sum of (x - y)^2."""
    within: Counts
    """How many are first caught by an interval of 1, 2, ... percent of the standard deviation, and by none."""

    @classmethod
    def of(cls, x: Array, y: Array, *, spread: float, unit: float | None = None, weight: Array | None = None) -> Self:
        """Those of some records; `spread` is the original's standard deviation over all.

        Without a unit it is one near the largest change.
        """
        if weight is not None:
            there = weight > 0
            share = weight[there] / np.max(weight)
            return cls._of_few(x[there], y[there], spread, unit, share)
        if x.size >= SMALL:
            unit = _unit(x, y) if unit is None else unit
            count, variation, absolute, squared, within = change_sums(x, y, unit, spread / unit, WIDEST)
            return cls(unit, x.size, float(x.size), count, float(count), variation, absolute, squared, within)
        return cls._of_few(x, y, spread, unit, None)

    @classmethod
    def _of_few(cls, x: Array, y: Array, spread: float, unit: float | None, weight: Array | None) -> Self:
        """The same without compiled loops, and with weights."""
        unit = _unit(x, y) if unit is None else unit
        change, times = _differences(x, y)
        change /= unit / times
        share = np.ones(x.size) if weight is None else weight
        there = x != 0
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            ratio = np.abs(1.0 - y[there] / x[there])  # x - y would overflow sooner
            percents = change / (spread / unit) * 100
            percents[change == 0] = 0.0
            return cls(
                unit,
                x.size,
                float(share.sum()),
                int(np.count_nonzero(there)),
                float(share[there].sum()),
                float(np.sum(ratio * share[there])),
                float(np.sum(change * share)),
                float(np.sum(change * change * share)),
                caught(percents, weight),
            )

    def merged(self, other: Changes) -> Changes:
        """Those of both parts together."""
        if self.unit != other.unit:
            raise ValueError("both parts must be in the same unit")
        return Changes(
            self.unit,
            self.count + other.count,
            self.weight + other.weight,
            self.there + other.there,
            self.weight_there + other.weight_there,
            self.variation + other.variation,
            self.absolute + other.absolute,
            self.squared + other.squared,
            self.within + other.within,
        )


def _unit(x: Array, y: Array) -> float:
    """A power of two near the largest change."""
    change, times = _differences(x, y)
    return scale_of(change) if times == 1.0 else max(scale_of(x), scale_of(y))


def _differences(x: Array, y: Array) -> tuple[Array, float]:
    """|x - y|, or a quarter of it where it would be too large for a number, and how many times that it is."""
    with np.errstate(over="ignore"):
        change = np.abs(x - y)
    if np.max(change, initial=0.0) < np.inf:
        return change, 1.0
    return np.abs(x / 4 - y / 4), 4.0
