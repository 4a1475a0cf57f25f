"""What is lost on the way costs time, not the result: workers, the scheduler, the one who asked."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil import cluster
from rankveil.cluster.audits import ask_quietly, measure_tables
from rankveil.cluster.sending import name_of
from rankveil.cluster.tables import given_tables
from rankveil.errors import ClusterError, ParameterError
from rankveil.measures.canonical_correlation import without_mapping
from rankveil.partitions.aligning import parted_tables
from rankveil.partitions.beside import SideBySide
from rankveil.partitions.layout import Sizes
from rankveil.partitions.measured import measured
from rankveil.partitions.measures import Findings
from rankveil.partitions.parquet import survey
from rankveil.partitions.parted import MeasuringParts
from rankveil.partitions.queries import linked
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Job, ranked
from rankveil.schema import Schema
from rankveil.seeds import Seed

ASKED = ("cm1", "cm2", "um", "spearman_risk", "pil", "il", "power_mean", "interval_disclosure")
NAMES = ("cm2", "spearman_risk", "rank_linkage")
BEFORE_AND_BESIDE = {
    *("look_at_side", "merge_side", "mark_gaps", "choose", "gather_roles", "measure_side"),
    *("look_at_keys", "spread_keys", "match_bucket", "send_partition", "arrange_partition"),
    *("sort_run", "cut_run", "sort_bucket", "add_places"),
    *("spread_draws", "permute_range", "return_permuted"),
}
"""Lists of tasks that bring tables together, and put their records side by side."""


def deadly(engine: Any, marks: Path, only: Collection[str] | None = None) -> Callable[..., Any]:
    """An engine on which the first task of every list takes its worker down, in turn before and after its work.

    With `only`, that of lists of some names.
    """

    def each(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        if only is not None and name_of(function) not in only:
            plain: list[Any] = engine(function, items)
            return plain
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
    tables = given_tables(*write(*tied(300), rows=100))
    rows = np.arange(0, 300, 3)
    values, answers = [], []
    for number, run in enumerate((deadly(engine, tmp_path / "marks"), each)):
        (tmp_path / "marks").mkdir(exist_ok=True)
        folder = tmp_path / f"scratch-{number}"
        folder.mkdir()
        job = Job(
            tables.original, tables.masked, tables.original.names, (0, 100, 200, 300), Scratch(str(folder)), Seed.of(0)
        )
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


@pytest.mark.thorough
def test_a_worker_lost_while_tables_are_brought_together(engine: Any, tied: Any, tmp_path: Path, each: Any) -> None:
    x, y = tied(120)
    x[::9, 0], y[::7, 1] = np.nan, np.nan
    sources = {}
    for side, values, order in (("x", x, np.arange(120)), ("y", y, np.random.default_rng(0).permutation(120)[:110])):
        more = {"ID": pa.array([f"k{i}" for i in range(120)]), "WORD": pa.array(["a", "b", "c"] * 40)}
        table = pa.table({**{f"V{j}": values[:, j] for j in range(5)}, **more}).take(order)
        pq.write_table(table, tmp_path / f"{side}.parquet", row_group_size=40)
        sources[side] = survey(str(tmp_path / f"{side}.parquet"))
    schema, found = Schema(roles={"WORD": "quasi-identifier"}), []
    (tmp_path / "marks").mkdir()
    for number, run in enumerate((deadly(engine, tmp_path / "marks", BEFORE_AND_BESIDE), each)):
        folder = tmp_path / f"scratch-{number}"
        folder.mkdir()
        pair = parted_tables(
            run,
            sources["x"],
            sources["y"],
            bounds={side: source.bounds(rows=40) for side, source in sources.items()},
            scratch=Scratch(str(folder)),
            seed=Seed.of(0),
            schema=schema,
            key="ID",
        )
        measuring = MeasuringParts(pair, special={})
        made = {name: measuring.value(name).value for name in ("cm2", "il2", "spearman_risk", "k_anonymity")}
        tables = SideBySide(pair.table.job, run, True, Seed.of(0).stream("chance"))
        view = pair.table
        made["cm3"] = without_mapping(view.rank_basis_x, view.rank_basis_y, tables, names=view.names).value
        found.append(made)
    assert set(os.listdir(tmp_path / "marks")) == BEFORE_AND_BESIDE
    assert found[0] == found[1]  # to the last bit


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Four local workers."""
    with cluster.open("local:4", memory="2GiB", scratch=tmp_path_factory.mktemp("four")) as opened:
        yield opened


