"""Additive noise on five records, and its scale."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from rankveil.catalogue import get_method
from rankveil.seeds import Seed

FALSE_ALARM = 1e-6

additive_noise = get_method("additive_noise")
X = np.array([30.0, 10.0, 50.0, 20.0, 40.0])  # the population standard deviation is 10 sqrt(2)


def test_five_records_by_hand() -> None:
    u = Seed.of(1).stream("a").random(5)
    made = additive_noise(X, rng=Seed.of(1).stream("a"), alpha=0.1)
    assert np.allclose(made, X + 0.1 * 10 * np.sqrt(2) * ndtri(u), rtol=1e-14)
    by_sd = additive_noise(X, rng=Seed.of(1).stream("a"), sd=3.0)
    assert np.allclose(by_sd, X + 3.0 * ndtri(u), rtol=1e-14)


def test_the_given_deviation_replaces_the_relative_one() -> None:
    made = additive_noise(X, rng=Seed.of(1).stream("a"), alpha=100.0, sd=0.0)
    assert np.array_equal(made, X)


def test_missing_records_do_not_shift_the_noise_of_the_others() -> None:
    rows = np.array([0, 1, 4])
    z = Seed.of(1).stream("a").normal(5)
    made = additive_noise(X[rows], rng=Seed.of(1).stream("a").at(rows), alpha=1.0)
    assert np.allclose((made - X[rows]) / np.std(X[rows]), z[rows])


@pytest.mark.parametrize("parameters", [{"alpha": 0.3}, {"sd": 7.0}])
def test_noise_is_normal_with_the_declared_scale(parameters: dict[str, float]) -> None:
    x = np.random.default_rng(0).exponential(5.0, 50_000)
    noise = additive_noise(x, rng=Seed.of(2).stream("a"), **parameters) - x
    scale = parameters.get("sd", 0.3 * np.std(x))
    assert stats.kstest(noise / scale, "norm").pvalue > FALSE_ALARM
    squares = float(np.sum((noise / scale) ** 2))
    assert 2 * min(stats.chi2.cdf(squares, x.size), stats.chi2.sf(squares, x.size)) > FALSE_ALARM
    assert abs(np.corrcoef(noise, x)[0, 1]) < 4.9 / np.sqrt(x.size)


def test_the_correction_is_the_inverse_of_what_the_noise_does() -> None:
    covariance = np.array([[4.0 * (1 + 0.5**2), 1.0], [1.0, 9.0 + 2.0**2]])
    given = [{"alpha": 0.5, "sd": None}, {"alpha": 0.1, "sd": 2.0}]
    assert additive_noise.correction is not None
    mean, corrected = additive_noise.correction(np.array([1.0, 2.0]), covariance, given)
    assert mean.tolist() == [1.0, 2.0]
    assert np.allclose(corrected, [[4.0, 1.0], [1.0, 9.0]])
    _, below = additive_noise.correction(np.zeros(1), np.array([[3.0]]), [{"alpha": 0.1, "sd": 2.0}])
    assert below.tolist() == [[-1.0]]  # rv.correct says so and gives 0
