"""Excel workbooks: one sheet as a table and back; formulas, errors and odd sheets are told, texts stay texts."""

from __future__ import annotations

import datetime
import decimal
import math
import os
import re
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil import metadata
from rankveil.errors import FileError, FormatError, ParameterError
from rankveil.files import load, same_file, save
from rankveil.files.excel_columns import as_text, is_plain_number, number_of

openpyxl = pytest.importorskip("openpyxl")
pytest.importorskip("openpyxl.chart")


def workbook(path: Path, *rows: list[Any], change: Callable[[Any], object] = lambda sheet: None) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Data"
    for row in rows:
        sheet.append(row)
    change(sheet)
    book.save(path)
    return path


def notes_of(path: Path | str) -> list[str]:
    return [note.removeprefix(f"{path}: ") for note in load(path).notes]


def survey() -> pa.Table:
    return pa.table(
        {
            "id": pa.array([1, None, 2**53]),
            "income": pa.array([0.1, 1e300, None]),
            "town": pa.array(["Łódź", " spaces ", None]),
            "code": pa.array(["007", "1e5", "TRUE"]),
            "asked": pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5, 678000), None, datetime.datetime(1900, 1, 1)]),
            "born": pa.array([datetime.date(1900, 2, 28), None, datetime.date.max]),
            "at": pa.array([datetime.time(23, 59, 59, 999000), None, datetime.time(1)]),
            "spent": pa.array([datetime.timedelta(hours=100, milliseconds=5), None, datetime.timedelta(0)]),
            "member": pa.array([True, None, False]),
        }
    )


def test_cells_and_types_come_back(tmp_path: Path) -> None:
    save(survey(), tmp_path / "t.xlsx")
    loaded = load(tmp_path / "t.xlsx")
    assert loaded.notes == ()
    assert loaded.data.schema.types == survey().schema.types
    assert loaded.data.to_pydict() == survey().to_pydict()
    save(loaded.data, tmp_path / "again.xlsx")
    assert load(tmp_path / "again.xlsx").data.equals(loaded.data)


