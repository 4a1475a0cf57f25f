"""Dates and times as numbers: the whole numbers by which they are kept, and back."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankveil.errors import ParameterError

Array = NDArray[np.float64]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST, _LAST = -719_162, 2_932_896
"""The days 0001-01-01 and 9999-12-31, from 1970: years of four digits are what files and libraries can write."""


_DAY, _MONTH, _YEAR = "(0?[1-9]|[12][0-9]|3[01])", "(0?[1-9]|1[0-2])", "([0-9]{4})"
_DATES = {
    "%Y-%m-%d": "([0-9]{4})-([0-9]{2})-([0-9]{2})",
    "%Y/%m/%d": "([0-9]{4})/(0[1-9]|1[0-2])/(0[1-9]|[12][0-9]|3[01])",
    "%Y-%m": "([0-9]{4})-(0[1-9]|1[0-2])",
    "%d.%m.%Y": rf"{_DAY}\.{_MONTH}\.{_YEAR}",
    "%d/%m/%Y": f"{_DAY}/{_MONTH}/{_YEAR}",
    "%m/%d/%Y": f"{_MONTH}/{_DAY}/{_YEAR}",
    "%d-%m-%Y": f"{_DAY}-{_MONTH}-{_YEAR}",
    "%m-%d-%Y": f"{_MONTH}-{_DAY}-{_YEAR}",
}
"""How dates may be written, and what their texts look like; a dot puts the day first, other marks leave it open."""
_TIME = "[0-9]{2}:[0-9]{2}(:[0-9]{2})?"
_TIME_ALONE = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?"
_LIKE = (
    rf"({_DATES['%Y-%m-%d']}|{_DATES['%Y/%m/%d']}|({_DAY}[./-]{_MONTH}|{_MONTH}[./-]{_DAY})[./-]{_YEAR})([ T]{_TIME})?"
    rf"|{_DATES['%Y-%m']}|{_TIME_ALONE}"
)
"""What any of these looks like, and no code of other numbers."""
_ONE_DIGIT = "^[0-9][./-]|^[0-9]{2}[./-][0-9][./-]"
_ZERO_FIRST = "^0[0-9][./-]|^[0-9]{1,2}[./-]0[0-9][./-]"
_TRIED = 10
"""So many cells are looked at before all are: numbers and labels cost nothing more."""
MOSTLY = 0.9
"""From this share of dates on, a column whose other cells are none is in doubt."""
_REMEDY = "write all of them like 2025-07-06, or take them as labels with --kind NAME=nominal"
UNDECIDED = f"its dates can be read with the day first and with the month first: {_REMEDY}"
CONTRADICTORY = f"some of its dates have the day first and others the month: {_REMEDY}"
SHORT_YEARS = f"the years of its dates have two digits: {_REMEDY}"
SEVERAL = f"its dates are not all written in one way, or some are none: {_REMEDY}"


@dataclass(frozen=True)
class Layout:
    """How the dates or times of a column of text are written, all of them alike.

    >>> days = Layout("%d.%m.%Y")
    >>> read = days.read(pa.array(["31.01.1970"]))
    >>> read.to_pylist(), days.write(read)[0].to_pylist()
    ([datetime.date(1970, 1, 31)], ['31.01.1970'])
    """

    date: str
    """As strftime has it; empty for a time of day."""
    between: str = ""
    time: str = ""
    padded: bool = True
    """Whether days and months below 10 have a zero in front."""

    @cached_property
    def kind(self) -> pa.DataType:
        """The type of what is written so."""
        if not self.date:
            return pa.time32("s")
        return pa.timestamp("s") if self.time else pa.date32()

    @cached_property
    def pattern(self) -> str:
        """What its texts look like."""
        if not self.date:
            return f"^{_TIME_ALONE}$"
        return f"^{_DATES[self.date]}{self.between}{_TIME if self.time else ''}$"

    def fits(self, texts: pa.Array) -> bool:
        """Whether all texts are written so; days and months may have their zeros or not."""
        return bool(pc.all(pc.match_substring_regex(texts, self.pattern), min_count=0).as_py())

    def read(self, texts: pa.Array) -> pa.Array:
        """The dates or times; one that there is not is Arrow's error."""
        if not self.date:
            noon = pc.binary_join_element_wise(pa.scalar("1970-01-01"), texts, " ")
            return noon.cast(pa.timestamp("s")).cast(pa.int64()).cast(pa.int32()).cast(self.kind)
        if self.date == "%Y-%m":
            return pc.binary_join_element_wise(texts, pa.scalar("01"), "-").cast(self.kind)
        if self.date == "%Y/%m/%d":
            texts = pc.replace_substring(texts, "/", "-")
        elif self.date != "%Y-%m-%d":
            texts = pc.replace_substring_regex(texts, "^([0-9])([./-])", r"0\1\2")
            texts = pc.replace_substring_regex(texts, "^([0-9]{2}[./-])([0-9][./-])", r"\10\2")
            order = r"\3-\2-\1" if self.date.startswith("%d") else r"\3-\1-\2"
            texts = pc.replace_substring_regex(texts, "^([0-9]{2})[./-]([0-9]{2})[./-]([0-9]{4})", order)
        return texts.cast(self.kind)

    def write(self, moments: pa.Array) -> tuple[pa.Array, str | None]:
        """Dates or times as text, and a note when some had to be rounded to months or minutes."""
        rounded, unit = moments, "months" if self.date == "%Y-%m" else "minutes"
        if self.date == "%Y-%m":
            last = pa.scalar(_LAST - 30, pa.int32()).cast(pa.date32())
            rounded = pc.min_element_wise(pc.round_temporal(moments, unit="month"), last)
        elif self.time == "%H:%M" and self.date:
            rounded = pc.round_temporal(moments, unit="minute")
        elif self.time == "%H:%M":
            minutes = np.rint(moments.cast(pa.int32()).to_numpy(zero_copy_only=False) / 60)
            rounded = pa.array((60 * np.minimum(minutes, 24 * 60 - 1)).astype(np.int32)).cast(self.kind)
        texts = pc.strftime(rounded, format=f"{self.date}{self.between}{self.time}").cast(pa.string())
        if not self.padded:
            texts = pc.replace_substring_regex(texts, "^0([0-9][./-])", r"\1")
            texts = pc.replace_substring_regex(texts, "^([0-9]{1,2}[./-])0([0-9][./-])", r"\1\2")
        return texts, None if rounded.equals(moments) else f"masked values were rounded to {unit}"


