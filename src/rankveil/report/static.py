"""A chart drawn with matplotlib: for print, for files, and where no script may run."""

from __future__ import annotations

import math
import textwrap
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING

from rankveil.report.chart import Bars, Chart, Heat, Line, Points
from rankveil.report.look import (
    FINE_DECADES,
    GRID,
    INK,
    PAPER,
    Look,
    cell,
    heat_colours,
    ink_on,
    looks,
    number,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    Handle = Artist | tuple[Artist, ...]

_WIDTH = 7.2
_TITLE, _TEXT, _NOTE = 12.0, 9.5, 8.0  # sizes in points
_MOST_PATHS = 2500
_MOST_LABELS = 40
_MOST_LETTERS = 22  # of a name under a bar or beside a row
_LETTERS = 88  # that fit side by side under the picture
_SETTINGS: dict[str, object] = {
    # Column names may hold $ or _, which are no formulas.
    "text.parse_math": False,
    # Text stays text: it can be searched, and other scripts than Latin use the reader's fonts.
    "svg.fonttype": "none",
    "svg.hashsalt": "rankveil",
    "font.size": _TEXT,
    "hatch.linewidth": 0.8,
}
# matplotlib keeps its settings in one global place; two threads must not change them at once.
_lock = threading.RLock()


@contextmanager
def _settings() -> Iterator[None]:
    """Matplotlib's own defaults plus ours, whatever the person's matplotlibrc says."""
    from matplotlib import style

    with _lock, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        with style.context(["default", _SETTINGS]):
            yield


def figure(chart: Chart, *, titled: bool = True) -> Figure:
    """The matplotlib figure; untitled where title and note stand in the HTML around it."""
    from matplotlib.figure import Figure

    title = _wrapped(chart.title, size=_TITLE, weight="bold") if titled else []
    note = _wrapped(chart.note, size=_NOTE) if titled else []
    above = len(title) * _TITLE * 1.35 / 72 + 0.12 * bool(title)
    below = len(note) * _NOTE * 1.4 / 72 + 0.12 * bool(note)
    names, columns = _legend(chart)
    first = chart.series[0]
    heat = first if isinstance(first, Heat) else None
    inner = _heat_height(heat) if heat else 3.5 + math.ceil(len(names) / columns) * 0.2
    if isinstance(first, Bars) and _slanted(first):
        inner += _word_room(first.x)
    height = above + below + inner
    with _settings():
        drawn = Figure(figsize=(_WIDTH, height), facecolor=PAPER)
        drawn.set_layout_engine(
            "constrained",
            rect=(0.0, below / height, 1.0, 1.0 - (above + below) / height),
            w_pad=0.08,
            h_pad=0.06,
        )
        axes = drawn.add_subplot()
        axes.set_xlabel(chart.x_label, color=INK)
        axes.set_ylabel(chart.y_label, color=INK)
        if heat:
            _draw_heat(drawn, axes, heat)
        else:
            _place_legend(axes, _draw(axes, chart), names, columns)
            _scale(axes, chart)
        left = 0.1 / _WIDTH
        if title:
            drawn.text(left, 1 - 0.08 / height, "\n".join(title), va="top", size=_TITLE, weight="bold", color=INK)
        if note:
            drawn.text(left, 0.07 / height, "\n".join(note), va="bottom", size=_NOTE, color=INK)
    return drawn


def _legend(chart: Chart) -> tuple[list[str], int]:
    """The names in the legend, and how many of them fit side by side."""
    names = [shortened(series.name, most=28 if len(chart.series) <= 6 else 18) for series in chart.series]
    return names, max(1, min(len(names), int(84 // (max(map(len, names)) + 12))))


def _place_legend(axes: Axes, handles: list[Handle], names: list[str], columns: int) -> None:
    axes.legend(
        handles,
        names,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        ncols=columns,
        frameon=False,
        handlelength=3.2,
    )


def _scale(axes: Axes, chart: Chart) -> None:
    """Where the axes begin, their ticks, and the grid."""
    from matplotlib.ticker import MaxNLocator

    if chart.log_x:
        axes.set_xscale("log")
    if chart.log_y:
        axes.set_yscale("log")
    elif chart.y_from_zero:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if _negative(chart) else 0.0)
    for axis, name, logarithmic in ((axes.xaxis, "x", chart.log_x), (axes.yaxis, "y", chart.log_y)):
        if logarithmic:
            _logarithmic(axis)
        elif _whole(chart, name):
            axis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _logarithmic(axis: Axis) -> None:
    """The ticks of a logarithmic axis, as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    fine = math.log10(high / low) < FINE_DECADES
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if fine else (1.0,), numticks=12))
    axis.set_minor_locator(NullLocator())
    # Matplotlib would write powers of ten as a formula.
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(float(value))))


def _wrapped(text: str, *, size: float, weight: str = "normal") -> list[str]:
    """The lines of a text that fit the width of the picture, measured in its font."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    measure, font, room = TextToPath(), FontProperties(size=size, weight=weight), (_WIDTH - 0.2) * 72
    lines = textwrap.wrap(text, 140)
    with _settings():
        for letters in range(134, 10, -6):
            if all(measure.get_text_width_height_descent(line, font, False)[0] <= room for line in lines):
                break
            lines = textwrap.wrap(text, letters)
    return lines


def _whole(chart: Chart, axis: str) -> bool:
    """Whether an axis counts something, so that a tick at 2.5 would make no sense."""
    if axis == "x" and isinstance(chart.series[0], Bars):
        return False
    return all(float(value).is_integer() for series in chart.series for value in getattr(series, axis))


def _negative(chart: Chart) -> bool:
    return any(value < 0 for series in chart.series for value in getattr(series, "y", ()))


def _draw(axes: Axes, chart: Chart) -> list[Handle]:
    """Every series that has an x and a y, and what stands for each in the legend."""
    marks = looks([isinstance(series, Line) and series.guide for series in chart.series])
    bars = sum(isinstance(series, Bars) for series in chart.series)
    handles: list[Handle] = []
    for position, (series, mark) in enumerate(zip(chart.series, marks, strict=True)):
        if isinstance(series, Line):
            handles.append(_draw_line(axes, series, mark, shift=position / len(chart.series)))
        elif isinstance(series, Points):
            handles.append(_draw_points(axes, series, mark))
        elif isinstance(series, Bars):
            handles.append(_draw_bars(axes, series, mark, position=position, of=bars))
    if isinstance(chart.series[0], Bars):
        _label_bars(axes, chart.series[0])
    return handles


def _draw_line(axes: Axes, line: Line, mark: Look, *, shift: float) -> Handle:
    every = max(1, len(line.x) // 9)
    [drawn] = axes.plot(
        line.x,
        line.y,
        color=mark.colour,
        linestyle=mark.dash[0],
        linewidth=1.2 if line.guide else 1.8,
        drawstyle="steps-post" if line.step else "default",
        marker="" if line.step or line.guide else mark.marker[0],
        markersize=5,
        # Each series starts its markers elsewhere, so that those of close curves do not coincide.
        markevery=(int(shift * every), every),
    )
    return drawn


def _draw_points(axes: Axes, points: Points, mark: Look) -> Handle:
    if points.low:
        below = [max(0.0, y - low) for low, y in zip(points.low, points.y, strict=True)]
        above = [max(0.0, high - y) for high, y in zip(points.high, points.y, strict=True)]
        axes.errorbar(points.x, points.y, yerr=(below, above), fmt="none", ecolor=mark.colour, elinewidth=1, capsize=2)
    handles = []
    for wanted, inside, size in ((False, PAPER, 5.5), (True, mark.colour, 8.0)):
        chosen = [place for place, marked in enumerate(points.marked) if marked == wanted]
        x, y = [points.x[place] for place in chosen], [points.y[place] for place in chosen]
        handles += axes.plot(
            x,
            y,
            linestyle="",
            marker=mark.marker[0],
            color=mark.colour,
            markerfacecolor=inside,
            markersize=size,
        )
    # The legend shows the marked ones where there are any.
    return handles[any(points.marked)]


def _draw_bars(axes: Axes, bars: Bars, mark: Look, *, position: int, of: int) -> Handle:
    width = 0.78 / of
    offset = (position - (of - 1) / 2) * width
    return axes.bar(
        [place + offset for place in range(len(bars.x))],
        bars.y,
        width=width,
        facecolor=PAPER if mark.hatch[0] else mark.colour,
        edgecolor=mark.colour,
        hatch=mark.hatch[0] or None,
        linewidth=1.0,
    )


def _heat_height(heat: Heat) -> float:
    return 1.3 + _word_room(heat.columns) + min(8.0, max(1.2, 0.27 * len(heat.rows)))


def _word_room(labels: Sequence[str]) -> float:
    """The height of slanted words under a picture."""
    return 0.06 * min(_MOST_LETTERS, max(map(len, labels)))


def _draw_heat(drawn: Figure, axes: Axes, heat: Heat) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    limit = heat.limit
    cells = axes.pcolormesh(
        [[value if math.isfinite(value) else math.nan for value in row] for row in heat.values],
        cmap=LinearSegmentedColormap.from_list("rankveil", heat_colours(signed=heat.signed)),
        vmin=-limit if heat.signed else 0.0,
        vmax=limit,
        edgecolors=PAPER,
        linewidth=0.6 if heat.written else 0.0,
        # A path for every cell of a large matrix would make a large file.
        rasterized=len(heat.rows) * len(heat.columns) > _MOST_PATHS,
    )
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    _label_cells(axes, heat)
    if heat.written:
        _write_cells(axes, heat)
    bar = drawn.colorbar(cells, ax=axes, location="top", aspect=45, shrink=0.8, pad=0.02)
    bar.set_label(heat.name, color=INK)
    bar.outline.set_visible(False)


def _label_cells(axes: Axes, heat: Heat) -> None:
    """Names beside rows and under columns; of very many only every other one, or fewer."""
    for axis, labels in ((axes.xaxis, heat.columns), (axes.yaxis, heat.rows)):
        every = math.ceil(len(labels) / _MOST_LABELS)
        names = [shortened(label, most=_MOST_LETTERS) for label in labels][::every]
        axis.set_ticks([place * every + 0.5 for place in range(len(names))], names)
        axis.set_tick_params(length=0)
    if len(heat.columns) * (max(map(len, heat.columns)) + 1) > 80:
        for label in axes.get_xticklabels():
            label.set(rotation=35, ha="right", rotation_mode="anchor")


def _write_cells(axes: Axes, heat: Heat) -> None:
    limit, size = heat.limit, min(_TEXT, 150 / len(heat.columns))
    for row, values in enumerate(heat.values):
        for column, value in enumerate(values):
            colour, text = ink_on(value, most=limit), cell(value, most=limit)
            written = axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", size=size, color=colour)
            # Inside their cells they need no room; to measure hundreds of them would take most of the time.
            written.set_in_layout(False)


def _label_bars(axes: Axes, bars: Bars) -> None:
    """Labels under the groups: numbers are thinned out when they would collide, words are slanted."""
    slanted = _slanted(bars)
    every = 1 if slanted else max(1, math.ceil(_crowd(bars) / _LETTERS))
    places = range(0, len(bars.x), every)
    axes.set_xticks(
        places,
        [shortened(bars.x[place], most=_MOST_LETTERS) for place in places],
        rotation=35 if slanted else 0,
        ha="right" if slanted else "center",
    )
    axes.set_xlim(-0.6, len(bars.x) - 0.4)


def _slanted(bars: Bars) -> bool:
    return _crowd(bars) > _LETTERS and not all(_is_number(label) for label in bars.x)


def _crowd(bars: Bars) -> int:
    """The letters under the picture if all labels were as long as the longest."""
    return len(bars.x) * (max((len(label) for label in bars.x), default=0) + 1)


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def svg(chart: Chart, *, titled: bool = True) -> str:
    """The picture as SVG text; without date and version, so that equal charts give equal text."""
    metadata = {"Date": None, "Creator": "rankveil"}
    return _saved(figure(chart, titled=titled), "svg", metadata=metadata).decode("utf-8")


def png(chart: Chart, *, dpi: int, titled: bool = True) -> bytes:
    """The picture as PNG."""
    return _saved(figure(chart, titled=titled), "png", metadata={"Software": "rankveil"}, dpi=dpi)


def _saved(drawn: Figure, form: str, *, metadata: dict[str, str | None], dpi: int = 72) -> bytes:
    target = BytesIO()
    with _settings():
        drawn.savefig(target, format=form, metadata=metadata, dpi=dpi)
    return target.getvalue()
