"""Randomised response on five records, the privacy that it grants and no less, its domain, and its correction."""

from __future__ import annotations

import json
import math
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rankveil as rv
from rankveil.catalogue import get_method
from rankveil.categories import Categories, nominal, ordinal
from rankveil.cli import main
from rankveil.plans import Plan
from rankveil.seeds import CommonSeed, Seed

FALSE_ALARM = 1e-6

randomized_response = get_method("randomized_response")
parts = sys.modules["rankveil.methods.randomized_response"]
ANSWERS = nominal(["no", "yes", "perhaps"], np.array([3.0, 1.0, 1.0]))  # no, perhaps, yes
X = np.array([0.0, 0.0, 2.0, 0.0, 1.0])
LEVELS = ("low", "middle", "high")


def masked(x: Any = X, *, seed: int = 1, categories: Categories = ANSWERS, **parameters: Any) -> Any:
    return randomized_response(x, categories=categories, rng=Seed.of(seed).stream("a"), **parameters)


@pytest.mark.parametrize("seed", range(6))
def test_five_records_by_hand(seed: int) -> None:
    stream = Seed.of(seed).stream("a")
    truthful, any_of_three = stream.random(5), stream.random(5)
    by_hand = [own if truthful[i] < 0.4 else float(int(3 * any_of_three[i])) for i, own in enumerate(X)]
    made = masked(seed=seed, p=0.4)
    assert made.values.tolist() == by_hand
    assert made.levels is None
    assert made.counts == {"categories": 3}


def test_a_domain_by_hand() -> None:
    stream = Seed.of(2).stream("a")
    truthful, any_of_four = stream.random(5), stream.random(5)
    domain = ("yes", "no", "perhaps", "never")  # the data have no never
    true = [1.0, 1.0, 0.0, 1.0, 2.0]  # no, no, yes, no, perhaps among those
    by_hand = [true[i] if truthful[i] < 0.4 else float(int(4 * any_of_four[i])) for i in range(5)]
    made = masked(seed=2, p=0.4, domain=domain)
    assert made.values.tolist() == by_hand
    assert made.levels == domain
    assert made.counts == {"categories": 4}


def test_always_and_never_the_truth() -> None:
    x = np.tile(X, 2000)
    assert np.array_equal(masked(x, p=1).values, x)
    blind = masked(x, p=0).values
    for code in (0.0, 1.0, 2.0):  # as frequent whatever the truth was
        for true in (0.0, 2.0):
            seen = blind[x == true] == code
            assert stats.binomtest(int(seen.sum()), seen.size, 1 / 3).pvalue > FALSE_ALARM / 6


@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.5), (3, 1.0), (5, 3.0)])
def test_answers_have_the_ratio_of_epsilon(k: int, epsilon: float) -> None:
    n = 40_000
    domain = tuple("abcde"[:k])
    x = np.zeros(n)
    made = masked(x, categories=nominal(list(domain), np.eye(k)[0] * n), epsilon=epsilon, domain=domain).values
    # the truth e^epsilon times as often as each of the others
    other = 1 / (math.exp(epsilon) + k - 1)
    for code in range(k):
        chance = other * (math.exp(epsilon) if code == 0 else 1)
        assert stats.binomtest(int(np.sum(made == code)), n, chance).pvalue > FALSE_ALARM / k


