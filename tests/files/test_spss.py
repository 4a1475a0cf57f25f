"""SPSS files: labels, missing codes, levels and formats come back; what SPSS cannot hold is refused."""

from __future__ import annotations

import datetime
import decimal
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rankveil import metadata
from rankveil.errors import FileError, FormatError
from rankveil.files import load, save
from rankveil.metadata import Described, DescribedTable, tagged

pyreadstat = pytest.importorskip("pyreadstat")
pytest.importorskip("polars")

BOTH = [".sav", ".zsav"]


def table(columns: dict[str, Any], said: dict[str, Described] | None = None, whole: DescribedTable | None = None):
    plain = pa.table(columns)
    fields = [metadata.write(field, (said or {}).get(field.name, Described())) for field in plain.schema]
    return pa.Table.from_arrays(
        plain.columns, schema=metadata.write_table(pa.schema(fields), whole or DescribedTable())
    )


def survey() -> pa.Table:
    """One column of each kind that SPSS has, with what SPSS says of it."""
    return table(
        {
            "zufrieden": pa.array([1, 2, -9, None]),
            "einkommen": pa.array([1234.56, -1.0, 99999.5, None]),
            "stadt": pa.array(["Łódź", "", "n/a", "Köln"]),
            "text": pa.array(["é" * 500, "", "kurz", ""]),
            "geboren": pa.array([datetime.date(1582, 10, 15), None, datetime.date(2024, 2, 29), datetime.date.max]),
            "gefragt": pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5, 670000)] * 3 + [None], pa.timestamp("us")),
            "um": pa.array([datetime.time(23, 59, 59), None, datetime.time(), datetime.time(1)], pa.time64("us")),
            "dauer": pa.array([datetime.timedelta(days=3, seconds=5), None, -datetime.timedelta(hours=1), None]),
        },
        {
            "zufrieden": Described(
                label="Zufrieden?",
                value_labels=((1, "ja"), (2, "nein"), (-9, "weiß nicht")),
                missing_codes=(-9, 97, 98),
                level="nominal",
                program="spss",
                format="F2.0",
                width=12,
                alignment="right",
            ),
            "einkommen": Described(
                missing_codes=(-1,),
                missing_ranges=((99999.0, math.inf),),
                value_labels=((-1, "keins"), (0.5, "halb")),
                level="scale",
                program="spss",
                format="COMMA12.2",
                width=9,
                alignment="right",
            ),
            "stadt": Described(
                missing_codes=("n/a",),
                value_labels=(("n/a", "keine Angabe"),),
                level="ordinal",
                program="spss",
                format="A20",
                storage="A20",
                width=20,
                alignment="left",
            ),
            "text": Described(program="spss", format="A1000", storage="A1000", width=8, alignment="left"),
            "geboren": Described(
                missing_codes=((datetime.date.max - datetime.date(1970, 1, 1)).days,),
                value_labels=(((datetime.date.max - datetime.date(1970, 1, 1)).days, "unbekannt"),),
                program="spss",
                format="EDATE10",
                width=8,
                alignment="right",
            ),
            "gefragt": Described(program="spss", format="DATETIME23.2", width=8, alignment="right"),
            "um": Described(program="spss", format="TIME8", width=8, alignment="right"),
            "dauer": Described(program="spss", format="DTIME14", width=8, alignment="right"),
        },
        DescribedTable(label="Überblick", notes=("erste Notiz", "zweite"), encoding="UTF-8", program="spss"),
    )


@pytest.mark.parametrize("ending", BOTH)
def test_everything_comes_back(tmp_path: Path, ending: str) -> None:
    written = survey()
    save(written, tmp_path / f"t{ending}")
    loaded = load(tmp_path / f"t{ending}")
    assert loaded.notes == ()
    assert loaded.data.to_pydict() == written.to_pydict()
    for field in written.schema:
        assert metadata.read(loaded.data.schema.field(field.name)) == metadata.read(field)
    assert loaded.data.schema.equals(written.schema, check_metadata=True)


