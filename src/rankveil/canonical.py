"""Canonical correlations of two tables by orthonormal bases and singular values: stable for any columns.

Correlations that a covariance matrix squares and inverts lose half their digits; those of orthonormal bases do not,
and columns that are constant or depend on others simply add nothing to a basis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankveil.execute import in_threads
from rankveil.multivariate import correlation, standardised

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

DEPENDENT = 1e-10
"""A column of whose variance others leave less than this part unexplained depends on them."""

_AT_ONCE = 16_384
"""Records whose products are summed at a time: they stay in the cache, and sums do not depend on threads."""


@dataclass(frozen=True, eq=False)
class Basis:
    """Orthonormal columns that span the centred columns of a table."""

    q: Array
    """One row for each record, so that records in another order are read one after the other."""
    r: Array
    """The standardised columns are q times r."""
    kept: tuple[int, ...]
    """The columns that the basis was made of, in their order."""

    def without(self, j: int) -> Array:
        """Weights of q that give an orthonormal basis of all columns but column j."""
        rest = np.delete(self.r, j, axis=1)
        u, sizes, _ = np.linalg.svd(rest, full_matrices=False)
        return u[:, sizes > DEPENDENT**0.5 * sizes.max(initial=1.0)]


def orthonormal(x: Array) -> Basis:
    """A basis of the columns of x around their means, constant and dependent ones left out.

    Columns are chosen by pivoted Cholesky of their correlations; Cholesky of the products of the chosen, twice, makes
    them orthonormal to the last digits.
    """
    z = standardised(x).z
    kept = _independent(correlation(z))
    q = np.ascontiguousarray(z[:, kept]) / max(len(x), 1) ** 0.5
    for _ in range(2):
        products = crossed(q, q)
        q = q @ np.linalg.inv(np.linalg.cholesky(products)).T if kept else q
    return Basis(q, crossed(q, np.ascontiguousarray(z)), tuple(kept))


def _independent(c: Array) -> list[int]:
    """Columns none of which depends on the others: the one with the most variance left is next, and so on."""
    left = c.copy()
    kept: list[int] = []
    while len(kept) < len(c):
        variance = np.diag(left).copy()
        variance[kept] = -1.0
        chosen = int(np.argmax(variance))
        if variance[chosen] < DEPENDENT:
            break
        left = left - np.outer(left[:, chosen], left[chosen]) / variance[chosen]
        kept.append(chosen)
    return sorted(kept)


def crossed(a: Array, b: Array, rows: Rows | None = None) -> Array:
    """The sum over the records of a_i' b_rows(i): products of two tables, the second in another order if asked."""

    def part(start: int) -> Array:
        some = slice(start, start + _AT_ONCE)
        made: Array = a[some].T @ (b[some] if rows is None else b[rows[some]])
        return made

    total = np.zeros((a.shape[1], b.shape[1]))
    for products in in_threads(part, range(0, len(a), _AT_ONCE), size=a.size):
        total += products
    return total


def squared_correlations(products: Array) -> Array:
    """The squared canonical correlations, the largest first, from the products of two orthonormal bases."""
    if products.size == 0:
        return np.empty(0)
    found: Array = np.clip(np.linalg.svd(products, compute_uv=False), 0.0, 1.0) ** 2
    return found
