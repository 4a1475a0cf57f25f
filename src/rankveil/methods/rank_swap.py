"""Rank swapping: each value changes places with one at most p percent of ranks away."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from rankveil.catalogue import Array, Outcome, Range, method
from rankveil.kernels.swapping import within_reach
from rankveil.ranks import ranks_within, strict_order
from rankveil.seeds import Stream


@method(
    title="Rank swapping",
    source="Moore 1996",
    kinds=("numeric", "ordinal", "hierarchy"),
    strength="p",
    marginals="kept",
    tells="no value moved by more than p percent of the ranks; every column's distribution is exactly the original's",
)
def rank_swap(
    x: Array,
    *,
    p: Annotated[float, Range(0, 100), "how far a value may move, in percent of the records"] = 5.0,
    rng: Stream,
) -> Outcome:
    """Rank swapping: each value swaps with one whose rank differs by at most p percent of n, nobody twice."""
    reach = ranks_within(p, n=x.size)
    order = strict_order(x, ties=rng.bits(x.size))
    partner = within_reach(rng.random(x.size), reach)
    ordered, masked = x[order], np.empty_like(x)
    masked[order] = ordered[partner]
    notes = (f"p = {p:g} percent of {x.size} records is less than one rank: nothing was swapped",) if reach == 0 else ()
    return Outcome(masked, notes=notes)
