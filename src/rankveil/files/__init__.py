"""Tables in and out of files and databases: one small module per format, pyarrow in between.

Text files (CSV) are read as text, each cell as it was written; Parquet and Arrow files keep their types. Wherever a
path is taken, it can be the address of a table: `postgresql://`, `duckdb://` or `sqlite://` with `?table=name`.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections import Counter
from typing import TYPE_CHECKING, BinaryIO

from rankveil.errors import FileError, FormatError, listing
from rankveil.files import atomic_journal, registry
from rankveil.files.atomic import Staged, mode_under_umask, refuse_link, said_of
from rankveil.files.databases import companion, is_address, parse, shown, whole_address
from rankveil.files.dialect import Dialect, Loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

__all__ = [
    "Dialect",
    "Loaded",
    "Staged",
    "add_table",
    "as_held",
    "bring_back",
    "check_finished",
    "check_names",
    "check_writable",
    "companion",
    "load",
    "same_file",
    "save",
    "settle",
    "shown",
    "table_writer",
]

PathLike = str | os.PathLike[str]

_DISK = re.compile(r"\A(?:file|local)://", re.IGNORECASE)
"""What an address of a file on a disk begins with."""


def load(
    path: PathLike, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None
) -> Loaded:
    """Read a table; what is not given of a text file's separator, decimal mark and encoding is detected.

    The three options say nothing about a Parquet or Arrow file and are not used there.
    """
    name = os.fspath(path)
    format = registry.reader(name)
    check_finished(name)
    told = shown(name)
    try:
        with said_of(told, deed="read"):
            loaded = format.load(name, separator=separator, decimal=decimal, encoding=encoding)
    except FileError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise FileError(f"{told}: there is no such file") from error
        raise
    check_names(loaded.data.column_names, told)
    return loaded


def check_names(names: Sequence[str], told: str) -> None:
    """Each column of a file has a name of its own."""
    twice = [column for column, count in Counter(names).items() if count > 1]
    if twice:
        raise FormatError(f"{told}: several columns are named {listing(twice)}; give each its own name")


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


def add_table(
    staged: Staged, data: pa.Table, path: PathLike, *, dialect: Dialect | None = None, mode: int = 0o644
) -> tuple[str, ...]:
    """Write a table as one of several outputs, to a file or a database; what a person should know of it comes back."""
    name = os.fspath(path)
    database = registry.database(name)
    if database is None:
        staged.add(path, table_writer(data, path, dialect=dialect), mode=mode)
        return ()
    replacement = database.begin(data, name)
    staged.join(replacement)
    return replacement.notes


def as_held(data: pa.Table, path: PathLike) -> pa.Table:
    """The table with the cells that a file of `path`'s ending has: Stata and SPSS keep categories as codes."""
    from rankveil.files import spss, stata, statistical

    if registry.ending_of(os.fspath(path)) not in (*stata.ENDINGS, *spss.ENDINGS):
        return data
    return statistical.coded(data)


def save(data: pa.Table, path: PathLike, *, dialect: Dialect | None = None) -> tuple[str, ...]:
    """Write a table whole or not at all; an existing file or table is replaced, with notes on what went with it."""
    check_writable(path)
    with Staged() as staged:
        return add_table(staged, data, path, dialect=dialect)


def check_writable(path: PathLike, *, table: bool = True) -> tuple[str, ...]:
    """Fail now, before any work, when `path` could not be written; `table=False` allows any ending.

    What killed programs of this user left in its folder is finished or undone; notes on what was left alone come back.
    """
    name = os.fspath(path)
    notes = settle(name)
    if table:
        registry.writer(name)
    database = registry.database(name)
    if database is None:
        _check_file(name, name)
        return notes
    told = shown(name)
    if not table:
        raise FileError(f"{told}: is a table of a database; give the name of a file")
    address = parse(name)
    if address.file:
        _check_file(address.file, told)
    database.check_writable(name)
    return notes


