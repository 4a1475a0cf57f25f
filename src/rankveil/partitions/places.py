"""Where Parquet folders lie: on a disk, or at an address such as s3://bucket/folder that fsspec knows.

What lies on a disk is opened by the system itself; fsspec is asked for addresses alone. Which user, key and server
belong to an address is no part of it: fsspec and its packages find that in the environment, as s3fs does in
AWS_ACCESS_KEY_ID or FSSPEC_S3_ENDPOINT_URL, on each worker.
"""

from __future__ import annotations

import os
import posixpath
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, BinaryIO, TypeVar

from rankveil.errors import FileError, ParameterError, RankveilError
from rankveil.files.atomic import mode_under_umask
from rankveil.files.databases import FILES, SERVERS
from rankveil.files.folders import DISK, ENDING, HIDDEN

R = TypeVar("R")

MARK = "_rankveil-incomplete"
"""The key in a folder of an object store whose other keys are being written: nobody may take it for whole."""

_RENAME = frozenset(("file", "local", "hdfs", "arrow_hdfs", "webhdfs", "sftp", "ssh", "smb", "ftp"))
"""Kinds of addresses where a folder can be renamed; all others are taken for object stores, which cannot."""

_UPLOAD = frozenset(("s3", "s3a"))
"""Kinds where an object appears when its upload is completed, and never in part."""

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

_GIVE_UP = 3
"""Removals that fail before others are not tried any more: each may take as long as its package tries again."""


def is_address(path: str) -> bool:
    """Whether a path is an address of files that fsspec knows; those of databases are not.

    >>> is_address("s3://bucket/table"), is_address("sqlite:///a.db?table=t"), is_address("table.parquet")
    (True, False, False)
    """
    found = _ADDRESS.match(path)
    return found is not None and found[1].lower() not in (*SERVERS, *FILES) and found[1].lower() in _known()


@cache
def _known() -> frozenset[str]:
    """Kinds of places that fsspec can reach, some of them with a package of their own."""
    try:
        from fsspec.registry import known_implementations
    except ImportError:
        return frozenset(("s3", "gs"))  # so that whoever gives one is told what to install
    return frozenset(known_implementations)


def renames(address: str) -> bool:
    """Whether a folder can get another name at an address, which an object store cannot do.

    >>> renames("file:///data/table"), renames("s3://bucket/table")
    (True, False)
    """
    return _kind(address) in _RENAME


def absolute(path: str | os.PathLike[str]) -> str:
    """The path as others can use it who work elsewhere."""
    given = os.fspath(path)
    return given.rstrip("/") if is_address(given) else os.path.abspath(given)


def joined(folder: str, name: str) -> str:
    """A file in a folder."""
    return f"{folder.rstrip('/')}/{name}" if is_address(folder) else os.path.join(folder, name)


def exists(path: str) -> bool:
    """Whether there is such a file or folder."""
    if not is_address(path):
        return os.path.exists(path)
    files, inner = _found(path)
    with _said_of(path):
        files.invalidate_cache(posixpath.dirname(inner))
        return bool(files.exists(inner))


def is_folder(path: str) -> bool:
    """Whether it is a folder; a place of objects has one where names begin with its own."""
    if not is_address(path):
        return os.path.isdir(path)
    files, inner = _found(path)
    with _said_of(path):
        return bool(files.isdir(inner))


def entries(folder: str) -> dict[str, bool]:
    """The names in a folder, and whether each is a folder itself."""
    with _said_of(folder):
        if not is_address(folder):
            return dict(DISK.entries(folder))
        files, inner = _found(folder)
        files.invalidate_cache(inner)  # a worker may have looked before the files were there
        found = {entry["name"].rstrip("/"): entry["type"] == "directory" for entry in files.ls(inner, detail=True)}
        found.pop(inner.rstrip("/"), None)  # an object that stands for the folder itself
        names = {posixpath.basename(path): is_folder for path, is_folder in found.items()}
        if MARK in names:
            raise FileError(
                f"{folder}: is incomplete: a release is being written there, or was when its writer was lost; "
                "wait for its end, or delete the folder and write it again"
            )
        return names


