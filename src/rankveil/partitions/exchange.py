"""Records of all partitions brought together in blocks, worked on there, and brought back to their rows.

Every partition leaves one file, its records sorted by block. A block's task takes its piece out of each, in the order
of the partitions, so that the records stand in the order of their rows; it leaves one file with as many records in the
same order, out of which each partition takes its own piece again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.partitions.scratch import Scratch
from rankveil.rows import Work

Array = NDArray[np.float64]
Places = NDArray[np.int64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Sent:
    """What a partition left for the blocks."""

    counts: Places
    """How many records it has in each block."""
    columns: int
    work: Callable[[int], Work]


@dataclass(frozen=True, eq=False)
class Answered:
    """What the blocks left for the partitions."""

    scratch: Scratch
    key: str
    """Under which it lies how many records each partition has in each block."""
    blocks: int
    columns: int
    told: tuple[Any, ...]
    """What else each block's work had to tell."""

    @property
    def counts(self) -> Counts:
        """How many records each partition (a row) has in each block: it stays in the scratch folder until asked for."""
        return self.scratch.take(_counted(self.key), np.int64).reshape(-1, self.blocks)

    @property
    def starts(self) -> Places:
        """How many records come before those of each block, and how many there are in all."""
        return np.concatenate(([0], np.cumsum(self.counts.sum(axis=0))))


def send(
    scratch: Scratch,
    key: str,
    partition: int,
    block: Places,
    columns: Sequence[Array],
    work: Callable[[int], Work],
    *,
    blocks: int,
) -> Sent:
    """Leave a partition's records for the blocks."""
    order = np.argsort(block, kind="stable")
    scratch.put(_sent(key, partition), np.concatenate([np.empty(0), *(column[order] for column in columns)]))
    return Sent(np.bincount(block, minlength=blocks), len(columns), work)


@dataclass(frozen=True, eq=False)
class Exchange:
    """What all partitions left for the blocks."""

    key: str
    counts: Counts
    columns: int
    work: Callable[[int], Work]


def answer(scratch: Scratch, exchanges: Sequence[Exchange], item: tuple[int, int]) -> Any:
    """A task: work on a block of one of the exchanges."""
    which, block = item
    exchange = exchanges[which]
    key, counts, columns, work = exchange.key, exchange.counts, exchange.columns, exchange.work
    before = np.cumsum(counts, axis=1) - counts
    own = counts[:, block]
    ends = np.concatenate(([0], np.cumsum(own)))
    found = [np.empty(int(ends[-1])) for _ in range(columns)]
    for p in np.flatnonzero(own).tolist():
        rows = int(counts[p].sum())
        for j, column in enumerate(found):
            piece = column[ends[p] : ends[p + 1]]
            scratch.take_into(_sent(key, p), piece, start=j * rows + int(before[p, block]))
    made, told = work(block)(found)
    scratch.put(answer_file(key, block), np.concatenate([np.empty(0), *made]))
    return len(made), told


def collect(key: str, known: Answered, partition: int, block: Places) -> list[Array]:
    """What the blocks made of a partition's records."""
    scratch = known.scratch
    order = np.argsort(block, kind="stable")
    counts = known.counts
    sizes, before = counts.sum(axis=0), counts[:partition].sum(axis=0)
    ends = np.concatenate(([0], np.cumsum(counts[partition])))
    sorted_by_block = np.empty((known.columns, block.size))
    for k in np.flatnonzero(counts[partition]).tolist():
        for j in range(known.columns):
            piece = sorted_by_block[j, ends[k] : ends[k + 1]]
            scratch.take_into(answer_file(key, k), piece, start=j * int(sizes[k]) + int(before[k]))
    found = np.empty_like(sorted_by_block)
    found[:, order] = sorted_by_block
    return list(found)


def brought_together(
    scratch: Scratch, each: Callable[..., list[Any]], sent: Mapping[str, Sequence[Sent]]
) -> dict[str, Answered]:
    """Let the blocks work on what the partitions sent, by the key of the exchange."""
    exchanges = [
        Exchange(key, np.stack([part.counts for part in parts]), parts[0].columns, parts[0].work)
        for key, parts in sent.items()
    ]
    items = [(which, k) for which, one in enumerate(exchanges) for k in range(one.counts.shape[1])]
    made = dict(zip(items, each(partial(answer, scratch, exchanges), items), strict=True))
    left = [_sent(one.key, p) for one in exchanges for p in range(len(one.counts))]
    each(partial(remove_files, scratch), [left])
    found = {}
    for which, one in enumerate(exchanges):
        scratch.put(_counted(one.key), one.counts.astype(np.int64))
        told = [made[which, k] for k in range(one.counts.shape[1])]
        found[one.key] = Answered(scratch, one.key, len(told), told[0][0], tuple(each[1] for each in told))
    return found


def remove_files(scratch: Scratch, names: Sequence[str]) -> None:
    """A task: files that nobody needs any more."""
    scratch.remove(*names)


def answer_file(key: str, block: int) -> str:
    """What a block made, column after column, records in the order of partitions."""
    return f"answer-{key}-{block}"


def _counted(key: str) -> str:
    return f"counted-{key}"


def _sent(key: str, partition: int) -> str:
    return f"sent-{key}-{partition}"
