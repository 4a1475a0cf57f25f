"""The cells of a PostgreSQL table as the text of COPY, a whole column at a time in both directions."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankveil.errors import FormatError
from rankveil.files import databases, limits
from rankveil.files.databases import Address

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa

_BLOCK = 1 << 22
_TEXTS = ("text", "varchar", "bpchar", "name", "char")
_TEXTS_AT_FIRST = ("numeric", "bytea")
"""Types that Arrow cannot read at once; their cells are never empty, so they need no quotes."""
_ESCAPES = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


@dataclass(frozen=True)
class Reading:
    """How the columns of a table are read: the types of the server, and those of Arrow."""

    kinds: dict[str, str]
    digits: dict[str, tuple[int, int]]
    """Digits in all and after the point, of decimal columns that were declared with them."""

    @classmethod
    def of(cls, connection: psycopg.Connection[Any], cursor: psycopg.Cursor[Any]) -> Reading:
        """For what a query would give; a domain counts as the type under it."""
        columns = cursor.description or []
        if not columns:
            raise FormatError("the table has no columns")
        codes = [column.type_code for column in columns]
        rows = connection.execute("SELECT oid::bigint, typname FROM pg_type WHERE oid = ANY (%s::oid[])", [codes])
        names = dict(rows.fetchall())
        digits = {
            column.name: (column.precision, column.scale)
            for column in columns
            if column.precision is not None and column.scale is not None and column.scale <= column.precision
        }
        return cls({column.name: names[column.type_code] for column in columns}, digits)

    @property
    def quoted(self) -> list[str]:
        """The columns in which an empty text is not a missing cell."""
        plain = (*_arrow_types(), *_TEXTS_AT_FIRST)
        return [name for name, kind in self.kinds.items() if kind not in plain]

    def parsed(self, address: Address, copy: psycopg.Copy) -> pa.Table:
        """The table from the CSV text that the server sends, block by block."""
        import pyarrow as pa
        import pyarrow.csv as pacsv

        known = _arrow_types()
        schema = pa.schema([(name, known.get(kind, pa.string())) for name, kind in self.kinds.items()])
        convert = pacsv.ConvertOptions(
            column_types=schema,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        )
        parse = pacsv.ParseOptions(newlines_in_values=bool(self.quoted), ignore_empty_lines=False)
        parts, intake = [schema.empty_table()], limits.Intake(address.shown)
        for block in _blocks(copy):
            intake.add(len(block))
            read = pacsv.ReadOptions(column_names=schema.names, block_size=len(block) + 1)
            try:
                parts.append(
                    pacsv.read_csv(
                        pa.BufferReader(block), read_options=read, parse_options=parse, convert_options=convert
                    )
                )
            except pa.ArrowInvalid as error:
                raise self._unreadable(address, str(error)) from None
        return pa.concat_tables(parts)

    def finished(self, address: Address, data: pa.Table) -> tuple[pa.Table, list[str]]:
        """The table with its final types, and what must be said of them."""
        known = (*_arrow_types(), *_TEXTS, *_TEXTS_AT_FIRST)
        others = [(name, kind) for name, kind in self.kinds.items() if kind not in known]
        notes = databases.as_text_note(
            address, (f"{name} ({kind[1:] + '[]' if kind.startswith('_') else kind})" for name, kind in others)
        )
        for place, (name, kind) in enumerate(self.kinds.items()):
            if kind == "bytea":
                data = data.set_column(place, name, _from_hex(data.column(place)))
            elif kind == "numeric":
                numbers, note = databases.as_numbers(data.column(place), digits=self.digits.get(name))
                data = data.set_column(place, name, numbers)
                notes += [f"{address.shown}: column {name} {note}"] if note else []
        return data, notes

    def _unreadable(self, address: Address, reason: str) -> FormatError:
        """The error for a cell that Arrow cannot hold; Arrow's own text would show the cell."""
        found = re.search(r"In CSV column #(\d+)", reason)
        if found is None:
            return FormatError(f"{address.shown}: cannot be read: the server sent something that is no table")
        name = list(self.kinds)[int(found[1])]
        if "UTF8" in reason:
            return FormatError(f"{address.shown}: column {name}: a text is not UTF-8; convert it in the database")
        if self.kinds[name] in ("date", "timestamp", "timestamptz"):
            return databases.infinite_dates(address, name)
        return FormatError(f"{address.shown}: column {name}: a cell of type {self.kinds[name]} cannot be read")


def type_of(name: str, kind: pa.DataType) -> str:
    """The server's type for an Arrow type, as the server itself writes it.

    >>> import pyarrow as pa
    >>> type_of("a", pa.uint64()), type_of("a", pa.decimal128(10, 2)), type_of("a", pa.timestamp("s", "UTC"))
    ('numeric(20,0)', 'numeric(10,2)', 'timestamp with time zone')
    """
    import pyarrow as pa

    types = pa.types
    if types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})" if 0 <= kind.scale <= kind.precision else "numeric"
    if types.is_timestamp(kind):
        return "timestamp with time zone" if kind.tz else "timestamp without time zone"
    for tests, made in (
        ((types.is_boolean,), "boolean"),
        ((types.is_int8, types.is_uint8, types.is_int16), "smallint"),
        ((types.is_uint16, types.is_int32), "integer"),
        ((types.is_uint32, types.is_int64), "bigint"),
        ((types.is_uint64,), "numeric(20,0)"),
        ((types.is_float32,), "real"),
        ((types.is_float64,), "double precision"),
        ((types.is_date,), "date"),
        ((types.is_time,), "time without time zone"),
        ((types.is_string, types.is_large_string), "text"),
        ((types.is_binary, types.is_large_binary), "bytea"),
    ):
        if any(test(kind) for test in tests):
            return made
    raise FormatError(f"column {name}: PostgreSQL cannot hold type {kind} here; convert it to text or numbers first")


