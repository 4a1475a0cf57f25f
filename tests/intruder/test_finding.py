"""Who is found: releases whose truth is known, and tables at the edge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankveil as rv
from rankveil.errors import PairError, ParameterError
from rankveil.hierarchy import Hierarchy
from rankveil.intruder.finding import find_people
from rankveil.intruder.several import find_people_in
from rankveil.plans import Plan, Step
from rankveil.schema import Schema
from rankveil.table import Table

NO_BITS = ("low_bits",)


def _evidence(found: Any, name: str) -> Any:
    return next(each for each in found.evidence if each.id == name)


# -- calibration on Census, one method of each family: three standard deviations of a count around what he expects


@pytest.mark.parametrize(
    ("m", "method", "parameters", "least"),
    [
        (6, "additive_noise", {"alpha": 0.25}, 610),
        (13, "correlated_noise", {"gamma": 0.5}, 360),
        (4, "multiplicative_noise", {"beta": 0.3}, 300),
        (6, "hohne_noise", {"s": 0.3}, 480),
        (6, "microhybrid", {"k": 10}, 104),
        (3, "resample", {"t": 1}, 1080),
        (5, "rank_swap", {"p": 20.0}, 160),
        (3, "rank_swap", {"p": 10.0, "scheme": "window"}, 210),
        (5, "rank_swap", {"p": 5.0, "scheme": "pairs"}, 800),
        (5, "distance_swap", {"d": 20, "p": 10.0}, 960),
        (5, "copula_swap", {"p": 20.0}, 370),
        (13, "mdav", {"k": 5}, 216),
    ],
)
def test_bets_are_right_as_often_as_he_says(
    m: int,
    method: str,
    parameters: dict[str, Any],
    least: float,
    census: Callable[[int], pd.DataFrame],
    masked: Callable[..., Any],
) -> None:
    found = masked(census(m), method, **parameters).attacked(without=("low_bits", "structure"))
    assert found.calibrated or method == "mdav"
    assert found.found >= least - 1e-6
    spread = np.sqrt(np.sum(found.probability * (1 - found.probability)))
    assert abs(found.found - found.expected) <= max(0.05 * found.found, 4 * spread + 1)
    claimed = found.claimed
    if claimed.sum() > 100:
        assert 1 - found.right[claimed].mean() < 0.05 + 4 * np.sqrt(0.05 * 0.95 / claimed.sum())


def test_a_shuffled_table_gives_nobody_away_and_he_knows(
    census: Callable[[int], pd.DataFrame], masked: Callable[..., Any]
) -> None:
    found = masked(census(6), "permute").attacked()
    assert found.found == pytest.approx(1.0)
    assert found.expected == pytest.approx(1.0)
    assert not found.claimed.any()


# -- evidence beside the likelihood


def test_swaps_in_pairs_are_undone_with_ties_and_missing_cells(demo: pd.DataFrame, masked: Callable[..., Any]) -> None:
    swapped = masked(demo.iloc[:400], "rank_swap", p=20.0, scheme="pairs")
    for manifest in (True, False):
        found = swapped.attacked(manifest=manifest)
        assert found.certain.sum() >= 390, manifest
        assert found.right[found.certain].all()


@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("rank_swap", {"p": 30.0}),
        ("rank_swap", {"p": 30.0, "scheme": "window"}),
        ("distance_swap", {"d": 40, "p": 60.0}),
        ("copula_swap", {"p": 40.0}),
        ("shuffle", {}),
    ],
    ids=lambda given: given if isinstance(given, str) else given.get("scheme", ""),
)
def test_swaps_that_are_no_pairs_have_no_structure(
    method: str, parameters: dict[str, Any], manifest: bool, demo: pd.DataFrame, masked: Callable[..., Any]
) -> None:
    """Neither pairs nor logic say anything of them, and the bets are right as often as the likelihood says."""
    numbers = demo[["AGE", "HOURS", "INCOME", "TAX", "SAVINGS"]].dropna().iloc[:400].reset_index(drop=True)
    found = masked(numbers, method, **parameters).attacked(manifest=manifest)
    assert _evidence(found, "structure").certain == 0
    if manifest:
        assert found.certain.sum() <= 1
        spread = np.sqrt(np.sum(found.probability * (1 - found.probability)))
        assert abs(found.found - found.expected) <= max(0.05 * found.found, 4 * spread + 1)


def test_row_order_counts_for_files_whose_rows_are_sorted_by_a_column(people: Callable[..., pd.DataFrame]) -> None:
    table = people(200).sort_values("B", ignore_index=True)
    release = rv.mask(table, "additive_noise", alpha=20.0, seed=1, then=["round"])
    given: dict[str, Any] = {"manifest": release.manifest.content, "truth": np.arange(200), "seed": 5}
    ties = table["B"].nunique() / 200
    found = find_people(Table(table), Table(release.data), ordered=True, **given)
    assert _evidence(found, "row_order").to_dict() == {
        "id": "row_order",
        "found": pytest.approx(ties),
        "certain": 0,
        "why": "column B is sorted by row",
    }
    assert found.share >= ties - 1e-9
    memory = find_people(Table(table), Table(release.data), **given)
    assert "row_order" not in [each.id for each in memory.evidence]
    assert memory.share < 0.1
    shuffled = table.sample(frac=1, random_state=1, ignore_index=True)
    release = rv.mask(shuffled, "additive_noise", alpha=20.0, seed=1, then=["round"])
    given["manifest"] = {**release.manifest.content}
    unsorted = find_people(Table(shuffled), Table(release.data), ordered=True, **given)
    assert "row_order" not in [each.id for each in unsorted.evidence]
    given["manifest"]["row_order"] = "kept"
    told = find_people(Table(shuffled), Table(release.data), **given)
    assert (told.share, told.certain.sum()) == (1.0, 200)


# -- several releases


def test_several_releases_average_their_noise(census: Callable[[int], pd.DataFrame]) -> None:
    table = census(6).iloc[:500]
    rows = np.random.default_rng(3).permutation(len(table))
    every = list(table)  # the weights, too
    releases = [rv.mask(table, "additive_noise", columns=every, alpha=1.0, seed=k) for k in range(4)]
    tables = [Table(each.data.iloc[rows].reset_index(drop=True)) for each in releases]
    manifests = [each.manifest.content for each in releases]
    given: dict[str, Any] = {"without": NO_BITS, "seed": 9}
    four = find_people_in(Table(table), tables, manifests=manifests, truths=[rows] * 4, **given)
    one = find_people_in(Table(table), tables[:1], manifests=manifests[:1], truths=[rows], **given)
    half = rv.mask(table, "additive_noise", columns=every, alpha=0.5, seed=50)
    less = find_people(
        Table(table),
        Table(half.data.iloc[rows].reset_index(drop=True)),
        manifest=half.manifest.content,
        truth=rows,
        **given,
    )
    assert four.found > 2 * one.found
    assert four.found > less.found - 3 * np.sqrt(2 * less.found)
    assert abs(four.expected - four.found) < 4 * np.sqrt(four.found)


def test_releases_in_orders_of_their_own_are_attacked_alone_unless_a_key_joins_them(
    people: Callable[..., pd.DataFrame],
) -> None:
    table = people(200).assign(KEY=[f"k{i}" for i in range(200)])
    orders = [np.random.default_rng(k).permutation(200) for k in range(2)]
    named: dict[str, Any] = {"columns": list("ABCD"), "release_identifiers": ["KEY"]}
    made = [rv.mask(table, "additive_noise", alpha=0.5, seed=k, **named) for k in range(2)]
    tables = [Table(each.data.iloc[rows].reset_index(drop=True)) for each, rows in zip(made, orders, strict=True)]
    given: dict[str, Any] = {
        "manifests": [each.manifest.content for each in made],
        "truths": orders,
        "columns": list("ABCD"),
        "without": NO_BITS,
        "seed": 2,
    }
    alone = find_people_in(Table(table), tables, **given)
    assert [each.id for each in alone.evidence] == ["release 1", "release 2"]
    assert set(np.unique(alone.release)) == {0, 1}
    joined = find_people_in(Table(table), tables, key="KEY", **given)
    assert joined.release is None
    assert joined.found > alone.found
    with pytest.raises(PairError, match="release 1 has no column NAME"):
        find_people_in(Table(table), tables, key="NAME", **given)
    with pytest.raises(ParameterError, match="at least one release"):
        find_people_in(Table(table), [])


# -- what he knows


def test_he_may_know_some_of_the_people_only(census: Callable[[int], pd.DataFrame], masked: Callable[..., Any]) -> None:
    release = masked(census(13), "additive_noise", alpha=0.25)
    half, tenth = (release.attacked(people=share, without=NO_BITS) for share in (0.5, 0.1))
    assert half.count == 540
    assert half.share > 0.79 - 3 * np.sqrt(0.79 * 0.21 / 540)
    assert tenth.share > 0.75 - 3 * np.sqrt(0.75 * 0.25 / 108)
    for found in (half, tenth):
        assert abs(found.expected - found.found) < 4 * np.sqrt(found.found)
    with pytest.raises(ParameterError, match="people must be a share"):
        release.attacked(people=0.0)


@pytest.mark.parametrize("role", ["weight", "confidential"])
@pytest.mark.parametrize("noisy", [False, True])
def test_weights_that_were_multiplied_are_as_the_manifest_says(role: str, noisy: bool) -> None:
    """However he reads the column: weights of a sample of a third are three times the original's."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"weight": rng.permutation(90) + 200, "income": rng.normal(3e4, 1e4, 90).round(2)})
    noise = Step("additive_noise", {"alpha": 0.2}, columns=["weight", "income"] if noisy else ["income"])
    for masked_as in ("weight", "confidential"):
        schema = {"roles": {"weight": masked_as, "income": "confidential"}}
        release = rv.mask(people, Plan((noise, Step("sample", {"share": 1 / 3}))), seed=4, schema=schema)
        assert ("weights" in release.manifest["steps"][1]) == (masked_as == "weight")
        made = rv.attack(people, release, draws=100, schema={"roles": {"weight": role, "income": "confidential"}})
        assert made.finding is not None
        assert made.finding.notes == ()
        spread = np.sqrt(np.sum(made.finding.probability * (1 - made.finding.probability)))
        assert abs(made.finding.found - made.finding.expected) <= 4 * spread + 1
        if noisy:
            assert made.finding.found >= 5
        else:
            assert (made.finding.found, made.certain) == (30, 30)


