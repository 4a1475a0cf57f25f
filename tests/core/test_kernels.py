"""The compiled loops give what their plain form gives, and what they promise."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rankveil.kernels import Kernel, kernel
from rankveil.kernels.boxes import FAN, LEAF, _levels, build
from rankveil.kernels.swapping import mix_targets, pair_within, within_reach
from rankveil.seeds import Seed

FALSE_ALARM = 1e-6

unit = st.floats(0, 1, exclude_max=True)


def is_pairing(partner: Any) -> bool:
    return bool(np.array_equal(partner[partner], np.arange(partner.size)))


def paired(form: Any, pieces: Any, reach: int) -> Any:
    """The partners that a form of the kernel finds, piece by piece."""
    n = sum(piece.size for piece in pieces)
    bag, partner, slot = np.full((3, min(n, reach + 1)), -1)
    state, first, found = np.zeros(2, np.int64), 0, []
    for piece in pieces:
        found.append(form(piece, first, n, reach, bag, slot, partner, state))
        first += piece.size
    return np.concatenate(found)


@settings(deadline=None)  # the first call compiles
@given(draws=st.lists(unit, max_size=60).map(lambda each: np.array(each, dtype=np.float64)), reach=st.integers(0, 70))
def test_within_reach_compiled_is_within_reach_plain(draws: Any, reach: int) -> None:
    plain = paired(pair_within.plain, [draws], reach)
    assert np.array_equal(plain, paired(pair_within.compiled, [draws], reach))
    pieces = [draws[:7], draws[7:8], draws[8:]]
    assert np.array_equal(plain, paired(pair_within.plain, pieces, reach))
    assert np.array_equal(plain, np.concatenate([*within_reach(pieces, draws.size, reach)]))
    assert is_pairing(plain)
    assert np.all(np.abs(plain - np.arange(plain.size)) <= reach)


@given(draws=st.lists(unit, min_size=1, max_size=40).map(np.array), reach=st.integers(0, 45))
def test_within_reach_is_what_its_words_say(draws: Any, reach: int) -> None:
    """From the lowest position up, each one still free picks among the free ones in its reach above it."""
    partner = paired(pair_within.plain, [draws], reach)
    free = set(range(draws.size))
    for i in range(draws.size):
        if i not in free:
            continue
        choice = {j for j in free if i < j <= i + reach}
        free.discard(i)
        if choice:
            assert partner[i] in choice
            free.discard(int(partner[i]))
        else:
            assert partner[i] == i


def test_the_draw_at_its_upper_end_picks_somebody() -> None:
    assert is_pairing(paired(pair_within.plain, [np.full(9, 1.0)], 4))


@st.composite
def permuted(draw: Any) -> tuple[Any, ...]:
    """A permutation within limits, and proposals."""
    nearest = draw(st.integers(1, 4))
    blocks = draw(st.integers(1, 4))
    target = np.concatenate(
        [2 * nearest * b + np.concatenate([np.arange(nearest) + nearest, np.arange(nearest)]) for b in range(blocks)]
    )
    farthest = draw(st.integers(max(nearest, 2), target.size + 1))
    steps = draw(st.integers(0, 80))
    stream = Seed.of(draw(st.integers(0, 10**6))).stream("mix")
    draws = stream.random(steps), stream.random(steps), stream.random(steps // target.size + 1)
    return target.astype(np.int64), np.argsort(target), *draws, nearest, farthest


@settings(deadline=None)
@given(permuted())
def test_mix_targets_compiled_is_mix_targets_plain(given_: tuple[Any, ...]) -> None:
    target, owner, *rest = given_
    nearest, farthest = rest[-2:]
    plain, compiled = (target.copy(), owner.copy()), (target.copy(), owner.copy())
    assert mix_targets.plain(*plain, *rest) == mix_targets.compiled(*compiled, *rest)
    assert np.array_equal(plain, compiled)
    assert np.array_equal(plain[0][plain[1]], np.arange(target.size)), "the owner stays the inverse"
    gaps = np.abs(plain[0] - np.arange(target.size))
    assert np.all((nearest <= gaps) & (gaps <= max(farthest, nearest)))


@pytest.mark.parametrize(("nearest", "farthest", "count"), [(1, 4, 44), (2, 5, 29), (1, 2, 13), (2, 4, 20)], ids=str)
def test_mixed_long_enough_every_valid_permutation_is_equally_likely(nearest: int, farthest: int, count: int) -> None:
    n = 5 if farthest == nearest + 3 and nearest == 1 else 6
    every = (p for p in permutations(range(n)) if all(nearest <= abs(p[k] - k) <= farthest for k in range(n)))
    seen = dict.fromkeys(every, 0)
    start = min(seen)
    runs, sweeps = 100 * count, 200
    stream = Seed.of(5).stream("mixing", nearest, farthest)
    picks, others = (stream.random(runs * sweeps * n).reshape(runs, -1) for _ in range(2))
    turns = stream.random(runs * sweeps).reshape(runs, -1)
    for k in range(runs):
        target = np.array(start, dtype=np.int64)
        mix_targets.compiled(target, np.argsort(target), picks[k], others[k], turns[k], nearest, farthest)
        seen[tuple(target.tolist())] += 1
    assert len(seen) == count
    assert stats.chisquare(list(seen.values())).pvalue > FALSE_ALARM


def test_a_kernel_runs_plain_when_small_and_compiled_when_large() -> None:
    made: Kernel = kernel(_sum)
    assert made.__name__ == "_sum"
    assert made(np.ones(10)) == 10
    assert "compiled" not in vars(made)
    assert made(np.ones(6_000)) == 6_000
    assert "compiled" in vars(made)


def _sum(x: Any) -> Any:
    total = 0.0
    for value in x:
        total += value
    return total


@pytest.mark.parametrize("n", [1, 64, 127, 4_000, 8_065, 20_000])
def test_a_tree_of_boxes_holds_every_record_once_and_within_all_boxes_above_it(n: int) -> None:
    x = np.random.default_rng(n).lognormal(size=(n, 3))
    tree = build(x, np.arange(n))
    leaves = tree.points.shape[0]
    assert tree.count.sum() == n
    assert tree.count.max() <= LEAF
    held = np.concatenate([tree.places[leaf, : tree.count[leaf]] for leaf in range(leaves)])
    assert np.array_equal(np.sort(tree.rows[held]), np.arange(n))
    assert np.array_equal(tree.x, x[tree.rows])
    for leaf in range(leaves):
        points, norms = tree.points[leaf, :, : tree.count[leaf]], tree.norms[leaf, : tree.count[leaf]]
        node, group = leaf, leaf // FAN
        while True:
            assert np.all(tree.low[group, :, node % FAN] <= points.min(axis=1))
            assert np.all(tree.high[group, :, node % FAN] >= points.max(axis=1))
            assert tree.largest[node] >= norms.max()
            if group >= tree.top:
                break
            node = tree.count.size + group
            group = node // FAN


@pytest.mark.parametrize("leaves", [1, 32, 33, 128, 129, 1_024, 4_096, 4_097, 40_000, 131_072, 131_073, 500_000])
def test_every_group_of_a_tree_has_a_parent_of_its_own_up_to_the_few_on_top(leaves: int) -> None:
    numbered, top, groups = _levels.py_func(leaves)
    assert numbered >= leaves
    assert 1 <= groups - top <= 4
    parents = (numbered + np.arange(top)) // FAN
    assert np.all((parents > np.arange(top)) & (parents < groups))
    begin, size = 0, numbered // FAN  # the levels follow each other without a gap
    while begin < top:
        begin, size, above = begin + size, size // FAN, parents[begin : begin + size]
        assert np.array_equal(np.unique(above), begin + np.arange(size))
    assert (begin, size) == (top, groups - top)
