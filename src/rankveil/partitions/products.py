"""Exact sums of products of whole numbers, however many there are: what correlations of ranks are made of.

The sum over n records of the product of two ranks grows as n^3 and leaves 64 bits beyond three million records. Here
each number is taken apart into digits of 16 bits (from -2^15 to 2^15), as floating-point numbers: products of two
digits are below 2^30, so sums of four million of them are exact in any order, and a linear algebra library can make
them. The sums of digits are put together as whole numbers of any length.

So the result does not depend on how records are cut into partitions, nor on the order in which those are added.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.partitions.loops import split_digits

Integers = NDArray[np.integer[Any]]
Exact = NDArray[np.object_]
"""Whole numbers of any length."""

_DIGIT = 16
_BASE = 2.0**_DIGIT
_AT_A_TIME = 8192
"""Records whose digits are made at a time."""

_EXACT = 2**22
"""Records whose products of digits add up to less than 2^53."""

_LARGEST = 2**53
"""Whole numbers up to this are floating-point numbers too."""


def cross_products(a: Integers, b: Integers | None = None, *, centre: int = 0) -> Exact:
    """The sum over the records of (a_i - centre) (b_j - centre), for each column i of a and each column j of b.

    Without b, that of the columns of a with each other.

    >>> cross_products(np.array([[1, 2], [3, 5]]), centre=3)
    array([[4, 2],
           [2, 5]], dtype=object)
    """
    if b is not None and len(a) != len(b):
        raise ValueError("products need as many records on both sides")
    a, b = np.asfortranarray(a), None if b is None else np.asfortranarray(b)
    count_a, count_b = _digits_needed(a, centre), 0 if b is None else _digits_needed(b, centre)
    columns = a.shape[1] if b is None else b.shape[1]
    total = _nothing(a.shape[1], columns)
    for start in range(0, len(a), _EXACT):
        stop = min(start + _EXACT, len(a))
        sums = np.zeros((count_a * a.shape[1], (count_b or count_a) * columns))
        for begin in range(start, stop, _AT_A_TIME):
            end = min(begin + _AT_A_TIME, stop)
            first = _digits(a, begin, end, centre, count_a)
            second = first if b is None else _digits(b, begin, end, centre, count_b)
            sums += first @ second.T
        total = total + _together(sums, count_a, count_b or count_a)
    return total


def paired_products(a: Integers, b: Integers, *, centre: int = 0) -> Exact:
    """The sum over the records of (a_i - centre) (b_i - centre), for each column i.

    >>> paired_products(np.array([[1, 2], [3, 5]]), np.array([[1, 0], [2, 4]]))
    array([7, 20], dtype=object)
    """
    found = [cross_products(a[:, j : j + 1], b[:, j : j + 1], centre=centre)[0, 0] for j in range(a.shape[1])]
    made = np.empty(len(found), dtype=object)
    made[:] = found
    return made


def _nothing(rows: int, columns: int) -> Exact:
    zeros = np.empty((rows, columns), dtype=object)
    zeros[:] = 0
    return zeros


def _digits_needed(a: Integers, centre: int) -> int:
    """How many digits the largest number has; a digit is at most 2^15, half of its base."""
    if a.size == 0:
        return 1
    largest = max(abs(int(a.max()) - centre), abs(int(a.min()) - centre))
    if largest > _LARGEST:
        raise ValueError("products of numbers above 2^53 are not exact")
    return max(1, -(-(largest.bit_length() + 1) // _DIGIT))


def _digits(a: Integers, start: int, stop: int, centre: int, count: int) -> NDArray[np.float64]:
    """The digits of each column of a few records, lowest first: column j has rows j, j + columns, and so on."""
    made = np.empty((count * a.shape[1], stop - start))
    split_digits(a, start, stop, float(centre), count, _BASE, made)
    return made


def _together(sums: NDArray[np.float64], digits_a: int, digits_b: int) -> Exact:
    """Sums of products of numbers from those of their digits."""
    rows, columns = sums.shape[0] // digits_a, sums.shape[1] // digits_b
    whole = sums.astype(np.int64).astype(object)
    total = _nothing(rows, columns)
    for p in range(digits_a):
        for q in range(digits_b):
            part = whole[p * rows : (p + 1) * rows, q * columns : (q + 1) * columns]
            total = total + part * (1 << (_DIGIT * (p + q)))
    return total
