"""How much memory a file may take: a small one that claims to be huge is refused before any is taken.

Whoever knows a file raises the limit with the environment variable RANKVEIL_LARGEST_GIB.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress

from rankveil.errors import FormatError, ParameterError

LARGEST = "RANKVEIL_LARGEST_GIB"

MOST_TIMES = 1000
"""A table may take this many times the size of its file, when that is more than `USUAL`."""

USUAL = 1 << 30
"""Bytes that any table may take."""


def refuse_growth(
    path: str, *, grown: int, most: int | None = None, times: int = MOST_TIMES, usual: int = USUAL
) -> None:
    """Refuse a file whose content would take `grown` bytes: more than `most`, or too many times its own size.

    Without `most` the memory of this machine is the limit.
    """
    size = max(1, os.stat(path).st_size)
    if grown <= allowed(size, most=most, times=times, usual=usual):
        return
    raise FormatError(
        f"{path}: would take {_shown(grown)} in memory, {grown // size:,} times its size, which is more than it may; "
        f"if that is right, allow it with {LARGEST}={math.ceil(grown / (1 << 30))}"
    )


def allowed(size: int, *, most: int | None = None, times: int = MOST_TIMES, usual: int = USUAL) -> int:
    """How many bytes the content of a file of that size may take."""
    given = os.environ.get(LARGEST)
    if given is not None:
        return _bytes_of(given)
    return min(max(times * size, usual), most or _memory())


def _bytes_of(given: str) -> int:
    with suppress(ValueError, OverflowError):  # no number, or infinity
        gibibytes = float(given)
        if gibibytes > 0:
            return int(gibibytes * (1 << 30))
    raise ParameterError(f"{LARGEST}={given}: must be a number of GiB, such as 16")


def _memory() -> int:
    """Bytes that this machine has; where it does not tell, as many as you like."""
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 1 << 62


def _shown(size: int) -> str:
    return f"{size / (1 << 30):,.1f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):,.0f} MiB"
