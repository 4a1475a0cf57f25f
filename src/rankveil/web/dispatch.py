"""The background: every run is a process of its own, so that it can be stopped, and at most one for each core."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from rankveil.errors import FileError, ParameterError
from rankveil.execute import cores
from rankveil.web import processes
from rankveil.web.runs import Run, Runs, Status
from rankveil.web.workspace import write_json

_LOOK = 0.1
"""Seconds between two looks at the processes."""
_PATIENCE = 3.0
"""Seconds that a process has to end by itself."""


@dataclass
class _Working:
    process: subprocess.Popen[bytes]
    stop_by: float | None = None


class Dispatcher:
    """Starts what waits, stops what is cancelled, and writes down how each run ended."""

    def __init__(self, runs: Runs, *, at_once: int | None = None) -> None:
        self._runs = runs
        self._at_once = at_once or cores()
        self._working: dict[str, _Working] = {}
        self._waiting: list[str] = []
        self._guard = threading.RLock()
        self._wake = threading.Event()
        self._ending = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look after the runs."""
        self._runs.settle()
        self._thread = threading.Thread(target=self._loop, name="dispatcher", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End: what is at work is interrupted and can be resumed later."""
        self._ending = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        with self._guard:
            for working in self._working.values():
                _signal(working.process, signal.SIGTERM)
            for working in self._working.values():
                _end(working.process)
            self._working.clear()
        self._runs.settle()

    def submit(self, run: Run) -> Run:
        """Let a run wait for its turn."""
        with self._guard:
            self._waiting.append(run.id)
        self._wake.set()
        return run

    def cancel(self, run: Run) -> None:
        """Stop a run, also one that waits; one that has ended stays as it is."""
        with self._guard:
            now = self._runs.find(run.id)
            if now is None or not now.under_way:
                return
            self._runs.keep(replace(now, status="cancelled", ended=time.time()))
            working = self._working.get(run.id)
            if working is not None:
                _signal(working.process, signal.SIGTERM)
                working.stop_by = time.monotonic() + _PATIENCE
        self._wake.set()

    def resume(self, run: Run) -> None:
        """Let a run that was stopped wait for its turn again, and what it needs; it goes on from what it kept."""
        with self._guard:
            now = self._runs.find(run.id)
            if now is None or not now.can_resume:
                return
            first = self._runs.find(now.after) if now.after else None
            if first is not None:
                self.resume(first)
            for left in ("failure.json", "progress.json"):
                with suppress(OSError):
                    (self._runs.folder(now) / left).unlink()
            self.submit(self._runs.keep(replace(now, status="queued", ended=None)))

    @property
    def at_work(self) -> frozenset[str]:
        """The runs that have a process, also one that is just ending."""
        with self._guard:
            return frozenset(self._working)

    @contextmanager
    def at_rest(self, runs: Iterable[Run]) -> Iterator[None]:
        """Nothing is started meanwhile; an error when one of the runs is under way."""
        with self._guard:
            for run in runs:
                now = self._runs.find(run.id)
                if run.id in self.at_work or (now is not None and now.under_way):
                    raise ParameterError("some of its work is under way; cancel it first, or wait until it is done")
            yield

    def _loop(self) -> None:
        while not self._ending:
            with self._guard:
                with suppress(FileError):  # a full disk: it is tried again at the next look
                    self._reap()
                    self._launch()
                busy = bool(self._working or self._waiting)
            self._wake.wait(_LOOK if busy else None)
            self._wake.clear()

    def _reap(self) -> None:
        for id, working in list(self._working.items()):
            if working.stop_by is not None and time.monotonic() > working.stop_by:
                _signal(working.process, signal.SIGKILL)
            if working.process.poll() is None:
                continue
            _signal(working.process, signal.SIGKILL)  # whatever of its group is left
            _close(working.process)
            run = self._runs.find(id)
            if run is not None and run.status == "running":
                self._runs.keep(replace(run, status=self._ended(run, working.process.returncode), ended=time.time()))
            del self._working[id]

    def _ended(self, run: Run, code: int) -> Status:
        folder = self._runs.folder(run)
        if (folder / "result.json").exists():
            return "done"
        if not (folder / "failure.json").exists():
            told = f"the work ended unexpectedly (exit code {code}); perhaps there was not enough memory"
            write_json(folder / "failure.json", {"sentence": told})
        return "failed"

    def _launch(self) -> None:
        for id in list(self._waiting):
            if len(self._working) >= self._at_once:
                return
            run = self._runs.find(id)
            if run is None or run.status != "queued":  # cancelled meanwhile
                self._waiting.remove(id)
                continue
            if id in self._working:  # its process has not ended yet
                continue
            first = self._runs.find(run.after) if run.after else None
            if first is not None and first.under_way:
                continue
            if run.after and (first is None or first.status != "done"):
                self._waiting.remove(id)
                self._fail(run, "the masking that it needs did not come about")
                continue
            self._waiting.remove(id)
            run = self._runs.keep(replace(run, status="running", started=time.time()))
            try:
                self._working[id] = _Working(processes.start("rankveil.web.work", str(self._runs.folder(run))))
            except OSError as error:
                reason = (error.strerror or "the system refused").lower()
                self._fail(run, f"the work could not be started: {reason}")

    def _fail(self, run: Run, sentence: str) -> None:
        write_json(self._runs.folder(run) / "failure.json", {"sentence": sentence})
        self._runs.keep(replace(run, status="failed", ended=time.time()))


def _signal(process: subprocess.Popen[bytes], what: signal.Signals) -> None:
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, what)
        else:
            process.send_signal(what)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        process.wait()
    _signal(process, signal.SIGKILL)
    _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
