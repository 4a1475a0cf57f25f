"""When a folder of Parquet files is one table; folders of table formats such as Delta Lake are refused.

The folder of a table format also holds files of earlier versions, with records that were deleted since. Which files are
current stands in a log beside them, in the format's own terms, so neither the folder nor one of its files can be read.

The rules ask two things of a place, on a disk or at an address: whether a path is a folder, and what is in it.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rankveil.errors import FileError, FormatError, listing
from rankveil.files import registry

if TYPE_CHECKING:
    import pyarrow as pa

ENDING = ".parquet"
HIDDEN = (".", "_")
"""What the names of files begin with that are not read, as `_SUCCESS`, `_metadata` and `.part-0.parquet.crc`."""

_LOGS = {
    "_delta_log": ("Delta Lake", "the deltalake package or Spark"),
    ".hoodie": ("Apache Hudi", "Spark"),
    "_spark_metadata": ("Spark Structured Streaming", "Spark"),
}
"""Folders that make the folder around them a table of a format, and what reads that."""
_ICEBERG = ("Apache Iceberg", "the pyiceberg package or Spark")
_ICEBERG_LOG = re.compile(r".+\.metadata\.json(\.gz)?|version-hint\.text", re.DOTALL)

_OF_RELEASES = (".manifest.json", ".secret.json")
_TEXT = ".txt"
"""An ending of text files that read-me files have too."""
_SCHEME = re.compile(r"\A[A-Za-z][A-Za-z0-9+.-]*://")


class Place(Protocol):
    """What is asked of a disk, or of the place that an address leads to."""

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder."""

    def entries(self, folder: str) -> Mapping[str, bool]:
        """The names in a folder, and whether each is a folder itself."""


