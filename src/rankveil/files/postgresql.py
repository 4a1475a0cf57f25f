"""PostgreSQL: a table of a server, read and written with COPY, replaced in one transaction.

The rows go as text between the server and Arrow, which writes and parses it a column at a time. Passwords may be in
the address, in PGPASSWORD, in a .pgpass or in a service file: the server's own library reads them.

A view and its functions run on the server, with the rights of the user who reads it. Reading is done in a READ ONLY
transaction; what the user may read on the server, a view may read too.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, closing, suppress
from typing import TYPE_CHECKING, Any

from rankveil.errors import FileError, FormatError, suggestion
from rankveil.files import databases, postgresql_cells
from rankveil.files.databases import Address
from rankveil.files.dialect import Loaded

if TYPE_CHECKING:
    from collections.abc import Mapping

    import psycopg
    import pyarrow as pa

ENDINGS = ("postgresql://", "postgres://")

LONGEST_NAME = 63
"""Bytes of a name; the server would cut off the rest without an error."""

LOCK_WAIT = 10
"""Seconds to wait for another program that holds the table."""

_DEFAULTS = {
    "connect_timeout": "10",
    "application_name": "rankveil",
    "client_encoding": "UTF8",
    # a server that vanishes without a word is noticed within a minute
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
_READING = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO, YMD'",
    "SET LOCAL bytea_output = 'hex'",
    "SET LOCAL extra_float_digits = 1",
    # rows come as they lie in the table, not as several workers happen to find them
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
)
_WRITING = (
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO, YMD'",
    "SET LOCAL synchronous_commit = on",
)
_KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table", "p": "a partitioned table"}
_SOURCES = """
    WITH RECURSIVE read(oid) AS (
        SELECT %(oid)s::oid
        UNION
        SELECT found.oid FROM read, LATERAL (
            SELECT d.refobjid AS oid FROM pg_rewrite r JOIN pg_depend d
            ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
            WHERE r.ev_class = read.oid
            UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = read.oid
        ) AS found
    )
    SELECT oid::bigint FROM read
