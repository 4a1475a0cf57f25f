"""Exact nearest records in rank space, all of them when several are equally near; never an n-by-n matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.execute import in_threads

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

LISTED = 100
"""How many of a record's equally near matches are listed; all are counted."""

_AT_ONCE = 4_000_000
"""How many matches are held in memory at a time."""

_ASKED_AT_ONCE = 4096
"""Queries that a thread answers before it can be stopped."""


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
    """Records (as vectors of ranks) prepared for questions; the distance is the largest difference over attributes."""

    def __init__(self, points: Array) -> None:
        from scipy.spatial import cKDTree

        self.size = points.shape[0]
        self._points, self._rows, self._starts = _grouped(points)
        self._tree = cKDTree(self._points, balanced_tree=False, compact_nodes=True)

    def distances(self, queries: Array) -> Array:
        """The distance from each query to its nearest record."""
        near, _ = self._nearest(queries, k=1)
        return near[:, 0]

    def matches(self, queries: Array, *, most: int | None = LISTED) -> Matches:
        """All records at the smallest distance from each query."""
        k = min(2, self._points.shape[0])
        near, which = self._nearest(queries, k=k)
        distance = near[:, 0]
        group = which[:, 0]
        sizes = np.diff(self._starts)
        count = sizes[group].astype(np.int64)
        tied = near[:, -1] == distance if k == 2 else np.zeros(distance.size, dtype=bool)
        shown = count if most is None else np.minimum(count, most)
        shown = np.where(tied, 0, shown)
        # counted by group: with heavy ties the records of the groups are very many more
        groups_wanted = np.bincount(group[~tied], minlength=self._points.shape[0])
        several: dict[int, Rows] = {}
        for query, groups in self._groups_within(queries, distance, np.flatnonzero(tied)):
            groups_wanted[groups] += 1
            count[query] = sizes[groups].sum()
            several[query] = self._lowest(groups, most)
            shown[query] = several[query].size
        wanted = np.empty(self.size, dtype=np.int64)
        wanted[self._rows] = np.repeat(groups_wanted, sizes)
        starts = np.concatenate(([0], np.cumsum(shown))).astype(np.intp)
        # the members of a lone group lie side by side; those of several groups were put together above
        ahead = np.arange(starts[-1]) - np.repeat(starts[:-1], shown)
        rows = self._rows[(np.repeat(self._starts[group], shown) + ahead).clip(max=self.size - 1)]
        for query, found in several.items():
            rows[starts[query] : starts[query + 1]] = found
        return Matches(distance, count, starts, rows, wanted)

    def best(self, queries: Array) -> Rows:
        """For each query one record at the smallest distance: the smallest sum of differences, then the lowest row."""
        k = min(2, self._points.shape[0])
        near, which = self._nearest(queries, k=k)
        chosen: Rows = self._rows[self._starts[which[:, 0]]]
        if k == 2:
            for query, groups in self._groups_within(queries, near[:, 0], np.flatnonzero(near[:, 1] == near[:, 0])):
                sums = np.abs(self._points[groups] - queries[query]).sum(axis=1)
                chosen[query] = self._rows[self._starts[np.asarray(groups)[sums == sums.min()]]].min()
        return chosen

    def _groups_within(self, queries: Array, distance: Array, tied: Rows) -> Iterator[tuple[int, list[int]]]:
        """The groups at the smallest distance of each query, a bounded number in memory at a time."""
        if tied.size == 0:
            return
        part = np.cumsum(np.concatenate(self._within(queries[tied], distance[tied], return_length=True))) // _AT_ONCE
        for number in np.unique(part):
            some = tied[part == number]
            found = chain.from_iterable(self._within(queries[some], distance[some]))
            yield from zip(some.tolist(), found, strict=True)

    # The tree could use several threads by itself, but when Ctrl-C stops it they go on writing into freed memory.
    def _nearest(self, queries: Array, *, k: int) -> tuple[Array, Rows]:
        """The distances and numbers of each query's k nearest groups, k columns."""

        def ask(some: slice) -> tuple[Array, Rows]:
            near, which = self._tree.query(queries[some], k=range(1, k + 1), p=np.inf)
            return near, which

        answers = in_threads(ask, _parts(len(queries)), size=queries.size)
        return np.concatenate([near for near, _ in answers]), np.concatenate([which for _, which in answers])

    def _within(self, queries: Array, distance: Array, *, return_length: bool = False) -> list[Any]:
        """The groups within a distance of each query, or how many they are, in parts."""

        def ask(some: slice) -> Any:
            return self._tree.query_ball_point(queries[some], distance[some], p=np.inf, return_length=return_length)

        return in_threads(ask, _parts(len(queries)), size=queries.size)

    def _lowest(self, groups: list[int], most: int | None) -> Rows:
        """The lowest `most` records of some groups, whose own are in order already."""
        members = [self._rows[self._starts[each] : self._starts[each + 1]][:most] for each in groups]
        return np.sort(np.concatenate(members))[:most].copy()


def _parts(size: int) -> list[slice]:
    """So many queries in parts, at least one."""
    return [slice(start, start + _ASKED_AT_ONCE) for start in range(0, max(size, 1), _ASKED_AT_ONCE)]


def _grouped(points: Array) -> tuple[Array, Rows, Rows]:
    """Different records once, and the rows that share each: heavy ties would make a search tree of copies."""
    n = points.shape[0]
    ordered = np.sort(points, axis=0)
    if n < 2 or (ordered[1:] != ordered[:-1]).all(axis=0).any():  # a column without ties: all records differ
        return np.ascontiguousarray(points), np.arange(n), np.arange(n + 1)
    different, group, counts = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    rows = np.argsort(group.reshape(-1), kind="stable")
    return different, rows, np.concatenate(([0], np.cumsum(counts)))
