"""Tables as SPSS holds them: every number a double, every text of a fixed width, labels and missing codes beside."""

from __future__ import annotations

import os
import re
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from rankveil import metadata
from rankveil.errors import FormatError, listing
from rankveil.files import clocks, statistical
from rankveil.metadata import Described, Value

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_TEXT = 32_767
"""The most bytes of a text."""

_CLOCKS: dict[str, clocks.What] = {
    **dict.fromkeys(("DATE", "ADATE", "EDATE", "JDATE", "SDATE", "QYR", "MOYR", "WKYR"), "date"),
    **dict.fromkeys(("DATETIME", "YMDHMS"), "datetime"),
    **dict.fromkeys(("TIME", "MTIME"), "time"),
    "DTIME": "duration",
}
_FORMATS = {"date": "DATE11", "datetime": "DATETIME20", "time": "TIME8", "duration": "DTIME14"}
_FINE_FORMATS = {"date": "DATE11", "datetime": "DATETIME23.2", "time": "TIME11.2", "duration": "DTIME17.2"}
_OWN_WORDS = ("ALL", "AND", "BY", "EQ", "GE", "GT", "LE", "LT", "NE", "NOT", "OR", "TO", "WITH")
_LARGEST = np.finfo(np.float64).max


@dataclass
class _Said:
    """What the library is told of the columns, by name."""

    column_labels: dict[str, str] = field(default_factory=dict)
    variable_value_labels: dict[str, dict[Value, str]] = field(default_factory=dict)
    missing_ranges: dict[str, list[Any]] = field(default_factory=dict)
    variable_measure: dict[str, str] = field(default_factory=dict)
    variable_format: dict[str, str] = field(default_factory=dict)
    variable_display_width: dict[str, int] = field(default_factory=dict)


def clock_of(format: str) -> clocks.What | None:
    """What numbers of a display format count.

    >>> clock_of("ADATE10"), clock_of("DTIME17.2"), clock_of("F8.2")
    ('date', 'duration', None)
    """
    return _CLOCKS.get(re.match(r"[A-Z]*", format)[0])  # type: ignore[index]


def write(data: pa.Table, handle: BinaryIO, *, packed: bool) -> None:
    """The table as an SPSS file at the place that `handle` has open, packed in blocks (.zsav) or not."""
    pyreadstat = statistical.library("SPSS")
    _check_names(data.column_names)
    whole = metadata.read_table(data.schema)
    _fitting(whole.label, 64, what="the label of the table")
    said, arrays = _Said(), []
    for about, cells in zip(data.schema, data.unify_dictionaries().columns, strict=True):
        arrays.append(_column(about.name, statistical.whole_array(cells), metadata.read(about), said))
    try:
        pyreadstat.write_sav(
            _frame(data.column_names, arrays),
            handle.name,
            file_label=whole.label,
            note=_lines(whole.notes) or None,
            compress=packed,
            row_compress=not packed,
            **vars(said),
        )
        _refuse_full(handle)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError) as error:
        _refuse_full(handle)
        raise FormatError(f"SPSS cannot hold this table: {error}") from error


def _refuse_full(handle: BinaryIO) -> None:
    """Fail as the system does when not one more byte can be written, as on a full disk.

    The library never tells why it failed, and where nothing at all of a piece could be written it goes on as if it had.
    """
    file = handle.fileno()
    size = os.lseek(file, 0, os.SEEK_END)
    os.write(file, b"\0")
    os.ftruncate(file, size)


def _column(name: str, array: pa.Array, described: Described, said: _Said) -> pa.Array:
    """The cells as doubles or texts; what else is known of the column goes to `said`."""
    import pyarrow as pa

    about = metadata.in_words_of(described, "spss")
    level, labels = described.level, described.value_labels
    if label := _fitting(described.label, 256, what=f"column {name}: its label"):
        said.column_labels[name] = label
    if pa.types.is_dictionary(array.type):
        codes, absent, words = statistical.categories_of(array)
        level = level or ("ordinal" if array.type.ordered else "nominal")
        labels = tuple(enumerate(words, start=1))
        made, format = pa.array(codes.astype(np.float64), mask=absent), "F8.0"
    elif statistical.is_text(array.type):
        made, format = _texts(name, array, about), ""
    elif pa.types.is_temporal(array.type):
        made, format, labels = _times(name, array, about, said)
    else:
        made, format = _numbers(name, array, about)
    if not pa.types.is_temporal(array.type):
        _say_missing(name, described, said, text=statistical.is_text(made.type))
    if labels:
        said.variable_value_labels[name] = _labels(name, labels, text=statistical.is_text(made.type))
    if level:
        said.variable_measure[name] = level
    if format:
        said.variable_format[name] = format
    if about.width:
        said.variable_display_width[name] = about.width
    return made


def _numbers(name: str, array: pa.Array, about: Described) -> tuple[pa.Array, str]:
    import pyarrow as pa

    values, absent = statistical.numbers_of(array, name=name, program="SPSS")
    known = about.decimals is not None and clock_of(about.format) is None and not about.format.startswith("A")
    format = about.format if known else ""
    if values.dtype.kind == "f":
        letters = [f".{letter}" for letter in np.unique(metadata.tags_of(values)).tolist() if letter]
        if letters:
            raise _no_letters(name, letters)
        statistical.refuse_infinite(values, name=name, program="SPSS", limit=_LARGEST)
        if not format and pa.types.is_decimal(array.type):
            format = f"F{min(40, array.type.precision + 2)}.{min(16, max(0, array.type.scale))}"
        absent = absent | np.isnan(values)
    elif not format:
        format = f"F{max(8, len(str(np.abs(values).max(initial=0))) + 1)}.0"
    return pa.array(values.astype(np.float64), mask=absent), format


