"""A column in order that is not in memory: it answers which value has a place, and how many lie below a point.

A measure that is given sorted columns asks for little: a few quantiles, and how many values lie around them. `Sorted`
takes the part of such an array. It finds the answers in the runs and remembers them, so that the same questions can be
asked again when the runs are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import NotApplicableError
from rankveil.partitions.layout import Layout
from rankveil.partitions.ranking import read_pieces
from rankveil.partitions.runs import code_file
from rankveil.partitions.scratch import Scratch
from rankveil.sorting import codes_of, values_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Runs:
    """The runs of a column, as long as they are there."""

    scratch: Scratch
    column: str
    layout: Layout

    def at(self, places: NDArray[np.intp]) -> Array:
        """The values at places of the order, from 0."""
        layout = self.layout
        interval = np.searchsorted(layout.positions, places, side="right") - 1
        found = np.empty(places.size, np.uint64)
        for k in np.unique(interval):
            here = interval == k
            if layout.constant[k]:
                found[here] = layout.values[k]
                continue
            codes = read_pieces(self.scratch, code_file, self.column, layout.edges[:, k : k + 2])
            offsets = places[here] - layout.positions[k]
            found[here] = np.partition(codes, np.unique(offsets))[offsets]
        return values_of(found)

    def below(self, points: Array, *, side: str) -> NDArray[np.int64]:
        """How many values are smaller than each point, or with side="right" not larger."""
        codes = codes_of(points)
        total = np.zeros(points.size, np.int64)
        for run in range(len(self.layout.edges)):
            ordered = self.scratch.glance(code_file(self.column, run), np.uint64)
            total += np.searchsorted(ordered, codes, side=side)  # type: ignore[call-overload]
        return total


@dataclass(frozen=True, eq=False)
class Sorted:
    """A sorted column for a measure: indices and slices of few places, len, and numpy.searchsorted."""

    count: int
    runs: Runs | None
    values: dict[int, float] = field(default_factory=dict)
    """What was found at places."""
    counts: dict[tuple[str, float], int] = field(default_factory=dict)
    """What was found below points."""

    def alone(self) -> Sorted:
        """The same without its runs: it knows what it was asked before."""
        return replace(self, runs=None)

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        return (self.count,)

    @property
    def size(self) -> int:
        """As of an array."""
        return self.count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, which: Any) -> Any:
        places = np.arange(*which.indices(self.count)) if isinstance(which, slice) else np.asarray(which, np.intp)
        flat = np.ravel(places).astype(np.intp)
        flat = np.where(flat < 0, flat + self.count, flat)
        missing = set(flat.tolist()) - self.values.keys()
        if missing:
            # who asks for a place asks for the next one too, between which a quantile lies: one look for both
            wanted = sorted(missing | {min(place + 1, self.count - 1) for place in missing})
            answers = self._source.at(np.array(wanted, np.intp))
            self.values.update(zip(wanted, answers.tolist(), strict=True))
        found = np.array([self.values[place] for place in flat.tolist()], np.float64).reshape(np.shape(places))
        return found if found.ndim else np.float64(found)

    def below(self, points: Any, *, side: str) -> Any:
        """numpy.searchsorted."""
        flat = np.ravel(np.asarray(points, np.float64))
        missing = [point for point in dict.fromkeys(flat.tolist()) if (side, point) not in self.counts]
        if missing:
            answers = self._source.below(np.array(missing), side=side)
            self.counts.update({(side, p): int(n) for p, n in zip(missing, answers, strict=True)})
        return np.array([self.counts[side, p] for p in flat.tolist()], np.intp).reshape(np.shape(points))

    @property
    def _source(self) -> Runs:
        if self.runs is None:
            raise NotApplicableError("it needs more of the sorted column than was kept")
        return self.runs

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.searchsorted and args[0] is self:
            return self.below(args[1], side=kwargs.get("side", args[2] if len(args) > 2 else "left"))
        return NotImplemented

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NotApplicableError("it needs the whole sorted column, which is larger than memory")

    def __truediv__(self, _: float) -> Any:
        return self.__array__()


@dataclass(frozen=True, eq=False)
class SortedTable:
    """Sorted columns side by side, each taken by itself: table[:, j]."""

    columns: Sequence[Sorted]

    @property
    def shape(self) -> tuple[int, int]:
        """As of an array."""
        return len(self), len(self.columns)

    @property
    def size(self) -> int:
        """As of an array."""
        return len(self) * len(self.columns)

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, which: tuple[Any, int]) -> Sorted:
        rows, column = which
        if rows != slice(None) and rows is not Ellipsis:
            raise IndexError("a sorted table is taken column by column")
        return self.columns[column]
