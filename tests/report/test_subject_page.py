"""The subject's page as a file: what it holds, that it loads nothing, and the verb that writes it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil import files
from rankveil.cli import main
from rankveil.people.chance import DRAWS
from rankveil.schema import Schema
from rankveil.seeds import Seed

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
LOADING = {"src", "href", "srcset", "data", "action", "formaction", "poster", "background", "ping", "manifest", "style"}
TYPES = {"i1": "<i1", "i2": "<i2", "i4": "<i4", "f4": "<f4", "f8": "<f8"}


class Parsed(HTMLParser):
    """Elements with their attributes, and the texts of scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self._inside: str | None = None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._inside = tag if tag in self.texts else None
        if self._inside:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[self._inside][-1] += data


def held(html: str) -> dict[str, Any]:
    """The data of a page."""
    return dict(json.loads(Parsed(html).texts["script"][0]))


def decoded(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=TYPES[kind]).astype(float)


def mixed() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "small": [1, -2, 100] * 40,
            "whole": rng.integers(-(2**31), 2**31, 120),
            "long": rng.integers(2**40, 2**41, 120),
            "half": [0.5, None, 7.25] * 40,
            "real": rng.normal(size=120),
            "school": ["low", "high", "middle"] * 40,
            "name": [f"person {i}" for i in range(120)],
        }
    )


def test_the_policy_allows_its_own_scripts_and_style_alone() -> None:
    page = Parsed(rv.subject_page(mixed()))
    [policy] = [facts["content"] for _, facts in page.elements if "Content-Security-Policy" in facts.values()]
    assert policy.startswith("default-src 'none'; ")

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    [style], scripts = page.texts["style"], page.texts["script"][1:]
    rules = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "script-src": " ".join(map(digest, scripts)),
        "style-src": digest(style),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert len(scripts) == 3
    assert page.elements[3][0] == "meta"  # before anything that could load


