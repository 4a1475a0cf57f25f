"""Exact nearest records in rank space, all of them when several are equally near; never an n-by-n matrix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankveil.execute import cores

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

LISTED = 100
"""How many of a record's equally near matches are listed; all are counted."""

_AT_ONCE = 4_000_000
"""How many matches are held in memory at a time."""


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
        distance, _ = self._tree.query(queries, k=1, p=np.inf, workers=cores())
        return np.asarray(distance, dtype=np.float64)

    def matches(self, queries: Array, *, most: int | None = LISTED) -> Matches:
        """All records at the smallest distance from each query."""
        k = min(2, self._points.shape[0])
        near, which = self._tree.query(queries, k=k, p=np.inf, workers=cores())
        near, which = near.reshape(-1, k), which.reshape(-1, k)
        distance = np.asarray(near[:, 0], dtype=np.float64)
        group = which[:, 0]
        count = (self._starts[group + 1] - self._starts[group]).astype(np.int64)
        wanted = np.zeros(self.size, dtype=np.int64)
        tied = near[:, -1] == distance if k == 2 else np.zeros(distance.size, dtype=bool)
        shown = count if most is None else np.minimum(count, most)
        shown = np.where(tied, 0, shown)
        alone = np.bincount(group[~tied], minlength=self._points.shape[0])
        wanted[self._rows] += np.repeat(alone, np.diff(self._starts))
        several: dict[int, Rows] = {}
        for query, rows in self._within(queries, distance, np.flatnonzero(tied)):
            wanted[rows] += 1
            count[query] = rows.size
            several[query] = rows if most is None else rows[:most].copy()
            shown[query] = several[query].size
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
        near, which = self._tree.query(queries, k=k, p=np.inf, workers=cores())
        near, which = near.reshape(-1, k), which.reshape(-1, k)
        chosen: Rows = self._rows[self._starts[which[:, 0]]]
        if k == 2:
            for query, groups in self._groups_within(queries, near[:, 0], np.flatnonzero(near[:, 1] == near[:, 0])):
                sums = np.abs(self._points[groups] - queries[query]).sum(axis=1)
                chosen[query] = self._rows[self._starts[np.asarray(groups)[sums == sums.min()]]].min()
        return chosen

    def _within(self, queries: Array, distance: Array, tied: Rows) -> Iterator[tuple[int, Rows]]:
        """The records at the smallest distance of the queries that have several groups of them."""
        for query, groups in self._groups_within(queries, distance, tied):
            yield query, np.sort(np.concatenate([self._members(each) for each in groups]))

    def _groups_within(self, queries: Array, distance: Array, tied: Rows) -> Iterator[tuple[int, list[int]]]:
        """The groups at the smallest distance of each query, a bounded number in memory at a time."""
        if tied.size == 0:
            return
        lengths = self._tree.query_ball_point(
            queries[tied], distance[tied], p=np.inf, workers=cores(), return_length=True
        )
        part = np.cumsum(lengths) // _AT_ONCE
        for number in np.unique(part):
            some = tied[part == number]
            found = self._tree.query_ball_point(queries[some], distance[some], p=np.inf, workers=cores())
            yield from zip(some.tolist(), found, strict=True)

    def _members(self, group: int) -> Rows:
        return self._rows[self._starts[group] : self._starts[group + 1]]


def _grouped(points: Array) -> tuple[Array, Rows, Rows]:
    """Different records once, and the rows that share each: heavy ties would make a search tree of copies."""
    n = points.shape[0]
    ordered = np.sort(points, axis=0)
    if n < 2 or (ordered[1:] != ordered[:-1]).all(axis=0).any():  # a column without ties: all records differ
        return np.ascontiguousarray(points), np.arange(n), np.arange(n + 1)
    different, group, counts = np.unique(points, axis=0, return_inverse=True, return_counts=True)
    rows = np.argsort(group.reshape(-1), kind="stable")
    return different, rows, np.concatenate(([0], np.cumsum(counts)))
