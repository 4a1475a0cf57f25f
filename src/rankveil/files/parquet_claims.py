"""What a Parquet file will take in memory, from its footer and, where that may be far too little, from its texts.

Equal values take hardly any space in a file: a number is stored once and repeated, a text once in a dictionary, and
in one encoding only as far as it differs from the one before it. Numbers are bounded by the footer alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 4}
"""Bytes of a cell in memory, of a text those of its offset."""

_BY_DIFFERENCE = "DELTA_BYTE_ARRAY"
"""The encoding in which a text is stored as far as it differs from the one before."""

_ROWS = 1 << 16
"""Rows whose texts are looked at at once, at most."""


class Claims:
    """What some row groups and columns of a file will take; all of them unless they are given."""

    def __init__(
        self,
        file: Any,
        opened: pq.ParquetFile,
        *,
        groups: Sequence[int] | None = None,
        columns: Collection[str] | None = None,
    ) -> None:
        self._file = file
        self._opened = opened
        self._groups = range(opened.metadata.num_row_groups) if groups is None else groups
        paths = [opened.schema.column(at).path for at in range(len(opened.schema))]
        self._leaves = [
            at for at, path in enumerate(paths) if columns is None or {path, path.partition(".")[0]} & set(columns)
        ]

    def least(self) -> int:
        """Bytes at least, by the footer: those of the cells, or of the pages unpacked if that is more."""
        columns = {at: self._opened.schema.column(at) for at in self._leaves}
        widths = {at: _WIDTHS.get(each.physical_type) or max(1, each.length) for at, each in columns.items()}
        cells = pages = 0
        for number in self._groups:
            group = self._opened.metadata.row_group(number)
            for at, width in widths.items():
                chunk = group.column(at)
                cells += max(group.num_rows, chunk.num_values) * width
                pages += max(0, chunk.total_uncompressed_size)
        return max(cells, pages)

    def texts(self, *, most: int) -> int:
        """Bytes of texts, of columns where it may be more than their share of `most`.

        A text is no longer than all pages of its column together, or than the longest of its dictionary. Where that is
        too much, texts are read as places in the dictionary, which stay small, and the lengths of all are added up.
        """
        columns = self._texts
        share = most // max(1, len(self._groups) * len(columns))
        rows: list[int] = [self._opened.metadata.row_group(number).num_rows for number in self._groups]
        total, before = 0, 0
        for number, count in zip(self._groups, rows, strict=True):
            for path, at in columns.items():
                chunk = self._opened.metadata.row_group(number).column(at)
                size = max(0, chunk.total_uncompressed_size)
                if chunk.num_values * size <= share:
                    continue
                if _BY_DIFFERENCE in chunk.encodings:
                    seen = before
                    for length, some in _lengths(self._opened, number, path, rows=max(1, min(_ROWS, share // size))):
                        total, seen = total + length, seen + some
                        if total > most:  # few at a time would take long: the other rows are taken as alike
                            return total * sum(rows) // seen
                elif chunk.has_dictionary_page and chunk.num_values * self._longest(number, at, size) + size > share:
                    total += sum(length for length, _ in _lengths(self._coded, number, path, rows=_ROWS))
            before += count
        return total

    def _longest(self, group: int, at: int, size: int) -> int:
        """Bytes of the longest text in the dictionary of a column, which comes with its first cell.

        In the first row of lists there may be none: there it is no longer than all pages.
        """
        import pyarrow.compute as pc

        column = self._opened.schema.column(at)
        if column.max_repetition_level:
            return size
        first = next(
            self._coded.iter_batches(batch_size=1, row_groups=[group], columns=[column.path], use_threads=False), None
        )
        words = [] if first is None else [each for cells in first.columns for each in _dictionaries(cells)]
        return max((pc.max(pc.binary_length(each)).as_py() or 0 for each in words), default=0)

    @cached_property
    def _coded(self) -> pq.ParquetFile:
        """The file, its texts as places in a dictionary."""
        import pyarrow.parquet as pq

        return pq.ParquetFile(self._file, read_dictionary=list(self._texts))

    @cached_property
    def _texts(self) -> dict[str, int]:
        """The columns of texts or bytes that are not kept as categories, those inside others too, and their places."""
        import pyarrow as pa

        schema, found = self._opened.schema_arrow, {}
        for at in self._leaves:
            column = self._opened.schema.column(at)
            field = schema.get_field_index(column.path)  # -1 inside another column, and for a name that stands twice
            kept = field >= 0 and pa.types.is_dictionary(schema.field(field).type)
            if column.physical_type == "BYTE_ARRAY" and not kept:
                found[column.path] = at
        return found


def _lengths(opened: pq.ParquetFile, group: int, path: str, *, rows: int) -> Iterator[tuple[int, int]]:
    """Bytes of the texts of a column, and how many rows they stand in, so many rows at a time."""
    for batch in opened.iter_batches(batch_size=rows, row_groups=[group], columns=[path], use_threads=False):
        yield sum(map(_length, batch.columns)), batch.num_rows


def _dictionaries(cells: pa.Array) -> list[pa.Array]:
    """The dictionaries of texts in some cells, in whatever they are nested."""
    return [cells.dictionary for cells in _innermost(cells) if hasattr(cells, "dictionary")]


def _length(cells: pa.Array) -> int:
    """Bytes of the texts in some cells, in whatever they are nested."""
    import pyarrow.compute as pc

    total = 0
    for each in _innermost(cells):
        if hasattr(each, "dictionary"):
            total += pc.sum(pc.binary_length(each.dictionary).take(each.indices)).as_py() or 0
        else:
            total += each.nbytes
    return total


def _innermost(cells: pa.Array) -> list[pa.Array]:
    import pyarrow as pa

    if pa.types.is_map(cells.type):
        inside = [cells.keys, cells.items]
    elif pa.types.is_nested(cells.type):
        inside = cells.flatten() if pa.types.is_struct(cells.type) else [cells.flatten()]
    else:
        return [cells]
    return [each for part in inside for each in _innermost(part)]