def test_the_library_sees_the_same(tmp_path: Path) -> None:
    save(survey(), tmp_path / "t.sav")
    cells, said = pyreadstat.read_sav(tmp_path / "t.sav", user_missing=True, output_format="dict")
    assert cells["zufrieden"] == [1.0, 2.0, -9.0, None]
    assert cells["geboren"][2] == datetime.date(2024, 2, 29)
    assert cells["gefragt"][0] == datetime.datetime(2024, 1, 2, 3, 4, 5, 670000)
    assert said.column_names_to_labels["zufrieden"] == "Zufrieden?"
    assert said.variable_value_labels["zufrieden"] == {1.0: "ja", 2.0: "nein", -9.0: "weiß nicht"}
    assert said.missing_ranges["zufrieden"] == [{"lo": code, "hi": code} for code in (-9.0, 97.0, 98.0)]
    assert {"lo": 99999.0, "hi": math.inf} in said.missing_ranges["einkommen"]
    assert said.missing_ranges["stadt"] == [{"lo": "n/a", "hi": "n/a"}]
    assert said.variable_measure["stadt"] == "ordinal"
    assert said.variable_storage_width["stadt"] == 20
    plain, _ = pyreadstat.read_sav(tmp_path / "t.sav", output_format="dict")  # what a user of SPSS computes with
    assert plain["zufrieden"] == [1.0, 2.0, None, None]
    assert plain["geboren"][3] is None


def test_codes_stay_numbers_and_are_missing() -> None:
    schema, data = survey().schema, survey()
    seen = {field.name: metadata.read(field).is_missing(data[field.name]).tolist() for field in schema}
    assert seen["zufrieden"] == [False, False, True, True]
    assert seen["einkommen"] == [False, True, True, True]
    assert seen["stadt"] == [False, False, True, False]
    assert seen["geboren"] == [False, True, False, True]


def test_missing_cells_are_the_systems_own(tmp_path: Path) -> None:
    save(pa.table({"x": [1.5, math.nan, None]}), tmp_path / "t.sav")
    # the smallest double, which is what SPSS calls its system-missing value; a row of bytecodes says it with 255
    assert b"\xff\xff" in (tmp_path / "t.sav").read_bytes()
    assert load(tmp_path / "t.sav").data["x"].to_pylist() == [1.5, None, None]


def test_numbers_without_decimals_are_whole(tmp_path: Path) -> None:
    said = {name: Described(program="spss", format=format) for name, format in (("a", "F3.0"), ("b", "F8.2"))}
    columns = {"a": pa.array([1.0, None]), "b": pa.array([1.0, None])}
    save(table(columns, said), tmp_path / "t.sav")
    assert load(tmp_path / "t.sav").data.schema.types == [pa.int64(), pa.float64()]
    save(table({"a": pa.array([1.5, None])}, said), tmp_path / "t.sav")
    assert load(tmp_path / "t.sav").data["a"].to_pylist() == [1.5, None]


def test_types_that_spss_has_not(tmp_path: Path) -> None:
    levels = pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int8()), ["low", "high"], ordered=True)
    columns = {
        "flag": pa.array([True, None, False]),
        "level": levels,
        "region": pa.array(["n", "s", None]).dictionary_encode(),
        "price": pa.array([decimal.Decimal("3.30"), None, decimal.Decimal("-0.01")]),
        "nothing": pa.nulls(3),
        "count": pa.array([-(2**53), None, 2**53]),
        "half": pa.array([0.5, None, 2.0], pa.float32()).cast(pa.float16()),
        "view": pa.array(["a", None, "c"], pa.string_view()),
    }
    save(pa.table(columns), tmp_path / "t.sav")
    data = load(tmp_path / "t.sav").data
    assert data.to_pydict() == {
        "flag": [1, None, 0],
        "level": [2, 1, None],
        "region": [1, 2, None],
        "price": [3.3, None, -0.01],
        "nothing": [None] * 3,
        "count": [-(2**53), None, 2**53],
        "half": [0.5, None, 2.0],
        "view": ["a", "", "c"],
    }
    level, region = (metadata.read(data.schema.field(name)) for name in ("level", "region"))
    assert (level.value_labels, level.level) == (((1, "low"), (2, "high")), "ordinal")
    assert (region.value_labels, region.level) == (((1, "n"), (2, "s")), "nominal")
    assert metadata.read(data.schema.field("price")).decimals == 2


@pytest.mark.parametrize("rows", [0, 3000])
def test_any_number_of_records(tmp_path: Path, rows: int) -> None:
    rng = np.random.default_rng(7)
    written = pa.table({"x": rng.normal(size=rows), "s": pa.array([f"t{n % 97}" for n in range(rows)], pa.string())})
    for ending in BOTH:
        save(written, tmp_path / f"t{ending}")
        assert load(tmp_path / f"t{ending}").data.equals(written)


