"""DuckDB: a table of a database file, read as Arrow batches and replaced in one transaction.

The database is data, not a program: a view of it may name files, addresses, other databases or extensions, and none of
these is ever opened, fetched or loaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import TYPE_CHECKING, Any

from rankveil.errors import FileError, FormatError, listing
from rankveil.files import databases, limits
from rankveil.files.databases import Address, quoted
from rankveil.files.dialect import Loaded

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

ENDINGS = ("duckdb://",)

_CONFIG: dict[str, Any] = {
    "allow_persistent_secrets": "false",  # those of the user are not for whoever made the database
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a name in SQL is never a variable of this program
}
_SETTINGS = (
    "temp_directory = ''",  # otherwise a folder beside the database, in which views could read whatever was put there
    "enable_external_access = false",  # no file but the database itself, no address, no ATTACH, no COPY
    "TimeZone = 'UTC'",
    "lock_configuration = true",
)
"""In this order, before anything of the database is asked: the first cannot be set after the second."""
_BESIDE = (".wal", ".wal.recovery", ".wal.checkpoint")
"""Behind the name of a database: files that DuckDB reads and writes, and that a view may read like the database."""
_PLAIN = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("FLOAT", "DOUBLE", "VARCHAR", "BLOB", "DATE", "TIME", "TIMESTAMP WITH TIME ZONE"),
    *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
)
"""Types that Arrow has too; other columns are read as text."""

_LONG_NUMBERS = ("HUGEINT", "UHUGEINT", "BIGNUM", "VARINT")
_ROWS = "rankveil_rows"
_INTERRUPTED = "Query interrupted"
"""What DuckDB makes of Ctrl-C in the middle of a statement."""

_MAGIC, _MAGIC_PLACE = b"DUCK", 8
"""What a database file has near its beginning, and where."""

_NOT_WRITTEN = re.compile(r'Could not write file "[^"]*": (.+)')


def load(path: str, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None) -> Loaded:
    """The table or view, batch by batch, in the order in which the rows were put in."""
    import pyarrow as pa

    address = databases.parse(path)
    with _said_of(address, deed="read"), closing(_connect(address, write=False)) as connection:
        schema, name = _find(connection, address)
        table = _sql_name(connection, schema, name)
        kinds = {row[0]: str(row[1]) for row in connection.execute(f"DESCRIBE {table}").fetchall()}
        columns = ", ".join(_selected(column, kind) for column, kind in kinds.items())
        batches = _reader(connection.sql(f"SELECT {columns} FROM {table}"))
        intake, taken = limits.Intake(address.shown), []
        for batch in batches:
            intake.add(batch.nbytes)
            taken.append(batch)
        data = pa.Table.from_batches(taken, schema=batches.schema)
    notes = [databases.no_order(address)]
    notes += databases.as_text_note(address, (f"{name} ({kind})" for name, kind in kinds.items() if _as_text(kind)))
    for place, (column, kind) in enumerate(kinds.items()):
        _refuse_infinite(address, column, data.column(place))
        if kind in _LONG_NUMBERS:
            numbers, note = databases.as_numbers(data.column(place))
            data = data.set_column(place, column, numbers)
            notes += [f"{address.shown}: column {column} {note}"] if note else []
    return Loaded(data, notes=tuple(notes))


def begin(data: pa.Table, path: str) -> Replacement:
    """A replacement of the table, to be written together with files."""
    return Replacement(data, databases.parse(path))


def check_writable(path: str) -> None:
    """Fail when the table could not be replaced: no database, write-protected, locked, no schema, a view."""
    address = databases.parse(path)
    if not os.path.exists(address.file):
        _library(address)
        return
    _refuse_protected(address)
    with _said_of(address, deed="written"), closing(_connect(address, write=True)) as connection:
        _replaced(connection, address)


def same_table(a: str, b: str) -> bool:
    """Whether both lead to one table, by its name or through views."""
    first, second = databases.parse(a), databases.parse(b)
    if not databases.in_one_file(first, second):
        return False
    if not os.path.exists(first.file):
        return _key(first) == _key(second)
    with _said_of(first, deed="read"), closing(_connect(first, write=False)) as connection:
        return bool(_sources(connection, first) & _sources(connection, second))


def landed(path: str, state: str) -> bool:
    """Whether a transaction was committed that had brought the table to this state."""
    address = databases.parse(path)
    if not os.path.exists(address.file):
        return False
    with _said_of(address, deed="read"), closing(_connect(address, write=False)) as connection:
        place = _key(address)
        known = {(databases.folded(schema), databases.folded(name)) for schema, name in _tables(connection)}
        return place in known and _content(connection, *place) == state


class Replacement(databases.FileReplacement):
    """A table written anew inside a transaction that nobody sees before its end."""

    BESIDE = (".wal",)

    def _connect(self) -> duckdb.DuckDBPyConnection:
        return _connect(self._address, write=True)

    def _said(self) -> AbstractContextManager[None]:
        return _said_of(self._address, deed="written")

    def _state(self) -> str:
        return _content(self._connection, *_key(self._address))

    def _fill(self) -> None:
        connection, data = self._connection, _storable(self._data)
        connection.execute("BEGIN")
        schema, found = _replaced(connection, self._address)
        if found is not None:
            self._note_lost(connection, schema, found)
            connection.execute(f"DROP TABLE {_sql_name(connection, schema, found)}")
        connection.register(_ROWS, data)
        table = _sql_name(connection, schema, self._address.name)
        # one statement, which takes the rows batch by batch and gives the columns their types
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM temp.{_ROWS}")
        connection.unregister(_ROWS)

    def _note_lost(self, connection: duckdb.DuckDBPyConnection, schema: str, name: str) -> None:
        wanted = "FROM duckdb_indexes() WHERE database_name = current_database() AND schema_name = ? AND table_name = ?"
        lost = [row[0] for row in connection.execute(f"SELECT index_name {wanted}", [schema, name]).fetchall()]
        if lost:
            self.notes = (f"{self._address.shown}: was made anew; its indexes are gone ({listing(lost)})",)


def _library(address: Address) -> Any:
    try:
        import duckdb
    except ImportError:
        raise FileError(f"{address.shown}: DuckDB is not installed; pip install 'rankveil[databases]'") from None
    return duckdb


def _connect(address: Address, *, write: bool) -> duckdb.DuckDBPyConnection:
    library = _library(address)
    if not write and not os.path.exists(address.file):
        raise FileError(f"{address.shown}: there is no such file")
    _refuse_other(address)
    _refuse_links(address)
    made: duckdb.DuckDBPyConnection = library.connect(
        os.path.abspath(address.file), read_only=not write, config=dict(_CONFIG)
    )
    # What connections of this program to one file share is set by the first of them. The function is DuckDB's own by
    # its whole name: a macro of the database, called current_setting, would answer that all is set.
    if not made.execute("SELECT system.main.current_setting('lock_configuration')").fetchall()[0][0]:
        for setting in _SETTINGS:
            made.execute(f"SET GLOBAL {setting}")
    return made


def _refuse_other(address: Address) -> None:
    """An error for a file that is no database: DuckDB would look at a CSV file through a database in memory."""
    try:
        with open(address.file, "rb") as file:
            start = file.read(_MAGIC_PLACE + len(_MAGIC))
    except OSError:  # not there yet, or DuckDB says why it cannot be opened
        return
    if start[_MAGIC_PLACE:] != _MAGIC:
        raise _no_database(address)


def _refuse_links(address: Address) -> None:
    """An error for a link beside the database: a view could read, and a change could write, wherever it leads."""
    for ending in _BESIDE:
        beside = os.path.abspath(address.file) + ending
        if os.path.islink(beside):
            raise FileError(
                f"{address.shown}: the file {os.path.basename(beside)} beside it is a symbolic link to "
                f"{os.path.realpath(beside)}, which DuckDB would read and change; remove the link"
            )


def _no_database(address: Address) -> FormatError:
    return FormatError(f"{address.shown}: is not a DuckDB database, or of a version that is not known here")


def _reader(relation: Any) -> Any:
    """The batches of a result; what this is called depends on the version of DuckDB."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(databases.ROWS_AT_ONCE)


