"""The groups of MDAV, exactly those of the plain algorithm, near-linear in practice."""

from __future__ import annotations

import numpy as np

from rankveil.kernels.boxes import FAN, LEAF, PART, build, remove, select
from rankveil.kernels.boxsearch import STACK, distance, farthest, nearest
from rankveil.kernels.compiler import numba

_part = numba.njit(**PART)

_SMALL = 1_000
"""With fewer records left than this the tree is not built again."""
_SHARE = 20
"""One record in so many stands in the list of those far from the centre."""
_TRIED = 128
"""So many of that list are tried as a first guess at the farthest record."""


@numba.njit(cache=True, nogil=True, error_model="numpy")
def mdav(x, k):
    """The group of every record: MDAV on the columns of x as they are; see `rankveil.microaggregation`."""
    n, m = x.shape
    group = np.full(n, -1, np.int64)
    total, rest = np.zeros(m), np.zeros(m)
    for i in range(n):
        _add(total, rest, x, i, 1.0)
    home, place = np.empty(n, np.int64), np.empty(n, np.int64)
    centre, q = np.empty(m), np.empty(m)
    best, chosen = np.empty(k), np.zeros(k, np.int64)
    nodes, bounds = np.empty(STACK, np.int64), np.empty(STACK, np.float32)
    found, dots = np.empty(max(FAN, LEAF), np.float32), np.empty(FAN, np.float32)
    live, number = n, 0
    rows = np.arange(n)
    while live >= 3 * k:
        tree = build(x, rows)
        for leaf in range(tree.points.shape[0]):
            for t in range(tree.count[leaf]):
                home[tree.places[leaf, t]] = leaf
        for i in range(live):
            place[rows[i]] = i
        until = max(live // 2, 3 * k) if live > _SMALL else 3 * k
        seen, first = np.zeros(m), 0
        listed, far, reach, beyond = rows[:0], tree.x[:0], np.empty(0), np.inf
        while live >= until:
            for j in range(m):
                centre[j] = (total[j] + rest[j]) / live
            while first < listed.size and group[listed[first]] >= 0:
                first += 1
            row = _farthest_listed(centre, seen, listed, far, reach, first, beyond, group)
            if row < 0:
                seen[:] = centre
                listed, far, reach, beyond = _list_far(tree, centre, live)
                first = 0
                row = _farthest_listed(centre, seen, listed, far, reach, first, beyond, group)
            if row < 0:  # others are as far as those listed, to the last digits: only all of them can tell
                row = _farthest_of_all(tree, centre, group)
            for turn in range(2):
                q[:] = x[row]
                nearest(tree, q, home[place[row]], best, chosen, nodes, bounds, found)
                remove(tree, home, chosen)
                for z in range(k):
                    group[rows[chosen[z]]] = number
                    _add(total, rest, tree.x, chosen[z], -1.0)
                live -= k
                number += 1
                if turn == 0:
                    most, guess = _guess(q, listed, far, first, group)
                    row = farthest(tree, q, most, guess, nodes, bounds, found, dots)
        rows = np.flatnonzero(group < 0)
    return _finish(x, k, group, number, rows, total, rest)


@_part
def _add(total, rest, x, row, sign):
    """Add a record to the running sums, what rounding loses kept in `rest` (Neumaier)."""
    for j in range(x.shape[1]):
        value = sign * x[row, j]
        fresh = total[j] + value
        if abs(total[j]) >= abs(value):
            rest[j] += (total[j] - fresh) + value
        else:
            rest[j] += (value - fresh) + total[j]
        total[j] = fresh


@_part
def _list_far(tree, centre, live):
    """The records farthest from the centre, the farthest first: rows, values, distances; and how far all others are."""
    away, places, number = np.empty(live), np.empty(live, np.int64), 0
    for leaf in range(tree.points.shape[0]):
        for t in range(tree.count[leaf]):
            places[number] = tree.places[leaf, t]
            away[number] = distance(tree.x, places[number], centre)
            number += 1
    order = np.arange(live)
    wanted = max(64, live // _SHARE)
    beyond = -1.0
    if wanted < live:
        select(away.astype(np.float32), order, 0, live, live - wanted)
        for i in range(live - wanted):
            beyond = max(beyond, away[order[i]])
        beyond = np.sqrt(beyond)
        order = order[live - wanted :]
    _sort_down(away, order)
    return tree.rows[places[order]], tree.x[places[order]], np.sqrt(away[order]), beyond


@_part
def _sort_down(away, order):
    """Heapsort of `order` by falling distance (numba's own sorts take longer to compile than all else here)."""
    n = order.size
    for start in range(n // 2 - 1, -1, -1):
        _sift(away, order, start, n)
    for end in range(n - 1, 0, -1):
        order[0], order[end] = order[end], order[0]
        _sift(away, order, 0, end)


@_part
def _sift(away, order, root, end):
    """Restore the heap whose top is the smallest."""
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and away[order[child + 1]] < away[order[child]]:
            child += 1
        if away[order[root]] <= away[order[child]]:
            return
        order[root], order[child] = order[child], order[root]
        root = child


@_part
def _farthest_listed(centre, seen, listed, far, reach, first, beyond, group):
    """The row of the record farthest from the centre, or -1 when the list cannot tell.

    The list was made for the centre `seen`: |x - centre| <= |x - seen| + |seen - centre|.
    """
    if listed.size == 0:
        return -1
    moved = 0.0
    for j in range(centre.size):
        moved += (centre[j] - seen[j]) ** 2
    moved = np.sqrt(moved)
    row, most, i = -1, -1.0, first
    while True:
        if i >= listed.size and beyond < 0.0:
            return row
        bound = reach[i] if i < listed.size else beyond
        if row >= 0 and ((bound + moved) * (1.0 + 1e-12)) ** 2 < most:
            return row
        if i >= listed.size:
            return -1
        if group[listed[i]] < 0:
            d = distance(far, i, centre)
            if d > most or (d == most and listed[i] < row):
                row, most = listed[i], d
        i += 1


@_part
def _farthest_of_all(tree, centre, group):
    """The row of the record farthest from the centre, by looking at all that remain."""
    row, most = -1, -1.0
    for i in range(tree.rows.size):
        if group[tree.rows[i]] < 0:
            d = distance(tree.x, i, centre)
            if d > most or (d == most and tree.rows[i] < row):
                row, most = tree.rows[i], d
    return row


@_part
def _guess(q, listed, far, first, group):
    """A record far from q among those far from the centre: its squared distance and row (-1 when there is none)."""
    row, most, tried, i = -1, -1.0, 0, first
    while i < listed.size and tried < _TRIED:
        if group[listed[i]] < 0:
            tried += 1
            d = distance(far, i, q)
            if d > most or (d == most and listed[i] < row):
                row, most = listed[i], d
        i += 1
    return most, row


@_part
def _finish(x, k, group, number, rows, total, rest):
    """Fewer than 3k records are left: one more group when there are 2k, and the rest."""
    if rows.size >= 2 * k:
        centre = (total + rest) / rows.size
        row, most = -1, -1.0
        for other in rows:
            d = distance(x, other, centre)
            if d > most or (d == most and other < row):
                row, most = other, d
        q = x[row].copy()
        for _ in range(k):  # the nearest that is left, k times: rows are in order, so equal distances go to the lower
            row, least = -1, np.inf
            for other in rows:
                if group[other] < 0:
                    d = distance(x, other, q)
                    if d < least:
                        row, least = other, d
            group[row] = number
        number += 1
    for row in rows:
        if group[row] < 0:
            group[row] = number
    return group
