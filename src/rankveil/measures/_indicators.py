"""Columns as terms of a regression: numbers as they are, categories as indicators, and products of two columns.

A column with as many categories as records would have as many terms, and products of them more than can be fitted. So
rare categories become one, products that would be too many are left out, and what was done is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array
from rankveil.errors import listing
from rankveil.measures._codes import coded

Rows = NDArray[np.intp]

_AS_IT_IS = 20
"""A column of at most so many categories keeps them all, and takes part in products."""
_RARE = 10
"""Of a column with more, categories of fewer records, of those used of both tables together, become one."""
_OWN = 50
"""And so do all but the most frequent: so many of a column have an indicator of their own."""
_TERMS = 500
"""Terms up to which products with indicators are added, and indicators of all columns together, about."""
_OF_NUMBERS = 1_000
"""Terms up to which products of two columns of numbers are taken: of all such, or of none but squares."""


@dataclass(frozen=True)
class Pooled:
    """The categories of a column that are taken as one: how many of how many, and of how many records."""

    categories: int
    of: int
    records: int

    @property
    def all(self) -> bool:
        """Whether the column has no other."""
        return self.categories == self.of


@dataclass(frozen=True, eq=False)
class Design:
    """Which terms the columns of two tables become."""

    x: Array
    y: Array
    sizes: tuple[int, ...]
    """Of each column of categories how many there are; 0 for a column of numbers."""
    names: tuple[str, ...]
    pooled: dict[str, Pooled]

    @property
    def notes(self) -> tuple[str, ...]:
        """What became of rare categories."""
        some = [f"{part.categories} of {part.of} of {name}" for name, part in self.pooled.items() if not part.all]
        every = [f"{name} ({part.of} categories)" for name, part in self.pooled.items() if part.all]
        notes = [f"rare categories are taken as one: {listing(some)}"] if some else []
        notes += [f"columns are left out, all of whose categories are rare: {listing(every)}"] if every else []
        return tuple(notes)

    @property
    def widths(self) -> Rows:
        """How many terms each column has alone."""
        return np.array([1 if size == 0 else size - 1 for size in self.sizes])

    @cached_property
    def products(self) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
        """For each two columns whether there are products of their terms, and what is said of those left out.

        Numbers are multiplied with each other, unless those are many columns, and with themselves. With categories,
        those pairs of columns come first whose products have the fewest terms.
        """
        sizes, widths, notes = np.array(self.sizes), self.widths, []
        number = sizes == 0
        taken = np.outer(number, number)
        wanted = int(widths.sum()) + int(np.triu(taken).sum())
        if wanted > _OF_NUMBERS:
            taken = np.diag(number)
            notes.append(
                f"products of two of the {number.sum()} columns of numbers are left out: with them the model would "
                f"have {wanted} terms"
            )
        many = sizes > _AS_IT_IS
        if many.any() and len(sizes) > 1:
            which = listing(self.names[j] for j in np.flatnonzero(many))
            notes.append(f"columns of more than {_AS_IT_IS} categories are in no products: {which}")
        a, b = np.triu_indices(len(sizes), k=1)
        count = widths[a] * widths[b]
        asked = np.flatnonzero(~((number[a] & number[b]) | many[a] | many[b]) & (count > 0))
        asked = asked[np.argsort(count[asked], kind="stable")]
        before = int(widths.sum()) + int(np.triu(taken).sum())
        kept = asked[before + np.cumsum(count[asked]) <= _TERMS]
        taken[a[kept], b[kept]] = taken[b[kept], a[kept]] = True
        if kept.size < asked.size:
            notes.append(
                f"products of {asked.size - kept.size} of {asked.size} pairs with nominal columns are left out, the "
                f"largest: with them the model would have more than {_TERMS} terms"
            )
        return taken, tuple(notes)

    def terms(self, *, quadratic: bool) -> int:
        """How many there are, the constant among them."""
        alone = int(self.widths.sum()) + 1
        if not quadratic:
            return alone
        widths = np.where(self.products[0], np.outer(self.widths, self.widths), 0)
        return alone + int(np.triu(widths).sum())

    def expanded(self, values: Array) -> tuple[Array, Rows]:
        """The terms of single columns, for some records, and the column that each is of."""
        owner = np.repeat(np.arange(len(self.sizes)), self.widths)
        if not any(self.sizes):
            return values, owner
        terms = np.empty((len(values), owner.size), order="F")
        for k, j in enumerate(owner):
            column = values[:, j]
            terms[:, k] = column if self.sizes[j] == 0 else column == 1 + k - np.searchsorted(owner, j)
        return terms, owner


def designed(x: Array, y: Array, *, kinds: Sequence[str], names: Sequence[str], used: float = 1.0) -> Design:
    """The columns as they become terms: those of kind nominal by the number of their category.

    `used` is the share of the records that a model will see: a category is rare when few of them have it.
    """
    called = tuple(names) or tuple(str(j + 1) for j in range(x.shape[1]))
    nominal = [j for j, kind in enumerate(kinds) if kind == "nominal"]
    if nominal:
        x, y = x.copy(order="F"), y.copy(order="F")
    own = min(_OWN, max(_TERMS // max(len(nominal), 1), 2))
    sizes, pooled = [0] * x.shape[1], {}
    for j in nominal:
        codes = coded(x[:, j], y[:, j]).compact
        counts = np.bincount(codes.x, minlength=codes.size) + np.bincount(codes.y, minlength=codes.size)
        rare = _rare(np.asarray(counts * used, dtype=np.float64), own)
        place = _places(rare)
        x[:, j], y[:, j], sizes[j] = place[codes.x], place[codes.y], int(place.max()) + 1
        if rare.any():
            pooled[called[j]] = Pooled(int(rare.sum()), codes.size, int(counts[rare].sum()))
    return Design(x, y, tuple(sizes), called, pooled)


def _rare(counts: Array, own: int) -> NDArray[np.bool_]:
    """Which categories are taken as one, if there are any: those with few records, and all but the most frequent."""
    rare = np.zeros(counts.size, dtype=bool)
    if counts.size > min(_AS_IT_IS, own):
        rare = counts < _RARE
        rare[np.argsort(-counts, kind="stable")[own:]] = True
    return rare if rare.sum() > 1 else np.zeros(counts.size, dtype=bool)


def _places(rare: NDArray[np.bool_]) -> Rows:
    """The number of each category; the rare ones have one number together."""
    return np.unique(np.where(rare, rare.size, np.arange(rare.size)), return_inverse=True)[1]
