"""One-to-one links between two tables: the probability of every link, and the links that nothing can contradict.

Records that cannot be told apart form a class; a class of originals and a class of released records are the two ends of
an edge. Belief propagation then works on classes as it would on their members, which all say the same.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankveil.execute import cores
from rankveil.kernels.beliefs import tell_edges

Array = NDArray[np.float64]
Beliefs = NDArray[np.float32]
Places = NDArray[np.int64]
Ends = NDArray[np.int32]

SWEEPS = 150
ENOUGH = 1e-3
"""Beliefs that change by less have settled."""
_UNDAMPED = 20
"""Sweeps that most tables need, none of them damped."""
_DAMPED = 4
"""Of so many sweeps one is damped: two pairs as likely one way as the other would change for ever."""
_WORTH_THREADS = 500_000
"""Edges below which a sweep is over before threads have begun."""
_PLAIN = 200
"""Edges below which compiled code is not worth loading."""


@dataclass(frozen=True, eq=False)
class CandidateGraph:
    """Which released classes may belong to which original ones; edges are sorted by their row."""

    rows: Ends
    """The class of originals of each edge."""
    columns: Ends
    """The class of released records of each edge."""
    row_sizes: Places
    """How many originals each class has."""
    column_sizes: Places
    row_tail: Array
    """The logarithm of the likelihood that lies outside the candidates of each original, or minus infinity."""
    column_tail: Array

    def __post_init__(self) -> None:
        if np.any(self.rows[1:] < self.rows[:-1]):
            raise ValueError("edges must be sorted by their row")


@dataclass(frozen=True, eq=False)
class Posterior:
    """The probability that an original of an edge's row is a given released record of its column."""

    belief: Beliefs
    unmatched_rows: Array
    """The probability that an original of each class has no released record."""
    unmatched_columns: Array
    sweeps: int
    change: float
    """How much a belief changed in the last sweep."""


def link_posterior(
    graph: CandidateGraph,
    weight: Array,
    *,
    row_unmatched: Array | None = None,
    column_unmatched: Array | None = None,
    sweeps: int = SWEEPS,
) -> Posterior:
    """P of every edge over all one-to-one links, each link weighing the product of exp(weight) of its edges.

    `row_unmatched` and `column_unmatched` are the logarithms of the weight of having no partner, minus infinity where
    everybody has one. Loopy belief propagation (Bethe approximation of the permanent). A record whose candidates'
    beliefs have not changed is left alone until they do; it ends when no belief changes any more. Beliefs decide, not
    messages, which grow without end where beliefs tend to 0 or 1.
    """
    n, m = graph.row_sizes.size, graph.column_sizes.size
    level, scaled = _scaled(graph.rows, weight, n)
    rows = _Side.of_rows(graph, level, row_unmatched)
    columns = _Side.of_columns(graph, np.zeros(m), column_unmatched)
    told = {side: np.ones(scaled.size) for side in (rows, columns)}
    belief, unkept = np.zeros(scaled.size, dtype=np.float32), np.zeros(0, dtype=np.float32)
    change, sweep = np.inf, 0
    with _Slices(scaled.size) as slices:
        while sweep < sweeps and change > ENOUGH:
            damped = sweep > _UNDAMPED and sweep % _DAMPED == 0
            slices.tell(columns, rows, scaled, told[rows], told[columns], unkept, damped=damped)
            change = slices.tell(rows, columns, scaled, told[columns], told[rows], unkept)
            sweep += 1
        rows.waiting[:] = 1
        slices.tell(rows, columns, scaled, told[columns], told[rows], belief)
    alone = [_without_partner(side.unmatched, side.total) for side in (rows, columns)]
    return Posterior(belief, alone[0], alone[1], sweep, change)


def _without_partner(unmatched: Array, total: Array) -> Array:
    """The probability of having none: 1 where nothing has any weight."""
    nothing = np.isneginf(total)
    made: Array = np.exp(np.minimum(unmatched - np.where(nothing, 0.0, total), 0.0))
    return np.where(nothing, 1.0, made)


def _scaled(rows: Ends, weight: Array, count: int) -> tuple[Array, Array]:
    """exp(weight) divided by the largest of its row, and the logarithms of these: nothing overflows."""
    level = np.full(count, -np.inf)
    first = np.flatnonzero(np.append(True, rows[1:] != rows[:-1])) if rows.size else np.zeros(0, dtype=np.int64)
    if rows.size:
        level[rows[first]] = np.maximum.reduceat(weight, first)
    level[np.isneginf(level)] = 0.0
    scaled: Array = weight - level[rows]
    return level, np.exp(scaled, out=scaled)


