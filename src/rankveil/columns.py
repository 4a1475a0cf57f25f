"""The cells of one column: are they numbers, and which are missing?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankveil import dates, metadata, orders
from rankveil.dates import are_exact, as_whole
from rankveil.errors import TableError, row_listing, suggestion
from rankveil.metadata import Described

Array = NDArray[np.float64]

MISSING_TEXTS = ("", "NA", "NaN", "nan", "NULL", "null")
"""Texts that stand for a missing cell unless others are given; n/a, -9 and the like must be declared."""

NUMERIC_SHARE = 0.9
"""A text column with at least this share of numbers is numeric, and its other entries are an error."""

EXACT = 2.0**53
"""Whole numbers from here on are not all exact in double precision."""

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_INFINITY = r"(?i)^[+-]?inf(inity)?$"
_NUMBER_LIKE = r"^[+-]?[0-9][0-9.,' ]*%?$"
_INTEGER = r"^[+-]?[0-9]+$"
_CODE = r"^[+-]?0[0-9]"
_WHOLE = r"^[+-]?[0-9]+[.,]0*$"
_DOTTED_DATE = r"^[0-9]{1,2}[.][0-9]{1,2}[.]([0-9]{2}|[0-9]{4})$"
_SEPARATED = "its numbers have thousands separators, percent signs or another decimal mark"
_TOO_LONG = "its whole numbers are beyond 2^53, too long to be masked exactly"
_TOO_FINE = "its times are too fine or too far away to be masked exactly"
_DOUBTS = (_SEPARATED, _TOO_LONG, _TOO_FINE, dates.UNDECIDED, dates.CONTRADICTORY, dates.SEVERAL, dates.SHORT_YEARS)
_TELLING = 50
"""Labels at most among which an order is looked for."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A column as it was found."""

    name: str
    kind: Literal["numeric", "ordinal", "nominal"]
    cells: pa.Array
    """Text trimmed, or the column's own type."""
    missing: NDArray[np.bool_]
    levels: tuple[str, ...] = ()
    why: str = ""
    decimal: str = "."
    temporal: pa.DataType | None = None
    """What the cells are when they are dates or times, also when those are written as text."""
    layout: dates.Layout | None = None
    """How they are written, where they are text."""
    start: int = 0
    """The row of the table that the first cell stands in, from 0, where these are a part of a column."""

    @property
    def missing_count(self) -> int:
        """How many cells are missing."""
        return int(self.missing.sum())

    @property
    def doubtful(self) -> bool:
        """Whether they look like numbers or dates but cannot be read as such: no labels unless somebody says so."""
        return self.why in _DOUBTS

    @property
    def is_text(self) -> bool:
        """Whether the cells are text."""
        return _is_text(self.cells.type)

    @cached_property
    def present(self) -> pa.Array:
        """The cells that are not missing."""
        return self.cells.filter(pa.array(~self.missing)) if self.missing.any() else self.cells

    @cached_property
    def gaps(self) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Of each cell the number of its missing code, and for each number the first row that has it.

        0 is an empty cell (null), -1 one that has a value; cells that are written differently have different numbers.
        """
        numbers = np.where(self.missing, 0, -1)
        rows = np.flatnonzero(self.missing & self.cells.is_valid().to_numpy(zero_copy_only=False))
        if rows.size == 0:
            return numbers, np.zeros(1, dtype=np.intp)
        written = self.cells.take(pa.array(rows))
        if pa.types.is_floating(written.type):  # a NaN may have a letter
            values = written.to_numpy(zero_copy_only=False).astype(np.float64)
            letters = np.where(np.isnan(values), metadata.tags_of(values), "")
            keys = np.rec.fromarrays([np.nan_to_num(values, posinf=np.inf, neginf=-np.inf), np.isnan(values), letters])
            _, first, codes = np.unique(keys, return_index=True, return_inverse=True)
        else:
            codes = written.dictionary_encode().indices.to_numpy(zero_copy_only=False)
            _, first = np.unique(codes, return_index=True)
        numbers[rows] = codes + 1
        return numbers, np.concatenate(([0], rows[first])).astype(np.intp)

    def gap_words(self) -> list[str | None]:
        """What stands in a missing cell of each number; None for one that is empty."""
        _, first = self.gaps
        return [None, *gap_text(self.cells.take(pa.array(first[1:]))).to_pylist()]

    def distinct(self) -> int:
        """How many different values there are, missing ones left out."""
        if not _countable(self.cells.type):
            return 0
        return len(pc.unique(self.present))

    def labels(self) -> pa.Array:
        """All cells as labels, whole decimals like whole numbers, so that 7 and 7.0 are the same; missing ones null."""
        if not _countable(self.cells.type):
            what = f"{self.why}, which" if self.why else "its values"
            raise TableError(f"column {self.name}: {what} cannot serve as labels")
        made = label_text(self.cells)
        return pc.if_else(pa.array(self.missing), pa.scalar(None, pa.string()), made) if self.missing.any() else made

    def taken(self, order: NDArray[np.intp]) -> Cells:
        """The same column with its rows in another order."""
        return replace(self, cells=self.cells.take(pa.array(order)), missing=self.missing[order])

    @cached_property
    def integral(self) -> bool:
        """Whether the numbers were written as whole ones."""
        if self.temporal is not None:
            return True
        if self.is_text:
            return bool(pc.all(pc.match_substring_regex(self.present, _INTEGER), min_count=0).as_py())
        return bool(pa.types.is_integer(self.cells.type))

    def numbers(self) -> Array:
        """The values as numbers, codes of the levels when ordinal; missing cells are NaN."""
        values = np.empty(len(self.cells))
        if self.missing.any():
            values[self.missing] = metadata.numbered_gaps(self.gaps[0][self.missing])
        if self.levels:
            codes = pc.index_in(self.present.cast(pa.string()), value_set=pa.array(self.levels))
            self._refuse_unknown_levels(codes)
            values[~self.missing] = codes.to_numpy(zero_copy_only=False)
        elif self.temporal is not None:
            values[~self.missing] = as_whole(self._moments()).to_numpy(zero_copy_only=False)
        elif self.is_text:
            values[~self.missing] = self._parsed()
        else:
            # Arrow computes 3.3 from a decimal as 330 times 0.01, which is not 3.3; the text is read exactly
            exact = self.present.cast(pa.string()) if pa.types.is_decimal(self.cells.type) else self.present
            values[~self.missing] = exact.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return values

    def moments(self) -> pa.Array:
        """All cells as dates or times, missing ones as nulls; a date that there is not is Arrow's error."""
        there = pc.if_else(pa.array(self.missing), pa.scalar(None, self.cells.type), self.cells)
        return there.cast(self.temporal) if self.layout is None else self.layout.read(there).cast(self.temporal)

    def _moments(self) -> pa.Array:
        """The present cells as dates or times."""
        try:
            return self.moments().drop_null()
        except pa.ArrowInvalid as error:
            raise TableError(f"column {self.name}: a date that there is not ({error}); correct it") from None

    def written_like(self, other: Cells) -> Cells:
        """The same cells, read as the dates or times of another column where they are written as that is.

        A few dates alone may not tell whether the day comes first.
        """
        layout = other.layout
        if layout is None or self.layout == layout or not self.is_text or not layout.fits(self.present):
            return self
        return replace(self, kind=other.kind, temporal=layout.kind, layout=layout, why="")

    def _parsed(self) -> Array:
        texts = with_point(self.present, self.decimal)
        good = pc.or_(pc.match_substring_regex(texts, _NUMBER), pc.match_substring_regex(texts, _INFINITY))
        if not pc.all(good, min_count=0).as_py():
            self._refuse_text(~good.to_numpy(zero_copy_only=False))
        plain = pc.utf8_lower(pc.replace_substring_regex(texts, r"^\+", ""))
        parsed: Array = plain.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return parsed

    def _refuse_text(self, bad: NDArray[np.bool_]) -> None:
        rows = np.flatnonzero(~self.missing)[bad] + 1 + self.start
        if bad.sum() * 2 > bad.size:  # no strays among numbers, but a column of words, which are not to be told
            raise TableError(
                f"column {self.name}: its values are not numbers ({row_listing(rows)}); leave its kind out"
            )
        words = list(dict.fromkeys(self.present.filter(pa.array(bad)).to_pylist()))
        shown = ", ".join(f'"{word[:20]}"' for word in words[:3]) + (", ..." if len(words) > 3 else "")
        were = "value is not a number" if rows.size == 1 else "values are not numbers"
        raise TableError(
            f"column {self.name}: {rows.size} {were} ({row_listing(rows)}: {shown}); "
            f"declare {'it' if len(words) == 1 else 'them'} missing with --missing {','.join(words[:3])}"
        )

    def _refuse_unknown_levels(self, codes: pa.Array) -> None:
        unknown = pc.is_null(codes).to_numpy(zero_copy_only=False)
        if unknown.any():
            rows = np.flatnonzero(~self.missing)[unknown] + 1 + self.start
            word = str(self.present.filter(pa.array(unknown))[0].as_py())
            # a word may be misspelt; a number is somebody's
            what = f"{word!r} (row {rows[0]})" if self.is_text else f"the value in row {rows[0]}"
            near = suggestion(word if self.is_text else "", self.levels)
            raise TableError(f"column {self.name}: {what} is not one of its levels{near}")


