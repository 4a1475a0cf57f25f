"""Confidence interval overlap: whether a regression on the release would tell what one on the original tells.

>>> import numpy as np
>>> x = np.array([[1.0, 1.0], [2.0, 2.0], [4.0, 3.0], [3.0, 4.0], [6.0, 5.0]])
>>> ci_overlap(x, x, names=("INCOME", "AGE"), target=0).value
1.0
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from rankveil.catalogue import Array, Range, Value, measure
from rankveil.errors import NotApplicableError, listing
from rankveil.measures._regression import Intervals, regressions
from rankveil.moments import counted


@measure(
    title="Overlap of confidence intervals of a regression",
    source="Karr, Kohnen, Oganian, Reiter and Sanil 2006",
    family="utility",
    better="higher",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    weighted=True,
)
def ci_overlap(
    x: Array,
    y: Array,
    weight_x: Array | None = None,
    weight_y: Array | None = None,
    *,
    level: Annotated[float, Range(1, 99.99), "confidence level of the intervals, in percent"] = 95.0,
    intercept: Annotated[bool, "whether the intercept counts as a coefficient too"] = False,
    names: tuple[str, ...] = (),
    target: int | None,
) -> Value:
    """How far the confidence intervals of the regression of the target on the rest overlap, over the slopes.

        overlap = mean over the slopes of (o / l + o / l') / 2

    l and l' are the lengths of an interval from the original and from the masked table, o the length that they share.

    Disjoint intervals count 0 (Karr et al. let them be negative). The intercept, which moves with the mean of the
    target and with nothing else, does not count unless asked for; it is the expected target of a record with the
    original's means, so it does not depend on where the zero of a unit lies. Columns that depend on others in the
    original are left out of both regressions. A column that is constant or dependent only in the masked table has no
    interval there, and counts 0. Of exact fits, whose intervals have no length, equal ones count 1, others 0. Records
    with weights are fitted by weighted least squares, with intervals that hold for any sampling with these weights.
    """
    (x, weight_x), (y, weight_y) = counted(x, weight_x), counted(y, weight_y)
    column = stated_target(x, target)
    rest = np.delete(np.arange(x.shape[1]), column)
    found = regressions(x, y, weight_x, weight_y, column=column, rest=rest, level=level)
    original, masked, kept, overlap = found.original, found.masked, found.kept, found.overlap
    called = list(names) or [str(j + 1) for j in range(x.shape[1])]
    shown = [
        {"overlap": float(overlap[i]), "original": original.ends(i), "masked": masked.ends(i)}
        for i in range(overlap.size)
    ]
    coefficients = {called[j]: shown[i] for i, j in enumerate(kept, start=1)}
    details: dict[str, Any] = {
        "per_attribute": {name: each["overlap"] for name, each in coefficients.items()},
        "coefficients": coefficients,
        "intercept": shown[0],
        "units": "standard deviations of the original",
        "explained": {"original": original.share, "masked": masked.share},
        "left_out": [called[j] for j in rest if j not in kept],
    }
    taken = overlap if intercept else overlap[1:]
    return Value(float(np.mean(taken)), details, _notes(details, original, masked))


def stated_target(x: Array, target: int | None) -> int:
    """The column of the stated use, or why there is none."""
    if target is None:
        raise NotApplicableError("name the target with --target")
    if x.shape[1] < 2:
        raise NotApplicableError("there is no other column to explain the target by")
    if np.all(x[:, target] == x[0, target]):
        raise NotApplicableError("the target is constant in the original, so there is nothing to explain")
    return target


def _notes(details: dict[str, Any], original: Intervals, masked: Intervals) -> tuple[str, ...]:
    notes = []
    if details["left_out"]:
        names = listing(details["left_out"], most=10)
        notes.append(f"left out of both regressions, constant or dependent on other columns: {names}")
    lost = [name for name, each in details["coefficients"].items() if each["masked"] is None]
    if lost:
        notes.append(f"count 0, constant or dependent on other columns in the masked table: {listing(lost, most=10)}")
    for what, side in (("original", original), ("masked", masked)):
        if np.nanmax(side.half) == 0:
            notes.append(f"the {what} table fits exactly, so its intervals have no length")
    return tuple(notes)
