"""Parquet: one file, or a folder of files read in the order of their names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from rankveil.errors import FormatError
from rankveil.files import folders, limits
from rankveil.files.dialect import Dialect, Loaded
from rankveil.files.parquet_claims import Claims

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ENDINGS = (".parquet",)


def load(path: str, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None) -> Loaded:
    """The table with its types, categories and metadata."""
    import pyarrow as pa

    folders.refuse_table_format(path)
    if not os.path.isdir(path):
        return Loaded(read(path, {path: path}, opened=pa.OSFile))
    found = folders.parts(path)
    data = read(path, {name: os.path.join(path, name) for name in found.names}, opened=pa.OSFile)
    return Loaded(data, notes=(found.note,))


def save(data: pa.Table, handle: BinaryIO, *, ending: str = ".parquet", dialect: Dialect | None = None) -> None:
    """The table with its types, categories and metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # The standard's names for the inside of lists would change the type of a table that has others.
        pq.write_table(data, handle, use_compliant_nested_type=False)
    except pa.ArrowNotImplementedError as error:
        raise FormatError(f"Parquet cannot hold a type of this table ({error})") from error


def read(table: str, paths: Mapping[str, str], *, opened: Callable[[str], AbstractContextManager[Any]]) -> pa.Table:
    """Files of one schema as one table, by their names; `opened` opens one of them.

    What their footers tell is added up before anything is read, and what they take is while they are.
    """
    import pyarrow as pa

    schemas, size, claimed = {}, 0, 0
    for name, path in paths.items():
        with _said_of(path), opened(path) as file:
            size += size_of(file)
            footer = _footer(file)
            schemas[name] = footer.schema_arrow
            claimed += Claims(file, footer).least()
        limits.refuse_growth(table, grown=claimed, size=size)
    schema = folders.check_alike(table, schemas)
    tables: list[pa.Table] = []
    for path in paths.values():
        taken = sum(each.nbytes for each in tables)
        with _said_of(path), opened(path) as file:
            footer = _footer(file)
            texts = Claims(file, footer).texts(most=limits.allowed(size))
            limits.refuse_growth(table, grown=taken + texts, size=size)
            tables.append(_whole(footer, schema))
    limits.refuse_growth(table, grown=sum(each.nbytes for each in tables), size=size)
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).unify_dictionaries()


def size_of(file: Any) -> int:
    """Bytes of an open file, or of the one at a path."""
    if isinstance(file, str):
        return os.stat(file).st_size
    file.seek(0, os.SEEK_END)
    return int(file.tell())


def _footer(file: Any) -> pq.ParquetFile:
    import pyarrow.parquet as pq

    file.seek(0)
    return pq.ParquetFile(file)


def _whole(footer: pq.ParquetFile, schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    table = footer.read()
    table.validate(full=True)  # a damaged file may otherwise crash whoever uses it
    if table.num_rows != footer.metadata.num_rows:
        raise pa.ArrowInvalid("fewer records than its end says")
    return table if table.schema.equals(schema) else table.cast(schema)


@contextmanager
def _said_of(path: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except MemoryError:  # which pyarrow has one of its own kind of
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: is not a Parquet file, or is damaged or cut short") from error
