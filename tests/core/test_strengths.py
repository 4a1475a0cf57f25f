"""The measured table of strengths: defaults by the number of columns, and what is said of them beforehand."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankveil as rv
from rankveil import masking
from rankveil.plans import Plan
from rankveil.strengths import LEAST, found_at, measured, strength_for
from rankveil.table import Table


def table(columns: int, records: int = 60) -> pd.DataFrame:
    made = np.random.default_rng(0).normal(size=(records, columns)).round(3)
    return pd.DataFrame(made, columns=[f"C{j}" for j in range(columns)])


def told(release: Any) -> list[str]:
    words = ("somebody who knows all originals", "how many people an intruder")
    return [note for note in release.notes if note.startswith(words)]


@pytest.mark.parametrize("method", ["rank_swap", "copula_swap"])
def test_defaults_keep_what_is_found_below_the_limit_and_no_lower_ones_do(method: str) -> None:
    known = measured()
    for columns in range(1, 14):
        strength = strength_for(method, columns)
        found = found_at(method, strength, columns)
        assert found is not None
        assert found <= known.limit + 1e-9
        before = found_at(method, strength - 1, columns)
        assert strength == LEAST or (before is not None and before > known.limit * 0.9)
    rising = [strength_for(method, columns) for columns in range(1, 41)]
    assert all(a <= b for a, b in pairwise(rising))
    assert rising[-1] <= known.methods[method].values[-1]


def test_between_measured_strengths_in_proportion_and_nothing_beyond() -> None:
    known = measured().methods["rank_swap"]
    (a, b), (fa, fb) = known.values[3:5], known.found[5][3:5]
    assert found_at("rank_swap", (a + b) / 2, 5) == pytest.approx((fa + fb) / 2)
    assert found_at("rank_swap", known.values[0] / 2, 5) is None
    assert found_at("rank_swap", 10.0, 14) is None
    assert found_at("resample", 1.0, 2) is None


@pytest.mark.parametrize(("method", "columns"), [("rank_swap", 1), ("rank_swap", 5), ("copula_swap", 3)])
def test_the_number_stands_in_the_manifest_and_the_same_release_comes_of_it(method: str, columns: int) -> None:
    people = table(columns)
    left = rv.mask(people, method, seed=1)
    (step,) = left.manifest["steps"]
    assert step["parameters"]["p"] == strength_for(method, columns)
    given = rv.mask(people, method, seed=1, p=strength_for(method, columns))
    pd.testing.assert_frame_equal(left.data, given.data)


def test_what_was_said_of_a_column_stays() -> None:
    people = table(4)
    plan = masking.settled(Plan.of("rank_swap", **{"p.C0": 3}), Table(people))
    (step,) = plan.steps
    assert (step.bound("C0")["p"], step.bound("C1")["p"]) == (3.0, strength_for("rank_swap", 4))
    plan = masking.settled(Plan.of("rank_swap", p=7, **{"p.C0": "none"}), Table(people))
    assert plan.steps[0].bound("C0")["p"] == strength_for("rank_swap", 4)
    assert plan.steps[0].bound("C1")["p"] == 7.0
    dropped = masking.settled(Plan.of("drop", columns=["C3"]).then("rank_swap"), Table(people))
    assert dropped.steps[1].bound("C0")["p"] == strength_for("rank_swap", 3)
    other = Plan.of("additive_noise")
    assert masking.settled(other, Table(people)) is other


def test_mask_says_what_an_intruder_would_find() -> None:
    people = table(5)
    (note,) = told(rv.mask(people, "rank_swap", seed=1))
    assert "% of the people or fewer at p = 29 and 5 columns: the most in 4 tables of 1,000 records" in note
    assert "brings it down" not in note
    (note,) = told(rv.mask(people, "rank_swap", p=5, seed=1))
    assert f"about {found_at('rank_swap', 5.0, 5):.0%} of the people" in note
    assert note.endswith("p = 29 brings it down to 9%")
    (note,) = told(rv.mask(people, "additive_noise", seed=1))
    assert f"about {found_at('additive_noise', 0.1, 5):.0%} of the people or fewer at alpha = 0.1" in note
    (note,) = told(rv.mask(people, "mdav", k=4, seed=1))
    assert "would find 1 / k = 25.0% of the people" in note
    assert told(rv.mask(people, "mdav", k=4, block=2, seed=1)) == []
    for plan in ("resample", Plan.of("rank_swap").then("additive_noise"), Plan.of("rank_swap", scheme="window")):
        (note,) = told(rv.mask(people, plan, seed=1))
        assert note.startswith("how many people an intruder would find in this release is not known beforehand")
    assert told(rv.mask(people, "identity", seed=1)) == []
    assert told(rv.mask(people, "ipso", seed=1)) == []
