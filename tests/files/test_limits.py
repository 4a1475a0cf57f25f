"""Small files that claim to be huge are refused before memory is taken, and what one allows oneself is read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from rankveil.errors import FormatError
from rankveil.files import limits, load

ROWS = (1 << 20) + 1
MORE = (1 << 27) - 1
"""As many bytes in the footer as `ROWS` has."""


def varint(number: int) -> bytes:
    """A whole number as Thrift writes it."""
    left, made = number << 1, bytearray()
    while left > 127:
        made.append(left & 127 | 128)
        left >>= 7
    return bytes([*made, left])


def in_groups(path: Path, batch: pa.RecordBatch, many: int, *, new: Callable[..., object] = pa.ipc.new_file) -> Path:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with new(path, batch.schema, options=options) as target:
        for _ in range(many):
            target.write_batch(batch)
    return path


def test_a_parquet_file_that_claims_more_records_than_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    zeros = pa.array([0.0]).take(pa.nulls(ROWS, pa.int64()).fill_null(0))
    pq.write_table(pa.table(dict.fromkeys("abc", zeros)), path, row_group_size=ROWS)
    raw = path.read_bytes()
    path.write_bytes(raw.replace(varint(ROWS), varint(MORE)))
    with pytest.raises(FormatError, match=r"t\.parquet: would take 3\.0 GiB in memory, .*allow it with .*_GIB=3$"):
        load(path)
    monkeypatch.setenv(limits.LARGEST, "3")
    with pytest.raises(FormatError, match="is not a Parquet file, or is damaged or cut short"):
        load(path)


def test_a_parquet_file_of_one_long_text_in_many_cells(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    words = pa.DictionaryArray.from_arrays(pa.nulls(20_000, pa.int32()).fill_null(0), pa.array(["x" * 100_000]))
    pq.write_table(pa.table({"a": words}), path, store_schema=False)  # its cells are texts, not categories
    with pytest.raises(FormatError, match=r"t\.parquet: would take 1\.9 GiB in memory"):
        load(path)
    few = pa.table({"a": words.slice(0, 20), "b": [1.5] * 20})
    pq.write_table(few, path, store_schema=False)
    assert load(path).data.column("a").to_pylist() == ["x" * 100_000] * 20


def test_texts_of_many_lengths_are_counted_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    texts = ["x" * 500_000, *("y" for _ in range(5000)), None]
    pq.write_table(pa.table({"a": texts, "b": pa.nulls(len(texts), pa.string())}), path, row_group_size=3000)
    monkeypatch.setenv(limits.LARGEST, "0.001")  # less than 5000 times the longest
    assert load(path).data.column("a").to_pylist() == texts
    monkeypatch.setenv(limits.LARGEST, "0.0001")
    with pytest.raises(FormatError, match=r"t\.parquet: would take 0 MiB in memory"):
        load(path)


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow_files_that_unpack_to_far_more(tmp_path: Path, new: Callable[..., object]) -> None:
    zeros = pa.array([0.0]).take(pa.nulls(1 << 20, pa.int64()).fill_null(0))
    path = in_groups(tmp_path / "t.feather", pa.record_batch({"a": zeros}), 200, new=new)
    with pytest.raises(FormatError, match=r"t\.feather: would take 1\.6 GiB in memory"):
        load(path)
    nothing = in_groups(tmp_path / "t.arrow", pa.record_batch({"a": pa.nulls((1 << 31) - 1)}), 3, new=new)
    with pytest.raises(FormatError, match=r"t\.arrow: would take 6\.0 GiB in memory"):
        load(nothing)


def test_arrow_files_with_categories_and_of_the_first_form(tmp_path: Path) -> None:
    words = pa.array(["low", None, "high"] * 100).dictionary_encode()
    path = in_groups(tmp_path / "t.feather", pa.record_batch({"a": words, "b": [1.5] * 300}), 2)
    assert load(path).data.column("a").to_pylist() == words.to_pylist() * 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions of the library say that the form is old
        pyarrow.feather.write_feather(pa.table({"a": [1.5, 2.5]}), tmp_path / "old.feather", version=1)
        assert load(tmp_path / "old.feather").data.column("a").to_pylist() == [1.5, 2.5]


def test_names_that_are_no_text(tmp_path: Path) -> None:
    for ending, write in ((".parquet", pq.write_table), (".feather", pyarrow.feather.write_feather)):
        path = tmp_path / f"t{ending}"
        write(pa.table({"NAMED": [1.5, 2.5]}), str(path))
        path.write_bytes(path.read_bytes().replace(b"NAMED", b"NAM\xff\xff"))
        with pytest.raises(FormatError, match="is damaged or cut short"):
            load(path)


def test_texts_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": ["low", "high"]}), path, compression="none", use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"high", b"h\xff\xffh"))
    with pytest.raises(FormatError, match="is damaged or cut short"):
        load(path)
