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
>>> from rankveil.summaries.movements import Distances, Powers
>>> moved = Distances.of(np.array([1, 2, 3, 4]), np.array([2, 1, 4, 3]), records=4, times=2)
>>> power_mean(Powers.of(moved)).value
1.0
"""

from __future__ import annotations

from typing import Annotated

from rankveil.catalogue import EVERY_KIND, Range, Value, measure
from rankveil.summaries.movements import HIGHEST, Powers

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
    rank_powers: Powers,
    *,
    alpha: Annotated[float, Range(-100, 1), "the lower, the more the smallest distances weigh"] = -1.0,
) -> Value:
    """J = (mean of p_i^alpha)^(1/alpha), p_i the permutation distances of an attribute, alpha at most 1: more is safer.

    It is 0 for alpha <= 0 as soon as one value keeps its rank; `unmoved` is the share of those.
    """
    return _value(rank_powers, alpha)


@measure(
    title="Power mean of permutation distances, as loss",
    source=_SOURCE,
    family="loss",
    better="lower",
    per="column",
    kinds=EVERY_KIND,
)
def power_mean_loss(
    rank_powers: Powers,
    *,
    alpha: Annotated[float, Range(1, 100), "the higher, the more the largest distances weigh"] = 2.0,
) -> Value:
    """The mean of the permutation distances of an attribute that weighs large ones most: larger is worse.

    J = (mean of p_i^alpha)^(1/alpha), p_i the permutation distances, alpha at least 1
    """
    return _value(rank_powers, alpha)


def _value(powers: Powers, alpha: float) -> Value:
    curve = [{"alpha": float(k), "value": powers.mean(float(k))} for k in range(-HIGHEST, HIGHEST + 1)]
    details = {
        "alpha": alpha,
        "usual": [point for point in curve if point["alpha"] in _USUAL],
        "unmoved": powers.unmoved / powers.count,
        "smallest": powers.smallest / 2,
        "largest": powers.largest / 2,
        "curve": curve,
    }
    return Value(powers.mean(alpha), details)
