"""Who swaps with whom, on positions 0 .. n - 1 of a sorted column."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankveil.kernels import kernel

Array = NDArray[np.float64]
Partners = NDArray[np.int64]


@kernel
def within_reach(draws: Array, reach: int) -> Partners:
    """Random pairs at most `reach` apart, nobody twice; a position whose neighbours are all taken keeps its place.

    From the lowest position up, each one still free picks among the free ones in its reach above it, by its draw.
    The free ones in reach are kept as a bag, so a pick costs the same however far the reach.
    """
    n = draws.size
    partner = np.arange(n)
    bag = np.empty(min(n, reach + 1), dtype=np.int64)
    slot = np.full(n, -1, dtype=np.int64)
    count, added = 0, 0
    for i in range(n):
        while added < min(n, i + reach + 1):
            bag[count], slot[added] = added, count
            count += 1
            added += 1
        if slot[i] < 0:
            continue
        count -= 1
        last = bag[count]
        bag[slot[i]], slot[last] = last, slot[i]
        slot[i] = -1
        if count == 0:
            continue
        j = bag[min(int(draws[i] * count), count - 1)]
        count -= 1
        last = bag[count]
        bag[slot[j]], slot[last] = last, slot[j]
        slot[j] = -1
        partner[i], partner[j] = j, i
    return partner


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
