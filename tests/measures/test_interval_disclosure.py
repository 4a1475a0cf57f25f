"""Interval disclosure: by hand, against its definition, and at its ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankveil as rv
from rankveil.catalogue import Value, get_measure
from rankveil.ranks import average_ranks
from rankveil.summaries.changes import Changes
from rankveil.summaries.movements import Distances

interval_disclosure = get_measure("interval_disclosure")


def of(x: np.ndarray, y: np.ndarray, *, spread: float | None = None) -> Value:
    ranks = Distances.of(average_ranks(x), average_ranks(y), records=x.size, times=2)
    return interval_disclosure(ranks.within, Changes.of(x, y, spread=x.std() if spread is None else spread).within)


def test_five_records() -> None:
    # n = 5: a whole rank is 20 %, half a rank 10 %, so ranks are caught when they stay, and half a rank at p = 10 only
    x = np.array([0.0, 10.0, 20.0, 30.0, 40.0])  # sd = sqrt(200) = 14.14
    y = np.array([0.0, 11.0, 11.0, 33.0, 44.0])  # ranks 1, 2.5, 2.5, 4, 5: moved 0, 0.5, 0.5, 0, 0
    made = of(x, y)
    # |x - y| = 0, 1, 9, 3, 4 are 0, 7.07, 63.6, 21.2, 28.3 % of sd: caught at p >= 1, at p >= 8, and never
    assert made.details["by_rank"] == pytest.approx((3 * 1.0 + 2 * 0.1) / 5)
    assert made.details["by_deviation"] == pytest.approx((1.0 + 0.3) / 5)
    assert made.value == pytest.approx((0.64 + 0.26) / 2)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40))
def test_one_pass_gives_what_ten_intervals_give(rows: list[tuple[int, int]]) -> None:
    x, y = np.array(rows, dtype=np.float64).T * 0.37
    moved = np.abs(average_ranks(x) - average_ranks(y))
    by_rank = np.mean([np.mean(100 * moved <= p * x.size) for p in range(1, 11)])
    by_deviation = np.mean([np.mean(np.abs(x - y) <= p / 100 * x.std()) for p in range(1, 11)])
    made = of(x, y)
    assert made.details["by_rank"] == pytest.approx(by_rank)
    if x.min() < x.max():  # numpy's sd of a constant column is not exactly 0
        assert made.details["by_deviation"] == pytest.approx(by_deviation)


def test_nothing_done_discloses_all_and_another_unit_hides_values_but_not_ranks() -> None:
    x = np.random.default_rng(0).normal(size=500)
    assert of(x, x).value == 1.0
    assert of(x, 1e6 + x).details == {"by_rank": 1.0, "by_deviation": 0.0}


def test_a_constant_column_discloses_what_is_unchanged() -> None:
    x = np.full(4, 0.1)
    y = np.array([0.1, 0.1, 0.1, 0.2])
    assert of(x, y, spread=0.0).details["by_deviation"] == 0.75


def test_more_noise_discloses_less(reference_data: Any) -> None:
    census = pd.read_csv(reference_data("census"))
    values = [
        rv.audit(census, rv.mask(census, "additive_noise", alpha=alpha, seed=1).data, measures=["interval_disclosure"])[
            "interval_disclosure"
        ]
        for alpha in (0.001, 0.05, 0.5, 5.0)
    ]
    assert values == sorted(values, reverse=True)
    assert values[0] > 0.7
    assert values[-1] < 0.2
