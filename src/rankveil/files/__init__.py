"""Tables in and out of files: one small module per format, pyarrow in between.

Text files (CSV) are read as text, each cell as it was written; Parquet and Arrow files keep their types.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from typing import TYPE_CHECKING, BinaryIO

from rankveil.errors import FileError, FormatError, listing
from rankveil.files import registry
from rankveil.files.atomic import Staged, mode_under_umask, said_of
from rankveil.files.dialect import Dialect, Loaded

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

__all__ = ["Dialect", "Loaded", "Staged", "check_writable", "load", "same_file", "save", "table_writer"]

PathLike = str | os.PathLike[str]


def load(
    path: PathLike, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None
) -> Loaded:
    """Read a table; what is not given of a text file's separator, decimal mark and encoding is detected.

    The three options say nothing about a Parquet or Arrow file and are not used there.
    """
    name = os.fspath(path)
    format = registry.reader(name)
    try:
        with said_of(name, deed="read"):
            loaded = format.load(name, separator=separator, decimal=decimal, encoding=encoding)
    except FileError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise FileError(f"{name}: there is no such file") from error
        raise
    twice = [column for column, count in Counter(loaded.data.column_names).items() if count > 1]
    if twice:
        raise FormatError(f"{name}: several columns are named {listing(twice)}; give each its own name")
    return loaded


def table_writer(data: pa.Table, path: PathLike, *, dialect: Dialect | None = None) -> Callable[[BinaryIO], None]:
    """What `Staged.add` needs to write a table in the format of `path`'s ending."""
    name = os.fspath(path)
    format = registry.writer(name)

    def write(handle: BinaryIO) -> None:
        try:
            format.save(data, handle, ending=registry.ending_of(name), dialect=dialect)
        except FormatError as error:
            raise FormatError(f"{name}: {error}") from error

    return write


def save(data: pa.Table, path: PathLike, *, dialect: Dialect | None = None) -> None:
    """Write a table whole or not at all; an existing file is replaced."""
    check_writable(path)
    with Staged() as staged:
        staged.add(path, table_writer(data, path, dialect=dialect))


def check_writable(path: PathLike, *, table: bool = True) -> None:
    """Fail now, before any work, when `path` could not be written; `table=False` allows any ending."""
    name = os.fspath(path)
    if table:
        registry.writer(name)
    target = os.path.realpath(name)
    folder = os.path.dirname(target)
    with said_of(name):
        if not os.path.isdir(folder):
            raise FileError(f"{name}: there is no folder {os.path.dirname(name) or folder}; make it first")
        if os.path.isdir(target):
            raise FileError(f"{name}: is a folder; give the name of a file")
        if os.path.exists(target):
            if not stat.S_ISREG(os.stat(target).st_mode):
                raise FileError(f"{name}: is not an ordinary file; give another name")
            if not os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
                raise FileError(f"{name}: is write-protected; give another name or allow writing")
        mode_under_umask(folder, 0o600)


def same_file(a: PathLike, b: PathLike) -> bool:
    """Whether two paths lead to the same data, through links or as a folder and a Parquet file in it.

    >>> same_file("data/../survey.csv", "survey.csv")
    True
    """
    first, second = os.path.realpath(a), os.path.realpath(b)
    if first == second:
        return True
    for folder, file in ((first, second), (second, first)):
        inside = os.path.dirname(file) == folder and file.lower().endswith(registry.FOLDER_ENDING)
        if inside and os.path.isdir(folder):
            return True
    try:
        return os.path.samefile(first, second)
    except OSError:
        return False