def test_one_of_four_workers_is_killed_while_all_are_asked_what_they_see(
    four: Any, tied: Any, write: Any, tmp_path: Path
) -> None:
    paths = write(*tied(120), rows=40)
    victim = four.local.pids[1]
    os.kill(victim, signal.SIGSTOP)  # so that it has the question, and no answer
    killed = threading.Timer(0.5, os.kill, (victim, signal.SIGKILL))
    killed.start()
    made = rv.audit(*paths, cluster=four, measures=["cm2"])
    killed.join()
    assert victim not in four.local.pids
    assert made["cm2"] == rv.audit(*paths, measures=["cm2"])["cm2"]


def test_one_of_four_workers_is_killed_in_the_middle(four: Any, tied: Any, write: Any, tmp_path: Path) -> None:
    original, _ = write(*tied(400), rows=20)
    victims: list[int] = []

    def kill(done: int, of: int) -> None:
        if done > 0.3 * of and not victims:
            victims.append(four.local.pids[2])
            os.kill(victims[0], signal.SIGKILL)

    rv.mask(original, "rank_swap", seed="5eed", cluster=four, output=tmp_path / "out", progress=kill)
    assert len(victims) == 1
    assert pq.read_table(tmp_path / "out").equals(
        rv.mask(pq.read_table(original), "rank_swap", seed="5eed").published().data
    )


def test_a_worker_that_is_killed_before_it_began_is_started_again(tmp_path: Path) -> None:
    victims: list[int] = []
    own = psutil.Process()
    there = {child.pid for child in own.children()}

    def kill() -> None:
        while not victims:
            for child in own.children():
                with suppress(psutil.Error):
                    if child.pid not in there and any("rankveil.cluster.worker" in word for word in child.cmdline()):
                        child.kill()
                        victims.append(child.pid)
                        break

    killing = threading.Thread(target=kill)
    killing.start()
    with cluster.open("local:2", scratch=tmp_path) as opened:
        killing.join()
        assert len(victims) == 1
        assert victims[0] not in opened.local.pids
        assert opened.each(abs, [-3, -4]) == [3, 4]


def test_results_that_were_lost_with_a_worker_before_they_were_fetched(four: Any, tmp_path: Path) -> None:
    """Tasks that had ended are done again too: each worker has results here when one of them is killed.

    Some of its results may have come already; whatever had not is made by the others.
    """
    victims: list[int] = []
    slow = tmp_path / "slow"

    def who(item: int) -> tuple[int, int]:
        time.sleep(0.8 if slow.exists() else 0.02)
        return item, os.getpid()

    def kill(_: int, result: tuple[int, int]) -> None:
        if not victims:
            time.sleep(1.0)  # all others end meanwhile
            victims.append(next(pid for pid in four.local.pids if pid != result[1]))
            slow.touch()
            os.kill(victims[0], signal.SIGKILL)
            time.sleep(0.4)  # and the scheduler sees that their results are gone

    found = four.each(who, range(24), done=kill)
    assert [item for item, _ in found] == list(range(24))
    assert victims[0] not in four.local.pids
    assert {pid for _, pid in found} - {victims[0]}


def test_a_task_that_kills_every_worker_is_given_up(four: Any) -> None:
    def deadly(_: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    words = r"the task deadly ended one worker after another: .*more memory .*; give more with --memory"
    with pytest.raises(ClusterError, match=words):
        four.each(deadly, [1])
    assert four.each(abs, [-3]) == [3]


def test_a_lost_scheduler_leaves_nothing_half_written_and_the_work_is_resumed(
    engine: Any, scheduler: Any, tied: Any, write: Any, tmp_path: Path
) -> None:
    tables = given_tables(*write(*tied(400), rows=60))
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
    tables = given_tables(*write(*tied(200), rows=70))
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
    tables = given_tables(*write(*tied(150), rows=50))
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
    tables = given_tables(*write(*tied(60), rows=60))
    how: dict[str, Any] = {"names": ("cm1",), "seed": Seed.of(0)}

    def again(*_: int) -> None:
        with pytest.raises(ParameterError, match="the same job is at work already"):
            measure_tables(engine, tables, resume=True, **how)

    measure_tables(engine, tables, progress=again, **how)
