"""A wide tree of bounding boxes over records that leave one by one: exact nearest and farthest of those that remain.

Leaves hold up to `LEAF` records side by side, inner nodes `FAN` children, so that one pass over contiguous single
precision numbers bounds all children of a node, or all records of a leaf, at once. Single precision only *prunes*,
with a slack that scales with the data (`error`, `relative`); every distance that decides is computed in double
precision from the records themselves, attribute by attribute in order, and equal distances go to the lower row. So the
answers are those of a plain loop, to the last bit.

Records are stored relative to a centre c. A node knows the box of its records and the largest squared norm |x - c|^2
among them: the second bounds the farthest record much better than the corner of a box, because
|x - q|^2 = |x - c|^2 + |q - c|^2 - 2 (x - c)(q - c).

Numbering: children of group g are the nodes g * FAN .. g * FAN + FAN - 1; nodes below `leaves` are leaves, node v above
is the parent of group v - leaves. Groups from `top` on have no parent: searches begin with them.
"""

from __future__ import annotations

from collections import namedtuple

import numba
import numpy as np

LEAF = 32
FAN = 32
FILL = 31
"""Records per leaf at most when the tree is built; rounding to a power of two of leaves makes it half of that."""
STACK = 4096

_njit = numba.njit(cache=True, nogil=True, error_model="numpy")

Tree = namedtuple("Tree", "x rows centre points places count norms low high largest top error relative")
"""The arrays of a tree: plain data, because kernels know no objects. `x` holds the records in the order of the leaves,
so that those of a leaf lie side by side; a record is known by its place there, rows[place] is its row in the table."""


@_njit
def build(x, rows):
    """A tree over the records `rows` of x; `rows` is put in the order of the leaves, and so are the tree's records."""
    n, m = rows.size, x.shape[1]
    wide = (m + 3) // 4 * 4  # attributes are summed four at a time
    leaves = FAN
    while n > FILL * leaves:
        leaves *= 2
    bounds = _arrange(x, rows, leaves)
    groups, size = 0, leaves
    while True:
        top = groups
        size = (size + FAN - 1) // FAN
        groups += size
        if size <= 2:
            break
    centre = np.zeros(m)
    for i in range(n):
        for j in range(m):
            centre[j] += x[rows[i], j]
    for j in range(m):
        centre[j] /= n
    points = np.zeros((leaves, wide, LEAF), np.float32)
    places = np.full((leaves, LEAF), -1, np.int64)
    ordered = np.empty((n, m))
    count = np.zeros(leaves, np.int64)
    norms = np.zeros((leaves, LEAF), np.float32)
    low = np.full((groups, wide, FAN), np.inf, np.float32)
    high = np.full((groups, wide, FAN), -np.inf, np.float32)
    largest = np.full(groups * FAN, -1.0, np.float32)
    magnitude = 0.0
    for leaf in range(leaves):
        for i in range(bounds[leaf], bounds[leaf + 1]):
            t = i - bounds[leaf]
            places[leaf, t] = i
            norm = 0.0
            for j in range(m):
                ordered[i, j] = x[rows[i], j]
                u = ordered[i, j] - centre[j]
                points[leaf, j, t] = u
                norm += u * u
                magnitude = max(magnitude, abs(u))
            norms[leaf, t] = norm * (1.0 + 1e-6)
        count[leaf] = bounds[leaf + 1] - bounds[leaf]
    tree = Tree(
        ordered,
        rows,
        centre,
        points,
        places,
        count,
        norms,
        low,
        high,
        largest,
        top,
        np.sqrt(m) * magnitude * 2.0**-21,
        (m + 8) * 2.0**-22,
    )
    for leaf in range(leaves):
        _box_of_leaf(tree, leaf)
    for group in range(top):
        _box_of_group(tree, group)
    return tree


@_njit
def _arrange(x, rows, leaves):
    """Split the records at medians of the attribute that varies most, until there are `leaves` parts; their bounds."""
    bounds = np.zeros(leaves + 1, np.int64)
    bounds[leaves] = rows.size
    width = leaves
    while width > 1:
        half = width // 2
        for part in range(0, leaves, width):
            start, end = bounds[part], bounds[part + width]
            middle = (start + end) // 2
            if end - start > 1:
                select(x, rows, start, end, _widest(x, rows, start, end), middle)
            bounds[part + half] = middle
        width = half
    return bounds


