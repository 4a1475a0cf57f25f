"""A table in parts that is masked: what is known of it as a whole, and its parts read as the whole is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from rankveil import columns as reading
from rankveil import metadata
from rankveil.categories import Categories
from rankveil.errors import TableError, listing
from rankveil.partitions.dictionaries import Known, dictionaries
from rankveil.partitions.looking import MOST, Digest, Look, Seen, digest, labelled, look_at, merge_labels
from rankveil.partitions.parquet import Source
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Each
from rankveil.pruning import with_words
from rankveil.schema import Schema
from rankveil.table import Column, Table


class Whole(Digest):
    """A small table that stands for the large one, and has its numbers of records and missing cells."""

    def __init__(self, small: Digest, seen: Mapping[str, Seen], records: int) -> None:
        super().__init__(small.native, schema=small.schema, counts=small.counts)
        self._seen, self._records = seen, records
        self._counted: dict[str, Categories] = {}

    def __len__(self) -> int:
        return self._records

    def usable(self, chosen: Sequence[str] | None = None) -> tuple[str, ...]:
        """The columns to mask."""
        names = super().usable(chosen)
        self._refuse_too_many(names)
        return names

    def categories(self, name: str) -> Categories:
        """The categories of the whole column."""
        self._refuse_too_many([name])
        if name not in self._counted:
            self._counted[name] = super().categories(name)
        return self._counted[name]

    def _refuse_too_many(self, names: Sequence[str]) -> None:
        many = [name for name in names if (self._seen[name].different or 0) > MOST]
        if many:
            raise TableError(
                f"column {listing(many)}: more than {MOST:,} different values, too many for categories of a table in "
                "parts; drop it or leave it out"
            )

    def _where(self, name: str, label: str) -> str:
        """Nothing: in which row of the large table a label stands was not kept."""
        return ""

    def read(
        self, name: str, part: nw.Series[Any], described: metadata.Described | None, *, start: int
    ) -> reading.Cells:
        """A part of a column from a row on, whose cells are what those of the whole column are."""
        known = self.cells(name)
        found = reading.read(
            part,
            name=name,
            missing=self.schema.missing,
            decimal=self.decimal,
            kind=known.kind,
            levels=known.levels or None,
            described=described,
        )
        return replace(found, kind=known.kind, why=known.why, temporal=known.temporal, layout=known.layout, start=start)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """What is known of every column, by name."""
        return {name: self._known(name) for name in self.names}

    def _known(self, name: str) -> Column:
        made, seen, cells = self._describe(name), self._seen[name], self.cells(name)
        counts = self.counts.get(name)
        missing = seen.missing
        if counts is not None:
            missing = int(counts[cells.missing[: counts.size]].sum())
        return replace(made, missing=missing)


class Part(Table):
    """Some rows of a table in parts, read as the whole is."""

    def __init__(self, data: pa.Table, whole: Whole, *, start: int) -> None:
        super().__init__(data, schema=whole.schema)
        self._whole, self.start = whole, start

    @property
    def records(self) -> int:
        """How many records the whole table has."""
        return len(self._whole)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """What is known of every column of the whole table."""
        return self._whole.columns

    def cells(self, name: str) -> reading.Cells:
        """The cells of a column, which are what those of the whole column are."""
        if name not in self._cells:
            column, described = self.frame.get_column(name), self._described(name)
            self._cells[name] = self._whole.read(name, column, described, start=self.start)
        return self._cells[name]

    def _any(self, name: str) -> bool:
        """Whether the whole column has a number that is not 0: its ends tell."""
        return bool(np.nan_to_num(self._whole.values(name)).any())

    def categories(self, name: str) -> Categories:
        """The categories of the whole column."""
        return self._whole.categories(name)

    def usable(self, chosen: Sequence[str] | None = None) -> tuple[str, ...]:
        """The columns to mask: those of the whole table."""
        return self._whole.usable(chosen)


@dataclass(frozen=True, eq=False)
class Parts:
    """A table in parts, once its whole is known."""

    source: Source
    bounds: tuple[int, ...]
    whole: Whole
    words: Known
    """The words of dictionaries, of all parts together."""

    def __len__(self) -> int:
        return self.bounds[-1]

    @property
    def partitions(self) -> range:
        """Their numbers."""
        return range(len(self.bounds) - 1)

    def table(self, partition: int) -> Part:
        """The table of a partition."""
        assert self.source.schema is not None
        names = self.source.names
        cells = self.source.cells(names, self.bounds[partition], self.bounds[partition + 1])
        told = zip(names, cells, strict=True)
        cells = [with_words(one, self.words[name]) if name in self.words else one for name, one in told]
        fields = [field.with_type(one.type) for field, one in zip(self.source.schema, cells, strict=True)]
        return Part(pa.Table.from_arrays(cells, schema=pa.schema(fields)), self.whole, start=self.bounds[partition])

    def column(self, name: str, partition: int) -> reading.Cells:
        """The cells of one column of a partition."""
        assert self.source.schema is not None
        cells = self.source.cells([name], self.bounds[partition], self.bounds[partition + 1])[0]
        series = nw.from_native(pa.chunked_array([cells]), series_only=True)
        described = metadata.read(self.source.schema.field(name))
        return self.whole.read(name, series, described, start=self.bounds[partition])


def looked_at(
    each: Each,
    source: Source,
    *,
    schema: Schema,
    bounds: tuple[int, ...],
    scratch: Scratch,
    labels: Collection[str] = (),
) -> Parts:
    """A first look at all parts of a table; `labels` are columns whose numbers too are taken as labels."""
    schema.check(source.names)
    words = frozenset(labelled(source, source.names, schema)) | frozenset(labels)
    look = Look("x", source, source.names, words, schema, bounds, scratch)
    found = each(partial(look_at, look), range(len(bounds) - 1))
    seen = {name: reduce(Seen.merged, (part[name] for part in found)) for name in source.names}
    several = [name for name in source.names if (seen[name].different or MOST + 1) <= MOST]
    for name, different in zip(several, each(partial(merge_labels, look), several), strict=True):
        seen[name] = replace(seen[name], different=different)
    for name in source.names:
        row = seen[name].infinite
        if row is not None:
            raise TableError(f"column {name}: infinite values (row {row + 1}); remove or declare them missing")
    whole = Whole(digest(look, seen), seen, len(source))
    _ = whole.columns  # which goes to every task, and needs not be found again there
    return Parts(source, bounds, whole, dictionaries(each, source, bounds))