def test_fewer_columns_tell_less(census: Callable[[int], pd.DataFrame], masked: Callable[..., Any]) -> None:
    table = census(6).iloc[:400]
    release = masked(table, "additive_noise", alpha=0.25)
    some = release.attacked(knows=list(table)[:3], without=NO_BITS)
    assert some.columns == tuple(table)[:3]
    assert some.found < 0.5 * release.attacked(without=NO_BITS).found
    with pytest.raises(ParameterError, match="knows: NAME is no column"):
        release.attacked(knows=["NAME"])
    with pytest.raises(ParameterError, match="without: luck is no evidence"):
        release.attacked(without=["luck"])


def test_a_sample_and_a_release_with_more_records(
    people: Callable[..., pd.DataFrame], masked: Callable[..., Any]
) -> None:
    table = people(300)
    sampled = masked(table, Plan((Step("additive_noise", {"alpha": 0.02}), Step("sample", {"share": 0.5}))))
    found = sampled.attacked()
    assert found.count == 150
    assert found.share > 0.8
    release = masked(table, "additive_noise", alpha=0.02)
    some = find_people(
        Table(table.iloc[:100]),
        Table(release.data),
        manifest=release.manifest,
        truth=np.where(release.truth < 100, release.truth, -1),
        seed=1,
    )
    assert (some.count, some.records) == (100, 300)
    assert some.share > 0.7
    assert not some.certain.any()


