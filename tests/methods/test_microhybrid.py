"""Hybrid data on five records, and the mean and covariance of every group."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyarrow import csv
from scipy import stats
from scipy.special import ndtri

import rankveil as rv
from rankveil import masking
from rankveil.catalogue import get_method
from rankveil.errors import ParameterError
from rankveil.microaggregation import mdav_groups
from rankveil.plans import Plan
from rankveil.seeds import CommonSeed, Seed
from rankveil.table import Table

FALSE_ALARM = 1e-6

Array = NDArray[np.float64]

microhybrid = get_method("microhybrid")
X = np.array([[11.0], [0.0], [12.0], [1.0], [10.0]])


def hybrid(x: Array, *, k: int, seed: int = 1) -> Array:
    made: Array = microhybrid(x, k=k, rng=Seed.of(seed).stream("a"))
    return made


def test_five_records_by_hand() -> None:
    # the mean is 6.8, 0 is farthest and its nearest is 1: groups {0, 1} and {10, 11, 12}
    e = ndtri(Seed.of(1).stream("a").random(5))
    made = hybrid(X, k=2)[:, 0]
    pair, triple = [1, 3], [0, 2, 4]
    for rows, centre, squares in ((pair, 0.5, 0.5), (triple, 11.0, 2.0)):
        rest = e[rows] - e[rows].mean()
        assert np.allclose(made[rows], centre + rest * np.sqrt(squares / np.sum(rest**2)), rtol=1e-13)
    assert np.allclose(np.sort(made[pair]), [0, 1], atol=1e-14)


@given(n=st.integers(2, 60), m=st.integers(1, 6), k=st.integers(2, 9), whole=st.booleans(), seed=st.integers(0, 10**6))
def test_groups_keep_their_means_and_covariances(n: int, m: int, k: int, whole: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, (n, m)).astype(float) if whole else rng.lognormal(0, 3, (n, m))
    if k > n:
        with pytest.raises(ParameterError, match="larger than the number of records"):
            hybrid(x, k=k)
        return
    made = hybrid(x, k=k, seed=seed)
    groups = mdav_groups(x, k=k)
    for group in np.unique(groups):
        before, after = x[groups == group], made[groups == group]
        size = np.abs(before).max(axis=0)
        assert np.all(np.abs(after.mean(axis=0) - before.mean(axis=0)) <= 1e-12 * size)
        agree = np.ptp(before, axis=0) == 0
        assert np.array_equal(after[:, agree], before[:, agree])
        spread = before.std(axis=0)
        scale = np.outer(spread, spread)
        digits = np.finfo(float).eps * np.max(size / np.where(agree, np.inf, spread))
        found, wanted = (np.atleast_2d(np.cov(part.T, bias=True)) for part in (after, before))
        assert np.all(np.abs(found - wanted)[scale > 0] <= (1e-10 + 100 * digits) * scale[scale > 0])


def test_census_keeps_means_and_covariances(reference_data: Callable[[str], Path]) -> None:
    data = csv.read_csv(reference_data("census"))
    drawn = masking.apply(Table(data), Plan.of("microhybrid"), seed=Seed.of(1), grid=False).values
    before = np.column_stack([data[name].to_numpy() for name in data.column_names]).astype(float)
    after = np.column_stack([drawn[name] for name in data.column_names])
    assert np.allclose(after.mean(axis=0), before.mean(axis=0), rtol=1e-12)
    assert np.allclose(np.cov(after.T), np.cov(before.T), rtol=1e-9, atol=0)
    assert np.mean(after == before) < 0.05  # only where a group agrees
    total, other, earned = (after[:, data.column_names.index(name)] for name in ("PTOTVAL", "POTHVAL", "PEARNVAL"))
    assert np.allclose(total, other + earned, rtol=0, atol=1e-9 * np.std(total))
    # released as whole numbers, each at most half a unit from what was drawn
    made = rv.mask(data, "microhybrid", columns=data.column_names, seed=CommonSeed.of(1)).data
    released = np.column_stack([made[name].to_numpy() for name in data.column_names])
    assert np.array_equal(released, np.rint(released))
    assert np.max(np.abs(released - after)) <= 0.5


def test_a_pair_is_kept_or_exchanged_equally_often() -> None:
    x = np.array([[0.0, 5.0], [1.0, 7.0]])
    kept = 0
    for seed in range(2_000):
        made = hybrid(x, k=2, seed=seed)
        same = np.allclose(made, x, atol=1e-12)
        assert same or np.allclose(made, x[::-1], atol=1e-12)
        kept += same
    assert stats.binomtest(kept, 2_000).pvalue > FALSE_ALARM


def test_one_group_is_ipso() -> None:
    x = np.random.default_rng(0).normal(size=(30, 3))
    made = hybrid(x, k=30)
    wanted = get_method("ipso")(x, np.empty((30, 0)), rng=Seed.of(1).stream("a")).values
    # the same draws and the same covariance, of columns that are scaled otherwise on the way
    assert np.allclose(np.cov(made.T), np.cov(wanted.T))
    assert np.allclose(made, wanted)


@pytest.mark.parametrize("scale", [1e-300, 1e12, 1e290])
def test_numbers_of_any_size(scale: float) -> None:
    x = np.random.default_rng(1).normal(size=(40, 3))
    assert np.allclose(hybrid(x * scale, k=5) / scale, hybrid(x, k=5), rtol=1e-9)
