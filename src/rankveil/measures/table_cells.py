"""Cells of the two-way tables: which counts can be read from the release as from the original?

>>> import numpy as np
>>> x = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [100, 100, 100, 100], axis=0)
>>> y = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [96, 104, 90, 110], axis=0)
>>> table_cells(x, y).value  # 4 % are within 5 %, 10 % are not
0.5
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from rankveil.catalogue import EVERY_KIND, Array, Range, Value, measure
from rankveil.errors import NotApplicableError, listing
from rankveil.execute import in_threads
from rankveil.measures._codes import Codes, coded, fits, positive, worth
from rankveil.measures._pairwise import Pair, Present, by_present, groups_of
from rankveil.moments import counted, quantiles
from rankveil.sorting import in_order, order_of

_WORST = 20
"""Tables that are listed, the smallest shares first."""
_ROUNDING = 1e-9
"""By so much of itself a change may exceed the limit: weights are not whole numbers."""


@measure(
    title="Cells of two-way tables within 5 %",
    source="after the tabular comparisons of Domingo-Ferrer and Torra 2001",
    family="utility",
    better="higher",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    pairwise=True,
    kinds=EVERY_KIND,
    weighted=True,
)
def table_cells(
    level_x: Array,
    y: Array,
    weight_x: Array | None = None,
    weight_y: Array | None = None,
    *,
    within: Annotated[float, Range(0, 100), "a cell is kept if its share changes by at most so many percent"] = 5.0,
    classes: Annotated[int, Range(2, 100), "classes of numbers and dates, by quantiles of the original"] = 5,
    names: tuple[str, ...] = (),
    kinds: tuple[str, ...] = (),
) -> Value:
    """The share of the cells of a two-way table that are within 5 %, the mean over the tables of every two columns.

        a cell c is kept if |p'_c - p_c| <= 0.05 p_c
        share of a table = kept cells / cells that a record is in, in the original or in the release

    p_c is the cell's share of the original records that have both columns, p'_c that of the released ones; by weights
    where there are some. Categories are as they are. Numbers and dates are in classes whose limits are quantiles of the
    original, halfway to the next larger value; where there are no more values than classes, each has its own. What was
    recoded is compared at the level at which it was released, in groups and bands.

    A cell that the release invents is not kept, nor is one that it has lost.
    """
    x = level_x
    m = x.shape[1]
    called = names or tuple(str(j + 1) for j in range(m))
    kinds = kinds or ("nominal",) * m
    (x, weight_x), (y, weight_y) = counted(x, weight_x), counted(y, weight_y)
    both = in_threads(
        lambda j: _coded(x[:, j], y[:, j], weight_x, classes=classes if kinds[j] == "numeric" else None),
        range(m),
        size=x.size,
    )
    kept = [j for j in range(m) if both[j].size > 1]
    if len(kept) < 2:
        raise NotApplicableError("it compares tables of two columns, and fewer than two have more than one class")
    columns = [both[j] for j in kept]
    sides = _Side.of([each.x for each in columns], weight_x), _Side.of([each.y for each in columns], weight_y)
    tables = _tables(sides, [each.size for each in columns], within / 100)
    left_out = [name for j, name in enumerate(called) if j not in kept]
    return _value(tables, tuple(called[j] for j in kept), left_out)


@dataclass(frozen=True, eq=False)
class _Coded:
    """The classes of a column in both tables: whole numbers from 0 and below `size`, -1 where the value is missing."""

    x: Codes
    y: Codes
    size: int


@dataclass(frozen=True, eq=False)
class _Table:
    """A two-way table, before and after."""

    cells: int
    kept: int
    by_records: float
    """The share of the original records that are in cells that are kept."""
    expected: float
    """The share of cells that is about kept between two tables of independent records from one population."""
    records: tuple[int, int]

    @property
    def share(self) -> float:
        """The share of the cells that are kept."""
        return self.kept / self.cells


@dataclass(frozen=True, eq=False)
class _Side:
    """One of the two tables."""

    columns: list[Codes]
    weight: Array | None
    present: list[Present]

    @classmethod
    def of(cls, columns: list[Codes], weight: Array | None) -> _Side:
        there = by_present(np.column_stack([np.where(codes < 0, np.nan, 0.0) for codes in columns]))
        return cls(columns, None if weight is None else _positive(weight), there)

    def cells(self, pair: Pair, sizes: Sequence[int], rows: Present | None) -> tuple[Codes, Array | None]:
        """The cells of the records that have both columns, and their weights."""
        a, b = (self.columns[j] if rows is None else self.columns[j][rows] for j in pair)
        weight = self.weight if self.weight is None or rows is None else self.weight[rows]
        return a * sizes[pair[1]] + b, weight


def _positive(weight: Array) -> Array:
    found = positive(weight)
    assert isinstance(found, np.ndarray)
    return found


def _tables(sides: tuple[_Side, _Side], sizes: Sequence[int], within: float) -> dict[Pair, _Table]:
    rows: list[dict[Pair, Present | None]] = []
    for side in sides:
        groups = groups_of(side.present)
        rows.append({pair: None if group.all else group.rows for group in groups for pair in group.pairs})
    pairs = list(rows[0])

    def compute(pair: Pair) -> _Table | None:
        found = [side.cells(pair, sizes, some[pair]) for side, some in zip(sides, rows, strict=True)]
        return _compared(*found, size=sizes[pair[0]] * sizes[pair[1]], within=within)

    records = sides[0].columns[0].size + sides[1].columns[0].size
    made = in_threads(compute, pairs, size=records * len(pairs))
    return {pair: table for pair, table in zip(pairs, made, strict=True) if table is not None}


def _compared(
    before: tuple[Codes, Array | None], after: tuple[Codes, Array | None], *, size: int, within: float
) -> _Table | None:
    """The cells of a table, or None where no original record has both columns."""
    (x, weight_x), (y, weight_y) = before, after
    if x.size == 0:
        return None
    if not fits(size, records=x.size + y.size):
        cells, which = np.unique(np.concatenate((x, y)), return_inverse=True)
        x, y, size = which[: x.size], which[x.size :], cells.size
    first, second = np.bincount(x, weights=weight_x, minlength=size), np.bincount(y, weights=weight_y, minlength=size)
    occupied = (first > 0) | (second > 0)
    total = first.sum(), second.sum()
    first, second = first[occupied], second[occupied]
    if total[1] > 0:
        # p'_c / p_c - 1 without a division: exact for counts
        change = np.abs(second * float(total[0]) - first * float(total[1]))
        kept = (first > 0) & (change <= within * first * float(total[1]) * (1 + _ROUNDING))
    else:
        kept = np.zeros(first.size, np.bool_)
    share = float(first[kept].sum() / total[0])
    expected = 0.0
    if total[1] > 0:
        expected = _by_chance(first / total[0], worth(x.size, weight_x), worth(y.size, weight_y), within=within)
    return _Table(first.size, int(np.count_nonzero(kept)), min(share, 1.0), expected, (x.size, y.size))


def _by_chance(p: Array, n: float, m: float, *, within: float) -> float:
    """The mean over the cells of P(|N(0, 1)| <= within / s); s^2 = (1 - p) / p (1 / n + 1 / m), variance of p' / p."""
    from scipy.special import ndtr

    there = p > 0
    spread = np.sqrt(np.maximum((1 - p[there]) / p[there], 0.0) * (1 / n + 1 / m))
    kept = np.ones(spread.size)
    kept[spread > 0] = 2 * ndtr(within / spread[spread > 0]) - 1
    return float(kept.sum()) / p.size


