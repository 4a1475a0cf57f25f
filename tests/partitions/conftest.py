"""Tables on disk and an engine for the tests of this room."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankveil.partitions.layout import Sizes
from rankveil.partitions.parquet import survey
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Job
from rankveil.seeds import Seed

Partitioned = Callable[..., AbstractContextManager[Job]]


def carelessly(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """An engine that starts tasks in another order than theirs, runs each of them twice, and sends all by post."""
    order = np.random.default_rng(len(items)).permutation(len(items)).tolist()
    found = {}
    for i in (*order, *reversed(order)):
        task, item = pickle.loads(pickle.dumps((function, items[i])))
        found[i] = pickle.loads(pickle.dumps(task(item)))
    return [found[i] for i in range(len(items))]


@pytest.fixture(scope="session")
def each() -> Any:
    return carelessly


@pytest.fixture(scope="session")
def partitioned() -> Partitioned:
    """Two tables as Parquet folders cut at the given rows, and a job on them, as long as it is needed."""

    @contextmanager
    def made(x: Any, y: Any, *, cuts: Sequence[int] = (), sizes: Sizes | None = None, seed: int = 0) -> Iterator[Job]:
        names = tuple(f"V{j}" for j in range(x.shape[1]))
        bounds = (0, *sorted(cuts), len(x))
        with TemporaryDirectory() as place:
            folder = Path(place)
            for side, table in (("x", x), ("y", y)):
                (folder / side).mkdir()
                # the masked table lies in one file, however the original is cut
                files = bounds if side == "x" else (0, len(x))
                for k, (start, stop) in enumerate(pairwise(files)):
                    part = pa.table({name: table[start:stop, j] for j, name in enumerate(names)})
                    pq.write_table(part, folder / side / f"{k:03d}.parquet", row_group_size=max(len(x) // 5, 7))
            (folder / "scratch").mkdir()
            original, masked = survey(str(folder / "x")), survey(str(folder / "y"))
            job = Job(original, masked, names, bounds, Scratch(str(folder / "scratch")), Seed.of(seed))
            yield job if sizes is None else replace(job, sizes=sizes)

    return made
