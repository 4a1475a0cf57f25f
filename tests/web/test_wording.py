"""Messages of all rooms in the words of the page: no option of the command, and only controls that are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rankveil
from rankveil.web import wording

SOURCE = Path(rankveil.__file__).parent
OPTION = re.compile(r"(?<![\w-])--[a-z]|`rankveil ")
WORD = re.compile(r"--[a-z-]+")  # of a command, which is shown as one
ELSEWHERE = (
    "give at least one value by the name of its column",  # the subject has a page of her own
    "a map has no one place to take",  # on a page every place has its button
    "X: a comparison that was stopped left its state here",  # a run always goes on from its own state
    "X: the same job was stopped and left its work here",  # jobs in parts are begun by the command alone
    "X; what was done is kept in X: the same command",
    "X, and a spreadsheet would run them",  # the workbench keeps them, and a note says so
    "the target claims is retired",  # no page offers it
    "give the workers more",  # work in parts is begun by the command alone
    "give more with --memory",
    "cluster X: X at least X and X may be used",
    "cluster X: name a scratch folder that all its workers see",  # the workbench works on its own machine
    "X: its rows were reordered, as its manifest saysX",  # the workbench finds the secrets of its own maskings
    "this is the X release of this table, after X",  # only what is written to a file is entered in a register
    "the secret lies beside what you publish",  # the workbench keeps it in a file of its own
    "this release was written in parts already",
)
"""How the sentences begin that no page can show."""


def sentences() -> Iterator[str]:
    """Every text of the rooms below the pages that names an option, X for what is filled in; docstrings are none."""
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] not in ("cli", "web", "papers"):
            found = filter(OPTION.search, texts(ast.parse(path.read_text(encoding="utf-8"))))
            yield from (text for text in found if not WORD.fullmatch(text))


def texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
    else:
        for child in ast.iter_child_nodes(node):
            yield from texts(child)


def test_no_page_speaks_of_options_of_the_command() -> None:
    found = list(sentences())
    assert len(found) > 10
    left = [text for text in map(wording.for_page, found) if OPTION.search(text) and not text.startswith(ELSEWHERE)]
    assert left == [], "give these sentences words for the page in web/wording.py"


def test_the_controls_that_are_named_are_there() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (SOURCE / "web" / "templates").iterdir())
    named = re.findall("“(.*?)”", "".join(words for _, words in wording.CONTROLS))
    assert named
    assert [name for name in named if f">{name}" not in pages and f" {name}" not in pages] == []


@pytest.mark.parametrize(
    ("content", "given", "sentence"),
    [
        (
            "A\n1\n1\n3\n2\n5\n5\n7\n8\n8\nn/a\n",
            {"method": "rank_swap", "columns": ["A"]},
            'column A: 1 value is not a number (row 10: "n/a"); declare it missing: enter n/a under '
            "“What stands for a missing cell” on the Data page",
        ),
        ("A\n1\n2\n", {"method": "distance_swap"}, "enter it in the field d"),
        ("A\n1\n2\n", {"method": "laplace_dp", "p-epsilon": "1"}, "enter both under “Other values for single columns”"),
    ],
)
def test_a_refused_step_names_what_the_page_has(user: Any, content: str, given: dict[str, Any], sentence: str) -> None:
    told = user.told(f"/data/{user.upload('a.csv', content)}/mask/step", given)
    assert sentence in told
    assert "--" not in told


def test_a_failed_run_names_what_the_page_has(user: Any) -> None:
    id, other = user.upload("a.csv", "A\n1\n2\n"), user.upload("b.csv", "A\n1\n2\n3\n")
    run = user.do(f"/data/{id}/audit", {"release": f"data:{other}"}, end="failed")
    sentence = "under “Match records by this column”, or tick “records do not correspond” for synthetic data"
    assert sentence in user.get(f"/runs/{run}").text


def test_notes_name_what_the_page_has(user: Any) -> None:
    id = user.upload("a.csv", "A,B,C,D\n" + "".join(",".join([str(i * i % 97)] * 4) + "\n" for i in range(60)))
    user.post(f"/data/{id}/mask/step", {"method": "mdav", "p-k": "4"})
    sentence = "whole numbers became decimals; one more step, round, keeps them whole"
    assert sentence in user.get(f"/data/{id}/mask").text
    run = user.do(f"/data/{id}/mask")
    assert sentence in user.get(f"/runs/{run}").text
    attack = user.do(f"/data/{id}/attack", {"release": f"run:{run}", "draws": "20"})
    text = user.get(f"/runs/{attack}").text
    assert "cannot be told from chance (more: “Random records”)" in text
    assert ">--draws<" in text  # the command that repeats it keeps its options
