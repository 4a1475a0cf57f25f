"""Permutation level: how many ranks the records of an attribute moved."""

from __future__ import annotations

from rankveil.catalogue import EVERY_KIND, Array, Value, measure
from rankveil.ranks import rank_changes


@measure(
    title="Permutation level",
    source="Muralidhar and Domingo-Ferrer 2015",
    family="confidentiality",
    better="higher",
    bounds=(0.0, 1.0),
    per="column",
    kinds=EVERY_KIND,
)
def permutation_level(rank_x: Array, rank_y: Array) -> Value:
    """Mean of |rank(x_i) - rank(y_i)| / (n - 1); the maximum stands in the details. One record cannot move: 0."""
    moved = rank_changes(rank_x, rank_y) / max(rank_x.size - 1, 1)
    return Value(float(moved.mean()), details={"mean": float(moved.mean()), "maximum": float(moved.max())})
