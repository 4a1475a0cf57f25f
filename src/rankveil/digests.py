"""A digest of what a table says, whatever file it lies in and in whatever order its rows stand.

Every cell has a code of 16 bytes: whole and other numbers by their value (7, 7.0 and the text 7 are one), dates and
times by their moment, any other text by its hash, missing cells all alike. A row is the SHAKE128 of its codes, and a
table the sum of its rows modulo 2^1024 (Bellare and Micciancio 1997), so that parts are added up. Two different tables
of one digest take some 2^64 steps to find (Wagner 2002), and nothing about it is secret.

>>> import pyarrow as pa
>>> one = pa.table({"AGE": ["31", "44"], "DAY": ["2024-05-01", ""]})
>>> other = pa.table({"DAY": pa.array([None, 19844], pa.date32()), "AGE": [44.0, 31.0]})
>>> digest_of(Table(one)) == digest_of(Table(other))
True
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import partial
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankveil.columns import EXACT, MISSING_TEXTS, as_text, to_arrow, with_point
from rankveil.table import Table

Codes = NDArray[np.uint64]
"""Two words for each cell."""

VERSION = "1"
"""A digest begins with it: those of another version are not compared."""

_BITS = 1024
_ROWS = 1 << 14
"""Rows that are hashed at a time."""

_WHOLE, _REAL, _MOMENT, _TIME = 1, 2, 3, 4
"""The first word of a cell that is no text; of a missing one it is 0, of a text its highest bit is set."""
_TEXT = 1 << 63

_NUMBER = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""Numbers as they are written out; 007 and +49 are codes of something."""
_NO_NUMBER = r"^[+]|^-?0[0-9]"
"""Of what can be read as a number, what is none of these."""
_INTEGER = r"^-?[0-9]{1,19}$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6}0*)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?$"
_CLOCK = r"^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6}0*)?)?$"
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
_DAY = 86_400_000_000
_NO_ZONE = datetime(1970, 1, 1)
_FAR = 10**8
"""Days that are too many to be counted in millionths of a second."""
_INTEGERS = 2.0**63


