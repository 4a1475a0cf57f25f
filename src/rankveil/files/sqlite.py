"""SQLite: a table of a database file, read in the order of its rowid and replaced in one transaction.

SQLite holds whole numbers, floating ones, text and bytes. Dates, times, truth values and decimals are those of a
column that was declared as such, and text or numbers where a cell does not fit.

The database is data, not a program: its views, triggers and expressions may not load, attach or change anything, and
virtual tables, whose rows come from a module of SQLite, are not read.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import AbstractContextManager, closing, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rankveil.errors import FileError, FormatError
from rankveil.files import databases, limits
from rankveil.files.databases import Address, quoted
from rankveil.files.dialect import Loaded

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = ("sqlite://",)

WAIT = 5.0
"""Seconds to wait for another program that holds the database."""

JOURNAL = "-journal"
"""Behind the name of a database: what SQLite needs to undo a change that was not ended."""

_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""What a journal ends with that names a file which SQLite deletes when it has undone the change."""

_FETCHED = 2048
"""Rows taken at once; more of them take longer each."""

EXACT_DIGITS = 15
"""A floating-point number keeps so many decimal digits, so decimals with more are stored as text."""

_CAREFUL = (
    "PRAGMA trusted_schema = OFF",  # functions and virtual tables with effects are not for views and expressions
    "PRAGMA cell_size_check = ON",
    "PRAGMA mmap_size = 0",
    "PRAGMA secure_delete = ON",  # rows of a table that a release takes the place of do not stay in free pages
)
"""What SQLite recommends for database files of others."""

_WAL, _WAL_PLACE = b"\2\2", 18
"""What a database file has near its beginning that writes into a log first, and where."""

_EXPORT = "if you trust it, export it to a table first, in sqlite3: CREATE TABLE name AS SELECT * FROM view"

_UNENDED = (
    "a program was stopped in the middle of changing it; writing to it undoes that or finishes it, with rankveil or "
    "with the program that was stopped (reading changes nothing)"
)

_READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
_PRAGMAS = ("table_info", "schema_version")
_BARRED = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_CREATE_VTABLE, sqlite3.SQLITE_DROP_VTABLE)
_BARRED_FUNCTIONS = ("load_extension", "fts3_tokenizer")

_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC|DECIMAL_TEXT)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")


def load(path: str, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None) -> Loaded:
    """The table or view, batch by batch, in the order of its rowid where it has one."""
    import pyarrow as pa

    address = _address(path)
    before = _last_change(address)
    with _said_of(address, deed="read"), closing(_connect(address, write=False)) as connection:
        name = _find(connection, address)
        _refuse_virtual(address, _tables(connection)[name], deed="read")
        declared = {column: kind for _, column, kind, *_ in connection.execute(f"PRAGMA table_info({quoted(name)})")}
        rowid = _rowid(connection, name, declared)
        order = f" ORDER BY {rowid}" if rowid else ""
        rows = connection.execute(f"SELECT * FROM {quoted(name)}{order}")
        names = [each[0] for each in rows.description]
        chunks: list[list[pa.Array]] = [[] for _ in names]
        intake = limits.Intake(address.shown)
        while batch := rows.fetchmany(_FETCHED):
            for column, made, values in zip(names, chunks, zip(*batch, strict=True), strict=True):
                made.append(_array(column, values))
                intake.add(made[-1].nbytes)
    if before != _last_change(address):
        raise FileError(f"{address.shown}: was changed by another program while it was read; try again")
    notes = [f"{address.shown}: read in the order of its {rowid}" if rowid else databases.no_order(address)]
    columns = []
    for column, made in zip(names, chunks, strict=True):
        array, note = _column(column, made, declared.get(column, "").upper())
        columns.append(array)
        notes += [f"{address.shown}: column {column} {note}"] if note else []
    return Loaded(pa.table(columns, names=names), notes=tuple(notes))


def begin(data: pa.Table, path: str) -> Replacement:
    """A replacement of the table, to be written together with files."""
    return Replacement(data, _address(path))


