"""One original, many maskings: what each gives, computed once, whoever asks and however the work is split."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankveil import masking
from rankveil.catalogue import Array
from rankveil.errors import NotApplicableError, RankveilError
from rankveil.matching import matrix
from rankveil.measuring import Measuring, Settings
from rankveil.pairing import Mapping_, Pair
from rankveil.people.intruder import attack_pair
from rankveil.plans import Plan
from rankveil.seeds import Seed
from rankveil.table import Table

CLAIMS = "claims"
"""Asked for beside measures: how many links the intruder can claim."""
LEVELS = "levels"
"""Asked for beside measures: the permutation level of each attribute."""


@dataclass(frozen=True)
class Task:
    """One masking and what is asked of it."""

    plan: Plan
    replicate: int
    asked: tuple[str, ...]

    @property
    def key(self) -> str:
        """The same for the same task, in this run and in a later one."""
        text = json.dumps([self.plan.to_dict(), self.replicate, sorted(self.asked)], sort_keys=True)
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
        draws: int = 10_000,
    ) -> None:
        self.table, self.names, self.seed = table, tuple(names), seed
        self.settings, self.target, self.draws = settings or {}, target, draws
        x = matrix(table, self.names, what="original")
        rows = np.arange(len(table))
        self.base = Pair(self.names, x, x, rows, rows, "rows", seed, [])

    def pair(self, plan: Plan, replicate: int) -> Pair:
        """The original beside one of its maskings, records in the order of the original."""
        applied = masking.apply(self.table, plan, seed=self.seed, replicate=replicate)
        return self.beside(applied, mapping=_mapping(plan))

    def beside(self, applied: masking.Applied, *, mapping: Mapping_ = "rows") -> Pair:
        """The original beside what a plan made of it."""
        columns: list[Array] = []
        for j, name in enumerate(self.names):
            columns.append(applied.values.get(name, self.base.x[:, j]))
        y = np.asfortranarray(np.column_stack(columns))
        if applied.order is not None:
            back = np.empty_like(y)
            back[applied.order] = y
            y = back
        return Pair(
            self.names, self.base.x, y, self.base.original, self.base.masked, mapping, self.seed, [], beside=self.base
        )

    def measure(self, task: Task) -> Result:
        """Mask, and measure what is asked."""
        try:
            both = self.pair(task.plan, task.replicate)
        except RankveilError as error:
            return Result({}, error=str(error))
        measuring = Measuring(both, settings=self.settings, target=self.target)
        values: dict[str, Any] = {}
        without: dict[str, str] = {}
        notes: dict[str, list[str]] = {}
        for name in task.asked:
            try:
                if name == CLAIMS:
                    values[name] = attack_pair(both, draws=self.draws).claims
                elif name == LEVELS:
                    level = measuring.value("permutation_level").details["per_attribute"]
                    values[name] = {column: float(each) for column, each in level.items()}
                else:
                    found = measuring.value(name)
                    values[name] = found.value
                    if found.notes:
                        notes[name] = list(found.notes)
            except NotApplicableError as why:
                without[name] = str(why)
        return Result(values, without, notes=notes)


def measure(study: Study, task: Task) -> Result:
    """A task of a worker."""
    return study.measure(task)


def _mapping(plan: Plan) -> Mapping_:
    """Whether masked records derive from original ones, by what the methods declare."""
    return "none" if any(step.entry.mapping == "none" for step in plan.steps) else "rows"
