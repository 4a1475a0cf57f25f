"""What a file says of its columns travels with the table; missing letters survive whatever moves the cells."""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable
from pathlib import Path

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankveil import metadata
from rankveil.files import load, save
from rankveil.metadata import LETTERS, Described, DescribedTable, read, read_table, tagged, tags_of, write, write_table

FULL = Described(
    label="Größe des Haushalts",
    value_labels=((1, "eins"), (2.5, "zweieinhalb"), (".a", "weiß nicht")),
    label_set="household",
    missing_codes=(-9, 97.5),
    missing_ranges=((-math.inf, -5.0), (900.0, math.inf)),
    level="ordinal",
    program="spss",
    format="F8.2",
    storage="A12",
    width=11,
    alignment="right",
)
LETTERED = np.array([1.0, tagged("a"), math.nan, tagged("z"), tagged("_"), -2.5])
EXPECTED = ["", "a", "", "z", "_", ""]


def described_table() -> pa.Table:
    field = write(pa.field("x", pa.float64(), metadata={"mine": "kept"}), FULL)
    whole = DescribedTable(label="Umfrage", notes=("erste", "zweite"), encoding="windows-1252", program="stata")
    schema = write_table(pa.schema([field, pa.field("y", pa.string())], metadata={"also": "kept"}), whole)
    return pa.table([pa.array(LETTERED), pa.array(["a"] * len(LETTERED))], schema=schema)


def test_everything_that_is_written_is_read() -> None:
    table = described_table()
    assert read(table.schema.field("x")) == FULL
    assert read(table.schema.field("y")) == Described()
    assert read_table(table.schema).notes == ("erste", "zweite")
    assert table.schema.field("x").metadata[b"mine"] == b"kept"
    assert table.schema.metadata[b"also"] == b"kept"
    assert set(metadata.described_columns(table.schema)) == {"x"}


def test_nothing_to_say_leaves_no_trace() -> None:
    field = write(pa.field("x", pa.int8()), Described())
    assert field.metadata is None
    assert write(write(field, FULL), Described()).metadata is None


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'"x"', b'{"value_labels": 5}', b'{"missing_ranges": [[1]]}'])
def test_metadata_of_someone_else_say_nothing(content: bytes) -> None:
    assert read(pa.field("x", pa.int8(), metadata={b"rankveil": content})) == Described()


def test_words_that_are_not_known_yet_are_passed_over() -> None:
    field = pa.field("x", pa.int8(), metadata={b"rankveil": b'{"label": "kept", "colour": "red"}'})
    assert read(field) == Described(label="kept")


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".arrow"])
def test_parquet_and_arrow_keep_metadata_and_letters(tmp_path: Path, ending: str) -> None:
    table = described_table()
    save(table, tmp_path / f"t{ending}")
    loaded = load(tmp_path / f"t{ending}").data
    assert loaded.schema.equals(table.schema, check_metadata=True)
    assert tags_of(loaded["x"].to_numpy()).tolist() == EXPECTED


def test_csv_keeps_neither(tmp_path: Path) -> None:
    save(described_table(), tmp_path / "t.csv")
    loaded = load(tmp_path / "t.csv").data
    assert metadata.described_columns(loaded.schema) == {}
    assert loaded["x"].to_pylist() == ["1", "", "", "", "", "-2.5"]


def test_a_letter_has_the_bits_that_haven_gives_it() -> None:
    # bytes from the lowest: 1954 in the lower half, the letter in the fifth; made quiet, as any arithmetic makes it
    assert struct.pack("<d", tagged("b")) == b"\xa2\x07\x00\x00b\x00\xf8\x7f"
    assert struct.pack("<d", tagged("B")) == struct.pack("<d", tagged("b"))


@given(st.integers(0, 2**64 - 1))
def test_only_letters_are_letters(bits: int) -> None:
    value = np.array([bits], np.uint64).view(np.float64)
    letter = chr(bits >> 32 & 0xFF)
    is_one = bool(np.isnan(value[0])) and bits & 0xFFFFFFFF == 1954 and letter in LETTERS
    assert tags_of(value).tolist() == [letter if is_one else ""]


def test_every_letter_comes_back() -> None:
    assert tags_of(np.array([tagged(letter) for letter in LETTERS])).tolist() == list(LETTERS)
    for wrong in ("", "ab", "é", "1"):
        with pytest.raises(ValueError, match="cannot carry"):
            tagged(wrong)


def through_pandas(array: pa.Array) -> np.ndarray:
    pytest.importorskip("pandas")
    series = pa.table({"x": array}).to_pandas()["x"]
    return series.where([True] * len(series), 0.0).copy().to_numpy()


