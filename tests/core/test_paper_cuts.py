"""Small things that led people astray: each has a test of what they meet now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.errors import ParameterError
from rankveil.report.figures.attributes import marginals

QUASI = {"SEX": "quasi-identifier", "AGE": "quasi-identifier", "TOWN": "quasi-identifier"}


@pytest.fixture
def people() -> pd.DataFrame:
    """Six alike, and three of whom each pair of columns tells one."""
    rows = [("m", 30, "a")] * 6 + [("f", 30, "a"), ("m", 40, "a"), ("m", 30, "b")]
    return pd.DataFrame(rows, columns=["SEX", "AGE", "TOWN"])


def test_missing_cells_are_counted_as_the_suppression_counted_them(people: pd.DataFrame) -> None:
    roles = rv.Schema(roles=QUASI)
    release = rv.mask(people, "suppress", k=5, missing_is="any", schema=roles, columns=[*QUASI])
    made = rv.audit(people, release, measures=["k_anonymity", "sample_uniques"], schema=roles)
    assert made["k_anonymity"] >= 5
    assert made["sample_uniques"] == 0
    assert any("agree with every value" in note for note in made.notes)
    own = rv.audit(
        people, release, measures=["k_anonymity"], schema=roles, settings={"k_anonymity": {"missing": "own"}}
    )
    assert own["k_anonymity"] == 1
    assert rv.audit(people, release.data, measures=["k_anonymity"], schema=roles)["k_anonymity"] == 1


def test_a_suppression_that_counts_missing_cells_by_themselves_is_counted_so(people: pd.DataFrame) -> None:
    roles = rv.Schema(roles=QUASI)
    release = rv.mask(people, "suppress", k=3, schema=roles, columns=[*QUASI])
    made = rv.audit(people, release, measures=["k_anonymity"], schema=roles)
    assert made["k_anonymity"] >= 3
    assert not any("agree with every value" in note for note in made.notes)


def test_a_schema_may_be_a_mapping(people: pd.DataFrame) -> None:
    given = {"roles": QUASI, "missing": "-9"}
    assert rv.inspect(people, schema=given)["AGE"].role_given
    made = rv.audit(people, people, measures=["k_anonymity"], schema=given)
    assert made["k_anonymity"] == 1
    assert rv.Schema.of(given).missing == ("-9",)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"AGE": "quasi-identifier"}, "schema: AGE is not among its keys, which are kinds, levels, roles"),
        ({"roles": "AGE"}, "schema: roles must map names of columns"),
        ("AGE", "schema must be a Schema or a mapping with kinds, levels, roles, missing, hierarchies, not str"),
    ],
)
def test_what_is_no_schema_says_what_would_be(people: pd.DataFrame, given: Any, said: str) -> None:
    for use in (rv.inspect, lambda data, schema: rv.audit(data, data, schema=schema)):
        with pytest.raises(ParameterError, match=said.replace("(", r"\(")):
            use(people, schema=given)


def test_an_inspection_and_a_manifest_show_themselves_in_a_notebook(people: pd.DataFrame) -> None:
    people["<b>"] = range(9)
    seen = rv.inspect(people)
    page = seen._repr_html_()
    for look in seen.columns:
        assert look.decision.reason.replace("'", "&#x27;") in page
    assert "<td>&lt;b&gt;</td>" in page
    page = rv.mask(people, "suppress", k=2, columns=["SEX"]).manifest._repr_html_()
    assert "<td>suppress</td><td>SEX</td><td>k=2, importance=1.0, missing_is=own</td>" in page
    assert "<td>SEX</td><td>nominal</td>" in page
    assert "every record shares its values of SEX with at least 1 others" in page


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_bins_of_whole_numbers_hold_as_many_each(noise: float) -> None:
    """Every whole number from 0 to 99 stands five times: a flat line, where bins of width 2.5 would make a comb."""
    before = np.repeat(np.arange(100.0), 5)
    after = before + noise * np.random.default_rng(0).uniform(-1, 1, before.size)
    chart = marginals("AGE", before, after)
    line = chart.series[0]
    edges, shares = np.array(line.x[1:]), np.array(line.y[1:-1])
    assert set(np.diff(edges)) == {float(edges[1] - edges[0])}
    assert edges[1] - edges[0] == np.round(edges[1] - edges[0])
    assert np.all(edges % 1 == 0.5)
    assert np.unique(shares[1:-1].round(12)).size == 1


def test_the_title_of_a_distribution_says_what_it_shows() -> None:
    numbers = np.arange(100.0) * 1.5
    gone = numbers.copy()
    gone[::2] = np.nan
    title = marginals("A", numbers, np.where(np.isnan(gone), np.nan, numbers)).title
    assert "missing 0.0 % before, 50.0 % after" in title
    assert "of the records" not in title
    within = marginals("A", numbers, numbers + np.where(numbers < 140, 0.01, 0)).title
    assert "the same distribution" not in within
    assert marginals("A", numbers, numbers[::-1]).title == "A: the same distribution before and after"
    many = np.repeat(np.arange(3.0), 5_000)
    other = many.copy()
    other[0] = 1.0
    assert "less than 0.1 % of the records" in marginals("B", many, other).title


def test_dates_at_midnight_stay_dates_in_excel_after_noise_and_rounding(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    days = np.datetime64("2020-01-01") + np.random.default_rng(0).integers(0, 900, 60)
    table = pa.table({"DAY": pa.array(days), "X": np.arange(60.0)})
    release = rv.mask(table, "additive_noise", alpha=0.3, columns=["DAY"], then=["round"], seed=1)
    release.write(str(tmp_path / "out.xlsx"))
    cells = [row[0] for row in openpyxl.load_workbook(tmp_path / "out.xlsx").active.iter_rows(min_row=2)]
    assert {cell.value.time().isoformat() for cell in cells} == {"00:00:00"}
    assert {cell.number_format for cell in cells} == {"yyyy-mm-dd"}
