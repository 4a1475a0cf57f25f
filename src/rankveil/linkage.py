"""Exact nearest records in rank space, all of them when several are equally near; never an n-by-n matrix.

Two engines give the same answers. A k-d tree is ready at once and serves small tables; large ones go to compiled
searches in a tree of boxes (`kernels.neighbours`), several times as fast. In both, the distance that decides is
computed in double precision, attribute by attribute in order, and Euclidean distances are compared as squares: whether
records are equally near does not depend on the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from threading import Lock
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import ParameterError
from rankveil.execute import in_threads

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Metric = Literal["maximum", "euclidean"]

LISTED = 100
"""How many of a record's equally near matches are listed; all are counted."""

_LARGE = 10_000
_PAIRS = 100_000_000
"""With so many records, and so many pairs of a query and a record, a search is worth loading compiled code for."""

_AT_ONCE = 4_000_000
"""How many matches a thread holds in memory at a time, or those of one query."""

_ASKED_AT_ONCE = 4096
"""Queries that a thread answers before it can be stopped."""

_ROUNDING = 1e-9
"""Distances that differ by a smaller share may be equal, or the other way round, when summed in another order."""


@dataclass(frozen=True, eq=False)
class Matches:
    """For every query the records at the smallest distance."""

    distance: Array
    count: NDArray[np.int64]
    """How many records are that near."""
    starts: Rows
    rows: Rows
    """rows[starts[i] : starts[i + 1]] are query i's records from 0, the lowest first, `LISTED` at most unless all were
    asked for."""
    wanted_by: NDArray[np.int64]
    """For every record, how many queries it is a match of."""

    @cached_property
    def listed(self) -> list[Rows]:
        """The listed records of every query."""
        return np.split(self.rows, self.starts[1:-1])

    @property
    def first(self) -> Rows:
        """The lowest of every query's records."""
        return self.rows[self.starts[:-1]]


class Linker:
    """Records (as vectors of ranks, or of other numbers) prepared for questions.

    The distance is the largest difference over attributes (`maximum`) or the Euclidean one.

    >>> linker = Linker(np.array([[1.0, 1.0], [4.0, 5.0], [1.0, 1.0]]), metric="euclidean")
    >>> linker.distances(np.array([[1.0, 1.0], [7.0, 1.0]]))
    array([0., 5.])
    >>> linker.matches(np.array([[1.0, 2.0]])).rows
    array([0, 2])
    """

    def __init__(self, points: Array, *, metric: Metric = "maximum") -> None:
        if metric not in ("maximum", "euclidean"):
            raise ParameterError(f"metric must be maximum or euclidean, not {metric!r}")
        self.size = points.shape[0]
        self._euclidean = metric == "euclidean"
        self._points, self._rows, self._starts = _grouped(points)
        self._sizes = np.diff(self._starts)

    def distances(self, queries: Array, *, upto: Array | None = None) -> Array:
        """The distance from each query to its nearest record.

        `upto`: for each query a distance within which a record is known to lie, such as that to its own masked record;
        it shortens the search and changes no answer.
        """
        distance = np.empty(len(queries))

        def take(which: Rows, least: Array, _number: Rows, _groups: Rows) -> None:
            distance[which] = least

        self._ask(queries, upto, take=take, ties=False)
        return self._as_distance(distance)

    def matches(self, queries: Array, *, most: int | None = LISTED, upto: Array | None = None) -> Matches:
        """All records at the smallest distance from each query; for `upto` see `distances`."""
        distance, count = np.empty(len(queries)), np.empty(len(queries), dtype=np.int64)
        shown = np.empty(len(queries), dtype=np.intp)
        groups_wanted = np.zeros(self._sizes.size, dtype=np.int64)
        parts: list[tuple[Rows, Rows]] = []
        one_at_a_time = Lock()

        def take(which: Rows, least: Array, number: Rows, groups: Rows) -> None:
            distance[which] = least
            count[which] = np.add.reduceat(self._sizes[groups], _begins(number))
            shown[which] = count[which] if most is None else np.minimum(count[which], most)
            parts.append((which, self._lowest(number, groups, shown[which])))
            with one_at_a_time:  # counted by group: with heavy ties the records of the groups are very many more
                np.add.at(groups_wanted, groups, 1)

        self._ask(queries, upto, take=take, ties=True)
        wanted = np.empty(self.size, dtype=np.int64)
        wanted[self._rows] = np.repeat(groups_wanted, self._sizes)
        starts = np.concatenate(([0], np.cumsum(shown))).astype(np.intp)
        rows = np.empty(starts[-1], dtype=np.intp)
        for which, some_rows in parts:
            rows[np.repeat(starts[which], shown[which]) + _ahead(shown[which])] = some_rows
        return Matches(self._as_distance(distance), count, starts, rows, wanted)

    def best(self, queries: Array, *, upto: Array | None = None) -> Rows:
        """For each query one record at the smallest distance: the smallest sum of differences, then the lowest row."""
        chosen = np.empty(len(queries), dtype=np.intp)

        def take(which: Rows, _least: Array, number: Rows, groups: Rows) -> None:
            sums = _distances(self._points, groups, queries, np.repeat(which, number), gather=np.add)
            smallest = np.repeat(np.minimum.reduceat(sums, _begins(number)), number)
            lowest = np.where(sums == smallest, self._rows[self._starts[groups]], self.size)
            chosen[which] = np.minimum.reduceat(lowest, _begins(number))

        self._ask(queries, upto, take=take, ties=True)
        return chosen

    def _ask(self, queries: Array, upto: Array | None, *, take: _Take, ties: bool) -> None:
        if len(queries) == 0:
            return
        large = self.size >= _LARGE and self.size * len(queries) >= _PAIRS
        engine: _Engine = self._boxes if large or "_boxes" in vars(self) else self._tree
        engine.ask(queries, upto, take=take, ties=ties)

    @cached_property
    def _tree(self) -> _KdTree:
        return _KdTree(self._points, euclidean=self._euclidean)

    @cached_property
    def _boxes(self) -> _Boxes:
        return _Boxes(self._points, euclidean=self._euclidean)

    def _as_distance(self, least: Array) -> Array:
        return np.sqrt(least) if self._euclidean else least

    def _lowest(self, number: Rows, groups: Rows, shown: Rows) -> Rows:
        """The lowest records of each query's groups, so many as are shown; those of a group are in order."""
        if "_boxes" in vars(self):
            return self._boxes.lowest(self._rows, self._starts, number, groups, shown)
        found = []
        for some, of_some in _pieces(number, np.add.reduceat(self._sizes[groups], _begins(number))):
            sizes = self._sizes[groups[of_some]]
            held = np.add.reduceat(sizes, _begins(number[some]))
            rows = self._rows[np.repeat(self._starts[groups[of_some]], sizes) + _ahead(sizes)]
            before = np.repeat(np.arange(held.size) * self.size, held)  # one query's records before the next one's
            rows = np.sort(before + rows) - before
            found.append(rows[_ahead(held) < np.repeat(shown[some], held)])
        return np.concatenate(found)


