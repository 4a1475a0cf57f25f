"""Rank linkage and permutation linkage: five records by hand, all pairs by brute force, the published values."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

import rankveil as rv
from rankveil.catalogue import get_measure
from rankveil.linkage import Linker

rank_linkage = get_measure("rank_linkage")
permutation_linkage = get_measure("permutation_linkage")

RANK_X = np.array([[1.0, 5.0], [2.0, 4.0], [3.0, 3.0], [4.0, 2.0], [5.0, 1.0]])
RANK_Y = np.array([[2.0, 4.0], [1.0, 1.0], [3.0, 5.0], [5.0, 3.0], [4.0, 2.0]])
EIA = (
    ["MONTH"]
    + [f"{sector}{what}" for sector in ("RES", "COM", "IND", "TOT") for what in ("REVENUE", "SALES")]
    + ["OTHREVENUE", "OTHRSALES"]
)


def test_rank_linkage_of_five_records() -> None:
    made = rank_linkage(RANK_X, RANK_Y, Linker(RANK_Y, metric="euclidean"), True, np.arange(11, 16))
    # the nearest of (1,5), (2,4), (3,3), (4,2), (5,1): (2,4), (2,4), (2,4), (4,2), (4,2)
    distances = [math.sqrt(2), 0, math.sqrt(2), 0, math.sqrt(2)]
    assert made.value == pytest.approx(3 * math.log(1 + math.sqrt(2)) / 5 / 2)
    assert made.details["twins"] == pytest.approx(2 / 5)
    assert made.details["distance"]["50 %"] == pytest.approx(math.sqrt(2))
    assert [each["record"] for each in made.details["most_exposed"]] == [12, 14, 11, 13, 15]
    assert [each["value"] for each in made.details["most_exposed"]] == pytest.approx(sorted(distances))


def test_permutation_linkage_of_five_records() -> None:
    made = permutation_linkage(RANK_X, RANK_Y, Linker(RANK_Y, metric="maximum"), True, np.arange(1, 6))
    assert made.value == pytest.approx(3 * math.log(2) / 5 / 2)  # the same pairs, 1 away instead of sqrt 2
    assert made.details["distance"] == {"0 %": 0, "5 %": 0, "25 %": 0, "50 %": 1, "75 %": 1, "95 %": 1, "100 %": 1}


@pytest.mark.parametrize("name", ["rank_linkage", "permutation_linkage"])
@given(rows=st.lists(st.tuples(*[st.integers(0, 6)] * 4), min_size=1, max_size=30))
def test_all_pairs_by_brute_force(name: str, rows: list[tuple[int, ...]]) -> None:
    table = np.array(rows, dtype=np.float64)
    x, y = (pd.DataFrame(side, columns=["A", "B"]) for side in (table[:, :2], table[:, 2:]))
    apart = np.abs(rankdata(table[:, :2], axis=0)[:, None] - rankdata(table[:, 2:], axis=0)[None])
    pairs = apart.max(axis=2) if name == "permutation_linkage" else np.sqrt((apart**2).sum(axis=2))
    expected = np.mean(np.log1p(pairs.min(axis=1))) / 2
    assert rv.audit(x, y, measures=[name], columns=["A", "B"])[name] == pytest.approx(expected, abs=1e-12)
    turned = y.iloc[::-1].reset_index(drop=True)
    assert rv.audit(x, turned, measures=[name], columns=["A", "B"], mapping=False)[name] == pytest.approx(
        expected, abs=1e-12
    )


@pytest.mark.parametrize(("data", "printed", "expected"), [("census", 0.45, 0.451), ("eia", 0.58, 0.576)])
def test_the_published_values(
    reference_data: Callable[[str], Path], data: str, printed: float, expected: float
) -> None:
    # Domingo-Ferrer, Ricci and Soria-Comas 2017, section 5: microaggregation with k = 5
    table = pd.read_csv(reference_data(data))
    table = table[EIA] if data == "eia" else table
    made = rv.audit(
        table, rv.mask(table, "mdav", k=5, columns=list(table)).data, measures=["rank_linkage"], columns=list(table)
    )
    assert made["rank_linkage"] == pytest.approx(expected, abs=5e-4)
    assert round(made["rank_linkage"], 2) == printed


def test_records_are_named_by_their_rows_in_the_file() -> None:
    x = pd.DataFrame({"A": [np.nan, 1.0, 2.0, 3.0], "B": [1.0, 1.0, 2.0, 3.0]})
    y = pd.DataFrame({"A": [9.0, 1.0, 3.0, 2.0], "B": [9.0, 1.0, 2.0, 3.0]})
    exposed = rv.audit(x, y, measures=["rank_linkage"]).values["rank_linkage"].details["most_exposed"]
    assert [each["record"] for each in exposed] == [2, 3, 4]
    assert [each["value"] for each in exposed] == [0.0, 1.0, 1.0]
