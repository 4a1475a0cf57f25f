"""Original and masked side by side: which record belongs to which, and what is computed from them only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankveil import ranks
from rankveil.errors import PairError, TableError, listing
from rankveil.seeds import Seed, Stream
from rankveil.table import Table

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Mapping_ = Literal["rows", "key", "secret", "none"]


class View:
    """Complete records of some columns, one row each in x and y; ranks are computed when first asked for."""

    def __init__(self, x: Array, y: Array, *, original: Rows, masked: Rows, rng: Stream) -> None:
        self.x, self.y = x, y
        self.original, self.masked = original, masked
        """The rows (from 0) of the original and of the masked table that stand here side by side."""
        self._rng = rng

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def rank_x(self) -> Array:
        """Average ranks of the original."""
        return ranks.average_ranks(self.x)

    @cached_property
    def rank_y(self) -> Array:
        """Average ranks of the masked values."""
        return ranks.average_ranks(self.y)

    @cached_property
    def z(self) -> Array:
        """Reverse-mapped values: the original values in the order of the masked ones."""
        return ranks.reverse_map(self.x, self.y, rng=self._rng.at())

    @cached_property
    def rank_z(self) -> Array:
        """Average ranks of the reverse-mapped values."""
        return ranks.average_ranks(self.z)


@dataclass(eq=False, repr=False)
class Pair:
    """An original and a masked table over the same columns, rows matched as far as they can be."""

    names: tuple[str, ...]
    x: Array
    y: Array
    original: Rows
    masked: Rows
    mapping: Mapping_
    seed: Seed
    notes: list[str]

    def __len__(self) -> int:
        return len(self.x)

    @cached_property
    def complete(self) -> NDArray[np.bool_]:
        """Which rows have every value on both sides."""
        return np.asarray(~(np.isnan(self.x) | np.isnan(self.y)).any(axis=1))

    @cached_property
    def table(self) -> View:
        """The records that are complete in all columns."""
        return self._view(slice(None), self.complete, "table")

    @cached_property
    def columns(self) -> tuple[View, ...]:
        """For each column the records that have it on both sides."""
        there = ~(np.isnan(self.x) | np.isnan(self.y))
        return tuple(self._view(j, there[:, j], name) for j, name in enumerate(self.names))

    def _view(self, columns: int | slice, rows: NDArray[np.bool_], name: str) -> View:
        if rows.all():
            x, y, original, masked = self.x[:, columns], self.y[:, columns], self.original, self.masked
        else:
            x, y = self.x[rows][:, columns], self.y[rows][:, columns]
            original, masked = self.original[rows], self.masked[rows]
        return View(x, y, original=original, masked=masked, rng=self.seed.stream("ties", name))


def pair(
    original: Table,
    masked: Table,
    *,
    columns: Sequence[str] | None = None,
    key: str | None = None,
    mapping: bool = True,
    order: Rows | None = None,
    seed: Seed | int = 0,
) -> Pair:
    """Match records by row, by `key`, by the secret's `order`, or (mapping=False) not at all."""
    seed = Seed.of(seed)
    notes: list[str] = []
    masked = _with_orders_of(original, masked)
    names = _common_columns(original, masked, columns, key, notes)
    x, y = _matrix(original, names, what="original"), _matrix(masked, names, what="masked")
    rows_x, rows_y = np.arange(len(original)), np.arange(len(masked))
    how: Mapping_ = "rows"
    if sum((key is not None, order is not None, not mapping)) > 1:
        raise PairError("give one of key, secret and no mapping: they contradict each other")
    if key is not None:
        how = "key"
        rows_x, rows_y = _match_key(original, masked, key, notes)
    elif order is not None:
        how = "secret"
        if order.size != len(masked) or len(original) != len(masked):
            raise PairError(f"the secret maps {order.size} records, the files have {len(original)} and {len(masked)}")
        rows_x = order
    elif not mapping:
        how = "none"
        rows_x, rows_y = _sampled(x, y, seed, notes)
    elif len(original) != len(masked):
        raise PairError(
            f"the original has {len(original)} records and the masked table {len(masked)}; "
            "name a key column with --key, or say --no-mapping for synthetic data"
        )
    made = Pair(names, _rows(x, rows_x), _rows(y, rows_y), rows_x, rows_y, how, seed, notes)
    incomplete = len(made) - int(made.complete.sum())
    if incomplete == len(made):
        raise PairError("no record is complete in all the columns; choose others with --columns")
    if incomplete:
        notes.append(f"{incomplete} of {len(made)} records have missing values, left out where those are needed")
    return made


