"""What comes from outside is first read in a process of its own, and the server goes on whatever happens to that."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankveil.files import limits

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the interpreters of these tests are shell scripts")


def written(table: pa.Table) -> bytes:
    made = io.BytesIO()
    pq.write_table(table, made, compression="zstd", store_schema=False)
    return made.getvalue()


def bomb() -> bytes:
    """4.4 GB of texts."""
    places = pa.nulls(44_000, pa.int32()).fill_null(0)
    return written(pa.table({"a": pa.DictionaryArray.from_arrays(places, pa.array(["x" * 100_000]))}))


@pytest.fixture
def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets processes of their own begin with some lines of the shell."""

    def begin(lines: str) -> None:
        script = tmp_path / "interpreter"
        script.write_text(f'#!/bin/sh\n{lines}\nexec "{sys.executable}" "$@"\n')
        script.chmod(0o700)
        monkeypatch.setattr(sys, "executable", str(script))

    return begin


def kept(user: Any) -> list[Path]:
    return list((user.bench.workspace.root / "data").iterdir())


def test_a_file_that_unpacks_to_gigabytes_is_refused(user: Any) -> None:
    told = user.told("/data", files={"file": ("people.parquet", bomb())})
    assert told.startswith("people.parquet: would take 4.1 GiB in memory, ")
    assert kept(user) == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the limit of a process does not hold")
def test_memory_that_runs_out_ends_the_other_process(
    user: Any, interpreter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(limits.LARGEST, "8")
    interpreter("ulimit -v 1500000")
    told = user.told("/data", files={"file": ("people.parquet", bomb())})
    assert told.startswith("people.parquet: ")
    assert "not enough memory" in told
    assert kept(user) == []
    assert user.upload("few.parquet", written(pa.table({"a": [1.5, 2.5]})))


@pytest.mark.parametrize("name", ["people.parquet", "people.csv", "picked"])
def test_a_reader_that_crashes_takes_only_its_process_along(user: Any, interpreter: Any, name: str) -> None:
    interpreter("kill -SEGV $$")
    (user.bench.workspace.root / "inbox" / "picked.csv").write_text("a,b\n1,2\n")
    picked = {"data": {"picked": "picked.csv"}} if name == "picked" else {"files": {"file": (name, b"a,b\n1,2\n")}}
    told = user.told("/data", **picked)
    assert "the process that read it ended unexpectedly (exit code -11): the file is damaged, or there was not" in told
    assert kept(user) == []
    assert user.example()


def test_a_database_is_copied_in_a_process_of_its_own(user: Any, interpreter: Any) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(user.bench.workspace.root / "inbox" / "t.db")) as made:
        made.execute("CREATE TABLE people AS SELECT 1 AS a, 2 AS b")
        made.commit()
    interpreter("kill -SEGV $$")
    told = user.told("/data", {"address": "sqlite:///t.db?table=people"})
    assert told.startswith("sqlite:///t.db?table=people: the process that read it ended unexpectedly")
    assert kept(user) == []


def test_a_file_of_a_table_format_in_the_inbox(user: Any) -> None:
    inbox = user.bench.workspace.root / "inbox"
    (inbox / "_delta_log").mkdir()
    (inbox / "part-0.parquet").write_bytes(written(pa.table({"a": [1.5, 2.5]})))
    told = user.told("/data", {"picked": "part-0.parquet"})
    assert "part-0.parquet: lies in the folder" in told
    assert "of a table in the format Delta Lake (_delta_log)" in told
    assert str(inbox) not in told
    assert kept(user) == []
