"""Distance swapping on five records, and its guarantee for every size, distance and limit that is possible."""

from __future__ import annotations

import re
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

import rankveil as rv
from rankveil.catalogue import get_method
from rankveil.errors import ParameterError
from rankveil.ranks import average_ranks
from rankveil.seeds import Seed

FALSE_ALARM = 1e-6

distance_swap = get_method("distance_swap")
X = np.array([30.0, 10.0, 50.0, 20.0, 40.0])


def swapped(x: Any, *, seed: int = 1, **parameters: Any) -> Any:
    return distance_swap(x, rng=Seed.of(seed).stream("a"), **parameters)


def test_five_records_by_hand() -> None:
    # ranks 0 to 4 at least two apart: 0 and 1 take from above, 3 and 4 from below, the middle one from an end;
    # that leaves 0 <- {2, 3, 4}, 1 <- {3, 4}, 2 <- {0, 4}, 3 <- {0, 1}, 4 <- {0, 1, 2}: eight permutations
    possible = {
        each for each in permutations(range(5)) if all(abs(target - place) >= 2 for place, target in enumerate(each))
    }
    seen = set()
    for seed in range(100):
        made = swapped(X, seed=seed, d=2)
        ordered = made.values[np.argsort(X)]
        seen.add(tuple(int(value / 10) - 1 for value in ordered))
        assert made.counts == {"moved_less_than_d": 0}
    assert seen == possible


def test_four_records_at_distance_two_by_hand() -> None:
    assert swapped(X[:4], d=2).values.tolist() == [10.0, 30.0, 20.0, 50.0]


@st.composite
def possible(draw: Any) -> tuple[int, int, float | None]:
    """Sizes, distances and limits that can be met: blocks of 2 d to twice the limit add up to n."""
    d = draw(st.integers(1, 20))
    n = draw(st.integers(2 * d, 6 * d + 7))
    if draw(st.booleans()):
        return n, d, None
    blocks = n // (2 * d)
    need = max(d, -(-n // (2 * blocks)))
    return n, d, draw(st.floats(min(100.0, 100 * (need + 1e-6) / n), 100))


@settings(deadline=None)
@given(possible(), st.integers(0, 1000))
def test_every_record_moves_by_d_ranks_or_more_and_by_p_percent_at_most(
    asked: tuple[int, int, float | None], seed: int
) -> None:
    n, d, p = asked
    x = np.random.default_rng(seed).permutation(n).astype(np.float64)
    made = swapped(x, seed=seed, d=d, p=p)
    moved = np.abs(average_ranks(x) - average_ranks(made.values))
    assert moved.min() >= d
    assert p is None or moved.max() <= n * p / 100 * (1 + 1e-9)
    assert np.array_equal(np.sort(made.values), np.sort(x))
    assert made.counts == {"moved_less_than_d": 0}


def can_be_permuted(n: int, d: int, farthest: int) -> bool:
    """By a matching of places and targets: whether there is a permutation with all differences in the limits."""
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    matched = maximum_bipartite_matching(csr_array((apart >= d) & (apart <= farthest)))
    return bool(np.all(matched >= 0))


@pytest.mark.parametrize("n", range(1, 12))
def test_only_what_is_impossible_is_refused(n: int) -> None:
    for d in range(1, n + 2):
        for farthest in range(n + 1):
            p = min(100.0, 100 * (farthest + 0.01) / n)
            if can_be_permuted(n, d, min(farthest, n - 1)):
                made = swapped(np.arange(n, dtype=np.float64), d=d, p=p).values
                moved = np.abs(made - np.arange(n))
                assert d <= moved.min()
                assert moved.max() <= farthest
            else:
                with pytest.raises(ParameterError, match=f"distance_swap: {n} values cannot swap at rank differences"):
                    swapped(np.arange(n, dtype=np.float64), d=d, p=p)


def test_the_refusal_says_column_and_remedy() -> None:
    data = pa.table({"INCOME": X})
    with pytest.raises(rv.ParameterError) as caught:
        rv.mask(data, "distance_swap", d=3)
    assert str(caught.value) == (
        "column INCOME: distance_swap: 5 values cannot swap at rank differences from 3 to 4; "
        "d must be at most half the records and p percent of them at least d"
    )
    with pytest.raises(rv.ParameterError, match=r"from 2 to 2; .* at least d, 3 here$"):
        rv.mask(data, "distance_swap", d=2, p=40)


def test_limits_that_leave_little_choice_are_said() -> None:
    made = swapped(np.arange(100.0), d=50)
    assert made.notes == ("differences of 50 to 99 ranks leave 100 values little choice: lower d",)
    assert swapped(np.arange(100.0), d=25).notes == ()


def test_with_ties_the_attained_distance_is_counted_and_reported() -> None:
    x = np.array([1.0, 1.0, 1.0, 2.0])
    made = swapped(x, d=1)
    moved = np.abs(average_ranks(x) - average_ranks(made.values))
    short = int(np.sum(moved < 1))
    assert short >= 2
    assert made.counts == {"moved_less_than_d": short}
    (note,) = made.notes
    assert re.fullmatch(rf"ties: {short} of 4 values moved less than 1 ranks, the least by 0", note)


def test_which_of_tied_records_swaps_is_drawn() -> None:
    x = np.array([1.0, 1.0, 2.0, 1.0])
    taker = [int(np.argmax(swapped(x, seed=seed, d=1, p=25).values)) for seed in range(1_500)]
    assert stats.chisquare(np.bincount(taker, minlength=4)[[0, 1, 3]]).pvalue > FALSE_ALARM
    assert 2 not in taker


def test_all_permutations_of_six_records_are_equally_likely() -> None:
    counts: dict[tuple[float, ...], int] = {}
    for seed in range(2_000):
        made = tuple(swapped(np.arange(6.0), seed=seed, d=2).values.tolist())
        counts[made] = counts.get(made, 0) + 1
    possible = [p for p in permutations(range(6)) if all(abs(target - place) >= 2 for place, target in enumerate(p))]
    assert len(counts) == len(possible) == 29
    assert stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM


def test_values_do_not_change_places_in_pairs() -> None:
    n = 3_000
    x = np.arange(float(n))
    given = [swapped(x, seed=seed, d=300, p=30).values.astype(int) for seed in range(5)]
    back = [float(np.mean(y[y] == x)) for y in given]
    thrice = [float(np.mean(y[y[y]] == x)) for y in given]
    # about 1,000 places are allowed on average, so that one in 1,000 or so is in a pair, or in a cycle of three
    assert np.mean(back) < 0.004
    assert np.mean(thrice) < 0.004


def test_partners_are_anywhere_between_d_and_the_limit() -> None:
    n, d = 6_001, 50
    x = np.random.default_rng(0).permutation(n).astype(np.float64)
    moved = np.abs(x - swapped(x, d=d, p=5).values)
    assert moved.min() == d
    assert moved.max() == 300
    counts = np.histogram(moved, bins=5, range=(50, 301))[0] / n
    assert np.all(counts > 0.1), "far partners are as usual as near ones"
