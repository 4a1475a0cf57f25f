"""A chart as plotly's plain description and as an HTML fragment."""

from __future__ import annotations

import base64
import json
import math
import textwrap
from collections.abc import Sequence
from functools import lru_cache
from html import escape

from rankveil.report import static
from rankveil.report.chart import Bars, Chart, Heat, Line, Points
from rankveil.report.look import FINE_DECADES, GRID, INK, PAPER, Look, cell, heat_colours, looks, number, shortened

Json = dict[str, object]

_AXIS = 38
"""Letters of an axis title that a narrow window shows in one line."""

# Draws every chart of the page that is not drawn yet. The text never varies, so that a page can
# allow exactly this script by its hash.
DRAW = """\
(function () {
  if (!window.Plotly) return;
  document.querySelectorAll("figure.rv-chart:not(.rv-drawn)").forEach(function (figure) {
    var data = figure.querySelector("script.rv-data");
    if (!data) return;
    var spec = JSON.parse(data.textContent);
    var still = function () { figure.classList.remove("rv-drawn"); };
    figure.classList.add("rv-drawn");
    var place = figure.querySelector(".rv-live");
    // Plotly follows the window only; a scroll bar that appears narrows the place as well.
    var follow = function () {
      if (!window.ResizeObserver) return;
      new ResizeObserver(function () {
        if (place.offsetWidth) window.Plotly.Plots.resize(place);
      }).observe(place);
    };
    try {
      window.Plotly.newPlot(place, spec.data, spec.layout, spec.config).then(follow).catch(still);
    } catch (problem) {
      still();
    }
  });
})();
"""

_WITHOUT = ["lasso2d", "select2d", "autoScale2d", "sendChartToCloud"]

# On paper the still picture stands in: it has the width of the page, the live one that of the screen.
STYLE = """\
.rv-chart { margin: 1.5rem 0; padding: .75rem; background: #fff; color: #222; border: 1px solid #d9d9d9; }
.rv-chart figcaption { font-weight: 600; margin-bottom: .5rem; }
.rv-chart .rv-note { font-size: .85rem; color: #444; margin: .5rem 0 0; }
.rv-chart .rv-still { display: block; width: 100%; max-width: 60rem; height: auto; }
.rv-chart .rv-live { display: none; }
.rv-chart.rv-drawn .rv-live { display: block; }
.rv-chart.rv-drawn .rv-still { display: none; }
@media print {
  .rv-chart { break-inside: avoid; }
  .rv-chart.rv-drawn .rv-live { display: none; }
  .rv-chart.rv-drawn .rv-still { display: block; }
}
"""


def plotly_js() -> str:
    """The text of plotly.js as it came with the installed plotly."""
    from plotly.offline import get_plotlyjs

    # A browser hashes a script after turning CRLF into LF.
    return str(get_plotlyjs()).replace("\r\n", "\n").replace("\r", "\n")


def spec(chart: Chart, *, titled: bool = True) -> Json:
    """Data and layout in plotly's words; untitled where the words stand in the HTML around it."""
    return {"data": _traces(chart), "layout": _layout(chart, titled=titled)}


def _traces(chart: Chart) -> list[Json]:
    marks = looks([isinstance(series, Line) and series.guide for series in chart.series])
    traces: list[Json] = []
    for series, mark in zip(chart.series, marks, strict=True):
        trace: Json = {"name": _plain(shortened(series.name))}
        if isinstance(series, Line):
            trace |= _line(series, mark)
            if isinstance(chart.series[0], Bars):
                labels = _labels(chart.series[0].x)
                trace["x"] = [labels[int(place)] for place in series.x]
        elif isinstance(series, Points):
            trace |= _points(series, mark, chart)
        elif isinstance(series, Bars):
            trace |= _bars(series, mark)
        else:
            trace |= _heat(series)
        traces.append(trace)
    return traces


def _line(line: Line, mark: Look) -> Json:
    unmarked = line.step or line.guide
    trace: Json = {
        "type": "scatter",
        "mode": "lines" if unmarked else "lines+markers",
        "x": _numbers(line.x),
        "y": _numbers(line.y),
        "line": {
            "color": mark.colour,
            "dash": mark.dash[1],
            "width": 1.5 if line.guide else 2,
            "shape": "hv" if line.step else "linear",
        },
        "marker": {"symbol": mark.marker[1], "size": 8, "maxdisplayed": 10, "color": mark.colour},
    }
    return trace | {"hoverinfo": "skip"} if line.guide else trace


def _points(points: Points, mark: Look, chart: Chart) -> Json:
    trace: Json = {
        "type": "scatter",
        "mode": "markers",
        "x": _numbers(points.x),
        "y": _numbers(points.y),
        "marker": {
            "symbol": [mark.marker[1] + ("" if marked else "-open") for marked in points.marked],
            "size": [11 if marked else 8 for marked in points.marked],
            "color": mark.colour,
            # Plotly makes points of different sizes transparent.
            "opacity": 1,
            "line": {"color": mark.colour, "width": 1.5},
        },
        "hoverinfo": "text",
        "hovertext": [_told(points, place, chart) for place in range(len(points.x))],
    }
    if points.low:
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": _numbers([max(0.0, high - y) for high, y in zip(points.high, points.y, strict=True)]),
            "arrayminus": _numbers([max(0.0, y - low) for low, y in zip(points.low, points.y, strict=True)]),
            "color": mark.colour,
            "thickness": 1,
            "width": 3,
        }
    return trace


