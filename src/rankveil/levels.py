"""What released labels stand for: groups of categories, bands of numbers, suppressed cells.

A column that was recoded into groups is compared at the level at which it was released: the original's categories take
the places of their groups, and its numbers the ranks of their bands. What a group hides is another matter, which
generalisation losses say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankveil import orders
from rankveil.categories import Categories
from rankveil.matching import masked_places, range_of
from rankveil.table import Table, label_counts

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Members = Mapping[str, tuple[str, ...] | None]

SUPPRESSED = "*"
"""The label of a cell that was generalised to the top, in the manner of ARX."""


def members_of(original: Table, name: str, labels: Sequence[str]) -> Members:
    """The categories of the original for which released labels stand; None for a label of which nothing is known."""
    own = original.labels(name)
    hierarchy, levels = (original.schema.hierarchies or {}).get(name), original.cells(name).levels
    there = set(own)
    made: dict[str, tuple[str, ...] | None] = {}
    for label in labels:
        if label in there:
            made[label] = (label,)
        elif hierarchy is not None and label in hierarchy:
            made[label] = tuple(word for word in own if label in hierarchy.path(word))
        elif label == SUPPRESSED:
            made[label] = own
        else:
            made[label] = _between(label, levels)
    return made


def _between(label: str, levels: Sequence[str]) -> tuple[str, ...] | None:
    """The levels of a group such as `low to middle`."""
    words = label.split(" to ")
    for cut in range(1, len(words)):
        ends = " to ".join(words[:cut]), " to ".join(words[cut:])
        if all(end in levels for end in ends):
            low, high = sorted(levels.index(end) for end in ends)
            return tuple(levels[low : high + 1])
    return None


def told_apart(before: Array, after: Array) -> dict[float, float] | None:
    """The one released value beside each original value, where that is always the same; None otherwise.

    >>> told_apart(np.array([0.0, 1.0, 2.0, 1.0]), np.array([7.0, 7.0, 8.0, np.nan]))
    {0.0: 7.0, 1.0: 7.0, 2.0: 8.0}
    """
    both = ~(np.isnan(before) | np.isnan(after))
    pairs = np.unique(np.column_stack((before[both], after[both])), axis=0)
    if pairs.size == 0 or np.any(pairs[1:, 0] == pairs[:-1, 0]):
        return None
    return dict(zip(pairs[:, 0].tolist(), pairs[:, 1].tolist(), strict=True))


def at_released_level(
    original: Table,
    names: Sequence[str],
    shared: Sequence[Categories | None],
    labels: Mapping[str, Sequence[str]],
    tables: tuple[Array, Array],
    links: tuple[Rows, Rows] | None,
) -> tuple[Array, dict[str, Bands], list[str]]:
    """The original at the level of a release: groups in the place of categories, bands of numbers, who has groups.

    `labels` are those of released columns that have some, `links` the rows that belong together, if that is known.
    """
    x, y = tables
    made, bands, coarse = x, dict[str, Bands](), list[str]()
    for j, (name, categories) in enumerate(zip(names, shared, strict=True)):
        if not labels.get(name):
            continue
        if not original.labels(name):
            found = bands_of(original, name, labels[name])
            if found is not None:
                bands[name] = found
            continue
        column = grouped(original, name, categories, labels[name], x[:, j], y[:, j], links)
        if column is not None:
            made = np.array(x, order="F") if made is x else made
            made[:, j] = column
            coarse.append(name)
    return made, bands, coarse


def released_labels(masked: Table, name: str) -> Sequence[str]:
    """The labels of a released column; nothing for numbers, and where all cells are missing."""
    cells = masked.cells(name)
    return [] if cells.missing.all() or not (cells.kind == "nominal" or cells.levels) else label_counts(cells)[0]


def grouped(
    original: Table,
    name: str,
    categories: Categories | None,
    labels: Sequence[str],
    x: Array,
    y: Array,
    links: tuple[Rows, Rows] | None,
) -> Array | None:
    """The values of an original column of categories at the level at which it was released; None where that is its own.

    Every category must stand in one released group only. What a group stands for is told by the hierarchy, by the
    labels, or by the records side by side.
    """
    own = original.labels(name)
    places = None if set(labels) <= set(own) else _places(original, name, categories, labels)
    if places is None:
        return None
    members = members_of(original, name, labels)
    if all(some is not None for some in members.values()):
        into = _inside(members, _places(original, name, categories, own) or {}, places)
    else:
        into = None if links is None else told_apart(x[links[0]], y[links[1]])
        strangers = [places[label] for label in labels if label not in set(own)]
        counts = [0 if into is None else list(into.values()).count(place) for place in strangers]
        if any(count == 1 for count in counts) or not any(counts):  # other names are no groups
            return None
    if into is None:
        return None
    made = x.copy()
    for value, place in into.items():
        made[x == value] = place
    return made


def _inside(members: Members, values: Mapping[str, float], places: Mapping[str, float]) -> dict[float, float] | None:
    """For each category the place of its group; None where some cells were recoded farther than others."""
    into: dict[float, float] = {}
    for label, some in members.items():
        for word in some or ():
            if values[word] in into:
                return None
            into[values[word]] = places[label]
    return into


def _places(
    original: Table, name: str, categories: Categories | None, labels: Sequence[str]
) -> dict[str, float] | None:
    """Where labels stand among the values of the column."""
    if original.cells(name).kind == "nominal":
        assert categories is not None
        known = dict(zip(categories.labels, categories.values.tolist(), strict=True))
        return {label: known[label] for label in labels} if set(labels) <= known.keys() else None
    return masked_places(original, name, labels)


@dataclass(frozen=True, eq=False)
class Bands:
    """Bands of numbers that do not overlap: each number of a band stands at the band's place."""

    low: Array
    high: Array
    places: Array

    def __call__(self, values: Array) -> Array:
        """The places of numbers; one that lies in no band stands where it is."""
        which = np.maximum(np.searchsorted(self.low, values, side="right") - 1, 0)
        inside = (values >= self.low[which]) & (values <= self.high[which])
        return np.where(inside, self.places[which], values)


