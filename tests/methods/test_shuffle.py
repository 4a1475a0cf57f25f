"""Data shuffling on five records, what it keeps, and what it draws anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import csv
from scipy import stats
from scipy.special import ndtri

import rankveil as rv
from rankveil.catalogue import get_method
from rankveil.errors import ParameterError
from rankveil.seeds import Seed

FALSE_ALARM = 1e-6

Array = NDArray[np.float64]

shuffle = get_method("shuffle")
X = np.array([[30.0], [10.0], [50.0], [20.0], [40.0]])
NONE = np.empty((5, 0))


def shuffled(x: Array, given: Array, *, seed: int = 1) -> Array:
    made: Array = shuffle(x, given, np.isnan(x), rng=Seed.of(seed).stream("a")).values
    return made


def test_five_records_by_hand() -> None:
    e = ndtri(Seed.of(1).stream("a").random(5))
    wanted = np.empty(5)
    wanted[np.argsort(e)] = [10, 20, 30, 40, 50]
    assert np.array_equal(shuffled(X, NONE)[:, 0], wanted)
    # ranks of x are 3 1 5 2 4; these are 4 1 5 3 2: differences 1 0 0 1 2, so rho = 1 - 6 * 6 / (5 * 24) = 0.7
    given = np.array([[7.0], [-2.0], [9.0], [3.0], [1.0]])
    r = 2 * np.sin(np.pi * 0.7 / 6)
    draws = r * ndtri(np.array([4, 1, 5, 3, 2]) / 6) + np.sqrt(1 - r**2) * e
    wanted[np.argsort(draws)] = [10, 20, 30, 40, 50]
    assert np.array_equal(shuffled(X, given)[:, 0], wanted)


def test_the_values_are_the_original_ones() -> None:
    rng = np.random.default_rng(0)
    x = np.asfortranarray(np.column_stack([rng.lognormal(size=400), rng.integers(0, 4, 400), np.full(400, 0.1)]))
    made = shuffled(x, rng.normal(size=(400, 2)))
    assert np.array_equal(np.sort(made, axis=0), np.sort(x, axis=0))
    assert not np.array_equal(made[:, 0], x[:, 0])


def test_rank_correlations_are_kept_and_the_given_columns_explain_all_that_stays() -> None:
    rng = np.random.default_rng(1)
    n = 40_000
    common = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.8, 0.5], [0, 0.6, 0.5], [0, 0, 0.7]])
    x, given = np.asfortranarray(np.exp(common[:, :2])), common[:, 2:] ** 3
    made = shuffled(x, given)
    before, after = (stats.spearmanr(np.hstack([table, given])).statistic for table in (x, made))
    limit = stats.norm.isf(FALSE_ALARM / 6) * np.sqrt(2 / n)
    assert np.all(np.abs(before - after) < limit)
    # given S, X and Y are independent: the correlation of their scores is the product of those with S
    score, masked, s = (ndtri(stats.rankdata(column) / (n + 1)) for column in (x[:, 0], made[:, 0], given[:, 0]))
    r = np.corrcoef([score, masked, s])
    partial = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    assert abs(partial) < stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(n)


def test_without_given_columns_the_release_says_nothing_of_who_is_who() -> None:
    rng = np.random.default_rng(2)
    n = 20_000
    a = rng.normal(size=n)
    x = np.column_stack([a, a + rng.normal(size=n)])
    made = shuffled(x, np.empty((n, 0)))
    limit = stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(n)
    assert abs(stats.spearmanr(x[:, 0], made[:, 0]).statistic) < limit
    assert abs(stats.spearmanr(x[:, 0], made[:, 1]).statistic) < limit


def test_columns_in_the_same_order_stay_in_the_same_order() -> None:
    x = np.random.default_rng(3).normal(size=3_000)
    made = shuffled(np.column_stack([x, np.exp(x)]), np.empty((3_000, 0)))
    assert np.array_equal(made[:, 1], np.exp(made[:, 0]))


def test_a_column_whose_ranks_are_given_cannot_be_hidden_and_that_is_said() -> None:
    made = shuffle(X, X**3, np.isnan(X), rng=Seed.of(1).stream("a"))
    assert np.array_equal(made.values, X)
    assert made.notes == ("columns whose ranks follow from the given ones, so that nothing is drawn anew in them: 1",)
    assert shuffle(X, NONE, np.isnan(X), rng=Seed.of(1).stream("a")).notes == ()


def test_singular_data_with_ties(reference_data: Callable[[str], Path]) -> None:
    data = csv.read_csv(reference_data("census"))
    others = [name for name in data.column_names if name not in ("AGI", "FICA")]
    made = rv.mask(data, "shuffle", columns=others, given="AGI,FICA", seed=1).data
    for name in data.column_names:
        before, after = data[name].to_numpy(), made[name].to_numpy()
        assert np.array_equal(np.sort(before), np.sort(after))
        assert np.array_equal(before, after) is (name in ("AGI", "FICA"))
    before, after = (
        stats.spearmanr(np.column_stack([table[name] for name in data.column_names])).statistic
        for table in (data, made)
    )
    assert np.abs(before - after).max() < 0.2  # a Gaussian copula is a model only: ties and jumps bend it


def test_ordered_categories_are_shuffled_too() -> None:
    words = pa.array(["low", "high", "mid", "low", "mid"] * 8)
    data = pa.table({"T": words, "A": np.random.default_rng(0).normal(size=40)})
    order = {"T": ["low", "mid", "high"]}
    frame = pd.DataFrame({"A": data["A"].to_numpy()})
    frame["T"] = pd.Categorical(words.to_pylist(), categories=order["T"], ordered=True)
    made = rv.mask(frame, "shuffle", given="A", seed=1).data
    assert sorted(made["T"].astype(str)) == sorted(frame["T"].astype(str))
    assert list(made["T"].cat.categories) == order["T"]
    assert list(made["T"]) != list(frame["T"])
    assert np.array_equal(made["A"], frame["A"])


def test_missing_cells_stay_and_hand_nothing_on() -> None:
    frame = pd.DataFrame({"A": [5.0, None, 1.0, 9.0] * 10})
    frame["T"] = pd.Categorical(
        ["low", "high", None, "low", "mid"] * 8, categories=["low", "mid", "high"], ordered=True
    )
    made = rv.mask(frame, "shuffle", columns=["A", "T"], seed=1).data
    for name in frame:
        assert made[name].isna().equals(frame[name].isna())
        assert sorted(made[name].dropna()) == sorted(frame[name].dropna())


def test_naming_all_columns_as_given_is_refused() -> None:
    with pytest.raises(ParameterError, match="given names all columns"):
        rv.mask(pa.table({"A": X[:, 0]}), "shuffle", given="A", seed=1)
