"""What measures of pairs of columns share: each pair on the records that have both, whatever else is missing there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array
from rankveil.execute import in_threads
from rankveil.moments import counted, scale_of
from rankveil.sorting import order_of
from rankveil.summaries.products import cross_products

Codes = NDArray[np.int64]
Present = NDArray[np.bool_]
Pair = tuple[int, int]

_PLACES = 128
"""Binary places of sums of squares whose roots are taken."""


@dataclass(frozen=True, eq=False)
class RankCorrelations:
    """Spearman's correlation of every two columns, on the records that have both."""

    values: dict[Pair, float | None]
    """None where a column is constant among those records, or there is no such record."""
    records: dict[Pair, int]
    varies: tuple[bool, ...]
    """Which columns have more than one value."""

    @classmethod
    def of(cls, x: Array, weight: Array | None = None) -> RankCorrelations:
        """Those of a table in which missing values are NaN.

        Records of weight w count as w equal records: a value's rank is the weight of the smaller ones and half that of
        the equal ones.
        """
        x, weight = counted(x, weight)
        weight = None if weight is None else weight / scale_of(weight)
        present = by_present(x)
        codes = in_threads(lambda j: ordered_codes(x[:, j]), range(x.shape[1]), size=x.size)
        values: dict[Pair, float | None] = {}
        records: dict[Pair, int] = {}

        def compute(group: Group) -> Array | None:
            some = [codes[j] if group.all else codes[j][group.rows] for j in group.columns]
            if some[0].size == 0:
                return None
            return _correlations(some, weight if weight is None or group.all else weight[group.rows])

        groups = groups_of(present)
        for group, found in zip(groups, in_threads(compute, groups, size=x.size * x.shape[1]), strict=True):
            for a, b in group.pairs:
                value = math.nan if found is None else found[group.columns.index(a), group.columns.index(b)]
                values[a, b] = None if math.isnan(value) else float(value)
                records[a, b] = group.count
        return cls(values, records, tuple(bool(each.max(initial=-1) > 0) for each in codes))


@dataclass(frozen=True, eq=False)
class Group:
    """Pairs of columns that the same records have."""

    pairs: tuple[Pair, ...]
    rows: Present
    count: int

    @property
    def all(self) -> bool:
        """Whether these are all records."""
        return self.count == self.rows.size

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns of the pairs, in order."""
        return tuple(sorted({j for pair in self.pairs for j in pair}))


def by_present(x: Array) -> list[Present]:
    """For each column which records have it; one array for columns that the same records have."""
    known: dict[bytes, Present] = {}
    made = []
    for j in range(x.shape[1]):
        there = ~np.isnan(x[:, j])
        made.append(known.setdefault(there.tobytes(), there))
    return made


def groups_of(present: Sequence[Present]) -> list[Group]:
    """Every two columns once, those that the same records have together."""
    which = [id(each) for each in present]
    found: dict[tuple[int, ...], list[Pair]] = {}
    for a, b in combinations(range(len(present)), 2):
        found.setdefault(tuple(sorted({which[a], which[b]})), []).append((a, b))
    made = []
    for pairs in found.values():
        a, b = pairs[0]
        rows = present[a] & present[b]
        made.append(Group(tuple(pairs), rows, int(np.count_nonzero(rows))))
    return made


def ordered_codes(x: Array) -> Codes:
    """Whole numbers from 0 in the order of the values, -1 for a missing one.

    >>> ordered_codes(np.array([2.5, np.nan, 1.0, 2.5]))
    array([ 1, -1,  0,  1])
    """
    made = np.full(x.size, -1, np.int64)
    there = np.flatnonzero(~np.isnan(x))
    if there.size == 0:
        return made
    values = x[there]
    order = order_of(values)
    ordered = values[order]
    number = np.concatenate(([0], np.cumsum(ordered[1:] != ordered[:-1])))
    made[there[order]] = number
    return made


def _correlations(columns: Sequence[Codes], weight: Array | None) -> Array:
    """The rank correlations of columns given by ordered codes; NaN for a constant one."""
    ranks = np.column_stack([_centred(codes, weight) for codes in columns])
    if weight is None:
        exact = cross_products(np.asfortranarray(ranks), reach=len(ranks))
        spread = [math.isqrt(int(own) << _PLACES) for own in np.diagonal(exact)]
        made = [[_ratio(int(exact[i, j]), a, b) for j, b in enumerate(spread)] for i, a in enumerate(spread)]
        return np.array(made)
    products = (ranks * weight[:, None]).T @ ranks
    spread_of = np.sqrt(np.diagonal(products))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = products / spread_of / spread_of[:, None]
    return np.where(np.isfinite(found), np.clip(found, -1.0, 1.0), np.nan)


def _ratio(product: int, a: int, b: int) -> float:
    """The correlation from whole numbers; the roots have half as many binary places as `_PLACES`."""
    return min(max((product << _PLACES) / (a * b), -1.0), 1.0) if a and b else math.nan


def _centred(codes: Codes, weight: Array | None) -> Array:
    """Average ranks around their mean: doubled without weights, with them as shares of the whole weight."""
    counts = np.bincount(codes, weights=weight)
    upto = np.cumsum(counts)
    middle = 2 * upto - counts - upto[-1]
    if weight is not None:
        middle = np.where(counts == upto[-1], 0.0, middle / upto[-1])
    return np.asarray(middle[codes], np.float64)
