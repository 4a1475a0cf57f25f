"""The estimates of stated uses as tables: from the original, from the release, and what is kept of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankveil.report.page import Captioned

_SHOWN = 30
"""Estimates of a use that are shown, those that are not kept first; the JSON document has all."""
_HEADINGS = ("estimate", "original", "95 %: from", "to", "released", "from", "to", "overlap", "kept")


def uses_grids(measures: Mapping[str, Any]) -> list[Captioned]:
    """A caption, headings and rows for each stated use."""
    made: list[Captioned] = []
    for use in measures.get("use_kept", {}).get("details", {}).get("uses", ()):
        estimates = sorted(use["estimates"], key=lambda each: (each["kept"], each["overlap"]))
        if not estimates:
            continue
        kept = sum(each["kept"] for each in estimates)
        caption = f"Stated use: {use['use']}: {kept} of {len(estimates)} estimates kept"
        if len(estimates) > _SHOWN:
            caption += f"; the {_SHOWN} that changed most"
        made.append((caption, _HEADINGS, [_row(each) for each in estimates[:_SHOWN]]))
    return made


def _row(each: Mapping[str, Any]) -> tuple[Any, ...]:
    return (each["name"], *_side(each["original"]), *_side(each["masked"]), each["overlap"], _said(each))


def _side(side: Mapping[str, Any] | None) -> tuple[Any, ...]:
    return (None, None, None) if side is None else (side["estimate"], *(side["interval"] or (None, None)))


def _said(each: Mapping[str, Any]) -> str:
    """What is not kept, in a word.

    >>> _said({"kept": False, "masked": {}, "sign_kept": False, "significance_kept": True, "interval_kept": False})
    'no: sign, interval'
    """
    if each["kept"]:
        return "yes"
    if each["masked"] is None:
        return "no: not in the release"
    return "no: " + ", ".join(what for what in ("sign", "significance", "interval") if each[f"{what}_kept"] is False)
