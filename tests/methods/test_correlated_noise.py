"""Correlated noise on five records, its covariance, singular tables, and the correction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from scipy import stats
from scipy.special import ndtri

import rankveil as rv
from rankveil import masking
from rankveil.catalogue import get_method
from rankveil.plans import Plan
from rankveil.seeds import Seed
from rankveil.table import Table

FALSE_ALARM = 1e-6

correlated_noise = get_method("correlated_noise")
A = np.array([30.0, 10.0, 50.0, 20.0, 40.0])  # the population standard deviation is 10 sqrt(2)


def test_five_records_by_hand() -> None:
    # the second column is twice the first: R is all ones, its root all 1 / sqrt(2)
    stream = Seed.of(1).stream("a")
    e, f = ndtri(stream.random(5)), ndtri(stream.random(5))
    noise = 10 * np.sqrt(2) * (e + f) / np.sqrt(2)
    x = np.column_stack([A, 2 * A])
    made = correlated_noise(x, np.isnan(x), gamma=0.25, rng=Seed.of(1).stream("a"))
    assert np.allclose(made, np.column_stack([A + 0.5 * noise, 2 * A + 0.5 * 2 * noise]), rtol=1e-13)
    # uncorrelated columns: each gets its own
    b = np.array([1.0, 1.0, 1.0, -1.5, -1.5])  # sum of products with A - 30 is 0
    made = correlated_noise(
        np.column_stack([A, b]), np.zeros((len(A), 2), dtype=bool), gamma=1.0, rng=Seed.of(1).stream("a")
    )
    assert np.allclose(made, np.column_stack([A + 10 * np.sqrt(2) * e, b + np.sqrt(1.5) * f]), rtol=1e-13)


def test_each_column_may_have_its_own_strength() -> None:
    data = pa.table({"A": A, "B": 2 * A, "C": A[::-1].copy()})
    stronger, plain = (
        masking.apply(Table(data), Plan.of("correlated_noise", **given), seed=Seed.of(1), grid=False).values
        for given in ({"gamma": {"A": 0.4}}, {})
    )
    off = {name: stronger[name] - data[name].to_numpy() for name in "ABC"}
    base = {name: plain[name] - data[name].to_numpy() for name in "ABC"}
    assert np.allclose(off["A"], 2 * base["A"])
    assert np.allclose(off["B"], base["B"])
    assert np.allclose(off["C"], base["C"])


def test_the_noise_is_normal_with_the_declared_covariance() -> None:
    rng = np.random.default_rng(0)
    n, gamma = 40_000, 0.3
    x = np.asfortranarray(rng.exponential(1.0, (n, 3)) @ np.array([[1.0, 0.5, 0], [0, 2, 1], [0, 0, 5]]))
    noise = correlated_noise(x, np.isnan(x), gamma=gamma, rng=Seed.of(2).stream("a")) - x
    independent = noise @ np.linalg.inv(np.linalg.cholesky(gamma * np.cov(x.T, bias=True))).T
    for column in independent.T:
        assert stats.kstest(column, "norm").pvalue > FALSE_ALARM
        squares = float(np.sum(column**2))
        assert 2 * min(stats.chi2.cdf(squares, n), stats.chi2.sf(squares, n)) > FALSE_ALARM
    between = np.corrcoef(np.column_stack([independent, x]).T)[:3]
    limit = stats.norm.isf(FALSE_ALARM / 2 / 12) / np.sqrt(n)
    assert np.all(np.abs(between[np.triu_indices(3, 1, m=6)]) < limit)


def test_what_adds_up_exactly_adds_up_but_for_the_grid(reference_data: Callable[[str], Path]) -> None:
    data = csv.read_csv(reference_data("census"))
    plan = Plan.of("correlated_noise", gamma=0.5)
    drawn = masking.apply(Table(data), plan, seed=Seed.of(1), grid=False).values
    total, other, earned = (drawn[name] for name in ("PTOTVAL", "POTHVAL", "PEARNVAL"))
    assert np.allclose(total, other + earned, rtol=0, atol=1e-9 * np.std(total))
    made = rv.mask(data, plan, seed=1).data
    total, other, earned = (made[name].to_numpy() for name in ("PTOTVAL", "POTHVAL", "PEARNVAL"))
    assert np.max(np.abs(total - other - earned)) <= 1, "three whole numbers, each off by half a unit at most"


def test_a_constant_column_stays_and_changes_nothing_else() -> None:
    x = np.column_stack([A, np.full(5, 0.1)])
    made = correlated_noise(x, np.isnan(x), gamma=1.0, rng=Seed.of(1).stream("a"))
    assert made[:, 1].tolist() == [0.1] * 5
    assert np.array_equal(
        made[:, 0], correlated_noise(x[:, :1], np.isnan(x[:, :1]), gamma=1.0, rng=Seed.of(1).stream("a"))[:, 0]
    )


def test_the_correction_is_the_inverse_of_what_the_noise_does() -> None:
    strength = np.array([0.04, 0.25])
    sigma = np.array([[4.0, 1.0], [1.0, 9.0]])
    root = np.sqrt(strength)
    assert correlated_noise.correction is not None
    mean, corrected = correlated_noise.correction(
        np.array([1.0, 2.0]), sigma * (1 + np.outer(root, root)), [{"gamma": 0.04}, {"gamma": 0.25}]
    )
    assert mean.tolist() == [1.0, 2.0]
    assert np.allclose(corrected, sigma)


def test_a_user_gets_the_covariance_back() -> None:
    rng = np.random.default_rng(5)
    n = 50_000
    a = rng.normal(size=n)
    data = pa.table({"A": a, "B": a + rng.normal(size=n)})
    release = rv.mask(data, "correlated_noise", gamma={"A": 0.2, "B": 0.8}, seed=3)
    found = rv.correct(release.data, release.manifest)
    wanted = np.cov(np.array([data["A"], data["B"]]), bias=True)
    assert found.covariance == pytest.approx(wanted, abs=5.5 * 2 * 1.8 * np.sqrt(2 / n))
    assert not np.allclose(found.released_covariance, wanted, rtol=0.1)


def test_missing_cells_do_not_shrink_the_noise_nor_spoil_the_correction() -> None:
    rng = np.random.default_rng(1)
    n, true = 100_000, np.array([[1.0, 0.6], [0.6, 1.0]])
    x = rng.multivariate_normal([0.0, 0.0], true, size=n)
    data = pa.table({"A": pa.array(x[:, 0], mask=rng.random(n) < 0.5), "B": x[:, 1]})
    release = rv.mask(data, "correlated_noise", gamma=1.0, seed=1)
    assert np.allclose(rv.correct(release.data, release.manifest).covariance, true, atol=0.05)