def _coded(x: Array, y: Array, weight: Array | None, *, classes: int | None) -> _Coded:
    """Categories by the numbers of their values, numbers by the classes that they are in."""
    here, there = ~np.isnan(x), ~np.isnan(y)
    values, others = x[here], y[there]
    if values.size == 0:
        return _Coded(np.full(x.size, -1), np.full(y.size, -1), 0)
    if classes is None:
        both = coded(values, others).compact
        found, size = [both.x, both.y], both.size
    else:
        limits = limits_of(values, None if weight is None else weight[here], classes=classes)
        found = [np.searchsorted(limits, each, side="right").astype(np.int64) for each in (values, others)]
        size = limits.size + 1
    codes = []
    for column, some, part in zip((x, y), (here, there), found, strict=True):
        made = np.full(column.size, -1, np.int64)
        made[some] = part
        codes.append(made)
    return _Coded(codes[0], codes[1], size)


def limits_of(values: Array, weight: Array | None, *, classes: int) -> Array:
    """Where classes of numbers end: halfway from an original value to the next larger one, by quantiles.

    >>> limits_of(np.array([1.0, 1.0, 2.0, 2.0, 6.0, 9.0]), None, classes=2)
    array([4.])
    """
    if weight is None:
        ordered = in_order(values)
    else:
        order = order_of(values)
        ordered, weight = values[order], weight[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    different = ordered[starts]
    last = np.arange(different.size)
    if different.size > classes:
        found = quantiles(ordered, np.arange(1, classes) / classes, weight)
        last = np.unique(np.searchsorted(different, found, side="right") - 1)
    last = last[last < different.size - 1]
    low, high = different[last], different[last + 1]
    middle = low / 2 + high / 2
    return np.where(middle > low, middle, high)


def _value(tables: dict[Pair, _Table], names: tuple[str, ...], left_out: list[str]) -> Value:
    if not tables:
        raise NotApplicableError("no original record has values in two of the columns")
    worst = sorted(tables, key=lambda pair: (tables[pair].share, pair))

    def described(pair: Pair) -> dict[str, Any]:
        table = tables[pair]
        return {
            "a": names[pair[0]],
            "b": names[pair[1]],
            "value": table.share,
            "cells": table.cells,
            "kept": table.kept,
            "by_records": table.by_records,
            "expected": table.expected,
            "records": list(table.records),
        }

    some = list(tables.values())
    used = [[each.records[side] for each in some] for side in (0, 1)]
    details = {
        "worst": described(worst[0]),
        "per_pair": [described(pair) for pair in worst[:_WORST]],
        "tables": len(some),
        "cells": sum(each.cells for each in some),
        "kept": sum(each.kept for each in some),
        "by_records": math.fsum(each.by_records for each in some) / len(some),
        "expected": math.fsum(each.expected for each in some) / len(some),
        "records": [[least(side) for side in used] for least in (min, max)],
    }
    notes = []
    if left_out:
        notes.append(f"left out, of one class only or without a value: {listing(left_out, most=10)}")
    gone = [pair for pair, table in tables.items() if table.records[1] == 0]
    if gone:
        called = listing([f"{names[a]} by {names[b]}" for a, b in gone], most=10)
        notes.append(f"no released record has both columns, so no cell of the table is kept: {called}")
    return Value(math.fsum(each.share for each in some) / len(some), details, tuple(notes))