def spent(kept: float, k: int) -> Fraction:
    """e^epsilon of what is drawn: draws are (m + 1/2) / 2^52, of which those below `kept` tell the truth."""
    true = Fraction(min(max(math.ceil(Fraction(kept) * 2**52 - Fraction(1, 2)), 0), 2**52), 2**52)
    least = Fraction(2**52 // k, 2**52)  # what a category of the domain gets at least where the truth is not told
    assert true < 1, "somebody must be able to have another answer"
    return 1 + true / ((1 - true) * least)


@given(epsilon=st.floats(1e-9, 30), k=st.integers(1, 1000))
def test_no_more_than_epsilon_is_spent_and_not_much_less(epsilon: float, k: int) -> None:
    kept = parts.truth(epsilon, k)
    assert kept == pytest.approx(math.expm1(epsilon) / (math.expm1(epsilon) + k), abs=1e-12)
    ratio = spent(kept, k)
    if k > 1:
        assert math.log(ratio) <= epsilon
        # 2^-50 of the draws are given away, which shows where nearly all tell the truth
        assert math.log(ratio) >= epsilon - 1e-9 - 2.0**-48 * math.exp(epsilon)


@pytest.mark.parametrize("epsilon", [40.0, 700.0, 1e6])
def test_an_epsilon_beyond_the_draws_is_still_kept(epsilon: float) -> None:
    for k in (2, 7):
        assert 0 < parts.truth(epsilon, k) < 1
        assert math.log(spent(parts.truth(epsilon, k), k)) <= epsilon


@given(p=st.floats(0, 1, exclude_max=True), k=st.integers(2, 50))
def test_the_epsilon_that_is_told_is_never_below_what_is_spent(p: float, k: int) -> None:
    told = parts._spent({"p": p, "epsilon": None, "domain": ("x",) * k})
    assert math.log(spent(p, k)) <= float(f"{told:.6g}")
    assert told <= math.log1p(p * k / (1 - p)) * (1 + 2e-5) + 2e-9


def people(n: int = 3000, *, seed: int = 5) -> pa.Table:
    rng = np.random.default_rng(seed)
    towns = np.array(["a", "b", "c"])[rng.choice(3, n, p=[0.6, 0.3, 0.1])]
    return pa.table(
        {
            "TOWN": pa.array(towns, mask=rng.random(n) < 0.05),
            "GRADE": pa.array(np.array(LEVELS)[rng.integers(0, 3, n)]),
            "AGE": rng.integers(18, 80, n),
        }
    )


SCHEMA = rv.Schema(levels={"GRADE": LEVELS})
DOMAIN = ("a", "b", "c", "d", "e")


def test_the_guarantee_is_there_only_with_a_domain() -> None:
    made = rv.mask(people(), "randomized_response", schema=SCHEMA, seed=1, epsilon=1.5, **{"domain.TOWN": DOMAIN})
    (sentence,) = made.manifest["guarantees"]
    assert sentence == (
        "column TOWN: local differential privacy with epsilon = 1.5 for each value that is there (that of a whole "
        "group where the column is the same within groups); which cells are missing is published as it is and not "
        "covered; the epsilons of several columns, steps or releases add up; released beside and not covered: AGE"
    )
    (flag,) = made.manifest["disclosive_parameters"]
    assert flag.startswith("randomized_response: domain was taken from the original in GRADE: ")
    assert made.manifest["steps"][0]["facts"]["local"] is False, "not in GRADE"
    assert json.loads(made.manifest.to_json())["steps"][0]["per_column"]["TOWN"]["domain"] == list(DOMAIN)
    assert made.manifest["steps"][0]["counts"] == {"TOWN": {"categories": 5}, "GRADE": {"categories": 3}}


@pytest.mark.parametrize(
    ("given_", "epsilon"),
    [
        ({"p": 0.5}, "1.79176"),  # e^epsilon = 1 + 5 = 6: 1.791759...
        ({"p": 0.0}, "0"),
        ({"epsilon": 2.0}, "2"),
        ({"epsilon": 1.23456789}, "1.23457"),
        ({"epsilon": 1.234561}, "1.23457"),  # never rounded down
    ],
    ids=str,
)
def test_the_epsilon_in_the_manifest(given_: dict[str, float], epsilon: str) -> None:
    made = rv.mask(people(), "randomized_response", columns=["TOWN"], seed=1, domain=DOMAIN, **given_)
    (sentence,) = made.manifest["guarantees"]
    assert f"epsilon = {epsilon} for" in sentence
    assert made.manifest["steps"][0]["facts"]["local"] is True
    assert made.manifest["disclosive_parameters"] == []


def test_always_the_truth_guarantees_nothing() -> None:
    made = rv.mask(people(), "randomized_response", columns=["TOWN"], seed=1, domain=DOMAIN, p=1)
    assert made.manifest["guarantees"] == []
    assert made.changed == {"TOWN": 0}


def test_what_other_steps_do_to_the_guarantee() -> None:
    plan = Plan.of("randomized_response", columns=["TOWN"], domain=DOMAIN)
    alone = rv.mask(people(), plan, seed=1).manifest["guarantees"]
    assert len(alone) == 1

    def guarantees(steps: Plan, **schema: Any) -> list[str]:
        made: list[str] = rv.mask(people(), steps, seed=1, schema=rv.Schema(**schema)).manifest["guarantees"]
        return made

    # after it: whoever looks at the answers alone cannot weaken what holds of them
    for later in (
        plan.then("pram", columns=["TOWN"], invariant=True),
        plan.then("recode", columns=["TOWN"], rare=20),
        plan.then("record_shuffle"),
        plan.then("permute", columns=["TOWN"]),
        plan.then("top_bottom_code", columns=["AGE"], top_percent=5),
    ):
        assert guarantees(later) == alone
    # before it: only what looks at one record at a time
    groups = [("a", "north"), ("b", "north"), ("c", "south")]
    then = {"columns": ["TOWN"], "domain": ("north", "south", "west")}
    local = Plan.of("recode", columns=["TOWN"], level=1).then("randomized_response", **then)
    assert len(guarantees(local, hierarchies={"TOWN": groups})) == 1
    other = Plan.of("recode", columns=["TOWN"], rare=20).then(
        "randomized_response", columns=["TOWN"], domain=(*DOMAIN, "other")
    )
    assert guarantees(other) == []
    swapped = Plan.of("permute", columns=["TOWN"]).then("randomized_response", columns=["TOWN"], domain=DOMAIN)
    assert guarantees(swapped) == []


def test_a_local_answer_depends_on_its_own_record_alone() -> None:
    data = people(200)
    towns = data["TOWN"].to_pylist()
    others = data.set_column(0, "TOWN", pa.array([*["e"] * 100, *towns[100:]]))
    how: dict[str, Any] = {"columns": ["TOWN"], "seed": CommonSeed.of(1), "domain": DOMAIN}
    here, there = (rv.mask(each, "randomized_response", **how).data["TOWN"].to_pylist() for each in (data, others))
    assert here[100:] == there[100:]


def test_more_labels_than_the_data_have_are_released_too() -> None:
    made = rv.mask(people(), "randomized_response", columns=["TOWN"], seed=1, domain=DOMAIN, p=0.5)
    assert set(made.data["TOWN"].to_pylist()) == {*DOMAIN, None}
    assert made.data.schema == people().schema


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_a_domain_keeps_the_order_of_levels(library: str) -> None:
    domain = ("none", "low", "middle", "high", "top")
    words = ["low", "high", "middle", "low", None] * 40
    if library == "pandas":
        data: Any = pd.DataFrame({"G": pd.Categorical(words, categories=LEVELS, ordered=True)})
    elif library == "polars":
        pl = pytest.importorskip("polars")
        data = pl.DataFrame({"G": pl.Series(words, dtype=pl.Enum(LEVELS))})
    else:
        codes = pa.array([None if word is None else LEVELS.index(word) for word in words], pa.int8())
        data = pa.table({"G": pa.DictionaryArray.from_arrays(codes, list(LEVELS), ordered=True)})
    made = rv.mask(data, "randomized_response", seed=1, domain=domain, p=0.3)
    if library == "pandas":
        assert list(made.data["G"].cat.categories) == list(domain)
        assert made.data["G"].cat.ordered
    elif library == "polars":
        assert made.data["G"].dtype == data["G"].dtype.__class__(domain)
    else:
        assert made.data["G"].combine_chunks().dictionary.to_pylist() == list(domain)
        assert made.data.schema.field("G").type.ordered
    released = rv.Table(made.data)
    assert released.cells("G").levels == domain
    # and a next step sees that order
    narrow = rv.mask(made.data, "recode", seed=1, cuts=("low", "top")).data
    labels = set(rv.Table(narrow).cells("G").labels().drop_null().to_pylist())
    assert labels == {"none", "low to high", "top"}


def test_ordered_numbers_come_back_as_numbers() -> None:
    data = pa.table({"G": [1, 5, 2, 2, 9] * 30})
    made = rv.mask(
        data, "randomized_response", seed=1, p=0.2, domain=(1, 2, 5, 9, 10), schema=rv.Schema(kinds={"G": "ordinal"})
    )
    assert made.data.schema.field("G").type == pa.int64()
    assert set(made.data["G"].to_pylist()) == {1, 2, 5, 9, 10}


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (("no", "yes"), "the domain misses perhaps"),
        (("no", "yes", "perhaps", "no"), "a list of different categories"),
        ((), "a list of different categories"),
    ],
    ids=str,
)
def test_a_domain_that_cannot_be(domain: tuple[str, ...], text: str) -> None:
    with pytest.raises(rv.ParameterError, match=text):
        masked(domain=domain)


