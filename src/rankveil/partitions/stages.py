"""The tasks of a job and their order: any engine that can run functions on lists of items does the rest.

A task gets small things, leaves bulk data in the scratch folder, and returns small things. It can run twice, on any
worker, and gives the same. `each(function, items)` is the engine: [function(item) for item in items] in that order,
wherever the items are worked on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import TableError, row_listing
from rankveil.partitions.layout import Layout, Sizes, cut_runs, layout_file
from rankveil.partitions.parquet import Readable, check_aligned, survey
from rankveil.partitions.quantiles import Runs, Sorted
from rankveil.partitions.ranking import (
    Ranks,
    by_row,
    kind_of_ranks,
    ordered_file,
    rank_file,
    rank_span,
    ranks_in_run,
    span_file,
)
from rankveil.partitions.reversing import (
    Ordered,
    cut_constant,
    cut_file,
    reverse_share,
    reverse_span,
    reversed_file,
    reversed_in_run,
    share_file,
)
from rankveil.partitions.runs import (
    code_file,
    draw_file,
    row_file,
    sample_file,
    settle_run,
    settled_file,
    write_run,
)
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.summaries import Moments
from rankveil.seeds import Seed
from rankveil.sorting import Sorter

Array = NDArray[np.float64]
T = TypeVar("T")
R = TypeVar("R")


class Each(Protocol):
    """An engine: the function's results for the items, in their order."""

    def __call__(self, function: Callable[[T], R], items: Sequence[T], /) -> list[R]: ...


@dataclass(frozen=True)
class Job:
    """Two tables, record by record the same subjects, cut into partitions."""

    original: Readable
    masked: Readable
    names: tuple[str, ...]
    """The columns that are compared."""
    bounds: tuple[int, ...]
    """The first record of each partition, and one past the last of all."""
    scratch: Scratch
    seed: Seed
    sizes: Sizes = field(default_factory=Sizes)
    together: int = 2
    """How many columns of each table are ranked at a time: more need more scratch, fewer make workers wait."""
    apart: tuple[int, ...] | None = None
    """The partitions of the masked table, where its records are others than the original's, or more, or fewer."""

    @classmethod
    def of(
        cls,
        original: str,
        masked: str,
        *,
        scratch: str,
        seed: Seed,
        columns: Sequence[str] | None = None,
        rows: int = 2**18,
    ) -> Self:
        """A job on two Parquet folders, in partitions of about so many rows, if the scratch folder has room for it.

        Without `columns`, those of the original.
        """
        x, y = survey(original), survey(masked)
        names = x.names if columns is None else tuple(columns)
        check_aligned(x, y, names)
        bounds = x.bounds(rows=rows)
        made = cls(x, y, names, bounds, Scratch(scratch), seed, Sizes.of(len(bounds) - 1))
        made.scratch.check_room(records=made.records, attributes=len(names), together=made.together)
        return made

    @property
    def partitions(self) -> range:
        """Their numbers; where the tables are apart, one of them may have fewer."""
        return range(max(len(self.bounds_of(side)) for side in "xy") - 1)

    @property
    def records(self) -> int:
        """How many records the original has, and the masked table too unless they are apart."""
        return self.bounds[-1]

    def bounds_of(self, side: str) -> tuple[int, ...]:
        """Where the partitions of a table begin, and where the last one ends."""
        return self.bounds if side == "x" or self.apart is None else self.apart

    def has(self, side: str, partition: int) -> bool:
        """Whether a table has a partition of that number."""
        return partition + 1 < len(self.bounds_of(side))

    def ends(self, side: str, partition: int) -> tuple[int, int]:
        """The first record of a partition, and one past its last."""
        bounds = self.bounds_of(side)
        return bounds[partition], bounds[partition + 1]

    def source(self, side: str) -> Readable:
        """The original or the masked table."""
        return self.original if side == "x" else self.masked

    def read(self, side: str, columns: Sequence[int], partition: int) -> list[Array]:
        """The values of some columns in a partition."""
        return self.source(side).read([self.names[j] for j in columns], *self.ends(side, partition))


@dataclass(frozen=True, eq=False)
class Ranked:
    """A pair of columns whose ranks lie in the scratch folder, and what was found on the way."""

    moments_x: Moments
    moments_y: Moments
    sorted_x: Sorted
    sorted_y: Sorted
    reversed: bool
    """Whether the reverse-mapped column has ranks of its own; otherwise they are those of the masked one."""
    tied: bool = False
    """Whether one of them has ties."""


Ask = Callable[[Sorted, Sorted], object]
"""Asks sorted columns, original and masked, what will be needed of them when their runs are gone."""


