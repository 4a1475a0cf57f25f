"""Independent tasks on the cores of this machine."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache, partial
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

_SAFE_PATH = "PYTHONSAFEPATH"
"""With it Python does not look for modules in the working folder, where somebody else's files may lie."""

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


_AGAIN = 2
"""Times that processes are started again when one of them was killed."""


class Workers(Generic[T]):
    """Worker processes that each hold the same large thing and do tasks with it: it travels once, not with every task.

    `task(shared, item)` must be a function of a module. With one worker everything runs here, at once. With some
    `patience` so many seconds of work are done here first: small jobs end before processes would have started. When
    one is killed, mostly for want of memory, what was under way is done again by one fewer. Whoever awaits a result
    does so with `ready`.
    """

    def __init__(self, shared: T, *, count: int, patience: float = 0.0) -> None:
        self._shared, self._count = shared, count
        self._patience = patience if count > 1 else math.inf
        self._pool: Any = None
        self._under_way: dict[Future[Any], tuple[Future[Any], Callable[[T, Any], Any], Any]] = {}
        self._broken = 0

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
        future: Future[R] = Future()
        self._send(future, task, item)
        return future

    def _send(self, future: Future[Any], task: Callable[[T, Any], Any], item: Any) -> None:
        if self._pool is None:
            from loky import ProcessPoolExecutor

            own = {**dict.fromkeys(_THREADS, "1"), _SAFE_PATH: "1"}
            with _safe_path():
                self._pool = ProcessPoolExecutor(self._count, initializer=_hold, initargs=(self._shared,), env=own)
        try:
            sent: Future[Any] = self._pool.submit(_with_held, task, item)
        except BrokenExecutor as error:  # `ready` sees it
            sent = Future()
            sent.set_exception(error)
        self._under_way[future] = sent, task, item
        sent.add_done_callback(partial(_hand_over, future))

    def ready(self, futures: Collection[Future[R]]) -> set[Future[R]]:
        """Those that are done, one at least."""
        while not (done := {future for future in futures if future.done()}):
            ended = wait([self._under_way[future][0] for future in futures], return_when=FIRST_COMPLETED).done
            lost = next((sent.exception() for sent in ended if isinstance(sent.exception(), BrokenExecutor)), None)
            if lost is not None:
                self._begin_again(lost)
            else:
                time.sleep(0)  # its result is handed over by another thread
        for future in done:
            self._under_way.pop(future, None)
        return done

    def _begin_again(self, error: BaseException) -> None:
        """A worker was killed, and the others with it: start them again, one fewer, with what they had not done."""
        self._broken += 1
        if self._broken > _AGAIN:
            raise error
        self._pool.shutdown(wait=True, kill_workers=True)
        self._pool, self._count = None, max(self._count - 1, 1)
        for future, (sent, task, item) in list(self._under_way.items()):
            if not sent.done() or sent.cancelled() or isinstance(sent.exception(), BrokenExecutor):
                self._send(future, task, item)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=kind is not None)
        if kind is not None and issubclass(kind, BrokenExecutor):
            raise ClusterError(
                "a worker process was killed again and again, perhaps for want of memory; try fewer workers"
            ) from None


def _hand_over(future: Future[Any], sent: Future[Any]) -> None:
    """Give the result of a task to whoever waits for it, unless its worker was lost: then it is done again."""
    if sent.cancelled() or isinstance(sent.exception(), BrokenExecutor):
        return
    error = sent.exception()
    future.set_result(sent.result()) if error is None else future.set_exception(error)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Start what watches over worker processes so that it does not look for modules in the working folder."""
    from multiprocessing import resource_tracker as of_python

    from loky.backend import resource_tracker as of_loky

    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        of_python.ensure_running()
        of_loky.ensure_running()
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


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
        while not waiting[0].done():
            pool.ready([waiting[0]])
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
