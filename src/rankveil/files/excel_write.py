"""A table as an Excel workbook of one sheet; no text in it can become a formula."""

from __future__ import annotations

import datetime
import io
import re
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from rankveil import metadata
from rankveil.errors import FormatError
from rankveil.files import clocks, statistical
from rankveil.files.excel_columns import is_plain_number, number_of
from rankveil.files.excel_sheet import MOST_ROWS
from rankveil.metadata import Described

if TYPE_CHECKING:
    import pyarrow as pa

MOST_COLUMNS = 16_384
LONGEST_TEXT = 32_767
"""The most characters of a cell."""

_ROWS_AT_ONCE = 1 << 14
_CONTROLS = r"[\x00-\x08\x0b\x0c\x0e-\x1f]"
_UNSAFE = r"^$|^[=+\-@\t\r#]|\r"
"""Texts that might be taken for nothing, a formula or an error, or whose line ends would not come back."""

_FORMATS = {"date": "yyyy-mm-dd", "datetime": "yyyy-mm-dd hh:mm:ss", "time": "hh:mm:ss", "duration": "[hh]:mm:ss"}
_LAST = datetime.time.max.replace(microsecond=999_000)
_LIMITS: dict[str, tuple[str, Any, Any]] = {
    "date": ("date32[day]", datetime.date(1900, 1, 1), datetime.date.max),
    "datetime": ("timestamp[ms]", datetime.datetime(1900, 1, 1), datetime.datetime.combine(datetime.date.max, _LAST)),
    "time": ("time32[ms]", datetime.time(), _LAST),
    "duration": ("duration[ms]", datetime.timedelta(), datetime.timedelta(days=2_958_465)),
}
"""The type of each kind of time that is as fine as Excel's, its first and its last value."""


Maker = Callable[[Any], Any]


def write(data: pa.Table, handle: BinaryIO) -> None:
    """The table as a workbook."""
    try:
        import openpyxl
    except ImportError as error:
        raise FormatError("Excel files need openpyxl; install it with pip install 'rankveil[files]'") from error

    if data.num_columns == 0:
        raise FormatError("a table without columns cannot be written as an Excel file")
    if data.num_rows >= MOST_ROWS or data.num_columns > MOST_COLUMNS:
        raise FormatError(
            f"the table has {data.num_rows} records and {data.num_columns} columns, and a sheet holds "
            f"{MOST_ROWS - 1} and {MOST_COLUMNS}; write .parquet instead"
        )
    columns = [
        _checked(about.name, statistical.whole_array(cells))
        for about, cells in zip(data.schema, data.columns, strict=True)
    ]
    book = openpyxl.Workbook(write_only=True)
    book.properties.creator = "rankveil"
    sheet = book.create_sheet(_title(data.schema))
    whole = io.BytesIO()  # the library would go on writing to a handle that is closed when the disk is full
    try:
        _fill(sheet, data, columns)
        book.save(whole)
    finally:
        _tidy(sheet)
    handle.write(whole.getbuffer())


def _fill(sheet: Any, data: pa.Table, columns: list[pa.Array]) -> None:
    """The names and the rows."""
    makers = [_maker(sheet, array, metadata.read(about)) for array, about in zip(columns, data.schema, strict=True)]
    as_text = _text_maker(sheet, mixed=False)
    sheet.append([as_text(name) for name in _checked_names(data.column_names)])
    for first in range(0, data.num_rows, _ROWS_AT_ONCE):
        parts = [
            [None if cell is None else make(cell) for cell in array.slice(first, _ROWS_AT_ONCE).to_pylist()]
            if make
            else array.slice(first, _ROWS_AT_ONCE).to_pylist()
            for array, make in zip(columns, makers, strict=True)
        ]
        for row in zip(*parts, strict=True):
            sheet.append(row if any(cell is not None for cell in row) else [as_text("")])


def _tidy(sheet: Any) -> None:
    """Close and remove the file in which the library collects rows.

    Left to itself after Ctrl-C or on a full disk, it stays until the program ends, and complains on standard error.
    """
    if sheet._writer is not None:
        for unfinished in (sheet._rows, sheet._writer.xf):
            if unfinished is not None:
                with suppress(Exception):
                    unfinished.close()
        with suppress(OSError):  # it is gone when all went well
            sheet._writer.cleanup()


def _title(schema: pa.Schema) -> str:
    whole = metadata.read_table(schema)
    fits = whole.program == "excel" and re.fullmatch(r"[^\[\]:*?/\\\x00-\x1f]{1,31}", whole.label)
    return whole.label if fits else "data"