class Disk:
    """The file systems of this machine."""

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder."""
        return os.path.isdir(path)

    def entries(self, folder: str) -> Mapping[str, bool]:
        """The names in a folder, and whether each is a folder itself."""
        with os.scandir(folder) as found:
            return {entry.name: entry.is_dir() for entry in found}


DISK = Disk()


class Parts(NamedTuple):
    """The files of a folder that are read as one table, in the order of their names, and what is said of the others."""

    names: tuple[str, ...]
    note: str


def refuse_table_format(path: str, place: Place = DISK) -> None:
    """Refuse the folder of a table format, and whatever lies in one: a folder, or one file that may be out of date."""
    address = _SCHEME.match(path) is not None
    starts = [path.rstrip("/")] if address else dict.fromkeys((os.path.abspath(path), os.path.realpath(path)))
    for start in starts:
        for folder, inside in _upwards(start):
            _refuse_folder(path, folder, inside, place)


def _refuse_folder(path: str, folder: str, inside: str, place: Place) -> None:
    """Refuse `path` when this folder is that of a table format; `inside` is the name in it that leads to the path."""
    for log, (format, reader) in _LOGS.items():
        if _is_folder(place, _joined(folder, log)):
            _fail(path, folder, log, format, reader)
    metadata = _joined(folder, "metadata")
    if inside in ("", "data", "metadata") and _is_folder(place, metadata):
        found = [name for name in place.entries(metadata) if _ICEBERG_LOG.fullmatch(name)]
        if found:
            _fail(path, folder, f"metadata/{min(found)}", *_ICEBERG)


def _is_folder(place: Place, path: str) -> bool:
    """Whether there is a folder; where a place does not tell of those above, the path itself decides."""
    with suppress(FileError, OSError):
        return place.is_folder(path)
    return False


def _fail(told: str, folder: str, log: str, format: str, reader: str) -> None:
    own = folder in (told.rstrip("/"), os.path.abspath(told), os.path.realpath(told))
    where = "is the folder of" if own else f"lies in the folder {folder} of"
    raise FormatError(
        f"{told}: {where} a table in the format {format} ({log}), where files of deleted records and of earlier "
        f"versions lie beside current ones; write its current version as Parquet to another folder with {reader}, and "
        "give that"
    )


def _upwards(path: str) -> Iterator[tuple[str, str]]:
    """A path and the folders above it, each with the name in it that leads back down.

    >>> list(_upwards("s3://bucket/lake/t.parquet"))
    [('s3://bucket/lake/t.parquet', ''), ('s3://bucket/lake', 't.parquet'), ('s3://bucket', 'lake')]
    """
    address, inside = _SCHEME.match(path) is not None, ""
    while not address or _SCHEME.match(path):
        yield path, inside
        above, inside = (posixpath if address else os.path).split(path)
        if above == path:
            return
        path = above


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if _SCHEME.match(folder) else os.path.join(folder, name)


def parts(folder: str, place: Place = DISK) -> Parts:
    """The files of a folder that is one table: of one format, without other folders, and none of them a release."""
    found = place.entries(folder)
    visible = sorted(name for name in found if not name.startswith(HIDDEN))
    names = [name for name in visible if name.lower().endswith(ENDING)]
    if not names:
        raise FormatError(f"{folder}: the folder itself holds no {ENDING} file")
    for name in names:
        if not _SCHEME.match(folder) and os.path.islink(os.path.join(folder, name)):
            refuse_table_format(os.path.join(folder, name))  # which may lie elsewhere
    inside = [name for name in visible if found[name]]
    if inside:
        raise FormatError(f"{folder}: folders inside ({listing(inside)}) are not read; give a folder of files")
    own = os.path.basename(os.path.abspath(folder)) if not _SCHEME.match(folder) else folder.rpartition("/")[2]
    released = [
        name for name in visible if name.endswith(_OF_RELEASES) and name not in [own + each for each in _OF_RELEASES]
    ]
    if released:
        raise FormatError(
            f"{folder}: is not one table: {listing(released)} says that a release lies here, beside {ENDING} files "
            f"({listing(names)}); give the one file that you mean, or a folder with the files of one table alone"
        )
    other = [name for name in visible if name not in names and _is_table(name)]
    if other:
        raise FormatError(
            f"{folder}: is not one table: beside {ENDING} files ({listing(names)}) lie others ({listing(other)}); give "
            "the one file that you mean, or a folder with the files of one table alone"
        )
    rest = sorted(name for name in found if name not in names)
    skipped = f"; not read: {listing(rest)}" if rest else ""
    count = "1 file" if len(names) == 1 else f"{len(names)} files"
    return Parts(tuple(names), f"{own}: {count}, read in the order of their names{skipped}")


def _is_table(name: str) -> bool:
    ending = registry.ending_of(name)
    return ending in registry.formats() and ending != _TEXT


def check_alike(folder: str, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The schema of all files of a folder; they have the same columns of the same types in the same order.

    What is said of columns beside their types may differ: a column may have nulls when it may in one of the files.
    """
    import pyarrow as pa

    first, wanted = next(iter(schemas.items()))
    differing = {name: how for name, schema in schemas.items() if (how := _difference(wanted, schema))}
    if differing:
        said = [f"{name} has {how} than {first}" for name, how in differing.items()]
        raise FormatError(
            f"{folder}: is not one table: {listing(said)}; all files of a folder must have the same columns, in "
            "the same order and of the same types: give the one file that you mean, or a folder with the files of one "
            "table alone"
        )
    nullable = [any(schema.field(at).nullable for schema in schemas.values()) for at in range(len(wanted))]
    return pa.schema([field.with_nullable(may) for field, may in zip(wanted, nullable, strict=True)], wanted.metadata)


def _difference(wanted: pa.Schema, schema: pa.Schema) -> str:
    if wanted.names != schema.names:
        differing = [name for name in wanted.names + schema.names if (name in wanted.names) != (name in schema.names)]
        return f"other columns ({listing(differing)})" if differing else "another order of columns"
    changed = [name for name, a, b in zip(wanted.names, wanted, schema, strict=True) if not a.type.equals(b.type)]
    return f"other types in {listing(changed)}" if changed else ""
