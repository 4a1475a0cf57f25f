"""Which columns and which records of two tables belong together, and in which subdomains the records lie."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankveil import categories as categorising
from rankveil import dates, orders
from rankveil.categories import Categories
from rankveil.columns import Cells, label_text
from rankveil.errors import PairError, TableError, listing
from rankveil.hierarchy import Hierarchy
from rankveil.schema import Schema
from rankveil.table import Table, label_counts

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

MOST_DOMAINS = 100
"""Different values at most of a column that forms subdomains."""
_MISSING = "(missing)"


def common_columns(
    original: Table, masked: Table, columns: Sequence[str] | None, aside: Collection[str], notes: list[str]
) -> tuple[str, ...]:
    """The columns to compare; those `aside` tell which record is which or where it belongs."""
    if columns is not None:
        names = original.usable(columns)
        lost = [name for name in names if name not in masked.names]
        if lost:
            raise PairError(f"the masked table has no column {listing(lost)}")
    else:
        names = tuple(name for name in original.usable() if name not in aside)
        lost = [name for name in names if name not in masked.names]
        new = [
            name
            for name in masked.names
            if name not in original.names and masked.cells(name).kind != "nominal" and name not in aside
        ]
        for where, gone in (("masked", lost), ("original", new)):
            if gone:
                raise PairError(
                    f"the tables have different columns: the {where} one has no {listing(gone)}; "
                    "name the columns to compare with --columns"
                )
    if not names:
        raise TableError("no usable column is left to compare")
    others = [name for name in original.names if name not in names and name not in aside]
    if others:
        notes.append(f"not compared: {listing(others, most=10)}")
    return names


def read_alike(original: Table, masked: Table) -> Table:
    """The masked table with the kinds and the levels of the original's columns, so that values mean the same.

    Dates and times are counted in the original's units, and those written as text are read as the original's are.
    """
    masked = _on_the_clock_of(original, masked)
    levels, kinds = dict(masked.schema.levels or {}), dict(masked.schema.kinds or {})
    for name in original.names:
        if name not in masked.names:
            continue
        cells, after = original.cells(name), masked.cells(name)
        if cells.levels and not _has_groups(original, masked, name):
            levels[name] = cells.levels
        elif cells.kind == "nominal" and after.kind != "nominal":
            kinds[name] = "nominal"
        elif name in kinds and not cells.levels and after.is_text and after.kind == "numeric":
            labels, _ = label_counts(after)
            if _is_band(labels[:1], cells) and masked_places(original, name, labels) is not None:
                kinds[name] = "nominal"  # declared as numbers, which they were
    if levels == (masked.schema.levels or {}) and kinds == (masked.schema.kinds or {}):
        return masked
    made = Table(masked.native, schema=replace(masked.schema, levels=levels, kinds=kinds), decimal=masked.decimal)
    return _on_the_clock_of(original, made)


def _on_the_clock_of(original: Table, masked: Table) -> Table:
    """The masked table with dates and times as the original has them, wherever that loses nothing.

    Formats and libraries have their own units (Parquet no seconds, others nanoseconds alone), and a text has those that
    it shows.
    """
    read: dict[str, Cells] = {}
    for name in original.names:
        first = original.cells(name)
        if first.temporal is None or name not in masked.names:
            continue
        before = masked.cells(name)
        cells = before.written_like(first)
        if cells.temporal is not None and cells.temporal != first.temporal:
            cells = _cast(cells, first.temporal)
        if cells is not before:
            read[name] = cells
    return masked.with_cells(read) if read else masked


def _cast(cells: Cells, wanted: pa.DataType) -> Cells:
    """Dates and times in another type, if they can be compared and nothing is lost."""
    assert cells.temporal is not None
    if dates.counted_as(np.empty(0), cells.temporal, wanted) is None:
        return cells
    try:
        return replace(cells, cells=cells.moments().cast(wanted), temporal=wanted, layout=None)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # finer than the original: see `masked_values`
        return cells


def _counted_alike(original: Table, masked: Table, name: str) -> Array:
    """A masked column of numbers, dates or times in the units of the original's."""
    first, second = original.cells(name).temporal, masked.cells(name).temporal
    if first is None or second is None or first == second:
        return masked.values(name)
    made = dates.counted_as(masked.values(name), second, first)
    if made is None:
        raise PairError(f"column {name}: {first} in the original, {second} in the masked table")
    return made


