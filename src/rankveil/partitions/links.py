"""The intruder's links: the released records nearest to some subjects, listed, and how near chance alone comes.

Distances are permutation distances between a subject's ranks and those of the reverse-mapped records (`View.rank_z`),
as in memory. Random records, whose values come from a row of their own each, are asked beside the subjects, so that a
partition's search structure is built once for both. The ranks of the job must lie in the scratch folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rankveil.linkage import LISTED, Linker
from rankveil.partitions.queries import Answers, cut_evenly
from rankveil.partitions.ranking import Ranks, kind_of_ranks, rank_file
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Each, Job, Ranked

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

GROUP = 2**16
"""Asking records that a task holds in memory, each with the released records that are equally near."""

_TASKS = 32
"""Tasks that a question is cut into when there are few asking records."""

_SUBJECTS, _RANDOM = "subjects", "random"
_ROWS = "link-rows"


class Random(Protocol):
    """Records of independent values."""

    def __len__(self) -> int: ...

    def rows(self, start: int, stop: int) -> Sequence[Rows]:
        """For each attribute the rows from which the records from start to before stop take their values."""


@dataclass(frozen=True)
class Asking:
    """A group of asking records: subjects or random ones."""

    kind: str
    number: int
    start: int
    stop: int

    @property
    def name(self) -> str:
        """By which its files begin."""
        return f"link-{self.kind}-{self.number}"


@dataclass(frozen=True, eq=False)
class Listed:
    """Released records at the smallest distance from each asking one, the lowest `LISTED` of them."""

    number: Rows
    """How many are listed for each."""
    rows: Rows
    """They, one asking record after the other."""
    apart: Ranks
    """How far in doubled ranks, attribute by attribute."""

    def save(self, scratch: Scratch, name: str) -> None:
        """Keep them in files."""
        for ending, values in zip(_FILES, (self.number, self.rows, self.apart), strict=True):
            scratch.put(f"{name}-{ending}", values)

    @classmethod
    def load(cls, scratch: Scratch, name: str, *, kind: type[np.unsignedinteger], attributes: int) -> Self:
        """Those of files."""
        number, rows = (scratch.take(f"{name}-{ending}", np.int64) for ending in _FILES[:2])
        return cls(number, rows, scratch.take(f"{name}-{_FILES[2]}", kind).reshape(-1, attributes))

    @classmethod
    def merged(cls, parts: Sequence[Listed], near: Sequence[NDArray[np.bool_]]) -> Self:
        """Those of several parts, of each only the asking records which have no nearer ones elsewhere."""
        kept = [np.repeat(which, part.number) for part, which in zip(parts, near, strict=True)]
        asking = [np.repeat(np.arange(part.number.size), part.number) for part in parts]
        whose = np.concatenate([each[which] for each, which in zip(asking, kept, strict=True)])
        rows = np.concatenate([part.rows[which] for part, which in zip(parts, kept, strict=True)])
        apart = np.concatenate([part.apart[which] for part, which in zip(parts, kept, strict=True)])
        order, number = _lowest(whose, parts[0].number.size)
        return cls(number, rows[order], apart[order])


_FILES = ("number", "rows", "apart")


@dataclass(frozen=True, eq=False)
class Links:
    """What the subjects found, in the order of their rows."""

    job: Job
    groups: tuple[Asking, ...]
    answers: Answers
    total: tuple[int, ...]
    """For each attribute the doubled distances of all listed records, added up."""
    listed: int
    """How many they are."""

    def of(self, subjects: Rows) -> list[tuple[Rows, Ranks]]:
        """The listed records of some subjects (their numbers, in order), and how far they are in doubled ranks."""
        found = []
        for group in self.groups:
            first, last = np.searchsorted(subjects, [group.start, group.stop])
            if first == last:
                continue
            listed = _load(self.job, group)
            ends = np.cumsum(listed.number)
            for place in (subjects[first:last] - group.start).tolist():
                here = slice(int(ends[place] - listed.number[place]), int(ends[place]))
                found.append((listed.rows[here], listed.apart[here]))
        return found


def released_columns(columns: Sequence[Ranked]) -> tuple[str, ...]:
    """The columns of ranks of the reverse-mapped records: the masked ones, or their own where ties make them differ."""
    return tuple(f"{'z' if column.reversed else 'y'}{j}" for j, column in enumerate(columns))


def links(job: Job, each: Each, released: Sequence[str], rows: Rows, random: Random) -> tuple[Links, Array]:
    """The released records nearest to the subjects in some rows, and the smallest distances from random records."""
    job.scratch.put(_ROWS, rows)
    subjects, strangers = _groups(_SUBJECTS, rows.size), _groups(_RANDOM, len(random))
    each(partial(gather_subjects, job, released), subjects)
    for group in strangers:
        job.scratch.put(f"{group.name}-rows", np.stack(random.rows(group.start, group.stop)))
    each(partial(gather_random, job), [(group, j) for group in strangers for j in range(len(job.names))])
    batches = _batches([*subjects, *strangers])
    parts = cut_evenly(len(job.partitions), max(_TASKS // len(batches), 1))
    tasks = [(number, part, batch) for batch in batches for number, part in enumerate(parts)]
    each(partial(answer_links, job, released), tasks)
    sums = each(partial(merge_links, job, len(parts)), subjects)
    each(partial(merge_random, job, len(parts)), strangers)
    answers = Answers.joined([Answers.load(job.scratch, f"{group.name}-answers") for group in subjects])
    distance = np.concatenate([job.scratch.take(f"{group.name}-distance", np.float64) for group in strangers])
    total = tuple(sum(each_sum[0][j] for each_sum in sums) for j in range(len(job.names)))
    return Links(job, tuple(subjects), answers, total, sum(each_sum[1] for each_sum in sums)), distance


def wanted(job: Job, each: Each, released: Sequence[str], found: Links) -> Rows:
    """For every released record, of how many subjects it is a nearest one."""
    each(partial(count_wanted, job, released, found.groups), job.partitions)
    return np.concatenate([job.scratch.take(_wanted(p), np.int64) for p in job.partitions])


# ---- asking ----


def gather_subjects(job: Job, released: Sequence[str], group: Asking) -> None:
    """A task: write the ranks of a group of subjects, those of their own released records beside them."""
    rows: Rows = job.scratch.take(_ROWS, np.int64, start=group.start, stop=group.stop)
    own = [f"x{j}" for j in range(len(job.names))]
    found = []
    for p in job.partitions:
        first, last = np.searchsorted(rows, [job.bounds[p], job.bounds[p + 1]])
        if first < last:
            here = rows[first:last] - job.bounds[p]
            found.append(np.concatenate([_ranks(job, names, p)[here] for names in (own, released)], axis=1))
    job.scratch.put(f"{group.name}-asking", np.concatenate(found))


def gather_random(job: Job, item: tuple[Asking, int]) -> None:
    """A task: write the ranks of a group of random records in one attribute."""
    group, j = item
    size = group.stop - group.start
    rows: Rows = job.scratch.take(f"{group.name}-rows", np.int64, start=j * size, stop=(j + 1) * size)
    found = np.empty(size, kind_of_ranks(job.records))
    order = np.argsort(rows, kind="stable")
    for p in job.partitions:
        first, last = np.searchsorted(rows[order], [job.bounds[p], job.bounds[p + 1]])
        if first < last:
            which = order[first:last]
            found[which] = _ranks(job, [f"x{j}"], p)[rows[which] - job.bounds[p], 0]
    job.scratch.put(f"{group.name}-asking-{j}", found)


def answer_links(job: Job, released: Sequence[str], item: tuple[int, tuple[int, int], Sequence[Asking]]) -> None:
    """A task: what is nearest to some groups of asking records among some partitions."""
    number, (first, last), groups = item
    searches = [_Search(job, group) for group in groups]
    for p in range(first, last):
        points = _ranks(job, released, p).astype(np.float64)
        if len(points) == 0:
            continue
        linker = Linker(points)
        for search in searches:
            search.ask(linker, start=job.bounds[p])
    for search in searches:
        search.save(number, released, (first, last))


@dataclass(eq=False)
class _Search:
    """A group of asking records on its way through some partitions; distances are in doubled ranks."""

    job: Job
    group: Asking
    queries: Array = field(init=False)
    known: Array = field(init=False)
    """How near a record is known to be: a subject's own, or one that was found."""
    near: list[tuple[Rows, Rows, Array]] = field(default_factory=list)
    """Of each partition: the subjects that found something as near, what they found, how far it is."""

    def __post_init__(self) -> None:
        m, kind = len(self.job.names), kind_of_ranks(self.job.records)
        if self.group.kind == _RANDOM:
            columns = [self.job.scratch.take(f"{self.group.name}-asking-{j}", kind) for j in range(m)]
            self.queries = np.stack(columns, axis=1).astype(np.float64)
            self.known = np.full(len(self.queries), np.inf)
        else:
            ranks = self.job.scratch.take(f"{self.group.name}-asking", kind).reshape(-1, 2 * m).astype(np.float64)
            self.queries = np.ascontiguousarray(ranks[:, :m])
            self.known = np.abs(ranks[:, :m] - ranks[:, m:]).max(axis=1)
        self.found = Answers.none(len(self.queries))

    def ask(self, linker: Linker, *, start: int) -> None:
        """Look into a partition that begins at a row."""
        distance = linker.distances(self.queries, upto=self.known)
        which = np.flatnonzero(distance <= self.known)
        if self.group.kind == _SUBJECTS and which.size:
            matches = linker.matches(self.queries[which], upto=distance[which])
            here = Answers.none(self.known.size)
            here.distance[which], here.count[which] = matches.distance, matches.count
            here.row[which] = start + matches.first
            self.found = self.found.merged(here)
            listed = np.diff(matches.starts)
            self.near.append((np.repeat(which, listed), start + matches.rows, np.repeat(matches.distance, listed)))
        self.known = np.minimum(self.known, distance)

    def save(self, number: int, released: Sequence[str], partitions: tuple[int, int]) -> None:
        """Keep what was found."""
        scratch, name = self.job.scratch, f"{self.group.name}-{number}"
        if self.group.kind == _RANDOM:
            scratch.put(f"{name}-distance", self.known / 2)
            return
        halved = Answers(self.found.distance / 2, self.found.count, self.found.row)
        halved.save(scratch, f"{name}-answers")
        self._listed(released, partitions).save(scratch, name)

    def _listed(self, released: Sequence[str], partitions: tuple[int, int]) -> Listed:
        whose, rows, distance = (
            np.concatenate([np.empty(0, kind), *(part[k] for part in self.near)])
            for k, kind in enumerate((np.int64, np.int64, np.float64))
        )
        self.near = []
        near = distance == self.found.distance[whose]
        order, number = _lowest(whose[near], self.known.size)
        whose, rows = whose[near][order], rows[near][order]
        apart = np.empty((rows.size, len(self.job.names)), kind_of_ranks(self.job.records))
        for p in range(*partitions):
            here = np.flatnonzero((rows >= self.job.bounds[p]) & (rows < self.job.bounds[p + 1]))
            if here.size:
                points = _ranks(self.job, released, p)[rows[here] - self.job.bounds[p]]
                apart[here] = np.abs(self.queries[whose[here]] - points)
        return Listed(number, rows, apart)


