"""Exact sums of products of whole numbers, however many there are: what correlations of ranks are made of.

The sum over n records of the product of two ranks grows as n^3 and leaves 64 bits beyond three million records. Sums of
products are made as floating-point numbers by a linear algebra library, so few at a time that they stay below 2^53 and
are exact in any order, and added as whole numbers. Where that would be too few, each number is taken apart into digits
of 16 bits (from -2^15 to 2^15) first, and the sums for the digits are put together as whole numbers of any length.

So the result does not depend on how records are cut into partitions, nor on the order in which those are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.execute import in_threads
from rankveil.kernels import SMALL
from rankveil.kernels.summing import split_digits

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Whole = NDArray[np.integer[Any]] | Array
"""Whole numbers, or halves of such."""
Exact = NDArray[np.object_]
"""Whole numbers of any length."""

_DIGIT = 16
_BASE = 2.0**_DIGIT

_LARGEST = 2**53
"""Whole numbers up to this are floating-point numbers too."""

_LEAST = 128
"""Records whose products are added at a time; where fewer would be exact, numbers are taken apart."""

_AT_A_TIME = 8192
"""Records whose digits are made at a time."""

_PART = 65_536
"""Records of one task; sums over them are below 2^63."""

_PRODUCTS = 2**18
"""Products that the linear algebra library is asked for at a time: they stay in the cache, and are too few for it to
start threads of its own, which would wait for each other beside ours."""


@dataclass(frozen=True, eq=False)
class _Factor:
    """One side of the products: times * values - centre, in so many digits."""

    values: Whole
    times: int
    centre: int
    reach: int
    rows: Rows | None = None

    def taken(self, some: slice, count: int) -> Array:
        """The digits of some records, lowest first: column j has rows j, j + columns, and so on."""
        values = self.values[some] if self.rows is None else self.values.take(self.rows[some], axis=0)
        if count == 1 and self.times == 1 and self.centre == 0:
            return np.asarray(values, np.float64).T
        if count == 1:
            centred = np.multiply(values, float(self.times), dtype=np.float64)
            centred -= self.centre
            return centred.T
        made = np.empty((count * values.shape[1], len(values)))
        split = split_digits.plain if len(self.values) < SMALL else split_digits.compiled
        split(np.asfortranarray(values), float(self.times), float(self.centre), count, _BASE, made)
        return made


def cross_products(
    a: Whole,
    b: Whole | None = None,
    *,
    times: int = 1,
    centre: int = 0,
    rows: Rows | None = None,
    reach: int | None = None,
) -> Exact:
    """The sum over the records of (times a_i - centre) (times b_j - centre), for each column i of a and each j of b.

    Without b, that of the columns of a with each other. With `rows`, record k of a stands beside record rows[k] of b.
    `reach` is what no factor exceeds, if that is known.

    >>> cross_products(np.array([[1, 2], [3, 5]]), centre=3)
    array([[4, 2],
           [2, 5]], dtype=object)
    """
    first = _Factor(a, times, centre, _reach(a, times, centre) if reach is None else reach)
    second = first
    if b is not None:
        second = _Factor(b, times, centre, _reach(b, times, centre) if reach is None else reach, rows)
    if len(a) != (len(second.values) if rows is None else len(rows)):
        raise ValueError("products need as many records on both sides")
    counts, at_a_time = _digits_needed(first.reach, second.reach)

    def add(start: int) -> NDArray[np.int64]:
        stop = min(start + _PART, len(a))
        total = np.zeros((counts[0] * a.shape[1], counts[1] * second.values.shape[1]), np.int64)
        for begin in range(start, stop, at_a_time):
            some = slice(begin, min(begin + at_a_time, stop))
            left = first.taken(some, counts[0])
            right = left if second is first else second.taken(some, counts[1])
            total += _multiplied(left, right).astype(np.int64)
        return total

    parts = in_threads(add, range(0, len(a), _PART), size=a.size)
    return _together(parts, (a.shape[1], second.values.shape[1]), counts)


def _multiplied(left: Array, right: Array) -> Array:
    """The sums of products of the rows of two matrices."""
    step = max(_PRODUCTS // max(len(left) * len(right), 1), 1)
    sums = np.zeros((len(left), len(right)))
    for begin in range(0, left.shape[1], step):
        some = slice(begin, begin + step)
        sums += left[:, some] @ right[:, some].T
    return sums


def paired_products(a: Whole, b: Whole, *, times: int = 1, centre: int = 0, reach: int | None = None) -> Exact:
    """The sum over the records of (times a_i - centre) (times b_i - centre), for each column i.

    >>> paired_products(np.array([[1, 2], [3, 5]]), np.array([[1, 0], [2, 4]]))
    array([7, 20], dtype=object)
    """
    made = np.empty(a.shape[1], dtype=object)
    for j in range(a.shape[1]):
        one, other = a[:, j : j + 1], b[:, j : j + 1]
        made[j] = cross_products(one, other, times=times, centre=centre, reach=reach)[0, 0]
    return made


def _reach(a: Whole, times: int, centre: int) -> int:
    """The largest magnitude of times a - centre."""
    if a.size == 0:
        return 0
    largest = max(abs(int(times * a.max()) - centre), abs(int(times * a.min()) - centre))
    if largest > _LARGEST:
        raise ValueError("products of numbers above 2^53 are not exact")
    return largest


def _digits_needed(a: int, b: int) -> tuple[tuple[int, int], int]:
    """How many digits numbers up to a and up to b are taken apart into, and how many products are exact in a sum."""
    at_a_time = _LARGEST // max(a * b, 1)
    if at_a_time >= _LEAST:
        return (1, 1), min(at_a_time, _AT_A_TIME)
    # a digit is at most 2^15, half of its base
    first, second = (max(2, -(-(each.bit_length() + 1) // _DIGIT)) for each in (a, b))
    return (first, second), _AT_A_TIME


def _together(parts: list[NDArray[np.int64]], shape: tuple[int, int], counts: tuple[int, int]) -> Exact:
    """Sums of products of numbers from those of their digits over parts of the records."""
    total = np.empty(shape, dtype=object)
    total[:] = 0
    for part in parts:
        whole = part.astype(object)
        for p in range(counts[0]):
            for q in range(counts[1]):
                digits = whole[p * shape[0] : (p + 1) * shape[0], q * shape[1] : (q + 1) * shape[1]]
                total = total + digits * (1 << (_DIGIT * (p + q)))
    return total
