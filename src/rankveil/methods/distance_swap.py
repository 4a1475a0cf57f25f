"""Distance swapping: rank swapping that guarantees a least permutation distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Outcome, Range, method
from rankveil.errors import ParameterError
from rankveil.kernels.swapping import mix_pairs
from rankveil.likelihood import Displacement
from rankveil.ranks import ranks_within, strict_order, tie_blocks
from rankveil.seeds import Stream

_SWEEPS = 12
"""Proposals per record: enough that a pair's distance no longer shows where the pairing started."""


@method(
    title="Distance swapping",
    source="Domingo-Ferrer and Muralidhar 2016, after Moore 1996",
    kinds=("numeric", "ordinal", "hierarchy"),
    strength="d",
    marginals="kept",
    seed_tells="every value can be put back",
    tells="every value moved by at least d ranks (columns without ties) and at most p percent of the ranks, among all "
    "values of its column, missing cells left out; every column's distribution is exactly the original's",
)
def distance_swap(
    x: Array,
    *,
    d: Annotated[int, Range(1), "the least rank difference, in records"],
    p: Annotated[float | None, Range(0, 100), "the largest, in percent of the records; none for no limit"] = None,
    rng: Stream,
) -> Outcome:
    """Rank swap with differences from d records to p percent; a last odd record joins a 3-cycle.

        y_i = x_j,  y_j = x_i,  d <= |r_i - r_j| <= p n / 100

    r are ranks from 1 to n, ties broken at random. The first pairing joins ranks d or more apart; then twelve times n
    drawn proposals exchange the partners of two pairs, each taken when both new differences are within the limits. When
    n is odd, three records at ranks a, a + d and a + 2d hand their values round.

    On a column without ties every record that has a value is at permutation distance d or more, ranks being those
    among all values of the column. With ties, equal values that swap do not move: the attained distance is counted and
    reported.
    """
    farthest = x.size - 1 if p is None else ranks_within(p, n=x.size)
    order = strict_order(x, ties=rng.bits(x.size))
    partner = _paired(x.size, d, farthest, where=float(rng.loose(1)[0]))
    proposals = _SWEEPS * x.size
    partner = mix_pairs(partner, rng.loose(proposals), rng.loose(proposals), d, farthest)
    ordered, masked = x[order], np.empty_like(x)
    masked[order] = ordered[partner]
    starts, ends = tie_blocks(ordered)
    ranks = np.repeat((starts + ends + 1) / 2, ends - starts)  # of the sorted values, ties sharing theirs
    attained = np.abs(ranks - ranks[partner])
    short = int(np.sum(attained < d))
    note = f"ties: {short} of {x.size} values moved less than {d} ranks, the least by {attained.min():g}"
    return Outcome(masked, counts={"moved_less_than_d": short}, notes=(note,) if short else ())


@distance_swap.guarantees
def _(
    parameters: Mapping[str, Mapping[str, Any]], counts: Mapping[str, Mapping[str, int]], names: Sequence[str]
) -> list[str]:
    """Permutation distance d in every column whose ties did not undo it."""
    return [
        f"column {name}: every value is at permutation distance {parameters[name]['d']} or more "
        "among all values of the column"
        for name in names
        if not counts.get(name, {}).get("moved_less_than_d", 0)
    ]


def _paired(n: int, d: int, farthest: int, *, where: float) -> NDArray[np.int64]:
    """A first valid pairing; an odd n has one 3-cycle, at positions d and 2 d apart, placed by the draw `where`.

    Stretches of 2L positions, the first half paired with the second, d <= L <= farthest, and one of 2d + 1 positions
    with the 3-cycle through its ends and middle. Where what is left beside the 3-cycle is too short for a stretch of
    its own, all other positions are paired by halves: their differences then lie between d and 2d.
    """
    triple = n % 2
    spare = n - triple * (2 * d + 1)
    together = bool(triple) and 0 < spare < 2 * d
    lengths = [] if together else _stretches(spare, d, farthest)
    if lengths is None or spare < 0 or (triple and 2 * d > farthest):
        raise ParameterError(
            f"distance_swap: {n} values cannot swap at rank differences from {d} to {farthest}; "
            f"d must be at most half the records and p percent of them at least {'2 d' if triple else 'd'}"
        )
    partner = np.arange(n)
    if together:
        _turn(partner, start=min(int(where * (spare + 1)), spare), d=d)
        rest = np.flatnonzero(partner == np.arange(n))
        first, second = rest[: rest.size // 2], rest[rest.size // 2 :]
        partner[first], partner[second] = second, first
        return partner
    at = min(int(where * (len(lengths) + 1)), len(lengths)) if triple else -1
    if triple:
        lengths.insert(at, d)
    start = 0
    for k, length in enumerate(lengths):
        first = np.arange(start, start + length)
        if k == at:
            _turn(partner, start=start, d=d)
            first = first[1:]
        partner[first], partner[first + length] = first + length, first
        start += 2 * length + (k == at)
    return partner


def _turn(partner: NDArray[np.int64], *, start: int, d: int) -> None:
    """Put the 3-cycle start -> start + d -> start + 2d -> start into a pairing."""
    partner[[start, start + d, start + 2 * d]] = start + d, start + 2 * d, start


def _stretches(n: int, d: int, farthest: int) -> list[int] | None:
    """Half-lengths between d and farthest that add up to n / 2, or None when there are none."""
    if n == 0:
        return []
    if farthest < d or n < 2 * d:
        return None
    count = n // (2 * d)
    if 2 * farthest * count < n:
        return None
    half, more = divmod(n // 2, count)
    return [half + (k < more) for k in range(count)]


@distance_swap.tells_intruder
def _(x: Array, parameters: Mapping[str, Any], **known: Any) -> Displacement:
    """Every rank moves by d records to p percent, and values change places in pairs."""
    p = parameters["p"]
    return Displacement(parameters["d"], x.size - 1 if p is None else ranks_within(p, n=x.size), pairs=True)
