"""What a text file does not say of itself: its encoding, its separator, its decimal mark."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from contextlib import suppress

from rankveil.errors import FormatError, ParameterError

SEPARATORS = (",", ";", "\t", "|")
SAMPLE = 1 << 18
"""Bytes from the beginning of a file that decide its separator and its decimal mark."""

_PREFERRED = ("\t", ";", "|", ",")  # a comma stands in texts and numbers more often than the others
_BOMS = {  # the longer ones first: the UTF-32 mark begins like the UTF-16 one
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_WITH_BOM = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_OF_NAMES = ("idna", "punycode")  # of the internet's computers, not of texts
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MAGIC = {
    b"PAR1": "a Parquet file; name it .parquet",
    b"ARROW1": "a Feather or Arrow file; name it .feather",
    b"PK\x03\x04": "an Excel workbook or a zip archive; save it as text or unpack it",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save it as text",
    b"\x1f\x8b": "compressed with gzip; unpack it",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it",
    b"%PDF": "a PDF",
    b"$FL2": "an SPSS file; save it as text",
    b"<stata_dta>": "a Stata file; save it as text",
}
COMMA_NUMBER = r"[-+]?\d+,\d+"
POINT_NUMBER = r"[-+]?\d+\.\d+"


def plain_encoding(name: str) -> tuple[str, bool]:
    """The codec's own name, and whether the given name asks for a byte order mark.

    >>> plain_encoding("UTF8"), plain_encoding("latin1"), plain_encoding("utf-8-sig")
    (('utf-8', False), ('iso8859-1', False), ('utf-8', True))
    """
    try:
        "".encode(name)
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        found = ""
    if not found or found in _OF_NAMES:
        raise ParameterError(f"unknown encoding {name}; utf-8, windows-1252 and utf-16 are common") from None
    return _WITH_BOM.get(found, found), found in _WITH_BOM


def to_utf8(raw: bytearray, *, path: str, encoding: str | None) -> tuple[bytearray, str, bool, list[str]]:
    """The text as UTF-8 without mark, the encoding it had, whether it had a mark, and what was assumed."""
    mark, marked = next(((m, name) for m, name in _BOMS.items() if raw.startswith(m)), (b"", None))
    notes: list[str] = []
    if encoding is not None:
        name, either = plain_encoding(encoding)
        # UTF-16 may be written in two byte orders, and the mark says in which.
        if either and marked is not None and marked[:6] == name[:6]:
            name = marked
    elif marked is not None:
        name = marked
    elif _is_utf8(raw):
        name = "utf-8"
    else:
        if b"\0" in raw or _CONTROL.search(raw):
            raise _not_text(raw, path)
        name = "cp1252"
        notes.append(f"{path}: is not UTF-8; read as windows-1252")
    if name == marked:
        del raw[: len(mark)]
    if name != "utf-8":
        raw = _decoded(raw, name, path=path, guessed=bool(notes))
    elif (marked is not None or encoding is not None) and not _is_utf8(raw):
        _decoded(raw, name, path=path, guessed=False)
    if b"\0" in raw:
        raise _not_text(raw, path)
    return raw, name, name == marked, notes


def _not_text(raw: bytearray, path: str) -> FormatError:
    # Asked only now: a CSV may well begin with a column named PAR1.
    for magic, what in _MAGIC.items():
        if raw.startswith(magic):
            return FormatError(f"{path}: is not text but {what}")
    if b"\0" in raw:
        line = raw[: raw.index(b"\0")].count(b"\n") + 1
        return FormatError(f"{path}: line {line} holds a NUL byte, so this is not a text file")
    return FormatError(f"{path}: holds control characters, so this is not a text file")


def _is_utf8(raw: bytearray) -> bool:
    if raw.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    step = 1 << 20
    with memoryview(raw) as view:
        try:
            for start in range(0, len(view), step):
                decoder.decode(view[start : start + step], final=start + step >= len(view))
        except UnicodeDecodeError:
            return False
    return True


def _decoded(raw: bytearray, name: str, *, path: str, guessed: bool) -> bytearray:
    try:
        return bytearray(raw.decode(name).encode("utf-8"))
    except UnicodeDecodeError as error:
        line = raw[: error.start].decode(name, "replace").count("\n") + 1
        what = "neither UTF-8 nor windows-1252" if guessed else f"not {name}"
        byte = raw[error.start]
        where = f"{path}: line {line} (byte {byte:#04x})"
        raise FormatError(f"{where} is {what}; give the file's encoding") from None
    except UnicodeEncodeError:
        raise FormatError(f"{path}: is not {name}; give the file's encoding") from None


def checked_mark(mark: str, *, what: str) -> str:
    """A separator or a decimal mark as given by a person; `tab` and `\\t` mean the tab.

    >>> checked_mark("tab", what="separator")
    '\\t'
    """
    char = "\t" if mark in ("tab", "\\t") else mark
    if len(char) != 1 or not char.isascii() or char.isalnum() or char in '"\r\n\0+-':
        raise ParameterError(f"{what} {mark!r}: must be one sign and no letter, digit or quote")
    return char


def sample_records(text: bytearray, separator: str) -> list[list[str]]:
    """The records at the beginning of the text, without blank lines; the cut one at the end only if alone."""
    part = text[:SAMPLE].decode("utf-8", "ignore")
    records: list[list[str]] = []
    # An error is a field that goes on and on: a quote is never closed, which reading the whole will tell.
    with suppress(csv.Error):
        records.extend(r for r in csv.reader(io.StringIO(part, newline=""), delimiter=separator) if r)
    return records if len(text) <= SAMPLE or len(records) == 1 else records[:-1]


def find_separator(text: bytearray) -> str:
    """The separator under which the header has several fields and most records have as many.

    >>> find_separator(bytearray(b"a;b\\n1,5;2,5\\n")), find_separator(bytearray(b'"a;b",c\\n1,2\\n'))
    (';', ',')
    """
    fits: dict[str, tuple[float, bool, int]] = {}
    for separator in _PREFERRED:
        records = sample_records(text, separator)
        width = len(records[0]) if records else 0
        if width > 1:
            alike = sum(len(record) == width for record in records[1:])
            share = alike / (len(records) - 1) if len(records) > 1 else 0.0
            # Without records to compare with, the header with the most fields wins.
            fits[separator] = (share, _tidy(text, separator), width if len(records) == 1 else 0)
    if fits:
        return max(fits, key=lambda separator: fits[separator])
    # One column: whatever does not cut its cells.
    for separator in SEPARATORS:
        if separator.encode() not in text:
            return separator
    for separator in SEPARATORS:
        if all(len(record) == 1 for record in sample_records(text, separator)):
            return separator
    return ","


def _tidy(text: bytearray, separator: str) -> bool:
    """Whether quotes stand only around whole names of the header: a wrong separator cuts inside them."""
    header = text[:SAMPLE].lstrip(b"\r\n").decode("utf-8", "ignore")
    mark = re.escape(separator)
    field = rf'(?:"(?:[^"]|"")*+"|[^"\r\n{mark}]*+)'
    return re.match(rf"{field}(?:{mark}{field})*+(?:[\r\n]|\Z)", header) is not None


def decimal_marks(text: bytearray, separator: str) -> set[str]:
    """Which decimal marks the numbers at the beginning of the text have."""
    cells = [cell for record in sample_records(text, separator)[1:] for cell in record]
    patterns = {",": re.compile(COMMA_NUMBER, re.ASCII), ".": re.compile(POINT_NUMBER, re.ASCII)}
    return {mark for mark, pattern in patterns.items() if any(pattern.fullmatch(cell) for cell in cells)}


def points_part_thousands(text: bytearray, separator: str) -> bool:
    """Whether every number with a point at the beginning of the text could be one of thousands, as 1.234 for 1234.

    >>> [points_part_thousands(bytearray(text), ";") for text in (b"a;b\\n1.234;7\\n", b"a;b\\n0.125;7\\n")]
    [True, False]
    """
    cells = [cell for record in sample_records(text, separator)[1:] for cell in record]
    pointed = [cell for cell in cells if re.fullmatch(POINT_NUMBER, cell, re.ASCII)]
    return bool(pointed) and all(re.fullmatch(r"[-+]?[1-9]\d{0,2}\.\d{3}", cell, re.ASCII) for cell in pointed)


def find_newline(text: bytearray) -> str:
    """How the first line ends; a file of one line counts as ended by a line feed."""
    found = re.search(rb"\r\n|\r|\n", text)
    return found.group().decode() if found else "\n"


def split_header(text: bytearray, separator: str) -> tuple[list[str], int] | None:
    """The names in the first record and where the next one begins, or None when there is no next one."""
    for size in (SAMPLE, len(text)):
        names, end = _first_record(text[:size].decode("utf-8", "ignore"), separator)
        # Not up to the cut, where the bytes of a letter or of a line end may be parted.
        if end < min(size, len(text)) - 4:
            return names, end
    return (names, end) if end < len(text) else None


def _first_record(part: str, separator: str) -> tuple[list[str], int]:
    end = 0

    def lines() -> Iterator[str]:
        nonlocal end
        for line in io.StringIO(part, newline=""):
            end += len(line.encode())
            yield line

    with suppress(csv.Error):
        for names in csv.reader(lines(), delimiter=separator):
            if names:
                return names, end
    return [], len(part.encode())
