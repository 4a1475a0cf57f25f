"""A picture described once, drawn interactively (plotly) or for print (matplotlib).

The description knows nothing of either library. A new sort of series is one class here and one
branch in `interactive.py` and in `static.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import FileError, ParameterError

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure
    from plotly.graph_objects import Figure as InteractiveFigure

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """A curve through points; with `step`, each y holds from its x to the next."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    step: bool = False

    def __post_init__(self) -> None:
        # Tuples of plain floats: arrays could be changed from outside and do not compare with ==.
        object.__setattr__(self, "x", tuple(float(value) for value in self.x))
        object.__setattr__(self, "y", tuple(float(value) for value in self.y))
        _same_length(self.name, self.x, self.y)


@dataclass(frozen=True)
class Bars:
    """Bars over labels; several of them stand side by side."""

    name: str
    x: Sequence[str]
    y: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", tuple(str(label) for label in self.x))
        object.__setattr__(self, "y", tuple(float(value) for value in self.y))
        _same_length(self.name, self.x, self.y)


Series = Line | Bars


@dataclass(frozen=True)
class Chart:
    """What a picture shows: a title that says the finding, two axes, series, and a note with sizes.

    `kind` is a short name of the picture (such as `permutation_level`) for saved files and styles.

    >>> chart = Chart("B moved twice as far", "record", "rank change", [Line("B", [1, 2], [0, 4])])
    >>> chart.series[0].y
    (0.0, 4.0)
    """

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    note: str = ""
    kind: str = "chart"

    def __post_init__(self) -> None:
        object.__setattr__(self, "series", tuple(self.series))
        if not self.series:
            raise ParameterError(f"chart {self.title!r}: it has no series; give at least one")
        bars = [one for one in self.series if isinstance(one, Bars)]
        if bars and len(bars) < len(self.series):
            raise ParameterError(f"chart {self.title!r}: it mixes bars and lines; use one sort of series")
        if any(one.x != bars[0].x for one in bars):
            raise ParameterError(f"chart {self.title!r}: its bars have different labels; give all the same")

    def plotly(self) -> InteractiveFigure:
        """The interactive picture as a plotly figure."""
        from plotly.graph_objects import Figure

        from rankveil.report import interactive

        # "none": the colours and lines given here are complete, no theme is to add to them.
        return Figure(interactive.spec(self)).update_layout(template="none")

    def html(self, *, include_js: bool) -> str:
        """An HTML fragment: interactive where plotly.js is present, a still picture elsewhere and in print.

        With `include_js`, the fragment brings plotly.js along; without, the page around it may.
        """
        from rankveil.report import interactive

        return interactive.fragment(self, include_js=include_js)

    def matplotlib(self) -> StaticFigure:
        """The still picture as a matplotlib figure."""
        from rankveil.report import static

        return static.figure(self)

    def svg(self, path: str | Path) -> None:
        """Write the still picture as SVG; the same chart gives the same bytes."""
        from rankveil.report import static

        _write(path, static.svg(self).encode("utf-8"))

    def png(self, path: str | Path, *, dpi: int = 160) -> None:
        """Write the still picture as PNG."""
        from rankveil.report import static

        _write(path, static.png(self, dpi=dpi))

    def _repr_html_(self) -> str:
        """The still picture, which a notebook shows everywhere; `.plotly()` gives the interactive one."""
        from rankveil.report import interactive

        return interactive.still(self)


def _same_length(name: str, x: Sequence[object], y: Sequence[object]) -> None:
    if len(x) != len(y):
        raise ParameterError(f"series {name}: {len(x)} positions but {len(y)} values; give as many of each")


def _write(path: str | Path, content: bytes) -> None:
    try:
        Path(path).write_bytes(content)
    except OSError as problem:
        reason = problem.strerror or "unknown reason"
        raise FileError(f"{path}: cannot be written ({reason}); choose another place") from problem
