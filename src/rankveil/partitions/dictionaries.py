"""Columns of categories of a table in parts: all parts have the same dictionary, with the words that the whole has.

A file may have a dictionary of its own, in which a word that a masked cell gets from elsewhere has no place. Which of
the words are released, of all parts together, `rankveil.pruning` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any

import pyarrow as pa

from rankveil.partitions.parquet import Source
from rankveil.partitions.stages import Each
from rankveil.restoring import with_sorted_words

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


def in_no_order(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """A part with sorted dictionaries in some columns: as they came they would tell the order of the original's."""
    for place, field in enumerate(table.schema):
        if _is_dictionary(field) and field.name in names:
            column = with_sorted_words(_whole(table, field.name))
            table = table.set_column(place, field, pa.chunked_array([column]))
    return table


def _whole(table: pa.Table, name: str) -> pa.DictionaryArray:
    """A column in one piece, with one dictionary."""
    column = table.column(name).unify_dictionaries().combine_chunks()
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def _is_dictionary(field: pa.Field) -> bool:
    return bool(pa.types.is_dictionary(field.type))
