"""How series are told apart: by colour, and again by dash, marker and hatch for grey print.

The colours are those of Okabe and Ito (2008), which colour-blind people can distinguish; their
yellow is left out because it vanishes on white.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

INK = "#222222"
GRID = "#d9d9d9"
PAPER = "#ffffff"

FINE_DECADES = 3
"""Up to here a logarithmic axis has room for 2 and 5 between the powers of ten."""

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# (matplotlib, plotly) names of the same thing. Seven colours against four or five of these: the
# combination repeats only after 28 series or more.
_DASHES = (("-", "solid"), ("--", "dash"), ("-.", "dashdot"), (":", "dot"))
_MARKERS = (("o", "circle"), ("s", "square"), ("^", "triangle-up"), ("D", "diamond"), ("v", "triangle-down"))
_HATCHES = (("", ""), ("////", "/"), ("..", "."), ("xxxx", "x"), ("\\\\\\\\", "\\"))
# From zero to the largest value: straight lines in CIE L*a*b* from one light grey, lightness 96 to 38
# in equal steps on both sides. In grey the two sides look alike, so the sign must be written too.
_ABOVE = ("#F3F3F3", "#D2D9E3", "#B0BFD3", "#8FA5C2", "#6C8CB2", "#4675A2", "#0B5E92")
_BELOW = ("#F3F3F3", "#E8D4CA", "#DBB6A2", "#CC987B", "#BA7B56", "#A75E31", "#934209")
_DARK = 0.74  # the part of the way to the darkest colour from which white letters have more contrast than dark ones


@dataclass(frozen=True)
class Look:
    """The marks of one series; pairs hold matplotlib's word, then plotly's."""

    colour: str
    dash: tuple[str, str]
    marker: tuple[str, str]
    hatch: tuple[str, str]


def look(position: int) -> Look:
    """The marks of the series at a position, counted from 0.

    >>> look(0).colour, look(1).dash[1]
    ('#0072B2', 'dash')
    """
    return Look(
        colour=_COLOURS[position % len(_COLOURS)],
        dash=_DASHES[position % len(_DASHES)],
        marker=_MARKERS[position % len(_MARKERS)],
        hatch=_HATCHES[position % len(_HATCHES)],
    )


# A line that explains the series and is none of them: dark grey, dotted, unmarked.
GUIDE = Look(colour="#555555", dash=(":", "dot"), marker=("", "circle"), hatch=("", ""))


def looks(guides: Sequence[bool]) -> list[Look]:
    """The marks of every series of a chart; those that only guide the eye use up no colour.

    >>> [marks.colour for marks in looks([False, True, False])]
    ['#0072B2', '#555555', '#D55E00']
    """
    places = iter(range(len(guides)))
    return [GUIDE if guide else look(next(places)) for guide in guides]


def heat_colours(*, signed: bool) -> tuple[str, ...]:
    """The colours of a matrix, evenly spaced: from zero up, or from the most negative to the most positive.

    >>> len(heat_colours(signed=False)), len(heat_colours(signed=True))
    (7, 13)
    """
    return (*reversed(_BELOW), *_ABOVE[1:]) if signed else _ABOVE


def ink_on(value: float, *, most: float) -> str:
    """The colour of letters that are read well on the colour of a value."""
    return PAPER if abs(value) > _DARK * most else INK


def cell(value: float, *, most: float) -> str:
    """A value inside a cell of a matrix: as many decimals as the largest one needs for two or three digits.

    A missing value is a dash.

    >>> cell(0.756, most=1.0), cell(-0.0001, most=0.1), cell(12.34, most=40.0)
    ('0.76', '0.000', '12.3')
    """
    if not math.isfinite(value):
        return "\u2013"
    size = math.floor(math.log10(2 * most)) if most > 0 else 0
    if not -2 <= size < 5:
        return f"{value:.0e}"
    text = f"{value:.{max(0, 2 - size)}f}"
    return text.lstrip("-") if float(text) == 0 else text


def number(value: float) -> str:
    """A number for people: four significant digits, but never fewer than its whole part has.

    >>> number(3.0), number(0.058627), number(20167.78), number(0.0000123)
    ('3', '0.05863', '20168', '1.23e-05')
    """
    if not math.isfinite(value):
        return str(value)
    if value == 0 or 1e-4 <= abs(value) < 1e15:
        decimals = 4 if value == 0 else max(0, 3 - math.floor(math.log10(abs(value))))
        text = f"{value:.{decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.4g}"


def shortened(name: str, *, most: int = 28) -> str:
    """A name that fits a legend: its beginning and its end, where long names differ.

    >>> shortened("household_income_before_taxes_2019")
    'household_inco…re_taxes_2019'
    """
    if len(name) <= most:
        return name
    head = most // 2
    return f"{name[:head]}…{name[len(name) - (most - head - 1) :]}"
