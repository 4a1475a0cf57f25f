"""CSV: cells come back as they were written, bad files get one sentence."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rankveil.errors import FileError, FormatError, ParameterError
from rankveil.files import Dialect, csv_detect, load, save


def written(folder: Path, content: bytes | str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def texts(path: Path, **given: str) -> dict[str, list[str]]:
    return dict(load(path, **given).data.to_pydict())


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("end", ["", "end"])
def test_cells_are_read_as_written(tmp_path: Path, newline: str, end: str) -> None:
    lines = ["id,x,when", "007,1.50,2024-01-02", ",NA, a "]
    path = written(tmp_path, newline.join(lines) + (newline if end else ""))
    loaded = load(path)
    assert loaded.data.to_pydict() == {"id": ["007", ""], "x": ["1.50", "NA"], "when": ["2024-01-02", " a "]}
    assert all(field.type == pa.string() for field in loaded.data.schema)
    assert loaded.dialect == Dialect(newline=newline)
    assert loaded.notes == ()


def test_quotes_hold_separators_quotes_and_line_ends(tmp_path: Path) -> None:
    path = written(tmp_path, '"a ""1""",b\n"x, y","two\nlines"\n"say ""hi""",5" pipe\n')
    assert texts(path) == {'a "1"': ["x, y", 'say "hi"'], "b": ["two\nlines", '5" pipe']}


@pytest.mark.parametrize(
    ("content", "separator", "mark"),
    [
        ("a;b\n1,5;2\n", ";", ","),
        ("a;b\n1,5;2.5\n", ";", "."),
        ("a;b\n12.05.2020;1,5\n", ";", ","),
        ("a,b\n1,5\n", ",", "."),
        ("a\tb\n1,5\t2\n", "\t", ","),
        ("a|b\n1.5|2\n", "|", "."),
        ('"a;b",c\n"1;2",3\n', ",", "."),
        ("Size, cm;Weight\n1,5;2,5\n", ";", ","),
        ("a\n1,5\n", ";", ","),
        ("a\n1.5\n", ",", "."),
    ],
)
def test_separator_and_decimal_mark_are_detected(tmp_path: Path, content: str, separator: str, mark: str) -> None:
    dialect = load(written(tmp_path, content)).dialect
    assert dialect is not None
    assert (dialect.separator, dialect.decimal) == (separator, mark)


def test_given_marks_win(tmp_path: Path) -> None:
    path = written(tmp_path, "a;b,c\n1;2,3\n")
    assert texts(path, separator=",") == {"a;b": ["1;2"], "c": ["3"]}
    loaded = load(written(tmp_path, "a\tb\n1\t2\n"), separator="tab", decimal=",")
    assert loaded.dialect == Dialect(separator="\t", decimal=",")


@pytest.mark.parametrize("given", [{"separator": "::"}, {"separator": "a"}, {"decimal": ""}, {"encoding": "hex"}])
def test_impossible_marks_are_refused(tmp_path: Path, given: dict[str, str]) -> None:
    with pytest.raises(ParameterError):
        load(written(tmp_path, "a\n1\n"), **given)


def test_a_decimal_comma_after_the_sample_is_found(tmp_path: Path) -> None:
    rows = "1;2\n" * csv_detect.SAMPLE
    loaded = load(written(tmp_path, "a;b\n" + rows + "1,5;2\n"))
    assert loaded.dialect == Dialect(separator=";", decimal=",")


def test_both_decimal_marks_are_noted(tmp_path: Path) -> None:
    assert "like 1,5 and like 1.5" in load(written(tmp_path, "a;b\n1,5;2.5\n")).notes[0]


@pytest.mark.parametrize(
    ("encoding", "bom"),
    [("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")],
)
def test_encodings_are_detected(tmp_path: Path, encoding: str, bom: bytes) -> None:
    path = written(tmp_path, bom + "Größe,b\nŁódź,1\n".encode(encoding))
    loaded = load(path)
    assert loaded.data.to_pydict() == {"Größe": ["Łódź"], "b": ["1"]}
    assert loaded.dialect == Dialect(encoding=encoding, bom=bool(bom))
    before = path.read_bytes()
    save(loaded.data, path, dialect=loaded.dialect)
    assert path.read_bytes() == before


