"""The words of the page that decides, for reports, terminals and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankveil.report.look import number

NAMES = {
    "people_found": "People found",
    "certain": "Certain links",
    "k_anonymity": "Smallest class",
    "worst_utility": "Worst loss of use",
    "guarantees": "Guarantees refuted",
}
DECISIONS = {
    "red": "a limit is broken. Do not publish this release as it is.",
    "amber": "no limit is broken, but something was not measured or is near its limit. Look before you publish.",
    "green": "every limit holds, as far as it was measured.",
}
_UNITS = {"mean_shift": " sd", "table_cells": "%", "use_kept": "%"}


def light(item: Mapping[str, Any]) -> str:
    """The light of a number; none where there is nothing to hold it to."""
    if item["limit"] is None and item["value"] is not None:
        return "-"
    if item.get("promised") == 0:
        return "-"
    return str(item["status"]).upper()


def value_of(item: Mapping[str, Any]) -> str:
    """The number as people read it."""
    if item.get("promised") == 0:
        return "none promised"
    return "not measured" if item["value"] is None else _shown(item, item["value"])


def limit_of(item: Mapping[str, Any]) -> str:
    """Its limit as people read it; nothing where there is none."""
    if item.get("promised") == 0:
        return ""
    if item["limit"] is None:
        return "no limit" if item["value"] is not None else ""
    if item["id"] in ("certain", "guarantees") and item["limit"] == 0:
        return "none allowed"
    return f"{'at least' if item['id'] == 'k_anonymity' else 'at most'} {_shown(item, item['limit'])}"


def _shown(item: Mapping[str, Any], value: float) -> str:
    unit = "%" if item["id"] == "people_found" else _UNITS.get(item.get("measure", ""), "")
    if unit == "%":
        return f"{100 * value:.3g} %"
    return f"{value:,.0f}" if value == int(value) and not unit else f"{number(value)}{unit}"
