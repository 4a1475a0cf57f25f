"""Some records of two tables, drawn by their rows: for measures that cannot be put together from partitions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rankveil.partitions.stages import Each, Job

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


def sampled(job: Job, each: Each, samples: Mapping[str, Rows]) -> None:
    """Leave the values of some rows, by the name of the sample, in the scratch folder: see `sample`."""
    for name, rows in samples.items():
        job.scratch.put(_rows_file(name), rows)
    each(partial(take_rows, job, tuple(samples)), job.partitions)


def take_rows(job: Job, names: tuple[str, ...], partition: int) -> None:
    """A task: write the values that samples have in a partition."""
    start, stop = job.bounds[partition], job.bounds[partition + 1]
    wanted = {}
    for name in names:
        rows: Rows = job.scratch.take(_rows_file(name), np.int64)
        first, last = np.searchsorted(rows, [start, stop])
        wanted[name] = rows[first:last] - start
    columns = range(len(job.names))
    tables = [job.read(side, columns, partition) for side in "xy"] if any(map(len, wanted.values())) else []
    for name, rows in wanted.items():
        values = [column[rows] for table in tables for column in table]
        job.scratch.put(_sample_file(name, partition), np.concatenate([*values, np.empty(0)]))


def sample(job: Job, name: str) -> tuple[Array, Array]:
    """The original and the masked values of a sample, in the order of the rows."""
    m = len(job.names)
    parts = [job.scratch.take(_sample_file(name, p), np.float64).reshape(2, m, -1) for p in job.partitions]
    x, y = np.concatenate(parts, axis=2)
    return x.T, y.T


def sample_files(job: Job, names: tuple[str, ...]) -> list[str]:
    """The files of some samples."""
    files = [_sample_file(name, p) for name in names for p in job.partitions]
    return [*files, *(_rows_file(name) for name in names)]


def _rows_file(name: str) -> str:
    return f"sampled-rows-{name}"


def _sample_file(name: str, partition: int) -> str:
    return f"sampled-{name}-{partition}"
