"""Tables of databases: how they are addressed, and what reading and writing them have in common.

An address is `scheme://where?table=name`, the name alone or `schema.name`; a part with a dot or a double quote
inside stands in double quotes, its own doubled, and what a URL cannot hold is written with percent signs, as
everywhere.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote, unquote

from rankveil.errors import FileError, FormatError, RankveilError, listing, suggestion

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE = 1 << 16

SERVERS = ("postgresql", "postgres")
FILES = ("duckdb", "sqlite")

_EXAMPLES = {
    "postgresql": "postgresql://user@host:5432/database?table=name",
    "duckdb": "duckdb:///file.db?table=name",
    "sqlite": "sqlite:///file.db?table=name",
}
_PART = r'"(?:[^"]|"")+"|[^".]+'
_NAME = re.compile(rf"(?:({_PART})\.)?({_PART})")
_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[^\[\]:,@/?#]*)(?::\d*)?"
_SERVER = re.compile(
    r"(?:(?P<user>[^:@/?#]*)(?P<password>:[^@/?#]*)?@)?"
    rf"(?P<hosts>{_HOST}(?:,{_HOST})*)(?:/(?P<database>[^@/?#]*))?(?:\?(?P<query>[^@#]*))?"
)
_FILE = re.compile(r"/(?P<file>[^?#]+)(?:\?(?P<query>[^#]*))?")
_HARMLESS = ("user", "host", "port", "dbname", "service", "sslmode", "table")
"""Settings in a server's address that are shown; any other might hold something secret."""


@dataclass(frozen=True)
class Address:
    """Where a table is: in which file or on which server, and under which name."""

    scheme: str
    shown: str
    """The address without its password, for people."""
    name: str
    schema: str | None = None
    file: str = ""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What a server needs for a connection, in the words of its own library."""

    @property
    def table(self) -> str:
        """The table as it was named, without quotes."""
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


class FileReplacement(ABC):
    """A table of a database file, written anew inside a transaction that nobody sees before its end."""

    BESIDE: ClassVar[tuple[str, ...]]
    """What the names of files that the database keeps beside its own end with."""

    def __init__(self, data: pa.Table, address: Address) -> None:
        self.committed = False
        self.notes: tuple[str, ...] = ()
        self.told_as = address.shown
        self.question: Mapping[str, str] = {}
        self._data = plain(data)
        self._address = address
        self._connection: Any = None
        self._fresh = False

    @abstractmethod
    def _connect(self) -> Any:
        """A connection that can write."""

    @abstractmethod
    def _fill(self) -> None:
        """Write all rows in a transaction, and leave that open."""

    @abstractmethod
    def _state(self) -> str:
        """Something of the database, as this connection sees it, that the transaction changes."""

    @abstractmethod
    def _said(self) -> AbstractContextManager[None]:
        """Turn the database's refusal to write into one sentence."""

    def prepare(self) -> None:
        """Write all rows."""
        with self._said():
            checked_names(self._data.column_names, folds=True)
            self._fresh = not os.path.exists(self._address.file)  # from before: Ctrl-C strikes as soon as it is made
            self._connection = self._connect()
            self._fill()
            self.question = {"table": whole_address(self._address.shown), "state": self._state()}

    def commit(self) -> None:
        """Make it last."""
        try:
            with self._said():
                self._connection.execute("COMMIT")
            self.committed = True
        except FileError:  # on a full disk the database has rolled back by itself
            raise
        except BaseException:  # Ctrl-C, before the commit or after it
            self.committed = not self._rolled_back()
            raise
        self._connection.close()

    def abandon(self) -> None:
        """Leave everything as it was."""
        if self._connection is not None:
            self._rolled_back()
            self._connection.close()
        if self._fresh:
            file = os.path.realpath(self._address.file)  # a link to it stays
            for name in (file, *(f"{file}{ending}" for ending in self.BESIDE)):
                with suppress(OSError):
                    os.unlink(name)

    def _rolled_back(self) -> bool:
        """End the transaction without effect; False when there was none any more."""
        try:
            self._connection.execute("ROLLBACK")
        except Exception:  # each database has its own error for this
            return False
        return True


@contextmanager
def said_of(
    address: Address,
    *,
    deed: str,
    refusals: type[Exception] | tuple[type[Exception], ...],
    told: Callable[[Address, Any, str], FileError],
) -> Iterator[None]:
    """Turn a database's refusal into one sentence about the table, without anything of the data."""
    try:
        yield
    except RankveilError as error:
        if str(error).startswith(address.shown):
            raise
        raise type(error)(f"{address.shown}: {error}") from error
    except refusals as error:
        raise told(address, error, deed) from error


def is_address(path: str) -> bool:
    """Whether a path is a URL, that is no file.

    >>> is_address("sqlite:///a.db?table=t"), is_address("a.csv")
    (True, False)
    """
    scheme, mark, _ = path.partition("://")
    return bool(mark) and scheme.replace("+", "").isalnum()


