"""Pseudonyms: keyed, the same for the same value, different for different ones, and made again by the seed alone."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.categories import nominal
from rankveil.manifest import fingerprint
from rankveil.masking import release_key
from rankveil.methods.pseudonymise import pseudonymise
from rankveil.seeds import Seed
from rankveil.table import Table

SEED = "5eed" * 16


def labels_of(made: Any) -> list[str]:
    return [made.levels[int(code)] for code in made.values]


def test_five_records() -> None:
    people = nominal(["ann", "bob", "cid"], np.array([2.0, 2.0, 1.0]))
    made = pseudonymise(np.array([0.0, 1.0, 2.0, 0.0, 1.0]), categories=people, rng=Seed.of(3).stream("a"))
    key = Seed.of(3).stream("a").key()
    expected = [hmac.new(key, name.encode(), hashlib.sha256).hexdigest()[:16] for name in people.labels]
    assert labels_of(made) == [expected[code] for code in (0, 1, 2, 0, 1)]
    assert "who has it can compute that of every value" in made.notes[0]


def test_who_has_the_seed_can_undo_it_and_another_seed_is_another_key() -> None:
    data = pa.table({"PERSON": ["ann", "bob", "ann", None], "CITY": ["ann", "x", "y", "y"]})
    made = rv.mask(data, "pseudonymise", columns=["PERSON", "CITY"], seed=SEED).data
    plan, told = rv.Plan.of("pseudonymise", columns=["PERSON", "CITY"]), fingerprint(Table(data))
    of_release = release_key(Seed.of(SEED), Table(data), plan, fingerprint=told)
    key = of_release.stream("mask", 0, "pseudonymise", "PERSON", 0).key()
    known = {hmac.new(key, name.encode(), hashlib.sha256).hexdigest()[:16]: name for name in ("ann", "bob")}
    assert [known.get(cell) for cell in made["PERSON"].to_pylist()] == ["ann", "bob", "ann", None]
    assert made["PERSON"].to_pylist()[3] is None
    assert made["CITY"].to_pylist()[0] not in known  # each column has its own key
    other = rv.mask(data, "pseudonymise", columns=["PERSON"], seed="ab" * 32).data
    assert set(other["PERSON"].to_pylist()).isdisjoint(known)


def test_pseudonyms_with_a_key_of_their_own_are_stable_over_waves_and_no_others_are() -> None:
    waves = [
        pa.table({"PERSON": ["ann", "bob", "cid"], "AGE": [31, 44, 52]}),
        pa.table({"CITY": ["x", "y"], "AGE": [45, 32], "PERSON": ["bob", "ann"]}),
    ]
    plans = [
        rv.Plan.of("pseudonymise", columns=["PERSON"]),
        rv.Plan.of("additive_noise", columns=["AGE"]).then("pseudonymise", columns=["PERSON"]),
    ]
    cut = dict(zip(waves[0]["PERSON"].to_pylist(), range(3), strict=True))
    for key, stable in ((SEED, True), (None, False)):
        first, second = (
            rv.mask(data, plan, seed=SEED, pseudonym_key=key, replicate=k)
            for k, (data, plan) in enumerate(zip(waves, plans, strict=True))
        )
        names = first.data["PERSON"].to_pylist()
        expected = [names[cut["bob"]], names[cut["ann"]]]
        assert (second.data["PERSON"].to_pylist() == expected) is stable
        assert (len({*names, *second.data["PERSON"].to_pylist()}) == 3) is stable
        for release in (first, second):
            said = [note for note in release.notes if "pseudonyms" in note and "key of their own" in note]
            assert ("--key-file" in said[0]) is not stable
            secret = json.loads(release.secret.to_json())
            assert secret["pseudonyms"] == ("a key of their own" if stable else "from the seed")


def test_the_key_of_pseudonyms_shows_nowhere() -> None:
    key = "0f" * 20
    release = rv.mask(pa.table({"PERSON": ["ann", "bob"]}), "pseudonymise", columns=["PERSON"], pseudonym_key=key)
    for text in (release.manifest.to_json(), release.secret.to_json(), repr(release), " ".join(release.notes)):
        assert key not in text
    again = rv.mask(pa.table({"PERSON": ["bob"]}), "pseudonymise", columns=["PERSON"], pseudonym_key=key)
    assert again.data["PERSON"].to_pylist() == release.data["PERSON"].to_pylist()[1:]
    short = rv.mask(pa.table({"PERSON": ["bob"]}), "pseudonymise", columns=["PERSON"], pseudonym_key=5)
    assert any("key of the pseudonyms has fewer than 128 bits" in note for note in short.notes)


def test_a_key_without_pseudonyms_is_refused() -> None:
    with pytest.raises(rv.RankveilError, match="no step of the plan makes any: add pseudonymise"):
        rv.mask(pa.table({"AGE": [1.0, 2.0]}), "permute", pseudonym_key=SEED)


def test_no_two_values_share_one() -> None:
    many = nominal([f"P{i}" for i in range(3000)], np.ones(3000))
    made = pseudonymise(np.arange(3000.0), length=4, categories=many, rng=Seed.of(1).stream("a"))
    assert len(set(made.levels)) == 3000
    digits = len(made.levels[0])
    assert digits > 4
    assert {len(name) for name in made.levels} == {digits}
    assert made.notes[-1] == f"pseudonyms have {digits} digits, because 4 did not tell all values apart"
    shorter = {name[: digits - 1] for name in made.levels}
    assert len(shorter) < 3000


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series([10, 20, 10, 30]),
        pd.Series([1.5, 2.5, 1.5, None]),
        pd.Series(["b", "a", "b", "c"], dtype="category"),
        pd.Series(pd.Categorical(["low", "high", "low", "high"], categories=["low", "high"], ordered=True)),
        pd.Series(pd.to_datetime(["2024-01-31", "2024-02-01", "2024-01-31", "2024-03-01"])),
    ],
    ids=["whole", "decimal", "category", "ordered", "date"],
)
def test_every_kind_of_column(cells: Any) -> None:
    frame = pd.DataFrame({"ID": cells, "X": [1.0, 2.0, 3.0, 4.0]})
    made = rv.mask(frame, "pseudonymise", columns=["ID"], seed=1).data["ID"]
    assert made.isna().tolist() == cells.isna().tolist()
    for i in range(4):
        for j in range(i):
            if cells.notna()[i] and cells.notna()[j]:
                assert (made[i] == made[j]) == (cells[i] == cells[j])
    words = [str(word) for word in made.dropna()]
    assert all(len(word) == 16 and set(word) <= set("0123456789abcdef") for word in words)
    if isinstance(made.dtype, pd.CategoricalDtype):  # the names that were hidden are not among the categories
        assert set(made.cat.categories) == set(words)


def test_what_a_release_tells() -> None:
    data = rv.datasets.demo(30)
    schema = rv.Schema(roles={"PERSON": "identifier"})
    release = rv.mask(data, "pseudonymise", seed=SEED, schema=schema)
    assert list(release.changed) == ["PERSON"]
    assert release.changed["PERSON"] == 30
    text = release.manifest.to_json()
    assert not any(name in text for name in release.data["PERSON"].to_pylist())
    assert not any(name in text for name in data["PERSON"].to_pylist())
    assert not any("left out as identifiers" in note for note in release.notes)
    concluded = rv.mask(data, "pseudonymise", seed=SEED)
    assert list(concluded.changed) == ["PERSON"]
    with pytest.raises(rv.ParameterError, match="no column was given the role identifier"):
        rv.mask(data.select(["AGE", "INCOME"]), "pseudonymise")


def test_households_keep_together() -> None:
    census = rv.datasets.census(100)
    made = rv.mask(census, "pseudonymise", columns=["HOUSEHOLD"], seed=1).data["HOUSEHOLD"].to_pylist()
    pairs = set(zip(census["HOUSEHOLD"].to_pylist(), made, strict=True))
    assert len(pairs) == len(set(made)) == len({home for home, _ in pairs})


def test_pipelines() -> None:
    frame = rv.datasets.demo(20).to_pandas()
    with pytest.raises(rv.ParameterError, match="columns with the role identifier, and here columns have no roles"):
        rv.Masker("pseudonymise").fit(frame)
    with pytest.raises(rv.ParameterError, match="makes labels of numbers, which an array of numbers cannot hold"):
        rv.Masker("pseudonymise", columns=["x0"]).fit(np.arange(6.0).reshape(3, 2))
    made = rv.Masker("pseudonymise", columns=["PERSON"], seed=1).fit_transform(frame)
    assert made["PERSON"].nunique() == 20
