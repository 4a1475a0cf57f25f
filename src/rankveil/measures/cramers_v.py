"""Cramer's V: are categorical columns as strongly associated as they were?

>>> import numpy as np
>>> x = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
>>> y = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
>>> cramers_v(x, y).value  # one column told the other, now it tells nothing
1.0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, Any

import numpy as np

from rankveil.catalogue import Array, Value, measure
from rankveil.errors import NotApplicableError
from rankveil.execute import in_threads
from rankveil.measures._codes import (
    Coded,
    Codes,
    Flags,
    Weight,
    coded,
    fits,
    in_all,
    positive,
    present,
    shares,
    weight_of,
    worth,
)

_WORST = 20
"""Pairs of columns that are listed, the largest differences first."""


@measure(
    title="Difference of Cramer's V",
    source="Cramer 1946; Bergsma 2013",
    family="utility",
    better="lower",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    kinds=("ordinal", "nominal"),
    weighted=True,
    records="by pair",
)
def cramers_v(
    x: Array,
    y: Array,
    weight_x: Array | None = None,
    weight_y: Array | None = None,
    *,
    corrected: Annotated[bool, "less the part of V that chance alone would give (Bergsma 2013)"] = False,
    names: tuple[str, ...] = (),
) -> Value:
    """Mean of |V in the original - V in the masked table| over the pairs of columns.

    V = sqrt(phi^2 / min(r - 1, c - 1)), phi^2 = sum of (p_ij - p_i p_j)^2 / (p_i p_j), r and c the numbers of
    categories that are there. A column that is constant in one table tells nothing of another: V is 0 there. One that
    is constant in both is left out.
    """
    called = [names[j] if names else str(j + 1) for j in range(x.shape[1])]
    codes = in_threads(lambda j: coded(x[:, j], y[:, j]).compact, range(len(called)), size=x.size)
    sides = tuple(
        _Side.of(
            [getattr(each, side) for each in codes], codes, weight, [present(values[:, [j]]) for j in range(len(codes))]
        )
        for side, values, weight in (("x", x, weight_x), ("y", y, weight_y))
    )
    kept = [j for j in range(len(called)) if np.count_nonzero(sides[0].margins[j] + sides[1].margins[j]) > 1]
    if len(kept) < 2:
        raise NotApplicableError("it compares pairs of columns, and fewer than two have more than one category")
    every = list(combinations(kept, 2))
    made = in_threads(
        lambda pair: [side.v(*pair, corrected=corrected) for side in sides], every, size=len(x) * len(every)
    )
    both = {pair: (a, b) for pair, (a, b) in zip(every, made, strict=True) if a is not None and b is not None}
    if not both:
        raise NotApplicableError("no record has the values that it needs")
    pairs, found = list(both), list(both.values())
    apart = [abs(before - after) for before, after in found]
    details: dict[str, Any] = {"columns": [called[j] for j in kept], "pairs": len(pairs)}
    for which, what in enumerate(("original", "masked")):
        details[what] = _matrix(kept, dict(zip(pairs, (each[which] for each in found), strict=True)), sides[which])
    worst = [(pairs[i], *found[i], apart[i]) for i in np.argsort(-np.array(apart), kind="stable")[:_WORST]]
    details["per_pair"] = [
        {"a": called[a], "b": called[b], "value": value, "original": before, "masked": after}
        for (a, b), before, after, value in worst
    ]
    notes = _said(called, kept, sides)
    if len(pairs) < len(every):
        notes = (*notes, f"{len(every) - len(pairs)} pairs of columns have no record in common and are left out")
    return Value(math.fsum(apart) / len(apart), details, notes)


@dataclass(frozen=True, eq=False)
class _Side:
    """One of the two tables: its columns as codes, and the share of each category."""

    columns: list[Codes]
    codes: Sequence[Coded]
    there: list[Flags | None]
    """Which records have each column; None where all have."""
    margins: list[Array]
    weight: Weight
    records: float
    """How many there are, or are worth."""

    @classmethod
    def of(
        cls, columns: list[Codes], codes: Sequence[Coded], weight: Weight, there: Sequence[Flags | None] = ()
    ) -> _Side:
        weight, there = positive(weight), list(there) or [None] * len(columns)
        margins = [
            shares(column if some is None else column[some], each.size, weight_of(weight, some))
            for column, each, some in zip(columns, codes, there, strict=True)
        ]
        return cls(columns, codes, there, margins, weight, worth(columns[0].size, weight))

    def pair(self, a: int, b: int) -> _Side | None:
        """Two columns alone, over the records that have both; None where there are none."""
        there = in_all([self.there[j] for j in (a, b)])
        if there is None:
            return replace(self, columns=[self.columns[j] for j in (a, b)], margins=[self.margins[j] for j in (a, b)])
        weight = weight_of(self.weight, there)
        if not there.any() or (isinstance(weight, np.ndarray) and not np.any(weight > 0)):
            return None
        return _Side.of([self.columns[j][there] for j in (a, b)], [self.codes[j] for j in (a, b)], weight)

    def constant(self, j: int) -> bool:
        """Whether column j has one category only."""
        return bool(np.count_nonzero(self.margins[j]) < 2)

    def v(self, a: int, b: int, *, corrected: bool) -> float | None:
        """Cramer's V of two columns over the records that have both, if there are any; 0 where one is constant."""
        both = self.pair(a, b)
        return None if both is None else both.of_both(0, 1, corrected=corrected)

    def of_both(self, a: int, b: int, *, corrected: bool) -> float:
        """Cramer's V of two columns that all records have; 0 where one is constant."""
        if self.constant(a) or self.constant(b):
            return 0.0
        square = self._phi_squared(a, b)
        free = [np.count_nonzero(self.margins[j]) - 1.0 for j in (a, b)]
        if corrected:
            if self.records <= 1 + max(free):  # as many categories as records: any tables would be associated
                return 0.0
            square -= free[0] * free[1] / (self.records - 1)
            free = [each - each**2 / (self.records - 1) for each in free]
        return math.sqrt(min(max(square / min(free), 0.0), 1.0))

    def _phi_squared(self, a: int, b: int) -> float:
        """Over the cells that some record is in; an empty one adds p_i p_j, and all p_i p_j add up to 1."""
        first, second = self.margins[a], self.margins[b]
        cells, p = self._cells(self.columns[a] * second.size + self.columns[b], first.size * second.size)
        of_a, of_b = first[cells // second.size], second[cells % second.size]
        # p_i (p_ij / p_i - p_j)^2 / p_j, because p_i p_j of two tiny weights would vanish
        square = float(np.sum(of_a * ((p / of_a - of_b) / np.sqrt(of_b)) ** 2))
        if p.size == np.count_nonzero(first) * np.count_nonzero(second):
            return square
        return square + max(1.0 - float(np.sum(of_a * of_b)), 0.0)

    def _cells(self, codes: Codes, size: int) -> tuple[Codes, Array]:
        """The cells that are not empty, and their shares."""
        if fits(size, records=codes.size):
            p = shares(codes, size, self.weight)
            cells = np.flatnonzero(p)
            return cells, p[cells]
        cells, which = np.unique(codes, return_inverse=True)
        p = shares(which, cells.size, self.weight)
        return cells[p > 0], p[p > 0]


def _matrix(kept: list[int], values: dict[tuple[int, int], float], side: _Side) -> list[list[float | None]]:
    """V of all pairs that have records; that of a column with itself is 1, or 0 when it is constant."""
    every = {(j, j): 0.0 if side.constant(j) else 1.0 for j in kept} | values
    return [[every.get((min(a, b), max(a, b))) for b in kept] for a in kept]


def _said(called: list[str], kept: list[int], sides: tuple[_Side, ...]) -> tuple[str, ...]:
    notes = [f"column {name} is constant in both tables: left out" for j, name in enumerate(called) if j not in kept]
    for what, side in zip(("original", "masked"), sides, strict=True):
        alone = [called[j] for j in kept if side.constant(j)]
        notes += [f"column {name} is constant in the {what} table: its associations are 0 there" for name in alone]
    return tuple(notes)
