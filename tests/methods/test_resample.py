"""Resampling on five records, how its samples are drawn, and what more of them do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import rankveil as rv
from rankveil.catalogue import get_method
from rankveil.seeds import Seed

FALSE_ALARM = 1e-6

resample = get_method("resample")
X = np.array([30.0, 10.0, 50.0, 20.0, 40.0])


def resampled(x: Any, *, seed: int = 1, t: int = 1) -> Any:
    return resample(x, rng=Seed.of(seed).stream("a"), t=t)


@pytest.mark.parametrize("t", [1, 2, 3])
def test_five_records_by_hand(t: int) -> None:
    rng = Seed.of(1).stream("a")
    rng.bits(5)  # for ties
    samples = [sorted([10.0, 20.0, 30.0, 40.0, 50.0][int(5 * u)] for u in rng.random(5)) for _ in range(t)]
    low, second, middle, fourth, high = (sum(values) / t for values in zip(*samples, strict=True))
    assert np.allclose(resampled(X, t=t), [middle, low, high, second, fourth], rtol=1e-14)


def test_ranks_stay_and_values_come_from_the_column() -> None:
    x = np.random.default_rng(0).normal(size=999)
    one = resampled(x)
    assert np.all(np.isin(one, x))
    assert np.all(np.diff(one[np.argsort(x)]) >= 0)
    assert np.all(np.diff(resampled(x, t=7)[np.argsort(x)]) >= 0)


def test_every_value_is_drawn_with_replacement_equally_often() -> None:
    x = np.arange(40.0)
    counts = sum(np.bincount(resampled(x, seed=seed).astype(int), minlength=40) for seed in range(2_000))
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    # the least value is the least of the sample unless it was never drawn
    least = sum(resampled(X, seed=seed).min() == 10.0 for seed in range(3_000))
    assert stats.binomtest(int(least), 3_000, 1 - 0.8**5).pvalue > FALSE_ALARM


def test_more_samples_come_nearer() -> None:
    x = np.random.default_rng(0).exponential(size=5_000)
    far = [float(np.sqrt(np.mean((resampled(x, t=t) - x) ** 2))) for t in (1, 16)]
    assert far[1] < far[0] / 2


def test_which_of_tied_records_gets_which_value_is_drawn() -> None:
    x = np.array([1.0, 1.0, 1.0, 9.0])
    higher = [
        int(np.argmax(made[:3])) for seed in range(4_000) if (made := resampled(x, seed=seed)).tolist().count(9) == 2
    ]
    assert stats.chisquare(np.bincount(higher, minlength=3)).pvalue > FALSE_ALARM


def test_the_average_of_equal_values_is_that_value_and_large_ones_do_not_overflow() -> None:
    assert set(resampled(np.full(9, 0.1), t=7)) == {0.1}
    large = np.array([1.7e308, -1.7e308, 1.6e308])
    for seed in range(20):
        assert np.all(np.abs(resampled(large, seed=seed, t=5)) <= 1.7e308)


def test_so_many_samples_that_it_would_not_end_are_refused() -> None:
    with pytest.raises(rv.ParameterError, match="t must be a whole number from 1 to 1000"):
        rv.mask(pa.table({"A": [1.0, 2.0]}), "resample", t=10**15)
