"""What the tests of databases share: a real PostgreSQL server, and one way to speak to three databases."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

PASSWORD = "sesame:/@?#"
"""Of the server's owner, with everything in it that an address must write in another way."""


@dataclass
class Server:
    """A PostgreSQL server in a folder of its own, run by an ordinary user since it refuses root."""

    folder: Path
    binaries: Path
    user: str | None
    """Who runs it, when that is not who runs the tests."""
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """A new, empty cluster; connections over the network need the password."""
        word = self.folder / "word"
        word.write_text(PASSWORD)
        if self.user is not None:
            account = pwd.getpwnam(self.user)
            for path in (self.folder, word):
                os.chown(path, account.pw_uid, account.pw_gid)
        options = ["--no-locale", "--encoding=UTF8", "--no-sync", "--username=rankveil", f"--pwfile={word}"]
        options += ["--auth-local=trust", "--auth-host=scram-sha-256", f"--pgdata={self.folder / 'data'}"]
        subprocess.run([self.binaries / "initdb", *options], check=True, capture_output=True, **self._as_user())

    def start(self) -> None:
        """Start it and wait until it answers."""
        import psycopg

        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        options = ["-D", self.folder / "data", "-k", self.folder, "-h", "127.0.0.1", "-p", str(self.port), "-F"]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.binaries / "postgres", *options], stdout=log, stderr=log, **self._as_user()
            )
        for _ in range(300):
            try:
                self.sql("SELECT 1")
                return
            except psycopg.OperationalError:
                time.sleep(0.1)
        raise RuntimeError((self.folder / "log").read_text())

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it; SIGQUIT does so without any goodbye."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(timeout=60)
            self.process = None

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement as the owner of everything."""
        import psycopg

        host = {"host": str(self.folder), "port": self.port, "user": "rankveil", "dbname": "postgres"}
        with psycopg.connect(**host, autocommit=True) as connection:  # type: ignore[arg-type]
            cursor = connection.execute(statement, values or None)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def url(self, table: str, *, user: str = "rankveil", password: str | None = PASSWORD, more: str = "") -> str:
        """The address of a table, over the network."""
        secret = "" if password is None else ":" + quote(password, safe="")
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/postgres?table={quote(table)}{more}"

    def local(self, table: str) -> str:
        """The same address through the socket, without a password."""
        host = quote(str(self.folder), safe="")
        return f"postgresql:///postgres?host={host}&port={self.port}&user=rankveil&table={table}"

    def _as_user(self) -> dict[str, Any]:
        plain = {"LC_ALL": "C", "PATH": os.environ.get("PATH", "")}
        if self.user is None:
            return {"env": plain, "cwd": self.folder}
        group = pwd.getpwnam(self.user).pw_gid
        return {"env": plain, "cwd": self.folder, "user": self.user, "group": group, "extra_groups": []}


def new_server() -> Iterator[Server]:
    """A server that runs as long as it is needed."""
    pytest.importorskip("psycopg")
    places = [os.path.dirname(os.path.realpath(found)) for found in [shutil.which("initdb")] if found]
    places += sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    places = [place for place in places if os.path.exists(os.path.join(place, "initdb"))]
    if not places:
        pytest.skip("there is no PostgreSQL here (no initdb, neither in PATH nor in its usual folders)")
    user = "nobody" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="rankveil-pg-"))  # short: the path of a socket must be
    server = Server(folder, Path(places[0]), user)
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def running_server() -> Iterator[Server]:
    """One server for all tests."""
    yield from new_server()


@pytest.fixture
def server(running_server: Server) -> Server:
    """The server without any table of a test before."""
    wanted = "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'"
    for (schema,) in running_server.sql(wanted):
        running_server.sql(f"DROP SCHEMA {schema} CASCADE")
    for (role,) in running_server.sql("SELECT rolname FROM pg_roles WHERE rolname LIKE 'test\\_%'"):
        running_server.sql(f"DROP OWNED BY {role}")
        running_server.sql(f"DROP ROLE {role}")
    running_server.sql("CREATE SCHEMA public")
    running_server.sql("GRANT USAGE ON SCHEMA public TO PUBLIC")
    return running_server


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server for one test alone, which may stop it."""
    yield from new_server()


@dataclass
class Place:
    """Any of the three databases."""

    kind: str
    file: Path
    server: Server | None = field(default=None, repr=False)

    def url(self, table: str = "people") -> str:
        """The address of a table."""
        return self.server.url(table) if self.server else f"{self.kind}:///{self.file}?table={quote(table)}"

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement with the database's own driver."""
        if self.server is not None:
            return self.server.sql(statement)
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.file, isolation_level=None)) as connection:
                return connection.execute(statement).fetchall()
        import duckdb

        with closing(duckdb.connect(self.file)) as database:
            return database.execute(statement).fetchall()


@pytest.fixture(params=["postgresql", "duckdb", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each of the three databases, empty."""
    if request.param == "postgresql":
        return Place("postgresql", tmp_path, request.getfixturevalue("server"))
    if request.param == "duckdb":
        pytest.importorskip("duckdb")
    return Place(request.param, tmp_path / "survey.db")