def test_a_domain_in_another_order_is_refused_for_levels_only() -> None:
    levels = ordinal(LEVELS, np.array([3.0, 1.0, 1.0]))
    with pytest.raises(rv.ParameterError, match="in the order of the column: low, middle, high"):
        masked(categories=levels, domain=("high", "middle", "low"))
    assert masked(categories=levels, domain=("low", "x", "middle", "high")).levels == ("low", "x", "middle", "high")
    assert masked(domain=("yes", "perhaps", "no")).levels == ("yes", "perhaps", "no")


def test_a_level_that_no_record_has_need_not_be_in_the_domain() -> None:
    levels = ordinal(("none", *LEVELS), np.array([0.0, 3.0, 1.0, 1.0]))
    made = masked(X + 1, categories=levels, domain=LEVELS, p=1)
    assert [made.levels[int(code)] for code in made.values] == ["low", "low", "high", "low", "middle"]
    with pytest.raises(rv.ParameterError, match="the domain misses none"):
        masked(X, categories=levels, domain=LEVELS)


def test_one_category() -> None:
    made = masked(np.zeros(3), categories=nominal(["a"], np.array([3.0])), epsilon=1)
    assert made.values.tolist() == [0.0] * 3


@pytest.mark.parametrize("given_", [{"p": 0.5}, {"epsilon": 1.0}], ids=str)
@pytest.mark.parametrize("domain", [None, DOMAIN])
def test_a_user_finds_the_shares_of_the_original(given_: dict[str, float], domain: Any) -> None:
    data = people(20_000)
    words = [word for word in data["TOWN"].to_pylist() if word is not None]
    made = rv.mask(data, "randomized_response", columns=["TOWN"], seed=1, domain=domain, **given_)
    found = rv.correct(made.data, made.manifest).shares["TOWN"]
    k = 3 if domain is None else 5
    p = given_.get("p") or math.expm1(1) / (math.expm1(1) + k)
    assert sum(found.values()) == pytest.approx(1)
    assert set(found) == set(domain or "abc")
    for label, share in found.items():
        truth = words.count(label) / len(words)
        spread = math.sqrt(0.25 / len(words)) / p
        assert abs(share - truth) < stats.norm.isf(FALSE_ALARM / 2 / k) * spread
    released = made.data["TOWN"].to_pylist()
    assert abs(released.count("a") / len(words) - words.count("a") / len(words)) > 0.05, "uncorrected it is off"