def shared_categories(original: Table, masked: Table, name: str) -> Categories | None:
    """What the values of a column stand for in both tables; None for numbers."""
    if not original.labels(name):
        return None
    known = original.categories(name)
    if original.cells(name).kind != "nominal" or name not in masked.names or masked is original:
        return known
    there = set(known.labels)
    return known.extended([label for label in label_counts(masked.cells(name))[0] if label not in there])


def masked_values(original: Table, masked: Table, name: str, categories: Categories | None, notes: list[str]) -> Array:
    """A masked column as values that mean what the original's mean."""
    cells, first = masked.cells(name), original.cells(name)
    if first.kind == "nominal":
        assert categories is not None
        values = masked.codes(name, categories)
        strangers = [label for label, count in zip(categories.labels, categories.counts, strict=True) if not count]
        if strangers:
            lost = [label for label in strangers if categories.hierarchy and label not in categories.hierarchy]
            known = f", {listing(lost)} not in its hierarchy and so as far as can be from all others" if lost else ""
            notes.append(f"column {name}: categories only in the masked table: {listing(strangers)}{known}")
        return values
    if first.levels and _has_groups(original, masked, name):
        notes.append(f"column {name}: groups of levels stand at the mean place of their levels")
        return _at_places(original, masked, name)
    if cells.missing.all():
        return np.full(len(masked), np.nan)
    if not first.levels and (cells.kind == "nominal" or cells.levels):
        notes.append(f"column {name}: the masked values are bands, taken at their middles")
        return _at_places(original, masked, name)
    if first.temporal != cells.temporal and (first.temporal is None) != (cells.temporal is None):
        raise PairError(f"column {name}: dates or times in one table and numbers in the other")
    return _counted_alike(original, masked, name)


def _at_places(original: Table, masked: Table, name: str) -> Array:
    """The places of what a masking made of numbers or levels."""
    labels, _ = label_counts(masked.cells(name))
    places = masked_places(original, name, labels)
    if places is None:
        why = masked.cells(name).why or "text"
        raise PairError(
            f"column {name}: {original.cells(name).kind} in the original but not in the masked table ({why}); "
            "leave it out with --columns"
        )
    made = Categories(tuple(labels), np.zeros(len(labels)), True, places=np.array([places[word] for word in labels]))
    return masked.codes(name, made)


def masked_places(original: Table, name: str, labels: Sequence[str]) -> dict[str, float] | None:
    """Where labels stand among the numbers or levels of the original column; None when one of them has no place.

    A band (20-29, [20,30), 65+) of numbers or dates is at its middle, an open one reaching to the original's own end; a
    group of levels (of the column's hierarchy, or `low to middle`) is at the mean place of its levels.
    """
    cells = original.cells(name)
    if cells.levels:
        hierarchy = (original.schema.hierarchies or {}).get(name)
        found = {label: _mean_place(label, cells.levels, hierarchy) for label in labels}
    else:
        values = original.values(name)
        span = (float(np.nanmin(values)), float(np.nanmax(values))) if not np.isnan(values).all() else (0.0, 0.0)
        found = {label: _middle(label, cells.temporal, span) for label in labels}
    places = {label: place for label, place in found.items() if place is not None}
    return places if len(places) == len(found) else None


def _has_groups(original: Table, masked: Table, name: str) -> bool:
    """Whether a masking made groups of levels."""
    labels, _ = label_counts(masked.cells(name))
    new = set(labels) - set(original.cells(name).levels)
    return bool(new) and masked_places(original, name, list(new)) is not None


def _mean_place(label: str, levels: Sequence[str], hierarchy: Hierarchy | None) -> float | None:
    """The place of a level, or the mean place of a group of levels."""
    if label in levels:
        return float(levels.index(label))
    below = [place for place, level in enumerate(levels) if hierarchy is not None and label in hierarchy.path(level)]
    if below:
        return float(np.mean(below))
    words = label.split(" to ")
    for cut in range(1, len(words)):
        ends = " to ".join(words[:cut]), " to ".join(words[cut:])
        if all(end in levels for end in ends):
            return (levels.index(ends[0]) + levels.index(ends[1])) / 2
    return None


