"""The largest shift of a mean: by hand, on all values that are there, with weights, dates, and at the edges."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv

NAMES = ["mean_shift"]


def test_five_records_by_hand() -> None:
    original = pa.table({"A": [1.0, 2.0, 3.0, 4.0, 5.0], "B": [0.0, 0.0, 0.0, 0.0, 10.0]})
    masked = pa.table({"A": [2.0, 3.0, 4.0, 5.0, 6.0], "B": [0.0, 0.0, 0.0, 0.0, 5.0]})
    made = rv.audit(original, masked, measures=NAMES)
    details = made.values["mean_shift"].details
    # A: 1 / sqrt 2; B: from 2 to 1, standard deviation 4
    assert details["per_attribute"] == {"A": pytest.approx(1 / np.sqrt(2)), "B": pytest.approx(0.25)}
    assert made["mean_shift"] == details["per_attribute"]["A"]
    assert (details["original"], details["masked"]) == ({"A": 3.0, "B": 2.0}, {"A": 4.0, "B": 1.0})
    assert details["standard_deviations"]["B"] == [4.0, 2.0]
    assert details["records"] == {"A": [5, 5], "B": [5, 5]}


def test_every_column_is_taken_with_all_its_values() -> None:
    original = pa.table({"A": [1.0, 3.0, None, None], "B": [None, None, 1.0, 3.0]})
    masked = pa.table({"A": [None, 3.0, None, None], "B": [None, None, 1.0, 3.0]})
    made = rv.audit(original, masked, measures=NAMES)
    assert made["mean_shift"] == 1.0  # from 2 to 3; suppression moved the mean
    assert made.values["mean_shift"].details["records"] == {"A": [2, 1], "B": [2, 2]}


def test_weights_are_those_of_the_population() -> None:
    weights = [3.0, 1.0]
    original = pa.table({"A": [0.0, 4.0], "W": weights})
    masked = pa.table({"A": [0.0, 8.0], "W": weights})
    made = rv.audit(original, masked, measures=NAMES, columns=["A"], schema=rv.Schema(roles={"W": "weight"}))
    assert made["mean_shift"] == pytest.approx(1 / np.sqrt(3))  # mean 1 and variance 3 before, mean 2 now


def test_dates_are_numbers_and_categories_have_no_mean() -> None:
    days = [datetime.date(2020, 1, day) for day in (1, 3)]
    later = [datetime.date(2020, 1, day) for day in (2, 4)]
    tables = pa.table({"D": days, "C": [1, 2]}), pa.table({"D": later, "C": [1, 1]})
    made = rv.audit(*tables, measures=NAMES, schema=rv.Schema(kinds={"C": "ordinal"}))
    assert made["mean_shift"] == 1.0
    assert any("left out: C" in note for note in made.notes)


def test_a_constant_column_has_no_standard_deviation() -> None:
    original, masked = pa.table({"A": [2.0, 2.0], "B": [1.0, 3.0]}), pa.table({"A": [2.0, 5.0], "B": [1.0, 3.0]})
    made = rv.audit(original, masked, measures=NAMES, columns=["A", "B"])
    assert made["mean_shift"] == 0.0
    assert "constant" in made.values["mean_shift"].details["not_applicable"]["A"]
    alone = rv.audit(original, masked, measures=NAMES, columns=["A"])
    assert "constant in the original" in alone.not_applicable["mean_shift"]


def test_numbers_near_the_largest_and_beyond() -> None:
    huge = pa.table({"A": [1e308, -1e308]}), pa.table({"A": [1e308, 1e308]})
    assert rv.audit(*huge, measures=NAMES)["mean_shift"] == pytest.approx(1.0)
    apart = pa.table({"A": [0.0, 1e-300]}), pa.table({"A": [1e300, 1e300]})
    assert "too large" in rv.audit(*apart, measures=NAMES).not_applicable["mean_shift"]
