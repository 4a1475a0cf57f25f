"""How far the values of an attribute changed: a mergeable summary of x and y side by side.

It serves the losses of values (`il1`, `il1s`, `loss_values_mse`, ...) and interval disclosure by standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankveil.partitions.loops import change_sums
from rankveil.partitions.movements import WIDEST

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Changes:
    """The changes of an attribute over some records."""

    unit: float
    """Differences are in units of this, a power of two near the largest magnitude of both columns."""
    count: int
    there: int
    """How many original values are not 0."""
    variation: float
    """The sum of |x - y| / |x| over these."""
    absolute: float
    """The sum of |x - y|."""
    squared: float
    """The sum of (x - y)^2."""
    within: NDArray[np.int64]
    """How many are first caught by an interval of 1, 2, ... percent of the standard deviation, and by none."""

    @classmethod
    def of(cls, x: Array, y: Array, *, spread: float, unit: float) -> Self:
        """Those of some records; `spread` is the original's standard deviation over all."""
        there, variation, absolute, squared, within = change_sums(x, y, unit, spread / unit, WIDEST)
        return cls(unit, x.size, there, variation, absolute, squared, within)

    def merged(self, other: Changes) -> Changes:
        """Those of both parts together."""
        if self.unit != other.unit:
            raise ValueError("both parts must be in the same unit")
        return Changes(
            self.unit,
            self.count + other.count,
            self.there + other.there,
            self.variation + other.variation,
            self.absolute + other.absolute,
            self.squared + other.squared,
            self.within + other.within,
        )