# -- without a manifest


@pytest.mark.parametrize(("m", "alpha", "within"), [(13, 0.25, 0.05), (6, 1.0, 0.1)])
def test_noise_is_learned(
    m: int, alpha: float, within: float, census: Callable[[int], pd.DataFrame], masked: Callable[..., Any]
) -> None:
    """What is learned varies from seed to seed: by 3 % (one standard deviation) where the noise is strong."""
    release = masked(census(m).iloc[:500], "additive_noise", alpha=alpha)
    learned = release.attacked(manifest=False, without=NO_BITS)
    assert np.sqrt(np.mean(np.square(list(learned.learned.values())))) == pytest.approx(alpha, rel=within)
    told = release.attacked(without=NO_BITS)
    assert learned.found > told.found - 3 * np.sqrt(told.found)


def test_an_untouched_column_is_recognised_even_alone(
    census: Callable[[int], pd.DataFrame], masked: Callable[..., Any]
) -> None:
    table = census(5)
    found = masked(table, "additive_noise", alpha=0.5, columns=list(table)[:4]).attacked(manifest=False)
    assert found.found == found.certain.sum() == 1080
    # swapped alone it is none, however near its values stay to their places
    plan = Plan(
        (
            Step("additive_noise", {"alpha": 0.5}, {}, list(table)[:4]),
            Step("rank_swap", {"p": 1.0}, {}, list(table)[4:]),
        )
    )
    assert not masked(table, plan).attacked(manifest=False).certain.any()


