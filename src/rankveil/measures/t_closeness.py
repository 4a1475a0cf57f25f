"""t-closeness: how far the confidential values of an equivalence class are from those of the whole release.

Numbers and ordered categories: the earth mover's distance in which the i-th and the j-th of m different values are
|i - j| / (m - 1) apart. Categories without order: all are 1 apart, so the distance is half the sum of the differences
of shares. pycanon takes every text for a category without order, and fails where a number is constant: here that is 0.

>>> import numpy as np
>>> quasi = {"AGE": np.array([30.0, 30.0, 40.0, 40.0])}
>>> t_closeness(quasi, {"WAGE": np.array([1.0, 2.0, 3.0, 4.0])}, {"WAGE": "numeric"}).value
0.3333333333333333
>>> t_closeness(quasi, {"WORK": np.array([0.0, 1.0, 2.0, 3.0])}, {"WORK": "nominal"}).value
0.5
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import EVERY_KIND, Array, Range, Value, measure
from rankveil.classes import Classes, joined, numbered
from rankveil.errors import NotApplicableError
from rankveil.measures._classes import (
    Columns,
    checked_confidential,
    classes_of,
    listed,
    missing_notes,
    quasi_notes,
    told,
)

Counts = NDArray[np.int64]


@measure(
    title="t-closeness",
    source="Li, Li and Venkatasubramanian 2007",
    family="risk",
    better="lower",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
)
def t_closeness(
    quasi_y: Columns,
    confidential_y: Columns,
    confidential_kinds: Mapping[str, str],
    *,
    limit: Annotated[float, Range(0, 1), "the t asked for: records in classes farther away are counted"] = 0.2,
) -> Value:
    """The largest distance of the values of an equivalence class from those of all records, over confidential columns.

        t = max over the classes E of EMD(P_E, P)

    P are the shares of the values in all records, P_E those in the records of E, and EMD the earth mover's distance.
    Records without the confidential value are left out of both distributions, for the order has no place for them.
    """
    classes = classes_of(quasi_y)
    distances: dict[str, Array] = {}
    skipped = []
    for name, column in checked_confidential(confidential_y).items():
        if np.isnan(column).all():
            skipped.append(name)
            continue
        distances[name] = _distances(classes, column, ordered=confidential_kinds[name] != "nominal")
    if not distances:
        raise NotApplicableError("every confidential value is missing")
    farthest = np.max(list(distances.values()), axis=0)
    above = np.flatnonzero((farthest > limit)[classes.number])
    details: dict[str, Any] = {
        "per_attribute": {name: float(each.max()) for name, each in distances.items()},
        "distance": {name: "equal" if confidential_kinds[name] == "nominal" else "ordered" for name in distances},
        **told(quasi_y, classes),
        "limit": limit,
        "records_above_limit": int(above.size),
        "rows": listed(above),
    }
    there = {name: confidential_y[name] for name in distances}
    notes = (
        *quasi_notes(quasi_y),
        *missing_notes(there, how="left out of the distributions"),
        *(f"column {name} left out: all its cells are missing" for name in skipped),
    )
    return Value(float(farthest.max()), details, notes)


def _distances(classes: Classes, column: Array, *, ordered: bool) -> Array:
    """Of each class; 0 where no record of it has a value, for then there is nothing to tell."""
    there = ~np.isnan(column)
    values, count = numbered(column[there])
    number = classes.number[there]
    if count == 1:
        return np.zeros(len(classes))
    if ordered:
        return _ordered(number, len(classes), values, count)
    return _equal(number, len(classes), values, count)


def _equal(number: Counts, classes: int, values: Counts, count: int) -> Array:
    """The sum of what the shares of a class exceed those of the whole by: half the sum of all differences."""
    whole = np.bincount(values, minlength=count) / values.size
    sizes = np.bincount(number, minlength=classes)
    codes, counts = np.unique(joined(number, classes, values, count)[0], return_counts=True)
    of = codes // count
    excess = np.maximum(counts / sizes[of] - whole[codes % count], 0.0)
    return np.asarray(np.bincount(of, weights=excess, minlength=classes), dtype=np.float64)


def _ordered(number: Counts, classes: int, values: Counts, count: int) -> Array:
    """sum over values of |F_class - F| / (count - 1), F the shares up to each value.

    Between one value of a class and its next F_class stands still, at k / size, and F rises: below the place where F
    reaches k / size the differences are of one sign, from there on of the other, and running sums of F give both.
    """
    n = values.size
    upto = np.cumsum(np.bincount(values, minlength=count))
    running = np.concatenate(([0], np.cumsum(upto)))
    order = np.argsort(joined(number, classes, values, count)[0])
    of, start = number[order], values[order]
    sizes = np.bincount(of, minlength=classes)
    first = (np.cumsum(sizes) - sizes)[of]
    k = np.arange(n) - first + 1
    size = sizes[of]
    stop = np.concatenate((start[1:], [count]))
    stop[k == size] = count
    turn = np.clip(np.searchsorted(upto, -(-k * n // size)), start, stop)  # n F >= n k / size from there on
    level = k / size
    below = level * (turn - start) - (running[turn] - running[start]) / n
    beyond = (running[stop] - running[turn]) / n - level * (stop - turn)
    summed = np.bincount(of, weights=below + beyond, minlength=classes)
    head = k == 1  # before its first value F_class is 0
    summed[of[head]] += running[start[head]] / n
    return np.asarray(np.clip(summed / (count - 1), 0.0, 1.0))
