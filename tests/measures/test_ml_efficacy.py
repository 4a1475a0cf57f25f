"""The efficacy of machine learning on masked data: its scores by hand, what it holds out, and its edges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import rankveil as rv
from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError
from rankveil.measures.ml_efficacy import MOST, _alone, _class_shares, _classes, _dealt, _numbers, _separation
from rankveil.seeds import Seed, Stream

Array = NDArray[np.float64]

ml_efficacy = get_measure("ml_efficacy")
THOROUGH = pytest.mark.thorough


def stream() -> Stream:
    return Seed.of(5).stream("test")


def numbers(n: int = 200, *, draw: int = 1) -> Array:
    """A target that the next column explains for the most part, and a column that explains nothing."""
    a, b, noise = np.random.default_rng(draw).normal(size=(3, n))
    return np.asfortranarray(np.column_stack((a + 0.3 * noise, a, b)))


def classes(n: int = 300, *, draw: int = 1) -> Array:
    """A target of three classes that lie one after the other on the next column."""
    table = numbers(n, draw=draw)
    table[:, 0] = np.digitize(table[:, 0], [-0.5, 0.5])
    return table


def test_separation_of_five_records_by_hand() -> None:
    known = np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    share = np.array([0.1, 0.6, 0.4, 0.7, 0.9])  # of the 6 pairs 5 are in order: AUC 5/6
    assert _separation(known, np.column_stack((1 - share, share))) == pytest.approx(2 * 5 / 6 - 1)
    assert _separation(known, np.full((5, 2), 0.5)) == 0.0
    three = np.array([0.0, 1.0, 2.0, 2.0])
    # class 0 apart from the others, class 1 the other way round, class 2 in 3 of 4 pairs; 1, 1 and 2 records
    shares = np.array([[0.9, 0.5, 0.3], [0.1, 0.1, 0.1], [0.2, 0.6, 0.2], [0.3, 0.7, 0.7]])
    assert _separation(three, shares) == pytest.approx((1 - 1 + 2 * 0.5) / 4)


def test_ridge_regression_by_hand() -> None:
    # standardised both are -1 and 1: the slope is 2 / (2 + 1)
    found = _numbers("linear", np.array([[0.0], [2.0]]), np.array([10.0, 30.0]), np.array([[2.0], [1.0]]), 0)
    assert found == pytest.approx([20 + 10 * 2 / 3, 20.0])
    assert _numbers("linear", np.array([[0.0], [2.0]]), np.array([7.0, 7.0]), np.ones((3, 1)), 0).tolist() == [7.0] * 3


def test_a_class_that_was_not_taught_has_no_probability() -> None:
    given, asked = np.arange(40.0)[:, None], np.array([[0.0], [39.0]])
    learn = _alone(lambda job: _class_shares(*job))
    for model in ("boosting", "linear"):
        found = learn((model, given, np.repeat([0.0, 2.0], 20), asked, 3))
        assert found[:, 1].tolist() == [0.0, 0.0]
        assert found[0, 0] > 0.7
        assert found[1, 2] > 0.7
    assert _class_shares("linear", given, np.ones(40), asked, 3).tolist() == [[0.0, 1.0, 0.0]] * 2


def test_folds_are_dealt_among_neighbours() -> None:
    fold = _dealt(23, 5, stream())
    for start in range(0, 20, 5):
        assert sorted(fold[start : start + 5]) == [0, 1, 2, 3, 4]
    assert np.bincount(fold).max() - np.bincount(fold).min() <= 1
    assert fold[:5].tolist() != fold[5:10].tolist() or fold[5:10].tolist() != fold[10:15].tolist()


def test_few_whole_numbers_are_classes() -> None:
    assert _classes(np.tile([3.0, 1.0], 10)) is not None
    assert _classes(np.tile([3.0, 1.5], 10)) is None
    assert _classes(np.array([1.0, 2.0, 3.0])) is None  # too few records to call them classes
    assert _classes(np.arange(1100.0) % 11) is None


@pytest.mark.parametrize("table", [numbers(), classes()], ids=["numbers", "classes"])
@pytest.mark.parametrize("model", ["boosting", "linear"])
def test_a_release_equal_to_the_original_is_as_good(table: Array, model: str) -> None:
    made = ml_efficacy(table, table, True, target=0, model=model, rng=stream())
    assert made.value == 1.0
    assert made.details["trained_on_original"] > 0.6
    assert made.details["classes"] == (3 if table[0, 0] in (0, 1, 2) else None)
    # not known which record is whose: held out is the nearest, which is the same one
    order = np.random.default_rng(0).permutation(len(table))
    unknown = ml_efficacy(table, table[order], False, target=0, model=model, rng=stream())
    assert unknown.value == 1.0
    assert any("nearest" in note for note in unknown.notes)


@pytest.mark.parametrize("model", ["boosting", "linear"])
def test_r_squared_is_that_of_the_held_out_records(model: Any) -> None:
    table = numbers(60)
    table = table[np.argsort(table[:, 0])]
    masked = table + np.random.default_rng(2).normal(size=table.shape)
    made = ml_efficacy(table, masked, True, target=0, model=model, folds=3, rng=stream())
    fold = _dealt(60, 3, stream())
    centre, spread = table.mean(axis=0), table.std(axis=0)
    scores, learn = [], _alone(lambda job: _numbers(*job))
    for side in ((table - centre) / spread, (masked - centre) / spread):
        squared = 0.0
        for held in range(3):
            asked = ((table - centre) / spread)[fold == held]
            train = side[fold != held]
            predicted = learn((model, train[:, 1:], train[:, 0], asked[:, 1:], 0))
            squared += float(np.sum((asked[:, 0] - predicted) ** 2))
        scores.append(1 - squared / 60)
    assert made.details["trained_on_original"] == pytest.approx(scores[0], rel=1e-6)
    assert made.details["trained_on_masked"] == pytest.approx(scores[1], rel=1e-6)
    assert made.value == pytest.approx(max(scores[1], 0) / scores[0], rel=1e-6)


@THOROUGH
def test_the_order_of_the_records_changes_nothing() -> None:
    for table, model in ((numbers(), "boosting"), (classes(), "linear")):
        masked = np.round(table + 0.5 * np.random.default_rng(2).normal(size=table.shape), 1)
        order = np.random.default_rng(0).permutation(len(table))
        for paired in (True, False):
            first = ml_efficacy(table, masked, paired, target=0, model=model, rng=stream())
            turned = ml_efficacy(table[order], masked[order], paired, target=0, model=model, rng=stream())
            assert turned.value == first.value
            assert turned.details == first.details


@pytest.mark.parametrize("model", [pytest.param("boosting", marks=THOROUGH), "linear"])
def test_the_more_is_lost_the_less_it_is(model: str) -> None:
    for table in (numbers(), classes()):
        draws = np.random.default_rng(4).normal(size=table.shape) * table.std(axis=0)
        lost = table.copy()
        lost[:, 0] = np.random.default_rng(5).permutation(lost[:, 0])
        releases = [table + 0.1 * draws, table + 0.7 * draws, lost]
        found = [ml_efficacy(table, each, True, target=0, model=model, rng=stream()).value for each in releases]
        assert found[0] > found[1] > found[2]
        assert found[0] > 0.9
        assert found[2] < 0.2


def test_a_masked_class_counts_as_the_nearest_one() -> None:
    table = classes()
    moved = table.copy()
    moved[:, 0] += np.random.default_rng(1).uniform(-0.49, 0.49, len(table))
    assert ml_efficacy(table, moved, True, target=0, rng=stream()).value == 1.0


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("model", ["boosting", "linear"])
def test_from_a_constant_nothing_is_learnt(paired: bool, model: str) -> None:
    for table in (numbers(), classes()):
        made = ml_efficacy(table, np.full(table.shape, 1.0), paired, target=0, model=model, rng=stream())
        assert made.value == 0.0
        assert any("one fold" in note for note in made.notes) == (not paired)


@pytest.mark.parametrize("model", ["boosting", "linear"])
@pytest.mark.parametrize(
    "scale", [1e-300, 1e12, pytest.param(1e-12, marks=THOROUGH), pytest.param(1e300, marks=THOROUGH)]
)
def test_magnitudes(model: str, scale: float) -> None:
    table = numbers()
    plain = ml_efficacy(table, table + 0.1, True, target=0, model=model, rng=stream()).value
    both = ml_efficacy(scale * table, scale * (table + 0.1), True, target=0, model=model, rng=stream()).value
    assert both == pytest.approx(plain, rel=1e-3)  # splits between values that rounding moved may be others
    far = ml_efficacy(table, scale * table, True, target=0, model=model, rng=stream())
    assert far.value >= 0  # regression does not mind units, as long as they change together
    assert np.isfinite(far.details["trained_on_masked"])


def test_synthetic_data_may_have_another_number_of_records() -> None:
    table, synthetic = numbers(150, draw=1), numbers(400, draw=2)
    made = ml_efficacy(table, synthetic, False, target=0, rng=stream())
    assert 0.8 < made.value < 1.2
    assert made.details["records"] == {"original": 150, "masked": 400}


def test_a_large_table_is_sampled_and_that_is_said() -> None:
    table = numbers(MOST + 500)
    made = ml_efficacy(table, table, True, target=0, model="linear", rng=stream())
    assert made.value == 1.0
    assert made.details["records"] == {"original": MOST, "masked": MOST}
    assert f"{MOST} of {MOST + 500} original records are used, drawn by the seed" in made.notes


def test_averages_over_groups_are_pointed_out() -> None:
    table = numbers()
    masked = table[np.argsort(table[:, 0])].reshape(40, 5, 3).mean(axis=1).repeat(5, axis=0)
    made = ml_efficacy(table[np.argsort(table[:, 0])], masked, True, target=0, rng=stream())
    assert any("averages" in note for note in made.notes)
    assert not ml_efficacy(table, table, True, target=0, rng=stream()).notes


@pytest.mark.parametrize(
    ("table", "target", "why"),
    [
        (numbers(), None, "--target"),
        (numbers()[:, :1], 0, "no other column"),
        (np.ones((20, 2)), 0, "the target is constant"),
        (numbers(9), 0, "at least 10 original records"),
        (numbers()[:, ::-1], 0, "explains nothing"),
    ],
)
def test_it_says_when_it_has_no_meaning(table: Array, target: int | None, why: str) -> None:
    with pytest.raises(NotApplicableError, match=why):
        ml_efficacy(table, table, True, target=target, rng=stream())


def test_census_agrees_with_masking_the_training_records_alone(reference_data: Callable[[str], Path]) -> None:
    # what the held-out masked records stand for: records that the release never saw
    census = pd.read_csv(reference_data("census"))
    for method, parameters in (("additive_noise", {"alpha": 1.0}), ("rank_swap", {"p": 20}), ("mdav", {"k": 25})):
        masked = rv.mask(census, method, seed=1, **parameters).data
        settings = {"ml_efficacy": {"model": "linear"}}
        made = rv.audit(census, masked, measures=["ml_efficacy"], target="FEDTAX", settings=settings)
        fold = np.random.default_rng(0).permutation(len(census)) % 5
        known = census["FEDTAX"].to_numpy(dtype=np.float64)
        predicted = np.empty(len(census))
        for held in range(5):
            train = rv.mask(census[fold != held], method, seed=held, **parameters).data
            given, asked = (t.drop(columns="FEDTAX").to_numpy(dtype=np.float64) for t in (train, census[fold == held]))
            predicted[fold == held] = _numbers("linear", given, train["FEDTAX"].to_numpy(dtype=np.float64), asked, 0)
        expected = 1 - np.sum((known - predicted) ** 2) / np.sum((known - known.mean()) ** 2)
        assert made.values["ml_efficacy"].details["trained_on_masked"] == pytest.approx(expected, abs=0.03), method
        assert made["ml_efficacy"] < 1
