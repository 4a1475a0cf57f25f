"""The folder of one job in the scratch folder: what its tasks leave there, and a journal by which it can be resumed.

The folder is named after the job, so that the same command finds it again. Every list of tasks has a number, and each
task's result is kept under it as soon as it arrives. A job that is resumed takes the results that are there and does
the rest; what files a finished list of tasks left is as it was, as they are removed by later lists only.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from rankveil._version import __version__
from rankveil.cluster.engine import Engine
from rankveil.cluster.sending import name_of
from rankveil.errors import ClusterError, FileError, ParameterError
from rankveil.partitions.scratch import Scratch

T = TypeVar("T")
R = TypeVar("R")

Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is."""

RANKING = (
    ("sort_partition", 8.0),
    ("rank_part", 3.0),
    ("settle_part", 1.0),
    ("reverse_part", 1.0),
    ("return_ranks", 3.0),
)
"""How much work the lists of tasks are that some columns at a time need, beside each other."""

_JOURNAL, _LOCK = "journal", "lock"
_SCHEMA = "rankveil/cluster-journal/1"
_STEPS = 1000
"""Of which progress is told."""


class Work:
    """A job's folder and its engine, which keeps what is done; to be used in a `with` statement.

    `of` says which job it is: tables, columns, settings. `kept` is what must not change when the job is resumed, such
    as how the tables are cut; it is taken from the journal then. `private` is like `of`, but does not show in the
    folder's name.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        of: Mapping[str, Any],
        kept: Mapping[str, Any],
        private: str = "",
        resume: bool = False,
        progress: Progress | None = None,
    ) -> None:
        named = _digest({"version": __version__, **of})
        self._engine = engine
        self._told = {"schema": _SCHEMA, "of": named, "private": _digest({"private": private})}
        self._progress = _Steps(progress)
        self.folder = os.path.join(engine.scratch, f"rankveil-{named[:16]}")
        self.scratch = Scratch(self.folder)
        self.places = [self.folder]
        """Where the job leaves something when it is stopped."""
        self._calls = 0
        self._finished = False
        self._known: dict[tuple[int, int], tuple[str, Any]] = {}
        self.kept: Mapping[str, Any] = kept
        self.resumed = self._enter(resume)
        """Whether there was something to go on with."""

    def _enter(self, resume: bool) -> bool:
        found = False
        try:
            os.mkdir(self.folder, 0o700)
        except FileExistsError:
            found = True
        except OSError as error:
            raise FileError(f"{self.folder}: cannot be made: {(error.strerror or 'refused').lower()}") from None
        if found and not resume:
            raise ParameterError(
                f"{self.folder}: the same job was stopped and left its work here; "
                "go on with --resume, or delete the folder"
            )
        if found and (os.stat(self.folder).st_uid != os.geteuid() or os.stat(self.folder).st_mode & 0o022):
            raise FileError(f"{self.folder}: others could have changed what lies there; delete the folder")
        self._lock = os.open(os.path.join(self.folder, _LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._be_alone()
            found = found and self._read()
            self._begin()
        except BaseException:
            os.close(self._lock)
            raise
        return found

    def _be_alone(self) -> None:
        with suppress(ImportError):  # a system without such locks
            import fcntl

            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ParameterError(f"{self.folder}: the same job is at work already") from None
            except OSError:  # a file system without them
                pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._journal.close()
        stays = kind is not None and issubclass(kind, ClusterError | KeyboardInterrupt) and not self._finished
        if not stays:
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)
        if stays and error is not None:
            what = str(error) or "stopped"
            where = " and ".join(self.places)
            error.args = (f"{what}; what was done is kept in {where}: the same command with --resume goes on",)

    def finish(self) -> None:
        """Nothing is to be taken up any more, even if the work is stopped now."""
        self._finished = True

    def plan(self, lists: Sequence[tuple[str, float, int]]) -> None:
        """What is to come, for progress: kinds of tasks, how much work a list of them is, how many lists there are."""
        self._progress.plan(lists)

    def __call__(self, function: Callable[[T], R], items: Sequence[T], /) -> list[R]:
        """The engine's work, kept: [function(item) for item in items]."""
        number, name = self._calls, name_of(function)
        self._calls += 1
        results: dict[int, Any] = {}
        for place in range(len(items)):
            if (number, place) in self._known:
                of, result = self._known.pop((number, place))
                if of != name:
                    raise ParameterError(f"{self.folder}: holds the work of another version; delete the folder")
                results[place] = result
        missing = [place for place in range(len(items)) if place not in results]
        self._progress.begin(name, len(items), len(results))

        def done(where: int, result: Any) -> None:
            place = missing[where]
            results[place] = result
            self._keep(number, place, name, result)
            self._progress.one()

        self._engine(function, [items[place] for place in missing], done=done)
        return [results[place] for place in range(len(items))]

    def _keep(self, number: int, place: int, name: str, result: Any) -> None:
        try:
            pickle.dump((number, place, name, result), self._journal)
            self._journal.flush()
        except OSError as error:
            raise FileError(f"{self._journal.name}: cannot be written: {error.strerror or error}") from error

    def _read(self) -> bool:
        """What the journal knows; the last entry may be cut off where the work was stopped."""
        try:
            with open(os.path.join(self.folder, _JOURNAL), "rb") as file:
                told = json.loads(file.readline())
                if {key: told.get(key) for key in self._told} != self._told:
                    raise ParameterError(f"{self.folder}: is the work of another job (other seed); delete the folder")
                self.kept = told["kept"]
                with suppress(EOFError, pickle.UnpicklingError, AttributeError, IndexError):
                    while True:
                        number, place, name, result = pickle.load(file)
                        self._known[number, place] = (name, result)
        except FileNotFoundError:
            return False
        except (OSError, ValueError, KeyError):
            raise FileError(f"{self.folder}: its journal cannot be read; delete the folder") from None
        return bool(self._known)

    def _begin(self) -> None:
        """Begin the journal anew with what is known: the end of an old one may be half an entry."""
        path = os.path.join(self.folder, _JOURNAL)
        beside = f"{path}.new"
        try:
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            self._journal = os.fdopen(handle, "wb")
            self._journal.write(json.dumps({**self._told, "kept": self.kept}).encode() + b"\n")
            for (number, place), (name, result) in self._known.items():
                pickle.dump((number, place, name, result), self._journal)
            self._journal.flush()
            os.replace(beside, path)
        except OSError as error:
            raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error


class _Steps:
    """Progress of a whole job from that of its lists of tasks."""

    def __init__(self, tell: Progress | None) -> None:
        self._tell = tell
        self._shares: Mapping[str, float] = {}
        self._done, self._each = 0.0, 0.0

    def plan(self, lists: Sequence[tuple[str, float, int]]) -> None:
        total = sum(share * times for _, share, times in lists)
        self._shares = {name: share / total for name, share, _ in lists}

    def begin(self, name: str, items: int, known: int) -> None:
        share = self._shares.get(name, 0.0)
        self._each = share / max(items, 1)
        self._add(known * self._each if items else share)

    def one(self) -> None:
        self._add(self._each)

    def _add(self, share: float) -> None:
        self._done = min(self._done + share, 1.0)
        if self._tell is not None:
            self._tell(int(self._done * _STEPS), _STEPS)


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
