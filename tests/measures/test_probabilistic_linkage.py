"""Probabilistic record linkage: a plain form of the iteration, links by the weights told, what is sampled is said."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

import rankveil as rv
from rankveil.catalogue import Value, get_measure

probabilistic_linkage = get_measure("probabilistic_linkage")

NAMES = ("A", "B", "C")
DEGREES = ("apart", "close", "same")


def degree(a: float, b: float, *, p: float, n: int) -> int:
    same, close = math.floor(n * p / 1000 + 1e-9), math.floor(n * p / 100 + 1e-9)
    return int(abs(a - b) <= close) + int(abs(a - b) <= same)


def learned(rank_x: np.ndarray, rank_y: np.ndarray, *, p: float, rounds: int) -> list[list[float]]:
    """log(m / u) after so many rounds, pair by pair."""
    n, attributes = rank_x.shape
    degrees = [[[degree(*ab, p=p, n=n) for ab in zip(x, y, strict=True)] for y in rank_y] for x in rank_x]
    pairs = list(itertools.chain.from_iterable(degrees))
    everywhere = [[sum(pair[j] == g for pair in pairs) for g in range(3)] for j in range(attributes)]
    m = [[0.1, 0.45, 0.45] for _ in range(attributes)]
    u = [[(number + 0.5) / (n * n + 1.5) for number in of] for of in everywhere]
    for _ in range(rounds):
        matches = [[0.0] * 3 for _ in range(attributes)]
        for of_one in degrees:
            ratios = [math.prod(m[j][g] / u[j][g] for j, g in enumerate(pair)) for pair in of_one]
            for pair, ratio in zip(of_one, ratios, strict=True):
                for j, g in enumerate(pair):
                    matches[j][g] += ratio / sum(ratios)
        m = [[(number + 0.5) / (n + 1.5) for number in of] for of in matches]
        u = [
            [(number - found + 0.5) / (n * n - n + 1.5) for number, found in zip(of, of_matches, strict=True)]
            for of, of_matches in zip(everywhere, matches, strict=True)
        ]
    return [[math.log(a / b) for a, b in zip(of_m, of_u, strict=True)] for of_m, of_u in zip(m, u, strict=True)]


def linked(rank_x: np.ndarray, rank_y: np.ndarray, made: Value, *, p: float) -> np.ndarray:
    """Each record's chance of a right link by the weights that the measure tells."""
    n = len(rank_x)
    total = np.zeros((n, n))
    for j, of in enumerate(made.details["weights"].values()):
        apart = np.abs(rank_x[:, j, None] - rank_y[:, j])
        same, close = n * p / 1000 + 1e-9, n * p / 100 + 1e-9
        total += np.select(
            [apart <= math.floor(same), apart <= math.floor(close)], [of["same"], of["close"]], of["apart"]
        )
    best = total >= total.max(axis=1, keepdims=True) - 1e-4
    return np.diagonal(best) / best.sum(axis=1)


@given(
    rows=st.lists(st.tuples(*[st.integers(0, 9)] * 6), min_size=2, max_size=9),
    p=st.sampled_from([5.0, 25.0, 60.0]),
)
def test_the_iteration_equals_a_plain_one(rows: list[tuple[int, ...]], p: float) -> None:
    rank_x, rank_y = np.split(rankdata(np.array(rows), axis=0), 2, axis=1)
    made = probabilistic_linkage(rank_x, rank_y, np.arange(len(rows)), p=p, names=NAMES)
    expected = learned(rank_x, rank_y, p=p, rounds=made.details["rounds"])
    told = [[of[name] for name in DEGREES] for of in made.details["weights"].values()]
    np.testing.assert_allclose(told, expected, rtol=1e-8, atol=1e-8)


def test_four_records_by_hand() -> None:
    ranks = np.array([[1.0], [2.0], [3.0], [4.0]])
    made = probabilistic_linkage(ranks, ranks[[1, 0, 2, 3]], np.arange(1, 5), p=5)
    # one attribute, agreement is equality: everybody is linked with the equal one, two rightly
    assert made.value == 0.5
    assert made.details["correct"] == 0.5
    assert [each["record"] for each in made.details["most_exposed"]] == [3, 4, 1, 2]
    assert made.details["weights"]["1"]["same"] > 0 > made.details["weights"]["1"]["apart"]


