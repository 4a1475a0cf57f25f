"""How much memory a file may take: a small one that claims to be huge is refused before any is taken.

Whoever knows a file raises the limit with the environment variable RANKVEIL_LARGEST_GIB.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress

from rankveil import memory
from rankveil.errors import FormatError, ParameterError

LARGEST = "RANKVEIL_LARGEST_GIB"

MOST_TIMES = 1000
"""A table may take this many times the size of its file, when that is more than `USUAL`."""

USUAL = 1 << 30
"""Bytes that any table may take, where so much memory is free."""

_OF_FREE = 0.5
"""The share of the free memory that a table may take: while it is read, as much again is needed for a moment."""

_LITTLE = 1 << 26
"""Bytes that any table may take, however little memory seems to be free."""


def refuse_growth(
    path: str,
    *,
    grown: int,
    size: int | None = None,
    most: int | None = None,
    times: int = MOST_TIMES,
    usual: int = USUAL,
) -> None:
    """Refuse a file whose content would take `grown` bytes: more than `most`, or too many times its own size.

    `size` is that of several files, or of one at an address. In any case the memory that is free is the limit.
    """
    size = max(1, os.stat(path).st_size if size is None else size)
    limit = allowed(size, most=most, times=times, usual=usual)
    if grown <= limit:
        return
    short = grown > _free() and os.environ.get(LARGEST) is None
    why = "more than this machine has free for it" if short else "more than it may"
    remedy = "read fewer records or columns, or Parquet in parts with --cluster local; " if short else ""
    raise FormatError(
        f"{path}: would take {memory.shown(grown)} in memory, {grown // size:,} times its size, which is {why} "
        f"({memory.shown(limit)}); {remedy}if that is right, allow it with {LARGEST}={math.ceil(grown / (1 << 30))}"
    )


def allowed(size: int, *, most: int | None = None, times: int = MOST_TIMES, usual: int = USUAL) -> int:
    """How many bytes the content of a file of that size may take."""
    given = os.environ.get(LARGEST)
    if given is not None:
        return _bytes_of(given)
    return min(max(times * size, usual), _free(), most or _free())


class Intake:
    """What comes from a database, batch by batch, which cannot be known before: no more than fits in memory."""

    def __init__(self, told: str) -> None:
        given = os.environ.get(LARGEST)
        self._most = _free() if given is None else _bytes_of(given)
        self._taken = 0
        self._told = told

    def add(self, more: int) -> None:
        """So many bytes more were taken."""
        self._taken += more
        if self._taken > self._most:
            enough = math.ceil(2 * self._taken / (1 << 30))
            raise FormatError(
                f"{self._told}: takes more than {memory.shown(self._most)} in memory, which is all that it may; give a "
                f"view of fewer records or columns, or allow more with {LARGEST}={enough}"
            )


def _bytes_of(given: str) -> int:
    with suppress(ValueError, OverflowError):  # no number, or infinity
        gibibytes = float(given)
        if gibibytes > 0:
            return int(gibibytes * (1 << 30))
    raise ParameterError(f"{LARGEST}={given}: must be a number of GiB, such as 16")


def _free() -> int:
    """Bytes that a table may take of the memory of this machine, or of the container that this runs in."""
    return max(int(memory.available() * _OF_FREE), _LITTLE)
