"""A picture described once, drawn interactively (plotly) or for print (matplotlib).

The description knows nothing of either library. A new sort of series is one class here and one
branch in `interactive.py` and in `static.py`.
"""

from __future__ import annotations

import math
from collections import Counter
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

_MOST_WRITTEN = 20
"""Rows or columns of a matrix whose numbers still fit into its cells."""


@dataclass(frozen=True)
class Line:
    """A curve through points; with `step`, each y holds from its x to the next.

    A `guide` is drawn thin, dotted and without markers: a front through points, or a level to compare with. It may
    stand over bars too, which its x then counts from 0.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    step: bool = False
    guide: bool = False

    def __post_init__(self) -> None:
        # Tuples of plain floats: arrays could be changed from outside and do not compare with ==.
        object.__setattr__(self, "x", _floats(self.x))
        object.__setattr__(self, "y", _floats(self.y))
        _same_length(self.name, self.x, self.y)


@dataclass(frozen=True)
class Points:
    """Single points: the `marked` ones large and filled, the others small and hollow.

    `labels` holds a line of text for each, shown beside its numbers when it is pointed at; `low` and `high` the ends
    of an interval around each y.

    >>> Points("mdav", [0.2, 0.4], [0.9, 0.7], labels=["k = 9", "k = 3"], marked=[True, False]).labels[1]
    'k = 3'
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    labels: Sequence[str] = ()
    marked: Sequence[bool] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    def __post_init__(self) -> None:
        for field in ("x", "y", "low", "high"):
            object.__setattr__(self, field, _floats(getattr(self, field)))
        object.__setattr__(self, "labels", tuple(" ".join(str(label).split()) for label in self.labels))
        object.__setattr__(self, "marked", tuple(bool(mark) for mark in self.marked) or (False,) * len(self.x))
        _same_length(self.name, self.x, self.y)
        for field in ("labels", "marked", "low", "high"):
            given = getattr(self, field)
            if given and len(given) != len(self.x):
                raise ParameterError(
                    f"series {self.name}: {len(self.x)} points but {len(given)} of {field}; give as many of each"
                )
        if bool(self.low) != bool(self.high):
            raise ParameterError(f"series {self.name}: an interval has two ends; give both low and high")
        for place, (low, value, high) in enumerate(zip(self.low, self.y, self.high, strict=False), start=1):
            if any(one > other and not math.isclose(one, other) for one, other in ((low, value), (value, high))):
                raise ParameterError(f"series {self.name}: the interval of point {place} does not hold its value")


@dataclass(frozen=True)
class Bars:
    """Bars over labels; several of them stand side by side."""

    name: str
    x: Sequence[str]
    y: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", tuple(str(label) for label in self.x))
        object.__setattr__(self, "y", _floats(self.y))
        _same_length(self.name, self.x, self.y)
        _different(self.name, self.x)


@dataclass(frozen=True)
class Heat:
    """A matrix of coloured cells, the first row on top; `name` says what the values are.

    Colours go from 0 to `most`, or with `signed` from minus to plus `most`; without it, to the largest value.
    A value that is missing leaves its cell empty.

    >>> Heat("correlation", ["A", "B"], ["A", "B"], [[1, -0.5], [-0.5, 1]], signed=True).limit
    1.0
    """

    name: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    signed: bool = False
    most: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(str(label) for label in self.rows))
        object.__setattr__(self, "columns", tuple(str(label) for label in self.columns))
        object.__setattr__(self, "values", tuple(_floats(row) for row in self.values))
        for labels in (self.rows, self.columns):
            _different(self.name, labels)
        if not self.rows or not self.columns:
            raise ParameterError(f"matrix {self.name}: it has no cells; give at least one row and one column")
        if len(self.values) != len(self.rows) or any(len(row) != len(self.columns) for row in self.values):
            raise ParameterError(
                f"matrix {self.name}: {len(self.rows)} row labels and {len(self.columns)} column labels do not fit "
                "its values; give a row of values per row label and in it a value per column label"
            )
        if not self.signed and any(value < 0 for row in self.values for value in row):
            raise ParameterError(f"matrix {self.name}: it has negative values; draw it as signed")

    @property
    def limit(self) -> float:
        """The value of the darkest colour: `most`, or the largest magnitude where that is larger."""
        sizes = [abs(value) for row in self.values for value in row if math.isfinite(value)]
        return max([*sizes, self.most or 0.0]) or 1.0

    @property
    def written(self) -> bool:
        """Whether the cells are large enough for numbers."""
        return max(len(self.rows), len(self.columns)) <= _MOST_WRITTEN