def _checked_names(names: list[str]) -> list[str]:
    for place, name in enumerate(names, start=1):
        if not name.strip():
            raise FormatError(f"column {place} has no name; give every column one")
        if re.search(_CONTROLS, name) or len(name) > LONGEST_TEXT:
            raise FormatError(f"column {place}: its name has control characters or is too long for Excel; rename it")
    return names


def _checked(name: str, array: pa.Array) -> pa.Array:
    """The cells as plain values that Excel holds as they are."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.cast(pa.large_string())
        kind = array.type
    if statistical.is_text(kind):
        return _checked_texts(name, array)
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return array
    if pa.types.is_temporal(kind):
        return _checked_times(name, array)
    values, absent = statistical.numbers_of(array, name=name, program="Excel")
    if values.dtype.kind == "f":
        statistical.refuse_infinite(values, name=name, program="Excel", limit=np.inf)
        absent = absent | np.isnan(values)
    return pa.array(values, mask=absent)


def _checked_texts(name: str, array: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    row = pc.index(pc.match_substring_regex(array, _CONTROLS), True).as_py()
    if row >= 0:
        raise FormatError(f"column {name}, row {row + 1}: Excel cannot hold control characters; remove them")
    row = pc.index(pc.greater(pc.utf8_length(array), LONGEST_TEXT), True).as_py()
    if row >= 0:
        raise FormatError(
            f"column {name}, row {row + 1}: Excel allows texts of {LONGEST_TEXT} characters; shorten it, "
            "or write .parquet"
        )
    return pc.if_else(pc.equal(array, ""), pa.scalar(None, array.type), array)


def _checked_times(name: str, array: pa.Array) -> pa.Array:
    """Dates and times that Excel has: from 1900 on, to the millisecond, of no time zone."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        raise FormatError(f"column {name}: Excel has no time zones; make the times local ones or write .parquet")
    unit, low, high = _LIMITS[clocks.what_of(kind)]
    try:
        array = array.cast(pa.type_for_alias(unit))
    except pa.ArrowInvalid as error:
        raise FormatError(
            f"column {name}: Excel cannot hold times finer than a millisecond; write .parquet instead"
        ) from error
    far = pc.or_(pc.less(array, pa.scalar(low, array.type)), pc.greater(array, pa.scalar(high, array.type)))
    row = pc.index(far, True).as_py()
    if row >= 0:
        raise FormatError(
            f"column {name}, row {row + 1}: Excel has no dates before 1900 or after 9999 and no negative times; "
            "write .parquet instead"
        )
    return array


def _maker(sheet: Any, array: pa.Array, described: Described) -> Maker | None:
    """What turns a value into a cell; None when the value itself will do."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if statistical.is_text(kind):
        mixed = described.program == "excel" and described.storage == "mixed"
        unsafe = pc.any(pc.match_substring_regex(array, _UNSAFE), min_count=0).as_py()
        return _text_maker(sheet, mixed=mixed) if mixed or unsafe else None
    about = metadata.in_words_of(described, "excel")
    if pa.types.is_floating(kind):
        return _exact_maker(sheet, about.format)
    if not pa.types.is_temporal(kind):
        return _formatted(sheet, about.format) if about.format else None
    return _formatted(sheet, about.format or _FORMATS[clocks.what_of(kind)])


def _formatted(sheet: Any, format: str) -> Maker:
    from openpyxl.cell import WriteOnlyCell

    def make(value: Any) -> Any:
        cell = WriteOnlyCell(sheet, value)
        cell.number_format = format
        return cell

    return make


def _exact_maker(sheet: Any, format: str) -> Maker:
    """Numbers with all their digits: openpyxl writes 16, and some need 17."""
    from openpyxl.cell import WriteOnlyCell

    def make(value: float) -> Any:
        short = float(f"{value:.16g}") == value
        if short and not format:
            return value
        cell = WriteOnlyCell(sheet, value)
        if not short:
            cell.value = repr(value)
            cell.data_type = "n"  # the text is what is written for the number
        if format:
            cell.number_format = format
        return cell

    return make


def _text_maker(sheet: Any, *, mixed: bool) -> Maker:
    """Texts as texts whatever they look like; in a mixed column plain numbers as numbers."""
    from openpyxl.cell import WriteOnlyCell

    unsafe = re.compile(_UNSAFE)

    def make(text: str) -> Any:
        if mixed and is_plain_number(text):
            return number_of(text)
        if not unsafe.search(text):
            return text
        cell = WriteOnlyCell(sheet, "")
        cell.value = text.replace("\r", "_x000D_")  # XML would make it a plain line end
        cell.data_type = "s"
        cell.quotePrefix = True
        return cell

    return make