def _texts(name: str, array: pa.Array, about: Described) -> pa.Array:
    """Texts, the first filled up with blanks to the width that the column had: SPSS fills up all of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = statistical.byte_lengths(array, name=name, program="SPSS")
    if lengths.max(initial=0) > LONGEST_TEXT:
        row = int(np.flatnonzero(lengths > LONGEST_TEXT)[0]) + 1
        raise FormatError(
            f"column {name}, row {row}: SPSS allows texts of {LONGEST_TEXT} bytes; shorten it or write .parquet"
        )
    filled = pc.fill_null(array, "")
    given = re.fullmatch(r"A(\d+)", about.storage)
    if given and len(filled) and int(given[1]) > lengths.max():
        first = filled[0].as_py() + " " * (int(given[1]) - int(lengths[0]))
        filled = pa.concat_arrays([pa.array([first], filled.type), filled.slice(1)])
    return filled


def _times(
    name: str, array: pa.Array, about: Described, said: _Said
) -> tuple[pa.Array, str, tuple[tuple[Value, str], ...]]:
    """Dates and times as SPSS counts them, with their codes and labels."""
    import pyarrow as pa

    kind = array.type
    what = clocks.what_of(kind)
    known = clock_of(about.format)
    fits = known == what or (known, what) in (("time", "duration"), ("date", "datetime"))
    counts = clocks.SPSS.counts_of(array, name=name)

    def counted(values: list[Value]) -> list[float]:
        raw = pa.array([int(value) for value in values], pa.int32() if kind.bit_width == 32 else pa.int64())
        return [float(count) for count in clocks.SPSS.counts_of(raw.cast(kind), name=name)]

    missing: list[Any] = counted(list(about.missing_codes))
    for low, high in about.missing_ranges:
        ends = [counted([end])[0] if np.isfinite(end) else end for end in (low, high)]
        missing.append({"lo": ends[0], "hi": ends[1]})
    if missing:
        said.missing_ranges[name] = missing
    values = counted([value for value, _ in about.value_labels])
    labels: tuple[tuple[Value, str], ...] = tuple(
        (value, label) for value, (_, label) in zip(values, about.value_labels, strict=True)
    )
    absent = np.isnan(counts)
    usual = _FORMATS if np.all(absent | (counts == np.rint(counts))) else _FINE_FORMATS
    return pa.array(counts, mask=absent), about.format if fits else usual[what], labels


def _say_missing(name: str, described: Described, said: _Said, *, text: bool) -> None:
    codes, ranges = described.missing_codes, described.missing_ranges
    if not described.has_missing_codes:
        return
    if any(isinstance(code, str) != text for code in codes) or (text and ranges):
        raise FormatError(f"column {name}: its missing codes are not of its own type; declare others")
    if len(ranges) > 1 or len(codes) > (1 if ranges else 3):
        raise FormatError(f"column {name}: SPSS allows three missing codes, or a range and one code; declare fewer")
    if text and any(len(str(code).encode()) > 8 for code in codes):
        raise FormatError(f"column {name}: SPSS allows missing texts of 8 bytes; declare shorter ones")
    said.missing_ranges[name] = [code if isinstance(code, str) else float(code) for code in codes]
    said.missing_ranges[name] += [{"lo": float(low), "hi": float(high)} for low, high in ranges]


def _labels(name: str, labels: tuple[tuple[Value, str], ...], *, text: bool) -> dict[Value, str]:
    made: dict[Value, str] = {}
    for value, label in labels:
        if isinstance(value, str) and not text:
            raise _no_letters(name, [value])
        made[str(value) if text else float(value)] = _fitting(label, 120, what=f"column {name}: a value's label")
    return made


def _no_letters(name: str, letters: list[str]) -> FormatError:
    return FormatError(
        f"column {name}: SPSS has no missing letters ({listing(letters)}); write .dta or .parquet instead"
    )


def _fitting(text: str, most: int, *, what: str) -> str:
    size = len(text.encode())
    return statistical.checked_label(text, most=most, size=size, what=what, program="SPSS", unit="bytes")


def _lines(notes: tuple[str, ...]) -> list[str]:
    """Notes in lines of at most 80 bytes, which are all that SPSS has."""
    lines = []
    for note in notes:
        for line in note.splitlines() or [""]:
            width = 80 if line.isascii() else 20  # a character has four bytes at most
            lines += [line] if len(line.encode()) <= 80 else textwrap.wrap(line, width)
    return lines


def _check_names(names: list[str]) -> None:
    if not names:
        raise FormatError("a table without columns cannot be written as an SPSS file")
    for name in names:
        if not re.fullmatch(r"[^\W\d_][\w.$#@]*", name) or name.endswith(".") or len(name.encode()) > 64:
            raise FormatError(
                f"column {name}: SPSS allows names of 1 to 64 bytes that begin with a letter, go on with letters, "
                "digits and . _ $ # @, and do not end with a point; rename it"
            )
        if name.upper() in _OWN_WORDS:
            raise FormatError(f"column {name}: the name is a word of SPSS's own; rename it")
    folded = [name.casefold() for name in names]
    twice = [name for name, fold in zip(names, folded, strict=True) if folded.count(fold) > 1]
    if twice:
        raise FormatError(f"the names {listing(twice)} are the same to SPSS; give each column its own name")


def _frame(names: list[str], arrays: list[pa.Array]) -> Any:
    """The frame that the library writes from; it knows those of polars and pandas."""
    import pyarrow as pa

    table = pa.table(arrays, names=names)
    try:
        import polars as pl
    except ImportError:
        try:
            return table.to_pandas()
        except ImportError as error:
            raise FormatError(
                "writing SPSS files needs polars or pandas; install one with pip install 'rankveil[polars]'"
            ) from error
    return pl.from_arrow(table)