def check_writable(path: str) -> None:
    """Fail when the table could not be replaced: no folder, no database, write-protected, locked, a view."""
    address = _address(path)
    if not os.path.exists(address.file):
        return
    with _said_of(address, deed="written"), closing(_connect(address, write=True)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        _replaced(connection, address)
        connection.execute("ROLLBACK")


def same_table(a: str, b: str) -> bool:
    """Whether both lead to one table, by its name or through views."""
    first, second = _address(a), _address(b)
    if not databases.in_one_file(first, second):
        return False
    if not os.path.exists(first.file):
        return databases.folded(first.name) == databases.folded(second.name)
    # one of them is to be written: what a killed program began in the file may be undone
    with _said_of(first, deed="read"), closing(_connect(first, write=True)) as connection:
        return bool(_sources(connection, first) & _sources(connection, second))


def landed(path: str, state: str) -> bool:
    """Whether a transaction was committed that had brought the database, which is to be written, to this state."""
    address = _address(path)
    if not os.path.exists(address.file):
        return False
    with _said_of(address, deed="read"), closing(_connect(address, write=True)) as connection:
        return int(_version(connection)) >= int(state)


class Replacement(databases.FileReplacement):
    """A table written anew inside a transaction that nobody sees before its end."""

    BESIDE = (JOURNAL,)

    def abandon(self) -> None:
        """Leave everything as it was, also on a full disk: there SQLite undoes a change when it next reads."""
        if self._connection is not None:
            self._rolled_back()
            with suppress(sqlite3.Error):
                _tables(self._connection)
        super().abandon()

    def _connect(self) -> sqlite3.Connection:
        return _connect(self._address, write=True)

    def _said(self) -> AbstractContextManager[None]:
        return _said_of(self._address, deed="written")

    def _state(self) -> str:
        return _version(self._connection)

    def _fill(self) -> None:
        connection, table, names = self._connection, quoted(self._address.name), self._data.column_names
        kinds = [_declared_type(field.name, field.type) for field in self._data.schema]
        connection.execute("BEGIN IMMEDIATE")
        found = _replaced(connection, self._address)
        if found is not None:
            more = "SELECT DISTINCT type FROM sqlite_master WHERE tbl_name = ? AND type <> 'table' AND sql IS NOT NULL"
            lost = sorted(f"{kind} definitions" for (kind,) in connection.execute(more, [found]))
            if lost:
                self.notes = (f"{self._address.shown}: was made anew; its {' and '.join(lost)} are gone",)
            connection.execute(f"DROP TABLE {quoted(found)}")
        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in zip(names, kinds, strict=True))
        connection.execute(f"CREATE TABLE {table} ({columns})")
        insert = f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})"
        for first in range(0, self._data.num_rows, databases.ROWS_AT_ONCE):
            part = self._data.slice(first, databases.ROWS_AT_ONCE)
            cells = [_cells(name, column) for name, column in zip(names, part.columns, strict=True)]
            connection.executemany(insert, zip(*cells, strict=True))


def _address(path: str) -> Address:
    address = databases.parse(path)
    if address.schema is not None and databases.folded(address.schema) != "main":
        raise FormatError(f'{address.shown}: SQLite has no schemas; a name with a dot inside needs quotes: "a.b"')
    return address


def _connect(address: Address, *, write: bool) -> sqlite3.Connection:
    if not write and not os.path.exists(address.file):
        raise FileError(f"{address.shown}: there is no such file")
    # reading never writes: what a killed program began is undone only by one that writes to the database
    if write:
        _refuse_super_journal(address)
    mode = "rwc" if write and not os.path.exists(address.file) else "rw" if write else "ro"
    # isolation_level None: transactions begin and end where this module says so
    uri = f"file:{quote(os.path.abspath(address.file))}?mode={mode}"
    if not write and _leaves_files(address):
        uri += "&immutable=1"
    made = sqlite3.connect(uri, uri=True, timeout=WAIT, isolation_level=None)
    for setting in _CAREFUL:
        made.execute(setting)
    made.set_authorizer(_allowed_to_write if write else _allowed_to_read)
    return made


def _last_change(address: Address) -> tuple[int, int] | None:
    """What tells whether a database was changed that is read without locks; None for one that is read with them."""
    if not os.path.exists(address.file) or not _leaves_files(address):
        return None
    found = os.stat(address.file)
    return found.st_mtime_ns, found.st_size


def _leaves_files(address: Address) -> bool:
    """Whether SQLite would make files beside a database only to read it: one with a log that nobody uses now."""
    file = os.path.realpath(address.file)
    try:
        with open(file, "rb") as database:
            start = database.read(_WAL_PLACE + len(_WAL))
    except OSError:  # SQLite says why it cannot be opened
        return False
    if start[_WAL_PLACE:] != _WAL or os.path.lexists(f"{file}-shm"):
        return False
    if os.path.lexists(f"{file}-wal") and os.lstat(f"{file}-wal").st_size:
        raise FileError(f"{address.shown}: {_UNENDED}")
    return not os.path.lexists(file + JOURNAL)


