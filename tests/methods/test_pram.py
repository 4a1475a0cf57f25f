"""PRAM on five records, its matrices exactly, the shares that it keeps, and what a user can work out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rankveil as rv
from rankveil import files
from rankveil.catalogue import get_method
from rankveil.categories import Categories, nominal, ordinal
from rankveil.cli import main
from rankveil.plans import Plan
from rankveil.seeds import Seed

FALSE_ALARM = 1e-6

pram = get_method("pram")
parts = sys.modules["rankveil.methods.pram"]
TOWNS = nominal(["Ulm", "Bonn", "Kiel"], np.array([3.0, 1.0, 1.0]))  # by frequency, then by label: Ulm, Bonn, Kiel
X = np.array([0.0, 0.0, 1.0, 0.0, 2.0])
COUNTS = st.lists(st.integers(0, 30), min_size=1, max_size=7).map(lambda some: np.array(some, dtype=float))


def masked(x: Any = X, *, seed: int = 1, categories: Categories = TOWNS, **parameters: Any) -> Any:
    return pram(x, categories=categories, rng=Seed.of(seed).stream("a"), **parameters)


def within(count: float, expected: float, variance: float, *, tests: int) -> bool:
    """Whether a count is as near to what is expected as it must be, one false alarm in a million for all the tests."""
    return abs(count - expected) <= stats.norm.isf(FALSE_ALARM / 2 / tests) * np.sqrt(variance) + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_five_records_by_hand(seed: int) -> None:
    stream = Seed.of(seed).stream("a")
    leaves, which = stream.random(5), stream.random(5)
    by_hand = []
    for i, own in enumerate(X):
        others = [place for place in (0.0, 1.0, 2.0) if place != own]
        by_hand.append(others[int(2 * which[i])] if leaves[i] < 0.6 else own)  # each of the two others as likely
    assert masked(seed=seed, p=0.6).values.tolist() == by_hand


@pytest.mark.parametrize("seed", range(6))
def test_five_records_to_frequent_categories_by_hand(seed: int) -> None:
    stream = Seed.of(seed).stream("a")
    leaves, which = stream.random(5), stream.random(5)
    # Ulm three times, Bonn and Kiel once: from Ulm half of them go to Bonn, from Bonn or Kiel three of four to Ulm
    into = {0: lambda u: 1 if u < 1 / 2 else 2, 1: lambda u: 0 if u < 3 / 4 else 2, 2: lambda u: 0 if u < 3 / 4 else 1}
    by_hand = [into[int(own)](which[i]) if leaves[i] < 0.6 else own for i, own in enumerate(X)]
    assert masked(seed=seed, p=0.6, to="frequency").values.tolist() == by_hand


@pytest.mark.parametrize("seed", range(6))
def test_five_records_by_a_given_matrix_by_hand(seed: int) -> None:
    draws = Seed.of(seed).stream("a").random(5)
    made = masked(seed=seed, matrix="Ulm>Bonn:0.25; Ulm > Kiel:0.25;Bonn>Ulm:1").values
    # of Ulm a half stays, in the order Ulm, Bonn, Kiel; Bonn becomes Ulm; nothing is said of Kiel, so it stays
    from_ulm = [0.0 if u < 0.5 else 1.0 if u < 0.75 else 2.0 for u in draws]
    assert made.tolist() == [from_ulm[0], from_ulm[1], 0.0, from_ulm[3], 2.0]


def test_the_matrix_of_three_towns_by_hand() -> None:
    counts = np.array([3.0, 1.0, 1.0])
    uniform, frequent = (parts.exchange(counts, p=0.2, to=to).matrix() for to in ("uniform", "frequency"))
    assert np.allclose(uniform, [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    assert np.allclose(frequent, [[0.8, 0.1, 0.1], [0.15, 0.8, 0.05], [0.15, 0.05, 0.8]])
    # 2.6 of 5 are expected in Ulm: 2.4 that stayed, and 0.1 each of Bonn and Kiel
    back = parts.exchange(counts, p=0.2, to="uniform").back(counts).matrix()
    assert np.allclose(back[0], [2.4 / 2.6, 0.1 / 2.6, 0.1 / 2.6])
    assert np.allclose(back[1], [0.3 / 1.2, 0.8 / 1.2, 0.1 / 1.2])


@given(counts=COUNTS, p=st.floats(0, 1), to=st.sampled_from(["uniform", "frequency"]))
def test_invariant_keeps_the_expected_counts_exactly(counts: Any, p: float, to: str) -> None:
    first = parts.exchange(counts, p=p, to=to)
    if first is None:
        assert counts.size == 1 or (to == "frequency" and np.count_nonzero(counts) < 2)
        return
    once, back = first.matrix(), first.back(counts).matrix()
    for matrix in (once, back):
        assert np.all(matrix >= -1e-15)
        assert np.allclose(matrix.sum(axis=1), 1)
    assert np.allclose(counts @ once @ back, counts)
    able = counts @ once > 1e-9 * counts.sum()
    assert np.allclose(back[able], parts.bayes(once, counts)[able]), "the short form is Bayes' rule"


@given(counts=COUNTS, seed=st.integers(0, 1000))
def test_invariant_keeps_the_expected_counts_with_a_given_matrix(counts: Any, seed: int) -> None:
    table = np.random.default_rng(seed).dirichlet(np.ones(counts.size), counts.size)
    back = parts.bayes(table, counts)
    assert np.allclose(back.sum(axis=1), 1)
    assert np.allclose(counts @ table @ back, counts)


@given(
    weight=st.lists(st.integers(0, 4), min_size=2, max_size=6).filter(lambda some: np.count_nonzero(some) > 1),
    leave=st.sampled_from([0.0, 0.25, 1.0]),
)
def test_what_is_drawn_has_the_probabilities_of_the_matrix(weight: list[int], leave: float) -> None:
    step = parts.Exchange(np.full(len(weight), leave), np.array(weight, dtype=float))
    grid = (np.arange(840) + 0.5) / 840  # every pair of a coarse and a fine draw; others' weights sum to 23 at most
    first, second = (each.ravel() for each in np.meshgrid((np.arange(4) + 0.5) / 4, grid))
    for own in range(len(weight)):
        made = step.drawn(np.full(first.size, own), first, second)
        shares = np.bincount(made, minlength=len(weight)) / first.size
        assert np.allclose(shares, step.matrix()[own], atol=len(weight) / 840)


@pytest.mark.parametrize("to", ["uniform", "frequency"])
@pytest.mark.parametrize("draw", [2.0**-53, 0.5, 1 - 2.0**-53])
def test_at_the_ends_of_the_draws_it_is_another_category_that_can_be_drawn(to: str, draw: float) -> None:
    for counts in ([3.0, 0, 2, 0], [0.0, 3, 3, 0], [1.0, 1], [1.0, 1, 1], [1e9, 1, 0, 1]):
        step = parts.exchange(np.array(counts), p=1.0, to=to)
        for each in (step, step.back(np.array(counts))):
            able = np.flatnonzero((each.leave > 0) & (np.array(counts) > 0))
            made = each.drawn(able, np.full(able.size, draw), np.full(able.size, draw))
            gone = draw < each.leave[able]
            assert np.all(made[gone] != able[gone])
            assert np.all(each.weight[made[gone]] > 0)


N = 60_000
SHARES = np.array([0.5, 0.3, 0.15, 0.05])


def column(n: int = N) -> tuple[Any, Categories]:
    counts = (n * SHARES).astype(int)
    return np.repeat(np.arange(4.0), counts), nominal(list("abcd"), counts.astype(float))


@pytest.mark.parametrize("to", ["uniform", "frequency"])
@pytest.mark.parametrize("p", [0.1, 0.7, 1.0])
@pytest.mark.parametrize("invariant", [False, True])
def test_exchanges_are_as_frequent_as_the_matrix_says(to: str, p: float, invariant: bool) -> None:
    x, categories = column()
    made = masked(x, categories=categories, p=p, to=to, invariant=invariant).values
    step = parts.exchange(categories.counts, p=p, to=to)
    matrix = step.matrix() @ step.back(categories.counts).matrix() if invariant else step.matrix()
    for k in range(4):
        seen = np.bincount(made[x == k].astype(int), minlength=4)
        for label in range(4):
            size, chance = categories.counts[k], matrix[k, label]
            assert within(seen[label], size * chance, size * chance * (1 - chance), tests=16)
    if invariant:
        spread = categories.counts @ (matrix * (1 - matrix))
        for label, count in enumerate(np.bincount(made.astype(int), minlength=4)):
            assert within(count, categories.counts[label], spread[label], tests=4)


def test_without_invariant_shares_move_so_the_test_above_can_fail() -> None:
    x, categories = column()
    made = masked(x, categories=categories, p=0.7).values
    assert not within(np.sum(made == 0), categories.counts[0], N / 4, tests=4)


def test_an_invariant_matrix_that_is_given_keeps_shares() -> None:
    x, categories = column()
    text = "a>b:0.4;b>c:0.5;c>d:0.2;c>a:0.2;d>a:0.9"
    made = masked(x, categories=categories, matrix=text, invariant=True).values
    table = parts.read_matrix(text, categories.labels)
    both = table @ parts.bayes(table, categories.counts)
    spread = categories.counts @ (both * (1 - both))
    for label, count in enumerate(np.bincount(made.astype(int), minlength=4)):
        assert within(count, categories.counts[label], spread[label], tests=4)


def test_levels_that_no_record_has() -> None:
    levels = ordinal(["none", "low", "high", "top"], np.array([0.0, 500.0, 400.0, 0.0]))
    x = np.repeat([1.0, 2.0], [500, 400])
    uniform = masked(x, categories=levels, p=0.9)
    assert set(uniform.values) == {0.0, 1.0, 2.0, 3.0}
    assert uniform.counts == {"categories": 4}
    assert set(masked(x, categories=levels, p=0.9, to="frequency").values) == {1.0, 2.0}
    # a share of 0 is kept in expectation only by never releasing the level
    assert set(masked(x, categories=levels, p=0.9, invariant=True).values) == {1.0, 2.0}


@pytest.mark.parametrize("given", [{}, {"p": 1.0}, {"to": "frequency"}, {"invariant": True}], ids=str)
def test_one_category_has_no_other(given: dict[str, Any]) -> None:
    made = masked(np.zeros(4), categories=nominal(["a"], np.array([4.0])), **given)
    assert made.values.tolist() == [0.0] * 4
    assert made.notes == ("there is one category only, so nothing was exchanged",)


def test_no_strength_changes_nothing_and_full_strength_everything() -> None:
    x, categories = column(1000)
    assert np.array_equal(masked(x, categories=categories, p=0).values, x)
    assert not np.any(masked(x, categories=categories, p=1).values == x)
    # two categories swapped for sure and back again
    both = nominal(["a", "b"], np.array([7.0, 3.0]))
    two = np.repeat([0.0, 1.0], [7, 3])
    assert np.array_equal(masked(two, categories=both, p=1, invariant=True).values, two)


def test_more_than_chance_is_said_to_tell_more() -> None:
    assert masked(p=2 / 3).notes == ()
    (said,) = masked(p=0.7).notes
    assert said.startswith("p is above 0.6667, where nothing of the categories is left")


@pytest.mark.parametrize(
    ("matrix", "text"),
    [
        ("Ulm>Bon:0.1", "^pram: matrix names 'Bon', no category here; did you mean Bonn?"),
        ("Ulm:0.1", "reads like 'a>b:0.1;a>c:0.2', not 'Ulm:0.1'"),
        ("Ulm>Bonn", "reads like"),
        ("Ulm>Bonn:often", "reads like"),
        ("Ulm>Bonn:-0.1", "0 or more and at most 1 together"),
        ("Ulm>Bonn:0.6;Ulm>Kiel:0.5", "0 or more and at most 1 together"),
        ("Ulm>Bonn:nan", "0 or more and at most 1 together"),
        ("Ulm>Bonn:inf", "0 or more and at most 1 together"),
        ("", "0 or more and at most 1 together"),
        ("Ulm>Ulm:0.9", "'Ulm' stays with what is left"),
        ("Ulm>Bonn:0.1;Ulm>Bonn:0.2", "says twice how often 'Ulm' becomes 'Bonn'"),
    ],
)
def test_a_matrix_that_cannot_be(matrix: str, text: str) -> None:
    with pytest.raises(rv.ParameterError, match=text):
        masked(matrix=matrix)


def test_labels_may_have_the_signs_of_a_matrix() -> None:
    labels = (">65", "30:64", "a>b")
    table = parts.read_matrix(">65>30:64:0.25;a>b>>65:0.5", labels)
    assert table.tolist() == [[0.75, 0.25, 0], [0, 1, 0], [0.5, 0, 0.5]]


def people(n: int = 8000) -> pa.Table:
    rng = np.random.default_rng(7)
    towns = np.array(["Ulm", "Bonn", "Kiel", "Jena"])[rng.choice(4, n, p=SHARES)]
    return pa.table(
        {
            "TOWN": pa.array(towns, mask=rng.random(n) < 0.05),
            "GRADE": pa.array(np.array(["low", "middle", "high"])[rng.choice(3, n, p=[0.2, 0.5, 0.3])]),
            "INCOME": rng.lognormal(8, 1, n),
        }
    )


SCHEMA = rv.Schema(levels={"GRADE": ["low", "middle", "high"]})


def shares_of(data: pa.Table, name: str) -> dict[str, float]:
    words = [word for word in data[name].to_pylist() if word is not None]
    return {word: words.count(word) / len(words) for word in dict.fromkeys(words)}


def test_the_manifest_has_what_a_user_needs_and_no_share() -> None:
    plain = rv.mask(people(), "pram", p=0.2, seed=1, schema=SCHEMA)
    (step,) = plain.manifest["steps"]
    assert step["parameters"] == {"p": 0.2, "to": "uniform", "invariant": False, "matrix": None}
    assert step["counts"] == {"TOWN": {"categories": 4}, "GRADE": {"categories": 3}}
    assert step["facts"]["local"] is False
    assert plain.manifest["disclosive_parameters"] == []
    assert any("shares of the categories of TOWN, GRADE corrected" in told for told in plain.manifest["for_users"])
    for told in ({"invariant": True}, {"to": "frequency"}, {"matrix": "Ulm>Bonn:0.1", "invariant": True}):
        made = rv.mask(people(), "pram", columns=["TOWN"], seed=1, **told)
        (flag,) = made.manifest["disclosive_parameters"]
        assert "taken from the original in TOWN: the shares of its categories" in flag
    by_matrix = rv.mask(people(), "pram", columns=["TOWN"], seed=1, matrix="Ulm>Bonn:0.1", to="frequency")
    assert by_matrix.manifest["disclosive_parameters"] == []
    for share in shares_of(people(), "TOWN").values():
        assert f"{share:.3f}" not in made.manifest.to_json()


@pytest.mark.parametrize(
    "given",
    [{"p": 0.4}, {"p": 0.9}, {"matrix": "Ulm>Bonn:0.3;Bonn>Kiel:0.2;Kiel>Ulm:0.1"}, {"p": 0.4, "invariant": True}],
    ids=str,
)
def test_a_user_finds_the_shares_of_the_original(given: dict[str, Any]) -> None:
    data = people(20_000)
    made = rv.mask(data, "pram", columns=["TOWN"], seed=3, **given)
    found = rv.correct(made.data, made.manifest.to_json())
    truth, released = shares_of(data, "TOWN"), shares_of(made.data, "TOWN")
    assert found.names == ()
    assert sum(found.shares["TOWN"].values()) == pytest.approx(1)
    labels = list(truth)
    if "matrix" in given:
        matrix = parts.read_matrix(given["matrix"], labels)
    else:
        other = given["p"] / 3
        matrix = np.full((4, 4), other) + np.diag(np.full(4, 1 - 4 * other))
    # the variance of released counts, carried through the inverse of the matrix; invariant: no larger than that of both
    spread = np.array([truth[label] for label in labels]) @ (matrix * (1 - matrix)) / 19_000
    inverse = np.eye(4) if given.get("invariant") else np.linalg.inv(matrix)
    limit = stats.norm.isf(FALSE_ALARM / 8)
    for j, label in enumerate(labels):
        error = (
            limit * np.sqrt(4 if given.get("invariant") else 1) * np.sqrt(spread.max()) * np.abs(inverse[:, j]).sum()
        )
        assert abs(found.shares["TOWN"][label] - truth[label]) < error
    if not given.get("invariant"):
        assert max(abs(released[label] - truth[label]) for label in labels) > 0.02, "without a correction they are off"


def test_numbers_and_categories_are_corrected_together() -> None:
    data = people()
    plan = Plan.of("pram", columns=["TOWN"], p=0.3).then("additive_noise", columns=["INCOME"], sd=5.0)
    made = rv.mask(data, plan.then("record_shuffle"), seed=1)
    found = rv.correct(made.data, made.manifest)
    assert found.names == ("INCOME",)
    assert set(found.shares) == {"TOWN"}
    assert found.to_dict()["shares"] == found.shares
    assert "the means and covariances and the shares of the categories of TOWN" in made.manifest["for_users"][-1]


def test_shares_that_do_not_follow_are_said() -> None:
    data = people(500)
    for told, text in (
        ({"to": "frequency"}, "column TOWN: pram to = frequency has probabilities that are not published"),
        ({"p": 0.75}, "column TOWN: pram: with p = 0.75 all categories become equally likely"),
        ({"matrix": "Ulm>Bonn:0.5;Bonn>Ulm:0.5"}, "column TOWN: pram: its matrix has no inverse"),
    ):
        made = rv.mask(data, "pram", columns=["TOWN"], seed=1, **told)
        with pytest.raises(rv.ParameterError, match=text):
            rv.correct(made.data, made.manifest)
        both = Plan.of("pram", columns=["TOWN"], **told).then("additive_noise", columns=["INCOME"], sd=5.0)
        noisy = rv.mask(data, both, seed=1)
        found = rv.correct(noisy.data, noisy.manifest)
        assert (found.names, dict(found.shares)) == (("INCOME",), {})
        assert any(note.startswith(text) for note in found.notes)


def test_few_records_may_give_shares_below_0_and_that_is_said() -> None:
    data = pa.table({"T": ["a"] * 9 + ["b"]})
    for seed in range(20):
        made = rv.mask(data, "pram", p=0.4, seed=seed)
        found = rv.correct(made.data, made.manifest)
        negative = min(found.shares["T"].values()) < 0
        assert any("below 0" in note for note in found.notes) is negative
    assert made.manifest["steps"][0]["counts"] == {"T": {"categories": 2}}


def test_ordered_numbers_are_labels_and_come_back_as_numbers() -> None:
    data = pa.table({"G": [1, 5, 2, 2, None, 9] * 30})
    made = rv.mask(data, "pram", p=0.9, seed=1, schema=rv.Schema(kinds={"G": "ordinal"}))
    assert made.data.schema.field("G").type == pa.int64()
    assert set(made.data["G"].to_pylist()) == {1, 2, 5, 9, None}
    assert [cell is None for cell in made.data["G"].to_pylist()] == [False] * 4 + [True] + [False] + (
        [False] * 4 + [True] + [False]
    ) * 29


def test_a_plan_keeps_its_matrix_and_the_command_line_takes_it(tmp_path: Path) -> None:
    text = "Ulm>Bonn:0.1;Bonn>Ulm:0.2"
    plan = Plan.of("pram", columns=["TOWN"], matrix=text, **{"invariant.TOWN": True})
    assert Plan.from_toml(plan.to_toml()) == plan == Plan.from_json(plan.to_json())
    source, out = tmp_path / "people.csv", tmp_path / "out.csv"
    source.write_text("TOWN,INCOME\n" + "Ulm,1\nBonn,2\nKiel,3\n" * 50)
    arguments = ["mask", str(source), "-o", str(out), "--method", "pram", "--columns", "TOWN", "--seed", "ab" * 16]
    assert main([*arguments, "--set", f"matrix={text}"]) == 0
    lines = [line.split(",") for line in out.read_text().splitlines()[1:]]
    expected = rv.mask(files.load(source).data, "pram", matrix=text, columns=["TOWN"], seed="ab" * 16)
    assert [line[0] for line in lines] == expected.data["TOWN"].to_pylist()
    assert [line[0] for line in lines][2::3] == ["Kiel"] * 50
