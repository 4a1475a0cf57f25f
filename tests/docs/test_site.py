"""The site: complete, linked, without a network, true to the code."""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import types
from pathlib import Path

import pytest
from sitebuilder import chance, outline, published, rendering
from sitebuilder.links import broken, read
from sitebuilder.site import TABLES, build

import rankveil as rv
from rankveil import catalogue
from rankveil.cli.app import VERBS, command

ROOT = Path(__file__).resolve().parents[2]


def test_no_link_leads_nowhere_and_nothing_is_fetched(site: Path) -> None:
    assert broken(site) == []


def test_every_page_can_be_reached_from_the_first(site: Path) -> None:
    seen, ahead = set(), [site / "index.html"]
    while ahead:
        page = ahead.pop().resolve()
        if page in seen or page.suffix != ".html":
            continue
        seen.add(page)
        links = [target.partition("#")[0] for tag, target in read(page).targets if tag == "a"]
        ahead += [page.parent / link for link in links if link and ":" not in link]
    assert {path.resolve() for path in site.rglob("*.html")} == seen


@pytest.mark.parametrize("folder", ["methods", "measures"])
def test_every_entry_of_the_catalogue_has_its_page(site: Path, folder: str) -> None:
    entries = getattr(catalogue, folder)()
    for name, entry in entries.items():
        page = (site / "reference" / folder / f"{name}.html").read_text(encoding="utf-8")
        headings = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
        assert headings == ["Parameters", "Facts", "Example", "Published numbers"], name
        for parameter in entry.parameters:
            assert f"<code>{parameter}</code>" in page, (name, parameter)
    assert len(list((site / "reference" / folder).glob("*.html"))) == len(entries) + 1


WITHOUT_A_FORMULA = {"drop": "a column that is left out has no value to compute"}


@pytest.mark.parametrize("folder", ["methods", "measures"])
def test_every_entry_of_the_catalogue_has_its_formula(site: Path, folder: str) -> None:
    for name in getattr(catalogue, folder)():
        page = (site / "reference" / folder / f"{name}.html").read_text(encoding="utf-8")
        meaning = page.partition("<h1")[2].partition("<h2")[0]
        formulas = re.sub(
            r"<code>[^\n<]*</code>(?!</pre>)|<[^>]+>", "", meaning
        )  # what stands within a line is no formula
        assert (" = " in formulas) is (name not in WITHOUT_A_FORMULA), name


@pytest.mark.parametrize(
    ("page", "formula"),
    [
        ("methods/mdav", "while 3k or more records are left:"),
        ("methods/rank_swap", "|r_i - r_j| &lt;= p n / 100"),
        ("methods/distance_swap", "d &lt;= |r_i - r_t(i)| &lt;= p n / 100"),
        ("measures/pil_mean", "2 P(0 &lt;= N(0,1) &lt;= |mean(Y) - mean(X)| / sqrt(Var))"),
        ("measures/pil", "2 P(0 &lt;= N(0,1) &lt;= |t(Y) - t(X)| / sqrt(Var t))"),
        ("measures/loss_factor_correlations_mse", "rf_ij = v_ij sqrt(l_j)"),
        ("measures/loss_factor_scores_mv", "f_ij = v_ij / sqrt(l_j)"),
        ("measures/loss_commonalities_mae", "c_i = rf_i1^2"),
        ("measures/il2", "m_j is the mean of attribute j"),
        ("methods/pseudonymise", "None."),
    ],
)
def test_a_page_has_what_its_formula_needs(site: Path, page: str, formula: str) -> None:
    assert formula in (site / "reference" / f"{page}.html").read_text(encoding="utf-8")


def test_nothing_in_a_block_without_a_language_is_too_wide() -> None:
    # Indented blocks are formulas and short lists; beyond this they would be broken on a page of 1200 pixels.
    for page in (ROOT / "docs" / "theory").glob("*.md"):
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert [line for line in re.findall(r"^(?: {4,})\S.*$", text, re.MULTILINE) if len(line) > 96] == [], page


def test_an_option_is_not_broken_after_its_dashes(site: Path) -> None:
    page = (site / "tutorial.html").read_text(encoding="utf-8")
    assert '<code class="line"><span>--seed</span> 1</code>' in page
    assert "<code>--subsets</code>" in page
    assert re.search(r"^code, \.line span \{ white-space: nowrap; \}", (site / "style.css").read_text(), re.MULTILINE)


def test_every_verb_and_option_is_on_the_page_of_the_command_line(site: Path) -> None:
    page = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    for verb in VERBS:
        assert f'id="{verb}"' in page
        for one in command().commands[verb].params:
            for option in one.opts if one.param_type_name == "option" else ():
                assert f"<code>{option}</code>" in page, (verb, option)


def test_every_public_name_is_on_the_page_of_python(site: Path) -> None:
    anchors = read(site / "reference" / "python.html").anchors
    for name in set(rv.__all__) - {"__version__"}:
        assert f"rv-{name.lower()}" in anchors, name


def test_every_rule_about_published_numbers_finds_some() -> None:
    known = published.numbers()
    assert len(known) > 500
    for name, rules in published._ABOUT.items():
        assert name in catalogue.methods() or name in catalogue.measures(), name
        for paper, table, item in rules:
            found = [n for n in known if n.paper == paper and re.match(table, n.table) and re.search(item, n.item)]
            assert found, (name, paper, table, item)


def test_every_generated_table_has_its_place() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    assert set(re.findall(r"<!-- generated: ([\w-]+) -->", text)) == set(TABLES)


def test_the_index_of_the_search_has_every_page(site: Path) -> None:
    text = (site / "index.js").read_text(encoding="utf-8").removeprefix("const PAGES = ").rstrip(";\n")
    pages = json.loads(text)
    assert {page["path"] for page in pages} == {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert all(page["words"] for page in pages)


@pytest.mark.parametrize("module", [chance, outline, rendering])
def test_examples_of_the_builder_run(module: types.ModuleType) -> None:
    ran = doctest.testmod(module)
    assert ran.attempted > 0
    assert ran.failed == 0


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#x">b</a><a href="#top">top</a>')
    (tmp_path / "b.html").write_text('<a href="c.html">c</a><img src="https://example.org/x.png">')
    assert broken(tmp_path) == [
        "a.html: b.html#x has no such heading",
        "b.html: c.html is not there",
        "b.html: img fetches https://example.org/x.png",
    ]


def test_the_script_can_be_run() -> None:
    script = ROOT / "scripts" / "site"
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SystemExit, match="holds something else"):
        build(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
