"""One description, two ways to draw it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from rankveil.errors import FileError, ParameterError
from rankveil.report.chart import Bars, Chart, Heat, Line, Points
from rankveil.report.look import GUIDE, cell, heat_colours, ink_on, look, number, shortened

LINES = Chart(
    "B moved most",
    "records",
    "rank change",
    [Line("A", [1, 2, 3], [0, 1, 2]), Line("B", [1, 2, 3], [1, 3, 5])],
    note="n = 3",
    kind="level",
)
BARS = Chart("Alike", "distance", "share", [Bars("real", ["0", "1"], [0.5, 0.5]), Bars("random", ["0", "1"], [1, 0])])
MAP = Chart(
    "A is ahead",
    "risk",
    "utility",
    [
        Points("A", [0.1, 0.4], [0.5, 0.9], ["k = 9", "k = 2"], marked=[True, True], low=[0.4, 0.8], high=[0.7, 0.9]),
        Line("front", [0.1, 0.4], [0.5, 0.9], guide=True),
        Points("B", [0.2, 0.3], [0.4, 0.45], marked=[False, True]),
    ],
    y_from_zero=False,
)
MATRIX = Chart(
    "B and C oppose",
    "",
    "",
    [Heat("correlation", ["A", "B"], ["A", "B", "C"], [[1.0, 0.25, float("nan")], [0.25, 1.0, -0.9]], signed=True)],
)
ALL = {"lines": LINES, "bars": BARS, "map": MAP, "matrix": MATRIX}
EVIL = "</script><script>alert(1)</script>"


class Collected(HTMLParser):
    """The elements of a fragment, and the text of each script."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data


@pytest.mark.parametrize("chart", [LINES, BARS], ids=["lines", "bars"])
def test_both_drawings_hold_the_same_numbers(chart: Chart) -> None:
    live = chart.plotly()
    axes = chart.matplotlib().axes[0]
    for position, series in enumerate(chart.series):
        assert tuple(live.data[position].y) == series.y
        if isinstance(series, Line):
            assert tuple(live.data[position].x) == series.x
            assert tuple(axes.lines[position].get_ydata()) == series.y
            assert tuple(axes.lines[position].get_xdata()) == series.x
        else:
            assert tuple(live.data[position].x) == series.x
            assert tuple(bar.get_height() for bar in axes.containers[position]) == series.y
    assert chart.title in live.layout.title.text
    assert axes.get_xlabel() == live.layout.xaxis.title.text == chart.x_label
    assert axes.get_ylabel() == live.layout.yaxis.title.text == chart.y_label


def test_series_differ_without_colour() -> None:
    axes = LINES.matplotlib().axes[0]
    assert axes.lines[0].get_linestyle() != axes.lines[1].get_linestyle()
    assert axes.lines[0].get_marker() != axes.lines[1].get_marker()
    patches = [container[0] for container in BARS.matplotlib().axes[0].containers]
    assert patches[0].get_hatch() != patches[1].get_hatch()
    assert len({look(position) for position in range(28)}) == 28


@pytest.mark.parametrize("chart", ALL.values(), ids=ALL.keys())
def test_svg_is_the_same_each_time(chart: Chart, tmp_path: Path) -> None:
    chart.svg(tmp_path / "one.svg")
    chart.svg(tmp_path / "two.svg")
    one = (tmp_path / "one.svg").read_bytes()
    assert one == (tmp_path / "two.svg").read_bytes()
    assert b"<dc:date>" not in one
    text = " ".join(ElementTree.fromstring(one).itertext())
    assert chart.title in text
    assert chart.note in text


