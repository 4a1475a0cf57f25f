"""Distance swapping on five records, and its guarantee for every size, distance and limit that is possible."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import rankveil as rv
from rankveil.catalogue import get_method
from rankveil.errors import ParameterError
from rankveil.methods.distance_swap import _paired
from rankveil.ranks import average_ranks
from rankveil.seeds import Seed

FALSE_ALARM = 1e-6

distance_swap = get_method("distance_swap")
X = np.array([30.0, 10.0, 50.0, 20.0, 40.0])


def swapped(x: Any, *, seed: int = 1, **parameters: Any) -> Any:
    return distance_swap(x, rng=Seed.of(seed).stream("a"), **parameters)


def test_five_records_by_hand() -> None:
    # at least two ranks: 10 -> 30 -> 50 -> 10 is the 3-cycle of an odd number, 20 and 40 swap
    for seed in range(10):
        made = swapped(X, seed=seed, d=2)
        assert made.values.tolist() == [50.0, 30.0, 10.0, 40.0, 20.0]
        assert made.counts == {"moved_less_than_d": 0}
        assert made.notes == ()


def test_four_records_at_distance_two_by_hand() -> None:
    assert swapped(X[:4], d=2).values.tolist() == [10.0, 30.0, 20.0, 50.0]


@st.composite
def possible(draw: Any) -> tuple[int, int, float | None]:
    """Sizes, distances and limits that can be met: d at most half of n, p percent at least d (2 d for an odd n)."""
    d = draw(st.integers(1, 20))
    n = draw(st.integers(2 * d, 6 * d + 7).filter(lambda n: n % 2 == 0 or n > 2 * d))
    if draw(st.booleans()):
        return n, d, None
    need = 2 * d if n % 2 else -(-n // (2 * (n // (2 * d))))
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
    giver = np.empty(n, dtype=int)  # the value is the rank, from 0
    giver[x.astype(int)] = made.values.astype(int)
    back = giver[giver] == np.arange(n)
    assert int(np.sum(~back)) == (3 if n % 2 else 0), "pairs, but for the three of an odd number"
    assert np.array_equal(giver[giver[giver]][~back], np.arange(n)[~back])


def can_be_paired(n: int, d: int, farthest: int) -> bool:
    """By trying everything: pairs, and one 3-cycle when n is odd, with all differences in the limits."""

    @cache
    def rest(taken: int, turn: bool) -> bool:
        if taken == 2**n - 1:
            return not turn
        i = next(k for k in range(n) if not taken >> k & 1)
        free = [j for j in range(i + d, min(n, i + farthest + 1)) if not taken >> j & 1]
        if any(rest(taken | 1 << i | 1 << j, turn) for j in free):
            return True
        return turn and any(rest(taken | 1 << i | 1 << j | 1 << k, False) for j in free for k in free if k - j >= d)

    return rest(0, n % 2 == 1)


@pytest.mark.parametrize("n", range(1, 14))
def test_only_what_is_impossible_is_refused(n: int) -> None:
    for d in range(1, n + 2):
        for farthest in range(n + 1):
            p = min(100.0, 100 * (farthest + 0.01) / n)
            if can_be_paired(n, d, min(farthest, n - 1)):
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
        "d must be at most half the records and p percent of them at least 2 d"
    )
    with pytest.raises(rv.ParameterError, match=r"at least d$"):
        rv.mask(data.slice(0, 4), "distance_swap", d=2, p=25)


@pytest.mark.parametrize("where", [0.0, 0.5, 1 - 2**-53])
def test_the_three_cycle_lies_where_the_draw_says(where: float) -> None:
    for n, d in ((25, 2), (9, 3), (7, 3)):
        partner = _paired(n, d, n - 1, where=where)
        cycle = np.flatnonzero(partner[partner] != np.arange(n))
        assert np.diff(cycle).tolist() == [d, d]
        assert (cycle[0] == 0) == (where == 0.0 or n == 2 * d + 1)


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
    taker = [int(np.argmax(swapped(x, seed=seed, d=1, p=25).values)) for seed in range(3_000)]
    assert stats.chisquare(np.bincount(taker, minlength=4)[[0, 1, 3]]).pvalue > FALSE_ALARM
    assert 2 not in taker


def test_all_pairings_of_six_records_are_equally_likely() -> None:
    counts: dict[tuple[float, ...], int] = {}
    for seed in range(4_000):
        pairing = tuple(swapped(np.arange(6.0), seed=seed, d=1).values.tolist())
        counts[pairing] = counts.get(pairing, 0) + 1
    assert len(counts) == 15
    assert stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM


def test_partners_are_anywhere_between_d_and_the_limit() -> None:
    n, d = 6_001, 50
    x = np.random.default_rng(0).permutation(n).astype(np.float64)
    moved = np.abs(x - swapped(x, d=d, p=5).values)
    assert moved.min() == d
    assert moved.max() == 300
    counts = np.histogram(moved, bins=5, range=(50, 301))[0] / n
    assert np.all(counts > 0.1), "far partners are as usual as near ones"
