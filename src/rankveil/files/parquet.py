"""Parquet: one file, or a folder of files read in the order of their names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO

from rankveil.errors import FormatError, listing
from rankveil.files import limits
from rankveil.files.dialect import Dialect, Loaded

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ENDINGS = (".parquet",)

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 4}
"""Bytes of a cell in memory, of a text those of its place."""


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
            opened = pq.ParquetFile(file)
            limits.refuse_growth(path, grown=_claimed(opened))
            limits.refuse_growth(path, grown=_repeated(file, opened, least=limits.allowed(file.size())))
            table = opened.read()
            table.validate(full=True)  # a damaged file may otherwise crash whoever uses it
            if table.num_rows != opened.metadata.num_rows:
                raise pa.ArrowInvalid("fewer records than its end says")
            return table
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise FormatError(f"{path}: is not a Parquet file, or is damaged or cut short") from error


def _claimed(opened: pq.ParquetFile) -> int:
    """Bytes that the table takes at least, by what the footer tells: equal values take hardly any room in a file."""
    columns = [opened.schema.column(at) for at in range(len(opened.schema))]
    widths: list[int] = [_WIDTHS.get(column.physical_type) or max(1, column.length) for column in columns]
    groups = [opened.metadata.row_group(number) for number in range(opened.metadata.num_row_groups)]
    rows: int = sum(group.num_rows for group in groups)
    if rows * sum(widths) <= limits.USUAL:
        return rows * sum(widths)
    return sum(
        max(group.num_rows, group.column(at).num_values) * width for group in groups for at, width in enumerate(widths)
    )


def _repeated(file: pa.OSFile, opened: pq.ParquetFile, *, least: int) -> int:
    """Bytes that texts take at most, of columns where it may be more than `least`; a text in many cells is stored once.

    Only what could be too much is looked at: the longest text first, then which texts there are in how many cells.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    texts = _texts(opened)
    groups = opened.metadata.num_row_groups
    share = least // max(1, groups * len(texts))
    coded = pq.ParquetFile(file, read_dictionary=list(texts))
    total = 0
    for group in range(groups):
        about = opened.metadata.row_group(group)
        for name, at in texts.items():
            chunk = about.column(at)
            if not chunk.has_dictionary_page or about.num_rows * chunk.total_uncompressed_size <= share:
                continue
            first = next(coded.iter_batches(batch_size=1, row_groups=[group], columns=[name]), None)
            longest = 0 if first is None else pc.max(pc.binary_length(first.column(0).dictionary)).as_py() or 0
            if about.num_rows * longest > share:
                cells = coded.read_row_group(group, columns=[name]).column(0)
                lengths = (pc.binary_length(part.dictionary).take(part.indices) for part in cells.chunks)
                total += sum(pc.sum(each).as_py() or 0 for each in lengths)
    return total


def _texts(opened: pq.ParquetFile) -> dict[str, int]:
    """The columns of texts or bytes that are not kept as categories, and their places in the file."""
    import pyarrow as pa

    schema, found = opened.schema_arrow, {}
    for at in range(len(opened.schema)):
        column = opened.schema.column(at)
        plain = column.physical_type == "BYTE_ARRAY" and column.path == column.name
        alone = schema.names.count(column.name) == 1
        if plain and alone and not pa.types.is_dictionary(schema.field(column.name).type):
            found[column.name] = at
    return found


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
