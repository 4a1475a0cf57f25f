"""Where the runs of a column are cut, so that each part of its range of values can be ranked by itself.

Every run gives a regular sample of its codes. Some of all samples together are the *splitters*: no more than about
`interval` codes lie between two of them, whatever the data (regular sampling, Shi and Schaeffer 1992). The runs are
cut at the splitters. A value that fills many parts of the range is a splitter itself; it gets an interval of its own,
where the ranks are known without a look at the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankveil.partitions.runs import code_file, sample_file
from rankveil.partitions.scratch import Scratch
from rankveil.sorting import Codes

Cuts = NDArray[np.int64]


@dataclass(frozen=True)
class Sizes:
    """How finely columns are cut."""

    interval: int = 2**17
    """Codes that are sorted together: about what a processor's own cache holds."""
    span: int = 2**21
    """Codes that a task reads at a time, about twenty bytes of memory each."""

    @classmethod
    def of(cls, partitions: int) -> Self:
        """So that an interval has some hundred codes from each partition: fewer are not worth the reading."""
        interval = max(cls.interval, _WORTH_READING * partitions)
        return cls(interval, max(cls.span, interval))

    def every(self, partitions: int) -> int:
        """Codes of a run from one sampled code to the next.

        The samples' coarseness adds up over the partitions, so it is shared among them; but not every code is sampled
        however many there are.
        """
        return max(min(_COARSE, self.interval // 2), self.interval // (2 * max(partitions, 1)), 1)


_COARSE = 1024
"""A code in so many is sampled at most."""

_WORTH_READING = 512
"""Codes of a run that are read at a time."""


@dataclass(frozen=True, eq=False)
class Layout:
    """How the runs of a column are cut into intervals, and the intervals joined into spans."""

    edges: Cuts
    """For each run (a row) the place where each interval begins, and where the last one ends."""
    constant: NDArray[np.bool_]
    """Which intervals hold one value only, and so many of it that they are not read."""
    spans: tuple[tuple[int, int], ...]
    """The first interval of each span, and one past its last; constant intervals are in none."""
    values: Codes
    """A code for each interval: the value of a constant one; all codes before are smaller."""

    def save(self, scratch: Scratch, column: str) -> None:
        """Keep it beside the runs."""
        sizes = np.array([*self.edges.shape, len(self.spans)], np.int64)
        spans = np.array(self.spans, np.int64).reshape(-1)
        parts = (sizes, self.edges.reshape(-1), self.constant.astype(np.int64), spans, self.values.view(np.int64))
        scratch.put(layout_file(column), np.concatenate(parts))

    @classmethod
    def load(cls, scratch: Scratch, column: str) -> Self:
        """That of a column."""
        stored = scratch.take(layout_file(column), np.int64)
        (runs, edges, spans), rest = stored[:3].tolist(), stored[3:]
        ends = np.cumsum([runs * edges, edges - 1, 2 * spans])
        cuts, constant, joined, values = np.split(rest, ends)
        pairs = tuple((int(first), int(last)) for first, last in joined.reshape(-1, 2))
        return cls(cuts.reshape(runs, edges), constant.astype(np.bool_), pairs, values.view(np.uint64))

    @cached_property
    def positions(self) -> Cuts:
        """How many codes of the whole column lie below each edge."""
        found: Cuts = self.edges.sum(axis=0)
        return found

    @property
    def count(self) -> int:
        """How many records there are."""
        return int(self.positions[-1])

    @property
    def has_constants(self) -> bool:
        """Whether a value has an interval of its own, and so is there more than once."""
        return bool(self.constant.any())

    def doubled_rank(self, interval: int) -> int:
        """Twice the rank of a constant interval's value."""
        return int(self.positions[interval] + self.positions[interval + 1] + 1)

    def pieces(self, first: int, last: int) -> Cuts:
        """Where what each run has in the intervals from first to before last lies in a file with run after run."""
        lengths = self.edges[:, last] - self.edges[:, first]
        return np.concatenate(([0], np.cumsum(lengths)))

    def piece(self, first: int, last: int, run: int) -> int:
        """Where the piece of one run begins in such a file."""
        return int((self.edges[:run, last] - self.edges[:run, first]).sum())

    def largest(self, first: int, last: int) -> int:
        """How many codes the fullest of some intervals has."""
        return int(np.diff(self.positions[first : last + 1]).max(initial=0))

    def parts(self) -> list[tuple[int, int, int | None]]:
        """Spans (with their numbers) and constant intervals (without) in the order of their values."""
        found: list[tuple[int, int, int | None]] = [(*span, number) for number, span in enumerate(self.spans)]
        found.extend((int(k), int(k) + 1, None) for k in np.flatnonzero(self.constant))
        return sorted(found, key=lambda part: part[0])


def layout_file(column: str) -> str:
    """How the runs of a column are cut."""
    return f"layout-{column}"


def splitters(samples: Sequence[Codes], *, every: int, interval: int) -> Codes:
    """Different codes, in order, with about `interval` codes from one to the next."""
    merged = np.sort(np.concatenate([*samples, np.empty(0, np.uint64)]))
    step = max(interval // every, 1)
    return np.unique(merged[step - 1 :: step])


def cut_runs(scratch: Scratch, column: str, counts: Sequence[int], *, sizes: Sizes) -> Layout:
    """Cut the runs of a column, which have so many codes each."""
    samples = [scratch.take(sample_file(column, run), np.uint64) for run in range(len(counts))]
    cut_at = splitters(samples, every=sizes.every(len(counts)), interval=sizes.interval)
    left, right = _cuts(scratch, column, len(counts), cut_at)
    heavy = (right - left).sum(axis=0) > max(sizes.interval // 2, 1)
    ends = np.array(counts, np.int64)[:, None]
    edges, constant, values = [np.zeros_like(ends)], [False], [np.zeros(1, np.uint64)]
    for k in range(cut_at.size):
        edges.append(left[:, k : k + 1])
        constant.append(bool(heavy[k]))
        values.append(cut_at[k : k + 1])
        if heavy[k]:  # what is larger begins after it
            edges.append(right[:, k : k + 1])
            constant.append(False)
            values.append(cut_at[k : k + 1])
    cuts = np.concatenate([*edges, ends], axis=1)
    flags = np.array(constant)
    return Layout(cuts, flags, _spans(cuts.sum(axis=0), flags, size=sizes.span), np.concatenate(values))


def _cuts(scratch: Scratch, column: str, runs: int, cut_at: Codes) -> tuple[Cuts, Cuts]:
    """For each run the places of its first code that is not below each splitter, and of its first one above it."""
    left, right = (np.empty((runs, cut_at.size), np.int64) for _ in range(2))
    for number in range(runs):
        codes = scratch.glance(code_file(column, number), np.uint64)
        left[number] = np.searchsorted(codes, cut_at, side="left")
        right[number] = np.searchsorted(codes, cut_at, side="right")
    return left, right


def _spans(positions: Cuts, constant: NDArray[np.bool_], *, size: int) -> tuple[tuple[int, int], ...]:
    """Neighbouring intervals joined as long as they hold no more than `size` codes; empty spans left out."""
    spans: list[tuple[int, int]] = []
    first = 0
    for k in range(constant.size):
        if constant[k] or positions[k + 1] - positions[first] > size:
            spans.append((first, k))
            first = k
        if constant[k]:
            first = k + 1
    spans.append((first, constant.size))
    return tuple((a, b) for a, b in spans if positions[b] > positions[a])
