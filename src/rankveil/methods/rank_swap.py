"""Rank swapping: values are put back in the order of their ranks plus noise, so that each moves some way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil import strengths
from rankveil.catalogue import Array, Outcome, Range, method
from rankveil.kernels.swapping import within_reach
from rankveil.likelihood import Displacement, RankNoise
from rankveil.ranks import ranks_within
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream

_AT_A_TIME = 2**20
"""Places whose partners are held at a time."""


@method(
    title="Rank swapping",
    source="after Moore 1996",
    kinds=("numeric", "ordinal", "hierarchy"),
    strength="p",
    by_columns=True,
    marginals="kept",
    by_parts=True,
    seed_tells="every value can be put back",
    tells="every column's distribution is exactly the original's; how far values moved in ranks follows from p and the "
    "scheme",
)
def rank_swap(
    x: Array,
    *,
    p: Annotated[
        float | None, Range(0, 100), "how far values move, in percent of the records; none goes by how many columns"
    ] = None,
    scheme: Annotated[
        Literal["normal", "window", "pairs"], "how: by normal noise, by uniform noise, or in pairs (for studies)"
    ] = "normal",
    attributes: int,
    rows: Rows = HERE,
    rng: Stream,
) -> Outcome:
    """Rank swapping: values are put back in the order of rank plus noise, a permutation that is no exchange of pairs.

        key_i = r_i + e_i,  e_i ~ N(0, (p n / 100)^2 / 3);   the j-th smallest value goes where the j-th smallest key is

    r are ranks from 1 to n, ties broken at random. The root mean square displacement is about p n / 100 / sqrt(3)
    ranks, less where that is a large part of all records, and nothing limits it, so that no link is forced. With
    `scheme=window` e is uniform within p percent of n: no value moves by 2 p percent of n or more. With `scheme=pairs`
    (Moore 1996) values change places two by two, |r_i - r_j| <= p n / 100, nobody twice: from the lowest rank up, each
    record that has no partner yet draws one uniformly from those without partner among the next p n / 100 ranks above
    it. Pairs undo themselves: that scheme is for studies.
    """
    if p is None:
        p = strengths.strength_for("rank_swap", attributes)
    count = rows.count(x.size)
    ties = rng.bits(x.size)
    reach = ranks_within(p, n=count)
    less = f"p = {p:g} percent of {count} records is less than one rank: "
    if scheme == "pairs":
        masked = rows.swapped(x, ties, partial(_partners, rng, reach))
        return Outcome(masked, notes=(f"{less}nothing was swapped",) if reach == 0 else ())
    draws = rng.normal(x.size) if scheme == "normal" else 2 * rng.random(x.size) - 1
    keys = rows.strict_places(x, ties) + noise_of(p, scheme, n=count) * draws
    masked = rows.in_order_of(x, keys, rng.bits(x.size))
    return Outcome(masked, notes=(f"{less}hardly a value moves",) if reach == 0 else ())


def noise_of(p: float, scheme: str, *, n: int) -> float:
    """The standard deviation of normal draws in ranks, or the end of uniform ones."""
    return p * n / 100 / (np.sqrt(3) if scheme == "normal" else 1.0)


def _partners(rng: Stream, reach: int, count: int) -> Iterator[NDArray[np.int64]]:
    """Who swaps with whom: a draw for each place in the order."""
    return within_reach(rng.loose_pieces(count, _AT_A_TIME), count, reach)


@rank_swap.cautions
def _(parameters: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Pairs undo themselves."""
    paired = [name for name, given in parameters.items() if given["scheme"] == "pairs"]
    if not paired:
        return []
    return [
        f"scheme = pairs is undone by its pairs ({', '.join(paired)}): who knows the originals finds out who swapped "
        "with whom, and over two columns or more who is who, with certainty; it is for studies, not for a release"
    ]


@rank_swap.tells_intruder
def _(x: Array, parameters: Mapping[str, Any], **known: Any) -> Displacement | RankNoise:
    """How far ranks move; in pairs none by more than p percent of the records."""
    p, scheme = parameters["p"], parameters["scheme"]
    if p is None:
        p = strengths.strength_for("rank_swap", known["attributes"])
    if scheme == "pairs":
        return Displacement(1, ranks_within(p, n=x.size), pairs=True)
    return RankNoise("normal" if scheme == "normal" else "uniform", noise_of(p, scheme, n=x.size))
