"""Tables of databases: every type in and out, replaced whole or not at all, and no password anywhere."""

from __future__ import annotations

import datetime
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rankveil import datasets
from rankveil.errors import FileError, FormatError
from rankveil.files import (
    Staged,
    add_table,
    check_writable,
    companion,
    load,
    postgresql,
    same_file,
    save,
    shown,
    sqlite,
)

OLD = pa.table({"a": [1, 2]})
NEW = pa.table({"a": [3, 4, 5]})


def content(url: str) -> dict[str, list[Any]]:
    made: dict[str, list[Any]] = load(url).data.to_pydict()
    return made


def stage(folder: Path, data: pa.Table, url: str, *, then: Callable[[], object] = lambda: None) -> None:
    """Write a manifest, a secret and a table together, and do something before they are in place."""
    with Staged() as staged:
        staged.add(folder / "manifest", lambda file: file.write(b"new"))
        staged.add(folder / "secret", lambda file: file.write(b"new"))
        add_table(staged, data, url)
        then()


def fail() -> None:
    raise RuntimeError


def rich_table() -> pa.Table:
    day, moment = datetime.date(2024, 2, 29), datetime.datetime(2024, 7, 2, 3, 4, 5, 678)
    return pa.table(
        {
            "small": pa.array([1, None, -3], pa.int16()),
            "long": [2**63 - 1, -(2**63), None],
            "x": [0.1, -1e-300, None],
            "infinite": [float("inf"), -float("inf"), 1.0],
            "single": pa.array([0.1, None, 3.0], pa.float32()),
            "yes": [True, None, False],
            "text": ['tab\t line\n "quote" \\ back', "", None],
            "marks": ["\\.", "\\N", "é\r\n"],
            "price": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(10, 2)),
            "exact": pa.array([Decimal("12345678901234567890123.50"), None, Decimal("0.01")], pa.decimal128(30, 2)),
            "day": [day, None, datetime.date(1, 1, 1)],
            "moment": pa.array([moment, None, datetime.datetime(1, 1, 1)], pa.timestamp("us")),
            "zoned": pa.array([moment, None, datetime.datetime(1970, 1, 1)], pa.timestamp("us", "UTC")),
            "time": pa.array([datetime.time(1, 2, 3, 4), None, datetime.time(0)], pa.time64("us")),
            "bytes": [b"\x00\xff", None, b""],
            'odd "name; %s': [1, 2, 3],
        }
    )


def test_types_and_values_come_back(place: Any) -> None:
    table = rich_table()
    save(table, place.url())
    data = load(place.url()).data
    assert data.to_pydict() == table.to_pydict()
    wider = {"small": pa.int64(), "single": pa.float64()} if place.kind == "sqlite" else {}
    assert {field.name: field.type for field in data.schema} == {
        field.name: wider.get(field.name, field.type) for field in table.schema
    }
    save(data, place.url())
    assert load(place.url()).data.equals(data)


def test_categories_views_of_text_and_nothing_at_all(place: Any) -> None:
    table = pa.table(
        {
            "level": pa.array(["low", None, "high"]).dictionary_encode(),
            "view": pa.array(["x", "y", None], pa.string_view()),
            "large": pa.array(["x", "y", None], pa.large_string()),
            "nothing": pa.nulls(3),
            "half": pa.array([0.5, None, 2.0], pa.float32()).cast(pa.float16()),
            "second": pa.array([0, None, 60], pa.timestamp("s", "Europe/Berlin")),
        }
    )
    save(table, place.url())
    data = load(place.url()).data
    assert data.drop_columns("second").to_pydict() == table.drop_columns("second").to_pydict()
    assert data["second"].cast(pa.int64()).to_pylist() == [0, None, 60_000_000]


def test_an_empty_table_keeps_its_columns(place: Any) -> None:
    table = rich_table().slice(0, 0)
    save(table, place.url())
    data = load(place.url()).data
    assert data.num_rows == 0
    assert data.column_names == table.column_names
    assert data.schema.field("day").type == pa.date32()


def test_one_column_of_missing_and_empty_texts(place: Any) -> None:
    table = pa.table({"a": [None, "", "x", None]})
    save(table, place.url())
    assert content(place.url()) == table.to_pydict()


def test_many_rows_keep_their_order(place: Any) -> None:
    table = pa.table({"row": range(150_000), "text": [f"a{row % 7}" for row in range(150_000)]})
    save(table, place.url())
    loaded = load(place.url())
    assert loaded.data.equals(table)
    [note] = loaded.notes
    assert "in the order of its rowid" in note if place.kind == "sqlite" else "no order of their own" in note


def test_a_table_is_replaced_also_by_one_with_other_columns(place: Any) -> None:
    save(OLD, place.url())
    save(NEW, place.url())
    assert content(place.url()) == NEW.to_pydict()
    save(pa.table({"b": ["x"]}), place.url())
    assert content(place.url()) == {"b": ["x"]}


def test_other_tables_of_the_database_stay(place: Any) -> None:
    save(OLD, place.url("first"))
    save(NEW, place.url("second"))
    assert content(place.url("first")) == OLD.to_pydict()


def test_names_that_need_quotes(place: Any) -> None:
    name = 'Odd "name"; DROP TABLE x; --%s {}'
    written = '"' + name.replace('"', '""') + '"'
    save(OLD, place.url(written))
    save(NEW, place.url(written))
    assert content(place.url(written)) == NEW.to_pydict()


def test_a_view_is_read_but_not_written(place: Any) -> None:
    save(OLD, place.url())
    place.sql("CREATE VIEW seen AS SELECT a + 1 AS b FROM people")
    assert content(place.url("seen")) == {"b": [2, 3]}
    for write in (check_writable, lambda url: save(NEW, url)):
        with pytest.raises(FileError, match="is a view and cannot be written"):
            write(place.url("seen"))


