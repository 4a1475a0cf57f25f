"""Sorting numbers by their bits: whole numbers that sort as the values do, put in order digit by digit.

The code of a value is its bits, turned so that codes compare as the values: 64-bit whole numbers, whatever the column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankveil.kernels import SMALL
from rankveil.kernels.sorting import codes_and_gaps, sort_places

Array = NDArray[np.float64]
Codes = NDArray[np.uint64]
Places = NDArray[np.uint32]

_SIGN = np.uint64(1 << 63)

_WORTH_LOADING = 20_000
"""Values from which sorting a column by its bits saves more than it takes to load the compiled loops."""

MOST = 2**32
"""Fewer codes than this are sorted at a time."""


def codes_of(values: Array, *, out: Codes | None = None) -> Codes:
    """Whole numbers in the order of the values; 0 and -0 are the same, and a missing value has none.

    >>> codes_of(np.array([-1.0, -0.0, 0.0, 2.0])) - np.uint64(1 << 63)
    array([13839561654909534207,                    0,                    0,
            4611686018427387904], dtype=uint64)
    """
    values = np.ascontiguousarray(values, np.float64)
    codes = np.empty(values.size, np.uint64) if out is None else out
    if codes_and_gaps(values, values.view(np.uint64), codes):
        raise ValueError("a missing value has no place in an order")
    return codes


def values_of(codes: Codes) -> Array:
    """The values that have these codes.

    >>> values_of(codes_of(np.array([-1.5, 0.0, np.inf])))
    array([-1.5,  0. ,  inf])
    """
    positive = (codes.view(np.int64) >> 63).view(np.uint64)
    return np.asarray(codes ^ (~positive | _SIGN)).view(np.float64)


class Sorter:
    """Sorts up to `size` codes at a time, always in the same memory: fresh memory costs more time than the sort.

    What it returns is overwritten by its next sort.

    >>> ordered, places = Sorter(3)(np.array([30, 10, 20], np.uint64))
    >>> places
    array([1, 2, 0], dtype=uint32)
    """

    def __init__(self, size: int) -> None:
        if size >= MOST:
            raise ValueError("fewer than 2^32 codes are sorted at a time")
        self._codes, self._places = np.empty((4, size), np.uint64), np.empty(size, np.uint32)

    def __call__(self, codes: Codes) -> tuple[Codes, Places]:
        """The codes in order and the place where each one stood, equal codes in the order of their places."""
        ordered, words, spare = self._codes[:3, : codes.size]
        places = self._places[: codes.size]
        if codes.size < SMALL:  # for which nothing is compiled
            places[:] = np.argsort(codes, kind="stable")
            ordered[:] = codes[places]
        else:
            sort_places(codes, ordered, places, words, spare)
        return ordered, places

    def values(self, values: Array) -> tuple[Codes, Places]:
        """The codes of values in order, and the places of these."""
        return self(codes_of(values, out=self._codes[3, : values.size]))

    def gathered(self, pieces: Sequence[Codes]) -> tuple[Codes, Places]:
        """The codes of some pieces in order, and their places when the pieces stand one after the other."""
        joined = self._codes[3, : sum(piece.size for piece in pieces)]
        return self(np.concatenate(pieces, out=joined) if pieces else joined)


def order_of(x: Array | Codes) -> NDArray[np.intp]:
    """The places of values, or of codes, from the smallest to the largest, missing values last; ties in any order.

    >>> order_of(np.array([30.0, 10.0, 20.0]))
    array([1, 2, 0])
    """
    found = quickly(x)
    return np.argsort(x) if found is None else found[1].astype(np.intp)


def in_order(x: Array) -> Array:
    """The values from the smallest to the largest, missing ones last.

    >>> in_order(np.array([30.0, 10.0, 20.0]))
    array([10., 20., 30.])
    """
    found = quickly(x)
    return np.sort(x) if found is None else x[found[1]]


def quickly(x: Array | Codes) -> tuple[Codes, Places] | None:
    """The codes of values (or codes) in order, and the places of these; None where numpy's sort is as good.

    That is for few of them, and where some are missing.
    """
    if not _WORTH_LOADING <= x.size < MOST:
        return None
    if x.dtype == np.uint64:
        return Sorter(x.size)(np.ascontiguousarray(x, np.uint64))
    values, codes = np.ascontiguousarray(x, np.float64), np.empty(x.size, np.uint64)
    if codes_and_gaps(values, values.view(np.uint64), codes):
        return None
    return Sorter(x.size)(codes)