def keeps(there: str, wanted: str) -> bool:
    """Whether a column of the type `there` takes every value of the type `wanted` as it is, or refuses it.

    >>> keeps("character varying(20)", "text"), keeps("uuid", "text"), keeps("integer", "double precision")
    (True, True, False)
    """
    if there == wanted or (there == "numeric" and wanted.startswith("numeric")):
        return True
    return wanted == "text" and (there.startswith(("character varying", "uuid", "json")) or there.endswith("[]"))


def lines(part: pa.Table, *, first_row: int) -> pa.Buffer:
    """Some rows as the text of COPY."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def scalar(text: str) -> pa.Scalar:
        return pa.scalar(text, pa.large_string())

    columns = [
        _text(name, column, first_row=first_row) for name, column in zip(part.column_names, part.columns, strict=True)
    ]
    rows = pc.binary_join_element_wise(*columns, scalar("\t"), null_handling="replace", null_replacement="\\N")
    return _content(pc.binary_join_element_wise(rows, scalar(""), scalar("\n")))


def _blocks(copy: psycopg.Copy) -> Iterator[bytearray]:
    """Whole rows, some megabytes of them at a time; the server sends each by itself."""
    block = bytearray()
    for row in copy:
        block += row
        if len(block) >= _BLOCK:
            yield block
            block = bytearray()
    if block:
        yield block


def _arrow_types() -> dict[str, pa.DataType]:
    """The types of the server that Arrow reads from text."""
    import pyarrow as pa

    return {
        "bool": pa.bool_(),
        "int2": pa.int16(),
        "int4": pa.int32(),
        "int8": pa.int64(),
        "oid": pa.int64(),
        "float4": pa.float32(),
        "float8": pa.float64(),
        "date": pa.date32(),
        "time": pa.time64("us"),
        "timestamp": pa.timestamp("us"),
        "timestamptz": pa.timestamp("us", "UTC"),
    }


def _text(name: str, column: pa.ChunkedArray, *, first_row: int) -> pa.Array:
    """The cells of a column, escaped; missing ones stay missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, array = column.type, column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # pyarrow gives this for some columns of several chunks
        array = pa.concat_arrays(array.chunks)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _to_hex(array)
    try:
        if pa.types.is_timestamp(kind):
            array = array.cast(pa.timestamp("us", "UTC" if kind.tz else None))
        elif pa.types.is_time(kind):
            array = array.cast(pa.time64("us"))
    except pa.ArrowInvalid:
        raise FormatError(f"column {name}: PostgreSQL cannot hold times finer than a microsecond") from None
    if pa.types.is_date(kind):
        array = array.cast(pa.date32())
    texts = array.cast(pa.large_string())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # Looking through the bytes of all cells at once is far cheaper than asking each cell.
        content = _content(texts).to_pybytes()
        if b"\0" in content:
            row = first_row + pc.index(pc.match_substring(texts, "\0"), True).as_py()
            raise FormatError(f"column {name}, row {row}: PostgreSQL cannot hold a NUL character; remove it")
        for sign, escaped in _ESCAPES:  # the backslash first
            if sign.encode() in content:
                texts = pc.replace_substring(texts, sign, escaped)
    return texts


def _ends(texts: pa.Array) -> Any:
    """Where each cell of large text or bytes ends, after the beginning of the first."""
    return np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]


def _content(texts: pa.Array) -> pa.Buffer:
    """The bytes of all cells, one after the other."""
    import pyarrow as pa

    values = texts.buffers()[2]
    if not len(texts) or values is None:
        return pa.py_buffer(b"")
    ends = _ends(texts)
    return values.slice(int(ends[0]), int(ends[-1] - ends[0]))


def _to_hex(array: pa.Array) -> pa.Array:
    """Bytes as the text of the server, all cells at once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.large_string()
    filled = array.cast(pa.large_binary()).fill_null(b"")
    ends = _ends(filled)
    digits = binascii.hexlify(_content(filled))
    made = pa.LargeStringArray.from_buffers(len(filled), pa.py_buffer((ends - ends[0]) * 2), pa.py_buffer(digits))
    texts = pc.binary_join_element_wise(pa.scalar("\\\\x", kind), made, pa.scalar("", kind))
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, kind))


def _from_hex(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Bytes from the text of the server, `\\x` and two digits for each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = []
    for chunk in column.chunks:
        digits = pc.utf8_slice_codeunits(chunk.fill_null("").cast(pa.large_string()), 2)
        ends = _ends(digits)
        values = binascii.unhexlify(_content(digits))
        offsets = pa.py_buffer((ends - ends[0]) // 2)
        made = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(digits), [None, offsets, pa.py_buffer(values)])
        chunks.append(pc.if_else(chunk.is_valid(), made, pa.scalar(None, pa.large_binary())).cast(pa.binary()))
    return pa.chunked_array(chunks, pa.binary())
