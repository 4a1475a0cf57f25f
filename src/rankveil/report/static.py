"""A chart drawn with matplotlib: for print, for files, and where no script may run."""

from __future__ import annotations

import math
import textwrap
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING

from rankveil.report.chart import Bars, Chart, Line
from rankveil.report.look import GRID, INK, PAPER, look, shortened

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 7.2
_TITLE, _TEXT, _NOTE = 12.0, 9.5, 8.0  # sizes in points
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
    from matplotlib.ticker import MaxNLocator

    title = _wrapped(chart.title, size=_TITLE, weight="bold") if titled else []
    note = _wrapped(chart.note, size=_NOTE) if titled else []
    names = [shortened(series.name, most=28 if len(chart.series) <= 6 else 18) for series in chart.series]
    columns = max(1, min(len(names), int(92 // (max(map(len, names)) + 8))))
    rows = math.ceil(len(names) / columns)
    above = len(title) * _TITLE * 1.35 / 72 + 0.12 * bool(title)
    below = len(note) * _NOTE * 1.4 / 72 + 0.12 * bool(note)
    height = above + below + 3.5 + rows * 0.2
    with _settings():
        drawn = Figure(figsize=(_WIDTH, height), facecolor=PAPER)
        drawn.set_layout_engine(
            "constrained",
            rect=(0.0, below / height, 1.0, 1.0 - (above + below) / height),
            w_pad=0.08,
            h_pad=0.06,
        )
        axes = drawn.add_subplot()
        handles = _draw(axes, chart)
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
        axes.set_xlabel(chart.x_label, color=INK)
        axes.set_ylabel(chart.y_label, color=INK)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]) if _negative(chart) else 0.0)
        for axis, whole in ((axes.xaxis, _whole(chart, "x")), (axes.yaxis, _whole(chart, "y"))):
            if whole:
                axis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axes.grid(axis="y", color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        left = 0.1 / _WIDTH
        if title:
            drawn.text(left, 1 - 0.08 / height, "\n".join(title), va="top", size=_TITLE, weight="bold", color=INK)
        if note:
            drawn.text(left, 0.07 / height, "\n".join(note), va="bottom", size=_NOTE, color=INK)
    return drawn


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
    return any(value < 0 for series in chart.series for value in series.y)


def _draw(axes: Axes, chart: Chart) -> list[Artist | tuple[Artist, ...]]:
    handles: list[Artist | tuple[Artist, ...]] = []
    for position, series in enumerate(chart.series):
        marks = look(position)
        if isinstance(series, Line):
            every = max(1, len(series.x) // 9)
            # Each series starts its markers elsewhere, so that those of close curves do not coincide.
            first = (position * every) // max(1, len(chart.series))
            handles += axes.plot(
                series.x,
                series.y,
                color=marks.colour,
                linestyle=marks.dash[0],
                linewidth=1.8,
                drawstyle="steps-post" if series.step else "default",
                marker="" if series.step else marks.marker[0],
                markersize=5,
                markevery=(first, every),
            )
        else:
            width = 0.78 / len(chart.series)
            offset = (position - (len(chart.series) - 1) / 2) * width
            handles.append(
                axes.bar(
                    [place + offset for place in range(len(series.x))],
                    series.y,
                    width=width,
                    facecolor=PAPER if marks.hatch[0] else marks.colour,
                    edgecolor=marks.colour,
                    hatch=marks.hatch[0] or None,
                    linewidth=1.0,
                )
            )
    if isinstance(chart.series[0], Bars):
        _label_bars(axes, chart.series[0])
    return handles


def _label_bars(axes: Axes, bars: Bars) -> None:
    """Labels under the groups: numbers are thinned out when they would collide, words are slanted."""
    longest = max(map(len, bars.x), default=0)
    crowded = len(bars.x) * (longest + 1) > 88
    numbers = all(_is_number(label) for label in bars.x)
    every = math.ceil(len(bars.x) * (longest + 1) / 88) if crowded and numbers else 1
    slanted = crowded and not numbers
    places = range(0, len(bars.x), every)
    axes.set_xticks(
        places,
        [bars.x[place] for place in places],
        rotation=35 if slanted else 0,
        ha="right" if slanted else "center",
    )
    axes.set_xlim(-0.6, len(bars.x) - 0.4)


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
