"""What a manifest states after any chain of two steps is true of the release: distances, k-anonymity and moments."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankveil as rv
from rankveil import catalogue
from rankveil.catalogue import Method

NUMBERS = ["A", "B", "C"]
REQUIRED: dict[str, dict[str, Any]] = {
    "distance_swap": {"d": 6},
    "laplace_dp": {"epsilon": 3.0, "lower": -1000, "upper": 1000, "fast": True},
    "dp_microaggregation": {"k": 4, "epsilon": 30.0, "lower": -1000, "upper": 1000, "fast": True},
    "randomized_response": {"domain": {"T": ["x", "y", "z"]}, "columns": ["T"]},
    "recode": {"rare": 20.0, "columns": ["T"]},
    "sample": {"share": 0.6},
    "suppress": {"k": 3, "columns": ["O", "T"]},
    "mdav": {"k": 3},
    "top_bottom_code": {"top_percent": 10, "columns": ["A", "B"]},
    "drop": {"columns": ["A"]},
    "pseudonymise": {"columns": ["T"]},
}
"""Parameters without a default, or under which something is guaranteed."""
MORE: dict[str, list[dict[str, Any]]] = {
    "mdav": [{"k": 4, "block": 2, "columns": ["A", "B", "C", "O"]}, {"k": 3, "columns": ["A", "T"]}],
    "suppress": [{"k": 2, "columns": ["A", "O"]}, {"k": 3, "missing_is": "any", "columns": ["O", "T"]}],
    "drop": [{"columns": ["O"]}, {"columns": ["C", "O"]}],
    "sample": [{"size": 12}],
    "ipso": [{"given": ["A"]}],
    "missing_swap": [{"columns": ["O"]}],
}


def people(seed: int) -> pd.DataFrame:
    """Numbers without ties, levels, categories, and missing cells in a column of its own."""
    rng = np.random.default_rng(seed)
    n = 48
    base = rng.normal(size=n)
    table = pd.DataFrame({"A": np.round(50 + 20 * base + rng.normal(size=n), 6), "B": np.exp(base / 2) * 30})
    table["C"] = np.round(rng.uniform(-500, 500, n), 3)
    table["O"] = pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True)
    table["T"] = rng.choice(["x", "y", "z"], n, p=[0.6, 0.3, 0.1])
    table["G"] = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    return table


def exact(method: Method) -> bool:
    """Whether it tells users that something is exactly the original's."""
    return "exact" in method.tells


def given(method: Method) -> list[dict[str, Any]]:
    return [REQUIRED.get(method.id, {}), *MORE.get(method.id, [])]


def chains() -> Iterator[tuple[str, str]]:
    """All pairs of methods of which one states something."""
    entries = catalogue.methods().values()
    states = {entry.id for entry in entries if entry.guarantee is not None or exact(entry)}
    for first, second in itertools.product(entries, entries):
        if {first.id, second.id} & states:
            yield first.id, second.id


def step(method: str, parameters: dict[str, Any], *, on: list[str] | None = None) -> rv.Plan:
    """The step on all columns that it is for, or on those named where it is for numbers."""
    entry = catalogue.get_method(method)
    rest = {name: value for name, value in parameters.items() if name != "columns"}
    columns = parameters.get("columns")
    if columns is None and "numeric" in entry.kinds and entry.works_on in ("column", "columns"):
        columns = [name for name in on or NUMBERS if name not in rest.get("given", ())]
    return rv.Plan.of(method, columns=columns, **rest)


def planned(first: str, second: str) -> Iterator[rv.Plan]:
    """All their parameters; and either step on one column only, or with one that has missing cells."""
    entries = catalogue.get_method(first), catalogue.get_method(second)
    before, after = map(given, entries)
    if all(entry.guarantee is None for entry in entries):
        yield rv.Plan((*step(first, before[0]).steps, *step(second, after[0]).steps))
        return
    for one, two in itertools.product(before, after):
        yield rv.Plan((*step(first, one).steps, *step(second, two).steps))
    for one, two in ((["B"], None), (None, ["B"]), ([*NUMBERS, "G"], None)):
        yield rv.Plan((*step(first, before[0], on=one).steps, *step(second, after[0], on=two).steps))


def distance(said: re.Match[str], original: pd.DataFrame, release: rv.Release) -> bool:
    name, least = said["name"], int(said["d"])
    found = rv.certify(original[[name]], release.data[[name]], secret=release.secret)
    return bool(found.largest_d[0] >= least)


