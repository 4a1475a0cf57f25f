"""Canonical correlations and covariances of ranks from their exact products, without the records.

A matrix of products squares the condition of the columns, and in floating point half the digits would go. These
products are exact, so the elimination is done in whole numbers with many binary places, and only its result is rounded:
the same products give the same bits, whoever added them up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.canonical import DEPENDENT, squared_correlations
from rankveil.execute import in_threads
from rankveil.summaries.products import Exact, Rows, cross_products, paired_products

Array = NDArray[np.float64]
Integers = NDArray[np.integer[Any]]

_PLACES = 256
"""Binary places of numbers in the elimination: rounding stays far below what a floating-point number shows."""

_FINE = 384
"""Binary places of weights of ranks, whose lengths are large numbers."""


def centred_ranks(rank: Array) -> Array:
    """Average ranks, doubled and around their mean: whole numbers, those of a record one after the other.

    >>> centred_ranks(np.array([[1.0], [2.5], [2.5]]))
    array([[-2.],
           [ 1.],
           [ 1.]])
    """
    made = np.multiply(rank, 2.0, order="C")
    made -= len(rank) + 1
    return made


def products_beside(centred_x: Array, centred_y: Array, rows: Rows) -> Exact:
    """Sums of products of `centred_ranks`, record k of the first beside record rows[k] of the second."""
    return cross_products(centred_x, centred_y, rows=rows, reach=len(centred_x))


def rank_products(rank_x: Array, rank_y: Array | None = None) -> Exact:
    """Sums of products of centred and doubled average ranks: of two tables, or of the columns of one.

    >>> rank_products(np.array([[1.0, 1.5], [2.0, 1.5], [3.0, 3.0]]))
    array([[8, 6],
           [6, 6]], dtype=object)
    """
    n = len(rank_x)
    return cross_products(rank_x, rank_y, times=2, centre=n + 1, reach=n)


def spearman(rank_x: Array, rank_z: Array) -> tuple[float | None, ...]:
    """The correlation of each column's ranks with the same ranks in another order; None for a constant column.

    >>> spearman(np.array([[1.0], [2.0], [3.0]]), np.array([[1.0], [3.0], [2.0]]))
    (0.5,)
    """
    n = len(rank_x)

    def column(j: int) -> float | None:
        x, z = rank_x[:, j : j + 1], rank_z[:, j : j + 1]
        crossed, own = (paired_products(x, each, times=2, centre=n + 1, reach=n)[0] for each in (z, x))
        return _ratio(crossed, own)

    return tuple(in_threads(column, range(rank_x.shape[1]), size=rank_x.size))


def _ratio(crossed: int, own: int) -> float | None:
    """What a column has in common with its ranks in another order: one sum of squares serves both."""
    return None if own == 0 else crossed / own


@dataclass(frozen=True, eq=False)
class RankProducts:
    """Sums of products of centred doubled ranks over some of n records; those of parts add up."""

    records: int
    """How many records the ranks go over."""
    products: Exact
    """Of every two columns, those of the original first and then those of the masked table."""
    reversed: Exact
    """Of each original column with its reverse-mapped one."""

    @classmethod
    def of(
        cls, ranks_x: Integers, ranks_y: Integers, ranks_z: Mapping[int, Integers] | None = None, *, records: int
    ) -> RankProducts:
        """Of doubled ranks; z has the columns that, with ties, have other ranks than y when mapped in reverse."""
        centre = records + 1  # twice the mean rank
        joined = np.concatenate((ranks_x.T, ranks_y.T)).T
        products = cross_products(joined, centre=centre, reach=records)
        m = ranks_x.shape[1]
        crossed = np.diagonal(products[:m, m:]).copy()
        if ranks_z:
            which = list(ranks_z)
            others = np.stack(list(ranks_z.values())).T
            crossed[which] = paired_products(ranks_x[:, which], others, centre=centre, reach=records)
        return cls(records, products, crossed)

    def merged(self, other: RankProducts) -> RankProducts:
        """Those of both parts."""
        if self.records != other.records:
            raise ValueError("both parts must be of the same ranking")
        return RankProducts(self.records, self.products + other.products, self.reversed + other.reversed)

    @cached_property
    def canonical(self) -> RankCanonical:
        """The two tables beside each other."""
        m = len(self.products) // 2
        x, y = (RankBasis.of(self.products[own, own], records=self.records) for own in (slice(m), slice(m, None)))
        return RankCanonical(x, y, self.products[:m, m:])

    @property
    def x(self) -> RankBasis:
        """The original columns made orthonormal."""
        return self.canonical.x

    @property
    def y(self) -> RankBasis:
        """The masked columns made orthonormal."""
        return self.canonical.y

    @property
    def spearman(self) -> tuple[float | None, ...]:
        """The rank correlation of each original column with its reverse-mapped one; None for a constant column."""
        return tuple(_ratio(int(a), int(b)) for a, b in zip(self.reversed, np.diagonal(self.products), strict=False))


@dataclass(frozen=True, eq=False)
class RankBasis:
    """What orthonormal columns that span centred ranks say of these, without the records."""

    records: int
    kept: tuple[int, ...]
    """The columns that the basis was made of, in their order: none is constant or depends on others."""
    r: Array
    """The columns around their means, brought to length 1 (a constant one is 0), are the basis times r."""
    spread: Array
    """The population standard deviation of each column."""
    correlation: Array
    """The correlations of the columns, 0 for a constant one."""
    weights: Exact
    """Weights of the kept columns, centred and doubled, that make the basis: a row for each of its columns, in units of
    2^-384."""

    @classmethod
    def of(cls, products: Exact, *, records: int) -> RankBasis:
        """The basis of columns with these products of doubled ranks."""
        lengths = np.empty(len(products), dtype=object)
        lengths[:] = [isqrt(int(own) << 2 * _PLACES) for own in np.diagonal(products)]
        scaled = _scaled(products, lengths)
        kept = _independent(scaled)
        rows = np.asarray(kept, np.intp)
        inverse = _inverse(_factor(scaled[np.ix_(rows, rows)]))
        r = _floats(inverse @ scaled[rows], places=2 * _PLACES)
        spread = np.array([_root_of_ratio(int(own), 4 * records) for own in np.diagonal(products)])
        weights = (inverse << _FINE) // lengths[rows]
        return cls(records, kept, r, spread, _floats(scaled, places=_PLACES), weights)

    @classmethod
    def of_ranks(cls, rank: Array) -> RankBasis:
        """The basis of a table of average ranks."""
        return cls.of(rank_products(rank), records=len(rank))

    @property
    def dropped(self) -> tuple[int, ...]:
        """The columns that are constant or depend on others."""
        return tuple(sorted(set(range(self.r.shape[1])) - set(self.kept)))

    @property
    def covariance(self) -> Array:
        """The covariances of the columns in units in which the largest standard deviation is 1."""
        largest = self.spread.max(initial=0.0)
        unit = self.spread / largest if largest > 0 else self.spread
        found: Array = self.correlation * np.outer(unit, unit)
        return found

    def without(self, j: int) -> Array:
        """Weights of the basis that give an orthonormal basis of all columns but column j."""
        u, sizes, _ = np.linalg.svd(np.delete(self.r, j, axis=1), full_matrices=False)
        return u[:, sizes > DEPENDENT**0.5]


@dataclass(frozen=True, eq=False)
class RankCanonical:
    """The ranks of two tables beside each other, record by record."""

    x: RankBasis
    y: RankBasis
    between: Exact
    """Sums of products of centred doubled ranks, columns of the original in the rows."""

    @classmethod
    def of_ranks(cls, rank_x: Array, rank_y: Array) -> RankCanonical:
        """Of two tables of average ranks."""
        return cls(RankBasis.of_ranks(rank_x), RankBasis.of_ranks(rank_y), rank_products(rank_x, rank_y))

    @property
    def products(self) -> Array:
        """The products of the two orthonormal bases."""
        kept = self.between[np.ix_(self.x.kept, self.y.kept)]
        return _floats(self.x.weights @ kept @ self.y.weights.T, places=2 * _FINE)

    @cached_property
    def squared(self) -> Array:
        """The squared canonical correlations of the two tables, the largest first."""
        return squared_correlations(self.products)


def _root_of_ratio(top: int, bottom: int) -> float:
    """sqrt(top / bottom) of whole numbers of any length."""
    return isqrt((top << 128) // bottom) / 2**64 if bottom else 0.0


def _scaled(products: Exact, lengths: Exact) -> Exact:
    """Products divided by the lengths of both columns, all in units of 2^-256; 0 where a column is constant."""
    made = np.empty(products.shape, dtype=object)
    for i, j in np.ndindex(*products.shape):
        length = lengths[i] * lengths[j]
        made[i, j] = (int(products[i, j]) << 3 * _PLACES) // length if length else 0
    return made


def _independent(scaled: Exact) -> tuple[int, ...]:
    """Columns none of which depends on the others: the one with the most variance left is next, and so on."""
    left = scaled.copy()
    least = int(DEPENDENT * 2**64) << (_PLACES - 64)
    kept: list[int] = []
    while len(kept) < len(left):
        variance = np.diagonal(left).copy()
        variance[kept] = -1
        chosen = max(range(len(left)), key=lambda j: (variance[j], -j))
        if variance[chosen] < least:
            break
        left = left - np.outer(left[:, chosen], left[chosen]) // variance[chosen]
        kept.append(chosen)
    return tuple(sorted(kept))


def _factor(c: Exact) -> Exact:
    """The lower triangular L with L L' = C (Cholesky)."""
    made = np.empty(c.shape, dtype=object)
    made[:] = 0
    left = c.copy()
    for k in range(len(c)):
        root = isqrt(int(left[k, k]) << _PLACES)
        made[k:, k] = (left[k:, k] << _PLACES) // root
        left[k:, k:] = left[k:, k:] - (np.outer(made[k:, k], made[k:, k]) >> _PLACES)
    return made


def _inverse(factor: Exact) -> Exact:
    """L^-1 of a lower triangular L."""
    made = np.empty(factor.shape, dtype=object)
    made[:] = 0
    np.fill_diagonal(made, 1 << _PLACES)
    for k in range(len(factor)):
        made[k] = (made[k] << _PLACES) // factor[k, k]
        if k + 1 < len(factor):
            made[k + 1 :] = made[k + 1 :] - (np.outer(factor[k + 1 :, k], made[k]) >> _PLACES)
    return made


def _floats(exact: Exact, *, places: int) -> Array:
    """Numbers with so many binary places as floating-point numbers."""
    found = np.empty(exact.shape)
    for place in np.ndindex(*exact.shape):
        found[place] = exact[place] / (1 << places)
    return found
