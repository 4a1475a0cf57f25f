"""Contingency tables: are combinations of categories, of up to three columns, as frequent as they were?

>>> import numpy as np
>>> x = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
>>> y = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])  # each column as before, together they are not
>>> contingency(x, y).details["by_columns"]["2"]["mean"]
0.5
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations, islice
from typing import Annotated, Any

import numpy as np

from rankveil.catalogue import Array, Range, Used, Value, measure
from rankveil.errors import NotApplicableError
from rankveil.execute import in_threads
from rankveil.measures._codes import (
    Apart,
    Coded,
    Codes,
    Flags,
    Tally,
    Weight,
    apart,
    coded,
    in_all,
    joined,
    positive,
    present,
    weight_of,
)

_WORST = 20
"""Tables that are listed, the largest distances first."""
_LARGE = 2**12
"""Cells of a table of two columns, above which those that are not empty are numbered before a third column comes."""

Columns = tuple[int, ...]
There = tuple[Flags | None, Flags | None]
"""Which original and which masked records have a column; None where all have."""


@measure(
    title="Contingency tables",
    source="Domingo-Ferrer and Torra 2001; Raab, Nowok and Dibben 2021",
    family="utility",
    better="lower",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    kinds=("ordinal", "nominal"),
    weighted=True,
    records="by pair",
)
def contingency(
    x: Array,
    y: Array,
    weight_x: Array | None = None,
    weight_y: Array | None = None,
    *,
    ways: Annotated[int, Range(1, 3), "tables of one up to so many columns"] = 3,
    most: Annotated[int, Range(1), "tables of one number of columns above which so many are taken, evenly"] = 1_000,
    names: tuple[str, ...] = (),
) -> Value:
    """Mean total variation distance of the joint shares over the tables of all one, two and three columns.

        distance of a table = 1/2 sum over its cells c of |p_c - p'_c|

    p_c is the share of cell c in the original, p'_c in the masked table. Where there
    are more than `most` tables of two or of three columns, that many are computed, at even steps in the order of the
    columns, and their mean stands for all. `expected` is about the value that two tables of independent records from
    one distribution would have: the more cells, the more chance alone moves. A column that is empty in the release has
    one category there that no original record has: every table with it is at 1.
    """
    weights = positive(weight_x), positive(weight_y)
    m = x.shape[1]
    chosen = {k: _evenly(m, k, most) for k in range(1, min(ways, m) + 1)}
    codes = in_threads(lambda j: coded(x[:, j], y[:, j]), range(m), size=x.size)
    there = [(present(x[:, [j]]), present(y[:, [j]])) for j in range(m)]
    wanted = [each for some in chosen.values() for each in some]
    made = _computed(codes, wanted, weights, there)
    if not made:
        raise NotApplicableError("no record has the values that it needs")
    empty = len(wanted) - len(made)
    by_columns = {
        str(k): _summary([made[each] for each in some if each in made], math.comb(m, k))
        for k, some in chosen.items()
        if any(each in made for each in some)
    }
    total = sum(part["tables"] for part in by_columns.values())
    value, expected = (
        math.fsum(part["tables"] * part[what] for part in by_columns.values()) / total for what in ("mean", "expected")
    )
    worst = sorted(made, key=lambda each: (-made[each].distance, len(each), each))[:_WORST]
    listed = [
        {
            "columns": [names[j] if names else str(j + 1) for j in each],
            "value": made[each].distance,
            "expected": made[each].expected,
            "cells": made[each].cells,
        }
        for each in worst
    ]
    details = {"expected": expected, "by_columns": by_columns, "worst": listed, "records": [len(x), len(y)]}
    notes = [f"{empty} tables are left out: no record has all their columns"] if empty else []
    notes += [
        f"of {part['tables']} tables of {k} columns {part['computed']} are computed, at even steps in the order of "
        "the columns"
        for k, part in by_columns.items()
        if len(chosen[int(k)]) < part["tables"]
    ]
    return Value(value, details, tuple(notes), _used(made, (weights[0], weights[1]), (len(x), len(y))))


def _used(made: Mapping[Columns, Apart], weights: tuple[Weight, Weight], sizes: tuple[int, int]) -> Used:
    """How many records the tables have."""
    sides = []
    for side, (weight, size) in enumerate(zip(weights, sizes, strict=True)):
        every = int(weight.counts.sum()) if isinstance(weight, Tally) else size
        some = [each.records[side] for each in made.values()]
        sides.append(Used(min(some), max(some), every))
    return sides[0] if sides[0] == sides[1] else replace(sides[0], masked=sides[1])


def _summary(some: Sequence[Apart], total: int) -> dict[str, Any]:
    """What tables of one number of columns come to."""
    distances, expected = [each.distance for each in some], [each.expected for each in some]
    means = {"mean": math.fsum(distances) / len(some), "expected": math.fsum(expected) / len(some)}
    return {"tables": total, "computed": len(some), **means, "max": max(distances)}


def _evenly(m: int, k: int, most: int) -> list[Columns]:
    """The tables of k of m columns; of more than `most` those in the middle of as many equal parts of their list."""
    total = math.comb(m, k)
    if total <= most:
        return list(combinations(range(m), k))
    wanted = [(2 * i + 1) * total // (2 * most) for i in range(most)]
    every = combinations(range(m), k)
    return [next(islice(every, here - before - 1, None)) for before, here in zip([-1, *wanted], wanted, strict=False)]


def _computed(
    codes: Sequence[Coded], tables: Sequence[Columns], weights: tuple[Weight, Weight], there: Sequence[There]
) -> dict[Columns, Apart]:
    """Each table's distance, over the records that have its columns, if there are any on both sides.

    What tables share but for their last column is put together once.
    """
    lasts: dict[Columns, list[int]] = {}
    for *before, last in tables:
        lasts.setdefault(tuple(before), []).append(last)

    def distance(columns: Columns, joint: Coded) -> list[tuple[Columns, Apart]]:
        rows = in_all([there[j][0] for j in columns]), in_all([there[j][1] for j in columns])
        first, second = (
            each if some is None else each[some] for each, some in zip((joint.x, joint.y), rows, strict=True)
        )
        own = [weight_of(weight, some) for weight, some in zip(weights, rows, strict=True)]
        counts = [_records(each, weight) for each, weight in zip((first, second), own, strict=True)]
        if not all(counts):
            return []
        found = apart(Coded(first, second, joint.size), *own)
        return [(columns, replace(found, records=(counts[0], counts[1])))]

    def compute(before: Columns) -> list[tuple[Columns, Apart]]:
        if not before:
            return [pair for last in lasts[before] for pair in distance((last,), codes[last])]
        base = reduce(joined, (codes[j] for j in before))
        # columns that depend on each other have far fewer combinations than there could be
        base = base.compact if base.few and base.size > _LARGE else base
        return [pair for last in lasts[before] for pair in distance((*before, last), joined(base, codes[last]))]

    size = codes[0].x.size * len(tables)
    return dict(pair for made in in_threads(compute, lasts, size=size) for pair in made)


def _records(codes: Codes, weight: Weight) -> int:
    """How many records there are; none where they have no weight."""
    if isinstance(weight, Tally):
        return int(weight.counts.sum())
    return codes.size if weight is None or np.any(weight > 0) else 0
