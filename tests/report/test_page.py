"""The page is self-contained, loads nothing and lets no name become markup."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from rankveil.errors import ParameterError
from rankveil.report.figures import permutation_level
from rankveil.report.page import Grid, Section, render

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
CHART = permutation_level({"A": np.arange(5.0), EVIL: np.ones(5)}, n=5)
LOADING = {
    "src",
    "href",
    "srcset",
    "data",
    "action",
    "formaction",
    "poster",
    "background",
    "ping",
    "manifest",
}


class Parsed(HTMLParser):
    """Elements, and the texts of scripts, styles and everything else."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))

    def joined(self, tag: str) -> str:
        return "".join(text for where, text in self.texts if where == tag)

    def policy(self) -> dict[str, str]:
        [content] = [
            attributes["content"]
            for tag, attributes in self.elements
            if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
        ]
        return dict(part.strip().split(" ", 1) for part in content.split(";"))


@pytest.fixture(scope="module")
def html() -> str:
    table = Grid(["name", "value"], [[EVIL, 1.5], ["B", 0.25]], caption=EVIL)
    parts = [
        Section("Permutation", text=f"One.\n\nTwo {EVIL}", charts=[CHART], tables=[table], notes=[EVIL]),
        Section("Again", charts=[CHART]),
    ]
    return render(title=f"Audit {EVIL}", lead=f"Safe. {EVIL}", sections=parts, internal=True, command=f"x {EVIL}")


@pytest.fixture(scope="module")
def page(html: str) -> Parsed:
    return Parsed(html)


def test_nothing_is_loaded_from_elsewhere(page: Parsed) -> None:
    for tag, attributes in page.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base"}
        for name in LOADING & attributes.keys():
            assert attributes[name].startswith(("data:image/svg+xml;base64,", "#")), (tag, name)
        assert "url(" not in attributes.get("style", "")
    style = page.joined("style")
    assert style
    assert "@import" not in style
    assert "url(" not in style


def test_still_pictures_load_nothing_either(page: Parsed) -> None:
    pictures = [attributes["src"] for tag, attributes in page.elements if tag == "img"]
    assert len(pictures) == 2
    for picture in pictures:
        svg = base64.b64decode(picture.partition("base64,")[2]).decode("utf-8")
        assert all(target.startswith("#") for target in re.findall(r'href="([^"]*)"', svg))
        assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", svg))


def test_the_page_has_no_script_and_allows_none(page: Parsed) -> None:
    policy = page.policy()
    assert policy["default-src"] == "'none'"
    assert "script-src" not in policy
    assert "connect-src" not in policy
    assert "http" not in " ".join(policy.values())
    assert not [tag for tag, _ in page.elements if tag == "script"]


def test_a_page_is_small(html: str) -> None:
    assert len(html) < 150_000
    assert len(render(title="t", lead="l", sections=[Section("s", text="x")], internal=False)) < 10_000


def test_names_stay_text(page: Parsed) -> None:
    assert not [1 for _, attributes in page.elements if "onerror" in attributes]
    for tag in ("h1", "p", "caption", "td", "li", "figcaption", "title"):
        assert EVIL in page.joined(tag), tag
    # a command is told word by word
    assert set(EVIL.split()) <= {text for where, text in page.texts if where == "span"}


def test_order_words_figures_tables_notes_command(page: Parsed) -> None:
    order = [tag for tag, _ in page.elements if tag in {"h1", "figure", "table", "li", "code"}]
    assert order == ["h1", "figure", "table", "li", "figure", "code"]
    assert [text for tag, text in page.texts if tag == "p" and text.startswith(("One", "Two"))] == [
        "One.",
        f"Two {EVIL}",
    ]


def test_internal_is_said_on_screen_and_paper(html: str, page: Parsed) -> None:
    assert "INTERNAL" in page.joined("span")
    assert page.joined("title").startswith("INTERNAL")
    assert "table-header-group" in html
    public = render(title="t", lead="l", sections=[], internal=False)
    assert "INTERNAL" not in public
    assert "table-header-group" not in public


def test_readers_and_small_screens(page: Parsed) -> None:
    assert ("html", {"lang": "en"}) in page.elements
    assert any(attributes.get("name") == "viewport" for _, attributes in page.elements)
    regions = [attributes for tag, attributes in page.elements if attributes.get("class") == "scroll"]
    assert [region["tabindex"] for region in regions] == ["0"]


def test_contents_point_to_the_parts() -> None:
    parts = Parsed(render(title="t", lead="l", sections=[Section(str(i)) for i in range(4)], internal=False))
    targets = [attributes["href"] for tag, attributes in parts.elements if tag == "a"]
    anchors = [f"#{attributes['id']}" for tag, attributes in parts.elements if tag == "section"]
    assert targets == anchors
    assert len(set(anchors)) == 4


def test_cells_and_alignment() -> None:
    grid = Grid(
        ["text", "whole", "real", "ready", "flag", "mixed"],
        [
            ["a", np.int64(3), np.float64(0.123456), "0.250", np.bool_(True), 1],
            ["b", 12, None, "1e-3", False, "x"],
            ["c", 0, float("nan"), "-7", True, 2.0],
        ],
    )
    assert grid.numeric == [False, True, True, True, False, False]
    assert grid.cells == [
        ["a", "3", "0.1235", "0.250", "yes", "1"],
        ["b", "12", "\u2013", "1e-3", "no", "x"],
        ["c", "0", "\u2013", "-7", "yes", "2"],
    ]
    parsed = Parsed(render(title="t", lead="l", sections=[Section("s", tables=[grid])], internal=False))
    heads = [attributes.get("class") for tag, attributes in parsed.elements if tag == "th"]
    assert heads == [None, "number", "number", "number", None, None]


def test_a_ragged_table_is_refused() -> None:
    with pytest.raises(ParameterError, match="row 2 has 1 cells for 2 columns"):
        Grid(["a", "b"], [[1, 2], [1]], caption="t")
