"""A chart as plotly's plain description and as an HTML fragment."""

from __future__ import annotations

import base64
import json
import math
import textwrap
from collections.abc import Sequence
from html import escape

from rankveil.report import static
from rankveil.report.chart import Chart, Line
from rankveil.report.look import GRID, INK, PAPER, look, shortened

Json = dict[str, object]

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
    try {
      window.Plotly.newPlot(place, spec.data, spec.layout, spec.config).catch(still);
    } catch (problem) {
      still();
    }
  });
})();
"""

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
    traces: list[Json] = []
    for position, series in enumerate(chart.series):
        marks = look(position)
        trace: Json = {"name": _plain(shortened(series.name)), "y": _numbers(series.y)}
        if isinstance(series, Line):
            trace |= {
                "type": "scatter",
                "mode": "lines" if series.step else "lines+markers",
                "x": _numbers(series.x),
                "line": {
                    "color": marks.colour,
                    "dash": marks.dash[1],
                    "width": 2,
                    "shape": "hv" if series.step else "linear",
                },
                "marker": {"symbol": marks.marker[1], "size": 8, "maxdisplayed": 10, "color": marks.colour},
            }
        else:
            marker: Json = {"color": marks.colour, "line": {"color": marks.colour, "width": 1}}
            if marks.hatch[1]:
                marker["pattern"] = {
                    "shape": marks.hatch[1],
                    "fgcolor": marks.colour,
                    "bgcolor": PAPER,
                    "size": 6,
                }
            trace |= {"type": "bar", "x": list(series.x), "marker": marker}
        traces.append(trace)
    return traces


def _layout(chart: Chart, *, titled: bool) -> Json:
    lines = isinstance(chart.series[0], Line)
    axis: Json = {
        "gridcolor": GRID,
        "linecolor": INK,
        "showline": True,
        "ticks": "outside",
        "tickcolor": INK,
        "zeroline": False,
        "automargin": True,
    }
    x_axis = axis | {"title": {"text": _plain(chart.x_label)}, "showgrid": False}
    if not lines:
        # Plotly would otherwise read labels such as "1" and "2020-01" as numbers and dates.
        x_axis["type"] = "category"
    margin = {"l": 60, "r": 16, "t": 16, "b": 56}
    layout: Json = {
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "paper_bgcolor": PAPER,
        "plot_bgcolor": PAPER,
        "xaxis": x_axis,
        "yaxis": axis | {"title": {"text": _plain(chart.y_label)}, "rangemode": "tozero"},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
        "showlegend": True,
        "hovermode": "x unified" if len(chart.series) <= 8 else "closest",
        "margin": margin,
        "height": 400 + 12 * len(chart.series),
    }
    if not lines:
        layout |= {"barmode": "group", "bargap": 0.25}
    if titled:
        title = textwrap.wrap(chart.title, 80)
        note = textwrap.wrap(chart.note, 110)
        # Plotly makes room for the legend or for the title, not for both: reckon with both.
        per_row = max(1, 600 // (50 + 8 * max(len(shortened(series.name)) for series in chart.series)))
        margin["t"] += 24 * len(title) + 22 * math.ceil(len(chart.series) / per_row) + 16
        margin["b"] += 16 * len(note) + 8 * bool(note)
        layout["height"] = 320 + margin["t"] + margin["b"]
        layout["title"] = {
            "text": _breaks(title),
            "x": 0,
            "xref": "paper",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 12},
            "font": {"size": 16},
        }
        if note:
            layout["annotations"] = [
                {
                    "text": _breaks(note),
                    "showarrow": False,
                    "align": "left",
                    "font": {"size": 11},
                    "x": 0,
                    "xref": "paper",
                    "xanchor": "left",
                    "y": 0,
                    "yref": "paper",
                    "yanchor": "top",
                    "yshift": -56,
                }
            ]
    return layout


def fragment(chart: Chart, *, include_js: bool) -> str:
    """Chart, style and drawing script; plotly.js too if wanted."""
    scripts = [plotly_js(), DRAW] if include_js else [DRAW]
    return "\n".join([f"<style>{STYLE}</style>", element(chart), *(f"<script>{script}</script>" for script in scripts)])


def element(chart: Chart) -> str:
    """The figure alone: still picture and the data of the live one."""
    config = {
        "responsive": True,
        "displaylogo": False,
        "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
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
    return _figure(chart, live=live)


def still(chart: Chart) -> str:
    """The figure as a still picture with its words, no script."""
    return f"<style>{STYLE}</style>\n{_figure(chart)}"


def _figure(chart: Chart, *, live: str = "") -> str:
    picture = base64.b64encode(static.svg(chart, titled=False).encode("utf-8")).decode("ascii")
    note = f'<p class="rv-note">{escape(chart.note)}</p>\n' if chart.note else ""
    return (
        f'<figure class="rv-chart" data-kind="{escape(chart.kind)}">\n'
        f"<figcaption>{escape(chart.title)}</figcaption>\n"
        f'<img class="rv-still" alt="{escape(chart.title)}" src="data:image/svg+xml;base64,{picture}">\n'
        f"{live}{note}</figure>"
    )


def _numbers(values: Sequence[float]) -> list[float | None]:
    # JSON has no NaN; plotly leaves a gap where it finds null.
    return [value if math.isfinite(value) else None for value in values]


def _plain(text: str) -> str:
    # Plotly reads a little HTML in its texts; a column's name is never meant as that.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _breaks(lines: Sequence[str]) -> str:
    return "<br>".join(_plain(line) for line in lines)
