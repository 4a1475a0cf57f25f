"""What Stata, SPSS and SAS files have in common: one library that reads them, one set of things they cannot hold."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankveil import metadata
from rankveil.errors import FormatError, listing
from rankveil.files import limits
from rankveil.files.dialect import Loaded
from rankveil.metadata import Described

if TYPE_CHECKING:
    import pyarrow as pa

EXACT = 2**53
"""Whole numbers beyond this are not all exact in double precision."""

_MOST_PACKED = 1200
"""A compressed file cannot hold more cells per byte than this."""

_CELL = 8
"""Bytes that a cell takes at least."""

_FRAGILE = ("read_sav",)
"""What the library does not only refuse when a file is damaged, but may crash on."""

_PROBE = """
import sys, pyreadstat
getattr(pyreadstat, sys.argv[1])(sys.argv[2], metadataonly=True, output_format="dict", encoding=sys.argv[3] or None)
"""
_LONGEST_PROBE = 120


def library(what: str) -> ModuleType:
    """The library that reads and writes these files."""
    try:
        import pyreadstat
    except ImportError as error:
        raise FormatError(f"{what} files need pyreadstat; install it with pip install 'rankveil[files]'") from error
    return pyreadstat


def parsed(path: str, *, reader: str, what: str, encoding: str | None, **options: Any) -> tuple[dict[str, Any], Any]:
    """The cells of each column, and what the file says of them; dates and times as the numbers they are.

    Lists of cells are what the library makes fastest; besides, its pandas frames hold rubbish where a missing value
    follows one that has a letter.
    """
    try:
        pyreadstat = library(what)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
    read = getattr(pyreadstat, reader)
    size = os.stat(path).st_size
    place = os.path.abspath(path)  # the library would take ~ for a home folder
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            if reader in _FRAGILE and not _survives(place, reader=reader, encoding=encoding):
                raise _damaged(path, what)
            _, header = read(place, metadataonly=True, output_format="dict", encoding=encoding)
            cells = (header.number_rows or 0) * (header.number_columns or 0)
            if cells > size * _MOST_PACKED:
                raise _damaged(path, what)
            limits.refuse_growth(path, grown=cells * _CELL)
            options |= {"output_format": "dict", "disable_datetime_conversion": True, "encoding": encoding}
            columns, said = _cells(path, partial(read, place, **options), header)
    except UserWarning as error:  # the library would rename the column
        raise FormatError(f"{path}: two columns have the same name; give each its own") from error
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, UnicodeDecodeError) as error:
        if isinstance(error, UnicodeDecodeError) or "convert" in str(error) or "character set" in str(error):
            raise FormatError(
                f"{path}: its text is not in the encoding that the file claims; give the right one with --encoding"
            ) from error
        raise _damaged(path, what) from error
    except (IndexError, OverflowError, MemoryError, TypeError, ValueError) as error:
        # nonsense in the header that the library believes
        raise _damaged(path, what) from error
    if None in said.column_names:  # a name that the library could not make sense of
        raise _damaged(path, what)
    return columns, said


def _cells(path: str, read: Callable[..., tuple[dict[str, Any], Any]], header: Any) -> tuple[dict[str, Any], Any]:
    """All cells; in pieces, where texts that fill their columns would take too much: most are far shorter."""
    rows, widths = header.number_rows or 0, header.variable_storage_width or {}
    most = limits.allowed(os.stat(path).st_size)
    bound = rows * sum(max(_CELL, width or 0) for width in widths.values())
    if bound <= most:
        return read()
    at_once = max(1, rows * most // bound // 2)
    columns: dict[str, Any] = {}
    said, taken = header, 0
    for first in range(0, rows, at_once):
        piece, said = read(row_offset=first, row_limit=at_once)
        for name, cells in piece.items():
            columns.setdefault(name, []).extend(cells)
            taken += sum(len(cell) if isinstance(cell, str) else _CELL for cell in cells)
        if taken > most:  # how much it would be is told as if the others were alike
            limits.refuse_growth(path, grown=taken * rows // min(rows, first + at_once))
    return columns, said


def loaded(
    path: str,
    cells: dict[str, Any],
    said: Any,
    *,
    program: metadata.Program,
    column: Callable[[str, list[Any], Any], tuple[pa.Array, Described, str]],
) -> Loaded:
    """The table with what the file says of it; `column` makes one column, and a note on it where one is due."""
    import pyarrow as pa

    arrays, fields, notes = [], [], []
    for name in said.column_names:
        array, described, note = column(name, cells.pop(name), said)
        if note:
            notes.append(f"{path}: column {name}: {note}")
        arrays.append(array)
        fields.append(metadata.write(pa.field(name, array.type), described))
    whole = metadata.DescribedTable(
        label=said.file_label or "", notes=tuple(said.notes), encoding=said.file_encoding or "", program=program
    )
    schema = metadata.write_table(pa.schema(fields), whole)
    return Loaded(pa.Table.from_arrays(arrays, schema=schema), notes=tuple(notes))


def _survives(place: str, *, reader: str, encoding: str | None) -> bool:
    """Whether the library comes through the header of a file, tried in a process that may crash instead of this one."""
    if not sys.executable:
        return True
    command = [sys.executable, "-P", "-c", _PROBE, reader, place, encoding or ""]
    nothing = subprocess.DEVNULL
    try:
        done = subprocess.run(
            command, stdin=nothing, stdout=nothing, stderr=nothing, timeout=_LONGEST_PROBE, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode in (0, 1)  # 1 is an error that will be met again, and told, here


def with_letters(cells: list[Any], letters: list[str], *, dates: str = "") -> tuple[pa.Array, str]:
    """Numbers, and missing values that carry their letters, and a note when these keep `dates` (a format) numbers."""
    import pyarrow as pa

    tagged = {letter: metadata.tagged(letter) for letter in letters}
    array = pa.array([tagged[cell] if isinstance(cell, str) else cell for cell in cells], pa.float64())
    missing = listing(f".{letter}" for letter in letters)
    return array, f"its dates stay numbers ({dates}) to keep {missing}" if dates else ""


def far_dates(format: str) -> str:
    """The note on dates that Arrow has not."""
    return f"its dates have parts of days or lie too far away ({format}) and stay numbers"


def _damaged(path: str, what: str) -> FormatError:
    return FormatError(f"{path}: is no {what} file, or is damaged or cut short")


def whole_array(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, without dictionary of numbers, extension type or view."""
    import pyarrow as pa

    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type) and not is_text(array.type.value_type):
        array = array.cast(array.type.value_type)
    if is_text(array.type):
        array = array.cast(pa.large_string())
    return array


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of this type are text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def categories_of(array: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.bool_], list[str]]:
    """Codes from 1 on of a column of categories, which are missing, and the categories in their order."""
    import pyarrow.compute as pc

    words = list(dict.fromkeys(word for word in array.dictionary.to_pylist() if word is not None))
    place = {word: code for code, word in enumerate(words, start=1)}
    codes = np.array([place.get(word, 0) for word in array.dictionary.to_pylist()] + [0], dtype=np.int64)
    index = pc.fill_null(array.indices, len(codes) - 1) if array.indices.null_count else array.indices
    found = codes[index.to_numpy(zero_copy_only=False).astype(np.int64)]
    return found, found == 0, words


