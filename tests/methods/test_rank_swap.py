"""Rank swapping: the order of noisy ranks on five records, and swaps in pairs, which are kept for studies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rankveil as rv
from rankveil.catalogue import get_method
from rankveil.ranks import average_ranks
from rankveil.seeds import Seed, Stream
from rankveil.strengths import strength_for

FALSE_ALARM = 1e-6

rank_swap = get_method("rank_swap")
X = np.array([30.0, 10.0, 50.0, 20.0, 40.0])


class Given(Stream):
    """A stream whose uniform draws are given; ties are broken by row."""

    def __init__(self, uniform: Any) -> None:
        super().__init__(0)
        self.uniform = np.asarray(uniform, dtype=np.float64)

    def random(self, size: int) -> Any:
        return self.uniform[:size]

    def bits(self, size: int) -> Any:
        return np.arange(size, dtype=np.uint64)


def swapped(x: Any, *, seed: int = 1, scheme: str = "pairs", **parameters: float) -> Any:
    return rank_swap(x, rng=Seed.of(seed).stream("a"), scheme=scheme, **parameters).values


def test_five_records_in_the_order_of_noisy_ranks_by_hand() -> None:
    # ranks from 0 are 2, 0, 4, 1, 3; with 100 percent of five, uniform noise lies on (-5, 5):
    # draws .9 .5 .1 .7 .3 make it 4, 0, -4, 2, -2, so keys 6, 0, 0, 3, 1; the two of 0 in the order of their rows
    made = rank_swap(X, p=100, scheme="window", rng=Given([0.9, 0.5, 0.1, 0.7, 0.3]))
    assert made.values.tolist() == [50.0, 10.0, 20.0, 40.0, 30.0]
    # normal noise of standard deviation sqrt(3) for p = 60: quantiles 1.2816, 0, -1.2816, 0.5244, -0.5244 times that
    # give keys 4.22, 0, 1.78, 1.91, 2.09
    made = rank_swap(X, p=60, rng=Given([0.9, 0.5, 0.1, 0.7, 0.3]))
    assert made.values.tolist() == [50.0, 10.0, 20.0, 30.0, 40.0]
    assert made.notes == ()


@given(n=st.integers(1, 80), p=st.floats(0, 100), seed=st.integers(0, 1000))
def test_all_values_are_kept_and_a_window_is_one(n: int, p: float, seed: int) -> None:
    x = np.random.default_rng(seed).permutation(n).astype(np.float64)  # the value is the rank, from 0
    for scheme in ("normal", "window"):
        y = swapped(x, seed=seed, scheme=scheme, p=p)
        assert np.array_equal(np.sort(y), np.arange(n))
        assert scheme == "normal" or np.all(np.abs(y - x) <= 2 * n * p / 100 * (1 + 1e-9))
    assert p > 0 or np.array_equal(y, x)


def test_displacements_are_as_far_as_p_says() -> None:
    n = 20_000
    x = np.random.default_rng(0).permutation(n).astype(np.float64)
    moved = swapped(x, scheme="normal", p=5) - x
    inner = moved[(x > 4_000) & (x < 16_000)]
    spread = n * 0.05 / np.sqrt(3)
    # the noise, and how many others happen to be passed: s / sqrt(pi)
    assert inner.std() == pytest.approx(np.hypot(spread, np.sqrt(spread / np.sqrt(np.pi))), rel=0.04)
    assert stats.kstest(inner / inner.std(), "norm").pvalue > FALSE_ALARM
    assert np.abs(moved).max() > n * 0.05, "nothing limits it"


@pytest.mark.parametrize("scheme", ["normal", "window"])
def test_values_do_not_change_places_in_pairs(scheme: str) -> None:
    n = 3_000
    x = np.arange(float(n))
    made = [swapped(x, seed=seed, scheme=scheme, p=20).astype(int) for seed in range(20)]
    pairs = [float(np.mean(y[y] == x)) for y in made]
    # of a permutation that goes about 350 ranks far, one in 1,000 or so is in a pair or stays, by chance
    assert np.mean(pairs) < 0.005


def test_the_median_of_tied_values_goes_as_far_as_the_others() -> None:
    x = np.repeat([1.0, 2.0, 3.0], 400)
    y = swapped(x, scheme="normal", p=50)
    counts = np.array([[np.sum((x == a) & (y == b)) for b in (1.0, 2.0, 3.0)] for a in (1.0, 2.0, 3.0)])
    assert np.array_equal(counts.sum(axis=0), [400, 400, 400])
    assert counts[0, 1] > 50
    assert counts[1, 0] > 50


def test_without_p_it_goes_by_the_number_of_columns() -> None:
    x = np.random.default_rng(0).normal(size=500)
    for columns in (1, 5):
        made = rank_swap(x, rng=Seed.of(1).stream("a"), attributes=columns).values
        given = swapped(x, scheme="normal", p=strength_for("rank_swap", columns))
        assert np.array_equal(made, given)
    assert strength_for("rank_swap", 5) > strength_for("rank_swap", 1)


def test_pairs_are_warned_of() -> None:
    release = rv.mask(pa.table({"A": X, "B": X[::-1]}), "rank_swap", p=40, scheme="pairs", seed=1)
    assert any("scheme = pairs is undone by its pairs" in note for note in release.notes)
    assert any(note.startswith("warning: rank_swap: scheme = pairs") for note in release.notes)
    assert any("undone by its pairs" in told for told in release.manifest["warnings"])
    release = rv.mask(pa.table({"A": X, "B": X[::-1]}), "rank_swap", p=40, seed=1)
    assert not any("pairs" in note for note in release.notes)
    assert "warnings" not in release.manifest.content


def test_five_records_by_hand() -> None:
    # 20 percent of five is one rank: 10 and 20 swap, 30 and 40 swap, 50 finds nobody free
    for seed in range(20):
        assert swapped(X, seed=seed, p=20).tolist() == [40.0, 20.0, 50.0, 10.0, 30.0]


def test_less_than_one_rank_swaps_nothing_and_says_so() -> None:
    made = rank_swap(X, rng=Seed.of(1).stream("a"), p=19.9, scheme="pairs")
    assert np.array_equal(made.values, X)
    assert made.notes == ("p = 19.9 percent of 5 records is less than one rank: nothing was swapped",)
    assert rank_swap(X, rng=Seed.of(1).stream("a"), p=20, scheme="pairs").notes == ()


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
