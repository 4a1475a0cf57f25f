"""Columns as Stata stores them: the storage type, the missing values, the format and the labels of each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil import metadata
from rankveil.errors import FormatError, row_listing
from rankveil.files import clocks, statistical
from rankveil.metadata import Described, Value

if TYPE_CHECKING:
    import pyarrow as pa

Clocked = Literal["date", "datetime", "time", "leap"]

LONGEST_STR = 2045
"""Texts with more bytes are kept apart from the records (strL)."""

LONGEST_LABEL = 32_000
"""The most bytes of a value's label."""

STRL = 32_768
"""The storage code of texts that are kept apart."""

_MOST_LABELS = 65_536
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class _Storage:
    """A storage type of numbers: its code, its bytes, its range, and its missing values, `.` first."""

    code: int
    dtype: str
    low: float
    high: float
    missing: NDArray[Any]
    format: str


def _storages() -> dict[str, _Storage]:
    steps = np.arange(27)
    floats = (0x7F00_0000 + 0x800 * steps).astype("<u4").view("<f4")
    doubles = (0x7FE0_0000_0000_0000 + 0x100_0000_0000 * steps).astype("<u8").view("<f8")
    return {
        "byte": _Storage(65_530, "<i1", -127, 100, (101 + steps).astype("<i1"), "%8.0g"),
        "int": _Storage(65_529, "<i2", -32_767, 32_740, (32_741 + steps).astype("<i2"), "%8.0g"),
        "long": _Storage(65_528, "<i4", -2_147_483_647, 2_147_483_620, (2_147_483_621 + steps).astype("<i4"), "%12.0g"),
        "float": _Storage(65_527, "<f4", -(2.0**127), 2.0**127, floats, "%9.0g"),
        "double": _Storage(65_526, "<f8", -(2.0**1023), 2.0**1023, doubles, "%10.0g"),
    }


_STORAGES = _storages()
_WHOLE = ("byte", "int", "long")


