"""The intruder's links in two Parquet tables of any size: some subjects, or all, each against all released records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankveil.cluster.engine import Engine
from rankveil.cluster.tables import Given, rows_at_a_time
from rankveil.cluster.work import RANKING, Progress, Work
from rankveil.errors import ParameterError
from rankveil.linkage import Matches
from rankveil.pairs import none_complete
from rankveil.partitions.links import Random, links, released_columns, wanted
from rankveil.partitions.parted import Parted
from rankveil.partitions.queries import drawn_rows
from rankveil.partitions.scratch import Scratch, room
from rankveil.partitions.stages import Each, Job, Ranked, ranked
from rankveil.seeds import Seed, Stream

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

LINKS = 100_000
"""Subjects whose links are listed, the most exposed when there are more; all of them are counted."""


class Tried(Random, Protocol):
    """Random records, all that there can be or some of them."""

    @property
    def exhaustive(self) -> bool:
        """Whether they are all."""


Trying = Callable[[int, int, Stream], Tried]
"""Makes the random records to try, from how many records and attributes there are, and a stream for draws."""


@dataclass(frozen=True, eq=False)
class Linked:
    """What the intruder finds; rows are those of the tables, from 0."""

    of: int
    """How many records there are."""
    names: tuple[str, ...]
    mapping: str
    """How records belong together."""
    rankings: Mapping[str, str]
    """By what the categories of columns are ordered."""
    subjects: Rows
    """The subjects' rows, in order."""
    matches: Matches
    """The nearest released records of each subject; listed are those of the subjects that are `shown`.

    Who wants which record is not told there.
    """
    own: NDArray[np.bool_]
    """Whether the lowest match of a subject is its own released record."""
    shown: Rows
    """The numbers of the subjects whose matches are listed."""
    apart: Array
    """How far the listed matches are, attribute by attribute."""
    mean_apart: Array
    """The mean of that over all subjects, shown or not."""
    several: Rows | None
    """The rows of released records that several subjects match; None where not everybody was asked."""
    none: Rows | None
    """The rows of those that nobody matches."""
    released: Rows
    """The rows of the listed matches."""
    random: Array
    """The distances at which random records find a match."""
    exhaustive: bool
    """Whether all random records were tried that there can be."""
    notes: tuple[str, ...]


