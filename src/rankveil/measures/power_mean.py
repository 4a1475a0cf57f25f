"""Power means of permutation distances: what the smallest ones leave at risk, what the largest ones cost.

J(p, alpha) = (mean of p_i^alpha)^(1/alpha), and the geometric mean for alpha = 0, of the absolute permutation distances
p_i of an attribute: expression (10) of Domingo-Ferrer, Muralidhar and Bras-Amoros (2021), after Ruiz (2018). A low
alpha weighs the smallest distances, so J is a measure of protection: a *larger* J means less risk (the sentence in the
paper is the wrong way round). A high alpha weighs the largest distances, and a larger J means more loss. So there are
two measures, `power_mean` for alpha up to 1 and `power_mean_loss` for alpha from 1 on.

The usual alphas are -1 and 2, the defaults of the two, and J at both stands in the details of both measures. For
alpha <= 0 a single value that keeps its rank makes J 0, and nearly every large release has one: a positive alpha, or
the curve, then says more.

Details also carry J over whole alphas from -10 to 10 for each attribute: where the curve of one release lies above that
of another for all alpha below 1, the first protects better however much one minds the worst case (dominance).

>>> import numpy as np
>>> power_mean(np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 1.0, 4.0, 3.0])).value
1.0
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from rankveil.catalogue import EVERY_KIND, Array, Range, Value, measure
from rankveil.ranks import rank_changes

_FARTHEST_ALPHA = 10
"""The curves go from minus to plus this."""

_USUAL = (-1, 2)

_SOURCE = "Ruiz 2018; Domingo-Ferrer, Muralidhar and Bras-Amoros 2021"


@measure(
    title="Power mean of permutation distances",
    source=_SOURCE,
    family="confidentiality",
    better="higher",
    per="column",
    kinds=EVERY_KIND,
)
def power_mean(
    rank_x: Array,
    rank_y: Array,
    *,
    alpha: Annotated[float, Range(-100, 1), "the lower, the more the smallest distances weigh"] = -1.0,
) -> Value:
    """(mean of p_i^alpha)^(1/alpha) of the permutation distances p_i of an attribute, alpha at most 1: larger is safer.

    It is 0 for alpha <= 0 as soon as one value keeps its rank; `unmoved` is the share of those.
    """
    return _value(rank_changes(rank_x, rank_y), alpha)


@measure(
    title="Power mean of permutation distances, as loss",
    source=_SOURCE,
    family="loss",
    better="lower",
    per="column",
    kinds=EVERY_KIND,
)
def power_mean_loss(
    rank_x: Array,
    rank_y: Array,
    *,
    alpha: Annotated[float, Range(1, 100), "the higher, the more the largest distances weigh"] = 2.0,
) -> Value:
    """(mean of p_i^alpha)^(1/alpha) of the permutation distances of an attribute, alpha at least 1: larger is worse."""
    return _value(rank_changes(rank_x, rank_y), alpha)


def _value(distances: Array, alpha: float) -> Value:
    curve = _curve(distances)
    details = {
        "alpha": alpha,
        "usual": [point for point in curve if point["alpha"] in _USUAL],
        "unmoved": float(np.mean(distances == 0)),
        "smallest": float(distances.min()),
        "largest": float(distances.max()),
        "curve": curve,
    }
    return Value(_mean(distances, alpha), details)


def _mean(distances: Array, alpha: float) -> float:
    """J, from distances over their largest or smallest, so that no power leaves the range of numbers."""
    smallest, largest = float(distances.min()), float(distances.max())
    if largest == 0 or (smallest == 0 and alpha <= 0):
        return 0.0
    if alpha == 0:
        return float(np.exp(np.mean(np.log(distances))))
    unit = largest if alpha > 0 else smallest
    return unit * float(np.mean((distances / unit) ** alpha) ** (1 / alpha))


def _curve(distances: Array) -> list[dict[str, float]]:
    """J for whole alphas, each power made from the one before: a product instead of an exponential."""
    smallest, largest = float(distances.min()), float(distances.max())
    found = {0: _mean(distances, 0.0)}
    for sign, unit in ((1, largest), (-1, smallest)):
        if unit == 0:
            found |= {sign * k: 0.0 for k in range(1, _FARTHEST_ALPHA + 1)}
            continue
        share = distances / unit if sign > 0 else unit / distances
        power = np.ones_like(share)
        for k in range(1, _FARTHEST_ALPHA + 1):
            power *= share
            found[sign * k] = unit * float(np.mean(power)) ** (sign / k)
    return [{"alpha": float(alpha), "value": found[alpha]} for alpha in sorted(found)]