def read(
    series: nw.Series[Any],
    *,
    name: str,
    missing: Sequence[str],
    decimal: str,
    kind: str | None,
    levels: Sequence[str] | None,
    described: Described | None = None,
) -> Cells:
    """Read a column: what its cells are, which are missing, and which kind it is.

    `described` is what its file says of it: codes that stand for missing cells, and a level of measurement.
    """
    array = to_arrow(series)
    if pa.types.is_dictionary(array.type):
        if array.type.ordered and levels is None and _has_levels(array.type.value_type):
            levels = [str(word).strip() for word in array.dictionary.to_pylist()]
        array = array.cast(array.type.value_type)
    if pa.types.is_large_string(array.type) or pa.types.is_string_view(array.type):
        array = array.cast(pa.string())
    if _is_text(array.type):
        array = pc.utf8_trim_whitespace(array)
    gone = _missing(array, missing)
    if described is not None and described.marks_missing:
        gone |= described.is_missing(array)
    found = Cells(name=name, kind="nominal", cells=array, missing=gone, decimal=decimal)
    if kind is None and levels is None and described is not None:
        kind, why = _by_its_file(found, described)
        found = replace(found, why=why)
    if kind == "nominal":
        return found
    if levels is not None:
        if not _has_levels(array.type):
            raise TableError(f"column {name}: values of type {array.type} have no levels; convert them to text first")
        return replace(found, kind="ordinal", levels=_checked_levels(name, levels))
    layout = dates.layout_of(found.present) if found.is_text else None
    if isinstance(layout, str):
        if kind is not None:
            raise TableError(f"column {name}: {layout}")
        return replace(found, why=layout)
    if layout is not None:
        return replace(found, kind="ordinal" if kind == "ordinal" else "numeric", temporal=layout.kind, layout=layout)
    moments = _temporal(array.type)
    if moments is not None and not are_exact(array):
        if kind is not None:
            raise TableError(f"column {name}: {_TOO_FINE}; round them to millionths of a second first")
        return replace(found, why=_TOO_FINE)
    if moments is not None:
        return replace(found, kind="ordinal" if kind == "ordinal" else "numeric", temporal=moments)
    if pa.types.is_boolean(array.type) or not (found.is_text or is_number(array.type)):
        if kind is not None:
            raise TableError(f"column {name}: {_type_name(array.type)} cannot be {kind}; convert it to numbers first")
        return replace(found, why=f"it holds {_type_name(array.type)}")
    looks, why = _looks_numeric(found)
    told = None if looks or not found.is_text else _told_order(found)
    if kind is None:
        if told and not why:
            why = f"its labels look ordered ({' < '.join(told)}): --kind {name}=ordinal ranks them so"
        return replace(found, kind="numeric" if looks else "nominal", why=why)
    if kind == "ordinal" and found.is_text and not _share_of_numbers(found) >= NUMERIC_SHARE:
        if told:
            return replace(found, kind="ordinal", levels=told)
        raise TableError(
            f"column {name}: the order of its values is not known; give it as --kind '{name}=ordinal:low<middle<high'"
        )
    return replace(found, kind="numeric" if kind == "numeric" else "ordinal")