@_njit
def _widest(x, rows, start, end):
    """The attribute with the largest variance among (at most 256 of) the records."""
    step = max(1, (end - start) // 256)
    widest, most = 0, -1.0
    for j in range(x.shape[1]):
        total, square, number = 0.0, 0.0, 0
        for i in range(start, end, step):
            value = x[rows[i], j]
            total += value
            square += value * value
            number += 1
        variance = square / number - (total / number) ** 2
        if variance > most:
            widest, most = j, variance
    return widest


@_njit
def select(x, rows, start, end, j, middle):
    """Reorder rows[start:end] so that those before `middle` are not above those from it on, in attribute j."""
    low, high = start, end - 1
    while low < high:
        pivot = x[rows[(low + high) // 2], j]
        a, b = low, high
        while a <= b:
            while x[rows[a], j] < pivot:
                a += 1
            while x[rows[b], j] > pivot:
                b -= 1
            if a <= b:
                rows[a], rows[b] = rows[b], rows[a]
                a += 1
                b -= 1
        if middle <= b:
            high = b
        elif middle >= a:
            low = a
        else:
            return


@_njit
def _box_of_leaf(tree, leaf):
    group, lane, number = leaf // FAN, leaf % FAN, tree.count[leaf]
    for j in range(tree.points.shape[1]):
        least, most = np.float32(np.inf), np.float32(-np.inf)
        for t in range(number):
            least = min(least, tree.points[leaf, j, t])
            most = max(most, tree.points[leaf, j, t])
        tree.low[group, j, lane] = least
        tree.high[group, j, lane] = most
    norm = np.float32(-1.0)
    for t in range(number):
        norm = max(norm, tree.norms[leaf, t])
    tree.largest[leaf] = norm


@_njit
def _box_of_group(tree, group):
    """The box of a group's parent from those of its children; whether it changed."""
    node = tree.count.size + group
    above, lane = node // FAN, node % FAN
    changed = False
    for j in range(tree.low.shape[1]):
        least, most = np.float32(np.inf), np.float32(-np.inf)
        for t in range(FAN):
            least = min(least, tree.low[group, j, t])
            most = max(most, tree.high[group, j, t])
        changed |= least != tree.low[above, j, lane] or most != tree.high[above, j, lane]
        tree.low[above, j, lane] = least
        tree.high[above, j, lane] = most
    norm = np.float32(-1.0)
    for t in range(FAN):
        norm = max(norm, tree.largest[group * FAN + t])
    changed |= norm != tree.largest[node]
    tree.largest[node] = norm
    return changed


@_njit
def remove(tree, home, places):
    """Take records out; the boxes above them shrink."""
    for place in places:
        leaf = home[place]
        last = tree.count[leaf] - 1
        tree.count[leaf] = last
        for t in range(last + 1):
            if tree.places[leaf, t] == place:
                tree.places[leaf, t] = tree.places[leaf, last]
                tree.norms[leaf, t] = tree.norms[leaf, last]
                for j in range(tree.points.shape[1]):
                    tree.points[leaf, j, t] = tree.points[leaf, j, last]
                break
    for i in range(places.size):
        leaf = home[places[i]]
        again = False
        for other in places[:i]:
            again |= home[other] == leaf
        if again:
            continue
        _box_of_leaf(tree, leaf)
        group = leaf // FAN
        while group < tree.top and _box_of_group(tree, group):
            group = (tree.count.size + group) // FAN


@_njit
def distance(x, i, q):
    """The squared distance that decides: double precision, attribute by attribute in order."""
    total = 0.0
    for j in range(x.shape[1]):
        u = x[i, j] - q[j]
        total += u * u
    return total


@_njit
def _query(tree, q):
    """The query relative to the centre, in single precision, as wide as the records are stored."""
    made = np.zeros(tree.points.shape[1], np.float32)
    for j in range(q.size):
        made[j] = q[j] - tree.centre[j]
    return made


@_njit
def _leaf_distances(tree, leaf, q, found):
    points = tree.points
    for t in range(LEAF):
        found[t] = np.float32(0.0)
    for j in range(0, points.shape[1], 4):
        q0, q1, q2, q3 = q[j], q[j + 1], q[j + 2], q[j + 3]
        for t in range(LEAF):
            a = points[leaf, j, t] - q0
            b = points[leaf, j + 1, t] - q1
            c = points[leaf, j + 2, t] - q2
            d = points[leaf, j + 3, t] - q3
            found[t] += (a * a + b * b) + (c * c + d * d)


@_njit
def _nearest_bounds(tree, group, q, found):
    """For every child the least squared distance that a record in its box can have."""
    low, high, zero = tree.low, tree.high, np.float32(0.0)
    for t in range(FAN):
        found[t] = zero
    for j in range(0, low.shape[1], 4):
        q0, q1, q2, q3 = q[j], q[j + 1], q[j + 2], q[j + 3]
        for t in range(FAN):
            a = max(max(low[group, j, t] - q0, q0 - high[group, j, t]), zero)
            b = max(max(low[group, j + 1, t] - q1, q1 - high[group, j + 1, t]), zero)
            c = max(max(low[group, j + 2, t] - q2, q2 - high[group, j + 2, t]), zero)
            d = max(max(low[group, j + 3, t] - q3, q3 - high[group, j + 3, t]), zero)
            found[t] += (a * a + b * b) + (c * c + d * d)


@_njit
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


@_njit
def _wider(tree, square):
    """A squared distance seen in single precision may be this large and still not be above `square` in truth."""
    root = (np.sqrt(square) + tree.error) * (1.0 + tree.relative)
    return np.float32(root * root * (1.0 + 1e-6))


@_njit
def _narrower(tree, square):
    """A squared distance seen in single precision may be this small and still not be below `square` in truth."""
    root = max((np.sqrt(max(square, 0.0)) - tree.error) * (1.0 - tree.relative), 0.0)
    return np.float32(root * root * (1.0 - 1e-6)) if square >= 0.0 else np.float32(-0.5)


@_njit
def _keep(leaf, tree, q, found, limit, best, places):
    """Put a leaf's records among the k nearest so far (sorted by distance, then row); the new limit."""
    k = best.size
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


@_njit
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
            depth = _push_nearest(node - leaves, found, limit, depth, depth, nodes, bounds)
        else:
            at_home = False
            _leaf_distances(tree, node, seen, found)
            limit = _keep(node, tree, q, found, limit, best, places)


@_njit
def _begin(tree, nodes, bounds, bound):
    """Put the groups without a parent on the stack, as if they had one."""
    depth = 0
    for group in range(tree.top, tree.low.shape[0]):
        nodes[depth] = tree.count.size + group
        bounds[depth] = bound
        depth += 1
    return depth


@_njit
def _push_nearest(group, found, limit, depth, floor, nodes, bounds):
    """Children that may hold a nearer record, the nearest on top."""
    for t in range(FAN):
        bound = found[t]
        if bound <= limit and bound < np.inf:
            p = depth
            while p > floor and bounds[p - 1] < bound:
                bounds[p] = bounds[p - 1]
                nodes[p] = nodes[p - 1]
                p -= 1
            bounds[p] = bound
            nodes[p] = group * FAN + t
            depth += 1
    return depth


@_njit
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
            depth = _push_farthest(node - leaves, found, limit, depth, depth, nodes, bounds)
        else:
            _leaf_distances(tree, node, seen, found)
            for t in range(tree.count[node]):
                if found[t] >= limit:
                    place = tree.places[node, t]
                    d = distance(tree.x, place, q)
                    if d > most or (d == most and tree.rows[place] < row):
                        most = d
                        row = tree.rows[place]
                        limit = _narrower(tree, most)
    return row


@_njit
def _push_farthest(group, found, limit, depth, floor, nodes, bounds):
    """Children that may hold a farther record, the farthest on top."""
    for t in range(FAN):
        bound = found[t]
        if bound >= limit and bound >= 0.0:
            p = depth
            while p > floor and bounds[p - 1] > bound:
                bounds[p] = bounds[p - 1]
                nodes[p] = nodes[p - 1]
                p -= 1
            bounds[p] = bound
            nodes[p] = group * FAN + t
            depth += 1
    return depth
