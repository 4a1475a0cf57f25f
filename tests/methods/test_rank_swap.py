"""Rank swapping on five records, how far partners are, and how they are chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankveil.catalogue import get_method
from rankveil.ranks import average_ranks
from rankveil.seeds import Seed

FALSE_ALARM = 1e-6

rank_swap = get_method("rank_swap")
X = np.array([30.0, 10.0, 50.0, 20.0, 40.0])


def swapped(x: Any, *, seed: int = 1, **parameters: float) -> Any:
    return rank_swap(x, rng=Seed.of(seed).stream("a"), **parameters).values


def test_five_records_by_hand() -> None:
    # 20 percent of five is one rank: 10 and 20 swap, 30 and 40 swap, 50 finds nobody free
    for seed in range(20):
        assert swapped(X, seed=seed, p=20).tolist() == [40.0, 20.0, 50.0, 10.0, 30.0]


def test_less_than_one_rank_swaps_nothing_and_says_so() -> None:
    made = rank_swap(X, rng=Seed.of(1).stream("a"), p=19.9)
    assert np.array_equal(made.values, X)
    assert made.notes == ("p = 19.9 percent of 5 records is less than one rank: nothing was swapped",)
    assert rank_swap(X, rng=Seed.of(1).stream("a"), p=20).notes == ()


@given(n=st.integers(1, 80), p=st.floats(0, 100), seed=st.integers(0, 1000))
def test_values_swap_in_pairs_at_most_p_percent_apart(n: int, p: float, seed: int) -> None:
    x = np.random.default_rng(seed).permutation(n).astype(np.float64)  # the value is the rank, from 0
    y = swapped(x, seed=seed, p=p).astype(int)
    partner = np.empty(n, dtype=int)
    partner[x.astype(int)] = y
    assert np.array_equal(partner[partner], np.arange(n)), "whoever gives to a record takes from it"
    assert np.all(np.abs(partner - np.arange(n)) <= n * p / 100 * (1 + 1e-9))


def test_nearly_everybody_swaps() -> None:
    x = np.random.default_rng(0).normal(size=2_000)
    assert np.mean(swapped(x, p=5) == x) < 0.01


def test_the_lowest_record_picks_its_partner_uniformly() -> None:
    x = np.arange(200.0)
    distances = [int(swapped(x, seed=seed, p=5)[0]) for seed in range(3_000)]  # 10 ranks
    counts = np.bincount(distances, minlength=11)
    assert counts[0] == 0
    assert counts.size == 11
    assert stats.chisquare(counts[1:]).pvalue > FALSE_ALARM


def test_four_records_within_reach_of_each_other_pair_in_all_ways_equally_often() -> None:
    counts: dict[tuple[float, ...], int] = {}
    for seed in range(3_000):
        pairing = tuple(swapped(np.arange(4.0), seed=seed, p=100).tolist())
        counts[pairing] = counts.get(pairing, 0) + 1
    assert len(counts) == 3
    assert stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM


@pytest.mark.parametrize("n", [4_999, 5_000, 20_001])
def test_partner_distances_reach_from_one_to_the_limit(n: int) -> None:
    x = np.random.default_rng(0).permutation(n).astype(np.float64)
    distances = np.abs(average_ranks(x) - average_ranks(swapped(x, p=2)))
    reach = int(n * 0.02)
    assert distances.max() == reach
    assert np.unique(distances[distances > 0]).size == reach
    assert np.mean(distances == 0) < 0.01


def test_which_of_tied_records_swaps_is_drawn() -> None:
    # one rank at most: two of the tied records swap with each other, the third with the larger one
    x = np.array([1.0, 1.0, 2.0, 1.0])
    taker = [int(np.argmax(swapped(x, seed=seed, p=25))) for seed in range(3_000)]
    assert stats.chisquare(np.bincount(taker, minlength=4)[[0, 1, 3]]).pvalue > FALSE_ALARM
    assert 2 not in taker
