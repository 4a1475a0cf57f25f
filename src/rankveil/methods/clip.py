"""Clipping: no masked value outside a range."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from rankveil import dates
from rankveil.catalogue import DATED, Array, Outcome, method
from rankveil.errors import ParameterError
from rankveil.likelihood import Recomputed
from rankveil.rows import HERE, Rows


@method(
    title="Clipping to a range",
    source="common practice",
    kinds=("numeric",),
    post=True,
    by_parts=True,
    from_data={
        "lower": "the smallest original value is published when a masked value is clipped to it",
        "upper": "the largest original value is published when a masked value is clipped to it",
    },
    tells="values outside the range were moved to its ends, which shrinks variances a little",
)
def clip(
    y: Array,
    original: Array,
    *,
    lower: Annotated[float | None, DATED, "the least value; none for the original's own, which discloses it"] = None,
    upper: Annotated[float | None, DATED, "the largest value; none for the original's own, which discloses it"] = None,
    temporal: Any = None,
    rows: Rows = HERE,
) -> Outcome:
    """Values below `lower` or above `upper` become that end: y' = min(max(y, lower), upper).

    Ends that are not given are the original's."""
    least, largest = dates.limit("lower", lower, temporal), dates.limit("upper", upper, temporal)
    ends = rows.summary(original)
    low = ends.low if least is None else least
    high = ends.high if largest is None else largest
    if low > high:
        shown = ["none, the original's own" if end is None else _shown(end) for end in (lower, upper)]
        raise ParameterError(f"clip: lower ({shown[0]}) is above upper ({shown[1]})")
    clipped = np.clip(y, low, high)
    return Outcome(clipped, counts={"clipped": int(np.sum(clipped != y))})


def _shown(limit: float | str) -> str:
    return limit if isinstance(limit, str) else f"{limit:g}"


@clip.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Recomputed:
    """He applies the step to the original himself."""
    return Recomputed()
