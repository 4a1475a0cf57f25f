"""Stata files: storage types, labels, formats and missing letters come back; what Stata cannot hold is refused."""

from __future__ import annotations

import datetime
import decimal
import math
import struct
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil import metadata
from rankveil.errors import FileError, FormatError
from rankveil.files import clocks, load, save, stata_write
from rankveil.files.stata_columns import column_of
from rankveil.metadata import Described, DescribedTable, tagged, tags_of

pyreadstat = pytest.importorskip("pyreadstat")

LABELS = ((1, "ja"), (2, "nein"), (".a", "weiß nicht"))


def table(columns: dict[str, pa.Array], said: dict[str, Described] | None = None, whole: DescribedTable | None = None):
    plain = pa.table(columns)
    fields = [metadata.write(field, (said or {}).get(field.name, Described())) for field in plain.schema]
    return pa.Table.from_arrays(
        plain.columns, schema=metadata.write_table(pa.schema(fields), whole or DescribedTable())
    )


def survey() -> pa.Table:
    """One column of each kind that Stata has."""
    byte = Described(label="Zufrieden?", value_labels=LABELS, label_set="ja_nein", program="stata", storage="byte")
    return table(
        {
            "satisfied": pa.array([1.0, tagged("a"), math.nan]),
            "trusts": pa.array([2, None, 1], pa.int8()),
            "persons": pa.array([-32767, None, 32740], pa.int16()),
            "postcode": pa.array([1067, None, 99998], pa.int32()),
            "share": pa.array([0.1, None, -3.5], pa.float32()),
            "income": pa.array([1234.5, tagged("z"), tagged("b")]),
            "town": pa.array(["Łódź", "", "Köln"]),
            "story": pa.array(["é" * 2000, "", "kurz"]),
            "born": pa.array([datetime.date(1959, 12, 31), None, datetime.date(2024, 2, 29)]),
            "asked": pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5, 678000), None, datetime.datetime(1900, 1, 1)]),
            "at": pa.array([datetime.time(23, 59, 59, 999000), None, datetime.time()]),
            "größe": pa.array([1.5, 2.5, None]),
        },
        {
            "satisfied": byte,
            "trusts": byte,
            "share": Described(program="stata", storage="float", format="%6.3f"),
            "town": Described(label="é" * 80, program="stata", storage="str40", format="%-40s"),
            "born": Described(program="stata", storage="int", format="%tdDD.NN.CCYY"),
        },
        DescribedTable(label="Überblick", notes=("first note", "zweite Notiz"), program="stata"),
    )


def same_cells(a: pa.Table, b: pa.Table) -> bool:
    """Whether all cells are the same, letters of missing values among them."""
    return str(a.to_pydict()) == str(b.to_pydict()) and all(
        tags_of(a[name].to_numpy()).tolist() == tags_of(b[name].to_numpy()).tolist()
        for name in a.column_names
        if pa.types.is_float64(a[name].type)
    )


def test_cells_types_and_letters_come_back(tmp_path: Path) -> None:
    written = survey()
    save(written, tmp_path / "t.dta")
    loaded = load(tmp_path / "t.dta")
    assert loaded.notes == ()
    assert loaded.data.schema.types == written.schema.types
    expected = written.set_column(0, "satisfied", pa.array([1.0, tagged("a"), None]))
    assert same_cells(loaded.data, expected)


def test_what_is_said_comes_back(tmp_path: Path) -> None:
    save(survey(), tmp_path / "t.dta")
    schema = load(tmp_path / "t.dta").data.schema
    said = {field.name: metadata.read(field) for field in schema}
    assert said["satisfied"] == Described(
        label="Zufrieden?",
        value_labels=LABELS,
        label_set="ja_nein",
        program="stata",
        format="%8.0g",
        storage="byte",
    )
    assert said["trusts"].label_set == "ja_nein"
    assert said["town"].label == "é" * 80
    assert {name: about.storage for name, about in said.items()} == {
        "satisfied": "byte",
        "trusts": "byte",
        "persons": "int",
        "postcode": "long",
        "share": "float",
        "income": "double",
        "town": "str40",
        "story": "strL",
        "born": "int",
        "asked": "double",
        "at": "double",
        "größe": "double",
    }
    assert (said["share"].format, said["born"].format, said["town"].format) == ("%6.3f", "%tdDD.NN.CCYY", "%-40s")
    assert (said["asked"].format, said["at"].format) == ("%tc", "%tcHH:MM:SS")
    whole = metadata.read_table(schema)
    assert (whole.label, whole.notes) == ("Überblick", ("first note", "zweite Notiz"))


