"""A scheduler and worker processes on this machine, which nobody else can reach.

They listen on 127.0.0.1 only. Whoever can reach a scheduler can have it run anything, and so could other users of the
machine: so both sides show a certificate that is made for the one run and lives in memory.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import count
from typing import Any

from rankveil.cluster.worker import BOOT
from rankveil.errors import ClusterError

QUIET = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.worker.use-file-locking": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.diagnostics.nvml": False,
    "distributed.logging": {"distributed": "critical", "tornado": "critical"},
}
"""Settings of Dask for local processes: no pages to look at, nothing measured that nobody asks for."""

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**29),
    "MALLOC_TOP_PAD_": str(2**26),
}
"""A worker keeps memory for its next task: to give it back and get it again took a third of the time."""

_CERTIFICATE = (
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=rankveil -days 365 -keyout -"
)
_PATIENCE = 60.0
"""Seconds that worker processes have to begin."""

_AGAIN = 4
"""Worker processes that end before they began and are started again."""

_LOOK = 0.1
"""Seconds from one look at the processes to the next."""


class Local:
    """The scheduler, in this process, and the worker processes, each started again when it is lost."""

    def __init__(self, workers: int, *, memory: int, folder: str) -> None:
        import dask
        from distributed import LocalCluster

        self._limit = memory // workers
        self._folder = folder
        credentials = _credentials()
        self.notes = (
            ()
            if credentials
            else ("the workers' connections are open to other users of this machine: install openssl to close them",)
        )
        with dask.config.set(QUIET):
            self.cluster = LocalCluster(
                n_workers=0,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                silence_logs=logging.CRITICAL,
                security=security_of(credentials),
            )
        self._told = {
            "path": [os.path.abspath(place) for place in sys.path],
            "scheduler": self.cluster.scheduler_address,
            "credentials": credentials,
            "folder": folder,
        }
        self._numbers = count()
        self._logs: dict[int, str] = {}
        self._over = threading.Event()
        self.killed_for_memory = 0
        try:
            self._processes = [self._start() for _ in range(workers)]
            self._wait(workers)
        except BaseException:
            self.close()
            raise
        self._watch = threading.Thread(target=self._look_after, daemon=True)
        self._watch.start()

    def close(self) -> None:
        """End the workers, then the scheduler."""
        self._over.set()
        if hasattr(self, "_watch"):
            self._watch.join()
        for process in getattr(self, "_processes", ()):
            _end(process)
        with suppress(Exception):  # whatever it says: the workers are gone
            self.cluster.close(timeout=5)

    @property
    def pids(self) -> tuple[int, ...]:
        """The worker processes."""
        return tuple(process.pid for process in self._processes)

    def _start(self) -> subprocess.Popen[bytes]:
        number = next(self._numbers)
        environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), **_MEMORY}
        path = os.path.join(self._folder, f"worker-{number}.log")
        with open(path, "wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", BOOT],  # -P: no modules from the working folder
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        self._logs[process.pid] = path
        assert process.stdin is not None
        with suppress(OSError):  # it ended already: whoever looks at it will see that
            process.stdin.write(json.dumps({**self._told, "name": f"local-{number}"}).encode() + b"\n")
            process.stdin.flush()
        return process

    def _wait(self, workers: int) -> None:
        """Until all workers are there."""
        end, scheduler = time.monotonic() + _PATIENCE, self.cluster.scheduler
        assert scheduler is not None
        lost = 0
        while len(scheduler.workers) < workers:
            for place, process in enumerate(self._processes):
                if process.poll() is None:
                    continue
                lost += 1
                if lost > _AGAIN:
                    raise ClusterError(f"worker processes ended before they began ({self._last_words(process.pid)})")
                _end(process)
                self._processes[place] = self._start()
            if time.monotonic() > end:
                raise ClusterError(f"the worker processes did not begin within {_PATIENCE:.0f} seconds")
            time.sleep(0.02)

    def _look_after(self) -> None:
        """Start a lost worker again, and end one that takes more memory than it may."""
        from psutil import Error, Process

        while not self._over.wait(_LOOK):
            for place, process in enumerate(self._processes):
                if process.poll() is not None:
                    _end(process)
                    self._processes[place] = self._start()
                    continue
                with suppress(Error):
                    if Process(process.pid).memory_info().rss > self._limit:
                        self.killed_for_memory += 1
                        process.kill()

    def _last_words(self, pid: int) -> str:
        with suppress(OSError), open(self._logs[pid], encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
            if lines:
                return lines[-1]
        return "it said nothing"


def security_of(credentials: dict[str, str] | None) -> Any:
    """Dask's form of a key and a certificate that all sides share."""
    from distributed import Security

    if credentials is None:
        return Security()
    key, certificate = credentials["key"], credentials["certificate"]
    sides: dict[str, str] = {}
    for side in ("client", "scheduler", "worker"):
        sides |= {f"tls_{side}_key": key, f"tls_{side}_cert": certificate}
    return Security(require_encryption=True, tls_ca_file=certificate, **sides)


def _credentials() -> dict[str, str] | None:
    """A fresh key and its certificate; None when this machine cannot make them."""
    try:
        made = subprocess.run(_CERTIFICATE.split(), capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    key, begin, certificate = made.partition("-----BEGIN CERTIFICATE-----")
    return {"key": key, "certificate": begin + certificate} if begin and "PRIVATE KEY" in key else None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
