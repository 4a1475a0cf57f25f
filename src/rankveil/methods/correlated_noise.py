"""Correlated noise: Y = X + E, the noise with the covariance of X itself.

>>> import numpy as np
>>> from rankveil.seeds import Seed
>>> x = np.column_stack([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
>>> y = correlated_noise(x, np.isnan(x), gamma=0.5, rng=Seed.of(1).stream("noise"))
>>> np.allclose(y[:, 1], 2 * y[:, 0])  # what holds exactly between columns holds between masked ones
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import EACH, Array, Range, method
from rankveil.likelihood import JointNoise
from rankveil.multivariate import (
    by_column,
    combined,
    correlation,
    gram,
    nearest_correlation,
    normal_draws,
    root,
    standardised,
)
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream


@method(
    title="Correlated noise",
    source="Kim 1986; Tendick 1991",
    works_on="columns",
    kinds=("numeric",),
    strength="gamma",
    by_parts=True,
    seed_tells="the noise can be subtracted",
    tells="the covariance of two masked columns is 1 + gamma times the original's (1 + sqrt(gamma_i gamma_j) where "
    "columns have their own); means, correlations and regressions are unbiased with one gamma for all",
)
def correlated_noise(
    x: Array,
    missing: NDArray[np.bool_],
    *,
    gamma: Annotated[float, Range(0), "noise variance as a multiple of the column's own", EACH] = 0.1,
    rows: Rows = HERE,
    rng: Stream,
) -> Array:
    """Correlated noise: Y = X + N(0, gamma Sigma), Sigma the population covariance of X.

    The noise is D R^(1/2) e, with the standard deviations D, the root of the correlations R by eigenvalues, and e
    standard normal. With its own gamma in a column, its noise is sqrt(gamma_j) times that of N(0, Sigma).
    A constant column stays as it is. With missing cells, variances are those of the values that are there, and
    correlations those of the records that have both values, made positive semidefinite.
    """
    table = standardised(x, rows=rows)
    spread, dependence = table.spread, correlation(table.z, rows=rows)
    if rows.count(int(missing.sum())):  # cells at the mean add to the number of records and to no sum
        there = np.asfortranarray(~missing, dtype=np.float64)
        both = np.maximum(gram(there, there, rows=rows), 1.0) / rows.count(len(x))
        alone = np.sqrt(np.diag(both))
        spread = spread / alone
        dependence = np.clip(dependence * np.outer(alone, alone) / both, -1.0, 1.0)
        np.fill_diagonal(dependence, 1.0)
        dependence = nearest_correlation(dependence)
    noise = combined(normal_draws(rng, x.shape), root(dependence))
    scale = np.sqrt(np.broadcast_to(gamma, x.shape[1])) * spread
    return by_column(lambda j: x[:, j] + scale[j] * noise[:, j], shape=x.shape)


@correlated_noise.corrects
def _(mean: Array, covariance: Array, parameters: Sequence[dict[str, Any]]) -> tuple[Array, Array]:
    """Cov(x_i, x_j) = Cov(y_i, y_j) / (1 + sqrt(gamma_i gamma_j))."""
    strength = np.sqrt([given["gamma"] for given in parameters])
    return mean, covariance / (1 + np.outer(strength, strength))


@correlated_noise.tells_intruder
def _(x: Array, parameters: Sequence[Mapping[str, Any]], **known: Any) -> JointNoise:
    """log p(y | x) = -(y - x)' (gamma Sigma)^-1 (y - x) / 2 on the directions in which the columns vary."""
    table = standardised(x)
    scale = np.sqrt([given["gamma"] for given in parameters]) * table.spread
    return JointNoise(correlation(table.z) * np.outer(scale, scale))