def _allowed_to_write(deed: int, first: str | None, second: str | None, *rest: str | None) -> int:
    """What SQLite may do while a table is written, whatever asks for it."""
    barred = deed in _BARRED or (deed == sqlite3.SQLITE_FUNCTION and second in _BARRED_FUNCTIONS)
    return sqlite3.SQLITE_DENY if barred else sqlite3.SQLITE_OK


def _allowed_to_read(deed: int, first: str | None, second: str | None, *rest: str | None) -> int:
    """What SQLite may do while a table is read."""
    if deed in _READING or (deed == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS):
        return sqlite3.SQLITE_OK
    function = deed == sqlite3.SQLITE_FUNCTION and second not in _BARRED_FUNCTIONS
    return sqlite3.SQLITE_OK if function else sqlite3.SQLITE_DENY


def _refuse_super_journal(address: Address) -> None:
    """An error where SQLite, undoing what a killed program began, would delete another file."""
    try:
        with open(os.path.realpath(address.file) + JOURNAL, "rb") as journal:
            journal.seek(-min(len(_SUPER_JOURNAL), journal.seek(0, os.SEEK_END)), os.SEEK_END)
            end = journal.read()
    except OSError:
        return
    if end == _SUPER_JOURNAL:
        raise FileError(
            f"{address.shown}: a program was stopped in the middle of changing it together with other databases; if "
            "you trust the files beside it, open it with sqlite3 once, which undoes that"
        )


def _find(connection: sqlite3.Connection, address: Address) -> str:
    """The table's or view's name as the database has it."""
    found = _tables(connection)
    for name in found:
        if databases.folded(name) == databases.folded(address.name):
            return name
    raise databases.unknown_table(address, found)


def _tables(connection: sqlite3.Connection) -> dict[str, str]:
    """Every table and view of the file, and which it is; a virtual table has no page of its own."""
    kind = "CASE WHEN type = 'table' AND rootpage = 0 THEN 'virtual' ELSE type END"
    wanted = f"SELECT name, {kind} FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%'"
    return dict(connection.execute(wanted + " ESCAPE '\\'"))


def _refuse_virtual(address: Address, kind: str, *, deed: str) -> None:
    if kind == "virtual":
        raise FileError(
            f"{address.shown}: {address.table} is a virtual table, whose rows come from a module of SQLite and not "
            f"from the file, so it is not {deed}; {_EXPORT if deed == 'read' else 'give another name'}"
        )


def _replaced(connection: sqlite3.Connection, address: Address) -> str | None:
    """The table that a new one takes the place of, if there is one."""
    for name, kind in _tables(connection).items():
        if databases.folded(name) == databases.folded(address.name):
            if kind == "view":
                raise FileError(f"{address.shown}: is a view and cannot be written; give the name of a table")
            _refuse_virtual(address, kind, deed="written")
            return name
    if databases.folded(address.name).startswith("sqlite_"):
        raise FormatError(f"{address.shown}: names that begin with sqlite_ belong to SQLite; give another")
    return None


def _version(connection: sqlite3.Connection) -> str:
    """A number that grows whenever a table is dropped or made."""
    return str(connection.execute("PRAGMA schema_version").fetchone()[0])


def _rowid(connection: sqlite3.Connection, table: str, columns: dict[str, str]) -> str | None:
    """A name by which SQLite knows the rowid, or None for a view or a table without one."""
    taken = {databases.folded(name) for name in columns}
    for name in ("rowid", "oid", "_rowid_"):
        if name not in taken and _tables(connection)[table] == "table":
            with suppress(sqlite3.OperationalError):
                connection.execute(f"SELECT {name} FROM {quoted(table)} LIMIT 0")
                return name
    return None


def _sources(connection: sqlite3.Connection, address: Address) -> set[str]:
    """The tables that reading this one reads, as SQLite itself tells."""
    read = {databases.folded(address.name)}

    def note(deed: int, table: str | None, *rest: str | None) -> int:
        if deed == sqlite3.SQLITE_READ and table:
            read.add(databases.folded(table))
        return _allowed_to_read(deed, table, *rest)

    if read <= {databases.folded(name) for name in _tables(connection)}:
        connection.set_authorizer(note)
        try:
            connection.execute(f"SELECT * FROM {quoted(address.name)} LIMIT 0")
        finally:
            connection.set_authorizer(_allowed_to_read)
    return read


