"""Sorted runs: a column of one partition in order, as whole numbers that sort as its values do (`rankveil.sorting`).

A run is two files, the codes in order and the row (within the partition) of each, equal codes in the order of rows.
No file is ever written again with other contents, so a task that was given up for lost may still end at any time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.partitions.scratch import Scratch
from rankveil.seeds import Stream
from rankveil.sorting import Array, Codes, Places, Sorter


def code_file(column: str, partition: int) -> str:
    """The codes of a run, in order."""
    return f"codes-{column}-{partition}"


def row_file(column: str, partition: int) -> str:
    """The rows of a run's codes."""
    return f"rows-{column}-{partition}"


def sample_file(column: str, partition: int) -> str:
    """Each so many-th of a run's codes."""
    return f"sample-{column}-{partition}"


def settled_file(column: str, partition: int) -> str:
    """The rows of a run's codes with ties in the order of their draws."""
    return f"settled-{column}-{partition}"


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
    """Keep the rows of a run with equal values in the order of their draws, and the draws beside them.

    `ties` is the column's stream at the partition's rows, so that a row has the same draw in any partitioning.
    """
    ordered: Codes = scratch.take(code_file(column, partition), np.uint64)
    rows: Places = scratch.take(row_file(column, partition), np.uint32)
    by_row = ties.bits(rows.size)
    order = settled(_group_numbers(ordered), by_row[rows], then=rows, sort=Sorter(rows.size))
    scratch.put(settled_file(column, partition), rows[order])
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