def test_a_table_that_is_not_there(place: Any) -> None:
    save(OLD, place.url())
    with pytest.raises(FileError, match=r"there is no table poeple; did you mean people\?") as caught:
        load(place.url("poeple"))
    assert str(caught.value).startswith(f"{shown(place.url('poeple'))}: ")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda url: url.partition("?")[0], "names no table; write it like"),
        (lambda url: url.partition("?")[0] + "?table=", "names no table"),
        (lambda url: url.partition("?")[0] + "?query=SELECT+1", "a query is not read; make a view"),
        (lambda url: url + "&table=b", "given once"),
        (lambda url: url.partition("?")[0] + "?table=a.b.c", "is a name or schema.name"),
        (lambda url: url + "&tabel=b", "question mark is unknown; known: |only table= can be given"),
    ],
)
def test_addresses_that_say_too_little_or_too_much(place: Any, change: Callable[[str], str], sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        load(change(place.url()))


# Whole or not at all


def test_an_error_leaves_table_and_files_as_they_were(place: Any, tmp_path: Path) -> None:
    save(OLD, place.url())
    (tmp_path / "manifest").write_text("old")
    with pytest.raises(RuntimeError):
        stage(tmp_path, NEW, place.url(), then=fail)
    assert content(place.url()) == OLD.to_pydict()
    assert (tmp_path / "manifest").read_text() == "old"
    assert not (tmp_path / "secret").exists()


def test_an_error_leaves_no_new_database(place: Any, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        stage(tmp_path, NEW, place.url(), then=fail)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileError, match=r"there is no (such file|table people)"):
        load(place.url())


def test_nobody_sees_the_new_rows_before_the_files_are_there(place: Any, tmp_path: Path) -> None:
    save(OLD, place.url())

    def look() -> None:
        assert not (tmp_path / "manifest").exists()
        if place.kind == "sqlite":  # the others let nobody look meanwhile
            assert place.sql("SELECT a FROM people") == [(1,), (2,)]

    stage(tmp_path, NEW, place.url(), then=look)
    assert content(place.url()) == NEW.to_pydict()
    assert (tmp_path / "manifest").read_text() == "new"


@pytest.mark.parametrize(
    "data",
    [
        NEW,
        pytest.param(pa.table({"b": ["x"] * 100_000}), marks=pytest.mark.thorough),
        pa.table({"b": ["x" * 100] * 100_000}),  # not held in memory
    ],
    ids=["small", "long", "large"],
)
def test_killing_leaves_the_old_table(place: Any, tmp_path: Path, data: pa.Table) -> None:
    save(OLD, place.url())
    save(data, tmp_path / "new.feather")
    program = f"""
import time
from rankveil.files import Staged, add_table, load
with Staged() as staged:
    staged.add({str(tmp_path / "manifest")!r}, lambda file: file.write(b"new"))
    add_table(staged, load({str(tmp_path / "new.feather")!r}).data, {place.url()!r})
    print("written", flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        process.kill()
    check_writable(place.url())  # what SQLite left half-way is undone by whoever writes
    assert content(place.url()) == OLD.to_pydict()
    assert not (tmp_path / "manifest").exists()
    save(data, place.url())
    assert content(place.url()) == data.to_pydict()


def test_a_commit_that_fails_takes_the_files_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "WAIT", 0.1)
    url = f"sqlite:///{tmp_path / 'survey.db'}?table=people"
    save(OLD, url)
    (tmp_path / "manifest").write_text("old")
    with closing(sqlite3.connect(tmp_path / "survey.db")) as reader:
        rows = reader.execute("SELECT * FROM people")
        assert rows.fetchone() == (1,)  # while somebody reads nobody can commit
        with pytest.raises(FileError, match="is locked by another program"):
            stage(tmp_path, NEW, url)
        rows.close()
    assert content(url) == OLD.to_pydict()
    assert sorted((entry.name) for entry in tmp_path.iterdir()) == ["manifest", "survey.db"]
    assert (tmp_path / "manifest").read_text() == "old"


def test_a_constraint_that_is_checked_at_the_commit(server: Any, tmp_path: Path) -> None:
    server.sql("CREATE TABLE people (a bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    save(OLD, server.url("people"))
    (tmp_path / "manifest").write_text("old")
    with pytest.raises(FileError, match=r"does not satisfy the constraint people_a_key of the table$"):
        stage(tmp_path, pa.table({"a": [7, 7]}), server.url("people"))
    assert content(server.url("people")) == OLD.to_pydict()
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("manifest", "old")]


def test_a_file_that_cannot_be_renamed_keeps_the_old_table(place: Any, tmp_path: Path) -> None:
    save(OLD, place.url())
    with pytest.raises(FileError, match=r"secret: cannot be written: (it is a folder|is a directory)"):
        stage(tmp_path, NEW, place.url(), then=(tmp_path / "secret").mkdir)
    assert not (tmp_path / "manifest").exists()
    assert content(place.url()) == OLD.to_pydict()


def test_only_one_table_can_be_written_with_files(tmp_path: Path) -> None:
    first, second = (sqlite.begin(NEW, f"sqlite:///{tmp_path}/{name}.db?table=t") for name in "ab")
    with Staged() as staged:
        staged.join(first)
        with pytest.raises(FileError, match="only one table"):
            staged.join(second)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.db"]


# The same table


def test_the_same_table_in_other_words(server: Any) -> None:
    save(OLD, server.url("people"))
    save(OLD, server.url("other"))
    server.sql("CREATE SCHEMA apart")
    save(OLD, server.url("apart.people"))
    server.sql("CREATE VIEW direct AS SELECT * FROM people")
    server.sql("CREATE VIEW through AS SELECT d.a FROM direct d JOIN other USING (a)")
    server.sql("CREATE MATERIALIZED VIEW kept AS SELECT * FROM through")
    people = server.url("people")
    for spelled in (
        people.replace("postgresql://", "postgres://"),
        people.replace("127.0.0.1", "localhost"),
        server.local("people"),
        server.url("public.people"),
        server.url('"people"'),
        *map(server.url, ("direct", "through", "kept")),
    ):
        assert same_file(people, spelled), spelled
        assert same_file(spelled, people), spelled
    for different in ("other", "apart.people", "nothing", "PEOPLE"):
        assert not same_file(people, server.url(different)), different
    assert not same_file(people, "people.csv")


def test_parts_of_one_table_are_the_same_table(server: Any) -> None:
    server.sql("CREATE TABLE whole (a bigint) PARTITION BY RANGE (a)")
    server.sql("CREATE TABLE part PARTITION OF whole FOR VALUES FROM (0) TO (9)")
    assert same_file(server.url("whole"), server.url("part"))
    with pytest.raises(FileError, match="shares its rows with another table"):
        check_writable(server.url("part"))
    with pytest.raises(FileError, match="is a partitioned table and cannot be written"):
        check_writable(server.url("whole"))


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_the_same_table_of_a_file(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    people = f"{kind}:///survey.db?table=people"
    assert same_file(people, f"{kind}:///{tmp_path}/survey.db?table=PEOPLE")  # before it is there
    for table in ("people", "other"):
        save(OLD, f"{kind}:///survey.db?table={table}")
    (tmp_path / "link.db").symlink_to(tmp_path / "survey.db")
    with closing(sqlite3.connect("survey.db") if kind == "sqlite" else _duckdb("survey.db")) as connection:
        connection.execute("CREATE VIEW direct AS SELECT * FROM people")
        connection.execute("CREATE VIEW through AS SELECT d.a FROM direct AS d, other")
    for spelled in ("link.db?table=people", "./survey.db?table=main.People", "survey.db?table=direct"):
        assert same_file(people, f"{kind}:///{spelled}"), spelled
    assert same_file(people, f"{kind}:///survey.db?table=through")
    assert same_file("survey.db", people)
    assert same_file("link.db", people)
    assert not same_file(people, f"{kind}:///survey.db?table=other")
    assert not same_file(people, f"{kind}:///another.db?table=people")
    assert not same_file("survey.csv", people)


def test_schemas_of_duckdb(tmp_path: Path) -> None:
    file = tmp_path / "one.db"
    with closing(_duckdb(file)) as database:
        database.execute("CREATE SCHEMA one.one")  # called like the database
    save(OLD, f"duckdb:///{file}?table=one.t")
    save(NEW, f"duckdb:///{file}?table=t")
    assert content(f"duckdb:///{file}?table=one.t") == OLD.to_pydict()
    assert not same_file(f"duckdb:///{file}?table=one.t", f"duckdb:///{file}?table=t")
    with pytest.raises(FileError, match="there is no schema two; make it first"):
        check_writable(f"duckdb:///{file}?table=two.t")


def _duckdb(file: Path | str) -> Any:
    return pytest.importorskip("duckdb").connect(file)


# Passwords


def test_passwords_are_never_shown(server: Any) -> None:
    url = server.url("people")
    assert shown(url) == f"postgresql://rankveil:***@127.0.0.1:{server.port}/postgres?table=people"
    save(OLD, url)
    save(pa.table({"a": [1.5]}), url)
    told = list(load(url).notes) + list(save(OLD, url))
    for fails in (
        lambda: load(server.url("nothing")),
        lambda: load(server.url("people", password="another sesame")),
        lambda: load(server.url("people", user="nobody_known")),
        lambda: load(server.url("people", more="&connect_timeout=sesame")),
        lambda: load(server.url("people", more="&sesame=1")),
        lambda: load(url.replace("postgres?", "sesame_less?")),
        lambda: load(url.replace(f":{server.port}", ":1")),
        lambda: load(url.partition("?")[0]),
        lambda: load(url.replace("%40", "@")),
        lambda: check_writable(url, table=False),
        lambda: save(pa.table({"a" * 64: [1]}), url),
    ):
        with pytest.raises(FileError) as caught:
            fails()
        told.append(str(caught.value))
    assert len(told) > 12
    assert not [text for text in told if "sesame" in text.replace("sesame_less", "")]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://me:word@h1:1,h2:2/db?table=t&sslpassword=word", "postgresql://me:***@h1:1,h2:2/db?table=t"),
        ("postgresql://me@h/db?password=word&table=t", "postgresql://me@h/db?table=t"),
        ("postgresql://[::1]:5432/db?table=t&passfile=word", "postgresql://[::1]:5432/db?table=t"),
        ("POSTGRES://me:word:word@h?service=s&table=t", "postgres://me:***@h?service=s&table=t"),
        ("postgresql://me:wo@rd@h/db?table=t", "postgresql://..."),
        ("postgresql://me:wo/rd@h/db?table=t", "postgresql://..."),
        ("postgresql://me:wo?rd@h/db?table=t", "postgresql://..."),
        ("postgresql://me:wo#rd@h/db?table=t", "postgresql://..."),
        ("postgresql://me:12/rd@h/db?table=t", "postgresql://..."),
        ("postgresql://me:word/db?table=t", "postgresql://..."),
        ("sqlite://me:word@h/db?table=t", "sqlite://..."),
        ("sqlite:///a.db?table=t&key=word", "sqlite:///a.db?table=t"),
        ("mysql://me:word@h/db", "mysql://..."),
        ("word.csv", "word.csv"),
    ],
)
def test_what_is_shown_of_an_address(url: str, told: str) -> None:
    assert shown(url) == told


def test_the_password_may_stand_elsewhere(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(OLD, server.url("people"))
    url = server.url("people", password=None)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    with pytest.raises(FileError, match=r"no connection: .*password.*; give it in the address, in PGPASSWORD or"):
        load(url)
    monkeypatch.setenv("PGPASSWORD", "sesame:/@?#")
    assert content(url) == OLD.to_pydict()
    monkeypatch.delenv("PGPASSWORD")
    (tmp_path / "pgpass").write_text("*:*:*:rankveil:sesame\\:/@?#\n")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    assert content(url) == OLD.to_pydict()
    (tmp_path / "services").write_text(
        f"[survey]\nhost=127.0.0.1\nport={server.port}\nuser=rankveil\ndbname=postgres\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    assert content("postgresql://?service=survey&table=people") == OLD.to_pydict()


@pytest.mark.parametrize(
    ("out", "beside"),
    [
        ("out.csv", "out.csv"),
        ("postgresql://me:word@h/db?table=people", "people"),
        ("postgresql://me:word@h/db?table=s.people", "s.people"),
        ('postgresql://h/db?table="../../a b"', "_.._a_b"),
        ("duckdb:///a/b.db?table=t", "a/b.db.t"),
        ("sqlite:////a/b.db?table=t", "/a/b.db.t"),
    ],
)
def test_names_of_the_files_beside_a_release(out: str, beside: str) -> None:
    assert companion(out) == beside


# A server that goes away


@contextmanager
def running(work: Callable[[], object]) -> Iterator[list[BaseException]]:
    """Work that goes on beside the block, and what it failed with at the end."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield failed
    thread.join(timeout=60)
    assert not thread.is_alive()


def end_others(server: Any, *, during: str = "COPY%") -> None:
    """Wait until rankveil works in the server, and end that connection."""
    wanted = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rankveil' AND query LIKE %s"
    )
    for _ in range(300):
        if server.sql(wanted, during):
            return
        time.sleep(0.05)
    raise AssertionError("rankveil did not work in the server")


