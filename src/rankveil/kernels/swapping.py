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
def mix_pairs(partner: Partners, picks: Array, ways: Array, nearest: int, farthest: int) -> Partners:
    """Exchange partners between random pairs as long as every pair stays `nearest` to `farthest` apart.

    A Markov chain on the valid pairings whose proposals are symmetric, so that its limit is the uniform one.
    `partner` is a valid pairing in which partner[partner[i]] == i; `picks` and `ways` hold one draw per proposal.
    Positions of a three-cycle (partner[partner[i]] != i) keep their places.
    """
    n = partner.size
    mixed = partner.copy()
    span = 2 * farthest + 1
    a = n - 1
    for step in range(picks.size):
        a = a + 1 if a + 1 < n else 0
        c = a - farthest + min(int(picks[step] * span), span - 1)
        if c < 0 or c >= n or c == a:
            continue
        b, d = mixed[a], mixed[c]
        if c == b or mixed[b] != a or mixed[d] != c:
            continue
        if ways[step] < 0.5:
            gap_one, gap_two = abs(a - c), abs(b - d)
            if nearest <= gap_one <= farthest and nearest <= gap_two <= farthest:
                mixed[a], mixed[c], mixed[b], mixed[d] = c, a, d, b
        else:
            gap_one, gap_two = abs(a - d), abs(b - c)
            if nearest <= gap_one <= farthest and nearest <= gap_two <= farthest:
                mixed[a], mixed[d], mixed[b], mixed[c] = d, a, c, b
    return mixed
