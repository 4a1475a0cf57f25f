"""Selections of records that several measures ask for, each made once; those that keep the same records are one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from rankveil.partitions.choosing import Base, Chosen, Lacking, choose, mark_gaps
from rankveil.partitions.parquet import Readable
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Each


class Selections:
    """The selections that were made of one base."""

    def __init__(self, base: Base, each: Each, scratch: Scratch) -> None:
        self.base = base
        self._each, self._scratch = each, scratch
        self._marked = False
        self._counts: dict[Lacking, tuple[int, ...]] = {frozenset(): tuple(_sizes(base.bounds))}
        self._names: dict[Lacking, str] = {}

    def make(self, wanted: Sequence[Lacking]) -> None:
        """Make some selections together."""
        new = [each for each in dict.fromkeys(wanted) if each not in self._counts]
        if new:
            self._make(new)

    def _make(self, new: Sequence[Lacking]) -> None:
        if not self._marked:
            self._each(partial(mark_gaps, self.base, self._scratch), self.base.partitions)
            self._marked = True
        names = {f"{self.base.tag}{len(self._names) + k}": lacking for k, lacking in enumerate(new)}
        parts = self._each(partial(choose, self.base, self._scratch, names), self.base.partitions)
        for name, lacking in names.items():
            self._counts[lacking] = tuple(part[name] for part in parts)
            self._names[lacking] = name

    def count(self, lacking: Lacking) -> int:
        """How many records a selection keeps."""
        self.make([lacking])
        return sum(self._counts[lacking])

    def same(self, lacking: Lacking) -> Lacking:
        """The first selection that keeps the same records."""
        count = self.count(lacking)
        for other, counts in self._counts.items():
            # of two that are nested, the one leaves out what the other does and as many
            if sum(counts) == count and (other <= lacking or lacking <= other):
                return other
        return lacking

    def records(self, side: str, lacking: Lacking) -> Readable:
        """The records of a table that a selection keeps; all of them when nothing is lacking."""
        source = self.base.sources[side]
        return self.chosen(side, lacking) if self.count(lacking) < len(source) else source

    def chosen(self, side: str, lacking: Lacking) -> Chosen:
        """The records that a selection keeps, with files that say which."""
        if lacking not in self._names:
            self._make([lacking])
        source = self.base.sources[side]
        return Chosen(source, self.base.bounds, self._counts[lacking], self._names[lacking], self._scratch)

    def parts(self, lacking: Lacking) -> tuple[int, ...]:
        """Where partitions of the kept records begin, none of them empty, and where the last one ends."""
        self.make([lacking])
        ends = [0]
        for count in self._counts[lacking]:
            if count:
                ends.append(ends[-1] + count)
        return tuple(ends)


def _sizes(bounds: Sequence[int]) -> list[int]:
    return [stop - start for start, stop in pairwise(bounds)]
