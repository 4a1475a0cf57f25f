"""The density of a column at its quantiles, by which the loss of a quantile is judged."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rankveil.catalogue import Array
from rankveil.moments import average, counted, effective_size, quantiles, scale_of, standard_deviation

ROUNDING = 4 * float(np.finfo(np.float64).eps)
"""Sums of a million values are off by a few units in the last place, and so is what a masking method computes."""

SHARES = np.arange(1, 20) / 20
"""The quantiles from 5 % to 95 %."""


class Ordered(NamedTuple):
    """A column in order, and the weights of its records if they have some."""

    column: Array
    weight: Array | None

    @classmethod
    def of(cls, column: Array, weight: Array | None) -> Ordered:
        """Without records of no weight."""
        return cls(*counted(column, weight))

    @property
    def size(self) -> float:
        """How many records it has, or as how many it counts."""
        return effective_size(self.column, self.weight)

    def quantiles(self) -> Array:
        """Those from 5 % to 95 %."""
        return quantiles(self.column, SHARES, self.weight)


class Extent:
    """A sorted original column in units in which it goes from 0 to 1."""

    def __init__(self, column: Array) -> None:
        self.scale = scale_of(column[[0, -1]])  # the difference of two numbers near the largest would overflow
        self.start = column[:1]
        self.low = column[0] / self.scale
        self.width = float(column[-1] / self.scale - self.low)
        self.flat = self.width <= ROUNDING * float(np.max(np.abs(column[[0, -1]]))) / self.scale

    def length(self, start: Array, end: Array) -> Array:
        """From start to end, infinite where that is too far to be written."""
        with np.errstate(over="ignore"):
            found: Array = (end / self.scale - start / self.scale) / self.width
        return found

    def at(self, position: Array) -> Array:
        """The values at positions, infinite where they would be too large."""
        with np.errstate(over="ignore"):
            found: Array = (self.low + position * self.width) * self.scale
        return found


Estimate = Callable[[Ordered, Extent, Array], tuple[Array, float]]


def simple_density(x: Ordered, within: Extent, points: Array) -> tuple[Array, float]:
    """Share of records within a thousandth of the range, by the interval's width; and that of one record."""
    near = 1 / 1000
    position = within.length(within.start, points)
    # the point itself is inside, even where a thousandth of the range is too little to be added to it
    with np.errstate(over="ignore"):
        above = np.maximum(within.at(position + near), np.nextafter(points, np.inf))
        below = np.minimum(within.at(position - near), np.nextafter(points, -np.inf))
    last, first = np.searchsorted(x.column, above, side="left"), np.searchsorted(x.column, below, side="right")
    one = 1 / (2 * near * x.size)
    if x.weight is None:
        return one * (last - first).astype(np.float64), one
    upto = np.concatenate(([0.0], np.cumsum(x.weight)))
    return (upto[last] - upto[first]) / upto[-1] / (2 * near), one


def kernel_density(x: Ordered, within: Extent, points: Array) -> tuple[Array, float]:
    """The normal kernel estimate of the density; and what a record adds to it at its own place."""
    z = within.length(within.start, x.column)
    quartiles = quantiles(z, SHARES, x.weight)[[4, 14]]
    middle = float(quartiles[1] - quartiles[0]) / 1.34
    spread = float(np.std(z)) if x.weight is None else standard_deviation(z, x.weight)
    width = 0.9 * (min(spread, middle) if middle > ROUNDING else spread) * x.size**-0.2
    one = 1 / (x.size * width * math.sqrt(2 * math.pi))
    at = within.length(within.start, points)
    density = np.empty(len(points))
    for i, point in enumerate(at):
        heights = np.exp(-0.5 * ((z - point) / width) ** 2)
        density[i] = one * (np.sum(heights) if x.weight is None else x.size * average(heights, x.weight))
    return density, one
