"""Workers and tables for the tests of this room."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankveil import cluster

Write = Callable[..., tuple[Path, Path]]


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two local workers."""
    with cluster.open("local:2", scratch=tmp_path_factory.mktemp("scratch")) as opened:
        yield opened


@pytest.fixture(scope="session")
def dask(local_cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The same by the address of a scheduler: a LocalCluster of Dask's own, of two processes."""
    with (
        local_cluster(workers=2) as made,
        cluster.open(made.scheduler_address, scratch=tmp_path_factory.mktemp("shared")) as opened,
    ):
        yield opened


@pytest.fixture(scope="session")
def local_cluster() -> Callable[..., Any]:
    """A LocalCluster of Dask's own, without pages, whose port others may have."""
    from distributed import LocalCluster

    def made(*, workers: int) -> Any:
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
        )

    return made


@pytest.fixture(scope="session")
def tied() -> Callable[..., tuple[Any, Any]]:
    """An original and a masked table with ties of every kind."""

    def made(n: int, seed: int = 0) -> tuple[Any, Any]:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, 5)) @ (np.eye(5) + 0.4)
        x[:, 1] = np.round(x[:, 1], 1)
        x[:, 2] = rng.integers(0, 4, n) / 4
        x[: n // 3, 3] = 0.0
        y = x + 0.4 * rng.normal(size=x.shape)
        y[:, 1], y[:, 2] = np.round(y[:, 1], 1), np.round(y[:, 2])
        y[n // 4 : n // 2, 3] = 0.0
        return x, y

    return made


@pytest.fixture(scope="session")
def each() -> Callable[..., list[Any]]:
    """An engine without any workers."""
    return lambda function, items: [function(item) for item in items]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Two tables as Parquet folders of so many rows a file; the masked one is cut elsewhere."""

    def made(x: Any, y: Any, *, rows: int) -> tuple[Path, Path]:
        folders = []
        for side, table, step in (("original", x, rows), ("masked", y, max(rows // 2 + 1, 1))):
            folder = tmp_path / f"{side}-{rows}"
            folder.mkdir()
            folders.append(folder)
            whole = pa.table({f"V{j}": table[:, j] for j in range(table.shape[1])})
            for start in range(0, len(table), step):
                pq.write_table(whole.slice(start, step), folder / f"part-{start:06d}.parquet")
        return folders[0], folders[1]

    return made


@contextmanager
def begun(folder: Path, *, workers: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler and workers as processes of their own, as on a cluster: its address, and its process."""
    told = folder / "scheduler.json"
    environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]"}
    begin = partial(subprocess.Popen, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, cwd=folder)
    dask = [sys.executable, "-m", "dask"]
    where = ["--scheduler-file", str(told)]
    own = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    started = [begin([*dask, "scheduler", *where, *own, "--dashboard-address", "127.0.0.1:0"])]
    try:
        few = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--death-timeout", "60"]
        started += [begin([*dask, "worker", *where, *few]) for _ in range(workers)]
        end = time.monotonic() + 60
        while not told.exists() or not told.stat().st_size:
            assert time.monotonic() < end, "the scheduler did not begin"
            time.sleep(0.05)
        yield json.loads(told.read_text())["address"], started[0]
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def scheduler() -> Any:
    """A scheduler and workers that can be lost."""
    return begun