def parquet_files(folder: str) -> list[str]:
    """The Parquet files of a folder in the order of their names, without hidden ones."""
    visible = sorted(name for name in entries(folder) if not name.startswith(HIDDEN))
    return [joined(folder, name) for name in visible if name.lower().endswith(ENDING)]


def stamp(path: str) -> list[Any]:
    """What changes when a file does: its size and time, or what its place tells instead."""
    if not is_address(path):
        found = os.stat(path)
        return [found.st_size, found.st_mtime_ns]
    files, inner = _found(path)
    with _said_of(path):
        files.invalidate_cache(posixpath.dirname(inner))
        return [files.ukey(inner)]


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """A file to read Parquet from: its path on a disk, an open file at an address."""
    if not is_address(path):
        yield path
        return
    files, inner = _found(path)
    with _said_of(path):
        file = files.open(inner, "rb")
    with file:
        yield file


@contextmanager
def opened_file(path: str) -> Iterator[Any]:
    """An open file."""
    with opened(path) as source, open(source, "rb") if isinstance(source, str) else source as file:
        yield file


def read_text(path: str) -> str:
    """A small text."""
    with opened_file(path) as file:
        try:
            return bytes(file.read()).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise FileError(f"{path}: cannot be read: it is not UTF-8 text") from None


def make_folder(path: str) -> None:
    """Make a folder and those above it, where they are not there yet; a place of objects needs none."""
    with _said_of(path, deed="made"):
        if is_address(path):
            files, inner = _found(path)
            files.makedirs(inner, exist_ok=True)
        else:
            os.makedirs(path, exist_ok=True)


def remove(path: str) -> None:
    """Remove a file; one that is gone already is no error."""
    with _said_of(path, deed="removed"), suppress(FileNotFoundError):
        if is_address(path):
            files, inner = _found(path)
            files.rm_file(inner)
        else:
            os.unlink(path)


def remove_folder(path: str) -> None:
    """Remove a folder with its files."""
    with _said_of(path, deed="removed"):
        if is_address(path):
            files, inner = _found(path)
            files.rm(inner, recursive=True)
        else:
            shutil.rmtree(path)


def keys_below(folder: str) -> list[str]:
    """Every key of an object store with the prefix of a folder."""
    files, inner = _found(folder)
    with _said_of(folder):
        files.invalidate_cache(inner)
        return [files.unstrip_protocol(key) for key in files.find(inner)]


def remove_keys(keys: Iterable[str]) -> list[str]:
    """Remove files at addresses; those that remain, or may when nobody answers. Never fails."""
    left: list[str] = []
    for key in keys:
        if len(left) < _GIVE_UP:
            with suppress(Exception):  # what remains is the answer
                remove(key)
                continue
        left.append(key)
    return that_may_remain(left)


def that_may_remain(keys: list[str]) -> list[str]:
    """Those of some files at addresses that are there; all of them when nobody answers."""
    with suppress(Exception):
        return [key for key in keys if exists(key)]
    return keys


def copy_key(path: str, target: str) -> None:
    """Copy a file of an object store, within the store."""
    files, inner = _found(path)
    with _said_of(target, deed="written"):
        files.cp_file(inner, files._strip_protocol(target))


def put_key(path: str, content: bytes) -> None:
    """Write a small file at an address."""
    with open_output(path) as file:
        file.write(content)