def test_a_column_of_dates_with_a_code_that_is_none(tmp_path: Path) -> None:
    said = {"d": Described(program="spss", format="DATE11", missing_codes=(99,))}
    seconds = pa.array([13_797_216_000.0, 99.0])
    frame = pytest.importorskip("polars").from_arrow(pa.table({"d": seconds}))
    pyreadstat.write_sav(frame, tmp_path / "t.sav", missing_ranges={"d": [99.0]}, variable_format={"d": "DATE11"})
    data = load(tmp_path / "t.sav").data
    about = metadata.read(data.schema.field("d"))
    assert data["d"].to_pylist()[0] == datetime.datetime(2020, 1, 1)
    assert about.is_missing(data["d"]).tolist() == [False, True]
    save(data, tmp_path / "again.sav")
    cells, again = pyreadstat.read_sav(
        tmp_path / "again.sav", user_missing=True, disable_datetime_conversion=True, output_format="dict"
    )
    assert cells["d"] == seconds.to_pylist()
    assert again.missing_ranges == {"d": [{"lo": 99.0, "hi": 99.0}]}
    assert again.original_variable_types == {"d": said["d"].format}


def test_ranges_without_an_end(tmp_path: Path) -> None:
    said = {"x": Described(missing_ranges=((-math.inf, -5.0),))}
    save(table({"x": pa.array([1.0, -9.0])}, said), tmp_path / "t.sav")
    field = load(tmp_path / "t.sav").data.schema.field("x")
    assert metadata.read(field).missing_ranges == ((-math.inf, -5.0),)
    # the file says LOWEST, the second smallest double
    assert bytes.fromhex("feffffffffffefff") in (tmp_path / "t.sav").read_bytes()


def test_notes_are_broken_into_lines(tmp_path: Path) -> None:
    note = "Die Größe des Haushalts wurde nachträglich aus dem Register übernommen. " * 3
    save(table({"x": pa.array([1])}, whole=DescribedTable(notes=(note, "kurz"))), tmp_path / "t.sav")
    lines = metadata.read_table(load(tmp_path / "t.sav").data.schema).notes
    assert " ".join(lines) == note.strip() + " kurz"


def test_what_stata_says_of_formats_is_left_behind(tmp_path: Path) -> None:
    said = {"x": Described(label="kept", value_labels=((1, "one"),), program="stata", format="%9.0g", storage="byte")}
    save(table({"x": pa.array([1, 2], pa.int8())}, said), tmp_path / "t.sav")
    about = metadata.read(load(tmp_path / "t.sav").data.schema.field("x"))
    assert (about.label, about.labels, about.format) == ("kept", {1: "one"}, "F8.0")


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"my column": [1]}, "column my column: SPSS allows names"),
        ({"_a": [1]}, "column _a: SPSS allows names"),
        ({"1a": [1]}, "column 1a: SPSS allows names"),
        ({"a.": [1]}, "column a.: SPSS allows names"),
        ({"ü" * 33: [1]}, "column ü{33}: SPSS allows names"),
        ({"with": [1]}, "column with: the name is a word of SPSS's own"),
        ({"Age": [1], "AGE": [2]}, "the names Age, AGE are the same to SPSS"),
        ({"x": [1, 2**53 + 1]}, r"column x, row 2: the whole number is beyond 2\^53"),
        ({"x": [1.0, math.inf]}, r"column x: SPSS cannot hold infinite .* \(row 2\)"),
        ({"x": ["a", "b" * 32_768]}, "column x, row 2: SPSS allows texts of 32767 bytes"),
        ({"x": ["a\0"]}, "column x, row 1: SPSS cannot hold a NUL character"),
        ({"x": [1.0, tagged("b"), tagged("a")]}, r"column x: SPSS has no missing letters \(\.a, \.b\)"),
        ({"x": [[1]]}, "column x: SPSS cannot hold type list"),
        ({"x": pa.array([0], pa.timestamp("s", "UTC"))}, "column x: SPSS has no time zones"),
        ({"x": pa.array([None, 1], pa.timestamp("us"))}, "column x, row 2: the time is finer or farther away"),
        ({}, "a table without columns"),
    ],
)
def test_what_spss_cannot_hold(tmp_path: Path, columns: dict[str, object], sentence: str) -> None:
    with pytest.raises(FormatError, match=f"t.sav: {sentence}"):
        save(pa.table(columns), tmp_path / "t.sav")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("cells", "said", "sentence"),
    [
        ([1], Described(label="é" * 129), "column x: its label has 258 bytes, and SPSS allows 256"),
        ([1], Described(value_labels=((1, "é" * 61),)), "column x: a value's label has 122 bytes, and SPSS allows 120"),
        ([1], Described(value_labels=((".a", "a"),)), r"column x: SPSS has no missing letters \(\.a\)"),
        ([1], Described(missing_codes=(1, 2, 3, 4)), "column x: SPSS allows three missing codes"),
        ([1], Described(missing_codes=(1, 2), missing_ranges=((5.0, 6.0),)), "column x: SPSS allows three missing"),
        ([1], Described(missing_codes=("a",)), "column x: its missing codes are not of its own type"),
        (["a"], Described(missing_codes=("a" * 9,)), "column x: SPSS allows missing texts of 8 bytes"),
    ],
)
def test_labels_that_spss_cannot_hold(tmp_path: Path, cells: list[object], said: Described, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        save(table({"x": pa.array(cells)}, {"x": said}), tmp_path / "t.sav")


@pytest.mark.parametrize("ending", BOTH)
@pytest.mark.parametrize("keep", [0, 100, 0.6, -9])  # the last 8 bytes only mark the end
def test_files_that_are_cut_short(tmp_path: Path, ending: str, keep: float) -> None:
    path = tmp_path / f"t{ending}"
    save(survey(), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if 0 < keep < 1 else int(keep)])
    with pytest.raises(FormatError, match=r"is no SPSS file, or is damaged or cut short$"):
        load(path)


