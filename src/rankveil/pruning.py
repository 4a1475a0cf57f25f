"""A release declares no label that none of its cells has: of a category, of a coded value, of a missing code.

Such a label may be that of a person who was left out or whose cell was suppressed, and a table does not tell those from
labels that were declared for other reasons. It is decided here, of the finished table, whatever format that goes to.
Dictionaries inside lists and records become plain values, and what is noted of their fields is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc

from rankveil import metadata
from rankveil.columns import to_arrow
from rankveil.metadata import Described, Value

_NOT_A_NUMBER = "NaN"
"""In place of a category that is NaN, which is not equal to itself; no other category of its column is text."""


@dataclass(frozen=True)
class Used:
    """Of the labels that the columns of a table declare, those that its cells have; of parts of a table, merged."""

    words: Mapping[str, tuple[Any, ...]]
    """The categories of each column that has some, in order, whether a cell has them or not."""
    cells: Mapping[str, frozenset[Any]]
    """The categories that cells have."""
    values: Mapping[str, frozenset[Value]]
    """The labelled values and missing codes that cells have."""
    ranges: Mapping[str, frozenset[tuple[float, float]]]
    """The ranges of missing codes that some cell lies in."""

    @classmethod
    def of(cls, table: pa.Table) -> Self:
        """What the cells of a table have."""
        columns = {field.name: _whole(table, field.name) for field in table.schema if _is_dictionary(field.type)}
        described = {name: said for name, said in metadata.described_columns(table.schema).items() if said.declares}
        found = {name: said.declared_in(table.column(name)) for name, said in described.items()}
        return cls(
            words={name: tuple(column.dictionary.to_pylist()) for name, column in columns.items()},
            cells={name: _used(column) for name, column in columns.items()},
            values={name: frozenset(values) for name, (values, _) in found.items()},
            ranges={name: frozenset(ranges) for name, (_, ranges) in found.items()},
        )

    def merged(self, other: Used) -> Used:
        """What the cells of both parts have."""
        return Used(
            words={name: tuple(dict.fromkeys((*words, *other.words[name]))) for name, words in self.words.items()},
            cells={name: words | other.cells[name] for name, words in self.cells.items()},
            values={name: values | other.values[name] for name, values in self.values.items()},
            ranges={name: ranges | other.ranges[name] for name, ranges in self.ranges.items()},
        )

    def kept(self, name: str) -> list[Any]:
        """The categories of a column that cells have, in order."""
        return [word for word in self.words[name] if _key(word) in self.cells[name]]

    def said(self, name: str, described: Described) -> Described:
        """What is said of a column, without values that no cell has."""
        if name not in self.values:
            return described
        values, ranges = self.values[name], self.ranges[name]
        return replace(
            described,
            value_labels=tuple(pair for pair in described.value_labels if pair[0] in values),
            missing_codes=tuple(code for code in described.missing_codes if code in values),
            missing_ranges=tuple(span for span in described.missing_ranges if span in ranges),
        )


def here(used: Used) -> Used:
    """What the cells of a table have that is in one part."""
    return used


def of_table(table: pa.Table, everywhere: Callable[[Used], Used] = here) -> pa.Table:
    """A released pyarrow table without labels that no cell has; `everywhere` tells those of all parts of a table."""
    columns = [_plain_inside(column) for column in table.columns]
    fields = [field.with_type(column.type) for field, column in zip(table.schema, columns, strict=True)]
    table = pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=table.schema.metadata))
    used = Used.of(table)
    if used.words or used.values:
        used = everywhere(used)
    for place, field in enumerate(table.schema):
        name, column = field.name, table.column(place)
        if name in used.words:
            words, own = used.kept(name), _whole(table, name)
            if words != own.dictionary.to_pylist():
                column = pa.chunked_array([with_words(own, words)])
        field = metadata.write(field.with_type(column.type), used.said(name, metadata.read(field)))
        field = field.with_metadata(metadata.with_enum_of(field.metadata, used.cells.get(name, frozenset())))
        table = table.set_column(place, field, column)
    return table


def of_frame(frame: nw.DataFrame[Any]) -> Any:
    """A released pandas or polars table, as its library has it, without categories that no cell has, its index too."""
    made = (_of_series(frame.get_column(name)) for name in frame.columns)
    fresh = [series for series in made if series is not None]
    native = (frame.with_columns(*fresh) if fresh else frame).to_native()
    index = nw.maybe_get_index(frame)
    kept = None if index is None else _of_index(index)
    return native if kept is index else native.set_axis(kept, axis=0)


def with_words(column: pa.DictionaryArray, words: Sequence[Any]) -> pa.DictionaryArray:
    """A column of categories with another dictionary, which has all words of its cells."""
    dictionary = pa.array(words, column.dictionary.type)
    places = pc.index_in(column.dictionary, value_set=dictionary)
    kind = column.type.index_type
    if len(words) > 2 ** (kind.bit_width - pa.types.is_signed_integer(kind)):
        kind = pa.int32()
    indices = places.take(column.indices).cast(kind)
    return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=column.type.ordered)


def _of_series(series: nw.Series[Any]) -> nw.Series[Any] | None:
    """A column of categories without those that no cell has; None when it has no others."""
    backend, native = series.implementation, series.to_native()
    made: Any
    if backend.is_polars():
        polars = backend.to_native_namespace()
        kind = _polars_plain_inside(native.dtype, polars)
        if kind != native.dtype:
            made = native.cast(kind)
        elif series.dtype in (nw.Categorical, nw.Enum) and (words := _fewer(to_arrow(series))) is not None:
            made = native.cast(polars.String).cast(polars.Enum(words))
        else:
            return None
    else:
        pandas = backend.to_native_namespace()
        if isinstance(native.dtype, pandas.CategoricalDtype):
            made = native.cat.remove_unused_categories()
        elif isinstance(native.dtype, pandas.ArrowDtype):
            array = _plain_inside(pa.chunked_array([to_arrow(series)])).combine_chunks()
            words = _fewer(array) if _is_dictionary(array.type) else None
            array = array if words is None else with_words(array, words)
            if words is None and array.type.equals(native.dtype.pyarrow_dtype, check_metadata=True):
                return None
            made = pandas.Series(array, dtype=pandas.ArrowDtype(array.type), index=native.index)
        else:
            return None
    restored: nw.Series[Any] = nw.from_native(made, series_only=True)
    return restored.alias(series.name)


def _of_index(index: Any) -> Any:
    """An index of pandas without labels that no row has."""
    if hasattr(index, "levels"):
        used = index.remove_unused_levels()
        return used.set_levels([_of_index(level) for level in used.levels], verify_integrity=False)
    return index.remove_unused_categories() if hasattr(index, "remove_unused_categories") else index


def _fewer(array: pa.DictionaryArray) -> list[Any] | None:
    """The words of a dictionary that cells have, in order; None when those are all."""
    words, used = array.dictionary.to_pylist(), _used(array)
    kept = [word for word in words if _key(word) in used]
    return kept if len(kept) < len(words) else None


def _plain_inside(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column whose lists and records have no dictionaries inside, and fields of which nothing is noted."""
    kind = _plain_kind(column.type)
    if kind.equals(column.type, check_metadata=True):
        return column
    try:
        return column.cast(kind)
    except pa.ArrowNotImplementedError:
        return pa.chunked_array([pa.array(column.to_pylist(), kind)])