def settle(path: PathLike) -> tuple[str, ...]:
    """Bring files to an end, new or old, that a killed program was writing in the folder of `path`, a file to write.

    A table that was written with them is asked for only when `path` is that table: no file names a server or a
    database that is opened. Notes on what was left alone come back.
    """
    name = os.fspath(path)
    folder = _folder_of(name)

    def landed(question: atomic_journal.Question) -> bool | None:
        if "folder" in question:
            return _folder_landed(question, folder)
        database = registry.database(name)
        if database is None or whole_address(name) != question["table"]:
            return None
        try:
            return database.landed(name, question["state"])
        except FileError:
            return None

    return atomic_journal.settle(folder, landed)


def check_finished(path: PathLike) -> None:
    """Refuse to read what a killed program of this user had not finished; nothing is changed."""
    name = os.fspath(path)
    folder = _folder_of(name)
    database = registry.database(name)
    for names, question in atomic_journal.unfinished(folder):
        if database is None:
            pending = os.path.basename(os.path.realpath(registry.sheet_of(name)[0])) in names
        else:
            pending = question is not None and question.get("table") == whole_address(name)
        if pending:
            raise FileError(
                f"{shown(name)}: a program was stopped while it was writing this together with other files; run the "
                "same command again, which finishes or replaces them"
            )


def _folder_of(name: str) -> str:
    """The folder of a file, or of what lies beside a table."""
    return os.path.dirname(os.path.realpath(companion(name)))


def bring_back(target: PathLike, kept: PathLike) -> None:
    """Give what stood at `target` its name again when nothing new came there; otherwise remove it."""
    if not os.path.lexists(kept):
        return
    if not os.path.lexists(target):
        with said_of(os.fspath(target)):
            os.rename(kept, target)
    elif os.path.isdir(kept) and not os.path.islink(kept):
        shutil.rmtree(kept, ignore_errors=True)
    else:
        atomic_journal.remove(os.fspath(kept))


def _folder_landed(question: atomic_journal.Question, here: str) -> bool | None:
    """Whether a folder has its name that was written with files; one that it was to replace is there again if not.

    A folder that lies elsewhere than the files that are settled is only looked at.
    """
    target, kept = question["folder"], question.get("kept", "")
    above = os.path.dirname(target)
    if is_address(target) or not os.path.isdir(above):
        return None
    landed = not os.path.lexists(question.get("staging", "")) and os.path.lexists(target)
    try:
        if os.path.realpath(above) == here and os.path.dirname(kept) == above:
            bring_back(target, kept)
    except FileError:
        return None
    return landed


def _check_file(name: str, told: str) -> None:
    refuse_link(name, told)
    target = os.path.realpath(name)
    folder = os.path.dirname(target)
    with said_of(told):
        if not os.path.isdir(folder):
            raise FileError(f"{told}: there is no folder {os.path.dirname(name) or folder}; make it first")
        if os.path.isdir(target):
            raise FileError(f"{told}: is a folder; give the name of a file")
        if os.path.exists(target):
            if not stat.S_ISREG(os.stat(target).st_mode):
                raise FileError(f"{told}: is not an ordinary file; give another name")
            if not os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
                raise FileError(f"{told}: is write-protected; give another name or allow writing")
        mode_under_umask(folder, 0o600)


def same_file(a: PathLike, b: PathLike) -> bool:
    """Whether two paths lead to the same data: through links, as a folder and a Parquet file in it, as one table.

    >>> same_file("data/../survey.csv", "survey.csv"), same_file("s.db", "sqlite:///s.db?table=t")
    (True, True)
    """
    one, other = os.fspath(a), os.fspath(b)
    database = registry.database(one)
    if database is not None and database is registry.database(other):
        return database.same_table(one, other)
    # a database of files is overwritten by whatever else is written to its file
    paths = [
        parse(name).file if registry.database(name) else registry.sheet_of(_DISK.sub("", name))[0]
        for name in (one, other)
    ]
    if "" in paths:
        return False
    first, second = map(os.path.realpath, paths)
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