_Take = Callable[[Rows, Array, Rows, Rows], None]
"""What is done with answers: numbers of queries; their smallest distances (Euclidean: squares); how many groups are
that near; these groups, one query after the other. Called from several threads; what it keeps it copies."""


class _Engine(Protocol):
    def ask(self, queries: Array, upto: Array | None, *, take: _Take, ties: bool) -> None:
        """Search for all queries; without `ties` nobody looks at the groups."""


class _Boxes:
    """The compiled search."""

    def __init__(self, points: Array, *, euclidean: bool) -> None:
        from rankveil.kernels import neighbours

        self._kernels: Any = neighbours
        self._tree = self._kernels.build(points, euclidean=euclidean)

    def ask(self, queries: Array, upto: Array | None, *, take: _Take, ties: bool) -> None:
        kernels, tree = self._kernels, self._tree
        bound = np.full(len(queries), np.inf) if upto is None else _plain(upto)
        queries = _plain(queries)
        size = queries.size
        views = in_threads(lambda part: kernels.seen(tree, queries[part]), _parts(len(queries)), size=size)
        home = np.concatenate(in_threads(lambda view: kernels.homes(tree, view), views, size=size))
        z = np.concatenate(views)
        order = np.argsort(home, kind="stable")
        records = tree.rows.size
        room = records + min(_AT_ONCE, _ASKED_AT_ONCE * records) if ties else 0

        def answer(part: slice) -> None:
            rest, groups = order[part], np.empty(room, dtype=np.int64)
            while rest.size:
                least, number = np.empty(rest.size), np.empty(rest.size, dtype=np.int64)
                done = kernels.nearest(tree, queries, z, rest, home, bound, least, number, groups)
                take(rest[:done], least[:done], number[:done], groups[: number[:done].sum() if ties else 0])
                rest = rest[done:]

        in_threads(answer, _parts(len(queries)), size=size)

    def lowest(self, rows: Rows, starts: Rows, number: Rows, groups: Rows, shown: Rows) -> Rows:
        """The lowest records of each query's groups, so many as are shown."""
        found = np.empty(shown.sum(), dtype=np.intp)
        self._kernels.lowest(rows, starts, number, groups, shown, found)
        return found


