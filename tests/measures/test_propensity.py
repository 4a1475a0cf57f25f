"""Propensity: by hand, against scikit-learn, its level under no difference, and its interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import rankveil as rv
from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError
from rankveil.seeds import Seed

propensity = get_measure("propensity")


def test_a_column_of_two_values_by_hand() -> None:
    # of the ones 1 of 4 is masked, of the zeros 3 of 4: fitted chances are just those shares
    x, y = np.array([[1.0], [1.0], [1.0], [0.0]]), np.array([[0.0], [0.0], [0.0], [1.0]])
    for model in ("linear", "quadratic"):  # the square adds nothing
        made = propensity(x, y, model=model)
        assert made.value == pytest.approx(1 / 16, rel=1e-5)
        assert made.details["coefficients"] == 2
        assert made.details["expected"] == pytest.approx(1 / 8 / 8)
        assert made.details["ratio"] == pytest.approx(4, rel=1e-5)


def test_tables_of_different_size_are_compared_with_the_share_of_masked_records() -> None:
    x, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([[0.0], [1.0]])
    made = propensity(x, y)
    assert made.value == pytest.approx(0.0, abs=1e-20)
    assert made.details["masked_share"] == pytest.approx(1 / 3)
    assert made.details["expected"] == pytest.approx((2 / 3) ** 2 / 3 / 6)


def test_tables_that_the_model_tells_apart() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    made = propensity(x, x + 100)
    assert made.value == pytest.approx(0.25, abs=1e-4)
    assert "the model tells the tables apart completely" in made.notes
    assert propensity(x, x).value == pytest.approx(0.0, abs=1e-20)
    assert propensity(x, x[::-1]).value == pytest.approx(0.0, abs=1e-20)
    with pytest.raises(NotApplicableError, match="constant"):
        propensity(np.ones((3, 2)), np.ones((3, 2)))


def test_it_is_what_an_independent_fit_gives() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    y = 1.2 * rng.normal(size=(400, 3)) + 0.2
    merged, t = np.vstack((x, y)), np.repeat((0, 1), (300, 400))
    for model, degree in (("linear", 1), ("quadratic", 2)):
        terms = StandardScaler().fit_transform(
            PolynomialFeatures(degree, include_bias=False).fit_transform(StandardScaler().fit_transform(merged))
        )
        fit = LogisticRegression(C=1e12, tol=1e-10, max_iter=10_000).fit(terms, t)
        expected = np.mean((fit.predict_proba(terms)[:, 1] - 4 / 7) ** 2)
        assert propensity(x, y, model=model).value == pytest.approx(expected, rel=1e-5)


def test_squares_see_what_means_do_not() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(500, 2)), 2 * rng.normal(size=(500, 2))
    assert propensity(x, y, model="linear").details["ratio"] < 5
    assert propensity(x, y).details["ratio"] > 20


def test_the_level_under_no_difference() -> None:
    # the original and its exact means stay, the masked table is drawn anew: N pMSE / ((1 - c)^2 c) is about chi-squared
    # with k - 1 degrees (Snoke et al. 2018); the mean of 100 ratios of 2 degrees leaves these ends once in a million
    rng = np.random.default_rng(0)
    ratios = []
    grid = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
    x = np.column_stack((grid, rng.permutation(grid)))
    for _ in range(100):
        ratios.append(propensity(x, rng.normal(size=(2000, 2)), model="linear").details["ratio"])
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], 200) / 200
    assert low < np.mean(ratios) < high


def test_the_interval_is_as_wide_as_the_spread_over_samples() -> None:
    rng = np.random.default_rng(0)
    made = [propensity(rng.normal(size=(400, 2)), 0.7 + 1.3 * rng.normal(size=(400, 2))) for _ in range(200)]
    spread = np.std([each.value for each in made])
    assert np.mean([each.details["standard_error"] for each in made]) == pytest.approx(spread, rel=0.25)
    for each in made:
        low, high = each.details["interval"]
        assert 0 <= low <= each.value <= high <= 0.25


def test_dependent_attributes_change_nothing() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + 0.3
    twice = [np.column_stack((side, 3 * side[:, 0] - side[:, 1], np.full(200, 4.0))) for side in (x, y)]
    made = propensity(*twice)
    assert made.value == pytest.approx(propensity(x, y).value, rel=1e-6)
    assert made.details["coefficients"] == 6


def test_a_sample_of_large_tables_is_said_and_is_the_same_records_of_both() -> None:
    x = np.random.default_rng(0).normal(size=(500, 2))
    made = propensity(x, x, most=100, rng=Seed.of(1).stream("a"))
    assert made.value == pytest.approx(0.0, abs=1e-20)
    assert made.details["records"] == 200
    assert "at most 100 of each" in made.notes[0]


def test_trees_see_what_no_square_sees() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    kinked = np.sign(rng.normal(size=(400, 2))) * np.where(rng.random((400, 2)) < 0.5, 0.3, np.sqrt(2 - 0.09))
    stream = Seed.of(1).stream
    trees = propensity(x, kinked, model="forest", rng=stream("a"))
    assert trees.details["ratio"] > 5 > 2 > propensity(x, kinked).details["ratio"]
    assert trees.value > 0.02
    alike = propensity(x, rng.normal(size=(400, 2)), model="forest", rng=stream("a"))
    assert 0.5 < alike.details["ratio"] < 2
    assert propensity(x, x[::-1], model="forest", rng=stream("a")).value == 0.0
    turned = rng.permutation(400)
    again = propensity(x[turned], kinked, model="forest", rng=stream("a"))
    assert again.value == propensity(x, kinked[turned], model="forest", rng=stream("a")).value


def test_microaggregation_has_more_utility_than_noise_on_census(reference_data: Any) -> None:
    # Domingo-Ferrer, Ricci and Soria-Comas 2017, Table 1: 4.28e-4 for mdav and 3.83e-2 for correlated noise, by a
    # regression that the paper does not name; its order stays. Exact sums of attributes, which both methods keep and
    # rank swapping breaks, are terms of the quadratic model: what breaks them is told apart completely
    census = pd.read_csv(reference_data("census"))
    kept, noisy, swapped = (
        rv.audit(census, rv.mask(census, method, seed=1, **parameters).data, measures=["propensity"])["propensity"]
        for method, parameters in (
            ("mdav", {"k": 5}),
            ("correlated_noise", {"gamma": 1.0}),
            ("rank_swap", {"p": 20}),
        )
    )
    assert kept < noisy < swapped
    assert swapped == pytest.approx(0.25, abs=1e-3)
