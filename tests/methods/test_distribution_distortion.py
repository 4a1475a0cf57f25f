"""Distribution distortion on five records, its fits beside scipy's, and which distribution it chooses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaincinv, ndtri

import rankveil as rv
from rankveil.catalogue import get_method
from rankveil.methods import distribution_distortion as module
from rankveil.seeds import Seed

FALSE_ALARM = 1e-6

distort = get_method("distribution_distortion")
rng = np.random.default_rng(20)
N = 20_000
SAMPLES = {
    "normal": rng.normal(50.0, 10.0, N),
    "lognormal": rng.lognormal(1.0, 0.7, N),
    "gamma": rng.gamma(2.3, 10.0, N),
    "exponential": rng.exponential(3.0, N),
    "Weibull": 3.0 * rng.weibull(1.7, N),
}
SCIPY = {
    "normal": stats.norm,
    "lognormal": stats.lognorm,
    "gamma": stats.gamma,
    "exponential": stats.expon,
    "Weibull": stats.weibull_min,
}


def best(x: Any) -> module.Fit:
    return min(module.fitted(x), key=lambda fit: fit.aic)


def test_five_records_by_hand() -> None:
    # mean 0, so only the normal is possible: variance (4 + 1 + 0 + 1 + 4) / 5 = 2
    x = np.array([1.0, -2.0, 0.0, 2.0, -1.0])
    draws = Seed.of(1).stream("a")
    draws.bits(5)  # for ties
    z = np.sqrt(2.0) * ndtri(np.sort(draws.random(5)))
    made = distort(x, rng=Seed.of(1).stream("a"))
    assert np.allclose(made.values, [z[3], z[0], z[2], z[4], z[1]], rtol=1e-14)
    (fit,) = module.fitted(x)
    assert fit.aic == pytest.approx(2 * 2 - 2 * (-5 / 2) * (math.log(2 * math.pi * 2) + 1), rel=1e-14)
    assert made.notes == (
        "drawn from normal (mean 0, sd 1.41421), computed from the original, so publishing it tells of the original",
    )


@pytest.mark.parametrize("family", SAMPLES)
def test_the_family_is_found_and_the_draws_are_from_it(family: str) -> None:
    x = SAMPLES[family]
    fit = best(x)
    assert fit.family == family
    made = distort(x, rng=Seed.of(3).stream("a"))
    assert made.notes[0].startswith(f"drawn from {fit}, computed from the original")
    assert np.array_equal(np.argsort(made.values), np.argsort(x))
    frozen = SCIPY[family](*_for_scipy(fit))
    assert stats.kstest(made.values, frozen.cdf).pvalue > FALSE_ALARM


def _for_scipy(fit: module.Fit) -> tuple[float, ...]:
    first, *rest = fit.parameters.values()
    if fit.family == "normal":
        return (first, rest[0])
    if fit.family == "exponential":
        return (0.0, first)
    return (rest[0], 0.0, math.exp(first)) if fit.family == "lognormal" else (first, 0.0, rest[0])


@pytest.mark.parametrize("family", SAMPLES)
def test_likelihoods_are_the_largest(family: str) -> None:
    x = SAMPLES[family][:4_000]
    for fit in module.fitted(x):
        model = SCIPY[fit.family]
        given = _for_scipy(fit)
        assert fit.loglikelihood == pytest.approx(float(np.sum(model.logpdf(x, *given))), rel=1e-9)
        for k, moved in ((k, factor) for k in range(len(given)) for factor in (0.99, 1.01) if given[k] != 0):
            other = (*given[:k], given[k] * moved, *given[k + 1 :])
            assert float(np.sum(model.logpdf(x, *other))) < fit.loglikelihood


def test_a_large_column_is_fitted_like_a_small_one() -> None:
    # beyond some size the search for the Weibull shape begins on a part, and gamma quantiles are interpolated
    x = np.tile(SAMPLES["Weibull"], 5)
    large = {fit.family: fit.parameters for fit in module.fitted(x)}
    for fit in module.fitted(SAMPLES["Weibull"]):
        assert large[fit.family] == pytest.approx(fit.parameters, rel=1e-8)


@pytest.mark.parametrize("shape", [0.05, 0.3, 1.0, 2.3, 50.0, 1e4, 9e5])
def test_interpolated_gamma_quantiles_are_right_to_ten_digits(shape: float) -> None:
    u = np.sort(Seed.of(1).stream("u").random(50_000))
    exact = gammaincinv(shape, u)
    assert np.allclose(np.exp(module._log_gamma_quantiles(u, shape)), exact, rtol=1e-10, atol=0)
    few = module._log_gamma_quantiles(u[:100], shape)
    assert np.allclose(np.exp(few), exact[:100], rtol=1e-12, atol=0)


def test_a_shape_so_small_that_quantiles_are_zero() -> None:
    u = np.sort(Seed.of(1).stream("u").random(5_000))
    assert np.array_equal(np.exp(module._log_gamma_quantiles(u, 1e-3)) == 0, gammaincinv(1e-3, u) == 0)


def test_which_distributions_the_values_allow() -> None:
    def families(*values: float) -> list[str]:
        return [fit.family for fit in module.fitted(np.array(values))]

    assert families(1.0, 2.0, 4.0) == ["normal", "lognormal", "gamma", "exponential", "Weibull"]
    assert families(0.0, 2.0, 4.0) == ["normal", "exponential"]
    assert families(-1.0, 2.0, 4.0) == ["normal"]
    assert families(1000.0, 1000.1, 1000.2) == ["normal", "exponential"]
    assert families(3.0, 3.0, 3.0) == []


def test_a_constant_column_stays_and_says_so() -> None:
    made = distort(np.full(4, 0.1), rng=Seed.of(1).stream("a"))
    assert made.values.tolist() == [0.1] * 4
    assert made.notes == ("the column is constant: nothing can be fitted, and it stays as it is",)


def test_the_unit_changes_nothing() -> None:
    x = SAMPLES["gamma"][:500]
    first = distort(x, rng=Seed.of(1).stream("a")).values
    for unit in (1e-290, 1e-12, 1e12, 1e290):
        assert np.allclose(distort(x * unit, rng=Seed.of(1).stream("a")).values / unit, first, rtol=1e-8)


def test_draws_that_are_no_numbers_are_refused_with_a_remedy() -> None:
    x = 10.0 ** np.linspace(-300, 300, 300)
    with pytest.raises(rv.ParameterError, match="too large for a number; write the column in a larger unit"):
        distort(x, rng=Seed.of(1).stream("a"))


def test_tied_records_take_the_draws_at_random() -> None:
    x = np.array([1.0, 1.0, 1.0, 2.0])
    largest = [int(np.argmax(distort(x, rng=Seed.of(seed).stream("a")).values[:3])) for seed in range(3_000)]
    assert stats.chisquare(np.bincount(largest, minlength=3)).pvalue > FALSE_ALARM


def test_a_distribution_whose_scale_is_no_number_is_not_fitted() -> None:
    spread = np.array([1e-300, 1e-200, 1.0, 1.7e308])  # a gamma distribution of this would have a scale beyond 1e308
    assert "gamma" not in {fit.family for fit in module.fitted(spread)}
