"""Which released label a person's own value belongs to, where labels stand for several values."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rankveil import dates, orders
from rankveil.hierarchy import Hierarchy

_CLOCKS = (pa.timestamp("us"), pa.timestamp("us", tz="UTC"), pa.time64("us"))


def labels_of(value: str, labels: Sequence[str], *, hierarchy: Hierarchy | None, decimal: str = ".") -> list[str]:
    """The released labels that contain a value: its group in the hierarchy, a band, or levels from one to another.

    Of several groups above it the nearest counts. Bands that touch may both contain a value.

    >>> labels_of("34", ["[30,40)", "[40,50)"], hierarchy=None), labels_of("30", ["20-30", "30-40"], hierarchy=None)
    (['[30,40)'], ['20-30', '30-40'])
    """
    if value in labels:
        return [value]
    above = [] if hierarchy is None else [label for label in hierarchy.path(value) if label in set(labels)]
    if above:
        return above[:1]
    number = _number(value.replace(",", ".") if decimal == "," else value)
    if number is not None:
        found = [label for label in labels if orders.holds(label, number)]
    else:
        found = [label for label in labels if _holds_moment(label, value)]
    return found or [label for label in labels if value in _ends_of_levels(label)]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _holds_moment(label: str, value: str) -> bool:
    """Whether a date or time lies in a band like [2000-01-01,2010-01-01), as recoding writes it."""
    low, mark, high = label.strip().removeprefix("[").removeprefix("(").removesuffix(")").partition(",")
    for clock in _CLOCKS if mark else ():
        mine = dates.parsed(value, clock)
        first = -float("inf") if low == "-inf" else dates.parsed(low, clock)
        last = float("inf") if high == "inf" else dates.parsed(high, clock)
        if mine is not None and first is not None and last is not None:
            return first <= mine < last
    return False


def _ends_of_levels(label: str) -> tuple[str, ...]:
    """The first and the last of levels that were put together, as in `low to middle`."""
    words = label.split(" to ")
    cuts = range(1, len(words))
    return tuple(end for cut in cuts for end in (" to ".join(words[:cut]), " to ".join(words[cut:])))