def _by_its_file(cells: Cells, described: Described) -> tuple[str | None, str]:
    """The kind that a file declares, or that labels of all values tell, and a word on it."""
    if not is_number(cells.cells.type):
        return None, ""
    otherwise = f"(--kind {cells.name}=numeric says otherwise)"
    if described.level == "nominal":
        return "nominal", f"its file says that it is nominal {otherwise}"
    if described.level == "ordinal":
        return "ordinal", ""
    if described.level == "" and described.labels and len(cells.present):
        known = pa.array([float(value) for value in described.labels if not isinstance(value, str)], pa.float64())
        if pc.all(pc.is_in(pc.unique(cells.present).cast(pa.float64(), safe=False), value_set=known)).as_py():
            return "nominal", f"each of its values has a label {otherwise}"
    return None, ""


def to_arrow(series: nw.Series[Any]) -> pa.Array:
    try:
        array = series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError):
        # objects of several types: kept as they are, seen here as text
        array = pa.array([None if _absent(value) else str(value) for value in series.to_list()], type=pa.string())
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if series.dtype == nw.Enum and not array.type.ordered:  # older versions of polars do not tell that it is
        array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary, ordered=True)
    return array


def label_text(cells: pa.Array) -> pa.Array:
    """Values as text, whole decimals like whole numbers."""
    if pa.types.is_floating(cells.type):
        values = cells.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
        there = values[~np.isnan(values)]
        if np.all(there == np.rint(there)) and np.all(np.abs(there) < EXACT):
            cells = pa.array(np.where(np.isnan(values), 0, values).astype(np.int64), mask=np.isnan(values))
    text = as_text(cells)
    if pc.all(pc.match_substring_regex(text, _WHOLE), min_count=0).as_py():
        text = pc.replace_substring_regex(text, r"[.,]0*$", "")
    return text