class _KdTree:
    """The search of scipy, with what it finds decided as in the compiled one."""

    def __init__(self, points: Array, *, euclidean: bool) -> None:
        from scipy.spatial import cKDTree

        self._points = points
        self._tree = cKDTree(points, balanced_tree=False, compact_nodes=True)
        self._p = 2.0 if euclidean else np.inf
        self._gather = _add_square if euclidean else np.maximum

    # The tree could use several threads by itself, but when Ctrl-C stops it they go on writing into freed memory.
    def ask(self, queries: Array, upto: Array | None, *, take: _Take, ties: bool) -> None:
        k = range(1, min(2, len(self._points)) + 1)

        def answer(part: slice) -> None:
            which = np.arange(len(queries))[part]
            near, found = self._tree.query(queries[part], k=k, p=self._p)
            radius = np.nextafter(near[:, 0] * (1.0 + _ROUNDING), np.inf)
            several = near[:, -1] <= radius if len(k) == 2 else np.zeros(which.size, dtype=bool)
            if not ties and self._p == np.inf:  # no sums: nothing was rounded
                several[:] = False
            lone = which[~several]
            groups = found[~several, 0]
            if lone.size:
                take(lone, self._exact(groups, queries, lone), np.ones(lone.size, dtype=np.intp), groups)
            if several.any():
                self._decide(queries, which[several], radius[several], take)

        in_threads(answer, _parts(len(queries)), size=queries.size)

    def _decide(self, queries: Array, which: Rows, radius: Array, take: _Take) -> None:
        """Of the groups within a radius of each query those at the smallest distance."""
        some = queries[which]
        number = self._tree.query_ball_point(some, radius, p=self._p, return_length=True)
        for piece, _ in _pieces(number, number):
            lists = self._tree.query_ball_point(some[piece], radius[piece], p=self._p)
            groups = np.fromiter(chain.from_iterable(lists), dtype=np.intp, count=number[piece].sum())
            apart = self._exact(groups, queries, np.repeat(which[piece], number[piece]))
            least = np.minimum.reduceat(apart, _begins(number[piece]))
            nearest = apart == np.repeat(least, number[piece])
            take(which[piece], least, np.add.reduceat(nearest, _begins(number[piece]), dtype=np.intp), groups[nearest])

    def _exact(self, groups: Rows, queries: Array, which: Rows) -> Array:
        return _distances(self._points, groups, queries, which, gather=self._gather)


def _plain(values: Array) -> Array:
    """Values in the one layout that searches are compiled for."""
    return np.require(values, np.float64, ["C", "W"])


def _distances(
    points: Array, groups: Rows, queries: Array, which: Rows, *, gather: Callable[[Array, Array], Array]
) -> Array:
    """From points[groups] to queries[which], attribute by attribute in order, as the compiled search does."""
    total = np.zeros(groups.size)
    for j in range(points.shape[1]):
        total = gather(total, np.abs(points[groups, j] - queries[which, j]))
    return total


def _add_square(total: Array, apart: Array) -> Array:
    return total + apart * apart


def _begins(number: Rows) -> Rows:
    """Where each query's groups begin."""
    return np.cumsum(number) - number


def _ahead(sizes: Rows) -> Rows:
    """0, 1, ... up to each size, one after the other."""
    return np.arange(sizes.sum()) - np.repeat(_begins(sizes), sizes)


def _pieces(number: Rows, held: Rows) -> list[tuple[slice, slice]]:
    """Queries in pieces that hold at most `_AT_ONCE` or are one query: which queries, and which of their groups."""
    piece = np.cumsum(held) // _AT_ONCE
    cuts = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(number)]
    ends = np.concatenate(([0], np.cumsum(number)))
    return [(slice(a, b), slice(ends[a], ends[b])) for a, b in pairwise(cuts)]


def _parts(size: int) -> list[slice]:
    """So many queries in parts."""
    return [slice(start, start + _ASKED_AT_ONCE) for start in range(0, size, _ASKED_AT_ONCE)]


def _grouped(points: Array) -> tuple[Array, Rows, Rows]:
    """Different records once, and the rows that share each: heavy ties would make a search tree of copies."""
    n = points.shape[0]
    for j in range(points.shape[1]):
        ordered = np.sort(points[:, j])
        if (ordered[1:] != ordered[:-1]).all():  # a column without ties: all records differ
            return np.ascontiguousarray(points, dtype=np.float64), np.arange(n), np.arange(n + 1)
    rows = np.lexsort(points.T)
    ordered = np.ascontiguousarray(points[rows], dtype=np.float64)
    first = np.concatenate(([True], (ordered[1:] != ordered[:-1]).any(axis=1)))
    return ordered[first], rows, np.append(np.flatnonzero(first), n)
