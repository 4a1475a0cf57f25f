"""Maskings of a paper's data on all cores: what each gives, replicate by replicate, and how that agrees with print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankveil import files, masking
from rankveil.comparison.study import Study
from rankveil.errors import FileError, listing
from rankveil.execute import in_workers
from rankveil.measuring import Measuring, Settings
from rankveil.papers.compare import printed, replicated
from rankveil.papers.result import Progress, Row
from rankveil.plans import Plan
from rankveil.seeds import Seed
from rankveil.table import Table

Array = NDArray[np.float64]
K = TypeVar("K")


@dataclass(frozen=True)
class Job:
    """A masking of one of several originals, how often it is drawn, and what is asked of every draw."""

    of: str
    plan: Plan
    asked: tuple[str, ...]
    replicates: int = 1
    settings: Settings = field(default_factory=dict)
    """Parameters of the measures."""

    @property
    def draws(self) -> int:
        """How many draws differ: a method without chance in it is run once."""
        return self.replicates if any(step.entry.random for step in self.plan.steps) else 1


def measured(
    studies: Mapping[str, Study],
    jobs: Mapping[K, Job],
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> dict[K, Array]:
    """For every job a row per replicate with the values asked for; the numbers do not depend on the workers."""
    items = [(key, job, replicate) for key, job in jobs.items() for replicate in range(job.draws)]
    tasks = [(job, replicate) for _, job, replicate in items]
    values: dict[K, list[list[float]]] = {key: [] for key in jobs}
    for (key, _, _), found in zip(
        items, in_workers(_measure, dict(studies), tasks, workers=workers, progress=progress), strict=True
    ):
        values[key].append(found)
    return {key: np.array(rows) for key, rows in values.items()}


def _measure(studies: Mapping[str, Study], item: tuple[Job, int]) -> list[float]:
    """A task of a worker. Records are paired by their rows, synthetic ones too: so the papers do."""
    job, replicate = item
    study = studies[job.of]
    measuring = Measuring(study.beside(study.applied(job.plan, replicate)), settings=job.settings)
    return [measuring.value(name).value for name in job.asked]


def drawn(original: Any, method: str, *, seed: Seed, **parameters: Any) -> Any:
    """A masking of all columns as it was drawn, without the grid of a release."""
    table = Table.of(original)
    made, _ = table.replaced(masking.apply(table, Plan.of(method, **parameters), seed=seed, grid=False).values)
    return made


def read(path: Path, columns: Sequence[str]) -> Table:
    """Some columns of a reference data set."""
    loaded = files.load(path)
    missing = [name for name in columns if name not in loaded.data.column_names]
    if missing:
        raise FileError(f"{path}: these are not the data of the paper: there is no column {listing(missing)}")
    return Table(loaded.data.select(list(columns)), decimal=loaded.dialect.decimal if loaded.dialect else ".")


def part(progress: Progress | None, first: float, last: float) -> Progress | None:
    """The progress of a part of the work, from one share of the whole to another; it never goes back.

    >>> seen = []
    >>> half = part(lambda done, total: seen.append((done, total)), 0.5, 1.0)
    >>> half(1, 2), seen
    (None, [(750, 1000)])
    """
    if progress is None:
        return None
    reached = 0

    def within(done: int, total: int) -> None:
        nonlocal reached  # a search may find that it has more to do than it thought
        reached = max(reached, round(1000 * (first + (last - first) * done / max(total, 1))))
        progress(reached, 1000)

    return within


def compared(
    item: str, published: str, values: Array, *, expected: str | None = None, remark: str | None = None
) -> Row:
    """A published value beside our replicates, or beside the one value of a masking without chance.

    A `remark` explains a difference only as long as what is `expected` comes out.
    """
    row = _beside(item, published, values)
    known = expected is not None and _beside(item, expected, values).ok
    return replace(row, remark=remark if known and not row.ok else None)


def _beside(item: str, published: str, values: Array) -> Row:
    return replicated(item, published, values) if values.size > 1 else printed(item, published, float(values[0]))
