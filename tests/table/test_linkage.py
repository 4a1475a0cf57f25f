"""The search for the nearest records against a comparison of all with all."""

from __future__ import annotations

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


def test_many_ties_are_held_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    points = rng.integers(0, 3, (60, 3)).astype(float)
    queries = rng.integers(0, 3, (40, 3)) + 0.5
    whole = Linker(points).matches(queries)
    monkeypatch.setattr("rankveil.linkage._AT_ONCE", 7)
    parts = Linker(points).matches(queries)
    assert [rows.tolist() for rows in whole.listed] == [rows.tolist() for rows in parts.listed]
    assert np.array_equal(whole.wanted_by, parts.wanted_by)
