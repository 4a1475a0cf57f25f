"""SAS data sets and transport files: cells, labels, dates and missing letters, read only."""

from __future__ import annotations

import ctypes
import datetime
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rankveil import metadata
from rankveil.errors import FormatError
from rankveil.files import load, save
from rankveil.files.sas import clock_of
from rankveil.metadata import tags_of

pyreadstat = pytest.importorskip("pyreadstat")

_TEXT, _DOUBLE = 0, 5


class Maker:
    """SAS data sets made by the C library inside pyreadstat, which can write them though pyreadstat cannot."""

    def __init__(self, columns: dict[str, tuple[str, str, list[Any]]], *, label: str = "") -> None:
        from pyreadstat import _readstat_writer

        self.library = ctypes.CDLL(_readstat_writer.__file__)
        if not hasattr(self.library, "readstat_begin_writing_sas7bdat"):
            pytest.skip("this build of pyreadstat does not show its C library")
        self.content = bytearray()
        self.writer = self._pointer("readstat_writer_init")
        takes_bytes = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
        take = takes_bytes(self._take)
        self._done("readstat_set_data_writer", take)
        self._done("readstat_writer_set_file_label", label.encode())
        variables = [self._variable(name, *about) for name, about in columns.items()]
        cells = [about[2] for about in columns.values()]
        self._done("readstat_begin_writing_sas7bdat", None, ctypes.c_long(len(cells[0])))
        for row in zip(*cells, strict=True):
            self._done("readstat_begin_row")
            for variable, cell in zip(variables, row, strict=True):
                self._insert(variable, cell)
            self._done("readstat_end_row")
        self._done("readstat_end_writing")
        self.library.readstat_writer_free(self.writer)

    def _take(self, data: int, size: int, _: object) -> int:
        self.content += ctypes.string_at(data, size)
        return size

    def _pointer(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        function = getattr(self.library, name)
        function.restype = ctypes.c_void_p
        return ctypes.c_void_p(function(*arguments))

    def _done(self, name: str, *arguments: Any) -> None:
        assert getattr(self.library, name)(self.writer, *arguments) == 0, name

    def _variable(self, name: str, label: str, format: str, cells: list[Any]) -> ctypes.c_void_p:
        texts = [cell.encode() for cell in cells if isinstance(cell, str) and not cell.startswith(".")]
        kind, width = (_TEXT, max(map(len, texts))) if texts else (_DOUBLE, 8)
        made = self._pointer("readstat_add_variable", self.writer, name.encode(), kind, ctypes.c_size_t(width))
        self.library.readstat_variable_set_label(made, label.encode())
        self.library.readstat_variable_set_format(made, format.encode())
        return made

    def _insert(self, variable: ctypes.c_void_p, cell: Any) -> None:
        if cell is None:
            self._done("readstat_insert_missing_value", variable)
        elif isinstance(cell, str) and cell.startswith("."):
            self._done("readstat_insert_tagged_missing_value", variable, ctypes.c_char(cell[1].encode()))
        elif isinstance(cell, str):
            self._done("readstat_insert_string_value", variable, cell.encode())
        else:
            self._done("readstat_insert_double_value", variable, ctypes.c_double(cell))


def data_set(path: Path, **columns: tuple[str, str, list[Any]]) -> Path:
    path.write_bytes(Maker(columns, label="Überblick").content)
    return path


def test_a_data_set(tmp_path: Path) -> None:
    path = data_set(
        tmp_path / "t.sas7bdat",
        INCOME=("Einkünfte", "", [0.5, None, -2.25]),
        TOWN=("", "", ["Łódź", "", "Köln"]),
        BORN=("", "DATE9", [-1.0, None, 23435.0]),
        ASKED=("", "DATETIME20", [0.0, 2_020_000_000.25, None]),
        CLOCK=("", "TIME8", [0.0, 86_399.0, None]),
        SPENT=("", "TIME8", [0.0, 90_000.0, None]),
    )
    loaded = load(path)
    assert loaded.notes == ()
    assert loaded.data.to_pydict() == {
        "INCOME": [0.5, None, -2.25],
        "TOWN": ["Łódź", "", "Köln"],
        "BORN": [datetime.date(1959, 12, 31), None, datetime.date(2024, 2, 29)],
        "ASKED": [
            datetime.datetime(1960, 1, 1),
            datetime.datetime(1960, 1, 1) + datetime.timedelta(seconds=2_020_000_000.25),
            None,
        ],
        "CLOCK": [datetime.time(), datetime.time(23, 59, 59), None],
        "SPENT": [datetime.timedelta(), datetime.timedelta(hours=25), None],
    }
    assert metadata.read(loaded.data.schema.field("INCOME")).label == "Einkünfte"
    assert metadata.read(loaded.data.schema.field("BORN")).format == "DATE9"
    assert metadata.read_table(loaded.data.schema).label == "Überblick"


def test_missing_letters(tmp_path: Path) -> None:
    path = data_set(
        tmp_path / "t.sas7bdat", X=("", "", [1.5, ".A", None, ".Z", "._"]), D=("", "DATE9", [1.0, ".B", None, 2.0, 3.0])
    )
    loaded = load(path)
    assert tags_of(loaded.data["X"].to_numpy()).tolist() == ["", "a", "", "z", "_"]
    assert loaded.data["X"].null_count == 1
    assert [note.partition(": ")[2] for note in loaded.notes] == ["column D: its dates stay numbers (DATE9) to keep .B"]


def test_letters_go_on_to_stata(tmp_path: Path) -> None:
    path = data_set(tmp_path / "t.sas7bdat", X=("label", "", [1.5, ".A", None]))
    save(load(path).data, tmp_path / "t.dta")
    data = load(tmp_path / "t.dta").data
    assert tags_of(data["X"].to_numpy()).tolist() == ["", "a", ""]
    assert metadata.read(data.schema.field("X")).label == "label"


def transport(path: Path) -> Path:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"x": [1.5, None], "s": ["ab", "c"], "d": [datetime.date(2024, 2, 29), None]})
    pyreadstat.write_xport(frame, path, file_label="a file", column_labels={"x": "a number"})
    return path


