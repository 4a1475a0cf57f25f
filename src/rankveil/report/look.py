"""How series are told apart: by colour, and again by dash, marker and hatch for grey print.

The colours are those of Okabe and Ito (2008), which colour-blind people can distinguish; their
yellow is left out because it vanishes on white.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

INK = "#222222"
GRID = "#d9d9d9"
PAPER = "#ffffff"

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# (matplotlib, plotly) names of the same thing. Seven colours against four or five of these: the
# combination repeats only after 28 series or more.
_DASHES = (("-", "solid"), ("--", "dash"), ("-.", "dashdot"), (":", "dot"))
_MARKERS = (("o", "circle"), ("s", "square"), ("^", "triangle-up"), ("D", "diamond"), ("v", "triangle-down"))
_HATCHES = (("", ""), ("////", "/"), ("....", "."), ("xxxx", "x"), ("\\\\\\\\", "\\"))


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
