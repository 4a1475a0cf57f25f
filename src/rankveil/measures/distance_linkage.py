"""Distance-based record linkage: how many records an intruder links rightly by the nearest masked record.

Whether two masked records are equally near must not depend on rounding: between 1 and 3, 2 is in the middle, but their
standardised values may say otherwise in the last digit. So columns of whole numbers, or of numbers with a few decimals,
are compared as whole numbers times 1 / sd in single precision, and all their differences are exact.

>>> import numpy as np
>>> x = np.array([[1.0], [2.0], [3.0]])
>>> distance_linkage(x, x + 0.1, x - 2.0, x - 1.9, np.ones(1), np.arange(1, 4)).value
1.0
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Value, measure
from rankveil.execute import in_threads
from rankveil.linkage import Linker
from rankveil.measures._records import most_exposed
from rankveil.moments import average

Rows = NDArray[np.intp]

_POWERS = (1.0, 10.0, 100.0, 1e3, 1e4)
"""Decimals that columns of rounded numbers have."""

_LONGEST = 2.0**29
"""A whole number below this times one in single precision (24 bits) is exact."""


@measure(
    title="Distance-based record linkage",
    source="Pagliuca and Seri 1999; Domingo-Ferrer and Torra 2001",
    family="risk",
    better="lower",
    bounds=(0.0, 1.0),
    weighted=True,
)
def distance_linkage(
    x: Array,
    y: Array,
    standard_x: Array,
    scaled_y: Array,
    spread_x: Array,
    rows: Rows,
    weight_x: Array | None = None,
) -> Value:
    """Share of the original records whose nearest masked record is their own; a tie of t records counts 1/t.

        share = (1/n) sum over i of [y_i among the nearest to x_i] / t_i
        d(x, y)^2 = sum over j of ((x_j - y_j) / S_j)^2

    S_j is the standard deviation of attribute j in the original. `correct` is the share with the own record alone
    nearest, `tied` the share that is nearest beside others. The most exposed records are those most surely linked;
    among them first those that lie farthest from the mean of all. With weights it is the share of the subjects that
    the records stand for, and the standard deviation is theirs.
    """
    queries, points = np.array(standard_x, order="C"), np.array(scaled_y, order="C")

    def without_rounding(j: int) -> None:
        power = _power(x[:, j], y[:, j])
        if power is not None and spread_x[j] > 0:
            factor = float(np.float32(1 / (power * spread_x[j])))
            for made, values in ((queries, x), (points, y)):
                made[:, j] = np.rint(values[:, j] * power) * factor

    in_threads(without_rounding, range(x.shape[1]), size=x.size)
    own = _squares(queries, points)
    found = Linker(points, metric="euclidean").matches(queries, most=1, upto=np.sqrt(own))
    # squares, as the search compares them: roots of different squares may be equal
    linked = own == _squares(queries, points[found.first])
    chance = linked / found.count
    unusual = _squares(standard_x, np.zeros((1, x.shape[1])))
    details = {
        "correct": average(linked & (found.count == 1), weight_x),
        "tied": average(linked & (found.count > 1), weight_x),
        "most_exposed": most_exposed(rows, danger=chance, then=unusual, value=chance, distance=np.sqrt(own)),
    }
    return Value(average(chance, weight_x), details)


def _squares(a: Array, b: Array) -> Array:
    """Squared distances of the rows of two tables, attribute by attribute in order, as `Linker` computes them."""
    total = np.zeros(len(a))
    for j in range(a.shape[1]):
        apart = np.abs(b[:, j] - a[:, j])
        total += apart * apart
    return total


def _power(x: Array, y: Array) -> float | None:
    """The power of ten that turns all values of a column into whole numbers, if a small one does."""
    parts = (x[:100], y[:100], x, y)  # most columns that are not of that kind show it at once
    return next((power for power in _POWERS if all(_whole(part, power) for part in parts)), None)


def _whole(values: Array, power: float) -> bool:
    """Whether values times a power of ten are whole numbers, but for rounding, and not too long to be exact."""
    if np.abs(values).max() >= _LONGEST / power:
        return False
    scaled = values * power
    return bool((np.abs(scaled - np.rint(scaled)) <= 4 * np.finfo(float).eps * np.abs(scaled)).all())
