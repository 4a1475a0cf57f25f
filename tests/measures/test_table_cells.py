"""Cells of two-way tables: by hand, against a slow count, classes of numbers, weights, and what is missing."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError
from rankveil.measures.table_cells import limits_of

table_cells = get_measure("table_cells")
NAN = float("nan")


def table(*cells: tuple[float, float, int]) -> Any:
    return np.repeat([[a, b] for a, b, _ in cells], [count for *_, count in cells], axis=0)


def test_cells_by_hand() -> None:
    x = table((0, 0, 100), (0, 1, 40), (1, 0, 20), (1, 1, 40))
    y = table((0, 0, 105), (0, 1, 38), (1, 0, 18), (1, 2, 39))
    # 5 %: kept; 38 of 40: kept; 18 of 20: not; 40 lost: not; 39 invented: not
    made = table_cells(x, y, names=("A", "B"))
    assert made.value == 2 / 5
    assert made.details["worst"] == {
        "a": "A",
        "b": "B",
        "value": 2 / 5,
        "cells": 5,
        "kept": 2,
        "by_records": 140 / 200,
        "expected": made.details["expected"],
        "records": [200, 200],
    }
    assert table_cells(x, y, within=10.0).value == 3 / 5
    # the shares of 200 records and of twice as many are the same
    assert table_cells(x, np.repeat(y, 2, axis=0)).value == 2 / 5


@st.composite
def holed(draw: Any) -> tuple[Any, Any]:
    columns, most = draw(st.integers(2, 3)), draw(st.sampled_from((1, 3, 40_000)))
    cell = st.one_of(st.just(NAN), st.integers(0, most).map(float))
    record = st.lists(cell, min_size=columns, max_size=columns)
    x, y = (draw(st.lists(record, min_size=1, max_size=25)) for _ in range(2))
    return np.array(x), np.array(y)


def slowly(x: Any, y: Any, within: float) -> float | None:
    shares = []
    several = [j for j in range(x.shape[1]) if not np.isnan(x[:, j]).all() and len(_values(x[:, j], y[:, j])) > 1]
    for pair in combinations(several, 2):
        counts = [Counter(tuple(row) for row in side[:, pair].tolist() if _whole(row)) for side in (x, y)]
        n, m = (sum(count.values()) for count in counts)
        if n:
            cells = counts[0].keys() | counts[1].keys()
            kept = [abs(counts[1][c] * n - counts[0][c] * m) * 100 <= within * counts[0][c] * m for c in cells]
            shares.append(np.mean([good and m > 0 and counts[0][c] > 0 for good, c in zip(kept, cells, strict=True)]))
    return float(np.mean(shares)) if shares else None


def _whole(row: Any) -> bool:
    return not any(np.isnan(row))


def _values(x: Any, y: Any) -> set[float]:
    return {value for value in (*x.tolist(), *y.tolist()) if not np.isnan(value)}


@given(holed(), st.sampled_from((0, 5, 50)))
@settings(max_examples=80, deadline=None)
def test_it_is_what_counting_gives(both: tuple[Any, Any], within: int) -> None:
    wanted = slowly(*both, within)
    if wanted is None:
        with pytest.raises(NotApplicableError):
            table_cells(*both, within=float(within))
    else:
        assert table_cells(*both, within=float(within)).value == pytest.approx(wanted)


@given(holed(), st.data())
@settings(max_examples=40, deadline=None)
def test_a_record_of_weight_w_is_w_records(both: tuple[Any, Any], data: Any) -> None:
    weights = []
    for side in both:
        drawn = data.draw(st.lists(st.integers(1, 3), min_size=len(side), max_size=len(side)))
        weights.append(np.array(drawn, dtype=float))
    repeated = [np.repeat(side, weight.astype(int), axis=0) for side, weight in zip(both, weights, strict=True)]
    for kinds in (("nominal",), ("numeric",)):
        try:
            wanted = table_cells(*repeated, kinds=kinds * both[0].shape[1]).value
        except NotApplicableError:
            continue
        assert table_cells(*both, *weights, kinds=kinds * both[0].shape[1]).value == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        (np.arange(10.0), [1.5, 3.5, 5.5, 7.5]),
        (np.array([0.0] * 90 + [1.0] * 10), [0.5]),
        (np.array([0.0] * 50 + list(np.arange(1.0, 51.0))), [0.5, 10.5, 30.5]),  # the median lies between 0 and 1
        (np.array([3.0]), []),
        (np.array([1.0, np.nextafter(1.0, 2.0)]), [np.nextafter(1.0, 2.0)]),
        (np.array([-1.7e308, 1.7e308]), [0.0]),
    ],
)
def test_classes_end_between_values(values: Any, limits: list[float]) -> None:
    assert limits_of(values, None, classes=5).tolist() == pytest.approx(limits)


def test_numbers_are_in_classes_and_categories_as_they_are() -> None:
    n = 1_000
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], n)
    income = np.exp(rng.normal(size=n))
    original = pa.table({"G": group, "I": income})
    asked = {"measures": ["table_cells"], "columns": ["G", "I"]}
    near = rv.audit(original, pa.table({"G": group, "I": income * 1.000001}), **asked)
    far = rv.audit(original, pa.table({"G": group, "I": income * 2}), **asked)
    assert near["table_cells"] == 1.0
    assert near.values["table_cells"].details["cells"] == 10
    assert far["table_cells"] == 0.0


def test_missing_values_are_left_out_pair_by_pair_and_said() -> None:
    x = np.array([[0, 0, NAN]] * 10 + [[1, NAN, 0]] * 10 + [[0, NAN, 1]] * 10)
    made = table_cells(x, x, names=("A", "B", "C"))
    assert made.value == 1.0
    assert made.details["tables"] == 1  # B has one value only, and nobody has both B and C
    assert made.details["per_pair"][0]["records"] == [20, 20]
    assert made.notes == ("left out, of one class only or without a value: B",)
    gone = x.copy()
    gone[:, 2] = NAN
    made = table_cells(x, gone, names=("A", "B", "C"))
    assert made.value == 0.0
    assert "no released record has both columns, so no cell of the table is kept: A by C" in made.notes


def test_the_level_of_two_samples_of_one_population() -> None:
    rng = np.random.default_rng(6)
    shares = rng.dirichlet(np.full(12, 3.0))
    found = []
    for n, m in ((3_000, 3_000), (20_000, 5_000)):
        made = []
        for _ in range(60):
            x, y = (np.column_stack(divmod(rng.choice(12, size, p=shares), 4)).astype(float) for size in (n, m))
            value = table_cells(x, y)
            made.append((value.value, value.details["expected"]))
        values, expected = np.mean(made, axis=0)
        assert abs(values - expected) < 5 * np.std(made, axis=0)[0] / np.sqrt(60) + 0.01  # the normal approximation
        found.append(expected)
    assert found[0] < found[1]