def _told(points: Points, place: int, chart: Chart) -> str:
    """What a point tells when one points at it."""
    ends = (*points.low[place : place + 1], *points.high[place : place + 1])
    interval = f" ({number(ends[0])} to {number(ends[1])})" if ends and all(map(math.isfinite, ends)) else ""
    return _breaks(
        [
            points.name,
            *points.labels[place : place + 1],
            f"{chart.x_label}: {number(points.x[place])}",
            f"{chart.y_label}: {number(points.y[place])}{interval}",
        ]
    )


def _bars(bars: Bars, mark: Look) -> Json:
    marker: Json = {"color": mark.colour, "line": {"color": mark.colour, "width": 1}}
    if mark.hatch[1]:
        marker["pattern"] = {"shape": mark.hatch[1], "fgcolor": mark.colour, "bgcolor": PAPER, "size": 6}
    return {"type": "bar", "x": _labels(bars.x), "y": _numbers(bars.y), "marker": marker}


def _heat(heat: Heat) -> Json:
    colours, limit = heat_colours(signed=heat.signed), heat.limit
    trace: Json = {
        "type": "heatmap",
        "x": _labels(heat.columns),
        "y": _labels(heat.rows),
        "z": [_numbers(row) for row in heat.values],
        "zmin": -limit if heat.signed else 0.0,
        "zmax": limit,
        "colorscale": [[place / (len(colours) - 1), colour] for place, colour in enumerate(colours)],
        "xgap": int(heat.written),
        "ygap": int(heat.written),
        "hovertemplate": "%{y}, %{x}: %{z:.4~g}<extra></extra>",
        "colorbar": {
            "orientation": "h",
            "x": 0.5,
            "xanchor": "center",
            "y": 1,
            "yanchor": "bottom",
            "thickness": 12,
            "outlinewidth": 0,
            "ypad": 6,
            "nticks": 5,
            "tickangle": 0,
            "title": {"text": _plain(heat.name), "side": "top", "font": {"size": 14}},
        },
    }
    if heat.written:
        trace["text"] = [[cell(value, most=limit) for value in row] for row in heat.values]
        trace["texttemplate"] = "%{text}"
    return trace


def _axis(title: str, *, logarithmic: Sequence[float] = ()) -> Json:
    """An axis; `logarithmic` holds the values on it if it is that."""
    axis: Json = {
        "title": {"text": _breaks(textwrap.wrap(title, _AXIS)), "font": {"size": 14}, "standoff": 12},
        "gridcolor": GRID,
        "linecolor": INK,
        "showline": True,
        "ticks": "outside",
        "tickcolor": INK,
        "zeroline": False,
        "automargin": True,
    }
    if not logarithmic:
        return axis
    decades = math.log10(max(logarithmic) / min(logarithmic))
    # Plotly's own choice may be every digit, which collide. With a format it writes 20 and 50, not a small 2 and 5.
    dtick = "D2" if decades < FINE_DECADES else math.ceil(decades / 8)
    return axis | {"type": "log", "dtick": dtick, "tickformat": ".4~g"}


def _on_axis(chart: Chart, axis: str) -> list[float]:
    return [value for series in chart.series for value in getattr(series, axis) if math.isfinite(value)]


def _layout(chart: Chart, *, titled: bool) -> Json:
    heat = chart.series[0] if isinstance(chart.series[0], Heat) else None
    bars = chart.series[0] if isinstance(chart.series[0], Bars) else None
    x_axis = _axis(chart.x_label, logarithmic=_on_axis(chart, "x") if chart.log_x else ()) | {"showgrid": False}
    y_axis = _axis(chart.y_label, logarithmic=_on_axis(chart, "y") if chart.log_y else ())
    if chart.y_from_zero and not chart.log_y and heat is None:
        y_axis["rangemode"] = "tozero"
    labels = heat.columns if heat else bars.x if bars else ()
    if labels:
        # Plotly would otherwise read labels such as "1" and "2020-01" as numbers and dates.
        x_axis["type"] = "category"
    if heat:
        y_axis |= {"type": "category", "autorange": "reversed", "showgrid": False, "showline": False}
        x_axis["showline"] = False
    # Where each thing has its own place, what stands above and below it is of no interest.
    apart = heat is not None or any(isinstance(series, Points) for series in chart.series)
    inner = 320 if heat is None else min(900, max(160, 27 * len(heat.rows)))
    # Upright words under bars and columns take their room from the picture unless it is given to them.
    words = 8 * max((len(label) for label in _labels(labels)), default=0) if len("".join(labels)) > 40 else 0
    margin = {"l": 60, "r": 44, "t": 16, "b": 56}
    layout: Json = {
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "paper_bgcolor": PAPER,
        "plot_bgcolor": PAPER,
        "xaxis": x_axis,
        "yaxis": y_axis,
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        "showlegend": heat is None,
        # Upright in the right margin the tools never cover the legend, however narrow the window. One of plotly's own
        # tools sends the chart's numbers to a server: what is drawn here must not leave.
        "modebar": {"orientation": "v", "remove": _WITHOUT},
        "hovermode": "closest" if apart or len(chart.series) > 8 else "x unified",
        "margin": margin,
        "height": inner + words + 80 + (12 * len(chart.series) if heat is None else 60),
    }
    if bars:
        layout |= {"barmode": "group", "bargap": 0.25}
    return _titled(layout, chart, inner=inner, margin=margin | {"b": 56 + words}) if titled else layout


