"""A first look at a table of any size: what its columns hold, from which their kinds and categories are told.

A column of numbers, dates or times is known by a few of its cells, its smallest and its largest among them. Of any
other one the different cells are kept, and how many there are of each. Put side by side, these make a small table
(`digest`) that stands for the large one wherever it is asked what its columns are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankveil import categories as categorising
from rankveil import columns as reading
from rankveil import dates, metadata
from rankveil.categories import Categories
from rankveil.errors import TableError, suggestion
from rankveil.partitions.parquet import Source
from rankveil.partitions.scratch import Scratch
from rankveil.schema import NAMING_ROLES, Schema
from rankveil.table import Table

MOST = 1_000_000
"""Different cells of a column that are kept; a column with more is not one of categories."""

_VALUE, _COUNT = "value", "count"


@dataclass(frozen=True, eq=False)
class Seen:
    """What some rows of a column hold."""

    missing: int
    """How many cells have no value."""
    cells: pa.Array
    """A few cells that stand for all; none where the different ones lie in the scratch folder."""
    different: int | None = None
    """How many different cells these are; more than `MOST` when they were too many to be kept."""
    order: tuple[str, ...] = ()
    """The categories of a column that says itself how they are ordered."""
    infinite: int | None = None
    """The first row with an infinite value."""

    def merged(self, other: Seen) -> Seen:
        """What both parts hold; different cells that lie in files are merged by `merge_labels`."""
        rows = [row for row in (self.infinite, other.infinite) if row is not None]
        return Seen(
            self.missing + other.missing,
            _standing(pa.concat_arrays([self.cells, other.cells])),
            None if self.different is None or other.different is None else max(self.different, other.different),
            tuple(dict.fromkeys((*self.order, *other.order))),
            min(rows, default=None),
        )


@dataclass(frozen=True)
class Look:
    """A table that is looked at, and how its columns are."""

    side: str
    source: Source
    names: tuple[str, ...]
    labelled: frozenset[str]
    """Columns whose different cells are kept."""
    schema: Schema
    bounds: tuple[int, ...]
    scratch: Scratch


def labelled(source: Source, names: Collection[str], schema: Schema) -> set[str]:
    """Columns that are known by their different cells: text, categories, and what was declared to have labels.

    Quasi-identifiers and confidential ones too, as long as they have few.
    """
    few = schema.with_role(*NAMING_ROLES)
    return {name for name in names if name in few or has_labels(source, name, schema)}


def has_labels(source: Source, name: str, schema: Schema) -> bool:
    """Whether the cells of a column are labels, or may be: nothing but the different ones tells what it is."""
    assert source.schema is not None
    field = source.schema.field(name)
    described = metadata.read(field)
    told = described is not None and (described.level == "nominal" or (not described.level and described.labels))
    declared = (schema.kinds or {}).get(name) == "nominal" or name in {
        *(schema.levels or {}),
        *(schema.hierarchies or {}),
    }
    return bool(told or declared or not _measurable(field.type))


def _measurable(kind: pa.DataType) -> bool:
    return bool(reading.is_number(kind) or pa.types.is_temporal(kind))


def look_at(look: Look, partition: int) -> dict[str, Seen]:
    """A task: what a partition of a table holds."""
    start, stop = look.bounds[partition], look.bounds[partition + 1]
    made = {}
    for name, cells in zip(look.names, look.source.cells(look.names, start, stop), strict=True):
        if name in look.labelled and not pa.types.is_nested(cells.type):
            made[name] = _labels_of(look, name, partition, start, cells)
        else:
            made[name] = _standing_for(look, name, start, cells)
    return made


def _standing_for(look: Look, name: str, start: int, cells: pa.Array) -> Seen:
    """A column of numbers, dates or times by a few of its cells."""
    assert look.source.schema is not None
    if not _measurable(cells.type):
        return Seen(cells.null_count, cells[:1])
    gone = missing_in(cells, name, look.schema.missing, metadata.read(look.source.schema.field(name)))
    present = cells if gone is None else cells.filter(pa.array(~gone))
    few = _standing(cells if gone is None else pa.concat_arrays([present, cells.filter(pa.array(gone))[:1]]))
    infinite = None
    if pa.types.is_floating(cells.type) and len(few):
        ends = few.to_numpy(zero_copy_only=False)
        if np.isinf(ends).any():
            values = cells.to_numpy(zero_copy_only=False)
            there = np.isinf(values) if gone is None else np.isinf(values) & ~gone
            infinite = start + int(np.flatnonzero(there)[0]) if there.any() else None
    return Seen(0 if gone is None else int(gone.sum()), few, infinite=infinite)


def missing_in(
    cells: pa.Array, name: str, markers: Sequence[str], described: metadata.Described | None
) -> NDArray[np.bool_] | None:
    """Which numbers, dates or times are missing; None when all are there."""
    if markers or (described is not None and described.marks_missing):
        found: NDArray[np.bool_] = as_read(cells, name, markers, described).missing
        return found if found.any() else None
    if pa.types.is_floating(cells.type):
        if not cells.null_count and (len(cells) == 0 or not np.isnan(cells.to_numpy(zero_copy_only=False).max())):
            return None
        gone = pc.is_null(cells, nan_is_null=True)
    elif cells.null_count:
        gone = pc.is_null(cells)
    else:
        return None
    return gone.to_numpy(zero_copy_only=False) if pc.any(gone, min_count=0).as_py() else None


def as_read(cells: pa.Array, name: str, markers: Sequence[str], described: metadata.Described | None) -> reading.Cells:
    """Cells of a column of numbers, dates or times as a table in memory reads them."""
    series = nw.from_native(pa.chunked_array([cells]), series_only=True)
    return reading.read(
        series, name=name, missing=markers, decimal=".", kind="numeric", levels=None, described=described
    )


def _ends(present: pa.Array) -> list[Any]:
    """The smallest and the largest cell of a column without gaps."""
    if pa.types.is_floating(present.type):  # numpy takes a tenth of Arrow's time
        values = present.to_numpy(zero_copy_only=False)
        return [values.min(), values.max()]
    ends = pc.min_max(present)
    return [ends["min"].as_py(), ends["max"].as_py()]


def _standing(cells: pa.Array) -> pa.Array:
    """The smallest and the largest cell, one that is missing, and a time that is no exact number, if there are."""
    if len(cells) <= 3 or not _measurable(cells.type):
        return cells[:3]
    present = cells.drop_null() if cells.null_count else cells
    if pa.types.is_floating(cells.type) and np.isnan(cells.to_numpy(zero_copy_only=False).max()):  # or a null
        present = present.filter(pc.invert(pc.is_nan(present)))
    few = [pa.array(_ends(present), cells.type)] if len(present) else []
    if len(present) < len(cells):
        few.append(pa.nulls(1, cells.type))
    if pa.types.is_temporal(cells.type) and not dates.are_exact(present):
        alone = (present[k : k + 1] for k in range(len(present)))
        few.append(next(each for each in alone if not dates.are_exact(each)))
    return pa.concat_arrays(few)


# ---- different cells ----


def _labels_of(look: Look, name: str, partition: int, start: int, cells: pa.Array) -> Seen:
    order: tuple[str, ...] = ()
    if pa.types.is_dictionary(cells.type) and cells.type.ordered:
        order = tuple(str(word) for word in cells.dictionary.to_pylist())
    counted = pc.value_counts(plain(cells))
    few = _standing_for(look, name, start, cells) if _measurable(cells.type) else Seen(0, plain(cells[:0]))
    if len(counted) <= MOST:
        made = pa.table({_VALUE: counted.field("values"), _COUNT: counted.field("counts")})
        put_cells(look.scratch, _labels_file(look.side, name, partition), made)
    return replace(few, different=len(counted), order=order)


def plain(cells: pa.Array) -> pa.Array:
    """Categories as the text or numbers that they are, and text of any kind as one kind."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_large_string(cells.type) or pa.types.is_string_view(cells.type):
        cells = cells.cast(pa.string())
    return cells


