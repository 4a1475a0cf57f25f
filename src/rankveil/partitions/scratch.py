"""A folder for what does not fit in memory: plain little-endian numbers, each file written whole and never changed.

A file gets its name when it is complete, so a task that is lost half-way leaves nothing that another one could take for
a result, and a task that runs twice writes the same file twice.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankveil.errors import FileError

IN_WORK = 52
"""Bytes that a record needs at most in a pair of columns while they are ranked: codes (16), rows (12, for a moment
those before and after ties are settled), ranks of spans (12), ranks of the original in order (4), and draws (8)."""

KEPT = 12
"""Bytes of a record's ranks in a pair of columns, original, masked and reverse-mapped, which stay until all is
measured."""


@dataclass(frozen=True)
class Scratch:
    """The folder of one job; the names of files in it say what they hold."""

    folder: str
    prefix: str = ""
    """What all names in the folder begin with: several looks at the same tables are apart by it."""

    def path(self, name: str) -> str:
        """Where the file of that name lies."""
        return os.path.join(self.folder, f"{self.prefix}{name}")

    def within(self, prefix: str) -> Scratch:
        """A part of the folder, whose names begin with one more word."""
        return Scratch(self.folder, f"{self.prefix}{prefix}-" if prefix else self.prefix)

    def put(self, name: str, values: NDArray[Any]) -> None:
        """Write an array; the file has its name only when it is whole."""
        self.put_pieces(name, [values])

    def put_pieces(self, name: str, pieces: Iterable[NDArray[Any]]) -> None:
        """Write arrays one behind the other."""
        temporary = os.path.join(self.folder, f".{self.prefix}{name}.{secrets.token_hex(4)}")
        try:
            with open(temporary, "xb", buffering=0) as file:
                for values in pieces:
                    little = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<"))
                    left = little.reshape(-1).view(np.uint8).data
                    while len(left):
                        left = left[file.write(left) :]
            os.replace(temporary, self.path(name))
        except OSError as error:
            with suppress(OSError):
                os.unlink(temporary)
            raise FileError(f"{self.path(name)}: cannot be written: {error.strerror or error}") from error

    def take(self, name: str, kind: DTypeLike, *, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """The numbers from start to stop (one past the last) of a file, or all of them."""
        size = np.dtype(kind).itemsize
        with self._opened(name) as file:
            count = (os.fstat(file).st_size // size if stop is None else stop) - start
            found = np.empty(count, kind)
            self._fill(file, name, found, start)
        return found

    def take_into(self, name: str, found: NDArray[Any], *, start: int = 0) -> None:
        """Fill an array, which must lie in one piece, with the numbers of a file from start on."""
        with self._opened(name) as file:
            self._fill(file, name, found, start)

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        """A file to read from; less to do than with `open`, as there are very many short pieces."""
        try:
            file = os.open(self.path(name), os.O_RDONLY)
            try:
                yield file
            finally:
                os.close(file)
        except OSError as error:
            raise FileError(f"{self.path(name)}: cannot be read: {error.strerror or error}") from error

    def _fill(self, file: int, name: str, found: NDArray[Any], start: int) -> None:
        left, place = found.view(np.uint8).data, start * found.itemsize
        while len(left):
            got = os.preadv(file, [left], place)
            if got == 0:
                raise FileError(f"{self.path(name)}: is cut short")
            left, place = left[got:], place + got
        if sys.byteorder == "big":
            found.byteswap(inplace=True)

    def glance(self, name: str, kind: DTypeLike) -> NDArray[Any]:
        """A file as an array of which only what is looked at is read, for a binary search."""
        try:
            if os.path.getsize(self.path(name)) == 0:
                return np.empty(0, kind)
            return np.memmap(self.path(name), dtype=np.dtype(kind).newbyteorder("<"), mode="r")
        except OSError as error:
            raise FileError(f"{self.path(name)}: cannot be read: {error.strerror or error}") from error

    def remove(self, *names: str) -> None:
        """Files that are no longer needed; one that is gone already is no error."""
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(self.path(name))

    def check_room(self, *, records: int, attributes: int, together: int) -> None:
        """Refuse to begin a job that the folder has no space for; `together` attributes are ranked at a time."""
        self.check_free(room(records=records, attributes=attributes, together=together))

    def check_free(self, need: int) -> None:
        """Refuse to begin a job that may need more bytes than there are."""
        free = shutil.disk_usage(self.folder).free
        if need > free:
            raise FileError(
                f"{self.folder}: the job may need {_gigabytes(need)} of scratch and {_gigabytes(free)} are free; "
                "name a folder with more space"
            )


def room(*, records: int, attributes: int, together: int) -> int:
    """Bytes of scratch that a job needs at most.

    >>> room(records=1, attributes=10, together=2)
    224
    """
    wide = 1 if records < 2**31 else 2
    return records * wide * (KEPT * attributes + IN_WORK * min(together, attributes))


def _gigabytes(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
