"""The largest change of a rank correlation: does what goes together in the original still go together?

>>> import numpy as np
>>> x = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]])
>>> y = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 4.0], [4.0, 3.0]])  # rank correlation 1 before, 0.6 now
>>> round(correlation_change(x, y).value, 12)
0.4
"""

from __future__ import annotations

from typing import Any

from rankveil.catalogue import Array, Value, measure
from rankveil.errors import NotApplicableError, listing
from rankveil.measures._pairwise import Pair, RankCorrelations

_WORST = 20
"""Pairs of columns that are listed, the largest changes first."""


@measure(
    title="Largest change of a rank correlation",
    source="Spearman 1904; for released data Domingo-Ferrer and Torra 2001",
    family="utility",
    better="lower",
    bounds=(0.0, 2.0),
    mapping=False,
    equal=False,
    pairwise=True,
    weighted=True,
)
def correlation_change(
    x: Array,
    y: Array,
    weight_x: Array | None = None,
    weight_y: Array | None = None,
    *,
    names: tuple[str, ...] = (),
) -> Value:
    """The largest change of Spearman's rank correlation between two columns.

        change = max over the pairs of columns of |r - r'|

    r is the rank correlation in the original over its records that have both columns, r' that in the release over the
    records that have both there; ties share their mean rank. With weights, a record of weight w counts as w equal ones.

    A column that is constant or empty in the release has no correlations there any more: r' counts as 0. A pair that
    has no rank correlation in the original has none to keep, and is left out.
    """
    if x.shape[1] < 2:
        raise NotApplicableError("it compares pairs of columns, and there is only one")
    before, after = RankCorrelations.of(x, weight_x), RankCorrelations.of(y, weight_y)
    return largest_change(before, after, names=names or tuple(str(j + 1) for j in range(x.shape[1])))


def largest_change(before: RankCorrelations, after: RankCorrelations, *, names: tuple[str, ...]) -> Value:
    """The measure, from the correlations of both tables."""
    there = {pair: r for pair, r in before.values.items() if r is not None}
    if not there:
        raise NotApplicableError("no two columns vary together in the original: there is no correlation to keep")
    made = {pair: abs(r - (after.values[pair] or 0.0)) for pair, r in there.items()}
    worst = sorted(made, key=lambda pair: (-made[pair], pair))

    def described(pair: Pair) -> dict[str, Any]:
        return {
            "a": names[pair[0]],
            "b": names[pair[1]],
            "value": made[pair],
            "original": there[pair],
            "masked": after.values[pair],
            "records": [before.records[pair], after.records[pair]],
        }

    details = {
        "pair": described(worst[0]),
        "per_pair": [described(pair) for pair in worst[:_WORST]],
        "pairs": len(made),
        "mean": sum(made.values()) / len(made),
        "records": [[least(side.records[pair] for pair in there) for side in (before, after)] for least in (min, max)],
    }
    return Value(made[worst[0]], details, _notes(before, after, names))


def _notes(before: RankCorrelations, after: RankCorrelations, names: tuple[str, ...]) -> tuple[str, ...]:
    notes = []
    asked = {pair for pair, r in before.values.items() if r is not None}
    for side, some, text in (
        (before, before.values.keys(), "left out, constant or empty in the original"),
        (after, asked, "constant or empty in the release, where correlations count as 0"),
    ):
        without = sorted(pair for pair in some if side.values[pair] is None)
        alone = sorted({j for pair in without for j in pair if not side.varies[j]})
        called = [names[j] for j in alone]
        called += [f"{names[a]} with {names[b]}" for a, b in without if not {a, b} & set(alone)]
        if called:
            notes.append(f"{text}: {listing(called, most=10)}")
    return tuple(notes)
