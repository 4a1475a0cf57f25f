"""Hierarchies of categories: a leaf, the group it belongs to, the group of that group, and so on up.

The layout is that of ARX: one line for each leaf, `leaf;level1;level2;...`, often with `*` at the top. Two categories
are the nearer the more of their ancestors they share.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import FileError, ParameterError, suggestion

Array = NDArray[np.float64]
_BLOCK = 4_000_000
"""Pairs of categories that are compared at a time."""


class Hierarchy:
    """A tree of categories, given by the path of every leaf.

    >>> regions = Hierarchy([("Ulm", "South", "*"), ("Bonn", "West", "*"), ("Köln", "West", "*")], name="regions")
    >>> regions.distances(["Bonn", "Köln", "Ulm"]).round(3)
    array([[0.   , 0.585, 0.848],
           [0.585, 0.   , 0.848],
           [0.848, 0.848, 0.   ]])
    >>> regions.level("Bonn", 1)
    'West'
    """

    def __init__(self, rows: Iterable[Sequence[str]], *, name: str = "hierarchy") -> None:
        self.name = name
        listed = list(rows)
        if any(isinstance(row, str) for row in listed):
            raise ParameterError(f"{name}: a line of a hierarchy is (leaf, level 1, ...), not one text")
        self.rows = tuple(tuple(str(word).strip() for word in row) for row in listed)
        self._check_shape()
        self._refuse_cycle()
        self._nodes = self._read_nodes()

    @classmethod
    def of(cls, given: object, *, name: str = "hierarchy") -> Hierarchy:
        """A hierarchy as it is, from a file in the layout of ARX, or from rows."""
        if isinstance(given, cls):
            return given
        if isinstance(given, str | os.PathLike):
            return cls.from_csv(given)
        if isinstance(given, Mapping) or not isinstance(given, Iterable):
            raise ParameterError(f"{name}: a hierarchy is a file or rows of (leaf, level 1, ...), not {given!r}")
        return cls(given, name=name)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Hierarchy:
        """Read `leaf;level1;level2;...`, one line for each leaf; commas and tabs separate too."""
        name = os.fspath(path)
        try:
            with open(name, encoding="utf-8-sig", newline="") as file:
                text = file.read()
        except OSError as error:
            reason = (error.strerror or "the system refused").lower()
            raise FileError(f"{name}: the hierarchy cannot be read: {reason}") from None
        except UnicodeDecodeError:
            raise FileError(f"{name}: the hierarchy cannot be read: it is not UTF-8 text") from None
        first = text.partition("\n")[0]
        sign = next((mark for mark in ";\t," if mark in first), ";")
        try:
            rows = list(csv.reader(io.StringIO(text), delimiter=sign))
        except csv.Error as error:
            raise FileError(f"{name}: the hierarchy cannot be read: {error}") from None
        return cls([row for row in rows if any(word.strip() for word in row)], name=name)

    def __repr__(self) -> str:
        return f"Hierarchy({self.name}: {len(self.leaves)} leaves, {self.height} levels above)"

    @property
    def height(self) -> int:
        """How many levels there are above the leaves."""
        return len(self.rows[0]) - 1

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """The labels at the bottom."""
        return tuple(dict.fromkeys(row[0] for row in self.rows))

    def __contains__(self, label: str) -> bool:
        return label in self._nodes

    def level(self, label: str, level: int) -> str:
        """The group of a category at a level: 0 is the category itself, 1 the level above the leaves."""
        if not 0 <= level <= self.height:
            raise ParameterError(f"{self.name}: it has levels 0 to {self.height}, not {level}")
        if label not in self._nodes:
            raise ParameterError(f"{self.name}: {label!r} is not in the hierarchy{self.suggestion(label)}")
        own, path = self._nodes[label]
        return path[max(level, own) - own]

    def path(self, label: str) -> tuple[str, ...]:
        """A label and those above it, from the bottom up; nothing for a stranger."""
        return self._path(label)[1]

    def _path(self, label: str) -> tuple[int, tuple[str, ...]]:
        """The level at which a label stands and the labels from there to the top; nothing for a stranger."""
        return self._nodes.get(label, (self.height + 1, ()))

    def paths(self, labels: Sequence[str]) -> NDArray[np.int64]:
        """For each label the number of its node on every level, from the leaves up; -1 below where it stands.

        A label that the hierarchy does not know shares no node with any other.
        """
        numbers: dict[tuple[int, str], int] = {}
        made = np.full((len(labels), self.height + 1), -1, dtype=np.int64)
        for i, label in enumerate(labels):
            own, path = self._path(label)
            for level, word in enumerate(path, start=own):
                made[i, level] = numbers.setdefault((level, word), len(numbers))
        return made

    def distances(self, labels: Sequence[str], others: Sequence[str] | None = None) -> Array:
        """log2(1 + nodes not shared / nodes in all), a label's nodes being its own and those above it.

        Sánchez, Batet, Isern and Valls 2012: 0 for equal labels, 1 for labels that share nothing.
        """
        others = labels if others is None else others
        paths = self.paths([*labels, *others])
        ours, theirs = paths[: len(labels)], paths[len(labels) :]
        shared = np.zeros((len(labels), len(others)))
        for level in range(self.height + 1):
            here = ours[:, level][:, None] == theirs[:, level][None, :]
            shared += here & (ours[:, level] >= 0)[:, None]
        whole = (ours >= 0).sum(axis=1)[:, None] + (theirs >= 0).sum(axis=1)[None, :] - shared
        apart = np.divide(whole - shared, whole, out=np.ones_like(shared), where=whole > 0)
        found: Array = np.log2(1 + apart)
        numbers: dict[str, int] = {}
        places = np.array([numbers.setdefault(label, len(numbers)) for label in (*labels, *others)], dtype=np.intp)
        # strangers too are at no distance from themselves
        found[places[: len(labels), None] == places[None, len(labels) :]] = 0.0
        return found

    def marginality(self, labels: Sequence[str], counts: Array) -> Array:
        """For each label the sum of its distances to all values, of which `counts` says how many each label has."""
        present = np.flatnonzero(counts)
        there = [labels[int(i)] for i in present]
        made = np.empty(len(labels))
        step = max(1, _BLOCK // max(len(there), 1))
        for start in range(0, len(labels), step):
            some = list(labels[start : start + step])
            made[start : start + step] = self.distances(some, there) @ counts[present]
        return made

    def sort_key(self, label: str) -> tuple[str, ...]:
        """Labels of one group stand together: the path from the top down."""
        return tuple(reversed(self._path(label)[1]))

    def missing(self, labels: Iterable[str]) -> list[str]:
        """The labels that it does not know."""
        return [label for label in labels if label not in self._nodes]

    def suggestion(self, label: str) -> str:
        """The nearest label that it knows, in words."""
        return suggestion(label, list(self._nodes))

    def _check_shape(self) -> None:
        if not self.rows:
            raise ParameterError(f"{self.name}: the hierarchy has no lines")
        wanted = len(self.rows[0])
        for number, row in enumerate(self.rows, start=1):
            if len(row) != wanted:
                raise ParameterError(f"{self.name}: line {number} has {len(row)} levels, the first has {wanted}")
            if "" in row:
                raise ParameterError(f"{self.name}: line {number} has an empty level")
        if wanted < 2:
            raise ParameterError(f"{self.name}: a hierarchy needs a level above its leaves: leaf;level1;...")

    def _read_nodes(self) -> dict[str, tuple[int, tuple[str, ...]]]:
        """Every label with its lowest level and its path from there; it has one parent, whatever level it stands on.

        A label may stand again on the next level (`a;a;*`), where a branch has fewer levels than the others.
        """
        parents: dict[object, tuple[str, int]] = {}
        nodes: dict[str, tuple[int, tuple[str, ...]]] = {}
        for number, row in enumerate(self.rows, start=1):
            for level, (word, upper) in enumerate(pairwise(row)):
                for child in ((level, word), word) if upper != word else ((level, word),):
                    parent, before = parents.setdefault(child, (upper, number))
                    if parent != upper:
                        raise ParameterError(
                            f"{self.name}: {word!r} has two parents, {parent!r} (line {before}) and "
                            f"{upper!r} (line {number})"
                        )
            for level, word in enumerate(row):
                if word not in nodes or level < nodes[word][0]:
                    nodes[word] = (level, row[level:])
        return nodes

    def _refuse_cycle(self) -> None:
        above: dict[str, set[str]] = {}
        for row in self.rows:
            for child, parent in pairwise(row):
                if child != parent:
                    above.setdefault(child, set()).add(parent)
        done: set[str] = set()
        for start in above:
            trail: dict[str, None] = {}
            stack = [(start, iter(sorted(above[start])))]
            trail[start] = None
            while stack:
                label, rest = stack[-1]
                upper: str | None = next(rest, None)
                if upper is None:
                    stack.pop()
                    del trail[label]
                    done.add(label)
                elif upper in trail:
                    raise ParameterError(f"{self.name}: {upper!r} is above itself (through {label!r}): a cycle")
                elif upper not in done:
                    trail[upper] = None
                    stack.append((upper, iter(sorted(above.get(upper, ())))))
