"""Who swaps with whom, on positions 0 .. n - 1 of a sorted column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from rankveil.kernels import kernel

Array = NDArray[np.float64]
Partners = NDArray[np.int64]


@kernel
def pair_within(
    draws: Array, first: int, n: int, reach: int, bag: Partners, slot: Partners, partner: Partners, state: Partners
) -> Partners:
    """Random pairs at most `reach` apart, nobody twice; a position whose neighbours are all taken keeps its place.

    From the lowest position up, each one still free picks among the free ones in its reach above it, by its draw.
    The free ones in reach are kept as a bag, so a pick costs the same however far the reach. The positions from `first`
    on have these draws, of n in all; bag, slot and partner are rings of min(n, reach + 1) positions and, with the
    state, say how the positions before have left it.
    """
    width = slot.size
    count, added = state[0], state[1]
    found = np.empty(draws.size, dtype=np.int64)
    for i in range(first, first + draws.size):
        while added < min(n, i + reach + 1):
            bag[count], slot[added % width], partner[added % width] = added, count, added
            count += 1
            added += 1
        here = i % width
        if slot[here] >= 0:
            count -= 1
            last = bag[count]
            bag[slot[here]], slot[last % width] = last, slot[here]
            slot[here] = -1
            if count > 0:
                j = bag[min(int(draws[i - first] * count), count - 1)]
                count -= 1
                last = bag[count]
                bag[slot[j % width]], slot[last % width] = last, slot[j % width]
                slot[j % width] = -1
                partner[here], partner[j % width] = j, i
        found[i - first] = partner[here]
    state[0], state[1] = count, added
    return found


def within_reach(draws: Iterable[Array], n: int, reach: int) -> Iterator[Partners]:
    """The partners of n positions, piece by piece, from their draws in such pieces: see `pair_within`.

    >>> np.concatenate(list(within_reach([np.array([0.9]), np.array([0.0, 0.0])], 3, 1)))
    array([1, 0, 2])
    """
    bag, partner = (np.empty(min(n, reach + 1), dtype=np.int64) for _ in range(2))
    slot, state = np.full_like(bag, -1), np.zeros(2, dtype=np.int64)
    first = 0
    for piece in draws:
        yield pair_within(piece, first, n, reach, bag, slot, partner, state)
        first += piece.size


@kernel
def mix_targets(
    target: Partners, owner: Partners, picks: Array, others: Array, turns: Array, nearest: int, farthest: int
) -> int:
    """Exchange targets between random positions as long as every one goes `nearest` to `farthest` away.

    `target` is a valid permutation and `owner` its inverse; both are changed in place, and how many proposals were
    taken is returned. In each sweep every position in turn (a) makes one of three proposals, by its draws: it exchanges
    targets with a position (b) no farther away than the limits are from each other; it picks a target in its limits,
    whose owner (b) takes its own; or b picks one in the same way, whose owner takes a's. Before a sweep the permutation
    becomes its inverse or not, by a draw of `turns`. Every proposal is as likely as the one that undoes it, so that in
    the limit all permutations that can be reached are equally likely.
    """
    n = target.size
    wide = farthest - nearest + 1
    taken = 0
    for step in range(picks.size):
        a = step % n
        if a == 0 and turns[step // n] < 0.5:
            for i in range(n):
                target[i], owner[i] = owner[i], target[i]
        own = target[a]
        way = min(int(picks[step] * 2 * wide), 2 * wide - 1)
        which = others[step] * 3
        if which < 1:
            b = a + 1 + way if way < wide else a - 1 - (way - wide)
            if b < 0 or b >= n:
                continue
            wanted = target[b]
            gap = abs(a - wanted)
            if gap < nearest or gap > farthest:
                continue
        else:
            wanted = a + nearest + way if way < wide else a - nearest - (way - wide)
            if wanted < 0 or wanted >= n or wanted == own:
                continue
            b = owner[wanted]
        if which < 2:
            gap = abs(b - own)
            if nearest <= gap <= farthest:
                target[a], target[b], owner[wanted], owner[own] = wanted, own, a, b
                taken += 1
            continue
        way = min(int((which - 2) * 2 * wide), 2 * wide - 1)
        second = b + nearest + way if way < wide else b - nearest - (way - wide)
        if second < 0 or second >= n or second in (wanted, own):
            continue
        c = owner[second]
        gap = abs(c - own)
        if nearest <= gap <= farthest:
            target[a], target[b], target[c] = wanted, second, own
            owner[wanted], owner[second], owner[own] = a, b, c
            taken += 1
    return taken
