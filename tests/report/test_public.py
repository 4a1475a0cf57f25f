"""Public figures: no point and no bar stands for fewer than ten records, and no end is somebody's own number."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankveil as rv
from rankveil import datasets
from rankveil.report.audits import audit_sections
from rankveil.report.chart import Bars, Line
from rankveil.report.figures import match_distances, permutation_level
from rankveil.report.figures.distances import PUBLIC

NULL = (np.arange(100.0), np.full(100, 0.01))


def bars(observed: Any) -> tuple[Bars, Bars]:
    chart = match_distances(
        np.asarray(observed), NULL, n=len(observed), draws=100, claims=0, withstands=True, public=True
    )
    assert all(isinstance(series, Bars) for series in chart.series)
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
    assert bars([0, 5, 7])[0] == Bars("real records (3)", ["any"], [1.0])


def test_a_public_page_of_few_records_draws_no_curve() -> None:
    made = rv.audit(*datasets.running_example())
    titles = [part.title for part in audit_sections(made.to_dict(), made.pictures(), public=True)]
    assert "How far the values moved" not in titles
    titles = [part.title for part in audit_sections(made.to_dict(), made.pictures())]
    assert "How far the values moved" in titles


def test_bars_by_hand() -> None:
    real, chance = bars([0] * 12 + [1] * 3 + [2] * 8 + [57] * 11 + [99.5])
    assert real.x == chance.x == ("up to 0", "0 to 2", "above 2")
    assert real.y == pytest.approx([12 / 35, 11 / 35, 12 / 35])
    assert chance.y == pytest.approx([0.01, 0.02, 0.97])


@given(st.lists(st.integers(0, 150), min_size=1, max_size=900))
def test_every_bar_stands_for_several_records(observed: list[int]) -> None:
    real, chance = bars(observed)
    assert sum(real.y) == pytest.approx(1)
    assert sum(chance.y) == pytest.approx(1)
    assert min(real.y) * len(observed) >= min(PUBLIC, len(observed)) - 1e-9
    assert len(real.x) <= 30


@pytest.mark.parametrize("verb", ["audit", "attack"])
def test_a_public_page_holds_no_curve_of_single_records(tmp_path: Path, verb: str) -> None:
    original = datasets.demo(400).select(["AGE", "INCOME", "TAX"])
    masked = rv.mask(original, "rank_swap", p=20, seed=1).data
    made = getattr(rv, verb)(original, masked)

    def longest(public: bool) -> int:
        made.report(tmp_path / "page.html", public=public)
        text = (tmp_path / "page.html").read_text(encoding="utf-8")
        found = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
        assert found
        return max(len(series["y"]) for chart in found for series in json.loads(chart)["data"] if "y" in series)

    assert longest(public=True) <= 30
    assert longest(public=False) > 30
