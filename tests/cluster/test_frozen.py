"""Processes that are there and say nothing, as after SIGSTOP: an error that names them, never a hang."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from rankveil import cluster
from rankveil.cluster import sending
from rankveil.cluster.audits import measure_tables
from rankveil.cluster.tables import given_tables
from rankveil.errors import ClusterError
from rankveil.seeds import Seed


@pytest.mark.thorough
def test_a_worker_is_named(scheduler: Any, tmp_path: Path) -> None:
    def who(_: int) -> tuple[int, str]:
        from distributed import get_worker

        return os.getpid(), get_worker().address

    with scheduler(tmp_path, workers=1) as (address, _):
        with cluster.open(address, scratch=tmp_path) as remote:
            [(pid, worker)] = remote.each(who, [1])
        os.kill(pid, signal.SIGSTOP)
        begun = time.monotonic()
        with pytest.raises(ClusterError, match=rf"no answer from the worker {worker}; end it"):
            cluster.open(address, scratch=tmp_path)
        assert time.monotonic() - begun < 60
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("rankveil-")] == []


@pytest.mark.thorough
def test_the_scheduler_in_the_middle_of_a_job(
    engine: Any, scheduler: Any, tied: Any, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_ASK", 0.5)
    monkeypatch.setattr(sending, "SILENCE", 3.0)
    tables = given_tables(*write(*tied(400), rows=60))
    how: dict[str, Any] = {"names": ("cm2", "spearman_risk"), "seed": Seed.of(2), "rows": 60}
    with scheduler(tmp_path, workers=1) as (address, process):

        def freeze(done: int, of: int) -> None:
            if done > 0.3 * of:
                process.send_signal(signal.SIGSTOP)

        begun = time.monotonic()
        with (
            cluster.open(address, scratch=engine.scratch) as remote,
            pytest.raises(ClusterError, match=r"to the scheduler was lost; what was done is kept in .*--resume"),
        ):
            measure_tables(remote, tables, progress=freeze, **how)
        assert time.monotonic() - begun < 90
    found = measure_tables(engine, tables, resume=True, **how)
    assert "what an earlier run had done was taken up" in found.notes