Series = Line | Points | Bars | Heat


@dataclass(frozen=True)
class Chart:
    """What a picture shows: a title that says the finding, two axes, series, and a note with sizes.

    `kind` is a short name of the picture (such as `permutation_level`) for saved files and styles. An axis may be
    logarithmic; the other y axes begin at zero unless `y_from_zero` says that they need not.

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
    log_x: bool = False
    log_y: bool = False
    y_from_zero: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "series", tuple(self.series))
        if not self.series:
            raise ParameterError(f"chart {self.title!r}: it has no series; give at least one")
        heats = [one for one in self.series if isinstance(one, Heat)]
        if heats and len(self.series) > 1:
            raise ParameterError(f"chart {self.title!r}: a matrix fills the whole picture; draw it alone")
        bars = [one for one in self.series if isinstance(one, Bars)]
        if bars:
            self._check_guides(len(bars[0].x))
        if any(one.x != bars[0].x for one in bars):
            raise ParameterError(f"chart {self.title!r}: its bars have different labels; give all the same")
        if (heats or bars) and (self.log_x or self.log_y or not self.y_from_zero):
            raise ParameterError(f"chart {self.title!r}: bars begin at zero on an even scale, as cells do; leave it so")
        self._check_logarithms()

    def _check_guides(self, places: int) -> None:
        """Nothing but guides stands over bars, and these from bar to bar."""
        others = [one for one in self.series if not isinstance(one, Bars)]
        for one in others:
            if not isinstance(one, Line) or not one.guide:
                raise ParameterError(f"chart {self.title!r}: it mixes bars and lines; use one sort of series")
            if any(at not in range(places) for at in one.x):
                raise ParameterError(f"series {one.name}: a guide over {places} bars goes from 0 to {places - 1}")
        if others and not isinstance(self.series[0], Bars):
            raise ParameterError(f"chart {self.title!r}: guides come after the bars; change the order")

    def _check_logarithms(self) -> None:
        """A value that has no place on the axis would vanish silently."""
        for series in self.series:
            if isinstance(series, Line | Points):
                held = (*series.y, *series.low, *series.high) if isinstance(series, Points) else series.y
                for axis, wanted, values in (("x", self.log_x, series.x), ("y", self.log_y, held)):
                    if wanted and any(value <= 0 for value in values):
                        raise ParameterError(
                            f"series {series.name}: a value of 0 or below has no place on a logarithmic {axis} axis; "
                            f"leave log_{axis} out"
                        )

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


def _floats(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _different(name: str, labels: Sequence[str]) -> None:
    twice = next((label for label, times in Counter(labels).items() if times > 1), None)
    if twice is not None:
        raise ParameterError(f"series {name}: the label {twice} occurs twice; give each place a name of its own")


def _same_length(name: str, x: Sequence[object], y: Sequence[object]) -> None:
    if len(x) != len(y):
        raise ParameterError(f"series {name}: {len(x)} positions but {len(y)} values; give as many of each")


def _write(path: str | Path, content: bytes) -> None:
    try:
        Path(path).write_bytes(content)
    except OSError as problem:
        reason = problem.strerror or "unknown reason"
        raise FileError(f"{path}: cannot be written ({reason}); choose another place") from problem
