"""Population risk: the closed forms, the distribution behind it, and by hand."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError
from rankveil.measures.population_risk import individual_risk

population_risk = get_measure("population_risk")


def one(f: int, population: float) -> float:
    return float(individual_risk(np.array([f]), np.array([population]))[0])


@pytest.mark.parametrize("population", [3.001, 4.0, 5.99, 6.0, 6.01, 10.0, 100.0, 1e4, 1e7])
def test_the_closed_forms(population: float) -> None:
    # Benedetti and Franconi 1998; Polettini 2003: with p = f / F
    p = 1 / population
    assert one(1, population) == pytest.approx(p / (1 - p) * math.log(1 / p), rel=1e-13)
    p = 2 / population
    two = p / (1 - p) - (p / (1 - p)) ** 2 * math.log(1 / p)
    assert one(2, population) == pytest.approx(two, rel=1e-11)
    p = 3 / population
    if population > 3.5:  # nearer to 3 the closed form itself loses its digits
        odds = p / (1 - p)
        three = odds / 2 - odds**2 + odds**3 * math.log(1 / p)
        assert one(3, population) == pytest.approx(three, rel=1e-10)


@settings(deadline=None)
@given(st.integers(1, 200), st.floats(1.001, 1e6))
def test_against_700_digits(f: int, ratio: float) -> None:
    # risk(1) = log(1 + a) / a and risk(f + 1) = (1 / f - risk(f)) / a lose three digits a step at worst
    population = f * ratio
    with localcontext(prec=700):
        p = Decimal(f) / Decimal(population)
        a = (1 - p) / p
        expected = (1 + a).ln() / a
        for step in range(1, f):
            expected = (Decimal(1) / step - expected) / a
    assert one(f, population) == pytest.approx(float(expected), rel=1e-11)


@pytest.mark.parametrize(("f", "population"), [(1, 7.0), (2, 9.0), (4, 4.5), (5, 60.0), (31, 400.0), (32, 400.0)])
def test_it_is_the_mean_under_the_negative_binomial(f: int, population: float) -> None:
    # P(F = j | f) = C(j - 1, f - 1) p^f (1 - p)^(j - f) for j = f, f + 1, ...
    p = f / population
    log_p = [
        math.lgamma(j) - math.lgamma(f) - math.lgamma(j - f + 1) + f * math.log(p) + (j - f) * math.log1p(-p)
        for j in range(f, f + 20_000)
    ]
    assert sum(map(math.exp, log_p)) == pytest.approx(1.0)
    expected = sum(math.exp(each) / j for j, each in enumerate(log_p, start=f))
    assert one(f, population) == pytest.approx(expected, rel=1e-10)


def test_both_ways_of_computing_meet() -> None:
    for f in (1, 2, 5, 20, 31):
        assert one(f, 2 * f) == pytest.approx(one(f, 2 * f * (1 - 1e-12)), rel=1e-10)
    assert one(31, 1e5) > one(32, 1e5 * 32 / 31) > one(33, 1e5 * 33 / 31)
    assert one(10**9, 1e12) == pytest.approx(1e-12, rel=1e-6)


def test_the_whole_population_is_at_risk_one_in_its_class() -> None:
    assert individual_risk(np.array([1, 2, 50]), np.array([1.0, 2.0, 50.0])) == pytest.approx([1.0, 0.5, 0.02])
    assert one(4, 3.2) == 0.25


def test_four_records() -> None:
    quasi = {"AGE": np.array([30.0, 30.0, 40.0, 50.0])}
    made = population_risk(quasi, np.array([2.0, 2.0, 4.0, 1.0]), threshold=0.4)
    # a class of 2 for 4: (1 / 1 - log 2) / 1; one for 4: log(4) / 3; one for 1: 1
    risks = [1 - math.log(2), 1 - math.log(2), math.log(4) / 3, 1.0]
    assert made.value == pytest.approx(sum(risks) / 4)
    assert made.details["expected_reidentifications"] == pytest.approx(sum(risks))
    assert made.details["largest"] == 1.0
    assert made.details["records_above_threshold"] == 2
    assert made.details["rows"] == [4, 3]  # the greatest risk first
    assert made.details["population"] == 9.0
    json.dumps(made.details, allow_nan=False)


def test_a_missing_cell_that_agrees_with_all_lowers_the_risk() -> None:
    quasi = {"AGE": np.array([30.0, np.nan, 40.0])}
    weights = np.array([5.0, 5.0, 5.0])
    own, every = population_risk(quasi, weights), population_risk(quasi, weights, missing="any")
    assert own.value == pytest.approx(one(1, 5.0))
    assert every.value == pytest.approx((2 * one(2, 10.0) + one(3, 15.0)) / 3)


def test_weights_below_one_are_told() -> None:
    made = population_risk({"AGE": np.array([30.0, 30.0, 40.0])}, np.array([0.5, 0.5, 2.0]))
    assert made.details["largest"] == pytest.approx(math.log(2))
    assert made.notes == ("the weights of 1 of 2 classes sum to less than their records: counted as them",)


@pytest.mark.parametrize("bad", [np.nan, 0.0, -3.0, np.inf])
def test_every_record_needs_a_weight(bad: float) -> None:
    with pytest.raises(NotApplicableError, match=r"1 weight is missing, zero or negative \(row 2\)"):
        population_risk({"AGE": np.ones(3)}, np.array([1.0, bad, 1.0]))


def test_without_weights_or_quasi_identifiers_it_says_how_to_give_them() -> None:
    with pytest.raises(NotApplicableError, match="--role COLUMN=weight"):
        population_risk({"AGE": np.ones(3)}, None)
    with pytest.raises(NotApplicableError, match="--role COLUMN=quasi-identifier"):
        population_risk({}, np.ones(3))


def test_weights_near_nothing_count_as_their_records() -> None:
    assert one(2, 1.6e-322) == one(2, 2.0) == pytest.approx(1 / 2)
