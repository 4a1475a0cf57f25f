"""Global recoding: groups of a hierarchy, bands of numbers, rare categories together.

>>> import numpy as np
>>> made = recode(np.array([17.0, 18.0, 70.0]), cuts=("18", "65"))
>>> [made.levels[int(code)] for code in made.values]
['(-inf,18)', '[18,65)', '[65,inf)']
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from rankveil import dates
from rankveil.catalogue import Array, Outcome, Range, method
from rankveil.categories import Categories
from rankveil.errors import ParameterError, suggestion
from rankveil.likelihood import Recomputed
from rankveil.moments import Summary
from rankveil.rows import HERE, Rows

_MOST = 10_000
"""Bands at most."""
OTHER = "other"


@method(
    title="Recoding",
    source="Samarati and Sweeney 1998; common practice",
    kinds=("numeric", "ordinal", "nominal"),
    strength="level",
    relabels=True,
    by_parts=True,
    told=("level", "cuts", "width", "rare"),
    tells="a released label tells the group of the value, and nothing within the group",
)
def recode(
    x: Array,
    *,
    level: Annotated[int | None, Range(0, 100), "the level of the column's hierarchy; 0 are its leaves"] = None,
    cuts: Annotated[tuple[str, ...], "where a new band begins: numbers, dates, or levels of an ordered column"] = (),
    width: Annotated[float | None, Range(0, above=True), "bands of this width instead; of dates, in days"] = None,
    origin: Annotated[float, "where one band of that width begins; of dates, in days from 1970"] = 0.0,
    rare: Annotated[float | None, Range(0, 100), "categories below this share, in percent, become 'other'"] = None,
    categories: Categories | None = None,
    temporal: Any = None,
    rows: Rows = HERE,
) -> Outcome:
    """Every value becomes the group that it belongs to: a group of a hierarchy, a band [a,b), or `other`.

    y = [a,b) with a <= x < b;  y = the ancestor of x at `level` of the hierarchy;
    y = other when the share of x is below `rare` percent"""
    said = [name for name, given in (("level", level), ("width", width), ("rare", rare)) if given is not None]
    said += ["cuts"] if cuts else []
    if len(said) != 1:
        raise ParameterError(f"recode needs one of level, cuts, width and rare, not {' and '.join(said) or 'nothing'}")
    if categories is None:
        if level is not None or rare is not None:
            raise ParameterError(f"{said[0]} is for categories; give numbers cuts or a width")
        if cuts:
            return _bands(x, _numbers(cuts, temporal), temporal, rows)
        return _bands(x, _steps(rows.summary(x), width or 1.0, origin, temporal), temporal, rows)
    if width is not None:
        raise ParameterError("width is for numbers; give categories a level, cuts or rare")
    if level is not None:
        return _regrouped(x, [_group(categories, label, level) for label in categories.labels])
    if rare is not None:
        return _without_rare(x, categories, rare, rows)
    return _regrouped(x, _stretches(categories, cuts))


@recode.local_when
def _(parameters: Mapping[str, Any]) -> bool:
    """By level, cuts or width the group follows from the value alone (and from the levels that an order has)."""
    return parameters["rare"] is None


@recode.discloses
def _(parameters: Mapping[str, Any]) -> dict[str, str]:
    """What is rare."""
    if parameters["rare"] is None:
        return {}
    return {"which categories are rare": "those that the release names have at least that share in the original"}


def _group(categories: Categories, label: str, level: int) -> str:
    if categories.hierarchy is None:
        raise ParameterError("level needs a hierarchy: --hierarchy NAME=file.csv")
    return categories.hierarchy.level(label, level)


def _regrouped(x: Array, groups: list[str]) -> Outcome:
    """The group of each category, in the order in which groups first come."""
    levels = tuple(dict.fromkeys(groups))
    place = {group: code for code, group in enumerate(levels)}
    return Outcome(np.array([place[group] for group in groups], dtype=np.float64)[x.astype(np.intp)], levels=levels)


def _without_rare(x: Array, categories: Categories, rare: float, rows: Rows) -> Outcome:
    """Categories below a share of the values together; what is left of them may still be rare, which is said."""
    if categories.ordered:
        raise ParameterError(f"rare is for categories without an order, in which '{OTHER}' has no place; give it cuts")
    counts = rows.tally(x.astype(np.intp), len(categories))
    least = rare / 100 * counts.sum()
    few = counts < least
    there = np.flatnonzero(counts)
    groups = [OTHER if gone else word for word, gone in zip(categories.labels, few, strict=True)]
    levels = tuple(dict.fromkeys(groups[i] for i in there))  # none that no record has
    place = {group: code for code, group in enumerate(levels)}
    codes = np.array([place.get(group, 0) for group in groups], dtype=np.float64)[x.astype(np.intp)]
    together = int(counts[[group == OTHER for group in groups]].sum())
    notes = (f"'{OTHER}' is itself below {rare:g} percent",) if 0 < together < least else ()
    return Outcome(codes, notes=notes, levels=levels)


def _stretches(categories: Categories, cuts: tuple[str, ...]) -> list[str]:
    """Levels of an ordered column from one cut to the next: `low to middle`."""
    if not categories.ordered:
        raise ParameterError("cuts need an order; give a nominal column a level of its hierarchy")
    for cut in cuts:
        if cut not in categories.labels:
            raise ParameterError(f"cuts: {cut!r} is not one of its levels{suggestion(cut, categories.labels)}")
    starts = sorted({0, *(categories.labels.index(cut) for cut in cuts)})
    groups: list[str] = []
    for start, end in zip(starts, [*starts[1:], len(categories)], strict=True):
        first, last = categories.labels[start], categories.labels[end - 1]
        groups += [first if start == end - 1 else f"{first} to {last}"] * (end - start)
    return groups


def _numbers(cuts: tuple[str, ...], temporal: Any) -> list[float]:
    found = []
    for cut in cuts:
        number = _parsed(cut) if temporal is None else dates.parsed(cut, temporal)
        if number is None:
            what = "numbers" if temporal is None else f"like {dates.example(temporal)}"
            raise ParameterError(f"cuts must be {what}, not {cut!r}")
        found.append(number)
    if any(b <= a for a, b in itertools.pairwise(found)):
        raise ParameterError(f"cuts must rise: {', '.join(cuts)}")
    return found


def _parsed(cut: str) -> float | None:
    try:
        number = float(cut)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _steps(ends: Summary, width: float, origin: float, temporal: Any) -> list[float]:
    """The ends of all bands that have values."""
    unit = 1.0
    if temporal is not None:
        if not pa.types.is_date(temporal) or width != int(width) or origin != int(origin):
            raise ParameterError("a width is for numbers, and in whole days for dates; give times cuts")
        unit = 86_400_000.0 if pa.types.is_date64(temporal) else 1.0
    first, last = ((float(end) / unit - origin) / width for end in (ends.low, ends.high))
    if not last - first < _MOST:  # nor where they are infinite
        raise ParameterError(f"a width of {width:g} makes more than {_MOST} bands; choose a larger one")
    # one more at either end, because the quotient may be rounded
    steps = range(math.floor(first) - 1, math.floor(last) + 3)
    ends_of_bands = [origin + step * width for step in steps]
    if not all(map(math.isfinite, ends_of_bands)):
        raise ParameterError(f"a width of {width:g} makes bands that end beyond all numbers; choose a smaller one")
    edges = [_plain(end) * unit for end in ends_of_bands]
    if any(b <= a for a, b in itertools.pairwise(edges)):
        raise ParameterError(f"a width of {width:g} is too small for numbers of this size; choose a larger one")
    return edges


def _plain(number: float) -> float:
    """0.3 for 0.30000000000000004."""
    return number if number == math.floor(number) else float(f"{number:.15g}")


def _bands(x: Array, cuts: list[float], temporal: Any, rows: Rows) -> Outcome:
    """Numbers by the band that they lie in, its lower end included."""
    code = np.searchsorted(np.array(cuts), x, side="right").astype(np.float64)
    ends = ["-inf", *(_shown(cut, temporal) for cut in cuts), "inf"]
    labels = [f"{'(' if low == '-inf' else '['}{low},{high})" for low, high in itertools.pairwise(ends)]
    found = rows.summary(code)
    first, last = int(found.low), int(found.high)
    return Outcome(code - first, levels=tuple(labels[first : last + 1]))


def _shown(cut: float, temporal: Any) -> str:
    """A cut as its label says it; two cuts never look alike."""
    if temporal is not None:
        return str(dates.written(cut, temporal))
    return repr(cut + 0.0).removesuffix(".0")


@recode.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Recomputed:
    """He applies the step to the original himself."""
    return Recomputed()
