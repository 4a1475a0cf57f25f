"""The least cost of carrying masses from some points to others, the costs being Euclidean distances.

Of all ways between n and m points the best flow takes n + m - 1 at most, and mostly short ones. So the flow is sought
on a short list of ways. The prices that belong to it (the dual solution) tell of every other way whether it would help;
those that would are added, until there is none. Then the flow is the best of all, as in the shortlist method of
Gottschlich and Schuhmacher (2014).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array
from rankveil.execute import in_threads

Ways = NDArray[np.int64]
"""Ways by number: that from point i to point j of m is i m + j."""

_ALL_AT_ONCE = 1_000_000
"""Ways up to which they are all on the list: solving once is quicker than solving more often."""
_NEAR = 24
"""Nearest points of the other side to which each point has a way from the start."""
_MORE = 24
"""Ways from one point that are added at most at a time."""
_NOTHING = 1e-11
"""Gain beside the largest distance that is rounding."""
_ROUNDS = 6
"""So often the list grows at most. It mostly ends with less; of tables that lie far apart it could need very many."""
_FAR_OUT = 1e-3
"""A distance beside the largest, below which the prices of points far out leave the others too few digits."""
_MOST_STEPS = 2_000_000_000
"""Of the network simplex; it ends long before."""
_AT_ONCE = 256


def least_cost(a: Array, masses: Array, b: Array, others: Array) -> float:
    """The least mean distance over which the masses at `a` are carried to become those at `b`; both sums are 1."""
    if len(a) * len(b) > _ALL_AT_ONCE:
        found = _on_a_short_list(a, masses, b, others)
        if found is not None:
            return found
    from ot import emd2
    from scipy.spatial.distance import cdist

    return float(emd2(masses, others, cdist(a, b), numItermax=_MOST_STEPS, center_dual=False))


def _on_a_short_list(a: Array, masses: Array, b: Array, others: Array) -> float | None:
    """The same by few of the ways; None where that would not be quicker, or not be exact for rounding."""
    unit = float(np.linalg.norm(np.maximum(a.max(axis=0), b.max(axis=0)) - np.minimum(a.min(axis=0), b.min(axis=0))))
    if unit == 0:
        return 0.0
    a, b = a / unit, b / unit
    ways = np.unique(np.concatenate((_in_line(a, masses, b, others), *_near(a, b))))
    for _ in range(_ROUNDS):
        solved = _solved(a, masses, b, others, ways)
        if solved["warning"] is not None or 0 < solved["cost"] < _FAR_OUT:
            return None
        more = np.union1d(ways, _better(a, b, solved["u"], solved["v"]))
        if more.size == ways.size:
            return float(solved["cost"]) * unit
        ways = more
    return None


def _solved(a: Array, masses: Array, b: Array, others: Array, ways: Ways) -> dict[str, Any]:
    """The best flow on some ways: its cost, and the prices u and v of the points."""
    from ot import emd
    from scipy.sparse import coo_array

    start, end = np.divmod(ways, len(b))
    apart = a[start] - b[end]
    cost = coo_array((np.sqrt(np.einsum("ij,ij->i", apart, apart)), (start, end)), shape=(len(a), len(b)))
    log: dict[str, Any] = emd(masses, others, cost, numItermax=_MOST_STEPS, log=True, center_dual=False)[1]
    return log


def _in_line(a: Array, masses: Array, b: Array, others: Array) -> Ways:
    """The ways of a flow that carries everything: both sides in the order of their sums, the first to the first."""
    orders = [np.argsort(side.sum(axis=1), kind="stable") for side in (a, b)]
    carried, taken = np.cumsum(masses[orders[0]]), np.cumsum(others[orders[1]])
    cuts = np.concatenate(([0.0], carried, taken))
    start = np.minimum(np.searchsorted(carried, cuts, side="right"), len(a) - 1)
    end = np.minimum(np.searchsorted(taken, cuts, side="right"), len(b) - 1)
    found: Ways = orders[0][start] * len(b) + orders[1][end]
    return found


def _near(a: Array, b: Array) -> tuple[Ways, Ways]:
    """The ways from every point to the nearest of the other side."""
    from scipy.spatial import KDTree

    to = KDTree(b).query(a, min(_NEAR, len(b)))[1].reshape(len(a), -1)
    back = KDTree(a).query(b, min(_NEAR, len(a)))[1].reshape(len(b), -1)
    starts, ends = np.arange(len(a))[:, None], np.arange(len(b))[:, None]
    return (starts * len(b) + to).ravel(), (back * len(b) + ends).ravel()


def _better(a: Array, b: Array, u: Array, v: Array) -> Ways:
    """Ways that are shorter than the difference of the prices at their ends, from every point the best of them."""
    from scipy.spatial.distance import cdist

    def block(first: int) -> Ways:
        left = cdist(a[first : first + _AT_ONCE], b)
        left -= v
        left -= u[first : first + _AT_ONCE, None]
        some = np.flatnonzero(left.min(axis=1) < -_NOTHING)
        if some.size == 0:
            return np.empty(0, dtype=np.int64)
        left = left[some]
        best = np.argpartition(left, min(_MORE, len(b) - 1), axis=1)[:, :_MORE]
        helps = np.take_along_axis(left, best, axis=1) < -_NOTHING
        return ((first + some)[:, None] * len(b) + best)[helps]

    return np.concatenate(in_threads(block, range(0, len(a), _AT_ONCE), size=len(a) * len(b)))
