"""How probable it is that a released record is hers: known truths, calibration, what a manifest may lack."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.errors import ParameterError
from rankveil.people.laws import Laws
from rankveil.people.recognition import Cells, Recogniser, percent
from rankveil.table import Table

CATEGORIES = ["SEX", "REGION", "SECTOR", "EDUCATION"]


def demo(*columns: str) -> pd.DataFrame:
    return rv.datasets.demo().to_pandas()[list(columns)]


def small() -> pa.Table:
    return pa.table({"a": [1.0, 2.0, 2.0, 3.0], "b": [5, 6, 6, 9], "c": ["x", "y", "y", "x"]})


def released(data: Any, method: str, **how: Any) -> rv.Release:
    return rv.mask(data, method, seed=7, **how)


def test_a_unique_record_that_was_not_masked_is_hers() -> None:
    release = released(small(), "identity", columns=["a"])
    found = rv.verify(release.data, {"a": 1.0, "b": 5, "c": "x"}, manifest=release.manifest)
    assert found.probability == 1
    assert found.recognition.sentence == "Your values stand in this release once, unmasked: this record is yours."
    plain = found.to_dict()
    assert (plain["probability"], plain["candidates"], plain["likeliest"]) == (1, 1, [1])
    assert plain["record_probability"] == 1


def test_equal_records_share_the_probability() -> None:
    release = released(small(), "identity", columns=["a"])
    found = rv.verify(release.data, {"a": 2, "b": 6}, manifest=release.manifest).to_dict()
    assert (found["probability"], found["likeliest"]) == (0.5, [2, 3])
    assert found["candidates"] == pytest.approx(2)
    assert found["sentence"] == (
        "Your values stand in this release in 2 records, unmasked: each of them is yours with probability 50 %."
    )


def test_nobody_can_be_her_where_an_untouched_value_is_nowhere() -> None:
    release = released(small(), "identity", columns=["a"])
    found = rv.verify(release.data, {"a": 1, "b": 6}, manifest=release.manifest).to_dict()
    assert (found["probability"], found["candidates"], found["likeliest"]) == (0, 0, [])
    assert "none of the 4 released records can be yours" in found["sentence"]


def test_without_a_manifest_only_exact_values_tell() -> None:
    found = rv.verify(small(), {"a": 2, "b": 6}).to_dict()
    assert (found["probability"], found["likeliest"]) == (0.5, [2, 3])
    assert "unless the release was masked, each of them is yours with probability 50 %" in found["sentence"]
    once = rv.verify(small(), {"a": 3, "c": "x"}).to_dict()
    assert (once["probability"], once["likeliest"]) == (1, [4])
    assert once["sentence"].endswith("unless it was masked, this record is yours.")
    none = rv.verify(small(), {"a": 3, "b": 5}).to_dict()
    assert (none["probability"], none["candidates"], none["record_probability"]) == (None, None, None)
    assert "there is no manifest" in none["sentence"]


def test_large_whole_numbers_are_not_taken_for_each_other() -> None:
    table = pa.table({"id": [1_000_000_000, 1_000_000_001]})
    assert rv.verify(table, {"id": 1_000_000_001}).to_dict()["likeliest"] == [2]


def test_one_record() -> None:
    release = released(pa.table({"a": [4.0]}), "additive_noise", sd=2.0)
    found = rv.verify(release.data, {"a": 4.0}, manifest=release.manifest)
    assert (found.probability, found.recognition.candidates) == (1, 1)


@pytest.mark.parametrize(
    ("method", "how", "mine"),
    [
        ("round", {"decimals": -1}, 31.0),
        ("top_bottom_code", {"top": 30.0}, 31.0),
        ("clip", {"lower": 0.0, "upper": 30.0}, 31.0),
    ],
)
def test_what_she_can_apply_to_her_own_value(method: str, how: dict[str, Any], mine: float) -> None:
    table = pa.table({"a": [10.0, 20.0, 31.0], "b": [1.0, 2.0, 3.0]})
    plan = rv.Plan.of("identity", columns=["a"]).then(method, **how) if method != "top_bottom_code" else None
    release = rv.mask(table, plan, seed=1) if plan else released(table, method, columns=["a"], **how)
    assert release.data.column("a").to_pylist()[2] == 30
    found = rv.verify(release.data, {"a": mine}, manifest=release.manifest).to_dict()
    assert (found["probability"], found["likeliest"]) == (1, [3])
    assert found["sentence"] == "With probability 100 % this record is yours."


def test_bands_by_width_are_computed_from_her_value() -> None:
    release = released(pa.table({"a": [1.0, 7.0, 12.0, 13.0]}), "recode", columns=["a"], width=5.0)
    found = rv.verify(release.data, {"a": 12.5}, manifest=release.manifest).to_dict()
    assert (found["probability"], found["likeliest"]) == (0.5, [3, 4])


def test_noise_is_weighed_by_its_density_and_by_how_common_records_are() -> None:
    """Two clusters of known density: her two candidates are as near as each other, one of them in a crowd."""
    rng = np.random.default_rng(0)
    crowd = rng.normal(0, 0.3, 400)
    y = np.concatenate([[1.0, 3.0], crowd])
    manifest = released(pa.table({"a": y}), "additive_noise", sd=0.5).manifest
    seen = Recogniser(
        [cells(Table(pa.table({"a": y})), "a", manifest)], Laws(manifest.content, Table(pa.table({"a": y})))
    )
    chances = seen.of([2.0]).chances
    assert chances is not None
    assert chances[1] > chances[0] > 0  # 3 is as near to 2 as 1 is, but a record at 1 may more often be another's


def cells(table: Table, name: str, manifest: rv.Manifest) -> Cells:
    return Cells(name, table.values(name), bool(table.labels(name)), Laws(manifest.content, table).law(name))


def test_what_depends_on_others_is_named_and_left_out() -> None:
    data = demo("AGE", "INCOME", "SAVINGS").dropna().reset_index(drop=True)
    release = released(data, "mdav", columns=["INCOME", "SAVINGS"])
    mine = {name: data[name][3].item() for name in data}
    found = rv.verify(release.data, mine, manifest=release.manifest).to_dict()
    same = int((data["AGE"] == mine["AGE"]).sum())
    assert found["probability"] == pytest.approx(1 / same)
    assert found["sentence"].endswith("INCOME, SAVINGS may tell more, which cannot be computed from your record alone.")
    assert any("column INCOME was not used: microaggregation" in note for note in found["notes"])
    none = rv.verify(release.data, {"INCOME": mine["INCOME"]}, manifest=release.manifest).to_dict()
    assert none["probability"] is None
    assert "cannot be told" in none["sentence"]


def test_permuted_values_say_nothing() -> None:
    release = released(demo("INCOME").dropna(), "permute")
    found = rv.verify(release.data, {"INCOME": 21555}, manifest=release.manifest).to_dict()
    assert found["probability"] == pytest.approx(1 / len(release.data))
    assert found["candidates"] == pytest.approx(len(release.data))


def test_synthetic_records_are_nobodys() -> None:
    release = released(demo("AGE", "INCOME").dropna(), "ipso", columns=["INCOME"], given=("AGE",))
    found = rv.verify(release.data, {"AGE": 35}, manifest=release.manifest).to_dict()
    assert found["probability"] is None
    assert "do not correspond to people" in found["sentence"]


def test_who_may_not_be_in_the_release_is_less_sure() -> None:
    data = pa.table({"a": np.arange(100.0) + 0.5})
    release = released(data, "sample", share=0.25)
    mine = release.data.column("a").to_pylist()[0]
    found = rv.verify(release.data, {"a": mine}, manifest=release.manifest).to_dict()
    assert found["probability"] == pytest.approx(len(release.data) / 100)
    assert "with probability 25 %" in found["sentence"]


def test_suppressed_cells_may_be_hers() -> None:
    table = pa.table({"a": ["x", "x", "y", "y", "y", None], "b": [1, 1, 2, 2, 2, 1]})
    whole = pa.table({"a": ["x", "x", "x", "y", "y", "y"], "b": [1, 1, 1, 2, 2, 2]})
    manifest = released(whole, "suppress", columns=["a", "b"], k=2).manifest
    hidden = json.loads(manifest.to_json())
    found = rv.verify(table, {"a": "x", "b": 1}, manifest=hidden).to_dict()
    # equal: one over the share of (x, 1) among complete records, 5 / 2; hidden: over that of b = 1, 6 / 3
    assert found["probability"] == pytest.approx(2.5 / (2.5 + 2.5 + 2))
    assert found["likeliest"] == [1, 2]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"records": {"in": 9, "out": 9}}, "of another release: it tells of 9 records, the table has 4"),
        ({"steps": "none"}, "the manifest is damaged"),
        ({"steps": [{"method": "teleport", "columns": ["a"], "parameters": {}}]}, "may be of another version"),
        ({"steps": [{"method": "identity", "columns": ["a"], "parameters": {"p": 1}}]}, "another version|damaged"),
    ],
)
def test_a_manifest_that_cannot_be_used(change: dict[str, Any], words: str) -> None:
    release = released(small(), "identity", columns=["a"])
    with pytest.raises(ParameterError, match=words):
        rv.verify(release.data, {"a": 1}, manifest={**release.manifest.content, **change})


def test_a_column_that_the_manifest_does_not_know() -> None:
    release = released(small().select(["a"]), "identity")
    found = rv.verify(small(), {"b": 5}, manifest=release.manifest).to_dict()
    assert found["probability"] is None
    assert "column b was not used: the manifest does not tell of it" in found["notes"]


def test_percent() -> None:
    assert [percent(p) for p in (0.0, 0.004, 0.055, 0.994, 0.996, 1.0)] == [
        "less than 1 %",
        "less than 1 %",
        "6 %",
        "99 %",
        "more than 99 %",
        "100 %",
    ]


def correlated(size: int = 600) -> pd.DataFrame:
    """Three columns that depend on each other, positive and skewed as amounts of money are."""
    rng = np.random.default_rng(5)
    common = rng.normal(size=size)
    return pd.DataFrame({name: np.exp(10 + 0.6 * common + 0.5 * rng.normal(size=size)) for name in "abc"})


def as_released(original: Table, table: Table, name: str) -> np.ndarray:
    """The original values, categories by their codes in the release."""
    values, labels = original.values(name), original.labels(name)
    return np.array([table.labels(name).index(labels[int(code)]) for code in values]) if labels else values


CALIBRATED = [
    ("additive_noise", {"alpha": 0.1}, ()),
    ("correlated_noise", {"gamma": 0.05}, ()),
    ("multiplicative_noise", {"beta": 0.2}, ()),
    ("laplace_dp", {"epsilon": 60.0, "lower": 0.0, "upper": 60_000.0, "fast": True}, ()),
    ("rank_swap", {"p": 5.0, "scheme": "pairs"}, ()),
    ("pram", {"p": 0.1}, CATEGORIES),
    ("randomized_response", {"p": 0.8}, CATEGORIES),
]


@pytest.mark.parametrize(("method", "how", "columns"), CALIBRATED, ids=[each[0] for each in CALIBRATED])
def test_probabilities_are_right_as_often_as_they_say(method: str, how: dict[str, Any], columns: Any) -> None:
    """Over 400 people the mean probability of the likeliest record is the share that is right, to three errors."""
    data = demo(*columns).dropna().reset_index(drop=True) if columns else correlated()
    release = released(data, method, columns=list(data), **how)
    original, table = Table(data), Table(release.data)
    assert release.secret.order is None
    laws = Laws(release.manifest.content, table)
    seen = Recogniser([cells(table, name, release.manifest) for name in data], laws)
    values = np.column_stack([as_released(original, table, name) for name in data])
    expected, right = [], []
    for i in range(0, len(data), max(1, len(data) // 400)):
        found = seen.of(values[i].tolist())
        assert found.probability is not None
        expected.append(found.probability)
        right.append((i in found.likeliest) / len(found.likeliest))
    p = np.array(expected)
    error = np.sqrt(np.sum(p * (1 - p))) / p.size
    assert 0.02 < p.mean() < 0.98
    assert abs(p.mean() - np.mean(right)) < 3 * error
