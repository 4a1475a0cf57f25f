"""One original, many maskings: what each gives, computed once, whoever asks and however the work is split."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from rankveil import masking
from rankveil.catalogue import Array
from rankveil.categories import Categories
from rankveil.errors import NotApplicableError, RankveilError, TableError
from rankveil.execute import one_core_algebra
from rankveil.intruder.finding import Finding, find_people
from rankveil.intruder.simulation import Told
from rankveil.levels import at_released_level, generalities
from rankveil.matching import Known, known_of, masked_places, matrix
from rankveil.measuring import Measuring, Settings
from rankveil.pairs import Mapping_, Pair, Rows
from rankveil.plans import Plan
from rankveil.seeds import Seed
from rankveil.table import Table

FOUND = "found"
"""Asked for beside measures: the share of people found, and how many with certainty."""
CHANGED = "changed"
"""Asked for beside measures: how many cells, columns and records are not as they were."""
LEVELS = "levels"
"""Asked for beside measures: the permutation level of each attribute."""


@dataclass(frozen=True)
class Task:
    """One masking and what is asked of it."""

    plan: Plan
    replicate: int
    asked: tuple[str, ...]
    people: float = 1.0
    """The share of the people who are looked for among all records."""

    @property
    def key(self) -> str:
        """The same for the same task, in this run and in a later one."""
        text = json.dumps([self.plan.to_dict(), self.replicate, sorted(self.asked), self.people], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Result:
    """What a masking gave: values by name, and why others are missing."""

    values: Mapping[str, Any]
    without: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    """Why the masking itself failed."""
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What measures said beside their values: what was sampled, approximated or left out."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        notes = {name: list(said) for name, said in self.notes.items()}
        return {"values": dict(self.values), "without": dict(self.without), "error": self.error, "notes": notes}


class Study:
    """The original with everything that its maskings share, and the seed of their common random streams."""

    def __init__(
        self,
        table: Table,
        names: Sequence[str],
        *,
        seed: Seed,
        settings: Settings | None = None,
        target: str | None = None,
        grid: bool = True,
    ) -> None:
        self.grid = grid
        """Whether numbers are put on their grid, as in a release; the papers' maskings are not."""
        self.table, self.names, self.seed = table, tuple(names), seed
        self.settings, self.target = settings or {}, target
        x = matrix(table, self.names, what="original")
        rows = np.arange(len(table))
        categories = [table.categories(name) if table.labels(name) else None for name in self.names]
        self.base = Pair(
            self.names,
            x,
            x,
            rows,
            rows,
            "rows",
            seed,
            [],
            kinds=tuple(table.cells(name).kind for name in self.names),
            categories=tuple(categories),
            known=known_of(table, table),
        )

    def applied(self, plan: Plan, replicate: int) -> masking.Applied:
        """One of its maskings."""
        return masking.apply(self.table, plan, seed=self.seed, replicate=replicate, grid=self.grid)

    def pair(self, plan: Plan, replicate: int) -> Pair:
        """The original beside one of its maskings, records in the order of the original."""
        return self.beside(self.applied(plan, replicate), mapping=_mapping(plan))

    @cached_property
    def identifiers(self) -> tuple[str, ...]:
        """Columns that name a person, which no release should have; none that is compared."""
        named = (column.name for column in self.table.columns.values() if column.role == "identifier")
        return tuple(name for name in named if name not in self.names)

    def left_by(self, masked: Collection[str]) -> tuple[str, ...]:
        """The columns that a release has as they are, when these are masked: all others but identifiers."""
        return tuple(name for name in self.table.names if name not in masked and name not in self.identifiers)

    def attacked(self, plan: Plan, replicate: int, *, people: float = 1.0) -> Finding:
        """What somebody who uses everything finds in one of the maskings, in all columns but identifiers."""
        applied = self.applied(plan, replicate)
        origin = np.arange(len(self.table)) if applied.order is None else applied.order
        return find_people(
            self.table,
            self.released(applied),
            manifest=Told(plan, applied.steps, {name: math.prod(applied.weighed_by) for name in applied.weights}),
            truth=origin.astype(np.int64),
            columns=[name for name in self.table.names if name not in {*applied.dropped, *self.identifiers}],
            people=people,
            seed=self.seed,
            calibrate=False,
        )

    def beside(self, applied: masking.Applied, *, mapping: Mapping_ = "rows") -> Pair:
        """The original beside what a plan made of it."""
        base = self.base
        places = [coded(self.table, applied, name) for name in self.names]
        y = np.empty((len(self.table) if applied.order is None else applied.order.size, len(places)), order="F")
        for j, name in enumerate(self.names):
            y[:, j] = places[j][0] if name in applied.values else _taken(base.x[:, j], applied.order)
        categories = tuple(place[1] or own for place, own in zip(places, base.categories, strict=True))
        known = base.known[0], _known(self.table, base.known[0], applied)
        facts: dict[str, Any] = {"kinds": base.kinds, "categories": categories, "known": known}
        rows = np.arange(len(y))
        links = None if mapping == "none" else (rows if applied.order is None else applied.order, rows)
        x, facts["bands"], _ = at_released_level(self.table, self.names, categories, applied.labels, (base.x, y), links)
        facts["released"] = lambda: generalities(self.table, self.released(applied), self.names, links)
        if applied.order is None or applied.order.size == len(self.table):
            if applied.order is not None:
                back = np.empty_like(y)
                back[applied.order] = y
                y, known = back, (known[0], _back(known[1], applied.order))
                facts["known"] = known
            facts["beside"] = base if x is base.x and not facts["bands"] else None
            return Pair(self.names, x, y, base.original, base.masked, mapping, self.seed, [], **facts)
        some = np.asfortranarray(x[applied.order])
        return Pair(self.names, some, y, applied.order, rows, mapping, self.seed, [], everything=(x, y), **facts)

    def released(self, applied: masking.Applied) -> Table:
        """The table of one of its maskings."""
        frame, _ = self.table.replaced(
            applied.values,
            order=applied.order,
            labels=applied.labels,
            dropped=applied.dropped,
            weights=applied.weights,
        )
        kept = self.table.schema.only(name for name in self.table.names if name not in applied.dropped)
        return Table(frame, schema=kept, decimal=self.table.decimal)

    @one_core_algebra()  # as in a worker: sums on several cores would differ in their last digits
    def measure(self, task: Task) -> Result:
        """Mask, and measure what is asked."""
        try:
            applied = self.applied(task.plan, task.replicate)
            both = self.beside(applied, mapping=_mapping(task.plan))
        except RankveilError as error:
            return Result({}, error=str(error))
        intruder = cache(lambda: self.attacked(task.plan, task.replicate, people=task.people))
        measuring = Measuring(both, settings=self.settings, target=self.target, intruder=intruder)
        values: dict[str, Any] = {}
        without: dict[str, str] = {}
        notes: dict[str, list[str]] = {}
        for name in task.asked:
            try:
                if name == FOUND:
                    found = intruder()
                    values[name] = {"share": found.share, "certain": int(found.certain.sum()), "of": found.count}
                elif name == CHANGED:
                    values[name] = _changed(self.table, applied)
                elif name == LEVELS:
                    level = measuring.value("permutation_level").details["per_attribute"]
                    values[name] = {column: float(each) for column, each in level.items()}
                else:
                    measured = measuring.value(name)
                    values[name] = measured.value
                    if measured.notes:
                        notes[name] = list(measured.notes)
            except NotApplicableError as why:
                without[name] = str(why)
        return Result(values, without, notes=notes)


