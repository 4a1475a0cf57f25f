"""The published values and statements of Domingo-Ferrer, Ricci and Soria-Comas (2017)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from rankveil.comparison import Comparison, Contender, Place, Spread
from rankveil.comparison.study import Study
from rankveil.errors import FileError
from rankveil.papers import Reproduction, Row, equal_risk, reproduce
from rankveil.papers.equal_risk import METHODS, Side
from rankveil.papers.maskings import measured, read
from rankveil.papers.published import equal_risk as published
from rankveil.plans import Plan
from rankveil.seeds import Seed
from rankveil.table import Table

MATCHED = {
    "CENSUS": {
        "mdav": (5, 0.17),
        "correlated_noise": (0.72, 0.32),
        "rank_swap": (16.0, 0.26),
        "hohne_noise": (0.35, 0.28),
    },
    "EIA": {
        "mdav": (6, 0.047),
        "correlated_noise": (0.08, 0.077),
        "rank_swap": (8.0, 0.093),
        "hohne_noise": (0.48, 0.118),
    },
}
"""Strength and earth mover's distance where a search ended."""


def comparison(name: str, found: Mapping[str, tuple[float, float]]) -> Comparison:
    """The outcome of a search, as data."""
    risk = float(published.RISK[name])
    methods = []
    for method, (strength, distance) in found.items():
        plan = equal_risk.plan_of(method, strength)
        values = {"emd": Spread(distance, 0.001, (distance, distance)), "propensity": Spread(0.1, 0.0, (0.1, 0.1))}
        place = Place(plan, plan.steps[0].parameters, values)
        methods.append(Contender(method, True, risk, (0.1, 0.9), 7, place))
    return Comparison({"risk": risk}, "rank_linkage", ("emd", "propensity"), 1080, ("A",), 3, methods)


def by_item(rows: list[Row]) -> dict[str, Row]:
    return {row.item: row for row in rows}


