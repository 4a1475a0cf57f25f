"""The five numbers that decide, from what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Value, methods
from rankveil.errors import NotApplicableError, RankveilError, listing
from rankveil.intruder.finding import Finding
from rankveil.pairs import Pair
from rankveil.ranks import rank_changes
from rankveil.table import Table
from rankveil.verdict.item import FOUND_LIMIT, Item, Status, at_most, not_measured, worst
from rankveil.verdict.promises import Promise, guarantees, promises_of, smallest_class
from rankveil.verdict.utility import worst_utility
from rankveil.verdict.words import knowledge, people, portion

_CLASS_LIMIT = 3
"""The smallest class that quasi-identifiers may have which were released as they are, or generalised."""
_GENERALISING = (
    "recode",
    "round",
    "clip",
    "top_bottom_code",
    "suppress",
    "identity",
    "sample",
    "record_shuffle",
    "drop",
)
"""Methods after which a value still says something true of its record."""
_NOT_ASKED = "it was not among the measures asked for"


@dataclass(frozen=True)
class Measured:
    """What a headline is made of; whatever is missing was not measured."""

    values: Mapping[str, Value]
    not_applicable: Mapping[str, str]
    pair: Pair | None = None
    quasi: tuple[str, ...] = ()
    """The quasi-identifiers of the release."""
    finding: Finding | None = None
    scenario: Finding | None = None
    manifest: Mapping[str, Any] | None = None
    released: Table | None = None
    another: bool = False
    """Whether the release is not the table that the manifest describes."""
    unread: str = ""
    """Why there may be promises that nobody has read."""
    classes: Value | None = field(default=None)


def headline(given: Measured) -> list[Item]:
    """The numbers in their order; k-anonymity where there are quasi-identifiers."""
    items = [*_found(given)]
    if given.quasi:
        items.append(_classes(given))
    items.append(worst_utility(given.values, given.not_applicable))
    items.append(
        not_measured("guarantees", given.unread, limit=0)
        if given.unread
        else guarantees(given.manifest, given.released, least_move(given.pair), another=given.another)
    )
    return items


def overall(items: Sequence[Item]) -> Status:
    """Red where a limit is broken, amber where something was not measured or is near its limit, otherwise green."""
    return worst(item.status for item in items)


def _found(given: Measured) -> list[Item]:
    """Who is found, and who with certainty, by somebody who knows everything."""
    finding = given.finding
    if finding is None:
        why = given.not_applicable.get("people_found", _NOT_ASKED)
        return [not_measured("people_found", why, limit=FOUND_LIMIT), not_measured("certain", why, limit=0)]
    return [_share(finding, given.scenario), _certain(finding, given.scenario)]


def _share(finding: Finding, scenario: Finding | None) -> Item:
    share, measured = finding.share, finding.right is not None
    status = at_most(share, FOUND_LIMIT)
    if not measured:
        status = worst((status, "amber"))
    said = f"{_told(finding)} by somebody who knows all originals."
    if not measured:
        said = f"Which record is whose is not known: by the intruder's own account {said[0].lower()}{said[1:]}"
    more: dict[str, Any] = {"interval": list(finding.interval), "people": finding.count}
    if scenario is not None:
        knows = {"columns": list(scenario.columns), "people": scenario.people, "chosen": scenario.chosen}
        said += f" {_told(scenario)} by somebody who knows {knowledge(knows)}."
        of = {"value": scenario.share, "interval": list(scenario.interval), "people": scenario.count, "knows": knows}
        more["scenario"] = of | {"certain": int(scenario.certain.sum())}
    return Item("people_found", share, FOUND_LIMIT, status, said, more)


def _told(finding: Finding) -> str:
    """A re-identification rate with its interval and the number of people it is taken over."""
    low, high = finding.interval
    return (
        f"{people(finding.share)} can be re-identified ({portion(finding.share)} of {_counted(finding.count)}, 95 % "
        f"interval {100 * low:.3g} to {portion(high)})"
    )


def _counted(many: int) -> str:
    return "1 person" if many == 1 else f"{many:,} people"


def _certain(finding: Finding, scenario: Finding | None) -> Item:
    many = int(finding.certain.sum())
    status: Status = "red" if many else "green"
    said = "No link follows by logic alone: what is found is found by probability."
    if many:
        who = "1 person is" if many == 1 else f"{many:,} people are"
        said = f"{who} found by logic alone: whoever has the originals can be sure of these links."
    if scenario is not None and scenario.certain.any():
        said += f" {int(scenario.certain.sum()):,} in the scenario."
    return Item("certain", many, 0, status, said)


# -- classes


def _classes(given: Measured) -> Item:
    """The smallest class on the quasi-identifiers, held to what was promised, or to 3 where classes mean something."""
    names = listing(given.quasi, most=4)
    promise = _promised(given)
    try:
        found = _smallest(given, promise)
    except (NotApplicableError, RankveilError) as error:
        return not_measured("k_anonymity", str(error))
    if found is None:
        return not_measured("k_anonymity", given.not_applicable.get("k_anonymity", _NOT_ASKED), limit=_CLASS_LIMIT)
    alike = "1 record that nobody else equals" if found == 1 else f"{found:,} records that agree"
    said = f"The smallest class on {names} has {alike}"
    if promise is not None:
        kept = "as promised" if found >= promise.least else f"{promise.least:g} were promised"
        status: Status = "green" if found >= promise.least else "red"
        return Item("k_anonymity", found, promise.least, status, f"{said}; {kept}.")
    perturbed = _perturbed(given)
    if perturbed:
        some = listing(perturbed, most=4)
        were = (
            "they were"
            if len(perturbed) == len(given.quasi) > 1
            else f"{some} {'was' if len(perturbed) == 1 else 'were'}"
        )
        text = f"{said}; {were} perturbed, and perturbed values make no classes."
        return Item("k_anonymity", found, None, "green", text)
    return Item("k_anonymity", found, _CLASS_LIMIT, "green" if found >= _CLASS_LIMIT else "red", f"{said}.")


def _promised(given: Measured) -> Promise | None:
    """The largest k that is promised of all quasi-identifiers."""
    told = [each for each in promises_of(given.manifest) if each.kind == "k" and set(given.quasi) <= set(each.columns)]
    return max(told, key=lambda each: each.least, default=None)


def _smallest(given: Measured, promise: Promise | None) -> int | None:
    if "k_anonymity" in given.values:
        return int(given.values["k_anonymity"].value)
    if given.released is None or not len(given.released):
        return None
    return smallest_class(given.released, given.quasi, missing="own" if promise is None else promise.missing)


def _perturbed(given: Measured) -> list[str]:
    """The quasi-identifiers whose released values need not be true of their records."""
    if given.manifest is not None and not given.another:
        return [name for name in given.quasi if _perturbs(given.manifest, name)]
    if given.pair is None or given.pair.mapping == "none":
        return list(given.quasi)  # made-up records are nobody's
    first, second = (known.quasi for known in given.pair.known)
    rows = given.pair.original, given.pair.masked
    return [name for name in given.quasi if not is_generalised(first[name][rows[0]], second[name][rows[1]])]


def _perturbs(manifest: Mapping[str, Any], name: str) -> bool:
    """Whether a step of the manifest changes the column by more than generalising or suppressing."""
    return any(
        step.get("method") not in _GENERALISING
        for step in manifest.get("steps") or ()
        if name in (step.get("columns") or ())
        and (step.get("method") not in methods() or methods()[step["method"]].works_on not in ("records", "names"))
    )


def is_generalised(before: NDArray[np.float64], after: NDArray[np.float64]) -> bool:
    """Whether each original value has one released value, in the same order, where there is one at all.

    >>> is_generalised(np.array([1.0, 2.0, 3.0, 3.0]), np.array([0.0, 0.0, 1.0, np.nan]))
    True
    >>> is_generalised(np.array([1.0, 2.0, 3.0, 3.0]), np.array([1.0, 3.0, 2.0, 3.0]))
    False
    """
    there = ~(np.isnan(before) | np.isnan(after))
    order = np.lexsort((after[there], before[there]))
    x, y = before[there][order], after[there][order]
    same = x[1:] == x[:-1]
    return bool(np.all(y[1:][same] == y[:-1][same]) and (np.all(y[1:] >= y[:-1]) or _codes_of_words(x, y)))


def _codes_of_words(x: NDArray[np.float64], y: NDArray[np.float64]) -> bool:
    """Whether fewer different values are left: groups of categories need not be in the order of the categories."""
    before = np.unique(x).size
    return np.unique(y).size < before < x.size / 2


def least_move(pair: Pair | None) -> Callable[[str], float | None]:
    """The least rank change of a column, None where the mapping is not known."""

    def found(name: str) -> float | None:
        if pair is None or pair.mapping == "none" or name not in pair.names:
            return None
        column = pair.columns[pair.names.index(name)]
        return float(rank_changes(column.rank_x, column.rank_y).min()) if len(column) else None

    return found
