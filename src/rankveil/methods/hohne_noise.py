"""Hohne's multiplicative noise: a record's values all grow or all shrink, means and variances are put back.

>>> import numpy as np
>>> from rankveil.seeds import Seed
>>> x = np.array([[1.0], [2.0], [6.0]])
>>> y = hohne_noise(x, np.isnan(x), s=0.3, rng=Seed.of(1).stream("noise")).values
>>> np.allclose([y.mean(), y.var()], [x.mean(), x.var()])
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import EACH, Array, Outcome, Range, method
from rankveil.likelihood import SignedNoise
from rankveil.multivariate import normal_draws
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream


@method(
    title="Multiplicative noise after Hohne",
    source="Hohne 2004",
    works_on="columns",
    kinds=("numeric",),
    strength="s",
    by_parts=True,
    seed_tells="the noise can be taken off",
    tells="every column's mean and variance are exactly the original's; covariances are not",
)
def hohne_noise(
    x: Array,
    missing: NDArray[np.bool_],
    *,
    s: Annotated[float, Range(0), "standard deviation of the relative noise", EACH] = 0.3,
    rows: Rows = HERE,
    rng: Stream,
) -> Outcome:
    """Hohne's noise: y = x (1 + sign_i |e|), e ~ N(0, s^2) per value, one random sign per record.

    Then every column is shifted and scaled back: (y - mean_y) sd_x / sd_y + mean_x. A constant column, and so a
    single record, has nothing but its mean to keep and stays as it is. A column whose noise made it constant can
    take the mean only. Means and variances are those of the values that are not missing.
    """
    sign = np.where(rng.bits(x.shape[0]) >> np.uint64(63), 1.0, -1.0)
    size = np.broadcast_to(s, x.shape[1])
    draws = normal_draws(rng, x.shape)
    lost, still = np.zeros(x.shape[1], dtype=bool), np.zeros(x.shape[1], dtype=bool)

    def column(j: int, rows: Rows) -> Array:
        found = rows.summary(x[:, j])
        still[j] = found.constant
        if size[j] == 0 or found.constant:
            return x[:, j]
        scale = found.scale  # numbers near the largest would overflow on the way
        scaled = x[:, j] / scale
        part = 1.0 if size[j] < 2.0**1000 else 2.0**-24  # likewise; what the noise spreads is scaled back anyway
        noisy = scaled * (part + sign * np.abs(part * size[j] * draws[:, j]))
        there = ~missing[:, j]  # a missing cell only stands at the mean: it is in no mean or variance of the release
        _, centre, spread = rows.standardised(noisy[there])
        lost[j] = spread == 0
        _, wanted, width = rows.standardised(scaled[there])
        factor = width / spread if spread > 0 else 0.0
        restored: Array = (noisy - centre) * factor + wanted
        return restored * scale

    made = rows.each(column, {str(j): j for j in range(x.shape[1])}, size=x.size)
    notes = (
        [f"constant columns, which stay as they are because their mean is kept: {still.sum()}"] if still.any() else []
    )
    notes += (
        [f"columns made constant by the noise, of which only the mean was restored: {lost.sum()}"] if lost.any() else []
    )
    return Outcome(np.asfortranarray(np.column_stack(made)), notes=tuple(notes))


@hohne_noise.tells_intruder
def _(x: Array, parameters: Sequence[Mapping[str, Any]], **known: Any) -> SignedNoise:
    """One sign for all values of a record, then a shift and a scale that depend on all draws, but hardly on one."""
    return SignedNoise(np.array([given["s"] for given in parameters], dtype=np.float64))
