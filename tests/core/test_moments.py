"""Moments of ordinary numbers and of those at the ends of what can be written."""

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