@dataclass(frozen=True, eq=False)
class _Side:
    """The factors of one table and their edges."""

    starts: Places
    edges: Ends
    """The edges of a factor, one factor after the other."""
    ends: Ends
    """The other end of each edge, in the order of the graph."""
    copies: Array
    """How many equal records the other end of each edge has; one entry where that is 1 for all."""
    level: Array
    tail: Array
    unmatched: Array
    total: Array
    waiting: NDArray[np.uint8]

    @classmethod
    def of_rows(cls, graph: CandidateGraph, level: Array, unmatched: Array | None) -> _Side:
        starts = np.searchsorted(graph.rows, np.arange(level.size + 1))
        edges = np.arange(graph.rows.size, dtype=np.int32)
        return cls._made(starts, edges, graph.columns, graph.column_sizes, level, graph.row_tail, unmatched)

    @classmethod
    def of_columns(cls, graph: CandidateGraph, level: Array, unmatched: Array | None) -> _Side:
        from scipy.sparse import csr_array

        shape = (graph.row_sizes.size, level.size)
        starts = np.searchsorted(graph.rows, np.arange(shape[0] + 1))
        edges = np.arange(graph.rows.size, dtype=np.int32)
        turned = csr_array((edges, graph.columns, starts), shape=shape).tocsc()
        starts, edges = turned.indptr.astype(np.int64), turned.data
        return cls._made(starts, edges, graph.rows, graph.row_sizes, level, graph.column_tail, unmatched)

    @classmethod
    def _made(
        cls,
        starts: Places,
        edges: Ends,
        ends: Ends,
        sizes: Places,
        level: Array,
        tail: Array,
        unmatched: Array | None,
    ) -> _Side:
        copies = np.ones(1) if np.all(sizes == 1) else sizes[ends].astype(np.float64)
        none = np.full(level.size, -np.inf) if unmatched is None else unmatched
        return cls(starts, edges, ends, copies, level, tail, none, level.copy(), np.ones(level.size, dtype=np.uint8))


class _Slices:
    """Sweeps over the factors of a side, in threads where there are many edges."""

    def __init__(self, edges: int) -> None:
        self._run = tell_edges.plain if edges < _PLAIN else tell_edges.compiled
        self._threads = cores() if edges >= _WORTH_THREADS else 1
        self._pool = ThreadPoolExecutor(self._threads) if self._threads > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:  # after an error or Ctrl-C, what has not begun does not begin
            self._pool.shutdown(cancel_futures=True)

    def tell(
        self,
        here: _Side,
        there: _Side,
        weight: Array,
        heard: Array,
        told: Array,
        belief: Beliefs,
        *,
        damped: bool = False,
    ) -> float:
        """The waiting factors of a side tell their edges; the largest change of a belief."""

        def treated(part: tuple[int, int]) -> float:
            return float(
                self._run(
                    here.starts,
                    here.edges,
                    here.ends,
                    here.copies,
                    weight,
                    heard,
                    told,
                    here.level,
                    here.tail,
                    here.unmatched,
                    there.total,
                    here.total,
                    belief,
                    here.waiting,
                    there.waiting,
                    ENOUGH,
                    damped,
                    *part,
                )
            )

        count = here.starts.size - 1
        if self._pool is None:
            return treated((0, count))
        cuts = np.searchsorted(here.starts, np.linspace(0, here.edges.size, 8 * self._threads + 1)).tolist()
        cuts[0], cuts[-1] = 0, count
        return max(self._pool.map(treated, pairwise(cuts)))


def forced_links(
    rows: Places, columns: Places, shape: tuple[int, int], *, rows_may_lack: bool = False
) -> tuple[Places, Places] | None:
    """The links that every feasible matching has, given all feasible pairs (not only likely ones).

    Released records may stay without an original; originals without a released record only where `rows_may_lack`.
    A link of one matching is in all of them when it lies on no alternating cycle (its column is a strong component of
    its own) and on no alternating path that ends at a record without partner. None where no matching is possible.

    >>> forced_links(np.array([0, 1, 1]), np.array([0, 0, 1]), (2, 2))
    (array([0, 1]), array([0, 1]))
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components, maximum_bipartite_matching

    m = shape[1]
    feasible = csr_array((np.ones(rows.size, dtype=np.int8), (rows, columns)), shape=shape)
    partner = np.asarray(maximum_bipartite_matching(feasible, perm_type="column"), dtype=np.int64)
    if np.any(partner < 0) and not rows_may_lack:
        return None
    matched = np.flatnonzero(partner >= 0)
    # an arc leads from the column that a row has to another that it could have
    held = partner[rows] >= 0
    source, target = partner[rows[held]], columns[held]
    free, waiting = m, m + 1  # beyond all columns: one without an original, a row without a column
    unused = np.setdiff1d(np.arange(m), partner[matched])
    lacking = columns[~held]
    arcs = (
        np.concatenate((source, unused, np.full(lacking.size, waiting))),
        np.concatenate((target, np.full(unused.size, free), lacking)),
    )
    moves = csr_array((np.ones(arcs[0].size, dtype=np.int8), arcs), shape=(m + 2, m + 2))
    _, component = connected_components(moves, directed=True, connection="strong")
    alone = np.bincount(component)[component] == 1
    ends_free, begun = np.zeros(m + 2, dtype=bool), np.zeros(m + 2, dtype=bool)
    ends_free[breadth_first_order(moves.T.tocsr(), free, return_predecessors=False)] = True
    begun[breadth_first_order(moves, waiting, return_predecessors=False)] = True
    sure = matched[alone[partner[matched]] & ~ends_free[partner[matched]] & ~begun[partner[matched]]]
    return sure, partner[sure]
