"""What an intruder who knows all originals finds at a method's strength, for so many columns: a measured table.

`strengths.json` is written by `benchmarks/strengths.py`, which attacks releases of four tables of 1,000 records each;
of every strength and number of columns it holds the largest share found. It gives the defaults that depend on the
number of columns, and what `mask` says beforehand. `rankveil attack` measures a release itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise

LEAST = 5.0
"""The weakest default: one column that hardly moves may find nobody, and still tells everybody's value."""


@dataclass(frozen=True)
class Measured:
    """A method's figures."""

    parameter: str
    values: tuple[float, ...]
    """The strengths that were measured, from the weakest."""
    found: Mapping[int, tuple[float, ...]]
    """For each number of columns the share of people found at each of them."""


@dataclass(frozen=True)
class Strengths:
    """The whole table."""

    records: int
    limit: float
    """The share found that default strengths stay below."""
    tables: tuple[str, ...]
    methods: Mapping[str, Measured]


@cache
def measured() -> Strengths:
    """The table as it was measured."""
    plain = json.loads(resources.files("rankveil").joinpath("strengths.json").read_text(encoding="utf-8"))
    methods = {
        name: Measured(
            each["parameter"],
            tuple(each["values"]),
            {int(columns): tuple(found) for columns, found in each["found"].items()},
        )
        for name, each in plain["methods"].items()
    }
    return Strengths(plain["records"], plain["limit"], tuple(plain["tables"]), methods)


def strength_for(method: str, columns: int) -> float:
    """The default for so many columns: the least whole number, from 5, at which no more are found than the limit.

    For more columns than were measured it grows with their square root, up to the strongest that was measured.

    >>> strength_for("rank_swap", 1), strength_for("rank_swap", 5)
    (5.0, 29.0)
    """
    known = measured().methods[method]
    most = max(known.found)
    strongest = known.values[-1]
    wanted = _least(known.values, known.found[min(max(columns, 1), most)], measured().limit)
    if wanted is None:
        return strongest
    grown = math.ceil(wanted * math.sqrt(max(columns, most) / most) - 1e-9)
    return min(max(float(grown), LEAST), strongest)


def found_at(method: str, strength: float, columns: int) -> float | None:
    """The share found at a strength, between measured ones in proportion; None where nothing near was measured."""
    known = measured().methods.get(method)
    if known is None or columns not in known.found or not known.values[0] <= strength <= known.values[-1]:
        return None
    found = known.found[columns]
    for (low, before), (high, after) in pairwise(zip(known.values, found, strict=True)):
        if low <= strength <= high:
            return before + (after - before) * (strength - low) / (high - low)
    return found[-1]


def _least(values: Sequence[float], found: Sequence[float], limit: float) -> float | None:
    """Where the share found passes the limit for the last time."""
    if found[-1] > limit:
        return None
    for (low, before), (high, after) in reversed(list(pairwise(zip(values, found, strict=True)))):
        if before > limit:
            return low + (high - low) * (before - limit) / (before - after)
    return values[0]
