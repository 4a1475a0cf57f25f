"""What is lost on the way costs time, not the result: workers, the scheduler, the one who asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankveil import cluster
from rankveil.cluster.audits import ask_quietly, measure_tables
from rankveil.cluster.engine import name_of
from rankveil.cluster.tables import open_tables
from rankveil.errors import ClusterError, ParameterError
from rankveil.partitions.layout import Sizes
from rankveil.partitions.measures import Findings
from rankveil.partitions.queries import linked
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Job, measured, ranked
from rankveil.seeds import Seed

ASKED = ("cm1", "cm2", "um", "spearman_risk", "pil", "il", "power_mean", "interval_disclosure")
NAMES = ("cm2", "spearman_risk", "rank_linkage")


def deadly(engine: Any, marks: Path) -> Callable[..., Any]:
    """An engine on which the first task of every list takes its worker down, in turn before and after its work."""

    def each(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        mark = str(marks / name_of(function))
        early = len(os.listdir(marks)) % 2 == 0

        def once(item: Any) -> Any:
            try:
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return function(item)
            if not early:
                function(item)
            os.kill(os.getpid(), signal.SIGKILL)

        found: list[Any] = engine(once, items)
        return found

    return each


def test_a_worker_lost_in_every_stage(engine: Any, tied: Any, write: Any, tmp_path: Path, each: Any) -> None:
    tables = open_tables(*write(*tied(300), rows=100))
    rows = np.arange(0, 300, 3)
    values, answers = [], []
    for number, run in enumerate((deadly(engine, tmp_path / "marks"), each)):
        (tmp_path / "marks").mkdir(exist_ok=True)
        folder = tmp_path / f"scratch-{number}"
        folder.mkdir()
        job = Job(tables.original, tables.masked, tables.names, (0, 100, 200, 300), Scratch(str(folder)), Seed.of(0))
        job = replace(job, sizes=Sizes(interval=30, span=80), together=5)
        columns = ranked(job, run, ask=partial(ask_quietly, {}))
        found = Findings(job.names, columns, measured(job, run, columns))
        values.append({name: value.value for name, value in found.all(ASKED)[0].items()})
        answers.append(linked(job, run, rows, ["euclidean"], ties=True)["euclidean"])
    died = set(os.listdir(tmp_path / "marks"))
    assert {"sort_partition", "cut_column", "rank_part", "ask_columns", "settle_part", "cut_constants"} <= died
    assert {"reverse_part", "reverse_constant", "return_ranks", "remove_files", "measure_partition"} <= died
    assert {"gather_asking", "answer_asking", "merge_answers"} <= died
    assert values[0] == values[1]  # to the last bit
    assert values[0].keys() == set(ASKED)
    for name in ("distance", "count", "row"):
        assert np.array_equal(getattr(answers[0], name), getattr(answers[1], name))


@contextmanager
def scheduler(folder: Path, *, workers: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
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


def test_a_lost_scheduler_leaves_nothing_half_written_and_the_work_is_resumed(
    engine: Any, tied: Any, write: Any, tmp_path: Path
) -> None:
    tables = open_tables(*write(*tied(400), rows=60))
    how: dict[str, Any] = {"names": NAMES, "seed": Seed.of(2), "rows": 60, "subjects": 50}
    expected = measure_tables(engine, tables, **how)
    shared = Path(engine.scratch)
    with scheduler(tmp_path, workers=1) as (address, process):

        def lose(done: int, of: int) -> None:
            if done > 0.3 * of and process.poll() is None:
                process.kill()
                process.wait()

        with (
            cluster.open(address, scratch=shared) as remote,
            pytest.raises(
                ClusterError, match=r"connection to the scheduler was lost; what was done is kept in .*--resume"
            ),
        ):
            measure_tables(remote, tables, progress=lose, **how)
    [folder] = set(shared.iterdir()) - {Path(engine._own)}
    assert folder.stat().st_mode & 0o777 == 0o700
    half = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    assert len(half) <= 1  # what the lost task was writing has no name yet
    steps: list[int] = []
    with pytest.raises(ParameterError, match="the same job was stopped and left its work here; go on with --resume"):
        measure_tables(engine, tables, **how)
    with pytest.raises(ParameterError, match="another job"):
        measure_tables(engine, tables, resume=True, **{**how, "seed": Seed.of(3)})
    found = measure_tables(engine, tables, resume=True, progress=lambda done, _: steps.append(done), **how)
    assert steps[0] > 0
    assert "what an earlier run had done was taken up" in found.notes
    assert {name: value.value for name, value in found.values.items()} == {
        name: value.value for name, value in expected.values.items()
    }
    assert {name: dict(value.details) for name, value in found.values.items()} == {
        name: dict(value.details) for name, value in expected.values.items()
    }
    assert not folder.exists()


def test_work_that_was_stopped_anywhere_is_resumed(engine: Any, tied: Any, write: Any) -> None:
    tables = open_tables(*write(*tied(200), rows=70))
    how: dict[str, Any] = {"names": NAMES, "seed": Seed.of(2), "rows": 70, "subjects": 50}
    expected = measure_tables(engine, tables, **how).values
    for until in (1, 20, 200, 400, 600, 800, 900, 985):

        def stop(done: int, _: int, until: int = until) -> None:
            if done >= until:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt, match=r"stopped; what was done is kept in .*--resume goes on"):
            measure_tables(engine, tables, resume=until > 1, progress=stop, **how)
    found = measure_tables(engine, tables, resume=True, **how)
    assert {name: value.value for name, value in found.values.items()} == {
        name: value.value for name, value in expected.items()
    }
    assert len(os.listdir(engine.scratch)) == 1


def test_a_journal_that_was_cut_off_in_the_middle_of_an_entry(engine: Any, tied: Any, write: Any) -> None:
    tables = open_tables(*write(*tied(150), rows=50))
    how: dict[str, Any] = {"names": ("cm2",), "seed": Seed.of(2), "rows": 50}

    def stop(done: int, of: int) -> None:
        if done > of // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_tables(engine, tables, progress=stop, **how)
    [journal] = Path(engine.scratch).glob("rankveil-*/journal")
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-7])
    found = measure_tables(engine, tables, resume=True, **how)
    assert found.values["cm2"].value == measure_tables(engine, tables, **how).values["cm2"].value


def test_the_same_job_is_not_at_work_twice(engine: Any, tied: Any, write: Any) -> None:
    tables = open_tables(*write(*tied(60), rows=60))
    how: dict[str, Any] = {"names": ("cm1",), "seed": Seed.of(0)}

    def again(*_: int) -> None:
        with pytest.raises(ParameterError, match="the same job is at work already"):
            measure_tables(engine, tables, resume=True, **how)

    measure_tables(engine, tables, progress=again, **how)
