"""The largest change of a rank correlation: by hand, against scipy pair by pair, with weights, and at the edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

import rankveil as rv
from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError
from rankveil.measures._pairwise import RankCorrelations

correlation_change = get_measure("correlation_change")
NAN = float("nan")


def test_five_records_by_hand() -> None:
    x = np.array([[1.0, 10.0, 5.0], [2.0, 20.0, 4.0], [3.0, 30.0, 3.0], [4.0, 40.0, 2.0], [5.0, 50.0, 1.0]])
    y = x.copy()
    y[:, 1] = [20.0, 10.0, 30.0, 50.0, 40.0]  # 1 - 6 (1 + 1 + 0 + 1 + 1) / (5 * 24) = 0.8
    made = correlation_change(x, y, names=("A", "B", "C"))
    assert made.value == pytest.approx(0.2, abs=1e-15)
    assert made.details["pair"] == {
        "a": "A",
        "b": "B",
        "value": made.value,
        "original": 1.0,
        "masked": pytest.approx(0.8),
        "records": [5, 5],
    }
    assert [(each["a"], each["b"]) for each in made.details["per_pair"]] == [("A", "B"), ("B", "C"), ("A", "C")]
    assert made.details["mean"] == pytest.approx(0.4 / 3)
    assert made.notes == ()


@st.composite
def holed(draw: Any) -> Any:
    """A table of few values, some of them missing."""
    columns = draw(st.integers(2, 4))
    cell = st.sampled_from([NAN, 1.0, 2.0, 3.0, 7.0])
    return np.array(draw(st.lists(st.lists(cell, min_size=columns, max_size=columns), min_size=1, max_size=20)))


@given(holed())
@settings(max_examples=60, deadline=None)
def test_every_pair_is_what_scipy_finds_on_the_records_that_have_both(x: Any) -> None:
    found = RankCorrelations.of(x)
    for (a, b), value in found.values.items():
        both = x[~np.isnan(x[:, [a, b]]).any(axis=1)][:, [a, b]]
        assert found.records[a, b] == len(both)
        if len(both) < 2 or np.any(both.min(axis=0) == both.max(axis=0)):
            assert value is None
        else:
            assert value == pytest.approx(spearmanr(both[:, 0], both[:, 1]).statistic, abs=1e-12)


@given(holed(), st.data())
@settings(max_examples=40, deadline=None)
def test_a_record_of_weight_w_is_w_records(x: Any, data: Any) -> None:
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(x), max_size=len(x))), dtype=float)
    if not weight.any():
        weight[0] = 1.0
    one = RankCorrelations.of(x, weight)
    many = RankCorrelations.of(np.repeat(x, weight.astype(int), axis=0))
    assert {pair: value is None for pair, value in one.values.items()} == {p: v is None for p, v in many.values.items()}
    for pair, value in one.values.items():
        assert value is None or value == pytest.approx(many.values[pair], abs=1e-12)


def test_each_pair_uses_the_records_that_have_both_and_says_how_many() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3))
    x[:120, 0] = NAN  # no record is complete
    x[120:, 1] = NAN
    y = x + rng.normal(size=x.shape)
    names = ["A", "B", "C"]
    tables = [pa.table(dict(zip(names, each.T, strict=True))) for each in (x, y)]
    tables = [table.set_column(0, "A", pa.array(table["A"].to_numpy(), from_pandas=True)) for table in tables]
    tables = [table.set_column(1, "B", pa.array(table["B"].to_numpy(), from_pandas=True)) for table in tables]
    made = rv.audit(*tables, measures=["correlation_change"])
    details = made.values["correlation_change"].details
    assert {(each["a"], each["b"]): each["records"] for each in details["per_pair"]} == {
        ("A", "C"): [80, 80],
        ("B", "C"): [120, 120],
    }
    assert details["records"] == [[80, 80], [120, 120]]
    there = ~np.isnan(x[:, 0])
    wanted = [spearmanr(each[there][:, 0], each[there][:, 2]).statistic for each in (x, y)]
    shown = next(each for each in details["per_pair"] if each["a"] == "A")
    assert (shown["original"], shown["masked"]) == (pytest.approx(wanted[0]), pytest.approx(wanted[1]))
    assert any("A with B" in note for note in made.notes)


def test_an_association_that_is_gone_counts_as_no_correlation() -> None:
    x = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    constant, empty = x.copy(), x.copy()
    constant[:, 1], empty[:, 1] = 5.0, NAN
    for release in (constant, empty):
        made = correlation_change(x, release, names=("A", "B"))
        assert made.value == 1.0
        assert made.details["pair"]["masked"] is None
        assert made.notes == ("constant or empty in the release, where correlations count as 0: B",)


def test_what_has_no_correlation_to_keep() -> None:
    x = np.array([[1.0, 4.0], [2.0, 4.0]])
    with pytest.raises(NotApplicableError, match="no correlation to keep"):
        correlation_change(x, x)
    with pytest.raises(NotApplicableError, match="only one"):
        correlation_change(x[:, :1], x[:, :1])


def test_reversed_is_as_far_as_it_goes_and_equal_tables_are_at_0() -> None:
    x = np.column_stack((np.arange(50.0), np.arange(50.0) ** 3))
    y = np.column_stack((x[:, 0], -x[:, 1]))
    assert correlation_change(x, y).value == 2.0
    assert correlation_change(x, x[np.random.default_rng(1).permutation(50)]).value == 0.0