def bands_of(original: Table, name: str, labels: Sequence[str]) -> Bands | None:
    """The bands into which a column of numbers was recoded; None where some are none, or some overlap."""
    places = masked_places(original, name, labels)
    ends = [range_of(original, name, label) for label in labels]
    if places is None or any(end is None for end in ends):
        return None
    values = original.values(name)
    different = np.unique(values[~np.isnan(values)])
    found = sorted((*end, label) for end, label in zip(ends, labels, strict=True) if end is not None)
    made = []
    for low, high, label in found:
        some = different[(different >= low) & (different <= high)]
        if original.cells(name).temporal is None:
            some = some[[orders.holds(label, float(value)) for value in some]]
        elif some.size and some[-1] == high and label.strip().endswith(")"):
            some = some[:-1]
        if some.size:
            made.append((float(some[0]), float(some[-1]), places[label]))
    if any(later[0] <= earlier[1] for earlier, later in pairwise(made)):
        return None
    if not made:
        return None
    lows, highs, middles = (np.array(each) for each in zip(*made, strict=True))
    return Bands(lows, highs, middles)


# ---- how general labels are ----


@dataclass(frozen=True)
class Generality:
    """How much the released cells of a column leave open."""

    name: str
    quasi: bool
    width: float | None
    """The mean over the cells that are there: 0 for a value of its own, 1 for one that may be any; None if unknown."""
    there: float
    """Cells of the release that are there, in records."""
    suppressed: float
    """Cells of the release that are missing and would not be in the original: those that were suppressed."""
    unknown: tuple[str, ...] = ()
    """Labels of which nothing is known."""

    @property
    def ncp(self) -> float | None:
        """The normalised certainty penalty of the column."""
        cells = self.there + self.suppressed
        if self.width is None or cells == 0:
            return None
        return (self.width * self.there + self.suppressed) / cells


