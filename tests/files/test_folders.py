"""Folders of table formats are refused with whatever lies in them; a folder is one table by its names and schemas."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil.cli import main
from rankveil.errors import FormatError
from rankveil.files import load, save
from rankveil.partitions.parquet import survey

PEOPLE = pa.table({"AGE": [20.0, 30.0, 40.0, 50.0], "PAY": [1.5, 2.5, 4.5, 3.5]})
DELTA, HUDI, ICEBERG = "Delta Lake (_delta_log)", "Apache Hudi (.hoodie)", "Apache Iceberg (metadata/v1.metadata.json)"


def delta(folder: Path) -> list[Path]:
    """A Delta table of one file, which replaced another when records were deleted; what of it must not be read."""
    (folder / "_delta_log").mkdir(parents=True)
    actions = [
        {"metaData": {"id": "1", "format": {"provider": "parquet"}, "partitionColumns": ["Y"]}},
        {"add": {"path": "Y=1/old.parquet", "partitionValues": {"Y": "1"}}},
        {"remove": {"path": "Y=1/old.parquet", "dataChange": True}},
        {"add": {"path": "new.parquet", "partitionValues": {}}},
    ]
    log = folder / "_delta_log" / "00000000000000000000.json"
    log.write_text("\n".join(map(json.dumps, actions)))
    (folder / "Y=1").mkdir()
    pq.write_table(PEOPLE, folder / "Y=1" / "old.parquet")
    pq.write_table(PEOPLE.slice(0, 2), folder / "new.parquet")
    return [folder, folder / "new.parquet", folder / "Y=1", folder / "Y=1" / "old.parquet"]


def hudi(folder: Path) -> list[Path]:
    """A Hudi table of two versions of one file group."""
    (folder / ".hoodie").mkdir(parents=True)
    (folder / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=people\n")
    for version in ("a_0_1.parquet", "a_0_2.parquet"):
        pq.write_table(PEOPLE, folder / version)
    return [folder, folder / "a_0_1.parquet"]


def iceberg(folder: Path) -> list[Path]:
    """An Iceberg table of one file."""
    (folder / "metadata").mkdir(parents=True)
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps({"format-version": 2, "snapshots": []}))
    (folder / "data").mkdir()
    pq.write_table(PEOPLE, folder / "data" / "old.parquet")
    return [folder, folder / "data", folder / "data" / "old.parquet"]


@pytest.mark.parametrize(("made", "told"), [(delta, DELTA), (hudi, HUDI), (iceberg, ICEBERG)])
def test_every_verb_refuses_a_table_format(
    tmp_path: Path, made: Any, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    inside = made(tmp_path / "lake" / "people")
    plain = tmp_path / "plain.parquet"
    pq.write_table(PEOPLE, plain)
    for path in inside:
        for address in (str(path), f"file://{path}"):
            for command in (
                ["inspect", address],
                ["mask", address, "--method", "rank_swap", "--output", str(tmp_path / "out.parquet")],
                ["audit", str(plain), address],
            ):
                assert main(command) == 2, command
                said = capsys.readouterr().err
                assert f"a table in the format {told}, where files of deleted records" in said, command
                assert "write its current version as Parquet to another folder with" in said
                assert str(tmp_path / "lake" / "people") in said
        with pytest.raises(FormatError, match="a table in the format"):
            rv.audit(path, plain)
        with pytest.raises(FormatError, match="a table in the format"):
            rv.audit(plain, path, cluster="local:2")  # before a worker is started
        with pytest.raises(FormatError, match="a table in the format"):
            survey(str(path))
    assert not (tmp_path / "out.parquet").exists()


def test_links_lead_to_where_a_file_lies(tmp_path: Path) -> None:
    old = delta(tmp_path / "lake")[-1]
    (tmp_path / "one.parquet").symlink_to(old)
    with pytest.raises(FormatError, match=r"one\.parquet: lies in the folder .*lake of a table in the format Delta"):
        load(tmp_path / "one.parquet")
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "a.parquet").symlink_to(old)
    for read in (load, survey):
        with pytest.raises(FormatError, match=r"a\.parquet: lies in the folder .*lake of"):
            read(str(tmp_path / "some"))


def test_an_address_in_an_object_store(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    delta(tmp_path / "people")
    store.put(str(tmp_path / "people"), "/lake-of-tests/people", recursive=True)
    try:
        for inside in ("", "/new.parquet", "/Y=1/old.parquet"):
            with pytest.raises(FormatError, match=r"the format Delta Lake \(_delta_log\)"):
                survey(f"memory://lake-of-tests/people{inside}")
    finally:
        store.rm("/lake-of-tests", recursive=True)


def test_folders_of_ones_own_that_look_similar_are_read(tmp_path: Path) -> None:
    """What describes a study may lie in a folder `metadata`, and beside one file of it."""
    iceberg(tmp_path / "study")
    shutil.rmtree(tmp_path / "study" / "data")
    pq.write_table(PEOPLE, tmp_path / "study" / "people.parquet")
    assert load(tmp_path / "study" / "people.parquet").data.num_rows == 4
    (tmp_path / "study" / "tables").mkdir()
    pq.write_table(PEOPLE, tmp_path / "study" / "tables" / "people.parquet")
    assert load(tmp_path / "study" / "tables").data.num_rows == 4


def test_an_original_and_its_release_are_not_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    pq.write_table(PEOPLE, folder / "people.parquet")
    mask = ["mask", str(folder / "people.parquet"), "--method", "additive_noise", "--output"]
    mask.append(str(folder / "masked.parquet"))
    assert main(mask) == 0
    capsys.readouterr()
    sentence = (
        "is not one table: masked.parquet.manifest.json, masked.parquet.secret.json says that a release lies here, "
        "beside .parquet files (masked.parquet, people.parquet); give the one file that you mean"
    )
    for address in (str(folder), folder.as_uri()):
        assert main(["inspect", address]) == 2
        assert sentence in capsys.readouterr().err
    (folder / "masked.parquet").rename(folder / "kept.parquet")  # a manifest without its release tells as much
    for read in (load, survey):
        with pytest.raises(FormatError, match="says that a release lies here"):
            read(str(folder))


def test_a_release_that_is_a_folder_may_hold_its_own_manifest(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    pq.write_table(PEOPLE, folder / "part-00000.parquet")
    (folder / "release.manifest.json").write_text("{}")
    (tmp_path / "release.manifest.json").write_text("{}")
    for loaded in (load(folder), survey(str(folder))):
        assert loaded.notes == ("release: 1 file, read in the order of their names; not read: release.manifest.json",)


def test_what_is_not_read_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "people"
    folder.mkdir()
    for name in ("a.parquet", "_b.parquet", ".c.parquet"):
        pq.write_table(PEOPLE, folder / name)
    (folder / "_SUCCESS").touch()
    (folder / "README.txt").write_text("people")
    told = "people: 1 file, read in the order of their names; not read: .c.parquet, README.txt, _SUCCESS, _b.parquet"
    for loaded in (load(folder), survey(str(folder)), survey(folder.as_uri())):
        assert loaded.notes == (told,)
    assert load(folder).data.num_rows == len(survey(str(folder))) == 4


@pytest.mark.parametrize("address", [False, True])
def test_other_formats_and_folders_inside(tmp_path: Path, address: bool) -> None:
    folder = tmp_path / "people"
    folder.mkdir()
    pq.write_table(PEOPLE, folder / "a.parquet")
    place = folder.as_uri() if address else str(folder)
    (folder / "more.parquet").mkdir()
    with pytest.raises(FormatError, match=r"folders inside \(more\.parquet\) are not read"):
        survey(place)
    (folder / "more.parquet").rmdir()
    save(PEOPLE, folder / "b.csv")
    with pytest.raises(
        FormatError, match=r"is not one table: beside \.parquet files \(a\.parquet\) lie others \(b\.csv"
    ):
        survey(place)


def test_every_file_that_differs_is_named(tmp_path: Path) -> None:
    pq.write_table(PEOPLE, tmp_path / "a.parquet")
    pq.write_table(PEOPLE.select(["AGE"]), tmp_path / "b.parquet")
    pq.write_table(PEOPLE.select(["PAY", "AGE"]), tmp_path / "c.parquet")
    pq.write_table(PEOPLE.set_column(0, "AGE", pa.array([1, 2, 3, 4])), tmp_path / "d.parquet")
    for place in (str(tmp_path), tmp_path.as_uri()):
        with pytest.raises(FormatError) as caught:
            survey(place)
        assert (
            "is not one table: b.parquet has other columns (PAY) than a.parquet, c.parquet has another order of "
            "columns than a.parquet, d.parquet has other types in AGE than a.parquet; all files"
        ) in str(caught.value)
    with pytest.raises(FormatError, match=r"b\.parquet has other columns .* d\.parquet has other types in AGE"):
        load(tmp_path)


def test_files_may_differ_in_whether_nulls_are_allowed(tmp_path: Path) -> None:
    strict = pa.schema([pa.field("AGE", pa.float64(), nullable=False), pa.field("PAY", pa.float64())], {"of": "first"})
    pq.write_table(PEOPLE.cast(strict), tmp_path / "a.parquet")
    pq.write_table(PEOPLE.set_column(0, "AGE", pa.array([1.5, None, 2.5, 3.5])), tmp_path / "b.parquet")
    for data in (load(tmp_path).data, survey(str(tmp_path)).whole()):
        assert data.column("AGE").to_pylist() == [20.0, 30.0, 40.0, 50.0, 1.5, None, 2.5, 3.5]
        assert data.schema.field("AGE").nullable
