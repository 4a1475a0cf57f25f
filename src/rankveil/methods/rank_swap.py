"""Rank swapping: each value changes places with one at most p percent of ranks away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Outcome, Range, method
from rankveil.kernels.swapping import within_reach
from rankveil.likelihood import Displacement
from rankveil.ranks import ranks_within
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream

_AT_A_TIME = 2**20
"""Places whose partners are held at a time."""


@method(
    title="Rank swapping",
    source="Moore 1996",
    kinds=("numeric", "ordinal", "hierarchy"),
    strength="p",
    marginals="kept",
    by_parts=True,
    seed_tells="every value can be put back",
    tells="no value moved by more than p percent of the ranks; every column's distribution is exactly the original's",
)
def rank_swap(
    x: Array,
    *,
    p: Annotated[float, Range(0, 100), "how far a value may move, in percent of the records"] = 5.0,
    rows: Rows = HERE,
    rng: Stream,
) -> Outcome:
    """Rank swapping: each value swaps with one whose rank differs by at most p percent of n, nobody twice.

        y_i = x_j,  y_j = x_i,  |r_i - r_j| <= p n / 100

    r are ranks from 1 to n, ties broken at random. From the lowest rank up, each record that has no partner yet draws
    one uniformly from those without partner among the next p n / 100 ranks above it; where there is none it keeps its
    value.
    """
    count = rows.count(x.size)
    reach = ranks_within(p, n=count)
    ties = rng.bits(x.size)
    masked = rows.swapped(x, ties, partial(_partners, rng, reach))
    notes = (f"p = {p:g} percent of {count} records is less than one rank: nothing was swapped",) if reach == 0 else ()
    return Outcome(masked, notes=notes)


def _partners(rng: Stream, reach: int, count: int) -> Iterator[NDArray[np.int64]]:
    """Who swaps with whom: a draw for each place in the order."""
    return within_reach(rng.loose_pieces(count, _AT_A_TIME), count, reach)


@rank_swap.tells_intruder
def _(x: Array, parameters: Mapping[str, Any], **known: Any) -> Displacement:
    """No rank moves by more than p percent of the records, and values change places in pairs."""
    return Displacement(1, ranks_within(parameters["p"], n=x.size), pairs=True)
