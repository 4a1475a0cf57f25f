"""The masked ranks with each column permuted by itself, as `cm3` does it in memory: what chance alone would give.

The rows are put in the order of their draws; the rank of the k-th row goes to the row with the k-th draw. Draws are
uniform, so equal ranges of them hold about as many rows: each range is sorted by itself.
"""

from __future__ import annotations

from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from rankveil.partitions.ranking import Ranks, kind_of_ranks, rank_file
from rankveil.partitions.stages import Each, Job, ranks_at, remove_files
from rankveil.seeds import Stream
from rankveil.summaries.products import Exact, cross_products

Counts = NDArray[np.int64]

PERMUTED = "w"
"""The permuted table, beside x and y."""

_RANGE = 2**20
"""Rows that a task sorts at a time, about."""


def permute(job: Job, each: Each, stream: Stream) -> Exact:
    """Permute the masked ranks, and return the products of the permuted columns; the first stays as it is."""
    ranges = max(1, -(-job.records // _RANGE))
    columns = range(1, len(job.names))
    counts = np.stack(each(partial(spread_draws, job, stream, ranges), job.partitions))
    items = [(j, k) for j in columns for k in range(ranges)]
    moved = dict(zip(items, each(partial(permute_range, job, counts), items), strict=True))
    made = each(partial(return_permuted, job, moved), job.partitions)
    files = [_draw_file(j, p) for j in columns for p in job.partitions] + [_moved_file(*item) for item in items]
    each(partial(remove_files, job), [[*files, *(f"{file}-rows" for file in files)]])
    return reduce(np.add, made)


def permuted_files(job: Job) -> list[str]:
    """The files of the permuted ranks."""
    return [rank_file(f"{PERMUTED}{j}", p) for j in range(len(job.names)) for p in job.partitions]


def spread_draws(job: Job, stream: Stream, ranges: int, partition: int) -> Counts:
    """A task: the draws of a partition's rows by ranges of them; how many of each column (a row) are in each."""
    start, stop = job.ends("y", partition)
    found = np.zeros((len(job.names), ranges), np.int64)
    for j in range(1, len(job.names)):
        own = stream.at(start=start)
        for _ in range(j - 1):  # column j has the j-th word of every row
            own.bits(0)
        draws = own.bits(stop - start).astype(np.uint32)
        part = (draws.astype(np.uint64) * np.uint64(ranges)) >> np.uint64(32)
        order = np.argsort(part, kind="stable")
        job.scratch.put(_draw_file(j, partition), draws[order])
        job.scratch.put(f"{_draw_file(j, partition)}-rows", order + start)
        found[j] = np.bincount(part.astype(np.intp), minlength=ranges)
    return found


def permute_range(job: Job, counts: Counts, item: tuple[int, int]) -> Counts:
    """A task: the ranks that go to the rows of a range of draws; where those of each partition begin."""
    j, k = item
    draws, rows = [], []
    for p, own in enumerate(counts[:, j]):
        start, stop = int(own[:k].sum()), int(own[: k + 1].sum())
        draws.append(job.scratch.take(_draw_file(j, p), np.uint32, start=start, stop=stop))
        rows.append(job.scratch.take(f"{_draw_file(j, p)}-rows", np.int64, start=start, stop=stop))
    to = np.concatenate(rows)[np.argsort(np.concatenate(draws), kind="stable")]
    first = int(counts[:, j, :k].sum())
    ranks = _ranks_between(job, j, first, first + to.size)
    order = np.argsort(to)
    job.scratch.put(_moved_file(j, k), ranks[order])
    job.scratch.put(f"{_moved_file(j, k)}-rows", to[order])
    return np.searchsorted(to[order], job.bounds_of("y")).astype(np.int64)


def return_permuted(job: Job, moved: dict[tuple[int, int], Counts], partition: int) -> Exact:
    """A task: bring permuted ranks to the rows of a partition, and return the products of their columns."""
    start, stop = job.ends("y", partition)
    kind = kind_of_ranks(job.records)
    job.scratch.put(rank_file(f"{PERMUTED}0", partition), job.scratch.take(rank_file("y0", partition), kind))
    columns = {j: np.empty(stop - start, kind) for j in range(1, len(job.names))}
    for (j, k), edges in moved.items():
        piece = {"start": int(edges[partition]), "stop": int(edges[partition + 1])}
        rows = job.scratch.take(f"{_moved_file(j, k)}-rows", np.int64, **piece)
        columns[j][rows - start] = job.scratch.take(_moved_file(j, k), kind, **piece)
    for j, ranks in columns.items():
        job.scratch.put(rank_file(f"{PERMUTED}{j}", partition), ranks)
    return cross_products(ranks_at(job, PERMUTED, partition), centre=job.records + 1, reach=job.records)


def _ranks_between(job: Job, j: int, start: int, stop: int) -> Ranks:
    """The masked ranks of a column from one record to before another."""
    found, bounds = [], job.bounds_of("y")
    for p in range(len(bounds) - 1):
        begin, end = max(start, bounds[p]), min(stop, bounds[p + 1])
        if begin < end:
            piece = {"start": begin - bounds[p], "stop": end - bounds[p]}
            found.append(job.scratch.take(rank_file(f"y{j}", p), kind_of_ranks(job.records), **piece))
    return np.concatenate([*found, np.empty(0, kind_of_ranks(job.records))])


def _draw_file(column: int, partition: int) -> str:
    return f"permuting-{column}-{partition}"


def _moved_file(column: int, part: int) -> str:
    return f"permuted-{column}-{part}"
