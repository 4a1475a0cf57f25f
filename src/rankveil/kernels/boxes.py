"""A wide tree of bounding boxes over records that leave one by one; `boxsearch` asks it for nearest and farthest ones.

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