def reverse_map(original: Any, masked: Any, **matching: Any) -> Any:
    """Z: the masked table with each value replaced by the original value of the same rank (Algorithm 1).

    Sorted columns of Z and of the original are equal; ranks of Z and of the masked table are. A masked value whose
    record has no original one cannot be replaced, and is an error.
    """
    declared = {name: matching.pop(name) for name in ("schema", "decimal") if name in matching}
    first = Table.of(original, **declared)
    table = _with_orders_of(first, Table.of(masked, **declared))
    both = pair_tables(first, table, **matching)
    if both.mapping == "none" and len(both) != len(table):
        raise PairError("reverse mapping needs as many original records as masked ones")
    replaced = {}
    for name, view in zip(both.names, both.columns, strict=True):
        y, z = table.values(name), np.full(len(table), np.nan)
        z[view.masked] = view.z
        alone = np.flatnonzero(np.isnan(z) & ~np.isnan(y))
        if alone.size:
            raise PairError(
                f"column {name}: masked rows {listing(alone + 1)} have no original value to take a rank's place from; "
                "leave them out"
            )
        replaced[name] = z
    return table.replaced(replaced)[0]


def _common_columns(
    original: Table, masked: Table, columns: Sequence[str] | None, key: str | None, notes: list[str]
) -> tuple[str, ...]:
    if columns is not None:
        names = original.usable(columns)
        lost = [name for name in names if name not in masked.names]
        if lost:
            raise PairError(f"the masked table has no column {listing(lost)}")
    else:
        names = tuple(name for name in original.usable() if name != key)
        lost = [name for name in names if name not in masked.names]
        new = [
            name
            for name in masked.names
            if name not in original.names and masked.cells(name).kind != "nominal" and name != key
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
    others = [name for name in original.names if name not in names and name != key]
    if others:
        notes.append(f"not compared: {listing(others, most=10)}")
    return names


def _with_orders_of(original: Table, masked: Table) -> Table:
    """The masked table with the levels of the original's ordinal columns, so that codes mean the same."""
    levels = {
        name: original.cells(name).levels
        for name in original.names
        if name in masked.names and original.cells(name).levels
    }
    if not levels:
        return masked
    return Table(masked.native, schema=replace(masked.schema, levels=levels), decimal=masked.decimal)


def _matrix(table: Table, names: Sequence[str], *, what: str) -> Array:
    matrix = np.empty((len(table), len(names)), order="F")
    try:
        for j, name in enumerate(names):
            matrix[:, j] = table.values(name)
    except TableError as error:
        raise TableError(f"{what} table, {error}") from None
    return matrix


def _rows(matrix: Array, rows: Rows) -> Array:
    if rows.size == matrix.shape[0] and np.array_equal(rows, np.arange(rows.size)):
        return matrix
    return np.asfortranarray(matrix[rows])


def _match_key(original: Table, masked: Table, key: str, notes: list[str]) -> tuple[Rows, Rows]:
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


def _sampled(x: Array, y: Array, seed: Seed, notes: list[str]) -> tuple[Rows, Rows]:
    """Complete records of both sides, the larger side sampled down to the smaller, and said so."""
    sides = []
    for what, matrix in (("original", x), ("masked", y)):
        rows = np.flatnonzero(~np.isnan(matrix).any(axis=1))
        if rows.size < matrix.shape[0]:
            notes.append(f"{matrix.shape[0] - rows.size} {what} records have missing values and are left out")
        if rows.size == 0:
            raise PairError(f"no {what} record is complete in all the columns; choose others with --columns")
        sides.append(rows)
    n = min(rows.size for rows in sides)
    for side, what in enumerate(("original", "masked")):
        rows = sides[side]
        if rows.size > n:
            sides[side] = np.sort(rows[seed.stream("sample", what).order(rows.size)[:n]])
            notes.append(f"the {what} table was sampled from {rows.size} down to {n} records, by the seed")
    return sides[0], sides[1]


def pair_tables(
    original: object,
    masked: object,
    *,
    columns: Sequence[str] | None = None,
    key: str | None = None,
    mapping: bool = True,
    secret: object = None,
    seed: Seed | int = 0,
    **declared: Any,
) -> Pair:
    """`pair` for frames as people have them; `secret` gives the order of a release, `declared` goes to `Table.of`."""
    if secret is not None and not hasattr(secret, "order"):
        raise PairError("secret must be the secret of a release, as in release.secret or Secret.from_json(text)")
    return pair(
        Table.of(original, **declared),
        Table.of(masked, **declared),
        columns=columns,
        key=key,
        mapping=mapping,
        order=getattr(secret, "order", None),
        seed=seed,
    )
