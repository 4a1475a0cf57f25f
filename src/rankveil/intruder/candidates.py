"""Candidates: a sparse graph of the likeliest links, found by a search tree, and what lies outside it.

Records that are alike to the evidence form a class. Every term of the evidence has coordinates in which its
log-likelihood is about -r^2 / 2, so the likeliest partners of a class are the nearest ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.execute import in_threads
from rankveil.likelihood import Term
from rankveil.matchings import CandidateGraph

Array = NDArray[np.float64]
Singles = NDArray[np.float32]
Places = NDArray[np.int64]
Ends = NDArray[np.int32]

CANDIDATES = 50
MANY = 20_000
"""Above so many records fewer candidates are kept."""
_FEWER = 20
_WITNESSES = 20
"""Records that stand for those of a shell beyond the candidates."""
_THINNED = 8
"""How many times as many records each shell has as the one before."""
_COMPILED = 3_000
"""Records from which on a search is worth loading compiled code for."""
_ASKED_AT_ONCE = 4096
"""Queries that a thread answers before it can be stopped."""
_EDGES_AT_ONCE = 1_000_000


@dataclass(frozen=True, eq=False)
class Classes:
    """Records that are alike to the evidence."""

    first: Places
    """A record of each class."""
    of: Places
    """The class of each record."""
    sizes: Places

    def ordered(self, order: Places) -> Classes:
        """The same classes, numbered in another order."""
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        return Classes(self.first[order], place[self.of], self.sizes[order])


def classes(keys: Places, values: Sequence[Array], rows: Places) -> Classes:
    """Rows with equal keys and equal values in one class."""
    _, first, code, sizes = np.unique(keys[rows], return_index=True, return_inverse=True, return_counts=True)
    for column in (block[rows, j] for block in values for j in range(block.shape[1])):
        if first.size == rows.size:  # all differ already
            break
        _, number = np.unique(column, return_inverse=True)
        both = code * (int(number.max(initial=0)) + 1) + number
        _, first, code, sizes = np.unique(both, return_index=True, return_inverse=True, return_counts=True)
    return Classes(rows[first], code, sizes)


def likely_links(
    terms: Sequence[Term], key_x: Places, key_y: Places, left: Classes, right: Classes
) -> tuple[CandidateGraph, Array, Classes, Classes]:
    """The likeliest partners of each class, both ways, and the log-likelihoods of these links.

    Large tables come back with their classes in another order: those close together side by side.
    """
    if not terms:
        return *_equal_keys(key_x[left.first], key_y[right.first], left, right), left, right
    u, v, far = _points(terms, key_x, key_y, left, right)
    if max(len(u), len(v)) >= _COMPILED:
        (left, u), (right, v) = _side_by_side(left, u), _side_by_side(right, v)
    rows, columns, tails = _search(u, v, left.sizes, right.sizes, far=far)
    graph = CandidateGraph(rows, columns, left.sizes, right.sizes, *tails)
    weight, squares = _weights(terms, left.first, right.first, graph, u, v)
    return *_levelled(graph, weight, squares), left, right


def _equal_keys(key_x: Places, key_y: Places, left: Classes, right: Classes) -> tuple[CandidateGraph, Array]:
    """Nothing but keys: each class has at most one partner."""
    shared, rows, columns = np.intersect1d(key_x, key_y, return_indices=True)
    rows, columns = rows[shared >= 0], columns[shared >= 0]
    order = np.argsort(rows, kind="stable")
    first, second = rows[order].astype(np.int32), columns[order].astype(np.int32)
    nothing = [np.full(each.first.size, -np.inf) for each in (left, right)]
    return CandidateGraph(first, second, left.sizes, right.sizes, nothing[0], nothing[1]), np.zeros(order.size)


def _points(
    terms: Sequence[Term], key_x: Places, key_y: Places, left: Classes, right: Classes
) -> tuple[Array, Array, float]:
    """Points of both tables, and the distance at which another key begins: keys are one more coordinate."""
    parts = [term.coordinates for term in terms]
    u = np.column_stack([part[0][left.first] for part in parts])
    v = np.column_stack([part[1][right.first] for part in parts])
    centre = u.mean(axis=0)
    u -= centre
    v -= centre
    several = np.any(key_x != key_x[:1]) or np.any(key_y != key_x[:1])
    if not several:
        return *_rotated(u, v), np.inf
    span = 4.0 * float(max(np.abs(u).max(initial=1.0), np.abs(v).max(initial=1.0))) * np.sqrt(u.shape[1])
    u, v = _rotated(u, v)
    u = np.column_stack((u, key_x[left.first] * span))
    v = np.column_stack((v, np.where(key_y[right.first] < 0, -10.0, key_y[right.first]) * span))
    return u, v, span / 2


def _rotated(u: Array, v: Array) -> tuple[Array, Array]:
    """Both on the principal axes: the same distances, and boxes around records that are narrower."""
    if max(len(u), len(v)) < _COMPILED:
        return u, v
    _, axes = np.linalg.eigh((u.T @ u + v.T @ v) / (len(u) + len(v)))
    return u @ axes, v @ axes


def _side_by_side(one: Classes, points: Array) -> tuple[Classes, Array]:
    """Classes that are close together one after the other: sweeps over their links then stay in the cache."""
    from rankveil.kernels import neighbours

    kernels: Any = neighbours
    tree = kernels.build(points, euclidean=True)
    return one.ordered(tree.rows), tree.x


def _search(
    u: Array, v: Array, row_sizes: Places, column_sizes: Places, *, far: float
) -> tuple[Ends, Ends, tuple[Array, Array]]:
    """Both ways the nearest classes, and the likelihood that lies beyond them."""
    from scipy.sparse import csr_array

    most = _FEWER if max(len(u), len(v)) > MANY else CANDIDATES
    found, tails = [], []
    for points, queries, sizes in ((v, u, column_sizes), (u, v, row_sizes)):
        k = min(most, len(points))
        near, squares = nearest(points, queries, k)
        inside = squares < far * far
        number = np.concatenate(([0], np.cumsum(inside.sum(axis=1))))
        ends = near.ravel() if inside.all() else near[inside]
        links = csr_array((np.ones(ends.size, dtype=np.int8), ends, number), shape=(len(queries), len(points)))
        found.append(links)
        beyond = k < len(points)
        tails.append(_beyond(points, queries, sizes, squares[:, -1], far) if beyond else np.full(len(queries), -np.inf))
        del near, squares, inside
    back = found.pop().T.tocsr()
    there = found.pop()
    there.sort_indices()
    both = there + back
    del there, back
    rows = np.repeat(np.arange(len(u), dtype=np.int32), np.diff(both.indptr))
    return rows, both.indices.astype(np.int32, copy=False), (tails[0], tails[1])


def nearest(points: Array, queries: Array, k: int) -> tuple[Ends, Singles]:
    """The k nearest points of each query, and their squared distances, the nearest first."""
    if max(len(points), len(queries)) < _COMPILED:
        from scipy.spatial import cKDTree

        distance, places = cKDTree(points).query(queries, k=range(1, k + 1))
        with np.errstate(over="ignore"):  # what is infinitely far is no candidate
            return places.astype(np.int32), (distance * distance).astype(np.float32)
    from rankveil.kernels import candidates, neighbours

    kernels: Any = neighbours
    tree = kernels.build(points, euclidean=True)
    parts = [slice(a, a + _ASKED_AT_ONCE) for a in range(0, len(queries), _ASKED_AT_ONCE)]
    near, squares = np.empty((len(queries), k), dtype=np.int32), np.empty((len(queries), k), dtype=np.float32)

    def answer(part: slice) -> None:
        candidates.nearest_many(tree, kernels.seen(tree, queries[part]), near[part], squares[part])

    in_threads(answer, parts, size=queries.size)
    squares /= tree.scale * tree.scale
    return near, squares


def _beyond(points: Array, queries: Array, sizes: Places, past: Singles, far: float) -> Array:
    """log of the sum of exp(-r^2 / 2) over the points beyond the candidates, whose squared distances end at `past`.

    The next shell is seen in one point of 16, the one after it in one of 256, and so on: in each the nearest of them
    stand for all, so that near and far shells have as many witnesses.
    """
    drawn = np.random.default_rng(0)  # which ones must not depend on how the tree puts them in order
    total, step, seen = np.zeros(len(queries)), 1, len(points)
    while seen > _WITNESSES:
        step *= _THINNED
        first = np.arange(0, len(points), step)
        some = first + drawn.integers(np.minimum(len(points) - first, step))  # one of so many side by side
        seen = some.size
        near, squares = nearest(points[some], queries, min(_WITNESSES, seen))
        shell = np.exp(-squares / 2) * sizes[some][near]
        shell[(squares <= past[:, None]) | (squares >= far * far)] = 0.0
        total += shell.sum(axis=1) * (len(points) / seen)
        past = np.maximum(past, squares[:, -1])
    with np.errstate(divide="ignore"):
        return np.log(total)


def _weights(
    terms: Sequence[Term], left: Places, right: Places, graph: CandidateGraph, u: Array, v: Array
) -> tuple[Array, Singles]:
    """The log-likelihoods of all links, and their squared distances."""
    size = graph.rows.size
    weight, squares = np.zeros(size), np.zeros(size, dtype=np.float32)

    def weigh(part: slice) -> None:
        rows, columns = graph.rows[part], graph.columns[part]
        for term in terms:
            weight[part] += term.weights(left[rows], right[columns])
        for j in range(u.shape[1]):
            squares[part] += (u[rows, j] - v[columns, j]) ** 2

    parts = [slice(a, a + _EDGES_AT_ONCE) for a in range(0, size, _EDGES_AT_ONCE)]
    in_threads(weigh, parts, size=size)
    return weight, squares


def _levelled(graph: CandidateGraph, weight: Array, squares: Singles) -> tuple[CandidateGraph, Array]:
    """Possible links alone, and weights and tails on one scale.

    A tail was found from distances: what weights are above -r^2 / 2 on average is added to it. What most best links
    have in common is taken off everything: it cancels.
    """
    rows, columns = graph.rows, graph.columns
    possible = np.isfinite(weight)
    if not possible.all():
        rows, columns, weight, squares = rows[possible], columns[possible], weight[possible], squares[possible]
    first = np.flatnonzero(np.append(True, rows[1:] != rows[:-1])) if rows.size else np.zeros(0, dtype=np.int64)
    if rows.size:
        weight -= float(np.median(np.maximum.reduceat(weight, first)))
    above = weight + squares / 2
    tails = []
    for ends, tail in ((rows, graph.row_tail), (columns, graph.column_tail)):
        number = np.bincount(ends, minlength=tail.size)
        tails.append(tail + np.bincount(ends, weights=above, minlength=tail.size) / np.maximum(number, 1))
    return CandidateGraph(rows, columns, graph.row_sizes, graph.column_sizes, tails[0], tails[1]), weight
