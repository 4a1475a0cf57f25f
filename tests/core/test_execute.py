"""Tasks on threads and on worker processes: the same results, in order, and an end when something fails."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable

import pytest

from rankveil import execute
from rankveil.execute import Workers, in_threads, in_workers, one_core_algebra


def whoami() -> Callable[[int, int], tuple[int, int]]:
    """A function that travels by its text: workers cannot import this module."""

    def task(shared: int, item: int) -> tuple[int, int]:
        return os.getpid(), execute.cores()

    return task


def failing() -> Callable[[int, int], int]:
    def task(shared: int, item: int) -> int:
        if item == 3:
            raise ValueError("three")
        return item

    return task


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order(workers: int) -> None:
    seen: list[tuple[int, int]] = []
    made = in_workers(
        operator.add, 100, range(23), workers=workers, progress=lambda done, total: seen.append((done, total))
    )
    assert made == [100 + item for item in range(23)]
    assert seen == [(done, 23) for done in range(1, 24)]
    assert in_workers(operator.add, 1, [], workers=workers) == []


def test_workers_are_processes_with_one_core_each() -> None:
    found = in_workers(whoami(), 0, range(12), workers=2)
    assert os.getpid() not in {pid for pid, _ in found}
    assert {cores for _, cores in found} == {1}
    assert in_workers(whoami(), 0, [1], workers=1) == [(os.getpid(), execute.cores())]


def test_with_patience_the_first_seconds_of_work_are_done_here() -> None:
    with Workers(0, count=2, patience=1e-9) as pool:
        first, second = (pool.submit(whoami(), 0).result()[0] for _ in range(2))
    assert first == os.getpid() != second
    with Workers(0, count=2, patience=1e9) as pool:
        assert {pool.submit(whoami(), 0).result()[0] for _ in range(3)} == {os.getpid()}


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_task_raises_comes_out(workers: int) -> None:
    with pytest.raises(ValueError, match="three"):
        in_workers(failing(), 0, range(6), workers=workers)


def test_workers_hold_what_is_shared_once() -> None:
    with Workers([1, 2, 3], count=1) as pool:
        assert pool.submit(lambda shared, item: shared[item], 2).result() == 3


def test_threads_keep_the_order_and_the_error() -> None:
    assert in_threads(lambda item: item * 2, range(50), size=10**6) == [item * 2 for item in range(50)]
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda item: 1 // (item - 2), range(5), size=10**6)


def _threads_of_algebra() -> set[int]:
    import scipy.linalg  # noqa: F401 - with a library of its own
    from threadpoolctl import threadpool_info

    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_algebra_keeps_to_one_core_until_the_last_has_left() -> None:
    from threadpoolctl import threadpool_limits

    assert _threads_of_algebra()
    with threadpool_limits(2, user_api="blas"):
        before = _threads_of_algebra()
        first, second = one_core_algebra(), one_core_algebra()
        first.__enter__()
        second.__enter__()
        assert _threads_of_algebra() == {1}
        first.__exit__(None, None, None)  # before the one that came after it, as in two threads
        assert _threads_of_algebra() == {1}
        second.__exit__(None, None, None)
        assert _threads_of_algebra() == before == {2}


def test_algebra_has_its_cores_back_after_an_error() -> None:
    before = _threads_of_algebra()
    with pytest.raises(ValueError, match="no"), one_core_algebra():
        raise ValueError("no")
    assert _threads_of_algebra() == before
