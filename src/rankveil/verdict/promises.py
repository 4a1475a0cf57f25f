"""What a manifest promises of its release, checked again where a measurement can refute it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankveil.catalogue import methods
from rankveil.classes import Classes, Missing
from rankveil.errors import RankveilError, listing
from rankveil.table import Table
from rankveil.verdict.item import Item, Status, worst

_NOT_TESTED = "nothing measured can confirm or refute it"


@dataclass(frozen=True)
class Promise:
    """A guarantee of the manifest."""

    kind: Literal["k", "d", "other"]
    sentence: str
    columns: tuple[str, ...] = ()
    least: float = 0
    """The k or the d."""
    missing: Missing = "own"
    """What a missing cell agrees with."""


def promises_of(manifest: Mapping[str, Any] | None) -> list[Promise]:
    """The guarantees of a manifest: those of k and d with what is needed to check them."""
    if manifest is None:
        return []
    told = [str(sentence) for sentence in manifest.get("guarantees") or ()]
    made: list[Promise] = []
    left = list(told)
    for step in manifest.get("steps") or ():
        for promise in _of_step(step, manifest):
            said = next((each for each in left if each.startswith(promise.sentence)), None)
            if said is not None:
                left.remove(said)
                made.append(promise)
    return [*made, *(Promise("other", sentence) for sentence in left)]


def _of_step(step: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[Promise]:
    """What a step promises in the words of its method, to be found again among the guarantees."""
    entry = methods().get(step.get("method", ""))
    if entry is None or entry.guarantee is None:
        return []
    try:
        dropped = {column["name"] for column in manifest["columns"] if column["dropped"]}
        columns = [name for name in step["columns"] if name not in dropped]
        bound = {name: {**step["parameters"], **step.get("per_column", {}).get(name, {})} for name in step["columns"]}
        kinds = {"k" for given in bound.values() if "k" in given} | {"d" for given in bound.values() if "d" in given}
        if kinds == {"k"}:
            given = next(iter(bound.values()))
            said = entry.guarantee(bound, step.get("counts", {}), columns)
            missing: Missing = "any" if given.get("missing_is") == "any" else "own"
            return [Promise("k", each, tuple(columns), given["k"], missing) for each in said if "k-anonymity" in each]
        if kinds == {"d"}:
            return [
                Promise("d", each, (name,), bound[name]["d"])
                for name in columns
                for each in entry.guarantee(bound, step.get("counts", {}), [name])
            ]
    except (KeyError, TypeError, ValueError, RankveilError):
        return []  # a manifest of another version or by other hands: its sentences stand as they are
    return []


def smallest_class(released: Table, columns: Sequence[str], *, missing: Missing = "own") -> int:
    """The fewest released records that agree in some columns."""
    values = {name: _told_apart(released, name) for name in columns}
    return int(Classes.of(values, missing=missing).agreeing.min())


def _told_apart(table: Table, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers that are equal where cells are."""
    cells = table.cells(name)
    return table.values(name) if cells.kind == "numeric" else table.codes(name, table.categories(name))


@dataclass(frozen=True)
class Checked:
    """A promise, and what became of it: `None` where nothing could be measured."""

    promise: Promise
    holds: bool | None
    sentence: str


def checked(promise: Promise, released: Table | None, least_move: Callable[[str], float | None]) -> Checked:
    """A promise beside the release; `least_move` gives the least rank change of a column, None without a mapping."""
    if promise.kind == "k":
        said = f"the promised k = {promise.least:g} for {listing(promise.columns, most=4)}"
        if released is None or any(name not in released.names for name in promise.columns) or not len(released):
            return Checked(promise, None, f"{said} could not be checked")
        found = smallest_class(released, promise.columns, missing=promise.missing)
        if found >= promise.least:
            return Checked(promise, True, f"{said} holds (smallest class {found})")
        return Checked(promise, False, f"{said} is refuted: the smallest class has {found}")
    if promise.kind == "d":
        (name,) = promise.columns
        said = f"the promised d = {promise.least:g} for {name}"
        moved = least_move(name)
        if moved is None:
            return Checked(promise, None, f"{said} needs the mapping to be checked")
        if moved >= promise.least:
            return Checked(promise, True, f"{said} holds (least {moved:g})")
        return Checked(promise, False, f"{said} is refuted: a value moved by {moved:g} ranks")
    what = "differential privacy" if "differential privacy" in promise.sentence else promise.sentence.partition(":")[0]
    return Checked(promise, None, f"{what} is promised by the method; {_NOT_TESTED}")


def guarantees(
    manifest: Mapping[str, Any] | None,
    released: Table | None,
    least_move: Callable[[str], float | None],
    *,
    another: bool = False,
) -> Item:
    """The promises of the manifest: red where one is refuted, amber where one cannot be checked by measurement.

    `another` says that the release is not the table that the manifest describes.
    """
    given = promises_of(manifest)
    if not given:
        why = "there is no manifest" if manifest is None else "the manifest gives none"
        return Item("guarantees", 0, 0, "green", f"None promised: {why}.", {"promised": 0})
    found = [checked(promise, released, least_move) for promise in given]
    refuted = sum(each.holds is False for each in found)
    if another and not refuted:
        said = "The release is not the table that its manifest describes: what that promises is not said of this file."
        return Item("guarantees", None, 0, "amber", said, {"promised": len(given)})
    statuses: list[Status] = ["green" if each.holds else "red" if each.holds is False else "amber" for each in found]
    order = sorted(dict.fromkeys(each.sentence for each in found), key=lambda said: "refuted" not in said)
    return Item("guarantees", refuted, 0, worst(statuses), f"{_joined(order)}.", {"promised": len(given)})


def _joined(said: Sequence[str]) -> str:
    """The first few, refuted ones before the others."""
    shown = "; ".join(said[:3])
    return shown[0].upper() + shown[1:] + (f"; and {len(said) - 3} more" if len(said) > 3 else "")
