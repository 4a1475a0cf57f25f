"""The largest shift of a mean: how far are averages of the release from those of the original?

>>> import numpy as np
>>> x, y = np.array([1.0, 3.0]), np.array([1.0, 4.0])
>>> mean_shift(x.mean(), x.std(), y.mean(), y.std()).value  # from 2 to 2.5, and the standard deviation is 1
0.5
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rankveil.catalogue import Value, measure
from rankveil.errors import NotApplicableError
from rankveil.moments import scale_of


@measure(
    title="Largest shift of a mean",
    source="standardised mean difference: Cohen 1988",
    family="utility",
    better="lower",
    mapping=False,
    equal=False,
    pairwise=True,
    kinds=("numeric",),
    weighted=True,
    per="column",
    headline="max",
)
def mean_shift(mean_x: Any, spread_x: Any, mean_y: Any, spread_y: Any) -> Value:
    """How far the mean of a column moved, in standard deviations of the original column; the largest over the columns.

        shift = |m' - m| / s

    m and s are the mean and the population standard deviation of the original's values, m' is the mean of the
    release's; each over all values that are there. Dates and times count as numbers. With weights all three are those
    of the population that the records stand for. A column that is constant in the original has no s: it is left out.
    """
    centre, width, after = float(mean_x), float(spread_x), float(mean_y)
    if width == 0:
        raise NotApplicableError("it is constant in the original, so there is no standard deviation to measure by")
    scale = scale_of(np.array([centre, after, width]))
    with np.errstate(divide="ignore", over="ignore"):
        shift = float(np.abs(np.float64(after / scale - centre / scale)) / np.float64(width / scale))
    if not math.isfinite(shift):
        raise NotApplicableError("the shift is too large to be written as a number of standard deviations")
    details = {"original": centre, "masked": after, "standard_deviations": [width, float(spread_y)]}
    return Value(shift, details)
