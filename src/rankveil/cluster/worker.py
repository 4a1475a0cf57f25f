"""A worker process of this machine: what runs in it from its first line to its last.

It is started as an interpreter of its own, so that a caller's script is not run again in it (as multiprocessing would),
and belongs to a session of its own, so that Ctrl-C reaches the caller alone. It ends when the caller does.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import Any

BOOT = (
    "import json, sys; told = json.loads(sys.stdin.readline()); sys.path[:] = told['path']; "
    "from rankveil.cluster.worker import run; run(told)"
)
"""The program: the first line of its input tells it everything, as arguments and variables can be seen by others."""


def run(told: dict[str, Any]) -> None:
    """Work until the scheduler or the caller goes away."""
    from rankveil.execute import keep_to

    keep_to(1)
    threading.Thread(target=_end_with_caller, daemon=True).start()
    asyncio.run(_work(told))


def _end_with_caller() -> None:
    """The other end of standard input is held by the caller; when it is closed, nobody waits for results."""
    sys.stdin.read()
    os._exit(0)


async def _work(told: dict[str, Any]) -> None:
    import dask
    from distributed import Worker

    from rankveil.cluster.local import QUIET, security_of

    with dask.config.set(QUIET):
        worker = Worker(
            told["scheduler"],
            nthreads=1,
            name=told["name"],
            host="127.0.0.1",
            security=security_of(told["credentials"]),
            local_directory=told["folder"],
            memory_limit=0,  # who started it watches over its memory
            dashboard=False,
        )
        async with worker:
            await worker.finished()
