"""Masked values back into a column of the same library and type, missing cells as they were."""

from __future__ import annotations

from typing import Any, cast

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankveil import dates, metadata
from rankveil.columns import EXACT, Cells, gap_text, to_arrow

Array = NDArray[np.float64]


def put_back(
    cells: Cells,
    original: nw.Series[Any],
    masked: Array,
    *,
    labels: tuple[str, ...] = (),
    relabelled: bool = False,
    whole: bool | None = None,
) -> tuple[nw.Series[Any], str | None]:
    """The masked values in the column's own type; a note when that type changed.

    `labels` are what the values are codes of; `relabelled` when they are others than the column had. A cell that was
    missing and still is stays as it was written, unless its missing value says that it is empty (the number 0 of
    `metadata.numbered_gaps`); one that is missing now is empty. `whole` says whether all numbers are whole, where these
    are only some of them.
    """
    if pa.types.is_null(cells.cells.type):  # a column without a type, and so without a cell that is not missing
        return original, None
    gone = np.isnan(masked)
    keep = gone & cells.missing
    if keep.any():
        written = cells.cells.is_valid().to_numpy(zero_copy_only=False)
        keep &= ~(written & (metadata.gap_numbers(masked) == 0))
    blank = gone & ~keep
    filled = np.where(gone, 0.0, masked) if gone.any() else masked
    if labels:
        codes = filled.astype(np.int64)
        if relabelled and original.dtype in (nw.Categorical, nw.Enum):
            return _of_new_categories(cells, original, labels, codes, keep=keep, blank=blank), None
        return _labelled(cells, original, labels, codes, keep=keep, blank=blank)
    if cells.temporal is not None:
        return _moments(cells, original, filled, keep=keep, blank=blank)
    note = None
    whole = cells.integral and (not broken(filled) if whole is None else whole)
    if cells.integral and not whole:
        note = "whole numbers became decimals; --then round keeps them whole"
    fresh = pa.array(filled.astype(np.int64) if whole else filled)
    if cells.is_text:
        texts = pc.replace_substring(fresh.cast(pa.string()), ".", cells.decimal)
        return _merged(original, texts, _text_type(original.dtype), keep=keep, blank=blank), note
    dtype = _type_for(original.dtype, fresh)
    if original.dtype.is_decimal() and not dtype.is_decimal():
        note = "fixed decimals became floating ones; --then round may keep them fixed"
    elif original.dtype.is_integer() and dtype.is_integer() and dtype != original.dtype:
        note = f"{original.dtype} cannot hold its masked values and became {dtype}"
    return _merged(original, fresh, dtype, keep=keep, blank=blank), note


def broken(values: Array) -> int:
    """How many values are not whole numbers, or not exact ones; missing ones are none of these.

    >>> broken(np.array([1.0, 1.5, np.nan, 1e300]))
    2
    """
    there = values[~np.isnan(values)]
    return int(np.count_nonzero((there != np.rint(there)) | (np.abs(there) >= EXACT)))


