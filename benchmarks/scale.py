"""Measures of tables larger than memory beside the ranks alone in DuckDB, on the same two Parquet folders.

    .venv/bin/python benchmarks/scale.py [--records 5000000] [--columns 10] [--workers 2] [--memory 3GiB]

An original and a masked table are written as folders of many Parquet files: seven columns of ten without ties, one
rounded, one with a third of zeros, one of whole numbers. Then, on the same data:

- DuckDB (2 threads, 3 GiB) computes the average ranks of every column, one column after the other; they are added up
  and not kept, nor brought back to their rows;
- rankveil (`rv.audit` with `cluster="local:2"`), with two worker processes of one thread each and 3 GiB together,
  computes all rank and moment measures but cm3 and keeps the ranks of every row until it is done. Starting the workers
  is included.

Printed: seconds on the clock and of processor time, the ratios, the peak of the memory of all processes together, and
the peak of the scratch folder in bytes a row. On a machine that others use too, the ratio of processor times is the one
to look at.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

import numpy as np

import rankveil as rv

MEASURES = (
    "cm1",
    "cm2",
    "um",
    "pil",
    "il",
    "spearman_risk",
    "interval_disclosure",
    "power_mean",
    "permutation_level",
)
FILE = 250_000
"""Records of a Parquet file."""


def write_tables(folder: str, *, records: int, columns: int) -> None:
    """The two folders, file by file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    mix = np.random.default_rng(1).normal(size=(columns, columns))
    mix /= np.linalg.norm(mix, axis=0)
    for side in ("original", "masked"):
        os.makedirs(os.path.join(folder, side))
    for number, start in enumerate(range(0, records, FILE)):
        rng = np.random.default_rng([2, number])
        count = min(FILE, records - start)
        x = np.exp(rng.normal(size=(count, columns)) @ mix)
        y = x + 0.5 * rng.normal(size=x.shape)
        for j in range(0, columns, 10):
            x[:, j], y[:, j] = x[:, j].round(2), y[:, j].round(2)
        for j in range(1, columns, 10):
            y[x[:, j] < 0.65, j], x[x[:, j] < 0.65, j] = 0.0, 0.0
        for j in range(2, columns, 10):
            x[:, j], y[:, j] = np.floor(20 * x[:, j]), np.floor(20 * y[:, j])
        for side, table in (("original", x), ("masked", y)):
            path = os.path.join(folder, side, f"part-{number:05d}.parquet")
            pq.write_table(pa.table({f"V{j}": table[:, j] for j in range(columns)}), path)


def duckdb_ranks(folder: str, records: int, columns: int) -> tuple[float, float, int]:
    """Seconds on the clock and of processor time, and the peak of memory, of all average ranks in DuckDB."""
    import duckdb

    settings = {"threads": 2, "memory_limit": "3GiB", "temp_directory": os.path.join(folder, "duckdb")}
    connection = duckdb.connect(config=settings)
    clock, processor = time.perf_counter(), time.process_time()
    for side in ("original", "masked"):
        for j in range(columns):
            # the first and the last rank of the peers, averaged
            connection.execute(
                f"select sum(rank) from (select (rank() over w + cume_dist() over w * {records}) / 2 as rank "
                f"from '{folder}/{side}/*.parquet' window w as (order by V{j}))"
            ).fetchall()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return time.perf_counter() - clock, time.process_time() - processor, peak


class Watch:
    """The peaks of the memory of this process and those it started, and of a folder."""

    def __init__(self, folder: str) -> None:
        self.folder, self.memory, self.scratch, self.processor = folder, 0, 0, 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.3):
            self.memory = max(self.memory, sum(map(_proportional, [os.getpid(), *_below(os.getpid())])))
            self.scratch = max(self.scratch, _size(self.folder))
            self.processor = max(self.processor, _processor())  # of workers that are gone nothing is known


def _below(process: int) -> list[int]:
    """The processes that one has started, and those they have."""
    try:
        with open(f"/proc/{process}/task/{process}/children") as file:
            own = [int(child) for child in file.read().split()]
    except OSError:
        return []
    return [each for child in own for each in (child, *_below(child))]


def _proportional(process: int) -> int:
    """The memory of a process; pages that it shares with others count in part."""
    try:
        with open(f"/proc/{process}/smaps_rollup") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def _size(folder: str) -> int:
    """Bytes of all files below a folder."""
    total = 0
    for here, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.path.getsize(os.path.join(here, name))
    return total


def measure(folder: str, scratch: str, *, workers: int, memory: str) -> dict[str, float]:
    """The values of all measures, by worker processes that may use so much memory together."""
    original, masked = (os.path.join(folder, side) for side in ("original", "masked"))
    where = {"cluster": f"local:{workers}", "memory": memory, "scratch": scratch}
    found = rv.audit(original, masked, measures=MEASURES, **where)
    assert not found.not_applicable, found.not_applicable
    return {name: found.values[name].value for name in MEASURES}


def in_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function in a fresh process, so that its memory is its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def main() -> None:
    """Print both, and the ratios."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--records", type=int, default=5_000_000)
    options.add_argument("--columns", type=int, default=10)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--folder", help="where data and scratch files go; the system's temporary folder unless given")
    options.add_argument("--memory", default="3GiB", help="what the workers may use together")
    options.add_argument("--ours", action="store_true", help="leave DuckDB out")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        scratch = os.path.join(folder, "scratch")
        os.mkdir(scratch)
        write_tables(folder, records=given.records, columns=given.columns)
        print(f"{given.records} x {given.columns}, original and masked, {given.workers} workers")
        if not given.ours:
            theirs = in_process(duckdb_ranks, folder, given.records, given.columns)
            print(f"DuckDB, ranks alone: {_times(*theirs[:2])}, memory {_gigabytes(theirs[2])}")
        with Watch(scratch) as watch:
            clock, processor = time.perf_counter(), _processor()
            values = measure(folder, scratch, workers=given.workers, memory=given.memory)
            clock, processor = time.perf_counter() - clock, watch.processor - processor
        print(f"all measures: {_times(clock, processor)}, memory {_gigabytes(watch.memory)}")
        print(f"scratch at most {watch.scratch / given.records:.0f} bytes a row")
        if not given.ours:
            print(f"ratio: clock {clock / theirs[0]:.2f}, processor {processor / theirs[1]:.2f}")
        print(", ".join(f"{name} {value:.6g}" for name, value in values.items()))
        shutil.rmtree(scratch)


def _processor() -> float:
    """Processor time of this process and the workers so far."""
    total = 0
    for process in [os.getpid(), *_below(os.getpid())]:
        try:
            with open(f"/proc/{process}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])  # in user mode and in the system's
    return total / os.sysconf("SC_CLK_TCK")


def _times(clock: float, processor: float) -> str:
    return f"{clock:.1f} s on the clock, {processor:.1f} s of processor time"


def _gigabytes(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"


if __name__ == "__main__":
    main()