def _array(name: str, values: tuple[Any, ...]) -> pa.Array:
    """Cells of one column; those of several types as text."""
    import pyarrow as pa

    kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return pa.nulls(len(values))
    if len(kinds) == 1:
        types = {int: pa.int64(), float: pa.float64(), str: pa.string(), bytes: pa.binary()}
        return pa.array(values, types[kinds.pop()])
    if kinds == {int, float} and all(type(value) is not int or abs(value) <= 2**53 for value in values):
        return pa.array(values, pa.float64())
    if bytes in kinds:
        raise _bytes_among_others(name)
    return pa.array([value if value is None or isinstance(value, str) else repr(value) for value in values])


def _column(name: str, chunks: list[pa.Array], declared: str) -> tuple[pa.ChunkedArray, str]:
    """All cells of a column in one type, and a note when that is not the declared one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = {chunk.type for chunk in chunks} - {pa.null()}
    if not kinds:
        return pa.chunked_array([chunk.cast(_empty_type(declared)) for chunk in chunks], _empty_type(declared)), ""
    if kinds == {pa.int64(), pa.float64()}:
        whole = [chunk for chunk in chunks if chunk.type == pa.int64()]
        exact = all(abs(edge) <= 2**53 for chunk in whole for edge in pc.min_max(chunk).as_py().values() if edge)
        kinds = {pa.float64()} if exact else {pa.string()}
    if len(kinds) > 1 and pa.binary() in kinds:
        raise _bytes_among_others(name)
    kind = kinds.pop() if len(kinds) == 1 else pa.string()
    column = pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind)
    numeric_name = re.search("INT|REAL|FLOA|DOUB|DEC|NUM|BOOL", declared) and "TEXT" not in declared
    mixed = "holds numbers and text, so it was read as text" if kind == pa.string() and numeric_name else ""
    wanted = _arrow_type(declared)
    if wanted is None:
        return column, mixed
    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _typed(column, wanted), ""
    return column, mixed or f"has cells that are no {declared.lower()}, so it was read as {kind}"


def _bytes_among_others(name: str) -> FormatError:
    return FormatError(f"column {name}: holds both bytes and other values; make them all of one type")


def _arrow_type(declared: str) -> pa.DataType | None:
    """The type that a declaration stands for, where SQLite itself has none."""
    import pyarrow as pa

    if found := _DECIMAL.fullmatch(declared):
        digits, scale = int(found[1]), int(found[2] or 0)
        return pa.decimal128(digits, scale) if 0 < digits <= 38 and scale <= digits else None
    if "BOOL" in declared:
        return pa.bool_()
    moment, zoned = pa.timestamp("us"), pa.timestamp("us", "UTC")
    names = {"DATE": pa.date32(), "TIME": pa.time64("us"), "DATETIME": moment, "TIMESTAMP": moment}
    return (names | {"TIMESTAMPTZ": zoned, "TIMESTAMP WITH TIME ZONE": zoned}).get(declared)


def _empty_type(declared: str) -> pa.DataType:
    """The type of a column without any value: the declared one, by SQLite's own rules."""
    import pyarrow as pa

    wanted = _arrow_type(declared)
    if wanted is not None:
        return wanted
    if "INT" in declared:
        return pa.int64()
    if re.search("CHAR|CLOB|TEXT", declared):
        return pa.string()
    if "BLOB" in declared:
        return pa.binary()
    return pa.float64() if re.search("REAL|FLOA|DOUB|DEC|NUM", declared) else pa.string()


