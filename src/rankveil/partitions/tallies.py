"""The different records of some columns and how many there are of each: for columns of categories."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import NotApplicableError
from rankveil.partitions.looking import MOST
from rankveil.partitions.parquet import Array
from rankveil.partitions.stages import Each, Job, remove_files

Counts = NDArray[np.int64]

_MISSING = -np.inf
"""What stands for a missing cell while records are counted: one NaN is not equal to another."""


def tallied(job: Job, each: Each) -> dict[str, tuple[Array, Counts]]:
    """The different records of the original (x) and of the masked table (y), and how many there are of each.

    A missing cell (NaN) is like another one.
    """
    items = [(side, p) for side in "xy" for p in job.partitions if job.has(side, p)]
    each(partial(tally_partition, job), items)
    found: dict[str, tuple[Array, Counts]] = {}
    for side, p in items:
        records = job.scratch.take(_records_file(side, p), np.float64).reshape(-1, len(job.names))
        part = records, job.scratch.take(_counts_file(side, p), np.int64)
        found[side] = part if side not in found else _merged(found[side], part)
        if len(found[side][0]) > MOST:
            raise NotApplicableError(f"not on a cluster: there are more than {MOST:,} different combinations")
    each(partial(remove_files, job), [[file(*item) for item in items for file in (_records_file, _counts_file)]])
    return {side: (np.where(records == _MISSING, np.nan, records), counts) for side, (records, counts) in found.items()}


def tally_partition(job: Job, item: tuple[str, int]) -> None:
    """A task: write the different records of a partition, and how many there are of each."""
    side, partition = item
    values = np.column_stack(job.read(side, range(len(job.names)), partition))
    records, counts = np.unique(np.where(np.isnan(values), _MISSING, values), axis=0, return_counts=True)
    job.scratch.put(_records_file(side, partition), records)
    job.scratch.put(_counts_file(side, partition), counts.astype(np.int64))


def _merged(one: tuple[Array, Counts], other: tuple[Array, Counts]) -> tuple[Array, Counts]:
    records, which = np.unique(np.concatenate((one[0], other[0])), axis=0, return_inverse=True)
    counts = np.bincount(which.reshape(-1), weights=np.concatenate((one[1], other[1])), minlength=len(records))
    return records, counts.astype(np.int64)


def _records_file(side: str, partition: int) -> str:
    return f"tally-{side}-{partition}"


def _counts_file(side: str, partition: int) -> str:
    return f"tally-numbers-{side}-{partition}"
