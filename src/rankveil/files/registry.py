"""Which module reads and writes which ending, found by listing this folder.

A format is one module with `ENDINGS`, `load` and, when it can write, `save`. It is imported to be found,
so it imports its heavy libraries inside those two functions. A database is a format whose endings are schemes
(`sqlite://`); it has `begin` instead of `save`, since a transaction is no file.
"""

from __future__ import annotations

import os
import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from rankveil.errors import FileError, FormatError

if TYPE_CHECKING:
    import pyarrow as pa

    from rankveil.files.atomic import Participant
    from rankveil.files.dialect import Dialect, Loaded

FOLDER_ENDING = ".parquet"
"""The format of a folder whose name has no known ending."""

WORKBOOK_ENDING = ".xlsx"
"""The format of which one sheet can be named."""


class Format(Protocol):
    """What a format's module offers; `save` is missing from one that only reads."""

    ENDINGS: tuple[str, ...]

    def load(self, path: str, *, separator: str | None, decimal: str | None, encoding: str | None) -> Loaded:
        """The table in the file at `path`."""

    def save(self, data: pa.Table, handle: BinaryIO, *, ending: str, dialect: Dialect | None) -> None:
        """The table written to an open file, whose `name` is its path."""


class Database(Protocol):
    """What a database's module offers; a path is an address with its table."""

    ENDINGS: tuple[str, ...]

    def load(self, path: str, *, separator: str | None, decimal: str | None, encoding: str | None) -> Loaded:
        """The table."""

    def begin(self, data: pa.Table, path: str) -> Participant:
        """A replacement of the table, to be written together with files."""

    def check_writable(self, path: str) -> None:
        """Fail when the table could not be replaced."""

    def landed(self, path: str, state: str) -> bool | None:
        """Whether a transaction was committed of which this was the state; None when that cannot be told."""

    def same_table(self, a: str, b: str) -> bool:
        """Whether two addresses lead to the same table."""


@cache
def formats() -> dict[str, Format]:
    """Every ending with the module that knows it.

    >>> {".csv", ".feather", ".parquet"} <= set(formats())
    True
    """
    package = import_module(__package__ or "rankveil.files")
    found: dict[str, Format] = {}
    for entry in pkgutil.iter_modules(package.__path__):
        module = import_module(f"{package.__name__}.{entry.name}")
        for ending in getattr(module, "ENDINGS", ()):
            found[ending] = cast(Format, module)
    return found


def ending_of(path: str) -> str:
    """The ending that decides the format: `scheme://`, the suffix in small letters, or empty.

    >>> ending_of("survey.2024.CSV"), ending_of("sqlite:///db?table=t"), ending_of("survey")
    ('.csv', 'sqlite://', '')
    """
    scheme, mark, _ = path.partition("://")
    if mark and scheme.replace("+", "").isalnum():
        return scheme.lower() + mark
    return os.path.splitext(path.rstrip("/" + os.sep))[1].lower()


def database(path: str) -> Database | None:
    """The database that an address leads to, or None for a file."""
    format = formats().get(ending_of(path))
    return cast(Database, format) if hasattr(format, "begin") else None


def sheet_of(path: str) -> tuple[str, str | None]:
    """The workbook, and the sheet in it that is named after a `#`; a file may have such a name itself.

    >>> sheet_of("survey.xlsx#May 2024"), sheet_of("survey#2.csv")
    (('survey.xlsx', 'May 2024'), ('survey#2.csv', None))
    """
    workbook, mark, sheet = path.partition("#")
    while mark and ending_of(workbook) != WORKBOOK_ENDING:
        more, mark, sheet = sheet.partition("#")
        workbook += "#" + more
    return (workbook, sheet) if mark and sheet and not os.path.exists(path) else (path, None)


def reader(path: str) -> Format:
    """The format that reads `path`; a folder without a known ending is one of Parquet files."""
    ending = ending_of(sheet_of(path)[0])
    if ending not in formats() and os.path.isdir(path):
        ending = FOLDER_ENDING
    elif ending != FOLDER_ENDING and os.path.isdir(path):
        raise FileError(f"{path}: is a folder; give the name of a file")
    return _known(path, ending, list(formats()), deed="read")


def writer(path: str) -> Format:
    """The format that writes `path`."""
    able = [ending for ending, format in formats().items() if hasattr(format, "save") or hasattr(format, "begin")]
    return _known(path, ending_of(path), able, deed="written")


def _known(path: str, ending: str, able: list[str], *, deed: str) -> Format:
    if ending not in able:
        if not path:
            raise FormatError("the name of a file is empty")
        # A database address may hold a password, so only its scheme is repeated.
        name = ending if ending.endswith("://") else path
        what = f"the format {ending} cannot be {deed}" if ending else "a name without ending says no format"
        raise FormatError(f"{name}: {what}; use one of {', '.join(sorted(able))}")
    return formats()[ending]