def test_nothing_can_be_told_from_pure_chance() -> None:
    made = rv.mask(people(100), "randomized_response", columns=["TOWN"], seed=1, p=0)
    with pytest.raises(
        rv.ParameterError, match="column TOWN: randomized_response: with p = 0 the release tells nothing"
    ):
        rv.correct(made.data, made.manifest)


def test_a_plan_keeps_its_domain_and_the_command_line_takes_it(tmp_path: Path) -> None:
    plan = Plan.of("randomized_response", epsilon=1, **{"domain.TOWN": DOMAIN})
    for again in (Plan.from_toml(plan.to_toml()), Plan.from_json(plan.to_json())):
        assert again == plan
        assert again.steps[0].bound("TOWN")["domain"] == DOMAIN
    source, out = tmp_path / "people.csv", tmp_path / "out.csv"
    source.write_text("TOWN,AGE\n" + "a,1\nb,2\nc,3\n" * 50)
    arguments = [
        "mask",
        str(source),
        "-o",
        str(out),
        "--method",
        "randomized_response",
        "--columns",
        "TOWN",
        "--seed",
        "ab" * 16,
    ]
    assert main([*arguments, "--set", "domain.TOWN=a,b,c,d,p.TOWN=0.5"]) == 0
    towns = [line.split(",")[0] for line in out.read_text().splitlines()[1:]]
    assert set(towns) == set("abcd")
    manifest = json.loads((tmp_path / "out.csv.manifest.json").read_text())
    assert manifest["steps"][0]["parameters"]["domain"] == ["a", "b", "c", "d"]
    assert "epsilon = 1.60944 for" in manifest["guarantees"][0]  # e^epsilon = 1 + 4 = 5: 1.609437...
    saved = tmp_path / "plan.toml"
    saved.write_text(
        Plan.of(
            "randomized_response", columns=["TOWN"], **{"domain.TOWN": ("a", "b", "c", "d"), "p.TOWN": 0.5}
        ).to_toml()
    )
    again = tmp_path / "again.csv"
    assert main(["mask", str(source), "-o", str(again), "--plan", str(saved), "--seed", "ab" * 16]) == 0
    assert again.read_text() == out.read_text()