def _tables(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], str]:
    """Every table and view of the file, and which it is."""
    rows = connection.execute(
        "SELECT schema_name, table_name, 'table' FROM duckdb_tables() WHERE database_name = current_database() "
        "UNION ALL SELECT schema_name, view_name, 'view' FROM duckdb_views() "
        "WHERE database_name = current_database() AND NOT internal"
    ).fetchall()
    return {(row[0], row[1]): row[2] for row in rows}


def _content(connection: duckdb.DuckDBPyConnection, schema: str, name: str) -> str:
    """How many rows a table has, and a digest of them whatever their order."""
    table = _sql_name(connection, schema, name)
    return str(connection.execute(f"SELECT count(*), bit_xor(hash(t)) FROM {table} AS t").fetchone())


def _key(address: Address) -> tuple[str, str]:
    return databases.folded(address.schema or "main"), databases.folded(address.name)


def _find(connection: duckdb.DuckDBPyConnection, address: Address) -> tuple[str, str]:
    """Schema and name of the table or view as the database has them."""
    found = _tables(connection)
    for schema, name in found:
        if (databases.folded(schema), databases.folded(name)) == _key(address):
            return schema, name
    raise databases.unknown_table(address, (n if s == "main" else f"{s}.{n}" for s, n in found))


def _replaced(connection: duckdb.DuckDBPyConnection, address: Address) -> tuple[str, str | None]:
    """The schema, and in it the table that a new one takes the place of, if there is one."""
    wanted = "SELECT schema_name FROM duckdb_schemas() WHERE database_name = current_database()"
    schemas = {databases.folded(row[0]): row[0] for row in connection.execute(wanted).fetchall()}
    schema, name = _key(address)
    if schema not in schemas:
        raise FileError(f"{address.shown}: there is no schema {address.schema}; make it first")
    for (owner, found), kind in _tables(connection).items():
        if (databases.folded(owner), databases.folded(found)) == (schema, name):
            if kind == "view":
                raise FileError(f"{address.shown}: is a view and cannot be written; give the name of a table")
            return owner, found
    return schemas[schema], None


