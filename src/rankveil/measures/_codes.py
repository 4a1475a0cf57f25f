"""What measures of categories share: whole numbers for categories and for their combinations, and how often each is.

Sums of integer counts are exact, so that neither the order of records nor that of columns shows in a result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array
from rankveil.errors import NotApplicableError
from rankveil.moments import effective_size

Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]

_SMALL = 2**16
_BINS = 2
_LARGEST = 2**61
"""Codes below it can be doubled and still be whole numbers."""


def fits(size: int, *, records: int) -> bool:
    """Whether every category that there could be is given a place in memory: that is fastest while they are few."""
    return size <= max(_SMALL, _BINS * records)


@dataclass(frozen=True, eq=False)
class Coded:
    """The categories of a column, or of several together, in both tables: whole numbers from 0 and below `size`."""

    x: Codes
    y: Codes
    size: int

    @property
    def few(self) -> bool:
        """Whether there is a place for each category."""
        return fits(self.size, records=self.x.size + self.y.size)

    @property
    def compact(self) -> Coded:
        """The same with numbers for those categories only that some record has."""
        if self.few:
            there = np.bincount(self.x, minlength=self.size) + np.bincount(self.y, minlength=self.size) > 0
            number = np.cumsum(there) - 1
            return Coded(number[self.x], number[self.y], int(number[-1]) + 1)
        found, number = np.unique(np.concatenate((self.x, self.y)), return_inverse=True)
        return Coded(number[: self.x.size], number[self.x.size :], found.size)


def coded(x: Array, y: Array) -> Coded:
    """A column of codes as whole numbers; values that are not whole, or too large, are numbered after the others.

    >>> coded(np.array([0.0, 2.0, 1.5]), np.array([1.5])).x
    array([0, 2, 3])
    """
    room = max(_SMALL, _BINS * (x.size + y.size))
    codes, others = [], []
    for side in (x, y):
        whole = (side >= 0) & (side < room) & (np.floor(side) == side)
        codes.append(np.where(whole, side, -1.0).astype(np.int64))
        others.append(side[~whole])
    size = 1 + max(int(part.max(initial=-1)) for part in codes)
    strangers = np.unique(np.concatenate(others))
    for part, left in zip(codes, others, strict=True):
        part[part < 0] = size + np.searchsorted(strangers, left)
    return Coded(codes[0], codes[1], size + strangers.size)


def joined(a: Coded, b: Coded) -> Coded:
    """The combinations of the categories of both."""
    if a.size * b.size >= _LARGEST:
        a, b = a.compact, b.compact
    return Coded(a.x * b.size + b.x, a.y * b.size + b.y, a.size * b.size)


@dataclass(frozen=True, eq=False)
class Tally:
    """How many records each row stands for, where those that are equal are one: unlike weights, it tells how many."""

    counts: Codes


Weight = Array | Tally | None


def positive(weight: Weight) -> Weight:
    """Weights in units of the largest, or an error when there is none above 0."""
    if weight is None or isinstance(weight, Tally):
        return weight
    largest = weight.max(initial=0.0)
    if not largest > 0:
        raise NotApplicableError("every record here has weight 0")
    return np.asarray(weight / largest)


def worth(records: int, weight: Weight) -> float:
    """The number of records, or as how many of equal weight the weighted ones are worth (Kish 1965)."""
    if isinstance(weight, Tally):
        return float(weight.counts.sum())
    return float(records) if weight is None else effective_size(weight, weight)


def shares(codes: Codes, size: int, weight: Weight = None) -> Array:
    """The share of each category."""
    if weight is None:
        return np.bincount(codes, minlength=size) / codes.size
    if isinstance(weight, Tally):
        return _tallied(codes, size, weight) / int(weight.counts.sum())
    total = np.bincount(codes, weights=weight, minlength=size)
    return np.asarray(total / total.sum(), dtype=np.float64)


def present(columns: Array) -> Flags | None:
    """Which records have all of some columns; None where all have."""
    there: Flags = np.asarray(~np.isnan(columns).any(axis=1))
    return None if there.all() else there


def in_all(there: Sequence[Flags | None]) -> Flags | None:
    """The records that have all of some columns; None where all have."""
    some = [each for each in there if each is not None]
    return np.asarray(np.logical_and.reduce(some)) if some else None


def weight_of(weight: Weight, there: Flags | None) -> Weight:
    """The weights of some records."""
    if there is None or weight is None:
        return weight
    return Tally(weight.counts[there]) if isinstance(weight, Tally) else weight[there]


@dataclass(frozen=True)
class Apart:
    """How far the shares of the categories in the one table are from those in the other."""

    distance: float
    """Total variation: half the sum of |share in X - share in Y|."""
    expected: float
    """What it would be, about, for two tables of independent draws from one distribution."""
    cells: int
    """Categories that some record has."""
    records: tuple[int, int] = (0, 0)
    """How many of each table have all the columns."""


def apart(codes: Coded, weight_x: Weight = None, weight_y: Weight = None) -> Apart:
    """The distance of the shares in both tables.

    >>> apart(coded(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0, 0.0, 2.0]))).distance
    0.5
    """
    n, m = codes.x.size, codes.y.size
    if isinstance(weight_x, Tally) and isinstance(weight_y, Tally):
        codes = codes if codes.few else codes.compact
        first, second = _tallied(codes.x, codes.size, weight_x), _tallied(codes.y, codes.size, weight_y)
        return _apart(first, second, int(weight_x.counts.sum()), int(weight_y.counts.sum()))
    if weight_x is None and weight_y is None:
        return _apart(*(_counts(codes) if codes.few else _sorted_counts(codes)), n, m)
    codes = codes if codes.few else codes.compact
    before, after = shares(codes.x, codes.size, weight_x), shares(codes.y, codes.size, weight_y)
    of_x, of_y = worth(n, weight_x), worth(m, weight_y)
    expected, cells = _by_chance((before * of_x + after * of_y) / (of_x + of_y), of_x, of_y)
    return Apart(min(float(np.abs(before - after).sum()) / 2, 1.0), expected, cells)


def _apart(first: Codes, second: Codes, n: int, m: int) -> Apart:
    """The distance of two tables of n and of m records that have so many of each category."""
    expected, cells = _by_chance((first + second) / (n + m), n, m)
    # |a / n - b / m| is |a m - b n| / (n m), and that sum has no rounding
    first *= m
    second *= n
    first -= second
    return Apart(int(np.abs(first, out=first).sum()) / (2 * n * m), expected, cells)


def _tallied(codes: Codes, size: int, tally: Tally) -> Codes:
    """How many records have each category; sums of whole numbers stay exact as floating-point ones up to 2^53."""
    return np.bincount(codes, weights=tally.counts, minlength=size).astype(np.int64)


def _counts(codes: Coded) -> tuple[Codes, Codes]:
    return np.bincount(codes.x, minlength=codes.size), np.bincount(codes.y, minlength=codes.size)


def _sorted_counts(codes: Coded) -> tuple[Codes, Codes]:
    """By the records in the order of their categories: there are too many for a place for each."""
    keys = np.concatenate((2 * codes.x, 2 * codes.y + 1))  # the last digit says which table
    keys.sort()
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] // 2 != keys[:-1] // 2)))
    second = np.add.reduceat(keys % 2, starts)
    return np.diff(starts, append=keys.size) - second, second


def _by_chance(pooled: Array, n: float, m: float) -> tuple[float, int]:
    """Half the sum of the mean |difference| of two shares, about normal with variance p (1 - p) (1 / n + 1 / m)."""
    p = pooled[pooled > 0]
    return min(float(np.sqrt(p * (1 - p)).sum()) * math.sqrt((1 / n + 1 / m) / (2 * math.pi)), 1.0), p.size
