"""Tasks of one function on their way to the workers of a Dask scheduler, and their results on the way back.

The function is written to a folder that all workers see, once, and each worker reads it once; with a task travels only
its item. So what a function holds, such as a table, travels once too.
"""

from __future__ import annotations

import asyncio
import os
import queue
import time
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Self

from rankveil._version import __version__
from rankveil.cluster.reaching import silent
from rankveil.cluster.tasks import all_of
from rankveil.errors import ClusterError, FileError

_WITHOUT_WORKERS = 60.0
"""Seconds after which work that no worker is there for is given up."""

_LOOK = 0.5
"""Seconds from one look at the cluster to the next while nothing arrives."""

_ASK = 5.0
"""Seconds from one question to the scheduler to the next, which it must answer."""

SILENCE = 45.0
"""Seconds after which a scheduler that does not answer is given up, as one whose process was stopped."""


class LostError(Exception):
    """A task was cancelled, but not by us, or the scheduler does not listen."""


class Sent:
    """The tasks of a function that are under way; to be used in a `with` statement.

    At its end what has not begun does not begin, and the function's file is gone.
    """

    def __init__(self, client: Any, function: Callable[..., Any], *, folder: str) -> None:
        self._client = client
        self._name = f"{name_of(function)}-{os.path.basename(folder)}"
        self._futures: dict[int, Any] = {}
        self._count = 0
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._watch = _Watch(client)
        self._path = _written(function, folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, items: Sequence[Any]) -> None:
        """Send some items; they are counted from 0 in the order in which they were sent."""
        import cloudpickle

        places = range(self._count, self._count + len(items))
        names = [f"{self._name}-{uuid.uuid4().hex}-{place}" for place in places]
        packed = [cloudpickle.dumps((__version__, self._path, item)) for item in items]
        with _by_wire():
            futures = self._client.map(_task(), packed, key=names, pure=False)
        self._count += len(items)
        self._futures |= dict(zip(places, futures, strict=True))
        for place, future in zip(places, futures, strict=True):
            future.add_done_callback(partial(_put, self._ended, place))

    def arrived(self) -> list[tuple[int, Any]]:
        """Results that have arrived since, with the numbers of their items; at least one, unless nothing is awaited."""
        while self._futures:
            places = _taken(self._ended)
            if not places:
                self._watch.look()
                continue
            places = [place for place in places if self._is_there(place)]
            if not places:
                continue
            with _by_wire():
                results = self._gathered([self._futures[place] for place in places])
            for place in places:
                del self._futures[place]
            return list(zip(places, results, strict=True))
        return []

    def _is_there(self, place: int) -> bool:
        """Whether a task that ended has a result; one that was lost with its worker is computed and awaited again."""
        future = self._futures[place]
        if future.status == "error":
            raise future.exception()
        if future.status in ("lost", "pending"):
            future.add_done_callback(partial(_put, self._ended, place))
            return False
        if future.status != "finished":
            raise LostError
        return True

    def _gathered(self, ended: list[Any]) -> list[Any]:
        """The results of tasks that have ended; the scheduler may fall silent also now."""
        asked = self._watch.asked(self._client.gather(ended, asynchronous=True))
        try:
            while not wait([asked], timeout=_LOOK).done:
                self._watch.look()
            results: list[Any] = asked.result()
            return results
        finally:
            asked.cancel()

    def close(self) -> None:
        """After an error or Ctrl-C nobody waits for what is under way."""
        waiting = [future for future in self._futures.values() if not future.done()]
        if waiting and self._client.status == "running":
            with silent(), suppress(Exception):
                self._client.cancel(waiting, force=True)
        self._futures = {}
        with suppress(OSError):
            os.unlink(self._path)


class _Watch:
    """Gives up when the scheduler does not answer, or no worker is there, for a while."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._looked = time.monotonic()
        self._question: Future[Any] | None = None
        self._since_asked, self._without_workers = 0.0, 0.0

    def asked(self, question: Coroutine[Any, Any, Any]) -> Future[Any]:
        """The answer to something that is asked, when it comes."""
        return asyncio.run_coroutine_threadsafe(question, self._client.loop.asyncio_loop)

    def look(self) -> None:
        """Once in a while, when nothing arrives."""
        if self._client.status not in ("running", "connecting"):
            raise LostError
        now = time.monotonic()
        passed = min(now - self._looked, 2 * _LOOK)  # not the time in which this process itself was stopped
        self._looked = now
        self._since_asked += passed
        self._without_workers += passed
        if self._question is None:
            if self._since_asked >= _ASK:
                self._question = self.asked(self._client.scheduler.identity(n_workers=1))
                self._since_asked = 0.0
        elif self._question.done():
            if self._question.exception() is None and self._question.result()["workers"]:
                self._without_workers = 0.0
            self._question, self._since_asked = None, 0.0
        elif self._since_asked > SILENCE:
            self._question.cancel()
            raise LostError
        if self._without_workers > _WITHOUT_WORKERS + _ASK:
            raise ClusterError(f"all workers are gone, for {_WITHOUT_WORKERS:.0f} seconds already")


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function, also of one with some arguments bound."""
    while isinstance(function, partial):
        function = function.args[0] if function.func is all_of else function.func
    return getattr(function, "__name__", "task")


def _written(function: Callable[..., Any], folder: str) -> str:
    """The file of a function, which may hold original data: for its owner alone."""
    import cloudpickle

    path = os.path.join(folder, f"function-{uuid.uuid4().hex}")
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            cloudpickle.dump(function, file)
    except OSError as error:
        with suppress(OSError):
            os.unlink(path)
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


@contextmanager
def _by_wire() -> Iterator[None]:
    """Something that is said to the scheduler: what goes wrong with that is its loss."""
    from concurrent.futures import CancelledError

    from distributed.client import ClosedClientError
    from distributed.comm.core import CommClosedError

    try:
        yield
    except (OSError, CommClosedError, CancelledError, ClosedClientError) as error:
        raise LostError from error


def _task() -> Callable[[bytes], Any]:
    """A function that travels by its code, so that a scheduler without rankveil can pass it on."""
    return lambda task: __import__("rankveil.cluster.tasks", fromlist=["call"]).call(task)


def _put(ended: queue.SimpleQueue[int], place: int, _: Any) -> None:
    ended.put(place)


def _taken(ended: queue.SimpleQueue[int]) -> list[int]:
    """What has arrived, after waiting a little for the first."""
    places: list[int] = []
    with suppress(queue.Empty):
        places.append(ended.get(timeout=_LOOK))
        while True:
            places.append(ended.get_nowait())
    return places