def ranked(job: Job, each: Each, *, ask: Ask | None = None) -> list[Ranked]:
    """Rank all columns, some at a time; their ranks stay in the scratch folder, the runs do not."""
    found: list[Ranked] = []
    for start in range(0, len(job.names), job.together):
        columns = range(start, min(start + job.together, len(job.names)))
        found.extend(_rank_some(job, each, columns, ask))
    return found


def remove_ranks(job: Job, each: Each) -> None:
    """Leave the scratch folder without the ranks."""
    columns = [f"{side}{j}" for j in range(len(job.names)) for side in "xyz"]
    each(partial(remove_files, job), [[rank_file(column, p) for column in columns] for p in job.partitions])


# ---- ranking ----


@dataclass(frozen=True)
class Outline:
    """A column of one table that is being ranked: what the order of tasks depends on."""

    name: str
    """The table and the number of the column, as in x0 and y0."""
    spans: int
    constants: tuple[int, ...]
    """Its constant intervals."""
    tied: tuple[bool, ...] = ()
    """Which spans have ties, once they are ranked."""

    @property
    def has_ties(self) -> bool:
        """Whether a value is there more than once."""
        return any(self.tied) or bool(self.constants)

    def layout(self, job: Job) -> Layout:
        """How its runs are cut."""
        return Layout.load(job.scratch, self.name)

    def ordered(self, job: Job) -> Ordered:
        """Its ranks in the order of its values."""
        return Ordered(self.name, self.layout(job), self.tied)


Pair = tuple[Outline, Outline]
"""An original column and its masked one."""


def _rank_some(job: Job, each: Each, columns: range, ask: Ask | None) -> list[Ranked]:
    """Rank some columns of both tables."""
    made = each(partial(sort_partition, job, columns), job.partitions)
    names = [f"{side}{j}" for j in columns for side in "xy"]
    outlines = each(partial(cut_column, job), names)
    spans = [(outline.name, span) for outline in outlines for span in range(outline.spans)]
    ties = dict(zip(spans, each(partial(rank_part, job), spans), strict=True))
    known = [replace(one, tied=tuple(ties[one.name, span] for span in range(one.spans))) for one in outlines]
    pairs = list(zip(known[::2], known[1::2], strict=True))
    asked = each(partial(ask_columns, job, ask), pairs)
    shares = _reverse(job, each, pairs) if job.apart is None else [{} for _ in pairs]
    each(partial(return_ranks, job), [(pair, p) for p in job.partitions for pair in pairs])
    each(partial(remove_files, job), [_passing(job, pair, cut) for pair, cut in zip(pairs, shares, strict=True)])
    return [
        Ranked(
            reduce(Moments.merged, (part[x.name] for part in made if x.name in part)),
            reduce(Moments.merged, (part[y.name] for part in made if y.name in part)),
            *asked[place],
            reversed=job.apart is None and (x.has_ties or y.has_ties),
            tied=x.has_ties or y.has_ties,
        )
        for place, (x, y) in enumerate(pairs)
    ]


def sort_partition(job: Job, columns: range, partition: int) -> dict[str, Moments]:
    """A task: sort some columns of a partition of both tables into runs, and return their moments."""
    made = {}
    for side in "xy":
        if not job.has(side, partition):
            continue
        start, stop = job.ends(side, partition)
        every, sort = job.sizes.every(len(job.bounds_of(side)) - 1), Sorter(stop - start)
        for j, values in zip(columns, job.read(side, columns, partition), strict=True):
            _refuse_gaps(job, side, j, partition, values)
            write_run(job.scratch, f"{side}{j}", partition, values, every=every, sort=sort)
            made[f"{side}{j}"] = Moments.of([values])
    return made


def _refuse_gaps(job: Job, side: str, j: int, partition: int, values: Array) -> None:
    """A missing value has no rank, so records that have one are left out before."""
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        rows = row_listing(job.source(side).rows(*job.ends(side, partition))[missing] + 1)
        path, name = job.source(side).path, job.names[j]
        raise TableError(f"{path}: column {name} has missing values ({rows}); fill them or leave them out")


def cut_column(job: Job, column: str) -> Outline:
    """A task: cut the runs of a column."""
    found = cut_runs(job.scratch, column, np.diff(job.bounds_of(column[0])).tolist(), sizes=job.sizes)
    found.save(job.scratch, column)
    return Outline(column, len(found.spans), tuple(np.flatnonzero(found.constant).tolist()))


def rank_part(job: Job, item: tuple[str, int]) -> bool:
    """A task: rank a span of a column; whether it has ties."""
    column, span = item
    cut = Layout.load(job.scratch, column)
    return rank_span(job.scratch, column, cut, span, ordered=column.startswith("x"))


def ask_columns(job: Job, ask: Ask | None, pair: Pair) -> tuple[Sorted, Sorted]:
    """A task: let sorted columns be asked what will be needed of them."""
    x, y = (
        Sorted(job.bounds_of(column.name[0])[-1], Runs(job.scratch, column.name, column.layout(job))) for column in pair
    )
    if ask is not None and job.records:
        ask(x, y)
    return x.alone(), y.alone()