def merge_links(job: Job, parts: int, group: Asking) -> tuple[list[int], int]:
    """A task: the answers of all partitions to a group of subjects; how far the listed records are, and how many."""
    names = [f"{group.name}-{number}" for number in range(parts)]
    answers = [Answers.load(job.scratch, f"{name}-answers") for name in names]
    best = reduce(Answers.merged, answers)
    best.save(job.scratch, f"{group.name}-answers")
    listed = [_load(job, group, number) for number in range(parts)]
    made = Listed.merged(listed, [each.distance == best.distance for each in answers])
    made.save(job.scratch, group.name)
    return made.apart.sum(axis=0, dtype=np.int64).tolist(), len(made.rows)


def merge_random(job: Job, parts: int, group: Asking) -> None:
    """A task: the smallest distances of all partitions from a group of random records."""
    found = [job.scratch.take(f"{group.name}-{number}-distance", np.float64) for number in range(parts)]
    job.scratch.put(f"{group.name}-distance", reduce(np.minimum, found))


def count_wanted(job: Job, released: Sequence[str], groups: Sequence[Asking], partition: int) -> None:
    """A task: of how many subjects each record of a partition is a nearest one."""
    points = _ranks(job, released, partition).astype(np.float64)
    counts = np.zeros(len(points), np.int64)
    linker = Linker(points) if len(points) else None
    for group in groups:
        if linker is None:
            break
        queries = _Search(job, group).queries
        least = 2 * Answers.load(job.scratch, f"{group.name}-answers").distance
        which = np.flatnonzero(linker.distances(queries, upto=least) == least)
        if which.size:
            counts += linker.matches(queries[which], most=1, upto=least[which]).wanted_by
    job.scratch.put(_wanted(partition), counts)