def test_a_server_that_goes_away_while_reading(server: Any) -> None:
    server.sql("CREATE VIEW slow AS SELECT i, pg_sleep(0.01)::text FROM generate_series(1, 6000) AS i")
    with running(lambda: load(server.url("slow"))) as failed:
        end_others(server)
    assert [type(error) for error in failed] == [FileError]
    assert str(failed[0]) == f"{shown(server.url('slow'))}: cannot be read: the connection to the server broke"


def test_a_server_that_goes_away_while_writing(server: Any) -> None:
    server.sql("CREATE TABLE people (a bigint)")
    save(OLD, server.url("people"))
    server.sql(
        "CREATE FUNCTION slow() RETURNS trigger AS 'BEGIN PERFORM pg_sleep(0.01); RETURN NEW; END' LANGUAGE plpgsql"
    )
    server.sql("CREATE TRIGGER slow BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION slow()")
    with running(lambda: save(pa.table({"a": range(6000)}), server.url("people"))) as failed:
        end_others(server)
    assert [type(error) for error in failed] == [FileError]
    assert str(failed[0]).endswith("cannot be written: the connection to the server broke")
    assert content(server.url("people")) == OLD.to_pydict()


def test_a_server_that_goes_away_before_the_commit(server: Any, tmp_path: Path) -> None:
    save(OLD, server.url("people"))
    (tmp_path / "manifest").write_text("old")
    with pytest.raises(FileError, match="the connection to the server broke"):
        stage(tmp_path, NEW, server.url("people"), then=lambda: end_others(server, during="%"))
    assert content(server.url("people")) == OLD.to_pydict()
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("manifest", "old")]