def shown(path: str | os.PathLike[str]) -> str:
    """An address without what nobody else may see; the name of a file as it is.

    It is put together from the parts that are known to be harmless, so an address that is not understood keeps
    only its scheme.

    >>> shown("postgresql://me:word@host/db?password=word&table=t"), shown("mysql://me:word@host/db"), shown("a.csv")
    ('postgresql://me:***@host/db?table=t', 'mysql://...', 'a.csv')
    """
    text = os.fspath(path)
    if not is_address(text):
        return text
    scheme, parts = _parts(text)
    if parts is None:
        return f"{scheme}://..."
    told = [word for word in (parts.get("query") or "").split("&") if word.partition("=")[0] in _HARMLESS]
    query = f"?{'&'.join(told)}" if told else ""
    if scheme in FILES:
        return f"{scheme}:///{parts['file']}{query}"
    user = "" if parts["user"] is None else f"{parts['user']}{':***' if parts['password'] else ''}@"
    database = "" if parts["database"] is None else f"/{parts['database']}"
    return f"{scheme}://{user}{parts['hosts']}{database}{query}"


def whole_address(path: str) -> str:
    """The address of a table without its password and with the whole path of its file: the same from every folder."""
    address = parse(path)
    if not address.file:
        return address.shown
    return f"{address.scheme}:///{quote(os.path.realpath(address.file))}?{address.shown.partition('?')[2]}"


def parse(url: str) -> Address:
    """The parts of an address.

    >>> parse('duckdb:///survey.db?table=main."a.b"')
    Address(scheme='duckdb', shown='duckdb:///survey.db?table=main."a.b"', name='a.b', schema='main', file='survey.db')
    """
    scheme, parts = _parts(url)
    told = shown(url)
    if scheme in SERVERS:
        scheme = SERVERS[0]
    example = _EXAMPLES[scheme]
    if parts is None:
        more = "; inside a name or a password write @ / ? # as %40 %2F %3F %23" if scheme in SERVERS else ""
        raise FormatError(f"{told}: is not an address of a table; write it like {example}{more}")
    settings = _settings(parts.get("query") or "", told)
    if "query" in settings:
        raise FormatError(f"{told}: a query is not read; make a view of it and give its name with ?table=")
    table = settings.pop("table", "")
    if not table:
        raise FormatError(f"{told}: names no table; write it like {example}")
    found = _NAME.fullmatch(table)
    if found is None or "\0" in table:
        raise FormatError(
            f"{told}: table= is a name or schema.name; put a name with a dot or a quote inside in quotes, its own "
            'doubled: "a.b", "a""b"'
        )
    schema, name = (None if part is None else _unquoted(part) for part in found.groups())
    if scheme in FILES:
        if settings:
            raise FormatError(f"{told}: only table= can be given after the question mark")
        return Address(scheme, told, name or "", schema, file=unquote(parts["file"] or ""))
    return Address(scheme, told, name or "", schema, settings=_connection(parts) | settings)


def companion(path: str) -> str:
    """What the names of the files beside a release begin with; for a table of a server they go to this folder.

    >>> companion("out.csv"), companion("sqlite:///a/b.db?table=t"), companion("postgresql://host/db?table=s.t")
    ('out.csv', 'a/b.db.t', 's.t')
    """
    if path.partition("://")[0].lower() not in (*SERVERS, *FILES):
        return path
    address = parse(path)
    table = re.sub(r"[^\w.-]+", "_", address.table).lstrip(".") or "table"
    return f"{address.file}.{table}" if address.file else table


def in_one_file(a: Address, b: Address) -> bool:
    """Whether two tables are in the same database file, also through links."""
    try:
        return os.path.samefile(a.file, b.file)
    except OSError:  # one of them is not there yet
        return os.path.realpath(a.file) == os.path.realpath(b.file)


def unknown_table(address: Address, known: Iterable[str]) -> FileError:
    """The error for a table that is not there, with the nearest name."""
    names = list(known)
    return FileError(f"{address.shown}: there is no table {address.table}{suggestion(address.table, names)}")


def no_order(address: Address) -> str:
    """What a person must know before matching original and masked by row."""
    return (
        f"{address.shown}: the rows of a database have no order of their own and were read as they lie there; match "
        "original and masked by a key with --key, unless neither was changed since the masking"
    )


def as_text_note(address: Address, names: Iterable[str]) -> list[str]:
    """A note on columns whose type nothing else has, when there are some."""
    told = list(names)
    return [f"{address.shown}: read as text: {listing(told, most=10)}"] if told else []


def infinite_dates(address: Address, name: str) -> FormatError:
    """The error for dates that are no numbers."""
    return FormatError(
        f"{address.shown}: column {name}: holds dates that are infinite, before the year 1 or after 9999; "
        "make them missing (NULL), or leave the column out in a view"
    )