def _plain_kind(kind: pa.DataType, *, inside: bool = False) -> pa.DataType:
    """A type without dictionaries below its top."""

    def plain(field: pa.Field) -> pa.Field:
        return pa.field(field.name, _plain_kind(field.type, inside=True), field.nullable)

    types = pa.types
    if types.is_struct(kind):
        return pa.struct([plain(kind.field(place)) for place in range(kind.num_fields)])
    if types.is_map(kind):
        return pa.map_(plain(kind.key_field), plain(kind.item_field), keys_sorted=kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(plain(kind.value_field), kind.list_size)
    for test, make in ((types.is_list, pa.list_), (types.is_large_list, pa.large_list)):
        if test(kind):
            return make(plain(kind.value_field))
    return kind.value_type if inside and _is_dictionary(kind) else kind


def _polars_plain_inside(kind: Any, polars: Any, *, inside: bool = False) -> Any:
    """A type of polars without categories below its top."""
    if isinstance(kind, polars.List):
        return polars.List(_polars_plain_inside(kind.inner, polars, inside=True))
    if isinstance(kind, polars.Array):
        return polars.Array(_polars_plain_inside(kind.inner, polars, inside=True), kind.size)
    if isinstance(kind, polars.Struct):
        return polars.Struct({each.name: _polars_plain_inside(each.dtype, polars, inside=True) for each in kind.fields})
    return polars.String() if inside and isinstance(kind, polars.Categorical | polars.Enum) else kind


def _whole(table: pa.Table, name: str) -> pa.DictionaryArray:
    """A column in one piece, with one dictionary."""
    column = table.column(name).unify_dictionaries().combine_chunks()
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def _used(column: pa.DictionaryArray) -> frozenset[Any]:
    words = column.dictionary.take(pc.unique(column.indices).drop_null()).to_pylist()
    return frozenset(_key(word) for word in words)


def _key(word: Any) -> Any:
    return word if word == word else _NOT_A_NUMBER


def _is_dictionary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))
