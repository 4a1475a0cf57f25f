"""Moments of ordinary numbers and of those at the ends of what can be written; weights as repeated records."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankveil import moments

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, min_size=1, max_size=20))
def test_mean_and_standard_deviation_are_exact_and_do_not_overflow(values: list[float]) -> None:
    x = np.array(values)
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    variance = sum((value - mean) ** 2 for value in exact) / len(exact)
    largest = max(abs(value) for value in values)
    assert abs(Fraction(moments.mean(x)) - mean) <= Fraction(largest) / 10**14 + Fraction(5e-324)
    made = Fraction(moments.standard_deviation(x))
    slack = Fraction(largest) / 10**14 + Fraction(5e-324)
    assert made >= 0
    assert (made + slack) ** 2 >= variance
    assert made <= slack or (made - slack) ** 2 <= variance


@pytest.mark.parametrize("x", [[0.1] * 7, [1e308] * 3, [-1e-320] * 4, [5.0]])
def test_a_constant_column_has_its_value_as_mean_and_no_spread(x: list[float]) -> None:
    assert moments.is_constant(np.array(x))
    assert moments.mean(np.array(x)) == x[0]
    assert moments.standard_deviation(np.array(x)) == 0.0


@pytest.mark.parametrize(
    ("x", "scale"),
    [([], 1.0), ([0.0], 1.0), ([1.0], 2.0), ([-3.0, 2.0], 4.0), ([1e308], 2.0**1023), ([5e-324], 2.0**-1000)],
)
def test_the_scale_is_a_power_of_two(x: Any, scale: float) -> None:
    assert moments.scale_of(np.array(x)) == scale


def test_the_largest_numbers() -> None:
    x = np.array([1e308, 1.1e308, -1.7e308])
    assert moments.mean(x) == pytest.approx(4e307 / 3, rel=1e-12)
    assert moments.standard_deviation(x) == pytest.approx(1e308 * float(np.std([1, 1.1, -1.7])), rel=1e-12)
    assert moments.standard_deviation(np.array([1.7e308, -1.7e308])) == 1.7e308


weighted_values = st.lists(st.tuples(finite, st.integers(0, 5)), min_size=1, max_size=20).filter(
    lambda rows: any(weight for _, weight in rows)
)


@given(weighted_values)
def test_a_weight_counts_as_so_many_records(rows: list[tuple[float, int]]) -> None:
    x, weight = np.array([value for value, _ in rows]), np.array([float(weight) for _, weight in rows])
    repeated = np.repeat(x, weight.astype(int))
    slack = 1e-12 * np.max(np.abs(repeated))
    assert abs(moments.mean(x, weight) - moments.mean(repeated)) <= slack
    assert abs(moments.standard_deviation(x, weight) - moments.standard_deviation(repeated)) <= slack
    there, weights = moments.counted(x, weight)
    assert np.array_equal(there, x[weight > 0])
    assert weights is not None
    assert weights.sum() == repeated.size


@given(weighted_values, st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_quantiles_of_whole_weights_are_those_of_repeated_values(
    rows: list[tuple[float, int]], at: list[float]
) -> None:
    rows = sorted(rows)
    x, weight, shares = np.array([v for v, _ in rows]), np.array([float(w) for _, w in rows]), np.array(at)
    repeated = np.repeat(x, weight.astype(int))
    slack = 1e-12 * np.max(np.abs(repeated))
    plain = moments.quantiles(repeated, shares)
    with np.errstate(over="ignore", invalid="ignore"):  # numpy's own way takes differences, which may be too large
        usual = np.quantile(repeated, shares)
    there = np.isfinite(usual)
    assert np.all(np.abs(plain - usual)[there] <= slack)
    assert np.all(np.abs(moments.quantiles(x, shares, weight) - plain) <= slack)


@pytest.mark.parametrize("unit", [1e-300, 1e-3, 1.0])
def test_quantiles_of_small_weights_do_not_depend_on_their_unit(unit: float) -> None:
    # five values of mean weight 1, laid end to end: 1 up to 0.5, 2 up to 2.5, 3 up to 3, 4 up to 4.5, 5 up to 5
    x, weight = np.arange(1.0, 6), np.array([0.5, 2.0, 0.5, 1.5, 0.5])
    shares = np.array([0.0, 0.5, 0.625, 1.0])  # from 0 to 1, from 2 to 3, from 2.5 to 3.5, from 4 to 5
    wanted = [1 / 2 + 2 / 2, 2 / 2 + 3 / 2, 3 / 2 + 4 / 2, 4 / 2 + 5 / 2]
    assert moments.quantiles(x, shares, unit * weight) == pytest.approx(wanted, rel=1e-12)


def test_quantiles_of_a_population_larger_than_a_number_can_count() -> None:
    x, weight = np.array([1.0, 2.0, 9.0]), np.array([1e20, 1e20, 2e20])
    assert moments.quantiles(x, np.array([0.1, 0.4, 0.9]), weight).tolist() == [1.0, 2.0, 9.0]


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
def test_averages_and_effective_sizes_do_not_depend_on_the_unit_of_the_weights(unit: float) -> None:
    weight = unit * np.array([1.0, 2.0, 0.0, 3.0])
    assert moments.average(np.array([4.0, 1.0, 7.0, 2.0]), weight) == pytest.approx(2.0, rel=1e-15)
    assert moments.average(np.ones(4), weight) == 1.0
    assert moments.effective_size(np.ones(4), weight) == pytest.approx(36 / 14, rel=1e-15)
    assert moments.mean(np.array([4.0, 1.0, 7.0, 2.0]), weight) == pytest.approx(2.0, rel=1e-15)


def test_without_weights_every_record_counts_once() -> None:
    x = np.array([4.0, 1.0, 7.0, 2.0])
    assert moments.average(x) == 3.5
    assert moments.effective_size(x) == 4.0
    assert moments.counted(x, None) == (x, None)
    assert moments.effective_size(x, np.full(4, 17.0)) == 4.0


def test_who_has_no_weight_is_not_there() -> None:
    x, weight = np.array([2.0, 1e300, 2.0]), np.array([1.0, 0.0, 5.0])
    assert moments.mean(x, weight) == 2.0
    assert moments.standard_deviation(x, weight) == 0.0
    x[2] = 4.0
    assert moments.standard_deviation(x, weight) == pytest.approx(np.sqrt(5 / 36) * 2, rel=1e-14)
