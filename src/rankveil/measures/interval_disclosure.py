"""Interval disclosure: how many original values lie close to the masked ones, by ranks and by standard deviations.

>>> import numpy as np
>>> x = np.array([10.0, 20.0, 30.0, 40.0])
>>> interval_disclosure(np.arange(1.0, 5), np.arange(1.0, 5), x, x, x.std()).value
1.0
"""

from __future__ import annotations

import numpy as np

from rankveil.catalogue import Array, Value, measure
from rankveil.moments import average, scale_of
from rankveil.ranks import rank_changes

_WIDEST = 10
"""Intervals reach 1, 2, ... up to so many percent."""


@measure(
    title="Interval disclosure",
    source="Domingo-Ferrer and Torra 2001; Mateo-Sanz, Sebe and Domingo-Ferrer 2004",
    family="risk",
    better="lower",
    bounds=(0.0, 1.0),
    per="column",
    weighted=True,
)
def interval_disclosure(
    rank_x: Array, rank_y: Array, x: Array, y: Array, spread_x: float, weight_x: Array | None = None
) -> Value:
    """Share of original values inside an interval around their masked value, for half-widths of p = 1, ..., 10 percent.

    By rank: |rank(x_i) - rank(y_i)| <= p n / 100. By deviation: |x_i - y_i| <= p sd(x) / 100. Each is the mean over
    p, the value is the mean of the two. Where the original is constant, only an unchanged value is inside. With weights
    it is the share of the subjects that the records stand for; ranks are those of the records.
    """
    by_rank = _caught(rank_changes(rank_x, rank_y) * 100 / max(rank_x.size, 1), weight_x)
    by_deviation = _caught(_percents(x, y, float(spread_x)), weight_x)
    return Value((by_rank + by_deviation) / 2, details={"by_rank": by_rank, "by_deviation": by_deviation})


def _percents(x: Array, y: Array, spread: float) -> Array:
    """100 |x - y| / sd, without overflow on the way; infinite beside a spread of 0, unless nothing changed."""
    scale = max(scale_of(x), scale_of(y))
    change = np.abs(x / scale - y / scale)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        percents: Array = change / (spread / scale) * 100
    percents[x == y] = 0.0
    return percents


def _caught(percents: Array, weight: Array | None) -> float:
    """The share of values caught, averaged over p: one first caught at p is caught at every wider interval too."""
    first = np.clip(np.ceil(percents), 1, _WIDEST + 1)
    return average(_WIDEST + 1 - first, weight) / _WIDEST
