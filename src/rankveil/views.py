"""Two tables side by side, and what measures ask of them: ranks, moments, neighbours, each computed only once.

A measure names what it works on by its positional arguments. A name that ends in `_x` is of the original table, one in
`_y` of the masked one: `rank_x` is `Side.rank` of the original.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil import ranks
from rankveil.canonical import Basis, crossed, orthonormal
from rankveil.errors import NotApplicableError
from rankveil.execute import in_threads
from rankveil.linkage import Linker
from rankveil.multivariate import Standardised, by_column, correlation, standardised, weighted
from rankveil.seeds import Seed

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


class Side:
    """One of the two tables: complete records, one column for each attribute.

    Where records have weights, moments are those of the population that they stand for; ranks are those of the records.
    """

    def __init__(self, values: Array, *, weight: Array | None = None) -> None:
        self.values = values
        self._weight = weight

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @cached_property
    def weight(self) -> Array | None:
        """How many subjects each record stands for, or None when that is not known."""
        if self._weight is not None and not np.any(self._weight > 0):
            raise NotApplicableError("no record that has the values that it needs has a weight above 0")
        return self._weight

    @cached_property
    def order(self) -> Rows:
        """For each column the rows from the smallest value to the largest."""
        return ranks.orders(self.values)

    @cached_property
    def rank(self) -> Array:
        """Average ranks, column by column."""
        return ranks.average_ranks(self.values, order=self.order)

    @cached_property
    def sorted(self) -> Array:
        """The values of each column in order."""
        return by_column(lambda j: self.values[self.order[:, j], j], shape=self.values.shape)

    @cached_property
    def sorted_weight(self) -> Array | None:
        """The weights of the records in the order of each column's values, or None."""
        weight = self.weight
        return None if weight is None else by_column(lambda j: weight[self.order[:, j]], shape=self.values.shape)

    @cached_property
    def standardised(self) -> Standardised:
        """The table with mean 0 and standard deviation 1 in every column, and what brings it back."""
        return standardised(self.values, self.weight)

    @property
    def standard(self) -> Array:
        """(x - mean) / sd; 0 in a constant column."""
        return self.standardised.z

    @property
    def mean(self) -> Array:
        """The mean of each column."""
        return self.standardised.mean

    @property
    def spread(self) -> Array:
        """The population standard deviation of each column."""
        return self.standardised.spread

    @cached_property
    def correlation(self) -> Array:
        """The correlations of the columns; those of a constant column, with itself too, are 0."""
        return correlation(self.standard, self.weight)

    @cached_property
    def squares(self) -> Array:
        """The mean of z_a^2 z_b^2 over the records, for each two standardised columns a and b."""
        second = np.square(self.standard)
        if self.weight is None:
            return crossed(second, second) / len(self)
        second = weighted(second, self.weight)
        return crossed(second, second)

    @cached_property
    def cubes(self) -> Array:
        """The mean of z_a^3 z_b over the records, for each two standardised columns a (rows) and b."""
        third = np.square(self.standard)
        third *= self.standard
        if self.weight is None:
            return crossed(third, self.standard) / len(self)
        return crossed(weighted(third, self.weight), weighted(self.standard, self.weight))

    @cached_property
    def rank_basis(self) -> Basis:
        """Orthonormal columns that span the centred ranks."""
        return orthonormal(self.rank)


class View:
    """The original and the masked records that are compared; paired when row i of both is the same subject's."""

    def __init__(
        self,
        x: Side,
        y: Side,
        *,
        names: tuple[str, ...],
        original: Rows,
        masked: Rows,
        paired: bool,
        seed: Seed,
    ) -> None:
        self.sides = {"x": x, "y": y}
        self.names = names
        self.original, self.masked = original, masked
        """The rows (from 0) of the original and of the masked table that stand here."""
        self.paired = paired
        self._seed = seed

    def __len__(self) -> int:
        return len(self.sides["x"])

    def __getattr__(self, name: str) -> Any:
        fact, _, side = name.rpartition("_")
        if side not in ("x", "y") or fact.startswith("_"):
            raise AttributeError(f"a view has no {name}")
        return getattr(self.sides[side], fact)

    @property
    def x(self) -> Array:
        """The original values."""
        return self.sides["x"].values

    @property
    def y(self) -> Array:
        """The masked values."""
        return self.sides["y"].values

    @property
    def rows(self) -> Rows:
        """The numbers of the original records, from 1 as in the file."""
        return self.original + 1

    @cached_property
    def strict_order_y(self) -> Rows:
        """For each column the rows from the smallest masked value to the largest, ties in the order of their draws."""
        order: Rows = self.order_y
        made = np.empty_like(order)
        rows = int(self.masked.max(initial=-1)) + 1

        def settle(j: int) -> None:
            column = self.y[:, j]
            made[:, j] = order[:, j]
            if ranks.has_ties(column, order[:, j]):
                draws = self._seed.stream("ties", self.names[j]).bits(rows)[self.masked]
                made[:, j] = ranks.strict_order(column, ties=draws, order=order[:, j])

        in_threads(settle, range(len(self.names)), size=order.size)
        return made

    @cached_property
    def z(self) -> Array:
        """Reverse-mapped values: the original values in the order of the masked ones."""
        return self._put(self.sorted_x)

    @cached_property
    def rank_z(self) -> Array:
        """Average ranks of the reverse-mapped values."""
        rank, order = self.rank_x, self.order_x
        return self._put(by_column(lambda j: rank[order[:, j], j], shape=rank.shape))

    def _put(self, in_order: Array) -> Array:
        """What belongs to the ranks of the original, at the records that have these ranks in the masked table."""
        if len(self.sides["x"]) != len(self.sides["y"]):
            raise ValueError("reverse mapping needs as many masked values as original ones")

        def column(j: int) -> Array:
            put = np.empty(len(self))
            put[self.strict_order_y[:, j]] = in_order[:, j]
            return put

        return by_column(column, shape=in_order.shape)

    @cached_property
    def scaled_y(self) -> Array:
        """The masked values in the units of the original: (y - mean_x) / sd_x, 0 where the original is constant."""
        return self.sides["x"].standardised.applied(self.y)

    @cached_property
    def euclidean_ranks(self) -> Linker:
        """The rank vectors of the masked records, ready for questions by Euclidean distance."""
        return Linker(np.ascontiguousarray(self.rank_y), metric="euclidean")

    @cached_property
    def maximum_ranks(self) -> Linker:
        """The rank vectors of the masked records, ready for questions by the largest difference."""
        return Linker(np.ascontiguousarray(self.rank_y), metric="maximum")


class Column:
    """One column of a view: whatever the view has for each column, of this one."""

    def __init__(self, view: View, j: int) -> None:
        self._view, self._j = view, j

    def __len__(self) -> int:
        return len(self._view)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._view, name)
        return found if name in _OF_RECORDS else found[..., self._j]


_OF_RECORDS = ("original", "masked", "rows", "paired", "weight_x", "weight_y")
"""What a view has for each record, or for all together, and not for each column."""
