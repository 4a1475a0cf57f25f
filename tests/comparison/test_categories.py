"""Methods for categories as contestants: which columns they mask, how strong they can be, and what is said of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rankveil as rv
from rankveil import datasets
from rankveil.comparison.study import Study, Task, coded
from rankveil.masking import apply
from rankveil.plans import Plan
from rankveil.seeds import CommonSeed, Seed

ROLES = {
    "PERSON": "identifier",
    "HOUSEHOLD": "group",
    "REGION": "quasi-identifier",
    "SEX": "quasi-identifier",
    "AGE": "quasi-identifier",
    "OCCUPATION": "confidential",
    "INCOME": "confidential",
    "WEIGHT": "weight",
}


@pytest.fixture(scope="module")
def census() -> rv.Table:
    schema = rv.Schema(roles=ROLES, hierarchies=datasets.census_hierarchies())
    return rv.Table(datasets.census(300), schema=schema)


def compared(table: rv.Table, methods: list[str], **asked: Any) -> rv.Comparison:
    asked = {"replicates": 2, "utility": ["um"], "workers": 1, **asked}
    return rv.compare(table, methods, **asked)


def test_methods_of_different_kinds_are_compared_and_what_each_leaves_is_said(census: rv.Table) -> None:
    names = ["REGION", "SEX", "AGE", "INCOME"]
    made = compared(census, ["pram", "rank_swap", "randomized_response"], columns=names, at={"risk": 0.5})
    assert [one.reached for one in made.methods] == [True] * 3
    for note in ("pram leaves as they are: AGE, INCOME", "rank_swap leaves as they are: SEX"):
        assert note in made.notes
    columns = {one.id: one.place.plan.steps[0].columns for one in made.methods if one.place}
    assert columns == {
        "pram": ("REGION", "SEX"),
        "rank_swap": ("REGION", "AGE", "INCOME"),
        "randomized_response": ("REGION", "SEX"),
    }
    for one in made.methods:
        assert one.place is not None
        rv.mask(census, one.place.plan, seed=CommonSeed.of(1))


def test_a_level_is_no_higher_than_the_hierarchies(census: rv.Table) -> None:
    made = compared(census, ["recode", "top_bottom_code"], sweep=True, points=9, risk="rank_linkage")
    recode, coding = made.methods
    heights = [tree.height for tree in (census.schema.hierarchies or {}).values()]
    assert [point.parameters["level"] for point in recode.points] == list(range(min(heights) + 1))
    assert recode.points[0].values["rank_linkage"].mean == 0
    assert len(coding.points) >= 5
    assert {point.parameters["top_percent"] for point in coding.points} >= {0.0, 50.0}


def test_a_parameter_that_stands_instead_of_the_strength_leaves_none(census: rv.Table) -> None:
    given = {
        "recode": {"width": 50_000},
        "randomized_response": {"epsilon": 1.0},
        "top_bottom_code": {"top": 40.0},
        "pram": {"matrix": "female>male:0.5"},
    }
    for name, fixed in given.items():
        columns = ["INCOME", "AGE"] if name in ("recode", "top_bottom_code") else ["SEX"]
        made = compared(census, [name], sweep=True, parameters={name: fixed}, columns=columns)
        (one,) = made.methods
        assert [point.parameters for point in one.points] == [fixed]


def test_each_attribute_is_tuned_where_the_method_masks_it(census: rv.Table) -> None:
    made = compared(census, ["pram", "recode"], at={"level": 0.1})
    pram, recode = made.methods
    assert set(pram.attributes or {}) == {"REGION", "SEX", "OCCUPATION", "EDUCATION"}
    assert set(recode.attributes or {}) == {"REGION", "OCCUPATION"}


def test_a_method_that_can_mask_none_of_the_columns_says_why(census: rv.Table) -> None:
    made = compared(census, ["pram", "recode"], columns=["AGE", "INCOME"], at={"risk": 0.5})
    pram, recode = made.methods
    assert not pram.reached
    assert pram.note == "column AGE: pram takes ordinal and nominal columns, and this one is numeric"
    assert recode.note is not None
    assert recode.note.startswith("column AGE: level is for categories")


@pytest.mark.parametrize(
    "plan",
    [
        Plan.of("recode", **{"width.AGE": 20, "cuts.BIRTH": "1960-01-01", "cuts.EDUCATION": "lower secondary"}),
        Plan.of("recode", **{"level.REGION": 2, "rare.SEX": 10, "rare.OCCUPATION": 8}),
        Plan.of("pram", p=0.4),
        Plan.of("randomized_response", columns=["SEX"], domain=("female", "male", "other"), p=0.5),
        Plan.of("top_bottom_code", top_percent=10, bottom_percent=5),
    ],
    ids=["bands", "groups", "pram", "domain", "coded"],
)
def test_a_study_sees_the_release_as_an_audit_does(census: rv.Table, plan: Plan) -> None:
    study = Study(census, census.usable(), seed=Seed.of(1))
    release = rv.mask(census, plan, seed=CommonSeed.of(1))
    names = release.data.column_names
    audit = rv.audit(census, rv.Table(release.data, schema=census.schema.only(names)), secret=release.secret)
    measures = ("rank_linkage", "permutation_level", "um", "k_anonymity", "l_diversity", "total_variation")
    result = study.measure(Task(plan, 0, measures))
    assert result.error is None
    assert result.without == {}
    for name in measures:
        assert result.values[name] == pytest.approx(audit[name]), name
    applied = apply(census, plan, seed=Seed.of(1))
    for name in applied.values:
        values, _ = coded(census, applied, name)
        assert values is not None
        assert np.array_equal(np.isnan(values), np.isnan(census.values(name)))