def layout_of(texts: pa.Array) -> Layout | str | None:
    """How all texts are written if they are dates or times; why that is in doubt; None when they are something else.

    A dot puts the day first. With other marks a day above 12 in some cell tells whether it is first.

    >>> layout_of(pa.array(["06/07/2025", "13/07/2025"])).date, layout_of(pa.array(["06/07/2025"])) == UNDECIDED
    ('%d/%m/%Y', True)
    """
    tried = [word for word in texts[:_TRIED].to_pylist() if re.fullmatch(_LIKE, word)]
    if not tried:
        return None
    candidates = _candidates(tried[0])
    found = [layout for layout in candidates if layout.fits(texts)]
    if not found:
        return _doubt(texts, candidates)
    if len(found) > 1:
        return UNDECIDED
    return _as_written(found[0], texts)


def _candidates(word: str) -> list[Layout]:
    """The layouts in which a text may be written, going by its marks."""
    if ":" in word[:3]:
        return [Layout("", time="%H:%M")]
    date, between, time = word[:10].rstrip(), "", ""
    if ":" in word:
        between = "T" if "T" in word else " "
        date, _, time = word.partition(between)
    shape = re.sub("[0-9]{1,2}", "9", re.sub("[0-9]{4}", "Y", date))
    shapes = {form: form.replace("%d", "9").replace("%m", "9").replace("%Y", "Y") for form in _DATES}
    return [Layout(form, between, time and "%H:%M") for form, own in shapes.items() if own == shape]


def _doubt(texts: pa.Array, candidates: list[Layout]) -> str | None:
    """Why texts are no dates although most of them look so."""
    alike = pc.match_substring_regex(texts, f"^({_LIKE})$")
    if pc.mean(alike.cast(pa.float64())).as_py() < MOSTLY:
        return None
    either = [pc.match_substring_regex(texts, layout.pattern) for layout in candidates]
    return CONTRADICTORY if len(either) == 2 and pc.all(pc.or_(*either)).as_py() else SEVERAL


def _as_written(layout: Layout, texts: pa.Array) -> Layout | str:
    """The layout with seconds where some have them, and with zeros in front or without."""

    def some(pattern: str) -> bool:
        return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())

    time = "%H:%M:%S" if layout.time and some(":[0-9]{2}:") else layout.time
    short = layout.date.endswith("%Y") and some(_ONE_DIGIT)
    if short and some(_ZERO_FIRST):
        return SEVERAL
    return replace(layout, time=time, padded=not short)


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