def test_points_are_the_same_in_both_drawings() -> None:
    live, axes = MAP.plotly(), MAP.matplotlib().axes[0]
    assert (tuple(live.data[2].x), tuple(live.data[2].y)) == (MAP.series[2].x, MAP.series[2].y)
    assert live.data[2].marker.symbol == ("square-open", "square")
    assert live.data[0].error_y.array == pytest.approx([0.2, 0.0])
    assert live.data[0].error_y.arrayminus == pytest.approx([0.1, 0.1])
    drawn = [line for line in axes.lines if line.get_marker() == "s"]
    hollow, filled = sorted(drawn, key=lambda line: line.get_markersize())
    assert (list(hollow.get_xdata()), list(hollow.get_ydata())) == ([0.2], [0.4])
    assert (list(filled.get_xdata()), list(filled.get_ydata())) == ([0.3], [0.45])
    assert hollow.get_markerfacecolor() == "#ffffff"
    assert filled.get_markerfacecolor() == filled.get_markeredgecolor()
    [[bars]] = [container.lines[2] for container in axes.containers]
    ends = np.array(bars.get_segments())
    assert ends[:, :, 1].tolist() == [pytest.approx([0.4, 0.7]), pytest.approx([0.8, 0.9])]


def test_points_tell_their_numbers() -> None:
    live = MAP.plotly()
    assert live.data[0].hovertext[0] == "A<br>k = 9<br>risk: 0.1<br>utility: 0.5 (0.4 to 0.7)"
    assert live.data[2].hovertext[1] == "B<br>risk: 0.3<br>utility: 0.45"
    gap = Points("A", [1, 2], [1, 1], low=[0.5, float("nan")], high=[1.5, float("nan")])
    assert Chart("t", "x", "y", [gap]).plotly().data[0].hovertext[1] == "A<br>x: 2<br>y: 1"
    assert live.layout.hovermode == "closest"
    assert LINES.plotly().layout.hovermode == "x unified"


def test_a_guide_takes_no_colour_from_the_others() -> None:
    live, axes = MAP.plotly(), MAP.matplotlib().axes[0]
    assert live.data[1].line.color == GUIDE.colour
    assert live.data[1].mode == "lines"
    assert [live.data[place].marker.color for place in (0, 2)] == [look(0).colour, look(1).colour]
    [guide] = [line for line in axes.lines if line.get_color() == GUIDE.colour]
    assert list(guide.get_xdata()) == [0.1, 0.4]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["A", "front", "B"]


def test_a_guide_stands_over_bars() -> None:
    chart = Chart("t", "x", "y", [Bars("a", ["7", "9"], [1, 2]), Line("usual", [0, 1], [3, 3], guide=True)])
    assert chart.plotly().data[1].x == ("7", "9")
    axes = chart.matplotlib().axes[0]
    assert [bar.get_x() + bar.get_width() / 2 for bar in axes.containers[0]] == pytest.approx([0, 1])
    assert list(axes.lines[0].get_xdata()) == [0, 1]


def test_a_matrix_is_the_same_in_both_drawings() -> None:
    [heat] = MATRIX.series
    assert isinstance(heat, Heat)
    live, figure = MATRIX.plotly(), MATRIX.matplotlib()
    trace, axes = live.data[0], figure.axes[0]
    assert (trace.x, trace.y) == (heat.columns, heat.rows)
    assert [list(row) for row in trace.z] == [[1.0, 0.25, None], [0.25, 1.0, -0.9]]
    assert (trace.zmin, trace.zmax) == (-1, 1)
    assert [list(row) for row in trace.text] == [["1.00", "0.25", "\u2013"], ["0.25", "1.00", "-0.90"]]
    [cells] = axes.collections
    assert cells.get_clim() == (-1, 1)
    assert cells.get_array().filled(np.nan).tolist()[1] == [0.25, 1.0, -0.9]
    written = {text.get_position(): text.get_text() for text in axes.texts}
    assert written == {
        (column + 0.5, row + 0.5): text for row, texts in enumerate(trace.text) for column, text in enumerate(texts)
    }
    # The first row is on top.
    assert axes.get_ylim() == (2, 0)
    assert live.layout.yaxis.autorange == "reversed"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["A", "B"]
    assert [text.text for text in live.layout.annotations] == [MATRIX.title]


@pytest.mark.parametrize(("size", "written"), [(20, True), (21, False)])
def test_only_large_cells_hold_numbers(size: int, written: bool) -> None:
    names = [str(place) for place in range(size)]
    chart = Chart("t", "", "", [Heat("v", names, names, np.eye(size).tolist())])
    assert (chart.plotly().data[0].text is not None) == written
    assert len(chart.matplotlib().axes[0].texts) == (size * size if written else 0)


