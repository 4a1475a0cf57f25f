"""Cells of a table as the numbers that stand for them: a partition is read as the whole column is.

Numbers, dates and times are read by themselves. For all other cells a first look at the table (`looking`) has found
which different ones there are; the number of each lies in the scratch folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankveil import dates
from rankveil.errors import TableError
from rankveil.metadata import Described
from rankveil.partitions.looking import as_read, labels_file, missing_in, plain, take_cells
from rankveil.partitions.parquet import Array, Rows, Source
from rankveil.partitions.scratch import Scratch


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, dates or times."""

    temporal: pa.DataType | None = None
    """As what dates and times are counted, those of the original."""
    missing: tuple[str, ...] = ()
    described: Described | None = None

    @property
    def as_stored(self) -> bool:
        """Whether the numbers are those of the file, and missing ones its own."""
        marks = self.described is not None and self.described.marks_missing
        return self.temporal is None and not self.missing and not marks

    def read(self, cells: pa.Array, name: str) -> Array:
        """The numbers of some cells; missing ones are NaN."""
        if self.temporal is None:
            return as_read(cells, name, self.missing, self.described).numbers()
        gone = missing_in(cells, name, self.missing, self.described)
        values = np.full(len(cells), np.nan)
        there = slice(None) if gone is None else ~gone
        present = cells if gone is None else cells.filter(pa.array(~gone))
        try:
            values[there] = dates.as_whole(present.cast(self.temporal)).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            raise TableError(
                f"column {name}: some of its times are finer than {self.temporal}, as which the original has them"
            ) from None
        return values


@dataclass(frozen=True)
class Places:
    """A column whose cells are looked up among the different ones of the whole table."""

    side: str
    meaning: str = "values"
    """What the numbers are: values to compare, or others."""

    def read(self, cells: pa.Array, name: str, scratch: Scratch) -> Array:
        """The numbers that stand for some cells."""
        known = labels_file(self.side, name), values_file(self.side, name, self.meaning)
        files = (scratch.path(file) for file in known)
        different, values = _looked_up(*files)
        found = pc.index_in(plain(cells), value_set=different)
        made: Array = values[found.to_numpy(zero_copy_only=False)]
        return made


Reader = Numbers | Places


def values_file(side: str, name: str, meaning: str = "values") -> str:
    """The numbers that stand for the different cells of a column."""
    return labels_file(side, name).replace("labels", meaning, 1)


@lru_cache(maxsize=64)
def _looked_up(labels: str, values: str) -> tuple[pa.Array, Array]:
    """The different cells of a column and what stands for them; a worker asks for the same ones again and again."""
    folder = Scratch(os.path.dirname(labels))
    different = take_cells(folder, os.path.basename(labels)).column("value").combine_chunks()
    return different, folder.take(os.path.basename(values), np.float64)


@dataclass(frozen=True)
class Encoded:
    """A table whose columns are read as numbers, each in its own way."""

    source: Source
    readers: Mapping[str, Reader]
    scratch: Scratch

    @property
    def path(self) -> str:
        """Where the table lies."""
        return self.source.path

    def __len__(self) -> int:
        return len(self.source)

    def rows(self, start: int, stop: int) -> Rows:
        """The rows of the table from start to before stop."""
        return self.source.rows(start, stop)

    def read(self, columns: Sequence[str], start: int, stop: int) -> list[Array]:
        """The numbers of some columns in the rows from start to before stop; missing ones are NaN."""
        stored = [name for name in columns if _as_stored(self.readers[name])]
        others = [name for name in columns if name not in stored]
        found = dict(zip(stored, self.source.read(stored, start, stop) if stored else [], strict=True))
        for name, cells in zip(others, self.source.cells(others, start, stop) if others else [], strict=True):
            reader = self.readers[name]
            found[name] = (
                reader.read(cells, name, self.scratch) if isinstance(reader, Places) else reader.read(cells, name)
            )
        return [found[name] for name in columns]


def _as_stored(reader: Reader) -> bool:
    return isinstance(reader, Numbers) and reader.as_stored
