"""The grid on which numbers that were computed from draws are released.

A draw is one of 2^52 numbers, and a released number a formula of it, so that the last bits of a double tell which
originals it can come from, however much noise there is (`intruder.low_bits`). So these numbers are released as
multiples of a step that is much coarser than what separates two draws:

- a column whose original numbers have d decimals keeps at most d: multiples of 10^-d, whole numbers for d = 0. Decimals
  are left out, from the last on, that are finer than 2^-32 of the scale of what masking changed;
- a column of real numbers has multiples of a power of two, the smallest that is at least 10^-6 of that scale. So have
  whole numbers that are masked by more than 2^32, and that power is at least 1;
- dates and times keep the coarsest of day, hour, minute, second and its parts in which the original is counted;
- a method whose guarantee forbids that the grid looks at the data states the scale itself (`Method.scales`).

No step is finer than the last digit of the largest number of the release. The scale is the population standard
deviation of released minus original, or of the release where records do not correspond.

>>> put(np.array([1.04, -2.26, np.nan]), 0.1)
array([ 1. , -2.3,  nan])
>>> put(np.array([1.04, -2.26]), 0.125)
array([ 1.   , -2.25])
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankveil import dates
from rankveil.catalogue import Array
from rankveil.masking.account import Grid
from rankveil.masking.working import Current, Work
from rankveil.methods.round import MOST_DECIMALS, decimals_of
from rankveil.moments import Summary
from rankveil.plans import Step
from rankveil.rows import Rows

OF_DECIMALS = 2.0**-32
"""Decimals are kept while their unit is at least this part of the scale: a million draws for each of them and more."""
OF_REALS = 1e-6
"""The step of real numbers, at least, as a part of the scale."""
_DECIMAL = {float(f"1e{-decimals}"): decimals for decimals in range(MOST_DECIMALS + 1)}


@dataclass(frozen=True)
class _Drawn:
    """What steps did to a column since its values were computed from draws."""

    apart: bool
    """Whether its records are not those of the original."""
    own: float | None
    """The step that does not come from the data, if there is one; 0 for numbers that stay as they were drawn."""
    rounded: int | None = None
    """The decimals to which a step rounded it last."""


_AS_THE_ORIGINAL = MOST_DECIMALS + 1
"""Stands for the decimals of the original."""


def on_grids(
    work: Work, steps: Sequence[Step], columns: Sequence[Sequence[str]], *, told: Mapping[str, float] | None = None
) -> dict[str, Grid]:
    """Put what the steps, each on its columns, computed from draws on its grid; `told` are grids of a manifest."""
    drawn = {name: how for name, how in _drawn(work, steps, columns).items() if _numbers(work.changed[name])}
    if told is not None:
        drawn = {name: how for name, how in drawn.items() if name in told}
    ordered = {name: (name, drawn[name]) for name in work.table.names if name in drawn}

    def one(item: tuple[str, _Drawn], rows: Rows) -> tuple[Array, Grid | None]:
        name, how = item
        before = work.changed[name]
        original = work.table.values(name)
        here = work.taken(original)
        if told is not None:
            step: float | None = counted(told[name], before.temporal)
        else:
            step = _step(before, original, None if how.apart else here, how, rows)
        if step is None:
            return before.values, None
        values = put(before.values, step)
        was = np.zeros(here.size, dtype=bool) if how.apart else ~np.isnan(here) & (before.values != here)
        was &= ~np.isnan(before.values)
        said = dates.in_days(np.array([step]), before.temporal)[0] if before.temporal is not None else step
        return values, Grid(float(said), int(was.sum()), int(np.sum(was & (values == here))))

    made = work.rows.each(one, ordered, size=len(work) * len(ordered))
    found = {}
    for name, (values, grid) in zip(ordered, made, strict=True):
        if grid is not None:
            work.changed[name] = replace(work.changed[name], values=values)
            found[name] = grid
    return found


def put(values: Array, step: float) -> Array:
    """The nearest multiples of a step, those of 10^-d as the doubles nearest to the decimal; missing cells stay.

    >>> put(np.array([0.30000000000000004, -0.01]), 0.1)
    array([0.3, 0. ])
    """
    there = ~np.isnan(values)
    x = values[there]
    with np.errstate(over="ignore"):
        if step in _DECIMAL:
            near = np.round(x, _DECIMAL[step])
        else:
            near = np.rint(x / step) * step
            beyond = ~np.isfinite(near)  # rounded up past the largest number
            near[beyond] = np.trunc(x[beyond] / step) * step
    made = values.copy()
    made[there] = near + 0.0  # no -0
    return made


def power_of_two(least: float) -> float:
    """The smallest power of two that is at least so large.

    >>> power_of_two(0.3), power_of_two(4.0)
    (0.5, 4.0)
    """
    digits, exponent = math.frexp(least)
    return math.ldexp(1.0, min(exponent - (digits == 0.5), 1023))


def _numbers(column: Current) -> bool:
    return column.kind == "numeric" and column.categories is None


def _drawn(work: Work, steps: Sequence[Step], columns: Sequence[Sequence[str]]) -> dict[str, _Drawn]:
    """The columns whose values were computed from draws, by what the steps are."""
    found: dict[str, _Drawn] = {}
    for step, chosen in zip(steps, columns, strict=True):
        entry = step.entry
        if entry.works_on not in ("column", "columns"):
            continue
        for name in chosen:
            if name not in work.changed:
                continue  # dropped later
            if entry.computes:
                before, own = found.get(name), None
                if entry.own_scale is not None:
                    own = _without_data(step, name, attributes=len(chosen), temporal=work.changed[name].temporal)
                if before is not None and before.own is not None:
                    own = before.own if own is None else max(own, before.own)
                apart = entry.mapping == "none" or (before is not None and before.apart)
                found[name] = _Drawn(apart, own)
            elif step.method == "reverse_map":
                found.pop(name, None)
            elif name in found and step.method == "round":
                decimals = step.bound(name)["decimals"]
                found[name] = replace(found[name], rounded=_AS_THE_ORIGINAL if decimals is None else decimals)
            elif name in found and entry.marginals != "kept" and step.method != "clip":
                found[name] = replace(found[name], rounded=None)
    return found


def _without_data(step: Step, name: str, *, attributes: int, temporal: Any) -> float | None:
    """The grid of a method that states the scale of its noise."""
    assert step.entry.own_scale is not None
    scale = step.entry.own_scale(step.bound(name), attributes=attributes, temporal=temporal)
    if not scale:
        return scale
    return power_of_two(max(OF_REALS * scale, 0.0 if temporal is None else 1.0))


@dataclass(frozen=True)
class _Seen:
    """What the grid of a column depends on, of some rows."""

    fineness: int
    """Of the original: decimals, or the place in the ladder of units."""
    released: int
    """How many released cells have a value."""
    largest: tuple[float, float]
    """The largest magnitudes of the original and of the release."""
    apart: Summary
    """Of half of what released values are above the original ones, or of half the released ones."""

    def merged(self, other: _Seen) -> _Seen:
        return _Seen(
            max(self.fineness, other.fineness),
            self.released + other.released,
            (max(self.largest[0], other.largest[0]), max(self.largest[1], other.largest[1])),
            self.apart.merged(other.apart),
        )


def _step(column: Current, original: Array, here: Array | None, how: _Drawn, rows: Rows) -> float | None:
    """The step of a column's grid; None where it needs none. `here` are the originals of the released rows."""
    if how.own is not None:
        step = how.own
        if how.rounded is not None and how.rounded != _AS_THE_ORIGINAL:
            step = max(step, _unit(how.rounded))
        return step or None
    there = original[~np.isnan(original)]
    released = column.values[~np.isnan(column.values)]
    if here is None:
        changed = released / 2  # halves: a difference of two numbers near the largest would overflow
    else:
        both = ~np.isnan(column.values) & ~np.isnan(here)
        changed = column.values[both] / 2 - here[both] / 2
    ladder = _ladder(column)
    fineness = decimals_of(there) if ladder is None else _unit_of(there, ladder)
    largest = (_largest(there), _largest(released))
    seen = rows.merged(_Seen(fineness, released.size, largest, Summary.of(changed)))
    gaps = seen.apart.gaps(changed)
    half = seen.apart.width(rows.sums([lambda: gaps * gaps])[0]) * seen.apart.scale
    scale = min(2 * half, float(np.finfo(float).max))
    if not seen.released:
        return None
    last = math.ulp(seen.largest[1])
    if ladder is not None:
        return _first(ladder[seen.fineness :: -1], least=max(OF_DECIMALS * scale, last))
    own = _own(seen.fineness, scale=scale, last=last, largest=seen.largest[0])
    if own is None or how.rounded is None:
        return own
    return max(own, _unit(seen.fineness if how.rounded == _AS_THE_ORIGINAL else how.rounded))


