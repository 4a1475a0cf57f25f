"""l-diversity in three ways: by hand, against plain Python, with missing cells."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError

distinct_l, entropy_l, recursive_l = (
    get_measure(name) for name in ("l_diversity", "entropy_l_diversity", "recursive_l_diversity")
)
ALL = (distinct_l, entropy_l, recursive_l)

AGE = {"AGE": np.array([30.0] * 6 + [40.0] * 4)}
ILLNESS = {"ILLNESS": np.array([0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 0.0, 0.0, 1.0, 1.0])}  # 3, 2, 1 and 2, 2


def test_ten_records() -> None:
    made = distinct_l(AGE, ILLNESS, limit=3)
    assert made.value == 2
    assert made.details["records_below_limit"] == 4
    assert made.details["rows"] == [7, 8, 9, 10]
    assert made.details["sizes"] == {"4": 1, "6": 1}
    assert made.details["per_attribute"] == {"ILLNESS": 2.0}
    # entropies: (1/2) log 2 + (1/3) log 3 + (1/6) log 6 = 1.0114, and log 2
    entropy = 0.5 * math.log(2) + math.log(3) / 3 + math.log(6) / 6
    assert made.details["entropy"] == {"ILLNESS": pytest.approx(2.0)}
    assert entropy_l(AGE, ILLNESS).value == 2
    assert entropy_l({"AGE": AGE["AGE"][:6]}, {"ILLNESS": ILLNESS["ILLNESS"][:6]}).details["exact"] == pytest.approx(
        math.exp(entropy)
    )


def test_recursive_by_hand() -> None:
    # 3 < c (2 + 1) for l = 2 takes c > 1, 3 < c 1 for l = 3 takes c > 3; 2 < c 2 for l = 2 takes c > 1
    first = {"AGE": AGE["AGE"][:6]}, {"ILLNESS": ILLNESS["ILLNESS"][:6]}
    assert [recursive_l(*first, c=c).value for c in (0.4, 0.5, 0.6, 1.0, 1.1, 3.0, 3.1)] == [0, 0, 1, 1, 2, 2, 3]
    made = recursive_l(AGE, ILLNESS, c=4.0)
    assert made.value == 2
    assert made.details["distinct"] == 2
    assert made.details["least_c"] == 2
    assert recursive_l(*first).details["least_c"] == 4


def test_the_least_diverse_confidential_column_counts() -> None:
    both = {**ILLNESS, "DEBT": np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 7.0, 7.0, 7.0])}
    made = distinct_l(AGE, both)
    assert made.value == 1
    assert made.details["per_attribute"] == {"ILLNESS": 2.0, "DEBT": 1.0}
    assert made.details["records_below_limit"] == 4
    assert "least_c" not in recursive_l(AGE, both).details


def test_a_missing_value_is_a_value_of_its_own() -> None:
    illness = {"ILLNESS": np.array([0.0, np.nan, np.nan])}
    made = distinct_l({"AGE": np.ones(3)}, illness)
    assert made.value == 2
    assert made.notes == ("column ILLNESS: 2 of 3 cells are missing and count as one value of their own",)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 1.5, 2.0, 3.0, math.nan])), min_size=1, max_size=40))
def test_against_the_definitions(rows: list[tuple[int, float]]) -> None:
    quasi = {"Q": np.array([row[0] for row in rows], dtype=float)}
    secret = {"S": np.array([row[1] for row in rows])}
    counts: dict[int, Counter[Any]] = {}
    for key, value in rows:
        counts.setdefault(key, Counter())["missing" if math.isnan(value) else value] += 1
    falling = [sorted(each.values(), reverse=True) for each in counts.values()]
    assert distinct_l(quasi, secret).value == min(len(r) for r in falling)
    entropies = [-sum(k / sum(r) * math.log(k / sum(r)) for k in r) for r in falling]
    assert entropy_l(quasi, secret).details["exact"] == pytest.approx(math.exp(min(entropies)))
    for c in (0.5, 1.0, 2.0, 3.5):
        largest = [max([k for k in range(1, len(r) + 1) if r[0] < c * sum(r[k - 1 :])], default=0) for r in falling]
        assert recursive_l(quasi, secret, c=c).value == min(largest)
        assert distinct_l(quasi, secret, c=c).details["recursive"] == {"S": min(largest)}


@pytest.mark.parametrize("measure", ALL)
def test_without_roles_it_says_how_to_give_them(measure: Any) -> None:
    with pytest.raises(NotApplicableError, match="--role COLUMN=quasi-identifier"):
        measure({}, ILLNESS)
    with pytest.raises(NotApplicableError, match="name confidential columns with --role COLUMN=confidential"):
        measure(AGE, {})


@pytest.mark.parametrize("measure", ALL)
def test_what_is_told_can_be_written(measure: Any) -> None:
    json.dumps(measure(AGE, ILLNESS).details, allow_nan=False)


@pytest.mark.parametrize("values", [2, 3, 5, 7, 11, 13, 100])
def test_equal_shares_are_as_diverse_as_there_are_values(values: int) -> None:
    # exp(log n) may fall just below n
    secret = {"S": np.tile(np.arange(float(values)), 3)}
    quasi = {"Q": np.ones(3 * values)}
    assert entropy_l(quasi, secret, limit=values).value == values
    assert entropy_l(quasi, secret, limit=values).details["records_below_limit"] == 0