def test_a_file_that_is_read_and_written_has_the_same_bytes(tmp_path: Path) -> None:
    save(survey(), tmp_path / "a.dta")
    save(load(tmp_path / "a.dta").data, tmp_path / "b.dta")
    assert (tmp_path / "a.dta").read_bytes() == (tmp_path / "b.dta").read_bytes()


def test_pandas_reads_the_same(tmp_path: Path) -> None:
    """A second reader, which shares no code with the first."""
    pd = pytest.importorskip("pandas")
    save(survey(), tmp_path / "t.dta")
    frame = pd.read_stata(
        tmp_path / "t.dta", convert_categoricals=False, convert_missing=True, convert_dates=False, preserve_dtypes=True
    )
    seen = {name: [str(cell) for cell in frame[name]] for name in frame.columns}
    assert seen["satisfied"] == ["1", ".a", "."]
    assert seen["income"] == ["1234.5", ".z", ".b"]
    assert seen["share"] == [str(float(np.float32(0.1))), ".", "-3.5"]
    assert seen["persons"] == ["-32767", ".", "32740"]
    assert seen["town"] == ["Łódź", "", "Köln"]
    assert seen["story"] == ["é" * 2000, "", "kurz"]
    assert seen["born"] == ["-1", ".", "23435"]
    with pd.io.stata.StataReader(tmp_path / "t.dta") as reader:
        assert reader.data_label == "Überblick"
        assert reader.variable_labels()["satisfied"] == "Zufrieden?"
        assert reader.value_labels() == {"ja_nein": {1: "ja", 2: "nein", 2_147_483_622: "weiß nicht"}}
    dates = pd.read_stata(tmp_path / "t.dta", columns=["born", "asked"])
    assert dates["asked"][0] == pd.Timestamp("2024-01-02 03:04:05.678")
    assert dates["born"][2] == pd.Timestamp("2024-02-29")


@pytest.mark.parametrize("version", [114, 117, 118, 119])
def test_files_of_every_age_are_read(tmp_path: Path, version: int) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"n": np.array([1, 2], np.int8), "x": [0.5, np.nan], "s": ["abc", "d"], "d": pd.to_datetime(["2024-02-29"] * 2)}
    )
    frame.to_stata(
        tmp_path / "t.dta",
        version=version,
        write_index=False,
        convert_dates={"d": "td"},
        value_labels={"n": {1: "one"}},
        variable_labels={"x": "a number"},
    )
    data = load(tmp_path / "t.dta").data
    assert data.to_pydict() == {
        "n": [1, 2],
        "x": [0.5, None],
        "s": ["abc", "d"],
        "d": [datetime.date(2024, 2, 29)] * 2,
    }
    assert metadata.read(data.schema.field("n")).labels == {1: "one"}
    assert metadata.read(data.schema.field("x")).label == "a number"
    assert metadata.read(data.schema.field("s")).storage == "str3"