# ---- parts and names ----


def _lowest(whose: Rows, asking: int) -> tuple[Rows, Rows]:
    """Where the first `LISTED` entries of each asking record stand, one after the other, and how many they are.

    Entries of one asking record are in order already.

    >>> _lowest(np.array([1, 0, 1]), 3)
    (array([1, 0, 2]), array([1, 2, 0]))
    """
    order = np.argsort(whose, kind="stable")
    count = np.bincount(whose, minlength=asking)
    place = np.arange(whose.size) - np.repeat(np.cumsum(count) - count, count)
    return order[place < LISTED], np.minimum(count, LISTED)


def _groups(kind: str, size: int) -> list[Asking]:
    return [Asking(kind, k, start, min(start + GROUP, size)) for k, start in enumerate(range(0, size, GROUP))]


def _batches(groups: Sequence[Asking]) -> list[list[Asking]]:
    """Groups that a task takes through its partitions together, no more asking records than it holds."""
    made: list[list[Asking]] = []
    held = 0
    for group in groups:
        size = group.stop - group.start
        if made and held + size <= GROUP:
            made[-1].append(group)
        else:
            made.append([group])
            held = 0
        held += size
    return made


def _ranks(job: Job, columns: Sequence[str], partition: int) -> Ranks:
    """The doubled ranks of some columns in a partition, one row for each record."""
    kind = kind_of_ranks(job.records)
    return np.stack([job.scratch.take(rank_file(column, partition), kind) for column in columns], axis=1)


def _load(job: Job, group: Asking, number: int | None = None) -> Listed:
    name = group.name if number is None else f"{group.name}-{number}"
    return Listed.load(job.scratch, name, kind=kind_of_ranks(job.records), attributes=len(job.names))


def _wanted(partition: int) -> str:
    return f"link-wanted-{partition}"
