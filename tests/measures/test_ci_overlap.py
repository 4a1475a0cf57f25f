"""The overlap of confidence intervals: by hand, against another way to compute it, and at the edges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

import rankveil as rv
from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError

Array = NDArray[np.float64]

ci_overlap = get_measure("ci_overlap")

AGE = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
INCOME = np.array([1.0, 3.0, 2.0, 5.0, 4.0])  # slope 8 / 10, squared errors 10 - 6.4 = 3.6
MASKED = np.array([1.0, 2.0, 3.0, 5.0, 4.0])  # slope 9 / 10, squared errors 10 - 8.1 = 1.9
QUANTILE = 3.182446305284263  # of Student's t with 3 degrees of freedom, 97.5 percent


def table(*columns: Array) -> Array:
    return np.asfortranarray(np.column_stack(columns))


def overlap(a: tuple[float, float], b: tuple[float, float]) -> float:
    common = max(min(a[1], b[1]) - max(a[0], b[0]), 0.0)
    return (common / (a[1] - a[0]) + common / (b[1] - b[0])) / 2


def reference(x: Array, y: Array, target: int, *, level: float = 0.95) -> list[float]:
    """By the textbook's formulas in the columns' own units, the intercept at the means of x."""
    ends = []
    for side in (x, y):
        design = np.column_stack((np.ones(len(side)), np.delete(side - x.mean(axis=0), target, axis=1)))
        inverse = np.linalg.pinv(design)
        slopes = inverse @ side[:, target]
        free = len(side) - design.shape[1]
        variance = np.sum((side[:, target] - design @ slopes) ** 2) / free
        half = stats.t.ppf(0.5 + level / 2, free) * np.sqrt(variance * np.sum(inverse**2, axis=1))
        ends.append([(float(m - h), float(m + h)) for m, h in zip(slopes, half, strict=True)])
    return [overlap(a, b) for a, b in zip(*ends, strict=True)]


def test_five_records() -> None:
    made = ci_overlap(table(INCOME, AGE), table(MASKED, AGE), names=("INCOME", "AGE"), target=0)
    halves = [QUANTILE * (errors / 3 / 10) ** 0.5 for errors in (3.6, 1.9)]  # all values have variance 2, Sxx is 10
    slope = made.details["coefficients"]["AGE"]
    assert slope["original"] == pytest.approx([0.8 - halves[0], 0.8 + halves[0]])
    assert slope["masked"] == pytest.approx([0.9 - halves[1], 0.9 + halves[1]])
    # the shorter interval lies within the longer one, and so does that of the intercept
    assert slope["overlap"] == pytest.approx((1 + halves[1] / halves[0]) / 2)
    assert made.details["intercept"]["overlap"] == pytest.approx((1 + (1.9 / 3.6) ** 0.5) / 2)
    assert made.value == pytest.approx((1 + (1.9 / 3.6) ** 0.5) / 2)
    assert made.details["explained"] == {"original": pytest.approx(0.64), "masked": pytest.approx(0.81)}
    assert made.details["left_out"] == []


def test_a_shift_of_the_target_moves_the_intercept_alone() -> None:
    names = ("INCOME", "AGE")
    made = ci_overlap(table(INCOME, AGE), table(INCOME + 1, AGE), names=names, target=0)
    half = QUANTILE * (3.6 / 3 / 5) ** 0.5
    assert made.details["per_attribute"] == {"AGE": pytest.approx(1.0)}
    assert made.details["intercept"]["overlap"] == pytest.approx((2 * half - 1) / (2 * half))
    assert made.value == pytest.approx(1.0)
    both = ci_overlap(table(INCOME, AGE), table(INCOME + 1, AGE), names=names, target=0, intercept=True)
    assert both.value == pytest.approx((1 + (2 * half - 1) / (2 * half)) / 2)


def test_an_intercept_that_stays_raises_nothing() -> None:
    rng = np.random.default_rng(4)
    age = rng.normal(size=400)
    income = 2 * age + rng.normal(size=400)
    ruined = ci_overlap(table(income, age), table(income, rng.permutation(age)), target=0)
    assert ruined.details["intercept"]["overlap"] > 0.5
    assert ruined.value == 0.0


@pytest.mark.parametrize("draw", range(5))
def test_it_agrees_with_the_textbook(draw: int) -> None:
    rng = np.random.default_rng(draw)
    x = rng.normal(size=(40, 4)) @ rng.normal(size=(4, 4)) * [1.0, 10.0, 0.1, 3.0] + [5.0, -3.0, 0.0, 100.0]
    y = x[:30] + 0.3 * x.std(axis=0) * rng.normal(size=(30, 4))
    for target in range(4):
        made = ci_overlap(x, y, names=("A", "B", "C", "D"), target=target, level=90)
        expected = reference(x, y, target, level=0.9)
        found = [made.details["intercept"]["overlap"], *made.details["per_attribute"].values()]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert made.value == pytest.approx(np.mean(expected[1:]), rel=1e-9, abs=1e-9)


def test_units_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3)) + rng.normal(size=(50, 1))
    y = x + 0.3 * rng.normal(size=(50, 3))
    plain = ci_overlap(x, y, target=1).value
    for unit in ([1e300, 1e-300, 1.0], [1e-12, 1e12, 1e300], [-2.0, 3.0, -5.0]):
        assert ci_overlap(x * unit, y * unit, target=1).value == pytest.approx(plain, rel=1e-9)
    moved = [0.0, 1e3, -7.0]
    assert ci_overlap(x + moved, y + moved, target=1).value == pytest.approx(plain, rel=1e-9)


def test_slopes_survive_a_change_of_all_units_however_large() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3)) + rng.normal(size=(50, 1))
    made = ci_overlap(1e-300 * x, 1e300 * x, names=("A", "B", "C"), target=0)
    assert list(made.details["per_attribute"].values()) == pytest.approx([1.0, 1.0])


def test_disjoint_intervals_count_nothing() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    original, masked = table(x + 0.1 * rng.normal(size=200), x), table(-x + 0.1 * rng.normal(size=200), x)
    made = ci_overlap(original, masked, names=("A", "B"), target=0)
    assert made.details["per_attribute"] == {"B": 0.0}


def test_exact_fits_are_equal_or_not() -> None:
    x = table(3 * AGE + 1, AGE)
    same = ci_overlap(x, table(3 * AGE[::-1] + 1, AGE[::-1]), target=0)
    assert same.value == 1.0
    assert sum("fits exactly" in note for note in same.notes) == 2
    assert ci_overlap(x, table(3.001 * AGE + 1, AGE), names=("A", "B"), target=0).details["per_attribute"] == {"B": 0.0}
    assert ci_overlap(x, table(INCOME, AGE), target=0).value == 0.0  # a point beside an interval
    assert ci_overlap(x, table(np.full(5, 2.0), AGE), target=0).value == 0.0


def test_what_depends_on_others_in_the_original_is_left_out_of_both() -> None:
    rng = np.random.default_rng(1)
    a, b, target = rng.normal(size=(3, 60))
    x = table(target + a, a, b, a + b, np.full(60, 7.0))
    y = x + 0.1 * rng.normal(size=x.shape)
    made = ci_overlap(x, y, names=("T", "A", "B", "SUM", "SEVEN"), target=0)
    assert len(made.details["left_out"]) == 2
    assert "SEVEN" in made.details["left_out"]
    assert any(note.startswith("left out of both regressions") for note in made.notes)
    kept = [0, *(j for j, name in enumerate(("T", "A", "B", "SUM", "SEVEN")) if name in made.details["per_attribute"])]
    assert len(kept) == 3
    assert made.value == pytest.approx(np.mean(reference(x[:, kept], y[:, kept], 0)[1:]), rel=1e-9)


def test_a_column_that_only_masking_made_useless_counts_zero() -> None:
    rng = np.random.default_rng(1)
    a, b, target = rng.normal(size=(3, 60))
    x, y = table(target + a, a, b), table(target + a, a, np.zeros(60))
    made = ci_overlap(x, y, names=("T", "A", "B"), target=0)
    assert made.details["per_attribute"]["B"] == 0.0
    assert made.details["coefficients"]["B"]["masked"] is None
    assert made.details["per_attribute"]["A"] > 0.8
    assert any("count 0" in note and note.endswith("B") for note in made.notes)


@pytest.mark.parametrize(
    ("columns", "target", "why"),
    [
        ((AGE, INCOME), None, "--target"),
        ((AGE,), 0, "no other column"),
        ((np.ones(5), AGE), 0, "the target is constant"),
        ((AGE, np.ones(5)), 0, "all other columns are constant"),
        ((AGE[:2], INCOME[:2]), 0, "no more records than"),
        ((AGE[:3], INCOME[:3], AGE[:3] ** 2), 0, "no more records than"),
    ],
)
def test_it_says_when_it_has_no_meaning(columns: Any, target: int | None, why: str) -> None:
    with pytest.raises(NotApplicableError, match=why):
        ci_overlap(table(*columns), table(*columns), target=target)


def test_census(reference_data: Callable[[str], Path]) -> None:
    census = pd.read_csv(reference_data("census"))
    masked = rv.mask(census, "mdav", k=5, seed=1, columns=list(census)).data
    made = rv.audit(census, masked, measures=["ci_overlap"], target="FEDTAX", columns=list(census))
    assert made.values["ci_overlap"].details["left_out"] == ["PTOTVAL"]  # POTHVAL + PEARNVAL
    x, y = (frame.drop(columns="PTOTVAL").to_numpy(dtype=np.float64) for frame in (census, masked))
    unit = x.std(axis=0)
    assert made["ci_overlap"] == pytest.approx(np.mean(reference(x / unit, y / unit, 3)[1:]), rel=1e-6)
    assert rv.audit(census, census, measures=["ci_overlap"], target="FEDTAX", columns=list(census))["ci_overlap"] == 1.0
    # means of sums are sums of means
    exact = rv.audit(census, masked, measures=["ci_overlap"], target="PTOTVAL", columns=list(census))
    assert exact["ci_overlap"] == 1.0


def test_the_stronger_the_noise_the_smaller_the_overlap(reference_data: Callable[[str], Path]) -> None:
    census = pd.read_csv(reference_data("census"))
    found = []
    for alpha in (0.001, 0.1, 2.0):
        releases = [rv.mask(census, "additive_noise", alpha=alpha, seed=seed).data for seed in range(3)]
        found.append(rv.audit(census, releases, measures=["ci_overlap"], target="FEDTAX")["ci_overlap"])
    assert 1 > found[0] > found[1] > found[2]
