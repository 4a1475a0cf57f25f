"""Excel workbooks: one sheet in, its first row the names of the columns; one sheet out.

The sheet is the first that is not hidden, or the one named after a `#` (`survey.xlsx#2024`). Numbers, dates and
times keep their types; a column with several kinds of cells is text, its numbers written as plainly as they can be.
A formula is read as the value that was stored with it. Rows in notes and errors are those of the sheet.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, BinaryIO

from rankveil import metadata
from rankveil.errors import FormatError, listing
from rankveil.files import excel_sheet, excel_write, registry
from rankveil.files.dialect import Dialect, Loaded
from rankveil.files.excel_columns import as_text, column_of
from rankveil.files.excel_sheet import ERROR, Sheet

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".xlsx",)


def load(path: str, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None) -> Loaded:
    """The table in one sheet, and notes on what one would not expect in a table."""
    import pyarrow as pa

    place, wanted = registry.sheet_of(path)
    sheet = excel_sheet.read(place, wanted=wanted)
    columns = list(zip_longest(*sheet.rows))
    names = _names(path, columns)
    notes = _notes(sheet, names)
    arrays, fields = [], []
    for at, name in names.items():
        cells = [None if cell is ERROR else cell for cell in columns[at][1:]]
        try:
            array, described, odd = column_of(cells, format=sheet.formats.get(at, "General"))
        except (pa.ArrowException, OverflowError) as error:
            raise FormatError(
                f"{path}: column {name}: a number or a duration is beyond all bounds; correct it"
            ) from error
        if odd:
            rows = _rows([sheet.row_numbers[row + 1] for row in odd])
            notes.append(f"column {name}: has several kinds of cells and is text (no number in {rows})")
        arrays.append(array)
        fields.append(metadata.write(pa.field(name, array.type), described))
    whole = metadata.DescribedTable(label=sheet.title, program="excel")
    data = pa.Table.from_arrays(arrays, schema=metadata.write_table(pa.schema(fields), whole))
    return Loaded(data, notes=tuple(f"{path}: {note}" for note in notes))


def save(data: pa.Table, handle: BinaryIO, *, ending: str = ".xlsx", dialect: Dialect | None = None) -> None:
    """The table as a workbook of one sheet; what Excel cannot hold is refused, never changed."""
    excel_write.write(data, handle)


def _names(path: str, columns: list[tuple[Any, ...]]) -> dict[int, str]:
    """The names in the first row by their place; a column without a name must be empty."""
    if not any(cell is not None for column in columns for cell in column):
        raise FormatError(f"{path}: the sheet is empty; its first row must name the columns")
    if all(column[0] is None for column in columns):
        raise FormatError(f"{path}: the first row of the sheet is empty; it must name the columns")
    names = {}
    for at, column in enumerate(columns):
        if column[0] is ERROR:
            raise FormatError(f"{path}: the name of column {_letter(at)} is an error; give it a name in the first row")
        if column[0] is not None and as_text(column[0]).strip():
            names[at] = as_text(column[0])
        elif any(cell is not None for cell in column[1:]):
            raise FormatError(
                f"{path}: column {_letter(at)} has no name in the first row; give it one (cells that are merged there "
                "name only the first column)"
            )
    return names


def _notes(sheet: Sheet, names: dict[int, str]) -> list[str]:
    """What one would not expect in a table."""
    notes = []
    if sheet.others:
        notes.append(
            f"the sheet {sheet.title} was read, others were not ({listing(sheet.others)}); another is chosen by its "
            "name after a #, as in survey.xlsx#2024"
        )
    if all(re.fullmatch(r"[-+]?\d+([.,]\d+)?", name) for name in names.values()):
        notes.append("the first row was taken as names of columns, but all of them are numbers")
    hidden = [name for at, name in names.items() if _letter(at) in sheet.seen.hidden_columns]
    if hidden:
        notes.append(f"hidden columns were read too ({listing(hidden)})")
    if sheet.seen.hidden_rows:
        notes.append(f"hidden rows were read too ({sheet.seen.hidden_rows})")
    if sheet.seen.merged:
        notes.append(f"merged cells ({listing(sheet.seen.merged)}) have one value; all but the first are missing")
    if sheet.blank:
        notes.append(f"{sheet.blank} blank {'row was' if sheet.blank == 1 else 'rows were'} skipped")
    return notes + _notes_on_errors(sheet, names) + _notes_on_formulas(sheet, names)


def _notes_on_errors(sheet: Sheet, names: dict[int, str]) -> list[str]:
    by_column = defaultdict(list)
    for cell in sheet.errors:
        by_column[cell.column].append(cell.row)
    return [f"column {names[at]}: errors such as #N/A are missing ({_rows(rows)})" for at, rows in by_column.items()]


def _notes_on_formulas(sheet: Sheet, names: dict[int, str]) -> list[str]:
    known = dict(zip(sheet.row_numbers, sheet.rows, strict=True))
    counts: dict[int, int] = defaultdict(int)
    without: dict[int, list[int]] = defaultdict(list)
    for cell in sheet.formulas:
        counts[cell.column] += 1
        cells = known.get(cell.row, [])
        if cell.column >= len(cells) or cells[cell.column] is None:
            without[cell.column].append(cell.row)
    notes = []
    for at, count in counts.items():
        name = names.get(at, _letter(at))
        what = (
            "formulas were read as the values stored with them"
            if count > 1
            else ("formula was read as the value stored with it")
        )
        note = f"column {name}: {count} {what}"
        if at in without:
            note += f"; none, or an empty text, is stored in {_rows(without[at])}"
        notes.append(note)
    return notes


def _rows(rows: list[int]) -> str:
    return f"row{'s' if len(rows) > 1 else ''} {listing(rows)}"


def _letter(at: int) -> str:
    """The letters by which a sheet names a column.

    >>> _letter(0), _letter(27)
    ('A', 'AB')
    """
    letters = ""
    at += 1
    while at:
        at, rest = divmod(at - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters
