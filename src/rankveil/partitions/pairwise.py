"""Two tables in parts with their missing cells: moments of every two columns, over the records that have both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from types import SimpleNamespace
from typing import Any

import numpy as np

from rankveil.errors import NotApplicableError
from rankveil.partitions.records import ALL_AT_ONCE, PartedColumn
from rankveil.partitions.stages import Each, Job
from rankveil.summaries.pairwise import Array, Counts, PairSums, Pairwise


@dataclass(frozen=True, eq=False)
class Centred:
    """By what the columns of a table are standardised."""

    side: str
    mean: Array
    spread: Array

    def applied(self, j: int, values: Array) -> Array:
        """(x - mean) / sd of column j, missing cells still missing; 0 where it is constant."""
        if self.spread[j] == 0:
            return np.where(np.isnan(values), np.nan, 0.0)
        halved: Array = (values / 2 - self.mean[j] / 2) / self.spread[j]  # a difference may be too large for a number
        return 2 * halved


class Every:
    """All records of both tables, whatever cells they lack; their ranks are unknown."""

    def __init__(self, job: Job, each: Each, columns: Sequence[PartedColumn]) -> None:
        self.names, self.records = job.names, SimpleNamespace(job=job)
        self.sides = {side: range(job.bounds_of(side)[-1]) for side in "xy"}
        self._job, self._each, self._columns = job, each, columns

    def __len__(self) -> int:
        return len(self.sides["x"])

    @property
    def job(self) -> Job:
        """No ranks of these are known."""
        raise NotApplicableError(ALL_AT_ONCE)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotApplicableError(ALL_AT_ONCE)

    @cached_property
    def pairs_x(self) -> Pairwise:
        """Of the original."""
        return self._pairs("x")

    @cached_property
    def pairs_y(self) -> Pairwise:
        """Of the masked table."""
        return self._pairs("y")

    @cached_property
    def shared_x(self) -> Counts:
        """How many original records have both of two columns."""
        return self._shared("x")

    @cached_property
    def shared_y(self) -> Counts:
        """How many masked records have both of two columns."""
        return self._shared("y")

    def _pairs(self, side: str) -> Pairwise:
        mean, spread = (
            np.array([getattr(column, f"{fact}_{side}") for column in self._columns], np.float64)
            for fact in ("mean", "spread")
        )
        sums = self._of_parts(partial(sum_pairs, self._job, Centred(side, mean, spread)), side)
        return Pairwise(reduce(PairSums.merged, sums), mean, spread)

    def _shared(self, side: str) -> Counts:
        found: Counts = reduce(np.add, self._of_parts(partial(count_shared, self._job, side), side))
        return found

    def _of_parts(self, task: Any, side: str) -> list[Any]:
        return self._each(task, [p for p in self._job.partitions if self._job.has(side, p)])


def sum_pairs(job: Job, centred: Centred, partition: int) -> PairSums:
    """A task: the sums of every two columns in a partition of one table."""
    values = job.read(centred.side, range(len(job.names)), partition)
    return PairSums.of(np.column_stack([centred.applied(j, column) for j, column in enumerate(values)]))


def count_shared(job: Job, side: str, partition: int) -> Counts:
    """A task: how many records of a partition of one table have both of two columns."""
    there = ~np.isnan(np.column_stack(job.read(side, range(len(job.names)), partition)))
    counts: Counts = there.T.astype(np.int64) @ there.astype(np.int64)
    return counts