def test_a_large_matrix_is_no_large_file() -> None:
    from rankveil.report import static

    names = [str(place) for place in range(150)]
    values = np.random.default_rng(0).random((150, 150)).tolist()
    assert len(static.svg(Chart("t", "", "", [Heat("v", names, names, values)]))) < 600_000


def lightness(colour: str) -> float:
    """L* of CIE 1976."""
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(116 * np.cbrt(linear @ [0.2126729, 0.7151522, 0.0721750]) - 16)


def test_colours_of_a_matrix_are_even_in_grey() -> None:
    up, both = ([lightness(colour) for colour in heat_colours(signed=signed)] for signed in (False, True))
    assert np.diff(up) == pytest.approx([-58 / 6] * 6, abs=0.6)
    assert both[6:] == up
    assert both[::-1] == pytest.approx(both, abs=0.6)


@pytest.mark.parametrize("signed", [False, True])
def test_letters_in_cells_have_contrast(signed: bool) -> None:
    colours = heat_colours(signed=signed)
    for colour, value in zip(colours, np.linspace(-1.0 if signed else 0.0, 1.0, len(colours)), strict=True):
        light = [((lightness(each) + 16) / 116) ** 3 + 0.05 for each in (colour, ink_on(value, most=1.0))]
        assert max(light) / min(light) > 3.5


@pytest.mark.parametrize(
    ("value", "most", "text"),
    [(1.0, 1.0, "1.00"), (-0.004, 1.0, "0.00"), (0.0123, 0.05, "0.012"), (123.4, 400.0, "123"), (2e-7, 1e-6, "2e-07")],
)
def test_cells_are_short(value: float, most: float, text: str) -> None:
    assert cell(value, most=most) == text


def test_logarithmic_axes_have_plain_numbers() -> None:
    chart = Chart("t", "x", "y", [Line("A", [1, 10, 400], [0.01, 1, 1e5])], log_x=True, log_y=True)
    axes = chart.matplotlib().axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert [axes.xaxis.get_major_formatter()(tick) for tick in ticks] == [
        str(n) for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)
    ]
    live = chart.plotly().layout
    assert (live.xaxis.type, live.xaxis.dtick, live.yaxis.type, live.yaxis.dtick) == ("log", "D2", "log", 1)


def test_an_axis_begins_at_zero_unless_it_need_not() -> None:
    line = Line("A", [1, 2], [100, 101])
    fixed, free = Chart("t", "x", "y", [line]), Chart("t", "x", "y", [line], y_from_zero=False)
    assert fixed.matplotlib().axes[0].get_ylim()[0] == 0
    assert free.matplotlib().axes[0].get_ylim()[0] > 99
    assert fixed.plotly().layout.yaxis.rangemode == "tozero"
    assert free.plotly().layout.yaxis.rangemode is None


@pytest.mark.parametrize("chart", ALL.values(), ids=ALL.keys())
def test_no_tool_sends_the_numbers_away(chart: Chart) -> None:
    assert "sendChartToCloud" in chart.plotly().layout.modebar.remove
    config = json.loads(Collected(chart.html(include_js=False)).scripts[0])["config"]
    assert config["showSendToCloud"] is False
    assert config["plotlyServerURL"] == ""
    assert "sendChartToCloud" in config["modeBarButtonsToRemove"]


def test_tools_have_their_own_margin() -> None:
    # Beside each other at the top, tools and legend would cover each other in a narrow window.
    layout = LINES.plotly().layout
    assert layout.modebar.orientation == "v"
    assert layout.margin.r >= 40


def test_settings_of_the_person_do_not_change_the_picture() -> None:
    import matplotlib

    from rankveil.report import static

    plain = static.svg(BARS)
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30, "svg.hashsalt": "other"}):
        assert static.svg(BARS) == plain
        assert matplotlib.rcParams["font.size"] == 30


