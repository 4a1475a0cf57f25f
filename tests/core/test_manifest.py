"""The manifest tells everything but the randomness; the secret comes back as it was; users can correct."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.digests import digest_of
from rankveil.errors import FileError
from rankveil.manifest import Manifest, Secret, fingerprint
from rankveil.masking import release_key
from rankveil.plans import Plan
from rankveil.seeds import Seed
from rankveil.table import Table

HEX = "00f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff"
SIGMAS = 4.9  # two-sided, a false alarm in a million


@pytest.fixture
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({"A": rng.normal(size=40), "B": rng.normal(5, 2, 40), "T": ["x", "y"] * 20})


PLANS = {
    "noise": Plan.of("additive_noise", alpha=0.5),
    "own noise": Plan.of("additive_noise", sd={"A": 1.0, "B": 2.0}),
    "shuffled": Plan.of("multiplicative_noise").then("record_shuffle"),
    "swapped": Plan.of("distance_swap", d=3),
    "clipped": Plan.of("additive_noise").then("clip").then("round"),
    "mapped": Plan.of("additive_noise").then("reverse_map"),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=list(PLANS))
def test_a_manifest_never_holds_the_seed_nor_what_follows_from_it(table: pa.Table, plan: Plan) -> None:
    release = rv.mask(table, plan, seed=HEX, publish=["permutation_level"])
    text = release.manifest.to_json()
    flat = text.lower()
    assert HEX not in flat
    assert str(int(HEX, 16)) not in flat
    names = [*table.column_names, "table"]
    steps = enumerate(plan.steps)
    tags: list[tuple[str | int, ...]] = [("mask", k, s.method, name, 0) for k, s in steps for name in names]
    tags += [("mask", k, s.method, 0) for k, s in enumerate(plan.steps)]
    told = fingerprint(Table(table))
    own = release_key(release.secret.seed, Table(table), plan, fingerprint=told)
    assert own.reveal() not in flat
    for seed, tag in product((release.secret.seed, own), tags):
        key = seed.stream(*tag)._key
        for form in (str(key), f"{key:x}", key.to_bytes(16, "little").hex(), key.to_bytes(16, "big").hex()):
            assert form not in flat
    assert release.secret.fingerprint == told
    assert told not in flat
    assert digest_of(Table(table)) not in flat
    assert release.manifest["digest"] == digest_of(Table(release.data))
    others = flat.replace(release.manifest["digest"], "")
    assert not re.search(r"[0-9a-f]{24,}", others), "no hash or key of any kind, but the digest of the release"
    for name in ("seed", "fingerprint", "hash"):
        assert f'"{name}"' not in flat
    assert len(release.secret.to_json()) > 0


def test_a_manifest_says_what_was_done(table: pa.Table) -> None:
    plan = (
        Plan.of("additive_noise", **{"alpha": 0.5, "alpha.B": 0.25}).then("clip", lower=-10).then("round", decimals=2)
    )
    release = rv.mask(table, plan, seed=HEX, publish=["permutation_level", "difference_variance"])
    manifest = json.loads(release.manifest.to_json())
    assert manifest["schema"] == "rankveil/manifest/1"
    assert manifest["rankveil"] == rv.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", manifest["date"])
    noise, clip, rounded, exchange = manifest["steps"]
    assert (exchange["method"], exchange["columns"]) == ("pram", ["T"])  # categories, which noise does not take
    assert (noise["method"], noise["columns"]) == ("additive_noise", ["A", "B"])
    assert noise["parameters"] == {"sd": None}
    assert noise["per_column"] == {"A": {"alpha": 0.5}, "B": {"alpha": 0.25}}
    assert noise["facts"] == {
        "works_on": "column",
        "kinds": ["numeric"],
        "mapping": "kept",
        "marginals": "changed",
        "random": True,
        "reproducible": True,
        "local": False,
        "transparent": "yes",
    }
    assert clip["parameters"] == {"lower": -10.0, "upper": None}
    assert set(clip["counts"]) == {"A", "B"}
    assert rounded["parameters"] == {"decimals": 2}
    assert manifest["records"] == {"in": 40, "out": 40, "left_out": 0}
    assert [column["masked"] for column in manifest["columns"]] == [True, True, True]
    assert [(each["action"], each["role"]) for each in manifest["columns"]] == [
        ("mask", "confidential"),
        ("mask", "confidential"),
        ("mask", "quasi-identifier"),
    ]
    assert manifest["columns"][0]["reason"] == (
        "Nothing says that others know its numbers; its values are numbers with decimals"
    )
    assert set(manifest["measures"]) == {"permutation_level", "difference_variance"}
    assert manifest["measures"]["permutation_level"] == rv.audit(table, release)["permutation_level"]
    assert (manifest["mapping"], manifest["marginals"]) == ("kept", "changed")
    read = Manifest.from_json(release.manifest.to_json())
    assert read.content == manifest
    assert repr(read) == "Manifest(additive_noise then clip then round then pram, 40 records)"


def test_parameters_taken_from_the_original_are_flagged(table: pa.Table) -> None:
    table = table.select(["A", "B"])
    plan = Plan.of("additive_noise").then("clip", **{"lower": 0.0, "upper.A": 5.0})
    flags = rv.mask(table, plan, seed=1).manifest["disclosive_parameters"]
    assert len(flags) == 1
    assert flags[0].startswith("clip: upper was taken from the original in B: the largest original value")
    flags = rv.mask(table, Plan.of("additive_noise").then("clip"), seed=1).manifest["disclosive_parameters"]
    assert [flag.split(":")[1].split()[0] for flag in flags] == ["lower", "upper"]
    assert all("in A, B: " in flag for flag in flags)
    assert rv.mask(table, "additive_noise", seed=1).manifest["disclosive_parameters"] == []
    for name in ("A", "B"):  # flagged, not published
        values = table[name].to_numpy()
        text = rv.mask(table, Plan.of("additive_noise").then("clip"), seed=1).manifest.to_json()
        assert str(values.max()) not in text
        assert str(values.min()) not in text


def test_noise_of_a_given_size_is_local_when_all_columns_have_it(table: pa.Table) -> None:
    def local(**parameters: Any) -> bool:
        made: bool = rv.mask(table, "additive_noise", seed=1, **parameters).manifest["steps"][0]["facts"]["local"]
        return made

    assert not local()
    assert local(sd=1.0)
    assert local(sd={"A": 1.0, "B": 2.0})
    assert not local(sd={"A": 1.0})


@pytest.mark.parametrize(
    ("plan", "marginals", "mapping"),
    [
        (Plan.of("permute"), "kept", "kept"),
        (Plan.of("permute").then("record_shuffle"), "kept", "reordered"),
        (Plan.of("additive_noise").then("permute"), "changed", "kept"),
        (Plan.of("additive_noise").then("reverse_map"), "kept", "kept"),
        (Plan.of("additive_noise").then("reverse_map").then("round"), "changed", "kept"),
        (Plan.of("additive_noise").then("reverse_map", columns=["A"]), "changed", "kept"),
        (Plan.of("additive_noise", columns=["A"]).then("reverse_map").then("permute", columns=["B"]), "kept", "kept"),
    ],
    ids=lambda value: "-".join(step.method for step in value.steps) if isinstance(value, Plan) else value,
)
def test_marginals_and_mapping_of_a_whole_plan(table: pa.Table, plan: Plan, marginals: str, mapping: str) -> None:
    release = rv.mask(table.select(["A", "B"]), plan, seed=1)
    assert (release.manifest["marginals"], release.manifest["mapping"]) == (marginals, mapping)
    kept = all(np.array_equal(np.sort(release.data[name]), np.sort(table[name])) for name in ("A", "B"))
    assert kept == (marginals == "kept")


def test_a_guarantee_is_given_only_where_it_holds(table: pa.Table) -> None:
    def guarantees(plan: Plan) -> list[str]:
        made: list[str] = rv.mask(data, plan, seed=1).manifest["guarantees"]
        return made

    data = table.append_column("TIES", pa.array([1.0, 2.0] * 20))
    swap = Plan.of("distance_swap", **{"d": 4, "d.B": 6})
    of_a = "column A: every value is at permutation distance 4 or more among all values of the column"
    of_b = "column B: every value is at permutation distance 6 or more among all values of the column"
    assert guarantees(swap) == [of_a, of_b]
    assert guarantees(swap.then("record_shuffle")) == [of_a, of_b]
    assert guarantees(Plan.of("permute", columns=["A"]).then(swap.steps[0])) == [of_b]
    assert guarantees(swap.then("round", columns=["B"], decimals=0)) == [of_a]
    assert guarantees(swap.then(swap.steps[0])) == []
    assert guarantees(Plan.of("rank_swap")) == []


def test_what_users_can_do_is_told(table: pa.Table) -> None:
    def told(plan: Plan) -> str:
        return "\n".join(rv.mask(table, plan, seed=1).manifest["for_users"])

    assert "1 + alpha^2" in told(Plan.of("additive_noise"))
    for plan in (Plan.of("additive_noise"), Plan.of("multiplicative_noise").then("round").then("record_shuffle")):
        assert "rv.correct" in told(plan)
    assert "rv.correct" not in told(Plan.of("permute"))


def test_users_are_told_when_missing_cells_took_part(table: pa.Table) -> None:
    def told(plan: Plan) -> bool:
        return "missing cells stood" in "\n".join(rv.mask(data, plan, seed=1).manifest["for_users"])

    data = table.append_column("GAPS", pa.array([None, *(each + 0.5 for each in range(1, 40))]))
    assert told(Plan.of("ipso"))
    assert told(Plan.of("ipso", given=["GAPS"]))
    assert not told(Plan.of("ipso", columns=["A", "B"]))
    assert not told(Plan.of("additive_noise"))


def test_the_secret_comes_back_from_json(table: pa.Table) -> None:
    release = rv.mask(table, Plan.of("additive_noise").then("record_shuffle"), seed=HEX)
    text = release.secret.to_json()
    plain = json.loads(text)
    assert set(plain) == {"schema", "seed", "original_fingerprint", "replicate", "pseudonyms", "mapping"}
    assert (plain["schema"], plain["seed"], plain["replicate"]) == ("rankveil/secret/2", HEX, 0)
    assert plain["pseudonyms"] == "from the seed"
    assert sorted(plain["mapping"]) == list(range(1, 41))
    read = Secret.from_json(text)
    assert read.to_json() == text
    assert np.array_equal(read.order, release.secret.order)  # type: ignore[arg-type]
    again = rv.mask(table, Plan.of("additive_noise").then("record_shuffle"), seed=read.seed)
    assert again.data.equals(release.data)
    assert repr(read) == "Secret(hidden)"
    assert rv.audit(table, release.data, secret=read)["permutation_level"] < 0.2
    assert rv.mask(table, "permute", seed=1).secret.order is None


@pytest.mark.parametrize(
    "damage",
    [
        *[{"seed": "zz5ecret"}, {"seed": None}, {"seed": ""}, {"seed": -1}, {"seed": ["5ecret"]}],
        *[{"mapping": [1, 1]}, {"mapping": [0, 1]}, {"mapping": "5ecret"}, {"mapping": [[1]]}, {"mapping": [1.5, 2]}],
        *[{"replicate": -1}, {"replicate": "5ecret"}, {"replicate": True}],
        *[{"mapping": {}}, {"mapping": 10**30}, {"mapping": 5}, {"mapping": [10**30]}],
        {"schema": "rankveil/manifest/1"},
    ],
    ids=str,
)
def test_a_damaged_secret_is_refused_and_not_quoted(damage: dict[str, Any]) -> None:
    good = {"schema": "rankveil/secret/2", "seed": HEX, "original_fingerprint": "abc", "mapping": [2, 1]}
    good |= {"replicate": 0, "pseudonyms": "from the seed"}
    assert Secret.from_json(json.dumps(good)).order is not None
    with pytest.raises(rv.RankveilError) as caught:
        Secret.from_json(json.dumps({**good, **damage}))
    for hidden in ("5ecret", HEX, "abc"):
        assert hidden not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "5", '{"schema": 1}', f'{{"seed": "{HEX}"'])
def test_what_is_no_secret_or_manifest_is_refused(text: str) -> None:
    for kind in (Secret, Manifest):
        with pytest.raises(FileError, match="this is not a") as caught:
            kind.from_json(text)
        assert HEX not in str(caught.value)


@pytest.mark.parametrize("schema", ["rankveil/secret/1", "rankveil/secret/2"])
def test_a_secret_without_its_parts_is_damaged(schema: str) -> None:
    with pytest.raises(FileError, match="damaged"):
        Secret.from_json(json.dumps({"schema": schema}))


def test_an_old_secret_is_still_read(table: pa.Table) -> None:
    """As version 0.1.0 wrote it: its mapping counts, its fingerprint is of another kind and tells nothing now."""
    release = rv.mask(table, Plan.of("additive_noise").then("record_shuffle"), seed=HEX)
    assert release.secret.order is not None
    mapping = (release.secret.order + 1).tolist()
    old = {"schema": "rankveil/secret/1", "seed": HEX, "original_fingerprint": "ab" * 32, "mapping": mapping}
    read = Secret.from_json(json.dumps(old))
    assert np.array_equal(read.order, release.secret.order)  # type: ignore[arg-type]
    assert (read.seed.reveal(), read.is_of(Table(table))) == (HEX, None)
    assert rv.audit(table, release.data, secret=read)["permutation_level"] < 0.2
    assert release.secret.is_of(Table(table)) is True
    assert release.secret.is_of(Table(table.slice(1))) is False


def test_the_fingerprint_tells_tables_apart(table: pa.Table) -> None:
    same = fingerprint(Table(table))
    assert same == fingerprint(Table(pa.table({name: table[name].to_pylist() for name in table.column_names})))
    as_text = pa.table({name: [str(cell) for cell in table[name].to_pylist()] for name in table.column_names})
    assert same == fingerprint(Table(as_text)), "a table is the same in a text file"
    others = [
        table.select(["B", "A", "T"]),
        table.rename_columns(["A", "B2", "T"]),
        table.slice(1),
        table.take([1, 0, *range(2, 40)]),
        table.set_column(2, "T", pa.array(["y", "x"] * 20)),
        table.set_column(0, "A", pa.array([None, *table["A"].to_pylist()[1:]], type=pa.float64())),
        table.set_column(0, "A", pa.array([0.0, *table["A"].to_pylist()[1:]])),
    ]
    prints = {fingerprint(Table(other)) for other in others}
    assert len(prints) == len(others)
    assert same not in prints


def test_a_short_seed_is_noted_as_fit_for_studies_only(table: pa.Table) -> None:
    assert any("fewer than 128 bits" in note for note in rv.mask(table, "permute", seed=1).notes)
    for seed in (HEX, None, Seed.fresh()):
        assert not any("128 bits" in note for note in rv.mask(table, "permute", seed=seed).notes)


def test_correct_recovers_the_moments_from_additive_noise() -> None:
    n, alpha, sd = 20_000, 0.8, 3.0
    rng = np.random.default_rng(1)
    a = rng.normal(10, 2, n)
    data = pa.table({"A": a, "B": 0.5 * a + rng.exponential(1, n)})
    release = rv.mask(data, "additive_noise", seed=2, **{"alpha": alpha, "sd.B": sd})
    made = rv.correct(release.data, release.manifest)
    truth = np.cov([data["A"].to_numpy(), data["B"].to_numpy()], bias=True)
    noise = [alpha * np.sqrt(truth[0, 0]), sd]
    for j, shrink in ((0, 1 + alpha**2), (1, 1.0)):
        spread = np.sqrt((4 * truth[j, j] * noise[j] ** 2 + 2 * noise[j] ** 4) / n) / shrink
        assert abs(made.covariance[j, j] - truth[j, j]) < SIGMAS * spread
        assert abs(made.released_covariance[j, j] - truth[j, j]) > 10 * SIGMAS * spread
    cross = np.sqrt((truth[0, 0] * noise[1] ** 2 + truth[1, 1] * noise[0] ** 2 + (noise[0] * noise[1]) ** 2) / n)
    assert abs(made.covariance[0, 1] - truth[0, 1]) < SIGMAS * cross
    assert np.all(np.abs(made.mean - [a.mean(), data["B"].to_numpy().mean()]) < SIGMAS * np.array(noise) / np.sqrt(n))


def test_correct_recovers_the_variance_from_multiplicative_noise() -> None:
    n, beta = 20_000, 0.6
    x = np.random.default_rng(1).normal(10, 2, n)
    release = rv.mask(pa.table({"A": x}), Plan.of("multiplicative_noise", beta=beta).then("record_shuffle"), seed=2)
    made = rv.correct(release.data, release.manifest.to_json())
    u2 = beta**2 / 3  # the variance of the factor u; that of u^2 is E u^4 - (E u^2)^2
    fourth = 1 + 6 * u2 + beta**4 / 5
    square = np.sqrt(np.mean(x**4) * (fourth - (1 + u2) ** 2) / n) / (1 + u2)
    spread = square + 2 * abs(x.mean()) * np.sqrt(np.mean(x**2) * u2 / n)
    assert abs(made.covariance[0, 0] - x.var()) < SIGMAS * spread
    assert made.released_covariance[0, 0] - x.var() > SIGMAS * spread


def test_counts_of_columns_that_were_masked_by_groups_say_so() -> None:
    data = pa.table({"HOME": [1, 1, 2, 2, 3, 3], "RENT": [5, 5, 9, 9, 7, 7], "AGE": [30, 90, 40, 95, 50, 99]})
    schema = rv.Schema(roles={"HOME": "group"})
    plan = Plan.of("top_bottom_code", columns=["RENT", "AGE"], **{"top.RENT": 8, "top.AGE": 80})
    (step,) = rv.mask(data, plan, schema=schema, seed=1).manifest["steps"]
    assert step["counts"]["RENT"]["top_coded"] == 1  # one home, of two records
    assert step["counts"]["AGE"]["top_coded"] == 3
    assert step["counts_of_groups"] == ["RENT"]
    (step,) = rv.mask(data, plan, seed=1).manifest["steps"]
    assert step["counts"]["RENT"]["top_coded"] == 2
    assert "counts_of_groups" not in step
