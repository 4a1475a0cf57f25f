"""One self-contained HTML page: the summary in words, then figures, tables, notes, how to repeat.

The page loads nothing and has no script: its charts are pictures, which mail and paper take as they are, and its
Content-Security-Policy allows none, so that even text that slipped past escaping cannot run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from rankveil.errors import ParameterError
from rankveil.report import interactive
from rankveil.report.chart import Chart
from rankveil.report.look import number

if TYPE_CHECKING:
    from jinja2 import Environment

_NOTHING = "\u2013"  # a dash: the cell is empty on purpose


Captioned = tuple[str, Sequence[str], Sequence[Sequence[Any]]]
"""A table for a page, a terminal or a notebook: its caption, headings and rows."""


@dataclass(frozen=True)
class Grid:
    """A table of a page: numbers are shortened and right-aligned; a text is shown as it is given."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rows", tuple(tuple(row) for row in self.rows))
        for position, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise ParameterError(
                    f"table {self.caption!r}: row {position} has {len(row)} cells for "
                    f"{len(self.columns)} columns; give one cell per column"
                )

    @property
    def cells(self) -> list[list[str]]:
        """What is printed, row by row."""
        return [[_cell(value) for value in row] for row in self.rows]

    @property
    def numeric(self) -> list[bool]:
        """Per column whether it holds numbers (also ready-made ones, as text) and nothing else.

        >>> Grid(["name", "value"], [["A", 1.5], ["B", "0.250"], ["C", None]]).numeric
        [False, True]
        """
        columns = [[row[place] for row in self.rows] for place in range(len(self.columns))]
        return [
            any(value is not None for value in column) and all(_is_number(value) for value in column)
            for column in columns
        ]


@dataclass(frozen=True)
class Section:
    """A part of a page; an empty line in the text begins a new paragraph."""

    title: str
    text: str = ""
    charts: Sequence[Chart] = ()
    tables: Sequence[Grid] = ()
    notes: Sequence[str] = ()

    @property
    def paragraphs(self) -> list[str]:
        """The text, split at empty lines."""
        return _paragraphs(self.text)


def render(
    *,
    title: str,
    lead: str,
    sections: Sequence[Section],
    internal: bool,
    command: str | None = None,
    opening: Opening | None = None,
) -> str:
    """The page as HTML; an internal one says so on the screen and on every printed sheet.

    A public one has no command, whose arguments may name categories, and its notes name no rows. Below an opening all
    else stands in small under one heading.
    """
    from markupsafe import Markup

    if not internal:
        sections = [replace(part, notes=[without_rows(note) for note in part.notes]) for part in sections]
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            title=title,
            lead=_paragraphs(lead),
            sections=sections,
            internal=internal,
            command=command if internal else None,
            opening=opening if internal or opening is None else replace(opening, advice=()),
            level=2 if opening is None else 3,
            # Our own style and drawings, in which names are escaped already.
            chart_style=Markup(interactive.STYLE),
            draw=lambda chart: Markup(interactive.picture(chart)),
        )
    )


def without_rows(note: str) -> str:
    """A note without the numbers of single records.

    >>> without_rows("2 weights are missing (rows 12, 40); every record needs one")
    '2 weights are missing; every record needs one'
    """
    return re.sub(r" \((?:the first in )?rows? [^()]*\)", "", note)


def notes_section(given: Sequence[str]) -> list[Section]:
    """The notes as the last part of a page, each once; no part when there are none."""
    return [Section("Notes", notes=list(dict.fromkeys(given)))] if given else []


@dataclass(frozen=True)
class Opening:
    """What a page opens with: a light with its words, numbers that decide, and what to do about it."""

    status: str
    words: str
    rows: Sequence[OpeningRow] = ()
    advice: Sequence[tuple[str, str]] = ()
    """Sentences with their commands; for internal pages only."""
    rest: str = "All measures"
    """What stands above everything else."""


@dataclass(frozen=True)
class OpeningRow:
    """A number that decides."""

    light: str
    """`red`, `amber`, `green`, or nothing where there is no limit."""
    name: str
    value: str
    limit: str
    sentence: str


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("rankveil.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _paragraphs(text: str) -> list[str]:
    return [part for part in (part.strip() for part in re.split(r"\n\s*\n", text)) if part]


def _cell(value: object) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return _NOTHING
    if isinstance(value, bool) or type(value).__name__ == "bool":  # numpy's bool is no bool
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return _NOTHING if math.isnan(value) else number(float(value))
    return str(value)


def _is_number(value: object) -> bool:
    if value is None:
        return True
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, Real) and not isinstance(value, bool)