def checked_names(names: Iterable[str], *, folds: bool) -> None:
    """Every column has a name, and no two are the same to a database that does not tell `AGE` from `age`."""
    seen: dict[str, str] = {}
    for name in names:
        if not name or "\0" in name:
            raise FormatError(f"column {len(seen) + 1} has no name that a database takes; give it another")
        key = folded(name) if folds else name
        if key in seen:
            raise FormatError(
                f"columns {seen[key]} and {name} have the same name here, where capitals do not count; rename one"
            )
        seen[key] = name


def folded(name: str) -> str:
    """A name for which capitals do not count, as DuckDB and SQLite see it: only those of ASCII.

    >>> folded("ÄB")
    'Äb'
    """
    return "".join(sign.lower() if sign.isascii() else sign for sign in name)


def name_parts(text: str) -> list[str]:
    """The parts of a name in SQL, without their quotes.

    >>> name_parts('main."a.b"')
    ['main', 'a.b']
    """
    return [_unquoted(part) for part in re.findall(_PART, text)]


def quoted(*names: str | None) -> str:
    """A name in the SQL of DuckDB and SQLite, with its schema when there is one.

    >>> quoted(None, 'a"b'), quoted("main", "t")
    ('"a""b"', '"main"."t"')
    """
    return ".".join('"' + name.replace('"', '""') + '"' for name in names if name is not None)


def plain(data: pa.Table) -> pa.Table:
    """The table with plain types: words for categories, stored values for extensions, text for nothing at all."""
    import pyarrow as pa

    for place, given in enumerate(data.schema):
        column, kind = data.column(place), given.type
        if isinstance(kind, pa.BaseExtensionType):
            chunks = [chunk.storage for chunk in column.chunks]
            column = pa.chunked_array(chunks, kind.storage_type)
            kind = kind.storage_type
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
            kind = kind.value_type
        wanted = _plain_type(kind)
        if wanted != given.type:
            data = data.set_column(place, given.name, column if wanted == kind else column.cast(wanted))
    return data


def as_numbers(texts: pa.ChunkedArray, *, digits: tuple[int, int] | None = None) -> tuple[pa.ChunkedArray, str]:
    """Decimal numbers written as text, as a decimal type that holds them all, and a note when there is none.

    `digits` are those in all and after the point, where they were declared.

    >>> import pyarrow as pa
    >>> as_numbers(pa.chunked_array([["1.50", "-20", None]]))[0].type
    Decimal128Type(decimal128(38, 2))
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    usual = pc.match_substring_regex(texts, r"^-?[0-9]+(\.[0-9]+)?$")
    if not pc.all(usual, min_count=0).as_py():
        return texts.cast(pa.float64()), "holds NaN or infinity, so it was read as floating-point numbers"
    if digits is None:
        # as wide as the type goes, so that masked values have room
        whole, scale = (_most(pc.replace_substring_regex(texts, part, "")) for part in (r"^-|\..*", r"^[^.]*\.?"))
        digits = (38 if whole + scale <= 38 else 76 if whole + scale <= 76 else whole + scale, scale)
    if digits[0] > 76:
        return texts, "has numbers of more than 76 digits, so it was read as text"
    return texts.cast(pa.decimal128(*digits) if digits[0] <= 38 else pa.decimal256(*digits)), ""


def _parts(url: str) -> tuple[str, dict[str, str | None] | None]:
    """The scheme, and the parts as they are written; None when the address is not understood."""
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    pattern = _SERVER if scheme in SERVERS else _FILE if scheme in FILES else None
    found = pattern.fullmatch(rest) if pattern else None
    return scheme, None if found is None else found.groupdict()


def _settings(query: str, told: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    for word in filter(None, query.split("&")):
        key, sign, value = word.partition("=")
        if key in settings or not sign:
            raise FormatError(f"{told}: every setting after the question mark is given once, as name=value")
        settings[key] = unquote(value)
    return settings


def _connection(parts: Mapping[str, str | None]) -> dict[str, str]:
    """User, password, hosts, ports and database of a server, those that were given."""
    hosts, ports = [], []
    for each in (parts["hosts"] or "").split(","):
        host, _, port = each.rpartition(":") if re.search(r":\d*$", each) and not each.endswith("]") else (each, "", "")
        hosts.append(unquote(host.strip("[]")))
        ports.append(port)
    given = {
        "user": unquote(parts["user"] or ""),
        "password": unquote((parts["password"] or "")[1:]),
        "host": ",".join(hosts),
        "port": ",".join(ports) if any(ports) else "",
        "dbname": unquote(parts["database"] or ""),
    }
    return {key: value for key, value in given.items() if value}


def _most(texts: pa.ChunkedArray) -> int:
    """The length of the longest text."""
    import pyarrow.compute as pc

    return int(pc.max(pc.utf8_length(texts)).as_py() or 0)


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


def _plain_type(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_null(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return pa.float32() if pa.types.is_float16(kind) else kind
