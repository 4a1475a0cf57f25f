"""Blocks of similar records by k-d splits: a table too large to be grouped as a whole is grouped block by block.

The splits come from records at equal distances in the table, always the same whatever the parts that it lies in: of the
block with the most of them, the widest coordinate is cut at its median.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankveil.rows import Rows

Array = NDArray[np.float64]
Places = NDArray[np.int64]

SAMPLED = 50_000
"""Records that the splits are computed from, at most."""


@dataclass(frozen=True)
class Split:
    """Records of a block whose coordinate is above a value go to a new block."""

    block: int
    coordinate: int
    value: float


@dataclass(frozen=True)
class Splits:
    """Splits one after the other: the one at place i makes block i + 1."""

    made: tuple[Split, ...]

    @classmethod
    def of(cls, points: Array, *, blocks: int) -> Self:
        """So many blocks of about as many points each, or fewer where points are the same."""
        block = np.zeros(len(points), np.int64)
        sizes, made, whole = {0: len(points)}, list[Split](), set[int]()
        while len(made) + 1 < blocks and len(whole) < len(sizes):
            largest = max((each for each in sizes if each not in whole), key=lambda each: (sizes[each], -each))
            inside = np.flatnonzero(block == largest)
            split = _split(points[inside], largest)
            if split is None:
                whole.add(largest)
                continue
            made.append(split)
            moved = inside[points[inside, split.coordinate] > split.value]
            block[moved] = len(made)
            sizes[largest], sizes[len(made)] = inside.size - moved.size, moved.size
        return cls(tuple(made))

    def block_of(self, points: Array) -> Places:
        """The block of each point."""
        found = np.zeros(len(points), np.int64)
        for number, split in enumerate(self.made, start=1):
            found[(found == split.block) & (points[:, split.coordinate] > split.value)] = number
        return found

    def joined(self, counts: Places, *, least: int) -> Places:
        """For each block the one that it belongs to when those with fewer than `least` records join their neighbours.

        The last split is undone first, so that a block joins the one that it was cut from.
        """
        belongs, sizes = np.arange(len(self.made) + 1), counts.copy()
        for number in range(len(self.made), 0, -1):
            parent = self.made[number - 1].block
            if min(sizes[number], sizes[parent]) < least:
                belongs[belongs == number] = parent
                sizes[parent] += sizes[number]
                sizes[number] = 0
        _, found = np.unique(belongs, return_inverse=True)
        return found


def _split(points: Array, block: int) -> Split | None:
    """The widest coordinate at its median; None where all points are the same."""
    if len(points) < 2 or points.shape[1] == 0:
        return None
    for coordinate in np.argsort(-np.ptp(points, axis=0), kind="stable").tolist():
        values = np.sort(points[:, coordinate])
        if values[0] == values[-1]:
            return None
        value = values[(values.size - 1) // 2]
        if value == values[-1]:  # more than half are the largest: the others on one side
            value = values[np.searchsorted(values, value) - 1]
        return Split(block, coordinate, float(value))
    return None


def blocks_of(points: Array, *, blocks: int, least: int, rows: Rows) -> tuple[Places, int]:
    """The block of each record, and how many blocks there are, each of at least so many records."""
    count = rows.count(len(points))
    sampled = np.unique(np.arange(min(SAMPLED, count)) * count // max(min(SAMPLED, count), 1))
    sample = np.column_stack([np.empty((sampled.size, 0)), *rows.sample(list(points.T), sampled)])
    splits = Splits.of(sample, blocks=blocks)
    block = splits.block_of(points)
    belongs = splits.joined(rows.tally(block, len(splits.made) + 1), least=least)
    return belongs[block], int(belongs.max()) + 1
