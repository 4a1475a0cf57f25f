"""Permutation: the control with the most protection."""

from __future__ import annotations

from typing import Any

from rankveil.catalogue import EVERY_KIND, Array, method
from rankveil.likelihood import Unrelated
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream


@method(
    title="Independent permutation",
    source="Domingo-Ferrer and Muralidhar 2016",
    kinds=EVERY_KIND,
    marginals="kept",
    by_parts=True,
    seed_tells="every value can be put back",
    tells="columns are independent of each other and of who is who; "
    "every column's distribution is exactly the original's",
)
def permute(x: Array, *, rows: Rows = HERE, rng: Stream) -> Array:
    """An independent random permutation of each column: the control with the most protection.

    y_i = x_pi(i),  pi drawn uniformly from all n! orders, another for each column
    """
    return rows.permuted(x, rng.bits(x.size))


@permute.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Unrelated:
    """A value goes anywhere with the same probability."""
    return Unrelated()
