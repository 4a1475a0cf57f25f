"""The search for the nearest records against a comparison of all with all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rankveil.linkage import LISTED, Linker
from rankveil.ranks import average_ranks

Array = NDArray[np.float64]


@st.composite
def clouds(draw: st.DrawFn) -> tuple[Array, Array]:
    """Records and queries in rank space: heavy ties, copies, constant columns, 1 to 4 attributes."""
    m = draw(st.integers(1, 4))
    levels = [draw(st.sampled_from([1, 2, 3, 8, 1000])) for _ in range(m)]
    rows = st.tuples(*(st.integers(1, level) for level in levels))
    points = np.array(draw(st.lists(rows, min_size=1, max_size=30)), dtype=float)
    queries = np.array(draw(st.lists(rows, min_size=1, max_size=12)), dtype=float)
    shift = draw(st.sampled_from([0.0, 0.5]))
    return points, queries + shift


def all_distances(points: Array, queries: Array) -> Array:
    return np.asarray(np.abs(queries[:, None, :] - points[None, :, :]).max(axis=2))


@settings(max_examples=150, deadline=None)
@given(clouds())
def test_matches_are_those_of_a_full_comparison(cloud: tuple[Array, Array]) -> None:
    points, queries = cloud
    apart = all_distances(points, queries)
    nearest = apart == apart.min(axis=1, keepdims=True)
    linker = Linker(points)
    found = linker.matches(queries, most=None)
    assert np.array_equal(found.distance, apart.min(axis=1))
    assert np.array_equal(linker.distances(queries), apart.min(axis=1))
    assert np.array_equal(found.count, nearest.sum(axis=1))
    assert np.array_equal(found.wanted_by, nearest.sum(axis=0))
    assert [rows.tolist() for rows in found.listed] == [np.flatnonzero(row).tolist() for row in nearest]
    assert found.first.tolist() == nearest.argmax(axis=1).tolist()


@settings(max_examples=100, deadline=None)
@given(clouds())
def test_the_best_match_has_the_smallest_sum_then_the_lowest_row(cloud: tuple[Array, Array]) -> None:
    points, queries = cloud
    apart = np.abs(queries[:, None, :] - points[None, :, :])
    expected = [min(range(len(points)), key=lambda i: (row[i].max(), row[i].sum(), i)) for row in apart]
    assert Linker(points).best(queries).tolist() == expected


@pytest.mark.parametrize(
    "values",
    [lambda rng: rng.normal(size=(400, 3)), lambda rng: rng.integers(0, 5, (400, 3)), lambda rng: np.ones((400, 3))],
    ids=["no ties", "ties", "constant"],
)
def test_larger_tables(values: Callable[[np.random.Generator], Array]) -> None:
    rng = np.random.default_rng(7)
    points = average_ranks(np.asarray(values(rng), dtype=float))
    queries = average_ranks(np.asarray(values(rng), dtype=float))
    apart = all_distances(points, queries)
    nearest = apart == apart.min(axis=1, keepdims=True)
    found = Linker(points).matches(queries)
    assert np.array_equal(found.distance, apart.min(axis=1))
    assert np.array_equal(found.count, nearest.sum(axis=1))
    assert np.array_equal(found.wanted_by, nearest.sum(axis=0))
    for rows, row in zip(found.listed, nearest, strict=True):
        assert rows.tolist() == np.flatnonzero(row)[:LISTED].tolist()


def test_all_matches_are_counted_and_some_listed() -> None:
    found = Linker(np.ones((LISTED + 50, 2))).matches(np.array([[1.0, 3.0]]))
    assert found.distance.tolist() == [2.0]
    assert found.count.tolist() == [LISTED + 50]
    assert found.listed[0].tolist() == list(range(LISTED))
    assert found.wanted_by.tolist() == [1] * (LISTED + 50)


def test_the_lowest_records_of_several_groups_are_listed() -> None:
    points = np.where(np.arange(3 * LISTED) % 3 == 0, 0.0, 2.0)[:, None]
    found = Linker(points).matches(np.array([[1.0], [0.0]]))
    assert found.count.tolist() == [3 * LISTED, LISTED]
    assert found.listed[0].tolist() == list(range(LISTED))
    assert found.listed[1].tolist() == list(range(0, 3 * LISTED, 3))
    assert found.wanted_by.tolist() == [2, 1, 1] * LISTED
    everyone = Linker(points).matches(np.array([[1.0]]), most=None)
    assert everyone.rows.tolist() == list(range(3 * LISTED))


def test_many_ties_are_held_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    points = rng.integers(0, 3, (60, 3)).astype(float)
    queries = rng.integers(0, 3, (40, 3)) + 0.5
    whole = Linker(points).matches(queries)
    monkeypatch.setattr("rankveil.linkage._AT_ONCE", 7)
    parts = Linker(points).matches(queries)
    assert [rows.tolist() for rows in whole.listed] == [rows.tolist() for rows in parts.listed]
    assert np.array_equal(whole.wanted_by, parts.wanted_by)


def test_queries_asked_in_parts_get_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    points = rng.integers(0, 4, (50, 3)).astype(float)
    queries = rng.integers(0, 4, (40, 3)) + 0.5
    whole = Linker(points).matches(queries)
    best = Linker(points).best(queries)
    monkeypatch.setattr("rankveil.linkage._ASKED_AT_ONCE", 7)
    monkeypatch.setattr("rankveil.execute._WORTH_A_THREAD", 1)
    parts = Linker(points).matches(queries)
    assert [rows.tolist() for rows in whole.listed] == [rows.tolist() for rows in parts.listed]
    assert np.array_equal(whole.distance, parts.distance)
    assert np.array_equal(whole.count, parts.count)
    assert np.array_equal(best, Linker(points).best(queries))
    assert np.array_equal(whole.distance, Linker(points).distances(queries))


def test_a_search_that_is_stopped_by_the_keyboard_ends_in_good_order() -> None:
    """Threads that a stopped search leaves behind must not write into memory that was freed."""
    code = """
import os, signal, threading
import numpy as np
from rankveil.linkage import Linker
rng = np.random.default_rng(0)
linker, queries = Linker(rng.random((20_000, 8))), rng.random((400_000, 8))
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    linker.matches(queries)
except KeyboardInterrupt:
    del queries, linker
    rubbish = [np.ones(100_000) for _ in range(50)]
    assert all(each.sum() == 100_000 for each in rubbish)
    print("stopped")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped\n", "")
