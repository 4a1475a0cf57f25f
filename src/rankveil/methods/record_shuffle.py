"""Record shuffling: the control that protects nothing but the order of the rows."""

from __future__ import annotations

from typing import Any

from rankveil.catalogue import EVERY_KIND, method
from rankveil.likelihood import Records
from rankveil.ranks import Order
from rankveil.seeds import Stream


@method(
    title="Record shuffling",
    source="Domingo-Ferrer, Muralidhar and Bras-Amoros 2021",
    works_on="records",
    kinds=EVERY_KIND,
    mapping="reordered",
    marginals="kept",
    tells="records were put in another order, which changes no analysis that does not use the order",
)
def record_shuffle(records: int, *, rng: Stream) -> Order:
    """Whole records in random order, every column with them: a trivial permutation that protects nobody.

    row i of Y = row pi(i) of X,  pi drawn uniformly from all n! orders
    """
    return rng.order(records)


@record_shuffle.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Records:
    """Nothing: he never looks at the order of the rows here."""
    return Records()