def _labelled(
    cells: Cells,
    original: nw.Series[Any],
    labels: tuple[str, ...],
    codes: NDArray[np.int64],
    *,
    keep: NDArray[np.bool_],
    blank: NDArray[np.bool_],
) -> tuple[nw.Series[Any], str | None]:
    """Labels in the column's own type where it can hold them, else as text."""
    words = pa.array(labels, pa.string()).take(pa.array(codes))
    if not cells.is_text and original.dtype not in (nw.Categorical, nw.Enum):
        try:
            typed = words.cast(cells.cells.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            note = "its values became labels, which are text"
            gaps = pc.if_else(pa.array(keep), gap_text(cells.cells), pa.scalar(None, pa.string()))
            words = pc.if_else(pa.array(keep | blank), gaps, words)
            nothing = np.zeros_like(keep)
            return _merged(original, words, nw.String(), keep=nothing, blank=pc.is_null(words).to_numpy(False)), note
        return _merged(original, typed, original.dtype, keep=keep, blank=blank), None
    return _merged(original, words, _text_type(original.dtype), keep=keep, blank=blank), None


def _of_new_categories(
    cells: Cells,
    original: nw.Series[Any],
    labels: tuple[str, ...],
    codes: NDArray[np.int64],
    *,
    keep: NDArray[np.bool_],
    blank: NDArray[np.bool_],
) -> nw.Series[Any]:
    """Labels as a column of categories that has those and no others: the old ones may be what was to be hidden."""
    old = to_arrow(original)
    ordered = bool(old.type.ordered) and cells.kind == "ordinal"
    markers = pc.unique(old.cast(pa.string()).filter(pa.array(keep)).drop_null()).to_pylist()
    words = list(labels) if cells.kind == "ordinal" else sorted(labels)
    words += [word for word in markers if word not in labels]
    place = {word: code for code, word in enumerate(words)}
    fresh = np.array([place[word] for word in labels], dtype=np.int64)[codes]
    # a cell that stays missing is a marker of its own, or null
    written = pc.index_in(old.cast(pa.string()), value_set=pa.array(words, pa.string())).fill_null(-1)
    fresh = np.where(keep, written.to_numpy(zero_copy_only=False), fresh)
    fresh[blank] = -1
    # words where there were numbers, or more of them, need another type
    dictionary = _cast(pa.array(words, pa.string()), old.type.value_type)
    indices = _cast(pa.array(fresh, pa.int32(), mask=fresh < 0), old.type.index_type)
    encoded = pa.DictionaryArray.from_arrays(indices, dictionary, ordered=ordered)
    backend, native = original.implementation, original.to_native()
    made: Any
    if backend.is_pyarrow():
        made = pa.chunked_array([encoded])
    elif backend.is_polars():
        polars = backend.to_native_namespace()
        kind = polars.Enum(words) if original.dtype == nw.Enum else polars.Categorical
        made = polars.Series(original.name, encoded.cast(pa.string()).to_pylist(), dtype=kind)
    else:
        pandas = backend.to_native_namespace()
        if isinstance(native.dtype, pandas.CategoricalDtype):
            kind = pandas.CategoricalDtype(dictionary.to_pylist(), ordered=ordered)
            made = pandas.Series(pandas.Categorical.from_codes(fresh, dtype=kind), index=native.index)
        else:
            made = pandas.Series(encoded, dtype=pandas.ArrowDtype(encoded.type), index=native.index)
    restored: nw.Series[Any] = nw.from_native(made, series_only=True)
    return restored.alias(original.name)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array in another type where that can hold it."""
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return array


def _moments(
    cells: Cells, original: nw.Series[Any], values: Array, *, keep: NDArray[np.bool_], blank: NDArray[np.bool_]
) -> tuple[nw.Series[Any], str | None]:
    """Dates and times from the whole numbers by which they are kept; what lies between is rounded."""
    assert cells.temporal is not None
    moments, note = dates.from_whole(values, cells.temporal)
    if cells.layout is not None:
        texts, rounded = cells.layout.write(moments)
        beyond = note is not None and "beyond" in note
        note = note if beyond else rounded or note
        return _merged(original, texts, _text_type(original.dtype), keep=keep, blank=blank), note
    if blank.any():
        moments = pc.if_else(pa.array(blank), pa.scalar(None, moments.type), moments)
    return _of_its_library(original, moments, cells.cells, keep=keep).alias(original.name), note


def _of_its_library(
    original: nw.Series[Any], fresh: pa.Array, cells: pa.Array, *, keep: NDArray[np.bool_]
) -> nw.Series[Any]:
    """Dates and times in the column's own type, not by way of Python's, which have neither all units nor all years."""
    backend, native = original.implementation, original.to_native()
    made: Any
    if backend.is_pyarrow():
        made = pa.chunked_array([pc.if_else(pa.array(keep), cells, fresh)])
    elif backend.is_polars():
        made = backend.to_native_namespace().from_arrow(fresh).cast(native.dtype)
        return original.zip_with(nw.new_series("keep", keep, backend=backend), nw.from_native(made, series_only=True))
    else:
        pandas = backend.to_native_namespace()
        arrow = isinstance(native.dtype, pandas.ArrowDtype)
        made = pandas.Series(fresh if arrow else fresh.to_pandas(), dtype=native.dtype)
        made = native.where(keep, made.set_axis(native.index))
    restored: nw.Series[Any] = nw.from_native(made, series_only=True)
    return restored


def _text_type(dtype: nw.dtypes.DType) -> nw.dtypes.DType:
    """Text, but objects stay objects."""
    return dtype if dtype == nw.Object else nw.String()


def _type_for(dtype: nw.dtypes.DType, fresh: pa.Array) -> nw.dtypes.DType:
    """The column's own type when it can hold the new values, else the narrowest that can."""
    if dtype.is_decimal():
        return dtype if _fits(dtype, fresh.to_numpy()) else nw.Float64()
    if dtype in (nw.Categorical, nw.Enum):
        return nw.Int64() if pa.types.is_integer(fresh.type) else nw.Float64()
    if dtype.is_float() and len(fresh) and np.max(np.abs(fresh.to_numpy())) > np.finfo(str(dtype).lower()).max:
        return nw.Float64()
    if not dtype.is_integer():
        return dtype
    if not pa.types.is_integer(fresh.type):
        return nw.Float64()
    limits, span = np.iinfo(str(dtype).lower()), pc.min_max(fresh).as_py()
    return dtype if len(fresh) == 0 or (limits.min <= span["min"] and span["max"] <= limits.max) else nw.Int64()


def _fits(dtype: nw.dtypes.DType, values: Array) -> bool:
    """Whether a decimal type can hold the values as they are."""
    scale, digits = getattr(dtype, "scale", None), getattr(dtype, "precision", None)
    if scale is None or digits is None:
        return False
    if not np.all(np.abs(values) < min(10.0 ** (digits - scale), EXACT / 10.0**scale)):
        return False  # and rounding would overflow
    return bool(np.array_equal(np.round(values, scale), values))


def _merged(
    original: nw.Series[Any],
    fresh: pa.Array,
    dtype: nw.dtypes.DType,
    *,
    keep: NDArray[np.bool_],
    blank: NDArray[np.bool_],
) -> nw.Series[Any]:
    """`fresh` as a series of the same library, with the cells in `keep` as they were and those in `blank` empty."""
    backend = original.implementation
    if original.dtype in (nw.Categorical, nw.Enum):
        encoded = _encoded(original, fresh, keep=keep, blank=blank)
        if encoded is not None:
            return encoded.alias(original.name)
        if dtype == nw.Int64 and original.is_null().any():  # numpy's whole numbers have no missing one
            dtype = nw.Float64()
    if dtype != original.dtype and not np.any(keep & ~original.is_null().to_numpy()):
        blank, keep = blank | keep, np.zeros_like(keep)  # nothing is written there that the new type would have to hold
    if blank.any():
        fresh = pc.if_else(pa.array(blank), pa.scalar(None, fresh.type), fresh)
        if backend.is_pandas_like() and dtype.is_integer() and not _takes_missing(original):
            dtype = nw.Float64()
    made: Any = _of_library(original, fresh)
    if backend.is_pyarrow():
        old = original.to_native()
        words = made.cast(dtype).to_native() if dtype != original.dtype else made.to_native().cast(old.type)
        if keep.any():  # of the others some might not fit the new type
            kept = pc.if_else(pa.array(keep), old, pa.scalar(None, old.type)).cast(words.type, safe=False)
            words = pc.if_else(pa.array(keep), kept, words)
        return cast("nw.Series[Any]", nw.from_native(words, series_only=True).alias(original.name))
    # a cast to the type that a column has would make the text None of an empty cell in older versions of pandas
    made = made if made.dtype == dtype else made.cast(dtype)
    if dtype != original.dtype and not keep.any():
        return cast("nw.Series[Any]", made.alias(original.name))
    base = original if original.dtype == dtype else original.cast(dtype)
    return base.zip_with(nw.new_series(original.name, keep, backend=backend), made).alias(original.name)


def _of_library(original: nw.Series[Any], fresh: pa.Array) -> nw.Series[Any]:
    """An array as a series of the library of `original`, missing cells as that has them."""
    backend, native = original.implementation, original.to_native()
    if backend.is_pyarrow():
        made: Any = pa.chunked_array([fresh])
    elif backend.is_polars():
        made = backend.to_native_namespace().from_arrow(fresh)
    else:
        pandas = backend.to_native_namespace()
        listed = pa.types.is_string(fresh.type) or pa.types.is_temporal(fresh.type) or pa.types.is_boolean(fresh.type)
        if isinstance(native.dtype, pandas.ArrowDtype):
            made = pandas.Series(fresh, dtype=pandas.ArrowDtype(fresh.type), index=native.index)
        else:
            data = fresh.to_pylist() if listed else fresh.to_numpy(zero_copy_only=False)
            made = pandas.Series(data, index=native.index)
            own = _with_missing(fresh.type)
            if own is not None and pandas.api.types.is_numeric_dtype(native.dtype) and _takes_missing(original):
                made = made.astype(own)  # numpy's whole numbers have no missing one
    series: nw.Series[Any] = nw.from_native(made, series_only=True)
    return series


def _with_missing(kind: pa.DataType) -> str | None:
    """The type of pandas for such numbers that has a missing value of its own."""
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_floating(kind):
        return "Float64"
    return ("UInt64" if pa.types.is_unsigned_integer(kind) else "Int64") if pa.types.is_integer(kind) else None


def _takes_missing(series: nw.Series[Any]) -> bool:
    """Whether a whole-number column of pandas has a missing value of its own."""
    return not isinstance(series.to_native().dtype, np.dtype)


def _encoded(
    original: nw.Series[Any], fresh: pa.Array, *, keep: NDArray[np.bool_], blank: NDArray[np.bool_]
) -> nw.Series[Any] | None:
    """`fresh` among the categories of `original`, all of which stay in their order; None when some is no category."""
    old = to_arrow(original)
    words = pc.utf8_trim_whitespace(old.dictionary.cast(pa.string()))
    found = pc.index_in(fresh.cast(pa.string()), value_set=words).fill_null(-1).to_numpy(zero_copy_only=False)
    codes = np.where(keep, old.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False), found)
    if np.any(found[~keep & ~blank] < 0):
        return None
    codes[blank] = -1
    backend, native = original.implementation, original.to_native()
    indices = pa.array(codes, mask=codes < 0).cast(old.indices.type)
    encoded = pa.DictionaryArray.from_arrays(indices, old.dictionary, ordered=old.type.ordered)
    made: Any
    if backend.is_pyarrow():
        made = pa.chunked_array([encoded])
    elif backend.is_polars():
        made = encoded.cast(old.type.value_type).to_pylist()
        return nw.new_series(original.name, made, backend=backend).cast(original.dtype)
    else:
        pandas = backend.to_native_namespace()
        if isinstance(native.dtype, pandas.CategoricalDtype):
            made = pandas.Series(pandas.Categorical.from_codes(codes, dtype=native.dtype), index=native.index)
        else:
            made = pandas.Series(encoded, dtype=native.dtype, index=native.index)
    restored: nw.Series[Any] = nw.from_native(made, series_only=True)
    return restored


