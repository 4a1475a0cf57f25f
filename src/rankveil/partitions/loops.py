"""The compiled loops of this room: arrays in, arrays out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankveil.kernels import kernel

Array = NDArray[np.float64]


@kernel
def sums(x: Array, unit: float) -> tuple[float, float]:
    """The sum of x / unit as a number and what rounding took from it (two sums of Knuth)."""
    total, rest = 0.0, 0.0
    for i in range(x.size):
        value = x[i] / unit
        more = total + value
        part = more - total
        rest += (total - (more - part)) + (value - part)
        total = more
    both = total + rest
    return both, rest - (both - total)


@kernel
def central_sums(x: Array, unit: float, mean: float, rest: float) -> tuple[float, float, float]:
    """The sums of the second, third and fourth power of x / unit - mean - rest, as short sums that are then added."""
    second, third, fourth = 0.0, 0.0, 0.0
    for start in range(0, x.size, 256):
        two, three, four = 0.0, 0.0, 0.0
        for i in range(start, min(start + 256, x.size)):
            gap = x[i] / unit - mean - rest
            square = gap * gap
            two += square
            three += square * gap
            four += square * square
        second += two
        third += three
        fourth += four
    return second, third, fourth
