"""By which columns the rows of a table are sorted: what the place of a row tells of its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankveil.errors import TableError, listing
from rankveil.table import Table

_ENOUGH = 8
"""Values from which on it is no accident that they are sorted."""


@dataclass(frozen=True)
class Run:
    """Whether the values of a column rise or fall by row; runs of the parts of a table are merged in their order."""

    count: int = 0
    """How many cells have a value; missing ones have no place in the order."""
    first: Any = None
    last: Any = None
    rises: bool = True
    """Nowhere a smaller value after a larger one."""
    falls: bool = True

    @property
    def is_sorted(self) -> bool:
        """Whether the rows are sorted by the column, which a column of one value says of any rows."""
        return self.count >= _ENOUGH and self.rises != self.falls

    def then(self, other: Run) -> Run:
        """That of the rows of both, one after the other."""
        if not self.count or not other.count:
            return other if other.count else self
        if isinstance(self.first, str) != isinstance(other.first, str):  # numbers here, words there
            return replace(self, count=self.count + other.count, last=other.last, rises=False, falls=False)
        return Run(
            self.count + other.count,
            self.first,
            other.last,
            self.rises and other.rises and self.last <= other.first,
            self.falls and other.falls and self.last >= other.first,
        )


@dataclass(frozen=True)
class Runs:
    """The runs of all columns of an original and of its release, or of a part of both."""

    original: Mapping[str, Run]
    release: Mapping[str, Run]

    @classmethod
    def of(cls, original: Table, release: Table) -> Runs:
        """Of two tables, in the order in which they are."""
        return cls(*({name: _run(table, name) for name in table.names} for table in (original, release)))

    def then(self, other: Runs) -> Runs:
        """Those of both parts, one after the other."""
        return Runs(_joined(self.original, other.original), _joined(self.release, other.release))

    def notes(self) -> list[str]:
        """What whoever publishes the rows in this order should know."""
        names = [name for name, run in self.original.items() if run.is_sorted]
        told = [
            f"warning: the rows stand in the original's order, which is sorted by {listing(names, most=10)}: "
            "sorting the released values puts them back in their places; let the rows be shuffled"
            if names
            else "the rows stand in the original's order: whoever knows it knows which record is whose"
        ]
        names = [name for name, run in self.release.items() if run.is_sorted and name not in names]
        if names:
            told.append(f"warning: the rows of the release are sorted by {listing(names, most=10)}")
        return told


def _joined(one: Mapping[str, Run], other: Mapping[str, Run]) -> dict[str, Run]:
    return {name: run.then(other[name]) for name, run in one.items()}


def _run(table: Table, name: str) -> Run:
    """The run of one column, of numbers where it has them, otherwise of words by their letters."""
    values = _numbers(table, name)
    if values is not None:
        if not values.size:
            return Run()
        steps = np.diff(values)
        return Run(values.size, values[0], values[-1], bool(np.all(steps >= 0)), bool(np.all(steps <= 0)))
    present = table.cells(name).present
    try:
        words = present.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # bytes or nested values, by which nobody sorts
        return Run(len(present), "", "", rises=False, falls=False)
    if not len(words):
        return Run()
    before, after = words.slice(0, len(words) - 1), words.slice(1)
    rises, falls = (pc.all(how(before, after), min_count=0).as_py() for how in (pc.less_equal, pc.greater_equal))
    return Run(len(words), words[0].as_py(), words[-1].as_py(), rises, falls)


def _numbers(table: Table, name: str) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """The values of a column that has an order, without missing cells; None where there are only words."""
    cells = table.cells(name)
    if cells.kind != "nominal" or cells.levels:
        try:
            values = table.values(name)
        except TableError:  # not masked, and not clean: it passes as it is
            return None
        return values[~np.isnan(values)]
    try:  # codes: 10 comes after 9
        found = cells.present.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return None if np.isnan(found).any() else np.asarray(found)
