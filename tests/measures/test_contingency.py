"""Contingency tables: by hand, against a slow reference, with weights, and where there are too many."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError
from rankveil.measures._codes import Coded, apart, joined

contingency = get_measure("contingency")


@st.composite
def tables(draw: Any) -> tuple[Any, Any]:
    """Two tables of up to four columns: few categories, or so many that not all combinations have a place."""
    columns, most = draw(st.integers(1, 4)), draw(st.sampled_from((2, 60, 5_000)))
    record = st.tuples(*[st.integers(0, most)] * columns)
    x, y = (draw(st.lists(record, min_size=1, max_size=20)) for _ in range(2))
    shared = draw(st.lists(st.sampled_from(x), max_size=20))  # so that some combinations are in both
    return np.array(x, dtype=np.float64), np.array(y + shared, dtype=np.float64)


def reference(x: Any, y: Any, ways: int) -> dict[tuple[int, ...], Fraction]:
    """The distance of every table, by the definition."""
    found = {}
    for k in range(1, min(ways, x.shape[1]) + 1):
        for columns in combinations(range(x.shape[1]), k):
            first, second = (Counter(map(tuple, side[:, columns].tolist())) for side in (x, y))
            cells = [abs(Fraction(first[c], len(x)) - Fraction(second[c], len(y))) for c in {*first, *second}]
            found[columns] = sum(cells, Fraction(0)) / 2
    return found


def test_five_records_by_hand() -> None:
    x = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 1, 1], [1, 1, 1]], dtype=np.float64)
    y = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 0], [1, 0, 1]], dtype=np.float64)
    made = contingency(x, y, names=("A", "B", "C"))
    # A as it was; B 2:3 now 3:2; C as it was
    # AB 00 2 2, 01 1 1, 11 2 1, 10 0 1; AC 00 2 1, 01 1 2, 11 2 1, 10 0 1; BC 00 1 1, 01 1 2, 10 1 1, 11 2 1
    # ABC 000 1 1, 001 1 1, 010 1 0, 011 0 1, 111 2 0, 110 0 1, 101 0 1
    by_columns = made.details["by_columns"]
    assert by_columns["1"]["mean"] == pytest.approx((0 + 1 / 5 + 0) / 3)
    assert by_columns["2"]["mean"] == pytest.approx((1 / 5 + 2 / 5 + 1 / 5) / 3)
    assert by_columns["3"]["mean"] == by_columns["3"]["max"] == 3 / 5
    assert made.value == pytest.approx((1 / 5 + 4 / 5 + 3 / 5) / 7)
    assert [each["columns"] for each in made.details["worst"]][:3] == [["A", "B", "C"], ["A", "C"], ["B"]]
    assert made.details["worst"][0]["cells"] == 7
    assert made.notes == ()
    assert contingency(x, y, ways=2).value == pytest.approx(1 / 6)
    assert contingency(x, y, ways=1).value == pytest.approx(1 / 15)


@given(tables(), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_it_is_what_the_definition_gives(both: tuple[Any, Any], ways: int) -> None:
    found, made = reference(*both, ways), contingency(*both, ways=ways)
    assert made.value == pytest.approx(float(sum(found.values()) / len(found)), abs=1e-14)
    for each in made.details["worst"]:
        assert each["value"] == float(found[tuple(int(name) - 1 for name in each["columns"])])
    assert [each["value"] for each in made.details["worst"]] == sorted(map(float, found.values()), reverse=True)[:20]


@given(tables(), st.data())
@settings(max_examples=40, deadline=None)
def test_a_weight_is_the_record_repeated(both: tuple[Any, Any], data: Any) -> None:
    x, y = both
    weights = [data.draw(st.lists(st.integers(0, 4), min_size=len(side), max_size=len(side))) for side in both]
    weight_x, weight_y = (np.array(weight, dtype=np.float64) for weight in weights)
    if not (weight_x.any() and weight_y.any()):
        with pytest.raises(NotApplicableError, match="weight 0"):
            contingency(x, y, weight_x, weight_y)
        return
    long = contingency(*(np.repeat(side, weight, axis=0) for side, weight in zip(both, weights, strict=True)))
    made = contingency(x, y, weight_x, weight_y)
    assert made.value == pytest.approx(long.value, abs=1e-12)
    cells, same = ({tuple(t["columns"]): t["cells"] for t in each.details["worst"]} for each in (made, long))
    assert cells == same


def test_of_too_many_tables_some_at_even_steps_stand_for_all() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 3, (200, 6)).astype(float), rng.integers(0, 3, (200, 6)).astype(float)
    whole, part = contingency(x, y), contingency(x, y, most=7)
    by_columns = part.details["by_columns"]
    assert [(each["tables"], each["computed"]) for each in by_columns.values()] == [(6, 6), (15, 7), (20, 7)]
    assert part.notes == (
        "of 15 tables of 2 columns 7 are computed, at even steps in the order of the columns",
        "of 20 tables of 3 columns 7 are computed, at even steps in the order of the columns",
    )
    assert part.value == pytest.approx(sum(each["tables"] * each["mean"] for each in by_columns.values()) / 41)
    listed = [tuple(each["columns"]) for each in part.details["worst"]]
    assert len(set(listed)) == 20  # none twice
    triples = list(combinations("123456", 3))
    assert sorted(each for each in listed if len(each) == 3) == [triples[i] for i in (1, 4, 7, 10, 12, 15, 18)]
    everything = {tuple(each["columns"]): each["value"] for each in contingency(x, y).details["worst"]}
    assert all(everything.get(tuple(t["columns"]), t["value"]) == t["value"] for t in part.details["worst"])
    assert whole.notes == ()


def test_neither_the_order_of_records_nor_that_of_columns_shows() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 5, (300, 4)).astype(float), rng.integers(0, 5, (200, 4)).astype(float)
    turned = contingency(rng.permutation(x), rng.permutation(y))
    assert turned.details == contingency(x, y).details
    assert contingency(x[:, ::-1], y[:, ::-1]).value == pytest.approx(turned.value, rel=1e-15)


def test_threads_change_nothing() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 40, (9_000, 3)).astype(float), rng.integers(0, 40, (9_000, 3)).astype(float)
    found = reference(x, y, 3)
    assert contingency(x, y).value == pytest.approx(float(sum(found.values()) / 7), rel=1e-14)


def test_at_the_edges() -> None:
    one = np.zeros((1, 3))
    assert contingency(one, one).value == 0.0
    assert contingency(one, one + 1).value == 1.0
    constant = np.zeros((5, 2))
    assert contingency(constant, constant[:2]).value == 0.0
    new = constant.copy()
    new[0, 1] = 9.0  # only in the masked table
    assert contingency(constant, new).value == pytest.approx((0 + 1 / 5 + 1 / 5) / 3)
    identifiers = np.arange(100.0)[:, None] + np.zeros((100, 3))
    assert contingency(identifiers, identifiers[::-1]).value == 0.0
    assert contingency(identifiers, identifiers + 100).value == 1.0


def test_combinations_beyond_64_bits_are_numbered_again() -> None:
    large = 2**40
    a = Coded(np.array([0, 2**24, 5]), np.array([5, 0]), large)
    b = Coded(np.array([0, 0, 3]), np.array([3, 0]), large)
    both = joined(a, b)  # 2**24 * 2**40 would be 0 again
    assert apart(both).distance == apart(a).distance == pytest.approx(1 / 3)
    assert len(set(both.x.tolist())) == 3
    assert both.y.tolist() == [both.x[2], both.x[0]]


def test_what_chance_alone_would_give() -> None:
    # the mean distance of 100 pairs of tables has a standard error below 1 %, the formula is good to a few per cent
    rng = np.random.default_rng(0)
    made = [
        contingency(*(np.floor(np.array([4, 5, 6]) * rng.random((n, 3))) for n in (3_000, 2_000))) for _ in range(100)
    ]
    assert np.mean([each.value for each in made]) == pytest.approx(
        np.mean([each.details["expected"] for each in made]), rel=0.06
    )
