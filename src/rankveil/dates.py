"""Dates and times as numbers: the whole numbers by which they are kept, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Array = NDArray[np.float64]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST, _LAST = -719_162, 2_932_896
"""The days 0001-01-01 and 9999-12-31, from 1970: years of four digits are what files and libraries can write."""


def kept_as(kind: pa.DataType) -> pa.DataType:
    """The type whose whole numbers stand for dates and times; nanoseconds since 1970 have too many digits."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", tz=kind.tz)
    return pa.duration("us") if pa.types.is_duration(kind) and kind.unit == "ns" else kind


def as_whole(moments: pa.Array) -> pa.Array:
    """Dates and times as whole numbers: days, seconds or parts of them.

    >>> import datetime
    >>> as_whole(pa.array([datetime.date(1970, 1, 31)])).to_pylist()
    [30]
    """
    kept = moments.cast(kept_as(moments.type))
    return kept.cast(pa.int32()).cast(pa.int64()) if _narrow(kept.type) else kept.cast(pa.int64())


def are_exact(moments: pa.Array) -> bool:
    """Whether the numbers that stand for them are exact, and within the range of what can be written."""
    try:
        whole = as_whole(moments.drop_null()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # parts of a second that would be lost
        return False
    numbers = whole.astype(np.float64)
    low, high = _limits(moments.type)
    inside = (low <= numbers) & (numbers <= high)
    return bool(inside.all()) and bool(np.all(numbers.astype(np.int64) == whole))


def from_whole(values: Array, kind: pa.DataType) -> tuple[pa.Array, str | None]:
    """Dates and times of a type from numbers, and a note when some had to be rounded or were beyond its range.

    >>> from_whole(np.array([30.4]), pa.date32())[0].to_pylist()
    [datetime.date(1970, 1, 31)]
    """
    kept = kept_as(kind)
    step = 86_400_000 if pa.types.is_date64(kind) else 1
    whole = np.rint(values / step) * step
    note = None
    if not np.array_equal(whole, values):
        note = f"masked values were rounded to {'days' if pa.types.is_date(kind) else 'the units of its times'}"
    within = np.clip(whole, *_limits(kind))
    beyond = int(np.sum(within != whole))
    if beyond:
        note = f"{beyond} masked values were beyond what it can hold and were set to the nearest"
    fresh = pa.array(within.astype(np.int64))
    return (fresh.cast(pa.int32()) if _narrow(kept) else fresh).cast(kept).cast(kind), note


def text_form(texts: pa.Array, kind: pa.DataType) -> str:
    """How dates or times are written, as in 2024-01-31T23:59, with seconds where some have them."""
    if pa.types.is_date(kind):
        return "%Y-%m-%d"
    between = texts[0].as_py()[10] if len(texts) else " "
    seconds = len(texts) > 0 and pc.max(pc.utf8_length(texts)).as_py() > len("2024-01-31 23:59")
    return f"%Y-%m-%d{between}%H:%M{':%S' if seconds else ''}"


def parsed(value: Any, kind: pa.DataType) -> float | None:
    """The number that stands for a date or time that somebody gives, as text or as it is; None when it is none.

    A time of a column with a zone needs its offset, as in 2024-01-31 23:59+01:00; a duration is a number of its units.

    >>> parsed("1970-01-31", pa.date32()), parsed("soon", pa.date32())
    (30.0, None)
    """
    try:
        if pa.types.is_duration(kind) and isinstance(value, str | int | float):
            number = float(value)
            return number if np.isfinite(number) else None
        if isinstance(value, str) and pa.types.is_time(kind):  # Arrow reads no text as a time without its day
            whole = pa.array([f"1970-01-01 {value.strip()}"]).cast(pa.timestamp(kind.unit)).cast(pa.int64())[0].as_py()
        else:
            one = pa.array([value.strip()]).cast(kind) if isinstance(value, str) else pa.array([value], type=kind)
            whole = as_whole(one)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, TypeError, OverflowError):
        return None
    return None if whole is None else float(whole)


def written(value: float, kind: pa.DataType) -> str | float:
    """A date or time as text, from the number that stands for it; times of a zone in UTC; durations stay numbers.

    >>> written(30.0, pa.date32()), written(90.0, pa.timestamp("s", tz="Europe/Berlin"))
    ('1970-01-31', '1970-01-01 00:01:30Z')
    """
    if pa.types.is_duration(kind):
        return int(value)
    moment, _ = from_whole(np.array([value]), kept_as(kind))
    zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    text = (moment.cast(pa.timestamp(moment.type.unit)) if zoned else moment).cast(pa.string())[0].as_py()
    return f"{text}{'Z' if zoned else ''}"


def clock(kind: pa.DataType) -> tuple[str, str, bool]:
    """What is counted (date, timestamp or time), in which unit, and whether the texts are in UTC.

    >>> clock(pa.date32()), clock(pa.timestamp("ns", tz="Europe/Berlin"))
    (('date', 'day', False), ('timestamp', 'us', True))
    """
    if pa.types.is_date(kind):
        return "date", "ms" if pa.types.is_date64(kind) else "day", False
    what = "timestamp" if pa.types.is_timestamp(kind) else "time"
    return what, kept_as(kind).unit, what == "timestamp" and kind.tz is not None


def _narrow(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date32(kind) or pa.types.is_time32(kind))


def _limits(kind: pa.DataType) -> tuple[float, float]:
    """The first and the last number that a type can hold and that can be written, in whatever zone."""
    if pa.types.is_date32(kind):
        return _FIRST, _LAST
    if pa.types.is_date64(kind):
        return _FIRST * 86_400_000.0, _LAST * 86_400_000.0
    day = 86_400.0 * _PER_SECOND[kept_as(kind).unit]
    if pa.types.is_time(kind):
        return 0.0, day - 1
    longest = 2.0**63 / (86_400.0 * _PER_SECOND[kind.unit]) - 1  # in days
    if pa.types.is_duration(kind):
        longest = min(longest, 106_751_990.0)  # what libraries can show counts microseconds
        return -longest * day, longest * day
    return max(_FIRST + 1, -longest) * day, min(_LAST, longest) * day
