"""An engine: functions on lists of items, on the workers of a Dask scheduler.

A task that is lost with its worker is done again by another, so tasks must bear to be done twice.
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from rankveil import memory as sizes
from rankveil._version import __version__
from rankveil.cluster.addresses import Address, parse
from rankveil.cluster.own import Own
from rankveil.cluster.reaching import ANSWER, answered, reached, silent
from rankveil.cluster.sending import LostError, Sent
from rankveil.cluster.tasks import all_of
from rankveil.errors import ClusterError, FileError, ParameterError, listing
from rankveil.execute import cores

if TYPE_CHECKING:
    from rankveil.cluster.local import Local

T = TypeVar("T")
R = TypeVar("R")

_TOGETHER = 4
"""Items that travel together at most."""

_ROUNDS = 8
"""Tasks for each worker at least, so that all are busy to the end."""

_USUAL_MEMORY = 2**31
"""Bytes that a worker is taken to have when it does not say."""

_TRIES = 3
"""Times that workers are asked, when all of them are lost before one answers."""

_END = 60.0
"""Seconds that tasks under way have to end when what they write is to be removed."""

LEAST = 400 * 2**20
"""Bytes below which a local worker cannot work: its libraries and small parts of tables take 320 MiB."""

_OF_ALL = 0.8
"""The share of the memory that is left which local workers may use."""


class Engine:
    """Workers to do a job, from `open`; to be closed, or used in a `with` statement."""

    def __init__(
        self, address: str, *, memory: str | int | None = None, scratch: str | os.PathLike[str] | None = None
    ) -> None:
        self.address: Address = parse(address)
        self._check_dask()
        if not self.address.local:
            if scratch is None:
                raise ParameterError(
                    f"cluster {self.address.text}: name a scratch folder that all its workers see (--scratch)"
                )
            if memory is not None:
                raise ParameterError("memory is for local workers; those of a cluster have their own limits")
        self.scratch = _folder(scratch)
        """Where jobs make their folders."""
        self._folder = Own(self.scratch)
        self._own = self._folder.path
        self.local: Local | None = None
        self._client: Any = None
        self.notes: tuple[str, ...] = ()
        """What a person should know of it."""
        try:
            self._connect(None if memory is None else sizes.size_of(memory))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the workers go; local ones end."""
        if self._client is not None:
            with silent(), suppress(Exception):  # a scheduler that is gone cannot say goodbye
                self._client.close(timeout=2)
            self._client = None
        if self.local is not None:
            self.local.close()
            self.local = None
        self._folder.remove()

    @staticmethod
    def _check_dask() -> None:
        try:
            import distributed  # noqa: F401
        except ImportError:
            raise ParameterError("a cluster needs Dask: pip install 'rankveil[cluster]'") from None

    def _connect(self, memory: int | None) -> None:
        if self.address.local:
            from distributed import Client

            from rankveil.cluster.local import Local

            memory = memory or int(sizes.available() * _OF_ALL)
            self.workers = self.address.workers or max(1, min(cores(), memory // LEAST))
            self.memory = memory // self.workers
            self._check_memory(memory)
            self.local = Local(self.workers, memory=memory, folder=self._own)
            self.notes = self.local.notes
            self._client = Client(self.local.cluster, set_as_default=False)
            return
        self._client = reached(self.address)
        self._check_workers()

    def _check_memory(self, memory: int) -> None:
        """Refuse local workers that would be ended for want of memory before they had done anything."""
        if self.memory >= LEAST:
            return
        one = self.workers == 1
        raise ParameterError(
            f"cluster {self.address.text}: {'its worker needs' if one else 'each of its workers needs'} at least "
            f"{sizes.shown(LEAST)} and {sizes.shown(memory)} may be used{'' if one else ' by all'}; give more with "
            f"--memory (memory=){'' if one else ', or take fewer workers'}"
        )

    def _check_workers(self) -> None:
        """Refuse a cluster whose workers could not do the work, naming them."""
        try:
            self._client.wait_for_workers(1, timeout=ANSWER)
        except TimeoutError:
            raise ClusterError(f"cluster {self.address.text}: the scheduler has no workers") from None
        told = self._answered(self._client._get_versions())
        own = told["client"]["host"]["python"].split(".")[:2]
        for who, what in {"the scheduler": told["scheduler"], **told["workers"]}.items():
            python = what["host"]["python"].split(".")[:2]
            if python != own:
                raise ClusterError(
                    f"cluster {self.address.text}: {who} runs Python {'.'.join(python)}, and this is "
                    f"{'.'.join(own)}; all must run the same"
                )
        found = self._asked_of_all(_looking(), [])
        different = {worker: each["version"] for worker, each in found.items() if each["version"] != __version__}
        if different:
            shown = listing(f"{worker} has {version or 'none'}" for worker, version in different.items())
            raise ClusterError(f"cluster {self.address.text}: this is rankveil {__version__}, but {shown}")
        self.workers = len(found)
        known = self._answered(self._client.scheduler.identity(n_workers=-1))
        limits = [int(each["memory_limit"]) for each in known["workers"].values()]
        self.memory = min((limit for limit in limits if limit), default=0) or _USUAL_MEMORY
        self.check_seen(())

    def _asked_of_all(self, question: Callable[..., R], *given: Any) -> dict[str, R]:
        """What the workers say to a question; the work of one that is lost meanwhile is done by others."""
        for _ in range(_TRIES):
            said = self._answered(self._client._run(question, *given, on_error="return"))
            found = {worker: each for worker, each in said.items() if not isinstance(each, OSError)}
            for each in found.values():
                if isinstance(each, Exception):
                    raise each
            if found:
                return found
            with suppress(TimeoutError):
                self._client.wait_for_workers(1, timeout=ANSWER)
        raise ClusterError(f"cluster {self.address.text}: all workers were lost, {_TRIES} times one after the other")

    def _answered(self, question: Coroutine[Any, Any, R]) -> R:
        """What the scheduler or all workers say to a question."""
        return answered(self._client, question, self.address)

    def check_seen(self, files: Sequence[str]) -> None:
        """Refuse workers that do not see the scratch folder, or some files; at addresses two of them tell enough."""
        far = [path for path in files if "://" in path]
        files = [*(path for path in files if "://" not in path), *far[:1], *far[1:][-1:]]
        token = os.path.join(self._own, f"token-{uuid.uuid4().hex}")
        with open(token, "w", encoding="ascii"):
            pass
        for worker, found in self._asked_of_all(_looking(), [token, *files]).items():
            if not found["unseen"]:
                continue
            who = f"cluster {self.address.text}: the worker {worker} on {found['host']} does not see"
            if token in found["unseen"]:
                raise ClusterError(f"{who} {self.scratch}; name a scratch folder that all workers share")
            unseen = listing(found["unseen"], most=2)
            told = "the tables must lie where all workers see them"
            if far:
                told += ", and they need the same packages, keys and environment to reach an address"
            raise ClusterError(f"{who} {unseen}; {told}")

    def is_idle(self) -> bool:
        """Whether no worker is at a task of this engine any more, after waiting a while for those that are."""
        end = time.monotonic() + _END
        with suppress(Exception):  # nobody can say
            while time.monotonic() < end:
                if not any(self._asked_of_all(_at_work(), os.path.basename(self._own)).values()):
                    return True
                time.sleep(0.05)
        return False

    def __call__(
        self, function: Callable[[T], R], items: Sequence[T], /, *, done: Callable[[int, R], None] | None = None
    ) -> list[R]:
        """[function(item) for item in items]; `done(place, result)` is called here as results arrive."""
        if len(items) == 0:
            return []
        results: dict[int, R] = {}
        size = max(1, min(_TOGETHER, len(items) // (_ROUNDS * self.workers)))
        with self.said_of_loss(), self.sent(partial(all_of, function)) as tasks:
            tasks.submit([items[start : start + size] for start in range(0, len(items), size)])
            while len(results) < len(items):
                for number, made in tasks.arrived():
                    for place, result in enumerate(made, start=number * size):
                        results[place] = result
                        if done is not None:
                            done(place, result)
        return [results[place] for place in range(len(items))]

    each = __call__

    def sent(self, function: Callable[..., Any]) -> Sent:
        """A function for whose tasks the workers are ready; to be used within `said_of_loss`."""
        if self._client is None:
            raise ClusterError("the cluster was closed")
        return Sent(self._client, function, folder=self._own)

    def holding(self, shared: T) -> Holding[T]:
        """The workers, each with the same large thing, for tasks that are not all known at the beginning."""
        return Holding(self, shared)

    @contextmanager
    def said_of_loss(self) -> Iterator[None]:
        """Whatever the loss of a scheduler or of workers looks like, as one sentence."""
        from distributed import KilledWorker

        try:
            with silent():
                yield
        except KilledWorker as error:
            for_memory = self.local is not None and self.local.killed_for_memory
            why = (
                f"more memory than the {sizes.shown(self.memory)} that each may use"
                if for_memory
                else "perhaps more memory than they have"
            )
            remedy = (
                "give the workers more (--memory-limit of dask worker)"
                if self.local is None
                else "give more with --memory (memory=), or take fewer workers"
            )
            raise ClusterError(
                f"the task {str(error.task).partition('-')[0]} ended one worker after another: it takes {why}; {remedy}"
            ) from None
        except LostError as error:
            raise ClusterError(f"cluster {self.address.text}: the connection to the scheduler was lost") from error


class Holding(Generic[T]):
    """Workers that each hold the same large thing and do tasks with it, as `execute.Workers` does on this machine.

    It goes through the scratch folder, once, and each worker reads it once.
    """

    def __init__(self, engine: Engine, shared: T) -> None:
        self._engine, self._shared = engine, shared
        self._sent: Sent | None = None
        self._futures: list[Future[Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._sent is not None:
            self._sent.close()

    def submit(self, task: Callable[[T, Any], R], item: Any) -> Future[R]:
        """The result of a task, when it is there."""
        with self._engine.said_of_loss():
            if self._sent is None:
                self._sent = self._engine.sent(partial(with_shared, self._shared))
            self._sent.submit([(task, item)])
        future: Future[R] = Future()
        self._futures.append(future)
        return future

    def ready(self, futures: Collection[Future[R]]) -> set[Future[R]]:
        """Those that are done, one at least; what went wrong with a task is raised here."""
        while not (done := {future for future in futures if future.done()}):
            assert self._sent is not None
            with self._engine.said_of_loss():
                for number, result in self._sent.arrived():
                    self._futures[number].set_result(result)
        return done


def with_shared(shared: T, item: tuple[Callable[[T, Any], R], Any]) -> R:
    """A task with the large thing that a worker holds."""
    task, own = item
    return task(shared, own)


def _looking() -> Callable[[list[str]], dict[str, Any]]:
    """A function that tells who a worker is, and which files it does not see; workers need no rankveil for it."""

    def look(files: list[str]) -> dict[str, Any]:
        import importlib
        import os
        import socket

        def seen(path: str) -> bool:
            if "://" not in path:
                return os.path.exists(path)
            try:
                files, inner = importlib.import_module("fsspec.core").url_to_fs(path)
                return bool(files.exists(inner))
            except Exception:  # each package for places in a network has errors of its own
                return False

        try:
            version = getattr(importlib.import_module("rankveil"), "__version__", "one without a version")
        except ImportError:
            version = None
        unseen = [path for path in files if not seen(path)]
        return {"host": socket.gethostname(), "version": version, "unseen": unseen}

    return look


def _at_work() -> Callable[..., bool]:
    """A function that tells whether a worker has tasks of an engine that have not ended."""

    def looking(engine: str, dask_worker: Any = None) -> bool:
        ended = ("memory", "error", "released", "forgotten")
        return any(engine in str(key) and task.state not in ended for key, task in dask_worker.state.tasks.items())

    return looking


def _folder(scratch: str | os.PathLike[str] | None) -> str:
    """The scratch folder as a full path."""
    folder = os.path.abspath(tempfile.gettempdir() if scratch is None else os.fspath(scratch))
    if not os.path.isdir(folder):
        raise FileError(f"{folder}: there is no such folder for scratch files; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"{folder}: scratch files cannot be written there")
    return folder
