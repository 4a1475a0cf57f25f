"""SPSS: numbers and texts with labels, missing codes, measurement levels and formats, both ways.

A code that the file declares missing stays the number it is; `metadata` says that it means missing. Numbers that
the file shows without decimals, and that have none, are whole numbers here. Alignments are read, but the library that
writes the files cannot write them; roles, attributes and the choice of a weight it neither reads nor writes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankveil import metadata
from rankveil.errors import FormatError
from rankveil.files import clocks, spss_write, statistical
from rankveil.files.dialect import Dialect, Loaded
from rankveil.metadata import Described, Value

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".sav", ".zsav")


def load(path: str, *, separator: str | None = None, decimal: str | None = None, encoding: str | None = None) -> Loaded:
    """The table with its labels, missing codes, levels and formats."""

    with open(path, "rb") as file:
        if b"ENCRYPTEDSAV" in file.read(64):
            raise FormatError(f"{path}: is encrypted; save it in SPSS without a password")
    cells, said = statistical.parsed(path, reader="read_sav", what="SPSS", encoding=encoding, user_missing=True)
    made = statistical.loaded(path, cells, said, program="spss", column=_column)
    if said.mr_sets:
        return replace(made, notes=(f"{path}: its sets of multiple responses are not kept",))
    return made


def save(data: pa.Table, handle: BinaryIO, *, ending: str = ".sav", dialect: Dialect | None = None) -> None:
    """The table as an SPSS file; what SPSS cannot hold is refused, never changed."""
    spss_write.write(data, handle, packed=ending == ".zsav")


def _described(name: str, said: Any) -> Described:
    ranges = [(each["lo"], each["hi"]) for each in said.missing_ranges.get(name, [])]
    level = said.variable_measure.get(name)
    text = said.readstat_variable_types[name] == "string"
    return Described(
        label=said.column_names_to_labels.get(name) or "",
        value_labels=metadata.labelled(said.variable_value_labels.get(name, {})),
        missing_codes=tuple(metadata.plain(low) for low, high in ranges if low == high),
        missing_ranges=tuple((low, high) for low, high in ranges if low != high),
        level=level if level in ("nominal", "ordinal", "scale") else "",
        program="spss",
        format=said.original_variable_types.get(name) or "",
        storage=f"A{said.variable_storage_width[name]}" if text else "",
        width=max(0, said.variable_display_width.get(name, 0)),
        alignment=said.variable_alignment.get(name, ""),
    )


def _column(name: str, cells: list[Any], said: Any) -> tuple[pa.Array, Described, str]:
    return *_array(cells, _described(name, said)), ""


def _array(cells: list[Any], described: Described) -> tuple[pa.Array, Described]:
    """The cells as Arrow holds them, codes of dates and times as the whole numbers behind those."""
    import pyarrow as pa

    if described.storage:
        return pa.array(cells, pa.string()), described
    array = pa.array(cells, pa.float64())
    counts = array.to_numpy(zero_copy_only=False)
    clock = spss_write.clock_of(described.format)
    if clock is not None:
        return _times(counts, described, what=clock) or (array, described)
    if described.decimals == 0:
        present = counts[~np.isnan(counts)]
        if np.all(present == np.rint(present)) and np.all(np.abs(present) <= statistical.EXACT):
            return array.cast(pa.int64()), described
    return array, described


def _times(
    counts: NDArray[np.float64], described: Described, *, what: clocks.What
) -> tuple[pa.Array, Described] | None:
    """Dates or times, and codes and labels of theirs as the whole numbers behind them; None when they are none."""
    import pyarrow as pa

    said = [value for value in (*described.missing_codes, *described.labels) if not isinstance(value, str)]
    said += [end for ends in described.missing_ranges for end in ends if np.isfinite(end)]
    array = clocks.SPSS.arrow_of(np.concatenate([counts, np.array(said, dtype=np.float64)]), what=what)
    if array is None:
        return None
    behind = array.slice(len(counts)).cast(pa.int32() if array.type.bit_width == 32 else pa.int64()).to_pylist()
    code: dict[Value, Value] = dict(zip(said, behind, strict=True))
    changed = replace(
        described,
        missing_codes=tuple(code[value] for value in described.missing_codes),
        missing_ranges=tuple((float(code.get(a, a)), float(code.get(b, b))) for a, b in described.missing_ranges),
        value_labels=tuple((code[value], label) for value, label in described.value_labels),
    )
    return array.slice(0, len(counts)), changed
