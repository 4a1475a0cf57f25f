"""Resampling: the order statistics of bootstrap samples, averaged, in place of the values of the same rank.

>>> from rankveil.seeds import Seed
>>> made = resample(np.array([30.0, 10.0, 50.0, 20.0, 40.0]), t=4, rng=Seed.of(1).stream("example"))
>>> np.argsort(made)  # the order of the records is the original's
array([1, 3, 0, 4, 2])
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from rankveil.catalogue import Array, Range, method
from rankveil.likelihood import KeptRanks
from rankveil.ranks import strict_order
from rankveil.seeds import Stream


@method(
    title="Resampling",
    source="Heer 1993; Domingo-Ferrer and Mateo-Sanz 1999",
    kinds=("numeric",),
    strength="t",
    stronger="lower",
    seed_tells="the original values that were drawn can be told",
    tells="values of a column come from t bootstrap samples of it, averaged by rank: its distribution is the "
    "original's up to sampling error, and the order of the records in each column is the original's",
)
def resample(
    x: Array,
    *,
    t: Annotated[int, Range(1, 1000), "how many bootstrap samples are averaged"] = 1,
    rng: Stream,
) -> Array:
    """Resampling: y_i = (s_1(r) + ... + s_t(r)) / t, r the rank of x_i and s_k(r) the value of rank r in sample k.

    Each sample draws n values from x with replacement. Ties in x take their ranks at random. More samples come
    nearer to the original (the averages tend to the expected order statistics), so protection falls with t.
    """
    order = strict_order(x, ties=rng.bits(x.size))
    ordered = x[order]
    # two ends that are farther apart than the largest number: their difference would not be one
    shrink = 0.5 if ordered[-1] / 2 - ordered[0] / 2 > np.finfo(float).max / 2 else 1.0
    ordered *= shrink
    average = np.zeros_like(x)
    for k in range(1, t + 1):
        drawn = np.bincount(rng.integers(x.size, below=x.size), minlength=x.size)
        sample = np.repeat(ordered, drawn)  # sorted, because what it repeats is
        if k == 1:
            average = sample
        else:
            average += (sample - average) / k  # this way the average of equal values is that value exactly
    masked = np.empty_like(x)
    masked[order] = average / shrink
    return masked


@resample.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> KeptRanks:
    """Ranks stay: a released value tells the rank of the original."""
    return KeptRanks()