def _ends(label: str, temporal: pa.DataType | None) -> tuple[float, float] | None:
    """The ends of a band; that of dates is written [2000-01-01,2010-01-01)."""
    if temporal is None:
        number = orders.middle(label)
        return orders.ends(label) or (None if number is None else (number, number))
    words = [word.strip() for word in label.strip("[]() ").split(",")]
    if len(words) != 2:
        return None
    low, high = (
        end if word == ("-inf", "inf")[i] else dates.parsed(word, temporal)
        for i, (word, end) in enumerate(zip(words, (-np.inf, np.inf), strict=True))
    )
    return None if low is None or high is None else (low, high)


def range_of(original: Table, name: str, label: str) -> tuple[float, float] | None:
    """The ends of a band of a column of numbers or dates, or None."""
    return _ends(label, original.cells(name).temporal)


def _middle(label: str, temporal: pa.DataType | None, span: tuple[float, float]) -> float | None:
    """The middle of a band; one that is open reaches to the end of the values."""
    found = _ends(label, temporal)
    if found is None:
        return None
    low, high = found
    low = low if np.isfinite(low) else min(span[0], high)
    high = high if np.isfinite(high) else max(span[1], low)
    return low / 2 + high / 2  # the sum of the two may be too large


def _is_band(labels: Sequence[str], cells: Cells) -> bool:
    """Whether labels are bands rather than numbers or dates."""
    ends = [_ends(label, cells.temporal) for label in labels]
    return any(found is not None and found[0] != found[1] for found in ends)


def matrix(table: Table, names: Sequence[str], *, what: str) -> Array:
    """The columns as numbers, missing cells as NaN; an error says in which table it is."""
    return stacked([partial(table.values, name) for name in names], rows=len(table), what=what)


def stacked(columns: Sequence[Callable[[], Array]], *, rows: int, what: str) -> Array:
    """Columns side by side; an error says in which table it is."""
    made = np.empty((rows, len(columns)), order="F")
    try:
        for j, column in enumerate(columns):
            made[:, j] = column()
    except TableError as error:
        raise TableError(f"{what} table, {error}") from None
    return made


@dataclass(frozen=True, eq=False)
class Known:
    """What the roles that were given say of the records of one table, all of them, in their order."""

    quasi: Mapping[str, Array] = field(default_factory=dict)
    """Quasi-identifiers, by name; equal values are equal numbers, and missing ones NaN."""
    confidential: Mapping[str, Array] = field(default_factory=dict)
    survey: Array | None = None
    """The weight of every record."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """The kinds of the confidential columns."""

    @property
    def records(self) -> int:
        """How many records the table has; 0 where nothing is known of them."""
        columns = [*self.quasi.values(), *self.confidential.values()]
        return len(columns[0]) if columns else 0 if self.survey is None else self.survey.size


def known_of(original: Table, masked: Table) -> tuple[Known, Known]:
    """What is known of the original's records and of the masked ones; a column that was dropped is no longer known."""
    sides: tuple[dict[str, dict[str, Array]], ...] = ({}, {})
    for what, role in (("quasi", "quasi-identifier"), ("confidential", "confidential")):
        for side in sides:
            side[what] = {}
        for name in original.schema.meant(role):
            if original.cells(name).kind == "nominal" and name in masked.names:
                shared = shared_categories(original, masked, name)
                shared = original.categories(name) if shared is None else shared  # all cells are missing
                sides[0][what][name] = original.values(name)
                sides[1][what][name] = masked.codes(name, shared)
                continue
            sides[0][what][name] = original.values(name)
            if name in masked.names:
                sides[1][what][name] = _told_apart(original, masked, name)
    weights = original.weight, _released_weight(original, masked)
    kinds = {name: original.cells(name).kind for name in original.schema.meant("confidential")}
    first, second = (Known(**side, survey=weight, kinds=kinds) for side, weight in zip(sides, weights, strict=True))
    return first, second


def _released_weight(original: Table, masked: Table) -> Array | None:
    """The weights of the masked records; None where the release has none, so that only a mapping tells them."""
    if original.weight is None:
        return None
    name = original.schema.with_role("weight")[0]
    if name not in masked.names:
        return None
    try:
        return Table(masked.native, schema=Schema(roles={name: "weight"}), decimal=masked.decimal).weight
    except TableError as error:
        raise TableError(f"masked table, {error}") from None


