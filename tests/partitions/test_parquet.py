"""Folders of Parquet files: rows by their number wherever they lie, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankveil.errors import FormatError, PairError, TableError
from rankveil.partitions.parquet import check_aligned, survey


def write(folder: Path, *tables: Any, row_group_size: int = 4) -> str:
    folder.mkdir()
    for k, table in enumerate(tables):
        pq.write_table(pa.table(table), folder / f"part-{k}.parquet", row_group_size=row_group_size)
    return str(folder)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    counts = (10, 0, 7, 3)
    starts = np.cumsum((0, *counts))
    parts = [
        {"A": np.arange(s, s + c, dtype=float), "B": np.arange(s, s + c) * 2}
        for s, c in zip(starts, counts, strict=False)
    ]
    return write(tmp_path / "x", *parts)


@pytest.mark.parametrize(("start", "stop"), [(0, 20), (0, 4), (3, 5), (9, 11), (10, 17), (16, 20), (5, 5)])
def test_rows_are_read_wherever_they_lie(folder: str, start: int, stop: int) -> None:
    a, b = survey(folder).read(["A", "B"], start, stop) if stop > start else (np.empty(0), np.empty(0))
    assert a.tolist() == list(range(start, stop))
    assert b.tolist() == [2 * i for i in range(start, stop)]
    assert b.dtype == np.float64


def test_the_footers_tell_what_there_is(folder: str) -> None:
    source = survey(folder)
    assert len(source) == 20
    assert source.names == ("A", "B")
    assert source.gaps == frozenset()
    assert [file.groups for file in source.files] == [(4, 4, 2), (0,), (4, 3), (3,)]


def test_partitions_keep_row_groups_whole(folder: str) -> None:
    source = survey(folder)
    assert source.bounds(rows=8) == (0, 8, 14, 20)
    assert source.bounds(rows=1) == (0, 4, 8, 10, 14, 17, 20)
    assert source.bounds(rows=1000) == (0, 20)


def test_a_single_file_is_a_table_too(folder: str) -> None:
    source = survey(f"{folder}/part-2.parquet")
    assert source.read(["A"], 1, 3)[0].tolist() == [11.0, 12.0]


def test_missing_cells_are_known_and_read_as_nan(tmp_path: Path) -> None:
    source = survey(write(tmp_path / "x", {"A": [1, None, 3], "B": [1.5, 2.5, 3.5]}))
    assert source.gaps == frozenset({"A"})
    assert np.isnan(source.read(["A"], 0, 3)[0]).tolist() == [False, True, False]


def test_truth_values_are_numbers(tmp_path: Path) -> None:
    assert survey(write(tmp_path / "x", {"A": [True, False]})).read(["A"], 0, 2)[0].tolist() == [1.0, 0.0]


def test_files_with_other_columns_or_types_are_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"part-1.parquet has other columns \(B\) than .*part-0"):
        survey(write(tmp_path / "a", {"A": [1.0]}, {"A": [1.0], "B": [1.0]}))
    with pytest.raises(FormatError, match=r"part-1.parquet has other types in A than"):
        survey(write(tmp_path / "b", {"A": [1.0]}, {"A": [1]}))
    with pytest.raises(FormatError, match=r"another order of columns"):
        survey(write(tmp_path / "c", {"A": [1], "B": [1]}, {"B": [1], "A": [1]}))


def test_a_damaged_file_in_the_middle_is_named(folder: str) -> None:
    path = Path(folder) / "part-2.parquet"
    source = survey(folder)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(60) + whole[64:])  # the footer is as it was
    with pytest.raises(FormatError, match=r"part-2.parquet: is not a Parquet file, or is damaged"):
        source.read(["A"], 0, 20)
    path.write_bytes(whole[:-10])
    with pytest.raises(FormatError, match=r"part-2.parquet: is not a Parquet file, or is damaged"):
        survey(folder)


def test_words_are_not_numbers(tmp_path: Path) -> None:
    source = survey(write(tmp_path / "x", {"A": ["a", "b"]}))
    with pytest.raises(TableError, match="column A holds string, not numbers"):
        source.read(["A"], 0, 1)


def test_an_empty_folder_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"holds no \.parquet file"):
        survey(str(tmp_path))


def test_tables_that_cannot_be_compared_are_refused(folder: str, tmp_path: Path) -> None:
    original = survey(folder)
    masked = survey(write(tmp_path / "y", {"A": np.zeros(19)}))
    check_aligned(original, original, ["A", "B"])
    with pytest.raises(PairError, match=r"has 20 records and .* 19"):
        check_aligned(original, masked, ["A"])
    with pytest.raises(TableError, match="y has no column B"):
        check_aligned(original, masked, ["B"])


def test_a_name_that_stands_twice_is_named(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["A", "A"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(FormatError, match="several columns are named A; give each its own name"):
        survey(str(tmp_path / "twice.parquet"))