@pytest.fixture(scope="module")
def adult(reference_data: Callable[[str], Any]) -> tuple[Table, pd.DataFrame, dict[str, Hierarchy]]:
    """Adult and the hierarchies of ARX."""
    folder = reference_data("census").parent / "peers" / "arx-adult"
    if not folder.exists():
        pytest.skip("Adult and its hierarchies do not lie in ../shared/data/peers/arx-adult beside the project")
    table = pd.read_csv(folder / "adult.csv.gz", sep=";")
    trees = {name: Hierarchy.from_csv(folder / "hierarchies" / f"adult_hierarchy_{name}.csv") for name in table}
    return Table(table, schema=Schema(hierarchies=trees)), table, trees


def _raised(table: pd.DataFrame, trees: dict[str, Hierarchy], levels: dict[str, int]) -> pd.DataFrame:
    """Columns with their values at levels of their hierarchies."""
    return table.assign(
        **{
            name: table[name].astype(str).map({str(value): trees[name].level(str(value), level) for value in values})
            for name, level in levels.items()
            for values in [table[name].unique()]
        }
    )


_LEVELS = {"age": 2, "marital-status": 1, "education": 1, "native-country": 1, "workclass": 1, "occupation": 1}


def test_adult_at_levels_of_hierarchies_is_recomputed_with_and_without_a_manifest(
    adult: tuple[Table, pd.DataFrame, dict[str, Hierarchy]],
) -> None:
    original, table, trees = adult
    rows = np.random.default_rng(4).permutation(len(table))
    data = Table(_raised(table, trees, _LEVELS).iloc[rows].reset_index(drop=True))
    steps = [
        {"method": "recode", "columns": [name], "parameters": {"level": level}, "per_column": {}}
        for name, level in _LEVELS.items()
    ]
    for manifest in ({"steps": steps}, None):
        found = find_people(original, data, manifest=manifest, truth=rows, seed=1)
        assert found.certain.sum() == found.claimed.sum() == 1218
        assert found.right[found.certain].all()
        assert found.expected == pytest.approx(found.found)