def test_it_loads_nothing_and_no_name_becomes_markup() -> None:
    table = pl.DataFrame({EVIL: [1, 2, 3], "L": ["a", EVIL, "a"]})
    page = Parsed(rv.subject_page(table, title=EVIL, schema=Schema(levels={"L": ("a", EVIL)})))
    assert not [facts for _, facts in page.elements if LOADING & set(facts) or any(n.startswith("on") for n in facts)]
    assert [tag for tag, _ in page.elements].count("script") == 4
    assert "img" not in [tag for tag, _ in page.elements]
    texts = " ".join(page.texts["script"] + page.texts["style"])
    assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|sendBeacon|@import|url\(|eval\(|Storage|cookie", texts)


def test_it_holds_every_value_exactly_in_eight_bytes_or_less() -> None:
    table = mixed()
    schema = Schema(levels={"school": ("low", "middle", "high")})
    names = ["small", "whole", "long", "half", "real", "school"]
    content = held(rv.subject_page(table, columns=names, schema=schema))
    read = rv.Table(table, schema=schema)
    assert [column["name"] for column in content["columns"]] == names
    assert [column["type"] for column in content["columns"]] == ["i1", "i4", "f8", "f4", "f8", "i1"]
    for column in content["columns"]:
        values = decoded(column["values"], column["type"])
        assert np.array_equal(values, read.values(column["name"]), equal_nan=True)
    assert content["columns"][-1]["levels"] == ["low", "middle", "high"]
    assert (content["records"], content["approximate"]) == (120, True)


def test_draws_of_verify_come_along_only_where_chance_is_sampled() -> None:
    assert held(rv.subject_page(mixed(), columns=["real", "small"]))["uniform"] == []
    found = held(rv.subject_page(mixed(), columns=["real", "small", "half"]))["uniform"]
    stream = Seed.of(0).stream("chance", "subject")
    assert [decoded(text, "f8").tolist() for text in found] == [stream.random(DRAWS).tolist() for _ in range(3)]


def test_categories_come_with_what_the_check_needs_of_them() -> None:
    tree = [("Ulm", "South", "*"), ("Bonn", "West", "*"), ("Köln", "West", "*")]
    table = pl.DataFrame({"CITY": ["Ulm", None, "Köln", "Ulm"], "JOB": ["cook", "baker", "baker", EVIL]})
    schema = Schema(roles={"CITY": "quasi-identifier", "JOB": "confidential"}, hierarchies={"CITY": tree})
    page = rv.subject_page(table, schema=schema)
    city, job = held(page)["columns"]
    assert (city["levels"], city["others"], city["nominal"]) == (["Ulm", "Köln"], ["Bonn"], True)
    assert city["within"] == [-1]
    assert city["ranking"] == "marginality by the hierarchy CITY"
    assert decoded(city["values"], city["type"])[[0, 2, 3]].tolist() == [0, 1, 0]
    apart = np.array(city["apart"]["distances"])[decoded(city["apart"]["places"], city["apart"]["type"]).astype(int)]
    near, far = np.log2(1.5), np.log2(1.8)  # Ulm, Köln and Bonn from Ulm and from Köln
    assert apart.tolist() == pytest.approx([0, far, far, 0, far, near])
    assert (job["levels"], job["others"], "apart" in job) == (["baker", EVIL, "cook"], [], False)
    # offered by their labels, so that they can be found
    options = [facts["value"] for tag, facts in Parsed(page).elements if tag == "option"]
    assert options[:8] == ["", "2", "1", "0", "", "1", "0", "2"]
    assert "how central they are among the released values" in page
    assert "how central they are" not in rv.subject_page(mixed(), columns=["whole", "real"])


def test_the_page_knows_which_released_group_contains_a_category() -> None:
    tree = [("Ulm", "South", "*"), ("Bonn", "West", "*"), ("Köln", "West", "*"), ("Kiel", "North", "*")]
    table = pl.DataFrame({"CITY": ["Ulm", "West", "West", "Ulm"]})
    schema = Schema(roles={"CITY": "quasi-identifier"}, hierarchies={"CITY": tree})
    [city] = held(rv.subject_page(table, schema=schema))["columns"]
    assert city["levels"][1] == "West"
    assert dict(zip(city["others"], city["within"], strict=True)) == {"Bonn": 1, "Köln": 1, "Kiel": -1}


def test_dates_and_times_come_with_their_clocks() -> None:
    days, moments = pa.array([0, 40], pa.int32()).cast(pa.date32()), pa.array([0, 90]).cast(pa.timestamp("s", tz="UTC"))
    page = rv.subject_page(pa.table({"BORN": days, "SEEN": moments, "STAY": pa.array([5, 7]).cast(pa.duration("s"))}))
    born, seen, stay = held(page)["columns"]
    assert born["clock"] == {"kind": "date", "unit": "day", "utc": False}
    assert seen["clock"] == {"kind": "timestamp", "unit": "s", "utc": True}
    assert "clock" not in stay  # a number of seconds
    assert "released: 1970-01-01 to 1970-02-10<" in page
    assert "released: 1970-01-01 00:00:00Z to 1970-01-01 00:01:30Z<" in page
    assert "released: 5 to 7<" in page


def test_tables_that_make_no_page() -> None:
    empty = pa.table({"A": pa.nulls(2, pa.float64()), "B": [1, 2]})
    with pytest.raises(rv.TableError, match="column A: all its cells are missing; leave it out"):
        rv.subject_page(empty, columns=["A", "B"], schema=Schema(kinds={"A": "numeric"}))
    with pytest.raises(rv.TableError, match="no records"):
        rv.subject_page(pa.table({"A": pa.array([], pa.float64())}))
    with pytest.raises(rv.TableError, match="there is no column C"):
        rv.subject_page(pa.table({"A": [1.0]}), columns=["C"])
    with pytest.raises(rv.ParameterError, match="no column is named"):
        rv.subject_page(pa.table({"A": [1.0]}), columns=[])
    with pytest.raises(rv.TableError, match="no usable column"):
        rv.subject_page(pa.table({"A": [["x"], ["y"]]}))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    _, masked = rv.datasets.running_example()
    files.save(masked.append_column("NAME", pa.array([f"n{i}" for i in range(20)])), "masked.csv")
    return tmp_path


def test_the_verb(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["subject-page", "masked.csv", "-o", "verify.html", "--title", "Survey 2019"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "20 released records with 3 columns (X1, X2, X3)" in said.out
    assert "page: verify.html" in said.out
    assert "note: not on the page: NAME" in said.out
    page = (folder / "verify.html").read_text(encoding="utf-8")
    assert "<h1>Survey 2019</h1>" in page
    _, masked = rv.datasets.running_example()
    assert held(page)["columns"] == held(rv.subject_page(masked))["columns"]


def test_the_verb_as_json_with_a_manifest(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["mask", "masked.csv", "-o", "swapped.csv", "--method", "rank_swap", "--seed", "00" * 16]
    assert main([*words, "--role", "NAME=other"]) == 0
    capsys.readouterr()
    words = ["subject-page", "swapped.csv", "-o", "verify.html", "--columns", "X3,X1", "--json"]
    assert main([*words, "--manifest", "swapped.csv.manifest.json"]) == 0
    found = json.loads(capsys.readouterr().out)
    size = (folder / "verify.html").stat().st_size
    assert found == {
        "schema": "rankveil/subject-page/1",
        "page": "verify.html",
        "bytes": size,
        "records": 20,
        "attributes": ["X3", "X1"],
        "approximate": False,
        "notes": ["not on the page: X2, NAME"],
    }
    page = (folder / "verify.html").read_text(encoding="utf-8")
    assert "so this comparison is exact" in page
    assert held(page)["approximate"] is False


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-o", "masked.csv"], "masked.csv: the page would overwrite the released table; give another name"),
        (["-o", "nowhere/verify.html"], "there is no folder nowhere"),
        (["-o", "verify.html", "--columns", "X9"], "there is no column X9"),
        (["-o", "verify.html", "--manifest", "no.json"], "no.json: the manifest cannot be read"),
        ([], "--output/-o is missing"),
    ],
)
def test_the_verb_refuses(folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str) -> None:
    assert main(["subject-page", "masked.csv", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err
    assert said.err.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["masked.csv"]
