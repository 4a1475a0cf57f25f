"""At most a limit: the safe side of every measure, methods that are always or never within it, and fresh seeds."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil import catalogue
from rankveil.comparison.contestant import interval_of_shares, mean_share
from rankveil.comparison.target import Asked, default_utilities, risk_of, target_of
from rankveil.errors import ParameterError

FAST: dict[str, Any] = {"utility": ["um", "pil"], "replicates": 2, "workers": 1}
OF_PROTECTOR = [entry.id for entry in catalogue.measures().values() if entry.protects]


@pytest.fixture(scope="module")
def plain(people: rv.Table) -> rv.Table:
    """All whose columns are masked."""
    return rv.Table(people.native.select(NAMES))


@pytest.fixture(scope="module")
def people() -> rv.Table:
    """Quasi-identifiers, something confidential, weights."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=(150, 2)) @ np.array([[1.0, 0.7], [0.0, 0.7]])
    data = {
        "AGE": np.round(45 + 12 * z[:, 0]),
        "HOURS": np.round(38 + 6 * rng.normal(size=150)),
        "INCOME": np.round(np.exp(10 + z[:, 1])),
        "SAVED": np.round(np.exp(8 + z[:, 0])),
        "W": rng.integers(5, 40, 150),
    }
    roles = {"AGE": "quasi-identifier", "HOURS": "quasi-identifier", "INCOME": "confidential", "W": "weight"}
    return rv.Table(pa.table(data), schema=rv.Schema(roles=roles))


NAMES = ["AGE", "HOURS", "INCOME", "SAVED"]


def method(made: rv.Comparison, name: str) -> dict[str, Any]:
    return next(one for one in made.to_dict()["methods"] if one["id"] == name)


@pytest.mark.parametrize("name", OF_PROTECTOR)
def test_every_measure_of_the_protector_declares_the_safe_side(people: rv.Table, name: str) -> None:
    """What changes nothing is nowhere safer than what leaves nothing; where a measure applies to both it is worse."""
    released = {
        "all": people,
        "none": rv.mask(people, "mdav", k=150, columns=NAMES, seed=1).data,
        "quasi": rv.mask(people, "mdav", k=150, columns=NAMES[:2], seed=1).data,
        "drawn": rv.mask(people, "shuffle", columns=NAMES, seed=1).data,
    }
    values = {}
    for what, table in released.items():
        audit = rv.audit(people, table, columns=NAMES, measures=[name])
        if name in audit:
            values[what] = audit[name]
    entry = catalogue.get_measure(name)
    quasi = any(need in ("quasi_y",) for need in entry.needs)
    worse = [what for what in (("quasi",) if quasi else ("none", "drawn")) if what in values]
    assert worse
    if "all" not in values:  # of two tables that are the same it may be infinite
        values["all"] = rv.audit(
            people, rv.mask(people, "additive_noise", alpha=0.05, columns=NAMES, seed=1).data, measures=[name]
        )[name]
    for what in worse:
        assert entry.within(values[what], values["all"]), f"{name}: {what} counts as less safe than unmasked data"
    assert any(values[what] != values["all"] for what in worse)
    asked = Asked({name: values["all"]}, "people_found", (), points=9)
    turned = [asked.turned * values[what] for what in worse]
    if name != "people_found":
        assert max(turned) <= asked.turned * values["all"]


@pytest.mark.parametrize(
    ("at", "within"),
    [
        ({"distance_linkage": 0.05}, lambda value: value <= 0.05),
        ({"rank_linkage": 0.6}, lambda value: value >= 0.6),
        ({"k_anonymity": 5}, lambda value: value >= 5),
        ({"permutation_level": 0.1}, lambda value: value >= 0.1),
    ],
)
def test_the_least_strength_on_the_safe_side_of_any_measure(
    people: rv.Table, at: dict[str, float], within: Any
) -> None:
    made = rv.compare(people, ["mdav"], at=at, columns=NAMES, **FAST)
    (name,) = at
    (one,) = made.methods
    assert one.reached
    assert one.place is not None
    k = one.place.parameters["k"]
    of = {
        each: rv.audit(
            people, rv.mask(people, "mdav", k=each, columns=NAMES, seed=1).data, columns=NAMES, measures=[name]
        )[name]
        for each in (k, k - 1)
        if each > 1
    }
    assert within(of[k])
    assert k == 2 or not within(of[k - 1])
    assert made.pick is not None
    assert made.pick.confirmed["held"] == made.pick.confirmed["seeds"] == 10
    assert made.pick.confirmed["value"] == pytest.approx(of[k])
    assert 0 < made.pick.confirmed["found"] <= 1
    json.dumps(made.to_dict(), allow_nan=False)


def test_a_limit_of_utility_takes_the_greatest_strength(people: rv.Table) -> None:
    made = rv.compare(people, ["mdav", "additive_noise"], at={"pil": 15}, columns=NAMES, **FAST)
    k = method(made, "mdav")["parameters"]["k"]
    loss = {
        each: rv.audit(
            people, rv.mask(people, "mdav", k=each, columns=NAMES, seed=1).data, columns=NAMES, measures=["pil"]
        )["pil"]
        for each in (k, k + 1)
    }
    assert loss[k] <= 15 < loss[k + 1]
    assert made.ranked_by == "people_found"
    ranked = [one.place.values["people_found"].mean for one in made.order if one.place]
    assert ranked == sorted(ranked)


