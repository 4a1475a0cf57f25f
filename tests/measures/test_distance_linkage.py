"""Distance-based record linkage: five records by hand, all pairs by brute force, what a method promises."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rankveil as rv
from rankveil.catalogue import Value

X = pd.DataFrame({"A": [10.0, 20.0, 30.0, 40.0, 50.0]})


def made(x: pd.DataFrame, y: pd.DataFrame) -> Value:
    return rv.audit(x, y, measures=["distance_linkage"]).values["distance_linkage"]


def test_five_records() -> None:
    found = made(X, pd.DataFrame({"A": [11.0, 32.0, 23.0, 41.0, 44.0]}))
    # 10 and 40 find their own; 20 finds the third, 30 the second; 50 finds its own, though it is 6 away
    assert found.value == pytest.approx(3 / 5)
    assert (found.details["correct"], found.details["tied"]) == (pytest.approx(3 / 5), 0.0)
    sd = np.sqrt(200)
    exposed = found.details["most_exposed"]  # those linked first, and of them the farthest from the mean of 30
    assert [(each["record"], each["value"]) for each in exposed] == [(1, 1), (5, 1), (4, 1), (2, 0), (3, 0)]
    assert [each["distance"] for each in exposed] == pytest.approx(np.array([1, 6, 1, 12, 7]) / sd)


def test_a_tie_counts_its_share() -> None:
    found = made(X, pd.DataFrame({"A": [10.0, 30.0, 30.0, 30.0, 10.0]}))
    # 10: two are equal. 20: all five are 10 away. 30 and 40: three are nearest. 50: the three are nearer than its own.
    assert found.value == pytest.approx((1 / 2 + 1 / 5 + 1 / 3 + 1 / 3) / 5)
    assert found.details["correct"] == 0.0
    assert found.details["tied"] == pytest.approx(4 / 5)
    assert [each["record"] for each in found.details["most_exposed"]] == [1, 4, 3, 2, 5]


def test_the_unit_is_the_standard_deviation_of_the_original() -> None:
    x = pd.DataFrame({"small": [1.0, 2.0, 3.0, 4.0], "large": [1e6, 2e6, 3e6, 4e6]})
    y = x.assign(large=x["large"] + 6e5)
    # the own record is 0.6 steps away, the one before it 1 and 0.4: in plain numbers that one would be nearer
    assert made(x, y).value == 1.0
    assert made(x, y).details["most_exposed"][0]["distance"] == pytest.approx(0.6 / np.sqrt(1.25))


@given(st.lists(st.tuples(*[st.integers(-3, 3)] * 4), min_size=1, max_size=25), st.sampled_from([1, 10, 1000]))
def test_all_pairs_by_brute_force(rows: list[tuple[int, ...]], decimals: int) -> None:
    whole = [[Fraction(value) for value in row] for row in rows]
    variances = [sum(v * v for v in c) / len(c) - (sum(c) / len(c)) ** 2 for c in list(zip(*whole, strict=True))[:2]]
    kept = [j for j, variance in enumerate(variances) if variance > 0]
    chances = []
    for i, a in enumerate(whole):
        steps = [tuple(abs(a[j] - b[2 + j]) for j in kept) for b in whole]
        apart = [sum(d * d / variances[j] for d, j in zip(step, kept, strict=True)) for step in steps]
        nearest = [step for step, distance in zip(steps, apart, strict=True) if distance == min(apart)]
        assume(len(set(nearest)) == 1)  # one step here may equal three there, but not when their units are rounded
        chances.append(Fraction(apart[i] == min(apart), len(nearest)))
    table = np.array(rows) / decimals
    x, y = (pd.DataFrame(side, columns=["A", "B"]) for side in (table[:, :2], table[:, 2:]))
    assert made(x, y).value == pytest.approx(float(sum(chances) / len(rows)), abs=1e-12)


@pytest.mark.parametrize("k", [2, 5])
def test_groups_of_k_equal_records_hide_each_other(reference_data: Callable[[str], Path], k: int) -> None:
    table = pd.read_csv(reference_data("census"))
    found = made(table, rv.mask(table, "mdav", k=k).data)
    assert found.details["correct"] == 0.0
    assert 0.5 / k < found.value <= 1 / k


def test_a_kept_release_is_linked_and_a_permuted_one_by_chance() -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(500, 3)), columns=list("ABC"))
    assert made(table, table).value == 1.0
    permuted = rv.mask(table, "permute", seed=1).data
    # about one right link among all: more than 14 happen less than once in a million (Poisson)
    assert made(table, permuted).value * 500 < 14
