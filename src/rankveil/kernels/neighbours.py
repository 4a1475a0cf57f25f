"""Exact nearest records: all that share the smallest distance, by a wide tree of bounding boxes that does not change.

Leaves hold `LANES` records, inner nodes `LANES` children, and one pass over single precision numbers bounds all of a
node. Single precision only *prunes*, with a slack that covers its rounding; every distance that decides is computed in
double precision from the records themselves, attribute by attribute in order, so that the answers are those of a plain
loop, to the last bit. Euclidean distances are compared as squares.

What is seen in single precision, records and queries alike, is z = (x - centre) scale, where `scale` is a power of two.
Rounding moves a record by less than 2^-23 |z|, and a record within d of a query q has |z| <= |z_q| + d: so the slack
depends on the query, and a far-off record elsewhere does no harm.

Numbering: nodes below the number of leaves are leaves; node leaves + g is group g, whose children are the `LANES` nodes
from below[g] on. The last group is the root. Empty places lie at infinity.
"""

# numba finds the types itself
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: check-untyped-defs=False

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from rankveil.kernels.compiler import numba
from rankveil.kernels.lanes import (
    LANES,
    lanes_within,
    lowest_lane,
    maxima_to_boxes,
    maxima_to_records,
    squares_to_boxes,
    squares_to_records,
)

_SAMPLED = 1000
"""Records from which the centre is taken."""
_FAR = 2.0**50
"""Queries are seen no farther off than this, so that squares stay finite; theirs is the slack that prunes nothing."""

_LARGEST = float(np.finfo(np.float32).max)
_WAITING = 512
"""How many nodes may wait in a search: the tree has fewer than 16 levels."""

_njit = numba.njit(cache=True, nogil=True, error_model="numpy")

Tree = namedtuple("Tree", "x rows points boxes below centre scale euclidean")
"""The arrays of a tree. `x` holds the records in the order of the leaves; a record is known by its place there, and
rows[place] is its row in the table."""


