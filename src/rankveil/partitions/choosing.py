"""Some records of a table: those that are complete in some columns, or were drawn, partition by partition.

Which records a selection keeps lies in the scratch folder, one bit for each, so that a selection can be read like a
table: its records are counted from 0, wherever their rows are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankveil.partitions.parquet import Array, Readable, Rows
from rankveil.partitions.scratch import Scratch

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Chosen:
    """The records of a table that a selection keeps."""

    source: Readable
    bounds: tuple[int, ...]
    """Where the partitions of the table begin, and where the last one ends."""
    counts: tuple[int, ...]
    """How many records of each are kept."""
    name: str
    scratch: Scratch

    @property
    def path(self) -> str:
        """Where the table lies."""
        return self.source.path

    def __len__(self) -> int:
        return sum(self.counts)

    @cached_property
    def starts(self) -> Rows:
        """How many kept records stand before each partition, and in all."""
        return np.concatenate(([0], np.cumsum(self.counts))).astype(np.int64)

    @property
    def parts(self) -> tuple[int, ...]:
        """Where partitions of the kept records begin, none of them empty, and where the last one ends."""
        return tuple(np.unique(self.starts).tolist())

    def read(self, columns: Sequence[str], start: int, stop: int) -> list[Array]:
        """The numbers of some columns in the kept records from start to before stop."""
        found: list[list[Array]] = [[] for _ in columns]
        for partition, kept in self._over(start, stop):
            values = self.source.read(columns, self.bounds[partition], self.bounds[partition + 1])
            for column, each in zip(found, values, strict=True):
                column.append(each[kept])
        return [each[0] if len(each) == 1 else np.concatenate([*each, np.empty(0)]) for each in found]

    def rows(self, start: int, stop: int) -> Rows:
        """The rows of the table that the kept records from start to before stop stand in."""
        parts = [
            self.source.rows(self.bounds[partition], self.bounds[partition + 1])[kept]
            for partition, kept in self._over(start, stop)
        ]
        return np.concatenate([*parts, np.empty(0, np.int64)])

    def _over(self, start: int, stop: int) -> Iterator[tuple[int, Rows]]:
        """The partitions that hold the kept records from start to before stop, and their places there."""
        for partition, before in enumerate(self.starts[:-1].tolist()):
            first, last = max(start - before, 0), min(stop - before, self.counts[partition])
            if first < last:
                yield partition, np.flatnonzero(self.kept(partition))[first:last]

    def kept(self, partition: int) -> Flags:
        """Which records of a partition are kept."""
        size = self.bounds[partition + 1] - self.bounds[partition]
        return take_flags(self.scratch, kept_file(self.name, partition), size)


def kept_file(name: str, partition: int) -> str:
    """Which records of a partition a selection keeps."""
    return f"kept-{name}-{partition}"


def put_flags(scratch: Scratch, name: str, flags: Flags) -> None:
    """Keep flags in a file, eight in a byte."""
    scratch.put(name, np.packbits(flags))


def take_flags(scratch: Scratch, name: str, size: int) -> Flags:
    """So many flags of a file."""
    return np.unpackbits(scratch.take(name, np.uint8), count=size).astype(np.bool_)


@dataclass(frozen=True)
class Base:
    """One table, or two row by row the same (x and y), whose partitions are looked through for missing values."""

    tag: str
    sources: Mapping[str, Readable]
    bounds: tuple[int, ...]
    gaps: Mapping[str, frozenset[str]]
    """The columns of each that have missing values somewhere."""

    @property
    def partitions(self) -> range:
        """Their numbers."""
        return range(len(self.bounds) - 1)

    def lacking(self, sides: str, columns: Collection[str]) -> Lacking:
        """What records must have to be complete in some columns of some sides, as far as any have it not."""
        return frozenset((side, name) for side in sides for name in columns if name in self.gaps[side])


Lacking = frozenset[tuple[str, str]]
"""Sides and columns in which values are missing: a selection leaves out the records that lack one of these."""


def mark_gaps(base: Base, scratch: Scratch, partition: int) -> None:
    """A task: write which values of a partition are missing."""
    for side, source in base.sources.items():
        names = sorted(base.gaps[side])
        if names:
            values = source.read(names, base.bounds[partition], base.bounds[partition + 1])
            put_flags(scratch, _gap_file(base, side, partition), np.isnan(np.stack(values)))


def choose(base: Base, scratch: Scratch, selections: Mapping[str, Lacking], partition: int) -> dict[str, int]:
    """A task: write which records of a partition each selection keeps; how many those are."""
    size = base.bounds[partition + 1] - base.bounds[partition]
    missing: dict[tuple[str, str], Flags] = {}
    for side in base.sources:
        names = sorted(base.gaps[side])
        if names:
            flags = take_flags(scratch, _gap_file(base, side, partition), size * len(names))
            missing |= {(side, name): row for name, row in zip(names, flags.reshape(len(names), size), strict=True)}
    counts = {}
    for name, lacking in selections.items():
        kept = np.ones(size, np.bool_)
        for which in lacking:
            kept &= ~missing[which]
        put_flags(scratch, kept_file(name, partition), kept)
        counts[name] = int(np.count_nonzero(kept))
    return counts


def _gap_file(base: Base, side: str, partition: int) -> str:
    return f"gaps-{base.tag}-{side}-{partition}"


@dataclass(frozen=True)
class Drawing:
    """Some of the records of a selection, given by their places among them, in order."""

    of: Chosen
    name: str
    rows: str
    """The file of the places."""


def draw_partition(drawing: Drawing, partition: int) -> int:
    """A task: write which records of a partition were drawn; how many."""
    chosen = drawing.of
    rows = chosen.scratch.take(drawing.rows, np.int64)
    first, last = np.searchsorted(rows, chosen.starts[partition : partition + 2])
    kept = np.flatnonzero(chosen.kept(partition))[rows[first:last] - chosen.starts[partition]]
    flags = np.zeros(chosen.bounds[partition + 1] - chosen.bounds[partition], np.bool_)
    flags[kept] = True
    put_flags(chosen.scratch, kept_file(drawing.name, partition), flags)
    return int(kept.size)