def test_unmasked_data_are_never_recommended() -> None:
    table = rv.Table.of(pa.table({"A": np.tile([1.0, 2.0], 100), "B": np.repeat([1.0, 2.0], 100)}))
    for at in ({"found": 0.09}, {"k_anonymity": 1}, {"risk": 0.0}, {"utility": 1.0}):
        made = rv.compare(table, ["identity", "record_shuffle", "mdav", "rank_swap"], at=at, **FAST)
        for name in ("identity", "record_shuffle"):
            one = method(made, name)
            assert not one["satisfied"], at
            assert one["rank"] is None
        assert made.best is None or made.best.id in ("mdav", "rank_swap")
        if made.best is not None and made.best.place is not None:
            masked = rv.mask(table, made.plan, seed=1)
            assert any(masked.manifest["columns"][j].get("changed") != 0 for j in range(2))
            assert made.best.place.parameters.get("k", 2) >= 2
    (alone,) = rv.compare(table, ["identity"], at={"found": 0.5}, **FAST).methods
    assert alone.note == "it changes nothing, and unmasked data are never recommended"


def test_a_method_that_is_safer_at_every_strength_stays_with_its_gentlest(plain: rv.Table) -> None:
    made = rv.compare(plain, ["mdav", "shuffle"], at={"found": 0.6}, **FAST)
    mdav, shuffle = method(made, "mdav"), method(made, "shuffle")
    assert (mdav["parameters"]["k"], mdav["satisfied"], mdav["reached"]) == (2, True, True)
    assert (shuffle["satisfied"], shuffle["rank"] is None) == (True, False)
    gentle = rv.compare(plain, ["microhybrid"], at={"found": 0.99}, **FAST)
    (one,) = gentle.to_dict()["methods"]
    assert one["parameters"]["k"] == 2
    assert one["note"] == "safer than asked at every strength: this is its gentlest setting"


def test_a_limit_that_none_reaches_says_how_near_each_came(plain: rv.Table) -> None:
    made = rv.compare(plain, ["mdav", "identity"], at={"found": 0.005}, **FAST)
    content = made.to_dict()
    assert not made.reached
    assert (content["pick"], made.best) == (None, None)
    assert content["recommendation"].startswith("No method reaches found of at most 0.005. The nearest of each: mdav")
    assert method(made, "mdav")["attained"] == pytest.approx(1 / 150)
    assert "0.006667 is the nearest" in method(made, "mdav")["note"]
    with pytest.raises(ParameterError, match="no method reached the target"):
        _ = made.plan


def test_fresh_seeds_confirm_what_is_recommended_and_strengthen_what_does_not_hold() -> None:
    """With one masking of 60 records in a search its strength is mostly a lucky one."""
    rng = np.random.default_rng(2)
    table = rv.Table.of(pa.table({name: rng.normal(size=60) for name in "ABC"}))
    for seed in range(2):
        made = rv.compare(table, ["additive_noise"], at={"found": 0.09}, seed=seed, **{**FAST, "replicates": 1})
        assert made.pick is not None
        given = made.pick.confirmed
        assert (given["seeds"], given["held"], given["certain"]) == (10, 10, 0)
        assert given["interval"][0] <= given["found"] <= given["interval"][1] <= 0.09
        found = [rv.attack(table, rv.mask(table, made.plan, seed=bytes([k]) * 16), draws=10).found for k in range(1, 6)]
        assert np.mean(found) < 0.09
    at, raised = {"permutation_level": 0.2}, 0
    for seed in range(3):
        made = rv.compare(table, ["additive_noise"], at=at, seed=seed, **{**FAST, "replicates": 1})
        (one,) = made.methods
        assert made.pick is not None
        given = made.pick.confirmed
        assert (given["seeds"], given["held"]) == (10, 10)
        assert given["value"] > given["value_interval"][0] >= 0.2
        raised += "did not hold on fresh seeds, so it was strengthened" in (one.note or "")
    assert raised >= 2


def test_the_interval_of_shares() -> None:
    same = [{"share": 0.1, "of": 100}] * 4
    assert interval_of_shares(same, random=False) == (0.1, 0.1)
    low, high = interval_of_shares(same, random=True)
    assert 0.07 < low < 0.1 < high < 0.14
    apart = [{"share": 0.0, "of": 100}, {"share": 0.2, "of": 100}]
    wide = interval_of_shares(apart, random=True)
    assert wide[1] - wide[0] > 2 * (high - low)
    assert mean_share([{"share": 0.5, "of": 10}, {"share": 0.0, "of": 30}]) == 0.125


def test_defaults() -> None:
    assert risk_of({"found": 0.09}, None) == risk_of({}, None) == risk_of({"utility": 1}, None) == "people_found"
    assert risk_of({"risk": 0.45}, None) == "rank_linkage"
    assert risk_of({"risk": 0.45}, "cm2") == "cm2"
    assert target_of("found", sweep=False) == {"found": 0.09}
    assert "um" not in default_utilities()
    for name in default_utilities():
        assert not catalogue.get_measure(name).protects
    with pytest.raises(ParameterError, match="k_anonymity lies between 1 and inf"):
        target_of({"k_anonymity": 0.5}, sweep=False)
    with pytest.raises(ParameterError, match=r"needs a value, as in --at distance_linkage=0\.05"):
        target_of("distance_linkage", sweep=False)


def test_the_whole_release_is_confirmed_not_the_first_step_alone() -> None:
    """Categories that a method does not take are masked besides; fresh seeds attack what would be released."""
    people = rv.datasets.demo(150).select(["SEX", "REGION", "AGE", "INCOME"])
    made = rv.compare(
        people, ["copula_swap"], at={"found": 0.2}, utility=["correlation_change"], replicates=2, workers=1
    )
    assert made.pick is not None
    place = made.pick.method.place
    assert place is not None
    assert [step.method for step in place.plan.steps] == ["copula_swap", "pram"]
    assert made.pick.method.passed_through == ()
    release = rv.mask(people, place.plan)
    assert rv.attack(people, release).found == pytest.approx(made.pick.confirmed["found"], abs=0.1)
