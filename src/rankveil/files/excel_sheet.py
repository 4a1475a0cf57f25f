"""What stands in a sheet of an Excel workbook, read as a stream: cells, formulas, and what is hidden or merged."""

from __future__ import annotations

import os
import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from rankveil.errors import FormatError, RankveilError, listing, suggestion
from rankveil.files import limits

MOST_UNPACKED = 4 << 30
"""A workbook whose parts would take more bytes than this is refused before it is unpacked."""

MOST_PACKED = 200
"""So is one whose parts take more than this many times its own size, once they take more than `_SMALL`."""

MOST_ROWS = 1_048_576
"""The most rows of a sheet."""

_SMALL = 64 << 20
_CELL = 8
_BLOCK = 1 << 20
_HEAD = 1 << 12
_OVERLAP = 1 << 10
_OLD_OR_LOCKED = b"\xd0\xcf\x11\xe0"
_SIGNS = re.compile(
    rb"<(?:\w+:)?(?:(?P<formula>f)[ >/]"
    rb'|mergeCell ref="(?P<merged>[A-Z0-9:]+)"'
    rb'|col (?P<column>[^<>]*\bhidden="(?:1|true)"[^<>]*)>'
    rb'|(?P<row>row) [^<>]*\bhidden="(?:1|true)")'
)

ERROR = object()
"""Stands where a cell holds an error such as #N/A."""


@dataclass
class Seen:
    """What the sheet's XML shows beside its cells."""

    formulas: bool = False
    merged: list[str] = field(default_factory=list)
    hidden_columns: list[str] = field(default_factory=list)
    hidden_rows: int = 0


@dataclass(frozen=True)
class Cell:
    """A cell that is no plain value: an error, or a formula."""

    row: int
    column: int


@dataclass
class Sheet:
    """The rows of a sheet; `formats` are the number formats of the first filled cell below each name."""

    title: str
    others: list[str]
    rows: list[list[Any]]
    row_numbers: list[int]
    formats: dict[int, str]
    errors: list[Cell]
    formulas: list[Cell]
    seen: Seen
    blank: int = 0


def read(path: str, *, wanted: str | None = None) -> Sheet:
    """The wanted sheet, or the first that is not hidden."""
    with open(path, "rb") as file:
        _refuse_foreign(path, file)
        _refuse_bomb(path, file)
        with _workbook(path, file) as book:
            sheet = _chosen(path, book, wanted)
            seen = _scan(book, sheet)
            others = [other.title for other in book.worksheets if other.title != sheet.title]
            found = Sheet(sheet.title, others, [], [], {}, [], [], seen)
            _fill(found, sheet, path=path)
            _keep_blank_cells(found)
        if seen.formulas:
            with _workbook(path, file, formulas=True) as book:
                found.formulas = _formulas(book[sheet.title])
    return found


def _refuse_foreign(path: str, file: BinaryIO) -> None:
    start = file.read(4)
    file.seek(0)
    if start == _OLD_OR_LOCKED:
        raise FormatError(
            f"{path}: is encrypted, or an old .xls workbook; save it in Excel as .xlsx without a password"
        )
    if start[:2] != b"PK":
        raise _damaged(path)


def _refuse_bomb(path: str, file: BinaryIO) -> None:
    """The sizes that the archive tells; a part that is larger than it tells is not read further."""
    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
            if any(part.flag_bits & 1 for part in parts):
                raise FormatError(f"{path}: is encrypted; save it without a password")
            unpacked = sum(part.file_size for part in parts)
            limits.refuse_growth(path, grown=unpacked, most=MOST_UNPACKED, times=MOST_PACKED, usual=_SMALL)
            for part in parts:
                _refuse_entities(path, archive, part)
    except RankveilError:
        raise
    except Exception as error:  # BadZipFile, zlib.error, NotImplementedError of an unknown way of packing, ...
        raise _damaged(path) from error