def test_a_transport_file(tmp_path: Path) -> None:
    data = load(transport(tmp_path / "t.xpt")).data
    assert data.to_pydict() == {"x": [1.5, None], "s": ["ab", "c"], "d": [datetime.date(2024, 2, 29), None]}
    assert metadata.read(data.schema.field("x")).label == "a number"


@pytest.mark.parametrize("keep", [0, 3, 100, 0.6, -1])
def test_files_that_are_cut_short(tmp_path: Path, keep: float) -> None:
    whole = data_set(tmp_path / "w.sas7bdat", X=("", "", [float(n) for n in range(20_000)])).read_bytes()
    path = tmp_path / "t.sas7bdat"
    path.write_bytes(whole[: int(keep * len(whole)) if 0 < keep < 1 else int(keep)])
    with pytest.raises(FormatError, match=r"t.sas7bdat: is no SAS file, or is damaged or cut short$"):
        load(path)


def test_transport_files_that_are_cut_short_or_something_else(tmp_path: Path) -> None:
    path = transport(tmp_path / "t.xpt")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FormatError, match="is no SAS file, or is damaged or cut short"):
        load(path)
    path.write_bytes(b"a,b\n" * 400)
    with pytest.raises(FormatError, match="is no SAS file, or is damaged or cut short"):
        load(path)


def test_sas_files_are_not_written(tmp_path: Path) -> None:
    for name in ("t.sas7bdat", "t.xpt"):
        with pytest.raises(FormatError, match="cannot be written; use one of"):
            save(pa.table({"a": [1]}), tmp_path / name)


@pytest.mark.parametrize(
    ("format", "what"),
    [
        ("DATE9", "date"),
        ("YYMMDD10", "date"),
        ("YYMMDDN8", "date"),
        ("MONYY7", "date"),
        ("E8601DA10", "date"),
        ("DATETIME22.3", "datetime"),
        ("DTDATE9", "datetime"),
        ("TIME8", "time"),
        ("HHMM5", "time"),
        ("BEST12", None),
        ("DOLLAR10.2", None),
        ("", None),
    ],
)
def test_formats(format: str, what: str | None) -> None:
    assert clock_of(format) == what


def test_dates_with_parts_of_days_stay_numbers(tmp_path: Path) -> None:
    loaded = load(data_set(tmp_path / "t.sas7bdat", D=("", "DATE9", [1.5, 2.0])))
    assert loaded.data["D"].to_pylist() == [1.5, 2.0]
    assert "have parts of days" in loaded.notes[0]
    assert not any(math.isnan(cell) for cell in loaded.data["D"].to_pylist())
