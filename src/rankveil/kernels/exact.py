"""Sums without rounding: every number is added to a row of whole numbers that together hold it exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankveil.kernels import kernel

LIMBS = 68
"""Whole numbers of 32 bits, from 2^-1074, the least positive number, to beyond the largest."""


@kernel
def add_exactly(bits: NDArray[np.uint64], limbs: NDArray[np.int64]) -> None:
    """Add the numbers that have these bits to limbs of 32 bits each, the lowest first, fewer than 2^30 at a time.

    A number is its 53 bits, moved by its exponent: that touches three limbs. What is more than a limb's own 32 bits is
    carried at the end.
    """
    low, one = np.uint64(0xFFFFFFFF), np.uint64(1)
    fraction = np.uint64((1 << 52) - 1)
    half = np.uint64(32)
    for i in range(bits.size):
        word = bits[i]
        exponent = np.int64((word >> np.uint64(52)) & np.uint64(2047))
        digits = word & fraction
        if exponent > 0:
            digits |= one << np.uint64(52)
            exponent -= 1
        limb, moved = exponent >> 5, np.uint64(exponent & 31)
        below, above = (digits & low) << moved, (digits >> half) << moved
        first, second, third = np.int64(below & low), np.int64((below >> half) + (above & low)), np.int64(above >> half)
        if word >> np.uint64(63):
            first, second, third = -first, -second, -third
        limbs[limb] += first
        limbs[limb + 1] += second
        limbs[limb + 2] += third
    for k in range(limbs.size - 1):
        carry = limbs[k] >> 32
        limbs[k] -= carry << 32
        limbs[k + 1] += carry
