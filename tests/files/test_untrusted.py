"""Databases and files of others are data: opening them reads, deletes, loads and runs nothing else."""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankveil import files
from rankveil.cli import main
from rankveil.errors import FileError
from rankveil.files import databases

SECRET = "a-line-of-another-file"


def _duckdb(path: Path, *statements: str) -> None:
    import duckdb

    with closing(duckdb.connect(str(path))) as connection:
        for statement in statements:
            connection.execute(statement)


def _sqlite(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


REACHING = {
    "text": "CREATE VIEW v AS SELECT content FROM read_text('{elsewhere}')",
    "csv": "CREATE VIEW v AS SELECT * FROM read_csv('{elsewhere}', header = false)",
    "name of a file": "CREATE VIEW v AS SELECT * FROM '{elsewhere}'",
    "list of files": "CREATE VIEW v AS SELECT * FROM glob('{folder}/*')",
    "macro": "CREATE MACRO m() AS TABLE FROM read_text('{elsewhere}'); CREATE VIEW v AS FROM m()",
    "view on a view": "CREATE VIEW w AS FROM read_text('{elsewhere}'); CREATE VIEW v AS SELECT size FROM w",
    "attached": "ATTACH '{other}' AS other; CREATE VIEW v AS FROM other.t",
}


@pytest.mark.parametrize("what", REACHING)
def test_a_view_of_duckdb_reads_nothing_but_its_database(what: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.csv"
    elsewhere.write_text(f"{SECRET}\n{SECRET}\n")
    _duckdb(tmp_path / "other.db", f"CREATE TABLE t AS SELECT '{SECRET}' AS x")
    names = {"elsewhere": elsewhere, "folder": tmp_path, "other": tmp_path / "other.db"}
    _duckdb(tmp_path / "evil.db", REACHING[what].format(**names))
    url = f"duckdb:///{tmp_path}/evil.db?table=v"
    with pytest.raises(FileError, match=r"the view v reads .* export it to a table first") as told:
        files.load(url)
    assert SECRET not in str(told.value)


IN_FOLDER = "FROM read_text(current_setting('temp_directory') || '/elsewhere.csv')"
BESIDE = "FROM read_text('evil.db{ending}')"


@pytest.mark.parametrize("ending", [".tmp", ".wal.recovery", ".wal.checkpoint"])
def test_a_link_beside_a_database_of_duckdb_leads_a_view_nowhere(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB allows its own files beside the database even where it allows no others."""
    (tmp_path / "elsewhere.csv").write_text(f"{SECRET}\n")
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "data")
    beside = Path(f"evil.db{ending}")
    if ending == ".tmp":
        beside.symlink_to(tmp_path)
        view = IN_FOLDER
    else:
        view = BESIDE.format(ending=ending)
        beside.write_text("something")  # a view is only made of a file that is there
    _duckdb(Path("evil.db"), f"CREATE VIEW v AS SELECT content {view}")
    if ending != ".tmp":
        beside.unlink(missing_ok=True)
        beside.symlink_to(tmp_path / "elsewhere.csv")
    with pytest.raises(FileError, match=r"reads something outside|is a symbolic link to") as told:
        files.load("duckdb:///evil.db?table=v")
    assert SECRET not in str(told.value)


def test_duckdb_writes_through_no_link_beside_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "data")
    Path("a.db.wal").symlink_to(tmp_path / "target")
    with pytest.raises(FileError, match=r"a\.db\.wal beside it is a symbolic link to"):
        files.save(pa.table({"a": [1]}), "duckdb:///a.db?table=t")
    assert not (tmp_path / "target").exists()
    assert not os.path.exists("a.db")


def test_a_release_of_a_view_on_a_system_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _duckdb(tmp_path / "evil.db", "CREATE VIEW v AS SELECT content, size FROM read_text('/etc/passwd')")
    code = main(["mask", "duckdb:///evil.db?table=v", "--method", "rank_swap", "--output", "out.csv"])
    assert code != 0
    assert "the view v reads something outside" in capsys.readouterr().err
    assert os.listdir() == ["evil.db"]


def test_what_duckdb_may_not_do_while_it_is_open(tmp_path: Path) -> None:
    import duckdb

    from rankveil.files.duckdb import _connect

    _duckdb(tmp_path / "a.db", "CREATE TABLE t AS SELECT 1 AS x")
    address = databases.parse(f"duckdb:///{tmp_path}/a.db?table=t")
    for write in (False, True):
        with closing(_connect(address, write=write)) as connection, closing(_connect(address, write=write)) as second:
            assert second.execute("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
            for statement in (
                f"ATTACH '{tmp_path}/b.db'",
                f"COPY t TO '{tmp_path}/b.csv'",
                "INSTALL httpfs",
                "LOAD httpfs",
                "SET enable_external_access = true",
                "CREATE PERSISTENT SECRET s (TYPE http)",
            ):
                with pytest.raises(duckdb.Error):
                    connection.execute(statement)
    assert os.listdir(tmp_path) == ["a.db"]


@pytest.mark.parametrize("name", ["evil.db", "system.db"])
def test_a_macro_of_a_database_answers_for_no_setting_of_duckdb(name: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.csv").write_text(f"{SECRET}\n")
    _duckdb(
        tmp_path / name,
        "CREATE MACRO current_setting(a) AS true",
        f"CREATE VIEW v AS SELECT content FROM read_text('{tmp_path}/elsewhere.csv')",
    )
    with pytest.raises(FileError, match="the view v reads something outside") as told:
        files.load(f"duckdb:///{tmp_path}/{name}?table=v")
    assert SECRET not in str(told.value)


def test_plain_views_of_duckdb_are_read(tmp_path: Path) -> None:
    _duckdb(
        tmp_path / "a.db",
        "CREATE TABLE t AS SELECT 1 AS x, TIMESTAMPTZ '2020-01-01 12:00:00+02' AS moment",
        "CREATE MACRO double(a) AS 2 * a",
        "CREATE VIEW v AS SELECT double(x) AS y, moment FROM t",
    )
    data = files.load(f"duckdb:///{tmp_path}/a.db?table=v").data
    assert data.column("y").to_pylist() == [2]
    assert data.schema.field("moment").type == pa.timestamp("us", "UTC")


ASKING = {
    "extension": "CREATE VIEW v AS SELECT load_extension('{folder}/x.so') FROM t",
    "tokenizer": "CREATE VIEW v AS SELECT fts3_tokenizer('simple') FROM t",
    "function of a program": "CREATE VIEW v AS SELECT writefile('{folder}/x', a) FROM t",
    "paths": "CREATE VIEW v AS SELECT * FROM pragma_database_list",
    "virtual": "CREATE VIRTUAL TABLE v USING fts4(x)",
    "view on a virtual table": "CREATE VIRTUAL TABLE f USING fts4(x); CREATE VIEW v AS SELECT * FROM f",
    "attached": "CREATE VIEW v AS SELECT * FROM t; PRAGMA writable_schema = ON; UPDATE sqlite_master "
    "SET sql = 'CREATE VIEW v AS SELECT * FROM other.t' WHERE name = 'v'",
}


@pytest.mark.parametrize("what", ASKING)
def test_a_view_of_sqlite_reads_nothing_but_its_database(what: str, tmp_path: Path) -> None:
    _sqlite(tmp_path / "a.db", "CREATE TABLE t(a); INSERT INTO t VALUES (1); " + ASKING[what].format(folder=tmp_path))
    before = (tmp_path / "a.db").read_bytes()
    with pytest.raises(FileError) as told:
        files.load(f"sqlite:///{tmp_path}/a.db?table=v")
    if what != "attached":  # SQLite takes that for damage
        assert "v " in str(told.value)
        assert "export it to a table first" in str(told.value)
    assert os.listdir(tmp_path) == ["a.db"]
    assert (tmp_path / "a.db").read_bytes() == before


def test_what_sqlite_may_not_do_while_it_is_open(tmp_path: Path) -> None:
    from rankveil.files.sqlite import _connect

    _sqlite(tmp_path / "a.db", "CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    address = databases.parse(f"sqlite:///{tmp_path}/a.db?table=t")
    both = (f"ATTACH '{tmp_path}/b.db' AS b", "SELECT load_extension('x')", "CREATE VIRTUAL TABLE f USING fts4(x)")
    reading = ("DELETE FROM t", "CREATE TABLE u(a)", "PRAGMA writable_schema = ON", "CREATE TEMP TABLE u(a)")
    for write, statements in ((False, both + reading), (True, both)):
        with closing(_connect(address, write=write)) as connection:
            for statement in statements:
                with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
                    connection.execute(statement)


def test_plain_views_and_generated_columns_of_sqlite_are_read(tmp_path: Path) -> None:
    _sqlite(
        tmp_path / "a.db",
        "CREATE TABLE t(a, b GENERATED ALWAYS AS (a + 1), CHECK (length(a) > 0)); INSERT INTO t VALUES (1);"
        "CREATE VIEW v AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) "
        "SELECT a, b, i, upper('x') AS u FROM t, n",
    )
    assert files.load(f"sqlite:///{tmp_path}/a.db?table=v").data.column("i").to_pylist() == [1, 2, 3]
    assert files.load(f"sqlite:///{tmp_path}/a.db?table=t").data.column("b").to_pylist() == [2]


def test_reading_a_database_of_sqlite_with_a_log_makes_no_files(tmp_path: Path) -> None:
    _sqlite(tmp_path / "a.db", "PRAGMA journal_mode = WAL; CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    before = (tmp_path / "a.db").read_bytes()
    url = f"sqlite:///{tmp_path}/a.db?table=t"
    assert files.load(url).data.column("a").to_pylist() == [1]
    assert os.listdir(tmp_path) == ["a.db"]
    assert (tmp_path / "a.db").read_bytes() == before
    with closing(sqlite3.connect(tmp_path / "a.db")) as other:  # at work on it
        other.execute("INSERT INTO t VALUES (2)")
        other.commit()
        assert files.load(url).data.column("a").to_pylist() == [1, 2]
        shutil.copy(tmp_path / "a.db-wal", tmp_path / "kept")
    (tmp_path / "kept").rename(tmp_path / "a.db-wal")  # left by a program that was stopped, or planted
    with pytest.raises(FileError, match=r"stopped in the middle of changing it; .* \(reading changes nothing\)"):
        files.load(url)
    assert sorted(os.listdir(tmp_path)) == ["a.db", "a.db-wal"]


def test_a_change_during_a_reading_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rankveil.files import sqlite as reader

    _sqlite(tmp_path / "a.db", "PRAGMA journal_mode = WAL; CREATE TABLE t(a); INSERT INTO t VALUES (1)")

    def connect(address: databases.Address, *, write: bool) -> sqlite3.Connection:
        made = opened(address, write=write)
        _sqlite(tmp_path / "a.db", "INSERT INTO t VALUES (2)")
        return made

    opened = reader._connect
    monkeypatch.setattr(reader, "_connect", connect)
    with pytest.raises(FileError, match="was changed by another program while it was read; try again"):
        files.load(f"sqlite:///{tmp_path}/a.db?table=t")


def test_rows_of_a_replaced_table_do_not_stay_in_the_file(tmp_path: Path) -> None:
    """In free pages; some builds of SQLite (Debian's) clear them unasked, others do not."""
    _sqlite(tmp_path / "a.db", "PRAGMA secure_delete = OFF; CREATE TABLE t(a)")
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.executemany("INSERT INTO t VALUES (?)", [(SECRET,)] * 1000)
    files.save(pa.table({"a": ["x"]}), f"sqlite:///{tmp_path}/a.db?table=t")
    assert SECRET.encode() not in (tmp_path / "a.db").read_bytes()


def test_triggers_of_a_replaced_table_do_not_run(tmp_path: Path) -> None:
    _sqlite(
        tmp_path / "a.db",
        "CREATE TABLE t(a); CREATE TABLE copies(a);"
        "CREATE TRIGGER one AFTER INSERT ON t BEGIN INSERT INTO copies VALUES (new.a); END;"
        "CREATE TRIGGER two BEFORE DELETE ON t BEGIN SELECT load_extension('x'); END;",
    )
    files.save(pa.table({"a": [5]}), f"sqlite:///{tmp_path}/a.db?table=t")
    assert files.load(f"sqlite:///{tmp_path}/a.db?table=copies").data.num_rows == 0
    _sqlite(tmp_path / "a.db", "CREATE VIRTUAL TABLE f USING fts4(x)")
    with pytest.raises(FileError, match="is a virtual table"):
        files.save(pa.table({"x": ["a"]}), f"sqlite:///{tmp_path}/a.db?table=f")


def test_a_journal_that_names_another_file_deletes_nothing(tmp_path: Path) -> None:
    # SQLite deletes the file that stands at the end of a journal once it has undone the change
    database, victim = tmp_path / "a.db", tmp_path / "victim"
    victim.write_text("precious")
    _sqlite(database, "CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    magic, name = bytes.fromhex("d9d505f920a163d7"), os.fsencode(victim)
    pages = database.stat().st_size // 4096
    journal = (magic + struct.pack(">IIIII", 0, 1, pages, 512, 4096)).ljust(512, b"\0")
    journal += struct.pack(">I", 2**30 // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    (tmp_path / "a.db-journal").write_bytes(journal)
    with pytest.raises(FileError, match="a program was stopped in the middle of changing it"):
        files.load(f"sqlite:///{database}?table=t")
    with pytest.raises(FileError, match="if you trust the files beside it"):
        files.save(pa.table({"a": [5]}), f"sqlite:///{database}?table=t")
    assert victim.read_text() == "precious"


def test_a_view_of_postgresql_changes_nothing(server: Any) -> None:
    server.sql("CREATE TABLE visits(a int)")
    server.sql(
        "CREATE FUNCTION spy() RETURNS int LANGUAGE sql AS 'INSERT INTO visits VALUES (1) RETURNING a';"
        "CREATE VIEW watched AS SELECT spy() AS a"
    )
    with pytest.raises(FileError, match="read-only transaction"):
        files.load(server.url("watched"))
    assert server.sql("SELECT count(*) FROM visits") == [(0,)]


def test_a_function_of_somebody_else_does_not_stand_in_for_one_of_postgresql(server: Any) -> None:
    server.sql("CREATE TABLE calls(a text)")
    server.sql("CREATE TABLE plain AS SELECT 1 AS a")
    server.sql(
        "CREATE FUNCTION public.format(text, text) RETURNS text LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO calls VALUES ($2); RETURN $2; END'"
    )
    try:
        files.registry.formats()["postgresql://"].check_writable(server.url("plain"))  # type: ignore[attr-defined]
        assert files.load(server.url("plain")).data.column("a").to_pylist() == [1]
        files.save(pa.table({"a": [2]}), server.url("plain"))
        assert server.sql("SELECT count(*) FROM calls") == [(0,)]
    finally:
        server.sql("DROP FUNCTION public.format(text, text)")


class _Runs:
    """Something that makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("ending", [".parquet", ".feather"])
def test_types_of_arrow_are_not_unpickled(ending: str, tmp_path: Path) -> None:
    said = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": b""}
    said["ARROW:extension:metadata"] = pickle.dumps(_Runs(tmp_path / "ran"))
    data = pa.table([pa.array([1])], schema=pa.schema([pa.field("a", pa.int64(), metadata=said)]))
    path = tmp_path / f"a{ending}"
    if ending == ".parquet":
        pq.write_table(data, path)
    else:
        with pa.ipc.new_file(path, data.schema) as target:
            target.write_table(data)
    assert files.load(str(path)).data.column("a").to_pylist() == [1]
    assert not (tmp_path / "ran").exists()