@pytest.fixture(scope="module")
def census(reference_data: Callable[[str], Path]) -> Side:
    """The Census data at every strength of figure 1, without the propensity scores."""
    table = read(reference_data("census"), published.CENSUS)
    study = Study(table, published.CENSUS, seed=Seed.of(equal_risk.SEED))
    values = measured({"CENSUS": study}, equal_risk.jobs_of("CENSUS", replicates=3, modelled={}), workers=1)
    return Side("CENSUS", values, (), comparison("CENSUS", MATCHED["CENSUS"]), equal_risk.as_printed(study))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small data with the columns of the reference data."""
    made = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(8)
    for name, columns, records in (("census", published.CENSUS, 60), ("eia", published.EIA, 70)):
        common = rng.normal(size=records)
        csv.write_csv(
            pa.table({each: np.exp(common + rng.normal(size=records)) for each in columns}), made / f"{name}.csv"
        )
    return made


@pytest.fixture(scope="module")
def small(folder: Path) -> tuple[Reproduction, list[tuple[int, int]]]:
    """The whole study of the small data, and the progress that it made."""
    seen: list[tuple[int, int]] = []
    made = equal_risk.run(
        data=folder,
        replicates=2,
        searched=1,
        modelled={"linear": 1},
        workers=1,
        progress=lambda done, total: seen.append((done, total)),
    )
    return made, seen


def test_without_data_the_remedy_is_named(tmp_path: Path) -> None:
    for data in (None, tmp_path):
        with pytest.raises(FileError, match=r"equal-risk needs census\.csv and eia\.csv; .* --data"):
            reproduce("equal-risk", data=data)
        with pytest.raises(FileError, match=r"--data"):
            equal_risk.run(data=data)


def test_figure_1_of_census(census: Side) -> None:
    figure = by_item(census.figure_1())
    assert len(figure) == 5
    groups = figure["microaggregation, k = 5, 10, 15, 20, 25, 50"]
    assert groups.ok
    assert isinstance(groups.computed, tuple)
    assert groups.computed[0] == pytest.approx(0.4507, abs=1e-4)  # published 0.45
    assert all(row.ok for item, row in figure.items() if "expression" not in item)
    wrong = figure["microaggregation, k = 5, by expression (3) as it is printed"]
    assert not wrong.ok
    assert wrong.remark == equal_risk.PRINTED_FORMULA
    assert wrong.computed == pytest.approx(0.0119, abs=5e-4)


def test_table_1_of_census_at_the_published_parameters(census: Side) -> None:
    """0.16, 0.38, 0.28, 0.29 in print."""
    table = by_item(census.table_1())
    assert all(row.explained for row in table.values() if "propensity" not in row.item)
    assert table["microaggregation: earth mover's distance"].computed == pytest.approx(0.1702, abs=1e-4)
    assert table["correlated noise addition: earth mover's distance"].ok
    assert table["rank swapping: earth mover's distance"].remark == equal_risk.ON_CLUSTERS
    assert table["multiplicative noise: earth mover's distance"].remark == equal_risk.HOHNE_EMD
    assert table["order by earth mover's distance"].ok
    assert table["microaggregation, k = 5: R"].ok
    assert table["correlated noise addition, gamma = 1: R"].ok
    assert table["rank swapping, p = 20: R"].remark == equal_risk.NEAREST_OF_GRID


def test_figure_1_as_a_picture(census: Side) -> None:
    chart = census.chart()
    assert [line.name for line in chart.series] == [
        *("mdav (k)", "correlated_noise (gamma)", "rank_swap (p)", "hohne_noise (s)"),
        "R = 0.45",
    ]
    swap = chart.series[2]
    assert swap.y[swap.x.index(1.0)] == pytest.approx(0.4618, abs=1e-3)
    assert "0.45" in chart.title


@pytest.mark.parametrize(
    ("printed", "wrong", "item"),
    [
        ("0.0383 0.38", "0.0383 0.48", "correlated noise addition: earth mover's distance"),
        ("0.000428 0.16", "0.000428 0.18", "microaggregation: earth mover's distance"),
        ("0.00351 0.28", "0.00351 0.25", "rank swapping: earth mover's distance"),
    ],
)
def test_a_wrong_published_value_is_found(
    census: Side, printed: str, wrong: str, item: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert published.TABLE_1.count(printed) == 1
    monkeypatch.setattr(published, "TABLE_1", published.TABLE_1.replace(printed, wrong))
    bad = [row.item for row in census.table_1() if not row.explained and "propensity" not in row.item]
    assert bad == [item]


def values_at_published(name: str, **propensity: float) -> dict[equal_risk.Key, np.ndarray]:
    """What maskings of EIA give, roughly, as data."""
    risks = {"mdav": 0.5761, "correlated_noise": 0.5771, "rank_swap": 0.5797, "hohne_noise": 0.5604}
    distances = {"mdav": 0.0434, "correlated_noise": 0.0648, "rank_swap": 0.0924, "hohne_noise": 0.0875}
    wobble = np.array([-0.0002, 0.0, 0.0002])
    made = {}
    for method in METHODS:
        at = float(published.MATCHED[name][method])
        spread = np.zeros(1) if method == "mdav" else wobble
        both = np.column_stack((risks[method] + spread, distances[method] + spread))
        made[equal_risk.Key(name, method, at, "table")] = both
        made[equal_risk.Key(name, method, at, "clusters")] = 0.88 * both[:, 1:]
        for strength in published.STRENGTHS[method]:
            made[equal_risk.Key(name, method, strength, "risk")] = np.array([[strength]])
        for model, value in propensity.items():
            made[equal_risk.Key(name, method, at, model)] = np.array([[value]])
    return made


def test_eia_at_matched_strengths() -> None:
    side = Side("EIA", values_at_published("EIA"), (), comparison("EIA", MATCHED["EIA"]), 0.0036)
    assert all(row.explained for row in side.table_1() if "propensity" not in row.item)
    table = by_item(side.matched_table())
    assert table["microaggregation: k at R = 0.58"].computed == 6
    assert table["microaggregation: k at R = 0.58"].ok  # k = 5 gives 0.576, which is 0.58 in print
    assert table["multiplicative noise: s at R = 0.58"].remark == equal_risk.HOHNE
    assert table["rank swapping and microaggregation: earth mover's distance"].ok
    order = table["order by earth mover's distance"]
    assert (order.ok, order.remark) == (False, equal_risk.LAST_ON_EIA)


def test_another_order_at_matched_strengths_is_not_excused() -> None:
    found = MATCHED["EIA"] | {"mdav": (6, 0.5)}
    side = Side("EIA", values_at_published("EIA"), (), comparison("EIA", found), 0.0036)
    bad = [row.item for row in side.matched_table() if not row.explained]
    assert "order by earth mover's distance" in bad
    assert "rank swapping and microaggregation: earth mover's distance" in bad


def test_propensity_is_explained_between_the_models_only() -> None:
    inside = values_at_published("EIA", linear=1e-31, quadratic=0.1)
    matched = comparison("EIA", MATCHED["EIA"])
    between = by_item(Side("EIA", inside, ("linear", "quadratic"), matched, 0.0036).table_1())
    row = between["rank swapping: propensity by linear, quadratic model"]
    assert (row.published, row.computed, row.remark) == ("0.000901", (0.0, 0.1), equal_risk.MODEL)
    outside = values_at_published("EIA", linear=0.2, quadratic=0.1)
    beyond = by_item(Side("EIA", outside, ("linear", "quadratic"), matched, 0.0036).table_1())
    assert not beyond["rank swapping: propensity by linear, quadratic model"].explained


def test_other_data_give_other_numbers(small: tuple[Reproduction, list[tuple[int, int]]]) -> None:
    """Sixty records cannot have such a risk: that is said, and nothing is made up."""
    made, seen = small
    assert [table.name for table in made.tables] == [
        *("Figure 1, CENSUS", "Table 1, CENSUS", "Table 1 matched, CENSUS"),
        *("Figure 1, EIA", "Table 1, EIA", "Table 1 matched, EIA"),
    ]
    assert list(made.figures) == ["Figure 1 CENSUS", "Figure 1 EIA"]
    assert not made.ok
    told = by_item(list(made.tables[2].rows))["microaggregation: k at R = 0.45"]
    assert not told.explained
    assert "it attains rank_linkage from" in str(told.computed)
    assert seen == sorted(seen)
    assert seen[-1] == (1000, 1000)


def test_the_printed_formula_by_hand() -> None:
    """Three records in two groups of ranks: log of the sum of distances, over n."""
    x = {"A": [1.0, 2.0, 3.0, 10.0, 11.0, 12.0], "B": [1.0, 2.0, 3.0, 10.0, 11.0, 12.0]}
    study = Study(Table(pa.table(x)), ("A", "B"), seed=Seed.of(0))
    # one group of six: all masked ranks are 3.5, so distances are sqrt(2) times 2.5, 1.5, 0.5, 0.5, 1.5, 2.5
    assert equal_risk.as_printed(study) == pytest.approx(math.log(math.sqrt(2) * 9) / 6)


def test_a_strength_is_of_the_type_that_its_method_takes() -> None:
    assert equal_risk.plan_of("mdav", 5.0) == Plan.of("mdav", k=5)
    assert equal_risk.plan_of("rank_swap", 8) == Plan.of("rank_swap", p=8.0, scheme="pairs")  # the papers' swapping
