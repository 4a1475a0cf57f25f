"""Every block of code in the README and in docs/ runs: on each page in order, in one folder, with the demo's data."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

import rankveil as rv
from rankveil import datasets, files
from rankveil.cli import main
from rankveil.uses import Uses

ROOT = Path(__file__).resolve().parents[2]

_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<why>[^\n]+?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_EXIT = re.compile(r"#\s*exit code (\d)\s*$")


@dataclass(frozen=True)
class Block:
    """A block of code on a page."""

    page: str
    line: int
    language: str
    text: str
    why_not: str | None

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found["language"], found["text"], found["why"])
        for found in _BLOCK.finditer(text)
    ]


def pages() -> list[str]:
    written = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path.relative_to(ROOT).as_posix() for path in written]


def commands(text: str) -> list[tuple[list[str], int]]:
    """The commands of a block of shell, each with the exit code that it says it ends with."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        told = _EXIT.search(line)
        if words:
            found.append((words, int(told[1]) if told else 0))
    return found


def run_shell(block: Block, _: dict[str, Any]) -> None:
    for words, code in commands(block.text):
        assert words[0] == "rankveil", f"{block.where}: only rankveil is run here, not {words[0]}"
        assert "$" not in "".join(words), f"{block.where}: a variable has no value here"
        to = None
        if ">" in words:
            words, to = words[: words.index(">")], words[words.index(">") + 1]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            ended = main(words[1:])
        assert ended == code, f"{block.where}: {' '.join(words)} ended with {ended}: {err.getvalue()}{out.getvalue()}"
        if to is not None:
            Path(to).write_text(out.getvalue(), encoding="utf-8")


def run_python(block: Block, names: dict[str, Any]) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(block.text, block.where, "exec"), names)


def read_toml(block: Block, _: dict[str, Any]) -> None:
    read = tomllib.loads(block.text)
    if read.get("schema") == "rankveil/plan/1":
        assert rv.Plan.from_toml(block.text).steps
    elif {"regression", "means", "table"} & read.keys():
        assert Uses.from_toml(block.text).stated
    else:
        assert "columns" in read or "missing" in read, f"{block.where}: neither a plan, nor uses, nor roles"
    named = re.match(r"# (\S+\.toml)\n", block.text)
    if named:
        Path(named[1]).write_text(block.text, encoding="utf-8")


def read_yaml(block: Block, _: dict[str, Any]) -> None:
    assert yaml.safe_load(block.text)


RUNNERS: dict[str, Callable[[Block, dict[str, Any]], None]] = {
    "sh": run_shell,
    "python": run_python,
    "toml": read_toml,
    "yaml": read_yaml,
    "json": lambda block, _: json.loads(block.text),
    "text": lambda block, _: None,
}

WITH_CODE = [page for page in pages() if blocks_of(page)]


@pytest.fixture
def folder(tmp_path: Path, demo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the working directory, with the data that pages speak of."""
    shutil.copytree(demo, tmp_path / "rankveil-demo")
    shutil.copy(demo / "original.csv", tmp_path / "people.csv")
    shutil.copy(demo / "region.csv", tmp_path / "region.csv")
    (tmp_path / "scratch").mkdir()
    numbers = datasets.demo().select(["AGE", "HOURS", "INCOME", "SAVINGS"]).drop_null()
    files.save(numbers, str(tmp_path / "original.parquet"))
    for number, name in enumerate(("masked", "noise", "swapped")):
        masked: pa.Table = rv.mask(numbers, "rank_swap", p=10, seed=number).data
        files.save(masked, str(tmp_path / f"{name}.parquet"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


LONG = ("docs/howto/scale-out.md",)
"""Pages whose commands start clusters, one after the other."""


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.thorough] if page in LONG else []) for page in WITH_CODE]
)
def test_the_code_of_a_page_runs(page: str, folder: Path) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks_of(page):
        assert block.language in RUNNERS, f"{block.where}: say what language this is (sh, python, toml, yaml, text)"
        if block.why_not is None:
            RUNNERS[block.language](block, names)


def test_what_is_not_run_is_this() -> None:
    assert [(block.page, block.why_not) for page in WITH_CODE for block in blocks_of(page) if block.why_not] == [
        ("README.md", "sets up an environment and runs all tests"),
        ("docs/howto/scale-out.md", "needs a cluster at this address"),
        ("docs/howto/scale-out.md", "needs an object store and a cluster"),
        ("docs/howto/scale-out.md", "needs an object store"),
        ("docs/howto/scale-out.md", "needs SLURM"),
        ("docs/howto/scale-out.md", "writes into the home folder"),
        ("docs/howto/stata-and-spss.md", "needs Stata"),
    ]


def test_no_block_escapes() -> None:
    # A fence that is indented, or opened in another way, would be shown and never run.
    for page in pages():
        text = (ROOT / page).read_text(encoding="utf-8")
        assert len(re.findall(r"^\s*(```|~~~)", text, re.MULTILINE)) == 2 * len(blocks_of(page)), page


def test_no_command_is_only_indented() -> None:
    # Those of docs/reproduced are written by `rankveil reproduce`, and its own tests run them.
    for page in pages():
        if not page.startswith("docs/reproduced/"):
            text = (ROOT / page).read_text(encoding="utf-8")
            without = _BLOCK.sub("", text)
            assert re.findall(r"^(?: {4}|\t).*\brankveil [a-z].*$", without, re.MULTILINE) == [], page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rankveil a \\\n    b  # why", [(["rankveil", "a", "b"], 0)]),
        ("rankveil a 'x<1'  # exit code 1\n\nrankveil b", [(["rankveil", "a", "x<1"], 1), (["rankveil", "b"], 0)]),
        ("# nothing\n", []),
    ],
)
def test_commands_are_read_as_a_shell_reads_them(text: str, expected: list[tuple[list[str], int]]) -> None:
    assert commands(text) == expected
