"""The worst of the numbers that say what a user keeps, beside what each may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rankveil.catalogue import Value, measures
from rankveil.report.look import number
from rankveil.verdict.item import Item, at_most, not_measured
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
    return f"{portion(1 - value.value)} of the cells of two-way tables changed by more than 5 %."


def _of_use(value: Value) -> str:
    return (
        f"{portion(1 - value.value)} of the estimates of the stated use did not keep sign, significance and interval."
    )


def _of_another_sample(value: Value) -> float:
    """The share of cells that may be lost: as many as in another sample of the same size, and at least a fifth.

    A cell with share p of n records has in another sample the relative standard deviation sqrt((1 - p) / (p n)); here
    p is that of a cell of average size.
    """
    details = value.details
    cells = details.get("cells", 0) / max(details.get("tables", 1), 1)
    records = _least(details.get("records"))
    if records is None or cells <= 1:
        return 0.2
    kept = math.erf(0.05 * math.sqrt(records / (cells - 1)) / math.sqrt(2))
    return max(0.2, 1 - kept)


def _least(records: Any) -> float | None:
    """The fewest records that a table had, in either of the two."""
    while isinstance(records, list | tuple):
        if not records:
            return None
        records = min(each for each in map(_least, records) if each is not None)
    return None if records is None else float(records)


_LOSSES: Mapping[str, _Loss] = {
    "correlation_change": _Loss(lambda value: value, lambda _: 0.1, _of_correlation),
    "mean_shift": _Loss(lambda value: value, lambda _: 0.1, _of_mean),
    "table_cells": _Loss(lambda value: 1 - value, _of_another_sample, _of_cells),
    "use_kept": _Loss(lambda value: 1 - value, lambda _: 0.1, _of_use),
}


def utility_measures() -> tuple[str, ...]:
    """The measures of the catalogue that the worst utility is taken from."""
    return tuple(name for name in _LOSSES if name in measures())


def worst_utility(values: Mapping[str, Value], why: Mapping[str, str]) -> Item:
    """The measure that is worst beside its limit, as a loss: lower is better, whichever it is."""
    found = {name: values[name] for name in _LOSSES if name in values}
    if not found:
        told = next((f"{name} does not apply ({why[name]})" for name in _LOSSES if name in why), "it was not asked for")
        return not_measured("worst_utility", told)
    losses = {
        name: (max(_LOSSES[name].loss(value.value), 0.0), _LOSSES[name].limit(value)) for name, value in found.items()
    }
    name = max(losses, key=lambda each: losses[each][0] / losses[each][1])
    loss, limit = losses[name]
    return Item(
        "worst_utility", loss, limit, at_most(loss, limit), _LOSSES[name].sentence(found[name]), {"measure": name}
    )
