"""Tables at the edge: few records, nothing but words, columns without a value, people who are far from every record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankveil as rv
from rankveil.errors import FileError, TableError
from rankveil.intruder.finding import find_people
from rankveil.intruder.model import Model
from rankveil.intruder.nearly import loosen
from rankveil.plans import Plan, Step
from rankveil.table import Table

THREE = pd.DataFrame({"a": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize(
    "steps",
    [[Step("rank_swap", {"p": 20.0})], [Step("hohne_noise", {}), Step("reverse_map", {})]],
    ids=lambda steps: steps[0].method,
)
def test_nothing_is_certain_by_what_draws_happened_to_leave(steps: list[Step], masked: Callable[..., Any]) -> None:
    """A few repetitions may all be alike, and the release another."""
    wrong = []
    for seed in range(30):
        found = masked(THREE, Plan(tuple(steps)), seed=seed).attacked()
        wrong += [seed] * int(np.sum(found.right[found.certain] < 1))
    assert not wrong


@pytest.mark.parametrize(
    ("method", "parameters"),
    [("missing_swap", {}), ("additive_noise", {"alpha": 0.0}), ("rank_swap", {"p": 0.0}), ("sample", {"share": 1.0})],
)
def test_steps_that_change_nothing_leave_everybody_certain(
    method: str, parameters: dict[str, Any], masked: Callable[..., Any]
) -> None:
    table = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30.0) ** 2})
    assert masked(table, method, **parameters).attacked().certain.all()


@pytest.mark.parametrize("manifest", [True, False])
def test_a_sample_of_nothing_but_words(manifest: bool, masked: Callable[..., Any]) -> None:
    table = pd.DataFrame({"a": list("xyzxyzxy"), "b": list("aabbccdd")})
    found = masked(table, "sample", share=0.9).attacked(manifest=manifest)
    assert found.count == 7
    assert found.found == pytest.approx(7 if manifest else found.found)


def test_a_column_of_dates_without_any_is_left_alone() -> None:
    table = pd.DataFrame({"a": np.arange(20.0) ** 2, "when": pd.Series([pd.NaT] * 20, dtype="datetime64[ns]")})
    release = rv.mask(table, "additive_noise", seed=1)
    assert release.manifest.content["steps"][0]["columns"] == ["a"]
    assert rv.attack(table, release, draws=20).finding is not None


def test_people_whose_record_is_nowhere_near_have_none(masked: Callable[..., Any]) -> None:
    """The weight of having no record may be larger than that of any candidate by more than a number can hold."""
    table = pd.DataFrame({"a": np.random.default_rng(1).lognormal(10, 1, 30), "b": np.arange(30.0)})
    release = masked(table, Plan((Step("sample", {"share": 0.5}), Step("additive_noise", {"alpha": 1e-6}))))
    for people in (1.0, 0.6):
        found = release.attacked(people=people)
        assert found.share > 0.9
        assert abs(found.expected - found.found) < 4


def test_fewer_originals_than_released_records_are_no_fault_of_the_manifest(masked: Callable[..., Any]) -> None:
    """Of somebody whom he does not know there is a record with values that no original of his gives."""
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"a": rng.lognormal(8, 1, 60).round(), "b": rng.permutation(60) * 1.0})
    release = masked(table, "additive_noise", alpha=0.1, columns=["a"])
    some = find_people(
        Table(table.iloc[:40]),
        Table(release.data),
        manifest=release.manifest,
        truth=np.where(release.truth < 40, release.truth, -1),
    )
    assert (some.count, some.records, some.share) == (40, 60, 1.0)
    other = table.assign(b=table["b"] + 0.5)
    with pytest.raises(FileError, match="the manifest does not describe this release: column b"):
        find_people(Table(other), Table(release.data), manifest=release.manifest)


def test_a_table_without_records_has_nobody_to_find() -> None:
    empty = pd.DataFrame({"a": np.zeros(0)})
    some = pd.DataFrame({"a": np.arange(3.0)})
    for original, released, said in ((empty, empty, "original"), (some, empty, "release")):
        with pytest.raises(TableError, match=f"the {said} has no records"):
            rv.attack(original, released, mapping=False, draws=10)


def test_a_manifest_of_a_newer_version_says_so(masked: Callable[..., Any]) -> None:
    text = rv.mask(THREE, "round", seed=1).manifest.to_json()
    with pytest.raises(FileError, match="of another version of rankveil: its schema is rankveil/manifest/2"):
        rv.Manifest.from_json(text.replace("rankveil/manifest/1", "rankveil/manifest/2"))
    with pytest.raises(FileError, match="is not a manifest: its schema is not"):
        rv.Manifest.from_json(text.replace("rankveil/manifest/1", "rankveil/plan/1"))


def test_a_column_that_draws_changed_after_all_is_likely_and_no_key() -> None:
    x = np.array([1.0, 2.0, 3.0, np.nan])
    model = Model(4, {"a": x, "b": x}, likely={"a"})
    loosen(model, {"a": x[::-1], "b": x})
    assert (set(model.keys), model.parts) == ({"a", "b"}, [])  # as it was computed, in another order
    released = {"a": np.array([1.0, 2.0, 9.0, np.nan]), "b": x}
    loosen(model, released)
    assert (set(model.keys), model.likely) == ({"b"}, set())
    (part,) = model.parts
    weights = part.term(released).weights(np.array([0, 2, 3, 0]), np.array([0, 2, 3, 1]))
    assert (weights == 0).tolist() == [True, False, True, False]
    assert np.isfinite(weights).all()


@pytest.mark.parametrize(
    ("method", "parameters"),
    [("copula_swap", {"p": 0.5}), ("correlated_noise", {"gamma": 0.001}), ("hohne_noise", {"s": 0.01})],
)
def test_missing_cells_hide_no_values_of_columns_that_are_masked_together(
    method: str, parameters: dict[str, float]
) -> None:
    """Where cells are missing is evidence of its own, and the values that are there still tell."""
    people = rv.datasets.demo(300).select(["INCOME", "SAVINGS", "TAX"])
    release = rv.mask(people, method, seed=1, **parameters)
    assert rv.attack(people, release).found > 0.5