def merge_labels(look: Look, name: str) -> int:
    """A task: put the different cells of a column's partitions together; how many there are, or more than `MOST`."""
    files = [_labels_file(look.side, name, p) for p in range(len(look.bounds) - 1)]

    def both(one: pa.Table, other: pa.Table) -> pa.Table:
        if len(one) > MOST:
            return one
        joined = pa.concat_tables([one, other]).combine_chunks()
        added = joined.group_by(_VALUE, use_threads=False).aggregate([(_COUNT, "sum")])
        return added.rename_columns([_VALUE, _COUNT] if added.column_names[0] == _VALUE else [_COUNT, _VALUE])

    found = reduce(both, (take_cells(look.scratch, file) for file in files))
    if len(found) <= MOST:
        put_cells(look.scratch, labels_file(look.side, name), found.select([_VALUE, _COUNT]))
    return len(found)


def labels_file(side: str, name: str) -> str:
    """The different cells of a column."""
    return f"labels-{side}-{_plain_name(name)}"


def _labels_file(side: str, name: str, partition: int) -> str:
    return f"{labels_file(side, name)}-{partition}"


def _plain_name(name: str) -> str:
    """A column's name as part of the name of a file."""
    return name.encode().hex()


def put_cells(scratch: Scratch, name: str, table: pa.Table) -> None:
    """Keep cells of any type in a file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    scratch.put(name, np.frombuffer(sink.getvalue(), np.uint8))


def take_cells(scratch: Scratch, name: str) -> pa.Table:
    """The cells of a file."""
    with pa.ipc.open_stream(pa.py_buffer(scratch.take(name, np.uint8))) as reader:
        return reader.read_all()


# ---- the small table ----


class Digest(Table):
    """A small table that stands for a large one: each row of a column counts for many."""

    def __init__(self, data: pa.Table, *, schema: Schema, counts: Mapping[str, NDArray[np.int64]]) -> None:
        super().__init__(data, schema=schema)
        self.counts = counts

    @cached_property
    def weight(self) -> NDArray[np.float64] | None:
        """A few cells tell nothing of the weights of records."""
        return None

    def categories(self, name: str) -> Categories:
        """The categories of a column with the numbers of cells that the large table has of each."""
        made = super().categories(name)
        if name not in self.counts:
            return made
        labels = self.cells(name).labels().to_pylist()
        total = dict.fromkeys(made.labels, 0)
        for label, count in zip(labels, self.counts[name].tolist(), strict=False):  # rows behind are padding
            if label is not None and label not in total:
                raise TableError(f"column {name}: {label!r} is not one of its levels{suggestion(label, made.labels)}")
            if label is not None:
                total[label] += count
        counts = np.array([total[label] for label in made.labels], np.float64)
        if made.ordered:
            return replace(made, counts=counts)
        return categorising.nominal(made.labels, counts, made.hierarchy)


def digest(look: Look, seen: Mapping[str, Seen]) -> Digest:
    """The small table that stands for the one that was looked at."""
    assert look.source.schema is not None
    columns, counts, fields = [], {}, []
    for name in look.names:
        field, cells = look.source.schema.field(name), seen[name].cells
        found = seen[name].different
        if found is not None and found <= MOST:
            table = take_cells(look.scratch, labels_file(look.side, name))
            cells = table.column(_VALUE).combine_chunks()
            counts[name] = table.column(_COUNT).to_numpy()
        elif found is not None:  # nobody asks what a column with too many different cells is
            cells = pa.array(["", f"more than {MOST:,} different values"])
        if seen[name].order:
            words = pa.array(seen[name].order, pa.string())
            places = pc.index_in(cells.cast(pa.string()), value_set=words)
            cells = pa.DictionaryArray.from_arrays(places, words, ordered=True)
        columns.append(cells)
        fields.append(field.with_type(cells.type))
    rows = max((len(cells) for cells in columns), default=0)
    padded = [pa.chunked_array([cells, pa.nulls(rows - len(cells), cells.type)]) for cells in columns]
    table = pa.Table.from_arrays(padded, schema=pa.schema(fields)).unify_dictionaries().combine_chunks()
    return Digest(table, schema=look.schema, counts=counts)
