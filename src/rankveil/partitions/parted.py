"""Two tables in parts as a pair: which of their records a measure takes, and what was found of those.

It takes the part of `rankveil.pairing.Pair` in `rankveil.measuring.Measuring`: the same records are compared as in
memory, by the same rules, and said to be. Each selection of records is ranked and measured once, when first asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from rankveil import catalogue, dates
from rankveil.catalogue import Measure, Value
from rankveil.errors import NotApplicableError
from rankveil.matching import Known
from rankveil.measuring import Measuring
from rankveil.pairs import Pair, none_complete, said_of_gaps
from rankveil.partitions.choosing import Chosen, Drawing, Lacking, draw_partition
from rankveil.partitions.comparing import Compared
from rankveil.partitions.layout import Sizes
from rankveil.partitions.pairwise import Every
from rankveil.partitions.parquet import Readable
from rankveil.partitions.queries import drawn_rows
from rankveil.partitions.records import ALL_AT_ONCE, InDays, PartedColumn, PartedView, Work
from rankveil.partitions.selecting import Selections
from rankveil.partitions.stages import Job
from rankveil.views import Beside, View

_WHAT = {"x": "original", "y": "masked"}
_OF_ROLES = ("quasi_", "confidential_", "survey_")


@dataclass(frozen=True, eq=False)
class Aligned:
    """Selections of two tables, and of the records of both that belong together."""

    own: Mapping[str, Selections]
    pairs: Selections | None
    """None when no record belongs to another."""
    sizes: tuple[int, int]
    """How many records the tables have."""
    paired: int = 0
    """How many records belong together."""


@dataclass(eq=False)
class Parted:
    """Two tables in parts over the same columns, records matched as far as they can be."""

    compared: Compared
    names: tuple[str, ...]
    aligned: Aligned
    mapping: str
    work: Work
    notes: list[str] = field(default_factory=list)
    days: bool = False
    whole_pair: Parted | None = None
    """The pair with all columns."""

    def __post_init__(self) -> None:
        self.seed = self.work.seed
        self.x = np.empty(0)  # no values are held here
        self._parts: dict[tuple[str, ...], Parted] = {}
        if self.mapping == "none":
            self.notes += self._said_of_unpaired()

    def __len__(self) -> int:
        if self.mapping != "none":
            return self.aligned.paired
        return min(self._complete(side) for side in "xy")

    def _of(self, what: Sequence[Any]) -> tuple[Any, ...]:
        """What all columns have, for these."""
        return tuple(what[self.compared.names.index(name)] for name in self.names)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each column."""
        return self._of(self.compared.kinds)

    @property
    def categories(self) -> tuple[Any, ...]:
        """What the values of each column stand for; None for numbers."""
        return self._of(self.compared.categories)

    @property
    def temporal(self) -> tuple[Any, ...]:
        """The type of each column of dates or times; None for others."""
        return self._of(self.compared.temporal)

    @property
    def rankings(self) -> dict[str, str]:
        """By what the categories of a column are ordered, for those that are no numbers."""
        found = zip(self.names, self.categories, strict=True)
        return {name: categories.ranking for name, categories in found if categories is not None}

    @property
    def known(self) -> tuple[Known, Known]:
        """What given roles say of all records, if there is room for it in memory."""
        return self.work.roles(self.compared.roles)

    def of_kinds(self, kinds: Sequence[str]) -> Parted | None:
        """The pair on the columns of some kinds, and on the records that are complete in those; None if none is."""
        return self._only(name for name, kind in zip(self.names, self.kinds, strict=True) if kind in kinds)

    def with_zeros(self) -> Parted | None:
        """The pair on the columns whose 0 means nothing; None if there is none."""
        return self._only(name for name, kind in zip(self.names, self.temporal, strict=True) if dates.has_zero(kind))

    def only(self, names: Sequence[str]) -> Parted:
        """The pair on some columns."""
        made = self._only(names)
        assert made is not None
        return made

    def _only(self, some: Iterable[str]) -> Parted | None:
        names = tuple(some)
        if names == self.names:
            return self
        if names and names not in self._parts:
            self._parts[names] = replace(self, names=names, notes=[], whole_pair=self.whole_pair or self)
        return self._parts.get(names)

    def in_days(self) -> Parted:
        """The pair with dates and times in days."""
        kinds = [kind for kind in self.temporal if kind is not None]
        return self if self.days or all(str(kind) == "date32[day]" for kind in kinds) else self._days

    @cached_property
    def _days(self) -> Parted:
        return replace(self, days=True, notes=list(self.notes) if self.mapping != "none" else [])

    # ---- records ----

    @cached_property
    def table(self) -> PartedView:
        """The records that are complete in all columns."""
        if self.mapping == "none":
            return self._unpaired_view()
        return self._paired_view(self.names)

    @cached_property
    def columns(self) -> tuple[PartedColumn, ...]:
        """For each column the records that have it on both sides."""
        if self.mapping == "none":
            return tuple(PartedColumn(self.table.only(name)) for name in self.names)
        pairs = self._pairs
        pairs.make([pairs.base.lacking("xy", [name]) for name in self.names])
        return tuple(PartedColumn(self._paired_view((name,))) for name in self.names)

    @cached_property
    def whole(self) -> PartedView:
        """All records that are complete on their own side."""
        if self.mapping == "none":
            alike = self._complete("x") == self._complete("y")
            return self.table if alike else self._apart_view(self.names)
        return self.table if self._nobody_lost(self.names) else self._apart_view(self.names)

    @cached_property
    def gaps(self) -> bool:
        """Whether some record of either table has a missing cell."""
        return any(name in self.compared.gaps[side] for side in "xy" for name in self.names)

    @property
    def records(self) -> int:
        """How many records are compared: those that correspond, or all of the smaller table where none do."""
        return len(self) if self.mapping != "none" else min(self.sizes)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many records the original and the masked table have."""
        return self.aligned.sizes

    @cached_property
    def every(self) -> Every:
        """All records of both tables with their missing cells."""
        own = {side: self.aligned.own[side].base for side in "xy"}
        job = self._job(own["x"].sources["x"], own["y"].sources["y"], self.names, own["x"].bounds)
        return Every(replace(job, apart=own["y"].bounds), self.work.each, self.whole_columns)

    @cached_property
    def available(self) -> PartedView:
        """All records of both tables, complete or not; `whole` where all are complete."""
        complete = tuple(self._complete(side) for side in "xy")
        if complete == self.aligned.sizes:
            return self.whole
        return PartedView(self.names, self.aligned.sizes, paired=False, records=None)

    @cached_property
    def whole_columns(self) -> tuple[PartedColumn, ...]:
        """For each column all records that have it on their own side."""
        if self.mapping == "none":
            if self.gaps:
                return tuple(PartedColumn(self._apart_view((name,))) for name in self.names)
            return tuple(PartedColumn(self.whole.only(name)) for name in self.names)
        return tuple(
            paired if self._nobody_lost((name,)) else PartedColumn(self._apart_view((name,)))
            for name, paired in zip(self.names, self.columns, strict=True)
        )

    @property
    def nearest(self) -> PartedView:
        """Nearest records are not looked for in parts."""
        raise NotApplicableError(ALL_AT_ONCE)

    @property
    def _pairs(self) -> Selections:
        assert self.aligned.pairs is not None
        return self.aligned.pairs

    def _lacking(self, side: str, names: Sequence[str]) -> Lacking:
        own = self.aligned.own[side]
        return own.same(own.base.lacking(side, names))

    def _complete(self, side: str, names: Sequence[str] | None = None) -> int:
        """How many records of a table are complete in some columns."""
        return self.aligned.own[side].count(self._lacking(side, self.names if names is None else names))

    def _nobody_lost(self, names: tuple[str, ...]) -> bool:
        """Whether all records have partners, and the same cells are there on both sides, or none at all."""
        x, y = (self._complete(side, names) for side in "xy")
        if not (x and y):
            return True
        both = self._pairs.count(self._pairs.base.lacking("xy", names))
        return self.aligned.sizes == (len(self), len(self)) and x == y == both

    def _paired_view(self, names: tuple[str, ...]) -> PartedView:
        pairs = self._pairs
        lacking = pairs.same(pairs.base.lacking("xy", names))
        count = pairs.count(lacking)
        if not count:
            return PartedView(names, (0, 0), paired=True, records=None)
        wide = self._wide(names, lambda some: pairs.same(pairs.base.lacking("xy", some)) == lacking)

        def job() -> Job:
            x, y = (pairs.records(side, lacking) for side in "xy")
            return self._job(x, y, wide, pairs.parts(lacking))

        records = self.work.records(("pairs", lacking, self.days), names, job, keep=wide == self._every)
        return PartedView(names, (count, count), paired=True, records=records)

    def _apart_view(self, names: tuple[str, ...]) -> PartedView:
        lacking = {side: self._lacking(side, names) for side in "xy"}
        sizes = self._complete("x", names), self._complete("y", names)
        if not all(sizes):
            return PartedView(names, (0, 0), paired=False, records=None)
        wide = self._wide(names, lambda some: all(self._lacking(side, some) == lacking[side] for side in "xy"))

        def job() -> Job:
            own = self.aligned.own
            x, y = (own[side].records(side, lacking[side]) for side in "xy")
            made = self._job(x, y, wide, own["x"].parts(lacking["x"]))
            return replace(made, apart=own["y"].parts(lacking["y"]))

        records = self.work.records(("apart", lacking["x"], lacking["y"], self.days), names, job)
        return PartedView(names, sizes, paired=False, records=records)

    def _unpaired_view(self) -> PartedView:
        """As many complete records of both sides; the larger one drawn down."""
        n = len(self)
        if not n:
            return PartedView(self.names, (0, 0), paired=False, records=None)
        lacking = {side: self._lacking(side, self.names) for side in "xy"}

        def job() -> Job:
            x, y = (self._drawn(side, lacking[side], n) for side in "xy")
            parts = x.parts if isinstance(x, Chosen) else self.aligned.own["x"].parts(lacking["x"])
            return replace(self._job(x, y, self.names, parts), apart=parts)

        key = ("unpaired", lacking["x"], lacking["y"], self.days)
        records = self.work.records(key, self.names, job, keep=self.names == self._every)
        return PartedView(self.names, (n, n), paired=False, records=records)

    def _drawn(self, side: str, lacking: Lacking, count: int) -> Readable:
        own = self.aligned.own[side]
        if own.count(lacking) == count:
            return own.records(side, lacking)
        chosen = own.chosen(side, lacking)
        name = f"drawn{side}{self.work.fresh()}"
        rows = drawn_rows(self.seed.stream("sample", _WHAT[side]), len(chosen), count)
        self.work.scratch.put(f"{name}-rows", rows)
        drawing = Drawing(chosen, name, f"{name}-rows")
        counts = self.work.each(partial(draw_partition, drawing), range(len(chosen.counts)))
        return replace(chosen, counts=tuple(counts), name=name)

    def _wide(self, names: tuple[str, ...], same: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...]:
        """All columns where the same records are complete in those: one job serves every measure then."""
        return self._every if names != self._every and same(self._every) else names

    @property
    def _every(self) -> tuple[str, ...]:
        return (self.whole_pair or self).names

    def _job(self, x: Readable, y: Readable, names: tuple[str, ...], bounds: tuple[int, ...]) -> Job:
        if self.days:
            found = zip(self.compared.names, self.compared.temporal, strict=True)
            kinds = {name: kind for name, kind in found if kind is not None}
            x, y = InDays(x, kinds), InDays(y, kinds)
        return Job(x, y, names, bounds, self.work.scratch, self.seed, Sizes.of(len(bounds) - 1))

    # ---- what is said ----

    def check(self) -> None:
        """Some records are there to be compared; how many are not complete is noted."""
        if self.mapping == "none":
            if not any(all(self._complete(side, (name,)) for side in "xy") for name in self.names):
                raise none_complete()
            return
        if not any(len(column) for column in self.columns):
            raise none_complete()
        incomplete = len(self) - self._pairs.count(self._pairs.base.lacking("xy", self.names))
        if incomplete:
            self.notes.append(said_of_gaps(incomplete, len(self)))

    def _said_of_unpaired(self) -> list[str]:
        notes = []
        sizes = {side: self._complete(side) for side in "xy"}
        for (side, what), all_of in zip(_WHAT.items(), self.aligned.sizes, strict=True):
            if sizes[side] < all_of:
                notes.append(said_of_gaps(all_of - sizes[side], all_of, what))
        n = min(sizes.values())
        for side, what in _WHAT.items():
            if sizes[side] > n:
                notes.append(
                    f"where as many original as masked records are needed, {n} of the {sizes[side]} {what} ones are "
                    "used, drawn by the seed"
                )
        return notes


Special = Callable[[Measure, Parted, PartedView], Value]
"""A measure that is not put together from summaries."""


class MeasuringParts(Measuring):
    """The measures of two tables in parts; `special` ones have ways of their own."""

    def __init__(self, parted: Parted, *, special: Mapping[str, Special], weighted: bool = False) -> None:
        super().__init__(cast(Pair, parted), settings=parted.work.settings)
        self._special, self._weighted = special, weighted

    def _compute(self, entry: Measure) -> Value:
        if self._weighted and entry.weighted:
            raise NotApplicableError("not on a cluster: it would have to count the records by their weights")
        return super()._compute(entry)

    def _prepare(self, entry: Measure, column: Any) -> None:
        if entry.id not in self._special and not column.view.findings.can(entry.id):
            raise NotApplicableError(ALL_AT_ONCE)

    def _run(self, entry: Measure, pair: Any, view: Any, name: str) -> Value:
        if all(need.startswith(_OF_ROLES) for need in entry.needs):  # asked of all records, complete or not
            return super()._run(entry, pair, view, name)
        if len(view) == 0:
            raise NotApplicableError("no record has the values that it needs")
        if isinstance(view, Beside):
            self._prepare(entry, view.columns[0])
            return super()._run(entry, pair, view, name)
        if isinstance(view, Every) and entry.id not in self._special:
            return super()._run(entry, pair, cast(View, view), name)
        own = view.view if isinstance(view, PartedColumn) else view
        if entry.id in self._special:
            return self._special[entry.id](entry, pair, own)
        if not any(need in catalogue.measures() for need in entry.needs) and not own.findings.can(entry.id):
            raise NotApplicableError(ALL_AT_ONCE)
        return super()._run(entry, pair, view, name)
