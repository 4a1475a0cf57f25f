"""Linkage entropy: how much the release leaves open which masked record belongs to an original one.

>>> import numpy as np
>>> same = np.full((4, 1), 2.5)
>>> linkage_entropy(same, same, np.arange(1, 5)).value
1.0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Lock
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import EVERY_KIND, Array, Value, measure
from rankveil.errors import NotApplicableError
from rankveil.execute import in_threads
from rankveil.measures._records import evenly, mean_interval, most_exposed
from rankveil.moments import average, quantiles

Rows = NDArray[np.intp]
Halves = NDArray[Any]
"""Average ranks are whole or half: twice a rank is a whole number, and whole numbers are quick and exact."""

_PAIRS = 25_000_000
_AT_LEAST = 200
"""Up to so many pairs all are looked at; above, as many originals as make that number, but not fewer than these."""

_NO_WEIGHT = 1e3
"""exp(-1000) is 0."""

_BLOCK = 1 << 18
"""Pairs that a thread holds in memory at a time."""


@measure(
    title="Linkage entropy",
    source="Domingo-Ferrer and Muralidhar 2016, open line 4",
    family="risk",
    better="higher",
    bounds=(0.0, 1.0),
    mapping=False,
    kinds=EVERY_KIND,
    weighted=True,
)
def linkage_entropy(
    rank_x: Array,
    rank_y: Array,
    rows: Rows,
    weight_x: Array | None = None,
    *,
    width: Annotated[Literal["pairs", "nearest"], "s: the median distance of all pairs, or of the nearest"] = "pairs",
) -> Value:
    """Mean over the original records of H / log n, H the entropy of a record's match under weights exp(-d / s).

        H = - sum over y of w_y log w_y,
        w_y = exp(-d(x, y) / s) / sum over y' of exp(-d(x, y') / s)

    d is the permutation distance (the largest difference in ranks) to each of the n masked records, and s the median
    distance; where s is 0, all weight is on the nearest records. 1 means that the release says nothing about who is
    who. With s from all pairs the weights are wide and the value is near 1 even for the original itself; with the
    median of the distances to the nearest record (`width` = nearest) they are as narrow as an intruder's doubt.
    `candidates` tells how many equally likely records would leave as much open, exp(H). For more than 25 million
    pairs, a sample of originals is compared with all masked records, and s may come from fewer pairs. With weights the
    mean is over the subjects that the original records stand for.
    """
    n = rank_x.shape[0]
    if n < 2:
        raise NotApplicableError("one record alone leaves no choice")
    sample = evenly(rank_x, n if n * n <= _PAIRS else max(_PAIRS // n, _AT_LEAST))
    whole = np.int16 if 2 * n <= np.iinfo(np.int16).max else np.int32
    x, y = np.rint(2 * rank_x[sample]).astype(whole), np.rint(2 * rank_y).astype(whole)
    for_s = y if width == "nearest" else np.asfortranarray(y[evenly(rank_y, _PAIRS // sample.size)])
    median = _median_of_nearest(x, for_s) if width == "nearest" else _median_of_pairs(x, for_s)
    entropy = _entropies(x, y, width=median)
    candidates = np.exp(entropy)
    weight = None if weight_x is None else weight_x[sample]
    value = average(entropy, weight) / math.log(n)
    details: dict[str, Any] = {
        "s": median / 2,
        "pairs_for_s": sample.size * len(for_s),
        "candidates": {"smallest": float(candidates.min()), "median": _median(candidates, weight)},
        "pairs": sample.size * n,
        "most_exposed": most_exposed(rows[sample], danger=-candidates, value=candidates),
    }
    if sample.size == n:
        return Value(value, details)
    low, high = mean_interval(entropy / math.log(n), population=n, weight=weight)
    details |= {"originals": int(sample.size), "interval": [max(low, 0.0), min(high, 1.0)]}
    return Value(value, details, (f"from {sample.size} of {n} original records, against all masked records",))


def _median(values: Array, weight: Array | None) -> float:
    if weight is None:
        return float(np.median(values))
    order = np.argsort(values)
    return float(quantiles(values[order], np.array([0.5]), weight[order])[0])


def _blocks(x: Halves, y: Halves, look: Callable[[Halves], Any]) -> list[Any]:
    """What `look` makes of the distances of some original records to all masked ones, block by block."""
    step = max(_BLOCK // len(y), 1)

    def block(start: int) -> Any:
        some = x[start : start + step]
        farthest = np.zeros((len(some), len(y)), dtype=x.dtype)
        apart = np.empty_like(farthest)
        for j in range(x.shape[1]):
            np.subtract(some[:, j, None], y[:, j], out=apart)
            np.maximum(farthest, np.abs(apart, out=apart), out=farthest)
        return look(farthest)

    return in_threads(block, range(0, len(x), step), size=len(x) * len(y))


def _median_of_pairs(x: Halves, y: Halves) -> float:
    """The median distance of an original and a masked record, from how many pairs there are at each."""
    counts = np.zeros(int(max(x.max(), y.max())) + 1, dtype=np.int64)
    one_at_a_time = Lock()

    def count(distance: Halves) -> None:
        found = np.bincount(distance.ravel())
        with one_at_a_time:
            counts[: found.size] += found

    _blocks(x, y, count)
    upto = np.cumsum(counts)
    middle = np.searchsorted(upto, [(upto[-1] + 1) // 2, upto[-1] // 2 + 1])
    return float(middle.mean())


def _median_of_nearest(x: Halves, y: Halves) -> float:
    """The median distance of an original record and the masked one nearest to it."""
    return float(np.median(np.concatenate(_blocks(x, y, lambda distance: distance.min(axis=1)))))


def _entropies(x: Halves, y: Halves, *, width: float) -> Array:
    """log W + sum(w d / width) / W for each record, with w = exp(-d / width) and W their sum.

    Distances are taken from the nearest record's on: that changes no entropy, and W is never 0.
    """

    def entropy(distance: Halves) -> Array:
        further = distance - distance.min(axis=1, keepdims=True)
        exponent = np.minimum(further / width, _NO_WEIGHT) if width > 0 else _NO_WEIGHT * (further > 0)
        weight = np.exp(-exponent)
        total = weight.sum(axis=1)
        exponent *= weight
        made: Array = np.log(total) + exponent.sum(axis=1) / total
        return made

    return np.concatenate(_blocks(x, y, entropy))
