"""Distance swapping: a random permutation of a column that guarantees a least permutation distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Outcome, Range, method
from rankveil.errors import ParameterError
from rankveil.kernels.swapping import mix_targets
from rankveil.likelihood import Displacement
from rankveil.ranks import ranks_within, strict_order, tie_blocks
from rankveil.seeds import Stream

_ENOUGH = 16
"""Proposals taken for each record, after which nothing shows where the mixing started."""
_SWEEPS = 256
"""Proposals made for each record at most."""
_AT_A_TIME = 2**17
"""Proposals whose draws are held at a time, unless there are more records."""
_FEW = 2
"""Proposals taken for each record below which the limits are said to leave little choice."""


@method(
    title="Distance swapping",
    source="after Domingo-Ferrer and Muralidhar 2016 and Moore 1996",
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
    """A random permutation of the values whose rank differences go from d records to p percent.

        y_i = x_t(i),   d <= |r_i - r_t(i)| <= p n / 100

    r are ranks from 1 to n, ties broken at random. t starts as blocks of neighbouring ranks, each turned by d or more;
    then proposals that exchange the targets of two or three records are drawn, each taken when all new differences are
    within the limits, and t and its inverse change places at random, until every record has taken part 16 times on
    average (or 256 were proposed for each). Values do not change places in pairs, which would undo themselves.

    On a column without ties every record that has a value is at permutation distance d or more, ranks being those
    among all values of the column. With ties, equal values that swap do not move: the attained distance is counted and
    reported.
    """
    farthest = x.size - 1 if p is None else min(ranks_within(p, n=x.size), x.size - 1)
    order = strict_order(x, ties=rng.bits(x.size))
    target, mixed = _permuted(x.size, d, farthest, rng)
    ordered, masked = x[order], np.empty_like(x)
    masked[order] = ordered[target]
    starts, ends = tie_blocks(ordered)
    ranks = np.repeat((starts + ends + 1) / 2, ends - starts)  # of the sorted values, ties sharing theirs
    attained = np.abs(ranks - ranks[target])
    short = int(np.sum(attained < d))
    notes = [] if mixed else [f"differences of {d} to {farthest} ranks leave {x.size} values little choice: lower d"]
    if short:
        notes.append(f"ties: {short} of {x.size} values moved less than {d} ranks, the least by {attained.min():g}")
    return Outcome(masked, counts={"moved_less_than_d": short}, notes=tuple(notes))


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


def _permuted(n: int, d: int, farthest: int, rng: Stream) -> tuple[NDArray[np.int64], bool]:
    """A random permutation with differences in the limits, and whether it was mixed long enough."""
    target = _start(n, d, farthest, rng)
    owner = np.empty_like(target)
    owner[target] = np.arange(n)
    taken, at_once = 0, min(max(_AT_A_TIME // n, 1), 32)
    for _ in range(0, _SWEEPS, at_once):
        picks, others, turns = rng.loose(at_once * n), rng.loose(at_once * n), rng.loose(at_once)
        taken += mix_targets(target, owner, picks, others, turns, d, farthest)
        if taken >= _ENOUGH * n:
            break
    return target, taken >= _FEW * n


def _start(n: int, d: int, farthest: int, rng: Stream) -> NDArray[np.int64]:
    """A valid permutation: blocks of positions, each turned in itself, its two rank differences within the limits.

    A block of L positions turned by s has the differences s and L - s. Where blocks of 2 d to 2 p n / 100 positions do
    not add up to n, no permutation is within the limits.
    """
    blocks = n // (2 * d)
    if blocks == 0 or farthest < d or n > 2 * farthest * blocks:
        raise ParameterError(
            f"distance_swap: {n} values cannot swap at rank differences from {d} to {farthest}; "
            "d must be at most half the records and p percent of them at least d"
            + (f", {-(-n // (2 * blocks))} here" if blocks and farthest >= d else "")
        )
    target = np.empty(n, dtype=np.int64)
    ends = np.arange(blocks + 1) * n // blocks
    for first, last, draw in zip(ends[:-1], ends[1:], rng.loose(blocks), strict=True):
        size = int(last - first)
        least, most = max(d, size - farthest), min(farthest, size - d)
        turn = least + min(int(draw * (most - least + 1)), most - least)
        target[first:last] = first + (np.arange(size) + turn) % size
    return target


@distance_swap.tells_intruder
def _(x: Array, parameters: Mapping[str, Any], **known: Any) -> Displacement:
    """Every rank moves by d records to p percent."""
    p = parameters["p"]
    return Displacement(parameters["d"], x.size - 1 if p is None else ranks_within(p, n=x.size), pairs=False)
