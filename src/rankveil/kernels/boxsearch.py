"""Exact nearest and farthest records of those that remain in a tree of boxes.

Single precision and boxes only prune; what decides is `distance`, and equal distances go to the lower row.
"""

from __future__ import annotations

import numpy as np

from rankveil.kernels.boxes import FAN, LEAF, PART
from rankveil.kernels.compiler import numba

STACK = 4096
"""How many nodes may wait in a search."""

_part = numba.njit(**PART)
_inlined = numba.njit(**PART, forceinline=True)
"""A tree is a dozen arrays: handing them to a small function would take longer than what it does."""


@_inlined
def distance(x, i, q):
    """The squared distance that decides: double precision, attribute by attribute in order."""
    total = 0.0
    for j in range(x.shape[1]):
        u = x[i, j] - q[j]
        total += u * u
    return total


@_inlined
def _query(tree, q):
    """The query relative to the centre, in single precision, as wide as the records are stored."""
    made = np.zeros(tree.points.shape[1], np.float32)
    for j in range(q.size):
        made[j] = q[j] - tree.centre[j]
    return made


@_inlined
def _leaf_distances(tree, leaf, q, found):
    points = tree.points
    for t in range(LEAF):
        found[t] = np.float32(0.0)
    for j in range(0, points.shape[1], 2):
        q0, q1 = q[j], q[j + 1]
        for t in range(LEAF):
            a = points[leaf, j, t] - q0
            b = points[leaf, j + 1, t] - q1
            found[t] += a * a + b * b


@_inlined
def _nearest_bounds(tree, group, q, found):
    """For every child the least squared distance that a record in its box can have."""
    low, high, zero = tree.low, tree.high, np.float32(0.0)
    for t in range(FAN):
        found[t] = zero
    for j in range(0, low.shape[1], 2):
        q0, q1 = q[j], q[j + 1]
        for t in range(FAN):
            a = max(max(low[group, j, t] - q0, q0 - high[group, j, t]), zero)
            b = max(max(low[group, j + 1, t] - q1, q1 - high[group, j + 1, t]), zero)
            found[t] += a * a + b * b


@_inlined
def _farthest_bounds(tree, group, q, square, found, dots):
    """For every child the largest squared distance that its box and largest norm allow; below 0 for an empty one."""
    low, high = tree.low, tree.high
    for t in range(FAN):
        found[t] = np.float32(0.0)
        dots[t] = np.float32(0.0)
    for j in range(0, low.shape[1], 2):
        q0, q1 = q[j], q[j + 1]
        for t in range(FAN):
            l0, h0, l1, h1 = low[group, j, t], high[group, j, t], low[group, j + 1, t], high[group, j + 1, t]
            a = max(q0 - l0, h0 - q0)
            b = max(q1 - l1, h1 - q1)
            found[t] += a * a + b * b
            dots[t] += min(l0 * q0, h0 * q0) + min(l1 * q1, h1 * q1)
    slack = np.float32(np.sqrt(low.shape[1]) * tree.relative)
    for t in range(FAN):
        norm = tree.largest[group * FAN + t]
        ball = (norm + square) - np.float32(2.0) * dots[t] + slack * (norm + square)
        found[t] = min(found[t], ball) if norm >= 0.0 else np.float32(-1.0)


@_inlined
def _wider(tree, square):
    """A squared distance seen in single precision may be this large and still not be above `square` in truth."""
    root = (np.sqrt(square) + tree.error) * (1.0 + tree.relative)
    return np.float32(root * root * (1.0 + 1e-6))


@_inlined
def _narrower(tree, square):
    """A squared distance seen in single precision may be this small and still not be below `square` in truth."""
    root = max((np.sqrt(max(square, 0.0)) - tree.error) * (1.0 - tree.relative), 0.0)
    return np.float32(root * root * (1.0 - 1e-6)) if square >= 0.0 else np.float32(-0.5)


