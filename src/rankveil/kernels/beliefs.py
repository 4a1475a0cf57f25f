"""Belief propagation over one-to-one links: what one side of a sparse graph tells its edges.

A factor is a record of one table; its edges lead to records of the other. Exactly one of them holds (or the weight
outside the graph does), so an edge hears how likely the others of its factor are. Messages are kept as they are, not as
logarithms: a sweep needs no exponential per edge.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankveil.kernels import kernel

Array = NDArray[np.float64]
Beliefs = NDArray[np.float32]
Edges = NDArray[np.int32]
Flags = NDArray[np.uint8]

LARGEST = 1e100
"""The largest message: beliefs that differ from 0 or 1 by less than its inverse are the same."""


@kernel
def tell_edges(
    starts: NDArray[np.int64],
    edges: Edges,
    ends: Edges,
    copies: Array,
    weight: Array,
    heard: Array,
    told: Array,
    level: Array,
    tail: Array,
    unmatched: Array,
    of_ends: Array,
    total: Array,
    belief: Beliefs,
    waiting: Flags,
    wakes: Flags,
    settled: float,
    damped: bool,
    first: int,
    last: int,
) -> float:
    """New messages told = 1 / (outside + sum over the factor's other edges of n), n = weight heard.

    The factors from `first` to before `last` that are `waiting` are treated. A factor believes in an edge by n divided
    by the whole sum, and the edge's other end by the odds of n times the last message: where the two differ by more
    than `settled` that end is woken. Returns by how much a factor's own belief changed at most (the last one follows
    from the last message and sum). Beliefs are kept in `belief` unless that is empty. A damped message is the geometric
    mean of the new and the last one.

    An edge stands for `copies` equal records at its other end (its entry, or the only one for all), of which it is
    one. What lies outside is exp(unmatched) and exp(tail) divided by the geometric mean of the sums of the ends;
    `level` is the logarithm by which the factor's weights were divided, `total` becomes that of the whole sum, and
    `of_ends` are the totals of the other side. The largest term is never subtracted: its message is summed from the
    others.
    """
    several, kept = copies.size > 1, belief.size > 0
    largest = 0.0
    for factor in range(first, last):
        if waiting[factor] == 0:
            continue
        waiting[factor] = 0
        low, high = starts[factor], starts[factor + 1]
        top, at, rest, mean = 0.0, -1, 0.0, 0.0
        for place in range(low, high):
            edge = edges[place]
            n = weight[edge] * heard[edge]
            many = copies[edge] if several else copies[0]
            mean += of_ends[ends[edge]]
            if n > top:
                rest += top + (many - 1.0) * n
                top, at = n, place
            else:
                rest += many * n
        outside = math.exp(min(unmatched[factor] - level[factor], 230.0))
        if high > low and tail[factor] > -math.inf:
            outside += math.exp(min(tail[factor] - mean / (high - low) - level[factor], 230.0))
        rest += outside
        whole = rest + top
        before = math.exp(total[factor] - level[factor])
        total[factor] = level[factor] + math.log(whole) if whole > 0.0 else -math.inf
        for place in range(low, high):
            edge = edges[place]
            n = weight[edge] * heard[edge]
            made = n / whole if whole > 0.0 else 0.0
            believed = 1.0 - 1.0 / (told[edge] * before) if before > 0.0 else 0.0
            largest = max(largest, abs(made - believed))
            odds = n * told[edge]
            if abs(made - odds / (1.0 + odds)) > settled:
                wakes[ends[edge]] = 1
            others = rest if place == at else whole - n
            message = 1.0 / others if others * LARGEST > 1.0 else LARGEST
            told[edge] = math.sqrt(message * told[edge]) if damped else message
            if kept:
                belief[edge] = made
    return largest
