"""The words of the page that decides, for reports, terminals and notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankveil.report.look import number
from rankveil.report.page import Captioned, Opening, OpeningRow

NAMES = {
    "people_found": "Re-identification rate",
    "certain": "Certain re-identifications",
    "k_anonymity": "Smallest class (k)",
    "worst_utility": "Largest loss of utility",
    "guarantees": "Promised guarantees",
}
DECISIONS = {
    "red": "a limit is broken. Do not publish this release as it is.",
    "amber": "no limit is broken, but something was not measured or is near its limit. Look before you publish.",
    "green": "every limit holds, as far as it was measured.",
}
_LOST = "too much of what users need is lost"
_PROTECTED = "The limits that protect people are not broken."
_UNITS = {"mean_shift": " sd", "table_cells": "%", "use_kept": "%"}


def opening(content: Mapping[str, Any]) -> Opening:
    """What the page of an audit opens with, from its JSON document."""
    rows = [
        OpeningRow(_lamp(item), NAMES[item["id"]], value_of(item), limit_of(item), item["sentence"])
        for item in content["headline"]
    ]
    advice = [(each["sentence"], each["command"]) for each in content["advice"]]
    return Opening(content["status"], sentence_of(content), rows, advice)


def decision_grid(content: Mapping[str, Any]) -> Captioned:
    """The numbers as a table, for a notebook."""
    rows = [
        (light(item), NAMES[item["id"]], value_of(item), limit_of(item), item["sentence"])
        for item in content["headline"]
    ]
    return f"{content['status'].upper()}: {decision_of(content)}", ("", "number", "value", "limit", ""), rows


def attack_opening(content: Mapping[str, Any]) -> Opening:
    """What the page of an attack opens with: the verdict, and the two numbers that it goes by."""
    rest = "How it was found"
    if content["verdict"] is None:
        return Opening("amber", f"No verdict. {content['sentence']}", rest=rest)
    status = "green" if content["verdict"] == "holds" else "red"
    found, limit = content["found"], content["limit"]
    low, high = (f"{100 * end:.3g}" for end in found["interval"])
    measured = "measured" if found["right"] is not None else "as the intruder expects"
    rows = [
        OpeningRow(
            "red" if found["share"] > limit else "green",
            NAMES["people_found"],
            f"{100 * found['share']:.3g} %",
            f"at most {100 * limit:.3g} %",
            f"Of {found['of']:,} people, {measured}; 95 % interval {low} to {high} %.",
        ),
        OpeningRow(
            "red" if content["certain"] else "green",
            NAMES["certain"],
            f"{content['certain']:,}",
            "none allowed",
            "Links that follow by logic alone.",
        ),
    ]
    return Opening(status, f"{content['sentence']} The release {content['verdict']}.", rows, rest=rest)


def compare_opening(content: Mapping[str, Any], *, limited: bool) -> Opening | None:
    """What the page of a comparison opens with; nothing where methods were made equal, which is no limit."""
    if not limited:
        return None
    rest, words = "The methods compared", content["recommendation"]
    if content["pick"] is None:
        return Opening("red", words, rest=rest)
    sure = content["pick"]["confirmed"]
    rows = []
    if "found" in sure:
        low, high = (f"{100 * end:.3g}" for end in sure["interval"])
        many = sure.get("certain", 0)
        told = f"Of all people, on {sure['seeds']} fresh seeds; 95 % interval {low} to {high} %."
        rows = [
            OpeningRow("", NAMES["people_found"], f"{100 * sure['found']:.3g} %", "", told),
            OpeningRow(
                "red" if many else "green", NAMES["certain"], f"{many:,}", "none allowed", "In the worst of the seeds."
            ),
        ]
        limit = content["at"].get("found", content["at"].get("people_found"))
        if limit is not None:
            lamp = "red" if sure["found"] > limit else "green"
            rows[0] = OpeningRow(lamp, rows[0].name, rows[0].value, f"at most {100 * limit:.3g} %", told)
    held = sure.get("held") == sure["seeds"] and not sure.get("certain")
    return Opening("green" if held else "amber", words, rows, rest=rest)


def decision_of(content: Mapping[str, Any]) -> str:
    """What the light of an audit means; whether people are at risk, or what users need is lost."""
    red = [item["id"] for item in content["headline"] if item["status"] == "red"]
    if red == ["worst_utility"]:
        amber = any(item["status"] == "amber" for item in content["headline"])
        return (
            f"{_LOST}, and something else was not measured or is near its limit." if amber else f"{_LOST}. {_PROTECTED}"
        )
    return DECISIONS[content["status"]]


def sentence_of(content: Mapping[str, Any]) -> str:
    """What a light means, as a sentence of its own."""
    words = decision_of(content)
    return words[0].upper() + words[1:]


def _lamp(item: Mapping[str, Any]) -> str:
    shown = light(item)
    return "" if shown == "-" else shown.lower()


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
    if item["value"] is None:
        return "not measured"
    if item["id"] == "guarantees":
        return f"{item['value']} refuted" if item["value"] else "none refuted"
    return _shown(item, item["value"])


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