def parsed(value: Any, kind: pa.DataType, *, layout: Layout | None = None) -> float | None:
    """The number that stands for a date or time that somebody gives, as text or as it is; None when it is none.

    Texts are like 2024-01-31 (or another layout that leaves no doubt, such as 31.01.2024), or in the `layout` of the
    column. A time of a column with a zone needs its offset, as in 2024-01-31 23:59+01:00; a duration is a number of its
    units.

    >>> parsed("1970-01-31", pa.date32()), parsed("31.01.1970", pa.date32()), parsed("soon", pa.date32())
    (30.0, 30.0, None)
    """
    try:
        if pa.types.is_duration(kind) and isinstance(value, str | int | float):
            number = float(value)
            return number if np.isfinite(number) else None
        if isinstance(value, str) and pa.types.is_time(kind):  # Arrow reads no text as a time without its day
            whole = pa.array([f"1970-01-01 {value.strip()}"]).cast(pa.timestamp(kind.unit)).cast(pa.int64())[0].as_py()
        else:
            one = _moment(value.strip(), kind, layout) if isinstance(value, str) else pa.array([value], type=kind)
            whole = as_whole(one)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, TypeError, OverflowError):
        return None
    return None if whole is None else float(whole)


def _moment(text: str, kind: pa.DataType, layout: Layout | None) -> pa.Array:
    """One text as a date or time of a type."""
    one = pa.array([text])
    zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    for each in () if zoned else (layout, layout_of(one)):
        if isinstance(each, Layout) and each.fits(one):
            return each.read(one).cast(kind)
    return one.cast(kind)


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


def example(kind: pa.DataType) -> str:
    """How a date or time of a type is written.

    >>> example(pa.date32())
    '1970-01-01'
    """
    if pa.types.is_duration(kind):
        return f"3600, a number of {kind.unit}"
    return str(written(parsed("23:59:00" if pa.types.is_time(kind) else 0, kind) or 0.0, kind))


def limit(name: str, given: float | str | None, kind: pa.DataType | None) -> float | None:
    """A limit that a person gives as a number: a date or time for a column of those, a number for one of numbers."""
    if given is None:
        return None
    if has_zero(kind):  # a duration is a number of its units
        if isinstance(given, str):
            raise ParameterError(
                f"{name} {given} is a date or time, and the column holds numbers; give it to the column that it is "
                f"meant for, as in --set {name}.NAME={given}"
            )
        return given
    moment = parsed(given, kind) if isinstance(given, str) else None
    if moment is None:
        what = given if isinstance(given, str) else "a number"
        raise ParameterError(
            f"dates and times have no numbers as limits: {name} must be like {example(kind)}, not {what}"
        )
    return moment


def counted_as(numbers: Array, kind: pa.DataType, other: pa.DataType) -> Array | None:
    """Numbers that stand for dates and times of one type as those of another; None when the two cannot be compared.

    Units differ between libraries and formats, and a zone is only how a moment is shown. But a moment without a zone is
    none of those with one, and a time of day or a duration is no date.

    >>> counted_as(np.array([1.0]), pa.date32(), pa.timestamp("ms"))
    array([86400000.])
    """
    if _sort(kind) != _sort(other):
        return None
    first, second = _per_day(kind), _per_day(other)
    return numbers * (second // first) if second >= first else numbers / (first // second)


def in_days(numbers: Array, kind: pa.DataType) -> Array:
    """Numbers that stand for dates and times as days, whatever their unit.

    >>> in_days(np.array([43_200.0]), pa.timestamp("s"))
    array([0.5])
    """
    return numbers / _per_day(kind)


def has_zero(kind: pa.DataType | None) -> bool:
    """Whether 0 means nothing: so it does for numbers (None) and durations; that of a calendar or clock is agreed."""
    return kind is None or bool(pa.types.is_duration(kind))


def _sort(kind: pa.DataType) -> str:
    """What can be compared with what."""
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return "time" if pa.types.is_time(kind) else "duration"
    return "moment of a zone" if pa.types.is_timestamp(kind) and kind.tz is not None else "moment"


def _per_day(kind: pa.DataType) -> int:
    """How many of its units a day has."""
    if pa.types.is_date(kind):
        return 86_400_000 if pa.types.is_date64(kind) else 1
    return 86_400 * _PER_SECOND[kept_as(kind).unit]


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
