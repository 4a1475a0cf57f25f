"""The cheapest way to carry given amounts from some places to others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankveil.kernels import kernel

Array = NDArray[np.float64]
Units = NDArray[np.int64]


@kernel
def transport(cost: Array, supply: Units, demand: Units) -> float:
    """The least total cost of carrying all of `supply` to where `demand` asks for it; their sums are equal.

    `cost` holds the costs of one unit, source by source, and is not negative. The network simplex method: what is
    carried flows along a tree, and an arc that would be cheaper than the way through the tree takes the place of the
    one on that way which runs empty first. At the beginning everything goes over a root that no place needs in the end.
    Of several arcs that run empty, the choice that keeps the tree strongly feasible (Cunningham 1976) lets the method
    end. Units are whole numbers, so that what is carried is exact.
    """
    n, m = supply.size, demand.size
    root = n + m
    dear = np.max(cost)
    if dear == 0:
        return 0.0
    parent = np.full(root + 1, root)
    parent[root] = -1
    upward = np.zeros(root + 1, dtype=np.bool_)  # whether the arc between a place and its parent goes to the parent
    upward[:n] = True
    flow = np.zeros(root + 1, dtype=np.int64)
    flow[:n], flow[n:root] = supply, demand
    price = np.full(
        root + 1, dear
    )  # what a unit costs when it comes from the root: 0 = cost + price - price on the tree
    price[:n] = -dear
    price[root] = 0.0
    depth = np.ones(root + 1, dtype=np.int64)
    depth[root] = 0
    child = np.full(root + 1, -1)
    before, after = np.arange(-1, root), np.arange(1, root + 2)  # the other children of the same parent
    child[root], after[root - 1], before[root], after[root] = 0, -1, -1, -1
    slack = 1e-12 * dear  # rounding of prices
    row, quiet = 0, 0
    while quiet < n:
        # the cheapest new arc of one source, then of the next
        offset, best, target = row * m, -slack, -1
        for j in range(m):
            reduced = cost[offset + j] + price[row] - price[n + j]
            if reduced < best:
                best, target = reduced, n + j
        source = row
        row = row + 1 if row + 1 < n else 0
        if target < 0:
            quiet += 1
            continue
        quiet = 0
        # the way through the tree, and what runs empty on it first
        a, b = source, target
        units, leaving, side = np.int64(-1), -1, 0
        while a != b:
            if depth[a] >= depth[b]:
                if upward[a] and (units < 0 or flow[a] < units):
                    units, leaving, side = flow[a], a, 1
                a = parent[a]
            else:
                if not upward[b] and (units < 0 or flow[b] <= units):  # of equals the one nearest to the join
                    units, leaving, side = flow[b], b, 2
                b = parent[b]
        join = a
        if units > 0:
            a = source
            while a != join:
                flow[a] += -units if upward[a] else units
                a = parent[a]
            b = target
            while b != join:
                flow[b] += units if upward[b] else -units
                b = parent[b]
        # the part of the tree that is cut off hangs on the new arc, turned so that its end is on top
        top, hook = (source, target) if side == 1 else (target, source)
        shift = -best if side == 1 else best
        place, above = top, hook
        carried, direction = units, side == 1
        while True:
            old, carried_old, direction_old = parent[place], flow[place], upward[place]
            if before[place] >= 0:
                after[before[place]] = after[place]
            else:
                child[old] = after[place]
            if after[place] >= 0:
                before[after[place]] = before[place]
            parent[place], flow[place], upward[place] = above, carried, direction
            before[place], after[place] = -1, child[above]
            if child[above] >= 0:
                before[child[above]] = place
            child[above] = place
            if place == leaving:
                break
            above, place = place, old
            carried, direction = carried_old, not direction_old
        # prices and depths below the new arc
        place = top
        while True:
            depth[place] = depth[parent[place]] + 1
            price[place] += shift
            if child[place] >= 0:
                place = child[place]
                continue
            while place != top and after[place] < 0:
                place = parent[place]
            if place == top:
                break
            place = after[place]
    total = 0.0
    for place in range(root):
        a, b = (place, parent[place]) if upward[place] else (parent[place], place)
        if a < n and n <= b < root:
            total += flow[place] * cost[a * m + b - n]
    return total
