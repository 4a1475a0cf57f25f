"""Copula swapping on five records, what it keeps, and that its two ends are the identity and data shuffling."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri

import rankveil as rv
from rankveil.catalogue import get_method
from rankveil.methods.copula_swap import STRONGEST, correlation_kept
from rankveil.ranks import average_ranks
from rankveil.seeds import Seed

Array = NDArray[np.float64]

copula_swap = get_method("copula_swap")
X = np.array([[30.0], [10.0], [50.0], [20.0], [40.0]])


def swapped(x: Array, *, seed: int = 1, missing: NDArray[np.bool_] | None = None, **parameters: float) -> Array:
    gone = np.zeros(x.shape, dtype=bool) if missing is None else missing
    made: Array = copula_swap(x, gone, rng=Seed.of(seed).stream("a"), **parameters).values
    return made


def normal(n: int, *, seed: int = 0) -> Array:
    """Three columns of a normal copula with lognormal margins."""
    rng = np.random.default_rng(seed)
    correlation = np.array([[1.0, 0.8, 0.3], [0.8, 1.0, -0.2], [0.3, -0.2, 1.0]])
    return np.asfortranarray(np.exp(rng.multivariate_normal(np.zeros(3), correlation, size=n)))


def spearman(x: Array) -> Array:
    return np.corrcoef(average_ranks(x), rowvar=False)


def test_five_records_by_hand() -> None:
    # ranks 3, 1, 5, 2, 4 of 5 have the scores 0, -0.967, 0.967, -0.431, 0.431; half way (rho = 0.5 is at
    # 1 - 2 (p / 100)^2 = 6 asin(0.25) / pi, so p = 50.86) each moves by sqrt(0.75) of its draw
    p = 100 * np.sqrt((1 - 6 * np.arcsin(0.25) / np.pi) / 2)
    assert correlation_kept(p) == pytest.approx(0.5, abs=1e-12)
    e = ndtri(Seed.of(1).stream("a").random(5))
    keys = 0.5 * ndtri(np.array([3, 1, 5, 2, 4]) / 6) + np.sqrt(0.75) * e
    wanted = np.empty(5)
    wanted[np.argsort(keys)] = [10, 20, 30, 40, 50]
    assert np.array_equal(swapped(X, p=p)[:, 0], wanted)


def test_the_strength_is_how_much_of_a_rank_is_left() -> None:
    x = normal(20_000)
    for p in (10.0, 30.0, 50.0):
        y = swapped(x, p=p)
        for j in range(3):
            kept = np.corrcoef(average_ranks(x[:, j]), average_ranks(y[:, j]))[0, 1]
            assert kept == pytest.approx(1 - 2 * (p / 100) ** 2, abs=0.02)


def test_all_values_and_nearly_all_rank_correlations_are_kept() -> None:
    x = normal(5_000)
    for p in (5.0, 30.0, STRONGEST):
        y = swapped(x, p=p)
        assert np.array_equal(np.sort(y, axis=0), np.sort(x, axis=0))
        assert np.abs(spearman(y) - spearman(x)).max() < 0.05


def test_at_its_strongest_nothing_of_a_record_is_left() -> None:
    x = normal(5_000)
    y = swapped(x, p=STRONGEST)
    assert np.abs([np.corrcoef(x[:, j], y[:, j])[0, 1] for j in range(3)]).max() < 0.05
    assert correlation_kept(STRONGEST) == pytest.approx(0.0, abs=1e-3)


def test_columns_that_say_the_same_still_do() -> None:
    x = normal(300)[:, :1]
    y = swapped(np.asfortranarray(np.hstack([x, 3 * x, -x])), p=40.0)
    assert np.array_equal(average_ranks(y[:, 0]), average_ranks(y[:, 1]))
    assert np.array_equal(average_ranks(y[:, 0]), 301 - average_ranks(y[:, 2]))


def test_values_do_not_change_places_in_pairs() -> None:
    x = np.arange(3_000.0)[:, None]
    made = [swapped(x, seed=seed, p=20.0)[:, 0].astype(int) for seed in range(20)]
    assert np.mean([np.mean(y[y] == np.arange(3_000)) for y in made]) < 0.005


def test_missing_cells_stay_and_hand_on_no_value() -> None:
    table = pd.DataFrame({"A": [1.0, np.nan, 3.0, 4.0, 5.0, 6.0], "B": [6.0, 5.0, 4.0, np.nan, np.nan, 1.0]})
    release = rv.mask(table, "copula_swap", p=60.0, seed=3)
    for name in table:
        assert release.data[name].isna().tolist() == table[name].isna().tolist()
        assert sorted(release.data[name].dropna()) == sorted(table[name].dropna())


def test_ordered_categories_keep_their_shares() -> None:
    words = np.array(["low", "middle", "high"])[np.random.default_rng(0).integers(0, 3, 300)]
    table = pa.table({"A": normal(300)[:, 0], "B": words})
    schema = rv.Schema(kinds={"B": "ordinal"}, levels={"B": ("low", "middle", "high")})
    release = rv.mask(table, "copula_swap", p=60.0, seed=1, schema=schema)
    assert sorted(release.data["B"].to_pylist()) == sorted(words.tolist())
    assert release.data["B"].to_pylist() != words.tolist()


def test_one_strength_for_all_columns() -> None:
    with pytest.raises(rv.ParameterError, match="p is one for all columns, because they are masked together"):
        rv.mask(pa.table({"A": X[:, 0], "B": X[::-1, 0]}), "copula_swap", **{"p.A": 5})
    with pytest.raises(rv.ParameterError, match=r"p must be a number above 0 to 70\.7"):
        rv.mask(pa.table({"A": X[:, 0]}), "copula_swap", p=71)
