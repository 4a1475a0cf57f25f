"""Reverse mapping: release a permutation of the original values with the ranks of the masked ones."""

from __future__ import annotations

from typing import Any

from rankveil.catalogue import EVERY_KIND, Array, method
from rankveil.errors import ParameterError
from rankveil.likelihood import Recomputed
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream


@method(
    title="Reverse mapping",
    source="Muralidhar, Sarathy and Domingo-Ferrer 2014; Algorithm 1 of Domingo-Ferrer and Muralidhar 2016",
    kinds=EVERY_KIND,
    marginals="kept",
    post=True,
    by_parts=True,
    tells="every column's distribution is exactly the original's",
)
def reverse_map(y: Array, original: Array, *, rows: Rows = HERE, rng: Stream) -> Array:
    """Z instead of Y: z_i = x_(r) with r = rank(y_i), the original value of that rank; ties in y broken at random."""
    if y.size != original.size:
        raise ParameterError("an earlier step changed how many cells are missing; let reverse_map come before it")
    return rows.in_order_of(original, y, rng.bits(y.size))


@reverse_map.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Recomputed:
    """After steps that he can repeat he repeats this one; after draws it depends on all of them."""
    return Recomputed()
