"""The page that decides, in a terminal: a light, five numbers with their limits, and what to do about it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from rankveil.cli import output
from rankveil.report.decision import NAMES, decision_of, light, limit_of, value_of

_WIDE = 96
_INDENT = " " * 8


def show_decision(content: Mapping[str, Any]) -> None:
    """Print what decides."""
    output.line(f"{content['status'].upper()}: {decision_of(content)}")
    output.gap()
    for item in content["headline"]:
        value, limit = value_of(item), limit_of(item)
        told = f"{value} ({limit})" if limit else value
        output.line(f"{light(item):<8}{NAMES[item['id']]}: {told}")
        _wrapped(item["sentence"])
    if content["advice"]:
        output.gap()
        output.line("What to do about it")
        for number, each in enumerate(content["advice"], start=1):
            _wrapped(each["sentence"], begin=f"{number}.      ")
            output.line(f"{_INDENT}{each['command']}")


def _wrapped(text: str, *, begin: str = _INDENT) -> None:
    for line in textwrap.wrap(text, _WIDE, initial_indent=begin, subsequent_indent=_INDENT):
        output.line(line)
