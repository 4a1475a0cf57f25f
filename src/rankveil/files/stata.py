"""Stata: numbers with their storage types, labels, formats and missing letters (.a to .z), both ways.

What Stata writes as `.` is missing; `.a` to `.z` are missing values that carry their letter (see `metadata`). Days
and milliseconds become dates and times; weeks, months, quarters and years stay the whole numbers they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from rankveil import metadata
from rankveil.errors import FormatError
from rankveil.files import clocks, stata_write, statistical
from rankveil.files.dialect import Dialect, Loaded
from rankveil.files.stata_columns import LONGEST_STR, clock_of
from rankveil.metadata import Described

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".dta",)

_STORAGE = {"int8": "byte", "int16": "int", "int32": "long", "float": "float", "double": "double"}
_END = b"</stata_dta>"
_A_DAY = clocks.SECONDS_A_DAY * clocks.STATA.a_second


def load(path: str, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None) -> Loaded:
    """The table with its labels, formats and missing letters."""

    _refuse_cut(path)
    cells, said = statistical.parsed(path, reader="read_dta", what="Stata", encoding=encoding, user_missing=True)
    return statistical.loaded(path, cells, said, program="stata", column=_column)


def save(data: pa.Table, handle: BinaryIO, *, ending: str = ".dta", dialect: Dialect | None = None) -> None:
    """The table in the form of Stata 14 and later; what Stata cannot hold is refused, never changed."""
    stata_write.write(data, handle)


def _refuse_cut(path: str) -> None:
    """A file that lost its end would otherwise be read as if nothing were missing."""
    with open(path, "rb") as file:
        if file.read(11) != b"<stata_dta>":
            return  # an older form, which has no mark at its end
        file.seek(-min(len(_END) + 2, file.seek(0, 2)), 2)
        if not file.read().rstrip().endswith(_END):
            raise FormatError(f"{path}: is no Stata file, or is damaged or cut short")


def _described(name: str, said: Any) -> Described:
    kind = said.readstat_variable_types[name]
    width = said.variable_storage_width.get(name, 0) - 1  # the library counts a zero at the end
    storage = _STORAGE.get(kind) or (f"str{width}" if 1 <= width <= LONGEST_STR else "strL")
    labels = said.variable_value_labels.get(name, {})
    return Described(
        label=said.column_names_to_labels.get(name) or "",
        value_labels=metadata.labelled((f".{key}" if isinstance(key, str) else key, labels[key]) for key in labels),
        label_set=said.variable_to_label.get(name, ""),
        program="stata",
        format=said.original_variable_types.get(name) or "",
        storage=storage,
    )


def _column(name: str, cells: list[Any], said: Any) -> tuple[pa.Array, Described, str]:
    described = _described(name, said)
    array, note = _array(cells, described, letters=said.missing_user_values.get(name, []))
    return array, described, note


def _array(cells: list[Any], described: Described, *, letters: list[str]) -> tuple[pa.Array, str]:
    """The cells as Arrow holds them, and a note when they stay numbers where one would expect dates."""
    import pyarrow as pa

    if described.storage.startswith("str"):
        return pa.array(cells, pa.string()), ""
    clock = clock_of(described.format)
    if letters:
        return statistical.with_letters(cells, letters, dates=described.format if clock else "")
    kinds = {"byte": pa.int8(), "int": pa.int16(), "long": pa.int32(), "float": pa.float32()}
    array = pa.array(cells, kinds.get(described.storage, pa.float64()))
    if clock is None:
        return array, ""
    if clock == "leap":
        return array, f"its times count leap seconds ({described.format}) and stay numbers"
    counts = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    if clock == "time" and not np.all((counts >= 0) & (counts < _A_DAY) | np.isnan(counts)):
        clock = "datetime"
    moments = clocks.STATA.arrow_of(counts, what=clock)
    if moments is None:
        return array, statistical.far_dates(described.format)
    return moments, ""
