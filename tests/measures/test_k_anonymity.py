"""k-anonymity and sample uniques: by hand, with missing cells, and without quasi-identifiers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError, ParameterError

k_anonymity, sample_uniques = get_measure("k_anonymity"), get_measure("sample_uniques")

SIX = {
    "AGE": np.array([30.0, 30.0, 30.0, 40.0, 40.0, 50.0]),
    "SEX": np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0]),
}


def test_six_records() -> None:
    # (30, 0) twice, (30, 1) once, (40, 1) twice, (50, 1) once
    made = k_anonymity(SIX, limit=2)
    assert made.value == 1
    assert made.details == {
        "quasi_identifiers": ["AGE", "SEX"],
        "records": 6,
        "classes": 4,
        "sizes": {"1": 2, "2": 2},
        "limit": 2,
        "records_below_limit": 2,
        "rows": [3, 6],
    }
    assert made.notes == ()
    assert k_anonymity({"AGE": SIX["AGE"][:5]}).value == 2
    unique = sample_uniques(SIX)
    assert unique.value == pytest.approx(2 / 6)
    assert unique.details["uniques"] == 2
    assert unique.details["rows"] == [3, 6]


def test_records_below_the_limit_are_all_counted_and_twenty_are_listed() -> None:
    made = k_anonymity({"ID": np.arange(50.0)})
    assert made.details["records_below_limit"] == 50
    assert made.details["rows"] == list(range(1, 21))
    assert made.details["limit"] == 5
    assert sample_uniques({"ID": np.arange(50.0)}).value == 1.0


def test_missing_is_a_value_of_its_own_or_agrees_with_all() -> None:
    ages = {"AGE": np.array([30.0, 30.0, np.nan, 40.0])}
    own, every = k_anonymity(ages), k_anonymity(ages, missing="any")
    assert own.value == 1
    assert own.details["rows"] == [1, 2, 3, 4]
    assert own.notes == ("column AGE: 1 of 4 cells are missing and agree with each other only",)
    # the missing one agrees with all four, the 30s with three, the 40 with two
    assert every.value == 2
    assert every.details["sizes"] == {"2": 1, "3": 1, "4": 1}
    assert every.notes == ("column AGE: 1 of 4 cells are missing and agree with every value, as missing=any says",)
    assert sample_uniques(ages).value == 0.5
    assert sample_uniques(ages, missing="any").value == 0.0


def test_a_column_that_is_all_missing_tells_nobody_apart() -> None:
    for missing in ("own", "any"):
        assert k_anonymity({"AGE": np.full(7, np.nan)}, missing=missing).value == 7


@pytest.mark.parametrize("measure", [k_anonymity, sample_uniques])
@pytest.mark.parametrize("quasi", [{}, None])
def test_without_quasi_identifiers_it_says_how_to_name_them(measure: object, quasi: object) -> None:
    with pytest.raises(NotApplicableError, match="name quasi-identifiers with --role COLUMN=quasi-identifier"):
        measure(quasi)  # type: ignore[operator]


def test_no_records() -> None:
    with pytest.raises(NotApplicableError, match="no record"):
        k_anonymity({"AGE": np.empty(0)})


def test_a_wrong_way_of_counting_is_refused() -> None:
    with pytest.raises(ParameterError, match="own or any"):
        k_anonymity(SIX, missing="some")


def test_what_is_told_can_be_written() -> None:
    for measure in (k_anonymity, sample_uniques):
        json.dumps(measure(SIX).details, allow_nan=False)
