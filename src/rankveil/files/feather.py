"""Feather and Arrow: the table as pyarrow holds it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

from rankveil.errors import FormatError
from rankveil.files import feather_claims, limits
from rankveil.files.dialect import Dialect, Loaded

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".feather", ".arrow", ".ipc")

_MAGIC = b"ARROW1"
_FIRST_MAGIC = b"FEA1"  # of the first version of Feather, in which nothing is packed
_BEFORE = 8


def load(path: str, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None) -> Loaded:
    """The table with its types, categories and metadata, from the file form or the stream form of Arrow."""
    import pyarrow as pa
    import pyarrow.feather

    with pa.OSFile(path) as file:
        start = file.read(len(_MAGIC))
        file.seek(0)
        try:
            if not start.startswith(_FIRST_MAGIC):
                limits.refuse_growth(path, grown=_claimed(file, whole=start == _MAGIC))
                file.seek(0)
            if start.startswith((_MAGIC, _FIRST_MAGIC)):
                table = pyarrow.feather.read_table(file, memory_map=False)
            else:
                table = pa.ipc.open_stream(file).read_all()
            table.validate(full=True)  # a damaged file may otherwise crash whoever uses it
            _ = table.column_names  # which must be text
        except MemoryError:  # which pyarrow has one of its own kind of
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError, struct.error) as error:
            raise FormatError(f"{path}: is no Feather or Arrow file, or is damaged or cut short") from error
    return Loaded(table)


def _claimed(file: pa.OSFile, *, whole: bool) -> int:
    """Bytes that the table takes, as its messages tell; those of the file form stand behind its first eight bytes."""
    import pyarrow as pa

    file.seek(_BEFORE if whole else 0)
    return sum(feather_claims.unpacked(message) for message in pa.ipc.MessageReader.open_stream(file))


def save(data: pa.Table, handle: BinaryIO, *, ending: str = ".feather", dialect: Dialect | None = None) -> None:
    """The table with its types, categories and metadata, in the file form of Arrow."""
    import pyarrow as pa

    # The file form holds one dictionary per column, a table in memory may have one per chunk.
    options = pa.ipc.IpcWriteOptions(compression="lz4", unify_dictionaries=True)
    with pa.ipc.new_file(handle, data.schema, options=options) as target:
        target.write_table(data)
