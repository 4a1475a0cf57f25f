"""Methods that mask none, or only some, of the columns that a comparison looks at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.report.comparisons import compare_grids, compare_page
from rankveil.seeds import CommonSeed

FAST: dict[str, Any] = {"replicates": 2, "workers": 1}


@pytest.fixture(scope="module")
def mixed() -> rv.Table:
    """Two columns of numbers and two of labels."""
    rng = np.random.default_rng(3)
    data = {
        "AGE": rng.integers(18, 90, 120).astype(float),
        "INCOME": rng.lognormal(10, 1, 120),
        "REGION": rng.choice(["north", "south", "west"], 120),
        "TRADE": rng.choice(["smith", "baker", "cook", "clerk"], 120),
    }
    return rv.Table(pa.table(data), schema=rv.Schema(kinds={"REGION": "nominal", "TRADE": "nominal"}))


def method(made: rv.Comparison, name: str) -> dict[str, Any]:
    return next(one for one in made.to_dict()["methods"] if one["id"] == name)


@pytest.mark.parametrize(
    "asked", [{"at": {"level": 0.2}}, {"at": {"risk": 0.5}}, {"at": {"found": 0.3}}, {"sweep": True}]
)
def test_a_method_that_takes_no_column_is_not_applicable(mixed: rv.Table, asked: dict[str, Any]) -> None:
    names = ["AGE", "INCOME"]
    made = rv.compare(mixed, ["pram", "rank_swap"], columns=names, utility=["um"], **asked, **FAST)
    pram = method(made, "pram")
    assert (pram["applicable"], pram["reached"], pram["rank"], pram["evaluations"]) == (False, False, None, 0)
    assert pram["note"] == "column AGE: pram takes ordinal and nominal columns, and this one is numeric"
    assert method(made, "rank_swap")["applicable"]


@pytest.mark.parametrize("asked", [{"at": {"level": 0.2}}, {"at": {"risk": 0.5}}, {"sweep": True}])
def test_a_method_that_the_deciding_utility_does_not_see_is_not_applicable(
    mixed: rv.Table, asked: dict[str, Any]
) -> None:
    names = ["AGE", "INCOME", "REGION"]
    made = rv.compare(mixed, ["pram", "rank_swap"], columns=names, utility=["emd", "um"], **asked, **FAST)
    pram = method(made, "pram")
    assert not pram["applicable"]
    assert pram["note"] == "emd looks at AGE, INCOME, which pram leaves as they are"
    assert "not applicable" in str(compare_grids(made.to_dict())) or asked == {"sweep": True}


def test_a_measure_of_quasi_identifiers_looks_at_those(mixed: rv.Table) -> None:
    schema = rv.Schema(kinds=mixed.schema.kinds, roles={"REGION": "quasi-identifier", "TRADE": "quasi-identifier"})
    table = rv.Table(mixed.native, schema=schema)
    made = rv.compare(table, ["rank_swap", "pram"], sweep=True, points=3, risk="k_anonymity", utility=["um"], **FAST)
    assert method(made, "rank_swap")["note"] == "k_anonymity looks at REGION, TRADE, which rank_swap leaves as they are"
    assert method(made, "pram")["applicable"]


def test_what_a_method_leaves_is_told_wherever_it_is_shown(mixed: rv.Table) -> None:
    made = rv.compare(mixed, ["pram", "mdav"], columns=list(mixed.names), at={"risk": 0.3}, utility=["um"], **FAST)
    content = made.to_dict()
    assert method(made, "pram")["passed_through"] == ["AGE", "INCOME"]
    assert method(made, "mdav")["passed_through"] == []
    ((_, headings, rows),) = compare_grids(content)
    assert headings[-1] == "leaves as they are"
    assert {row[1]: row[-1] for row in rows} == {"pram": "AGE, INCOME", "mdav": "-"}
    assert "leaves as they are" in compare_page(content)
    alone = rv.compare(mixed, ["pram"], columns=list(mixed.names), at={"risk": 0.3}, utility=["um"], **FAST)
    assert "It leaves as they are: AGE, INCOME." in alone.recommendation()
    assert "No method applies" in rv.compare(mixed, ["pram"], columns=["AGE"], at={"risk": 1}, **FAST).recommendation()


def test_an_equal_level_is_one_of_the_columns_that_a_method_masks(mixed: rv.Table) -> None:
    made = rv.compare(mixed, ["pram"], columns=list(mixed.names), at={"level": 0.2}, utility=["um"], **FAST)
    pram = method(made, "pram")
    levels = [given["level"] for given in pram["attributes"].values()]
    assert set(pram["attributes"]) == {"REGION", "TRADE"}
    assert pram["attained"] == pytest.approx(np.mean(levels))
    assert pram["attained"] == pytest.approx(0.2, abs=0.02)
    # one strength for all attributes: the mean level of those that it masks
    names = ["AGE", "INCOME", "REGION"]
    made = rv.compare(mixed, ["correlated_noise"], columns=names, at={"level": 0.2}, utility=["um"], **FAST)
    noise = next(one for one in made.methods if one.id == "correlated_noise")
    assert noise.passed_through == ("REGION", "TRADE")  # that one is not compared, and released as it is
    assert noise.place is not None
    maskings = [rv.mask(mixed, noise.place.plan, seed=CommonSeed.of(0), replicate=r).data for r in range(2)]
    found = [rv.audit(mixed, each, columns=["AGE", "INCOME"])["permutation_level"] for each in maskings]
    assert noise.attained == pytest.approx(np.mean(found))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"risk": "um"}, "risk must be a measure of risk or confidentiality, and um is one of utility"),
        (
            {"utility": ["pil", "cm2"]},
            "utility must be a measure of utility or loss, and cm2 is one of confidentiality",
        ),
        (
            {"utility": ["rank_linkage"]},
            "utility must be a measure of utility or loss, and rank_linkage is one of risk",
        ),
    ],
)
def test_measures_in_each_others_place_are_refused(mixed: rv.Table, asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(rv.ParameterError, match=sentence):
        rv.compare(mixed, ["mdav"], at={"risk": 0.3}, **asked, **FAST)


def test_an_interval_does_not_leave_the_bounds_of_its_measure_where_it_is_shown(mixed: rv.Table) -> None:
    names = ["AGE", "INCOME"]
    asked: dict[str, Any] = {"columns": names, "risk": "distance_linkage", "utility": ["um"]}
    made = rv.compare(mixed, ["rank_swap"], at={"risk": 0.03}, **asked, **FAST)
    one = method(made, "rank_swap")
    cut = 0
    for value in (one["risk"], one["utility"]["um"]):
        low, high = value["interval"]
        assert 0 <= low <= value["mean"] <= high <= 1
        cut += value["mean"] - low != pytest.approx(high - value["mean"])
    assert cut  # the bounds do cut an interval here, and what is shown does not make it symmetric again
    ((_, headings, rows),) = compare_grids(made.to_dict())
    low, high = one["utility"]["um"]["interval"]
    shown = rows[0][headings.index("um")]
    assert (" to " in shown) == (
        high - one["utility"]["um"]["mean"] != pytest.approx(one["utility"]["um"]["mean"] - low)
    )
