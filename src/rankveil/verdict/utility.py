"""The worst of the numbers that say what a user keeps, beside what each may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rankveil.catalogue import Value, measures
from rankveil.report.look import number
from rankveil.verdict.item import Item, at_most, not_measured, worst
from rankveil.verdict.words import portion


@dataclass(frozen=True)
class _Loss:
    """A measure as a loss, lower is better, with the most that it may be."""

    loss: Callable[[float], float]
    limit: Callable[[Value], float]
    sentence: Callable[[Value], str]


def _of_correlation(value: Value) -> str:
    pair = value.details.get("pair") or {}
    between = f" between {pair['a']} and {pair['b']}" if "a" in pair else ""
    now = "" if pair.get("masked") is None else f", from {pair['original']:.2f} to {pair['masked']:.2f}"
    return f"The rank correlation{between} changed by {number(value.value)}{now}: no other changed more."


def _of_mean(value: Value) -> str:
    each = value.details.get("per_attribute") or {}
    whose = f" of {max(each, key=each.__getitem__)}" if each else ""
    return f"The mean{whose} moved by {number(value.value)} standard deviations: no other moved more."


def _of_cells(value: Value) -> str:
    said = f"{portion(1 - value.value)} of the cells of two-way tables changed by more than 5 %"
    expected = value.details.get("expected")
    return f"{said}; of another sample of the same size {portion(1 - expected)} would." if expected else f"{said}."


def _of_use(value: Value) -> str:
    return (
        f"{portion(1 - value.value)} of the estimates of the stated use did not keep sign, significance and interval."
    )


_FEWEST_CELLS = 0.1
"""The share of the cells of two-way tables that must be within 5 %, where another sample of the same size keeps twice
as many. It is low, for 5 % is little: of tables of 25 cells and a thousand records another sample keeps a fifth, and a
masking in which at most 9 % are found and no correlation changes by more than 0.1 keeps a sixth."""


def _most_cells(value: Value) -> float:
    """The share of cells that may change: of few records another sample keeps few too, half of which are asked."""
    expected = value.details.get("expected")
    return 1 - (_FEWEST_CELLS if expected is None else min(_FEWEST_CELLS, expected / 2))


_LOSSES: Mapping[str, _Loss] = {
    "correlation_change": _Loss(lambda value: value, lambda value: 0.1, _of_correlation),
    "mean_shift": _Loss(lambda value: value, lambda value: 0.1, _of_mean),
    "table_cells": _Loss(lambda value: 1 - value, _most_cells, _of_cells),
    "use_kept": _Loss(lambda value: 1 - value, lambda value: 0.1, _of_use),
}


_ALWAYS = ("correlation_change", "mean_shift", "table_cells")
"""Without these the worst is not known; a use is only measured where one is stated."""


def utility_measures() -> tuple[str, ...]:
    """The measures of the catalogue that the worst utility is taken from."""
    return tuple(name for name in _LOSSES if name in measures())


def worst_utility(values: Mapping[str, Value], why: Mapping[str, str]) -> Item:
    """The measure that is worst beside its limit, as a loss: lower is better, whichever it is."""
    found = {name: values[name] for name in _LOSSES if name in values}
    if not found:
        told = next((f"{name} does not apply ({why[name]})" for name in _LOSSES if name in why), "it was not asked for")
        return not_measured("worst_utility", told)
    losses = {name: max(_LOSSES[name].loss(value.value), 0.0) for name, value in found.items()}
    limits = {name: _LOSSES[name].limit(value) for name, value in found.items()}
    pressures = {name: _pressure(name, losses[name], limits[name]) for name in found}
    name = max(pressures, key=pressures.__getitem__)
    own = _LOSSES[name]
    status, said = at_most(pressures[name], 1), own.sentence(found[name])
    left = [each for each in _ALWAYS if each in measures() and each not in found and _unmeasured(why.get(each))]
    if left:
        status, said = worst((status, "amber")), f"{said} Not measured: {', '.join(left)}."
    return Item("worst_utility", losses[name], limits[name], status, said, {"measure": name})


def _pressure(name: str, loss: float, limit: float) -> float:
    """How near a loss is to its limit: 1 there, more beyond; of cells by those that are kept, which are few."""
    if name == "table_cells":
        return (1 - limit) / max(1 - loss, 1e-9)
    return loss / limit


def _unmeasured(why: str | None) -> bool:
    """Whether a measure could have been computed: it was not asked for, or the tables are in parts."""
    return why is None or why.startswith("not on a cluster")