def _reverse(job: Job, each: Each, pairs: Sequence[Pair]) -> list[dict[int, int]]:
    """Map columns with ties in reverse; how many shares the constant intervals of each were cut into."""
    tied = [y for _, y in pairs if y.has_ties]
    each(partial(settle_part, job), [(y.name, p) for y in tied for p in job.partitions])
    shares = each(partial(cut_constants, job), pairs)
    needed = [(x, y) for x, y in pairs if x.has_ties or y.has_ties]
    each(partial(reverse_part, job), [((x, y), span) for x, y in needed for span in range(y.spans)])
    parts = [
        (pair, interval, share)
        for pair, cut in zip(pairs, shares, strict=True)
        for interval, count in cut.items()
        for share in range(count)
    ]
    each(partial(reverse_constant, job), parts)
    return shares


def settle_part(job: Job, item: tuple[str, int]) -> None:
    """A task: put tied values of a masked column's run in the order of their draws."""
    column, partition = item
    ties = job.seed.stream("ties", job.names[int(column[1:])])
    rows = job.masked.rows(*job.ends("y", partition))
    first = int(rows[0]) if rows.size else 0
    settle_run(job.scratch, column, partition, ties=ties.at(rows - first, start=first))


def cut_constants(job: Job, pair: Pair) -> dict[int, int]:
    """A task: cut the constant intervals of a masked column into shares; how many each has.

    One that lies in a constant interval of the original needs none: all its rows get the same rank.
    """
    x, y = pair
    if not y.constants:
        return {}
    original, cut = x.ordered(job), y.layout(job)
    return {
        k: cut_constant(job.scratch, y.name, cut, k, size=job.sizes.span)
        for k in y.constants
        if original.constant(int(cut.positions[k]), int(cut.positions[k + 1])) is None
    }


def reverse_part(job: Job, item: tuple[Pair, int]) -> None:
    """A task: the reverse-mapped ranks of a span."""
    (x, y), span = item
    reverse_span(job.scratch, y.name, y.layout(job), span, original=x.ordered(job), tied=y.tied[span])


def reverse_constant(job: Job, item: tuple[Pair, int, int]) -> None:
    """A task: the reverse-mapped ranks of a share of a constant interval."""
    (x, y), interval, share = item
    reverse_share(job.scratch, y.name, y.layout(job), interval, share, original=x.ordered(job))


def return_ranks(job: Job, item: tuple[Pair, int]) -> None:
    """A task: bring the ranks of a partition back to its rows."""
    (x, y), p = item
    cuts = {column.name: column.layout(job) for column in (x, y) if job.has(column.name[0], p)}
    for name, cut in cuts.items():
        in_run = ranks_in_run(job.scratch, name, cut, p)
        job.scratch.put(rank_file(name, p), by_row(job.scratch, name, p, in_run))
    if job.apart is None and (x.has_ties or y.has_ties):
        original = Ordered(x.name, cuts[x.name], x.tied)
        in_run = reversed_in_run(job.scratch, y.name, cuts[y.name], p, original=original)
        found = by_row(job.scratch, y.name, p, in_run, settled=y.has_ties)
        job.scratch.put(rank_file(f"z{y.name[1:]}", p), found)


def remove_files(job: Job, names: Sequence[str]) -> None:
    """A task: remove files from the scratch folder."""
    job.scratch.remove(*names)


def _passing(job: Job, pair: Pair, shares: Mapping[int, int]) -> list[str]:
    """The files of a pair of columns that are not needed once their ranks are at the rows."""
    names = []
    for column in pair:
        names.append(layout_file(column.name))
        of_runs = (code_file, row_file, settled_file, sample_file, draw_file)
        names.extend(file(column.name, p) for p in job.partitions for file in of_runs)
        names.extend(file(column.name, s) for s in range(column.spans) for file in (span_file, ordered_file))
    masked = pair[1]
    names.extend(reversed_file(masked.name, s) for s in range(masked.spans))
    for interval, count in shares.items():
        names.append(cut_file(masked.name, interval))
        names.extend(share_file(masked.name, interval, share) for share in range(count))
    return names


def ranks_at(job: Job, side: str, partition: int) -> Ranks:
    """The doubled ranks of a partition, one row for each record."""
    return np.stack([ranks_of_column(job, f"{side}{j}", partition) for j in range(len(job.names))]).T


def ranks_of_column(job: Job, column: str, partition: int) -> Ranks:
    """The doubled ranks of a column in a partition."""
    of = job.bounds_of("x" if column[0] == "x" else "y")[-1]
    found: Ranks = job.scratch.take(rank_file(column, partition), kind_of_ranks(of))
    return found
