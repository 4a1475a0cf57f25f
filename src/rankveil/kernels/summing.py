"""Sums over the records of two columns: how far ranks and values moved, and the digits of exact products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.kernels import kernel

Array = NDArray[np.float64]


@kernel
def distances(
    ranks_x: NDArray[Any], ranks_y: NDArray[Any], times: float, records: float, widest: int
) -> tuple[Array, np.int64, NDArray[np.int64]]:
    """Distances of ranks, doubled by `times`, their sum, and how many are first caught by an interval of 1, 2, ...
    percent."""
    found = np.empty(ranks_x.size)
    within = np.zeros((4, widest + 1), np.int64)  # one of four in turn, so that no count waits for the one before
    total = np.int64(0)
    for i in range(ranks_x.size):
        gap = abs(times * ranks_x[i] - times * ranks_y[i])
        total += np.int64(gap)
        found[i] = gap
    for i in range(ranks_x.size):
        percent = np.ceil(found[i] / 2 * 100 / records)
        within[i & 3, np.int64(min(max(percent, 1.0), widest + 1.0)) - 1] += 1
    return found, total, within.sum(axis=0)


@kernel
def power_sums(values: Array, highest: int, unit: float, inverse: bool) -> Array:
    """The sums of the first, second, ... power of value / unit, or of unit / value, as short sums that are then added.

    Eight numbers at a time, as processors have it.
    """
    found = np.zeros(highest)
    lanes = np.zeros((highest, 8))
    share, power = np.empty(8), np.empty(8)
    whole = values.size // 8 * 8
    for start in range(0, whole, 8):
        for lane in range(8):
            share[lane] = unit / values[start + lane] if inverse else values[start + lane] / unit
            power[lane] = 1.0
        for k in range(highest):
            for lane in range(8):
                power[lane] *= share[lane]
                lanes[k, lane] += power[lane]
        if start % 2048 == 2040:
            for k in range(highest):
                for lane in range(8):
                    found[k] += lanes[k, lane]
                    lanes[k, lane] = 0.0
    for k in range(highest):
        for lane in range(8):
            found[k] += lanes[k, lane]
    for i in range(whole, values.size):
        last = 1.0
        for k in range(highest):
            last *= unit / values[i] if inverse else values[i] / unit
            found[k] += last
    return found


@kernel
def change_sums(
    x: Array, y: Array, unit: float, spread: float, widest: int
) -> tuple[int, float, float, float, NDArray[np.int64]]:
    """How many x are not 0, the sums of |1 - y / x| over these, of |x - y| and of (x - y)^2, and how many changes are
    first caught by an interval of 1, 2, ... percent of the spread; changes and the spread in the unit."""
    within = np.zeros((4, widest + 1), np.int64)
    there = 0
    variation, absolute, squared = 0.0, 0.0, 0.0
    for start in range(0, x.size, 256):
        one, two, three = 0.0, 0.0, 0.0
        for i in range(start, min(start + 256, x.size)):
            if x[i] != 0.0:
                there += 1
                one += abs(1.0 - y[i] / x[i])
            if abs(x[i]) < 1e307 and abs(y[i]) < 1e307:
                change = abs(x[i] - y[i]) / unit
            else:  # the difference may be too large for a number
                change = abs(x[i] / 4 - y[i] / 4) / (unit / 4)
            two += change
            three += change * change
            percent = change / spread * 100 if spread > 0.0 else (0.0 if change == 0.0 else np.inf)
            within[i & 3, np.int64(min(max(np.ceil(percent), 1.0), widest + 1.0)) - 1] += 1
        variation += one
        absolute += two
        squared += three
    return there, variation, absolute, squared, within.sum(axis=0)


@kernel
def split_digits(values: NDArray[Any], times: float, centre: float, count: int, base: float, digits: Array) -> None:
    """The digits of times * values - centre, lowest first: row k * columns + j has digit k of column j.

    Adding and subtracting 3 * 2^51 rounds to a whole number.
    """
    columns = values.shape[1]
    whole = 3.0 * 2.0**51
    for j in range(columns):
        for i in range(values.shape[0]):
            digits[j, i] = times * values[i, j] - centre
        for k in range(count - 1):
            for i in range(values.shape[0]):
                rest = digits[k * columns + j, i]
                above = (rest / base + whole) - whole
                digits[k * columns + j, i] = rest - above * base
                digits[(k + 1) * columns + j, i] = above
