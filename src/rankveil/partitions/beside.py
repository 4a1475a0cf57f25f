"""Records of two tables side by side that have the same place in the order of a column: what `cm3` is made of.

Both tables are sorted by that column, ties by the sum of the record's ranks and then by the ranks in the order of the
columns' names. Every partition sorts its records (a run, equal ones once with their number), samples of the runs cut
them into buckets, and each bucket is sorted by itself. Records that stand at the same places are then read together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rankveil.partitions.permuting import PERMUTED, permute, permuted_files
from rankveil.partitions.ranking import Ranks, kind_of_ranks
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Each, Job, ranks_at, remove_files
from rankveil.seeds import Stream
from rankveil.summaries.correlations import RankBasis
from rankveil.summaries.products import Exact, cross_products

Places = NDArray[np.int64]
T = TypeVar("T")

BUCKET = 2**18
"""Different records that a task sorts, and places that a task reads, at a time."""

_SAMPLES = 64
"""Records of a run that are sampled."""


@dataclass(eq=False)
class SideBySide:
    """The tables of a job, whose ranks lie in the scratch folder; takes the part of `ByPlace` for `cm3`."""

    job: Job
    each: Each
    tied: bool
    stream: Stream

    def __post_init__(self) -> None:
        names = self.job.names
        self._sequence = tuple(sorted(range(len(names)), key=lambda j: names[j]))

    def between(self, j: int) -> Exact:
        """Sums of products of centred doubled ranks, both tables sorted by column j."""
        return self._at(j, "y")

    def permuted(self) -> tuple[RankBasis, Callable[[int], Exact]]:
        """The masked table with each column permuted by itself, and the same sums for it."""
        products = permute(self.job, self.each, self.stream)
        return RankBasis.of(products, records=self.job.records), partial(self._at, side=PERMUTED)

    def close(self) -> None:
        """Leave the scratch folder without the permuted ranks."""
        self.each(partial(remove_files, self.job), [permuted_files(self.job)])

    def _at(self, j: int, side: str) -> Exact:
        """The sums with one of the tables that the original stands beside."""
        sort, tables = Sort(j, self._sequence), ("x", side)
        runs = [(of, p) for of in tables for p in self.job.partitions]
        samples = _by_table(runs, self.each(partial(sort_run, self.job, sort), runs))
        cuts = {of: self._cut(samples[of], sort) for of in tables}
        edges = _by_table(runs, self.each(partial(cut_run, self.job, sort, cuts), runs))
        buckets = [(of, b) for of in tables for b in range(len(cuts[of]) + 1)]
        counts = _by_table(buckets, self.each(partial(sort_bucket, self.job, sort, edges), buckets))
        starts = {of: np.concatenate(([0], np.cumsum(counts[of]))).astype(np.int64) for of in tables}
        parts = [(start, min(start + BUCKET, self.job.records)) for start in range(0, self.job.records, BUCKET)]
        found = self.each(partial(add_places, self.job, starts, side), parts)
        passing = [file for run in runs for file in _pieces(_run_file(*run))]
        passing += [file for bucket in buckets for file in _pieces(_bucket_file(*bucket))]
        self.each(partial(remove_files, self.job), [passing])
        return reduce(np.add, found)

    def _cut(self, samples: Sequence[Ranks], sort: Sort) -> Ranks:
        """Records that cut the runs into buckets of about the same number of different records."""
        every = np.concatenate(samples)
        every = every[sort.order(every)]
        count = -(-self.job.records // BUCKET)
        return every[[k * len(every) // count for k in range(1, count)]]


def _by_table(items: Sequence[tuple[str, int]], results: Sequence[T]) -> dict[str, list[T]]:
    """Results of tasks, table by table."""
    found: dict[str, list[T]] = {}
    for (side, _), result in zip(items, results, strict=True):
        found.setdefault(side, []).append(result)
    return found


@dataclass(frozen=True)
class Sort:
    """By a column, then by the sum of the ranks, then by the ranks in a sequence of columns."""

    column: int
    sequence: tuple[int, ...]

    def order(self, ranks: Ranks) -> NDArray[np.intp]:
        """The rows of a table of doubled ranks in order; those that are equal everywhere as they stand."""
        first = ranks[:, self.column]
        order = np.argsort(first, kind="stable")
        same = first[order][1:] == first[order][:-1]
        where = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False)) if order.size else order
        some = order[where]
        keys = [ranks[some, k] for k in reversed(self.sequence)]
        order[where] = some[np.lexsort((*keys, ranks[some].sum(axis=1, dtype=np.uint64), first[some]))]
        return order

    def key(self, row: Ranks) -> tuple[int, ...]:
        """What a record is compared by."""
        return (int(row[self.column]), int(row.sum(dtype=np.uint64)), *(int(row[k]) for k in self.sequence))


def sort_run(job: Job, sort: Sort, item: tuple[str, int]) -> Ranks:
    """A task: sort the records of a partition into a run, and return some of them."""
    side, partition = item
    ranks = ranks_at(job, side, partition)
    kept, counts = _once(ranks[sort.order(ranks)], np.ones(len(ranks), np.int64))
    _put(job.scratch, _run_file(side, partition), kept, counts)
    return kept[np.linspace(0, len(kept) - 1, min(_SAMPLES, len(kept))).astype(np.intp)]


def cut_run(job: Job, sort: Sort, cuts: dict[str, Ranks], item: tuple[str, int]) -> Places:
    """A task: where a run is cut into buckets."""
    side, partition = item
    run, counts = _take(job, _run_file(side, partition))
    ends = [bisect_left(range(len(run)), sort.key(cut), key=lambda i: sort.key(run[i])) for cut in cuts[side]]
    return np.array([0, *ends, len(counts)], np.int64)


def sort_bucket(job: Job, sort: Sort, edges: Mapping[str, Sequence[Places]], item: tuple[str, int]) -> int:
    """A task: sort what the runs have in a bucket; how many records that is."""
    side, bucket = item
    pieces = []
    for partition, cuts in enumerate(edges[side]):
        run, counts = _take(job, _run_file(side, partition), int(cuts[bucket]), int(cuts[bucket + 1]))
        pieces.append((run, counts))
    ranks, counts = (np.concatenate([piece[k] for piece in pieces]) for k in range(2))
    order = sort.order(ranks)
    kept, numbers = _once(ranks[order], counts[order])
    _put(job.scratch, _bucket_file(side, bucket), kept, numbers)
    return int(numbers.sum())


def add_places(job: Job, starts: dict[str, Places], side: str, item: tuple[int, int]) -> Exact:
    """A task: the sums of products over the records at some places."""
    start, stop = item
    x, y = (_between(job, of, starts[of], start, stop) for of in ("x", side))
    return cross_products(x, y, centre=job.records + 1, reach=job.records)


def _between(job: Job, side: str, starts: Places, start: int, stop: int) -> Ranks:
    """The records from one place to before another."""
    found = []
    for bucket in range(len(starts) - 1):
        begin, end = max(start, int(starts[bucket])), min(stop, int(starts[bucket + 1]))
        if begin < end:
            ranks, counts = _take(job, _bucket_file(side, bucket))
            ends = np.cumsum(counts) + int(starts[bucket])
            some = np.clip(ends, begin, end) - np.clip(ends - counts, begin, end)
            found.append(np.repeat(ranks, some, axis=0))
    return np.concatenate(found)


def _once(ranks: Ranks, counts: Places) -> tuple[Ranks, Places]:
    """Sorted records without repetition, and how often each is there."""
    if len(ranks) == 0:
        return ranks, counts
    first = np.flatnonzero(np.concatenate(([True], np.any(ranks[1:] != ranks[:-1], axis=1))))
    return ranks[first], np.add.reduceat(counts, first)


def _put(scratch: Scratch, name: str, ranks: Ranks, counts: Places) -> None:
    for file, values in zip(_pieces(name), (ranks, counts), strict=True):
        scratch.put(file, values)


def _take(job: Job, name: str, start: int = 0, stop: int | None = None) -> tuple[Ranks, Places]:
    m, (rows, numbers) = len(job.names), _pieces(name)
    counts = job.scratch.take(numbers, np.int64, start=start, stop=stop)
    ranks = job.scratch.take(rows, kind_of_ranks(job.records), start=start * m, stop=(start + counts.size) * m)
    return ranks.reshape(-1, m), counts


def _pieces(name: str) -> tuple[str, str]:
    return f"{name}-records", f"{name}-numbers"


def _run_file(side: str, partition: int) -> str:
    return f"beside-run-{side}-{partition}"


def _bucket_file(side: str, bucket: int) -> str:
    return f"beside-bucket-{side}-{bucket}"