def _typed(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """The column in its declared type; fails with Arrow's own error when a cell does not fit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_decimal(wanted):
        made = pa.chunked_array([chunk.cast(pa.string()).cast(wanted) for chunk in column.chunks], wanted)
        if wanted.precision > EXACT_DIGITS and not pa.types.is_string(column.type):
            raise pa.ArrowInvalid("floating-point numbers do not hold so many digits")
        return made
    if pa.types.is_boolean(wanted):
        known = pa.types.is_integer(column.type) and pc.is_in(column, value_set=pa.array([0, 1, None]))
        if not known or not pc.all(known).as_py():
            raise pa.ArrowInvalid("more than true and false")
        return column.cast(wanted)
    if not pa.types.is_string(column.type):
        raise pa.ArrowInvalid("not written as text")
    if pa.types.is_time(wanted):  # Arrow reads times of day only with their day
        day = pc.binary_join_element_wise(pa.scalar("1970-01-01"), column, pa.scalar(" "))
        return day.cast(pa.timestamp("us")).cast(wanted)
    return column.cast(wanted)


def _declared_type(name: str, kind: pa.DataType) -> str:
    """How a column of an Arrow type is declared."""
    import pyarrow as pa

    types = pa.types
    if types.is_decimal(kind):
        stored = "DECIMAL" if kind.precision <= EXACT_DIGITS else "DECIMAL_TEXT"
        return f"{stored}({kind.precision},{kind.scale})"
    if types.is_timestamp(kind):
        return "TIMESTAMPTZ" if kind.tz else "TIMESTAMP"
    for test, declared in (
        (types.is_boolean, "BOOLEAN"),
        (types.is_integer, "INTEGER"),
        (types.is_floating, "REAL"),
        (types.is_date, "DATE"),
        (types.is_time, "TIME"),
    ):
        if test(kind):
            return declared
    if types.is_string(kind) or types.is_large_string(kind):
        return "TEXT"
    if types.is_binary(kind) or types.is_large_binary(kind):
        return "BLOB"
    raise FormatError(f"column {name}: SQLite cannot hold type {kind}; convert it to text or numbers first")


def _cells(name: str, column: pa.ChunkedArray) -> list[Any]:
    """The cells of a column as SQLite stores them."""
    import pyarrow as pa

    kind = column.type
    try:
        if pa.types.is_uint64(kind):
            column = column.cast(pa.int64())
        elif pa.types.is_decimal(kind):
            column = column.cast(pa.string())
            if kind.precision <= EXACT_DIGITS:
                column = column.cast(pa.float64())
        elif pa.types.is_timestamp(kind):
            column = column.cast(pa.timestamp("us", "UTC" if kind.tz else None)).cast(pa.string())
        elif pa.types.is_time(kind):
            column = column.cast(pa.time64("us")).cast(pa.string())
        elif pa.types.is_date(kind):
            column = column.cast(pa.date32()).cast(pa.string())
    except pa.ArrowInvalid:
        what = "whole numbers from 2^63 on" if pa.types.is_integer(kind) else "times finer than a microsecond"
        raise FormatError(f"column {name}: SQLite cannot hold {what}") from None
    cells: list[Any] = column.to_pylist()
    return cells


def _said_of(address: Address, *, deed: str) -> AbstractContextManager[None]:
    """Turn SQLite's refusal into one sentence, without anything of the data."""
    return databases.said_of(
        address, deed=deed, refusals=(sqlite3.Error, OverflowError, UnicodeDecodeError), told=_told
    )


def _told(address: Address, error: sqlite3.Error | OverflowError | UnicodeDecodeError, deed: str) -> FileError:
    if isinstance(error, OverflowError):
        return FormatError(f"{address.shown}: cannot be {deed}: a whole number is beyond 2^63")
    if isinstance(error, UnicodeDecodeError):  # in what the database says of its tables
        return FormatError(f"{address.shown}: is a damaged database")
    name, text = getattr(error, "sqlite_errorname", ""), str(error).partition("\n")[0]
    if name == "SQLITE_AUTH" or text.startswith(("unsafe use of", "no such function", "no such module")):
        return FileError(
            f"{address.shown}: {address.table} asks for more than the cells of the database, which is not done "
            f"({text}); {_EXPORT}"
        )
    if name == "SQLITE_NOTADB":
        return FormatError(f"{address.shown}: is not an SQLite database, or is encrypted")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return FileError(f"{address.shown}: is locked by another program; try again when that is done")
    if name == "SQLITE_READONLY_ROLLBACK":
        return FileError(f"{address.shown}: {_UNENDED}")
    if name.startswith("SQLITE_READONLY"):
        return FileError(f"{address.shown}: is write-protected; give another name or allow writing")
    if name.startswith("SQLITE_CORRUPT"):
        return FormatError(f"{address.shown}: is a damaged database")
    if "decode to UTF-8" in str(error):  # the text of this error holds the cell
        return FormatError(f"{address.shown}: cannot be {deed}: a text is not UTF-8")
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_ERROR", "SQLITE_TOOBIG")):
        return FileError(f"{address.shown}: cannot be {deed}: {text}")
    return FileError(f"{address.shown}: cannot be {deed}: SQLite refused ({name or type(error).__name__})")
