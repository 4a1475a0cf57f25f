"""Comparisons by the workers of a cluster give the same numbers as those by processes of this machine."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil.cli import main
from rankveil.errors import ClusterError, ParameterError

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not find this file

HOW: dict[str, Any] = {"risk": "spearman_risk", "utility": ["um"], "replicates": 2, "seed": 4}
METHODS = ["additive_noise", "rank_swap"]


@pytest.fixture
def original(tied: Any) -> pa.Table:
    x, _ = tied(120)
    return pa.table({f"V{j}": x[:, j] for j in range(3)})


def but_notes(made: Any) -> str:
    return json.dumps({name: value for name, value in made.to_dict().items() if name != "notes"})


@pytest.mark.parametrize("asked", [{"at": {"risk": 0.6}}, {"at": {"level": 0.2}}, {"sweep": True, "points": 4}])
def test_the_document_is_the_same_byte_for_byte(asked: dict[str, Any], engine: Any, original: pa.Table) -> None:
    steps: list[tuple[int, int]] = []
    made = rv.compare(original, METHODS, cluster=engine, progress=lambda *at: steps.append(at), **asked, **HOW)
    memory = rv.compare(original, METHODS, workers=1, **asked, **HOW)
    assert but_notes(made) == but_notes(memory)
    assert made.notes == [*memory.notes, "computed on the cluster local:2"]
    done = [at for at, _ in steps]
    assert done == sorted(done)
    assert steps[-1][0] <= steps[-1][1]
    assert not [name for name in os.listdir(engine._own) if name.startswith("function")]


def a_task(shared: list[int], item: int) -> tuple[int, int]:
    """A task that tells who did it."""
    return shared[item], os.getpid()


def deadly_task(shared: tuple[str, int], item: int) -> int:
    """A task that takes the first worker down that comes to it."""
    mark, number = shared
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return number + item
    os.kill(os.getpid(), signal.SIGKILL)
    return -1


def failing_task(shared: None, item: int) -> int:
    raise ParameterError(f"{item} is wrong")


def test_what_is_shared_goes_through_a_private_file(engine: Any) -> None:
    before = set(os.listdir(engine._own))
    with engine.holding([10, 20, 30]) as pool:
        futures = [pool.submit(a_task, item) for item in (2, 0, 1)]
        [name] = set(os.listdir(engine._own)) - before
        told = os.stat(os.path.join(engine._own, name))
        assert stat.S_IMODE(told.st_mode) == 0o600
        waiting = set(futures)
        while waiting:
            waiting -= pool.ready(waiting)
        found = [future.result() for future in futures]
    assert [value for value, _ in found] == [30, 10, 20]
    assert os.getpid() not in {worker for _, worker in found}
    assert set(os.listdir(engine._own)) == before


def test_a_lost_worker_costs_time_alone(engine: Any, tmp_path: Path) -> None:
    with engine.holding((str(tmp_path / "mark"), 7)) as pool:
        waiting = {pool.submit(deadly_task, item): item for item in range(6)}
        found = {}
        while waiting:
            for future in pool.ready(waiting):
                found[waiting.pop(future)] = future.result()
    assert found == {item: 7 + item for item in range(6)}
    assert (tmp_path / "mark").exists()


def test_what_goes_wrong_with_a_task_is_said(engine: Any) -> None:
    with engine.holding(None) as pool, pytest.raises(ParameterError, match="3 is wrong"):
        pool.ready([pool.submit(failing_task, 3)])
    assert engine(abs, [-1]) == [1]  # the workers are there for others


def test_a_comparison_that_was_stopped_is_resumed_anywhere(engine: Any, original: pa.Table, tmp_path: Path) -> None:
    state = tmp_path / "state"
    asked: dict[str, Any] = {"at": {"risk": 0.6}, "state": state, **HOW}
    expected = rv.compare(original, METHODS, workers=1, at={"risk": 0.6}, **HOW)

    def stop(done: int, _: int) -> None:
        if done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rv.compare(original, METHODS, cluster=engine, progress=stop, **asked)
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    with pytest.raises(ParameterError, match="a comparison that was stopped left its state here"):
        rv.compare(original, METHODS, cluster=engine, **asked)
    here = rv.compare(original, METHODS, workers=1, resume=True, **asked)  # begun on a cluster, ended here
    assert but_notes(here) == but_notes(expected)
    assert not state.exists()


def test_a_cluster_that_is_lost_leaves_the_state(
    original: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(original, "o.parquet")
    words = ["compare", "o.parquet", "--methods", ",".join(METHODS), "--at", "risk=0.6", "--risk", "spearman_risk"]
    words += ["--utility", "um", "--replicates", "2", "--json"]
    assert main([*words, "--workers", "1"]) == 0
    expected = json.loads(capsys.readouterr().out)
    from rankveil import cluster

    with cluster.open("local:1", scratch=tmp_path) as lost:

        def close(done: int, _: int) -> None:
            if done == 2:
                lost._client.close()

        with pytest.raises(ClusterError, match="the connection to the scheduler was lost"):
            rv.compare(
                original,
                METHODS,
                cluster=lost,
                at={"risk": 0.6},
                progress=close,
                state="o.parquet.compare-state",
                **{**HOW, "seed": 0},
            )
    on = ["--cluster", "local:1", "--scratch", str(tmp_path)]
    assert main([*words, *on]) == 2
    assert "go on with --resume, or delete the file" in capsys.readouterr().err
    assert main([*words, *on, "--resume"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    made = json.loads(said.out)
    assert made.pop("notes")[-1] == "computed on the cluster local:1"
    expected.pop("notes")
    assert json.dumps(made) == json.dumps(expected)
    assert sorted(os.listdir(tmp_path)) == ["o.parquet"]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--cluster", "local:1", "--workers", "2"], "--workers are processes of this machine"),
        (["--scratch", "."], "--scratch and --memory are for work on a cluster"),
        (["--cluster", "remote"], "cluster remote: must be local, local:N, or a scheduler's address"),
        (["--cluster", "tcp://127.0.0.1:9"], "name a scratch folder that all its workers see"),
    ],
)
def test_a_command_that_is_refused(
    words: list[str],
    what: str,
    original: pa.Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(original, "o.parquet")
    assert main(["compare", "o.parquet", "--methods", "mdav", "--at", "risk=0.6", *words]) == 2
    said = capsys.readouterr()
    assert (said.out, what in said.err) == ("", True)
    with pytest.raises(ParameterError, match="on a cluster there are as many as it has"):
        rv.compare(original, ["mdav"], at={"risk": 0.6}, cluster="local:1", workers=2)


def slow_task(shared: str, item: int) -> int:
    """A task that leaves a mark where it begins."""
    Path(shared, str(item)).touch()
    time.sleep(0.1)
    return item


def test_what_has_not_begun_when_it_is_stopped_does_not_begin(engine: Any, tmp_path: Path) -> None:
    def stopped() -> None:
        with engine.holding(str(tmp_path)) as pool:
            pool.ready([pool.submit(slow_task, item) for item in range(60)])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    begun = len(os.listdir(tmp_path))
    assert engine(abs, [-1, -2, -3]) == [1, 2, 3]
    assert begun <= len(os.listdir(tmp_path)) < 50