def generalities(
    original: Table, masked: Table, names: Sequence[str], links: tuple[Rows, Rows] | None
) -> list[Generality]:
    """How general the released cells of columns are, those of quasi-identifiers also where they are not compared."""
    quasi = original.schema.with_role("quasi-identifier")
    some = [*names, *(name for name in quasi if name not in names and name in masked.names)]
    return [_generality(original, masked, name, links, quasi=name in quasi) for name in some]


def _generality(
    original: Table, masked: Table, name: str, links: tuple[Rows, Rows] | None, *, quasi: bool
) -> Generality:
    cells, first = masked.cells(name), original.cells(name)
    labels, counts = _counts(original, masked, name)
    widths = _widths(original, masked, name, labels, links)
    gone = SUPPRESSED in labels and SUPPRESSED not in original.labels(name)
    starred = float(counts[labels.index(SUPPRESSED)]) if gone else 0.0
    there = float(np.count_nonzero(~cells.missing)) - starred
    expected = len(masked) * float(np.mean(~first.missing)) if len(original) else 0.0
    suppressed = max(expected - there, 0.0)
    if not labels:
        return Generality(name, quasi, 0.0, there, suppressed)
    unknown = tuple(label for label in labels if widths[label] is None)
    if unknown:
        return Generality(name, quasi, None, there, suppressed, unknown)
    total = sum(float(widths[label] or 0.0) * count for label, count in zip(labels, counts.tolist(), strict=True))
    total -= starred
    return Generality(name, quasi, min(total / there, 1.0) if there > 0 else 0.0, there, suppressed)


def _counts(original: Table, masked: Table, name: str) -> tuple[list[str], Array]:
    """The labels of a released column, nothing for numbers."""
    cells = masked.cells(name)
    if cells.missing.all() or not (original.labels(name) or cells.kind == "nominal" or cells.levels):
        return [], np.empty(0)
    return label_counts(cells)


def _widths(
    original: Table, masked: Table, name: str, labels: Sequence[str], links: tuple[Rows, Rows] | None
) -> dict[str, float | None]:
    if not original.labels(name):
        return {label: _share_of_range(original, name, label) for label in labels}
    members = members_of(original, name, labels)
    hierarchy, own = (original.schema.hierarchies or {}).get(name), original.labels(name)
    leaves = own if hierarchy is None else hierarchy.leaves
    found: dict[str, float | None] = {}
    unknown = [label for label, some in members.items() if some is None]
    beside = _beside(original, masked, name, unknown, links) if unknown else {}
    for label, some in members.items():
        count = beside.get(label) if some is None else len(some)
        if some is not None and hierarchy is not None and label in hierarchy and label not in hierarchy.leaves:
            count = sum(label in hierarchy.path(leaf) for leaf in leaves)
        found[label] = None if count is None else 0.0 if count <= 1 else count / len(leaves)
    return found


def _share_of_range(original: Table, name: str, label: str) -> float | None:
    """The length of a band by that of the original's range."""
    if label == SUPPRESSED:
        return 1.0
    ends = range_of(original, name, label)
    values = original.values(name)
    if ends is None or np.isnan(values).all():
        return None
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if ends[0] == ends[1]:
        return 0.0
    if high <= low:
        return 0.0
    width = min(ends[1], high) / 2 - max(ends[0], low) / 2
    return min(max(width / (high / 2 - low / 2), 0.0), 1.0)


def _beside(
    original: Table, masked: Table, name: str, unknown: Sequence[str], links: tuple[Rows, Rows] | None
) -> dict[str, int]:
    """How many categories of the original stand beside labels, where each always stands beside the same one."""
    if links is None:
        return {}
    categories = original.categories(name)
    shared = categories.extended(
        [label for label in label_counts(masked.cells(name))[0] if label not in categories.labels]
    )
    into = told_apart(original.values(name)[links[0]], masked.codes(name, shared)[links[1]])
    if into is None:
        return {}
    value = dict(zip(shared.labels, shared.values.tolist(), strict=True))
    counts = {label: sum(place == value[label] for place in into.values()) for label in unknown}
    return {label: count for label, count in counts.items() if count}
