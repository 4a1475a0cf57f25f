"""The cells of an Arrow column as CSV text, a whole column at a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from rankveil.errors import FormatError

if TYPE_CHECKING:
    import pyarrow as pa

    from rankveil.files.dialect import Dialect


def as_text(column: pa.ChunkedArray, *, name: str, decimal: str) -> pa.Array:
    """Each cell as text, missing cells left missing.

    Numbers have the shortest form that reads back as the same number (whole floats have no point: `12`), NaN
    is missing; booleans are `true` and `false`; dates and times are ISO, without a fraction of zeros;
    durations are counts of their unit.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # pyarrow gives this for a column without chunks
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_floating(kind):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, kind), array)
    try:
        text = array.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        raise FormatError(f"column {name}: holds bytes that are no text; write .parquet instead") from error
    except pa.ArrowNotImplementedError as error:
        raise FormatError(f"column {name}: CSV cannot hold type {kind}; write .parquet instead") from error
    if decimal != "." and (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        text = pc.replace_substring(text, ".", decimal)
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        text = pc.replace_substring_regex(text, r"\.0+(Z|[+-]\d{4})?$", r"\1")
    return text


def quoted(text: pa.Array, *, name: str, separator: str, first_row: int) -> pa.Array:
    """Cells in quotes where they need them: a separator, quote or line end inside, a space at an end."""
    import pyarrow as pa
    import pyarrow.compute as pc

    content = _content(text)
    if b"\0" in content:
        row = first_row + pc.index(pc.match_substring(text, "\0"), True).as_py()
        raise FormatError(f"column {name}, row {row}: CSV cannot hold a NUL character; remove it")
    # Looking through the bytes of all cells at once is far cheaper than asking each cell.
    if not any(sign.encode() in content for sign in (separator, '"', "\r", "\n", " ")):
        return text
    needs = pc.match_substring_regex(text, _needs_quotes(separator))
    if not pc.any(needs).as_py():
        return text
    doubled = pc.replace_substring(text, '"', '""') if b'"' in content else text
    mark = pa.scalar('"', pa.large_string())
    nothing = pa.scalar("", pa.large_string())
    return pc.if_else(needs, pc.binary_join_element_wise(mark, doubled, mark, nothing), text)


def quoted_name(name: str, *, separators: tuple[str, ...]) -> str:
    """A column's name for the header, in quotes whenever another separator might be seen in it.

    >>> quoted_name("a", separators=(",", ";")), quoted_name("a;b", separators=(",", ";"))
    ('a', '"a;b"')
    """
    needs = any(sign in name for sign in (*separators, '"', "\r", "\n", "\ufeff")) or name != name.strip(" ")
    return '"' + name.replace('"', '""') + '"' if needs else name


def joined(columns: list[pa.Array], *, dialect: Dialect) -> bytes:
    """The records of some columns as UTF-8, each ended by a line end."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def scalar(text: str) -> pa.Scalar:
        return pa.scalar(text, pa.large_string())

    if len(columns) == 1:
        # A blank line might be skipped by who reads it.
        cells = pc.fill_null(columns[0], "")
        lines = pc.if_else(pc.equal(cells, ""), scalar('""'), cells)
    else:
        lines = pc.binary_join_element_wise(
            *columns, scalar(dialect.separator), null_handling="replace", null_replacement=""
        )
    return _content(pc.binary_join_element_wise(lines, scalar(""), scalar(dialect.newline)))


def _needs_quotes(separator: str) -> str:
    return rf'["\r\n{re.escape(separator)}]|^ | $'


def _content(text: pa.Array) -> bytes:
    """The bytes of all cells, one after the other."""
    _, offsets, values = text.buffers()
    if not len(text) or values is None:
        return b""
    ends = np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1]
    return bytes(values.slice(int(ends[0]), int(ends[-1] - ends[0])))
