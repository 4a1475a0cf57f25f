"""The search for the nearest records against a comparison of all with all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rankveil import linkage
from rankveil.errors import ParameterError
from rankveil.linkage import LISTED, Linker, Metric
from rankveil.ranks import average_ranks

Array = NDArray[np.float64]

METRICS: list[Metric] = ["maximum", "euclidean"]
ENGINES = ["ready", "compiled"]


@contextmanager
def engine(name: str) -> Iterator[None]:
    """Tables of any size go to one engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linkage, "_LARGE", 0 if name == "compiled" else np.inf)
        patch.setattr(linkage, "_PAIRS", 0)
        yield


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


def all_distances(points: Array, queries: Array, *, metric: Metric = "maximum") -> Array:
    """Every distance (Euclidean: squared), attribute by attribute."""
    apart = np.zeros((len(queries), len(points)))
    for j in range(points.shape[1]):
        one = np.abs(queries[:, None, j] - points[None, :, j])
        apart = apart + one * one if metric == "euclidean" else np.maximum(apart, one)
    return apart


@settings(max_examples=150, deadline=None)
@given(clouds(), st.sampled_from(METRICS), st.sampled_from(ENGINES), st.sampled_from([1.0, 1 / 3, 1e12, 1e-12]))
def test_matches_are_those_of_a_full_comparison(
    cloud: tuple[Array, Array], metric: Metric, used: str, size: float
) -> None:
    points, queries = cloud[0] * size, cloud[1] * size
    apart = all_distances(points, queries, metric=metric)
    least = apart.min(axis=1)
    nearest = apart == least[:, None]
    with engine(used):
        linker = Linker(points, metric=metric)
        found = linker.matches(queries, most=None)
        distances = linker.distances(queries)
    assert np.array_equal(found.distance, np.sqrt(least) if metric == "euclidean" else least)
    assert np.array_equal(distances, found.distance)
    assert np.array_equal(found.count, nearest.sum(axis=1))
    assert np.array_equal(found.wanted_by, nearest.sum(axis=0))
    assert [rows.tolist() for rows in found.listed] == [np.flatnonzero(row).tolist() for row in nearest]
    assert found.first.tolist() == nearest.argmax(axis=1).tolist()