def test_a_server_that_is_stopped(own_server: Any, tmp_path: Path) -> None:
    save(OLD, own_server.url("people"))
    (tmp_path / "manifest").write_text("old")
    with pytest.raises(FileError, match="whether the table was replaced is not known"):
        stage(tmp_path, NEW, own_server.url("people"), then=lambda: own_server.stop(signal.SIGQUIT))
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("manifest", "old")]
    with pytest.raises(FileError, match=r"there is no connection: .*refused"):
        load(own_server.url("people"))
    own_server.start()
    assert content(own_server.url("people")) == OLD.to_pydict()


@contextmanager
def between(server: Any, *, send: bool) -> Iterator[int]:
    """A port that leads to the server until the first commit, whose answer never comes; is the commit itself sent?"""
    cut, answered = threading.Event(), threading.Event()
    sockets: list[socket.socket] = []
    threads: list[threading.Thread] = []
    entrance = socket.create_server(("127.0.0.1", 0))

    def run(work: Callable[..., None], *given: Any) -> None:
        threads.append(threading.Thread(target=work, args=given))
        threads[-1].start()

    def enter() -> None:
        with suppress(OSError):
            while True:
                client = entrance.accept()[0]
                inside = socket.create_connection(("127.0.0.1", server.port))
                sockets.extend((client, inside))
                first = not cut.is_set()
                run(carry, client, inside, first, True)
                run(carry, inside, client, first, False)

    def carry(source: socket.socket, target: socket.socket, first: bool, outwards: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if first and outwards and b"COMMIT" in data:
                    cut.set()
                    if send:
                        target.sendall(data)
                        assert answered.wait(10)
                    break
                if first and not outwards and cut.is_set():
                    answered.set()
                    break
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    run(enter)
    try:
        yield entrance.getsockname()[1]
    finally:
        entrance.shutdown(socket.SHUT_RDWR)
        for each in (entrance, *sockets):
            each.close()
        for thread in threads:
            thread.join(timeout=10)


def test_a_commit_whose_answer_is_lost_has_happened(server: Any, tmp_path: Path) -> None:
    save(OLD, server.url("people"))
    with between(server, send=True) as port:
        stage(tmp_path, NEW, server.url("people").replace(f":{server.port}/", f":{port}/"))
    assert content(server.url("people")) == NEW.to_pydict()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["manifest", "secret"]


def test_a_commit_that_is_lost_has_not_happened(server: Any, tmp_path: Path) -> None:
    save(OLD, server.url("people"))
    with between(server, send=False) as port, pytest.raises(FileError, match="the connection to the server broke"):
        stage(tmp_path, NEW, server.url("people").replace(f":{server.port}/", f":{port}/"))
    assert content(server.url("people")) == OLD.to_pydict()
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_answer() -> None:
    with closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        with pytest.raises(FileError, match=r"there is no connection: .*timeout"):
            load(f"postgresql://me:word@127.0.0.1:{port}/db?table=t&connect_timeout=2")


# What PostgreSQL has of its own


def test_types_that_only_postgresql_has(server: Any) -> None:
    server.sql("CREATE TYPE mood AS ENUM ('low', 'high')")
    server.sql("CREATE DOMAIN age AS smallint CHECK (VALUE > 0)")
    server.sql("CREATE DOMAIN money2 AS numeric(12,2)")
    server.sql(
        "CREATE TABLE t (u uuid, j jsonb, l int[], m mood, g age, p money2, n numeric, w numeric(3,-2), "
        "c char(4), v varchar(5), i interval, z timetz)"
    )
    one = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    server.sql(
        f"INSERT INTO t VALUES ('{one}', '{{\"a\": 1}}', '{{1,NULL}}', 'low', 3, 1.5, 123.4567, 1200, "
        "'ab', 'x', '1 month', '01:02+03')"
    )
    server.sql("INSERT INTO t (n) VALUES (-99999999999999999999)")
    loaded = load(server.url("t"))
    assert loaded.data.slice(0, 1).to_pylist() == [
        {
            **{"u": one, "j": '{"a": 1}', "l": "{1,NULL}", "m": "low", "g": 3, "p": Decimal("1.50")},
            **{"n": Decimal("123.4567"), "w": Decimal(1200), "c": "ab  ", "v": "x", "i": "1 mon", "z": "01:02:00+03"},
        }
    ]
    assert loaded.data.schema.field("p").type == pa.decimal128(12, 2)
    assert loaded.data.schema.field("n").type == pa.decimal128(38, 4)
    assert loaded.notes[1].endswith("read as text: u (uuid), j (jsonb), l (int4[]), m (mood), i (interval), z (timetz)")


def test_numbers_that_no_decimal_holds(server: Any) -> None:
    server.sql("CREATE TABLE t (a numeric, b numeric(5,1), c numeric)")
    server.sql("INSERT INTO t VALUES ('NaN', 'NaN', 1e80), (1.5, 2.5, 1)")
    loaded = load(server.url("t"))
    assert str(loaded.data.to_pydict()) == f"{{'a': [nan, 1.5], 'b': [nan, 2.5], 'c': ['1{'0' * 80}', '1']}}"
    assert [note.partition("column ")[2] for note in loaded.notes[1:]] == [
        "a holds NaN or infinity, so it was read as floating-point numbers",
        "b holds NaN or infinity, so it was read as floating-point numbers",
        "c has numbers of more than 76 digits, so it was read as text",
    ]


@pytest.mark.parametrize("cell", ["date 'infinity'", "date '0044-03-15 BC'", "timestamp '20000-01-01'"])
def test_dates_that_are_no_dates(server: Any, cell: str) -> None:
    server.sql(f"CREATE TABLE t AS SELECT 1 AS a, {cell} AS born")
    with pytest.raises(FormatError, match="column born: holds dates that are infinite, before") as caught:
        load(server.url("t"))
    assert "44" not in str(caught.value).replace(str(server.port), "")


def test_names_longer_than_the_server_keeps(server: Any) -> None:
    save(OLD, server.url("people"))
    long = pa.table({"a": [1], "x" * 100: [1]})
    with pytest.raises(FormatError, match=f"column {'x' * 100}: its name has 100 bytes, and PostgreSQL keeps 63"):
        save(long, server.url("people"))
    with pytest.raises(FormatError, match="its name has 64 bytes"):
        save(pa.table({"é" * 32: [1]}), server.url("people"))
    with pytest.raises(FormatError, match=r"table y+: its name has 64 bytes"):
        check_writable(server.url("y" * 64))
    assert content(server.url("people")) == OLD.to_pydict()
    save(pa.table({"é" * 31: [1]}), server.url("people"))


def test_text_with_a_nul(server: Any) -> None:
    save(OLD, server.url("people"))
    rows = ["fine"] * 70_000 + ["no\0"]
    with pytest.raises(FormatError, match="column t, row 70001: PostgreSQL cannot hold a NUL character") as caught:
        save(pa.table({"t": rows}), server.url("people"))
    assert str(caught.value).startswith(shown(server.url("people")))
    assert content(server.url("people")) == OLD.to_pydict()


def test_whole_numbers_without_sign(server: Any) -> None:
    table = pa.table({"a": pa.array([2**64 - 1, None], pa.uint64()), "b": pa.array([2**32 - 1, 0], pa.uint32())})
    save(table, server.url("t"))
    data = load(server.url("t")).data
    assert data.to_pydict() == {"a": [Decimal(2**64 - 1), None], "b": [2**32 - 1, 0]}


def test_owner_grants_and_indexes_stay_with_the_same_columns(server: Any) -> None:
    server.sql("CREATE ROLE test_reader")
    server.sql("CREATE TABLE people (a bigint, b varchar(3), c uuid, d numeric)")
    server.sql("GRANT SELECT ON people TO test_reader")
    server.sql("CREATE INDEX fast ON people (a)")
    server.sql("CREATE VIEW seen AS SELECT * FROM people")
    rows = {"a": [1], "b": ["abc"], "c": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], "d": [Decimal("1.5")]}
    [note] = save(pa.table(rows), server.url("people"))
    assert "its owner, grants, indexes and triggers stay" in note
    assert server.sql("SELECT has_table_privilege('test_reader', 'people', 'SELECT')") == [(True,)]
    assert server.sql("SELECT indexname FROM pg_indexes WHERE tablename = 'people'") == [("fast",)]
    assert content(server.url("seen")) == rows
    for wrong in ({**rows, "b": ["abcd"]}, {**rows, "c": ["no uuid"]}):
        with pytest.raises(FormatError, match="a cell does not fit its column") as caught:
            save(pa.table(wrong), server.url("people"))
        assert "abcd" not in str(caught.value)
        assert "no uuid" not in str(caught.value)
    assert content(server.url("people")) == rows


