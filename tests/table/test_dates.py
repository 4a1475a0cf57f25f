"""Dates and times are numbers: exact, in every unit and library, and back in the same type and form."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil import dates

RNG = np.random.default_rng(0)
MOMENTS = [dt.datetime(1999, 12, 31, 23) + dt.timedelta(microseconds=int(each)) for each in RNG.integers(0, 10**15, 30)]
SECONDS = [moment.replace(microsecond=0) for moment in MOMENTS]
LIBRARIES = ("pyarrow", "pandas", "pandas of arrow", "polars")

COLUMNS: dict[str, pa.Array] = {
    "date32": pa.array([moment.date() for moment in MOMENTS]),
    "date64": pa.array([moment.date() for moment in MOMENTS], pa.date64()),
    "timestamp[s]": pa.array(SECONDS, pa.timestamp("s")),
    "timestamp[us]": pa.array(MOMENTS, pa.timestamp("us")),
    "timestamp[ns]": pa.array(MOMENTS, pa.timestamp("ns")),
    "timestamp[us] with a zone": pa.array(MOMENTS, pa.timestamp("us", tz="Europe/Berlin")),
    "timestamp[ns] with a zone": pa.array(MOMENTS, pa.timestamp("ns", tz="America/New_York")),
    "time32[s]": pa.array([moment.time() for moment in SECONDS], pa.time32("s")),
    "time64[ns]": pa.array([moment.time() for moment in MOMENTS], pa.time64("ns")),
    "duration[ms]": pa.array([moment - SECONDS[0] for moment in SECONDS], pa.duration("ms")),
    "duration[ns]": pa.array([moment - MOMENTS[0] for moment in MOMENTS], pa.duration("ns")),
    "text of dates": pa.array([str(moment.date()) for moment in MOMENTS]),
    "text to the minute": pa.array([f"{moment:%Y-%m-%dT%H:%M}" for moment in MOMENTS]),
    "text to the second": pa.array([f"{moment:%Y-%m-%d %H:%M:%S}" for moment in MOMENTS]),
}


def framed(column: pa.Array, library: str) -> Any:
    """A frame of the library, one cell missing."""
    with_hole = pa.concat_arrays([column.slice(0, 7), pa.nulls(1, column.type), column.slice(8)])
    table = pa.table({"WHEN": with_hole, "X": np.arange(len(column)) / 7})
    if library == "pyarrow":
        return table
    if library == "polars":
        return pl.from_arrow(table)
    return table.to_pandas(types_mapper=pd.ArrowDtype if library == "pandas of arrow" else None)


def cells(frame: Any) -> list[Any]:
    column = frame["WHEN"]
    return [None if pd.isna(cell) else cell for cell in (column.to_pylist() if hasattr(column, "type") else column)]


def type_of(frame: Any) -> str:
    column = frame["WHEN"]
    return str(column.type if hasattr(column, "type") else column.dtype)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", COLUMNS)
def test_they_come_back_exactly_and_in_the_same_type(name: str, library: str) -> None:
    frame = framed(COLUMNS[name], library)
    table = rv.Table(frame)
    assert table.columns["WHEN"].kind == "numeric"
    assert cells(rv.mask(frame, "identity").data) == cells(frame)
    made = rv.mask(frame, "permute", seed=1).data
    assert type_of(made) == type_of(frame)
    there = [cell for cell in cells(frame) if cell is not None]
    now = cells(made)
    assert now[7] is None
    assert sorted(cell for cell in now if cell is not None) == sorted(there)
    assert now != cells(frame)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", COLUMNS)
def test_masked_ones_have_the_same_type_and_form(name: str, library: str) -> None:
    frame = framed(COLUMNS[name], library)
    for method, given_ in (("additive_noise", {"alpha": 0.3}), ("mdav", {"k": 4})):
        release = rv.mask(frame, method, seed=2, **given_)
        assert type_of(release.data) == type_of(frame)
        assert cells(release.data)[7] is None
        assert release.changed["WHEN"] > 20
        if name.startswith("text"):  # written as the original is
            first = cells(frame)[0]
            written = [cell for cell in cells(release.data) if cell is not None]
            assert {(len(cell), cell[10:11]) for cell in written} == {(len(first), first[10:11])}
            assert rv.Table(release.data).cells("WHEN").temporal == rv.Table(frame).cells("WHEN").temporal


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", COLUMNS)
def test_what_a_type_cannot_hold_is_the_nearest_that_it_can_and_said(name: str, library: str) -> None:
    if library == "pandas" and name.endswith("[us] with a zone") and int(pd.__version__.partition(".")[0]) < 3:
        pytest.skip("pandas 2 crashes when it shows times of the year 1 in a zone")
    release = rv.mask(framed(COLUMNS[name], library), "additive_noise", sd=1e19, seed=3)
    assert type_of(release.data) == type_of(framed(COLUMNS[name], library))
    assert len(cells(release.data)) == 30  # all of them can be shown
    (note,) = [note for note in release.notes if note.startswith("column WHEN")]
    assert note.endswith("masked values were beyond what it can hold and were set to the nearest")


def test_the_numbers_are_days_seconds_or_parts_of_them() -> None:
    table = rv.Table(
        pa.table(
            {
                "DAY": pa.array([dt.date(1970, 1, 31), dt.date(1969, 12, 31)]),
                "NOON": pa.array([dt.time(12), dt.time(0, 0, 1)], pa.time32("s")),
                "TEXT": ["1970-01-02 00:00", "1970-01-01 00:01"],
                "FINE": pa.array([1_000, 2_500_000], pa.int64()).cast(pa.timestamp("ns")),  # as microseconds
            }
        )
    )
    assert {name: table.values(name).tolist() for name in table.names} == {
        "DAY": [30, -1],
        "NOON": [43_200, 1],
        "TEXT": [86_400, 60],
        "FINE": [1, 2_500],
    }


def test_what_lies_between_is_rounded_and_said() -> None:
    data = pa.table({"DAY": pa.array([0, 1, 3, 4], pa.int32()).cast(pa.date32())})
    release = rv.mask(data, "mdav", k=4)
    assert release.data["DAY"].to_pylist() == [dt.date(1970, 1, 3)] * 4
    assert "column DAY: masked values were rounded to days" in rv.mask(data, "mdav", k=2).notes


def test_times_finer_than_numbers_are_taken_as_nothing_unasked() -> None:
    fine = pa.array([1_700_000_000_123_456_789, 1_700_000_000_123_456_001]).cast(pa.timestamp("ns"))
    data = pa.table({"WHEN": fine, "X": [1.0, 2.0]})
    release = rv.mask(data, "permute", seed=1)
    assert release.passed_through == ("WHEN",)
    assert release.data["WHEN"].equals(data["WHEN"])
    assert rv.Table(data).columns["WHEN"].why == "its times are too fine or too far away to be masked exactly"
    with pytest.raises(rv.TableError, match="column WHEN: its times are too fine"):
        rv.mask(data, "permute", columns=["WHEN"])
    with pytest.raises(rv.TableError, match="round them to millionths of a second first"):
        rv.Table(data, schema=rv.Schema(kinds={"WHEN": "numeric"})).values("WHEN")
    far = pa.array([10**17, 0]).cast(pa.timestamp("s"))  # in three thousand million years
    assert rv.Table(pa.table({"WHEN": far})).columns["WHEN"].kind == "nominal"


@pytest.mark.parametrize(
    "texts", [["2024-01-31", "31.01.2024"], ["2024-01-31", "2024-01-31 10:00"], ["2024-1-3", "2024-01-31"]]
)
def test_texts_of_different_forms_are_no_dates(texts: list[str]) -> None:
    assert rv.Table(pa.table({"WHEN": texts})).columns["WHEN"].kind == "nominal"


def test_a_day_that_there_is_not() -> None:
    with pytest.raises(rv.TableError, match="column WHEN: a date that there is not"):
        rv.Table(pa.table({"WHEN": ["2024-02-28", "2024-02-30"]})).values("WHEN")


def test_seconds_are_not_lost_where_some_have_them() -> None:
    data = pa.table({"WHEN": ["2024-01-31T10:00", "2024-01-31T10:00:30", "2024-01-31T11:00"]})
    made = rv.mask(data, "permute", seed=5).data["WHEN"].to_pylist()
    assert sorted(made) == ["2024-01-31T10:00:00", "2024-01-31T10:00:30", "2024-01-31T11:00:00"]


def test_a_missing_marker_stays_where_it_is() -> None:
    data = pa.table({"WHEN": ["2024-01-31", "NA", "2023-05-06", "unknown", ""]})
    made = rv.mask(data, "permute", seed=1, schema=rv.Schema(missing=("unknown",))).data["WHEN"].to_pylist()
    assert [made[1], made[3], made[4]] == ["NA", "unknown", ""]
    assert sorted([made[0], made[2]]) == ["2023-05-06", "2024-01-31"]


def test_dates_may_be_declared_otherwise() -> None:
    data = pa.table({"WHEN": ["2024-01-31", "2023-05-06", "2024-01-31"]})
    assert rv.Table(data, schema=rv.Schema(kinds={"WHEN": "nominal"})).labels("WHEN") == ("2024-01-31", "2023-05-06")
    assert rv.Table(data, schema=rv.Schema(kinds={"WHEN": "ordinal"})).columns["WHEN"].kind == "ordinal"


@pytest.mark.parametrize(
    ("value", "kind", "number"),
    [
        ("1970-01-31", pa.date32(), 30),
        (" 1970-01-31 ", pa.date64(), 30 * 86_400_000),
        (dt.date(1970, 1, 31), pa.date32(), 30),
        ("1970-01-01 00:01", pa.timestamp("ms"), 60_000),
        (dt.datetime(1970, 1, 1, 0, 1), pa.timestamp("ns"), 60_000_000),
        ("1970-01-01T01:00:00+01:00", pa.timestamp("s", tz="Asia/Tokyo"), 0),
        ("00:01:00.5", pa.time64("us"), 60_500_000),
        (dt.time(0, 1), pa.time64("ns"), 60 * 10**9),
        ("90", pa.duration("s"), 90),
        (dt.timedelta(seconds=90), pa.duration("ms"), 90_000),
        ("1970-01-01 01:00", pa.timestamp("s", tz="Asia/Tokyo"), None),  # of which zone?
        ("1970-02-30", pa.date32(), None),
        ("25:00", pa.time32("s"), None),
        ("00:00:00.5", pa.time32("s"), None),
        ("inf", pa.duration("s"), None),
        ("soon", pa.timestamp("s"), None),
        (None, pa.date32(), None),
        (["1970-01-01"], pa.date32(), None),
    ],
)
def test_what_people_write(value: Any, kind: pa.DataType, number: float | None) -> None:
    assert dates.parsed(value, kind) == number


KINDS = [column.type for name, column in COLUMNS.items() if not name.startswith(("text", "duration"))]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(KINDS), st.floats(0, 1))
def test_what_is_written_is_read_again(kind: pa.DataType, share: float) -> None:
    low, high = (-60_000, 60_000) if pa.types.is_date32(kind) else (0, 10**4)
    step = 86_400_000 if pa.types.is_date64(kind) else 1
    number = float(round(low + share * (high - low)) * step)
    text = dates.written(number, kind)
    assert isinstance(text, str)
    assert dates.parsed(text, kind) == number
