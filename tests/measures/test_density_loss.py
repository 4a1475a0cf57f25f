"""Half the L1 distance between kernel density estimates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import rankveil as rv
from rankveil.catalogue import Value, get_measure
from rankveil.moments import standard_deviation

density_loss = get_measure("density_loss")


def measured(x: Any, y: Any) -> Value:
    made: Value = density_loss(x, standard_deviation(x), y, standard_deviation(y))
    return made


def by_quadrature(x: Any, y: Any) -> float:
    """From scipy's estimates, with population moments in place of its own."""
    kdes = [stats.gaussian_kde(each, bw_method=each.size**-0.2 * (1 - 1 / each.size) ** 0.5) for each in (x, y)]
    tail = 8 * max(x.std(), y.std())
    points = np.linspace(min(x.min(), y.min()) - tail, max(x.max(), y.max()) + tail, 8_001)
    return float(np.trapezoid(np.abs(kdes[0](points) - kdes[1](points)), points) / 2)


def test_four_records_by_hand() -> None:
    # two at -1 and two at 1: f is the mean of two normal densities of width h = 4^(-1/5), with a valley at 0
    x, h = np.array([-1.0, -1.0, 1.0, 1.0]), 4**-0.2
    at = np.linspace(-2, 2, 8_001)  # 0 in the middle
    f = (stats.norm.pdf(at, -1, h) + stats.norm.pdf(at, 1, h)) / 2
    # a small move d changes it by d times the integral of |f'|: up, down to the valley, up and down again
    climbs = 4 * f.max() - 2 * f[4_000]
    assert measured(x, x + 0.01).value == pytest.approx(0.01 * climbs / 2, rel=2e-3)


def test_normal_samples_moved_and_stretched() -> None:
    # a kernel density estimate of normal quantiles is about normal with variance 1 + h^2
    x = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    width = (1 + 100_000**-0.4) ** 0.5
    for shift in (0.01, 0.5, 3.0):
        expected = 2 * stats.norm.cdf(shift / 2 / width) - 1
        assert measured(x, x + shift).value == pytest.approx(expected, rel=2e-3)
    crossing = (2 * np.log(2) / (1 - 1 / 4)) ** 0.5  # of N(0, 1) and N(0, 2)
    expected = 2 * (stats.norm.cdf(crossing) - stats.norm.cdf(crossing / 2))
    assert measured(x, 2 * x).value == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("seed", range(6))
def test_it_agrees_with_the_estimates_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = [rng.normal(size=200), rng.lognormal(size=200), rng.integers(0, 4, 200).astype(float)][seed % 3]
    y = rng.choice(x, 120) + rng.normal(size=120) * [0.1, 1.0][seed % 2]
    assert measured(x, y).value == pytest.approx(by_quadrature(x, y), abs=1e-3)
    assert measured(y, x).value == pytest.approx(measured(x, y).value, rel=1e-12)


def test_heavy_tails_get_a_finer_grid() -> None:
    rng = np.random.default_rng(8)
    x = rng.standard_cauchy(1000)
    y = x + rng.normal(size=1000) * x.std() / 10
    made = measured(x, y)
    assert made.details["grid"] > 1024
    assert made.value == pytest.approx(by_quadrature(x, y), abs=2e-3)


def test_the_ends_of_its_range() -> None:
    x = np.random.default_rng(0).lognormal(size=1000)
    assert measured(x, x).value == 0.0
    assert measured(x, x[::-1]).value == pytest.approx(0.0, abs=1e-12)
    assert measured(x, x + 1000).value == pytest.approx(1.0, abs=1e-9)
    assert 0 < measured(x, x + 0.01).value < 0.05


def test_constant_columns_have_no_density() -> None:
    x, five = np.arange(5.0), np.full(5, 5.0)
    assert measured(five, five).value == 0.0
    assert measured(five, five + 1e-9).value == 1.0
    assert measured(x, five).value == measured(five, x).value == 1.0


@pytest.mark.parametrize("unit", [1e-300, 1e-12, 1e12, 1e300])
def test_it_does_not_depend_on_the_unit_and_little_on_the_origin(unit: float) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=500)
    y = x + rng.normal(size=500)
    assert measured(unit * x, unit * y).value == pytest.approx(measured(x, y).value, rel=1e-9)
    assert measured(x + 1e9, y + 1e9).value == pytest.approx(measured(x, y).value, rel=1e-5)


def test_it_says_when_values_lie_too_far_apart_for_their_bandwidth() -> None:
    x = np.random.default_rng(6).normal(size=100)
    made = measured(x, 1e200 * x)
    assert made.value > 0.9
    assert made.notes == ("the values lie so far apart that the bandwidth is wider than Scott's",)
    assert measured(x, 3 * x).notes == ()


def test_every_attribute_on_its_own() -> None:
    original, _ = rv.datasets.running_example()
    masked = rv.mask(original, "additive_noise", alpha=1.0, seed=1).data
    made = rv.audit(original, masked, measures=["density_loss"], mapping=False).values["density_loss"]
    per_attribute = made.details["per_attribute"]
    assert made.value == pytest.approx(np.mean(list(per_attribute.values())))
    assert set(made.details["grid"]) == set(per_attribute)
