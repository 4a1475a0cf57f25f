"""One description, two ways to draw it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from rankveil.errors import FileError, ParameterError
from rankveil.report.chart import Bars, Chart, Line
from rankveil.report.look import look, number, shortened

LINES = Chart(
    "B moved most",
    "records",
    "rank change",
    [Line("A", [1, 2, 3], [0, 1, 2]), Line("B", [1, 2, 3], [1, 3, 5])],
    note="n = 3",
    kind="level",
)
BARS = Chart("Alike", "distance", "share", [Bars("real", ["0", "1"], [0.5, 0.5]), Bars("random", ["0", "1"], [1, 0])])
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


def test_svg_is_the_same_each_time(tmp_path: Path) -> None:
    LINES.svg(tmp_path / "one.svg")
    LINES.svg(tmp_path / "two.svg")
    one = (tmp_path / "one.svg").read_bytes()
    assert one == (tmp_path / "two.svg").read_bytes()
    assert b"<dc:date>" not in one
    text = " ".join(ElementTree.fromstring(one).itertext())
    assert LINES.title in text
    assert LINES.note in text


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
    with pytest.raises(ParameterError, match="different labels"):
        Chart("t", "x", "y", [Bars("a", ["0"], [1]), Bars("b", ["1"], [1])])


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
