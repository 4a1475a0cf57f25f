"""Total variation of categories: by hand, against a slow reference, with weights, and at the edges."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankveil as rv
from rankveil.catalogue import get_measure
from rankveil.categories import nominal
from rankveil.errors import NotApplicableError

total_variation = get_measure("total_variation")
codes = st.lists(st.integers(0, 6), min_size=1, max_size=25)


def arrays(*sides: Any) -> list[Any]:
    return [np.array(side, dtype=np.float64) for side in sides]


def reference(x: list[Any], y: list[Any]) -> Fraction:
    first, second = Counter(x), Counter(y)
    apart = [abs(Fraction(first[each], len(x)) - Fraction(second[each], len(y))) for each in {*x, *y}]
    return sum(apart, Fraction(0)) / 2


def test_five_records_by_hand() -> None:
    # shares 2/5, 2/5, 1/5, 0 and 1/5, 3/5, 0, 1/5: (1 + 1 + 1 + 1) / 5 / 2
    made = total_variation(*arrays([0, 0, 1, 1, 2], [0, 1, 1, 1, 3]))
    assert made.value == 2 / 5
    assert {key: made.details[key] for key in ("categories", "lost", "new")} == {"categories": 3, "lost": 1, "new": 1}


def test_the_largest_changes_by_their_labels() -> None:
    categories = nominal(["north", "south", "west"], np.array([3.0, 1.0, 1.0])).extended(["sea"])
    value = dict(zip(categories.labels, categories.values, strict=True))
    x = arrays([value[label] for label in ("north", "north", "north", "south", "west")])[0]
    y = arrays([value[label] for label in ("north", "sea", "sea", "sea", "west")])[0]
    made = total_variation(x, y, categories=(categories,))
    assert made.details["largest_changes"] == [
        {"category": "sea", "original": 0.0, "masked": 0.6},
        {"category": "north", "original": 0.6, "masked": 0.2},
        {"category": "south", "original": 0.2, "masked": 0.0},
    ]
    plain = total_variation(x, y)
    assert plain.value == made.value == 0.6
    assert [each["category"] for each in plain.details["largest_changes"]] == [f"{value['sea']:g}", "0", "1"]


def test_weights_by_hand() -> None:
    x, y, weight_x, weight_y = arrays([0, 1], [0, 1, 1], [3, 1], [1, 1, 2])
    made = total_variation(x, y, weight_x, weight_y)
    assert made.value == 0.5  # 3/4 and 1/4 beside 1/4 and 3/4
    assert total_variation(x, y, None, weight_y).value == 0.25
    assert total_variation(x, y, weight_x, None).value == pytest.approx(3 / 4 - 1 / 3)


@given(codes, codes)
def test_it_is_what_the_definition_gives(x: list[int], y: list[int]) -> None:
    made = total_variation(*arrays(x, y))
    assert made.value == float(reference(x, y))  # exactly: the sum is one of whole numbers
    # what the values of the codes are is of no importance, nor whether they are whole
    others = np.array([-3.0, 0.5, 1.0, 1.5, 1e9, 7e18, 0.0])
    assert total_variation(others[x], others[y]).value == made.value


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=15), codes)
def test_a_weight_is_the_record_repeated(weighted: list[tuple[int, int]], x: list[int]) -> None:
    y, weight = arrays(*zip(*weighted, strict=True))
    if not weight.any():
        with pytest.raises(NotApplicableError, match="weight 0"):
            total_variation(arrays(x)[0], y, None, weight)
        return
    repeated = np.repeat(y, weight.astype(int))
    made, long = total_variation(arrays(x)[0], y, None, weight), total_variation(arrays(x)[0], repeated)
    assert made.value == pytest.approx(long.value, abs=1e-12)
    for key in ("categories", "lost", "new"):
        assert made.details[key] == long.details[key]


@pytest.mark.parametrize(
    ("x", "y", "value"),
    [
        ([4], [4], 0.0),
        ([4], [2], 1.0),
        ([0, 0, 0], [0], 0.0),
        ([0, 0, 0], [1, 1], 1.0),
        (list(range(50)), list(range(50, 100)), 1.0),
        (list(range(50)), list(range(49, -1, -1)), 0.0),
    ],
)
def test_at_the_edges(x: list[int], y: list[int], value: float) -> None:
    assert total_variation(*arrays(x, y)).value == value


def test_what_chance_alone_would_give() -> None:
    # of 400 pairs of tables the mean distance has a standard error of about 1.2 % (for 12 categories)
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(12, 2.0))
    made = [total_variation(*(rng.choice(12, n, p=shares).astype(float) for n in (800, 500))) for _ in range(400)]
    values, expected = [each.value for each in made], [each.details["expected"] for each in made]
    assert np.mean(values) == pytest.approx(np.mean(expected), rel=0.06)


def test_an_audit_names_columns_and_compares_all_cells_that_are_there() -> None:
    original = pd.DataFrame({"A": ["u", "v", "u", None], "B": ["r", "r", "s", "t"], "C": [1.0, 2.0, 3.0, 4.0]})
    masked = pd.DataFrame({"A": ["u", "u", "u", "v"], "B": ["r", "r", "s", "x"], "C": [4.0, 2.0, 3.0, 1.0]})
    made = rv.audit(original, masked, measures=["total_variation"], columns=["A", "B", "C"])
    details = made.values["total_variation"].details
    # u is 2 of the 3 original cells that are there, and 3 of the 4 masked ones
    assert details["per_attribute"] == {"A": pytest.approx(3 / 4 - 2 / 3), "B": 0.25}
    assert any("over all original and all masked values, of which some are missing: A" in note for note in made.notes)
    assert details["largest_changes"]["B"][-1] == {"category": "x", "original": 0.0, "masked": 0.25}