def _titled(layout: Json, chart: Chart, *, inner: int, margin: dict[str, int]) -> Json:
    """The layout with the title above and the note below, and room for both."""
    title = textwrap.wrap(chart.title, 80)
    note = textwrap.wrap(chart.note, 110)
    # Plotly makes room for the legend or for the title, not for both: reckon with both.
    per_row = max(1, 600 // (50 + 8 * max(len(shortened(series.name)) for series in chart.series)))
    legend = 22 * math.ceil(len(chart.series) / per_row) if layout["showlegend"] else 50
    room = margin | {
        "t": margin["t"] + 24 * len(title) + legend + 16,
        "b": margin["b"] + 16 * len(note) + 8 * bool(note),
    }
    made = layout | {"margin": room, "height": inner + room["t"] + room["b"]}
    texts = [_beside(note, size=11, shift=-margin["b"])] if note else []
    if layout["showlegend"]:
        made["title"] = {
            "text": _breaks(title),
            "x": 0,
            "xref": "paper",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 12},
            "font": {"size": 16},
        }
    else:
        # Above a level bar of colours plotly pushes its title out of the picture.
        texts.append(_beside(title, size=16, shift=62))
    return made | {"annotations": texts}


def _beside(lines: Sequence[str], *, size: int, shift: int) -> Json:
    """Text that begins at the left end of the picture, so many pixels above its top or below its foot."""
    above = shift > 0
    return {
        "text": _breaks(lines),
        "showarrow": False,
        "align": "left",
        "font": {"size": size},
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": int(above),
        "yref": "paper",
        "yanchor": "bottom" if above else "top",
        "yshift": shift,
    }


def fragment(chart: Chart, *, include_js: bool) -> str:
    """Chart, style and drawing script; plotly.js too if wanted."""
    scripts = [plotly_js(), DRAW] if include_js else [DRAW]
    return "\n".join([f"<style>{STYLE}</style>", element(chart), *(f"<script>{script}</script>" for script in scripts)])


def element(chart: Chart) -> str:
    """The figure alone: still picture and the data of the live one."""
    config = {
        "responsive": True,
        "displaylogo": False,
        "modeBarButtonsToRemove": _WITHOUT,
        "showSendToCloud": False,
        "plotlyServerURL": "",
        "toImageButtonOptions": {"format": "svg", "filename": chart.kind},
    }
    data = json.dumps(spec(chart, titled=False) | {"config": config}, allow_nan=False)
    # Inside a script element these three could end it or open a comment; JSON reads the escapes alike.
    for sign in "<>&":
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    live = (
        f'<div class="rv-live" role="img" aria-label="{escape(chart.title)}"></div>\n'
        f'<script type="application/json" class="rv-data">{data}</script>\n'
    )
    return picture(chart, live=live)


def still(chart: Chart) -> str:
    """The figure as a still picture with its words, no script."""
    return f"<style>{STYLE}</style>\n{picture(chart)}"


def picture(chart: Chart, *, live: str = "") -> str:
    """The figure with its still picture, and the live one where there is one."""
    note = f'<p class="rv-note">{escape(chart.note)}</p>\n' if chart.note else ""
    return (
        f'<figure class="rv-chart" data-kind="{escape(chart.kind)}">\n'
        f"<figcaption>{escape(chart.title)}</figcaption>\n"
        f'<img class="rv-still" alt="{escape(chart.title)}" src="data:image/svg+xml;base64,{_picture(chart)}">\n'
        f"{live}{note}</figure>"
    )


@lru_cache(maxsize=64)
def _picture(chart: Chart) -> str:
    """The still picture; an audit shows the same one on several pages, and drawing is what takes its time."""
    return base64.b64encode(static.svg(chart, titled=False).encode("utf-8")).decode("ascii")


def _labels(labels: Sequence[str]) -> list[str]:
    """Names of places on an axis, shortened as far as they remain different places."""
    for most in (20, 40, 80):
        short = [_plain(shortened(label, most=most)) for label in labels]
        if len(set(short)) == len(labels):
            return short
    return [_plain(label) for label in labels]


def _numbers(values: Sequence[float]) -> list[float | None]:
    # JSON has no NaN; plotly leaves a gap where it finds null.
    return [value if math.isfinite(value) else None for value in values]


def _plain(text: str) -> str:
    # Plotly reads a little HTML in its texts; a column's name is never meant as that.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _breaks(lines: Sequence[str]) -> str:
    return "<br>".join(_plain(line) for line in lines)
