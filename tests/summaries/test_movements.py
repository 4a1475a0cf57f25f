"""Summaries of movements and changes of partitions, merged in any order, are those of the whole table."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.ranks import average_ranks
from rankveil.summaries.changes import Changes
from rankveil.summaries.movements import HIGHEST, Distances, Movements, Powers, caught, is_whole, share_caught


def doubled(x: Any) -> Any:
    return np.rint(2 * average_ranks(x)).astype(np.uint32)


def power_mean(distances: Any, alpha: float) -> float:
    if (distances == 0).any() and alpha <= 0:
        return 0.0
    if alpha == 0:
        return float(np.exp(np.mean(np.log(distances))))
    return float(np.mean(distances**alpha) ** (1 / alpha))


@settings(deadline=None)
@given(seed=st.integers(0, 1000), cuts=st.lists(st.integers(0, 50), max_size=4), moved=st.booleans())
def test_movements_in_any_partitioning(seed: int, cuts: list[int], moved: bool) -> None:
    rng = np.random.default_rng(seed)
    x = rng.permutation(50).astype(float)
    y = (x + 7) % 50 if moved else np.round(x + rng.normal(scale=8, size=50), -1)  # the first leaves none in place
    rank_x, rank_y = doubled(x), doubled(y)
    alphas = (-0.5, 2.5, 80.0, -75.0)
    parts = [
        Distances.of(a, b, records=50)
        for a, b in zip(np.split(rank_x, sorted(cuts)), np.split(rank_y, sorted(cuts)), strict=True)
    ]
    found = reduce(Movements.merged, map(Movements.of, parts[::-1]))
    powers = reduce(Powers.merged, (Powers.of(part, alphas=alphas) for part in parts[::-1]))
    distances = np.abs(rank_x.astype(float) - rank_y) / 2
    assert (found.count, found.total, found.largest) == (50, 2 * distances.sum(), 2 * distances.max())
    assert (powers.count, powers.unmoved) == (50, np.count_nonzero(distances == 0))
    assert (powers.smallest, powers.largest) == (2 * distances.min(), 2 * distances.max())
    caught = [np.count_nonzero(distances * 100 / 50 <= p) for p in range(1, 11)]
    assert np.cumsum(found.within)[:10].tolist() == caught
    assert share_caught(found.within) == pytest.approx(np.mean(caught) / 50, rel=1e-14)
    for alpha in (*range(-HIGHEST, HIGHEST + 1), *alphas):
        with np.errstate(divide="ignore"):
            wanted = power_mean(distances, float(alpha))
        assert powers.mean(float(alpha)) == pytest.approx(wanted, rel=1e-12)


def test_which_power_means_are_known_without_being_asked() -> None:
    assert [alpha for alpha in (-10.0, -0.5, 0.0, 10.0, 10.5, 11.0) if is_whole(alpha)] == [-10.0, 0.0, 10.0]


@pytest.mark.parametrize("n", [40, 6_000])  # numpy's sums and compiled ones
def test_ranks_as_they_are_and_doubled_ranks_give_the_same(n: int) -> None:
    rng = np.random.default_rng(n)
    x = rng.integers(0, n, n).astype(float)
    rank_x, rank_y = average_ranks(x), average_ranks(x + rng.integers(1, n, n))
    one = Distances.of(rank_x, rank_y, records=n, times=2)
    other = Distances.of(*((2 * each).astype(np.uint32) for each in (rank_x, rank_y)), records=n)
    assert np.array_equal(one.doubled, other.doubled)
    assert one.total == other.total == 2 * np.abs(rank_x - rank_y).sum()
    assert np.array_equal(one.within, other.within)
    assert np.array_equal(one.within, caught(100 * np.abs(rank_x - rank_y) / n))
    first, second = Powers.of(one, alphas=(0.5, -3.5)), Powers.of(one, later=lambda: one.doubled)
    for alpha in (-10.0, -3.5, -1.0, 0.0, 0.5, 1.0, 2.0, 10.0):
        assert second.mean(alpha) == first.mean(alpha)
        assert first.mean(alpha) == pytest.approx(power_mean(one.doubled / 2, alpha), rel=1e-12)


def test_what_weights_add_up_to_is_caught() -> None:
    percents, weight = np.array([0.0, 0.5, 2.5, 11.0]), np.array([1.0, 0.25, 2.0, 0.75])
    assert caught(percents, weight).tolist() == [1.25, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0.75]
    assert share_caught(caught(percents, weight)) == pytest.approx((1.25 * 10 + 2 * 8) / 4 / 10)
    assert share_caught(caught(np.empty(0))) == 0.0


@pytest.mark.parametrize("n", [60, 6_000])
def test_changes_weighted_by_whole_numbers_are_those_of_repeated_records(n: int) -> None:
    rng = np.random.default_rng(n)
    x = np.where(rng.random(n) < 0.2, 0.0, rng.lognormal(size=n))
    y, weight = x + 0.05 * rng.normal(size=n), rng.integers(0, 4, n).astype(float)
    found = Changes.of(x, y, spread=1.0, weight=weight)
    wanted = Changes.of(np.repeat(x, weight.astype(int)), np.repeat(y, weight.astype(int)), spread=1.0)
    assert (found.unit, found.count) == (wanted.unit, np.count_nonzero(weight))
    assert 3 * found.weight == pytest.approx(wanted.weight)
    assert 3 * found.weight_there == pytest.approx(wanted.weight_there)
    for fact in ("variation", "absolute", "squared"):
        assert 3 * getattr(found, fact) == pytest.approx(getattr(wanted, fact), rel=1e-12)
    assert 3 * found.within == pytest.approx(wanted.within)


@pytest.mark.parametrize("n", [3, 6_000])
def test_changes_beyond_the_largest_number_and_far_below_the_values(n: int) -> None:
    x, y = np.full(n, 1.5e308), np.full(n, -1.5e308)
    far = Changes.of(x, y, spread=0.0)
    assert far.absolute / n * (far.unit / 4) == pytest.approx(1.5e308 / 2)
    assert far.within[-1] == n
    y = x.copy()
    x[0], y[0] = 1e-300, 3e-300
    small = Changes.of(x, y, spread=1e300)
    assert small.absolute * small.unit == pytest.approx(2e-300, rel=1e-12)
    assert small.within[0] == n


def test_changes_of_partitions() -> None:
    rng = np.random.default_rng(0)
    x = np.where(rng.random(9_000) < 0.2, 0.0, rng.lognormal(size=9_000))
    y = x + 0.05 * rng.normal(size=9_000)
    y[::3] = x[::3]
    spread, unit = float(x.std()), 64.0
    parts = [
        Changes.of(a, b, spread=spread, unit=unit)
        for a, b in zip(np.split(x, [10, 6_000]), np.split(y, [10, 6_000]), strict=True)
    ]
    found = parts[1].merged(parts[0]).merged(parts[2])
    there = x != 0
    assert (found.count, found.there) == (9_000, np.count_nonzero(there))
    assert found.variation == pytest.approx(np.sum(np.abs(x - y)[there] / x[there]), rel=1e-12)
    assert unit * found.absolute == pytest.approx(np.sum(np.abs(x - y)), rel=1e-12)
    assert unit**2 * found.squared == pytest.approx(np.sum((x - y) ** 2), rel=1e-12)
    caught = [np.count_nonzero(100 * np.abs(x - y) / spread <= p) for p in range(1, 11)]
    assert np.cumsum(found.within)[:10].tolist() == caught
    with pytest.raises(ValueError, match="same unit"):
        found.merged(Changes.of(x, y, spread=spread, unit=32.0))