def _changed(table: Table, applied: masking.Applied) -> int:
    """How many cells, columns and records are not as they were; another order of the records is no change."""
    gone = 0 if applied.order is None else len(table) - applied.order.size
    return sum(applied.account(table).changed.values()) + len(applied.dropped) + abs(gone)


def columns_compared(table: Table, chosen: Sequence[str] | None) -> tuple[str, ...]:
    """The columns that a comparison masks and measures, as a release would."""
    return table.usable(chosen)


def coded(table: Table, applied: masking.Applied, name: str) -> tuple[Array | None, Categories | None]:
    """The masked values of a column as places among the original's categories, and those with what is new."""
    values = applied.values.get(name)
    labels = applied.labels.get(name)
    if values is None or labels is None:
        return values, None
    if table.cells(name).kind == "nominal":
        known = table.categories(name)
        shared = known.extended([label for label in labels if label not in set(known.labels)])
        place = dict(zip(shared.labels, shared.values, strict=True))
        numbers = [place[label] for label in labels]
    else:  # bands of numbers, groups of levels
        shared, places = None, masked_places(table, name, labels)
        if places is None:
            raise TableError(f"column {name}: its masked values are labels that cannot be compared with its values")
        numbers = [places[label] for label in labels]
    there = np.nan_to_num(values).astype(np.intp)
    return np.where(np.isnan(values), values, np.array(numbers)[there]), shared


def _known(table: Table, known: Known, applied: masking.Applied) -> Known:
    """What the roles say of the masked records, in the order of the release."""

    def told(columns: Mapping[str, Array]) -> dict[str, Array]:
        made = {}
        for name, values in columns.items():
            if name not in applied.dropped:
                masked, _ = coded(table, applied, name)
                made[name] = _taken(values, applied.order) if masked is None else masked
        return made

    survey = known.survey if known.survey is None else _taken(known.survey, applied.order)
    survey = next(iter(applied.weights.values()), survey)
    return Known(told(known.quasi), told(known.confidential), survey, known.kinds)


def _taken(values: Array, order: Rows | None) -> Array:
    return values if order is None else values[order]


def _back(known: Known, order: Rows) -> Known:
    """Masked records in the order of the original ones."""
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    return Known(
        {name: values[back] for name, values in known.quasi.items()},
        {name: values[back] for name, values in known.confidential.items()},
        None if known.survey is None else known.survey[back],
        known.kinds,
    )


def measure(study: Study, task: Task) -> Result:
    """A task of a worker."""
    return study.measure(task)


def _mapping(plan: Plan) -> Mapping_:
    """Whether masked records derive from original ones, by what the methods declare."""
    return "none" if any(step.entry.mapping == "none" for step in plan.steps) else "rows"