def in_no_order(series: nw.Series[Any]) -> nw.Series[Any]:
    """A column of categories that have no order, sorted: as they came they would tell which record came first."""
    backend, native = series.implementation, series.to_native()
    if series.dtype != nw.Categorical or backend.is_polars():  # polars tells them in the order of the rows there are
        return series
    made: Any
    if backend.is_pandas_like() and hasattr(native.dtype, "categories"):
        words = native.dtype.categories.tolist()
        made = native.cat.reorder_categories(sorted(words, key=str)) if not native.dtype.ordered else native
    else:
        encoded = with_sorted_words(to_arrow(series))
        made = pa.chunked_array([encoded])
        if backend.is_pandas_like():
            pandas = backend.to_native_namespace()
            made = pandas.Series(encoded, dtype=pandas.ArrowDtype(encoded.type), index=native.index)
    restored: nw.Series[Any] = nw.from_native(made, series_only=True)
    return restored.alias(series.name)


def with_sorted_words(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same cells with a sorted dictionary, unless its order means something."""
    if array.type.ordered:
        return array
    words = array.dictionary.to_pylist()
    order = np.array(sorted(range(len(words)), key=lambda place: str(words[place])), dtype=np.int64)
    indices = pa.array(np.argsort(order)).take(array.indices.cast(pa.int64())).cast(array.indices.type)
    return pa.DictionaryArray.from_arrays(indices, array.dictionary.take(pa.array(order)))
