"""The numbers behind the pictures."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import rankveil as rv
from rankveil.errors import ParameterError
from rankveil.report.chart import Bars, Chart, Heat, Line, Points
from rankveil.report.figures import (
    dominance_curves,
    loss_per_attribute,
    marginals,
    match_distances,
    matrix_heat,
    most_exposed,
    permutation_level,
    risk_utility_map,
    strength_curves,
)

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
    assert chart.title == "The paper's test: of 10 matches none is nearer than records of independent values come"
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
    assert chart.title.startswith("The paper's test: 1 of 2 matches are nearer")


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


def mapped(points: dict[str, list[dict[str, object]]], **more: str) -> Chart:
    return risk_utility_map(points, risk="linkage", utility="um", risk_better="lower", utility_better="higher", **more)


def test_map_shows_points_intervals_and_front() -> None:
    points: dict[str, list[dict[str, object]]] = {
        "mdav": [
            {"risk": 0.3, "utility": 0.9, "low": 0.85, "high": 0.92, "label": "k = 2", "front": True},
            {"risk": 0.1, "utility": 0.6, "label": "k = 9", "front": True},
        ],
        "noise": [
            {"risk": 0.2, "utility": 0.7, "front": True},
            {"risk": 0.3, "utility": None, "front": False},
        ],
        "swap": [{"risk": 0.4, "utility": 0.1, "front": False}],
    }
    chart = mapped(points)
    mdav, noise, swap, front = chart.series
    assert isinstance(mdav, Points)
    assert (mdav.x, mdav.y, mdav.labels, mdav.marked) == ((0.3, 0.1), (0.9, 0.6), ("k = 2", "k = 9"), (True, True))
    assert (mdav.low[0], mdav.high[0]) == (0.85, 0.92)
    assert np.isnan(mdav.low[1])
    assert noise == Points("noise", [0.2], [0.7], marked=[True])
    assert swap == Points("swap", [0.4], [0.1], marked=[False])
    assert front == Line("front", [0.1, 0.2, 0.3], [0.6, 0.7, 0.9], guide=True)
    assert chart.title == "On the front: mdav (2) and noise (1); every point of swap is beaten"
    assert chart.x_label == "linkage (lower is better)"
    assert chart.note.startswith("4 points of 3 methods.")
    assert chart.note.endswith("1 left out: risk or utility is not known there.")
    assert not chart.y_from_zero


def test_titles_of_maps() -> None:
    def at(*fronts: bool) -> list[dict[str, object]]:
        return [{"risk": 0.1, "utility": 0.2, "front": front} for front in fronts]

    assert mapped({"a": at(True, False)}).title == "a: 1 of 2 points are on the front"
    assert mapped({"a": at(True), "b": at(True)}).title == "On the front: a (1) and b (1)"
    behind = {"a": at(True), **{name: at(False) for name in "bcdef"}}
    assert mapped(behind).title == "Only a is on the front: every point of b, c, d and 2 more is beaten"
    assert mapped({"a": at(False), "b": at(False)}).title == "Risk and utility of a and b"
    assert len(mapped({"a": at(True)}).series) == 1
    with pytest.raises(ParameterError, match="both a risk and a utility"):
        mapped({"a": [{"risk": float("nan"), "utility": 1.0, "front": False}]})


def test_strengths_are_sorted_and_gaps_told() -> None:
    chart = strength_curves({"a": ([10, 2, 5], [0.3, 0.1, np.nan])}, strength="k", measure="cm1", log_x=True)
    [line] = chart.series
    assert line.x == (2, 5, 10)
    assert line.y[::2] == (0.1, 0.3)
    assert np.isnan(line.y[1])
    assert chart.log_x
    assert not chart.y_from_zero
    assert chart.title == "cm1 rises with k, between 0.1 and 0.3"
    assert chart.note == "k from 2 to 10, 3 values. 1 value is not known: there is a gap."


@pytest.mark.parametrize(
    ("curves", "title"),
    [
        ({"a": ([1, 2], [3, 2]), "b": ([1, 2], [2, 1])}, "m falls as k grows in every curve, between 3 and 1"),
        ({"a": ([1, 2], [3, 2]), "b": ([1, 2], [0, 1])}, "m is highest, 3, at a, k = 1, and lowest, 0, at b, k = 1"),
        ({"a": ([1, 2, 3], [1, 3, 2])}, "m is highest, 3, at k = 2, and lowest, 1, at k = 1"),
        ({"a": ([1, 2], [4, 4])}, "m is 4 whatever k is"),
    ],
)
def test_titles_of_strength_curves(curves: dict[str, tuple[list[float], list[float]]], title: str) -> None:
    assert strength_curves(curves, strength="k", measure="m").title == title


def test_bad_curves_are_refused() -> None:
    with pytest.raises(ParameterError, match="a needs a value for each position"):
        strength_curves({"a": ([1, 2], [1])}, strength="k", measure="m")
    with pytest.raises(ParameterError, match="no value to draw"):
        dominance_curves({})
    with pytest.raises(ParameterError, match="leave log_x out"):
        strength_curves({"a": ([0, 1], [1, 2])}, strength="k", measure="m", log_x=True)


def test_dominance_is_judged_up_to_one() -> None:
    alphas = [-1.0, 0.0, 1.0, 2.0]
    low, high = [0.0, 0.0, 2.0, 9.0], [1.0, 1.5, 2.0, 3.0]
    chart = dominance_curves({"low": (alphas, low), "high": (alphas, high)})
    assert chart.title == "high protects better than the others for every alpha up to 1"
    assert chart.series[2] == Line("alpha = 1: the mean", [1, 1], [0, 9], guide=True)
    assert "A curve is 0" in chart.note
    crossing = [2.0, 1.0, 2.0, 3.0]
    title = dominance_curves({"a": (alphas, high), "b": (alphas, crossing)}).title
    assert title == "Which protects best depends on alpha: no curve is the highest for every alpha up to 1"
    almost = [value * (1 + 1e-14) for value in high]
    assert dominance_curves({"a": (alphas, high), "b": (alphas, almost)}).title.startswith("All 2 protect alike")
    assert dominance_curves({"a": (alphas, high)}).title == (
        "a: the power mean goes from 1 at alpha = -1 to 3 at alpha = 2"
    )
    apart = {"a": ([-1.0], [1.0]), "b": ([0.0], [2.0])}
    assert dominance_curves(apart).title.startswith("Which protects best depends on alpha")


def test_few_values_become_frequencies() -> None:
    chart = marginals("CHILDREN", np.array([0, 0, 1, 2]), np.array([0.0, 1.0, 1.0, np.nan]))
    assert chart.series == (
        Bars("before", ["0", "1", "2"], [0.5, 0.25, 0.25]),
        Bars("after", ["0", "1", "2"], [1 / 3, 2 / 3, 0]),
    )
    # |1/2 - 1/3| + |1/4 - 2/3| + 1/4, halved
    assert chart.title == (
        "CHILDREN: before and after differ by 41.7 % of the values; mean 0.75 before, 0.6667 after; "
        "missing 0.0 % before, 25.0 % after"
    )
    assert chart.note == "4 values before, 3 after. Missing: 1 after. 3 different values."


def test_words_are_counted() -> None:
    chart = marginals("REGION", ["b", "b", "a", None], ["b", "a", "a", "c"])
    assert chart.series[0] == Bars("before", ["b", "a", "c", "(missing)"], [0.5, 0.25, 0, 0.25])
    assert chart.series[1] == Bars("after", ["b", "a", "c", "(missing)"], [0.25, 0.5, 0.25, 0])
    assert chart.title == "REGION: before and after differ by 50.0 % of the records"
    assert "Missing: 1 before." in chart.note
    many = [str(place) for place in range(50) for _ in range(50 - place)]
    folded = marginals("CODE", many, many)
    assert folded.series[0].x[-2:] == ("28", "21 others")
    assert sum(folded.series[0].y) == pytest.approx(1)
    assert folded.title == "CODE: the same distribution before and after"


def test_words_with_an_order_stand_in_it() -> None:
    order = ("none", "low", "high")
    chart = marginals("SCHOOL", ["high", "high", "low", "none"], ["low", "low", "low", "none to low"], order=order)
    assert chart.series[0].x == ("none", "low", "high", "none to low")
    assert chart.series[1].y == (0, 0.75, 0, 0.25)
    gone = marginals("SCHOOL", ["low", "high"], [None, None], order=order)
    assert gone.series[1] == Bars("after", ["low", "high", "(missing)"], [0, 0, 1])
    assert gone.title == "SCHOOL: before and after differ by 100.0 % of the records"
    many = [f"{place:02d}" for place in range(50) for _ in range(place + 1)]
    folded = marginals("CODE", many, many, order=sorted(many))
    assert folded.series[0].x == (*(f"{place:02d}" for place in range(21, 50)), "21 others")


def test_groups_that_are_new_are_not_lost_among_the_others() -> None:
    towns = [f"town {place}" for place in range(60)]
    chart = marginals("TOWN", towns, ["north"] * 40 + ["south"] * 20)
    assert chart.series[1].x[:2] == ("north", "south")
    assert chart.series[1].y[:2] == (40 / 60, 20 / 60)
    assert chart.series[0].x[-1] == "33 others"


def test_dates_are_written_as_dates() -> None:
    def written(value: float) -> str:
        return str(np.datetime64(round(value), "D"))

    few = marginals("BORN", np.array([0.0, 31.0, 31.0]), np.array([0.0, 0.0, 31.0]), written=written)
    assert few.series[0] == Bars("before", ["1970-01-01", "1970-02-01"], [1 / 3, 2 / 3])
    assert few.title.endswith("mean 1970-01-22 before, 1970-01-11 after")
    before = np.arange(0.0, 3650.0)
    many = marginals("BORN", before, before + 365, written=written)
    first, second = many.series
    assert isinstance(first, Bars)
    assert first.x == second.x
    assert first.x[0] == "1970-01-01"
    assert list(first.x) == sorted(first.x)
    assert sum(first.y) == pytest.approx(1)
    assert first.y[0] > 0 == second.y[0]


def test_many_values_become_common_bins_of_marginals() -> None:
    before, after = np.arange(100.0), np.arange(100.0) + 50
    chart = marginals("INCOME", before, after)
    first, second = chart.series
    assert isinstance(first, Line)
    assert first.step
    assert first.x == second.x
    assert first.x[0] == -0.5
    assert first.x[-1] >= 149.5
    widths = np.diff(first.x[1:])
    assert (widths == widths[0]).all()
    assert widths[0] == int(widths[0])  # as many whole numbers in every bin
    assert sum(first.y) == pytest.approx(1)
    # Half of the records lie where the others have none, the other half where both are.
    assert chart.title == "INCOME: before and after differ by 50.0 % of the records; mean 49.5 before, 99.5 after"
    assert "common bins" in chart.note


def test_values_far_out_do_not_squeeze_the_others() -> None:
    rng = np.random.default_rng(1)
    before = rng.normal(size=1000)
    after = before.copy()
    after[0] = 1e9
    chart = marginals("INCOME", before, after)
    assert chart.series[0].x[-1] < 10
    assert sum(chart.series[1].y) == pytest.approx(1)
    assert "far out" in chart.note
    widest = 1.7e308 * np.linspace(-1, 1, 100)
    huge = marginals("HUGE", widest, widest)
    assert np.isfinite(huge.series[0].x).all()
    with pytest.raises(ParameterError, match="attribute A: it has no value"):
        marginals("A", np.array([np.nan]), np.array([1.0]))


def test_matrices_are_signed_when_they_must_be() -> None:
    chart = matrix_heat(["A", "B"], [[1.0, -0.5], [-0.5, 1.0]])
    assert chart.series == (Heat("correlation", ["A", "B"], ["A", "B"], [[1, -0.5], [-0.5, 1]], signed=True),)
    assert chart.title == "Strongest correlation: A and B, -0.5"
    assert "orange below" in chart.note
    plain = matrix_heat(["A"], [[0.0, 0.4]], columns=["x", "y"], what="difference", most=1.0, note="n = 7.")
    [heat] = plain.series
    assert isinstance(heat, Heat)
    assert (heat.signed, heat.limit) == (False, 1.0)
    assert plain.title == "Strongest difference: A and y, 0.4"
    assert plain.note == "1 x 2 cells. n = 7."
    assert matrix_heat(["A", "B"], np.eye(2)).title == "Every correlation is 0"
    unknown = matrix_heat(["A", "B"], [[1.0, np.nan], [np.nan, 1.0]])
    assert unknown.title == "No correlation is known"
    assert "A dash: not known." in unknown.note


def test_losses_are_sorted_by_the_first_measure() -> None:
    chart = loss_per_attribute({"il1s": {"A": 0.1, "B": 0.5, "C": 0.3}, "pil": {"A": 2.0, "C": float("nan"), "D": 1.0}})
    first, second = chart.series
    assert first.x == ("B", "C", "A", "D")
    assert first.y[:3] == (0.5, 0.3, 0.1)
    assert second.y[2:] == (2.0, 1.0)
    assert chart.title == "B has the largest il1s, 0.5; A the smallest, 0.1"
    assert chart.note == "4 attributes, sorted by il1s. 3 values are not known: there is no bar."
    many = loss_per_attribute({"il1s": {f"A{place}": float(place) for place in range(40)}})
    assert (len(many.series[0].x), many.series[0].x[0]) == (30, "A39")
    assert "The 30 with the largest il1s are drawn." in many.note
    assert loss_per_attribute({"m": {"A": 1.0, "B": 1.0}}).title == "All 2 attributes have the same m, 1"
    assert loss_per_attribute({"m": {"A": 1.0}}).title == "A: m 1"
    with pytest.raises(ParameterError, match="no value to draw"):
        loss_per_attribute({"m": {}})


def test_exposed_records_keep_their_order() -> None:
    records = [{"original": 40 - place, "distance": place / 2, "p_value": 0.01} for place in range(35)]
    chart = most_exposed(records, usual=21.0)
    assert chart.series == (
        Bars("exposed records", [str(40 - place) for place in range(30)], [place / 2 for place in range(30)]),
        Line("usual for random records", [0, 29], [21, 21], guide=True),
    )
    assert chart.title == "Record 40 is the most exposed of 35: a released record lies at rank distance 0"
    assert chart.note == (
        "35 exposed records. Usual distance of random records: 21. The first 30 are drawn. "
        "No bar: a released record has exactly the same ranks."
    )
    assert most_exposed(records[2:3]).title == "Record 38 alone is exposed: a released record lies at rank distance 1"
    with pytest.raises(ParameterError, match="none to draw"):
        most_exposed([])
    with pytest.raises(ParameterError, match="negative, missing"):
        most_exposed([{"original": 1, "distance": -1.0}])