@_inlined
def _keep(leaf, tree, q, found, limit, best, places):
    """Put a leaf's records among the k nearest so far (sorted by distance, then row); the new limit."""
    k, some = best.size, 0
    for t in range(LEAF):  # all lanes at once: mostly there is none
        some |= found[t] <= limit
    if not some:
        return limit
    for t in range(tree.count[leaf]):
        if found[t] <= limit:
            place = tree.places[leaf, t]
            d = distance(tree.x, place, q)
            row = tree.rows[place]
            if d < best[k - 1] or (d == best[k - 1] and row < tree.rows[places[k - 1]]):
                p = k - 1
                while p > 0 and (best[p - 1] > d or (best[p - 1] == d and tree.rows[places[p - 1]] > row)):
                    best[p] = best[p - 1]
                    places[p] = places[p - 1]
                    p -= 1
                best[p] = d
                places[p] = place
                if best[k - 1] < np.inf:
                    limit = _wider(tree, best[k - 1])
    return limit


@_part
def nearest(tree, q, home, best, places, nodes, bounds, found):
    """The k = best.size records nearest to q, by distance and then row; `home` is the leaf to look in first."""
    leaves = tree.count.size
    seen = _query(tree, q)
    best[:] = np.inf
    limit = np.float32(np.inf)
    depth, at_home = _begin(tree, nodes, bounds, np.float32(0.0)), True
    nodes[depth] = home
    bounds[depth] = 0.0
    depth += 1
    while depth > 0:
        depth -= 1
        node = nodes[depth]
        if bounds[depth] > limit or (node == home and not at_home):
            continue
        if node >= leaves:
            _nearest_bounds(tree, node - leaves, seen, found)
            depth = _push_nearest(node - leaves, found, limit, depth, nodes, bounds)
        else:
            at_home = False
            _leaf_distances(tree, node, seen, found)
            limit = _keep(node, tree, q, found, limit, best, places)


@_inlined
def _begin(tree, nodes, bounds, bound):
    """Put the groups without a parent on the stack, as if they had one."""
    depth = 0
    for group in range(tree.top, tree.low.shape[0]):
        nodes[depth] = tree.count.size + group
        bounds[depth] = bound
        depth += 1
    return depth


@_inlined
def _push_nearest(group, found, limit, floor, nodes, bounds):
    """Children that may hold a nearer record, the nearest on top; the new depth of the stack."""
    depth = floor
    for t in range(FAN):  # without a branch, which could not be foreseen
        bounds[depth] = found[t]
        nodes[depth] = group * FAN + t
        depth += found[t] <= limit and found[t] < np.inf
    for i in range(floor + 1, depth):
        bound, node, p = bounds[i], nodes[i], i
        while p > floor and bounds[p - 1] < bound:
            bounds[p] = bounds[p - 1]
            nodes[p] = nodes[p - 1]
            p -= 1
        bounds[p] = bound
        nodes[p] = node
    return depth


@_part
def farthest(tree, q, most, row, nodes, bounds, found, dots):
    """The row of the record farthest from q, the lowest of several; one is known, at the squared distance `most`."""
    leaves = tree.count.size
    seen = _query(tree, q)
    square = np.float32(0.0)
    for j in range(seen.size):
        square += seen[j] * seen[j]
    limit = _narrower(tree, most)
    depth = _begin(tree, nodes, bounds, np.float32(np.inf))
    while depth > 0:
        depth -= 1
        if bounds[depth] < limit:
            continue
        node = nodes[depth]
        if node >= leaves:
            _farthest_bounds(tree, node - leaves, seen, square, found, dots)
            depth = _push_farthest(node - leaves, found, limit, depth, nodes, bounds)
        else:
            _leaf_distances(tree, node, seen, found)
            some = 0
            for t in range(LEAF):
                some |= found[t] >= limit
            if not some:
                continue
            for t in range(tree.count[node]):
                if found[t] >= limit:
                    place = tree.places[node, t]
                    d = distance(tree.x, place, q)
                    if d > most or (d == most and tree.rows[place] < row):
                        most = d
                        row = tree.rows[place]
                        limit = _narrower(tree, most)
    return row


@_inlined
def _push_farthest(group, found, limit, floor, nodes, bounds):
    """Children that may hold a farther record, the farthest on top; the new depth of the stack."""
    depth = floor
    for t in range(FAN):
        bounds[depth] = found[t]
        nodes[depth] = group * FAN + t
        depth += found[t] >= limit and found[t] >= 0.0
    for i in range(floor + 1, depth):
        bound, node, p = bounds[i], nodes[i], i
        while p > floor and bounds[p - 1] > bound:
            bounds[p] = bounds[p - 1]
            nodes[p] = nodes[p - 1]
            p -= 1
        bounds[p] = bound
        nodes[p] = node
    return depth