@settings(max_examples=100, deadline=None)
@given(clouds(), st.sampled_from(METRICS), st.sampled_from(ENGINES))
def test_the_best_match_has_the_smallest_sum_then_the_lowest_row(
    cloud: tuple[Array, Array], metric: Metric, used: str
) -> None:
    points, queries = cloud
    apart = all_distances(points, queries, metric=metric)
    sums = np.abs(queries[:, None, :] - points[None, :, :]).sum(axis=2)
    expected = [
        min(range(len(points)), key=lambda i: (row[i], total[i], i)) for row, total in zip(apart, sums, strict=True)
    ]
    with engine(used):
        assert Linker(points, metric=metric).best(queries).tolist() == expected


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(4))
def test_the_engine_makes_no_difference(metric: Metric, seed: int) -> None:
    """Sums in another order, or single precision, would find other records equally near."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(3000, 13))
    away = np.abs(points).max(axis=1) if metric == "maximum" else np.sqrt((points**2).sum(axis=1))
    points /= away[:, None]  # all as far from 0, but for the last digits
    queries = np.concatenate([np.zeros((1, 13)), 1e-17 * points[:20], 0.5 * points[:20]])
    apart = all_distances(points, queries, metric=metric)
    expected = apart == apart.min(axis=1, keepdims=True)
    for used in ENGINES:
        with engine(used):
            found = Linker(points, metric=metric).matches(queries, most=None)
        assert [rows.tolist() for rows in found.listed] == [np.flatnonzero(row).tolist() for row in expected]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("used", ENGINES)
def test_known_distances_shorten_the_search_only(metric: Metric, used: str) -> None:
    rng = np.random.default_rng(6)
    masked = average_ranks(np.round(rng.normal(size=(500, 3)), 1))
    original = masked[rng.permutation(500)] + rng.integers(-3, 4, (500, 3))
    apart = np.abs(original - masked)
    own = np.sqrt((apart**2).sum(axis=1)) if metric == "euclidean" else apart.max(axis=1)
    with engine(used):
        linker = Linker(masked, metric=metric)
        plain = linker.matches(original)
        for upto in (own, plain.distance, plain.distance / 2):  # the last ones are wrong
            found = linker.matches(original, upto=upto)
            assert np.array_equal(found.rows, plain.rows)
            assert np.array_equal(found.distance, plain.distance)
            assert np.array_equal(linker.distances(original, upto=upto), plain.distance)
            assert np.array_equal(linker.best(original, upto=upto), linker.best(original))


def test_queries_in_any_layout_get_the_same_answers() -> None:
    rng = np.random.default_rng(8)
    points, queries = rng.normal(size=(300, 4)), rng.normal(size=(100, 4))
    frozen = queries.copy()
    frozen.flags.writeable = False
    for used in ENGINES:
        with engine(used):
            expected = Linker(points).matches(queries).rows
            for other in (np.asfortranarray(queries), frozen, np.repeat(queries, 2, axis=0)[::2]):
                assert np.array_equal(Linker(np.asfortranarray(points)).matches(other).rows, expected)


def test_no_queries_have_no_answers() -> None:
    linker = Linker(np.ones((3, 2)))
    nobody = np.empty((0, 2))
    assert linker.distances(nobody).size == 0
    assert linker.best(nobody).size == 0
    found = linker.matches(nobody)
    assert (found.rows.size, found.count.size, found.wanted_by.tolist()) == (0, 0, [0, 0, 0])


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(ParameterError, match="metric must be maximum or euclidean, not 'cosine'"):
        Linker(np.ones((3, 2)), metric="cosine")  # type: ignore[arg-type]


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


@pytest.mark.parametrize("used", ENGINES)
def test_all_matches_are_counted_and_some_listed(used: str) -> None:
    with engine(used):
        found = Linker(np.ones((LISTED + 50, 2))).matches(np.array([[1.0, 3.0]]))
    assert found.distance.tolist() == [2.0]
    assert found.count.tolist() == [LISTED + 50]
    assert found.listed[0].tolist() == list(range(LISTED))
    assert found.wanted_by.tolist() == [1] * (LISTED + 50)


@pytest.mark.parametrize("used", ENGINES)
def test_the_lowest_records_of_several_groups_are_listed(used: str) -> None:
    points = np.where(np.arange(3 * LISTED) % 3 == 0, 0.0, 2.0)[:, None]
    with engine(used):
        found = Linker(points).matches(np.array([[1.0], [0.0]]))
        everyone = Linker(points).matches(np.array([[1.0]]), most=None)
    assert found.count.tolist() == [3 * LISTED, LISTED]
    assert found.listed[0].tolist() == list(range(LISTED))
    assert found.listed[1].tolist() == list(range(0, 3 * LISTED, 3))
    assert found.wanted_by.tolist() == [2, 1, 1] * LISTED
    assert everyone.rows.tolist() == list(range(3 * LISTED))


@pytest.mark.parametrize("used", ENGINES)
def test_many_ties_are_held_in_parts(monkeypatch: pytest.MonkeyPatch, used: str) -> None:
    rng = np.random.default_rng(3)
    points = rng.integers(0, 3, (60, 3)).astype(float)
    queries = rng.integers(0, 3, (40, 3)) + 0.5
    with engine(used):
        whole = Linker(points).matches(queries)
        monkeypatch.setattr("rankveil.linkage._AT_ONCE", 7)
        parts = Linker(points).matches(queries)
    assert [rows.tolist() for rows in whole.listed] == [rows.tolist() for rows in parts.listed]
    assert np.array_equal(whole.wanted_by, parts.wanted_by)


@pytest.mark.parametrize("used", ENGINES)
def test_queries_asked_in_parts_get_the_same_answers(monkeypatch: pytest.MonkeyPatch, used: str) -> None:
    rng = np.random.default_rng(4)
    points = rng.integers(0, 4, (50, 3)).astype(float)
    queries = rng.integers(0, 4, (40, 3)) + 0.5
    with engine(used):
        whole = Linker(points).matches(queries)
        best = Linker(points).best(queries)
        monkeypatch.setattr("rankveil.linkage._ASKED_AT_ONCE", 7)
        monkeypatch.setattr("rankveil.execute._WORTH_A_THREAD", 1)
        parts = Linker(points).matches(queries)
        assert [rows.tolist() for rows in whole.listed] == [rows.tolist() for rows in parts.listed]
        assert np.array_equal(whole.distance, parts.distance)
        assert np.array_equal(whole.count, parts.count)
        assert np.array_equal(whole.wanted_by, parts.wanted_by)
        assert np.array_equal(best, Linker(points).best(queries))
        assert np.array_equal(whole.distance, Linker(points).distances(queries))


@pytest.mark.parametrize("records", [9_000, 20_000], ids=ENGINES)
def test_a_search_that_is_stopped_by_the_keyboard_ends_in_good_order(records: int) -> None:
    """Threads that a stopped search leaves behind must not write into memory that was freed."""
    code = f"""
import os, signal, threading
import numpy as np
from rankveil.linkage import Linker
rng = np.random.default_rng(0)
linker, queries = Linker(rng.random(({records}, 16))), rng.random((400_000, 16))
linker.matches(queries[:5_000])  # whatever has to be compiled or built is
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