def test_ties_count_their_share() -> None:
    ranks = np.array([[1.5], [1.5], [3.5], [3.5]])
    made = probabilistic_linkage(ranks, ranks, np.arange(1, 5))
    assert (made.value, made.details["correct"], made.details["tied"]) == (0.5, 0.0, 1.0)


@pytest.mark.parametrize("attributes", [1, 3, 4, 5, 17])
def test_links_follow_the_weights(attributes: int) -> None:
    rng = np.random.default_rng(attributes)
    x = rng.normal(size=(150, attributes))
    rank_x, rank_y = rankdata(x, axis=0), rankdata(x + 0.5 * rng.normal(size=x.shape), axis=0)
    made = probabilistic_linkage(rank_x, rank_y, np.arange(150))
    assert made.value == pytest.approx(linked(rank_x, rank_y, made, p=5).mean(), abs=1e-12)
    assert not made.notes


def test_swaps_within_the_window_are_undone() -> None:
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(size=(400, 6)), columns=list("ABCDEF"))
    swapped = rv.mask(table, "rank_swap", p=5, seed=1).data
    assert rv.audit(table, swapped, measures=["probabilistic_linkage"])["probabilistic_linkage"] > 0.95
    permuted = rv.mask(table, "permute", seed=1).data
    # about one right link among all: more than 14 happen less than once in a million (Poisson)
    assert rv.audit(table, permuted, measures=["probabilistic_linkage"])["probabilistic_linkage"] * 400 < 14


def test_attributes_that_depend_on_each_other_are_not_taken_for_matches() -> None:
    rng = np.random.default_rng(4)
    income = rng.lognormal(size=300)
    table = pd.DataFrame({f"INCOME{j}": income * rng.lognormal(0, 0.02, 300) for j in range(4)})
    table = table.assign(**{f"OTHER{j}": rng.normal(size=300) for j in range(4)})
    masked = rv.mask(table, "rank_swap", p=5, scheme="window", seed=1).data
    made = rv.audit(table, masked, measures=["probabilistic_linkage"]).values["probabilistic_linkage"]
    assert made.value > 0.95
    assert all(of["close"] > 1 for of in made.details["weights"].values())  # every attribute helps


def test_what_is_left_out_or_sampled_is_said() -> None:
    rng = np.random.default_rng(5)
    n = 5_020  # more than 25 million pairs
    x = rng.normal(size=(n, 2))
    rank_x, rank_y = rankdata(x, axis=0), rankdata(x + 0.003 * rng.normal(size=x.shape), axis=0)
    made = probabilistic_linkage(rank_x, rank_y, np.arange(n), p=0.5)
    sampled = 25_000_000 // n
    assert made.details["originals"] == sampled
    assert made.details["pairs"] == sampled * n
    assert made.details["learned_from"] == 1_200
    assert made.notes == (
        f"weights are learned from the records of 1200 of {n} subjects",
        f"{sampled} of {n} original records are linked, each with all masked records",
    )
    low, high = made.details["interval"]
    assert low < made.value < high
    assert made.value == pytest.approx(linked(rank_x, rank_y, made, p=0.5).mean(), abs=0.02)


def test_the_attributes_with_the_fewest_values_are_left_out_of_many() -> None:
    rng = np.random.default_rng(6)
    columns: dict[str, Any] = {f"V{j}": rng.normal(size=50) for j in range(33)}
    columns["V7"] = rng.integers(0, 2, 50).astype(float)
    made = rv.audit(pd.DataFrame(columns), pd.DataFrame(columns), measures=["probabilistic_linkage"])
    value = made.values["probabilistic_linkage"]
    assert value.value == 1.0
    assert value.details["left_out"] == ["V7"]
    assert len(value.details["weights"]) == 32
    assert value.notes == ("1 attributes with the fewest different values are not compared",)
