"""Tables on disk and an engine for the tests of this room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
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

MakeJob = Callable[..., Job]


def carelessly(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """An engine that starts tasks in another order than theirs, and runs each of them twice."""
    order = np.random.default_rng(len(items)).permutation(len(items))
    found = {int(i): function(items[i]) for i in order}
    again = {int(i): function(items[i]) for i in reversed(order)}
    assert found.keys() == again.keys()
    return [again[i] for i in range(len(items))]


@pytest.fixture
def each() -> Any:
    return carelessly


@pytest.fixture
def make_job(tmp_path: Path) -> MakeJob:
    """Two tables as Parquet folders cut at the given rows, and a job on them."""
    made = 0

    def make(x: Any, y: Any, *, cuts: Sequence[int] = (), sizes: Sizes | None = None, seed: int = 0) -> Job:
        nonlocal made
        made += 1
        folder = tmp_path / str(made)
        names = tuple(f"V{j}" for j in range(x.shape[1]))
        bounds = (0, *sorted(cuts), len(x))
        for side, table in (("x", x), ("y", y)):
            (folder / side).mkdir(parents=True)
            # the masked table lies in one file, however the original is cut
            files = bounds if side == "x" else (0, len(x))
            for k, (start, stop) in enumerate(zip(files[:-1], files[1:], strict=True)):
                part = pa.table({name: table[start:stop, j] for j, name in enumerate(names)})
                pq.write_table(part, folder / side / f"{k:03d}.parquet", row_group_size=7)
        (folder / "scratch").mkdir()
        original, masked = survey(str(folder / "x")), survey(str(folder / "y"))
        job = Job(original, masked, names, bounds, Scratch(str(folder / "scratch")), Seed.of(seed))
        return job if sizes is None else replace(job, sizes=sizes)

    return make
