"""What people and programs read on standard output."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rankveil.errors import one_line
from rankveil.report.look import number as number

_WIDE = 4000
"""Columns of standard output that is not a terminal: nothing is wrapped there."""

_READABLE = 200_000
"""Characters up to which a JSON document is indented."""


def emit(document: Any) -> None:
    """One JSON document and nothing else; numbers that JSON does not know become null."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    try:
        text = json.dumps(document, ensure_ascii=not utf8, allow_nan=False)
    except (TypeError, ValueError):
        document = plain(document)
        text = json.dumps(document, ensure_ascii=not utf8, allow_nan=False)
    if len(text) <= _READABLE:  # indenting takes several times as long, and nobody reads a long document by eye
        text = json.dumps(document, indent=2, ensure_ascii=not utf8, allow_nan=False)
    print(text)


def plain(value: Any) -> Any:
    """Plain JSON data: numpy's numbers and arrays as Python's, infinite and undefined ones as None.

    >>> plain({"a": (1, float("inf"))})
    {'a': [1, None]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Sequence | set | frozenset):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def say(*sentences: str) -> None:
    """A paragraph."""
    _console().print(" ".join(one_line(sentence) for sentence in sentences), soft_wrap=not _watched())


def line(text: str) -> None:
    """One line that is never wrapped: a path or a command, which people copy."""
    _console().print(one_line(text), soft_wrap=True)


def gap() -> None:
    """An empty line."""
    _console().print()


def grid(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table; columns of numbers are right-aligned."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD if _watched() else None, pad_edge=False, show_edge=False)
    for place, heading in enumerate(headings):
        numeric = all(_is_number(row[place]) for row in rows)
        wrap = {"justify": "right", "no_wrap": True} if numeric else {"overflow": "fold"}
        table.add_column(one_line(heading), **wrap)
    for row in rows:
        table.add_row(*(shown(value) for value in row))
    if _watched():
        _console().print(table)
        return
    console = _console()
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def shown(value: Any) -> str:
    """A cell for people: four digits of a number, yes or no, a dash for nothing."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) else one_line(str(value))


def count(many: int, what: str) -> str:
    """A number with its word.

    >>> count(1, "record"), count(3, "record")
    ('1 record', '3 records')
    """
    return f"{many} {what}" if many == 1 else f"{many} {what}s"


def kinds(given: Sequence[str]) -> str:
    """Which columns an entry of the catalogue takes.

    >>> kinds(["numeric", "ordinal", "hierarchy"]), kinds(["numeric", "ordinal", "nominal"])
    ('numeric, ordinal, nominal with a hierarchy', 'all kinds')
    """
    if {"numeric", "ordinal", "nominal"} <= set(given):
        return "all kinds"
    return ", ".join("nominal with a hierarchy" if kind == "hierarchy" else kind for kind in given)


def notes(given: Sequence[str]) -> None:
    """What else a person should know, at the end."""
    if given:
        gap()
    for note in dict.fromkeys(given):
        say(note if note.startswith("warning:") else f"note: {note}")


def _watched() -> bool:
    return sys.stdout.isatty()


def _console() -> Any:
    from rich.console import Console

    return Console(file=sys.stdout, markup=False, highlight=False, emoji=False, width=None if _watched() else _WIDE)