def _told_apart(original: Table, masked: Table, name: str) -> Array:
    """Numbers that are equal where the masked cells are, and the original's where a cell is one of those."""
    cells, levels = masked.cells(name), original.cells(name).levels
    if cells.kind != "nominal" and not cells.levels and not levels:
        return _counted_alike(original, masked, name)
    if not levels:
        return masked.codes(name, masked.categories(name))
    new = [label for label in label_counts(cells)[0] if label not in set(levels)]
    return masked.codes(name, categorising.ordinal([*levels, *new], np.zeros(len(levels) + len(new))))


def match_key(original: Table, masked: Table, key: str, notes: list[str]) -> tuple[Rows, Rows]:
    """The rows of both tables that have the same key."""
    keys = []
    for what, table in (("original", original), ("masked", masked)):
        if key not in table.names:
            raise PairError(f"the {what} table has no key column {key}")
        cells = table.cells(key)
        if cells.missing.any():
            raise PairError(f"key {key}: missing in row {np.flatnonzero(cells.missing)[0] + 1} of the {what} table")
        if pa.types.is_nested(cells.cells.type):
            raise PairError(f"key {key}: {cells.why or 'its values'}; a key is a number or a text")
        text = label_text(cells.cells)
        counted = pc.value_counts(text)
        twice = counted.field("values").filter(pc.greater(counted.field("counts"), 1))
        if len(twice):
            rows = np.flatnonzero(pc.equal(text, twice[0]).to_numpy(zero_copy_only=False)) + 1
            many = "1 value stands" if len(twice) == 1 else f"{len(twice)} values stand"
            raise PairError(
                f"key {key}: {many} more than once in the {what} table (the first in rows {listing(rows)}); "
                "a key must be unique"
            )
        keys.append(text)
    found = pc.index_in(keys[1], value_set=keys[0])
    there = pc.is_valid(found).to_numpy(zero_copy_only=False)
    if not there.any():
        raise PairError(f"key {key}: no value stands in both tables")
    rows_x: Rows = found.drop_null().to_numpy(zero_copy_only=False).astype(np.intp)
    rows_y = np.flatnonzero(there)
    left = [(len(original) - rows_x.size, "original"), (len(masked) - rows_y.size, "masked")]
    for count, what in left:
        if count:
            notes.append(f"{count} {what} records have no partner with the same {key} and are left out")
    return rows_x, rows_y


@dataclass(eq=False, repr=False)
class Domains:
    """The subdomain of every record of both tables: by the values of a column."""

    column: str
    levels: tuple[str, ...]
    original: NDArray[np.int64]
    masked: NDArray[np.int64] | None
    """None when the column is not in the masked table: records then belong where their originals do."""


def domains(original: Table, masked: Table, by: str, *, mapping: bool) -> Domains:
    """The subdomains by a column's values, from the smallest or first label to the last."""
    if by not in original.names:
        raise PairError(f"the original table has no column {by} to form subdomains by")
    if not mapping and by not in masked.names:
        raise PairError(f"without a mapping subdomains need column {by} in the masked table too")
    labels = _labels(original, by)
    distinct = pc.unique(labels)
    if len(distinct) > MOST_DOMAINS:
        raise PairError(
            f"column {by} has {len(distinct)} different values; subdomains need a column with at most {MOST_DOMAINS}"
        )
    if original.cells(by).kind == "nominal":
        levels = sorted(distinct.to_pylist())
    else:
        levels = sorted(distinct.to_pylist(), key=lambda label: (label == _MISSING, _number(label), label))
    known = pa.array(levels, pa.string())

    def codes(table: Table) -> NDArray[np.int64]:
        found = pc.fill_null(pc.index_in(_labels(table, by), value_set=known), -1)
        made: NDArray[np.int64] = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return made

    return Domains(by, tuple(levels), codes(original), codes(masked) if not mapping else None)


def _labels(table: Table, name: str) -> pa.Array:
    cells = table.cells(name)
    text = label_text(cells.cells) if not pa.types.is_nested(cells.cells.type) else None
    if text is None:
        raise PairError(f"column {name}: its values are no labels to form subdomains by")
    return pc.if_else(pa.array(cells.missing), pa.scalar(_MISSING), text)


def _number(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return 0.0
