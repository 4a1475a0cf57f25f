"""UM on tables worked by hand, and where covariances have no directions of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankveil as rv
from rankveil.catalogue import Value

X = {"A": [1.0, 2, 3, 4, 5], "B": [2.0, 1, 4, 3, 5]}  # Spearman's correlation 0.8
Y = {"A": [1.0, 3, 2, 4, 5], "B": [2.0, 1, 4, 3, 5]}  # differences 1 2 2 1 0: 0.5
LOOSE = {"A": [1.0, 2, 3, 4, 5], "B": [1.0, 5, 4, 3, 2]}  # 0: the eigenvalues are the same

CROSS = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])  # uncorrelated, variance 1


def um(x: Any, y: Any, **settings: Any) -> Value:
    frames = [pd.DataFrame(side, columns=None if isinstance(side, dict) else ["A", "B"]) for side in (x, y)]
    made = rv.audit(*frames, measures=["um"], columns=list(frames[0]), settings={"um": settings}, mapping=False)
    if "um" in made.not_applicable:
        raise rv.NotApplicableError(made.not_applicable["um"])
    return made.values["um"]


def test_five_records() -> None:
    made = um(X, Y)
    # the shares are (1 + r) / 2 and (1 - r) / 2 for r = 0.8 and 0.5, in the same directions
    assert made.details == {"original": pytest.approx([0.9, 0.1]), "masked": pytest.approx([0.75, 0.25])}
    assert made.value == pytest.approx(1 - 0.3**2 / 0.8**2)
    assert um(Y, X).value == pytest.approx(1 - 0.3**2 / 0.5**2)


def test_nothing_is_left_when_the_correlation_is_or_turns_round() -> None:
    assert um(X, LOOSE).value == pytest.approx(0.0)
    assert um(X, {"A": X["A"], "B": X["B"][::-1]}).value == 0.0


@pytest.mark.parametrize(("y", "value"), [(X, 0.0), (Y, 0.0), (LOOSE, 1.0)])
def test_an_original_without_directions(y: Any, value: float) -> None:
    assert um(LOOSE, y).value == value


@pytest.mark.parametrize(
    ("spread", "value"),
    [
        ([1.0, 2.0], 1.0),
        ([1e300, 2e300], 1.0),
        ([1.0, 1.0], 0.0),
        ([2.0, 1.0], 0.0),
        ([1.0, 2**0.5], 1 - 4 / 225 / 0.09),
    ],
)
def test_values_with_different_variances(spread: list[float], value: float) -> None:
    x = CROSS * [1.0, 2.0]  # shares 0.8 and 0.2; 1/3 and 2/3 differ by 2/15
    assert um(x, CROSS * spread, basis="values").value == pytest.approx(value, abs=1e-12)
    assert um(1e-300 * x, CROSS * spread, basis="values").value == pytest.approx(value, abs=1e-12)


def test_the_masked_table_may_have_more_records() -> None:
    twice = np.tile(CROSS * [1.0, 2.0], (2, 1))
    for basis in ("ranks", "values"):
        assert um(CROSS * [1.0, 2.0], twice, basis=basis).value == pytest.approx(1.0)
        assert um(twice, CROSS * [1.0, 2.0], basis=basis).value == pytest.approx(1.0)


def test_a_constant_column_has_no_share() -> None:
    made = um({**X, "C": [7.0] * 5}, {**Y, "C": [7.0] * 5})
    assert made.details["original"] == pytest.approx([0.9, 0.1, 0.0])
    assert made.value == pytest.approx(1 - (2 * 0.15**2) / ((0.9 - 1 / 3) ** 2 + (0.1 - 1 / 3) ** 2 + 1 / 9))


def test_one_attribute_has_one_direction() -> None:
    assert um({"A": X["A"]}, {"A": X["B"]}).value == 1.0


@pytest.mark.parametrize("basis", ["ranks", "values"])
def test_constant_tables_have_no_variance(basis: str) -> None:
    constant = {"A": [1.0] * 5, "B": [2.0] * 5}
    with pytest.raises(rv.NotApplicableError, match="every masked column is constant"):
        um(X, constant, basis=basis)
    with pytest.raises(rv.NotApplicableError, match="every original column is constant"):
        um(constant, X, basis=basis)