def _sources(connection: duckdb.DuckDBPyConnection, address: Address) -> set[tuple[str, str]]:
    """Schema and name of every table that reading this one reads; views are followed."""
    there = {(databases.folded(schema), databases.folded(name)) for schema, name in _tables(connection)}
    read: set[tuple[str, str]] = set()
    waiting = [_key(address)]
    while waiting:
        key = waiting.pop()
        if key not in read:
            read.add(key)
            query = f"SELECT * FROM {_sql_name(connection, *key)}"
            inside = connection.get_table_names(query, qualified=True) if key in there else set()
            for parts in map(databases.name_parts, inside):
                schema = parts[-2] if len(parts) > 1 else "main"
                waiting.append((databases.folded(schema), databases.folded(parts[-1])))
    return read


def _sql_name(connection: duckdb.DuckDBPyConnection, schema: str, name: str) -> str:
    """A table in SQL, with the database before it: a schema may be called like the database."""
    [[database]] = connection.execute("SELECT current_database()").fetchall()
    return quoted(database, schema, name)


def _as_text(kind: str) -> bool:
    return kind not in (*_PLAIN, *_LONG_NUMBERS) and not (
        kind.startswith(("DECIMAL(", "ENUM(")) and kind.endswith(")")  # not a list of them
    )


def _selected(name: str, kind: str) -> str:
    if _as_text(kind) or kind in _LONG_NUMBERS:
        return f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}"
    return quoted(name)


