"""Hybrid data: groups of similar records, each replaced by synthetic records with its mean and covariance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from rankveil.catalogue import Array, Range, method
from rankveil.likelihood import Turned
from rankveil.microaggregation import mdav_groups
from rankveil.moments import scale_of
from rankveil.multivariate import normal_draws, turned
from rankveil.seeds import Stream

_TOGETHER = 2**18
"""How many records are taken at a time, in whole groups: memory, and nothing else, depends on it."""


@method(
    title="Hybrid data by microaggregation",
    source="Domingo-Ferrer and Gonzalez-Nicolas 2010",
    works_on="columns",
    kinds=("numeric",),
    strength="k",
    tells="means and covariances are exactly the original's, in the whole table and in every group of similar records",
)
def microhybrid(
    x: Array,
    *,
    k: Annotated[int, Range(2), "records in a group; the last may have up to 2 k - 1"] = 10,
    rng: Stream,
) -> Array:
    """MDAV groups, each replaced by IPSO data (variant C) with the group's mean and covariance.

        Y_g = 1 m' + Q (X_g - 1 m'),  m the mean of group g,  Q a random rotation with Q 1 = 1

    In each group the deviations from its mean are turned by a random rotation that leaves the mean alone. A group
    whose records agree in a column keeps that value. Groups of two keep their records or exchange them.
    """
    group = mdav_groups(x, k=k)
    scale = np.array([scale_of(column) for column in x.T])  # squares of numbers near the largest would overflow
    scaled = np.asfortranarray(x / scale)
    draws = normal_draws(rng, (x.shape[0], min(x.shape[0] - 1, x.shape[1])))
    made = scaled.copy(order="F")
    sizes = np.bincount(group)
    rows = np.argsort(group, kind="stable")
    starts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[sizes > 1]):
        of_size = starts[sizes == size]
        for part in np.array_split(of_size, max(1, of_size.size * size // _TOGETHER)):
            members = rows[part[:, None] + np.arange(size)]
            made[members] = _replaced(scaled[members], draws[members][..., : size - 1])
    return np.where(made == scaled, x, made * scale)


def _replaced(x: Array, draws: Array) -> Array:
    """Synthetic records with the mean and covariance of each table of a stack."""
    agree = (x == x[:, :1]).all(axis=1, keepdims=True)
    centre = np.where(agree, x[:, :1], x.mean(axis=1, keepdims=True))
    basis = np.full((x.shape[0], x.shape[1], 1), x.shape[1] ** -0.5)
    return centre + turned(x - centre, draws, basis)


@microhybrid.tells_intruder
def _(x: Array, parameters: Sequence[Mapping[str, Any]], **known: Any) -> Turned:
    """Within a group nothing is told, but the group is: a record lies in the ellipsoid of its group's deviations."""
    return Turned(mdav_groups(x, k=parameters[0]["k"]).astype(np.int64))
