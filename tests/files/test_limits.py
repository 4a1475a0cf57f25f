"""Small files that claim to be huge are refused before memory is taken, and what one allows oneself is read."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from rankveil import memory
from rankveil.errors import FormatError
from rankveil.files import limits, load, save
from rankveil.partitions.parquet import survey

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


def repeated(text: str, many: int) -> pa.Array:
    """One text in many cells, stored once."""
    return pa.DictionaryArray.from_arrays(pa.nulls(many, pa.int32()).fill_null(0), pa.array([text]))


def inside(kind: str, cells: pa.Array) -> pa.Array:
    if kind == "list":  # the first is empty
        return pa.ListArray.from_arrays(pa.array([0, *range(len(cells) + 1)], pa.int32()), cells)
    return pa.StructArray.from_arrays([cells], names=["b"]) if kind == "struct" else cells


def bomb(path: Path, kind: str) -> Path:
    """4.4 GB of texts in a few kB."""
    table = pa.table({"a": inside(kind, repeated("x" * 100_000, 44_000))})
    pq.write_table(table, path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 445_000
    return path


@pytest.mark.parametrize("kind", ["plain", "list", "struct"])
def test_texts_are_counted_wherever_they_are_nested(tmp_path: Path, kind: str) -> None:
    path = bomb(tmp_path / "t.parquet", kind)
    with pytest.raises(FormatError, match=r"t\.parquet: would take 4\.1 GiB in memory, .*allow it with .*_GIB=5$"):
        load(path)
    few = pa.table({"a": inside(kind, repeated("x" * 1000, 5))})
    pq.write_table(few, path, store_schema=False)
    assert load(path).data.num_rows == len(few)


_PEAK = """
import re, sys
from rankveil.cli import main
code = main(sys.argv[1:])
print(code, re.search(r"VmHWM:\\s*([0-9]+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak of a process is not told in this way")
def test_a_refused_file_takes_no_memory(tmp_path: Path) -> None:
    """Of 4.4 GB a command takes hardly more than its libraries: in KiB, less than a tenth."""
    path = bomb(tmp_path / "t.parquet", "list")
    out = str(tmp_path / "out.parquet")
    for command in (["inspect", str(path)], ["mask", f"file://{path}", "--method", "rank_swap", "--output", out]):
        done = subprocess.run([sys.executable, "-c", _PEAK, *command], capture_output=True, text=True, check=True)
        code, peak = map(int, done.stdout.split())
        assert code == 2
        assert "t.parquet: would take 4.1 GiB in memory" in done.stderr
        assert peak < 440_000


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY"])
def test_texts_in_other_encodings(tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"a": ["x" * 10_000] * 3000})
    pq.write_table(
        table, path, row_group_size=1000, compression="zstd", use_dictionary=False, column_encoding={"a": encoding}
    )
    monkeypatch.setenv(limits.LARGEST, "0.01")  # 10.7 MB
    with pytest.raises(FormatError, match=r"t\.parquet: would take (29|30) MiB in memory"):
        load(path)
    monkeypatch.setenv(limits.LARGEST, "0.1")
    assert load(path).data.equals(table)


def test_the_files_of_a_folder_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        pq.write_table(pa.table({"a": repeated("x" * 1000, 4000)}), tmp_path / f"{name}.parquet", store_schema=False)
    monkeypatch.setenv(limits.LARGEST, "0.01")
    assert load(tmp_path / "a.parquet").data.num_rows == 4000
    for read in (load, lambda folder: survey(folder).whole()):
        with pytest.raises(FormatError, match=r"would take .* MiB in memory"):
            read(str(tmp_path))


def test_the_memory_that_is_free_is_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = tmp_path / "group"
    group.mkdir()
    (group / "memory.max").write_text(f"{300 << 20}\n")
    (group / "memory.current").write_text("0\n")
    monkeypatch.setattr(memory, "GROUP", str(group))
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": repeated("x" * 1000, 200_000)}), path, store_schema=False)
    said = r"is more than this machine has free for it \(150 MiB\); read fewer .*--cluster local; if .*_GIB=1$"
    with pytest.raises(FormatError, match=said):
        load(path)


def test_a_view_of_a_database_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as made:
        made.execute("CREATE VIEW v AS WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n) SELECT a FROM n")
    monkeypatch.setenv(limits.LARGEST, "0.001")
    with pytest.raises(
        FormatError, match=r"takes more than 1 MiB in memory, .* allow more with RANKVEIL_LARGEST_GIB=1$"
    ):
        load(f"sqlite:///{tmp_path}/t.db?table=v")


def test_texts_of_statistics_packages_are_counted_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyreadstat")
    path = tmp_path / "t.zsav"
    texts = ["x" * 4000, *("y" for _ in range(3000))]
    save(pa.table({"a": texts, "b": [1.5] * len(texts)}), path)
    whole = load(path).data
    monkeypatch.setenv(limits.LARGEST, "0.001")  # 12 MB, if all were as long
    assert load(path).data.equals(whole, check_metadata=True)
    assert whole.column("a").to_pylist() == texts
    save(pa.table({"a": ["x" * 4000] * 3000}), path)
    with pytest.raises(FormatError, match=r"t\.zsav: would take 11 MiB in memory"):
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
