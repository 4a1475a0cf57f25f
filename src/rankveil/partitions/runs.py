"""Sorted runs: a column of one partition in order, as whole numbers that sort as its values do.

The code of a value is its bits, turned so that codes compare as the values: 64-bit whole numbers, whatever the column.
A run is two files, the codes in order and the row (within the partition) of each, equal codes in the order of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.partitions.loops import codes_and_gaps, sort_places
from rankveil.partitions.scratch import Scratch
from rankveil.seeds import Stream

Array = NDArray[np.float64]
Codes = NDArray[np.uint64]
Places = NDArray[np.uint32]

_SIGN = np.uint64(1 << 63)

_FEW = 5_000
"""Codes below which numpy's sort is as good as our own, which would not be compiled for them."""


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
        if size >= 2**32:
            raise ValueError("fewer than 2^32 codes are sorted at a time")
        self._codes, self._places = np.empty((4, size), np.uint64), np.empty(size, np.uint32)

    def __call__(self, codes: Codes) -> tuple[Codes, Places]:
        """The codes in order and the place where each one stood, equal codes in the order of their places."""
        ordered, words, spare = self._codes[:3, : codes.size]
        places = self._places[: codes.size]
        if codes.size < _FEW:
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


def code_file(column: str, partition: int) -> str:
    """The codes of a run, in order."""
    return f"codes-{column}-{partition}"


def row_file(column: str, partition: int) -> str:
    """The rows of a run's codes."""
    return f"rows-{column}-{partition}"


def sample_file(column: str, partition: int) -> str:
    """Each so many-th of a run's codes."""
    return f"sample-{column}-{partition}"


def draw_file(column: str, partition: int) -> str:
    """The draws that settle the ties of a run."""
    return f"draws-{column}-{partition}"


def write_run(scratch: Scratch, column: str, partition: int, values: Array, *, every: int, sort: Sorter) -> None:
    """Sort a column of a partition and keep it as a run, and each `every`-th of its codes as a sample."""
    ordered, rows = sort.values(values)
    scratch.put(code_file(column, partition), ordered)
    scratch.put(row_file(column, partition), rows)
    scratch.put(sample_file(column, partition), ordered[every - 1 :: every])


def settle_run(scratch: Scratch, column: str, partition: int, *, ties: Stream) -> None:
    """Put equal values of a run in the order of their draws, and keep the draws beside them.

    `ties` is the column's stream at the partition's first row, so that a row has the same draw in any partitioning.
    """
    ordered: Codes = scratch.take(code_file(column, partition), np.uint64)
    rows: Places = scratch.take(row_file(column, partition), np.uint32)
    by_row = ties.bits(rows.size)
    order = settled(_group_numbers(ordered), by_row[rows], then=rows, sort=Sorter(rows.size))
    scratch.put(row_file(column, partition), rows[order])
    scratch.put(draw_file(column, partition), by_row[rows[order]])


def settled(groups: NDArray[np.unsignedinteger], draws: Codes, *, then: NDArray[Any], sort: Sorter) -> Places:
    """Places by group, then by draw, then by `then`.

    One sort of a single word: the group in its upper bits, the draw's upper bits below. Two draws of a group that agree
    in those bits are so rare that everything is then sorted again the slow way.
    """
    width = int(groups.max(initial=0)).bit_length()
    word = draws if width == 0 else (groups.astype(np.uint64) << np.uint64(64 - width)) | (draws >> np.uint64(width))
    ordered, places = sort(word)
    if np.any(ordered[1:] == ordered[:-1]):
        return np.lexsort((then, draws, groups)).astype(np.uint32)
    return places


def _group_numbers(ordered: Codes) -> Places:
    """0 for the smallest codes, 1 for the next larger ones, and so on."""
    numbers = np.zeros(ordered.size, np.uint32)
    np.cumsum(ordered[1:] != ordered[:-1], out=numbers[1:])
    return numbers