def gap_text(cells: pa.Array) -> pa.Array:
    """Missing cells as text: -9, n/a, .a; null where they are empty."""
    text = label_text(cells)
    if pa.types.is_floating(cells.type):
        values = cells.to_numpy(zero_copy_only=False).astype(np.float64)
        letters = metadata.tags_of(values)
        text = pc.if_else(pa.array(np.isnan(values)), pa.scalar(None, pa.string()), text)
        return pc.if_else(pa.array(letters != ""), pa.array([f".{letter}" for letter in letters], pa.string()), text)
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def _temporal(kind: pa.DataType) -> pa.DataType | None:
    """The type of dates and times."""
    return kind if pa.types.is_temporal(kind) and not pa.types.is_interval(kind) else None


def _told_order(cells: Cells) -> tuple[str, ...] | None:
    """The order that the labels tell themselves."""
    labels = pc.unique(cells.present)
    return orders.detected(labels.to_pylist()) if len(labels) <= _TELLING else None


def _absent(value: object) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # the missing value of pandas, which is neither equal nor unequal to itself
        return True
    except ValueError:  # an array
        return False


def _missing(array: pa.Array, markers: Sequence[str]) -> NDArray[np.bool_]:
    missing: NDArray[np.bool_] = pc.is_null(array, nan_is_null=True).to_numpy(zero_copy_only=False).copy()
    if _is_text(array.type):
        words = pa.array([*MISSING_TEXTS, *markers])
        missing |= pc.is_in(array, value_set=words).to_numpy(zero_copy_only=False)
    elif is_number(array.type):
        codes = [float(marker) for marker in markers if re.match(_NUMBER, marker) or re.match(_INFINITY, marker)]
        if codes:
            values = array.cast(pa.float64(), safe=False)
            missing |= pc.is_in(values, value_set=pa.array(codes)).to_numpy(zero_copy_only=False)
    return missing