def test_png_is_a_png(tmp_path: Path) -> None:
    BARS.png(tmp_path / "bars.png", dpi=50)
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="missing"):
        LINES.svg(tmp_path / "missing" / "chart.svg")


@pytest.mark.parametrize("name", [EVIL, "$x$ and $\\frac$", "_hidden", "a & b", "名前", "x" * 200])
def test_any_name_can_be_drawn(name: str) -> None:
    from rankveil.report import static

    chart = Chart(name, name, name, [Line(name, [1, 2], [0, 1])], note=name)
    assert chart.plotly().data[0].name
    legend = chart.matplotlib().axes[0].get_legend()
    assert legend is not None
    assert legend.get_texts()[0].get_text() == shortened(name)
    ElementTree.fromstring(static.svg(chart))


def test_names_never_become_markup() -> None:
    chart = Chart(EVIL, EVIL, EVIL, [Line(EVIL, [1, 2], [0, 1])], note=EVIL, kind='"><b>')
    for html in (chart.html(include_js=False), chart._repr_html_()):
        page = Collected(html)
        assert not [tag for tag, _ in page.elements if tag == "b"]
        assert all("alert(1)" not in script or script.startswith("{") for script in page.scripts)
        assert "<script>alert" not in html
    live, draw = Collected(chart.html(include_js=False)).scripts
    assert draw.startswith("(function")
    spec = json.loads(live)
    places = Chart("t", "x", "y", [Bars("a", [EVIL], [1])]), Chart("t", "", "", [Heat("v", [EVIL], [EVIL], [[1]])])
    told = Chart("t", EVIL, EVIL, [Points(EVIL, [1], [1], labels=[EVIL])]).plotly().data[0].hovertext[0]
    assert "<" not in told.replace("<br>", "")
    assert all("<" not in label for chart in places for label in chart.plotly().data[0].x)
    # Plotly shows entities as the signs they stand for, and reads tags as tags.
    assert "<" not in spec["layout"]["xaxis"]["title"]["text"]
    assert "<" not in spec["data"][0]["name"]


def test_fragment_brings_plotly_only_when_asked() -> None:
    assert len(LINES.html(include_js=False)) < 200_000
    scripts = Collected(LINES.html(include_js=True)).scripts
    assert len(scripts) == 3
    assert sum(len(script) > 1_000_000 for script in scripts) == 1


def test_notebook_gets_a_picture_without_script() -> None:
    page = Collected(LINES._repr_html_())
    assert page.scripts == []
    [picture] = [attributes for tag, attributes in page.elements if tag == "img"]
    assert str(picture["src"]).startswith("data:image/svg+xml;base64,")
    assert picture["alt"] == LINES.title


def test_gaps_survive() -> None:
    chart = Chart("gap", "x", "y", [Line("A", [1, 2, 3], [0, float("nan"), 2])])
    spec = json.loads(Collected(chart.html(include_js=False)).scripts[0])
    assert spec["data"][0]["y"] == [0.0, None, 2.0]


def test_description_is_frozen_and_comparable() -> None:
    values = np.array([1.0, 2.0])
    line = Line("A", values, values)  # type: ignore[arg-type]
    values[0] = 9.0
    assert line == Line("A", [1, 2], [1, 2])
    assert hash(Chart("t", "x", "y", [line])) == hash(Chart("t", "x", "y", (line,)))


