"""A number of the headline: its value, its limit, whether the limit holds, and a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Status = Literal["red", "amber", "green"]

HEADLINE = ("people_found", "certain", "k_anonymity", "worst_utility", "guarantees")
"""The ids, in their order."""
STATUSES: tuple[Status, ...] = ("green", "amber", "red")
"""From the best to the worst."""
FOUND_LIMIT = 0.09
"""The largest share of people found that a release may have: the threshold of the European Medicines Agency and of
Health Canada for public releases."""
_NEAR = 0.8
"""From this part of its limit on a measured share is near it: within a fifth."""


@dataclass(frozen=True)
class Item:
    """One of the numbers that decide."""

    id: str
    value: float | None
    """None where it was not measured."""
    limit: float | None
    """None where there is none to hold it to."""
    status: Status
    sentence: str
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else the JSON document says of it."""

    def to_dict(self) -> dict[str, Any]:
        """For the JSON document."""
        made = {"id": self.id, "value": self.value, "limit": self.limit, "status": self.status}
        return {**made, "sentence": self.sentence, **self.more}


def not_measured(name: str, why: str, *, limit: float | None = None) -> Item:
    """A number that nobody measured: amber, for it vouches for nothing."""
    return Item(name, None, limit, "amber", f"Not measured: {why}.")


def at_most(value: float, limit: float) -> Status:
    """Of a measured share: red above the limit, amber within a fifth of it."""
    if value > limit:
        return "red"
    return "amber" if limit > 0 and value > _NEAR * limit else "green"


def worst(statuses: Iterable[Status]) -> Status:
    """The worst of some statuses.

    >>> worst(["green", "red", "amber"])
    'red'
    """
    return max(statuses, key=STATUSES.index, default="green")


def of_versions(each: Sequence[Sequence[Item]]) -> list[Item]:
    """The headline of several versions of a release: of every number the worst of them."""
    made = []
    for name in HEADLINE:
        found = [(number, item) for number, items in enumerate(each, start=1) for item in items if item.id == name]
        if not found:
            continue
        number, item = max(found, key=lambda one: (STATUSES.index(one[1].status), _pressure(one[1])))
        if len({other.sentence for _, other in found}) > 1:
            item = replace(item, sentence=f"Version {number} of {len(each)}, the worst: {item.sentence}")
        made.append(item)
    return made


def _pressure(item: Item) -> float:
    """How near a number is to its limit, or how far beyond."""
    if item.value is None:
        return float("inf")
    if item.id == "k_anonymity":
        return -item.value
    return item.value / item.limit if item.limit else item.value
