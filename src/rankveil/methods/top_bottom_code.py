"""Top and bottom coding: what lies beyond a limit becomes the limit, or the mean of what lies there.

>>> import numpy as np
>>> top_bottom_code(np.array([1.0, 5.0, 9.0]), top=6.0).values
array([1., 5., 6.])
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from rankveil.catalogue import Array, Outcome, Range, method
from rankveil.categories import Categories
from rankveil.errors import ParameterError
from rankveil.moments import mean


@method(
    title="Top and bottom coding",
    source="common practice; Hundepool et al. 2012",
    kinds=("numeric", "ordinal"),
    strength="top_percent",
    survives="data-free",
    from_data={"top": "a quantile of the original", "bottom": "a quantile of the original"},
    tells="values beyond the limits are not told; with replace = mean the mean of the column is exact",
)
def top_bottom_code(
    x: Array,
    *,
    top: Annotated[float | None, "values above this are coded; none for by percent"] = None,
    bottom: Annotated[float | None, "values below this are coded; none for by percent"] = None,
    top_percent: Annotated[float, Range(0, 50), "how many of the largest values are coded, in percent"] = 0.0,
    bottom_percent: Annotated[float, Range(0, 50), "how many of the smallest values are coded, in percent"] = 0.0,
    replace: Annotated[Literal["limit", "mean"], "by what: the limit, or the mean of the coded values"] = "limit",
    categories: Categories | None = None,
) -> Outcome:
    """y = min(max(x, bottom), top), or the mean of what lies beyond. A limit that is given wins over a percentage.

    By percent the limit is the largest value such that at least 100 - top_percent percent of the values are at most it.
    """
    if categories is not None and (top is not None or bottom is not None or replace == "mean"):
        raise ParameterError("categories in order have neither numbers as limits nor means; say how many percent")
    high = _limit(x, top_percent) if top is None else top
    low = -_limit(-x, bottom_percent) if bottom is None else bottom
    if low > high:
        raise ParameterError(f"the bottom {low:g} is above the top {high:g}")
    masked, above, below = x.copy(), x > high, x < low
    for beyond, limit in ((above, high), (below, low)):
        if beyond.any():
            masked[beyond] = limit if replace == "limit" else mean(x[beyond])
    return Outcome(masked, {"top_coded": int(above.sum()), "bottom_coded": int(below.sum())})


def _limit(x: Array, percent: float) -> float:
    """The value that at least 100 - percent of the values do not exceed."""
    if percent == 0:
        return float(np.max(x))
    place = int(np.ceil(x.size * (100 - percent) / 100 * (1 - 1e-12))) - 1
    return float(np.partition(x, place)[max(place, 0)])
