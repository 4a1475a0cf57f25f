"""The k nearest records of each query, in the tree of boxes of `neighbours`.

What is near is decided in single precision: candidates are wanted, not the exact order of almost equal distances.
"""

# numba finds the types itself
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: check-untyped-defs=False

from __future__ import annotations

import numba
import numpy as np

from rankveil.kernels.lanes import LANES, lanes_within, lowest_lane, squares_to_boxes, squares_to_records
from rankveil.kernels.neighbours import _WAITING, _push, homes

_njit = numba.njit(cache=True, nogil=True, error_model="numpy")


@_njit
def nearest_many(tree, z, near, squares):
    """For the queries seen as z the rows of their nearest records and the squares of how far these are seen to be.

    The nearest come first, as many as `near` and `squares` have columns: not more than the tree has records.
    """
    found = np.empty(LANES, np.float32)
    nodes, bounds = np.empty(_WAITING, np.int64), np.empty(_WAITING, np.float32)
    home = homes(tree, z)
    for query in np.argsort(home):
        _search(tree, z[query], home[query], near[query], squares[query], found, nodes, bounds)


@_njit
def _search(tree, q, home, near, squares, found, nodes, bounds):
    k, size = near.size, 0
    leaves = tree.points.shape[0]
    limit = np.float32(np.inf)
    nodes[0], bounds[0] = leaves + tree.below.size - 1, 0.0
    nodes[1], bounds[1] = home, 0.0
    depth, at_home = 2, True
    while depth > 0:
        depth -= 1
        node = nodes[depth]
        if bounds[depth] > limit or (node == home and not at_home):
            continue
        if node >= leaves:
            group = node - leaves
            if squares_to_boxes(tree.boxes, group, q, found) <= limit:
                depth = _push(tree.below[group], found, min(limit, _MOST), depth, nodes, bounds)
            continue
        at_home = False
        if squares_to_records(tree.points, node, q, found) > limit:
            continue
        lanes = lanes_within(found, min(limit, _MOST))
        while lanes != 0:
            lane = lowest_lane(lanes)
            lanes &= lanes - 1
            apart = found[lane]
            if size < k:
                squares[size], near[size] = apart, node * LANES + lane
                size += 1
                _rise(squares, near, size - 1)
                if size == k:
                    limit = squares[0]
            elif apart < limit:
                squares[0], near[0] = apart, node * LANES + lane
                _fall(squares, near, k)
                limit = squares[0]
    for end in range(k - 1, 0, -1):
        squares[0], squares[end] = squares[end], squares[0]
        near[0], near[end] = near[end], near[0]
        _fall(squares, near, end)
    for i in range(k):
        near[i] = tree.rows[near[i]]


_MOST = np.float32(np.finfo(np.float32).max)
"""Empty places of the tree lie at infinity, and are not within this."""


@_njit
def _rise(squares, near, at):
    """Restore a heap whose top is the largest after one was added at its end."""
    while at > 0:
        above = (at - 1) // 2
        if squares[above] >= squares[at]:
            return
        squares[above], squares[at] = squares[at], squares[above]
        near[above], near[at] = near[at], near[above]
        at = above


@_njit
def _fall(squares, near, end):
    """Restore a heap whose top is the largest after its top was replaced."""
    root = 0
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and squares[child + 1] > squares[child]:
            child += 1
        if squares[root] >= squares[child]:
            return
        squares[root], squares[child] = squares[child], squares[root]
        near[root], near[child] = near[child], near[root]
        root = child