@dataclass(frozen=True)
class RowSum:
    """The sum of the hashes of some rows of a table."""

    names: tuple[str, ...]
    records: int
    total: int

    @classmethod
    def of(cls, table: Table) -> Self:
        """That of a table, or of a part of one."""
        names = tuple(sorted(table.names))
        if not names:
            return cls(names, len(table), 0)
        total = 0
        columns = [codes_of(to_arrow(table.frame.get_column(name)), decimal=table.decimal) for name in names]
        for start in range(0, len(table), _ROWS):
            total += _hashed(np.hstack([codes[start : start + _ROWS] for codes in columns]))
        return cls(names, len(table), total % (1 << _BITS))

    def merged(self, other: RowSum) -> RowSum:
        """That of both parts together."""
        return RowSum(self.names, self.records + other.records, (self.total + other.total) % (1 << _BITS))

    @property
    def digest(self) -> str:
        """The digest of the table whose rows these are."""
        told = json.dumps({"columns": self.names, "records": self.records})
        made = hashlib.sha256(b"rankveil/table/" + VERSION.encode() + b"\0" + told.encode() + b"\0")
        made.update(self.total.to_bytes(_BITS // 8, "little"))
        return f"{VERSION}:{made.hexdigest()}"


def digest_of(table: Table) -> str:
    """The digest of a table."""
    return RowSum.of(table).digest


def is_comparable(digest: object) -> bool:
    """Whether it is a digest of this version."""
    return isinstance(digest, str) and digest.startswith(f"{VERSION}:")


def codes_of(cells: pa.Array, *, decimal: str = ".") -> Codes:
    """The codes of the cells of a column, each by itself: the same however the column is cut."""
    kind = cells.type
    if pa.types.is_dictionary(kind):
        cells = cells.cast(kind.value_type)
        kind = cells.type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        cells = cells.cast(pa.string())
        kind = cells.type
    codes = np.zeros((len(cells), 2), dtype=np.uint64)
    if pa.types.is_null(kind):
        return codes
    text = pc.utf8_trim_whitespace(cells) if pa.types.is_string(kind) else None
    gone = cells.is_null() if text is None else pc.is_in(text, value_set=pa.array([*MISSING_TEXTS, None], pa.string()))
    present = (cells if text is None else text).filter(pc.invert(gone))
    made = _of_values(present)
    if made is None:
        made = _of_texts(present, decimal) if text is not None else _of_texts(as_text(present), ".")
    codes[~_holds(gone)] = made
    return codes


def _of_values(present: pa.Array) -> Codes | None:
    """The codes of numbers, dates and times; None for what is read by its text."""
    kind = present.type
    if pa.types.is_boolean(kind):
        return _tagged(_WHOLE, present.cast(pa.int64()).to_numpy())
    if pa.types.is_integer(kind):
        if pa.types.is_uint64(kind) and len(present) and pc.max(present).as_py() >= 2**63:
            return None
        return _tagged(_WHOLE, present.cast(pa.int64()).to_numpy())
    if pa.types.is_float64(kind):
        return _of_floats(present.to_numpy(zero_copy_only=False))
    try:
        if pa.types.is_date(kind):
            days = present.cast(pa.date32()).cast(pa.int32()).to_numpy().astype(np.int64)
            return _tagged(_MOMENT, days * _DAY) if np.all(np.abs(days) < _FAR) else None
        if pa.types.is_timestamp(kind):
            return _tagged(_MOMENT, present.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_numpy())
        if pa.types.is_time(kind):
            return _tagged(_TIME, present.cast(pa.time64("us")).cast(pa.int64()).to_numpy())
    except pa.ArrowInvalid:  # finer than a millionth of a second, or too far away
        return None
    return None


def _tagged(tag: int, values: NDArray[np.int64]) -> Codes:
    codes = np.empty((values.size, 2), dtype=np.uint64)
    codes[:, 0] = tag
    codes[:, 1] = values.astype(np.int64).view(np.uint64)
    return codes


def _of_floats(values: NDArray[np.float64]) -> Codes:
    """Whole ones like whole numbers; NaN is missing."""
    values = np.ascontiguousarray(values, dtype=np.float64)
    whole = (np.abs(values) < _INTEGERS) & (values == np.rint(values))
    codes = _tagged(_REAL, _as_written(values, whole).view(np.int64))
    codes[whole] = _tagged(_WHOLE, values[whole].astype(np.int64))
    codes[np.isnan(values)] = 0
    return codes


def _as_written(values: NDArray[np.float64], whole: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Numbers of single precision as they are written: a text file has 0.1 for what others keep as 0.10000000149."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    rows = np.flatnonzero((single == values) & ~whole & np.isfinite(values))
    if not rows.size:
        return values
    made = values.copy()
    made[rows] = pa.array(single[rows]).cast(pa.string()).cast(pa.float64()).to_numpy()
    return made


def _of_texts(words: pa.Array, decimal: str) -> Codes:
    """The codes of texts; a column of nothing but numbers is read at once, others by their different texts."""
    numbers = with_point(words, decimal)
    try:
        values = numbers.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        values = None
    safe = values is not None and bool(np.all(np.abs(values) < EXACT))  # and none of them is NaN
    if safe and not _any(pc.match_substring_regex(numbers, _NO_NUMBER)):
        return _of_floats(values)
    encoded = words.dictionary_encode()
    places: NDArray[np.intp] = encoded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
    return _of_words(encoded.dictionary, decimal)[places]


def _of_words(words: pa.Array, decimal: str) -> Codes:
    """The codes of different texts: of numbers, dates and times that are written out, and of all others."""
    codes = np.zeros((len(words), 2), dtype=np.uint64)
    rest = ~_holds(pc.is_in(words, value_set=pa.array([*MISSING_TEXTS], pa.string())))
    numbers = with_point(words, decimal)
    truths = pc.is_in(words, value_set=pa.array([*_TRUE, *_FALSE]))
    readings: list[tuple[pa.Array, pa.Array, Callable[[pa.Array], Codes]]] = [
        (pc.match_substring_regex(numbers, _NUMBER), numbers, _of_numbers),
        (truths, words, _of_truths),
        (pc.match_substring_regex(words, _DATE), words, partial(_each, _of_moment)),
        (pc.match_substring_regex(words, _CLOCK), words, partial(_each, _of_clock)),
        (pc.is_valid(words), words, partial(_each, _of_text)),
    ]
    for found, texts, made in readings:
        rows = np.flatnonzero(_holds(found) & rest)
        if rows.size:
            codes[rows] = made(texts.take(pa.array(rows)))
            rest[rows] = False
    return codes


def _each(code: Callable[[str], Codes], words: pa.Array) -> Codes:
    return np.stack([code(word) for word in words.to_pylist()])


def _of_numbers(words: pa.Array) -> Codes:
    codes = _of_floats(words.cast(pa.float64()).to_numpy(zero_copy_only=False))
    exact = np.abs(codes[:, 1].view(np.int64)) < EXACT  # of the others some digits were lost, where they are whole
    for row in np.flatnonzero(_holds(pc.match_substring_regex(words, _INTEGER)) & ~exact):
        value = int(words[int(row)].as_py())
        if -(2**63) <= value < 2**63:
            codes[row] = _one(_WHOLE, value)
    return codes


def _of_truths(words: pa.Array) -> Codes:
    return _tagged(_WHOLE, _holds(pc.is_in(words, value_set=pa.array(_TRUE))).astype(np.int64))


def _of_moment(word: str) -> Codes:
    try:
        moment = datetime.fromisoformat(_six_digits(word))
    except ValueError:  # the 31st of February
        return _of_text(word)
    moment = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    apart = moment - _NO_ZONE
    return _one(_MOMENT, apart.days * _DAY + apart.seconds * 10**6 + apart.microseconds)


def _of_clock(word: str) -> Codes:
    try:
        found = time.fromisoformat(_six_digits(word))
    except ValueError:
        return _of_text(word)
    seconds = (found.hour * 60 + found.minute) * 60 + found.second
    return _one(_TIME, seconds * 10**6 + found.microsecond)


def _one(tag: int, value: int) -> Codes:
    return _tagged(tag, np.array([value], dtype=np.int64)).reshape(2)


def _six_digits(word: str) -> str:
    """A moment whose fraction of a second has no more digits than Python reads."""
    return re.sub(r"(\.[0-9]{6})0+", r"\1", word)


def _of_text(word: str) -> Codes:
    codes = np.frombuffer(hashlib.blake2b(word.encode(), digest_size=16).digest(), "<u8").astype(np.uint64)
    codes[0] |= np.uint64(_TEXT)
    return codes


def _hashed(block: Codes) -> int:
    """The sum of the hashes of some rows."""
    data, width = block.astype("<u8").tobytes(), 8 * block.shape[1]
    shake = hashlib.shake_128
    made = b"".join([shake(data[at : at + width]).digest(_BITS // 8) for at in range(0, len(data), width)])
    sums = np.frombuffer(made, "<u4").reshape(len(block), -1).sum(axis=0, dtype=np.uint64)
    return sum(int(each) << (32 * place) for place, each in enumerate(sums))


def _any(found: pa.Array) -> bool:
    return bool(pc.any(found, min_count=0).as_py())


def _holds(found: pa.Array) -> NDArray[np.bool_]:
    made: NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
    return made.copy()