def test_windows_1252_is_assumed_with_a_note(tmp_path: Path) -> None:
    path = written(tmp_path, "name\nJosé €5\n".encode("cp1252"))
    loaded = load(path)
    assert loaded.data.to_pydict() == {"name": ["José €5"]}
    assert loaded.dialect == Dialect(encoding="cp1252")
    assert "windows-1252" in loaded.notes[0]
    assert load(path, encoding="latin-1").notes == ()


def test_a_bad_utf8_byte_beyond_the_first_megabyte_is_seen(tmp_path: Path) -> None:
    path = written(tmp_path, b"a\n" + "é\n".encode() * 600_000 + b"\xe9\n")
    assert "windows-1252" in load(path).notes[0]
    with pytest.raises(FormatError, match=r"line 600002 .* is not utf-8"):
        load(path, encoding="utf-8")


def test_blank_lines(tmp_path: Path) -> None:
    loaded = load(written(tmp_path, "\na,b\n\n1,2\n\n\n3,4\n\n"))
    assert loaded.data.to_pydict() == {"a": ["1", "3"], "b": ["2", "4"]}
    assert "3 blank lines were skipped" in loaded.notes[0]
    assert texts(written(tmp_path, 'a\n1\n\n""\n2\n\n')) == {"a": ["1", "", "", "2"]}
    assert load(written(tmp_path, 'a,b\n"1\n\n2",3\n')).notes == ()


def test_header_only(tmp_path: Path) -> None:
    loaded = load(written(tmp_path, "a;b\n"))
    assert loaded.data.num_rows == 0
    assert loaded.data.schema == pa.schema({"a": pa.string(), "b": pa.string()})


def test_wide_header_and_long_cell(tmp_path: Path) -> None:
    wide = [f"column_{position}" for position in range(40_000)]
    assert load(written(tmp_path, ",".join(wide) + "\n" + ",".join("1" * 40_000))).data.column_names == wide
    cell = "x\n" * 3_000_000
    assert texts(written(tmp_path, f'a,b\n1,"{cell}"\n')) == {"a": ["1"], "b": [cell]}


def test_a_header_of_numbers_is_noted(tmp_path: Path) -> None:
    assert "all of them are numbers" in load(written(tmp_path, "1,2.5\n3,4\n")).notes[0]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"\n\r\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"a,b,a,b,c\n1,2,3,4,5\n", "several columns are named a, b"),
        (b"a,,c\n1,2,3\n", "column 2 has no name"),
        (b"a,, \n1,2,3\n", "columns 2, 3 have no name"),
        (b"a,b\n1,2\n\n3\n4,5,6\n", "row 2 has 1 field, row 3 has 3 fields, the header has 2"),
        (b"a,b\n" + b"1,2\n" * 11 + b'"x\ny"\n', "row 12 has 1 field, the header has 2"),
        (b'a,b\n1,"2\n3,4\n', "a quote .* never closed"),
        (b'a,b\n"1,2\n3,4\n', "a quote .* never closed"),
        (b'a\n1\n"\n', "a quote .* never closed"),
        (b'"a,b\n1,2\n', "a quote .* never closed"),
        (b"a,b\n1,\x00\n", "line 2 holds a NUL byte"),
        (b"PAR1\x00\x00PAR1", "not text but a Parquet file"),
        (b"PK\x03\x04\xff\x00", "not text but an Excel workbook or a zip archive"),
        (b"\x1f\x8b\x08\xff", "compressed with gzip"),
        (b"\xff\x02\x03\x9d", "not a text file"),
        (b"name\n\x81\n", "neither UTF-8 nor windows-1252"),
    ],
)
def test_bad_files_get_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(FormatError, match=sentence) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_an_open_quote_in_a_large_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="never closed"):
        load(written(tmp_path, 'a,b\n1,"2\n' + "3,4\n" * 2_000_000))


def test_a_column_may_be_named_like_a_parquet_file(tmp_path: Path) -> None:
    assert texts(written(tmp_path, "PAR1,PAR2\nx,y\n")) == {"PAR1": ["x"], "PAR2": ["y"]}