def link_tables(
    engine: Engine,
    given: Given,
    *,
    random: Trying,
    seed: Seed,
    subjects: int | None,
    draws: int,
    rows: int | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Linked:
    """The links of so many subjects, drawn by the seed, or of all (None).

    `rows` is how many a partition has at most, unless Parquet's row groups are larger.
    """
    if subjects is not None and subjects < 1:
        raise ParameterError("subjects must be 1 or more, or all")
    engine.check_seen(given.files)
    if not resume:
        _check_room(Scratch(engine.scratch), given, subjects)
    of = {"attack": given.identity(), "subjects": subjects, "draws": draws}
    rows = rows or rows_at_a_time(given.original.names, engine.memory)
    kept = {"x": given.original.bounds(rows=rows), "y": given.masked.bounds(rows=rows)}
    with Work(engine, of=of, kept=kept, private=seed.reveal(), resume=resume, progress=progress) as work:
        work.plan(_plan(given.width))
        parted = given.parted(work, seed=seed)
        made = _linked(parted, work, random, subjects)
        count = len(work.kept["x"]) - 1
        parts = f"attacked in {count} part{'s' if count > 1 else ''} on the cluster {engine.address.text}"
        resumed = ("what an earlier run had done was taken up",) if work.resumed else ()
    return replace(made, notes=(*engine.notes, *parted.notes, parts, *resumed, *made.notes, *given.notes))


def _check_room(scratch: Scratch, given: Given, subjects: int | None) -> None:
    """Refuse a scratch folder without space: for ranking, or for all ranks and what subjects ask and find."""
    records, m = max(len(given.original), len(given.masked)), max(given.width, 1)
    scratch.check_room(records=records, attributes=m, together=2)
    asking = records if subjects is None else min(subjects, records)
    found = asking * (16 * m + 80) * (1 if records < 2**31 else 2)
    scratch.check_free(room(records=records, attributes=m, together=0) + found)


def _plan(width: int) -> list[tuple[str, float, int]]:
    """How much work is to come."""
    m = max(width, 1)
    lists = [(name, share * 2, -(-m // 2)) for name, share in RANKING]
    return [("look_at_side", 2.0 * m, 1), *lists, ("answer_links", 12.0 * m, 1)]


def _linked(parted: Parted, each: Each, random: Trying, subjects: int | None) -> Linked:
    job, columns = _ranked(parted, each)
    released = released_columns(columns)
    count = job.records if subjects is None else min(subjects, job.records)
    places = drawn_rows(job.seed.stream("attack", "subjects"), job.records, count)
    tried = random(job.records, len(job.names), job.seed.stream("chance"))
    found, distance = links(job, each, released, places, tried)
    everybody = count == job.records
    several = none = None
    if everybody and job.records <= LINKS:
        by = wanted(job, each, released, found)
        several, none = (np.sort(_rows_at(job, "y", np.flatnonzero(which))) for which in (by > 1, by == 0))
    answers = found.answers
    shown = _most_exposed(answers.distance)
    listed = found.of(shown)
    number = np.zeros(count, np.intp)
    number[shown] = [len(rows) for rows, _ in listed]
    rows = np.concatenate([rows for rows, _ in listed])
    starts = np.concatenate(([0], np.cumsum(number))).astype(np.intp)
    return Linked(
        of=job.records,
        names=job.names,
        mapping=parted.mapping,
        rankings=parted.rankings,
        subjects=_rows_at(job, "x", places),
        matches=Matches(answers.distance, answers.count, starts, rows.astype(np.intp), np.zeros(0, np.int64)),
        own=answers.row == places,
        shown=shown,
        apart=np.concatenate([apart for _, apart in listed]) / 2,
        mean_apart=np.array([total / (2 * found.listed) for total in found.total]),
        several=several,
        none=none,
        released=_rows_at(job, "y", rows),
        random=distance,
        exhaustive=tried.exhaustive,
        notes=_notes(count, job.records, shown.size, everybody=everybody),
    )


def _ranked(parted: Parted, each: Each) -> tuple[Job, Sequence[Ranked]]:
    """The records that are complete in all columns, ranked: reverse mapping too where no record belongs to another."""
    if len(parted.table) == 0:
        found = zip(parted.names, parted.columns, strict=True)
        raise none_complete([name for name, column in found if not len(column)])
    records = parted.table.records
    if records.job.apart is None:
        return records.job, records.columns
    job = replace(records.job, apart=None)
    return job, ranked(job, each)


def _most_exposed(distance: Array) -> Rows:
    """The numbers of the subjects whose links are listed, in order: those with the nearest matches."""
    if distance.size <= LINKS:
        return np.arange(distance.size, dtype=np.int64)
    return np.sort(np.argsort(distance, kind="stable")[:LINKS]).astype(np.int64)


def _rows_at(job: Job, side: str, places: Rows) -> Rows:
    """The rows of a table in which records stand that are given by their places among those compared."""
    found = np.empty_like(places, dtype=np.int64)
    part = np.searchsorted(job.bounds, places, side="right") - 1
    for p in np.unique(part).tolist():
        here = part == p
        found[here] = job.source(side).rows(*job.ends(side, p))[places[here] - job.bounds[p]]
    return found


def _notes(subjects: int, of: int, shown: int, *, everybody: bool) -> tuple[str, ...]:
    notes = []
    if not everybody:
        notes.append(
            f"for {subjects} of {of} subjects, drawn by the seed, each against all released records: counts and claims "
            "are theirs, and intervals (95 %) are for the shares of all; released records that several subjects match, "
            "or none, are not told"
        )
    elif of > LINKS:
        notes.append(f"released records that several subjects match, or none, are told of {LINKS} records at most")
    if shown < subjects:
        notes.append(f"the links of the {shown} most exposed subjects are listed; all {subjects} are counted")
    return tuple(notes)
