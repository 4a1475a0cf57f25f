"""Processes of their own: what they do can be stopped, can crash or run out of memory, and the server goes on.

A process ends with the server that started it: its standard input is a pipe from there, and when that closes, whatever
the reason, the whole group of processes goes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_FIRST = "1000"
"""How gladly the system ends a process when memory runs out: as gladly as can be, before the server."""


def start(module: str, *arguments: str, answers: bool = False) -> subprocess.Popen[bytes]:
    """A module as a process in a group of its own.

    -P: modules are not looked for in the working folder, where somebody else's files may lie.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if answers else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def run(work: Callable[[], int]) -> None:
    """Be such a process: do the work and end with its code, or with the server."""
    warnings.simplefilter("ignore")
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write(_FIRST)
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    # At the end of an interpreter a thread that reads standard input would hold its lock.
    code = work()
    sys.stdout.flush()
    os._exit(code)


def mistake(error: Exception) -> str:
    """A mistake of rankveil itself: where it happened, but not what the error says, which may quote data."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}, line {last.lineno}"
    return f"rankveil made a mistake ({type(error).__name__} in {where}); please report it"


def _end_with_the_server() -> None:
    sys.stdin.buffer.read()
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