def test_formats_of_cells_and_the_name_of_the_sheet_come_back(tmp_path: Path) -> None:
    def format(sheet: Any) -> None:
        sheet["A2"].number_format, sheet["B2"].number_format = "dd.mm.yyyy", "0.000"
        sheet.title = "Umfrage 2024"

    path = workbook(tmp_path / "t.xlsx", ["born", "x"], [datetime.date(2024, 2, 29), 1.5], change=format)
    save(load(path).data, tmp_path / "again.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "again.xlsx").active
    assert (sheet["A2"].number_format, sheet["B2"].number_format) == ("dd.mm.yyyy", "0.000")
    assert sheet.title == "Umfrage 2024"
    assert load(tmp_path / "again.xlsx").data["born"].to_pylist() == [datetime.date(2024, 2, 29)]


def test_midnights_that_are_shown_as_such_are_moments(tmp_path: Path) -> None:
    def format(sheet: Any) -> None:
        sheet["A2"].number_format = "yyyy-mm-dd hh:mm"

    path = workbook(tmp_path / "t.xlsx", ["t"], [datetime.datetime(2024, 1, 1)], change=format)
    assert load(path).data.schema.field("t").type == pa.timestamp("us")


DANGEROUS = ["=1+1", '=HYPERLINK("http://x")', "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "#N/A", "#REF!", "a\r\nb", "ok"]


def test_no_text_becomes_a_formula_or_an_error(tmp_path: Path) -> None:
    save(pa.table({"=name": DANGEROUS, "+n": pa.array(DANGEROUS).dictionary_encode()}), tmp_path / "t.xlsx")
    cells = [cell for row in openpyxl.load_workbook(tmp_path / "t.xlsx").active.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} == {"s"}
    assert [cell.quotePrefix for cell in cells if cell.value[0] in "=+-@#\t"].count(False) == 0
    with zipfile.ZipFile(tmp_path / "t.xlsx") as archive:
        assert b"<f>" not in archive.read("xl/worksheets/sheet1.xml")
    loaded = load(tmp_path / "t.xlsx")
    assert loaded.notes == ()
    assert loaded.data.to_pydict() == {"=name": DANGEROUS, "+n": DANGEROUS}


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")), max_size=4))
@settings(max_examples=30)
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.xlsx"
    save(pa.table({"x": pa.array(texts, pa.string())}), path)
    assert load(path).data["x"].to_pylist() == [text or None for text in texts]


def test_types_that_excel_has_not(tmp_path: Path) -> None:
    columns = {
        "level": pa.array(["low", None, "high"]).dictionary_encode(),
        "price": pa.array([decimal.Decimal("3.30"), None, decimal.Decimal("-0.01")]),
        "nothing": pa.nulls(3),
        "x": pa.array([math.nan, metadata.tagged("a"), 2.5]),
        "half": pa.array([0.5, None, 2.5], pa.float32()).cast(pa.float16()),
        "ns": pa.array([10**15, None, 0], pa.timestamp("ns")),
    }
    save(pa.table(columns), tmp_path / "t.xlsx")
    assert load(tmp_path / "t.xlsx").data.to_pydict() == {
        "level": ["low", None, "high"],
        "price": [3.3, None, -0.01],
        "nothing": [None] * 3,
        "x": [None, None, 2.5],
        "half": [0.5, None, 2.5],
        "ns": [datetime.datetime(1970, 1, 12, 13, 46, 40), None, datetime.datetime(1970, 1, 1)],
    }


@pytest.mark.parametrize("rows", [0, 1, 17_000])
def test_any_number_of_records(tmp_path: Path, rows: int) -> None:
    written = pa.table({"n": pa.array(range(rows), pa.int64()), "s": pa.array(["a"] * rows, pa.string())})
    save(written, tmp_path / "t.xlsx")
    loaded = load(tmp_path / "t.xlsx").data
    assert loaded.to_pydict() == written.to_pydict()


def test_records_of_which_everything_is_missing_are_kept(tmp_path: Path) -> None:
    written = pa.table({"a": [None, 1, None, None], "b": [None, "x", None, None]})
    save(written, tmp_path / "t.xlsx")
    loaded = load(tmp_path / "t.xlsx")
    assert loaded.data.to_pydict() == written.to_pydict()
    assert loaded.notes == ()


def test_blank_rows_and_columns_are_skipped(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", ["a", None, "b"], [1, None, 2], [], [None, "", None], [3, None, 4], [], [""])
    loaded = load(path)
    assert loaded.data.to_pydict() == {"a": [1, 3], "b": [2, 4]}
    assert notes_of(path) == ["2 blank rows were skipped"]


def test_several_kinds_of_cells_are_text_and_numbers_go_back_as_numbers(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", ["x"], [1], ["n/a"], [2.5], [None], [-3.0], [1e22], ["007"])
    loaded = load(path)
    assert loaded.data["x"].to_pylist() == ["1", "n/a", "2.5", None, "-3", "1e+22", "007"]
    assert notes_of(path) == ["column x: has several kinds of cells and is text (no number in rows 3, 8)"]
    save(loaded.data, tmp_path / "again.xlsx")
    cells = [row[0].value for row in openpyxl.load_workbook(tmp_path / "again.xlsx").active.iter_rows(min_row=2)]
    assert cells == [1, "n/a", 2.5, None, -3, 1e22, "007"]


def test_a_text_that_looks_like_a_number_stays_text_among_numbers(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", ["x"], [1], ["2"], [3])
    save(load(path).data, tmp_path / "again.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "again.xlsx").active
    assert [row[0].value for row in sheet.iter_rows(min_row=2)] == ["1", "2", "3"]


def test_other_kinds_of_cells_are_written_plainly(tmp_path: Path) -> None:
    row = [True, datetime.datetime(2024, 1, 2), datetime.datetime(2024, 1, 2, 3, 4), "x"]
    path = workbook(tmp_path / "t.xlsx", ["x"], *([cell] for cell in row))
    assert load(path).data["x"].to_pylist() == ["TRUE", "2024-01-02", "2024-01-02 03:04:00", "x"]


@given(st.one_of(st.integers(-(10**18), 10**18), st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_as_text_are_the_same_numbers(number: float) -> None:
    text = as_text(number)
    assert number_of(text) == number
    assert is_plain_number(text) or number == 0  # minus nought


def test_formulas_are_read_as_their_stored_values(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    workbook(path, ["x", "double", "none"], [1, "=A2*2", "=A2"], [2, "=A3*2", "=A3"])
    content = {}
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    sheet = content["xl/worksheets/sheet1.xml"]
    for cell, value in ((b"B2", b"2"), (b"B3", b"4")):  # what Excel stores when it has computed
        before = b'<c r="%s"><f>A%s*2</f><v' % (cell, cell[1:])
        assert before in sheet
        sheet = sheet.replace(before + b" />", before + b">" + value + b"</v>")
        sheet = sheet.replace(before + b"/>", before + b">" + value + b"</v>")
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in content.items():
            archive.writestr(name, sheet if name.endswith("sheet1.xml") else part)
    assert load(path).data.to_pydict() == {"x": [1, 2], "double": [2, 4], "none": [None, None]}
    assert notes_of(path) == [
        "column double: 2 formulas were read as the values stored with them",
        "column none: 2 formulas were read as the values stored with them; "
        "none, or an empty text, is stored in rows 2, 3",
    ]


def test_errors_are_missing(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", ["x", "y"], [1, "#N/A"], ["#DIV/0!", "a"], [3, "#REF!"])
    assert load(path).data.to_pydict() == {"x": [1, None, 3], "y": [None, "a", None]}
    assert notes_of(path) == [
        "column y: errors such as #N/A are missing (rows 2, 4)",
        "column x: errors such as #N/A are missing (row 3)",
    ]


def test_the_first_sheet_that_is_shown_is_read(tmp_path: Path) -> None:
    def more(sheet: Any) -> None:
        book = sheet.parent
        book.create_sheet("Hidden", 0).sheet_state = "hidden"
        book.create_chartsheet("Chart", 0).add_chart(openpyxl.chart.BarChart())
        book.create_sheet("Codes.2").append(["code"])

    path = workbook(tmp_path / "t.xlsx", ["x"], [1], change=more)
    assert load(path).data.to_pydict() == {"x": [1]}
    assert "the sheet Data was read, others were not (Hidden, Codes.2)" in notes_of(path)[0]
    assert load(f"{path}#Codes.2").data.column_names == ["code"]
    assert load(f"{path}#Data").data.column_names == ["x"]
    with pytest.raises(FormatError, match="there is no sheet Dat; did you mean Data"):
        load(f"{path}#Dat")
    assert same_file(f"{path}#Data", path)


def test_a_file_whose_own_name_has_a_mark(tmp_path: Path) -> None:
    path = workbook(tmp_path / "a#1.xlsx", ["x"], [1])
    assert load(path).data.column_names == ["x"]
    assert load(f"{path}#Data").data.column_names == ["x"]
    with pytest.raises(FormatError, match="cannot be written"):
        save(pa.table({"a": [1]}), tmp_path / "b.xlsx#Data")


def test_hidden_and_merged_cells_are_told(tmp_path: Path) -> None:
    def hide(sheet: Any) -> None:
        sheet.column_dimensions["B"].hidden = True
        sheet.row_dimensions[3].hidden = True
        sheet.merge_cells("A2:A3")

    path = workbook(tmp_path / "t.xlsx", ["x", "y"], [1, 2], [1, 3], change=hide)
    assert load(path).data.to_pydict() == {"x": [1, None], "y": [2, 3]}
    assert notes_of(path) == [
        "hidden columns were read too (y)",
        "hidden rows were read too (1)",
        "merged cells (A2:A3) have one value; all but the first are missing",
    ]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "the sheet is empty; its first row must name the columns"),
        ([[], ["a"], [1]], "the first row of the sheet is empty"),
        ([["a", None], [1, 2]], "column B has no name in the first row"),
        ([["a", "#N/A"], [1, 2]], "the name of column B is an error"),
        ([["a", "a"], [1, 2]], "several columns are named a"),
        ([["a", 5, "5"], [1, 2, 3]], "several columns are named 5"),
    ],
)
def test_sheets_that_are_no_tables(tmp_path: Path, rows: list[list[Any]], sentence: str) -> None:
    path = workbook(tmp_path / "t.xlsx", *rows)
    with pytest.raises(FormatError, match=f"t.xlsx: {sentence}"):
        load(path)


def test_names_that_are_numbers_or_dates(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", [2020, 2021.0], [1, 2])
    assert load(path).data.column_names == ["2020", "2021"]
    assert notes_of(path) == ["the first row was taken as names of columns, but all of them are numbers"]
    path = workbook(tmp_path / "t.xlsx", [datetime.date(2024, 1, 2)], [1])
    assert load(path).data.column_names == ["2024-01-02"]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"x": ["a", "b\x01"]}, "column x, row 2: Excel cannot hold control characters"),
        ({"x": ["a" * 32_768]}, "column x, row 1: Excel allows texts of 32767 characters"),
        ({"x": [2**53 + 1]}, r"column x, row 1: the whole number is beyond 2\^53"),
        ({"x": [1.0, math.inf]}, r"column x: Excel cannot hold infinite .* \(row 2\)"),
        ({"x": [datetime.date(2000, 1, 1), datetime.date(1899, 12, 31)]}, "column x, row 2: Excel has no dates before"),
        ({"x": pa.array([2**31 - 1], pa.date32())}, "column x, row 1: Excel has no dates before 1900 or after 9999"),
        ({"x": [datetime.datetime(1899, 1, 1)]}, "column x, row 1: Excel has no dates before 1900"),
        ({"x": [-datetime.timedelta(1)]}, "column x, row 1: Excel has no .* negative times"),
        ({"x": pa.array([1], pa.timestamp("us"))}, "column x: Excel cannot hold times finer than a millisecond"),
        ({"x": pa.array([0], pa.timestamp("s", "UTC"))}, "column x: Excel has no time zones"),
        ({"x": [[1]]}, "column x: Excel cannot hold type list"),
        ({"x": [decimal.Decimal("1234567890123456.5")]}, "column x: its decimals have more than 15 digits"),
        ({" ": [1]}, "column 1 has no name"),
        ({"a\x01": [1]}, "column 1: its name has control characters"),
        ({"x": pa.nulls(1_048_576)}, "the table has 1048576 records .* a sheet holds 1048575"),
        ({}, "a table without columns"),
    ],
)
def test_what_excel_cannot_hold(tmp_path: Path, columns: dict[str, object], sentence: str) -> None:
    with pytest.raises(FormatError, match=f"t.xlsx: {sentence}"):
        save(pa.table(columns), tmp_path / "t.xlsx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("keep", [0, 3, 100, 0.3, 0.6, -1])
def test_files_that_are_cut_short(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "t.xlsx"
    save(survey(), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if 0 < keep < 1 else int(keep)])
    with pytest.raises(FormatError, match=r"t.xlsx: is no Excel workbook \(.xlsx\), or is damaged or cut short$"):
        load(path)


def test_files_that_are_something_else(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(FormatError, match="is no Excel workbook"):
        load(path)
    path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600))
    with pytest.raises(FormatError, match=r"is encrypted, or an old .xls workbook; save it in Excel as .xlsx"):
        load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", "<a/>")
    with pytest.raises(FormatError, match="is no Excel workbook"):
        load(path)
    with pytest.raises(FileError, match="there is no such file"):
        load(tmp_path / "none.xlsx")


def test_damaged_parts(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    save(survey(), path)
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for name in ("xl/worksheets/sheet1.xml", "xl/workbook.xml", "xl/styles.xml"):
        with zipfile.ZipFile(path, "w") as archive:
            for other, part in content.items():
                archive.writestr(other, part[: len(part) // 2] if other == name else part)
        with pytest.raises(FormatError, match="is no Excel workbook"):
            load(path)


def test_bombs_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(80 << 20))
    with pytest.raises(FormatError, match=r"would take 80 MiB in memory, [\d,]+ times its size, .*LARGEST_GIB=1$"):
        load(path)


def test_a_limit_that_was_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(80 << 20))
    monkeypatch.setenv("RANKVEIL_LARGEST_GIB", "1")
    with pytest.raises(FormatError, match="is no Excel workbook"):  # unpacked, and found to be none
        load(path)
    for word in ("much", "-1", "0", "nan", "inf", ""):
        monkeypatch.setenv("RANKVEIL_LARGEST_GIB", word)
        with pytest.raises(ParameterError, match=r"RANKVEIL_LARGEST_GIB=.*: must be a number of GiB, such as 16"):
            load(path)


def packed_anew(path: Path, part: str, change: Callable[[bytes], bytes]) -> None:
    """A workbook in which one part is another."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, old in content.items():
            archive.writestr(name, change(old) if name == part else old)


SHEET = "xl/worksheets/sheet1.xml"


def test_a_part_that_is_larger_than_the_archive_tells(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", ["x"], [1])
    packed_anew(path, SHEET, lambda old: old.replace(b"</worksheet>", b" " * (70 << 20) + b"</worksheet>"))
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo(SHEET).file_size
    raw = path.read_bytes()
    assert raw.count(struct.pack("<I", size)) == 2  # before the part, and in the directory
    path.write_bytes(raw.replace(struct.pack("<I", size), struct.pack("<I", 3000)))
    with pytest.raises(FormatError, match="is no Excel workbook"):
        load(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("part", [SHEET, "xl/styles.xml", "xl/workbook.xml", "[Content_Types].xml"])
def test_entities_are_refused(tmp_path: Path, part: str, encoding: str) -> None:
    path = workbook(tmp_path / "t.xlsx", ["x"], [1])
    laughs = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
    head = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE a [<!ENTITY l0 "ha">{laughs}]>'
    packed_anew(path, part, lambda old: (head + "<a>&l9;</a>").encode(encoding))
    with pytest.raises(FormatError, match=r"t\.xlsx: .*\.xml declares a document type, which Excel never does; save"):
        load(path)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (b'<row r="2"', b'<row r="2000000000"', "is no Excel workbook"),
        (b"<v>1</v>", b"<v>" + b"9" * 400 + b"</v><v/>", "column x: a number or a duration is beyond all bounds"),
        (b"<sheetData>", b"<col " * 100_000, "is no Excel workbook"),
    ],
    ids=["a row that no sheet has", "a number without end", "columns in columns"],
)
def test_sheets_that_would_take_forever(tmp_path: Path, old: bytes, new: bytes, sentence: str) -> None:
    path = workbook(tmp_path / "t.xlsx", ["x"], [1], [0.5])
    packed_anew(path, SHEET, lambda content: content.replace(old, new, 1))
    with pytest.raises(FormatError, match=sentence):
        load(path)


def test_rows_whose_last_cell_is_far_to_the_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "t.xlsx", ["x"], *([1] for _ in range(99)))
    packed_anew(path, SHEET, lambda old: re.sub(rb'<c r="A(\d+)"', rb'<c r="XFD\1"', old))
    monkeypatch.setenv("RANKVEIL_LARGEST_GIB", "0.01")  # 99 rows of 16384 cells
    with pytest.raises(FormatError, match=r"t\.xlsx: would take 10 MiB in memory"):
        load(path)


def test_an_archive_of_a_version_to_come(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", ["x"], [1])
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\x01\x02") + 6] = 255
    path.write_bytes(raw)
    with pytest.raises(FormatError, match="is no Excel workbook"):
        load(path)


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "t.xlsx", ["x"], [1])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    needed = r"[tu].xlsx: Excel files need openpyxl; install it with pip install 'rankveil\[files\]'"
    with pytest.raises(FormatError, match=needed):
        load(path)
    with pytest.raises(FormatError, match=needed):
        save(pa.table({"x": [1]}), tmp_path / "u.xlsx")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no device that is always full")
def test_a_disk_that_is_full_when_the_workbook_is_finished() -> None:
    program = """
import pyarrow as pa
from rankveil.files import excel
try:
    with open("/dev/full", "wb") as full:
        excel.save(pa.table({"x": range(100)}), full)
except OSError as error:
    print(error.strerror)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("No space left on device\n", "")
