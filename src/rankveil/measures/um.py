"""Utility by the covariances: how far the masked table varies in the directions in which the original does."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from rankveil.catalogue import EVERY_KIND, Array, Value, measure
from rankveil.errors import NotApplicableError
from rankveil.multivariate import correlation, standardised
from rankveil.summaries.correlations import RankBasis

_SAME = 1e-9
"""Shares of variance that differ by less are equal but for rounding."""


@measure(
    title="Utility by eigenvalues of the covariances (UM)",
    source="Domingo-Ferrer, Muralidhar and Bras-Amoros 2021",
    family="utility",
    better="higher",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
)
def um(
    x: Array,
    y: Array,
    rank_basis_x: RankBasis,
    rank_basis_y: RankBasis,
    *,
    basis: Annotated[Literal["ranks", "values"], "covariances of the ranks, or of the values themselves"] = "ranks",
    kinds: tuple[str, ...] = (),
) -> Value:
    """um = 1 - min(1, sum (l_j - l'_j)^2 / sum (l_j - 1/m)^2): 1 when the directions of variance are kept, 0 when not.

    l_j are the eigenvalues and v_j the eigenvectors of the original's covariances, l'_j = v_j' C v_j with C those of
    the masked table, both scaled to sum 1. When all l_j are 1/m it is 1 if all l'_j are too, else 0. Directions of
    the same eigenvalue can be turned at will: those are taken in which the masked table's variances differ most.
    """
    if basis == "ranks":
        first, second = rank_basis_x.covariance, rank_basis_y.covariance
    elif "nominal" in kinds:
        raise NotApplicableError("the values of nominal columns have no covariances; basis=ranks takes their ranks")
    else:
        first, second = _covariance(x), _covariance(y)
    shares, explained = _shares(first, second)
    m = len(shares)
    details = {"original": shares.tolist(), "masked": explained.tolist()}
    if np.ptp(shares) < _SAME:
        return Value(1.0 if np.ptp(explained) < _SAME else 0.0, details)
    lost = np.sum((shares - explained) ** 2) / np.sum((shares - 1 / m) ** 2)
    return Value(1 - min(1.0, float(lost)), details)


def _covariance(values: Array) -> Array:
    """The covariances in units in which the largest standard deviation is 1."""
    table = standardised(values)
    largest = table.spread.max(initial=0.0)
    spread = table.spread / largest if largest > 0 else table.spread
    return np.outer(spread, spread) * correlation(table.z)


def _shares(original: Array, masked: Array) -> tuple[Array, Array]:
    """The shares of variance in the directions of the original's eigenvectors, the largest first: l and l'."""
    for what, c in (("original", original), ("masked", masked)):
        if not np.trace(c) > 0:
            raise NotApplicableError(f"every {what} column is constant: it has no variance to be shared")
    values, vectors = np.linalg.eigh(original / np.trace(original))
    turned = vectors.T @ (masked / np.trace(masked)) @ vectors
    explained = np.diag(turned).copy()
    cuts = np.flatnonzero(np.diff(values) > _SAME) + 1
    for some in np.split(np.arange(len(values)), cuts):
        explained[some] = np.linalg.eigvalsh(turned[np.ix_(some, some)])
    return np.clip(values[::-1], 0.0, 1.0), np.clip(explained[::-1], 0.0, 1.0)
