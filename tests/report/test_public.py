"""Public figures: no point stands for fewer than ten records, and no end is somebody's own number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankveil as rv
from rankveil import datasets
from rankveil.report.attacks import attack_page, attack_sections
from rankveil.report.audits import audit_page, audit_sections
from rankveil.report.chart import Line
from rankveil.report.comparisons import compare_sections
from rankveil.report.figures import match_distances, permutation_level
from rankveil.report.figures.distances import PUBLIC
from rankveil.report.page import Section, render

NULL = (np.arange(100.0), np.full(100, 0.01))


def curves(observed: Any) -> tuple[Line, Line]:
    """Of the real and of the random records."""
    real = np.asarray(observed)
    chart = match_distances(real, NULL, n=real.size, draws=100, claims=0, withstands=True, public=True)
    assert all(isinstance(series, Line) for series in chart.series)
    return chart.series  # type: ignore[return-value]


@given(st.lists(st.integers(0, 199), min_size=1, max_size=200))
def test_every_part_of_a_curve_stands_for_several_records(moved: list[int]) -> None:
    [line] = permutation_level({"A": np.minimum(moved, len(moved) - 1)}, n=len(moved), public=True).series
    assert isinstance(line, Line)
    assert (line.x[0], line.y[0]) == (0, 0)
    assert len(line.x) <= 22
    counts = np.array([*line.x, 100]) * len(moved) / 100
    told = [part for part in np.diff(counts) if part > 0]
    assert min(told) >= min(PUBLIC, len(moved)) - 1e-9
    for share, most in zip(counts[1:-1], line.y[1:], strict=True):
        there = np.sum(np.minimum(moved, len(moved) - 1) <= most / 100 * (len(moved) - 1) + 1e-9)
        assert there == pytest.approx(share)


def test_a_curve_by_hand() -> None:
    # of 101 records 50 stay, 40 move by 7 ranks (7 %), 8 by 12 and 3 by 43: of the last eleven nothing is told
    moved = np.array([0] * 50 + [7] * 40 + [12] * 8 + [43] * 3, dtype=float)
    chart = permutation_level({"A": moved}, n=101, public=True)
    assert chart.series == (Line("A", [0, 5000 / 101, 9000 / 101], [0, 0, 7]),)
    assert chart.note.startswith("n = 101 records. A curve goes from bin to bin")


def test_nobody_can_be_read_off_a_curve() -> None:
    rng = np.random.default_rng(1)
    moved = rng.integers(0, 300, 1000).astype(float)
    drawn = permutation_level({"A": moved}, n=1000, public=True).series
    moved[np.argmax(moved)] = 999  # the largest of all, and now farther than anybody
    assert permutation_level({"A": moved}, n=1000, public=True).series == drawn


def test_few_records_tell_nothing() -> None:
    [line] = permutation_level({"A": np.array([0.0, 1.0, 1.0])}, n=3, public=True).series
    assert line == Line("A", [0], [0])
    assert curves([0, 5, 7])[0] == Line("real records (3)", [0], [0])


def test_a_public_page_of_few_records_draws_no_curve() -> None:
    made = rv.audit(*datasets.running_example())
    titles = [part.title for part in audit_sections(made.to_dict(), made.pictures(), public=True)]
    assert "How far the values moved" not in titles
    titles = [part.title for part in audit_sections(made.to_dict(), made.pictures())]
    assert "How far the values moved" in titles


def test_match_distances_by_hand() -> None:
    real, chance = curves([0] * 12 + [1] * 3 + [2] * 8 + [57] * 11 + [99.5])
    assert real == Line("real records (35)", [0, 0, 2], [0, 12 / 35, 23 / 35])
    assert (chance.x[-1], chance.y[-1]) == pytest.approx((99, 1))
    assert chance.y == pytest.approx([0, *((at + 1) / 100 for at in chance.x[1:])])


@given(st.lists(st.integers(0, 150), min_size=1, max_size=900))
def test_every_part_of_the_match_distances_stands_for_several_records(observed: list[int]) -> None:
    real, chance = curves(observed)
    counts = np.array([*real.y, 1.0]) * len(observed)
    assert min(part for part in np.diff(counts) if part > 0) >= min(PUBLIC, len(observed)) - 1e-9
    assert max(len(real.x), len(chance.x)) <= 41
    for share, most in zip(counts[1:-1], real.x[1:], strict=True):
        assert np.sum(np.array(observed) <= most) == pytest.approx(share)


def test_nobody_can_be_read_off_the_match_distances() -> None:
    observed = np.random.default_rng(1).integers(0, 60, 500)
    drawn = curves(observed)
    observed[np.argmax(observed)] = 140
    assert curves(observed) == drawn


def test_a_public_audit_holds_no_curve_of_single_records() -> None:
    original = datasets.demo(400).select(["AGE", "INCOME", "TAX"])
    made = rv.audit(original, rv.mask(original, "rank_swap", p=20, seed=1).data)

    def longest(public: bool) -> int:
        sections = audit_sections(made.to_dict(), made.pictures(), public=public)
        series = [each for part in sections for chart in part.charts for each in chart.series]
        return max(len(each.y) for each in series if hasattr(each, "y"))

    assert longest(public=True) <= 22
    assert longest(public=False) == 400


def test_a_public_attack_lists_no_distances_of_single_records() -> None:
    made = rv.attack(*datasets.running_example())
    inside, outside = (attack_sections(made.to_dict(), made.pictures(), public=public)[1] for public in (False, True))
    assert inside.tables[0].columns == ("distance", "share of real records", "share of random records")
    assert [grid.columns for grid in outside.tables] == [("", "value")]
    [chart] = outside.charts
    assert chart.y_label == "Share of records at most so far"
    people = [attack_sections(made.to_dict(), made.pictures(), public=public)[0].charts for public in (False, True)]
    assert [len(charts) for charts in people] == [1, 0]


TOWNS = ("Abbeville", "Bergamo", "Cuenca")


def _recoded() -> tuple[Any, Any]:
    """People in three towns, and their release in which there are only two parts of the country."""
    rng = np.random.default_rng(3)
    towns = rng.choice(TOWNS, 90)
    original = pa.table({"TOWN": towns, "AGE": rng.integers(18, 90, 90).astype(float)})
    parts = pa.array(np.where(towns == "Cuenca", "South", "North"))
    return original, original.set_column(0, "TOWN", parts)


def test_a_public_page_has_no_subdomains_of_the_original(tmp_path: Path) -> None:
    made = rv.audit(*_recoded(), by="TOWN", columns=["AGE"], measures=["il1s", "um"])
    for public in (False, True):
        made.report(tmp_path / "page.html", public=public)
        text = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert [town in text for town in TOWNS] == [not public] * 3
        assert ("subdomains are left out here" in text) == public


def test_a_public_page_repeats_no_command() -> None:
    made = rv.audit(*_recoded(), columns=["AGE"], measures=["um"])
    command = "rankveil audit o.csv m.csv --kind 'C=ordinal:aaa<bbb<secretcat'"
    content = made.to_dict()
    assert "secretcat" in audit_page(content, made.pictures(), command=command).replace("</span>", "")
    assert "secretcat" not in audit_page(content, made.pictures(), command=command, public=True)
    attack = rv.attack(*_recoded(), columns=["AGE"])
    assert "secretcat" not in attack_page(attack.to_dict(), attack.pictures(), command=command, public=True)


def test_a_public_page_names_no_rows_and_no_reasons_that_hold_values() -> None:
    section = Section("Notes", notes=["2 weights are missing (rows 12, 40); every record needs one"])
    assert "12, 40" in render(title="t", lead="l", sections=[section], internal=True)
    assert "12, 40" not in render(title="t", lead="l", sections=[section], internal=False)
    failed = {"id": "recode", "note": "Cuenca is not in the hierarchy", "utility": {}, "rank": None}
    failed |= {"attained": None, "evaluations": 0, "attainable": None, "parameters": {}}
    content = {"methods": [failed], "records": 90, "attributes": ["TOWN"], "replicates": 1, "notes": []}
    content |= {"utility": ["um"], "risk": "rank_linkage", "at": {"risk": 0.1}}
    for public in (False, True):
        [section] = compare_sections(content, public=public)
        assert bool(section.notes) != public
