"""Independent tasks on the cores of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_WORTH_A_THREAD = 20_000
"""Values below which starting threads costs more than it saves."""


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(function: Callable[[T], R], items: Iterable[T], *, size: int) -> list[R]:
    """[function(item) for item in items], on all cores when `size` values make it worth while.

    The functions given here spend their time in numpy or compiled code, which releases the GIL.
    """
    work = list(items)
    workers = min(cores(), len(work))
    if workers < 2 or size < _WORTH_A_THREAD:
        return [function(item) for item in work]
    pool = ThreadPoolExecutor(workers)
    try:
        return list(pool.map(function, work))
    finally:  # after an error or Ctrl-C, what has not begun does not begin
        pool.shutdown(cancel_futures=True)
