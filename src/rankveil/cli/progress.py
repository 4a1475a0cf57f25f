"""A progress bar on standard error, for work that takes a while and a person who watches."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0
"""Seconds of work before a bar is shown."""


@contextmanager
def watching(what: str, *, quiet: bool, patience: float = PATIENCE) -> Iterator[Callable[[int, int], None]]:
    """Give a function `report(done, total)`; the bar appears only after a while, on a terminal, and not when quiet."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    bar = _Bar(what)
    timer = threading.Timer(patience, bar.show)
    timer.daemon = True
    timer.start()
    try:
        yield bar.report
    finally:
        timer.cancel()
        bar.close()


class _Bar:
    def __init__(self, what: str) -> None:
        self._what = what
        self._done, self._total = 0, 0
        self._shown: Any = None
        self._task: Any = None
        self._closed = False
        self._lock = threading.Lock()

    def show(self) -> None:
        """Begin to draw: a pulse until the work says how much there is."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with self._lock:
            if self._closed:
                return
            self._shown = Progress(*columns, console=Console(file=sys.stderr), transient=True)
            self._task = self._shown.add_task(self._what, total=self._total or None, completed=self._done)
            self._shown.start()

    def report(self, done: int, total: int) -> None:
        """So much of so much is done."""
        with self._lock:
            self._done, self._total = done, total
            if self._shown is not None:
                self._shown.update(self._task, completed=done, total=total)

    def close(self) -> None:
        """The work is over, or failed."""
        with self._lock:
            self._closed = True
            if self._shown is not None:
                self._shown.stop()