def build(x, *, euclidean):
    """A tree over the records x."""
    n, m = x.shape
    # single precision is finest at the centre, which should lie among the many, whatever a few far ones do
    centre = np.median(x[:: -(-n // _SAMPLED)], axis=0)
    exponent = math.frexp(float(np.abs(x - centre).max()))[1]
    scale = math.ldexp(1.0, -min(max(exponent, -1000), 1000))
    z, rows = _seen(x, centre, scale), np.arange(n)
    _arrange(z, rows)
    leaves = -(-n // LANES)
    points = _infinite(leaves, m, LANES)
    below = _number(leaves)
    boxes = _infinite(below.size, m, 2, LANES)
    boxes[:, :, 1] *= -1
    _fill(z, rows, below, points, boxes)
    return Tree(x[rows], rows, points, boxes, below, centre, scale, euclidean)


def seen(tree, queries):
    """Queries as they are seen in single precision."""
    return _seen(queries, tree.centre, tree.scale)


def _seen(x, centre, scale):
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(np.clip((x - centre) * scale, -_FAR, _FAR), dtype=np.float32)


def _infinite(*shape):
    """An array of infinities that begins at a cache line: reading a vector then touches no more lines than needed."""
    line, size = 64, math.prod(shape)
    room = np.full(size + line, np.inf, np.float32)
    start = -room.ctypes.data % line // room.itemsize
    return room[start : start + size].reshape(shape)


def _number(leaves):
    """The first child of every group, level by level."""
    below, first, size = [], 0, leaves
    while size > 1 or not below:
        start = leaves + len(below)
        below += range(first, first + size, LANES)
        first, size = start, leaves + len(below) - start
    return np.array(below)


@_njit
def _arrange(z, rows):
    """Put records that are close together side by side: cut in two along the attribute that varies most, and again.

    Cuts lie at whole leaves, groups, groups of groups, so that all but the last are full.
    """
    n = rows.size
    firsts, sizes = np.zeros(128, np.int64), np.zeros(128, np.int64)
    sizes[0] = (n + LANES - 1) // LANES
    depth = 1
    while depth > 0:
        depth -= 1
        first, size = firsts[depth], sizes[depth]
        if size < 2:
            continue
        unit = 1
        while unit * LANES < size:
            unit *= LANES
        left = (size + unit - 1) // unit // 2 * unit
        start, end = first * LANES, min((first + size) * LANES, n)
        _select(z, rows, start, end, _widest(z, rows, start, end), (first + left) * LANES)
        sizes[depth] = left
        firsts[depth + 1] = first + left
        sizes[depth + 1] = size - left
        depth += 2


@_njit
def _widest(z, rows, start, end):
    """The attribute with the largest variance among (at most 256 of) the records."""
    step = max(1, (end - start) // 256)
    widest, most = 0, -1.0
    for j in range(z.shape[1]):
        total, square, number = 0.0, 0.0, 0
        for i in range(start, end, step):
            value = float(z[rows[i], j])
            total += value
            square += value * value
            number += 1
        variance = square / number - (total / number) ** 2
        if variance > most:
            widest, most = j, variance
    return widest


@_njit
def _select(z, rows, start, end, j, middle):
    """Reorder rows[start:end] so that those before `middle` are not above those from it on, in attribute j."""
    low, high = start, end - 1
    while low < high:
        pivot = z[rows[(low + high) // 2], j]
        a, b = low, high
        while a <= b:
            while z[rows[a], j] < pivot:
                a += 1
            while z[rows[b], j] > pivot:
                b -= 1
            if a <= b:
                rows[a], rows[b] = rows[b], rows[a]
                a += 1
                b -= 1
        if middle <= b:
            high = b
        elif middle >= a:
            low = a
        else:
            return


@_njit
def _fill(z, rows, below, points, boxes):
    """The records of the leaves, the boxes of the leaves, and those of all other nodes from their children's."""
    leaves, groups, m = points.shape[0], below.size, z.shape[1]
    for i in range(rows.size):
        leaf = i // LANES
        group, lane = leaf // LANES, leaf % LANES
        for j in range(m):
            value = z[rows[i], j]
            points[leaf, j, i % LANES] = value
            boxes[group, j, 0, lane] = min(boxes[group, j, 0, lane], value)
            boxes[group, j, 1, lane] = max(boxes[group, j, 1, lane], value)
    for group in range(groups):
        last = leaves + groups - 1 if group == groups - 1 else below[group + 1]
        for node in range(max(below[group], leaves), last):
            child, lane = node - leaves, node - below[group]
            for j in range(m):
                for t in range(LANES):
                    boxes[group, j, 0, lane] = min(boxes[group, j, 0, lane], boxes[child, j, 0, t])
                    boxes[group, j, 1, lane] = max(boxes[group, j, 1, lane], boxes[child, j, 1, t])


@_njit
def homes(tree, z):
    """For every query, seen as z, the leaf in whose box it lies, or nearly: in that order queries share memory."""
    found = np.empty(LANES, np.float32)
    home, leaves = np.empty(z.shape[0], np.int64), tree.points.shape[0]
    for i in range(z.shape[0]):
        node = leaves + tree.below.size - 1
        while node >= leaves:
            group = node - leaves
            least = _to_boxes(tree, group, z[i], found)
            node = tree.below[group] + lowest_lane(lanes_within(found, least))
        home[i] = node
    return home


@_njit
def nearest(tree, queries, z, which, home, upto, least, number, groups):
    """Search for the queries `which`, seen as z, in turn: the smallest distance, and the rows of all records at it.

    least[i] and number[i] are those of query which[i] (Euclidean: squares); its rows follow in `groups`, unless that is
    empty: then nobody wants them. `upto` are distances within which a record is known to lie. The number of queries
    answered, which is less than all when `groups` might not hold the rows of one more.
    """
    found = np.empty(LANES, np.float32)
    nodes, bounds = np.empty(_WAITING, np.int64), np.empty(_WAITING, np.float32)
    n, used, last = tree.rows.size, 0, 0
    nobody = groups.size == 0
    spare = np.empty(n if nobody else 0, np.int64)
    for i in range(which.size):
        if not nobody and used + n > groups.size:
            return i
        query = which[i]
        q, seen_at = queries[query], z[query]
        error = _error(tree, seen_at)
        known = min(_distance(tree, last, q), _decisive(tree, upto[query]))
        ties = spare if nobody else groups[used:]
        for _ in range(2):
            least[i], number[i] = _search(tree, q, seen_at, home[query], error, known, found, nodes, bounds, ties)
            if number[i] > 0:
                last = ties[0]
                break
            known = _distance(tree, last, q)  # no record lies as near as was said: search again
        for t in range(number[i]):
            ties[t] = tree.rows[ties[t]]
        used += 0 if nobody else number[i]
    return which.size


@_njit
def _search(tree, q, z, home, error, known, found, nodes, bounds, ties):
    """The smallest distance from q, and how many records share it; their places stand in `ties`."""
    limit = _limit(tree, known, error)
    leaves = tree.points.shape[0]
    nodes[0], bounds[0] = leaves + tree.below.size - 1, 0.0
    nodes[1], bounds[1] = home, 0.0
    least, number, depth, at_home = np.inf, 0, 2, True
    while depth > 0:
        depth -= 1
        node = nodes[depth]
        if bounds[depth] > limit or (node == home and not at_home):
            continue
        if node >= leaves:
            group = node - leaves
            if _to_boxes(tree, group, z, found) <= limit:
                depth = _push(tree.below[group], found, limit, depth, nodes, bounds)
            continue
        at_home = False
        nearby = _to_records(tree, node, z, found)
        if nearby > limit:
            continue
        seen_there = _wider(tree, float(nearby), error) / tree.scale
        if tree.euclidean:
            seen_there /= tree.scale
        limit = min(limit, _limit(tree, seen_there, error))
        lanes = lanes_within(found, limit)
        while lanes != 0:
            place = node * LANES + lowest_lane(lanes)
            lanes &= lanes - 1
            d = _distance(tree, place, q)
            if d < least:
                least, number = d, 0
            if d == least:
                ties[number] = place
                number += 1
        limit = min(limit, _limit(tree, least, error))
    return least, number


@_njit
def _push(first, found, limit, depth, nodes, bounds):
    """Children that may hold a record as near, the nearest on top; to sort the others costs more than it spares."""
    top, lanes = depth, lanes_within(found, limit)
    while lanes != 0:
        lane = lowest_lane(lanes)
        lanes &= lanes - 1
        place = depth
        if depth > top and bounds[depth - 1] < found[lane]:
            nodes[depth], bounds[depth] = nodes[depth - 1], bounds[depth - 1]
            place -= 1
        nodes[place], bounds[place] = first + lane, found[lane]
        depth += 1
    return depth


@_njit
def _to_boxes(tree, group, z, found):
    if tree.euclidean:
        return squares_to_boxes(tree.boxes, group, z, found)
    return maxima_to_boxes(tree.boxes, group, z, found)


@_njit
def _to_records(tree, leaf, z, found):
    if tree.euclidean:
        return squares_to_records(tree.points, leaf, z, found)
    return maxima_to_records(tree.points, leaf, z, found)


@_njit
def _distance(tree, place, q):
    """The distance that decides: double precision, attribute by attribute in order; Euclidean: its square."""
    total = 0.0
    if tree.euclidean:
        for j in range(q.size):
            u = tree.x[place, j] - q[j]
            total += u * u
    else:
        for j in range(q.size):
            total = max(total, abs(tree.x[place, j] - q[j]))
    return total


@_njit
def _decisive(tree, upto):
    """A known distance as one that decides; it may have been summed in another order."""
    upto *= 1.0 + 1e-9
    return upto * upto if tree.euclidean else upto


@_njit
def _error(tree, z):
    """How much nearer or farther than it is a record close to the query may be seen, apart from a share of it."""
    size, lost = 0.0, 2.0**-60  # squares of less vanish in single precision
    for j in range(z.size):
        value = abs(float(z[j]))
        size = size + value * value if tree.euclidean else max(size, value)
    if tree.euclidean:
        size = np.sqrt(size)
        lost += tree.scale * 2.0**-530  # and squares of less in double precision, where they decide
    return size * 2.0**-22 + lost if size < _FAR else np.inf


@_njit
def _limit(tree, known, error):
    """What a record at a distance may be seen at, at most."""
    known *= tree.scale
    if tree.euclidean:
        known *= tree.scale
    return np.float32(min(_wider(tree, known, error), _LARGEST))


@_njit
def _wider(tree, apart, error):
    """The same distance, with the slack for what single precision loses."""
    relative = 1.0 + (tree.x.shape[1] + 8) * 2.0**-22
    if tree.euclidean:
        root = (np.sqrt(apart) + error) * relative
        return root * root * relative
    return (apart + error) * relative


@_njit
def lowest(rows, starts, number, groups, shown, found):
    """The lowest shown[i] rows of the number[i] groups of each query, in order, one query after the other in `found`.

    rows[starts[g] : starts[g + 1]] are those of group g, in order.
    """
    first, start = 0, 0
    for i in range(number.size):
        heap, size = found[start : start + shown[i]], 0
        for group in groups[first : first + number[i]]:
            for row in rows[starts[group] : starts[group + 1]]:
                if size < heap.size:
                    heap[size] = row
                    size += 1
                    if size == heap.size and number[i] > 1:
                        for root in range(size // 2 - 1, -1, -1):
                            _sift(heap, root, size)
                elif row < heap[0] and number[i] > 1:
                    heap[0] = row
                    _sift(heap, 0, size)
                else:
                    break
        if number[i] > 1:
            for end in range(size - 1, 0, -1):
                heap[0], heap[end] = heap[end], heap[0]
                _sift(heap, 0, end)
        first += number[i]
        start += shown[i]


@_njit
def _sift(heap, root, end):
    """Restore a heap whose top is the largest."""
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and heap[child + 1] > heap[child]:
            child += 1
        if heap[root] >= heap[child]:
            return
        heap[root], heap[child] = heap[child], heap[root]
        root = child
