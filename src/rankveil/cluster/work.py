"""The folder of one job in the scratch folder: what its tasks leave there, and a journal by which it can be resumed.

The folder is named after the job, so that the same command finds it again. Every list of tasks has a number, and each
task's result is kept under it as soon as it arrives. A job that is resumed takes the results that are there and does
the rest; what files a finished list of tasks left is as it was, as they are removed by later lists only.

Results are pickled, and whoever can write a pickle can run a program: so the journal's beginning and every result are
sealed with the user's key, and nothing is unpickled whose seal does not fit.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import pickle
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeVar

from rankveil._version import __version__
from rankveil.cluster.engine import Engine
from rankveil.cluster.sending import name_of
from rankveil.errors import ClusterError, FileError, ParameterError
from rankveil.files import user_key
from rankveil.files.user_key import is_sealed, seal
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
_SCHEMA = "rankveil/cluster-journal/2"
_HEAD = 8 + 64
"""Bytes before each result: its size, and its seal as hexadecimal digits."""
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
        self._run = secrets.token_hex(16)
        """Keeps this journal's results apart from those of other ones of the same user."""
        self._count = 0
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
        if found and not self._is_own(os.lstat(self.folder)):
            raise FileError(f"{self.folder}: others could have changed what lies there; delete the folder")
        try:
            path = os.path.join(self.folder, _LOCK)
            self._lock = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except OSError:
            raise FileError(f"{self.folder}: its lock cannot be opened; delete the folder") from None
        try:
            self._be_alone()
            found = found and self._read()
            self._begin()
        except BaseException:
            os.close(self._lock)
            raise
        return found

    @staticmethod
    def _is_own(found: os.stat_result) -> bool:
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022

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
            self._write((number, place, name, result))
            self._journal.flush()
        except OSError as error:
            raise FileError(f"{self._journal.name}: cannot be written: {error.strerror or error}") from error

    def _write(self, entry: tuple[int, int, str, Any]) -> None:
        content = pickle.dumps(entry)
        sealed = seal("cluster result", _bound(self._run, self._count, content))
        self._journal.write(len(content).to_bytes(8, "big") + sealed.encode("ascii") + content)
        self._count += 1

    def _read(self) -> bool:
        """What the journal knows; the last entry may be cut off where the work was stopped."""
        try:
            with open(os.path.join(self.folder, _JOURNAL), "rb") as file:
                line, sealed = file.readline(), file.readline()
                if not is_sealed("cluster journal", line, sealed.decode("ascii", "replace").strip()):
                    raise FileError(
                        f"{self.folder}: is not sealed with your key ({user_key.place() or 'there is none'}), so it "
                        "may be somebody else's work; delete the folder"
                    )
                told = json.loads(line)
                if {key: told.get(key) for key in self._told} != self._told:
                    raise ParameterError(f"{self.folder}: is the work of another job (other seed); delete the folder")
                self.kept = told["kept"]
                for number, item, name, result in _results(file, told["run"]):
                    self._known[number, item] = (name, result)
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
            with suppress(FileNotFoundError):
                os.unlink(beside)
            handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            self._journal = os.fdopen(handle, "wb")
            line = json.dumps({**self._told, "kept": self.kept, "run": self._run}).encode() + b"\n"
            self._journal.write(line + seal("cluster journal", line).encode("ascii") + b"\n")
            for (number, item), (name, result) in self._known.items():
                self._write((number, item, name, result))
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


def _results(file: BinaryIO, run: str) -> Iterator[tuple[int, int, str, Any]]:
    """The results of a journal, up to the first that is cut off or not sealed for its place."""
    for count in itertools.count():
        head = file.read(_HEAD)
        size = int.from_bytes(head[:8], "big")
        if size > os.fstat(file.fileno()).st_size:
            return
        content = file.read(size)
        if not is_sealed("cluster result", _bound(run, count, content), head[8:].decode("ascii", "replace")):
            return
        yield pickle.loads(content)


def _bound(run: str, count: int, content: bytes) -> bytes:
    return f"{run} {count} ".encode() + content


def _digest(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