def to_its_end(call: Callable[[], R]) -> R:
    """The result of a call that Ctrl-C does not cut off: it is raised when the call has ended.

    A request that nobody waits for is carried out nevertheless, perhaps after what was cleaned up because of Ctrl-C.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def move(path: str, target: str) -> None:
    """Give a folder another name, on a disk or at an address where that is possible."""
    with _said_of(target, deed="written"):
        if is_address(path):
            files, inner = _found(path)
            files.mv(inner, files._strip_protocol(target), recursive=True)
        else:
            os.rename(path, target)


@contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """A file to write that has its name only when it is whole; after an error there is nothing of it.

    On a disk it is written under a temporary name in the same folder, made to last, and renamed. On S3 it is uploaded
    under its name, and the upload completed at the end. At other addresses it is written under a temporary name and
    moved. Temporary names begin with a dot, so readers pass over what a lost worker leaves behind. A task that is done
    twice writes the same file twice.
    """
    if is_address(path) and _kind(path) in _UPLOAD:
        with _uploaded(path) as file:
            yield file
        return
    folder, name = os.path.split(path) if not is_address(path) else posixpath.split(path)
    temporary = joined(folder, f".{name}.{secrets.token_hex(8)}.tmp")
    with _written_at(path, temporary) if is_address(path) else _written_on_disk(path, temporary) as file:
        yield file


@contextmanager
def _written_on_disk(path: str, temporary: str) -> Iterator[BinaryIO]:
    try:
        with _said_of(path, deed="written"):
            mode = mode_under_umask(os.path.dirname(temporary) or ".", 0o644)
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(handle)
                os.fchmod(handle, mode)
            os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


@contextmanager
def _uploaded(path: str) -> Iterator[BinaryIO]:
    files, inner = _found(path)
    with _said_of(path, deed="written"):
        file = files.open(inner, "wb")
    try:
        yield file
        with _said_of(path, deed="written"):
            file.close()
    except BaseException:
        with suppress(Exception):  # an error of its own would hide the one that matters
            file.discard()
        file.closed = True  # so that nothing completes it later
        raise


@contextmanager
def _written_at(path: str, temporary: str) -> Iterator[BinaryIO]:
    files, inner = _found(path)
    beside = files._strip_protocol(temporary)
    with _said_of(path, deed="written"):
        file = files.open(beside, "wb")
    try:
        yield file
        with _said_of(path, deed="written"):
            file.close()
            files.mv(beside, inner)
    except BaseException:
        for clear in (file.close, lambda: files.rm_file(beside)):
            with suppress(Exception):  # an error of its own would hide the one that matters
                clear()
        raise


def _kind(address: str) -> str:
    """The kind of an address, such as s3."""
    found = _ADDRESS.match(address)
    return found[1].lower() if found else ""


def _found(path: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    scheme = _ADDRESS.match(path)
    assert scheme is not None
    try:
        from fsspec.core import url_to_fs
        from fsspec.registry import known_implementations
    except ImportError:
        raise ParameterError(f"{scheme[0]} needs fsspec: pip install 'rankveil[cluster]'") from None
    try:
        files, inner = url_to_fs(path)
    except ImportError:
        known = known_implementations.get(scheme[1].lower(), {})
        package = known.get("class", "").partition(".")[0]
        how = f"pip install {package}" if package not in ("", "fsspec") else str(known.get("err", "see fsspec"))
        how = "pip install 'rankveil[s3]'" if package == "s3fs" else how
        raise ParameterError(f"{scheme[0]} needs a package that is not installed: {how}") from None
    except Exception as error:  # each package for places in a network has errors of its own
        raise FileError(f"{path}: cannot be reached: {_why(error)}") from error
    return files, inner


@contextmanager
def _said_of(path: str, *, deed: str = "read") -> Iterator[None]:
    """Name the place that refuses; packages for places in a network have errors of their own kinds."""
    try:
        yield
    except RankveilError:
        raise
    except OSError as error:
        raise FileError(f"{path}: cannot be {deed}: {_why(error)}") from error
    except Exception as error:
        if not is_address(path):
            raise
        raise FileError(f"{path}: cannot be {deed}: {_why(error)}") from error


def _why(error: Exception) -> str:
    """The first line of what went wrong, in small letters at its beginning."""
    said = getattr(error, "strerror", None) or str(error).partition("\n")[0] or type(error).__name__
    return said[0].lower() + said[1:]
