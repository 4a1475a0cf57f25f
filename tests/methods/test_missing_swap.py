"""Swapping of missing cells: as many are missing, the values stay, and where they are missing tells nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rankveil as rv
from rankveil.methods.missing_swap import missing_swap
from rankveil.seeds import Seed

FALSE_ALARM = 1e-6


def run(column: Any, *, seed: int = 1, **given: Any) -> Any:
    """One column, NaN where cells are missing, masked."""
    x = np.asarray(column, dtype=np.float64)[:, None]
    gone = np.isnan(x)
    made = missing_swap(np.where(gone, 0.0, x), gone, rng=Seed.of(seed).stream("a"), **given)
    return np.where(made.missing, np.nan, made.values)[:, 0], made


def test_five_records() -> None:
    for seed in range(20):
        masked, made = run([1.0, np.nan, 3.0, 4.0, np.nan], seed=seed)
        assert made.counts["swapped"].tolist() == [2]
        assert not np.isnan(masked[[1, 4]]).any()
        assert np.sort(masked[~np.isnan(masked)]).tolist() == [1.0, 3.0, 4.0]
        kept = ~np.isnan(masked)[[0, 2, 3]]
        assert kept.sum() == 1
        assert masked[[0, 2, 3]][kept] == np.array([1.0, 3.0, 4.0])[kept]


def test_a_share_of_them_and_more_missing_than_there() -> None:
    masked, made = run([1.0, np.nan, np.nan, np.nan], share=1.0)
    assert made.counts["swapped"].tolist() == [1]
    assert np.isnan(masked[0])
    assert np.isnan(masked).sum() == 3
    _, made = run([1.0, 2.0, 3.0, 4.0, np.nan, np.nan, np.nan, np.nan], share=0.5)
    assert made.counts["swapped"].tolist() == [2]
    same, made = run([1.0, np.nan, 2.0], share=0.0)
    assert np.array_equal(same, [1.0, np.nan, 2.0], equal_nan=True)
    nothing, made = run([1.0, 2.0])
    assert nothing.tolist() == [1.0, 2.0]


@given(
    st.lists(st.one_of(st.just(np.nan), st.integers(0, 5).map(float)), min_size=1, max_size=30),
    st.floats(0, 1),
    st.integers(0, 1000),
)
def test_numbers_of_missing_cells_and_values_stay(column: list[float], share: float, seed: int) -> None:
    before = np.array(column)
    masked, made = run(before, share=share, seed=seed)
    assert np.array_equal(np.sort(masked), np.sort(before), equal_nan=True)
    moved = np.isnan(before) & ~np.isnan(masked)
    assert moved.sum() == made.counts["swapped"][0]
    there = ~np.isnan(before) & ~np.isnan(masked)
    assert np.array_equal(masked[there], before[there])


def test_each_that_is_there_is_as_likely_to_go() -> None:
    times, column = 4000, [np.nan, 1.0, 2.0, np.nan, 3.0, 4.0, 5.0, 6.0]
    gone, received = np.zeros(8), np.zeros((8, 7))
    for seed in range(times):
        masked, _ = run(column, seed=seed)
        gone += np.isnan(masked)
        received[0, int(masked[0])] += 1
    there = ~np.isnan(column)
    assert gone[~there].sum() == 0
    limit = stats.norm.isf(FALSE_ALARM / 12)
    assert np.abs(gone[there] - times / 3).max() < limit * np.sqrt(times * 2 / 9)
    assert np.abs(received[0, 1:] - times / 6).max() < limit * np.sqrt(times * 5 / 36)


def test_which_is_missing_no_longer_depends_on_another_column() -> None:
    rng = np.random.default_rng(1)
    age = rng.integers(18, 90, 2000).astype(float)
    income = np.where(age > 65, np.nan, 1000 * age)
    masked, _ = run(income)
    old = np.mean(age[np.isnan(masked)]) - np.mean(age)
    assert np.mean(age[np.isnan(income)]) - np.mean(age) > 20
    assert old < 0  # those that were missing have values now


def test_a_release_of_every_kind() -> None:
    data = rv.datasets.census(500)
    names = ["EDUCATION", "OCCUPATION", "INCOME", "AGE"]
    release = rv.mask(data, "missing_swap", columns=names, seed=1)
    for name in names:
        before, after = data[name].to_pylist(), release.data[name].to_pylist()
        assert sorted(map(str, after)) == sorted(map(str, before))
        assert after.count(None) == before.count(None)
    assert data["INCOME"].to_pylist() != release.data["INCOME"].to_pylist()
    assert release.manifest["marginals"] == "kept"
    assert "missing_swap: no cell is missing, so nothing was swapped, in AGE" in release.notes
    assert not any("stood at their column's mean" in note for note in release.notes)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_whole_numbers_with_gaps(kind: str) -> None:
    data: Any = rv.datasets.census(200)
    data = data.to_pandas() if kind == "pandas" else pytest.importorskip("polars").from_arrow(data)
    made = rv.mask(data, "missing_swap", columns=["INCOME"], seed=2).data
    assert made["INCOME"].dtype == data["INCOME"].dtype
