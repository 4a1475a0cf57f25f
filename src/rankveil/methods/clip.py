"""Clipping: no masked value outside a range."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from rankveil.catalogue import Array, Outcome, method
from rankveil.errors import ParameterError


@method(
    title="Clipping to a range",
    source="common practice",
    kinds=("numeric",),
    post=True,
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
    lower: Annotated[float | None, "the least value; none for the original's own, which discloses it"] = None,
    upper: Annotated[float | None, "the largest value; none for the original's own, which discloses it"] = None,
) -> Outcome:
    """Values below `lower` or above `upper` become that end; ends that are not given are the original's."""
    low = float(original.min()) if lower is None else lower
    high = float(original.max()) if upper is None else upper
    if low > high:
        raise ParameterError(f"clip: lower ({low:g}) is above upper ({high:g})")
    clipped = np.clip(y, low, high)
    return Outcome(clipped, counts={"clipped": int(np.sum(clipped != y))})