@dataclass(frozen=True)
class Column:
    """A column as it will stand in the file."""

    name: str
    code: int
    dtype: str
    cells: Any
    """A numpy array, or an Arrow array of texts."""
    format: str
    label: str = ""
    label_set: str = ""
    labels: tuple[tuple[int, str], ...] = ()
    long_rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Rows whose text stands apart (strL)."""


def clock_of(format: str) -> Clocked | None:
    """What numbers of a display format count: days, milliseconds, or milliseconds with leap seconds.

    >>> [clock_of(format) for format in ("%td", "%tcHH:MM:SS", "%-tcCCYY", "%tC", "%tm", "%9.0g")]
    ['date', 'time', 'datetime', 'leap', None, None]
    """
    found = re.match(r"%-?(td|d|tc|tC)(.*)", format)
    if not found:
        return None
    if found.group(1) == "tC":
        return "leap"
    if found.group(1) != "tc":
        return "date"
    only_time = re.fullmatch(r"(?:HH|Hh|hH|hh|MM|mm|SS|ss|\.s+|[:_. ]|[AaPp]\.?[Mm]\.?)+", found.group(2))
    return "time" if only_time else "datetime"


def column_of(name: str, array: pa.Array, described: Described) -> Column:
    """The column as it will stand in the file; what Stata cannot hold is refused."""
    import pyarrow as pa

    label = fitting(described.label, 80, what=f"column {name}: its label")
    about = metadata.in_words_of(described, "stata")
    if pa.types.is_dictionary(array.type):
        if _can_be_labels(array.dictionary):
            return replace(_of_categories(name, array), label=label)
        array = array.cast(pa.large_string())
    if statistical.is_text(array.type):
        if described.value_labels or described.has_missing_codes:
            raise FormatError(
                f"column {name}: Stata has neither labels nor missing codes for text; write .sav or .parquet instead"
            )
        return replace(_of_texts(name, array, about), label=label)
    if described.has_missing_codes:
        about = replace(about, storage=about.storage or _natural(array.type))
        array, described = _codes_to_letters(name, array, described)
    made = (_of_times if pa.types.is_temporal(array.type) else _of_numbers)(name, array, about)
    labels = tuple((_labelled_value(name, value), text) for value, text in described.value_labels)
    return replace(made, label=label, label_set=about.label_set, labels=labels)


def _of_numbers(name: str, array: pa.Array, about: Described) -> Column:
    values, absent = statistical.numbers_of(array, name=name, program="Stata")
    storage = _storage_for(values, absent, wanted=about.storage or _natural(array.type))
    if storage == "double" and values.dtype.kind == "f":
        statistical.refuse_infinite(values, name=name, program="Stata", limit=_STORAGES["double"].high)
    format = about.format if re.match(r"%[^s]*$", about.format) else _STORAGES[storage].format
    return _stored(name, values, absent, storage=storage, format=format)


def _of_times(name: str, array: pa.Array, about: Described) -> Column:
    import pyarrow as pa

    kind = array.type
    if pa.types.is_duration(kind):
        raise FormatError(f"column {name}: Stata has no durations; make them numbers or write .parquet")
    what = clocks.what_of(kind)
    counts = clocks.STATA.counts_of(array, name=name)
    known = clock_of(about.format)
    fits = known == what or (what == "datetime" and known == "time")
    format = about.format if fits else {"date": "%td", "time": "%tcHH:MM:SS", "datetime": "%tc"}[what]
    wanted = about.storage or ("long" if what == "date" else "double")
    absent = np.isnan(counts)
    return _stored(name, counts, absent, storage=_storage_for(counts, absent, wanted=wanted), format=format)


def _of_categories(name: str, array: pa.Array) -> Column:
    codes, absent, words = statistical.categories_of(array)
    storage = _storage_for(codes, absent, wanted="byte")
    made = _stored(name, codes, absent, storage=storage, format=_STORAGES[storage].format)
    return replace(made, labels=tuple(enumerate(words, start=1)))


def _of_texts(name: str, array: pa.Array, about: Described) -> Column:
    lengths = statistical.byte_lengths(array, name=name, program="Stata")
    given = re.fullmatch(r"str(\d+)", about.storage)
    width = max(1, int(lengths.max(initial=1)), int(given.group(1)) if given else 1)
    format = about.format if re.fullmatch(r"%[-~]?\d+s", about.format) else ""
    if about.storage == "strL" or width > LONGEST_STR:
        rows = np.flatnonzero(lengths > 0)
        return Column(name, STRL, "V8", array, format or "%9s", long_rows=rows)
    return Column(name, width, f"S{width}", array, format or f"%{min(max(width, 9), 244)}s")


def _storage_for(values: NDArray[Any], absent: NDArray[np.bool_], *, wanted: str) -> str:
    """The wanted storage type, or the next one that holds every value exactly."""
    present = values[~absent & ~np.isnan(values)] if values.dtype.kind == "f" else values[~absent]
    ladder = [*_WHOLE[_WHOLE.index(wanted) :], "double"] if wanted in _WHOLE else dict.fromkeys([wanted, "double"])
    for name in ladder:
        storage = _STORAGES[name]
        if not np.all((present > storage.low) & (present < storage.high)) and not _at_edge(present, storage):
            continue
        with np.errstate(over="ignore"):
            if np.array_equal(present.astype(storage.dtype).astype(values.dtype), present):
                return name
    return "double"


def _at_edge(present: NDArray[Any], storage: _Storage) -> bool:
    """Whether all values lie in the range of a whole type, whose ends belong to it."""
    return storage.dtype[1] == "i" and bool(np.all((present >= storage.low) & (present <= storage.high)))


def _natural(kind: pa.DataType) -> str:
    """The storage type that a column without history begins with."""
    import pyarrow as pa

    if pa.types.is_null(kind):
        return "byte"
    if pa.types.is_floating(kind):
        return "double" if kind.bit_width == 64 else "float"
    if pa.types.is_decimal(kind):
        return "double"
    return {1: "byte", 8: "byte", 16: "int"}.get(kind.bit_width, "long")


def _stored(name: str, values: NDArray[Any], absent: NDArray[np.bool_], *, storage: str, format: str) -> Column:
    """Numbers as their storage type holds them, missing ones as its missing values."""
    about = _STORAGES[storage]
    missing = np.zeros(len(values), np.int64)  # 0 for a value, 1 for `.`, 2 for `.a`
    missing[absent] = 1
    if values.dtype.kind == "f":
        missing[np.isnan(values)] = 1
        letters = metadata.tags_of(values)
        if np.any(letters == "_"):
            rows = np.flatnonzero(letters == "_") + 1
            raise FormatError(f"column {name}: Stata has no missing value ._ ({row_listing(rows)}); write .parquet")
        has = letters != ""
        missing[has] = letters[has].view(np.uint32).astype(np.int64) - ord("a") + 2
    cells = np.where(missing == 0, values, 0).astype(about.dtype)
    cells[missing > 0] = about.missing[missing[missing > 0] - 1]
    return Column(name, about.code, about.dtype, cells, format)


def _codes_to_letters(name: str, array: pa.Array, described: Described) -> tuple[pa.Array, Described]:
    """Missing codes of SPSS as missing letters, each labelled with its label or itself; Stata has no such codes."""
    import pyarrow as pa

    if pa.types.is_temporal(array.type):
        raise FormatError(f"column {name}: Stata has no missing codes for dates; write .sav or .parquet instead")
    values, absent = statistical.numbers_of(array, name=name, program="Stata")
    values = np.where(absent, np.nan, values.astype(np.float64))
    in_use = np.unique(values[described.is_missing(pa.array(values)) & ~np.isnan(values)]).tolist()
    codes = dict.fromkeys(metadata.plain(code) for code in (*described.missing_codes, *in_use))
    if len(codes) > len(_LETTERS):
        raise FormatError(
            f"column {name}: has {len(codes)} missing codes, and Stata has {len(_LETTERS)} letters for them"
        )
    letters = dict(zip(codes, _LETTERS, strict=False))
    for code, letter in letters.items():
        values[values == code] = metadata.tagged(letter)
    known = described.labels
    kept = [(value, text) for value, text in described.value_labels if value not in letters]
    new: list[tuple[Value, str]] = [(f".{letter}", known.get(code, str(code))) for code, letter in letters.items()]
    changed = replace(described, value_labels=tuple(kept + new), missing_codes=(), missing_ranges=())
    return pa.array(values), changed


def _can_be_labels(words: pa.Array) -> bool:
    return len(words) <= _MOST_LABELS and all(
        word is None or (0 < len(word.encode()) <= LONGEST_LABEL and "\0" not in word) for word in words.to_pylist()
    )


def _labelled_value(name: str, value: Value) -> int:
    long = _STORAGES["long"]
    if isinstance(value, str) and re.fullmatch(r"\.[a-z]", value):
        return int(long.missing[_LETTERS.index(value[1]) + 1])
    if isinstance(value, int) and long.low <= value <= long.high:
        return value
    raise FormatError(f"column {name}: Stata labels only whole numbers; write .sav or .parquet instead")


def fitting(text: str, most: int, *, what: str) -> str:
    """A text of at most so many characters."""
    return statistical.checked_label(text, most=most, size=len(text), what=what, program="Stata", unit="characters")
