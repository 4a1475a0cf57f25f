"""Rescaling: give each masked column the mean and variance of the original."""

from __future__ import annotations

from typing import Any

from rankveil.catalogue import Array, Outcome, method
from rankveil.likelihood import Recomputed
from rankveil.rows import HERE, Rows


@method(
    title="Rescaling to the original's mean and variance",
    source="Domingo-Ferrer and Mateo-Sanz; section 5 of probabilistic information loss",
    kinds=("numeric",),
    post=True,
    by_parts=True,
    tells="every column's mean and variance are exactly the original's, before what was drawn is rounded to its grid",
)
def rescale(y: Array, original: Array, *, rows: Rows = HERE) -> Outcome:
    """y' = (y - mean_y) sd_x / sd_y + mean_x; a constant masked column can take the mean only."""
    (_, centre, spread), (_, mean, wanted) = rows.standardised(y), rows.standardised(original)
    notes = ("the masked column is constant: only its mean was restored",) if spread == 0 < wanted else ()
    factor = wanted / spread if spread > 0 else 0.0
    return Outcome((y - centre) * factor + mean, notes=notes)


@rescale.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Recomputed:
    """After steps that he can repeat he repeats this one; after draws it depends on all of them."""
    return Recomputed()
