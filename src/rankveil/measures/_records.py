"""What measures of single records share: which ones are listed, which ones stand for all, how sure a share is."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array
from rankveil.moments import average

Rows = NDArray[np.intp]

LISTED = 20
"""Records that are listed, the most exposed first."""

_NORMAL_95 = 1.959963984540054
"""The normal quantile of a two-sided interval of 95 %."""


def most_exposed(rows: Rows, *, danger: Array, then: Array | None = None, **shown: Array) -> list[dict[str, Any]]:
    """The records in the greatest danger; when it is equal, by `then`, and then the lower row. Of each what is shown.

    >>> most_exposed(np.array([7, 8, 9]), danger=np.array([0.0, 2.0, 2.0]), value=np.array([5.0, 6.0, 7.0]))[:2]
    [{'record': 8, 'value': 6.0}, {'record': 9, 'value': 7.0}]
    """
    last = max(danger.size - LISTED, 0)
    candidates = np.flatnonzero(danger >= np.partition(danger, last)[last])
    keys = [rows[candidates], -danger[candidates]]
    if then is not None:
        keys.insert(1, -then[candidates])
    first = candidates[np.lexsort(keys)[:LISTED]]
    return [{"record": int(rows[i]), **{name: float(of[i]) for name, of in shown.items()}} for i in first]


def evenly(rank_x: Array, count: int) -> Rows:
    """So many records that stand for all: at even steps from the smallest sum of ranks to the largest."""
    n = rank_x.shape[0]
    if count >= n:
        return np.arange(n)
    order = np.argsort(rank_x.sum(axis=1), kind="stable")
    steps = ((np.arange(count) + 0.5) * (n / count)).astype(np.intp)
    chosen: Rows = order[steps]
    return chosen


def share_interval(share: float, *, of: float, level: float | None = None) -> list[float]:
    """Wilson's interval (95 % unless a level in percent is given) of a sample of that size, not empty even at 0 and 1.

    >>> [round(end, 3) for end in share_interval(0.0, of=100)]
    [0.0, 0.037]
    """
    quantile = _NORMAL_95 if level is None else NormalDist().inv_cdf(0.5 + level / 200)
    square = quantile**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    reach = quantile / (1 + square / of) * math.sqrt(max(share * (1 - share), 0.0) / of + square / (4 * of * of))
    return [max(middle - reach, 0.0), min(middle + reach, 1.0)]


def mean_interval(values: Array, *, population: int, weight: Array | None = None) -> list[float]:
    """The interval of 95 % for the mean of a population, from some of its values.

    A weighted mean is a ratio of two means, and varies as that of w_i (v_i - mean) does (Cochran 1977).
    """
    rest = 1 - values.size / population
    if weight is not None:
        mean = average(values, weight)
        around = (values - mean) * (weight / np.mean(weight))
        values = mean + around
    reach = _NORMAL_95 * float(values.std()) * math.sqrt(rest / max(values.size - 1, 1))
    return [float(values.mean()) - reach, float(values.mean()) + reach]
