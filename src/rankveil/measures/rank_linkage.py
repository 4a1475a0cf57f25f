"""Rank linkage: how far each original record is from the nearest masked one, in ranks.

The formula printed in the paper (the logarithm of the sum over n) does not give the values that the paper reports; the
mean of logarithms does. The 1 added under the logarithm keeps it finite for a record with an exact twin.

>>> import numpy as np
>>> from rankveil.linkage import Linker
>>> ranks = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]])
>>> rank_linkage(ranks, ranks, Linker(ranks, metric="euclidean"), True, np.arange(1, 4)).value
0.0
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import EVERY_KIND, Array, Value, measure
from rankveil.linkage import Linker
from rankveil.measures._records import most_exposed
from rankveil.moments import average, quantiles

Rows = NDArray[np.intp]

_QUANTILES = (0, 5, 25, 50, 75, 95, 100)
"""Percentages at which distances are told."""


@measure(
    title="Rank linkage",
    source="Domingo-Ferrer, Ricci and Soria-Comas 2017",
    family="risk",
    better="higher",
    mapping=False,
    kinds=EVERY_KIND,
    weighted=True,
)
def rank_linkage(
    rank_x: Array,
    rank_y: Array,
    euclidean_ranks: Linker,
    paired: bool,
    rows: Rows,
    weight_x: Array | None = None,
) -> Value:
    """Mean over the original records of log(1 + d) / m, d the Euclidean distance in ranks to the nearest masked record.

        R = (1/n) sum over i of log(1 + min over k of d(x_i, y_k)) / m
        d(x_i, y_k)^2 = sum over the m attributes j of (rank(x_ij) - rank(y_kj))^2

    0 means that every record has an exact twin in the release; the larger, the less risk. With weights it is the mean
    over the subjects that the records stand for.
    """
    upto = np.sqrt(_gathered(rank_x, rank_y, np.add, power=2)) if paired else None
    distance = euclidean_ranks.distances(np.ascontiguousarray(rank_x), upto=upto)
    return _value(distance, rank_x.shape[1], rows, weight_x)


@measure(
    title="Permutation linkage",
    source="Domingo-Ferrer and Muralidhar 2016; Domingo-Ferrer, Ricci and Soria-Comas 2017",
    family="risk",
    better="higher",
    mapping=False,
    kinds=EVERY_KIND,
    weighted=True,
)
def permutation_linkage(
    rank_x: Array,
    rank_y: Array,
    maximum_ranks: Linker,
    paired: bool,
    rows: Rows,
    weight_x: Array | None = None,
) -> Value:
    """Mean over the original records of log(1 + d) / m, d the permutation distance to the nearest masked record.

        R = (1/n) sum over i of log(1 + min over k of d(x_i, y_k)) / m
        d(x_i, y_k) = max over the m attributes j of |rank(x_ij) - rank(y_kj)|

    With weights
    it is the mean over the subjects that the records stand for.
    """
    upto = _gathered(rank_x, rank_y, np.maximum, power=1) if paired else None
    distance = maximum_ranks.distances(np.ascontiguousarray(rank_x), upto=upto)
    return _value(distance, rank_x.shape[1], rows, weight_x)


def _gathered(rank_x: Array, rank_y: Array, gather: np.ufunc, *, power: int) -> Array:
    """The differences between each original record and its own masked one, column by column: no second table."""
    total = np.zeros(rank_x.shape[0])
    for j in range(rank_x.shape[1]):
        gather(total, np.abs(rank_x[:, j] - rank_y[:, j]) ** power, out=total)
    return total


def _value(distance: Array, attributes: int, rows: Rows, weight: Array | None) -> Value:
    if weight is None:
        at = np.percentile(distance, _QUANTILES)
    else:
        order = np.argsort(distance)
        at = quantiles(distance[order], np.array(_QUANTILES) / 100, weight[order])
    details = {
        "distance": {f"{percent} %": float(value) for percent, value in zip(_QUANTILES, at, strict=True)},
        "twins": average(distance == 0, weight),
        "most_exposed": most_exposed(rows, danger=-distance, value=distance),
    }
    return Value(average(np.log1p(distance), weight) / attributes, details)
