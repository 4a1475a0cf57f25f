"""Which columns and which records of two tables belong together, and in which subdomains the records lie."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankveil.errors import PairError, TableError, listing
from rankveil.table import Table

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
    for name in names:
        if masked.cells(name).kind == "nominal":
            why, kind = masked.cells(name).why or "text", original.cells(name).kind
            raise PairError(f"column {name}: {kind} in the original but not in the masked table ({why})")
    others = [name for name in original.names if name not in names and name not in aside]
    if others:
        notes.append(f"not compared: {listing(others, most=10)}")
    return names


def with_orders_of(original: Table, masked: Table) -> Table:
    """The masked table with the levels of the original's ordinal columns, so that codes mean the same."""
    levels = {
        name: original.cells(name).levels
        for name in original.names
        if name in masked.names and original.cells(name).levels
    }
    if not levels:
        return masked
    return Table(masked.native, schema=replace(masked.schema, levels=levels), decimal=masked.decimal)


def matrix(table: Table, names: Sequence[str], *, what: str) -> Array:
    """The columns as numbers, missing cells as NaN; an error says in which table it is."""
    made = np.empty((len(table), len(names)), order="F")
    try:
        for j, name in enumerate(names):
            made[:, j] = table.values(name)
    except TableError as error:
        raise TableError(f"{what} table, {error}") from None
    return made


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
        text = _key_text(cells.cells)
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


def _key_text(cells: pa.Array) -> pa.Array:
    """Keys as text, whole decimals like whole numbers, so that 7 and 7.0 are the same key."""
    if pa.types.is_floating(cells.type):
        values = cells.to_numpy(zero_copy_only=False)
        if np.all(values == np.rint(values)) and np.all(np.abs(values) < 2.0**53):
            cells = pa.array(values.astype(np.int64))
    text = cells.cast(pa.string())
    if pc.all(pc.match_substring_regex(text, r"^[+-]?[0-9]+[.,]0*$"), min_count=0).as_py():
        text = pc.replace_substring_regex(text, r"[.,]0*$", "")
    return text


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
    text = _key_text(cells.cells) if not pa.types.is_nested(cells.cells.type) else None
    if text is None:
        raise PairError(f"column {name}: its values are no labels to form subdomains by")
    return pc.if_else(pa.array(cells.missing), pa.scalar(_MISSING), text)


def _number(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return 0.0
