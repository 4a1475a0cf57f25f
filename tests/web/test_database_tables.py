"""The Data page copies a table of a database: from the inbox or a server, and keeps no address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rankveil import files

TABLE = pa.table({"AGE": range(20, 60), "PAY": [1.5 * row for row in range(40)]})


def everything_kept(folder: Path) -> bytes:
    """All bytes of all small files."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_table_of_a_database_in_the_inbox_is_copied(user: Any, kind: str) -> None:
    pytest.importorskip(kind if kind == "duckdb" else "sqlite3")
    inbox = user.bench.workspace.root / "inbox"
    files.save(TABLE, f"{kind}:///{inbox}/my survey.db?table=people")
    answer = user.post("/data", {"address": f" {kind}:///my%20survey.db?table=people "})
    text = user.get(answer.headers["location"]).text
    assert "40 records, 2 columns; 2 would be masked" in text
    assert f"{kind}:///my%20survey.db?table=people: " in text  # the note on the order of rows
    assert str(inbox) not in text
    assert "--key" not in text
    [source] = user.bench.sources.all()
    assert (source.name, source.origin) == ("people.parquet", "database")
    assert user.bench.opened(source).table.native.equals(TABLE)


def test_only_files_of_the_inbox_are_opened(user: Any, tmp_path: Path) -> None:
    files.save(TABLE, f"sqlite:///{tmp_path}/out.db?table=people")
    inbox = user.bench.workspace.root / "inbox"
    (inbox / "link.db").symlink_to(tmp_path / "out.db")
    for address, sentence in {
        f"sqlite:///{tmp_path}/out.db?table=people": "must not be a path",
        "sqlite:///../../out.db?table=people": "must not be a path",
        "sqlite:///..%2F..%2Fout.db?table=people": "must not be a path",
        "sqlite:///link.db?table=people": "there is no such file in the inbox",
        "sqlite:///none.db?table=people": "there is no such file in the inbox",
        "postgresql://h/db?table=people&passfile=/etc/passwd": "the address may set only dbname, host, password",
        "postgresql://h/db?table=people&service=x": "the address may set only",
        "people.csv": "this is not the address of a table",
        "": "this is not the address of a table",
        "sqlite:///a.db": "names no table",
    }.items():
        assert sentence in user.told("/data", {"address": address}), address
    assert user.bench.sources.all() == []


def test_a_table_that_is_not_in_the_database(user: Any) -> None:
    inbox = user.bench.workspace.root / "inbox"
    files.save(TABLE, f"sqlite:///{inbox}/survey.db?table=people")
    told = user.told("/data", {"address": "sqlite:///survey.db?table=poeple"})
    assert told == "sqlite:///survey.db?table=poeple: there is no table poeple; did you mean people?"


def test_a_password_is_neither_shown_nor_kept(user: Any) -> None:
    answer = user.post("/data", {"address": "postgresql://me:sesame@127.0.0.1:1/db?table=people"}, status=400)
    assert "there is no connection" in answer.text
    assert "sesame" not in answer.text
    assert b"sesame" not in everything_kept(user.bench.workspace.root)
