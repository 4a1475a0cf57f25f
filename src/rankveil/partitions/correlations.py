"""Canonical correlations and covariances of ranks from their exact products, without the records.

A matrix of products squares the condition of the columns, and in floating point half the digits would go. These
products are exact, so the elimination is done in whole numbers with many binary places, and only its result is rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from rankveil.canonical import DEPENDENT, squared_correlations
from rankveil.partitions.products import Exact, Integers, cross_products, paired_products

Array = NDArray[np.float64]

_PLACES = 256
"""Binary places of numbers in the elimination: rounding stays far below what a floating-point number shows."""

_ONE = 1 << _PLACES


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
        products = cross_products(np.concatenate((ranks_x, ranks_y), axis=1), centre=centre)
        m = ranks_x.shape[1]
        crossed = np.diagonal(products[:m, m:]).copy()
        if ranks_z:
            which = list(ranks_z)
            crossed[which] = paired_products(ranks_x[:, which], np.stack(list(ranks_z.values())).T, centre=centre)
        return cls(records, products, crossed)

    def merged(self, other: RankProducts) -> RankProducts:
        """Those of both parts."""
        if self.records != other.records:
            raise ValueError("both parts must be of the same ranking")
        return RankProducts(self.records, self.products + other.products, self.reversed + other.reversed)

    @cached_property
    def x(self) -> RankBasis:
        """The original columns made orthonormal."""
        m = len(self.products) // 2
        return RankBasis.of(self.products[:m, :m], records=self.records)

    @cached_property
    def y(self) -> RankBasis:
        """The masked columns made orthonormal."""
        m = len(self.products) // 2
        return RankBasis.of(self.products[m:, m:], records=self.records)

    @cached_property
    def squared(self) -> Array:
        """The squared canonical correlations of the two tables, the largest first."""
        m = len(self.products) // 2
        between = _scaled(self.products[:m, m:], np.diagonal(self.products)[:m], np.diagonal(self.products)[m:])
        left = _solved(self.x.factor, between[np.ix_(self.x.kept, self.y.kept)])
        both = _solved(self.y.factor, left.T).T
        return squared_correlations(_floats(both))

    @cached_property
    def spearman(self) -> list[float | None]:
        """The rank correlation of each original column with its reverse-mapped one; None for a constant column."""
        own = np.diagonal(self.products)
        # the reverse-mapped column has the ranks of the original in another order, so one sum of squares serves both
        return [None if own[j] == 0 else self.reversed[j] / own[j] for j in range(len(self.reversed))]


@dataclass(frozen=True, eq=False)
class RankBasis:
    """What orthonormal columns say of those they were made of: the `rankveil.canonical.Basis` of ranks without records.

    `q` is not there; all that depends on products only is.
    """

    records: int
    r: Array
    """The columns around their means, brought to length 1 (a constant one is 0), are q times r."""
    spread: Array
    """The population standard deviation of each column."""
    kept: tuple[int, ...]
    """The columns that the basis was made of, in their order."""
    correlation: Array
    """The correlations of the columns, 0 for a constant one."""
    factor: Exact
    """The triangular factor of the kept columns' correlations, in units of 2^-256."""

    @classmethod
    def of(cls, products: Exact, *, records: int) -> RankBasis:
        """The basis of columns with these products of doubled ranks."""
        own = np.diagonal(products)
        scaled = _scaled(products, own, own)
        kept = _independent(scaled)
        factor = _factor(scaled[np.ix_(kept, kept)])
        r = _solved(factor, scaled[np.asarray(kept, np.intp)])
        spread = np.array([_root_of_ratio(int(each), 4 * records) for each in own])
        return cls(records, _floats(r), spread, kept, _floats(scaled), factor)

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


def _root_of_ratio(top: int, bottom: int) -> float:
    """sqrt(top / bottom) of whole numbers of any length."""
    return isqrt((top << 128) // bottom) / 2**64


def _scaled(products: Exact, left: Exact, right: Exact) -> Exact:
    """Products divided by the lengths of both columns, in units of 2^-256; 0 where a column is constant."""
    made = np.empty(products.shape, dtype=object)
    for i, j in np.ndindex(*products.shape):
        length = isqrt((int(left[i]) * int(right[j])) << 2 * _PLACES)
        made[i, j] = (int(products[i, j]) << 2 * _PLACES) // length if length else 0
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


def _solved(factor: Exact, b: Exact) -> Exact:
    """L^-1 B for a lower triangular L."""
    made = b.copy()
    for k in range(len(factor)):
        made[k] = (made[k] << _PLACES) // factor[k, k]
        if k + 1 < len(factor):
            made[k + 1 :] = made[k + 1 :] - (np.outer(factor[k + 1 :, k], made[k]) >> _PLACES)
    return made


def _floats(exact: Exact) -> Array:
    """As floating-point numbers."""
    found = np.empty(exact.shape)
    for place in np.ndindex(*exact.shape):
        found[place] = exact[place] / _ONE
    return found
