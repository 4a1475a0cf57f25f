"""Feather and Arrow: the table as pyarrow holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from rankveil.errors import FormatError
from rankveil.files.dialect import Dialect, Loaded

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".feather", ".arrow", ".ipc")


def load(path: str, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None) -> Loaded:
    """The table with its types, categories and metadata, from the file form or the stream form of Arrow."""
    import pyarrow as pa
    import pyarrow.feather

    with pa.OSFile(path) as file:
        start = file.read(6)
        file.seek(0)
        try:
            if start.startswith((b"ARROW1", b"FEA1")):
                table = pyarrow.feather.read_table(file, memory_map=False)
            else:
                table = pa.ipc.open_stream(file).read_all()
            table.validate(full=True)  # a damaged file may otherwise crash whoever uses it
        except (pa.ArrowException, OSError) as error:
            raise FormatError(f"{path}: is no Feather or Arrow file, or is damaged or cut short") from error
    return Loaded(table)


def save(data: pa.Table, handle: BinaryIO, *, ending: str = ".feather", dialect: Dialect | None = None) -> None:
    """The table with its types, categories and metadata, in the file form of Arrow."""
    import pyarrow as pa

    # The file form holds one dictionary per column, a table in memory may have one per chunk.
    options = pa.ipc.IpcWriteOptions(compression="lz4", unify_dictionaries=True)
    with pa.ipc.new_file(handle, data.schema, options=options) as target:
        target.write_table(data)
