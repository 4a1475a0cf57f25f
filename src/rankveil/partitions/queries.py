"""Broadcast queries: which of all masked records are nearest to some original ones, partition by partition.

The ranks of the asking records are written to the scratch folder, in groups. A task takes a group through some of the
partitions, one after the other, and keeps the smallest distance so far; a record's own masked row is a distance to
begin with. The answers of all tasks are then merged: the smallest distance, the lowest row that has it, how many do.
Distances are those of doubled ranks halved, which is exact, so they are the ones of the whole table in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankveil.linkage import Linker, Metric
from rankveil.partitions.ranking import Ranks, kind_of_ranks, rank_file
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Each, Job, remove_files
from rankveil.seeds import Stream

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

_AT_A_TIME = 2**20
"""Draws that are looked at together."""

GROUP = 2**18
"""Asking records that a task holds in memory."""

_TASKS = 32
"""Tasks that a question is cut into when there are few asking records."""


def drawn_rows(stream: Stream, records: int, count: int, *, call: int = 0) -> Rows:
    """So many rows of a table at random, in order: those with the smallest draws, as in stream.order(records)[:count].

    Draws are made some at a time, so that the table may be as long as it likes. `call` is how many such draws were
    made of the stream before.
    """
    if count >= records:
        return np.arange(records, dtype=np.int64)
    draws, rows = np.empty(0, np.uint64), np.empty(0, np.int64)
    for start in range(0, records, _AT_A_TIME):
        here = stream.at(start=start)
        for _ in range(call):
            here.bits(0)
        more = here.bits(min(_AT_A_TIME, records - start))
        low = np.flatnonzero(more <= draws.max()) if rows.size == count else np.arange(more.size)
        draws = np.concatenate((draws, more[low]))
        rows = np.concatenate((rows, start + low))
        if rows.size > count:
            best = np.lexsort((rows, draws))[:count]
            draws, rows = draws[best], rows[best]
    return np.sort(rows)


@dataclass(frozen=True, eq=False)
class Answers:
    """For every asking record what is nearest among the masked records looked at."""

    distance: Array
    """Infinite where none of them is as near as one is known to be."""
    count: NDArray[np.int64]
    """How many are that near."""
    row: Rows
    """The lowest of them."""

    @classmethod
    def none(cls, asking: int) -> Self:
        """Before anything is looked at."""
        return cls(np.full(asking, np.inf), np.zeros(asking, np.int64), np.full(asking, -1, np.int64))

    def merged(self, other: Answers) -> Answers:
        """The nearer of both; where both are as near, all of them.

        >>> one = Answers(np.array([2.0, 1.0]), np.array([1, 1]), np.array([5, 6]))
        >>> both = one.merged(Answers(np.array([2.0, 3.0]), np.array([2, 1]), np.array([1, 2])))
        >>> both.distance, both.count, both.row
        (array([2., 1.]), array([3, 1]), array([1, 6]))
        """
        nearer, same = other.distance < self.distance, other.distance == self.distance
        lowest = np.where(
            self.count == 0, other.row, np.where(other.count == 0, self.row, np.minimum(self.row, other.row))
        )
        return Answers(
            np.where(nearer, other.distance, self.distance),
            np.where(nearer, other.count, np.where(same, self.count + other.count, self.count)),
            np.where(nearer, other.row, np.where(same, lowest, self.row)),
        )

    def save(self, scratch: Scratch, name: str) -> None:
        """Keep them in a file."""
        scratch.put(name, np.concatenate((self.distance.view(np.int64), self.count, self.row)))

    @classmethod
    def load(cls, scratch: Scratch, name: str) -> Self:
        """Those of a file."""
        distance, count, row = scratch.take(name, np.int64).reshape(3, -1)
        return cls(distance.copy().view(np.float64), count, row)

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Self:
        """Those of several groups of asking records, one after the other."""
        return cls(
            np.concatenate([part.distance for part in parts]),
            np.concatenate([part.count for part in parts]),
            np.concatenate([part.row for part in parts]),
        )


def linked(job: Job, each: Each, rows: Rows, metrics: Sequence[Metric], *, ties: bool = False) -> dict[Metric, Answers]:
    """The masked records nearest to some original ones, given by their rows in order, by ranks of all columns.

    The ranks of the job must lie in the scratch folder. Without `ties` only the distances are found. The answers stay
    in the scratch folder too, until `remove_answers`.
    """
    job.scratch.put(_ROWS, rows)
    groups = _groups(job, rows)
    each(partial(gather_asking, job), list(enumerate(groups)))
    parts = cut_evenly(len(job.partitions), max(_TASKS // len(groups), 1))
    asked = [(metric, group) for metric in metrics for group in range(len(groups))]
    each(
        partial(answer_asking, job, ties),
        [(*which, number, part) for which in asked for number, part in enumerate(parts)],
    )
    each(partial(merge_answers, job, len(parts)), asked)
    found = {
        metric: Answers.joined([Answers.load(job.scratch, _answer(metric, group)) for group in range(len(groups))])
        for metric in metrics
    }
    passing = [_ROWS, *(_asking(group) for group in range(len(groups)))]
    passing += [_answer(*which, number) for which in asked for number in range(len(parts))]
    each(partial(remove_files, job), [passing])
    return found


def remove_answers(job: Job, each: Each, rows: Rows, metrics: Sequence[Metric]) -> None:
    """Leave the scratch folder without the answers to a question."""
    groups = range(len(_groups(job, rows)))
    each(partial(remove_files, job), [[_answer(metric, group) for metric in metrics for group in groups]])


def gather_asking(job: Job, item: tuple[int, tuple[int, int]]) -> None:
    """A task: write the ranks of a group of asking records, those of their own masked rows beside them."""
    group, (first, last) = item
    rows: Rows = job.scratch.take(_ROWS, np.int64)
    found = []
    for p in range(first, last):
        here = _of_partition(job, rows, p)
        if here.size:
            found.append(np.concatenate([_ranks(job, side, p)[here] for side in "xy"], axis=1))
    job.scratch.put(_asking(group), np.concatenate(found))


def answer_asking(job: Job, ties: bool, item: tuple[Metric, int, int, tuple[int, int]]) -> None:
    """A task: what is nearest to a group of asking records among some partitions."""
    metric, group, number, (first, last) = item
    m = len(job.names)
    ranks = job.scratch.take(_asking(group), kind_of_ranks(job.records)).reshape(-1, 2 * m)
    queries, own = (np.ascontiguousarray(half, np.float64) for half in (ranks[:, :m], ranks[:, m:]))
    found = Answers.none(len(queries))
    known = _apart(queries, own, metric)
    for p in range(first, last):
        points = _ranks(job, "y", p).astype(np.float64)
        if len(points) == 0:
            continue
        linker = Linker(points, metric=metric)
        found = found.merged(_asked(linker, queries, known, ties, start=job.bounds[p]))
        known = np.minimum(known, found.distance)
    Answers(found.distance / 2, found.count, found.row).save(job.scratch, _answer(metric, group, number))


def merge_answers(job: Job, parts: int, item: tuple[Metric, int]) -> None:
    """A task: the answers of all partitions to a group of asking records."""
    loaded = [Answers.load(job.scratch, _answer(*item, number)) for number in range(parts)]
    reduce(Answers.merged, loaded).save(job.scratch, _answer(*item))


def _asked(linker: Linker, queries: Array, known: Array, ties: bool, *, start: int) -> Answers:
    if not ties:
        distance = linker.distances(queries, upto=known)
        return Answers(distance, np.ones(distance.size, np.int64), np.full(distance.size, start, np.int64))
    matches = linker.matches(queries, most=1, upto=known)
    return Answers(matches.distance, matches.count, start + matches.first.astype(np.int64))


def _apart(queries: Array, own: Array, metric: Metric) -> Array:
    """How far each record is from its own masked row."""
    gap = np.abs(queries - own)
    found: Array = gap.max(axis=1) if metric == "maximum" else np.sqrt(np.square(gap).sum(axis=1))
    return found


def _ranks(job: Job, side: str, partition: int) -> Ranks:
    """The doubled ranks of a partition, one row for each record."""
    kind = kind_of_ranks(job.records)
    return np.stack([job.scratch.take(rank_file(f"{side}{j}", partition), kind) for j in range(len(job.names))], axis=1)


def _of_partition(job: Job, rows: Rows, partition: int) -> Rows:
    """Which of some rows lie in a partition, counted from its first."""
    start, stop = job.bounds[partition], job.bounds[partition + 1]
    first, last = np.searchsorted(rows, [start, stop])
    return rows[first:last] - start


def _groups(job: Job, rows: Rows) -> list[tuple[int, int]]:
    """Neighbouring partitions with no more asking records together than a task holds, unless one alone has more."""
    counts = np.diff(np.searchsorted(rows, job.bounds))
    groups, first, held = [], 0, 0
    for p, count in enumerate(counts.tolist()):
        if held and held + count > GROUP:
            groups.append((first, p))
            first, held = p, 0
        held += count
    return [*groups, (first, len(counts))]


def cut_evenly(size: int, parts: int) -> list[tuple[int, int]]:
    """0 .. size - 1 in so many parts of neighbours, or fewer.

    >>> cut_evenly(5, 2)
    [(0, 3), (3, 5)]
    """
    step = -(-size // min(parts, size))
    return [(start, min(start + step, size)) for start in range(0, size, step)]


_ROWS = "asking-rows"


def _asking(group: int) -> str:
    return f"asking-{group}"


def _answer(metric: Metric, group: int, number: int | None = None) -> str:
    return f"answers-{metric}-{group}" if number is None else f"answers-{metric}-{group}-{number}"
