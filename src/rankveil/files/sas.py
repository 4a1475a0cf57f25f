"""SAS: data sets and transport files, read only.

Missing values with a letter (.A to .Z, ._) carry it (see `metadata`); a transport file's letters are not told by the
library that reads it. Labels of values stand in catalogues of their own and are not read.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from rankveil.errors import FormatError
from rankveil.files import clocks, statistical
from rankveil.files.dialect import Loaded
from rankveil.metadata import Described

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".sas7bdat", ".xpt")

_TRANSPORT_RECORD = 80
_DATES = r"(WEEKDAT[EX]|(MMDDYY|DDMMYY|YYMMDD)[BCDNPS]?|DATE|JULIAN|WORDDAT[EX]|MONYY|YYMON|(IS|E|B)8601DA)"
_DATETIMES = r"(DATETIME|DATEAMPM|MDYAMPM|DTDATE|(IS|E|B)8601D[TN])"
_TIMES = r"(TIME|TIMEAMPM|HHMM|TOD|MMSS|(IS|E|B)8601TM)"


def load(path: str, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None) -> Loaded:
    """The table with its labels, formats and missing letters."""

    if path.lower().endswith(".xpt"):
        if os.stat(path).st_size % _TRANSPORT_RECORD:
            raise FormatError(f"{path}: is no SAS file, or is damaged or cut short")
        cells, said = statistical.parsed(path, reader="read_xport", what="SAS", encoding=encoding)
    else:
        cells, said = statistical.parsed(path, reader="read_sas7bdat", what="SAS", encoding=encoding, user_missing=True)
    return statistical.loaded(path, cells, said, program="sas", column=_column)


def clock_of(format: str) -> clocks.What | None:
    """What numbers of a display format count.

    >>> clock_of("DATE9"), clock_of("E8601DT26.6"), clock_of("TIME8"), clock_of("BEST12")
    ('date', 'datetime', 'time', None)
    """
    bare = re.sub(r"\d*(\.\d*)?$", "", format.upper())
    kinds: dict[str, clocks.What] = {_DATES: "date", _DATETIMES: "datetime", _TIMES: "time"}
    return next((what for words, what in kinds.items() if re.fullmatch(words, bare)), None)


def _described(name: str, said: Any) -> Described:
    text = said.readstat_variable_types[name] == "string"
    return Described(
        label=said.column_names_to_labels.get(name) or "",
        program="sas",
        format=said.original_variable_types.get(name) or "",
        storage=f"${said.variable_storage_width.get(name, 0)}" if text else "",
    )


def _column(name: str, cells: list[Any], said: Any) -> tuple[pa.Array, Described, str]:
    described = _described(name, said)
    array, note = _array(cells, described, letters=said.missing_user_values.get(name, []))
    return array, described, note


def _array(cells: list[Any], described: Described, *, letters: list[str]) -> tuple[pa.Array, str]:
    """The cells as Arrow holds them, and a note when they stay numbers where one would expect dates."""
    import pyarrow as pa

    if described.storage:
        return pa.array(cells, pa.string()), ""
    clock = clock_of(described.format)
    if letters:
        return statistical.with_letters(cells, letters, dates=described.format if clock else "")
    array = pa.array(cells, pa.float64())
    if clock is None:
        return array, ""
    moments = clocks.SAS.arrow_of(array.to_numpy(zero_copy_only=False), what=clock)
    if moments is None:
        return array, statistical.far_dates(described.format)
    return moments, ""