def test_impossible_charts_are_refused() -> None:
    with pytest.raises(ParameterError, match="series A: 2 positions but 1 values"):
        Line("A", [1, 2], [1])
    with pytest.raises(ParameterError, match="no series"):
        Chart("t", "x", "y", [])
    with pytest.raises(ParameterError, match="mixes"):
        Chart("t", "x", "y", [*LINES.series, *BARS.series])
    with pytest.raises(ParameterError, match="mixes"):
        Chart("t", "x", "y", [*BARS.series, Points("A", [0], [1])])
    with pytest.raises(ParameterError, match="different labels"):
        Chart("t", "x", "y", [Bars("a", ["0"], [1]), Bars("b", ["1"], [1])])
    with pytest.raises(ParameterError, match="label 0 occurs twice"):
        Bars("a", ["0", "0"], [1, 2])
    guide = Line("g", [0, 2], [1, 1], guide=True)
    with pytest.raises(ParameterError, match="2 bars goes from 0 to 1"):
        Chart("t", "x", "y", [*BARS.series, guide])
    with pytest.raises(ParameterError, match="after the bars"):
        Chart("t", "x", "y", [Line("g", [0, 1], [1, 1], guide=True), *BARS.series])
    with pytest.raises(ParameterError, match="begin at zero"):
        Chart("t", "x", "y", BARS.series, y_from_zero=False)


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ({"labels": ["one"]}, "2 points but 1 of labels"),
        ({"marked": [True]}, "2 points but 1 of marked"),
        ({"low": [0, 0]}, "two ends"),
        ({"low": [0, 0], "high": [1]}, "2 points but 1 of high"),
        ({"low": [0, 2.5], "high": [3, 3]}, "interval of point 2"),
        ({"low": [0, 0], "high": [0.5, 3]}, "interval of point 1"),
    ],
)
def test_impossible_points_are_refused(parts: dict[str, list[float]], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        Points("A", [1, 2], [1, 2], **parts)  # type: ignore[arg-type]


def test_impossible_matrices_are_refused() -> None:
    with pytest.raises(ParameterError, match="2 row labels and 1 column labels do not fit"):
        Heat("v", ["a", "b"], ["c"], [[1.0, 2.0]])
    with pytest.raises(ParameterError, match="no cells"):
        Heat("v", [], ["a"], [])
    with pytest.raises(ParameterError, match="negative values"):
        Heat("v", ["a"], ["a"], [[-1.0]])
    with pytest.raises(ParameterError, match="occurs twice"):
        Heat("v", ["a", "a"], ["b"], [[1.0], [1.0]])
    with pytest.raises(ParameterError, match="draw it alone"):
        Chart("t", "", "", [*MATRIX.series, *MATRIX.series])


@pytest.mark.parametrize("axis", ["log_x", "log_y"])
@pytest.mark.parametrize("series", [Line("A", [1, 0], [0, 1]), Points("A", [-1], [-1])])
def test_nothing_vanishes_from_a_logarithmic_axis(axis: str, series: Line | Points) -> None:
    with pytest.raises(ParameterError, match=f"leave {axis} out"):
        Chart("t", "x", "y", [series], **{axis: True})  # type: ignore[arg-type]


def test_the_darkest_colour_can_be_fixed() -> None:
    values = [[0.2, 0.1]]
    assert Heat("v", ["a"], ["b", "c"], values).limit == 0.2
    assert Heat("v", ["a"], ["b", "c"], values, most=1.0).limit == 1.0
    # A colour that does not exist would hide how large a value is.
    assert Heat("v", ["a"], ["b", "c"], values, most=0.15).limit == 0.2
    assert Heat("v", ["a"], ["b", "c"], [[0.0, float("nan")]]).limit == 1.0


def test_long_names_under_bars_leave_room_for_the_bars() -> None:
    labels = [f"{place} attribute {'x' * 60}" for place in range(8)]
    chart = Chart("t", "x", "y", [Bars("a", labels, [1.0] * 8)])
    drawn = chart.matplotlib()
    drawn.canvas.draw()
    assert drawn.axes[0].get_position().height * drawn.get_figheight() > 2
    assert max(len(label) for label in chart.plotly().data[0].x) <= 20
    alike = Chart("t", "x", "y", [Bars("a", ["x" * 50 + end + "x" * 50 for end in "ab"], [1, 2])])
    assert len(set(alike.plotly().data[0].x)) == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-2.5, "-2.5"), (100.0, "100"), (1234567.0, "1234567"), (0.72199, "0.722"), (2e-9, "2e-09")],
)
def test_numbers_for_people(value: float, text: str) -> None:
    assert number(value) == text


def test_words_under_bars_are_all_shown() -> None:
    labels = [f"method number {position}" for position in range(12)]
    axes = Chart("t", "x", "y", [Bars("a", labels, [1.0] * 12)]).matplotlib().axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == labels
