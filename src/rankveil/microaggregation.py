"""Microaggregation: records in groups of at least k, and what a group has in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rankveil.categories import Categories
from rankveil.errors import ParameterError
from rankveil.moments import mean, scale_of, standard_deviation
from rankveil.rows import HERE, Rows

Array = NDArray[np.float64]
Groups = NDArray[np.int64]
Places = NDArray[np.intp]

_COMPILED = 10_000
"""From so many records on the compiled search is worth waiting for its compiler; below, numpy takes about a second."""
_WORK = 10 * _COMPILED**2
"""With many coordinates it is so already for fewer records: their square times the coordinates."""
_CELLS = 100_000_000
"""Coordinates of all records at most: 0.8 GB, of which the search needs about three times as much."""
_BLOCK = 4_000_000
"""Sums of distances that are held at a time."""


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
    return groups_of_points(standardised(x), k=k)


def groups_of_points(z: Array, *, k: int) -> Groups:
    """The groups of MDAV on points, their coordinates as they are."""
    n, m = z.shape
    if k > n:
        raise ParameterError(f"k = {k} is larger than the number of records, {n}; choose a smaller k")
    if m == 0:
        return groups_in_order(np.zeros(n), k=k)
    z = np.ascontiguousarray(z)
    if n < _COMPILED and n * n * m < _WORK:
        return plain_mdav(z, k)
    from rankveil.kernels.mdav import mdav

    groups: Groups = mdav(z, k)
    return groups


def embedded(
    x: Array,
    *,
    kinds: Sequence[str],
    categories: Sequence[Categories | None],
    names: Sequence[str] = (),
    rows: Rows | None = None,
) -> Array:
    """Records of columns of all kinds as points: each column that is not constant has a total variance of 1.

    Numbers and levels are standardised. A nominal column has the coordinates of its categories, whose distances are
    those of the hierarchy, or 1 for any two different ones. With `rows` the records may be a part of a table.
    """
    nominal = [j for j, known in enumerate(categories) if kinds[j] == "nominal" and known is not None]
    codes = {j: x[:, j].astype(np.intp) for j in nominal}
    everywhere = HERE if rows is None else rows
    counts = {j: everywhere.tally(code, len(categories[j] or ())) for j, code in codes.items()}
    there = {j: np.flatnonzero(count) for j, count in counts.items()}
    _refuse_many({names[j] if names else str(j + 1): found.size for j, found in there.items()}, records=len(x))
    parts = []
    for j, known in enumerate(categories):
        if known is None or j not in codes:
            parts.append(standardised(x[:, j : j + 1]) if rows is None else _standardised_in(rows, x[:, j]))
        elif there[j].size > 1:
            points = known.coordinates()
            points = points[:, np.ptp(points[there[j]], axis=0) > 0]
            parts.append(_unit(points, counts[j] / counts[j].sum())[codes[j]])
    return np.hstack(parts) if parts else np.zeros((len(x), 0))


def _standardised_in(rows: Rows, column: Array) -> Array:
    """A column standardised by the moments of all rows, as a table; one that is constant is left out."""
    z, _, spread = rows.standardised(column)
    return z[:, None] if spread > 0 else np.zeros((column.size, 0))


def _refuse_many(sizes: Mapping[str, int], *, records: int) -> None:
    if sum(sizes.values()) * records > _CELLS:
        name = max(sizes, key=lambda each: sizes[each])
        raise ParameterError(
            f"column {name} has {sizes[name]} categories, too many to group {records} records by; "
            "recode it to fewer, or leave it out"
        )


def _unit(points: Array, shares: Array) -> Array:
    """Points scaled so that the variances of their coordinates, counted by shares, add up to 1.

    They are not centred, which would change no distance and round equal ones apart.
    """
    around = points - np.einsum("c,cj->j", shares, points)
    unit: Array = points / np.sqrt(np.einsum("c,cj->", shares, around * around))
    return unit


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


def centroids(
    x: Array,
    groups: Groups,
    missing: NDArray[np.bool_],
    *,
    kinds: Sequence[str],
    categories: Sequence[Categories | None],
    nominal: str,
) -> Array:
    """Every value replaced by what stands for its group: mean, median or a category; missing ones are left out."""
    made = x.copy(order="F")
    for j, kind in enumerate(kinds):
        one = slice(j, j + 1)
        known = categories[j]
        if kind == "numeric":
            made[:, one] = group_means(x[:, one], groups, missing[:, one])
            continue
        there = np.flatnonzero(~missing[:, j])
        if there.size == 0:
            continue
        order = there[np.lexsort((x[there, j], groups[there]))]
        values, starts = x[order, j], np.flatnonzero(np.diff(groups[order], prepend=-1))
        sizes = np.diff(starts, append=order.size)
        if kind == "ordinal" or known is None:
            centre = values[starts + (sizes - 1) // 2]  # the lower median, which is a value of the column
        elif nominal == "marginality" and known.hierarchy is not None:
            centre = _most_central(values.astype(np.intp), starts, sizes, known)
        else:
            centre = _most_frequent(values.astype(np.intp), starts, sizes, known)
        made[order, j] = np.repeat(centre, sizes)
    return made


def _most_frequent(codes: Places, starts: Places, sizes: Places, known: Categories) -> Array:
    """The category that most values of each group have; of several the one most frequent in the column, then by label.

    `codes` are sorted within each group. Where two different categories are 1 apart it is the most central one, too.
    """
    group = np.repeat(np.arange(starts.size), sizes)
    first = np.flatnonzero((np.diff(codes, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0))
    count, group = np.diff(first, append=codes.size), group[first]
    order = np.lexsort((_preference(codes, known)[codes[first]], -count, group))
    _, lead = np.unique(group[order], return_index=True)
    return codes[first][order][lead].astype(np.float64)


def _most_central(codes: Places, starts: Places, sizes: Places, known: Categories) -> Array:
    """The category of the column with the smallest sum of distances to a group's values; ties as for the most frequent.

    Domingo-Ferrer, Sanchez and Rufian-Torrell 2013: the marginality-based centroid.
    """
    there = np.unique(codes)
    there = there[np.argsort(_preference(codes, known)[there])]  # the first of equally central ones is taken
    apart = known.distances[:, there]
    centre = np.empty(starts.size)
    step = max(1, _BLOCK // (there.size * int(sizes.max())))
    for begin in range(0, starts.size, step):
        some = starts[begin : begin + step]
        end = starts[begin + step] if begin + step < starts.size else codes.size
        total = np.add.reduceat(apart[codes[some[0] : end]], some - some[0], axis=0)
        # sums of logarithms: equal ones may differ in their last digits
        centre[begin : begin + step] = there[np.argmin(np.round(total, 9), axis=1)]
    return centre


def _preference(codes: Places, known: Categories) -> Places:
    """The place of each category in the order by which ties are settled: the most frequent first, then by label."""
    frequent = np.bincount(codes, minlength=len(known))
    place = np.empty(len(known), dtype=np.intp)
    place[sorted(range(len(known)), key=lambda code: (-frequent[code], known.labels[code]))] = np.arange(len(known))
    return place


def group_means(x: Array, groups: Groups, missing: NDArray[np.bool_] | None = None) -> Array:
    """Every value replaced by the mean of its group's values, missing ones left out."""
    means = x.copy(order="F")
    for j in range(x.shape[1]):
        there = np.arange(x.shape[0]) if missing is None else np.flatnonzero(~missing[:, j])
        if there.size == 0:
            continue
        order = there[np.argsort(groups[there], kind="stable")]
        values, sizes = x[order, j], np.bincount(groups[there])
        sizes = sizes[sizes > 0]
        starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        # around the group's first value, so that a group of equal values keeps that value to the last digit
        first = values[starts]
        shift = np.add.reduceat(values - np.repeat(first, sizes), starts) / sizes
        means[order, j] = np.repeat(first + shift, sizes)
    return means
