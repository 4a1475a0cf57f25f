"""Independent tasks on the cores of this machine."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, Generic, Protocol, Self, TypeVar

from rankveil.errors import ClusterError

T = TypeVar("T")
R = TypeVar("R")
S_co = TypeVar("S_co", covariant=True)

_WORTH_A_THREAD = 20_000
"""Values below which starting threads costs more than it saves."""

PATIENCE = 2.0
"""Seconds of work that are not worth worker processes, which take about as long to start."""

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""By these, linear algebra in a worker keeps to the worker's own core."""

_limit: int | None = None
"""How many cores a worker process may use: several of them share the machine."""


def cores() -> int:
    """How many cores this process may use."""
    if _limit is not None:
        return _limit
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def keep_to(count: int) -> None:
    """This process is one of several that share the machine, and uses so many cores."""
    global _limit
    _limit = count


def in_threads(function: Callable[[T], R], items: Iterable[T], *, size: int) -> list[R]:
    """[function(item) for item in items], on all cores when `size` values make it worth while.

    The functions given here spend their time in numpy or compiled code, which releases the GIL.
    """
    work = list(items)
    workers = min(cores(), len(work))
    if workers < 2 or size < _WORTH_A_THREAD:
        return [function(item) for item in work]
    pool = ThreadPoolExecutor(workers)
    try:
        return list(pool.map(function, work))
    finally:  # after an error or Ctrl-C, what has not begun does not begin
        pool.shutdown(cancel_futures=True)


_guard = Lock()
_inside = 0
_limits: Any = None


@contextmanager
def one_core_algebra() -> Iterator[None]:
    """Linear algebra on one core while this lasts; what is worth more goes through `in_threads`.

    The threads of the libraries wait for each other without sleeping: where other work has the cores, most of the
    processor time of small products is that. Their limit is one of the whole program, so the last to leave lifts it.
    """
    global _inside, _limits
    with _guard:
        if _inside == 0:
            _limits = _libraries().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _guard:
            _inside -= 1
            if _inside == 0:
                _limits.restore_original_limits()


@cache
def _libraries() -> Any:
    """The libraries of this process that have threads; to look for them takes longer than a small audit."""
    import scipy.linalg  # noqa: F401 - it has a library of its own, which must be there to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class Pool(Protocol[S_co]):
    """Workers that each hold the same large thing and do tasks with it, wherever they are."""

    def submit(self, task: Callable[[S_co, Any], R], item: Any) -> Future[R]:
        """The result of a task, when it is there."""

    def ready(self, futures: Collection[Future[R]]) -> set[Future[R]]:
        """Those that are done, one at least."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let the workers go; after an error what has not begun does not begin."""


class Workers(Generic[T]):
    """Worker processes that each hold the same large thing and do tasks with it: it travels once, not with every task.

    `task(shared, item)` must be a function of a module. With one worker everything runs here, at once. With some
    `patience` so many seconds of work are done here first: small jobs end before processes would have started.
    """

    def __init__(self, shared: T, *, count: int, patience: float = 0.0) -> None:
        self._shared, self._count = shared, count
        self._patience = patience if count > 1 else math.inf
        self._pool: Any = None

    def __enter__(self) -> Self:
        return self

    def submit(self, task: Callable[[T, Any], R], item: Any) -> Future[R]:
        """The result of a task, when it is there."""
        if self._patience > 0:
            done: Future[R] = Future()
            begun = time.perf_counter()
            done.set_result(task(self._shared, item))
            self._patience -= time.perf_counter() - begun
            return done
        if self._pool is None:
            from loky import ProcessPoolExecutor

            self._pool = ProcessPoolExecutor(
                self._count, initializer=_hold, initargs=(self._shared,), env=dict.fromkeys(_THREADS, "1")
            )
        future: Future[R] = self._pool.submit(_with_held, task, item)
        return future

    def ready(self, futures: Collection[Future[R]]) -> set[Future[R]]:
        """Those that are done, one at least."""
        return set(wait(futures, return_when=FIRST_COMPLETED).done)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=kind is not None)
        if kind is not None and issubclass(kind, BrokenExecutor):
            raise ClusterError("a worker process was killed, perhaps for want of memory; try fewer workers") from None


_AHEAD = 4
"""Tasks that wait for each worker: enough to keep it busy, few enough that progress shows."""


def in_workers(
    task: Callable[[T, Any], R],
    shared: T,
    items: Sequence[Any],
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[R]:
    """[task(shared, item) for item in items], whatever the number of workers (one a core if worth it)."""
    count = min(workers or cores(), max(len(items), 1))
    made: list[R] = []
    waiting: deque[Future[R]] = deque()

    def take() -> None:
        made.append(waiting.popleft().result())
        if progress is not None:
            progress(len(made), len(items))

    with Workers(shared, count=count, patience=0.0 if workers else PATIENCE) as pool:
        for item in items:
            waiting.append(pool.submit(task, item))
            if len(waiting) > _AHEAD * count:
                take()
        while waiting:
            take()
    return made


_held: Any = None


def _hold(shared: Any) -> None:
    """A worker begins: it keeps what is shared, leaves Ctrl-C to the one who started it, and uses one core."""
    global _held
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _held = shared
    keep_to(1)


def _with_held(task: Callable[[Any, Any], R], item: Any) -> R:
    return task(_held, item)
