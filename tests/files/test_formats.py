"""Parquet and Arrow keep everything; unknown endings, absent and damaged files and folders get one sentence."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankveil import files
from rankveil.errors import FileError, FormatError
from rankveil.files import load, registry, same_file, save

BINARY = [".parquet", ".feather", ".arrow", ".ipc"]
READ_ONLY = {".sas7bdat", ".xpt"}


def rich_table() -> pa.Table:
    levels = pa.DictionaryArray.from_arrays(
        pa.array([2, 0, None], pa.int8()), pa.array(["low", "unused", "high"]), ordered=True
    )
    table = pa.table(
        {
            "z": pa.array([1, None, 3], pa.int16()),
            "level": levels,
            "x": pa.array([0.1, float("nan"), None]),
            "when": pa.array([datetime.datetime(2024, 1, 2)] * 3, pa.timestamp("us", "Europe/Berlin")),
            "a": pa.array(["é", "", None], pa.large_string()),
            "list": [[1], [], None],
        }
    )
    return table.replace_schema_metadata({"pandas": '{"index_columns": []}', "mine": "kept"})


@pytest.mark.parametrize("ending", BINARY)
def test_types_order_categories_and_metadata_are_kept(tmp_path: Path, ending: str) -> None:
    table = rich_table()
    save(table, tmp_path / f"t{ending}")
    loaded = load(tmp_path / f"t{ending}")
    assert loaded.dialect is None
    assert loaded.data.schema.equals(table.schema, check_metadata=True)
    assert str(loaded.data.to_pydict()) == str(table.to_pydict())  # as text: NaN is not equal to itself
    assert loaded.data["level"].chunk(0).dictionary.to_pylist() == ["low", "unused", "high"]


def test_a_pandas_frame_comes_back_through_its_metadata(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    levels = pd.Categorical(["b", "a"], categories=["c", "b", "a"], ordered=True)
    frame = pd.DataFrame({"level": levels, "x": [1.5, 2.5]}, index=pd.Index(["r", "s"], name="row"))
    for ending in (".parquet", ".feather"):
        save(pa.Table.from_pandas(frame), tmp_path / f"t{ending}")
        pd.testing.assert_frame_equal(load(tmp_path / f"t{ending}").data.to_pandas(), frame)


def test_chunks_with_other_dictionaries(tmp_path: Path) -> None:
    column = pa.chunked_array([pa.array(["a", "b"]).dictionary_encode(), pa.array(["c"]).dictionary_encode()])
    for ending in (".parquet", ".feather", ".csv"):
        save(pa.table({"a": column}), tmp_path / f"t{ending}")
        assert load(tmp_path / f"t{ending}").data.to_pydict() == {"a": ["a", "b", "c"]}


def test_the_stream_form_of_arrow_is_read(tmp_path: Path) -> None:
    table = rich_table()
    with pa.ipc.new_stream(tmp_path / "t.arrow", table.schema) as stream:
        stream.write_table(table)
    assert load(tmp_path / "t.arrow").data.schema.equals(table.schema, check_metadata=True)


@pytest.mark.parametrize("ending", BINARY)
@pytest.mark.parametrize("keep", [0, 3, 0.5, -1])
def test_damaged_files_get_one_sentence(tmp_path: Path, ending: str, keep: float) -> None:
    path = tmp_path / f"t{ending}"
    save(rich_table(), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if keep == 0.5 else int(keep)])
    with pytest.raises(FormatError, match=r"damaged or cut short$") as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("ending", BINARY)
def test_text_under_a_binary_ending(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t{ending}"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(FormatError, match="damaged or cut short"):
        load(path)


def test_a_folder_of_parquet_files_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    for name, value in {"part-2.parquet": 2, "part-1.parquet": 1, "_metadata": 9, "notes.txt": 8}.items():
        pq.write_table(pa.table({"a": [value]}), tmp_path / name)
    loaded = load(tmp_path)
    assert loaded.data.to_pydict() == {"a": [1, 2]}
    assert "2 files" in loaded.notes[0]


def test_key_value_folders_on_the_way_add_no_columns(tmp_path: Path) -> None:
    folder = tmp_path / "year=2024"
    folder.mkdir()
    save(pa.table({"a": [1]}), folder / "t.parquet")
    assert load(folder / "t.parquet").data.column_names == ["a"]
    assert load(folder).data.column_names == ["a"]


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        ({"a": [1]}, r"b.parquet has other columns \(b\) than a.parquet"),
        ({"b": [1], "a": [1]}, "another order of columns"),
        ({"a": [1], "b": ["x"]}, "other types in b than"),
    ],
)
def test_folders_whose_files_differ(tmp_path: Path, second: dict[str, list[object]], sentence: str) -> None:
    save(pa.table({"a": [1], "b": [2]}), tmp_path / "a.parquet")
    save(pa.table(second), tmp_path / "b.parquet")
    with pytest.raises(FormatError, match=sentence):
        load(tmp_path)


def test_folders_without_files_and_with_folders(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"holds no \.parquet file"):
        load(tmp_path)
    save(pa.table({"a": [1]}), tmp_path / "a.parquet")
    (tmp_path / "more").mkdir()
    with pytest.raises(FormatError, match=r"folders inside \(more\) are not read"):
        load(tmp_path)
    (tmp_path / "t.feather").mkdir()
    with pytest.raises(FileError, match="is a folder"):
        load(tmp_path / "t.feather")


def test_names_that_stand_twice(tmp_path: Path) -> None:
    save(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "t.feather")
    with pytest.raises(FormatError, match="several columns are named a"):
        load(tmp_path / "t.feather")


@pytest.mark.parametrize("name", ["t.ods", "t.rds", "t.xlsx.bak", "t", "mysql://host/db?table=t"])
def test_formats_that_are_not_there(name: str) -> None:
    known = ", ".join(sorted(registry.formats()))
    with pytest.raises(FormatError, match=r"; use one of ") as caught:
        load(name)
    assert str(caught.value).endswith(f"; use one of {known}")
    with pytest.raises(FormatError, match=r"cannot be written|says no format"):
        save(pa.table({"a": [1]}), name)


def test_the_formats_that_are_there() -> None:
    text, binary = {".csv", ".tsv", ".txt"}, set(BINARY)
    packages, databases = {".xlsx", ".dta", ".sav", ".zsav"}, {"sqlite://", "duckdb://", "postgresql://", "postgres://"}
    assert set(registry.formats()) == text | binary | packages | databases | READ_ONLY


@pytest.mark.parametrize("ending", sorted(READ_ONLY))
def test_formats_that_are_only_read(tmp_path: Path, ending: str) -> None:
    with pytest.raises(FormatError, match=rf"the format \{ending} cannot be written; use one of ") as caught:
        save(pa.table({"a": [1]}), tmp_path / f"t{ending}")
    able = str(caught.value).partition("use one of ")[2].split(", ")
    assert set(able) == set(registry.formats()) - READ_ONLY
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", sorted(ending for ending in registry.formats() if ending.startswith(".")))
def test_files_that_are_not_there(tmp_path: Path, ending: str) -> None:
    with pytest.raises(FileError, match=r"t\.\w+: there is no such file$"):
        load(tmp_path / f"t{ending}")


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_databases_that_are_not_there(tmp_path: Path, scheme: str) -> None:
    pytest.importorskip("sqlite3" if scheme == "sqlite" else scheme)
    address = f"{scheme}:///{tmp_path}/t.db?table=t"
    with pytest.raises(FileError) as caught:
        load(address)
    assert str(caught.value) == f"{address}: there is no such file"
    assert list(tmp_path.iterdir()) == []  # looking for a database makes none


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("postgresql://me:sesame@127.0.0.1:1/db?table=t", "postgresql://me:***@127.0.0.1:1/db?table=t: there is no "),
        ("postgresql://me:sesame@127.0.0.1:1/db", "postgresql://me:***@127.0.0.1:1/db: names no table"),
        ("postgresql://me:open/sesame@127.0.0.1:1/db?table=t", "postgresql://...: is not an address of a table"),
        ("mysql://me:sesame@host/db?table=t", "mysql://: the format mysql:// cannot be "),
    ],
)
def test_a_password_in_an_address_is_not_repeated(address: str, told: str) -> None:
    pytest.importorskip("psycopg")
    for deed in (load, lambda url: save(pa.table({"a": [1]}), url)):
        with pytest.raises(FileError) as caught:
            deed(address)
        assert str(caught.value).startswith(told)
        assert "sesame" not in str(caught.value)


def test_endings_in_capitals(tmp_path: Path) -> None:
    save(pa.table({"a": ["1"]}), tmp_path / "T.CSV")
    assert load(tmp_path / "T.CSV").data.to_pydict() == {"a": ["1"]}


def test_same_file(tmp_path: Path) -> None:
    original, copy = tmp_path / "a.csv", tmp_path / "b.csv"
    original.write_text("a\n")
    copy.write_text("a\n")
    (tmp_path / "soft.csv").symlink_to(original)
    os.link(original, tmp_path / "hard.csv")
    assert same_file(original, tmp_path / "soft.csv")
    assert same_file(original, tmp_path / "hard.csv")
    assert same_file(tmp_path / "new.csv", tmp_path / "x" / ".." / "new.csv")
    assert not same_file(original, copy)
    assert not same_file(original, tmp_path / "new.csv")
    assert same_file(tmp_path, tmp_path / "release.parquet")
    assert not same_file(tmp_path, tmp_path / "release.csv")


def test_the_public_names_are_sorted_and_there() -> None:
    assert files.__all__ == sorted(files.__all__)
    assert all(hasattr(files, name) for name in files.__all__)
