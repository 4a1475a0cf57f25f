"""Columns of categories of a table in parts: all parts have the same dictionary, with the words that the whole has.

A file may have a dictionary of its own, in which a word that a masked cell gets from elsewhere has no place. And a
dictionary tells of words that no cell has: that of a part's release alone would tell which categories its original
cells had, and side by side with those of other parts it would no longer be in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from rankveil.partitions.parquet import Source
from rankveil.partitions.stages import Each
from rankveil.restoring import with_sorted_words
from rankveil.rows import Rows

Known = Mapping[str, tuple[Any, ...]]
"""The words of dictionaries, in order, by the names of columns."""


def words_in(source: Source, names: Sequence[str], bounds: Sequence[int], partition: int) -> Known:
    """A task: the words of the dictionaries of a partition."""
    cells = source.cells(names, bounds[partition], bounds[partition + 1])
    return {name: tuple(column.dictionary.to_pylist()) for name, column in zip(names, cells, strict=True)}


def dictionaries(each: Each, source: Source, bounds: Sequence[int]) -> Known:
    """The words of all dictionaries of a table."""
    assert source.schema is not None
    names = [field.name for field in source.schema if _is_dictionary(field)]
    if not names:
        return {}
    return reduce(_both, each(partial(words_in, source, names, bounds), range(len(bounds) - 1)))


def _both(one: Known, other: Known) -> Known:
    return {name: tuple(dict.fromkeys((*words, *other[name]))) for name, words in one.items()}


@dataclass(frozen=True)
class Words:
    """For each column of categories its words in order, those that original cells have, and those of released ones."""

    known: Known
    before: Mapping[str, frozenset[Any]]
    after: Mapping[str, frozenset[Any]]

    @classmethod
    def of(cls, original: pa.Table, made: pa.Table) -> Self:
        """Those of a part."""
        names = [field.name for field in made.schema if _is_dictionary(field) and field.name in original.column_names]
        names = [name for name in names if _is_dictionary(original.schema.field(name))]
        now = {name: _whole(made, name) for name in names}
        known = {name: tuple(column.dictionary.to_pylist()) for name, column in now.items()}
        before = {name: _used(_whole(original, name)) for name in names}
        return cls(known, before, {name: _used(column) for name, column in now.items()})

    def merged(self, other: Words) -> Words:
        """Those of both parts together."""
        return Words(
            _both(self.known, other.known),
            {name: words | other.before[name] for name, words in self.before.items()},
            {name: words | other.after[name] for name, words in self.after.items()},
        )

    def left(self, name: str) -> list[Any]:
        """The words of a column without those that were lost: original cells have them, and no released one."""
        lost = self.before[name] - self.after[name]
        return [word for word in self.known[name] if word not in lost]


def with_all_words(original: pa.Table, made: pa.Table, rows: Rows) -> pa.Table:
    """The release of a part with the dictionaries of the whole."""
    own = Words.of(original, made)
    if not own.known:
        return made
    whole = rows.merged(own)
    for name in own.known:
        place = made.schema.get_field_index(name)
        column = with_words(_whole(made, name), whole.left(name))
        made = made.set_column(place, made.schema.field(place).with_type(column.type), pa.chunked_array([column]))
    return made


def in_no_order(table: pa.Table) -> pa.Table:
    """A part whose records get another order, with sorted dictionaries: as they came they would tell the old one."""
    for place, field in enumerate(table.schema):
        if _is_dictionary(field):
            column = with_sorted_words(_whole(table, field.name))
            table = table.set_column(place, field, pa.chunked_array([column]))
    return table


def with_words(column: pa.DictionaryArray, words: Sequence[Any]) -> pa.DictionaryArray:
    """A column of categories with another dictionary, which has its words."""
    dictionary = pa.array(words, column.dictionary.type)
    places = pc.index_in(column.dictionary, value_set=dictionary)
    kind = column.type.index_type if len(words) < 2 ** (column.type.index_type.bit_width - 1) else pa.int32()
    indices = places.take(column.indices).cast(kind)
    return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=column.type.ordered)


def _whole(table: pa.Table, name: str) -> pa.DictionaryArray:
    """A column in one piece, with one dictionary."""
    column = table.column(name).unify_dictionaries().combine_chunks()
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def _used(column: pa.DictionaryArray) -> frozenset[Any]:
    return frozenset(column.dictionary.take(pc.unique(column.indices).drop_null()).to_pylist())


def _is_dictionary(field: pa.Field) -> bool:
    return bool(pa.types.is_dictionary(field.type))
