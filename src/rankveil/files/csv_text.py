"""CSV and its relatives: every column as text, each cell exactly as it was written.

An empty cell is the empty text. A blank line is skipped with a note, but in a file of one column it is an
empty cell.
"""

from __future__ import annotations

import codecs
import os
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, BinaryIO

from rankveil.errors import FormatError, listing
from rankveil.files import csv_cells, csv_detect
from rankveil.files.dialect import Dialect, Loaded

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".csv", ".tsv", ".txt")
ROWS_AT_ONCE = 1 << 16
MOST_COLUMNS = 100_000
"""More fields than this in the first line are no names but a file without line ends."""

_END = b"end"
_BLOCK = 1 << 22
_LARGEST_BLOCK = (1 << 31) - 1
_MANY = 1000
"""Rows with other numbers of fields than the header, of which it is enough to know so many."""

_BLANK_LINES = (b"\n\n", b"\n\r\n", b"\r\r")


def load(path: str, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None) -> Loaded:
    """The table in a text file, all columns text."""
    if separator is not None:
        separator = csv_detect.checked_mark(separator, what="separator")
    if decimal is not None:
        decimal = csv_detect.checked_mark(decimal, what="decimal mark")
    text, codec, bom, notes = csv_detect.to_utf8(_bytes_of(path), path=path, encoding=encoding)
    _drop_line_ends(text)
    if not text.strip():
        raise FormatError(f"{path}: is empty; the first line must name the columns")
    if separator is None:
        separator = csv_detect.find_separator(text)
    marks = csv_detect.decimal_marks(text, separator)
    newline = csv_detect.find_newline(text)

    # One more record at the end shows whether a quote was left open: it would have swallowed it.
    text += newline.encode() + _END
    header = csv_detect.split_header(text, separator)
    if header is None:
        raise _open_quote(path) if b'"' in text else _not_names(path)
    names, start = header
    if len(names) > MOST_COLUMNS:
        raise FormatError(f"{path}: the first line has {len(names):,} fields; are there line ends missing?")
    if fault := _fault_of(names):
        raise FormatError(f"{path}: {fault} in the first line")
    text += (separator.encode() + _END) * (len(names) - 1)
    if text.startswith(codecs.BOM_UTF8, start):  # a cell begins with this character, and pyarrow drops the first
        text[start:start] = codecs.BOM_UTF8
    data = _parse(text, start, names, separator=separator, path=path, notes=notes)

    if all(re.fullmatch(r"[-+]?\d+([.,]\d+)?", name) for name in names):
        notes.append(f"{path}: the first line was taken as names of columns, but all of them are numbers")
    if decimal is None:
        decimal = _decide_decimal(marks, data, text, separator, path=path, notes=notes)
    dialect = Dialect(separator=separator, decimal=decimal, encoding=codec, newline=newline, bom=bom)
    return Loaded(data, dialect, tuple(notes))


def save(data: pa.Table, handle: BinaryIO, *, ending: str = ".csv", dialect: Dialect | None = None) -> None:
    """The table as text in a dialect; a .tsv always has tabs, a .txt unless the dialect says otherwise."""
    separator = dialect.separator if dialect else ","
    if ending == ".tsv" or (dialect is None and ending == ".txt"):
        separator = "\t"
    given = dialect or Dialect()
    codec, marked = csv_detect.plain_encoding(given.encoding)
    dialect = Dialect(
        separator=csv_detect.checked_mark(separator, what="separator"),
        decimal=csv_detect.checked_mark(given.decimal, what="decimal mark"),
        encoding=codec,
        newline=given.newline,
        bom=(given.bom or marked) and codec.startswith("utf"),
    )
    if fault := _fault_of(data.column_names):
        raise FormatError(fault)
    separators = tuple({*csv_detect.SEPARATORS, dialect.separator})
    header = [csv_cells.quoted_name(name, separators=separators) for name in data.column_names]
    start = ("\ufeff" if dialect.bom else "") + dialect.separator.join(header) + dialect.newline
    handle.write(_encoded(start.encode(), data.slice(0, 0), 0, dialect))
    for first in range(0, data.num_rows, ROWS_AT_ONCE):
        part = data.slice(first, ROWS_AT_ONCE)
        columns = []
        for name, column in zip(part.column_names, part.columns, strict=True):
            cells = csv_cells.as_text(column, name=name, decimal=dialect.decimal)
            quoted = csv_cells.quoted(cells, name=name, separator=dialect.separator, first_row=first + 1)
            columns.append(quoted)
        handle.write(_encoded(csv_cells.joined(columns, dialect=dialect), part, first, dialect))


def _bytes_of(path: str) -> bytearray:
    with open(path, "rb") as file:
        raw = bytearray(os.fstat(file.fileno()).st_size)
        del raw[file.readinto(raw) :]
        raw += file.read()
    return raw


def _fault_of(names: list[str]) -> str | None:
    """What is wrong with the names of the columns."""
    unnamed = [position for position, name in enumerate(names, start=1) if not name.strip()]
    if unnamed:
        which = f"column {unnamed[0]} has" if len(unnamed) == 1 else f"columns {listing(unnamed)} have"
        return f"{which} no name; give every column one"
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        return f"several columns are named {listing(twice)}; give each its own name"
    if any("\0" in name for name in names):
        return "a column's name holds a NUL character; CSV cannot hold one"
    return None if names else "a table without columns cannot be written as CSV"


def _open_quote(path: str) -> FormatError:
    return FormatError(f'{path}: a quote (") is opened and never closed; close it or, inside a text, double it')


def _not_names(path: str) -> FormatError:
    return FormatError(f"{path}: the first line is far too long for names of columns; are there line ends missing?")