def through_polars(array: pa.Array) -> np.ndarray:
    pl = pytest.importorskip("polars")
    series = pl.from_arrow(pa.table({"x": array}))["x"]
    return series.zip_with(pl.Series([True] * len(series)), pl.Series([0.0] * len(series))).to_arrow().to_numpy()


def through_narwhals(array: pa.Array) -> np.ndarray:
    series = nw.from_native(pa.chunked_array([array]), series_only=True)
    keep = nw.from_native(pa.chunked_array([pa.array([True] * len(array))]), series_only=True)
    return series.zip_with(keep, series).to_numpy()


@pytest.mark.parametrize(
    "move",
    [
        pytest.param(lambda array: array.to_numpy(), id="numpy"),
        pytest.param(lambda array: array.cast(pa.float64()).to_numpy(), id="cast"),
        pytest.param(lambda array: array.take(pa.array(range(len(array)))).to_numpy(), id="take"),
        pytest.param(lambda array: array.filter(pa.array([True] * len(array))).to_numpy(), id="filter"),
        pytest.param(lambda array: pc.if_else(pa.array([False] * len(array)), 0.0, array).to_numpy(), id="if_else"),
        pytest.param(lambda array: pa.concat_arrays([array[:2], array[2:]]).to_numpy(), id="concat"),
        pytest.param(lambda array: np.array(array.to_pylist()), id="python"),
        through_pandas,
        through_polars,
        through_narwhals,
    ],
)
def test_letters_survive(move: Callable[[pa.Array], np.ndarray]) -> None:
    assert tags_of(np.asarray(move(pa.array(LETTERED)))).tolist() == EXPECTED


def test_pandas_frames_forget_letters_on_their_way_to_arrow_but_the_cells_stay_missing() -> None:
    pd = pytest.importorskip("pandas")
    back = pa.Table.from_pandas(pd.DataFrame({"x": LETTERED}))["x"]
    assert Described().is_missing(back).tolist() == [False, True, True, True, True, False]


@pytest.mark.parametrize(
    ("array", "described", "expected"),
    [
        (pa.array([1, -9, None, 3]), Described(missing_codes=(-9,)), [0, 1, 1, 0]),
        (pa.array([1.0, 97.0, math.nan, 99.5]), Described(missing_ranges=((97.0, 99.0),)), [0, 1, 1, 0]),
        (pa.array([-8, -5, 7]), Described(missing_codes=(7,), missing_ranges=((-math.inf, -5.0),)), [1, 1, 1]),
        (pa.array(["a", "zz", None]), Described(missing_codes=("zz",)), [0, 1, 1]),
        (pa.array(["a", "zz"], pa.large_string()), Described(missing_codes=("zz", 3)), [0, 1]),
        (pa.array(["a", "zz"]).dictionary_encode(), Described(missing_codes=("zz",)), [0, 1]),
        (pa.array([datetime.date(1970, 1, 3), None]), Described(missing_codes=(2,)), [1, 1]),
        (pa.array([2, 5], pa.timestamp("us")), Described(missing_codes=(5,)), [0, 1]),
        (pa.array([2, 5], pa.time32("s")), Described(missing_codes=(5,)), [0, 1]),
        (pa.array([True, None]), Described(missing_codes=(1,)), [0, 1]),
        (pa.chunked_array([[1], [2]]), Described(missing_codes=(2,)), [0, 1]),
        (pa.chunked_array([], pa.int8()), Described(missing_codes=(2,)), []),
        (pa.array([tagged("a"), 1.0]), Described(), [1, 0]),
        (pa.nulls(2), Described(missing_codes=(2,)), [1, 1]),
    ],
)
def test_what_is_missing(array: pa.Array, described: Described, expected: list[int]) -> None:
    assert described.is_missing(array).tolist() == [bool(each) for each in expected]


@pytest.mark.parametrize(
    ("described", "decimals"),
    [
        (Described(program="spss", format="F8.2"), 2),
        (Described(program="spss", format="F8.0"), 0),
        (Described(program="spss", format="COMMA12.3"), 3),
        (Described(program="stata", format="%9.2f"), 2),
        (Described(program="stata", format="%-12.0fc"), 0),
        (Described(program="stata", format="%9.0g"), None),
        (Described(), None),
    ],
)
def test_decimals(described: Described, decimals: int | None) -> None:
    assert described.decimals == decimals


def test_words_of_another_program_are_not_taken_over() -> None:
    kept = metadata.in_words_of(FULL, "stata")
    assert (kept.format, kept.storage, kept.width, kept.alignment, kept.program) == ("", "", 0, "", "stata")
    assert (kept.label, kept.value_labels, kept.level) == (FULL.label, FULL.value_labels, FULL.level)
    assert metadata.in_words_of(FULL, "spss") is FULL
