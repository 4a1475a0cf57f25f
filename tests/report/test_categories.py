"""Pages of tables with words and dates: labels not places, classes of quasi-identifiers, and nothing of one record."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankveil as rv
from rankveil.report.audits import AuditPictures, audit_grids, audit_page, audit_sections, audit_words
from rankveil.report.chart import Bars, Heat
from rankveil.report.figures import class_sizes
from rankveil.report.figures.distances import PUBLIC
from rankveil.report.pictures import pictures_of
from rankveil.schema import Schema
from rankveil.table import Table

N = 300


@cache
def _made() -> tuple[dict[str, Any], AuditPictures]:
    rng = np.random.default_rng(3)
    towns = rng.choice(["Ulm", "Bonn", "Kiel"], N)
    schools = [None if row % 20 == 0 else str(rng.choice(["low", "middle", "high"])) for row in range(N)]
    data = pa.table(
        {
            "TOWN": towns,
            "SCHOOL": schools,
            "AGE": rng.integers(20, 80, N),
            "INCOME": rng.normal(3000.0, 500.0, N),
            "BORN": pa.array(rng.integers(0, 9000, N).astype(np.int32)).cast(pa.date32()),
            "W": rng.uniform(1, 3, N),
        }
    )
    schema = Schema(
        levels={"SCHOOL": ("low", "middle", "high")},
        roles={"TOWN": "quasi-identifier", "AGE": "quasi-identifier", "INCOME": "confidential", "W": "weight"},
        hierarchies={"TOWN": [("Ulm", "South"), ("Bonn", "West"), ("Kiel", "North")]},
    )
    table = Table(data, schema=schema)
    masked = Table(rv.mask(table, "rank_swap", p=20, seed=1).data, schema=schema)
    made = rv.audit(table, masked)
    assert made.pair is not None
    pictures = pictures_of(made.pair, levels=made.rank_changes())
    return made.to_dict() | {"roles": dict(schema.roles or {})}, pictures


def _charts(kind: str, *, public: bool = False) -> list[Any]:
    content, pictures = _made()
    parts = audit_sections(content, pictures, public=public)
    return [chart for part in parts for chart in part.charts if chart.kind == kind]


def test_categories_are_drawn_by_their_labels() -> None:
    drawn = {chart.x_label: chart.series[0] for chart in _charts("marginals")}
    assert list(drawn) == ["TOWN", "SCHOOL", "AGE", "INCOME", "BORN"]
    assert sorted(drawn["TOWN"].x) == ["Bonn", "Kiel", "Ulm"]
    assert drawn["SCHOOL"].x == ("low", "middle", "high", "(missing)")
    assert drawn["SCHOOL"].y[-1] == pytest.approx(15 / N)
    assert all(label.startswith("19") for label in drawn["BORN"].x)


def test_correlations_are_of_numbers_alone_and_say_so() -> None:
    content, pictures = _made()
    [part] = [part for part in audit_sections(content, pictures) if part.title == "How attributes hang together"]
    assert part.text.endswith("TOWN.")
    for chart in part.charts:
        [heat] = chart.series
        assert isinstance(heat, Heat)
        assert heat.rows == ("SCHOOL", "AGE", "INCOME", "BORN")


def test_places_without_labels_are_not_drawn_as_numbers() -> None:
    content, pictures = _made()
    codes = {name: (np.zeros(3), np.ones(3)) for name in content["attributes"]}
    five = np.eye(len(content["attributes"]))
    parts = audit_sections(content, AuditPictures(pictures.levels, codes, (five, five)))
    [part] = [part for part in parts if part.title == "Distributions before and after"]
    assert [chart.x_label for chart in part.charts] == ["AGE", "INCOME", "BORN"]
    assert "TOWN, SCHOOL" in part.text
    [heats] = [part.charts for part in parts if part.title == "How attributes hang together"]
    assert heats[0].series[0].rows == ("SCHOOL", "AGE", "INCOME", "BORN")


def test_every_kind_has_its_permutation_level_and_categories_their_variation() -> None:
    [levels] = _charts("permutation_level")
    assert [series.name for series in levels.series] == ["TOWN", "SCHOOL", "AGE", "INCOME", "BORN"]
    shifted = [chart for chart in _charts("loss_per_attribute") if chart.series[0].name == "total_variation"]
    assert set(shifted[0].series[0].x) == {"TOWN", "SCHOOL"}


def test_privacy_models_stand_together() -> None:
    content, _ = _made()
    [grid] = [grid for grid in audit_grids(content) if grid[0].startswith("Quasi-identifiers: TOWN, AGE; ")]
    rows = {row[0]: row for row in grid[2]}
    assert {"k_anonymity", "l_diversity", "t_closeness", "population_risk", "sample_uniques"} <= set(rows)
    details = content["measures"]["k_anonymity"]["details"]
    assert rows["k_anonymity"][2:4] == ("at least 5", details["records_below_limit"])
    assert rows["t_closeness"][2] == "at most 0.2"
    assert "share their quasi-identifiers with fewer than 5 records" in audit_words(content)


def test_what_columns_are_is_stated() -> None:
    content, pictures = _made()
    [part] = [part for part in audit_sections(content, pictures) if part.title == "What the columns are"]
    assert "Records count by their weight: W." in part.text
    assert part.tables[0].rows[0] == ("TOWN", "marginality by the hierarchy TOWN")


def test_a_public_page_tells_of_no_record() -> None:
    content, pictures = _made()
    content = content | {"notes": ["2 weights are odd (rows 12, 9182736)"]}
    page = audit_page(content, pictures, public=True)
    assert "2 weights are odd" in page
    assert "9182736" not in page
    assert "9182736" in audit_page(content, pictures)
    titles = {part.title for part in audit_sections(content, pictures, public=True)}
    assert not titles & {"Distributions before and after", "Most exposed records"}
    texts = [note for part in audit_sections(content, pictures, public=True) for note in part.notes]
    assert not any("(row" in text for text in texts)


def test_class_sizes_by_hand() -> None:
    # 3 alone, 2 pairs, a class of 5 and one of 40: 52 records
    chart = class_sizes({"1": 3, "2": 2, "5": 1, "40": 1}, records=52, quasi=["AGE", "SEX"], limit=5)
    assert chart.series == (Bars("records", ["1", "2", "5 to 9", "20 to 49"], [3 / 52, 4 / 52, 5 / 52, 40 / 52]),)
    assert chart.title == "7 of 52 records share AGE, SEX with fewer than 5 records, themselves included"
    public = class_sizes({"1": 3, "2": 2, "5": 1, "40": 1}, records=52, quasi=["AGE"], limit=5, public=True)
    assert public.series == (Bars("records", ["1 to 9", "20 to 49"], [12 / 52, 40 / 52]),)


@given(st.dictionaries(st.integers(1, 2000), st.integers(1, 30), min_size=1, max_size=12))
def test_a_public_bar_stands_for_several_records(sizes: dict[int, int]) -> None:
    records = sum(size * count for size, count in sizes.items())
    made = class_sizes({str(size): count for size, count in sizes.items()}, records=records, quasi=["A"], public=True)
    [bars] = made.series
    amounts = np.array(bars.y) * records
    assert sum(amounts) == pytest.approx(records)
    assert min(amounts) >= min(PUBLIC, records) - 1e-6
