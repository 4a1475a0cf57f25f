"""Contingency tables: are combinations of categories, of up to three columns, as frequent as they were?

>>> import numpy as np
>>> x = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
>>> y = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])  # each column as before, together they are not
>>> contingency(x, y).details["by_columns"]["2"]["mean"]
0.5
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import combinations, islice
from typing import Annotated, Any

from rankveil.catalogue import Array, Range, Value, measure
from rankveil.execute import in_threads
from rankveil.measures._codes import Apart, Coded, Weight, apart, coded, joined, positive

_WORST = 20
"""Tables that are listed, the largest distances first."""
_LARGE = 2**12
"""Cells of a table of two columns, above which those that are not empty are numbered before a third column comes."""

Columns = tuple[int, ...]


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
    made = _computed(codes, [each for some in chosen.values() for each in some], weights)
    by_columns = {str(k): _summary([made[each] for each in some], math.comb(m, k)) for k, some in chosen.items()}
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
    notes = [
        f"of {part['tables']} tables of {k} columns {part['computed']} are computed, at even steps in the order of "
        "the columns"
        for k, part in by_columns.items()
        if part["computed"] < part["tables"]
    ]
    return Value(value, details, tuple(notes))


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
    codes: Sequence[Coded], tables: Sequence[Columns], weights: tuple[Weight, Weight]
) -> dict[Columns, Apart]:
    """Each table's distance; what tables share but for their last column is put together once."""
    lasts: dict[Columns, list[int]] = {}
    for *before, last in tables:
        lasts.setdefault(tuple(before), []).append(last)

    def compute(before: Columns) -> list[tuple[Columns, Apart]]:
        if not before:
            return [((last,), apart(codes[last], *weights)) for last in lasts[before]]
        base = reduce(joined, (codes[j] for j in before))
        # columns that depend on each other have far fewer combinations than there could be
        base = base.compact if base.few and base.size > _LARGE else base
        return [((*before, last), apart(joined(base, codes[last]), *weights)) for last in lasts[before]]

    size = codes[0].x.size * len(tables)
    return dict(pair for made in in_threads(compute, lasts, size=size) for pair in made)