def test_typed_columns_are_written_in_short_forms_that_round_trip(tmp_path: Path) -> None:
    time = datetime.datetime(2024, 1, 2, 3, 4, 5)
    table = pa.table(
        {
            "int": pa.array([1, None, -(2**63)]),
            "float": pa.array([12.0, float("nan"), 0.1 + 0.2]),
            "single": pa.array([0.1, 1e-7, None], pa.float32()),
            "bool": pa.array([True, False, None]),
            "date": pa.array([time.date(), None, time.date()]),
            "time": pa.array([time, time.replace(microsecond=500_000), None], pa.timestamp("us")),
            "zone": pa.array([time, None, time], pa.timestamp("us", "UTC")),
            "decimal": pa.array([decimal.Decimal("1.50")] * 3),
            "category": pa.array(["b", "a", None]).dictionary_encode(),
            "nothing": pa.nulls(3),
        }
    )
    save(table, tmp_path / "t.csv", dialect=Dialect(separator=";", decimal=","))
    assert (tmp_path / "t.csv").read_text() == (
        "int;float;single;bool;date;time;zone;decimal;category;nothing\n"
        "1;12;0,1;true;2024-01-02;2024-01-02 03:04:05;2024-01-02 03:04:05Z;1,50;b;\n"
        ";;1e-7;false;;2024-01-02 03:04:05.500000;;1,50;a;\n"
        "-9223372036854775808;0,30000000000000004;;;2024-01-02;;2024-01-02 03:04:05Z;1,50;;\n"
    )


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_floats_round_trip(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    path = tmp_path_factory.getbasetemp() / "floats.csv"
    save(pa.table({"x": values}), path)
    assert [float(cell) for cell in texts(path)["x"]] == values


def test_a_decimal_comma_between_commas_is_quoted(tmp_path: Path) -> None:
    save(pa.table({"a": [1.5], "b": [2]}), tmp_path / "t.csv", dialect=Dialect(decimal=","))
    assert (tmp_path / "t.csv").read_text() == 'a,b\n"1,5",2\n'


def test_only_cells_that_need_quotes_have_them(tmp_path: Path) -> None:
    table = pa.table({"a": ["x y", " x", "x ", "a,b", "a;b"], "b;c": ['"', "\r", "\n", None, ""]})
    save(table, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_bytes() == (b'a,"b;c"\nx y,""""\n" x","\r"\n"x ","\n"\n"a,b",\na;b,\n')


def test_the_ending_decides_the_separator(tmp_path: Path) -> None:
    table = pa.table({"a": [1], "b": [2]})
    save(table, tmp_path / "t.tsv", dialect=Dialect(separator=","))
    save(table, tmp_path / "t.txt")
    assert (tmp_path / "t.tsv").read_text() == (tmp_path / "t.txt").read_text() == "a\tb\n1\t2\n"


def test_rows_beyond_one_batch(tmp_path: Path) -> None:
    values = [str(value) for value in range(200_000)]
    column = pa.chunked_array([values[:70_001], values[70_001:]])
    save(pa.table({"a": column, "b": column}), tmp_path / "t.csv")
    assert texts(tmp_path / "t.csv") == {"a": values, "b": values}


@pytest.mark.parametrize(
    ("table", "encoding", "sentence"),
    [
        (
            pa.table({"a": ["x", "ł"]}),
            "cp1252",
            "column a, row 2: the character 'ł' cannot be written in cp1252",
        ),
        (pa.table({"ł": ["x"]}), "cp1252", "header: the character 'ł'"),
        (pa.table({"a": ["x", "y\0"]}), "utf-8", "column a, row 2: CSV cannot hold a NUL"),
        (pa.table({"a": [[1]]}), "utf-8", r"column a: CSV cannot hold type list"),
        (pa.table({"a": [b"\xff"]}), "utf-8", "column a: holds bytes that are no text"),
        (pa.table([[1], [2]], names=["a", "a"]), "utf-8", "several columns are named a"),
        (pa.table({"": [1]}), "utf-8", "column 1 has no name"),
        (pa.table({}), "utf-8", "without columns"),
    ],
)
def test_tables_that_csv_cannot_hold(tmp_path: Path, table: pa.Table, encoding: str, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        save(table, tmp_path / "t.csv", dialect=Dialect(encoding=encoding))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="there is no such file"):
        load(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileError, match="is a folder"):
        load(tmp_path / "folder.csv")


SEPARATORS = st.sampled_from([",", ";", "\t", "|"])
NEWLINES = st.sampled_from(["\n", "\r\n", "\r"])
TRICKY = ',;\t|"\r\n .\ufeffeéł1'


@st.composite
def text_tables(draw: st.DrawFn, letters: st.SearchStrategy[str]) -> pa.Table:
    cells = st.text(letters, max_size=6)
    names = draw(st.lists(cells.filter(str.strip), min_size=1, max_size=4, unique=True))
    rows = draw(st.integers(0, 5))
    columns = [draw(st.lists(cells, min_size=rows, max_size=rows)) for _ in names]
    return pa.table([pa.array(column, pa.string()) for column in columns], names=names)


ANY_LETTER = st.one_of(st.sampled_from(TRICKY), st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@example(pa.table({"0": pa.array([], pa.string()), ";": pa.array([], pa.string())}), ",", "\n", False)
@example(pa.table({"0": ["\ufeffa"]}), ",", "\n", False)
@example(pa.table({"\ufeff0": ["a"]}), ",", "\n", False)
@given(text_tables(ANY_LETTER), SEPARATORS, NEWLINES, st.booleans())
def test_utf8_round_trips_without_being_told_anything(
    tmp_path_factory: pytest.TempPathFactory, table: pa.Table, separator: str, newline: str, bom: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    save(table, path, dialect=Dialect(separator=separator, newline=newline, bom=bom))
    loaded = load(path)
    assert loaded.data.equals(table)
    assert loaded.dialect is not None
    if table.num_columns > 1:
        assert loaded.dialect.separator == separator


def letters_of(encoding: str) -> st.SearchStrategy[str]:
    """What an encoding can write: all letters, or those of its bytes (to try every letter would take seconds)."""
    if encoding.startswith("utf"):
        return ANY_LETTER
    return st.sampled_from(bytes(range(1, 256)).decode(encoding, "ignore"))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.sampled_from(["cp1252", "latin-1", "utf-16", "utf-16-be", "utf-32", "utf-8-sig"]).flatmap(
        lambda encoding: st.tuples(st.just(encoding), text_tables(letters_of(encoding)))
    ),
    SEPARATORS,
    NEWLINES,
)
def test_other_encodings_round_trip_when_named(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[str, pa.Table], separator: str, newline: str
) -> None:
    encoding, table = drawn
    path = tmp_path_factory.getbasetemp() / "encoded.csv"
    save(table, path, dialect=Dialect(separator=separator, newline=newline, encoding=encoding))
    assert load(path, encoding=encoding).data.equals(table)


@pytest.mark.parametrize(
    ("content", "noted"),
    [
        ("a;b\n19.297;1\n999;2\n1.234;3\n", True),
        ("a;b\n19.297;1\n0.234;3\n", False),
        ("a;b\n19.297;1.5\n", False),
        ("a,b\n19.297,1\n", False),
    ],
)
def test_points_that_may_part_thousands_are_noted(tmp_path: Path, content: str, noted: bool) -> None:
    found = load(written(tmp_path, content))
    assert found.dialect is not None
    assert found.dialect.decimal == "."
    assert any("like 1.234" in note for note in found.notes) == noted


LONG = 1 << 20


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            b",".join(b"%d" % column for column in range(100_001)),
            "the first line has 100,001 fields; are there line ends",
        ),
        (b"x" * LONG, "the first line is far too long for names of columns; are there line ends missing?"),
        (b'"' + b"x" * LONG, "a quote .* is opened and never closed"),
        (
            b"a,b\n" + b"1\n" * 5000,
            "row 1 has 1 field, row 2 has 1 field, row 3 has 1 field and many more, the header has 2",
        ),
        (b"\r" * LONG, "is empty; the first line must name the columns"),
    ],
    ids=["too many names", "one long name", "an open quote", "all rows ragged", "line ends alone"],
)
def test_files_that_would_take_forever(tmp_path: Path, content: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=rf"t\.csv: {sentence}"):
        load(written(tmp_path, content))


def test_a_long_cell_and_many_line_ends(tmp_path: Path) -> None:
    path = written(tmp_path, b"a,b\n1," + b"x" * LONG + b"\r\n" * 5 * LONG)
    assert [len(cell) for cell in texts(path)["b"]] == [LONG]


@pytest.mark.parametrize("name", ["idna", "punycode", "undefined", "utf\0", "rot13"])
def test_encodings_that_are_none_of_texts(tmp_path: Path, name: str) -> None:
    with pytest.raises(ParameterError, match="unknown encoding"):
        load(written(tmp_path, b"a,b\n\xff,2\n"), encoding=name)