def _largest(x: Array) -> float:
    return max(-float(x.min()), float(x.max())) if x.size else 0.0


def _own(decimals: int, *, scale: float, last: float, largest: float) -> float | None:
    """The step of numbers with so many decimals, or of real ones; None for real numbers that nothing changed."""
    # what has few decimals only because doubles of its size have no more is real
    if decimals < MOST_DECIMALS and _unit(decimals) >= math.ulp(largest):
        steps = [_unit(kept) for kept in range(decimals, -1, -1)]
        found = _first(steps, least=max(OF_DECIMALS * scale, last))
        return power_of_two(max(OF_REALS * scale, last, 1.0)) if found is None else found
    return power_of_two(max(OF_REALS * scale, last)) if scale > 0 else None


def _unit(decimals: int) -> float:
    """10^-decimals, as the nearest double."""
    return float(f"1e{-decimals}")


def _first(steps: Iterable[float], *, least: float) -> float | None:
    return next((step for step in steps if step >= least), None)


def _ladder(column: Current) -> list[float] | None:
    """Day, hour, minute, second and its parts in the units of a column of dates or times; None for numbers."""
    if column.temporal is None:
        return None
    day = round(1 / float(dates.in_days(np.ones(1), column.temporal)[0]))
    parts = (1, 24, 1440, 86_400, 86_400 * 10**3, 86_400 * 10**6)
    return [float(day // part) for part in parts if part <= day]


def _unit_of(values: Array, ladder: Sequence[float]) -> int:
    """The place of the coarsest unit of which all values are multiples."""
    return next((k for k, unit in enumerate(ladder) if np.all(np.fmod(values, unit) == 0)), len(ladder) - 1)


def counted(told: float, temporal: Any) -> float:
    """The step that a manifest tells in the units in which a column is counted; those of numbers are the same."""
    if temporal is None:
        return told
    step = told / float(dates.in_days(np.ones(1), temporal)[0])
    return float(round(step)) if step >= 1 else step
