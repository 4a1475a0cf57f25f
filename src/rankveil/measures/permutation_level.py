"""Permutation level: how many ranks the records of an attribute moved."""

from __future__ import annotations

from rankveil.catalogue import EVERY_KIND, Value, measure
from rankveil.summaries.movements import Movements


@measure(
    title="Permutation level",
    source="Muralidhar and Domingo-Ferrer 2015",
    family="confidentiality",
    better="higher",
    bounds=(0.0, 1.0),
    per="column",
    kinds=EVERY_KIND,
)
def permutation_level(rank_movements: Movements) -> Value:
    """level = mean of |rank(x_i) - rank(y_i)| / (n - 1); the maximum is in the details. One record cannot move: 0."""
    farthest = 2 * max(rank_movements.count - 1, 1)
    mean = rank_movements.total / rank_movements.count / farthest
    return Value(mean, details={"mean": mean, "maximum": rank_movements.largest / farthest})
