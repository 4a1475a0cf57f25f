"""Linkage entropy: three records by hand, all pairs by brute force, what is sampled is said."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy, rankdata

import rankveil as rv
from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError

linkage_entropy = get_measure("linkage_entropy")


def brute_force(rank_x: np.ndarray, rank_y: np.ndarray, *, nearest: bool = False) -> np.ndarray:
    distance = np.zeros((len(rank_x), len(rank_y)))
    for a, b in zip(rank_x.T, rank_y.T, strict=True):
        np.maximum(distance, np.abs(a[:, None] - b), out=distance)
    least = distance.min(axis=1, keepdims=True)
    s = np.median(least if nearest else distance)
    weights = np.exp(-(distance - least) / s) if s > 0 else distance == least
    return entropy(weights, axis=1) / math.log(len(rank_y))


def test_three_records() -> None:
    ranks = np.array([[1.0], [2.0], [3.0]])
    made = linkage_entropy(ranks, ranks, np.arange(1, 4))
    # the nine distances 0 1 2, 1 0 1, 2 1 0 have the median 1
    e = math.exp(-1)
    outer, middle = np.array([1, e, e * e]), np.array([e, 1, e])
    expected = [-sum(p * math.log(p) for p in w / w.sum()) for w in (outer, middle, outer)]
    assert made.value == pytest.approx(sum(expected) / 3 / math.log(3))
    assert made.details["s"] == 1.0
    assert made.details["pairs"] == 9
    assert made.details["most_exposed"][0] == {"record": 1, "value": pytest.approx(math.exp(expected[0]))}
    assert made.details["candidates"]["smallest"] == pytest.approx(math.exp(expected[0]))


def test_nearest_widths_see_what_an_intruder_sees() -> None:
    ranks = np.arange(1.0, 6)[:, None]
    assert linkage_entropy(ranks, ranks, np.arange(1, 6), width="nearest").value == 0.0  # every twin is found
    pairs = np.array([[1.5], [1.5], [3.5], [3.5], [5.0]])
    made = linkage_entropy(pairs, pairs, np.arange(1, 6), width="nearest")
    assert made.value == pytest.approx(4 / 5 * math.log(2) / math.log(5))  # four of five have two twins
    assert made.details["s"] == 0.0


@given(
    rows=st.lists(st.tuples(*[st.integers(0, 6)] * 4), min_size=2, max_size=25),
    width=st.sampled_from(["pairs", "nearest"]),
)
def test_all_pairs_by_brute_force(rows: list[tuple[int, ...]], width: str) -> None:
    rank_x, rank_y = np.split(rankdata(np.array(rows), axis=0), 2, axis=1)
    made = linkage_entropy(rank_x, rank_y, np.arange(len(rows)), width=width)
    expected = brute_force(rank_x, rank_y, nearest=width == "nearest").mean()
    assert made.value == pytest.approx(expected, abs=1e-12)
    assert not made.notes


def test_a_release_without_differences_says_nothing() -> None:
    table = pd.DataFrame({"A": [1.0, 2.0, 3.0], "B": [3.0, 2.0, 2.0]})
    made = rv.audit(table, table * 0, measures=["linkage_entropy"])
    assert made["linkage_entropy"] == pytest.approx(1.0, abs=1e-12)


def test_one_record_leaves_no_choice() -> None:
    with pytest.raises(NotApplicableError, match="no choice"):
        linkage_entropy(np.ones((1, 2)), np.ones((1, 2)), np.arange(1))


def test_a_sample_of_many_records_is_said_and_has_an_interval() -> None:
    rng = np.random.default_rng(2)
    n = 5_100  # more than 25 million pairs
    x = rng.normal(size=(n, 2))
    rank_x, rank_y = rankdata(x, axis=0), rankdata(x + rng.normal(size=(n, 2)), axis=0)
    made = linkage_entropy(rank_x, rank_y, np.arange(n), width="nearest")
    sampled = 25_000_000 // n
    assert made.details["originals"] == sampled < n
    assert made.details["pairs"] == sampled * n
    assert made.notes == (f"from {sampled} of {n} original records, against all masked records",)
    low, high = made.details["interval"]
    assert 0 <= low < made.value < high <= 1
    wide = linkage_entropy(rank_x, rank_y, np.arange(n)).details
    assert wide["pairs_for_s"] == sampled * (25_000_000 // sampled)
    assert low - (high - low) < brute_force(rank_x, rank_y, nearest=True).mean() < high + (high - low)
