"""CM1, CM2, CM3 and mutual information by hand, on the reference data, and where they have no meaning."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rankveil as rv

ALL = ["cm1", "cm2", "cm3", "mutual_information"]

# The signs of a factorial design: balanced, uncorrelated.
A, B, C = np.array(list(itertools.product((-1.0, 1.0), repeat=3))).T

EIA = [
    *("MONTH", "RESREVENUE", "RESSALES", "COMREVENUE", "COMSALES", "INDREVENUE", "INDSALES"),
    *("OTHREVENUE", "OTHRSALES", "TOTREVENUE", "TOTSALES"),
]


def audit(x: Any, y: Any, *measures: str, **matching: Any) -> rv.Audit:
    return rv.audit(pd.DataFrame(x), pd.DataFrame(y), measures=list(measures or ALL), columns=list(x), **matching)


@pytest.fixture(params=["census", "eia"])
def reference(request: pytest.FixtureRequest, reference_data: Callable[[str], Path]) -> pd.DataFrame:
    """The four attributes of general-metrics, and the eleven of EIA with their heavy ties."""
    columns = {"census": ["FICA", "FEDTAX", "INTVAL", "POTHVAL"], "eia": EIA}[request.param]
    return pd.read_csv(reference_data(request.param), usecols=columns)[columns].astype(float)


def test_one_attribute_and_five_records() -> None:
    made = audit({"A": [1, 2, 3, 4, 5]}, {"A": [2, 1, 4, 3, 5]})  # Spearman's correlation 1 - 6 * 4 / 120 = 0.8
    assert made["cm1"] == pytest.approx(0.36)
    assert made["cm2"] == pytest.approx(0.36)
    assert made["mutual_information"] == pytest.approx(-math.log(0.36))
    assert made.values["cm2"].details == {"canonical_correlations": [pytest.approx(0.8)], "chance": math.exp(-1 / 5)}
    assert made.values["cm1"].details["chance"] == pytest.approx(1 - 1 / 4)
    assert made.values["mutual_information"].details["chance"] == pytest.approx(1 / 5)
    assert "one attribute" in made.not_applicable["cm3"]


def test_two_attributes_and_eight_records() -> None:
    # each masked column correlates by 1/2 with one original column and not with the other, nor with its neighbour
    y = {"A": (A + C + B * C - A * B) / 2, "B": (B + C - A * C + A * B) / 2}
    made = audit({"A": A, "B": B}, y)
    assert made.values["cm1"].details["canonical_correlations"] == pytest.approx([0.5, 0.5])
    assert made["cm1"] == pytest.approx(0.75)
    assert made["cm2"] == pytest.approx(0.75**2)
    assert made["mutual_information"] == pytest.approx(-2 * math.log(0.75))
    assert made.values["cm2"].notes == ()


def test_columns_that_add_nothing_are_dropped_and_named() -> None:
    x = {"A": A, "B": B, "K": np.full(8, 7.0)}
    y = {"A": (A + C + B * C - A * B) / 2, "B": (B + C - A * C + A * B) / 2, "K": 1 - (A + C + B * C - A * B) / 2}
    made = audit(x, y)
    assert made["cm2"] == pytest.approx(0.75**2)
    assert made.values["cm2"].details["chance"] == pytest.approx(math.exp(-4 / 8))
    dropped = made.values["cm2"].details["dropped"]
    assert dropped["original"] == ["K"]
    assert dropped["masked"] in (["A"], ["K"])
    assert any("original table" in note and note.endswith(": K") for note in made.values["cm2"].notes)


def test_cm3_of_five_records() -> None:
    x = {"A": [1, 2, 3, 4, 5], "B": [2, 1, 4, 3, 5]}
    y = {"A": [50, 40, 30, 20, 10], "B": [5, 4, 2, 3, 1]}
    # sorted by A, B stands 2 1 4 3 5 beside 1 3 2 4 5; sorted by B, A does too: 1 - 6 * 10 / 120 = 0.5
    made = audit(x, y, "cm3", mapping=False)
    assert made["cm3"] == pytest.approx(0.75)
    assert made.values["cm3"].details["per_attribute"] == pytest.approx({"A": 0.75, "B": 0.75})
    assert 0 <= made.values["cm3"].details["chance"] <= 1


def test_cm3_sorts_ties_by_the_sum_of_the_other_ranks() -> None:
    x = {"K": [0, 0, 0, 1, 1, 1], "B": [1, 2, 3, 4, 5, 6], "C": [2, 1, 4, 3, 6, 5]}
    y = {"K": [1, 0, 1, 0, 0, 1], "B": [5, 1, 6, 2, 3, 4], "C": [6, 3, 1, 2, 5, 4]}
    # by K, ties by B + C, those with the same sum by B
    # x: rows 1 2 3 (sums 3 3 7) and 4 5 6 (sums 7 11 11), so B is 1 2 3 4 5 6 and C 2 1 4 3 6 5
    # y: rows 2 4 5 (sums 4 4 8) and 3 6 1 (sums 7 8 11), so B is 1 2 3 6 4 5 and C 3 2 5 1 4 6
    made = audit(x, y, "cm3", mapping=False)
    left = np.array([[1, 2, 3, 4, 5, 6], [2, 1, 4, 3, 6, 5]])
    right = np.array([[1, 2, 3, 6, 4, 5], [3, 2, 5, 1, 4, 6]])
    c = np.corrcoef(np.vstack([left, right]))
    # the product of 1 - rho^2 is a ratio of determinants (Wilks)
    expected = np.linalg.det(c) / np.linalg.det(c[:2, :2]) / np.linalg.det(c[2:, 2:])
    assert made.values["cm3"].details["per_attribute"]["K"] == pytest.approx(expected)
    assert any("tied records" in note for note in made.values["cm3"].notes)


def test_cm3_finds_what_perfectly_correlated_attributes_disclose() -> None:
    # section 4.3 of the paper: attributes that follow each other in both tables, in any order of the records
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 50))
    made = audit({"A": a, "B": a**3, "C": rng.random(50)}, {"A": b, "B": b**3, "C": rng.random(50)})
    assert made["cm3"] < 1e-9
    assert made["cm2"] > 0.5


def test_cm3_does_not_sort_by_a_constant_column() -> None:
    x, y = (np.random.default_rng(seed).normal(size=(60, 3)) for seed in (1, 2))
    columns = ["A", "B", "C"]
    made, plain = (
        audit(pd.DataFrame(x, columns=columns).assign(**extra), pd.DataFrame(y, columns=columns).assign(**extra), "cm3")
        for extra in ({"K": 5.0}, {})
    )
    assert made["cm3"] == pytest.approx(plain["cm3"], rel=1e-9)
    assert "column K is not sorted by: it is constant in one of the tables" in made.values["cm3"].notes


def test_identity_discloses_everything(reference: pd.DataFrame) -> None:
    made = audit(reference, rv.mask(reference, "identity", seed=1).data, *ALL, "um")
    assert max(made["cm1"], made["cm2"], made["cm3"]) < 1e-9
    assert made["um"] == pytest.approx(1.0)
    assert made.not_applicable["mutual_information"].startswith("it is infinite")


def by_chance(n: int, m: int) -> tuple[float, float]:
    """Between these cm2 of independent tables lies, but once in a million: -n ln(cm2) is about chi-square with m^2."""
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], m * m)
    return math.exp(-high / n), math.exp(-low / n)


def test_shuffled_records_mislead_cm2_and_not_cm3(reference: pd.DataFrame) -> None:
    made = audit(reference, rv.mask(reference, "record_shuffle", seed=1).data, *ALL, "um")
    n, m = reference.shape
    low, high = by_chance(n, m)
    assert low < made["cm2"] < high
    assert made.values["cm2"].details["chance"] == pytest.approx(math.exp(-m * m / n))
    assert made["cm3"] < 1e-9
    assert made["um"] == pytest.approx(1.0)


def test_permuted_columns_give_the_level_of_chance(reference: pd.DataFrame) -> None:
    made = audit(reference, rv.mask(reference, "permute", seed=1).data)
    low, high = by_chance(*reference.shape)
    assert low < made["cm2"] < high
    assert made["mutual_information"] == pytest.approx(-math.log(made["cm2"]))
    deviation = {4: 0.025, 11: 0.003}[reference.shape[1]]  # of one draw of permuted columns
    assert made["cm3"] == pytest.approx(made.values["cm3"].details["chance"], abs=4.9 * deviation * 2**0.5)


def test_ipso_on_census(reference_data: Callable[[str], Path]) -> None:
    # Domingo-Ferrer, Muralidhar and Bras-Amoros 2021, Table 1, first row: means of 100 replications
    data = pd.read_csv(reference_data("census"))[["FICA", "FEDTAX", "INTVAL", "POTHVAL"]].astype(float)
    published = {"um": 0.9638, "cm1": 0.9904, "cm2": 0.9849, "cm3": 0.6673}
    deviation = {"um": 0.0043, "cm1": 0.0037, "cm2": 0.0052, "cm3": 0.016}  # of one draw
    made = [audit(data, rv.mask(data, "ipso", seed=seed).data, *published) for seed in range(20)]
    for name, value in published.items():
        error = 4.9 * deviation[name] * math.sqrt(1 / 20 + 1 / 100)
        assert np.mean([each[name] for each in made]) == pytest.approx(value, abs=error), name


def test_ipso_on_highly_correlated_attributes() -> None:
    # Table 1, second row: 1,080 records of four attributes that correlate by 0.99. Its CM2, 0.9913, is a misprint:
    # independent tables of that size give 0.985, and CM2 cannot be that near to CM1.
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.multivariate_normal(np.zeros(4), np.full((4, 4), 0.99) + 0.01 * np.eye(4), size=1080))
    data.columns = pd.Index(list("ABCD"))
    names = ["um", "cm1", "cm2", "cm3"]
    made = [audit(data, rv.mask(data, "ipso", seed=seed).data, *names) for seed in range(10)]
    mean = {name: np.mean([each[name] for each in made]) for name in names}
    assert mean["um"] == pytest.approx(1.0, abs=0.001)
    assert mean["cm1"] == pytest.approx(0.9914, abs=4.9 * 0.004 * math.sqrt(1 / 10 + 1 / 100))
    assert mean["cm2"] == pytest.approx(0.985, abs=4.9 * 0.0052 * math.sqrt(1 / 10))
    assert mean["cm3"] == pytest.approx(0.0277, abs=0.01)  # the paper's simulated table is another one


def test_too_few_records_correlate_whatever_they_are() -> None:
    rng = np.random.default_rng(0)
    x, y = (dict(zip("ABC", rng.normal(size=(3, 6)), strict=True)) for _ in range(2))
    made = audit(x, y)
    for name in ("cm1", "cm2", "mutual_information"):
        assert made.not_applicable[name].endswith("it needs more than 6 records")
    assert 0 < made["cm3"] < 1  # four columns without the one sorted by


def test_constant_tables() -> None:
    x, constant = {"A": [1.0, 2, 3, 4, 5], "B": [2.0, 1, 3, 5, 4]}, {"A": [1.0] * 5, "B": [2.0] * 5}
    told = audit(x, constant)
    assert [told[name] for name in ALL] == [1.0, 1.0, 1.0, 0.0]
    for value in told.values.values():
        assert any("tells nothing" in note for note in value.notes)
    nothing = audit(constant, x)
    assert all("nothing to hide" in nothing.not_applicable[name] for name in ALL)


def test_many_tiny_factors_do_not_make_the_information_infinite() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 60))
    frames = [pd.DataFrame(table).rename(columns=str) for table in (x, x + 1e-4 * rng.normal(size=x.shape))]
    made = audit(*frames, "cm2", "mutual_information")
    assert made["mutual_information"] > 600  # exp(-745) is the smallest number above 0
    assert made["cm2"] >= 0.0