"""


def load(path: str, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None) -> Loaded:
    """The table or view, batch by batch, all of it as at one moment."""
    from psycopg import sql

    address = databases.parse(path)
    with _said_of(address, deed="read"), closing(_connect(address)) as connection:
        for setting in _READING:
            connection.execute(sql.SQL(setting))
        oid, _ = _find(connection, address)
        table = _identifier(connection, oid)
        hidden = connection.execute("SELECT row_security_active(%s::oid)", [oid]).fetchall()[0][0]
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(table))
            reading = postgresql_cells.Reading.of(connection, cursor)
            texts = [sql.Identifier(name) for name in reading.quoted]
            quote = sql.SQL(", FORCE_QUOTE ({})").format(sql.SQL(", ").join(texts)) if texts else sql.SQL("")
            rows = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT (FORMAT csv{})").format(table, quote)
            with cursor.copy(rows) as copy:
                data = reading.parsed(address, copy)
        connection.rollback()
    data, notes = reading.finished(address, data)
    if hidden:
        notes.append(f"{address.shown}: has row-level security; only the rows that this user may see were read")
    return Loaded(data, notes=(databases.no_order(address), *notes))


def begin(data: pa.Table, path: str) -> Replacement:
    """A replacement of the table, to be written together with files."""
    return Replacement(data, databases.parse(path))


def check_writable(path: str) -> None:
    """Fail when the table could not be replaced: no answer, no right to, a read-only server, a view."""
    address = databases.parse(path)
    with _said_of(address, deed="written"), closing(_connect(address)) as connection:
        _replaced(connection, address)


def same_table(a: str, b: str) -> bool:
    """Whether both lead to one table, however the server and the table are named, or through views."""
    return bool(_sources(databases.parse(a)) & _sources(databases.parse(b)))


def landed(path: str, state: str) -> bool | None:
    """Whether the transaction with this number was committed; None when the server cannot tell."""
    came = _came_of(databases.parse(path), int(state))
    return None if came is None else came == "committed"


class Replacement:
    """A table written anew inside a transaction that nobody sees before its end.

    A table with the same columns is emptied and filled, so its owner, grants, indexes and policies stay; any other
    is dropped and made again, unless something depends on it.
    """

    def __init__(self, data: pa.Table, address: Address) -> None:
        self.committed = False
        self.notes: tuple[str, ...] = ()
        self.told_as = address.shown
        self.question: Mapping[str, str] = {}
        self._data = databases.plain(data)
        self._address = address
        self._connection: psycopg.Connection[Any] | None = None
        self._number = 0

    def prepare(self) -> None:
        """Write all rows."""
        from psycopg import sql

        with _said_of(self._address, deed="written"):
            databases.checked_names(self._data.column_names, folds=False)
            for name in self._data.column_names:
                _refuse_long(name, "column")
            kinds = {field.name: postgresql_cells.type_of(field.name, field.type) for field in self._data.schema}
            self._connection = connection = _connect(self._address)
            for setting in (*_WRITING, f"SET LOCAL lock_timeout = '{LOCK_WAIT}s'"):
                connection.execute(sql.SQL(setting))
            self._number = connection.execute("SELECT txid_current()").fetchall()[0][0]
            self.question = {"table": databases.whole_address(self._address.shown), "state": str(self._number)}
            self._fill(connection, self._made(connection, kinds))

    def commit(self) -> None:
        """Make it last; when the answer to the commit is lost, the server is asked again what came of it."""
        import psycopg

        assert self._connection is not None
        try:
            self._connection.commit()
            self.committed = True
        except BaseException as error:
            state = _came_of(self._address, self._number)
            self.committed = state == "committed"
            if not isinstance(error, psycopg.Error):
                raise
            if state is None:
                raise FileError(
                    f"{self._address.shown}: the connection broke during the commit, and whether the table was "
                    "replaced is not known; write it again"
                ) from error
            if not self.committed:
                raise _told(self._address, error, "written") from error
        self._connection.close()

    def abandon(self) -> None:
        """Leave everything as it was."""
        if self._connection is not None:
            self._connection.close()  # the server undoes what was not committed

    def _made(self, connection: psycopg.Connection[Any], kinds: dict[str, str]) -> Any:
        """The empty table that the rows go into."""
        from psycopg import sql

        schema, oid = _replaced(connection, self._address)
        table = sql.Identifier(schema, self._address.name)
        if oid is not None:
            if _same_columns(connection, oid, kinds):
                connection.execute(sql.SQL("TRUNCATE ONLY {}").format(table))
                self.notes = (
                    f"{self._address.shown}: had the same columns, so it was emptied and filled again; "
                    "its owner, grants, indexes and triggers stay",
                )
                return table
            connection.execute(sql.SQL("DROP TABLE {}").format(table))
            self.notes = (
                f"{self._address.shown}: had other columns, so it was dropped and made again; grants, indexes and "
                "other settings of the old one are gone",
            )
        columns = [
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind))  # words of ours
            for name, kind in kinds.items()
        ]
        connection.execute(sql.SQL("CREATE TABLE {} ({})").format(table, sql.SQL(", ").join(columns)))
        return table

    def _fill(self, connection: psycopg.Connection[Any], table: Any) -> None:
        from psycopg import sql

        columns = sql.SQL(", ").join(map(sql.Identifier, self._data.column_names))
        with connection.cursor() as cursor:
            with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(table, columns)) as copy:
                try:
                    for first in range(0, self._data.num_rows, databases.ROWS_AT_ONCE):
                        part = self._data.slice(first, databases.ROWS_AT_ONCE)
                        copy.write(postgresql_cells.lines(part, first_row=first + 1))
                except BaseException:  # else the server would first take in all rows that are on their way
                    with suppress(Exception):
                        connection.cancel()
                    raise
            if cursor.rowcount != self._data.num_rows:
                raise FileError(
                    f"{self._address.shown}: a trigger of the table let only {cursor.rowcount} of "
                    f"{self._data.num_rows} rows in; give another name"
                )


def _came_of(address: Address, number: int) -> str | None:
    """`committed`, `aborted`, or None when the server cannot tell; asked for as long as it is not decided."""
    with suppress(Exception), closing(_connect(address)) as connection:
        connection.read_only = True
        for _ in range(20):
            state = connection.execute("SELECT txid_status(%s)", [number]).fetchall()[0][0]
            if state != "in progress":
                return str(state)
            time.sleep(0.1)
    return None


def _library(address: Address) -> Any:
    try:
        import psycopg
    except ImportError:
        raise FileError(f"{address.shown}: psycopg is not installed; pip install 'rankveil[databases]'") from None
    return psycopg


def _connect(address: Address) -> psycopg.Connection[Any]:
    library = _library(address)
    known = [option.keyword.decode() for option in library.pq.Conninfo.get_defaults()]
    for setting in address.settings:
        if setting not in known:
            # not repeated: it could be the rest of a password with an & inside
            raise FormatError(
                f"{address.shown}: a setting after the question mark is unknown{suggestion(setting, known)}"
            )
    try:
        made: psycopg.Connection[Any] = library.connect(**{**_DEFAULTS, **address.settings})
    except library.OperationalError as error:
        raise _unreachable(address, error) from error
    except library.Error as error:
        raise FormatError(
            f"{address.shown}: a setting after the question mark has a value that is not valid"
        ) from error
    if made.info.server_version < 100000:
        made.close()
        raise FileError(f"{address.shown}: this PostgreSQL is older than 10 and not known here")
    return made


def _find(connection: psycopg.Connection[Any], address: Address) -> tuple[int, str]:
    """The number of the table and its kind, by its schema or along the search path."""
    found = _lookup(connection, address)
    if found is None:
        rows = connection.execute(
            "SELECT CASE WHEN n.nspname = ANY (current_schemas(false)) THEN c.relname "
            "ELSE pg_catalog.concat(n.nspname, '.', c.relname) END "
            "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema') "
            "AND n.nspname NOT LIKE 'pg\\_%'"
        ).fetchall()
        raise databases.unknown_table(address, (row[0] for row in rows))
    if found[1] not in ("r", *_KINDS):
        raise FileError(f"{address.shown}: is neither a table nor a view")
    return found


def _lookup(connection: psycopg.Connection[Any], address: Address) -> tuple[int, str] | None:
    # format('%I') puts a name in quotes where SQL needs them; to_regclass goes along the search path.
    # Without its schema, a function of somebody else that fits the arguments better would be called in its place.
    words = "'%%I.%%I', %(schema)s::text, %(name)s::text" if address.schema else "'%%I', %(name)s::text"
    name = f"pg_catalog.format({words})"
    row = connection.execute(
        f"SELECT oid::bigint, relkind::text FROM pg_class WHERE oid = to_regclass({name})",
        {"schema": address.schema, "name": address.name},
    ).fetchone()
    return None if row is None else (row[0], row[1])


def _identifier(connection: psycopg.Connection[Any], oid: int) -> Any:
    from psycopg import sql

    wanted = (
        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s"
    )
    return sql.Identifier(*connection.execute(wanted, [oid]).fetchall()[0])


def _replaced(connection: psycopg.Connection[Any], address: Address) -> tuple[str, int | None]:
    """The schema, and in it the number of the table that a new one takes the place of, if there is one."""
    _refuse_long(address.name, "table")
    if connection.execute("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool").fetchall()[0][
        0
    ]:
        raise FileError(f"{address.shown}: the server or this user is read-only; give another")
    found = _lookup(connection, address)
    if found is None:
        return _schema(connection, address), None
    oid, kind = found
    if kind != "r":
        what = _KINDS.get(kind, "not a table")
        raise FileError(f"{address.shown}: is {what} and cannot be written; give the name of an ordinary table")
    schema, owned, fillable, part = connection.execute(
        "SELECT n.nspname, pg_has_role(c.relowner, 'USAGE'), "
        "has_table_privilege(c.oid, 'TRUNCATE') AND has_table_privilege(c.oid, 'INSERT'), "
        "EXISTS (SELECT FROM pg_inherits WHERE c.oid IN (inhrelid, inhparent)) "
        "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s",
        [oid],
    ).fetchall()[0]
    if part:
        raise FileError(f"{address.shown}: shares its rows with another table (inheritance); give another name")
    if not owned and not fillable:
        raise FileError(f"{address.shown}: this user may not replace the table; give another name or ask its owner")
    return schema, oid


def _schema(connection: psycopg.Connection[Any], address: Address) -> str:
    """The schema in which a new table is made."""
    schema, allowed = connection.execute(
        "SELECT g.name, has_schema_privilege(n.oid, 'CREATE') "
        "FROM (SELECT coalesce(%s::text, current_schema()::text)) AS g(name) "
        "LEFT JOIN pg_namespace n ON n.nspname = g.name",
        [address.schema],
    ).fetchall()[0]
    if allowed is None:
        told = f"there is no schema {schema}; make it first" if schema else "name a schema: table=schema.name"
        raise FileError(f"{address.shown}: {told}")
    if not allowed:
        raise FileError(f"{address.shown}: this user may not make tables in the schema {schema}; give another")
    return str(schema)


def _same_columns(connection: psycopg.Connection[Any], oid: int, kinds: dict[str, str]) -> bool:
    """Whether a table can be filled as it is: the same names in the same order, and types that keep every value."""
    filling = connection.execute("SELECT has_table_privilege(%s::oid, 'TRUNCATE, INSERT')", [oid]).fetchall()[0][0]
    rows = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod), attgenerated <> '' OR attidentity = 'a' "
        "FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        [oid],
    ).fetchall()
    if not filling or [row[0] for row in rows] != list(kinds) or any(row[2] for row in rows):
        return False
    return all(postgresql_cells.keeps(kind, kinds[name]) for name, kind, _ in rows)


def _sources(address: Address) -> set[tuple[int, int, int]]:
    """Every table that reading this one reads, as numbers of the server, the database and the table."""
    with _said_of(address, deed="read"), closing(_connect(address)) as connection:
        connection.read_only = True
        found = _lookup(connection, address)
        if found is None:
            return set()
        server, database = connection.execute(
            "SELECT (SELECT system_identifier FROM pg_control_system()), oid::bigint "
            "FROM pg_database WHERE datname = current_database()"
        ).fetchall()[0]
        return {(server, database, row[0]) for row in connection.execute(_SOURCES, {"oid": found[0]}).fetchall()}


def _refuse_long(name: str, what: str) -> None:
    size = len(name.encode())
    if size > LONGEST_NAME:
        raise FormatError(
            f"{what} {name}: its name has {size} bytes, and PostgreSQL keeps {LONGEST_NAME}; give it a shorter one"
        )


def _said_of(address: Address, *, deed: str) -> AbstractContextManager[None]:
    """Turn the server's refusal into one sentence, without anything of the data or the password."""
    return databases.said_of(address, deed=deed, refusals=_library(address).Error, told=_told)


