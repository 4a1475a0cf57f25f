"""All rows of a table, asked from those that are here.

A method that needs to know more than its own values asks `rows`: the mean of all of them, their order, the values of
others. In memory all rows are here, and the answers are at hand. Of a table in parts (`rankveil.partitions`), the same
method runs on every part, and `rows` brings together what the parts say. Sums are exact and draws belong to rows, so
that the release is the same, however a table is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankveil.execute import in_threads
from rankveil.moments import Summary, total
from rankveil.ranks import average_ranks, strict_order

Array = NDArray[np.float64]
Draws = NDArray[np.uint64]
Places = NDArray[np.int64]


class Mergeable(Protocol):
    """A small summary of some rows that can be merged with that of others."""

    def merged(self, other: Any, /) -> Any: ...


P = TypeVar("P", bound=Mergeable)
T = TypeVar("T")
R = TypeVar("R")
Work = Callable[[Sequence[Array]], tuple[Sequence[Array], Any]]
"""From columns of some records to other columns of these, and what else is to be told of them."""


class Awaited(Exception):
    """What was asked of all rows is not known yet; these are the contributions of the rows that are here."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        super().__init__("an answer is awaited")
        self.parts = dict(parts)


class Rows:
    """The rows of a table in memory: all of them are here."""

    alone = True
    """Whether all rows are here."""
    first = True
    """Whether the first part of the table is here."""
    start = 0
    """The first row that is here, counted over the whole table."""

    def each(self, function: Callable[[T, Rows], R], items: Mapping[str, T], *, size: int) -> list[R]:
        """What a function makes of each item; their names tell the questions that it asks of all rows apart."""
        return in_threads(lambda item: function(item, self), items.values(), size=size)

    def with_only(self, here: int) -> Rows:
        """The rows when so many are left here."""
        return self

    def merged(self, part: P) -> P:
        """What a summary of the rows that are here is for all of them."""
        return part

    # ---- numbers ----

    def count(self, here: int) -> int:
        """How many there are in all, of which so many are here."""
        return here

    def summary(self, x: Array) -> Summary:
        """Number, extremes and mean of all values."""
        return Summary.of_all(x)

    def mean(self, x: Array) -> float:
        """The mean."""
        return self.summary(x).mean

    def standard_deviation(self, x: Array) -> float:
        """The population standard deviation."""
        return self.standardised(x)[2]

    def standardised(self, x: Array) -> tuple[Array, float, float]:
        """(x - mean) / sd, 0 where all values are the same, and the mean and sd."""
        found = self.summary(x)
        gaps = found.gaps(x)  # in units of their scale: the difference of two numbers near the largest would overflow
        width = found.width(self.sums([lambda: gaps * gaps])[0])
        z = gaps / width if width > 0 else np.zeros(x.size)
        return z, found.mean, width * found.scale

    def sums(self, makes: Sequence[Callable[[], Array]], *, size: int = 0) -> list[float]:
        """The sums of what functions return for the rows that are here, of `size` values altogether."""
        return in_threads(lambda make: total(make()), makes, size=size)

    def tally(self, codes: NDArray[np.intp], size: int) -> Places:
        """How many there are of each code from 0 to size - 1."""
        return np.bincount(codes, minlength=size)

    # ---- order ----

    def smallest(self, x: Array, place: int) -> float:
        """The value at a place of the order, from 0."""
        return float(np.partition(x, place)[place]) + 0.0

    def average_ranks(self, x: Array) -> Array:
        """Ranks from 1 among all values, ties sharing their mean rank."""
        return average_ranks(x)

    def strict_places(self, x: Array, ties: Draws) -> Places:
        """The place of each value in the order of all values, from 0; ties by their draws."""
        found = np.empty(x.size, np.int64)
        found[strict_order(x, ties=ties)] = np.arange(x.size)
        return found

    def swapped(self, x: Array, ties: Draws, partner: Callable[[int], Iterable[Places]]) -> Array:
        """Each value replaced by the one at its partner's place in the order of all values; ties by their draws.

        `partner` is asked once, with the number of all values, and tells the places piece by piece.
        """
        order = strict_order(x, ties=ties)
        ordered, found = x[order], np.empty_like(x)
        ordered += 0.0  # -0 and 0 are one value: an order does not say which of them stood where
        found[order] = ordered[np.concatenate([np.empty(0, np.int64), *partner(x.size)])]
        return found

    def in_order_of(self, x: Array, keys: Array, ties: Draws) -> Array:
        """All values of x, the smallest where the smallest of the keys is, and so on; ties of keys by their draws."""
        found = np.empty_like(x)
        found[strict_order(keys, ties=ties)] = np.sort(x)
        found += 0.0  # -0 becomes 0, as in `swapped`
        return found

    def permuted(self, x: Array, draws: Draws) -> Array:
        """x[i] of all values for i from the row of the smallest draw to that of the largest."""
        return x[np.argsort(draws, kind="stable")]

    def places(self, draws: Draws) -> Places:
        """The place of each draw in the order of all draws, from 0; equal draws in the order of their rows."""
        found = np.empty(draws.size, np.int64)
        found[np.argsort(draws, kind="stable")] = np.arange(draws.size)
        return found

    # ---- records together ----

    def sample(self, columns: Sequence[Array], rows: Places) -> list[Array]:
        """The values of some rows of the whole table, which rise."""
        return [column[rows] for column in columns]

    def whole(self, columns: Sequence[Array], work: Work) -> tuple[Sequence[Array], Any]:
        """Work on all records at once, in one place: columns, and what was told."""
        return work(columns)

    def in_blocks(
        self, block: Places, columns: Sequence[Array], work: Callable[[int], Work], *, blocks: int
    ) -> tuple[list[Array], list[Any]]:
        """Work on blocks of records, each of them whole and in the order of rows: columns, and what was told.

        `block` is the number of each record's block, and `work(number)` what is to be done with that block.
        """
        order = np.argsort(block, kind="stable")
        ends = np.searchsorted(block[order], np.arange(blocks + 1))
        parts = [order[ends[k] : ends[k + 1]] for k in range(blocks)]

        def one(k: int) -> tuple[Sequence[Array], Any]:
            return work(k)([column[parts[k]] for column in columns])

        done = in_threads(one, range(blocks), size=block.size * max(len(columns), 1))
        found = [np.empty(block.size) for _ in done[0][0]]
        for rows, (made, _) in zip(parts, done, strict=True):
            for column, values in zip(found, made, strict=True):
                column[rows] = values
        return found, [told for _, told in done]


HERE = Rows()
"""The rows of a table in memory."""
