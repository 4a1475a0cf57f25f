"""Candidates from the likelihood of all pairs, where records are few or no search tree finds the likely ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankveil.likelihood import Term
from rankveil.matchings import CandidateGraph

Array = NDArray[np.float64]
Weights = NDArray[np.float32]
Places = NDArray[np.int64]

PAIRS = 2_500_000
"""Pairs up to which all are weighed."""
MORE_PAIRS = 30_000_000
"""Pairs up to which all are asked whether the low bits allow them."""
_UNLIKELY = 100.0
"""How much less likely than the likeliest of its row a pair may be and still be asked."""
_NEGLIGIBLE = 25.0
"""How much less likely than the likeliest of its row and of its column a candidate is left out."""
_AT_A_TIME = 500_000


def all_weights(
    terms: Sequence[Term], rows: Places, columns: Places, key_x: Places, key_y: Places, last: Sequence[Term] = ()
) -> Weights:
    """The log-likelihood of every pair; minus infinity where keys differ. Terms that cost much come last."""
    n, m = rows.size, columns.size
    made = np.empty((n, m), dtype=np.float32)
    step = max(_AT_A_TIME // max(m, 1), 1)
    for begin in range(0, n, step):
        some = rows[begin : begin + step]
        left, right = np.repeat(some, m), np.tile(columns, some.size)
        possible = np.flatnonzero(key_x[left] == key_y[right])
        total = np.full(left.size, -np.inf)
        if possible.size == total.size:
            total = np.zeros(left.size)
            for term in terms:
                total += term.weights(left, right)
        else:
            part = np.zeros(possible.size)
            for term in terms:
                part += term.weights(left[possible], right[possible])
            total[possible] = part
        if last:
            top = total.reshape(some.size, m).max(axis=1)
            asked = np.flatnonzero(total > np.repeat(top, m) - _UNLIKELY)
            for term in last:
                total[asked] += term.weights(left[asked], right[asked])
        made[begin : begin + step] = total.reshape(some.size, m)
    return made


def best_pairs(weights: Weights, row_sizes: Places, column_sizes: Places, most: int) -> tuple[CandidateGraph, Array]:
    """Both ways the `most` likeliest partners of each class, and what the others weigh together, exactly."""
    n, m = weights.shape
    best = weights.max(axis=1, initial=-np.inf)
    common = float(np.median(best[np.isfinite(best)])) if np.isfinite(best).any() else 0.0
    weights = weights - np.float32(common)
    kept = np.zeros((n, m), dtype=bool)
    for matrix, chosen in ((weights, kept), (weights.T, kept.T)):
        some = matrix.shape[1] - most
        if some <= 0:
            chosen[...] = True
            continue
        near = np.argpartition(matrix, some, axis=1)[:, some:]
        np.put_along_axis(chosen, near, np.ones((), dtype=bool), axis=1)
    across, down = weights.max(axis=1, initial=-np.inf), weights.max(axis=0, initial=-np.inf)
    kept &= weights >= np.minimum(across[:, None], down[None, :]) - _NEGLIGIBLE
    kept &= np.isfinite(weights)
    rows, columns = np.nonzero(kept)
    outside = np.where(kept, -np.inf, weights)
    tails = _sums(outside, column_sizes), _sums(outside.T, row_sizes)
    graph = CandidateGraph(rows.astype(np.int32), columns.astype(np.int32), row_sizes, column_sizes, *tails)
    return graph, weights[rows, columns].astype(np.float64)


def _sums(weights: Array, sizes: Places) -> Array:
    """log of the sum over each row of sizes exp(weight)."""
    top = weights.max(axis=1, initial=-np.inf)
    level = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        made: Array = np.log(np.exp(weights - level[:, None]) @ sizes.astype(np.float64)) + level
    return made
