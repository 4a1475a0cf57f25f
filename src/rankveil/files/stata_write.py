"""Stata files as bytes: format 118, which Stata 14 and all later ones read.

The library that reads these files writes every number as long or double, no notes, and missing letters only through
a frame of Python objects; so the bytes are laid out here, whole columns at a time, as `help dta` of Stata tells.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankveil import metadata
from rankveil.errors import FormatError, listing
from rankveil.files import statistical
from rankveil.files.stata_columns import LONGEST_LABEL, STRL, Column, column_of, fitting

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_AT_ONCE = 1 << 16
_MOST_COLUMNS = 32_767
_OWN_WORDS = r"_all|_b|byte|_coef|_cons|double|float|if|in|int|long|_n|_N|_pi|_pred|_rc|_skip|strL|using|with|str\d+"


def write(data: pa.Table, handle: BinaryIO) -> None:
    """The table as a Stata file."""
    names = data.column_names
    _check_names(names)
    whole = metadata.read_table(data.schema)
    fitting(whole.label, 80, what="the label of the table")
    described = [metadata.read(each) for each in data.schema]
    columns = [
        column_of(name, statistical.whole_array(cells), about)
        for name, cells, about in zip(names, data.unify_dictionaries().columns, described, strict=True)
    ]
    columns, label_sets = _with_label_sets(columns)
    _Sections(handle).write(columns, label_sets, rows=data.num_rows, whole=whole)


def _check_names(names: list[str]) -> None:
    if not names:
        raise FormatError("a table without columns cannot be written as a Stata file")
    if len(names) > _MOST_COLUMNS:
        raise FormatError(f"the table has {len(names)} columns, and Stata allows {_MOST_COLUMNS}")
    for name in names:
        if not re.fullmatch(r"[^\W\d]\w*", name) or len(name) > 32:
            raise FormatError(
                f"column {name}: Stata allows names of 1 to 32 letters, digits and underscores that do not begin with "
                "a digit; rename it"
            )
        if re.fullmatch(_OWN_WORDS, name):
            raise FormatError(f"column {name}: the name is a word of Stata's own; rename it")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise FormatError(f"several columns are named {listing(twice)}; give each its own name")


def _with_label_sets(columns: list[Column]) -> tuple[list[Column], dict[str, tuple[tuple[int, str], ...]]]:
    """The columns with the names of their label sets, and the sets; columns with the same labels share a set."""
    sets: dict[str, tuple[tuple[int, str], ...]] = {}
    made = []
    for column in columns:
        if not column.labels:
            made.append(column)
            continue
        wanted = column.label_set or column.name
        name, count = wanted, 1
        while sets.get(name, column.labels) != column.labels:
            count += 1
            name = f"{wanted[: 31 - len(str(count))]}_{count}"
        for _, text in column.labels:
            statistical.checked_label(
                text,
                most=LONGEST_LABEL,
                size=len(text.encode()),
                what=f"column {column.name}: a value's label",
                program="Stata",
                unit="bytes",
            )
        sets[name] = column.labels
        made.append(replace(column, label_set=name))
    return made, sets


class _Sections:
    """The file, section by section; the map near its beginning is filled in at the end."""

    def __init__(self, handle: BinaryIO) -> None:
        self.handle = handle
        self.start = handle.tell()
        self.places: list[int] = []

    def write(
        self,
        columns: list[Column],
        label_sets: dict[str, tuple[tuple[int, str], ...]],
        *,
        rows: int,
        whole: metadata.DescribedTable,
    ) -> None:
        put = self.handle.write
        self._mark()
        put(b"<stata_dta><header><release>118</release><byteorder>LSF</byteorder>")
        put(b"<K>" + struct.pack("<H", len(columns)) + b"</K><N>" + struct.pack("<Q", rows) + b"</N>")
        label = whole.label.encode()
        put(b"<label>" + struct.pack("<H", len(label)) + label + b"</label>")
        put(b"<timestamp>\0</timestamp></header>")  # none, so that the same table gives the same bytes
        self._mark()
        put(b"<map>" + bytes(14 * 8) + b"</map>")
        self._section("variable_types", struct.pack(f"<{len(columns)}H", *(column.code for column in columns)))
        self._section("varnames", b"".join(_padded(column.name, 129) for column in columns))
        self._section("sortlist", bytes(2 * (len(columns) + 1)))
        self._section("formats", b"".join(_padded(column.format, 57) for column in columns))
        self._section("value_label_names", b"".join(_padded(column.label_set, 129) for column in columns))
        self._section("variable_labels", b"".join(_padded(column.label, 321) for column in columns))
        self._section("characteristics", _notes(whole.notes))
        self._section("data", _records(columns, rows))
        self._section("strls", _long_texts(columns))
        self._section("value_labels", (_label_table(name, labels) for name, labels in label_sets.items()))
        self._mark()
        put(b"</stata_dta>")
        self._mark()
        self.handle.seek(self.places[1] + len(b"<map>"))
        put(struct.pack("<14Q", *(place - self.start for place in self.places)))
        self.handle.seek(self.places[-1])

    def _mark(self) -> None:
        self.places.append(self.handle.tell())

    def _section(self, name: str, content: bytes | Iterator[bytes]) -> None:
        self._mark()
        self.handle.write(f"<{name}>".encode())
        for part in [content] if isinstance(content, bytes) else content:
            self.handle.write(part)
        self.handle.write(f"</{name}>".encode())


def _records(columns: list[Column], rows: int) -> Iterator[bytes]:
    kinds = np.dtype([(f"f{place}", column.dtype) for place, column in enumerate(columns)])
    for first in range(0, rows, _ROWS_AT_ONCE):
        last = min(rows, first + _ROWS_AT_ONCE)
        block = np.zeros(last - first, kinds)
        for place, column in enumerate(columns):
            block[f"f{place}"] = _part(column, place + 1, first, last)
        yield block.tobytes()


def _part(column: Column, place: int, first: int, last: int) -> NDArray[Any]:
    """The cells of some rows as the records hold them."""
    if column.code == STRL:
        return _references(column, place, first, last)
    if isinstance(column.cells, np.ndarray):
        return column.cells[first:last]
    return _fixed_width(column.cells.slice(first, last - first), column.code).view(column.dtype)[:, 0]


def _fixed_width(texts: pa.Array, width: int) -> NDArray[np.uint8]:
    """The bytes of texts, each filled up to the same width."""
    import pyarrow.compute as pc

    filled = pc.fill_null(texts, "")
    _, offsets, content = filled.buffers()
    ends = np.frombuffer(offsets, np.int64)[filled.offset : filled.offset + len(filled) + 1]
    made = np.zeros((len(filled), width), np.uint8)
    if content is not None:
        raw = np.frombuffer(content, np.uint8)[ends[0] : ends[-1]]
        made[np.arange(width) < np.diff(ends)[:, None]] = raw
    return made


def _references(column: Column, place: int, first: int, last: int) -> NDArray[Any]:
    """Column and row of each text that stands apart: two bytes and six; zeros for an empty one."""
    made = np.zeros(last - first, "<u8")
    rows = column.long_rows[(column.long_rows >= first) & (column.long_rows < last)]
    made[rows - first] = ((rows + 1) << 16) | place
    return made.view("V8")


def _long_texts(columns: list[Column]) -> Iterator[bytes]:
    for place, column in enumerate(columns, start=1):
        if column.code == STRL:
            for row in column.long_rows.tolist():
                text = column.cells[row].as_py().encode() + b"\0"
                yield b"GSO" + struct.pack("<IQBI", place, row + 1, 130, len(text)) + text


def _notes(notes: tuple[str, ...]) -> bytes:
    """Notes on the table, as Stata numbers them; `note0` is how many there are."""
    if not notes:
        return b""
    made = b""
    for name, text in [("note0", str(len(notes))), *((f"note{n}", note) for n, note in enumerate(notes, start=1))]:
        content = text.replace("\0", " ").encode() + b"\0"
        said = _padded("_dta", 129) + _padded(name, 129) + content
        made += b"<ch>" + struct.pack("<I", len(said)) + said + b"</ch>"
    return made


def _label_table(name: str, labels: tuple[tuple[int, str], ...]) -> bytes:
    ordered = sorted(labels)
    texts = [text.encode() + b"\0" for _, text in ordered]
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])])
    table = struct.pack("<ii", len(texts), int(offsets[-1]))
    table += offsets[:-1].astype("<i4").tobytes()
    table += np.array([value for value, _ in ordered], "<i4").tobytes()
    table += b"".join(texts)
    return b"<lbl>" + struct.pack("<i", len(table)) + _padded(name, 129) + bytes(3) + table + b"</lbl>"


def _padded(text: str, width: int) -> bytes:
    """A text and zeros; one byte at least is zero."""
    raw = text.encode()
    if len(raw) >= width:
        raise FormatError(f"{text[:40]}: is longer than the {width - 1} bytes that Stata allows here; shorten it")
    return raw + bytes(width - len(raw))