def _drop_line_ends(text: bytearray) -> None:
    """Take away the line ends after the last record, however many there are."""
    while tail := text[-_BLOCK:]:
        kept = len(tail.rstrip(b"\r\n"))
        del text[len(text) - len(tail) + kept :]
        if kept:
            return


def _parse(text: bytearray, start: int, names: list[str], *, separator: str, path: str, notes: list[str]) -> pa.Table:
    single = len(names) == 1
    table, ragged = _read(text, start, names, separator=separator, path=path, skip_blank=not single)
    if ragged:
        # Only a reader with one thread knows the numbers of the rows.
        _, ragged = _read(text, start, names, separator=separator, path=path, skip_blank=True, threads=False)
        raise _ragged(path, ragged, len(names), separator)
    last = [column[-1].as_py() for column in table.columns] if table.num_rows else []
    if last != [_END.decode()] * len(names):
        raise _open_quote(path)
    if not single and any(mark in text for mark in _BLANK_LINES):
        everything, _ = _read(text, start, names, separator=separator, path=path, skip_blank=False)
        blank = everything.num_rows - table.num_rows
        if blank:
            notes.append(f"{path}: {blank} blank {'line was' if blank == 1 else 'lines were'} skipped")
    return table.slice(0, table.num_rows - 1)


def _read(
    text: bytearray,
    start: int,
    names: list[str],
    *,
    separator: str,
    path: str,
    skip_blank: bool,
    threads: bool = True,
) -> tuple[pa.Table, list[Any]]:
    """The table and the rows that do not have as many fields as the header."""
    import pyarrow as pa
    import pyarrow.csv as pacsv

    ragged: list[Any] = []

    def note(row: Any) -> str:
        ragged.append(row)
        return "skip" if len(ragged) < _MANY else "error"  # each takes far longer than a row that fits

    parse = pacsv.ParseOptions(
        delimiter=separator,
        newlines_in_values=b'"' in text,  # finding where records end is slower when quotes must be followed
        ignore_empty_lines=skip_blank,
        invalid_row_handler=note,
    )
    convert = pacsv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=False
    )
    content = pa.py_buffer(text).slice(start)
    for block in (_BLOCK, min(len(text) + 1, _LARGEST_BLOCK)):
        options = pacsv.ReadOptions(column_names=names, block_size=block, use_threads=threads)
        try:
            ragged.clear()
            table = pacsv.read_csv(
                pa.BufferReader(content), read_options=options, parse_options=parse, convert_options=convert
            )
            return table, ragged
        except pa.ArrowInvalid as error:
            if len(ragged) >= _MANY:
                return pa.table({}), ragged
            # A record longer than a block: tried again with all the text in one.
            if "straddl" not in str(error):
                reason = str(error).partition("\n")[0]
                raise FormatError(f"{path}: is not a CSV file ({reason})") from error
    raise _open_quote(path)


def _ragged(path: str, rows: list[Any], width: int, separator: str) -> FormatError:
    last = rows[-1].text
    if last.endswith(separator.join([_END.decode()] * width)) and ("\n" in last or "\r" in last):
        return _open_quote(path)

    def fields(count: int) -> str:
        return f"{count} field" if count == 1 else f"{count} fields"

    told = [f"row {row.number} has {fields(row.actual_columns)}" for row in rows[:_MANY]]
    shown = listing(told, most=3) if len(rows) < _MANY else f"{', '.join(told[:3])} and many more"
    return FormatError(f"{path}: {shown}, the header has {width}; a text with a separator inside needs quotes")


def _decide_decimal(
    marks: set[str], data: pa.Table, text: bytearray, separator: str, *, path: str, notes: list[str]
) -> str:
    if separator == ",":
        return "."
    if not marks and len(text) > csv_detect.SAMPLE and b"," in text:
        marks = _marks_anywhere(data)
    if marks == {",", "."}:
        notes.append(f"{path}: has numbers like 1,5 and like 1.5; the point was taken as the decimal mark")
    elif marks == {"."} and csv_detect.points_part_thousands(text, separator):
        notes.append(
            f"{path}: all numbers with a point are like 1.234; it was taken as the decimal mark, not as one of "
            "thousands: if it is, write the numbers without it"
        )
    return "," if marks == {","} else "."


def _marks_anywhere(data: pa.Table) -> set[str]:
    import pyarrow.compute as pc

    patterns = {",": csv_detect.COMMA_NUMBER, ".": csv_detect.POINT_NUMBER}
    seen = set()
    for mark, pattern in patterns.items():
        matches = (pc.match_substring_regex(column, f"^(?:{pattern})$") for column in data.columns)
        if any(pc.any(match).as_py() for match in matches):
            seen.add(mark)
    return seen


def _encoded(content: bytes, part: pa.Table, first: int, dialect: Dialect) -> bytes:
    if codecs.lookup(dialect.encoding).name == "utf-8":
        return content
    try:
        return content.decode("utf-8").encode(dialect.encoding)
    except UnicodeEncodeError as error:
        sign = error.object[error.start]
        raise FormatError(
            f"{_place(sign, part, first)}the character {sign!r} cannot be written in {dialect.encoding}; "
            "write UTF-8 instead"
        ) from None


def _place(sign: str, part: pa.Table, first: int) -> str:
    """Where a character stands, for an error."""
    import pyarrow.compute as pc

    for name, column in zip(part.column_names, part.columns, strict=True):
        cells = csv_cells.as_text(column, name=name, decimal=".")
        row = pc.index(pc.match_substring(cells, sign), True).as_py()
        if row >= 0:
            return f"column {name}, row {first + row + 1}: "
    return "header: "