def test_letters_that_another_program_wrote(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": pd.Series([1.5, "a", None, "c"], dtype=object)})
    pyreadstat.write_dta(
        frame, tmp_path / "t.dta", missing_user_values={"x": ["a", "c"]}, variable_value_labels={"x": {"a": "refused"}}
    )
    data = load(tmp_path / "t.dta").data
    assert tags_of(data["x"].to_numpy()).tolist() == ["", "a", "", "c"]
    assert data["x"].null_count == 1
    assert metadata.read(data.schema.field("x")).labels == {".a": "refused"}


def test_a_missing_value_after_a_letter_stays_missing(tmp_path: Path) -> None:
    # the library's own frames hold whatever stood in memory there
    byte = Described(program="stata", storage="byte")
    save(table({"x": pa.array([tagged("a"), 1.0, math.nan] * 100)}, {"x": byte}), tmp_path / "t.dta")
    column = load(tmp_path / "t.dta").data["x"]
    assert column.null_count == 100
    assert (tags_of(column.to_numpy()) == "a").sum() == 100


@pytest.mark.parametrize("rows", [0, 1, 65_535, 65_536, 65_537, 140_000])
def test_any_number_of_records(tmp_path: Path, rows: int) -> None:
    text = pa.array([f"t{row % 977}" for row in range(rows)], pa.string())
    long = pa.array([("x" * 2100 if row % 30_000 == 7 else "") for row in range(rows)], pa.string())
    written = pa.table({"n": pa.array(range(rows), pa.int32()), "s": text, "l": long})
    save(written, tmp_path / "t.dta")
    assert load(tmp_path / "t.dta").data.equals(written)


def test_types_that_stata_has_not(tmp_path: Path) -> None:
    columns = {
        "flag": pa.array([True, None, False]),
        "level": pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.int8()), ["low", "high"], ordered=True),
        "codes": pa.array([7, 7, None]).dictionary_encode(),
        "price": pa.array([decimal.Decimal("3.30"), None, decimal.Decimal("-0.01")]),
        "nothing": pa.nulls(3),
        "count": pa.array([0, None, 2**53]),
        "small": pa.array([1, 2, None], pa.uint64()),
        "half": pa.array([0.5, None, 2.0], pa.float32()).cast(pa.float16()),
        "view": pa.array(["a", None, "c"], pa.string_view()),
    }
    save(pa.table(columns), tmp_path / "t.dta")
    data = load(tmp_path / "t.dta").data
    assert data.to_pydict() == {
        "flag": [1, None, 0],
        "level": [2, 1, None],
        "codes": [7, 7, None],
        "price": [3.3, None, -0.01],
        "nothing": [None] * 3,
        "count": [0.0, None, 2.0**53],
        "small": [1, 2, None],
        "half": [0.5, None, 2.0],
        "view": ["a", "", "c"],
    }
    assert metadata.read(data.schema.field("level")).value_labels == ((1, "low"), (2, "high"))
    assert [metadata.read(field).storage for field in data.schema] == [
        "byte", "byte", "long", "double", "byte", "double", "long", "float", "str1",
    ]  # fmt: skip


def test_categories_in_chunks_with_other_dictionaries(tmp_path: Path) -> None:
    column = pa.chunked_array([pa.array(["b", "a"]).dictionary_encode(), pa.array(["c", "a"]).dictionary_encode()])
    save(pa.table({"x": column}), tmp_path / "t.dta")
    data = load(tmp_path / "t.dta").data
    labels = metadata.read(data.schema.field("x")).labels
    assert [labels[code] for code in data["x"].to_pylist()] == ["b", "a", "c", "a"]


def test_categories_that_cannot_be_labels_are_text(tmp_path: Path) -> None:
    save(pa.table({"x": pa.array(["", "a"]).dictionary_encode()}), tmp_path / "t.dta")
    assert load(tmp_path / "t.dta").data["x"].to_pylist() == ["", "a"]


@given(
    st.lists(st.one_of(st.none(), st.integers(-(2**53), 2**53)), min_size=1, max_size=5),
    st.sampled_from(["", "byte", "int", "long", "float", "double"]),
)
def test_whole_numbers_are_exact_in_whatever_storage(values: list[int | None], storage: str) -> None:
    made = column_of("x", pa.array(values, pa.int64()), Described(program="stata", storage=storage))
    limit = {"<i1": 101, "<i2": 32_741, "<i4": 2_147_483_621, "<f4": 2.0**127, "<f8": 2.0**1023}[made.dtype]
    read = [None if cell >= limit else int(cell) for cell in made.cells.tolist()]
    assert read == values


@given(st.lists(st.floats(width=64, allow_nan=False, min_value=-8e307, max_value=8e307), min_size=1, max_size=5))
@settings(max_examples=200)
def test_decimals_are_exact_whatever_they_were_stored_as(values: list[float]) -> None:
    for storage in ("byte", "int", "long", "float", "double"):
        made = column_of("x", pa.array(values), Described(program="stata", storage=storage))
        assert made.cells.astype(np.float64).tolist() == values


