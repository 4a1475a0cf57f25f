"""The categories of a column, in the order that gives them ranks.

Levels of an ordinal column have their own order. Those of a nominal column are ordered by marginality (Domingo-Ferrer,
Sánchez and Rufian-Torrell 2013): the sum of the distances of a category to all values of the original column. The most
central category comes first; categories of equal marginality are ordered by the hierarchy, then by their labels, so
that two of them never share a rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankveil.hierarchy import Hierarchy

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Categories:
    """Labels in order: a value of the column is the place (from 0) of its label."""

    labels: tuple[str, ...]
    counts: Array
    """How many values of the original column each label has."""
    ordered: bool = False
    """Whether the labels have an order of their own."""
    hierarchy: Hierarchy | None = None
    marginality: Array | None = None
    """For a nominal column, the sum of each label's distances to all values of the original column."""
    places: Array | None = None
    """The values that stand for the labels, in the same order; 0, 1, 2, ... unless they are given."""

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def values(self) -> Array:
        """The value that stands for each label."""
        return np.arange(len(self), dtype=np.float64) if self.places is None else self.places

    def extended(self, strangers: Sequence[str]) -> Categories:
        """With labels that the original column does not have, where their marginality puts them.

        The values of the labels that it has stay as they are; a stranger stands between two of them, or at an end.
        """
        if self.ordered or not strangers:
            return self
        counts = np.concatenate((self.counts, np.zeros(len(strangers))))
        made = nominal([*self.labels, *strangers], counts, self.hierarchy)
        there = set(self.labels)
        known = np.array([label in there for label in made.labels])
        before = np.cumsum(known) - 1.0  # the last of the known labels up to here
        run = np.zeros(len(made))
        for i in np.flatnonzero(~known):
            run[i] = run[i - 1] + 1 if i and not known[i - 1] else 1
        places = np.where(known, before, before + run / (len(strangers) + 1))
        return Categories(made.labels, made.counts, False, self.hierarchy, made.marginality, places)

    @property
    def ranking(self) -> str:
        """By what the labels are ordered, in words."""
        if self.ordered:
            return "the order of its levels"
        if self.hierarchy is not None:
            return f"marginality by the hierarchy {self.hierarchy.name}"
        return "marginality by equal or different (the most frequent category first)"

    @property
    def variance(self) -> float:
        """Of a nominal column: its mean marginality."""
        if self.marginality is None:
            raise ValueError("levels that have an order have the variance of their places")
        return float(np.dot(self.counts, self.marginality) / max(self.counts.sum(), 1.0))

    @cached_property
    def distances(self) -> Array:
        """How far each two labels are apart: by the hierarchy, 0 or 1 without one, places apart where ordered."""
        if self.ordered:
            places = np.arange(len(self), dtype=np.float64)
            apart: Array = np.abs(places[:, None] - places[None, :])
            return apart
        if self.hierarchy is None:
            return 1.0 - np.eye(len(self))
        return self.hierarchy.distances(self.labels)

    def coordinates(self) -> Array:
        """Points whose Euclidean distances are those of the labels, one row for each label.

        The distance of two labels of a hierarchy depends on the lowest level on which they agree alone, and falls with
        it; so each node is a direction of its own, as long as what agreeing there saves. Labels that stand above the
        leaves have no such place: they get that of a node beside their leaves.
        """
        if self.ordered:
            return np.arange(len(self), dtype=np.float64)[:, None]
        if self.hierarchy is None:
            corners: Array = np.eye(len(self)) / np.sqrt(2.0)
            return corners
        paths = self.hierarchy.paths(self.labels)
        depth = paths.shape[1]
        for level in range(depth - 1, -1, -1):  # below where a label stands it is a node of its own
            alone = paths[:, level] < 0
            paths[alone, level] = paths.max() + 1 + np.arange(np.count_nonzero(alone))
        agreed = np.arange(depth + 1)  # so many levels from the top are shared
        apart = np.log2(1 + 2 * (depth - agreed) / (2 * depth - agreed))
        parts = []
        for level in range(depth):
            nodes, code = np.unique(paths[:, level], return_inverse=True)
            shared = depth - 1 - level  # agreeing above, and not here
            length = np.sqrt((apart[shared] ** 2 - apart[shared + 1] ** 2) / 2)
            block = np.zeros((len(self), nodes.size))
            block[np.arange(len(self)), code] = length
            if nodes.size > 1:
                parts.append(block)
        return np.hstack(parts) if parts else np.zeros((len(self), 0))


def nominal(labels: Sequence[str], counts: Array, hierarchy: Hierarchy | None = None) -> Categories:
    """The categories of a nominal column; a label that only the masked column has is counted 0 times.

    >>> nominal(["b", "c", "a"], np.array([2.0, 1.0, 1.0])).labels
    ('b', 'a', 'c')
    """
    if hierarchy is None:
        marginality = counts.sum() - counts
        order = sorted(range(len(labels)), key=lambda i: (marginality[i], labels[i]))
    else:
        marginality = hierarchy.marginality(labels, counts)
        # sums of logarithms: equal ones may differ in their last digits
        rounded = np.round(marginality, 9 - int(np.ceil(np.log10(max(counts.sum(), 1.0)))))
        order = sorted(range(len(labels)), key=lambda i: (rounded[i], hierarchy.sort_key(labels[i]), labels[i]))
    return Categories(
        tuple(labels[i] for i in order), counts[order], hierarchy=hierarchy, marginality=marginality[order]
    )


def ordinal(levels: Sequence[str], counts: Array) -> Categories:
    """The levels of an ordinal column in their own order."""
    return Categories(tuple(levels), counts, ordered=True)