def _unreachable(address: Address, error: Exception) -> FileError:
    """Why there is no connection, in the library's words."""
    text = " ".join(str(error).split())
    reason = text.rpartition("FATAL: ")[2].strip() or text
    for before in ("connection failed: ", "connection is bad: "):
        reason = reason.removeprefix(before)
    if "password" in reason:
        reason += "; give it in the address, in PGPASSWORD or in a .pgpass file"
    return FileError(f"{address.shown}: there is no connection: {reason}")


def _told(address: Address, error: psycopg.Error, deed: str) -> FileError:
    state, diag = error.sqlstate or "", error.diag
    if not state or state.startswith(("08", "57P")):
        return FileError(f"{address.shown}: cannot be {deed}: the connection to the server broke")
    if state == "2BP01":
        return FileError(
            f"{address.shown}: has other columns than the new table and cannot be dropped, because views or other "
            "tables depend on it; give another name"
        )
    if state == "0A000" and diag.message_primary and "foreign key" in diag.message_primary:
        return FileError(f"{address.shown}: other tables refer to it, so it cannot be replaced; give another name")
    if state == "55P03":
        return FileError(f"{address.shown}: is locked by another program; try again when that is done")
    if state.startswith("23"):
        what = f"the constraint {diag.constraint_name}" if diag.constraint_name else f"column {diag.column_name}"
        return FileError(f"{address.shown}: cannot be {deed}: a row does not satisfy {what} of the table")
    if state.startswith(("22", "21")):  # the text of these errors holds the cell
        return FormatError(
            f"{address.shown}: cannot be {deed}: a cell does not fit its column ({type(error).__name__})"
        )
    reason = " ".join((diag.message_primary or type(error).__name__).split())
    return FileError(f"{address.shown}: cannot be {deed}: {reason}")