def test_a_table_with_other_columns_is_made_anew(server: Any) -> None:
    server.sql("CREATE ROLE test_reader")
    server.sql("CREATE TABLE people (a bigint)")
    server.sql("GRANT SELECT ON people TO test_reader")
    [note] = save(pa.table({"a": [1.5]}), server.url("people"))  # never rounded into the column that was there
    assert "grants, indexes and other settings of the old one are gone" in note
    assert content(server.url("people")) == {"a": [1.5]}
    assert server.sql("SELECT has_table_privilege('test_reader', 'people', 'SELECT')") == [(False,)]
    server.sql("CREATE VIEW seen AS SELECT * FROM people")
    with pytest.raises(FileError, match="cannot be dropped, because views or other tables depend on it"):
        save(OLD, server.url("people"))
    assert content(server.url("seen")) == {"a": [1.5]}


def test_a_table_that_others_refer_to(server: Any) -> None:
    server.sql("CREATE TABLE people (a bigint PRIMARY KEY)")
    server.sql("CREATE TABLE visits (a bigint REFERENCES people)")
    with pytest.raises(FileError, match="other tables refer to it, so it cannot be replaced"):
        save(OLD, server.url("people"))


def test_a_trigger_that_drops_rows_is_noticed(server: Any) -> None:
    server.sql("CREATE TABLE people (a bigint)")
    save(OLD, server.url("people"))
    server.sql("CREATE FUNCTION drop() RETURNS trigger AS 'BEGIN RETURN NULL; END' LANGUAGE plpgsql")
    server.sql("CREATE TRIGGER drop BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION drop()")
    with pytest.raises(FileError, match="a trigger of the table let only 0 of 3 rows in"):
        save(NEW, server.url("people"))
    assert content(server.url("people")) == OLD.to_pydict()


def test_what_a_user_may_not(server: Any) -> None:
    server.sql("CREATE ROLE test_guest LOGIN PASSWORD 'word'")
    save(OLD, server.url("people"))

    def guest(table: str) -> str:
        return str(server.url(table, user="test_guest", password="word"))

    with pytest.raises(FileError, match="cannot be read: permission denied for table people"):
        load(guest("people"))
    with pytest.raises(FileError, match="may not replace the table; give another name or ask its owner"):
        check_writable(guest("people"))
    with pytest.raises(FileError, match="may not make tables in the schema public"):
        check_writable(guest("fresh"))
    with pytest.raises(FileError, match="there is no schema nowhere; make it first"):
        check_writable(guest("nowhere.fresh"))
    server.sql("GRANT SELECT, INSERT, TRUNCATE ON people TO test_guest")
    save(NEW, guest("people"))  # filling it needs no more
    assert content(guest("people")) == NEW.to_pydict()
    with pytest.raises(FileError, match="must be owner of table people"):
        save(pa.table({"b": [1]}), guest("people"))


