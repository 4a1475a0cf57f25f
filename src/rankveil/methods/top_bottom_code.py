"""Top and bottom coding: what lies beyond a limit becomes the limit, or the mean of what lies there.

>>> import numpy as np
>>> top_bottom_code(np.array([1.0, 5.0, 9.0]), top=6.0).values
array([1., 5., 6.])
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from rankveil import dates
from rankveil.catalogue import DATED, Array, Outcome, Range, method
from rankveil.categories import Categories
from rankveil.errors import ParameterError
from rankveil.likelihood import Recomputed
from rankveil.rows import HERE, Rows

_FEW = 3
"""The mean of fewer values tells of each."""


@method(
    title="Top and bottom coding",
    source="common practice; Hundepool et al. 2012",
    kinds=("numeric", "ordinal"),
    strength="top_percent",
    instead=("top",),
    by_parts=True,
    tells="values beyond the limits are not told; with replace = mean they stand at their own mean, so that of the "
    "column stays (that of its groups where it is the same within groups)",
)
def top_bottom_code(
    x: Array,
    *,
    top: Annotated[float | None, DATED, "values above this are coded; none for by percent"] = None,
    bottom: Annotated[float | None, DATED, "values below this are coded; none for by percent"] = None,
    top_percent: Annotated[float, Range(0, 50), "how many of the largest values are coded, in percent"] = 0.0,
    bottom_percent: Annotated[float, Range(0, 50), "how many of the smallest values are coded, in percent"] = 0.0,
    replace: Annotated[Literal["limit", "mean"], "by what: the limit, or the mean of the coded values"] = "limit",
    categories: Categories | None = None,
    temporal: Any = None,
    rows: Rows = HERE,
) -> Outcome:
    """y = min(max(x, bottom), top), or the mean of what lies beyond. A limit that is given wins over a percentage.

    By percent the top is the least value that at least 100 - top_percent percent of the values do not exceed, so no
    more than top_percent percent are coded: fewer where there are ties. The bottom likewise.
    """
    if categories is not None and (top is not None or bottom is not None or replace == "mean"):
        raise ParameterError("categories in order have neither numbers as limits nor means; say how many percent")
    upper, lower = dates.limit("top", top, temporal), dates.limit("bottom", bottom, temporal)
    if upper is not None and lower is not None and lower > upper:
        raise ParameterError(f"the bottom {_shown(bottom)} is above the top {_shown(top)}")
    high = _limit(x, top_percent, rows) if upper is None else upper
    low = -_limit(-x, bottom_percent, rows) if lower is None else lower
    if low > high:
        raise ParameterError("its bottom is above its top, so that all values would be coded; move them apart")
    masked, above, below = x.copy(), x > high, x < low
    notes = []
    for what, beyond, limit in (("top", above, high), ("bottom", below, low)):
        many = rows.count(int(beyond.sum()))
        if many:
            masked[beyond] = limit if replace == "limit" else rows.mean(x[beyond])
        if replace == "mean" and 0 < many < _FEW:
            told = "value was coded at the {}: its mean is the value itself"
            told = told if many == 1 else "values were coded at the {}: their mean tells of each"
            notes.append(f"only {many} {told.format(what)}")
    return Outcome(masked, {"top_coded": int(above.sum()), "bottom_coded": int(below.sum())}, tuple(notes))


@top_bottom_code.local_when
def _(parameters: Mapping[str, Any]) -> bool:
    """The limits are given, and values become the limits."""
    by_percent = any(parameters[end] is None and parameters[f"{end}_percent"] > 0 for end in ("top", "bottom"))
    return parameters["replace"] == "limit" and not by_percent


@top_bottom_code.discloses
def _(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Limits by percent, and means."""
    ends = [end for end in ("top", "bottom") if parameters[end] is None and parameters[f"{end}_percent"] > 0]
    taken = dict.fromkeys(ends, "a quantile of the original")
    if parameters["replace"] == "mean" and (ends or parameters["top"] is not None or parameters["bottom"] is not None):
        taken["the mean of the coded values"] = "it is exact, and that of a single value is the value"
    return taken


def _shown(limit: float | str | None) -> str:
    return f"{limit:g}" if isinstance(limit, float) else str(limit)


def _limit(x: Array, percent: float, rows: Rows) -> float:
    """The least value that at least 100 - percent of the values do not exceed; none for 0 percent."""
    if percent == 0:
        return math.inf
    place = int(np.ceil(rows.count(x.size) * (100 - percent) / 100 * (1 - 1e-12))) - 1
    return rows.smallest(x, max(place, 0))


@top_bottom_code.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Recomputed:
    """He applies the step to the original himself."""
    return Recomputed()
