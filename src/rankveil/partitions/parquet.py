"""Parquet folders of any size: what their footers say, and ranges of rows read as columns of cells or of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import FormatError, PairError, TableError, suggestion
from rankveil.files import check_names, folders, limits, parquet
from rankveil.files.parquet_claims import Claims
from rankveil.partitions import places

if TYPE_CHECKING:
    import pyarrow as pa

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class File:
    """A file of a folder and how many rows its row groups have."""

    path: str
    groups: tuple[int, ...]

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(self.groups)


@dataclass(frozen=True)
class Source:
    """A Parquet file, or a folder of files in the order of their names, known by the footers alone."""

    path: str
    files: tuple[File, ...]
    names: tuple[str, ...]
    """The columns."""
    gaps: frozenset[str]
    """Columns that have nulls, or may have by what the footers say; of NaN they say nothing."""
    schema: pa.Schema | None = None
    """The types of the columns, and what is said of them."""
    notes: tuple[str, ...] = ()
    """Which files of a folder are read, and which are not."""

    def __len__(self) -> int:
        return sum(file.rows for file in self.files)

    def bounds(self, *, rows: int) -> tuple[int, ...]:
        """Where partitions of about `rows` rows begin, and where the last one ends.

        Row groups are read whole, so they stay whole: a partition has one or more of them, or many rows.
        """
        sizes = [group for file in self.files for group in file.groups]
        found, end = [0], 0
        for size in sizes:
            if found[-1] < end and end + size - found[-1] > rows:
                found.append(end)
            end += size
        return tuple(found) if end == found[-1] else (*found, end)

    def rows(self, start: int, stop: int) -> Rows:
        """The rows of the table that stand from start to before stop: here the same."""
        return np.arange(start, stop, dtype=np.int64)

    def cells(self, columns: Sequence[str], start: int, stop: int) -> list[pa.Array]:
        """The cells of some columns in the rows from start to before stop, as they are stored."""
        parts = self._parts(columns, start, stop)
        return [_in_one([chunk for _, part in parts for chunk in part.column(name).chunks]) for name in columns]

    def read(self, columns: Sequence[str], start: int, stop: int) -> list[Array]:
        """The numbers of some columns in the rows from start to before stop; missing ones are NaN."""
        parts = self._parts(columns, start, stop)
        found = [[_numbers(part.column(name), path, name) for path, part in parts] for name in columns]
        return [each[0] if len(each) == 1 else np.concatenate([*each, np.empty(0)]) for each in found]

    def whole(self) -> pa.Table:
        """The table in memory, where it must fit."""
        return parquet.read(self.path, {file.path: file.path for file in self.files}, opened=places.opened_file)

    def _parts(self, columns: Sequence[str], start: int, stop: int) -> list[tuple[str, pa.Table]]:
        """Some columns of the rows from start to before stop, file by file."""
        parts, first = [], 0
        for file in self.files:
            begin, end = max(start - first, 0), min(stop - first, file.rows)
            if begin < end:
                parts.append((file.path, _rows(file, columns, begin, end)))
            first += file.rows
        return parts


class Readable(Protocol):
    """Records in order, read as columns of numbers: a table, or some records of one."""

    @property
    def path(self) -> str:
        """Where the table lies, for messages."""

    def __len__(self) -> int: ...

    def read(self, columns: Sequence[str], start: int, stop: int) -> list[Array]:
        """The numbers of some columns in the records from start to before stop; missing ones are NaN."""

    def rows(self, start: int, stop: int) -> Rows:
        """The rows of the table, in order, that these records stand in."""


def survey(path: str) -> Source:
    """Read the footers of a file or of all files of a folder, which must be alike."""
    folders.refuse_table_format(path, places)
    found = folders.parts(path, places) if places.is_folder(path) else None
    paths = [path] if found is None else [places.joined(path, name) for name in found.names]
    footers = [_footer(each) for each in paths]
    check_names(footers[0][0].names, paths[0])
    names = [path] if found is None else found.names
    schema = folders.check_alike(path, dict(zip(names, (schema for schema, _ in footers), strict=True)))
    files, gaps = [], set()
    for each, (own, metadata) in zip(paths, footers, strict=True):
        groups = tuple(metadata.row_group(k).num_rows for k in range(metadata.num_row_groups))
        files.append(File(each, groups))
        gaps |= {name for name in own.names if name not in gaps and _may_have_gaps(metadata, own, name)}
    return Source(path, tuple(files), tuple(schema.names), frozenset(gaps), schema, (found.note,) if found else ())


def check_aligned(original: Source, masked: Source, columns: Sequence[str]) -> None:
    """Refuse two tables that cannot be compared row by row in these columns."""
    for source in (original, masked):
        for name in columns:
            if name not in source.names:
                raise TableError(f"{source.path} has no column {name}{suggestion(name, source.names)}")
    if len(original) != len(masked):
        raise PairError(
            f"{original.path} has {len(original)} records and {masked.path} {len(masked)}: "
            "rows that correspond must be as many"
        )


@contextmanager
def _said_of(path: str) -> Iterator[None]:
    """Name the file that cannot be read."""
    import pyarrow as pa

    try:
        yield
    except MemoryError:  # which pyarrow has one of its own kind of
        raise
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"{path}: is not a Parquet file, or is damaged or cut short") from error


def _footer(path: str) -> tuple[pa.Schema, Any]:
    import pyarrow.parquet as pq

    with _said_of(path), places.opened(path) as source, pq.ParquetFile(source) as file:
        return file.schema_arrow, file.metadata


def _may_have_gaps(metadata: Any, schema: pa.Schema, name: str) -> bool:
    """Whether a column of a file has missing cells: nulls, by the footer; a NaN is not counted there."""
    import pyarrow as pa

    column = schema.get_field_index(name)
    if metadata.num_columns != len(schema.names) or pa.types.is_nested(schema.field(column).type):
        return True
    for k in range(metadata.num_row_groups):
        if metadata.row_group(k).num_rows == 0:
            continue
        known = metadata.row_group(k).column(column).statistics
        if known is None or not known.has_null_count or known.null_count:
            return True
    return False


def _rows(file: File, columns: Sequence[str], start: int, stop: int) -> pa.Table:
    """Some columns of some rows of a file: only the row groups that hold them are read."""
    import pyarrow.parquet as pq

    ends = np.cumsum(file.groups)
    first, last = np.searchsorted(ends, [start, stop - 1], side="right")
    before = int(ends[first] - file.groups[first])
    with _said_of(file.path), places.opened(file.path) as source, pq.ParquetFile(source) as opened:
        groups = list(range(int(first), int(last) + 1))
        size, claims = parquet.size_of(source), Claims(source, opened, groups=groups, columns=columns)
        limits.refuse_growth(file.path, grown=claims.least(), size=size)
        limits.refuse_growth(file.path, grown=claims.texts(most=limits.allowed(size)), size=size)
        table = opened.read_row_groups(groups, columns=list(columns), use_threads=False)
    return table.slice(start - before, stop - start)


def _in_one(chunks: Sequence[pa.Array]) -> pa.Array:
    """Pieces of a column in one; those of categories may have been written with categories of their own."""
    import pyarrow as pa

    whole = pa.chunked_array(chunks).unify_dictionaries()
    return whole.combine_chunks() if whole.num_chunks != 1 else whole.chunk(0)


def _numbers(column: Any, path: str, name: str) -> Array:
    import pyarrow as pa

    kind = column.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise TableError(f"{path}: column {name} holds {kind}, not numbers; leave it out")
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    found: Array = np.asarray(column.to_numpy(), np.float64)
    return found