@given(st.lists(st.datetimes(datetime.datetime(1850, 1, 1), datetime.datetime(2090, 1, 1)), min_size=1, max_size=5))
@pytest.mark.parametrize("clock", [clocks.STATA, clocks.SPSS, clocks.SAS], ids=lambda clock: clock.program)
def test_moments_are_exact_as_counts(clock: clocks.Clock, moments: list[datetime.datetime]) -> None:
    fitting = [moment.replace(microsecond=moment.microsecond // clock.grain * clock.grain) for moment in moments]
    array = pa.array(fitting, pa.timestamp("us"))
    assert clock.arrow_of(clock.counts_of(array, name="x"), what="datetime").equals(array)


@given(st.lists(st.one_of(st.none(), st.dates()), min_size=1, max_size=5))
@pytest.mark.parametrize("clock", [clocks.STATA, clocks.SPSS, clocks.SAS], ids=lambda clock: clock.program)
def test_days_are_exact_as_counts(clock: clocks.Clock, days: list[datetime.date | None]) -> None:
    array = pa.array(days, pa.date32())
    assert clock.arrow_of(clock.counts_of(array, name="x"), what="date").equals(array)


@pytest.mark.parametrize("clock", [clocks.STATA, clocks.SPSS, clocks.SAS], ids=lambda clock: clock.program)
def test_counts_that_no_calendar_has_are_no_moments(clock: clocks.Clock) -> None:
    assert clock.arrow_of(np.array([0.5, -8.9e303]), what="datetime") is None


def test_labels_of_two_columns_with_one_name_stay_apart(tmp_path: Path) -> None:
    said = {
        name: Described(value_labels=((1, text),), label_set="a_name_of_thirty_one_letters_ok", program="stata")
        for name, text in (("a", "x"), ("b", "y"), ("c", "x"))
    }
    save(table({name: pa.array([1]) for name in said}, said), tmp_path / "t.dta")
    schema = load(tmp_path / "t.dta").data.schema
    assert [metadata.read(field).labels for field in schema] == [{1: "x"}, {1: "y"}, {1: "x"}]
    sets = [metadata.read(field).label_set for field in schema]
    assert sets[0] == sets[2] != sets[1]


def test_codes_that_spss_calls_missing_become_letters(tmp_path: Path) -> None:
    said = Described(
        value_labels=((1, "yes"), (-9, "refused")),
        missing_codes=(-9,),
        missing_ranges=((97.0, math.inf),),
        program="spss",
        format="F3.0",
        level="nominal",
    )
    save(table({"x": pa.array([1, -9, 99, None, 97])}, {"x": said}), tmp_path / "t.dta")
    data = load(tmp_path / "t.dta").data
    assert tags_of(data["x"].to_numpy()).tolist() == ["", "a", "c", "", "b"]
    assert data["x"].to_pylist()[0] == 1
    assert metadata.read(data.schema.field("x")).labels == {1: "yes", ".a": "refused", ".b": "97", ".c": "99"}
    assert metadata.read(data.schema.field("x")).format == "%12.0g"


@pytest.mark.parametrize(
    ("format", "cells", "note"),
    [
        ("%td", [1.0, tagged("a")], "its dates stay numbers (%td) to keep .a"),
        ("%td", [1.5, 2.0], "its dates have parts of days"),
        ("%tC", [1e12, 2e12], "count leap seconds (%tC)"),
        ("%tm", [600.0, 601.0], None),
    ],
)
def test_times_that_stay_numbers(tmp_path: Path, format: str, cells: list[float], note: str | None) -> None:
    said = Described(program="stata", storage="double", format=format)
    save(table({"t": pa.array(cells)}, {"t": said}), tmp_path / "t.dta")
    loaded = load(tmp_path / "t.dta")
    assert same_cells(loaded.data, pa.table({"t": pa.array(cells)}))
    assert metadata.read(loaded.data.schema.field("t")).format == format
    assert [note in told for told in loaded.notes] == ([True] if note else [])
    save(loaded.data, tmp_path / "again.dta")
    assert (tmp_path / "again.dta").read_bytes() == (tmp_path / "t.dta").read_bytes()


def test_a_format_of_hours_on_moments_of_other_days(tmp_path: Path) -> None:
    said = Described(program="stata", format="%tcHH:MM")
    moments = pa.array([datetime.datetime(2024, 1, 2, 3, 4)], pa.timestamp("us"))
    save(table({"t": moments}, {"t": said}), tmp_path / "t.dta")
    data = load(tmp_path / "t.dta").data
    assert data["t"].to_pylist() == moments.to_pylist()
    assert metadata.read(data.schema.field("t")).format == "%tcHH:MM"


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"my column": [1]}, r"column my column: Stata allows names"),
        ({"1a": [1]}, r"column 1a: Stata allows names"),
        ({"": [1]}, r"column : Stata allows names"),
        ({"a" * 33: [1]}, r"column a{33}: Stata allows names"),
        ({"double": [1]}, r"column double: the name is a word of Stata's own"),
        ({"str12": [1]}, r"column str12: the name is a word of Stata's own"),
        ({"x": [1, 2**53 + 1]}, r"column x, row 2: the whole number is beyond 2\^53"),
        ({"x": pa.array([2**64 - 1], pa.uint64())}, r"column x, row 1: the whole number is beyond 2\^53"),
        ({"x": [1.0, math.inf, -math.inf]}, r"column x: Stata cannot hold infinite .* \(rows 2, 3\)"),
        ({"x": [1e308]}, r"column x: Stata cannot hold infinite .* \(row 1\)"),
        ({"x": ["a", "b\0c"]}, r"column x, row 2: Stata cannot hold a NUL character"),
        ({"x": [tagged("_")]}, r"column x: Stata has no missing value \._"),
        ({"x": [[1]]}, r"column x: Stata cannot hold type list"),
        ({"x": [b"\xff"]}, r"column x: Stata cannot hold type binary"),
        ({"x": [datetime.timedelta(1)]}, r"column x: Stata has no durations"),
        ({"x": pa.array([0], pa.timestamp("s", "UTC"))}, r"column x: Stata has no time zones"),
        ({"x": pa.array([1], pa.timestamp("ns"))}, r"column x, row 1: the time is finer or farther away"),
        ({"x": [decimal.Decimal("1234567890123456.5")]}, r"column x: its decimals have more than 15 digits"),
    ],
)
def test_what_stata_cannot_hold(tmp_path: Path, columns: dict[str, object], sentence: str) -> None:
    path = tmp_path / "t.dta"
    with pytest.raises(FormatError, match=f"t.dta: {sentence}"):
        save(pa.table(columns), path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("cells", "said", "sentence"),
    [
        ([1], Described(label="x" * 81), r"column x: its label has 81 characters, and Stata allows 80"),
        ([1], Described(value_labels=((1.5, "a"),)), r"column x: Stata labels only whole numbers"),
        (
            ["a"],
            Described(value_labels=(("a", "A"),)),
            r"column x: Stata has neither labels nor missing codes for text",
        ),
        (["a"], Described(missing_codes=("a",)), r"column x: Stata has neither labels nor missing codes for text"),
        ([1], Described(value_labels=((1, "a" * 32_001),)), r"column x: a value's label has 32001 bytes"),
        (list(range(27)), Described(missing_ranges=((0.0, 99.0),)), r"column x: has 27 missing codes"),
    ],
)
def test_labels_that_stata_cannot_hold(tmp_path: Path, cells: list[object], said: Described, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        save(table({"x": pa.array(cells)}, {"x": said}), tmp_path / "t.dta")


def test_tables_that_stata_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="a table without columns"):
        save(pa.table({}), tmp_path / "t.dta")
    with pytest.raises(FormatError, match="several columns are named a"):
        save(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "t.dta")
    with pytest.raises(FormatError, match="the label of the table has 81 characters"):
        save(table({"a": pa.array([1])}, whole=DescribedTable(label="x" * 81)), tmp_path / "t.dta")
    with pytest.raises(FormatError, match="32768 columns, and Stata allows 32767"):
        stata_write.write(pa.table({f"c{n}": pa.array([1]) for n in range(32_768)}), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("keep", [0, 3, 100, 0.3, 0.6, 0.99, -1])
def test_files_that_are_cut_short(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "t.dta"
    save(survey(), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if 0 < keep < 1 else int(keep)])
    with pytest.raises(FormatError, match=r"t.dta: is no Stata file, or is damaged or cut short$"):
        load(path)


def test_files_that_are_something_else(tmp_path: Path) -> None:
    path = tmp_path / "t.dta"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(FormatError, match=r"t.dta: is no Stata file, or is damaged or cut short$"):
        load(path)
    with pytest.raises(FileError, match="there is no such file"):
        load(tmp_path / "none.dta")


@pytest.mark.parametrize("count", [2**20, 2**31 - 1, 2**32, 2**62])
def test_a_file_that_claims_more_records_than_it_can_have(tmp_path: Path, count: int) -> None:
    path = tmp_path / "t.dta"
    save(pa.table({"a": [1]}), path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"<N>" + struct.pack("<Q", 1), b"<N>" + struct.pack("<Q", count)))
    with pytest.raises(FormatError, match="damaged or cut short"):
        load(path)


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(pa.table({"a": [1]}), tmp_path / "t.dta")
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(
        FormatError, match=r"t.dta: Stata files need pyreadstat; install it with pip install 'rankveil\[files\]'"
    ):
        load(tmp_path / "t.dta")
