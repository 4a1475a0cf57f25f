"""Cramer's V: by hand, against scipy and a slow reference, with weights, and where columns are constant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats.contingency import association, crosstab

from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError

cramers_v = get_measure("cramers_v")


@st.composite
def tables(draw: Any) -> tuple[Any, Any]:
    """Two tables of two or three columns: few categories, or so many that not all combinations have a place."""
    columns, most = draw(st.integers(2, 3)), draw(st.sampled_from((1, 3, 5_000)))
    record = st.tuples(*[st.integers(0, most)] * columns)
    x, y = (draw(st.lists(record, min_size=1, max_size=25)) for _ in range(2))
    return np.array(x, dtype=np.float64), np.array(y, dtype=np.float64)


def counts(a: Any, b: Any) -> Any:
    return crosstab(a, b).count


def reference(a: Any, b: Any) -> float:
    table = counts(a, b)
    return float(association(table, method="cramer")) if min(table.shape) > 1 else 0.0


def corrected(a: Any, b: Any) -> float:
    """Bergsma 2013, equations 7 to 9."""
    table, n = counts(a, b), len(a)
    r, c = table.shape
    if min(r, c) == 1 or max(r, c) >= n:
        return 0.0
    e = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / n
    square = max(((table - e) ** 2 / e).sum() / n - (r - 1) * (c - 1) / (n - 1), 0)
    return float(np.sqrt(square / min(r - (r - 1) ** 2 / (n - 1) - 1, c - (c - 1) ** 2 / (n - 1) - 1)))


def test_five_records_by_hand() -> None:
    x = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1]], dtype=np.float64)
    # 2 1 / 0 2: phi^2 = (2 * 2 - 1 * 0)^2 / (3 * 2 * 2 * 3) = 16 / 36
    y = np.array([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]], dtype=np.float64)
    # 1 1 1 / 1 1 0: expected 6/5 6/5 3/5 / 4/5 4/5 2/5; chi^2 = 1/30 + 1/30 + 4/15 + 1/20 + 1/20 + 2/5 = 5/6
    made = cramers_v(x, y, names=("A", "B"))
    before, after = 4 / 6, np.sqrt(5 / 6 / 5)
    assert made.value == pytest.approx(before - after)
    assert made.details["columns"] == ["A", "B"]
    assert made.details["original"] == [[1.0, pytest.approx(before)], [pytest.approx(before), 1.0]]
    assert made.details["masked"][0][1] == pytest.approx(after)
    [pair] = made.details["per_pair"]
    assert (pair["a"], pair["b"], pair["value"]) == ("A", "B", made.value)
    # (16/36 - 1/4) / (1 - 1/4) and max(1/6 - 2/4, 0)
    assert cramers_v(x, y, corrected=True).value == pytest.approx(np.sqrt((16 / 36 - 1 / 4) / (3 / 4)))


@given(tables())
@settings(max_examples=80, deadline=None)
def test_it_is_what_others_compute(both: tuple[Any, Any]) -> None:
    stacked = np.vstack(both)
    kept = [j for j in range(stacked.shape[1]) if np.unique(stacked[:, j]).size > 1]
    if len(kept) < 2:
        with pytest.raises(NotApplicableError, match="fewer than two"):
            cramers_v(*both)
        return
    for option, slow in ((False, reference), (True, corrected)):
        made = cramers_v(*both, corrected=option)
        pairs = [(a, b) for a in kept for b in kept if a < b]
        apart = [abs(slow(both[0][:, a], both[0][:, b]) - slow(both[1][:, a], both[1][:, b])) for a, b in pairs]
        assert made.value == pytest.approx(np.mean(apart), abs=1e-7)
        assert made.details["columns"] == [str(j + 1) for j in kept]
        for i, a in enumerate(kept):
            for j, b in enumerate(kept):
                if a != b:
                    assert made.details["masked"][i][j] == pytest.approx(slow(both[1][:, a], both[1][:, b]), abs=1e-7)


@given(tables(), st.data())
@settings(max_examples=40, deadline=None)
def test_a_weight_is_the_record_repeated(both: tuple[Any, Any], data: Any) -> None:
    weights = [data.draw(st.lists(st.integers(0, 4), min_size=len(side), max_size=len(side))) for side in both]
    repeated = [np.repeat(side, weight, axis=0) for side, weight in zip(both, weights, strict=True)]
    as_numbers = [np.array(weight, dtype=np.float64) for weight in weights]
    try:
        made = cramers_v(*both, *as_numbers)
    except NotApplicableError as why:
        if "weight 0" in str(why):
            assert min(map(len, repeated)) == 0
        else:
            assert sum(np.unique(column).size > 1 for column in np.vstack(repeated).T) < 2
        return
    long = cramers_v(*repeated)
    assert made.value == pytest.approx(long.value, abs=1e-7)
    assert made.details["columns"] == long.details["columns"]
    assert made.notes == long.notes


def test_equal_weights_correct_as_none_do() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 4, (40, 3)).astype(float), rng.integers(0, 4, (40, 3)).astype(float)
    weight = np.full(40, 2.5)
    made = cramers_v(x, y, weight, weight, corrected=True)
    assert made.value == pytest.approx(cramers_v(x, y, corrected=True).value, rel=1e-12)


def test_weights_of_very_different_size() -> None:
    x = np.array([[0, 0], [1, 1], [0, 0]], dtype=np.float64)
    weight = np.array([1e-200, 1e-200, 1.0])
    assert cramers_v(x, x, weight, weight).details["original"][0][1] == pytest.approx(1.0)


def test_a_constant_column_has_no_association_and_is_named() -> None:
    x = np.array([[0, 0, 7], [0, 0, 7], [1, 1, 7], [1, 1, 7]], dtype=np.float64)
    y = x.copy()
    y[:, 1] = 0.0
    made = cramers_v(x, y, names=("A", "B", "C"))
    assert made.value == pytest.approx(1.0)  # it was 1, and nothing of it is left
    assert made.notes == (
        "column C is constant in both tables: left out",
        "column B is constant in the masked table: its associations are 0 there",
    )
    assert made.details["masked"] == [[1.0, 0.0], [0.0, 0.0]]
    assert cramers_v(y, x).value == pytest.approx(1.0)


def test_independent_columns_have_none_to_the_last_digit() -> None:
    for r in range(2, 9):
        for c in range(r, 12):
            x = np.array([(a, b) for a in range(r) for b in range(c)], dtype=np.float64)
            assert cramers_v(np.repeat(x, 3, axis=0), x).details["original"][0][1] < 1e-14


def test_at_the_edges() -> None:
    with pytest.raises(NotApplicableError, match="fewer than two"):
        cramers_v(np.zeros((1, 2)), np.zeros((1, 2)))
    with pytest.raises(NotApplicableError, match="fewer than two"):
        cramers_v(np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]))
    assert cramers_v(np.zeros((1, 2)), np.ones((1, 2))).value == 0.0  # constant in each, not in both together
    identifiers = np.repeat(np.arange(1_000.0)[:, None], 2, axis=1)
    assert cramers_v(identifiers, identifiers[::-1]).value == 0.0
    assert cramers_v(identifiers, identifiers).details["original"][0][1] == pytest.approx(1.0)
    assert cramers_v(identifiers, identifiers, corrected=True).details["original"][0][1] == 0.0
    new = np.array([[0, 0], [0, 1], [1, 0], [1, 5]], dtype=np.float64)
    assert 0 <= cramers_v(new[:, ::-1] % 2, new).value <= 1


def test_the_correction_takes_chance_away() -> None:
    # independent columns of many categories: V is far above 0 by chance, corrected it is near
    rng = np.random.default_rng(0)
    x = rng.integers(0, 15, (300, 2)).astype(float)
    plain, less = (cramers_v(x, x, corrected=option).details["original"][0][1] for option in (False, True))
    assert plain > 0.2
    assert less < 0.1
