"""A wide tree of bounding boxes over records that leave one by one; `boxsearch` asks it for nearest and farthest ones.

Leaves hold up to `LEAF` records side by side, inner nodes `FAN` children, so that one pass over contiguous single
precision numbers bounds all children of a node, or all records of a leaf, at once. Single precision only *prunes*,
with a slack that scales with the data (`error`, `relative`); every distance that decides is computed in double
precision from the records themselves, attribute by attribute in order, and equal distances go to the lower row. So the
answers are those of a plain loop, to the last bit.

Records are stored relative to a centre c. A node knows the box of its records and the largest squared norm |x - c|^2
among them: the second bounds the farthest record much better than the corner of a box, because
|x - q|^2 = |x - c|^2 + |q - c|^2 - 2 (x - c)(q - c). For the same reason |x - c| is split on like one more attribute:
a few records far out would otherwise widen the boxes of many that are not.

Numbering: children of group g are the nodes g * FAN .. g * FAN + FAN - 1; nodes below count.size are leaves, node v
above is the parent of group v - count.size. Groups from `top` on have no parent: searches begin with them. So that this
holds on every level, count.size may be above the number of leaves there are (points.shape[0]); those that are not there
have a count of 0, as empty ones do.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from rankveil.kernels.compiler import numba

LEAF = 64
FAN = 32
FILL = 63
"""Records per leaf when the tree is built, on average at most; rounding in the splits may add one to some."""
_TOP = 4
"""So many groups at most have no parent."""
_OUTWARD = 2.0
"""What the distance from the centre weighs beside the attributes in the choice of what to split on."""

PART: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""How to compile what only other kernels call: without the way in from Python, which takes long to compile."""
_part = numba.njit(**PART)
_minmax = numba.njit(**PART, fastmath={"nnan", "nsz"})
"""For least and largest values, which are then taken of several lanes at once; there are no NaN in a tree."""

Tree = namedtuple("Tree", "x rows centre points places count norms low high largest top error relative")
"""The arrays of a tree: plain data, because kernels know no objects. `x` holds the records in the order of the leaves,
so that those of a leaf lie side by side; a record is known by its place there, rows[place] is its row in the table."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def build(x, rows):
    """A tree over the records `rows` of x; `rows` is put in the order of the leaves, and so are the tree's records."""
    n, m = rows.size, x.shape[1]
    wide = (m + 1) // 2 * 2  # attributes are summed two at a time
    leaves = max((n + FILL - 1) // FILL, 1)
    numbered, top, groups = _levels(leaves)
    centre = np.zeros(m)
    for i in range(n):
        for j in range(m):
            centre[j] += x[rows[i], j]
    for j in range(m):
        centre[j] /= n
    bounds, magnitude = _arrange(x, rows, centre, leaves)
    points = np.zeros((leaves, wide, LEAF), np.float32)
    places = np.full((leaves, LEAF), -1, np.int64)
    ordered = np.empty((n, m))
    count = np.zeros(numbered, np.int64)
    norms = np.zeros((leaves, LEAF), np.float32)
    low = np.full((groups, wide, FAN), np.inf, np.float32)
    high = np.full((groups, wide, FAN), -np.inf, np.float32)
    largest = np.full(groups * FAN, -1.0, np.float32)
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


@_part
def _levels(leaves):
    """How many leaves to number so that levels below the top fill their groups; groups below the top, and in all."""
    unit = FAN
    while (leaves + unit - 1) // unit > _TOP:
        unit *= FAN
    numbered = (leaves + unit - 1) // unit * unit
    top, size = 0, numbered // FAN
    while size > _TOP:
        top += size
        size //= FAN
    return numbered, top, top + size


@_part
def _arrange(x, rows, centre, leaves):
    """Put `rows` in the order of the leaves; the leaves' bounds in it, and the largest difference from the centre."""
    n, m = rows.size, x.shape[1]
    around, magnitude = np.empty((n, m + 1), np.float32), 0.0
    for i in range(n):
        norm = 0.0
        for j in range(m):
            u = x[rows[i], j] - centre[j]
            around[i, j] = u
            norm += u * u
            magnitude = max(magnitude, abs(u))
        around[i, m] = _OUTWARD * np.sqrt(norm)
    order = np.arange(n)
    bounds = _split(around, order, leaves)
    given = rows.copy()
    for i in range(n):
        rows[i] = given[order[i]]
    return bounds, magnitude


@_part
def _split(x, order, leaves):
    """Split the records where the attribute that varies most is near its median, until there are `leaves` parts."""
    bounds = np.zeros(leaves + 1, np.int64)
    bounds[leaves] = order.size
    keys = np.empty(order.size, np.float32)
    first, last = np.zeros(64, np.int64), np.full(64, leaves)
    depth = 1
    while depth > 0:
        depth -= 1
        a, b = first[depth], last[depth]
        if b - a < 2:
            continue
        unit = 1  # the leaves of whole groups stay together
        while unit * FAN < b - a:
            unit *= FAN
        half = ((b - a + unit - 1) // unit + 1) // 2 * unit
        start, end = bounds[a], bounds[b]
        middle = start + (end - start) * half // (b - a)
        j = _widest(x, order, start, end)
        for i in range(start, end):
            keys[i] = x[order[i], j]
        select(keys, order, start, end, middle)
        bounds[a + half] = middle
        first[depth], last[depth] = a, a + half
        first[depth + 1], last[depth + 1] = a + half, b
        depth += 2
    return bounds


@_part
def _widest(x, order, start, end):
    """The attribute with the largest variance among (at most 128 of) the records."""
    m, step = x.shape[1], max(1, (end - start) // 64)
    total, square, number = np.zeros(m, np.float32), np.zeros(m, np.float32), 0
    for i in range(start, end, step):
        number += 1
        for j in range(m):
            u = x[order[i], j] - x[order[start], j]
            total[j] += u
            square[j] += u * u
    widest, most = 0, np.float32(-1.0)
    for j in range(m):
        variance = square[j] - total[j] * total[j] / number
        if variance > most:
            widest, most = j, variance
    return widest


@_part
def select(keys, order, start, end, middle):
    """Reorder keys[start:end], and `order` with them, so that keys before `middle` are not above those from it on."""
    low, high = start, end - 1
    while low < high:
        one, other = keys[low], keys[high]
        pivot = max(min(one, other), min(max(one, other), keys[(low + high) // 2]))  # the median of three
        a, b = low, high
        while a <= b:
            while keys[a] < pivot:
                a += 1
            while keys[b] > pivot:
                b -= 1
            if a <= b:
                keys[a], keys[b] = keys[b], keys[a]
                order[a], order[b] = order[b], order[a]
                a += 1
                b -= 1
        if middle <= b:
            high = b
        elif middle >= a:
            low = a
        else:
            return


@_minmax
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


@_minmax
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


@_part
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