def test_mixed_levels_and_suppressed_cells_are_what_is_compatible(
    adult: tuple[Table, pd.DataFrame, dict[str, Hierarchy]],
) -> None:
    """Some records at another level, some cells suppressed: every true link stays possible and most others do not."""
    _, whole, trees = adult
    table = whole.iloc[:600].reset_index(drop=True)
    original = Table(table, schema=Schema(hierarchies=trees))
    low, high = _raised(table, trees, {**_LEVELS, "age": 1}), _raised(table, trees, _LEVELS)
    rng = np.random.default_rng(5)
    mixed = low.where(pd.Series(rng.random(600) < 0.5), high)
    mixed.loc[rng.random(600) < 0.2, "education"] = "*"
    mixed.loc[rng.random(600) < 0.2, "salary-class"] = None
    rows = rng.permutation(600)
    found = find_people(original, Table(mixed.iloc[rows].reset_index(drop=True)), truth=rows, seed=1)
    coarse = find_people(original, Table(high.iloc[rows].reset_index(drop=True)), truth=rows, seed=1)
    assert found.found > 0.6 * coarse.found
    assert found.right[found.certain].all()


def test_bands_whose_labels_lie_are_not_believed() -> None:
    """Bands that hold other numbers than their labels say give nothing away as certain."""
    ages = np.arange(20, 60)
    table = pd.DataFrame({"AGE": ages, "GROUP": np.repeat(list("abcd"), 10)})
    wrong = pd.DataFrame({"AGE": [f"{(age - 1) // 10 * 10}-{(age - 1) // 10 * 10 + 9}" for age in ages]})
    wrong["GROUP"] = table["GROUP"]
    found = find_people(Table(table), Table(wrong), truth=np.arange(40), seed=1)
    assert not found.certain.any()
    assert found.expected == pytest.approx(found.found)


def test_pram_is_learned(demo: pd.DataFrame, masked: Callable[..., Any]) -> None:
    coded = ["SEX", "REGION", "SECTOR", "EDUCATION"]
    table = demo[[*coded, "AGE", "HOURS"]].iloc[:400]
    found = masked(table, "pram", p=0.2, columns=coded).attacked(manifest=False)
    assert found.found > 0.7 * masked(table, "pram", p=0.2, columns=coded).attacked().found
    assert found.calibrated


# -- tables at the edge


@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize("records", [1, 2, 3, 7, 19])
def test_few_records(
    records: int, manifest: bool, people: Callable[..., pd.DataFrame], masked: Callable[..., Any]
) -> None:
    table = people(40).iloc[:records]
    same = masked(table, "identity").attacked(manifest=manifest)
    assert (same.found, same.certain.sum()) == (records, records)
    noisy = masked(table, "additive_noise", alpha=0.001).attacked(manifest=manifest)
    assert noisy.found == records


@pytest.mark.parametrize("manifest", [True, False])
@pytest.mark.parametrize(
    "method",
    ["additive_noise", "rank_swap", "resample", "hohne_noise", "shuffle", "microhybrid", "multiplicative_noise"],
)
def test_constant_tables_tell_nothing(method: str, manifest: bool, masked: Callable[..., Any]) -> None:
    table = pd.DataFrame({"A": [5.0] * 50, "B": [3] * 50})
    found = masked(table, method).attacked(manifest=manifest)
    assert found.found == pytest.approx(1.0)
    assert found.expected == pytest.approx(1.0)
    assert not found.certain.any()


def test_equal_records_share_a_bet(masked: Callable[..., Any]) -> None:
    table = pd.DataFrame({"A": [1.0] * 4999 + [2.0], "B": ["x"] * 5000})
    found = masked(table, "identity").attacked()
    assert found.found == pytest.approx(2.0)
    assert found.certain.sum() == 1