def test_rows_that_a_user_may_not_see(server: Any) -> None:
    server.sql("CREATE ROLE test_guest LOGIN PASSWORD 'word'")
    save(OLD, server.url("people"))
    server.sql("GRANT SELECT ON people TO test_guest")
    server.sql("ALTER TABLE people ENABLE ROW LEVEL SECURITY")
    server.sql("CREATE POLICY older ON people USING (a > 1)")
    loaded = load(server.url("people", user="test_guest", password="word"))
    assert loaded.data.to_pydict() == {"a": [2]}
    assert loaded.notes[1].endswith("has row-level security; only the rows that this user may see were read")


def test_a_server_that_only_reads(server: Any) -> None:
    save(OLD, server.url("people"))
    url = server.url("people", more="&options=-c%20default_transaction_read_only=on")
    assert content(url) == OLD.to_pydict()
    for write in (check_writable, lambda url: save(NEW, url)):
        with pytest.raises(FileError, match="the server or this user is read-only"):
            write(url)


def test_a_table_that_somebody_holds(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    monkeypatch.setattr(postgresql, "LOCK_WAIT", 1)
    save(OLD, server.url("people"))
    host = f"host={server.folder} port={server.port} user=rankveil dbname=postgres"
    with psycopg.connect(host) as other:
        other.execute("LOCK TABLE people")
        with pytest.raises(FileError, match="is locked by another program"):
            save(NEW, server.url("people"))
    assert content(server.url("people")) == OLD.to_pydict()


# Files of DuckDB and SQLite


@pytest.fixture(params=["duckdb", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "duckdb":
        pytest.importorskip("duckdb")
    return f"{request.param}:///{tmp_path / 'survey.db'}?table=people"


def test_files_that_are_not_there_or_no_database(url: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no such file"):
        load(url)
    with pytest.raises(FileError, match=r"there is no folder .*none; make it first"):
        check_writable(url.replace("survey.db", "none/survey.db"))
    check_writable(url)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "survey.db").write_text("a,b\n1,2\n" * 1000)
    for use in (load, check_writable, lambda url: save(NEW, url)):
        with pytest.raises(FormatError, match=r"is not an? (SQLite|DuckDB) database"):
            use(url)
    assert (tmp_path / "survey.db").read_text() == "a,b\n1,2\n" * 1000


def test_a_table_whose_name_holds_a_quote(url: str) -> None:
    plain, quoted = (url.replace("table=people", f"table={name}") for name in ('o"b', '"o""b"'))
    with pytest.raises(FormatError, match=r'a dot or a quote inside in quotes, its own doubled: "a\.b", "a""b"'):
        save(NEW, plain)
    save(NEW, quoted)
    assert content(quoted) == NEW.to_pydict()


def test_a_file_of_another_format_is_no_duckdb_database(tmp_path: Path) -> None:
    file = tmp_path / "census.csv"
    file.write_text("A\n1\n")
    for use in (load, check_writable, lambda url: save(NEW, url)):  # DuckDB would open it, in memory
        with pytest.raises(FormatError, match="is not a DuckDB database"):
            use(f"duckdb:///{file}?table=people")
    assert file.read_text() == "A\n1\n"


def test_a_protected_file(url: str, tmp_path: Path) -> None:
    save(OLD, url)
    tmp_path.chmod(0o755)
    (tmp_path / "survey.db").chmod(0o444)
    before = os.geteuid()
    for parent in tmp_path.parents[:3]:
        if before == 0 and parent.name.startswith(("pytest-", "popen-")):
            parent.chmod(0o755)
    if before == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(FileError, match="write-protected"):
            check_writable(url)
        with pytest.raises(FileError, match=r"write-protected|permission denied"):
            stage(tmp_path, NEW, url)
    finally:
        os.seteuid(before)
    assert content(url) == OLD.to_pydict()


def test_a_file_that_another_program_holds(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "WAIT", 0.1)
    save(OLD, url)
    file = str(tmp_path / "survey.db")
    hold = {
        "sqlite": f"import sqlite3; c = sqlite3.connect({file!r}, isolation_level=None); c.execute('BEGIN EXCLUSIVE')",
        "duckdb": f"import duckdb; c = duckdb.connect({file!r})",
    }[url.partition(":")[0]]
    program = f"{hold}\nprint('held', flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        for use in (load, check_writable):
            with pytest.raises(FileError, match="is locked by another program"):
                use(url)
        process.stdin.write(b"\n")
        process.stdin.close()
    assert content(url) == OLD.to_pydict()


def test_names_that_differ_only_in_capitals(url: str) -> None:
    with pytest.raises(FormatError, match="columns AGE and age have the same name here"):
        save(pa.table({"AGE": [1], "age": [2]}), url)
    save(pa.table({"Ä": [1], "ä": [2]}), url)
    assert content(url) == {"Ä": [1], "ä": [2]}


def test_a_column_without_a_name(place: Any) -> None:
    with pytest.raises(FormatError, match="column 2 has no name"):
        save(pa.table([[1], [2]], names=["a", ""]), place.url())


def test_times_finer_than_a_database_keeps(place: Any) -> None:
    table = pa.table({"t": pa.array([1], pa.timestamp("ns", "UTC"))})
    with pytest.raises(FormatError, match=r"column t: .*finer than a microsecond"):
        save(table, place.url())


def test_types_that_a_database_does_not_have(server: Any, tmp_path: Path) -> None:
    nested = pa.table({"list": [[1, 2]]})
    for url in (server.url("t"), f"sqlite:///{tmp_path}/t.db?table=t"):
        with pytest.raises(FormatError, match=r"column list: .*cannot hold type list"):
            save(nested, url)


def test_whole_numbers_beyond_sqlite(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db?table=t"
    save(pa.table({"a": pa.array([2**63 - 1], pa.uint64())}), url)
    with pytest.raises(FormatError, match=r"column a: SQLite cannot hold whole numbers from 2\^63 on"):
        save(pa.table({"a": pa.array([2**63], pa.uint64())}), url)
    assert content(url) == {"a": [2**63 - 1]}


def test_cells_of_sqlite_are_what_they_are(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as database:
        database.execute(
            "CREATE TABLE t (n INTEGER, m NUMERIC, big, d DATE, b BOOLEAN, p DECIMAL(5,2), q DECIMAL(5,2), e REAL)"
        )
        first = (1, 1, 2**60, "2024-01-02", 1, 1.5, 1.25, None)
        second = ("n/a", 2.5, 0.5, "yesterday", 2, 2, 1.125, None)
        database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * 8)})", [first, second])
        database.commit()
    loaded = load(f"sqlite:///{tmp_path}/t.db?table=t")
    assert loaded.data.to_pydict() == {
        "n": ["1", "n/a"],
        "m": [1.0, 2.5],
        "big": [str(2**60), "0.5"],
        "d": ["2024-01-02", "yesterday"],
        "b": [1, 2],
        "p": [Decimal("1.50"), Decimal("2.00")],
        "q": [1.25, 1.125],
        "e": [None, None],
    }
    assert [note.partition("column ")[2] for note in loaded.notes[1:]] == [
        "n holds numbers and text, so it was read as text",
        "d has cells that are no date, so it was read as string",
        "b has cells that are no boolean, so it was read as int64",
        "q has cells that are no decimal(5,2), so it was read as double",
    ]


def test_columns_of_sqlite_whose_type_changes_late(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as database:
        database.execute("CREATE TABLE t (a, b, c)")
        database.executemany("INSERT INTO t VALUES (?, ?, ?)", [(row, row, None) for row in range(5000)])
        database.execute("INSERT INTO t VALUES (0.5, 'x', ?)", [b"\xff"])
        database.commit()
        data = load(f"sqlite:///{tmp_path}/t.db?table=t").data
        assert data["a"].to_pylist() == [*map(float, range(5000)), 0.5]
        assert data["b"].to_pylist() == [*map(str, range(5000)), "x"]
        assert data["c"].to_pylist() == [*[None] * 5000, b"\xff"]
        database.execute("INSERT INTO t VALUES (?, ?, ?)", [1, b"", "x"])
        database.commit()
    with pytest.raises(FormatError, match="column b: holds both bytes and other values"):
        load(f"sqlite:///{tmp_path}/t.db?table=t")


def test_the_order_of_sqlite(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as database:
        database.execute("CREATE TABLE t (rowid TEXT, a)")
        database.executemany("INSERT INTO t (oid, a) VALUES (?, ?)", [(3, "c"), (1, "a"), (2, "b")])
        database.execute("CREATE TABLE without (a PRIMARY KEY) WITHOUT ROWID")
        database.commit()
    loaded = load(f"sqlite:///{tmp_path}/t.db?table=t")
    assert loaded.data["a"].to_pylist() == ["a", "b", "c"]
    assert loaded.notes[0].endswith("read in the order of its oid")
    assert "no order of their own" in load(f"sqlite:///{tmp_path}/t.db?table=without").notes[0]


def test_text_of_sqlite_that_is_none(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as database:
        database.execute("CREATE TABLE t AS SELECT CAST(x'736563726574ff' AS TEXT) AS a")
        database.commit()
    with pytest.raises(FormatError, match=r"a text is not UTF-8$") as caught:
        load(f"sqlite:///{tmp_path}/t.db?table=t")
    assert "secret" not in str(caught.value)


def test_a_damaged_schema_of_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t (a)")
        database.execute("CREATE TABLE named (a)")
        database.commit()
    path.write_bytes(path.read_bytes().replace(b"named (a)", b"named \xbc\xbc)"))  # SQLite repeats it in its error
    with pytest.raises(FormatError, match="is a damaged database"):
        load(f"sqlite:///{path}?table=t")


def test_indexes_that_go_with_a_table_are_told(url: str, tmp_path: Path) -> None:
    save(OLD, url)
    with closing(
        sqlite3.connect(tmp_path / "survey.db") if url.startswith("sqlite") else _duckdb(tmp_path / "survey.db")
    ) as database:
        database.execute("CREATE INDEX fast ON people (a)")
    [note] = save(NEW, url)
    assert "was made anew" in note
    assert "index" in note
    assert save(NEW, url) == ()


def test_types_that_only_duckdb_has(tmp_path: Path) -> None:
    with closing(_duckdb(tmp_path / "t.db")) as database:
        database.execute("CREATE TYPE mood AS ENUM ('low', 'high')")
        database.execute(
            "CREATE TABLE t AS SELECT 170141183460469231731687303715884105727::HUGEINT AS h, 5::UHUGEINT AS u, "
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID AS id, '{\"a\": 1}'::JSON AS j, [1, NULL] AS l, "
            "{'x': 1} AS s, INTERVAL 1 MONTH AS i, 'low'::mood AS m, 1.5::DECIMAL(5,1) AS d, 7::UBIGINT AS b"
        )
        database.execute("CREATE TABLE endless AS SELECT 'infinity'::DATE AS born")
    loaded = load(f"duckdb:///{tmp_path}/t.db?table=t")
    assert loaded.data.to_pylist() == [
        {
            **{"h": Decimal(2**127 - 1), "u": Decimal(5), "id": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
            **{"j": '{"a": 1}', "l": "[1, NULL]", "s": "{'x': 1}", "i": "1 month", "m": "low"},
            **{"d": Decimal("1.5"), "b": 7},
        }
    ]
    assert "read as text: id (UUID), j (JSON), l (INTEGER[]), s (STRUCT" in loaded.notes[1]
    with pytest.raises(FormatError, match="column born: holds dates that are infinite"):
        load(f"duckdb:///{tmp_path}/t.db?table=endless")


def test_duckdb_fetches_no_extension(tmp_path: Path) -> None:
    settings = ("autoinstall_known_extensions", "autoload_known_extensions")
    with closing(_duckdb(tmp_path / "t.db")) as database:
        columns = ", ".join(f"current_setting('{setting}') AS {setting}" for setting in settings)
        database.execute(f"CREATE VIEW t AS SELECT {columns}")
    assert content(f"duckdb:///{tmp_path}/t.db?table=t") == {setting: [False] for setting in settings}


def test_a_name_in_sql_is_no_variable_of_the_program(tmp_path: Path) -> None:
    with closing(_duckdb(tmp_path / "t.db")) as database:
        database.execute("CREATE TABLE t (a INTEGER)")
    with pytest.raises(FileError, match="there is no table address"):
        load(f"duckdb:///{tmp_path}/t.db?table=address")


# The command


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_release_from_table_to_table(place: Any, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rankveil.cli import main

    people = pa.table({"id": [f"p{row}" for row in range(50)], "x": [row * 1.5 for row in range(50)], "k": range(50)})
    save(people, place.url())
    words = ["mask", place.url(), "-o", place.url("released"), "--method", "rank_swap", "--columns", "x,k"]
    words += ["--keep-order", "--role", "id=other", "--role", "k=confidential"]
    for more in ([], ["--json"]):
        assert main([*words, *more]) == 0
        said = capsys.readouterr()
        assert said.err == ""
        assert "sesame" not in said.out
        assert shown(place.url("released")) in said.out
    names = ("released.manifest.json", "released.secret.json")
    folder, start = (here, "") if place.kind == "postgresql" else (place.file.parent, f"{place.file.name}.")
    assert all((folder / f"{start}{name}").exists() for name in names)
    assert "sesame" not in (folder / f"{start}{names[0]}").read_text() + (folder / f"{start}{names[1]}").read_text()
    released = load(place.url("released")).data
    assert released.schema.equals(people.schema)
    assert released["id"].equals(people["id"])
    assert sorted(released["x"].to_pylist()) == people["x"].to_pylist()
    assert main(["audit", place.url(), place.url("released"), "--columns", "x,k", "--measures", "cm2", "--json"]) == 0
    assert "sesame" not in capsys.readouterr().out


def test_the_original_is_never_overwritten(place: Any, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rankveil.cli import main

    save(OLD, place.url())
    other = place.server.local("people") if place.server else place.url("main.people")
    assert main(["mask", place.url(), "-o", other, "--method", "permute"]) == 2
    said = capsys.readouterr()
    assert said.err == f"rankveil: {shown(other)}: the release would overwrite the input; give another name\n"
    assert content(place.url()) == OLD.to_pydict()
    assert list(here.iterdir()) == []


def test_a_release_that_fails_leaves_nothing(place: Any, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rankveil.cli import main

    Path("wide.csv").write_text(f"{'a' * 64},A,a\n1,2,3\n4,5,6\n7,8,9\n")
    assert main(["mask", "wide.csv", "-o", place.url("released"), "--method", "permute"]) == 2
    assert "64 bytes" in (said := capsys.readouterr().err) or "have the same name here" in said
    assert [entry.name for entry in here.iterdir()] == ["wide.csv"]
    assert [entry for entry in here.parent.iterdir() if entry != here] == []


def test_a_csv_goes_into_a_table_with_numbers_as_numbers(place: Any, here: Path) -> None:
    from rankveil.cli import main

    Path("people.csv").write_text("id;x;k\na;1,5;1\nb;;2\nc;3,5;3\n")
    capped = ["--method", "top_bottom_code", "--columns", "x", "--set", "top=2.5", "--release-identifier", "id,k"]
    assert main(["mask", "people.csv", "-o", place.url("released"), *capped, "--keep-order"]) == 0
    assert content(place.url("released")) == {"id": ["a", "b", "c"], "x": [1.5, None, 2.5], "k": [1, 2, 3]}


@pytest.mark.parametrize(("old", "rows"), [(None, 3_000), (OLD, 50_000)], ids=["new", "old"])
@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_a_disk_that_is_full_leaves_nothing(
    scheme: str, old: pa.Table | None, rows: int, tmp_path: Path, unmeasured: dict[str, str]
) -> None:
    """The database rolls back by itself then; the manifest and the secret must not stay without a release."""
    if scheme == "duckdb":
        pytest.importorskip("duckdb")
    save(datasets.census(rows), tmp_path / "people.parquet")
    (tmp_path / "out").mkdir()
    address = f"{scheme}:///{tmp_path}/out/survey.db?table=people"
    if old is not None:
        save(old, address)
    words = ["mask", str(tmp_path / "people.parquet"), "-o", address, "--method", "permute"]
    script = (
        "import resource, signal, sys; from rankveil.cli import main; "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000)); "
        f"sys.exit(main({words!r}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=unmeasured)
    assert done.returncode == 2, done.stderr
    assert re.search(r"cannot be written: (file too large|disk I/O error|database or disk is full)$", done.stderr)
    left = {entry.name for entry in (tmp_path / "out").iterdir() if entry.stat().st_size}  # DuckDB keeps an empty log
    assert left == (set() if old is None else {"survey.db"})
    if old is None:
        assert list((tmp_path / "out").iterdir()) == []
    else:
        assert content(address) == old.to_pydict()


KILLED = """
import os, signal, sys
import pyarrow as pa
from rankveil.files import Staged, add_table

url, event, times = sys.argv[1], sys.argv[2], [int(sys.argv[3])]

def look(name, args):
    if name == event:
        times[0] -= 1
        if times[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

with Staged() as staged:
    staged.add("manifest", lambda file: file.write(b"new"))
    staged.add("secret", lambda file: file.write(b"new"))
    add_table(staged, pa.table({"a": [3, 4, 5]}), url)
    sys.addaudithook(look)
"""


@pytest.mark.parametrize(("event", "times"), [("os.rename", 2), ("os.truncate", 1)], ids=["before", "after"])
def test_files_of_a_program_that_was_killed_go_with_its_table(
    place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: str, times: int
) -> None:
    """Killed when one file has its name, the table was not committed; when the journal is emptied, it was."""
    monkeypatch.chdir(tmp_path)
    url = place.url()
    save(OLD, url)
    (tmp_path / "manifest").write_text("old")
    made = subprocess.run([sys.executable, "-c", KILLED, url, event, str(times)], check=False, timeout=60)
    assert made.returncode == -signal.SIGKILL
    assert (tmp_path / "manifest").read_text() == "new"
    if event == "os.rename":  # the next writer finds a decision, and the table tells how it ended
        with pytest.raises(FileError, match="a program was stopped while it was writing this together"):
            load(url)
        assert (tmp_path / "manifest").read_text() == "new"
    check_writable(url)
    new = content(url) == NEW.to_pydict()
    assert new == (event == "os.truncate")
    assert (tmp_path / "manifest").read_text() == ("new" if new else "old")
    assert (tmp_path / "secret").exists() == new
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == []
