"""The numbers that decide: on tables where the truth is known, and at the edges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankveil as rv
from rankveil.catalogue import Value
from rankveil.report.decision import decision_of
from rankveil.schema import Schema
from rankveil.verdict.headline import is_generalised
from rankveil.verdict.item import HEADLINE, Item, at_most, of_versions
from rankveil.verdict.utility import worst_utility

SEED = "a" * 32
CPS1988 = Path(__file__).parents[3] / "shared/data/peers/rdatasets/CPS1988.csv"
QUASI = Schema(roles={"C": "quasi-identifier"})


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    a = rng.normal(size=60).round(3)
    return pd.DataFrame({"A": a, "B": (a + rng.normal(size=60)).round(3), "C": [*"abc"] * 20})


def by_id(made: Any) -> dict[str, Item]:
    return {item.id: item for item in made.headline}


def test_sixty_people_against_themselves_are_red(people: pd.DataFrame) -> None:
    made = rv.audit(people, people, measures=["people_found"])
    found = by_id(made)
    assert made.status == "red"
    assert [found["people_found"].value, found["people_found"].limit, found["people_found"].status] == [
        1.0,
        0.09,
        "red",
    ]
    assert (
        "Everybody can be re-identified (100 % of 60 people, 95 % interval 94 to 100 %)"
        in found["people_found"].sentence
    )
    assert (found["certain"].value, found["certain"].limit, found["certain"].status) == (60, 0, "red")


def test_the_ids_are_in_their_order(people: pd.DataFrame) -> None:
    made = rv.audit(people, people, measures=["cm2"], schema=QUASI)
    assert [item.id for item in made.headline] == [*HEADLINE]
    assert [item["id"] for item in made.to_dict()["headline"]] == [*HEADLINE]
    without = rv.audit(people, people, measures=["cm2"], columns=["A", "B"])
    assert "k_anonymity" not in by_id(without) or by_id(without)["k_anonymity"].value is not None


def test_what_was_not_asked_for_is_amber_and_says_so(people: pd.DataFrame) -> None:
    made = rv.audit(people, people, measures=["cm2"])
    found = by_id(made)
    assert made.status == "amber"
    for name, limit in (("people_found", 0.09), ("certain", 0)):
        assert (found[name].value, found[name].limit, found[name].status) == (None, limit, "amber")
        assert "not among the measures asked for" in found[name].sentence
    assert [each.command for each in made.advice] == ["rankveil audit original.csv release.csv"]


def test_people_who_are_all_alike_are_not_found() -> None:
    alike = pd.DataFrame({"A": [1.0] * 50, "B": [2.0] * 50})
    found = by_id(rv.audit(alike, alike, measures=["people_found"]))
    assert found["people_found"].value == pytest.approx(1 / 50)
    assert (found["certain"].value, found["certain"].status) == (0, "green")


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_tiny_table_is_decided_about(people: pd.DataFrame, rows: int) -> None:
    made = rv.audit(people[:rows], people[:rows])
    assert made.status == "red"
    assert by_id(made)["certain"].value == rows


def test_a_column_without_values_changes_nothing(people: pd.DataFrame) -> None:
    empty = people.assign(D=np.nan)
    assert by_id(rv.audit(empty, empty, measures=["people_found"]))["people_found"].value == 1.0


def test_made_up_records_are_never_green(people: pd.DataFrame) -> None:
    rng = np.random.default_rng(2)
    other = pd.DataFrame({"A": rng.normal(size=90), "B": rng.normal(size=90)})
    made = rv.audit(people[["A", "B"]], other, mapping=False, measures=["people_found"])
    assert made.status != "green"
    assert "Which record is whose is not known" in by_id(made)["people_found"].sentence


def test_a_scenario_stands_beside_the_worst_case(people: pd.DataFrame) -> None:
    made = rv.audit(people, people, measures=["um"], knows=["C"], people=0.5)
    item = by_id(made)["people_found"].to_dict()
    assert (item["value"], item["status"]) == (1.0, "red")
    assert item["scenario"]["value"] == pytest.approx(1 / 20)
    assert item["scenario"]["people"] == 30
    assert "somebody who knows C of about 50 % of the people" in item["sentence"]


def test_at_most() -> None:
    assert [at_most(value, 0.09) for value in (0.0, 0.072, 0.0721, 0.09, 0.0901)] == [
        *("green", "green", "amber", "amber", "red")
    ]


# -- classes


def test_classes_of_columns_that_are_released_as_they_are_have_a_limit_of_three() -> None:
    rare = pd.DataFrame({"A": np.arange(9.0), "C": [*"aaaabbbcc"]})
    item = by_id(rv.audit(rare, rare, measures=["um"], schema=QUASI))["k_anonymity"]
    assert (item.value, item.limit, item.status) == (2, 3, "red")
    item = by_id(rv.audit(rare[:7], rare[:7], measures=["um"], schema=QUASI))["k_anonymity"]
    assert (item.value, item.limit, item.status) == (3, 3, "green")


def test_perturbed_columns_make_no_classes(people: pd.DataFrame) -> None:
    schema = Schema(roles={"A": "quasi-identifier"})
    made = rv.mask(people[["A", "B"]], "additive_noise", alpha=0.5, seed=SEED)
    item = by_id(rv.audit(people[["A", "B"]], made, measures=["um"], schema=schema))["k_anonymity"]
    assert (item.limit, item.status) == (None, "green")
    assert "A was perturbed, and perturbed values make no classes" in item.sentence


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([1, 2, 3, 3, 4, 4], True),  # as they are
        ([0, 0, 1, 1, 1, 1], True),  # in bands
        ([1, np.nan, 3, 3, 4, np.nan], True),  # some suppressed
        ([1, 2, 3, 4, 4, 3], False),  # two who were alike are no longer
        ([2, 1, 3, 3, 4, 4], False),  # two changed places
    ],
)
def test_is_generalised(after: list[float], expected: bool) -> None:
    assert is_generalised(np.array([1.0, 2, 3, 3, 4, 4]), np.array(after, dtype=float)) is expected


# -- promises


def test_a_promised_k_is_checked_again(people: pd.DataFrame) -> None:
    numbers = people[["A", "B"]]
    made = rv.mask(numbers, "mdav", k=5, seed=SEED)
    schema = Schema(roles={"A": "quasi-identifier", "B": "quasi-identifier"})
    found = by_id(rv.audit(numbers, made, measures=["um"], schema=schema))
    assert (found["guarantees"].value, found["guarantees"].limit, found["guarantees"].status) == (0, 0, "green")
    assert (found["k_anonymity"].value, found["k_anonymity"].limit, found["k_anonymity"].status) == (5, 5, "green")

    broken = made.data.copy()
    broken.loc[0, "A"] += 1.0
    content = {name: each for name, each in made.manifest.content.items() if name != "digest"}
    found = by_id(rv.audit(numbers, broken, measures=["um"], manifest=content, schema=schema))
    assert (found["guarantees"].value, found["guarantees"].status) == (1, "red")
    assert "The promised k = 5 for A, B is refuted: the smallest class has 1" in found["guarantees"].sentence
    assert found["k_anonymity"].status == "red"


def test_a_promised_distance_is_checked_with_the_mapping(people: pd.DataFrame) -> None:
    numbers = people[["A", "B"]]
    made = rv.mask(numbers, "distance_swap", d=7, seed=SEED)
    assert by_id(rv.audit(numbers, made, measures=["um"]))["guarantees"].status == "green"
    content = {name: each for name, each in made.manifest.content.items() if name != "digest"}
    item = by_id(rv.audit(numbers, numbers, measures=["um"], manifest=content | {"mapping": "kept"}))["guarantees"]
    assert (item.value, item.status) == (2, "red")
    assert "is refuted: a value moved by 0 ranks" in item.sentence
    item = by_id(rv.audit(numbers, made.data, measures=["um"], manifest=content, mapping=False))["guarantees"]
    assert (item.value, item.status) == (0, "amber")
    assert "needs the mapping" in item.sentence


def test_differential_privacy_is_nothing_that_is_measured(people: pd.DataFrame) -> None:
    made = rv.mask(people[["A"]], "laplace_dp", epsilon=1.0, lower=-5.0, upper=5.0, seed=SEED)
    item = by_id(rv.audit(people[["A"]], made, measures=["um"]))["guarantees"]
    assert item.status == "amber"
    assert "nothing measured can confirm or refute it" in item.sentence


def test_nothing_promised_is_said(people: pd.DataFrame) -> None:
    item = by_id(rv.audit(people, people, measures=["um"]))["guarantees"]
    assert item.sentence == "None promised: there is no manifest."


def test_promises_of_another_table_are_not_said_of_this_one(people: pd.DataFrame) -> None:
    numbers = people[["A", "B"]]
    made = rv.mask(numbers, "mdav", k=5, seed=SEED)
    other = rv.mask(numbers, "mdav", k=6, seed=SEED)
    item = by_id(rv.audit(numbers, other.data, measures=["um"], manifest=made.manifest, secret=other.secret))[
        "guarantees"
    ]
    assert (item.value, item.status) == (None, "amber")


# -- several versions


def test_versions_in_one_hand_are_found_together(people: pd.DataFrame) -> None:
    numbers = people[["A", "B"]]
    made = [rv.mask(numbers, "additive_noise", alpha=0.3, seed=sign * 32) for sign in "ab"]
    both = rv.audit(numbers, made, measures=["people_found"])
    alone = [rv.audit(numbers, each, measures=["people_found"])["people_found"] for each in made]
    found = by_id(both)["people_found"].value
    assert found is not None
    assert found >= max(alone) - 0.05
    assert "the headline counts whom somebody finds who holds all versions together" in both.notes


def test_of_versions_the_worst_counts() -> None:
    good = Item("certain", 0, 0, "green", "Nobody.")
    bad = replace(good, value=3, status="red", sentence="Three.")
    assert of_versions([[good], [bad]]) == [replace(bad, sentence="Version 2 of 2, the worst: Three.")]
    assert of_versions([[good], [good]]) == [good]


def test_the_worst_utility_is_not_green_while_others_are_not_measured(people: pd.DataFrame) -> None:
    item = by_id(rv.audit(people, people, measures=["mean_shift"]))["worst_utility"]
    assert (item.value, item.limit, item.status) == (0, 0.1, "amber")
    assert "Not measured: correlation_change, table_cells." in item.sentence
    item = by_id(rv.audit(people, people, measures=["mean_shift", "correlation_change", "table_cells"]))[
        "worst_utility"
    ]
    assert item.status == "green"


def test_the_worst_utility_is_the_worst_beside_its_limit(people: pd.DataFrame) -> None:
    moved = people.assign(A=people["A"] + 0.2 * people["A"].std(ddof=0))
    names = ["mean_shift", "correlation_change", "table_cells"]
    item = by_id(rv.audit(people, moved, measures=names))["worst_utility"]
    assert (item.more["measure"], item.status) == ("mean_shift", "red")
    assert item.value == pytest.approx(0.2)
    assert item.sentence.startswith("The mean of A moved by 0.2 standard deviations")


@pytest.mark.skipif(not CPS1988.is_file(), reason="CPS1988 is not there")
def test_a_survey_against_itself_is_red() -> None:
    made = rv.audit(CPS1988, CPS1988, measures=["people_found"])
    found = by_id(made)
    assert made.status == "red"
    assert found["people_found"].value == pytest.approx(0.9244, abs=5e-5)
    assert found["certain"].value == 24355
    assert "92.4 % of 28,155 people" in found["people_found"].sentence
    assert str(CPS1988) in made.advice[0].command


def test_of_few_records_half_of_what_another_sample_keeps_is_enough() -> None:
    """At 5 % a table of few records never keeps a tenth of its cells, whatever is done to it."""
    few = Value(0.04, {"expected": 0.06})
    many = Value(0.04, {"expected": 0.6})
    others = {"correlation_change": Value(0.0, {}), "mean_shift": Value(0.0, {})}
    assert worst_utility({**others, "table_cells": few}, {}).status == "green"
    item = worst_utility({**others, "table_cells": many}, {})
    assert (item.status, item.limit) == ("red", 0.9)
    assert worst_utility({**others, "table_cells": Value(0.02, {"expected": 0.06})}, {}).status == "red"


def test_what_is_lost_for_users_is_no_risk_for_people() -> None:
    lost = {"id": "worst_utility", "status": "red"}
    held, near = {"id": "people_found", "status": "green"}, {"id": "people_found", "status": "amber"}
    assert "protect people are not broken" in decision_of({"status": "red", "headline": [held, lost]})
    assert "near its limit" in decision_of({"status": "red", "headline": [near, lost]})
    assert "Do not publish" in decision_of({"status": "red", "headline": [{**held, "status": "red"}, lost]})
