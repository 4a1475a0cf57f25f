"""Earth mover's distance: how far records must be carried to turn one table into the other.

>>> import numpy as np
>>> emd(np.array([[0.0], [10.0]]), np.array([[1.0], [10.0]])).value
0.05
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Range, Value, measure
from rankveil.errors import NotApplicableError
from rankveil.execute import in_threads, one_core_algebra
from rankveil.measures._transport import least_cost
from rankveil.moments import average, counted, scale_of

Masses = NDArray[np.int64] | Array
Rows = NDArray[np.intp]

_FARTHEST = 1e100
"""Ranges of the original beyond which distances are no longer added up."""

_RECORDS_PER_CLUSTER = 20
"""Records that decide about the centre of one cluster, on average; all records decide about its mean and weight."""

_ROUNDS = 10
_AT_ONCE = 512


@measure(
    title="Earth mover's distance",
    source="Rubner, Tomasi and Guibas 2000; Domingo-Ferrer, Ricci and Soria-Comas 2017",
    family="utility",
    better="lower",
    mapping=False,
    equal=False,
    weighted=True,
)
def emd(
    x: Array,
    y: Array,
    weight_x: Array | None = None,
    weight_y: Array | None = None,
    *,
    exact: Annotated[int, Range(1), "records of a table up to which the distance is exact"] = 5_000,
    clusters: Annotated[int, Range(1), "k-means clusters of each table above that"] = 1_000,
    names: tuple[str, ...] = (),
) -> Value:
    """Least mean Euclidean distance over which the records of X must be carried to become those of Y.

        emd = sum of d_ij f_ij / sum of f_ij

    f is the flow from X to Y of least cost, d_ij the Euclidean distance of records i of X and j of Y. Attributes
    are scaled to [0, 1] by the range of the original. One that is constant in the original is scaled by the range
    of both tables; where Y has the same, it adds nothing. Of records with weights, each table's weights are the
    parts of it that are carried.
    """
    records = [len(x), len(y)]
    (x, weight_x), (y, weight_y) = counted(x, weight_x), counted(y, weight_y)
    found = distance(x, y, weight_x, weight_y, ends=ends_of(x, y), exact=exact, clusters=clusters, names=names)
    return Value(found.value, {"records": records, **found.details}, found.notes)


def distance(
    x: Array,
    y: Array,
    weight_x: Array | None,
    weight_y: Array | None,
    *,
    ends: Ends,
    exact: int,
    clusters: int,
    names: tuple[str, ...] = (),
    only: Rows | None = None,
) -> Value:
    """The distance of two tables, or of samples of two tables whose columns have these `ends`.

    `only` gives that of some rows of both alone, without weights, on the clusters that all have.
    """
    details: dict[str, Any] = {}
    a, b, alone = _scaled(x, y, ends)
    details["attributes"] = a.shape[1]
    notes = [f"column {names[j] if names else j + 1} is constant in the original: scaled by both tables" for j in alone]
    if a.shape[1] == 0:
        return Value(0.0, {**details, "method": "exact"})
    if a.shape[1] == 1:
        some = slice(None) if only is None else only
        line = _on_a_line(a[some, 0], b[some, 0], weight_x, weight_y)
        return Value(line, {**details, "method": "exact"}, tuple(notes))
    if max(len(x), len(y)) <= exact and only is None:
        value = _carried(*_distinct(a, weight_x), *_distinct(b, weight_y))
        return Value(value, {**details, "method": "exact"}, tuple(notes))
    (one, masses, near), (other, others, close) = _clustered(a, b, weight_x, weight_y, clusters=clusters, only=only)
    value, width = _carried(one, masses, other, others), near + close
    details |= {
        "method": "clusters",
        "clusters": [len(one), len(other)],
        "exact_distance_between": [0.0, value + width],
    }
    details["exact_distance_between"][0] = max(value - width, 0.0)
    notes.append(f"approximate, on {len(one)} and {len(other)} k-means clusters: a table has more than {exact} records")
    return Value(value, details, tuple(notes))


@dataclass(frozen=True, eq=False)
class Ends:
    """The smallest and the largest value of each column of the original and of the masked table."""

    low_x: Array
    high_x: Array
    low_y: Array
    high_y: Array


def ends_of(x: Array, y: Array) -> Ends:
    """Those of two tables."""
    return Ends(x.min(axis=0), x.max(axis=0), y.min(axis=0), y.max(axis=0))


def _scaled(x: Array, y: Array, ends: Ends) -> tuple[Array, Array, list[int]]:
    """Both tables with the range of the original as unit, without columns that are one constant in both.

    Also which columns have no range in the original, and were scaled by the range of both.
    """
    kept, alone = [], []
    for j in range(x.shape[1]):
        extremes = np.array([ends.low_x[j], ends.high_x[j], ends.low_y[j], ends.high_y[j]])
        scale = scale_of(extremes) * 2  # the range itself may be twice the largest number
        one, other = x[:, j] / scale, y[:, j] / scale
        low, high = extremes[:2] / scale
        if extremes[0] == extremes[1]:
            low, high = extremes.min() / scale, extremes.max() / scale
            if low == high:
                continue
            alone.append(j)
        if not np.abs(other - low).max() < _FARTHEST * (high - low):
            raise NotApplicableError("masked values are too far away, beside the range of the original")
        kept.append(((one - low) / (high - low), (other - low) / (high - low)))
    sides = [np.column_stack([pair[side] for pair in kept]) if kept else np.empty((0, 0)) for side in (0, 1)]
    return sides[0], sides[1], alone


def _on_a_line(a: Array, b: Array, weight_a: Array | None, weight_b: Array | None) -> float:
    """The distance of two columns: the area between their distribution functions."""
    from scipy.stats import wasserstein_distance

    masses = [None if weight is None else weight / weight.max() for weight in (weight_a, weight_b)]
    return float(wasserstein_distance(a, b, *masses))


def _distinct(a: Array, weight: Array | None) -> tuple[Array, Masses]:
    """The different records, in the order of their contents, and how often each is there or the sum of its weights."""
    if weight is None:
        records, counts = np.unique(a, axis=0, return_counts=True)
        return records, counts.astype(np.int64)
    records, which = np.unique(a, axis=0, return_inverse=True)
    return records, np.bincount(which.ravel(), weights=weight / weight.max())


def _carried(a: Array, masses: Masses, b: Array, others: Masses) -> float:
    """The distance of two sets of points with masses: numbers of records, or sums of their weights."""
    return max(least_cost(a, masses / masses.sum(), b, others / others.sum()), 0.0)


# k-means. Records are sorted by their contents first, so that the order of rows shows nowhere, and nothing is drawn.
# The centres are those of both tables together: what the tables share stays where it is, and only the differences are
# carried. Clusters of each table alone would lie apart by chance, and that far even equal distributions would seem.
# Weights have no say in where the centres are, only in the means and masses of the clusters.


@one_core_algebra()
def _clustered(
    a: Array, b: Array, weight_a: Array | None, weight_b: Array | None, *, clusters: int, only: Rows | None = None
) -> list[tuple[Array, Masses, float]]:
    """Of each table the mean and the mass of each cluster, and how far records are from their mean.

    All records decide about the clusters; means and masses may be those of some alone.
    """
    orders = [_by_content(side) for side in (a, b)]
    sides = [side[order] for side, order in zip((a, b), orders, strict=True)]
    weights = [None if w is None else w[order] / w.max() for w, order in zip((weight_a, weight_b), orders, strict=True)]
    some = np.concatenate([side[:: max(len(side) // (clusters * _RECORDS_PER_CLUSTER), 1)] for side in sides])
    some = some[_by_content(some)]
    centres = _split(some, clusters)
    for _ in range(_ROUNDS):
        centres, _ = _means(some, _nearest(some, centres), len(centres))
    if only is not None:
        return [_gathered(side[only], None, centres) for side in (a, b)]
    return [_gathered(side, weight, centres) for side, weight in zip(sides, weights, strict=True)]


def _gathered(a: Array, weight: Array | None, centres: Array) -> tuple[Array, Masses, float]:
    where = _nearest(a, centres)
    means, masses = _means(a, where, len(centres), weight)
    away = a - means[np.unique(where, return_inverse=True)[1]]  # empty clusters are gone
    return means, masses, average(np.sqrt(np.einsum("ij,ij->i", away, away)), weight)


def _by_content(a: Array) -> Rows:
    """An order of the records that depends on their values only: by a sum that no two different records share."""
    key = np.zeros(len(a))
    for j in range(a.shape[1]):
        key += a[:, j] * np.sqrt(j + 2.5)
    return np.argsort(key, kind="stable")


def _split(a: Array, clusters: int) -> Array:
    """Centres to begin with: the cluster of largest squared error is halved at the mean of its widest attribute.

    Su and Dy 2007.
    """
    found: list[tuple[float, int, Array]] = [_entry(a, 0)]
    for made in range(1, clusters):
        error, _, part = found[0]
        if error == 0:
            break
        widest = int(np.argmax(_variance(part)))
        low = part[:, widest] <= part[:, widest].mean()
        if low.all() or not low.any():  # values so near to each other that their mean is not between them
            low = part[:, widest] < part[:, widest].max()
        heapq.heapreplace(found, _entry(part[low], 2 * made - 1))
        heapq.heappush(found, _entry(part[~low], 2 * made))
    return np.array([part.mean(axis=0) for _, _, part in sorted(found, key=lambda each: each[1])])


def _entry(part: Array, number: int) -> tuple[float, int, Array]:
    """For the heap: the largest error first, then the first made."""
    return -float(_variance(part).sum() * len(part)), number, part


def _variance(part: Array) -> Array:
    """Of each attribute, exactly 0 for a constant one."""
    found: Array = np.where(part.max(axis=0) > part.min(axis=0), part.var(axis=0), 0.0)
    return found


def _nearest(a: Array, centres: Array) -> Rows:
    """For each record the nearest centre: the least |c|^2 / 2 - a c."""
    half = np.einsum("ij,ij->i", centres, centres) / 2
    where = np.empty(len(a), dtype=np.intp)

    def put(start: int) -> None:
        some = slice(start, start + _AT_ONCE)
        gain = a[some] @ centres.T
        where[some] = np.argmin(np.subtract(half, gain, out=gain), axis=1)

    in_threads(put, range(0, len(a), _AT_ONCE), size=a.size)
    return where


def _means(a: Array, where: Rows, clusters: int, weight: Array | None = None) -> tuple[Array, Masses]:
    """The means and masses of the clusters that are not empty."""
    masses = np.bincount(where, weights=weight, minlength=clusters)
    there = masses > 0
    parts = (a[:, j] if weight is None else a[:, j] * weight for j in range(a.shape[1]))
    sums = [np.bincount(where, weights=part, minlength=clusters)[there] for part in parts]
    return np.column_stack(sums) / masses[there, None], masses[there]
