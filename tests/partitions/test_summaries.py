"""Summaries of partitions, merged in any order, are those of the whole table."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil import moments
from rankveil.partitions.summaries import Bins, Counts, Moments, Products
from rankveil.views import Side

sizes = st.lists(st.integers(0, 30), min_size=1, max_size=6)


def columns(n: int, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=n),
        1e9 + rng.normal(size=n),  # far from 0
        1e70 * rng.lognormal(size=n),
        np.full(n, 0.1),
        rng.integers(0, 3, n).astype(float),
    ]


def parts_of(table: list[Any], counts: list[int], order: Any) -> list[list[Any]]:
    """The table cut into parts, in some order."""
    cuts = np.cumsum(counts)[:-1]
    parts = [list(part) for part in zip(*(np.split(column, cuts) for column in table), strict=True)]
    return [parts[k] for k in order]


@settings(deadline=None)
@given(counts=sizes, data=st.data())
def test_moments_in_any_order(counts: list[int], data: Any) -> None:
    n = sum(counts)
    if n == 0:
        return
    table = columns(n, data.draw(st.integers(0, 1000)))
    order = data.draw(st.permutations(range(len(counts))))
    found = reduce(Moments.merged, (Moments.of(part) for part in parts_of(table, counts, order)))
    assert found.count == n
    for j, column in enumerate(table):
        assert (found.low[j], found.high[j]) == (column.min(), column.max())
        assert found.mean[j] == pytest.approx(moments.mean(column), rel=1e-12)
        assert found.spread[j] == pytest.approx(moments.standard_deviation(column), rel=1e-9 if j != 1 else 1e-6)
        mean, second, third, fourth = exactly(column)
        assert found.mean[j] == pytest.approx(mean, rel=1e-15)
        assert found.spread[j] == pytest.approx(math.sqrt(second), rel=1e-12)
        if second:
            skew, kurtosis = third / second**1.5, fourth / second**2
            assert found.standardised_moment(3)[j] == pytest.approx(skew, abs=1e-12 * kurtosis)
            assert found.standardised_moment(4)[j] == pytest.approx(kurtosis, rel=1e-12)


def exactly(column: Any) -> tuple[float, float, float, float]:
    """The mean and central moments of the column, rounded only at the end."""
    values = [Fraction(value) for value in column.tolist()]
    mean = sum(values, Fraction(0)) / len(values)
    central = [sum(((value - mean) ** k for value in values), Fraction(0)) / len(values) for k in (2, 3, 4)]
    return float(mean), *(float(each) for each in central)


def test_the_mean_does_not_depend_on_the_order_of_merging() -> None:
    rng = np.random.default_rng(0)
    parts = [Moments.of([rng.lognormal(sigma=5, size=9_000)]) for _ in range(8)]
    means = {float(reduce(Moments.merged, [parts[k] for k in rng.permutation(8)]).mean[0]) for _ in range(30)}
    assert len(means) == 1


def test_merging_is_associative() -> None:
    rng = np.random.default_rng(1)
    a, b, c = (Moments.of([rng.normal(loc=loc, size=n)]) for loc, n in ((0, 10), (50, 7_000), (-3, 1)))
    left, right = a.merged(b).merged(c), a.merged(b.merged(c))
    assert left.powers == pytest.approx(right.powers, rel=1e-12)
    assert left.mean == pytest.approx(right.mean, rel=1e-15)


def test_values_near_the_largest_do_no_harm() -> None:
    x = np.array([1e308, -1e308, 1.5e308, 3.0, 1e-300])
    found = Moments.of([x[:1]]).merged(Moments.of([x[3:]])).merged(Moments.of([x[1:3]]))
    assert found.mean[0] == pytest.approx(moments.mean(x), rel=1e-14)
    assert found.spread[0] == pytest.approx(moments.standard_deviation(x), rel=1e-14)
    assert np.isfinite(found.standardised(0, x)).all()


@pytest.mark.parametrize("cuts", [[], [1], [40, 40, 90], list(range(1, 120))])
def test_products_are_those_of_the_side(cuts: list[int]) -> None:
    table = columns(120, 5)
    side = Side(np.column_stack(table))
    counts = np.diff([0, *cuts, 120]).tolist()
    parts = parts_of(table, counts, range(len(counts))[::-1])
    known = reduce(Moments.merged, (Moments.of(part) for part in parts))
    found = reduce(Products.merged, (Products.of(part, known) for part in parts))
    near = 1e-6  # what a column at 1e9 knows of itself
    assert found.correlation(known) == pytest.approx(side.correlation, abs=near)
    assert found.squares / 120 == pytest.approx(side.squares, rel=near, abs=near)
    assert found.cubes / 120 == pytest.approx(side.cubes, rel=near, abs=near)
    exact = np.ix_([0, 2, 3, 4], [0, 2, 3, 4])
    assert found.correlation(known)[exact] == pytest.approx(side.correlation[exact], abs=1e-12)
    assert (found.squares / 120)[exact] == pytest.approx(side.squares[exact], rel=1e-9)
    assert (found.cubes / 120)[exact] == pytest.approx(side.cubes[exact], rel=1e-9, abs=1e-12)


@given(values=st.lists(st.integers(0, 6), max_size=60), cut=st.integers(0, 60))
def test_counts_and_bins_are_exact(values: list[int], cut: int) -> None:
    x = np.array(values, np.float64)
    counts = Counts.of(x[:cut]).merged(Counts.of(x[cut:]))
    assert dict(zip(counts.values.tolist(), counts.counts.tolist(), strict=True)) == {
        float(v): values.count(v) for v in set(values)
    }
    edges = np.array([1.0, 2.5, 6.0])
    bins = Bins.of(x[cut:], edges).merged(Bins.of(x[:cut], edges))
    assert bins.counts.tolist() == [
        sum(v < 1 for v in values),
        sum(1 <= v < 2.5 for v in values),
        sum(2.5 <= v < 6 for v in values),
        sum(v >= 6 for v in values),
    ]
    with pytest.raises(ValueError, match="same edges"):
        bins.merged(Bins.of(x, edges[:2]))
