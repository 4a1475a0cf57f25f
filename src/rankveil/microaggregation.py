"""Microaggregation: records in groups of at least k, and what a group has in common."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import ParameterError
from rankveil.moments import mean, scale_of, standard_deviation

Array = NDArray[np.float64]
Groups = NDArray[np.int64]

_COMPILED = 10_000
"""From so many records on the compiled search is worth waiting for its compiler; below, numpy takes about a second."""


def standardised(x: Array) -> Array:
    """The columns of x with mean 0 and standard deviation 1, constant ones left out."""
    columns = []
    for j in range(x.shape[1]):
        scaled = x[:, j] / scale_of(x[:, j])  # by a power of two, so that nothing overflows and no digit is lost
        shifted = scaled - scaled[:1]  # before any division, which would round away small differences of large values
        spread = standard_deviation(shifted)
        if spread > 0:
            columns.append((shifted - mean(shifted)) / spread)
    return np.column_stack(columns) if columns else np.zeros((x.shape[0], 0))


def mdav_groups(x: Array, *, k: int) -> Groups:
    """The groups of MDAV (Domingo-Ferrer and Torra 2005) on the standardised columns: a number for each record.

    While at least 3k records remain: r is the record farthest from their mean, and forms a group with its k - 1
    nearest; then s, the one of those left farthest from r, does. With 2k to 3k - 1 left, one more group around the
    record farthest from the mean, and the rest. Ties go to the lower row.
    """
    n = x.shape[0]
    if k > n:
        raise ParameterError(f"k = {k} is larger than the number of records, {n}; choose a smaller k")
    z = np.ascontiguousarray(standardised(x))
    if z.shape[1] == 0:
        return groups_in_order(np.zeros(n), k=k)
    if n < _COMPILED:
        return plain_mdav(z, k)
    from rankveil.kernels.mdav import mdav

    groups: Groups = mdav(z, k)
    return groups


def plain_mdav(z: Array, k: int) -> Groups:
    """MDAV by plain passes over all that remain: the reference of the compiled search, and fast enough when small."""
    n, m = z.shape
    groups = np.full(n, -1, dtype=np.int64)
    total, rest = np.zeros(m), np.zeros(m)
    for record in z:
        _add(total, rest, record)
    rows, number = np.arange(n), 0
    columns = [np.ascontiguousarray(z[:, j]) for j in range(m)]

    def distances(q: Array) -> Array:
        # attribute by attribute in order, as the compiled search does, so that both see the same ties
        found = np.zeros(rows.size)
        for j in range(m):
            found += (columns[j] - q[j]) ** 2
        return found

    def take(place: int) -> None:
        nonlocal rows, columns, number
        # stable, and rows are in order: equal distances go to the lower row
        near = np.argsort(distances(z[rows[place]]), kind="stable")[:k]
        for row in rows[near]:
            _add(total, rest, -z[row])
        groups[rows[near]] = number
        number += 1
        stay = np.ones(rows.size, dtype=bool)
        stay[near] = False
        rows, columns = rows[stay], [column[stay] for column in columns]

    while rows.size >= 2 * k:
        both = rows.size >= 3 * k
        first = int(np.argmax(distances((total + rest) / rows.size)))
        q = z[rows[first]]
        take(first)
        if not both:
            break
        take(int(np.argmax(distances(q))))
    groups[rows] = number
    return groups


def _add(total: Array, rest: Array, record: Array) -> None:
    """Add to running sums, what rounding loses kept in `rest` (Neumaier)."""
    fresh = total + record
    larger = np.abs(total) >= np.abs(record)
    rest += np.where(larger, (total - fresh) + record, (record - fresh) + total)
    total[:] = fresh


def groups_in_order(score: Array, *, k: int) -> Groups:
    """Groups of k records in the order of a score (ties by row); the last has k to 2k - 1."""
    n = score.size
    if k > n:
        raise ParameterError(f"k = {k} is larger than the number of records, {n}; choose a smaller k")
    groups = np.empty(n, dtype=np.int64)
    groups[np.argsort(score, kind="stable")] = np.minimum(np.arange(n) // k, n // k - 1)
    return groups


def group_means(x: Array, groups: Groups, missing: NDArray[np.bool_] | None = None) -> Array:
    """Every value replaced by the mean of its group's values, missing ones left out."""
    means = x.copy(order="F")
    for j in range(x.shape[1]):
        there = np.arange(x.shape[0]) if missing is None else np.flatnonzero(~missing[:, j])
        order = there[np.argsort(groups[there], kind="stable")]
        values, sizes = x[order, j], np.bincount(groups[there])
        sizes = sizes[sizes > 0]
        starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        # around the group's first value, so that a group of equal values keeps that value to the last digit
        first = values[starts]
        shift = np.add.reduceat(values - np.repeat(first, sizes), starts) / sizes
        means[order, j] = np.repeat(first + shift, sizes)
    return means