def anonymous(said: re.Match[str], original: pd.DataFrame, release: rv.Release) -> bool:
    values = release.data[said["names"].split(", ")].astype(object)
    values = values.where(values.notna(), None)
    rows = [tuple(row) for row in values.itertuples(index=False)]
    wild = "agrees with any" in said["more"]

    def alike(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        return all(a == b or (wild and (a is None or b is None)) for a, b in zip(one, other, strict=True))

    return all(sum(alike(one, other) for other in rows) > int(said["others"]) for one in rows)


def private(said: re.Match[str], original: pd.DataFrame, release: rv.Release) -> bool:
    """No draw can be tested alone: what is named is released, and all else of the release is named as not covered."""
    covered = said["names"].split(", ")
    beside = said["beside"].split(", ") if said["beside"] else []
    return sorted([*covered, *beside]) == sorted(release.data.columns)


DISTANCE = r"column (?P<name>\w+): every value is at permutation distance (?P<d>\d+) or more among all values.*"
ANONYMITY = (
    r"every record shares its values of (?P<names>[\w, ]+) with at least (?P<others>\d+) others (?P<more>\(.*\))"
)
PRIVACY = r"columns? (?P<names>[\w, ]+): .*differential privacy.*?(; released beside and not covered: (?P<beside>.*))?"
SENTENCES: dict[str, Callable[..., bool]] = {DISTANCE: distance, ANONYMITY: anonymous, PRIVACY: private}


def close(a: Any, b: Any, *, grid: Any = 0.0) -> bool:
    return bool(np.allclose(a, b, rtol=1e-7, atol=1e-9 + np.max(grid, initial=0.0)))


def moments(told: str, columns: list[str], original: pd.DataFrame, release: rv.Release) -> bool:
    """What a method tells of means, variances and distributions, checked on the columns that it worked on."""
    x, y = (frame[columns].select_dtypes("number") for frame in (original, release.data))
    x = x[y.columns]
    units = {column["name"]: column.get("grid") or 0.0 for column in release.manifest["columns"]}
    unit = np.array([units[name] for name in x.columns])
    spread = np.array([x[name].std(ddof=0) for name in x.columns])
    if "distribution is exactly" in told or "values are exactly" in told:
        same = all(np.array_equal(np.sort(x[name]), np.sort(y[name]), equal_nan=True) for name in x.columns)
        return same and all(original[name].isna().sum() == release.data[name].isna().sum() for name in columns)
    whole = original.notna()[columns].all().all()
    if "means" in told or "mean and variance" in told:
        if not whole and "covariances" in told:
            return True  # the manifest says that missing cells stood at their mean meanwhile
        if not close(x.mean(), y.mean(), grid=unit) and (whole or "mean and variance" in told):
            return False
    if "mean and variance" in told:
        return close(x.var(ddof=0), y.var(ddof=0), grid=unit * (2 * spread + unit))
    if "covariances" in told and "covariances are those between groups" not in told:
        if "variant C" in told and "missing cells stood" in "\n".join(release.manifest["for_users"]):
            return True
        return close(x.cov(), y.cov(), grid=unit * (2 * spread + unit))
    return "means of numbers are exact" in told


def check(original: pd.DataFrame, release: rv.Release, plan: rv.Plan) -> None:
    """All that its manifest states."""
    for sentence in release.manifest["guarantees"]:
        known = [(re.fullmatch(words, sentence), true) for words, true in SENTENCES.items()]
        found = [(said, true) for said, true in known if said]
        assert found, f"a guarantee that nothing here can check: {sentence}"
        said, true = found[0]
        assert true(said, original, release), f"{plan.to_json()}: {sentence}"
    content = release.manifest.content
    for done, told in zip(content["steps"], content["for_users"], strict=False):
        assert told.startswith(f"{done['method']}: ")
        if "exact" not in told or "said of this step alone" in told:
            continue
        columns = [name for name in done["columns"] if name in release.data.columns]
        assert moments(told, columns, original, release), f"{plan.to_json()}: {told}"
    if content["marginals"] == "kept":
        masked = [column["name"] for column in content["columns"] if column["masked"]]
        assert moments("distribution is exactly", masked, original, release), plan.to_json()


@pytest.mark.parametrize(("first", "second"), list(chains()))
def test_what_a_manifest_states_of_two_steps_is_true(first: str, second: str) -> None:
    original = people(1)
    for plan in planned(first, second):
        schema = rv.Schema(kinds={"T": "nominal"})
        try:
            release = rv.mask(original, plan, seed=1, shuffled=False, schema=schema)
        except (rv.ParameterError, rv.TableError):
            continue
        check(original, release, plan)


def test_what_these_tests_try_is_stated() -> None:
    """Every method that guarantees something says so alone, and every sentence on what is exact can be tried."""
    for method in catalogue.methods().values():
        release = (
            rv.mask(people(1), step(method.id, given(method)[0]), seed=1, shuffled=False) if not method.post else None
        )
        if release is None:
            continue
        assert bool(release.manifest["guarantees"]) == (method.guarantee is not None), method.id
        check(people(1), release, step(method.id, given(method)[0]))


@pytest.mark.parametrize("seed", range(6))
def test_no_distance_is_guaranteed_of_a_sample(seed: int) -> None:
    original = people(seed)
    plan = rv.Plan.of("distance_swap", d=10, columns=NUMBERS)
    alone = rv.mask(original, plan, seed=seed)
    assert len(alone.manifest["guarantees"]) == 3
    assert rv.certify(original[NUMBERS], alone.data[NUMBERS]).largest_d.min() >= 10
    sampled = rv.mask(original, plan.then("sample", share=0.5), seed=seed)
    assert sampled.manifest["guarantees"] == []
    before = rv.mask(original, rv.Plan.of("sample", share=0.5).then(plan.steps[0]), seed=seed)
    assert len(before.manifest["guarantees"]) == 3
    check(original, before, plan)


def test_what_is_private_names_what_is_released_beside_it() -> None:
    plan = rv.Plan.of("laplace_dp", epsilon=3, lower=-1000, upper=1000, fast=True, columns=["A", "B", "C"])
    (said,) = rv.mask(people(1), plan, seed=1).manifest["guarantees"]
    assert said.startswith("columns A, B, C: differential privacy with epsilon = 3 in all,")
    assert said.endswith("; released beside and not covered: O, T, G")
    (said,) = rv.mask(people(1), plan.then("drop", columns=["A", "O", "T", "G"]), seed=1).manifest["guarantees"]
    assert said.startswith("columns B, C: differential privacy with epsilon = 2 in all,")
    assert "beside" not in said


def test_what_is_the_same_within_groups_is_private_for_whole_groups() -> None:
    homes = pd.DataFrame({"HOME": np.repeat(np.arange(10), 2), "RENT": np.repeat(np.arange(10.0), 2)})
    homes["AGE"] = np.arange(20.0)
    schema = rv.Schema(roles={"HOME": "group"})
    plan = rv.Plan.of("laplace_dp", epsilon=3, lower=0, upper=30, fast=True, columns=["RENT", "AGE"])
    (said,) = rv.mask(homes, plan, seed=1, schema=schema).manifest["guarantees"]
    assert said.endswith("so that a record is a whole group: RENT")
    (said,) = rv.mask(homes, plan, seed=1).manifest["guarantees"]
    assert "group" not in said


def test_columns_that_were_dropped_are_in_no_guarantee() -> None:
    def said(**parameters: object) -> list[str]:
        plan = rv.Plan.of("mdav", k=4, columns=["A", "B", "C", "O"], **parameters)
        made: list[str] = rv.mask(people(1), plan.then("drop", columns=["A", "B"]), seed=1).manifest["guarantees"]
        return made

    assert said() == ["every record shares its values of C, O with at least 3 others (k-anonymity)"]
    assert said(block=2) == said()  # one block of the two is left
    assert said(block=3) == said()  # a remainder of one joins the block before it
    assert said(block=1) == []
    swap = rv.Plan.of("distance_swap", d=3, columns=["A", "B"]).then("drop", columns=["A"])
    assert [each.split(":")[0] for each in rv.mask(people(1), swap, seed=1).manifest["guarantees"]] == ["column B"]


def test_values_that_were_left_out_are_no_kept_marginals() -> None:
    release = rv.mask(people(1), rv.Plan.of("sample", share=0.6).then("reverse_map", columns=["A"]), seed=1)
    assert release.manifest["marginals"] == "changed"
    assert not release.manifest.permutes(["A"])
