"""Global recoding: groups of a hierarchy, bands of numbers, rare categories together.

>>> import numpy as np
>>> made = recode(np.array([17.0, 18.0, 70.0]), cuts=("18", "65"))
>>> [made.levels[int(code)] for code in made.values]
['(-inf,18)', '[18,65)', '[65,inf)']
"""

from __future__ import annotations

import itertools
import math
from typing import Annotated, Any

import numpy as np

from rankveil import dates
from rankveil.catalogue import Array, Outcome, Range, method
from rankveil.categories import Categories
from rankveil.errors import ParameterError, suggestion

_MOST = 10_000
"""Bands at most."""
OTHER = "other"


@method(
    title="Recoding",
    source="Samarati and Sweeney 1998; common practice",
    kinds=("numeric", "ordinal", "nominal"),
    strength="level",
    relabels=True,
    told=("level", "cuts", "width", "rare"),
    survives="data-free",
    from_data={"rare": "which categories are rare in the original"},
    tells="a released label tells the group of the value, and nothing within the group",
)
def recode(
    x: Array,
    *,
    level: Annotated[int | None, Range(0), "the level of the column's hierarchy; 0 are its leaves"] = None,
    cuts: Annotated[tuple[str, ...], "where a new band begins: numbers, dates, or levels of an ordered column"] = (),
    width: Annotated[float | None, Range(0, above=True), "bands of this width instead"] = None,
    origin: Annotated[float, "where one band of that width begins"] = 0.0,
    rare: Annotated[float | None, Range(0, 100), "categories below this share, in percent, become 'other'"] = None,
    categories: Categories | None = None,
    temporal: Any = None,
) -> Outcome:
    """Every value becomes the group that it belongs to: a group of a hierarchy, a band [a,b), or `other`."""
    said = [name for name, given in (("level", level), ("width", width), ("rare", rare)) if given is not None]
    said += ["cuts"] if cuts else []
    if len(said) != 1:
        raise ParameterError(f"recode needs one of level, cuts, width and rare, not {' and '.join(said) or 'nothing'}")
    if categories is None:
        if level is not None or rare is not None:
            raise ParameterError(f"{said[0]} is for categories; give numbers cuts or a width")
        return _bands(x, _numbers(cuts, temporal) if cuts else _steps(x, width or 1.0, origin), temporal)
    if width is not None:
        raise ParameterError("width is for numbers; give categories a level, cuts or rare")
    if level is not None:
        return _regrouped(x, [_group(categories, label, level) for label in categories.labels])
    if rare is not None:
        few = categories.counts < rare / 100 * categories.counts.sum()
        return _regrouped(x, [OTHER if gone else word for word, gone in zip(categories.labels, few, strict=True)])
    return _regrouped(x, _stretches(categories, cuts))


def _group(categories: Categories, label: str, level: int) -> str:
    if categories.hierarchy is None:
        raise ParameterError("level needs a hierarchy: --hierarchy NAME=file.csv")
    return categories.hierarchy.level(label, level)


def _regrouped(x: Array, groups: list[str]) -> Outcome:
    """The group of each category, in the order in which groups first come."""
    levels = tuple(dict.fromkeys(groups))
    place = {group: code for code, group in enumerate(levels)}
    return Outcome(np.array([place[group] for group in groups], dtype=np.float64)[x.astype(np.intp)], levels=levels)


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
            what = "numbers" if temporal is None else "dates like 2024-01-31"
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


def _steps(x: Array, width: float, origin: float) -> list[float]:
    first, last = math.floor((float(x.min()) - origin) / width), math.floor((float(x.max()) - origin) / width)
    if last - first >= _MOST:
        raise ParameterError(f"a width of {width:g} makes more than {_MOST} bands; choose a larger one")
    return [origin + step * width for step in range(first, last + 2)]


def _bands(x: Array, cuts: list[float], temporal: Any) -> Outcome:
    """Numbers by the band that they lie in, its lower end included."""
    code = np.searchsorted(np.array(cuts), x, side="right").astype(np.float64)
    ends = ["-inf", *(_shown(cut, temporal) for cut in cuts), "inf"]
    labels = [f"{'(' if low == '-inf' else '['}{low},{high})" for low, high in itertools.pairwise(ends)]
    used = np.unique(code).astype(np.intp)
    first, last = int(used[0]), int(used[-1])
    return Outcome(code - first, levels=tuple(labels[first : last + 1]))


def _shown(cut: float, temporal: Any) -> str:
    return f"{cut:.15g}" if temporal is None else str(dates.written(cut, temporal))
