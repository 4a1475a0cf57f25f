"""Dates and times as statistical programs count them: days, seconds or milliseconds since a day of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import FormatError

if TYPE_CHECKING:
    import pyarrow as pa

Array = NDArray[np.float64]
What = Literal["date", "datetime", "time", "duration"]

MICROSECONDS = 1_000_000
SECONDS_A_DAY = 86_400
MICROSECONDS_A_DAY = SECONDS_A_DAY * MICROSECONDS
_LONGEST = 2.0**62


@dataclass(frozen=True)
class Clock:
    """How a program counts time."""

    program: str
    epoch: int
    """The day from which it counts, in days from 1970."""
    a_day: int
    """What it counts a day of a date as."""
    a_second: int
    """What it counts a second of a time as."""
    grain: int
    """The finest moment that its numbers tell apart in our centuries, in microseconds."""

    def counts_of(self, array: pa.Array, *, name: str) -> Array:
        """Dates or times as the program counts them, missing ones NaN."""
        import pyarrow as pa

        kind = array.type
        if pa.types.is_date(kind):
            days = _numbers(array.cast(pa.date32()).cast(pa.int32()))
            return (days - self.epoch) * self.a_day
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            raise FormatError(
                f"column {name}: {self.program} has no time zones; make the times local ones or write .parquet"
            )
        moments, finer = _microseconds(array)
        absent = array.is_null().to_numpy(zero_copy_only=False)
        grain = 1
        if pa.types.is_timestamp(kind):
            moments, grain = moments - self.epoch * MICROSECONDS_A_DAY, self.grain
        # whole seconds apart from the fraction: together they may have more digits than a number
        whole, rest = moments // MICROSECONDS, moments % MICROSECONDS
        counts = whole * self.a_second + rest * self.a_second / MICROSECONDS
        back = self._moments(counts, grain)
        differs = back != moments if back is not None else np.ones(len(moments), bool)
        lost = np.flatnonzero((differs | finer) & ~absent)
        if lost.size:
            raise FormatError(
                f"column {name}, row {lost[0] + 1}: the time is finer or farther away than {self.program} can hold; "
                "write .parquet instead"
            )
        return np.where(absent, np.nan, counts)

    def _moments(self, counts: Array, grain: int) -> NDArray[np.int64] | None:
        """Counts of time as whole microseconds; None when there are too many of those."""
        with np.errstate(over="ignore"):  # a damaged file may count anything
            grains = np.rint(counts * (MICROSECONDS // grain / self.a_second))
        # multiplied as whole numbers: as decimals they would have too many digits
        return grains.astype(np.int64) * grain if np.all(np.abs(grains) < _LONGEST / grain) else None

    def arrow_of(self, counts: Array, *, what: What) -> pa.Array | None:
        """What was counted as an Arrow array, NaN missing; None when it is not of that kind.

        A date with a time of day is a datetime, a time beyond 24 hours is a duration.
        """
        import pyarrow as pa

        known = counts[~np.isnan(counts)]
        absent = np.isnan(counts)
        if what == "date":
            days = known / self.a_day
            if np.all(days == np.rint(days)) and np.all(np.abs(days) < 2.0**31 + self.epoch):
                since_1970 = np.where(absent, 0.0, counts / self.a_day + self.epoch)
                return pa.array(since_1970.astype(np.int32), mask=absent).cast(pa.date32())
            if self.a_day != SECONDS_A_DAY * self.a_second:
                return None
            what = "datetime"
        if what == "time" and not np.all((known >= 0) & (known < SECONDS_A_DAY * self.a_second)):
            what = "duration"
        grain = self.grain if what == "datetime" else 1
        whole = self._moments(np.where(absent, 0.0, counts), grain)
        if whole is None:
            return None
        if what == "datetime":
            whole += self.epoch * MICROSECONDS_A_DAY
            return pa.array(whole, mask=absent).cast(pa.timestamp("us"))
        if what == "time" and np.all(whole < MICROSECONDS_A_DAY):
            return pa.array(whole, mask=absent).cast(pa.time64("us"))
        return pa.array(whole, mask=absent).cast(pa.duration("us"))


SPSS = Clock("SPSS", epoch=-141_428, a_day=SECONDS_A_DAY, a_second=1, grain=10)
STATA = Clock("Stata", epoch=-3_653, a_day=1, a_second=1000, grain=1)
SAS = Clock("SAS", epoch=-3_653, a_day=1, a_second=1, grain=1)


def what_of(kind: pa.DataType) -> What:
    """What cells of an Arrow type of dates or times are."""
    import pyarrow as pa

    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_time(kind):
        return "time"
    return "duration" if pa.types.is_duration(kind) else "datetime"


def _microseconds(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Times as whole microseconds, 0 for missing ones, and which of them are not whole or too many."""
    import pyarrow as pa

    raw = array.cast(pa.int32()).cast(pa.int64()) if array.type.bit_width == 32 else array.cast(pa.int64())
    parts: NDArray[np.int64] = raw.fill_null(0).to_numpy(zero_copy_only=False)
    if array.type.unit == "ns":
        return parts // 1000, parts % 1000 != 0
    each = {"s": 10**6, "ms": 10**3, "us": 1}[array.type.unit]
    too_many = np.abs(parts.astype(np.float64)) * each >= _LONGEST
    return np.where(too_many, 0, parts) * each, too_many


def _numbers(array: pa.Array) -> Array:
    import pyarrow as pa

    values: Array = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values
