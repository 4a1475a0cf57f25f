"""Recoded columns are compared at the level at which they were released."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.levels import told_apart

TOWNS = ["Ulm", "Bonn", "Köln", "Kiel"]
TREE = [("Ulm", "South", "*"), ("Bonn", "West", "*"), ("Köln", "West", "*"), ("Kiel", "North", "*")]
RANKED = ["permutation_level", "spearman_risk", "total_variation", "table_cells"]


def people(n: int = 240) -> dict[str, Any]:
    rng = np.random.default_rng(8)
    age = rng.integers(18, 90, n).astype(float)
    grade = np.array(["low", "middle", "high"])[rng.integers(0, 3, n)]
    return {"TOWN": rng.choice(TOWNS, n), "AGE": age, "GRADE": grade, "PAY": age * 10 + rng.normal(0, 5, n)}


def audited(before: Any, after: Any, *, tree: bool = False, measures: Any = RANKED, **more: Any) -> Any:
    schema = rv.Schema(
        hierarchies={"TOWN": rv.Hierarchy(TREE)} if tree else None,
        levels={"GRADE": ("low", "middle", "high")},
    )
    more = {"columns": list(before), **more}
    return rv.audit(pa.table(before), pa.table(after), measures=measures, schema=schema, **more)


def level_of(made: Any, name: str) -> float:
    return float(made.values["permutation_level"].details["per_attribute"][name])


def test_groups_of_a_hierarchy_are_no_permutation() -> None:
    before = people()
    groups = {leaf: group for leaf, group, _ in TREE}
    after = {**before, "TOWN": [groups[town] for town in before["TOWN"]]}
    made = audited(before, after, tree=True)
    assert level_of(made, "TOWN") == 0.0
    assert made.values["total_variation"].details["per_attribute"]["TOWN"] == 0.0
    assert made["table_cells"] == 1.0
    assert any("in groups: TOWN" in note for note in made.notes)
    without = audited(before, after, tree=True, mapping=False, measures=["total_variation", "table_cells"])
    assert without["table_cells"] == 1.0


def test_groups_that_nobody_described_are_told_by_the_records() -> None:
    before = people()
    after = {**before, "TOWN": np.where(np.isin(before["TOWN"], ["Ulm", "Kiel"]), "other", before["TOWN"])}
    assert level_of(audited(before, after), "TOWN") == 0.0
    turned = {**after, "TOWN": after["TOWN"][::-1]}  # no function of the original any more
    made = audited(before, turned)
    assert level_of(made, "TOWN") > 0.1
    assert not any("in groups" in note for note in made.notes)


def test_cells_that_were_recoded_farther_than_others_stay_as_they_are() -> None:
    before = people()
    town = before["TOWN"].copy().astype(object)
    town[:50] = "*"
    made = audited(before, {**before, "TOWN": town}, tree=True)
    assert not any("in groups" in note for note in made.notes)


def test_bands_of_numbers_and_groups_of_levels() -> None:
    before = people()
    bands = [f"[{int(age) // 10 * 10},{int(age) // 10 * 10 + 10})" for age in before["AGE"]]
    grades = np.where(before["GRADE"] == "high", "high", "low to middle")
    made = audited(before, {**before, "AGE": bands, "GRADE": grades})
    assert level_of(made, "AGE") == 0.0
    assert level_of(made, "GRADE") == 0.0
    assert made["table_cells"] == 1.0
    assert made.values["spearman_risk"].details["per_attribute"]["AGE"] == pytest.approx(1.0)
    assert any("ranks are those of the bands in which they were released: AGE" in note for note in made.notes)
    # the values themselves are another matter
    losses = audited(before, {**before, "AGE": bands, "GRADE": grades}, measures=["loss_values_mae", "mean_shift"])
    assert losses["loss_values_mae"] > 0.0
    assert losses["mean_shift"] > 0.0


def test_bands_that_overlap_or_were_swapped_are_seen() -> None:
    before = people()
    bands = np.array([f"[{int(age) // 10 * 10},{int(age) // 10 * 10 + 10})" for age in before["AGE"]])
    assert level_of(audited(before, {**before, "AGE": bands[::-1]}), "AGE") > 0.2
    wide = bands.astype(object)
    wide[:100] = "[10,90)"
    made = audited(before, {**before, "AGE": wide})
    assert not any("ranks are those of the bands" in note for note in made.notes)


def test_the_audit_of_a_recoded_release_by_our_own_method() -> None:
    before = {name: column for name, column in people().items() if name in ("AGE", "PAY")}
    release = rv.mask(pa.table(before), "recode", columns=["AGE"], cuts=["30", "50", "70"])
    schema = rv.Schema(roles=dict.fromkeys(before, "quasi-identifier"))
    made = rv.audit(pa.table(before), release, measures=["permutation_level", "ncp"], schema=schema)
    assert level_of(made, "AGE") == 0.0
    low, high = before["AGE"].min(), before["AGE"].max()
    ends = [low, 30, 50, 70, high]
    counts = np.histogram(before["AGE"], [-np.inf, 30, 50, 70, np.inf])[0]
    wanted = np.sum(counts * np.diff(ends)) / (high - low) / len(before["AGE"])
    assert made.values["ncp"].details["per_attribute"] == {"AGE": pytest.approx(wanted), "PAY": 0.0}


def test_original_values_come_back_by_reverse_mapping() -> None:
    before = people()
    groups = {leaf: group for leaf, group, _ in TREE}
    after = {**before, "TOWN": [groups[town] for town in before["TOWN"]]}
    schema = rv.Schema(hierarchies={"TOWN": rv.Hierarchy(TREE)})
    made = rv.reverse_map(pa.table(before), pa.table(after), schema=schema, columns=["TOWN"])
    assert sorted(made["TOWN"].to_pylist()) == sorted(before["TOWN"].tolist())


def test_a_value_beside_two_is_no_group() -> None:
    assert told_apart(np.array([1.0, 1.0]), np.array([2.0, 3.0])) is None
    assert told_apart(np.array([np.nan]), np.array([2.0])) is None
