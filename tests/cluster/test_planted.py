"""A scratch folder may hold what somebody else put there: no pickle of theirs is loaded, no link of theirs followed."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil.cluster.audits import measure_tables
from rankveil.cluster.tables import given_tables
from rankveil.errors import FileError
from rankveil.files import user_key
from rankveil.plans import Plan
from rankveil.seeds import Seed

HOW: dict[str, Any] = {"names": ("cm2",), "seed": Seed.of(2), "rows": 50}


class Evil:
    """Whoever loads this makes a file."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def __reduce__(self) -> Any:
        return open, (self._path, "w")


def stop(done: int, of: int) -> None:
    if done > of // 2:
        raise KeyboardInterrupt


@pytest.fixture
def stopped(engine: Any, tied: Any, write: Any) -> Any:
    """Tables, and the journal of a job about them that was stopped."""
    tables = given_tables(*write(*tied(150), rows=50))
    with pytest.raises(KeyboardInterrupt):
        measure_tables(engine, tables, progress=stop, **HOW)
    [journal] = Path(engine.scratch).glob("rankveil-*/journal")
    yield tables, journal
    shutil.rmtree(journal.parent, ignore_errors=True)


def entry(content: bytes, seal: str = "0" * 64) -> bytes:
    return len(content).to_bytes(8, "big") + seal.encode() + content


@pytest.mark.parametrize("header", ["none", "changed", "of before"])
def test_a_planted_journal_is_refused(engine: Any, stopped: Any, tmp_path: Path, header: str) -> None:
    tables, journal = stopped
    line, seal = journal.read_bytes().split(b"\n", 2)[:2]
    evil = pickle.dumps(Evil(tmp_path / "loaded"))
    if header == "none":  # all that can be told from the user's tables and command, and no seal
        journal.write_bytes(line + b"\n" + entry(evil))
    elif header == "changed":
        told = json.dumps({**json.loads(line), "kept": {}}).encode()
        journal.write_bytes(told + b"\n" + seal + b"\n" + entry(evil))
    else:
        journal.write_bytes(line + b"\n" + evil)
    with pytest.raises(FileError, match=r"is not sealed with your key \(.*\), so it may be .*; delete the folder"):
        measure_tables(engine, tables, resume=True, **HOW)
    assert not (tmp_path / "loaded").exists()


def test_a_planted_result_in_a_journal_of_ones_own_is_not_loaded(engine: Any, stopped: Any, tmp_path: Path) -> None:
    tables, journal = stopped
    line, seal, rest = journal.read_bytes().split(b"\n", 2)
    size = 72 + int.from_bytes(rest[:8], "big")
    evil = pickle.dumps(Evil(tmp_path / "loaded"))
    sealed_elsewhere = user_key.seal("test", evil)
    for planted in (entry(evil), entry(evil, rest[8:72].decode()), entry(evil, sealed_elsewhere), b"\xff" * 200):
        journal.write_bytes(line + b"\n" + seal + b"\n" + rest[:size] + planted + rest[size:])
        with pytest.raises(KeyboardInterrupt):
            measure_tables(engine, tables, resume=True, progress=stop, **HOW)
        assert not (tmp_path / "loaded").exists()
    # a result of one's own in another place is not taken for one of that place
    journal.write_bytes(line + b"\n" + seal + b"\n" + rest[size:])
    found = measure_tables(engine, tables, resume=True, **HOW)
    assert found.values["cm2"].value == measure_tables(engine, tables, **HOW).values["cm2"].value


def test_a_planted_folder_that_is_a_link_is_refused(engine: Any, stopped: Any, tmp_path: Path) -> None:
    tables, journal = stopped
    shutil.move(journal.parent, tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere" / "journal").read_bytes()
    journal.parent.symlink_to(tmp_path / "elsewhere")
    try:
        with pytest.raises(FileError, match="others could have changed what lies there; delete the folder"):
            measure_tables(engine, tables, resume=True, **HOW)
    finally:
        journal.parent.unlink()
    assert (tmp_path / "elsewhere" / "journal").read_bytes() == before


@pytest.mark.parametrize("planted", ["link", "folder"])
def test_what_lies_in_the_place_of_the_parts_of_a_release_is_not_used(
    engine: Any, tmp_path: Path, planted: str
) -> None:
    """Its name can be told from the tables and the command."""
    pq.write_table(pa.table({"A": range(60)}), tmp_path / "original.parquet")
    out, plan = tmp_path / "out.parquet", Plan.of("rank_swap", p=10)

    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    schema = rv.Schema(roles={"A": "confidential"})  # numbers that are all different look like an identifier
    asked: dict[str, Any] = {"seed": "ab" * 32, "cluster": engine, "output": out, "schema": schema}
    with pytest.raises(KeyboardInterrupt):
        rv.mask(tmp_path / "original.parquet", plan, progress=interrupt, **asked)
    [staging] = [path for path in tmp_path.iterdir() if path.name.startswith(".out")]
    for left in (staging, *Path(engine.scratch).glob("rankveil-[0-9a-f]*")):
        if "engine" not in left.name:
            shutil.rmtree(left)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if planted == "link":
        staging.symlink_to(elsewhere)
    else:
        staging.mkdir()
        pq.write_table(pa.table({"A": [1]}), staging / "part-00009.parquet")
    rv.mask(tmp_path / "original.parquet", plan, **asked)
    assert os.listdir(elsewhere) == []
    assert not out.is_symlink()
    assert sorted(pq.read_table(out)["A"].to_pylist()) == list(range(60))