def test_bands_are_labels_of_a_domain_in_text_too() -> None:
    plan = Plan.of("recode", columns=["AGE"], cuts="30,65").then(
        "randomized_response", columns=["AGE"], domain="(-inf,30),[30,65),[65,inf)", epsilon=1
    )
    made = rv.mask(people(), plan, seed=1)
    assert set(made.data["AGE"].to_pylist()) == {"(-inf,30)", "[30,65)", "[65,inf)"}
    assert len(made.manifest["guarantees"]) == 1


def test_the_manifest_has_the_parameters_that_were_used() -> None:
    data = pa.table({"A": ["x", "y"] * 20, "B": ["x", "y"] * 20})
    given = {"epsilon": 1.0, "domain": ("x", "y")}
    release = rv.mask(data, "randomized_response", columns=["A", "B"], seed=1, **given)
    assert release.manifest["steps"][0]["parameters"] == given
    assert rv.correct(release.data, release.manifest).shares["A"].keys() == {"x", "y"}
    plain = rv.mask(data, "randomized_response", columns=["A"], p=0.5, seed=1).manifest["steps"][0]["parameters"]
    assert plain == {"p": 0.5, "epsilon": None, "domain": None}
    each = rv.mask(data, "randomized_response", columns=["A", "B"], seed=1, **{"epsilon.A": 1.0, "p.B": 0.5})
    assert each.manifest["steps"][0]["per_column"] == {"A": {"epsilon": 1.0}, "B": {"p": 0.5, "epsilon": None}}
    by_matrix = rv.mask(data, "pram", columns=["A"], matrix="x>y:0.2", seed=1)
    assert "p" not in by_matrix.manifest["steps"][0]["parameters"]
    assert rv.correct(by_matrix.data, by_matrix.manifest).shares["A"].keys() == {"x", "y"}