def test_files_that_are_something_else(tmp_path: Path) -> None:
    path = tmp_path / "t.sav"
    path.write_text("a,b\n1,2\n" * 40)
    with pytest.raises(FormatError, match=r"t.sav: is no SPSS file, or is damaged or cut short$"):
        load(path)
    path.write_bytes(b"\x1c" + bytes(7) + b"ENCRYPTEDSAV" + bytes(100))
    with pytest.raises(FormatError, match=r"t.sav: is encrypted; save it in SPSS without a password$"):
        load(path)
    with pytest.raises(FileError, match="there is no such file"):
        load(tmp_path / "none.sav")


def test_damage_that_crashes_the_library(tmp_path: Path) -> None:
    path = tmp_path / "t.sav"
    save(survey(), path)
    content = bytearray(path.read_bytes())
    # a text wider than 8 bytes has further records, of width -1; one of a width beyond all sense ends the process
    at = content.index(b"STADT   ") + 12
    assert content[at : at + 4] == b"\xff\xff\xff\xff"
    content[at + 3] = 0x3A
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"t.sav: is no SPSS file, or is damaged or cut short$"):
        load(path)


def test_text_in_another_encoding_than_the_file_claims(tmp_path: Path) -> None:
    path = tmp_path / "t.sav"
    save(pa.table({"s": ["K\u00f6ln"]}), path)
    path.write_bytes(path.read_bytes().replace("ö".encode(), b"\xf6 "))
    with pytest.raises(FormatError, match=r"t.sav: its text is not in the encoding .* --encoding"):
        load(path)
    assert load(path, encoding="latin1").data["s"].to_pylist() == ["K\u00f6 ln"]


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(pa.table({"a": [1]}), tmp_path / "t.sav")
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    needed = r"[tu].sav: SPSS files need pyreadstat; install it with pip install 'rankveil\[files\]'"
    with pytest.raises(FormatError, match=needed):
        load(tmp_path / "t.sav")
    with pytest.raises(FormatError, match=needed):
        save(pa.table({"a": [1]}), tmp_path / "u.sav")


def test_frames_of_pandas_are_written_when_there_is_no_polars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "polars", None)
    save(survey(), tmp_path / "t.sav")
    assert load(tmp_path / "t.sav").data.equals(survey())


@pytest.mark.parametrize("ending", BOTH)
def test_a_disk_that_is_full_between_two_pieces_is_noticed(
    tmp_path: Path, unmeasured: dict[str, str], ending: str
) -> None:
    """The library overlooks it when nothing at all of a piece could be written, such as all behind the first header."""
    path = tmp_path / f"t{ending}"
    save(survey(), path)
    size = path.stat().st_size
    path.unlink()
    program = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_spss import survey
from rankveil.errors import FileError
from rankveil.files import save
table = survey()
written = []
for limit in [176, *range({size} - 64, {size})]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        save(table, {str(path)!r})
        written.append(limit)
    except FileError as error:
        assert str(error) == {f"{path}: cannot be written: file too large"!r}, error
print(written)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=unmeasured)
    assert (done.stdout, done.stderr) == ("[]\n", "")
    assert list(tmp_path.iterdir()) == []


def test_the_alignment_of_a_column_becomes_the_usual_one(tmp_path: Path) -> None:
    """The library cannot write another; what else SPSS says of how a column looks comes back."""
    centred = Described(program="spss", level="ordinal", format="F8.2", width=11, alignment="center")
    save(table({"x": [1.5], "name": ["a"]}, {"x": centred, "name": replace(centred, format="")}), tmp_path / "t.sav")
    data = load(tmp_path / "t.sav").data
    assert metadata.read(data.schema.field("x")) == replace(centred, alignment="right")
    name = metadata.read(data.schema.field("name"))
    assert (name.level, name.width, name.alignment) == ("ordinal", 11, "left")
