"""Parquet: one file, or a folder of files read in the order of their names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO

from rankveil.errors import FormatError, listing
from rankveil.files.dialect import Dialect, Loaded

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".parquet",)


def load(path: str, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None) -> Loaded:
    """The table with its types, categories and metadata."""
    if not os.path.isdir(path):
        return Loaded(_one(path))
    names = _parts(path)
    tables = [_one(os.path.join(path, name)) for name in names]
    for name, table in zip(names, tables, strict=True):
        _check_alike(path, names[0], tables[0].schema, name, table.schema)
    note = f"{path}: {len(names)} files, read in the order of their names"
    return Loaded(_stack(tables), notes=(note,))


def save(data: pa.Table, handle: BinaryIO, *, ending: str = ".parquet", dialect: Dialect | None = None) -> None:
    """The table with its types, categories and metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # The standard's names for the inside of lists would change the type of a table that has others.
        pq.write_table(data, handle, use_compliant_nested_type=False)
    except pa.ArrowNotImplementedError as error:
        raise FormatError(f"Parquet cannot hold a type of this table ({error})") from error


def _one(path: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pa.OSFile(path) as file:
        try:
            return pq.ParquetFile(file).read()
        except (pa.ArrowException, OSError) as error:
            raise FormatError(f"{path}: is not a Parquet file, or is damaged or cut short") from error


def _parts(folder: str) -> list[str]:
    names = sorted(name for name in os.listdir(folder) if not name.startswith((".", "_")))
    parts = [name for name in names if name.lower().endswith(ENDINGS)]
    if not parts:
        raise FormatError(f"{folder}: the folder itself holds no .parquet file")
    below = [name for name in names if os.path.isdir(os.path.join(folder, name))]
    if below:
        raise FormatError(f"{folder}: folders inside ({listing(below)}) are not read; give a folder of files")
    return parts


def _check_alike(folder: str, first: str, wanted: pa.Schema, name: str, schema: pa.Schema) -> None:
    if wanted.equals(schema):
        return
    if wanted.names != schema.names:
        differing = [c for c in wanted.names + schema.names if (c in wanted.names) != (c in schema.names)]
        what = f"other columns ({listing(differing)})" if differing else "another order of columns"
    else:
        changed = [c for c, a, b in zip(wanted.names, wanted, schema, strict=True) if not a.equals(b)]
        what = f"other types in {listing(changed)}"
    raise FormatError(f"{folder}: {name} has {what} than {first}; all files of a folder must have the same")


def _stack(tables: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(tables).unify_dictionaries()
