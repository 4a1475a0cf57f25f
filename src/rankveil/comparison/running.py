"""Many searches on several workers: tasks go out as searches ask, results come back, a journal keeps them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rankveil.comparison.search import Found, Point, Search
from rankveil.comparison.study import Result, Study, Task, measure
from rankveil.errors import FileError, ParameterError
from rankveil.execute import Pool
from rankveil.files import user_key
from rankveil.files.atomic import said_of
from rankveil.files.atomic_journal import remove
from rankveil.files.user_key import is_sealed, seal

JOURNAL_SCHEMA = "rankveil/compare-state/2"
_KEPT = "written, where finished work of the comparison is kept"

Progress = Callable[[int, int], None]


class Journal:
    """Results of finished tasks, in memory and (with a path) line by line in a file that only its owner can read.

    A run that was stopped in the middle of a line loses that line and nothing else. The file may lie in a folder that
    came from somebody else, so it and each of its lines are sealed with the user's key, and others are not taken up.
    """

    def __init__(self, path: Path | None, *, of: str, resume: bool) -> None:
        self.path, self._of = path, of
        self.results: dict[str, Result] = {}
        self._file: Any = None
        self.found = path is not None and path.exists()
        """Whether there was a state of an earlier run."""
        if path is None:
            return
        if resume:
            self._read(path)
        elif path.exists():
            raise ParameterError(
                f"{path}: a comparison that was stopped left its state here; go on with --resume, or delete the file"
            )

    def _read(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError):
            raise FileError(f"{path}: the state of the comparison cannot be read") from None
        for number, line in enumerate(lines):
            try:
                entry = json.loads(line)
                if number == 0:
                    if not is_sealed("compare-state", str(entry.get("of")).encode(), entry.get("seal")):
                        raise ParameterError(
                            f"{path}: is not sealed with your key ({user_key.place() or 'there is none'}), so "
                            "somebody else may have written it; delete it, or leave out --resume"
                        )
                    if entry.get("schema") != JOURNAL_SCHEMA or entry.get("of") != self._of:
                        raise ParameterError(
                            f"{path}: is the state of another comparison (other data, columns, seed or settings); "
                            "delete it, or leave out --resume"
                        )
                    continue
                sealed = entry.pop("seal")
                if not is_sealed("compare-result", self._bound(entry), sealed):
                    break
                self.results[entry["key"]] = Result(entry["values"], entry["without"], entry["error"], entry["notes"])
            except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
                break

    def add(self, key: str, result: Result) -> None:
        """Keep a result."""
        if self.path is not None and self._file is None:
            self._open()
        self.results[key] = result
        if self._file is None:
            return
        with said_of(str(self.path), deed=_KEPT):
            self._file.write(self._line(key, result))
            self._file.flush()

    def _line(self, key: str, result: Result) -> str:
        entry = {"key": key, **result.to_dict()}
        return json.dumps({**entry, "seal": seal("compare-result", self._bound(entry))}) + "\n"

    def _bound(self, entry: dict[str, Any]) -> bytes:
        """What is sealed: a result in the comparison that this is."""
        return f"{self._of} {json.dumps(entry, sort_keys=True)}".encode()

    def _open(self) -> None:
        """Begin the file anew with what is known: the end of an old one may be half a line."""
        assert self.path is not None
        beside = self.path.with_name(self.path.name + ".new")
        try:
            with said_of(str(self.path), deed=_KEPT):
                remove(str(beside))  # left by a killed program, or a link
                handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                self._file = os.fdopen(handle, "w", encoding="utf-8")
                sealed = seal("compare-state", self._of.encode())
                self._file.write(json.dumps({"schema": JOURNAL_SCHEMA, "of": self._of, "seal": sealed}) + "\n")
                for key, result in self.results.items():
                    self._file.write(self._line(key, result))
                self._file.flush()
                os.replace(beside, self.path)
        except BaseException:
            remove(str(beside))
            raise

    def close(self, *, done: bool) -> None:
        """The end: a comparison that is done needs no state."""
        if self._file is not None:
            with suppress(OSError):  # on a full disk there is a rest that was told of already
                self._file.close()
        if done and self.path is not None:
            with suppress(OSError):
                self.path.unlink()


@dataclass
class Job:
    """A search, how a strength becomes tasks, and how their results become a point."""

    name: str
    search: Search
    tasks: Callable[[float], Sequence[Task]]
    point: Callable[[float, Sequence[Result]], Point | None]
    found: Found | None = None


class Runner:
    """One set of workers for all searches of a comparison, and the journal of what they did."""

    def __init__(self, study: Study, journal: Journal, *, pool: Pool[Study], progress: Progress | None) -> None:
        self.study, self.journal = study, journal
        self._pool = pool
        self._progress = progress
        self._done: set[str] = set()
        """The tasks that were asked for and have their result, also those of an earlier run."""
        self._expected = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            self._pool.__exit__(kind, *rest)
        finally:
            self.journal.close(done=kind is None)

    def run(self, jobs: Sequence[Job], *, expected: int) -> dict[str, Found]:
        """Every search to its end. Each depends only on its own results, so answers do not depend on the workers."""
        self._expected += expected
        waiting: dict[Future[Result], str] = {}
        wanted = {number: _advance(job, None) for number, job in enumerate(jobs)}
        while any(strengths is not None for strengths in wanted.values()):
            moved = False
            for number, job in enumerate(jobs):
                strengths = wanted[number]
                if strengths is None:
                    continue
                tasks = {strength: job.tasks(strength) for strength in strengths}
                if not self._send([task for some in tasks.values() for task in some], waiting):
                    continue
                wanted[number] = _advance(job, [job.point(at, self.results(some)) for at, some in tasks.items()])
                moved = True
            if not moved and waiting:
                self._receive(waiting)
        return {job.name: job.found for job in jobs if job.found is not None}

    def results(self, tasks: Sequence[Task]) -> list[Result]:
        """The results of tasks that are done."""
        return [self.journal.results[task.key] for task in tasks]

    def _send(self, tasks: Sequence[Task], waiting: dict[Future[Result], str]) -> bool:
        """Send out what is not done and not under way; whether all is done."""
        missing = [task for task in tasks if task.key not in self.journal.results]
        for task in missing:
            if task.key not in waiting.values():
                waiting[self._pool.submit(measure, task)] = task.key
        kept = {task.key for task in tasks if task.key in self.journal.results} - self._done
        if kept:
            self._tell(kept, waiting)
        return not missing

    def _receive(self, waiting: dict[Future[Result], str]) -> None:
        for future in self._pool.ready(waiting):
            key = waiting.pop(future)
            self.journal.add(key, future.result())
            self._tell({key}, waiting)

    def _tell(self, done: set[str], waiting: dict[Future[Result], str]) -> None:
        """So many more tasks are done."""
        self._done |= done
        if self._progress is not None:
            self._progress(len(self._done), max(self._expected, len(self._done) + len(waiting)))


def _advance(job: Job, points: Sequence[Point | None] | None) -> list[float] | None:
    """What the search wants next, or None at its end."""
    try:
        return next(job.search) if points is None else job.search.send(points)
    except StopIteration as end:
        job.found = end.value
        return None