def _refuse_infinite(address: Address, name: str, column: pa.ChunkedArray) -> None:
    """DuckDB's infinite dates look like far ones in Arrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bits = 32 if pa.types.is_date32(column.type) else 64
    if pa.types.is_date32(column.type) or pa.types.is_timestamp(column.type):
        edge = 2 ** (bits - 1) - 1
        counts = column.cast(pa.int32() if bits == 32 else pa.int64())
        if pc.any(pc.is_in(counts, value_set=pa.array([edge, -edge], counts.type))).as_py():
            raise databases.infinite_dates(address, name)


def _storable(data: pa.Table) -> pa.Table:
    """The table without what DuckDB would cut off or refuse."""
    import pyarrow as pa

    for place, field in enumerate(data.schema):
        kind = field.type
        try:
            if pa.types.is_decimal256(kind):
                data = data.set_column(place, field.name, data.column(place).cast(pa.decimal128(38, kind.scale)))
            elif pa.types.is_timestamp(kind) and kind.tz and kind.unit == "ns":
                data = data.set_column(place, field.name, data.column(place).cast(pa.timestamp("us", kind.tz)))
        except (pa.ArrowInvalid, ValueError):
            what = "more than 38 digits" if pa.types.is_decimal(kind) else "times finer than a microsecond"
            raise FormatError(f"column {field.name}: DuckDB cannot hold {what}") from None
    return data


def _refuse_protected(address: Address) -> None:
    if not os.access(address.file, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise FileError(f"{address.shown}: is write-protected; give another name or allow writing")


@contextmanager
def _said_of(address: Address, *, deed: str) -> Iterator[None]:
    """Turn DuckDB's refusal into one sentence, without anything of the data."""
    library = _library(address)
    try:
        with databases.said_of(address, deed=deed, refusals=library.Error, told=_told):
            yield
    except RuntimeError as error:
        if str(error) == _INTERRUPTED:
            raise KeyboardInterrupt from error
        raise


def _reaches_out(address: Address, text: str) -> FileError:
    """The error for a view that reads more than the tables of its own database, in DuckDB's words."""
    reason = text.partition("Error: ")[2] or text
    return FileError(
        f"{address.shown}: the view {address.table} reads something outside the tables of its database, which is not "
        f"opened ({reason[:1].lower()}{reason[1:]}); if you trust the view, export it to a table first, in DuckDB: "
        "CREATE TABLE name AS FROM view"
    )


def _told(address: Address, error: Exception, deed: str) -> FileError:
    text, kind = str(error).partition("\n")[0], type(error).__name__
    if "not a valid DuckDB database" in text:
        return _no_database(address)
    if "lock on file" in text:
        return FileError(f"{address.shown}: is locked by another program; close it there first")
    if "different configuration" in text:
        return FileError(f"{address.shown}: is open elsewhere in this program; close it there first")
    if "disabled by configuration" in text or (deed == "read" and kind in ("BinderException", "CatalogException")):
        return _reaches_out(address, text)
    if "read-only" in text:
        return FileError(f"{address.shown}: is write-protected; give another name or allow writing")
    if unwritten := _NOT_WRITTEN.search(text):  # a full disk, told of the file itself or of the commit
        return FileError(f"{address.shown}: cannot be {deed}: {unwritten[1][:1].lower()}{unwritten[1][1:]}")
    if kind == "PermissionException" and "disabled by configuration" in text:
        return FileError(
            f"{address.shown}: cannot be {deed}: it is a view that reads other files; read those, or make a table of it"
        )
    if kind in ("IOException", "CatalogException", "DependencyException", "PermissionException"):
        reason = text.partition("Error: ")[2] or text
        return FileError(f"{address.shown}: cannot be {deed}: {reason[:1].lower()}{reason[1:]}")
    if kind == "OutOfMemoryException":
        return FileError(f"{address.shown}: cannot be {deed}: there is not enough memory or disk")
    return FileError(f"{address.shown}: cannot be {deed}: DuckDB refused ({kind})")
