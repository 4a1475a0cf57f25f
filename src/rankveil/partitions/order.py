"""The order of all values of a column, ties by their draws: blocks of neighbouring values, each sorted by itself.

Unlike the ranks that measures need (`ranking`), which are found by value alone, an order has no ties: two keys that
agree in their values differ in their draws, so that blocks are of about the same size whatever the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankveil.partitions.exchange import Answered, answer_file
from rankveil.partitions.scratch import Scratch
from rankveil.ranks import strict_order
from rankveil.sorting import codes_of, values_of

Array = NDArray[np.float64]
Words = NDArray[np.uint64]
Places = NDArray[np.int64]

_EVERY = 487
"""Rows from one sampled key to the next, where there are many; what repeats in a table seldom does so by a prime."""

_LEAST = 64
"""Keys of a partition that are sampled at least."""


@dataclass(frozen=True, eq=False)
class Keys:
    """What records are put in order by: a value, then a draw."""

    codes: Words
    draws: Words

    @classmethod
    def of(cls, values: Array, draws: Words) -> Self:
        """Keys of values with draws."""
        return cls(codes_of(values), draws)

    def order(self) -> Places:
        """From the smallest key to the largest, equal keys as they stand."""
        return strict_order(self.codes, ties=self.draws)

    def taken(self, places: Any) -> Keys:
        """Some of them."""
        return Keys(self.codes[places], self.draws[places])


@dataclass(frozen=True, eq=False)
class Sample:
    """Some keys of a part, from rows at equal distances, and how many keys there are; parts are merged."""

    count: int
    keys: Keys

    @classmethod
    def of(cls, keys: Keys) -> Self:
        """That of some records."""
        count = keys.codes.size
        return cls(count, keys.taken(slice(None, None, max(1, min(_EVERY, count // _LEAST)))))

    def merged(self, other: Sample) -> Sample:
        """That of both parts together."""
        both = ((self.keys.codes, other.keys.codes), (self.keys.draws, other.keys.draws))
        return Sample(self.count + other.count, Keys(*(np.concatenate(each) for each in both)))

    def splitters(self, *, size: int) -> Keys:
        """Keys between which about `size` records lie."""
        blocks = max(1, -(-self.count // size))
        sampled = self.keys.codes.size
        places = [k * sampled // blocks for k in range(1, blocks)] if sampled else []
        return self.keys.taken(self.keys.order()[places])


def block_of(keys: Keys, splitters: Keys) -> Places:
    """The number of the block that each key lies in."""
    found = np.zeros(keys.codes.size, np.int64)
    for code, draw in zip(splitters.codes, splitters.draws, strict=True):
        found += (keys.codes > code) | ((keys.codes == code) & (keys.draws >= draw))
    return found


@dataclass(frozen=True)
class Edges:
    """The ends of a sorted block: its first and last code, and how many records have each."""

    count: int
    first: int = 0
    last: int = 0
    of_first: int = 0
    of_last: int = 0


def sort_block(scratch: Scratch, key: str, block: int) -> Any:
    """The work of a block: see `sorted_block`."""
    return partial(sorted_block, scratch, key, block)


def sorted_block(scratch: Scratch, key: str, block: int, columns: Sequence[Array]) -> tuple[list[Array], Edges]:
    """Sort a block, and keep what it carries in order; each record's place in the block goes back to it.

    The columns are codes, draws and what is carried, all as bits.
    """
    codes, draws = (np.ascontiguousarray(each).view(np.uint64) for each in columns[:2])
    order = Keys(codes, draws).order()
    scratch.put(ordered_file(key, block), values_of(codes[order]) if len(columns) < 3 else columns[2][order])
    places = np.empty(codes.size)
    places[order] = np.arange(codes.size)
    if codes.size == 0:
        return [places], Edges(0)
    first, last = codes[order[0]], codes[order[-1]]
    of_first, of_last = (int(np.count_nonzero(codes == end)) for end in (first, last))
    return [places], Edges(codes.size, int(first), int(last), of_first, of_last)


def ordered_file(key: str, block: int) -> str:
    """The values of a block, or what they carry, in order."""
    return f"ordered-{key}-{block}"


@dataclass(frozen=True, eq=False)
class Ordered:
    """All values of a column in order, in the files of its blocks."""

    scratch: Scratch
    key: str
    starts: Places

    def between(self, start: int, stop: int) -> Array:
        """Those from one place to before another."""
        found = np.empty(max(stop - start, 0))
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        at = start
        while at < stop:
            end = min(stop, int(self.starts[first + 1]))
            if at < end:
                piece = found[at - start : end - start]
                self.scratch.take_into(ordered_file(self.key, first), piece, start=at - int(self.starts[first]))
            at, first = end, first + 1
        return found


@dataclass(frozen=True, eq=False)
class Bring:
    """What is to be brought to the records of an order by their places."""

    key: str
    fresh: str
    known: Answered
    make: Callable[[int, int], Array]


def again(scratch: Scratch, wanted: Sequence[Bring], item: tuple[int, int]) -> None:
    """A task: bring what is made of the places of a block to the records that have them."""
    which, block = item
    key, fresh, known, make = (getattr(wanted[which], name) for name in ("key", "fresh", "known", "make"))
    start, stop = (int(end) for end in known.starts[block : block + 2])
    places = scratch.take(answer_file(key, block), np.float64).astype(np.int64)
    scratch.put(answer_file(fresh, block), make(start, stop)[places])


def swapped_between(ordered: Ordered, scratch: Scratch, partner: str, start: int, stop: int) -> Array:
    """The values at the partners' places."""
    wanted = scratch.take(partner, np.int64, start=start, stop=stop)
    if wanted.size == 0:
        return np.empty(0)
    low = int(wanted.min())
    found: Array = ordered.between(low, int(wanted.max()) + 1)[wanted - low]
    return found


def average_between(ordered: Ordered, edges: Sequence[Edges], start: int, stop: int) -> Array:
    """The average ranks of the values from one place to before another; ties may reach into other blocks."""
    values = ordered.between(start, stop)
    if values.size == 0:
        return values
    cuts = np.flatnonzero(values[1:] != values[:-1]) + 1
    begins, ends = np.concatenate(([0], cuts)) + start, np.concatenate((cuts, [values.size])) + start
    lengths = ends - begins
    begins[0] -= _reaching(edges, ordered.starts, start, back=True)
    ends[-1] += _reaching(edges, ordered.starts, stop, back=False)
    found: Array = np.repeat((begins + ends + 1) / 2, lengths)
    return found


def _reaching(edges: Sequence[Edges], starts: Places, at: int, *, back: bool) -> int:
    """How many records before (or behind) the end of a block have the same value as the one at that end."""
    step = -1 if back else 1
    block = int(np.searchsorted(starts, at, side="right" if back else "left")) - 1  # blocks may be empty
    value = edges[block].first if back else edges[block].last
    found = 0
    k = block + step
    while 0 <= k < len(edges):
        other = edges[k]
        if other.count:
            if (other.last if back else other.first) != value:
                break
            found += other.of_last if back else other.of_first
            if other.first != other.last:
                break
        k += step
    return found
