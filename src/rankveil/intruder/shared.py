"""The columns that an original and a release share, as numbers that are equal where cells are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankveil.errors import PairError, RankveilError, listing
from rankveil.matching import read_alike
from rankveil.table import Table

Array = NDArray[np.float64]
Values = Mapping[str, Array]
"""Columns by name, missing cells as NaN."""


@dataclass(eq=False)
class SharedColumns:
    """The columns of both tables: numbers as they are, everything else as codes of one vocabulary per column."""

    original: Table
    names: tuple[str, ...]
    numeric: frozenset[str]
    """Columns that are numbers, dates or times in both tables."""
    notes: list[str] = field(default_factory=list)
    _codes: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, original: Table, released: Table, columns: Sequence[str] | None = None) -> SharedColumns:
        """What both tables have, or those of the chosen columns."""
        released = read_alike(original, released)
        common = [name for name in original.names if name in released.names]
        if columns is not None:
            lost = [name for name in columns if name not in released.names or name not in original.names]
            if lost:
                raise PairError(
                    f"not in both tables: {listing(lost)}; name columns that the original and the release have"
                )
            common = [name for name in common if name in set(columns)]
        notes: list[str] = []
        readable = []
        for name in common:
            try:
                for table in (original, released):
                    _labels_or_numbers(table, name)
            except RankveilError as error:
                notes.append(f"not used as evidence: {error}")
                continue
            readable.append(name)
        if not readable:
            raise PairError("the original and the release have no column in common, so there is nothing to link by")
        numeric = frozenset(
            name for name in readable if all(_is_numeric(table, name) for table in (original, released))
        )
        return cls(original, tuple(readable), numeric, notes)

    def read(self, table: Table) -> dict[str, Array]:
        """The shared columns of a release (or of the original) as values."""
        if table is not self.original:
            table = read_alike(self.original, table)
        return {name: self._values(table, name) for name in self.names if name in table.names}

    def _values(self, table: Table, name: str) -> Array:
        if name in self.numeric and _is_numeric(table, name):
            return table.values(name)
        if name not in self.numeric and table is self.original and _is_numeric(table, name):
            return table.values(name)  # numbers that the release has as bands: no common vocabulary
        return self._coded(table, name)

    def _coded(self, table: Table, name: str) -> Array:
        """Codes by label, the same label the same code in whatever table."""
        known = self._codes.setdefault(name, {})
        encoded = table.cells(name).labels().dictionary_encode()
        places = np.array(
            [known.setdefault(label, len(known)) for label in encoded.dictionary.to_pylist()], dtype=float
        )
        codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        made: Array = np.append(places, np.nan)[codes]
        made[table.cells(name).missing] = np.nan
        return made

    def comparable(self, name: str) -> bool:
        """Whether the original's own values are in the same terms as the released ones."""
        return name in self.numeric or not _is_numeric(self.original, name)

    def labels(self, name: str) -> list[str]:
        """What the codes of a column stand for so far."""
        return list(self._codes.get(name, {}))

    def levels(self, name: str) -> tuple[str, ...]:
        """The order of an ordinal column's labels, if it has one."""
        return self.original.cells(name).levels


def _is_numeric(table: Table, name: str) -> bool:
    cells = table.cells(name)
    return cells.kind != "nominal" and not cells.levels


def _labels_or_numbers(table: Table, name: str) -> None:
    if _is_numeric(table, name):
        table.values(name)
    else:
        table.cells(name).labels()
