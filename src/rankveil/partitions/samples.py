"""Some records of two tables, drawn by their places: for measures that cannot be put together from partitions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rankveil.partitions.stages import Each, Job

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


def sampled(job: Job, each: Each, samples: Mapping[str, tuple[Rows, Rows]]) -> None:
    """Leave the values of some records of both tables, by the name of the sample, in the scratch folder: see `sample`.

    Records are given by their places, in order, among those of the original and among those of the masked table.
    """
    for name, both in samples.items():
        for side, rows in zip("xy", both, strict=True):
            job.scratch.put(_rows_file(name, side), rows)
    each(partial(take_rows, job, tuple(samples)), job.partitions)


def take_rows(job: Job, names: tuple[str, ...], partition: int) -> None:
    """A task: write the values that samples have in a partition."""
    columns = range(len(job.names))
    for side in "xy":
        if not job.has(side, partition):
            continue
        start, stop = job.ends(side, partition)
        wanted = {}
        for name in names:
            rows: Rows = job.scratch.take(_rows_file(name, side), np.int64)
            first, last = np.searchsorted(rows, [start, stop])
            wanted[name] = rows[first:last] - start
        table = job.read(side, columns, partition) if any(map(len, wanted.values())) else []
        for name, rows in wanted.items():
            values = np.concatenate([*(column[rows] for column in table), np.empty(0)])
            job.scratch.put(_sample_file(name, side, partition), values)


def sample(job: Job, name: str) -> tuple[Array, Array]:
    """The original and the masked values of a sample, in the order of the records."""
    m = len(job.names)
    found = []
    for side in "xy":
        files = [_sample_file(name, side, p) for p in job.partitions if job.has(side, p)]
        parts = [job.scratch.take(file, np.float64).reshape(m, -1) for file in files]
        found.append(np.concatenate(parts, axis=1).T)
    return found[0], found[1]


def sample_files(job: Job, names: tuple[str, ...]) -> list[str]:
    """The files of some samples."""
    files = [_sample_file(name, side, p) for name in names for side in "xy" for p in job.partitions]
    return [*files, *(_rows_file(name, side) for name in names for side in "xy")]


def _rows_file(name: str, side: str) -> str:
    return f"sampled-rows-{name}-{side}"


def _sample_file(name: str, side: str, partition: int) -> str:
    return f"sampled-{name}-{side}-{partition}"