def coded(data: pa.Table) -> pa.Table:
    """The table with the codes of categories that these formats keep, which have their words as labels beside them."""
    import pyarrow as pa

    for place, name in enumerate(data.column_names):
        array = whole_array(data[name])
        if pa.types.is_dictionary(array.type):
            codes, absent, _ = categories_of(array)
            data = data.set_column(place, name, pa.array(codes, mask=absent))
    return data


def numbers_of(array: pa.Array, *, name: str, program: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Numbers as int64 or float64, and which are missing; refuses whole or decimal ones that a double cannot hold."""
    import pyarrow as pa

    kind = array.type
    absent: NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_null(kind):
        return np.zeros(len(array), np.int64), absent
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        if pa.types.is_boolean(kind):
            array = array.cast(pa.int8())
        values = array.fill_null(0).to_numpy(zero_copy_only=False)
        unsafe = (values > EXACT) | (values < -EXACT) if values.dtype.itemsize == 8 else np.zeros(len(values), bool)
        if unsafe.any():
            raise FormatError(
                f"column {name}, row {np.flatnonzero(unsafe)[0] + 1}: the whole number is beyond 2^53, which {program} "
                "cannot hold exactly; write .parquet, or make the column text"
            )
        return values.astype(np.int64), absent
    if pa.types.is_floating(kind):
        floats = array.fill_null(np.nan) if array.null_count else array
        return floats.cast(pa.float64()).to_numpy(zero_copy_only=False), absent
    if pa.types.is_decimal(kind):
        return _from_decimals(array, name=name, program=program), absent
    raise FormatError(f"column {name}: {program} cannot hold type {kind}; write .parquet instead")


def _from_decimals(array: pa.Array, *, name: str, program: str) -> NDArray[np.float64]:
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.min_max(array).as_py()
    largest = max((abs(end) for end in ends.values() if end is not None), default=0)
    if len(str(int(largest * 10**array.type.scale))) > 15 and largest:
        raise FormatError(
            f"column {name}: its decimals have more than 15 digits, which {program} cannot hold exactly; "
            "write .parquet, or make the column text"
        )
    values: NDArray[np.float64] = array.cast(pa.string()).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values


def byte_lengths(array: pa.Array, *, name: str, program: str) -> NDArray[np.int64]:
    """How many bytes each text has, 0 for a missing one; refuses a text with a NUL, which would end it."""
    import pyarrow.compute as pc

    nul = pc.index(pc.match_substring(array, "\0"), True).as_py()
    if nul >= 0:
        raise FormatError(f"column {name}, row {nul + 1}: {program} cannot hold a NUL character; remove it")
    lengths: NDArray[np.int64] = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False)
    return lengths.astype(np.int64)


def refuse_infinite(values: NDArray[np.float64], *, name: str, program: str, limit: float) -> None:
    """No number may reach `limit`, from where the program counts missing values."""
    with np.errstate(invalid="ignore"):
        rows = np.flatnonzero(np.abs(values) >= limit) + 1
    if rows.size:
        raise FormatError(
            f"column {name}: {program} cannot hold infinite or such large numbers "
            f"(row{'s' if rows.size > 1 else ''} {listing(rows)}); write .parquet instead"
        )


def checked_label(text: str, *, most: int, size: int, what: str, program: str, unit: str) -> str:
    """A label that the program can hold whole."""
    if size > most:
        raise FormatError(f"{what} has {size} {unit}, and {program} allows {most}; shorten it or write .parquet")
    return text
