"""Multiplicative noise on five records, its scale, and Table 1 of masking-as-permutation."""

from __future__ import annotations

import numpy as np
from scipy import stats

from rankveil.catalogue import get_method
from rankveil.ranks import average_ranks
from rankveil.seeds import Seed

FALSE_ALARM = 1e-6

multiplicative_noise = get_method("multiplicative_noise")


def test_five_records_by_hand() -> None:
    x = np.array([30.0, -10.0, 0.0, 20.0, 40.0])
    u = Seed.of(1).stream("a").random(5)
    made = multiplicative_noise(x, rng=Seed.of(1).stream("a"), beta=0.2)
    assert np.allclose(made, x * (0.8 + 0.4 * u), rtol=1e-14)
    assert made[2] == 0.0
    assert np.all(np.abs(made[x != 0] / x[x != 0] - 1) < 0.2)


def test_factors_are_uniform_around_one() -> None:
    x = np.random.default_rng(0).normal(100.0, 5.0, 50_000)
    factors = multiplicative_noise(x, rng=Seed.of(2).stream("a"), beta=0.3) / x
    assert stats.kstest(factors, "uniform", args=(0.7, 0.6)).pvalue > FALSE_ALARM
    assert abs(np.corrcoef(factors, x)[0, 1]) < 4.9 / np.sqrt(x.size)


def test_the_published_factors_permute_large_values_close_together_only() -> None:
    # Muralidhar and Domingo-Ferrer 2015, Table 1
    factors = np.array([1.091, 0.907, 1.004, 1.003, 1.090, 1.051, 0.929, 0.985, 0.912, 1.015])
    small, large = np.arange(1.0, 100.0, 10.0), np.arange(1001.0, 1100.0, 10.0)
    assert average_ranks(small * factors).tolist() == list(range(1, 11))
    assert average_ranks(large * factors).tolist() == [7, 1, 4, 5, 10, 8, 2, 6, 3, 9]


def test_the_correction_is_the_inverse_of_what_the_noise_does() -> None:
    # variance 4 and mean 3, so a mean square of 13, which factors with beta = 0.6 raise by 1 + 0.12
    released = np.array([[13 * 1.12 - 9.0, 2.0], [2.0, 5.0]])
    assert multiplicative_noise.correction is not None
    mean, corrected = multiplicative_noise.correction(np.array([3.0, 1.0]), released, [{"beta": 0.6}, {"beta": 0.0}])
    assert mean.tolist() == [3.0, 1.0]
    assert np.allclose(corrected, [[4.0, 2.0], [2.0, 5.0]])
