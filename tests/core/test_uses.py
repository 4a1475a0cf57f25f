"""What a release is to be used for, as people write it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rankveil.errors import FileError, ParameterError
from rankveil.uses import Means, Regression, Tabulation, Term, Uses

FILE = """
[[regression]]
formula = "INCOME ~ AGE + C(REGION) + `size of firm`"

[[means]]
of = ["INCOME", "AGE"]

[[means]]
of = "INCOME"
by = "REGION"

[[table]]
columns = ["REGION", "SEX"]
"""


def test_a_file_of_uses(tmp_path: Path) -> None:
    uses = Uses.from_toml(FILE)
    assert uses.stated == (
        Regression("INCOME", (Term("AGE"), Term("REGION", categories=True), Term("size of firm"))),
        Means(("INCOME", "AGE")),
        Means(("INCOME",), "REGION"),
        Tabulation(("REGION", "SEX")),
    )
    assert uses.columns == ("INCOME", "AGE", "REGION", "size of firm", "SEX")
    assert str(uses.stated[0]) == "INCOME ~ AGE + C(REGION) + `size of firm`"
    (tmp_path / "uses.toml").write_text(FILE, encoding="utf-8")
    assert Uses.of(tmp_path / "uses.toml") == uses == Uses.of(uses)
    assert Uses.of({"table": {"columns": ["A"]}}).stated == (Tabulation(("A",)),)


@pytest.mark.parametrize("formula", ["y ~ `a + b` + C( c )", "y~`a + b`+C(c)", "`y` ~ `a + b` + C(`c`)"])
def test_formulas(formula: str) -> None:
    assert Regression.parse(formula) == Regression("y", (Term("a + b"), Term("c", categories=True)))


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("INCOME", "no column to explain"),
        ("~ AGE", "no column to explain"),
        ("C(A) ~ B", "no column to explain"),
        ("A ~", "'' is not a column"),
        ("A ~ B + ", "'' is not a column"),
        ("A ~ B * D", "'B \\* D' is not a column"),
        ("A ~ log(B)", "functions of columns are columns that the tables must have"),
        ("A ~ B + B", "B stands in it twice"),
        ("A ~ C(A)", "A stands in it twice"),
    ],
)
def test_what_is_no_formula(formula: str, why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        Regression.parse(formula)


@pytest.mark.parametrize(
    ("plain", "why"),
    [
        ({}, "states none"),
        ({"regresion": []}, "did you mean regression"),
        ({"regression": [{"formul": "A ~ B"}]}, "did you mean formula"),
        ({"regression": [{}]}, "needs formula"),
        ({"regression": "A ~ B"}, r"is a block \[\[regression\]\]"),
        ({"means": [{"by": "A"}]}, "needs of"),
        ({"means": [{"of": ["A"], "by": ["B"]}]}, "by is one column"),
        ({"means": [{"of": ["A"], "by": "A"}]}, "its own groups"),
        ({"table": [{"columns": ["A", "B", "C", "D"]}]}, "at most 3 columns, not 4"),
        ({"table": [{"columns": ["A", "A"]}]}, "twice"),
    ],
)
def test_what_is_no_use(plain: Any, why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        Uses.from_plain(plain)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        Uses.of(tmp_path / "uses.toml")
    with pytest.raises(ParameterError, match="not TOML"):
        Uses.from_toml("= 3")
    with pytest.raises(ParameterError, match="not int"):
        Uses.of(3)