def _refuse_entities(path: str, archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """A part that declares entities, of which a few lines can become gigabytes; Excel never writes any."""
    from xml.parsers import expat

    def refuse(*_: Any) -> None:
        raise FormatError(
            f"{path}: {part.filename} declares a document type, which Excel never does; save the workbook anew in Excel"
        )

    def stop(*_: Any) -> None:
        raise StopIteration

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = stop  # nothing can be declared from here on
    with archive.open(part) as source, suppress(StopIteration, expat.ExpatError):  # a picture is no XML
        while block := source.read(_HEAD):
            parser.Parse(block)


def _damaged(path: str) -> FormatError:
    return FormatError(f"{path}: is no Excel workbook (.xlsx), or is damaged or cut short")


@contextmanager
def _workbook(path: str, file: BinaryIO, *, formulas: bool = False) -> Iterator[Any]:
    """The open workbook; whatever the library stumbles over in it is a damaged file."""
    try:
        import openpyxl
    except ImportError as error:
        raise FormatError(f"{path}: Excel files need openpyxl; install it with pip install 'rankveil[files]'") from (
            error
        )
    file.seek(0)
    book = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # on styles and the like, which are not read
            book = openpyxl.load_workbook(file, read_only=True, keep_links=False, data_only=not formulas)
            yield book
    except (RankveilError, MemoryError):
        raise
    except Exception as error:  # the library raises what its parsers raise: KeyError, ParseError, BadZipFile, ...
        raise _damaged(path) from error
    finally:
        if book is not None:
            book.close()


def _chosen(path: str, book: Any, wanted: str | None) -> Any:
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if wanted is not None:
        if wanted not in sheets:
            raise FormatError(f"{path}: there is no sheet {wanted}{suggestion(wanted, sheets)}")
        return sheets[wanted]
    shown = [sheet for sheet in sheets.values() if sheet.sheet_state == "visible"]
    if not shown:
        raise FormatError(f"{path}: has no sheet of cells that is not hidden ({listing(sheets) or 'none at all'})")
    return shown[0]


def _scan(book: Any, sheet: Any) -> Seen:
    """Look through the XML itself for what the library's stream of cells does not tell."""
    seen = Seen()
    before = b""
    with book._archive.open(sheet._worksheet_path) as source:
        while block := source.read(_BLOCK):
            text = before + block
            # a match belongs to the block in which it ends, so that none is counted twice
            fresh = len(before)
            for found in _SIGNS.finditer(text):
                if found.end() > fresh:
                    _take(found, seen)
            before = text[-_OVERLAP:]
    return seen


def _take(found: re.Match[bytes], seen: Seen) -> None:
    from openpyxl.utils import get_column_letter

    if found["formula"]:
        seen.formulas = True
    elif found["merged"]:
        seen.merged.append(found["merged"].decode())
    elif found["row"]:
        seen.hidden_rows += 1
    else:
        ends = {name: int(end) for name, end in re.findall(rb'\b(min|max)="(\d+)"', found["column"])}
        last = min(ends[b"max"], ends[b"min"] + 100)  # all columns to the right may be hidden, and are empty then
        seen.hidden_columns += [get_column_letter(place) for place in range(ends[b"min"], last + 1)]


def _fill(found: Sheet, sheet: Any, *, path: str) -> None:
    """Take the rows that hold something; one without anything is left out, and counted unless it is at the end."""
    sheet.reset_dimensions()  # what the file says of them may be wrong
    most = limits.allowed(os.stat(path).st_size)
    empty, grown = 0, 0
    for number, cells in enumerate(sheet.rows, start=1):
        if number > MOST_ROWS:
            raise _damaged(path)
        grown += _CELL * len(cells)  # one cell at the right edge makes a row of thousands
        if grown > most:
            limits.refuse_growth(path, grown=grown)
        values = []
        for place, cell in enumerate(cells):
            value = cell.value
            if value is not None:
                if cell.data_type == "e":
                    found.errors.append(Cell(number, place))
                    value = ERROR
                elif isinstance(value, str):  # a formula may give an empty text, which looks as if nothing stood there
                    value = value.replace("_x000D_", "\r") or None
                if place not in found.formats and number > 1:
                    found.formats[place] = cell.number_format
            values.append(value)
        while values and values[-1] is None:
            values.pop()
        if not values and number > 1 and not any(map(_is_empty_text, cells)):
            empty += 1
            continue
        found.blank, empty = found.blank + empty, 0
        found.rows.append(values)
        found.row_numbers.append(number)


def _keep_blank_cells(found: Sheet) -> None:
    """In a sheet of one column a blank row is a missing cell, as a blank line is in a text file of one column."""
    if found.blank and max(map(len, found.rows)) == 1:
        filled = dict(zip(found.row_numbers, found.rows, strict=True))
        found.row_numbers = list(range(1, found.row_numbers[-1] + 1))
        found.rows = [filled.get(number, []) for number in found.row_numbers]
        found.blank = 0


def _is_empty_text(cell: Any) -> bool:
    """Whether someone wrote an apostrophe alone: a record of which everything is missing has one."""
    return hasattr(cell, "style_array") and bool(cell.style_array.quotePrefix)


def _formulas(sheet: Any) -> list[Cell]:
    sheet.reset_dimensions()
    return [
        Cell(number, place)
        for number, cells in enumerate(sheet.rows, start=1)
        for place, cell in enumerate(cells)
        if cell.data_type == "f"
    ]
