"""An engine: functions on lists of items, on the workers of a Dask scheduler.

A task that is lost with its worker is done again by another, so tasks must bear to be done twice. The function of a
list of tasks is written to the scratch folder once; with each task travels only its item.
"""

from __future__ import annotations

import os
import queue
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rankveil._version import __version__
from rankveil.cluster import memory as sizes
from rankveil.cluster.addresses import Address, parse
from rankveil.cluster.reaching import ANSWER, reached, silent
from rankveil.errors import ClusterError, FileError, ParameterError, listing
from rankveil.execute import cores

if TYPE_CHECKING:
    from rankveil.cluster.local import Local

T = TypeVar("T")
R = TypeVar("R")

_WITHOUT_WORKERS = 60.0
"""Seconds after which work that no worker is there for is given up."""

_LOOK = 0.5
"""Seconds from one look at the cluster to the next while nothing arrives."""

_USUAL_MEMORY = 2**31
"""Bytes that a worker is taken to have when it does not say."""

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
        self._own = tempfile.mkdtemp(prefix="rankveil-engine-", dir=self.scratch)
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
        shutil.rmtree(self._own, ignore_errors=True)

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
            self.workers = self.address.workers or cores()
            self.memory = memory // self.workers
            self.local = Local(self.workers, memory=memory, folder=self._own)
            self.notes = self.local.notes
            self._client = Client(self.local.cluster, set_as_default=False)
            return
        self._client = reached(self.address)
        self._check_workers()

    def _check_workers(self) -> None:
        """Refuse a cluster whose workers could not do the work, naming them."""
        try:
            self._client.wait_for_workers(1, timeout=ANSWER)
        except TimeoutError:
            raise ClusterError(f"cluster {self.address.text}: the scheduler has no workers") from None
        told = self._client.get_versions()
        own = told["client"]["host"]["python"].split(".")[:2]
        for who, what in {"the scheduler": told["scheduler"], **told["workers"]}.items():
            python = what["host"]["python"].split(".")[:2]
            if python != own:
                raise ClusterError(
                    f"cluster {self.address.text}: {who} runs Python {'.'.join(python)}, and this is "
                    f"{'.'.join(own)}; all must run the same"
                )
        found = self._client.run(_looking(), [])
        different = {worker: each["version"] for worker, each in found.items() if each["version"] != __version__}
        if different:
            shown = listing(f"{worker} has {version or 'none'}" for worker, version in different.items())
            raise ClusterError(f"cluster {self.address.text}: this is rankveil {__version__}, but {shown}")
        self.workers = len(found)
        limits = [int(each["memory_limit"]) for each in self._client.scheduler_info(n_workers=-1)["workers"].values()]
        self.memory = min((limit for limit in limits if limit), default=0) or _USUAL_MEMORY
        self.check_seen(())

    def check_seen(self, files: Sequence[str]) -> None:
        """Refuse workers that do not see the scratch folder, or some files."""
        token = os.path.join(self._own, f"token-{uuid.uuid4().hex}")
        with open(token, "w", encoding="ascii"):
            pass
        for worker, found in self._client.run(_looking(), [token, *files]).items():
            if not found["unseen"]:
                continue
            who = f"cluster {self.address.text}: the worker {worker} on {found['host']} does not see"
            if token in found["unseen"]:
                raise ClusterError(f"{who} {self.scratch}; name a scratch folder that all workers share")
            unseen = listing(found["unseen"], most=2)
            raise ClusterError(f"{who} {unseen}; the tables must lie where all workers see them")

    def __call__(
        self, function: Callable[[T], R], items: Sequence[T], /, *, done: Callable[[int, R], None] | None = None
    ) -> list[R]:
        """[function(item) for item in items]; `done(place, result)` is called here as results arrive."""
        if len(items) == 0:
            return []
        if self._client is None:
            raise ClusterError("the cluster was closed")
        futures: list[Any] = []
        path = self._written(function)
        try:
            with self._said_of_loss():
                futures = self._submitted(function, path, items)
                return self._collected(futures, done)
        finally:
            self._forget(futures)
            with suppress(OSError):
                os.unlink(path)

    each = __call__

    def _written(self, function: Callable[..., Any]) -> str:
        import cloudpickle

        path = os.path.join(self._own, f"function-{uuid.uuid4().hex}")
        try:
            with open(path, "wb") as file:
                cloudpickle.dump(function, file)
        except OSError as error:
            raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error
        return path

    def _submitted(self, function: Callable[..., Any], path: str, items: Sequence[Any]) -> list[Any]:
        import cloudpickle

        names = [f"{name_of(function)}-{uuid.uuid4().hex}-{place}" for place in range(len(items))]
        packed = [cloudpickle.dumps((__version__, path, item)) for item in items]
        with _by_wire():
            futures: list[Any] = self._client.map(_task(), packed, key=names, pure=False)
        return futures

    def _collected(self, futures: list[Any], done: Callable[[int, Any], None] | None) -> list[Any]:
        """The results, handed on as they arrive."""
        ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        for place, future in enumerate(futures):
            future.add_done_callback(partial(_put, ended, place))
        results: dict[int, Any] = {}
        watch = _Watch(self._client)
        while len(results) < len(futures):
            places = _taken(ended)
            if not places:
                watch.look()
                continue
            for place in places:
                if futures[place].status != "finished":
                    self._failed(futures[place])
            with _by_wire():
                arrived = self._client.gather([futures[place] for place in places])
            for place, result in zip(places, arrived, strict=True):
                results[place] = result
                if done is not None:
                    done(place, result)
        return [results[place] for place in range(len(futures))]

    def _failed(self, future: Any) -> None:
        if future.status == "error":
            raise future.exception()
        raise _LostError

    def _forget(self, futures: list[Any]) -> None:
        """What has not begun does not begin: after an error or Ctrl-C nobody waits for it."""
        waiting = [future for future in futures if not future.done()]
        if waiting and self._client is not None and self._client.status == "running":
            with silent(), suppress(Exception):
                self._client.cancel(waiting, force=True)

    @contextmanager
    def _said_of_loss(self) -> Iterator[None]:
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
            raise ClusterError(
                f"the task {str(error.task).partition('-')[0]} ended one worker after another: it takes {why}"
            ) from None
        except _LostError as error:
            raise ClusterError(f"cluster {self.address.text}: the connection to the scheduler was lost") from error


class _LostError(Exception):
    """A task was cancelled, but not by us, or the scheduler does not listen."""


@contextmanager
def _by_wire() -> Iterator[None]:
    """Something that is said to the scheduler: what goes wrong with that is its loss."""
    from concurrent.futures import CancelledError

    from distributed.client import ClosedClientError
    from distributed.comm.core import CommClosedError

    try:
        yield
    except (OSError, CommClosedError, CancelledError, ClosedClientError) as error:
        raise _LostError from error


class _Watch:
    """Gives up when no worker is there for a while."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._seen = time.monotonic()

    def look(self) -> None:
        """Once in a while, when nothing arrives."""
        if self._client.status not in ("running", "connecting"):
            raise _LostError
        if self._client.scheduler_info(n_workers=1)["workers"]:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > _WITHOUT_WORKERS:
            raise ClusterError(f"all workers are gone, for {_WITHOUT_WORKERS:.0f} seconds already")


def _looking() -> Callable[[list[str]], dict[str, Any]]:
    """A function that tells who a worker is, and which files it does not see; workers need no rankveil for it."""

    def look(files: list[str]) -> dict[str, Any]:
        import importlib
        import os
        import socket

        try:
            version = getattr(importlib.import_module("rankveil"), "__version__", "one without a version")
        except ImportError:
            version = None
        unseen = [path for path in files if not os.path.exists(path)]
        return {"host": socket.gethostname(), "version": version, "unseen": unseen}

    return look


def _task() -> Callable[[bytes], Any]:
    """A function that travels by its code, so that a scheduler without rankveil can pass it on."""
    return lambda task: __import__("rankveil.cluster.tasks", fromlist=["call"]).call(task)


def _put(ended: queue.SimpleQueue[int], place: int, _: Any) -> None:
    ended.put(place)


def _taken(ended: queue.SimpleQueue[int]) -> list[int]:
    """What has arrived, after waiting a little for the first."""
    try:
        places = [ended.get(timeout=_LOOK)]
        while True:
            places.append(ended.get_nowait())
    except queue.Empty:
        return places if "places" in locals() else []


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function, also of one with some arguments bound."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__name__", "task")


def _folder(scratch: str | os.PathLike[str] | None) -> str:
    """The scratch folder as a full path."""
    folder = os.path.abspath(tempfile.gettempdir() if scratch is None else os.fspath(scratch))
    if not os.path.isdir(folder):
        raise FileError(f"{folder}: there is no such folder for scratch files; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise FileError(f"{folder}: scratch files cannot be written there")
    return folder
