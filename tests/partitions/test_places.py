"""Parquet folders on disks and at addresses are read alike, and files are written whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankveil.errors import FileError, FormatError, ParameterError
from rankveil.partitions import places
from rankveil.partitions.parquet import survey

pytest.importorskip("fsspec")


@pytest.fixture(params=["disk", "file", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A folder on a disk, the same by its address, or one that is nowhere but in memory."""
    address = f"memory://{uuid.uuid4().hex}/table"
    yield {"disk": str(tmp_path / "table"), "file": (tmp_path / "table").as_uri(), "memory": address}[request.param]
    if request.param == "memory":
        import fsspec

        fsspec.filesystem("memory").rm(places.joined(address, "..").rsplit("/", 2)[0], recursive=True)


def write(folder: str, *tables: pa.Table) -> None:
    places.make_folder(folder)
    for k, table in enumerate(tables):
        with places.open_output(places.joined(folder, f"part-{k}.parquet")) as file:
            pq.write_table(table, file, row_group_size=4)


def parts() -> list[pa.Table]:
    return [pa.table({"A": np.arange(start, start + 10.0), "B": np.arange(start, start + 10)}) for start in (0, 10, 20)]


def test_a_folder_is_read_wherever_it_lies(folder: str) -> None:
    write(folder, *parts())
    with places.open_output(places.joined(folder, "_SUCCESS")) as file:
        file.write(b"")
    source = survey(folder)
    assert len(source) == 30
    assert [file.path for file in source.files] == [places.joined(folder, f"part-{k}.parquet") for k in range(3)]
    assert source.read(["B", "A"], 7, 23)[0].tolist() == list(range(7, 23))
    assert len(survey(places.joined(folder, "part-1.parquet"))) == 10
    assert places.absolute(f"{folder}/") == folder
    assert places.exists(folder)
    assert not places.exists(places.joined(folder, "part-9.parquet"))


def test_what_is_wrong_with_files_is_said_wherever_they_lie(folder: str) -> None:
    write(folder, *parts())
    damaged = places.joined(folder, "part-1.parquet")
    with places.open_output(damaged) as file:
        file.write(b"PAR1 and no more")
    with pytest.raises(FormatError, match=r"part-1\.parquet: is not a Parquet file, or is damaged"):
        survey(folder)
    for k in range(3):
        places.remove(places.joined(folder, f"part-{k}.parquet"))
    places.remove(damaged)  # gone already
    with places.open_output(places.joined(folder, "note.txt")) as file:
        file.write("Ä".encode("latin-1"))
    with pytest.raises(FormatError, match=r"holds no \.parquet file"):
        survey(folder)
    with pytest.raises(FileError, match="not UTF-8"):
        places.read_text(places.joined(folder, "note.txt"))


def test_a_file_is_whole_or_not_there(folder: str) -> None:
    write(folder, *parts()[:1])
    target = places.joined(folder, "part-0.parquet")
    before = survey(folder)
    for error in (KeyboardInterrupt, ValueError):

        def half(error: type[BaseException] = error) -> None:
            with places.open_output(target) as file:
                file.write(b"half of")
                raise error

        with pytest.raises(error):
            half()
    assert survey(folder) == before
    if not places.is_address(folder):
        assert os.listdir(folder) == ["part-0.parquet"]
        umask = os.umask(0)
        os.umask(umask)
        assert os.stat(target).st_mode & 0o777 == 0o644 & ~umask


def test_a_file_that_changes_has_another_stamp(folder: str) -> None:
    write(folder, *parts()[:2])
    first, second = (places.joined(folder, f"part-{k}.parquet") for k in range(2))
    known = places.stamp(first), places.stamp(second)
    with places.open_output(first) as file:
        pq.write_table(pa.table({"A": [1.0]}), file)
    assert places.stamp(first) != known[0]
    assert places.stamp(second) == known[1]


def test_what_a_place_needs_is_named() -> None:
    try:
        import gcsfs  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        with pytest.raises(ParameterError, match="needs a package that is not installed: pip install gcsfs"):
            survey("gs://bucket/table")
    assert not places.is_address("nowhere://bucket/table")


def test_an_output_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "a.parquet", (tmp_path / "missing" / "b.parquet").as_uri()):

        def write_there(path: object = path) -> None:
            with places.open_output(str(path)) as file:
                file.write(b"")

        with pytest.raises(FileError, match=r"missing.*cannot be written: no such file or directory"):
            write_there()
    assert list(tmp_path.iterdir()) == []
