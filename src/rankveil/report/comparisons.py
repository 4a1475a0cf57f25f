"""The page of a comparison, from plain data: the recommendation first, then the map, the methods, and the notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankveil.catalogue import get_measure, get_method
from rankveil.errors import listing
from rankveil.report import figures
from rankveil.report.chart import Chart
from rankveil.report.decision import compare_opening
from rankveil.report.look import number
from rankveil.report.page import Captioned, Grid, Section, notes_section, render

EXACT = ("risk", "utility", "level")
"""Targets that are made equal; all others are limits."""


def compare_page(content: Mapping[str, Any], *, command: str | None = None, public: bool = False) -> str:
    """The page of a comparison: `content` as its JSON document; it tells of no single record."""
    opening = compare_opening(content, limited=any(what not in EXACT for what in content["at"]))
    return render(
        title="Which method for these data",
        lead="" if opening is not None else content["recommendation"],
        sections=compare_sections(content, public=public),
        internal=not public,
        command=command,
        opening=opening,
    )


def compare_sections(content: Mapping[str, Any], *, public: bool = False) -> list[Section]:
    """The parts of a page that show a comparison; why a method failed may name values, and is not for the public."""
    grids = [Grid(headings, rows, caption=caption) for caption, headings, rows in compare_grids(content)]
    told = [f"{one['id']}: {one['note']}" for one in content["methods"] if one.get("note") and not public]
    methods = Section("The methods", _what(content), charts=compare_charts(content), tables=grids, notes=told)
    return [methods, *notes_section(content["notes"])]


def compare_charts(content: Mapping[str, Any]) -> list[Chart]:
    """The map of risk and utility, when there is something on it."""
    first = content["utility"][:1]
    known = any(name in place["utility"] for name in first for one in content["methods"] for place in _places(one))
    return [_map(content)] if known else []


def _map(content: Mapping[str, Any]) -> Chart:
    """Risk against the first utility: every place of the map, or where the methods were brought to."""
    utility = content["utility"][0]
    points = {}
    for one in content["methods"]:
        made = [
            {
                "risk": place["risk"]["mean"],
                "utility": place["utility"][utility]["mean"],
                "low": place["utility"][utility]["interval"][0],
                "high": place["utility"][utility]["interval"][1],
                "label": _strength({**one, **place}),
                "front": place.get("front", False),
            }
            for place in _places(one)
            if utility in place["utility"]
        ]
        if made:
            points[one["id"]] = made
    return figures.risk_utility_map(
        points,
        risk=content["risk"],
        utility=utility,
        risk_better=get_measure(content["risk"]).better,
        utility_better=get_measure(utility).better,
    )


def _places(one: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The points of a method on the map, or the one where it was brought to."""
    if one.get("points"):
        return list(one["points"])
    return [one] if one.get("risk") and one["utility"] else []


def _what(content: Mapping[str, Any]) -> str:
    attributes = f"{content['records']} records, {len(content['attributes'])} attributes"
    count = content["replicates"]
    several = "one masking of each method" if count == 1 else f"means of {count} maskings of each random method"
    return f"{attributes}; {several}. Methods whose intervals overlap share a rank."


def compare_grids(content: Mapping[str, Any]) -> list[Captioned]:
    """The tables of a comparison: a caption, headings and rows each, for a page and for a terminal."""
    return [_map_grid(content)] if not content["at"] else [_method_grid(content), *_attribute_grids(content)]


def _method_grid(content: Mapping[str, Any]) -> Captioned:
    ((what, value),) = content["at"].items()
    utilities, by_risk = content["utility"], what == "utility"
    shown = [content["risk"], *utilities[1:]] if by_risk else utilities  # the first utility is what is attained
    heads = ("rank", "method", "strength", "attained", *shown, "evaluations", "can attain")
    rows = []
    for one in content["methods"]:
        values = [_with_error(one["utility"].get(name)) for name in (utilities[1:] if by_risk else utilities)]
        if by_risk:
            values.insert(0, _with_error(one.get("risk")))
        span = one["attainable"]
        can = "-" if span is None else f"{number(span[0])} to {number(span[1])}"
        if not one.get("applicable", True):
            can = "not applicable"
        row = (one["rank"], one["id"], _strength(one), one["attained"], *values, one["evaluations"], can)
        rows.append((*row, *_left(one, content)))
    return _caption(what, value), (*heads, *_left_head(content)), rows


def _caption(what: str, value: float) -> str:
    """What the methods were brought to."""
    if what in EXACT:
        return f"At {what} = {number(value)}"
    higher = what != "found" and get_measure(what).better == "higher"
    return f"With {what} of {'at least' if higher else 'at most'} {number(value)}"


def _left_head(content: Mapping[str, Any]) -> tuple[str, ...]:
    """A heading for the columns that methods pass through, where some do."""
    return ("leaves as they are",) if any(one.get("passed_through") for one in content["methods"]) else ()


def _left(one: Mapping[str, Any], content: Mapping[str, Any]) -> tuple[str, ...]:
    """The cell below that heading."""
    return tuple(listing(one.get("passed_through", ())) or "-" for _ in _left_head(content))


def _attribute_grids(content: Mapping[str, Any]) -> list[Captioned]:
    tuned = {one["id"]: one["attributes"] for one in content["methods"] if one.get("attributes")}
    if not tuned:
        return []
    heads = ("attribute", *(f"{name}: {what}" for name in tuned for what in ("strength", "level")))
    rows = [  # a method leaves columns of other kinds as they are
        (each, *(given.get(each, {}).get(what) for given in tuned.values() for what in ("strength", "level")))
        for each in content["attributes"]
    ]
    return [("Attribute by attribute", heads, rows)]


def _map_grid(content: Mapping[str, Any]) -> Captioned:
    utilities = content["utility"]
    rows = []
    for one in content["methods"]:
        for point in one.get("points", ()):
            values = [_with_error(point["utility"].get(name)) for name in utilities]
            risk = _with_error(point["risk"])
            row = (one["id"], _strength({**one, **point}), risk, *values, "yes" if point["front"] else "")
            rows.append((*row, *_left(one, content)))
    heads = ("method", "strength", content["risk"], *utilities, "not beaten", *_left_head(content))
    return "The whole map", heads, rows


def _strength(one: Mapping[str, Any]) -> str:
    name = get_method(one["id"]).strength
    value = one["parameters"].get(name) if name else None
    if value is None:
        return "-"
    if isinstance(value, Mapping):
        return f"{name}, one for each attribute"
    return f"{name} = {number(value)}"


def _with_error(value: Mapping[str, Any] | None) -> str:
    """A mean and half its interval, or both ends of one that the bounds of the measure cut short.

    >>> _with_error({"mean": 0.5, "interval": [0.25, 0.75]}), _with_error({"mean": 0.75, "interval": [0.0, 1.0]})
    ('0.5 ± 0.25', '0.75 (0 to 1)')
    """
    if value is None:
        return "-"
    mean, (low, high) = value["mean"], value["interval"]
    if high <= low:
        return number(mean)
    if abs((mean - low) - (high - mean)) > 1e-9 * (high - low):
        return f"{number(mean)} ({number(low)} to {number(high)})"
    return f"{number(mean)} ± {number((high - low) / 2)}"
