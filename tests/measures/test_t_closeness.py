"""t-closeness: by hand, against its definition, with missing cells, and at its ends."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError

t_closeness = get_measure("t_closeness")


def test_the_example_of_the_paper() -> None:
    # Li, Li and Venkatasubramanian 2007: of salaries 3k to 11k, {3k, 4k, 5k} is 0.375 away and {6k, 8k, 11k} 0.167;
    # {7k, 9k, 10k} comes to 17/72 = 0.236
    salary = {"SALARY": np.array([3.0, 4.0, 5.0, 6.0, 8.0, 11.0, 7.0, 9.0, 10.0])}
    ages = {"AGE": np.array([20.0] * 3 + [40.0] * 3 + [30.0] * 3)}
    made = t_closeness(ages, salary, {"SALARY": "numeric"})
    assert made.value == pytest.approx(0.375)
    assert made.details["distance"] == {"SALARY": "ordered"}
    above = {
        0.37: [1, 2, 3],
        0.24: [1, 2, 3],
        0.23: [1, 2, 3, 7, 8, 9],
        0.167: [1, 2, 3, 7, 8, 9],
        0.166: [*range(1, 10)],
    }
    for limit, rows in above.items():
        details = t_closeness(ages, salary, {"SALARY": "numeric"}, limit=limit).details
        assert details["rows"] == rows
        assert details["records_above_limit"] == len(rows)


def test_categories_without_order() -> None:
    # all: 1/2, 1/4, 1/4; the first class: 1/1 of the first: (1/2 + 1/4 + 1/4) / 2; the second 0, 1/2, 1/2
    work = {"WORK": np.array([0.0, 0.0, 1.0, 2.0])}
    ages = {"AGE": np.array([30.0, 30.0, 40.0, 40.0])}
    assert t_closeness(ages, work, {"WORK": "nominal"}).value == 0.5
    # with an order: F = 1/2, 3/4, 1; F_class = 1, 1, 1 and 0, 1/2, 1; (1/2 + 1/4) / 2 both times
    assert t_closeness(ages, work, {"WORK": "ordinal"}).value == 0.375


def definition(number: np.ndarray, values: np.ndarray, *, ordered: bool) -> float:
    there = ~np.isnan(values)
    number, values = number[there], values[there]
    found = np.unique(values)
    if found.size == 1:
        return 0.0
    whole = np.array([np.mean(values == v) for v in found])
    worst = 0.0
    for each in np.unique(number):
        mine = np.array([np.mean(values[number == each] == v) for v in found])
        if ordered:
            distance = np.abs(np.cumsum(mine - whole)).sum() / (found.size - 1)
        else:
            distance = np.abs(mine - whole).sum() / 2
        worst = max(worst, float(distance))
    return worst


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([-1.0, 0.0, 0.5, 2.0, 3.0, 8.0, math.nan])),
        min_size=1,
        max_size=60,
    ),
    st.booleans(),
)
def test_against_the_definition(rows: list[tuple[int, float]], ordered: bool) -> None:
    number, values = np.array(rows, dtype=float).T
    if np.isnan(values).all():
        values[0] = 1.0
    made = t_closeness({"Q": number}, {"S": values}, {"S": "numeric" if ordered else "nominal"})
    assert made.value == pytest.approx(definition(number, values, ordered=ordered), abs=1e-12)


def test_many_values_in_many_classes() -> None:
    rng = np.random.default_rng(0)
    number, values = rng.integers(0, 40, 3000).astype(float), np.round(rng.normal(size=3000), 2)
    made = t_closeness({"Q": number}, {"S": values}, {"S": "numeric"})
    assert made.value == pytest.approx(definition(number, values, ordered=True), abs=1e-12)


def test_the_ends() -> None:
    one = {"Q": np.ones(6)}
    assert t_closeness(one, {"S": np.arange(6.0)}, {"S": "numeric"}).value == 0.0
    assert t_closeness({"Q": np.arange(6.0)}, {"S": np.full(6, 0.1)}, {"S": "numeric"}).value == 0.0
    # 1000 records apart: the class of one has all its weight at the other end
    far = np.array([1.0] + [0.0] * 999)
    assert t_closeness({"Q": far}, {"S": far}, {"S": "numeric"}).value == pytest.approx(0.999)
    assert t_closeness({"Q": far}, {"S": far}, {"S": "nominal"}).value == pytest.approx(0.999)


def test_missing_values_are_left_out_of_the_distributions_and_counted() -> None:
    quasi = {"AGE": np.array([1.0, 1.0, 2.0, 2.0, 3.0])}
    wage = {"WAGE": np.array([1.0, 2.0, 1.0, np.nan, np.nan]), "EMPTY": np.full(5, np.nan)}
    made = t_closeness(quasi, wage, {"WAGE": "numeric", "EMPTY": "nominal"})
    # 1, 2, 1 in all: F = 2/3, 1; the classes: 1/2, 1 and 1, 1; the third has no wage and tells nothing
    assert made.value == pytest.approx(1 / 3)
    assert made.notes == (
        "column WAGE: 2 of 5 cells are missing and left out of the distributions",
        "column EMPTY left out: all its cells are missing",
    )
    with pytest.raises(NotApplicableError, match="every confidential value is missing"):
        t_closeness(quasi, {"EMPTY": wage["EMPTY"]}, {"EMPTY": "nominal"})


def test_without_roles_it_says_how_to_give_them() -> None:
    with pytest.raises(NotApplicableError, match="--role COLUMN=quasi-identifier"):
        t_closeness({}, {"S": np.ones(2)}, {"S": "numeric"})
    with pytest.raises(NotApplicableError, match="--role COLUMN=confidential"):
        t_closeness({"Q": np.ones(2)}, {}, {})


def test_what_is_told_can_be_written() -> None:
    json.dumps(t_closeness({"Q": np.ones(2)}, {"S": np.ones(2)}, {"S": "numeric"}).details, allow_nan=False)
