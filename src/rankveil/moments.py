"""Population moments that do not overflow: of values like 1e300, and of 1e-300 beside 1e12."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def scale_of(x: Array) -> float:
    """A power of two near the largest magnitude (1 for zeros), so that dividing by it loses nothing."""
    largest = float(np.max(np.abs(x))) if x.size else 0.0
    if largest == 0.0 or not np.isfinite(largest):
        return 1.0
    # frexp of a subnormal has an exponent below the smallest normal power of two, that of 1e308 one above the largest
    return float(2.0 ** min(max(int(np.frexp(largest)[1]), -1000), 1023))


def mean(x: Array) -> float:
    """The mean.

    >>> mean(np.array([1e308, 1e308]))
    1e+308
    """
    if is_constant(x):
        return float(x[0])
    scale = scale_of(x)
    return float(np.mean(x / scale)) * scale


def standard_deviation(x: Array) -> float:
    """The population standard deviation, exactly 0 for a constant column.

    >>> standard_deviation(np.array([0.1, 0.1, 0.1]))
    0.0
    """
    if is_constant(x):
        return 0.0
    scale = scale_of(x)
    return float(np.std(x / scale)) * scale


def is_constant(x: Array) -> bool:
    """Whether all values are the same."""
    return x.size == 0 or bool(np.all(x == x[0]))


def of_replicates(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean of replicates, their standard deviation, and half the 95 % interval of the mean (Student's t).

    >>> of_replicates([0.0, 2.0])[:2]
    (1.0, 1.4142135623730951)
    """
    n = len(values)
    centre = math.fsum(values) / n
    sd = math.sqrt(math.fsum((value - centre) ** 2 for value in values) / max(n - 1, 1))
    if sd == 0.0:
        return centre, 0.0, 0.0
    from scipy.stats import t

    return centre, sd, float(t.ppf(0.975, n - 1)) * sd / math.sqrt(n)
