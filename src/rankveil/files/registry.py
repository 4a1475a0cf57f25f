"""Which module reads and writes which ending, found by listing this folder.

A format is one module with `ENDINGS`, `load` and, when it can write, `save`. It is imported to be found,
so it imports its heavy libraries inside those two functions.
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

    from rankveil.files.dialect import Dialect, Loaded

FOLDER_ENDING = ".parquet"
"""The format of a folder whose name has no known ending."""


class Format(Protocol):
    """What a format's module offers; `save` is missing from one that only reads."""

    ENDINGS: tuple[str, ...]

    def load(self, path: str, *, separator: str | None, decimal: str | None, encoding: str | None) -> Loaded:
        """The table in the file at `path`."""

    def save(self, data: pa.Table, handle: BinaryIO, *, ending: str, dialect: Dialect | None) -> None:
        """The table written to an open file, whose `name` is its path."""


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


def reader(path: str) -> Format:
    """The format that reads `path`; a folder without a known ending is one of Parquet files."""
    ending = ending_of(path)
    if ending not in formats() and os.path.isdir(path):
        ending = FOLDER_ENDING
    elif ending != FOLDER_ENDING and os.path.isdir(path):
        raise FileError(f"{path}: is a folder; give the name of a file")
    return _known(path, ending, list(formats()), deed="read")


def writer(path: str) -> Format:
    """The format that writes `path`."""
    able = [ending for ending, format in formats().items() if hasattr(format, "save")]
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
