"""A second look at the partitions, when ranks and moments of the whole columns are known: what measures are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np

from rankveil.moments import scale_of
from rankveil.partitions.stages import Each, Job, Ranked, ranks_at, ranks_of_column
from rankveil.partitions.summaries import Moments, Products
from rankveil.summaries.changes import Changes
from rankveil.summaries.correlations import RankBasis, RankProducts
from rankveil.summaries.movements import Distances, Movements, Powers
from rankveil.summaries.products import Exact, cross_products


@dataclass(frozen=True, eq=False)
class RanksApart:
    """What is left of the products of ranks where no two records belong together."""

    sizes: tuple[int, int]
    """How many records the original and the masked table have."""
    products: tuple[Exact, Exact]
    """Of every two columns of the original, and of the masked table."""

    @property
    def records(self) -> int:
        """How many the original has."""
        return self.sizes[0]

    @cached_property
    def x(self) -> RankBasis:
        """The original columns made orthonormal."""
        return RankBasis.of(self.products[0], records=self.sizes[0])

    @cached_property
    def y(self) -> RankBasis:
        """The masked columns made orthonormal."""
        return RankBasis.of(self.products[1], records=self.sizes[1])


@dataclass(frozen=True, eq=False)
class Measured:
    """What the second look at a partition returns; parts are merged."""

    moments_x: Moments
    """Those of the whole table, which the second look began with."""
    moments_y: Moments
    ranks: RankProducts | RanksApart
    movements: tuple[Movements, ...]
    changes: tuple[Changes, ...]
    products_x: Products
    products_y: Products
    powers: tuple[Powers, ...] = ()

    def merged(self, other: Measured) -> Measured:
        """Those of both parts together."""
        return Measured(
            self.moments_x,
            self.moments_y,
            _merged_ranks(self.ranks, other.ranks),
            tuple(a.merged(b) for a, b in zip(self.movements, other.movements, strict=True)),
            tuple(a.merged(b) for a, b in zip(self.changes, other.changes, strict=True)),
            self.products_x.merged(other.products_x),
            self.products_y.merged(other.products_y),
            tuple(a.merged(b) for a, b in zip(self.powers, other.powers, strict=True)),
        )

    @property
    def sizes(self) -> tuple[int, int]:
        """How many records the original and the masked table have."""
        return self.products_x.count, self.products_y.count

    def only(self, columns: Sequence[int]) -> Measured:
        """What was found of some columns."""
        some = list(columns)
        return Measured(
            _moments_of(self.moments_x, some),
            _moments_of(self.moments_y, some),
            _ranks_of(self.ranks, some),
            tuple(self.movements[j] for j in some) if self.movements else (),
            tuple(self.changes[j] for j in some) if self.changes else (),
            _products_of(self.products_x, some),
            _products_of(self.products_y, some),
            tuple(self.powers[j] for j in some) if self.powers else (),
        )


def measured(job: Job, each: Each, columns: Sequence[Ranked], *, alphas: tuple[float, ...] = ()) -> Measured:
    """Everything that takes a second look at values and ranks; `alphas` are exponents of power means."""
    facts = Facts(
        _joined([column.moments_x for column in columns]),
        _joined([column.moments_y for column in columns]),
        tuple(column.reversed for column in columns),
        alphas,
    )
    if job.apart is not None:
        return _measured_apart(job, each, facts)
    return reduce(Measured.merged, each(partial(measure_partition, job, facts), job.partitions))


@dataclass(frozen=True, eq=False)
class Facts:
    """What the second look needs from the first."""

    moments_x: Moments
    moments_y: Moments
    reversed: tuple[bool, ...]
    alphas: tuple[float, ...] = ()


def measure_partition(job: Job, facts: Facts, partition: int) -> Measured:
    """A task: everything that takes a second look at a partition."""
    m = len(job.names)
    x, y = (job.read(side, range(m), partition) for side in "xy")
    ranks_x, ranks_y = (ranks_at(job, side, partition) for side in "xy")
    ranks_z = {j: ranks_of_column(job, f"z{j}", partition) for j in range(m) if facts.reversed[j]}
    n = job.records
    before, after = facts.moments_x, facts.moments_y
    ends = np.stack((before.low, before.high, after.low, after.high))
    distances = (Distances.of(ranks_x[:, j], ranks_y[:, j], records=n) for j in range(m))
    moved = [(Movements.of(each), Powers.of(each, alphas=facts.alphas)) for each in distances]
    return Measured(
        before,
        after,
        RankProducts.of(ranks_x, ranks_y, ranks_z, records=n),
        tuple(movements for movements, _ in moved),
        tuple(Changes.of(x[j], y[j], spread=before.spread[j], unit=scale_of(ends[:, j])) for j in range(m)),
        Products.of(x, before),
        Products.of(y, after, fourth=False),
        tuple(powers for _, powers in moved),
    )


def _measured_apart(job: Job, each: Each, facts: Facts) -> Measured:
    """The same for tables of which no two records belong together."""
    items = [(side, p) for side in "xy" for p in job.partitions if job.has(side, p)]
    done = each(partial(measure_side, job, facts), items)
    parts = {side: [part for (of, _), part in zip(items, done, strict=True) if of == side] for side in "xy"}
    ranks = [reduce(np.add, [part[0] for part in parts[side]]) for side in "xy"]
    values = [reduce(Products.merged, [part[1] for part in parts[side]]) for side in "xy"]
    sizes = job.bounds_of("x")[-1], job.bounds_of("y")[-1]
    return Measured(
        facts.moments_x, facts.moments_y, RanksApart(sizes, (ranks[0], ranks[1])), (), (), values[0], values[1]
    )


def measure_side(job: Job, facts: Facts, item: tuple[str, int]) -> tuple[Exact, Products]:
    """A task: the products of ranks and of values in a partition of one table."""
    side, partition = item
    ranks = ranks_at(job, side, partition)
    values = job.read(side, range(len(job.names)), partition)
    moments = facts.moments_x if side == "x" else facts.moments_y
    return (
        cross_products(ranks, centre=job.bounds_of(side)[-1] + 1),
        Products.of(values, moments, fourth=side == "x"),
    )


def _moments_of(moments: Moments, columns: list[int]) -> Moments:
    parts = (getattr(moments, name)[..., columns] for name in _OF_COLUMNS)
    return Moments(moments.count, *parts)


def _products_of(products: Products, columns: list[int]) -> Products:
    block = np.ix_(columns, columns)
    return Products(products.count, products.first[block], products.squares[block], products.cubes[block])


def _merged_ranks(one: RankProducts | RanksApart, other: RankProducts | RanksApart) -> RankProducts:
    assert isinstance(one, RankProducts)
    assert isinstance(other, RankProducts)
    return one.merged(other)


def _ranks_of(ranks: RankProducts | RanksApart, columns: list[int]) -> RankProducts | RanksApart:
    if isinstance(ranks, RanksApart):
        x, y = (products[np.ix_(columns, columns)] for products in ranks.products)
        return RanksApart(ranks.sizes, (x, y))
    both = [*columns, *(j + len(ranks.products) // 2 for j in columns)]
    return RankProducts(ranks.records, ranks.products[np.ix_(both, both)], ranks.reversed[columns])


def _joined(parts: Sequence[Moments]) -> Moments:
    """The moments of single columns side by side."""

    def of(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts], axis=-1)

    return Moments(parts[0].count, *(of(name) for name in _OF_COLUMNS))


_OF_COLUMNS = ("low", "high", "unit", "total", "lost", "powers")
"""What moments have for each column."""