def _looks_numeric(cells: Cells) -> tuple[bool, str]:
    """Whether a column of undeclared kind is numeric, and why not where a person might wonder."""
    if len(cells.present) == 0:
        return False, "all its cells are missing" if len(cells.cells) else ""
    if not cells.is_text:
        if pa.types.is_integer(cells.cells.type):
            span = pc.min_max(cells.present).as_py()
            if max(abs(span["min"]), abs(span["max"])) >= EXACT:
                return False, _TOO_LONG
        return True, ""
    texts = cells.present
    if _share_of_numbers(cells) < NUMERIC_SHARE:
        alike = pc.mean(pc.match_substring_regex(texts, _NUMBER_LIKE).cast(pa.float64())).as_py()
        if alike < NUMERIC_SHARE:
            return False, ""
        of_dates = pc.mean(pc.match_substring_regex(texts, _DOTTED_DATE).cast(pa.float64())).as_py()
        if of_dates < NUMERIC_SHARE:
            return False, _SEPARATED
        short = pc.max(pc.utf8_length(texts)).as_py() <= len("31.12.99")
        return False, dates.SHORT_YEARS if short else dates.SEVERAL
    if pc.any(pc.match_substring_regex(texts, _CODE), min_count=0).as_py():
        return False, "its numbers have leading zeros, so they are taken as codes (--kind NAME=numeric says otherwise)"
    long = pc.filter(texts, pc.match_substring_regex(texts, r"^[+-]?[0-9]{16,}$"))
    if any(abs(int(word)) >= EXACT for word in long.to_pylist()):
        return False, _TOO_LONG
    return True, ""


def _share_of_numbers(cells: Cells) -> float:
    texts = with_point(cells.present, cells.decimal)
    good = pc.or_(pc.match_substring_regex(texts, _NUMBER), pc.match_substring_regex(texts, _INFINITY))
    return float(pc.mean(good.cast(pa.float64())).as_py() or 0.0)


def with_point(texts: pa.Array, decimal: str) -> pa.Array:
    """Numbers with a decimal point; where the mark is another, a cell with a point (19.297 for 19297) is no number."""
    if decimal == ".":
        return texts
    return pc.replace_substring(pc.replace_substring(texts, ".", "?"), decimal, ".")


def _checked_levels(name: str, levels: Sequence[str]) -> tuple[str, ...]:
    words = tuple(str(word) for word in levels)
    if len(set(words)) < len(words) or not words:
        raise TableError(f"column {name}: its levels must be different and at least one")
    return words


def as_text(array: pa.Array) -> pa.Array:
    """Values as Arrow writes them, or Python where it does not."""
    try:
        return array.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.array([str(value) for value in array.to_pylist()], type=pa.string())


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _countable(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType))


def _has_levels(kind: pa.DataType) -> bool:
    """Whether every cell of this type is a short text: bytes need not be one, and spans of months have no such form."""
    plain = _is_text(kind) or is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)
    return bool(plain or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind)))


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "true/false values"
    if pa.types.is_temporal(kind):
        return "dates or times"
    return f"values of type {kind}"
