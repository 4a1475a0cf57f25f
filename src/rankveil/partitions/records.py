"""Some records of two tables in parts: a job on them, done once, and what measures ask of them afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from rankveil import dates
from rankveil.errors import NotApplicableError
from rankveil.matching import Known
from rankveil.measuring import Settings
from rankveil.partitions.measured import Measured, measured
from rankveil.partitions.measures import Findings, alphas_of
from rankveil.partitions.parquet import Array, Readable, Rows
from rankveil.partitions.roles import Roles, known_roles
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Ask, Each, Job, Ranked, ranked, remove_ranks
from rankveil.seeds import Seed
from rankveil.views import Column, View

ALL_AT_ONCE = "not on a cluster: it needs all records at once"


@dataclass(frozen=True)
class InDays:
    """Records whose dates and times are counted in days."""

    source: Readable
    kinds: Mapping[str, Any]
    """The types of the columns of dates and times."""

    @property
    def path(self) -> str:
        """Where the table lies."""
        return self.source.path

    def __len__(self) -> int:
        return len(self.source)

    def rows(self, start: int, stop: int) -> Rows:
        """As of the same records otherwise."""
        return self.source.rows(start, stop)

    def read(self, columns: Sequence[str], start: int, stop: int) -> list[Array]:
        """The numbers of some columns, those of dates and times in days."""
        found = self.source.read(columns, start, stop)
        return [
            dates.in_days(values, self.kinds[name]) if name in self.kinds else values
            for name, values in zip(columns, found, strict=True)
        ]


class Records:
    """Some records of both tables in some columns: a job on them, and what it finds, once."""

    def __init__(self, job: Job, work: Work, *, keep: bool) -> None:
        self.job = job
        self._work = work
        self._keep = keep
        self._findings: dict[tuple[str, ...], Findings] = {}

    @cached_property
    def columns(self) -> list[Ranked]:
        """The columns, whose ranks lie in the scratch folder from then on."""
        return ranked(self.job, self._work.each, ask=self._work.ask)

    @cached_property
    def measured(self) -> Measured:
        """What a second look found; ranks that nobody asks for later are gone then."""
        found = measured(self.job, self._work.each, self.columns, alphas=alphas_of(self._work.settings))
        if not self._keep:
            remove_ranks(self.job, self._work.each)
        return found

    def findings(self, names: tuple[str, ...]) -> Findings:
        """What was found of some columns."""
        if names not in self._findings:
            places = [self.job.names.index(name) for name in names]
            columns = [self.columns[j] for j in places]
            self._findings[names] = Findings(names, columns, self.measured.only(places), settings=self._work.settings)
        return self._findings[names]


@dataclass(eq=False)
class Work:
    """What selections of records are worked on with, and those that were."""

    each: Each
    scratch: Scratch
    seed: Seed
    settings: Settings
    ask: Ask | None = None
    room: float = math.inf
    """Bytes of memory that all records together may take in a few columns."""
    _roles: tuple[Known, Known] | None = None
    _known: dict[tuple[Any, ...], list[Records]] = field(default_factory=dict)
    _count: int = 0

    def roles(self, roles: Roles) -> tuple[Known, Known]:
        """What given roles say of all records."""
        if self._roles is None:
            self._roles = known_roles(self.each, roles, self.scratch, room=self.room)
        return self._roles

    def fresh(self) -> int:
        """A number that was not given before."""
        self._count += 1
        return self._count

    def records(
        self, key: tuple[Any, ...], names: tuple[str, ...], job: Callable[[], Job], *, keep: bool = False
    ) -> Records:
        """The records of a selection in some columns or more; `job` makes a job on them when there is none yet.

        `keep` leaves their ranks in the scratch folder.
        """
        for known in self._known.setdefault(key, []):
            if set(names) <= set(known.job.names):
                return known
        made = job()
        own = replace(made, scratch=self.scratch.within(f"v{self.fresh()}"))
        self._known[key].append(Records(own, self, keep=keep))
        return self._known[key][-1]


class PartedView:
    """The original and the masked records that are compared, as far as they are known in parts."""

    def __init__(
        self, names: tuple[str, ...], sizes: tuple[int, int], *, paired: bool, records: Records | None
    ) -> None:
        self.names, self.paired = names, paired
        self.sides = {"x": range(sizes[0]), "y": range(sizes[1])}
        self._records = records

    def __len__(self) -> int:
        return len(self.sides["x"])

    @property
    def records(self) -> Records:
        """The job on these records."""
        if self._records is None:
            raise NotApplicableError("no record has the values that it needs")
        return self._records

    @property
    def job(self) -> Job:
        """The job on these records, whose ranks lie in the scratch folder; it may have more columns."""
        assert self.records.columns
        return self.records.job

    def only(self, name: str) -> PartedView:
        """The same records in one column."""
        return PartedView((name,), (len(self), len(self.sides["y"])), paired=self.paired, records=self._records)

    @property
    def findings(self) -> Findings:
        """What was found of the columns."""
        return self.records.findings(self.names)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.findings.fact(name)
        except KeyError:
            raise NotApplicableError(ALL_AT_ONCE) from None


class PartedColumn(Column):
    """The only column of a view."""

    def __init__(self, view: PartedView) -> None:
        super().__init__(cast(View, view), 0)
        self.view = view
