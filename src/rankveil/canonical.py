"""Canonical correlations of two tables by orthonormal bases and singular values: stable for any columns.

Correlations that a covariance matrix squares and inverts lose half their digits; those of orthonormal bases do not,
and columns that are constant or depend on others simply add nothing to a basis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankveil.execute import in_threads
from rankveil.multivariate import standardised
from rankveil.ranks import has_ties

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

DEPENDENT = 1e-10
"""A column of whose variance others leave less than this part unexplained depends on them."""

EXACT = 1e-12
"""What is left of 1 - rho^2 by rounding when a canonical correlation is 1."""

_ROUNDING = 1e-14
"""By so much the products of orthonormal columns are off."""

_ROUNDS = 3
"""Two of them make any columns orthonormal that do not depend on each other."""

_PART = 65_536
"""Records of one task: what is added does not depend on how many threads there are."""

_PRODUCTS = 2**18
"""Products that the linear algebra library is asked for at a time: they stay in the cache, and are too few for it to
start threads of its own, which would wait for each other beside ours."""

_MEAN_OF_LARGEST = -1.2065335745820
"""The mean of the Tracy-Widom distribution (of real tables): where the largest of many roots lies."""


@dataclass(frozen=True, eq=False)
class Basis:
    """Orthonormal columns that span the columns of a table around their means."""

    q: Array
    """One row for each record, so that records in another order are read one after the other."""
    r: Array
    """The columns around their means, brought to length 1 (a constant one is 0), are q times r."""
    spread: Array
    """The population standard deviation of each column."""
    kept: tuple[int, ...]
    """The columns that the basis was made of, in their order."""

    @property
    def dropped(self) -> tuple[int, ...]:
        """The columns that are constant or depend on others."""
        return tuple(sorted(set(range(self.r.shape[1])) - set(self.kept)))


def orthonormal(x: Array) -> Basis:
    """A basis of the columns of x around their means, constant and dependent ones left out.

    Columns are chosen by pivoted Cholesky of their correlations; Cholesky of the products of the chosen, again where
    rounding left something, makes them orthonormal to the last digits.
    """
    table = standardised(x)
    unit = np.ascontiguousarray(table.z)
    unit /= max(len(x), 1) ** 0.5
    products = crossed(unit, unit)
    kept = _independent(products)
    q, products = unit[:, kept] if len(kept) < unit.shape[1] else unit, products[np.ix_(kept, kept)]
    for _ in range(_ROUNDS):
        if np.max(np.abs(products - np.eye(len(kept))), initial=0.0) < _ROUNDING * len(kept):
            break
        q = _times(q, np.linalg.inv(np.linalg.cholesky(products)).T)
        products = crossed(q, q)
    return Basis(q, crossed(q, unit), table.spread, tuple(kept))


def _independent(c: Array) -> list[int]:
    """Columns none of which depends on the others: the one with the most variance left is next, and so on."""
    left = c.copy()
    kept: list[int] = []
    while len(kept) < len(c):
        variance = np.diag(left).copy()
        variance[kept] = -1.0
        chosen = int(np.argmax(variance))
        if variance[chosen] < DEPENDENT:
            break
        left = left - np.outer(left[:, chosen], left[chosen]) / variance[chosen]
        kept.append(chosen)
    return sorted(kept)


def _times(a: Array, weights: Array) -> Array:
    made = np.empty((len(a), weights.shape[1]))

    def multiply(part: slice) -> None:
        for some in _cut(part, _PRODUCTS // max(weights.size, 1)):
            np.matmul(a[some], weights, out=made[some])

    in_threads(multiply, _cut(slice(0, len(a)), _PART), size=a.size)
    return made


def crossed(a: Array, b: Array, rows: Rows | None = None) -> Array:
    """The sum over the records of a_i' b_rows(i): products of two tables, the second in another order if asked."""

    def add(part: slice) -> Array:
        total = np.zeros((a.shape[1], b.shape[1]))
        for some in _cut(part, _PRODUCTS // max(total.size, 1)):
            total += a[some].T @ (b[some] if rows is None else b.take(rows[some], axis=0))
        return total

    parts = in_threads(add, _cut(slice(0, len(a)), _PART), size=a.size)
    return sum(parts, np.zeros((a.shape[1], b.shape[1])))


def _cut(part: slice, records: int) -> list[slice]:
    """The part in pieces of so many records, at least one."""
    step = max(records, 1)
    return [slice(start, min(start + step, part.stop)) for start in range(part.start, part.stop, step)]


def squared_correlations(products: Array) -> Array:
    """The squared canonical correlations, the largest first, from the products of two orthonormal bases.

    >>> squared_correlations(np.array([[0.0, 0.5], [0.8, 0.0]]))
    array([0.64, 0.25])
    """
    if products.size == 0:
        return np.empty(0)
    found: Array = np.clip(np.linalg.svd(products, compute_uv=False), 0.0, 1.0) ** 2
    return found


def largest_by_chance(n: int, p: int, q: int) -> float | None:
    """About the mean of the largest squared correlation of p with q independent columns of n records.

    Johnstone (2008): its log odds have nearly a Tracy-Widom distribution; with one column on a side the mean is
    exact. None when the two sides together leave no record free: there the approximation breaks down.

    >>> round(largest_by_chance(1080, 4, 4), 4)
    0.0093
    """
    least, most = min(p, q), max(p, q)
    if p + q >= n - 1 or least == 0:
        return None
    if least == 1:
        return most / (n - 1)
    a, b = (2 * math.asin(math.sqrt((columns - 0.5) / (n - 2))) for columns in (least, most))
    centre = 2 * math.log(math.tan((a + b) / 2))
    width = (16 / (n - 2) ** 2 / (math.sin(a + b) ** 2 * math.sin(a) * math.sin(b))) ** (1 / 3)
    return 1 / (1 + math.exp(-centre - _MEAN_OF_LARGEST * width))


def settled(rank: Array, order: Rows, *, sequence: Sequence[int]) -> Rows:
    """For each column the rows from the lowest rank to the highest, ties settled by the rows' other ranks.

    Tied rows stand in the order of the sum of their ranks, then of their ranks in one column after the other of
    `sequence`: only rows that are equal everywhere are left in any order. Without ties it is `order` itself.

    >>> rank = np.array([[1.0, 4.0], [3.0, 3.0], [3.0, 2.0], [3.0, 1.0]])
    >>> settled(rank, np.argsort(rank, axis=0), sequence=(0, 1))[:, 0]
    array([0, 3, 2, 1])
    """
    ties = in_threads(lambda j: has_ties(rank[:, j], order[:, j]), range(rank.shape[1]), size=rank.size)
    if not any(ties):
        return order
    rows = _by_all(rank, sequence)
    made = order.copy(order="F")

    def settle(j: int) -> None:
        made[:, j] = _stably(rows, rank[:, j])

    in_threads(settle, np.flatnonzero(ties).tolist(), size=rank.size)
    return made


def _by_all(rank: Array, sequence: Sequence[int]) -> Rows:
    """The rows by the sums of their ranks, those with the same sum by the ranks in one column after the other."""
    total = rank.sum(axis=1)
    rows = _stably(np.arange(len(rank)), total)
    same = total[rows[1:]] == total[rows[:-1]]
    where = np.flatnonzero(np.append(same, False) | np.insert(same, 0, False))
    some = rows[where]
    for j in reversed(sequence):
        some = _stably(some, rank[:, j])
    rows[where] = _stably(some, total)
    return rows


def _stably(rows: Rows, ranks: Array) -> Rows:
    """The rows by their average ranks, or sums of such, those with the same in the order in which they were."""
    twice = 2 * ranks[rows]  # whole numbers
    return by_digits(rows, twice.astype(np.uint32 if twice.max(initial=0.0) < 2**32 else np.uint64))


def by_digits(rows: Rows, words: NDArray[np.unsignedinteger]) -> Rows:
    """The rows by their words, those with the same in the order in which they were.

    Digits of 16 bits are sorted one after the other: for words of two digits less than half the work of comparisons.

    >>> by_digits(np.array([7, 8, 9]), np.array([5, 70000, 5], dtype=np.uint32))
    array([7, 9, 8])
    """
    length = int(words.max(initial=0)).bit_length()
    for shift in range(0, length, 16):
        by = np.argsort((words >> words.dtype.type(shift)).astype(np.uint16), kind="stable")
        rows = rows[by]
        words = words[by] if shift + 16 < length else words
    return rows
