"""Rounding: no more decimals than the original had."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from rankveil.catalogue import Array, Range, method
from rankveil.likelihood import Recomputed
from rankveil.rows import HERE, Rows

MOST_DECIMALS = 12


@method(
    title="Rounding",
    source="common practice",
    kinds=("numeric",),
    post=True,
    by_parts=True,
    from_data={"decimals": "only how many decimals the original column has"},
    tells="values were rounded, which adds at most half a unit of the last digit",
)
def round_(
    y: Array,
    original: Array,
    *,
    decimals: Annotated[int | None, Range(-12, 12), "how many; none for as many as the original has"] = None,
    rows: Rows = HERE,
) -> Array:
    """Round to `decimals`, or to whole numbers or the decimals that the original values have.

    y' = round(10^decimals y) / 10^decimals,  halves to the even digit
    """
    if decimals is None:
        decimals = int(rows.summary(np.array([float(decimals_of(original))])).high)
    return _rounded(y, decimals) + 0.0  # no -0


def _rounded(x: Array, decimals: int) -> Array:
    if decimals <= 0:
        return np.round(x, decimals)
    # what has no such decimals stays: multiplying it by 10^decimals would overflow or change its last digit
    coarse = np.abs(x) >= 2.0**53 / 10.0**decimals
    return np.where(coarse, x, np.round(np.where(coarse, 0.0, x), decimals))


def decimals_of(x: Array) -> int:
    """The fewest decimals that write every value.

    >>> decimals_of(np.array([1.0, 2.5, 3.25]))
    2
    """
    for decimals in range(MOST_DECIMALS):
        if np.array_equal(_rounded(x, decimals), x):
            return decimals
    return MOST_DECIMALS


@round_.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Recomputed:
    """He applies the step to the original himself."""
    return Recomputed()
