"""The numbers behind the pictures."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import rankveil as rv
from rankveil.errors import ParameterError
from rankveil.report.chart import Bars, Line
from rankveil.report.figures import match_distances, permutation_level

# Table 5 of new-directions: all 8000 random records of the running example.
NULL = dict(enumerate([0.0025, 0.058625, 0.189875, 0.301375, 0.2595, 0.12875, 0.04275, 0.01425, 0.002375]))


def test_level_is_sorted_and_complete() -> None:
    chart = permutation_level({"A": np.array([3.0, 0.0, 1.5, 2.0])}, n=4)
    assert chart.series == (Line("A", [1, 2, 3, 4], [0, 1.5, 2, 3]),)
    assert chart.title == "A: mean rank change 54.2 % of n - 1"
    assert chart.note == "n = 4 records. Largest rank change: A: 3."


def test_level_title_names_most_and_least() -> None:
    levels = {"A": np.full(11, 1.0), "B": np.full(11, 5.0), "C": np.full(11, 2.0)}
    assert permutation_level(levels, n=11).title == "B moved most: mean rank change 50.0 % of n - 1; A least: 10.0 %"


def test_level_title_agrees_with_the_measure_when_values_are_missing() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=100), rng.normal(size=100)
    x[:60] = np.nan
    audit = rv.audit(pa.table({"A": x}), pa.table({"A": y}))
    chart = permutation_level(audit.rank_changes(), n=audit.records)
    assert chart.title == f"A: mean rank change {100 * audit['permutation_level']:.1f} % of n - 1"


def test_level_titles_of_special_cases() -> None:
    still = {"A": np.zeros(3), "B": np.zeros(3)}
    assert permutation_level(still, n=3).title == "No record changed its rank"
    alike = {"A": np.array([0.0, 1.0, 1.0]), "B": np.array([1.0, 0.0, 1.0])}
    assert permutation_level(alike, n=3).title == "All 2 attributes moved alike: mean rank change 33.3 % of n - 1"
    assert permutation_level({"A": np.zeros(1)}, n=1).title == "No record changed its rank"
    assert permutation_level(still, n=3, title="As published").title == "As published"


def test_level_counts_records_left_out() -> None:
    note = permutation_level({"A": np.zeros(4), "B": np.zeros(5)}, n=5).note
    assert "Records compared: A: 4; B: 5." in note


@pytest.mark.parametrize("size", [2001, 12_345])
def test_long_curves_are_thinned_at_exact_positions(size: int) -> None:
    rng = np.random.default_rng(0)
    values = rng.permutation(size).astype(float) ** 2
    chart = permutation_level({"A": values}, n=size)
    [line] = chart.series
    assert len(line.x) == 1001
    assert (line.y[0], line.y[-1]) == (values.min(), values.max())
    assert (line.x[0], line.x[-1]) == (1, size)
    # Every drawn point is a record of the sorted curve, none is interpolated.
    ordered = np.sort(values)
    assert [ordered[int(place) - 1] for place in line.x] == list(line.y)
    assert "1001 of them" in chart.note


def test_short_curves_are_drawn_whole() -> None:
    chart = permutation_level({"A": np.arange(2000.0)}, n=2000)
    assert len(chart.series[0].x) == 2000
    assert "evenly" not in chart.note


def test_few_distances_become_bars() -> None:
    observed = np.array([2.0, 2, 3, 3, 3, 4, 4, 5, 6, 1])
    chart = match_distances(observed, NULL, n=10, draws=8000, claims=0, withstands=True)
    real, random = chart.series
    assert isinstance(real, Bars)
    assert real.x == tuple("012345678")
    assert real.y == (0, 0.1, 0.2, 0.3, 0.2, 0.1, 0.1, 0, 0)
    assert random.y == tuple(NULL.values())
    assert chart.title == "None of the 10 records can be claimed: their matches are no closer than chance explains"
    assert chart.note == "n = 10 real records, 8000 random records."


def test_pairs_of_arrays_equal_a_mapping() -> None:
    pair = (np.array(list(NULL), dtype=float)[::-1], np.array(list(NULL.values()))[::-1])
    facts = {"n": 2, "draws": 8000, "claims": 0, "withstands": True}
    observed = np.array([0.0, 2.0])
    assert match_distances(observed, pair, **facts) == match_distances(observed, NULL, **facts)


def test_halves_keep_the_axis_to_scale() -> None:
    chart = match_distances(np.array([0.0, 1.5]), {0.0: 0.5, 2.0: 0.5}, n=2, draws=4, claims=0, withstands=True)
    assert chart.series[0].x == ("0", "0.5", "1", "1.5", "2")
    assert chart.series[0].y == (0.5, 0, 0, 0.5, 0)


def test_an_axis_with_gaps_is_announced() -> None:
    chart = match_distances(np.array([0.0, 900.0]), {3.0: 1.0}, n=2, draws=9, claims=1, withstands=False)
    assert chart.series[0].x == ("0", "3", "900")
    assert "not to scale" in chart.note
    assert chart.title.startswith("1 of 2 records can be claimed")


def test_many_distances_become_common_bins() -> None:
    observed = np.arange(100.0)
    null = {float(distance): 1 / 200 for distance in range(200)}
    chart = match_distances(observed, null, n=100, draws=200, claims=0, withstands=True)
    real, random = chart.series
    assert isinstance(real, Line)
    assert real.step
    assert real.x == random.x
    # 200 possible distances: 40 bins of 5, each with 5 of the 100 or of the 200.
    assert real.x == (0, *range(0, 201, 5))
    assert real.y == pytest.approx((0, *[0.05] * 20, *[0] * 20, 0))
    assert random.y == pytest.approx((0, *[0.025] * 40, 0))
    assert "Shares in 40 common bins of width 5." in chart.note


@settings(max_examples=60, deadline=None)
@given(
    observed=some.lists(some.integers(0, 400).map(lambda value: value / 2), min_size=1, max_size=60),
    null=some.dictionaries(
        some.integers(0, 400).map(lambda value: value / 2), some.integers(1, 9), min_size=1, max_size=60
    ),
)
def test_shares_sum_to_one(observed: list[float], null: dict[float, int]) -> None:
    total = sum(null.values())
    shares = {distance: count / total for distance, count in null.items()}
    chart = match_distances(np.array(observed), shares, n=len(observed), draws=total, claims=0, withstands=True)
    for series in chart.series:
        assert sum(series.y) == pytest.approx(1)
        assert min(series.y) >= 0


def test_distances_that_are_no_ranks() -> None:
    rng = np.random.default_rng(3)
    observed, random = rng.random(50), rng.random(200)
    chart = match_distances(observed, (random, np.full(200, 1 / 200)), n=50, draws=200, claims=0, withstands=True)
    assert len(chart.series[0].x) == 42
    for series in chart.series:
        assert sum(series.y) == pytest.approx(1)


def test_bad_distances_are_refused() -> None:
    facts = {"n": 1, "draws": 1, "claims": 0, "withstands": True}
    with pytest.raises(ParameterError, match="no attribute"):
        permutation_level({}, n=3)
    with pytest.raises(ParameterError, match="attribute A: a distance is negative"):
        permutation_level({"A": np.array([np.nan])}, n=1)
    with pytest.raises(ParameterError, match="no record"):
        match_distances(np.array([]), NULL, **facts)
    with pytest.raises(ParameterError, match=r"sum to 0\.5"):
        match_distances(np.zeros(1), {0.0: 0.5}, **facts)
    with pytest.raises(ParameterError, match="1 distances but 2 shares"):
        match_distances(np.zeros(1), (np.zeros(1), np.full(2, 0.5)), **facts)
    with pytest.raises(ParameterError, match="withstands exactly when"):
        match_distances(np.zeros(1), NULL, n=1, draws=1, claims=1, withstands=True)
