"""Which columns of two tables are compared, and what their cells stand for: told from a first look at both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from rankveil import metadata
from rankveil.categories import Categories
from rankveil.errors import TableError, listing
from rankveil.matching import common_columns, known_of, masked_values, read_alike, shared_categories
from rankveil.pairing import said_of_rankings
from rankveil.partitions.encoding import Encoded, Numbers, Places, Reader, values_file
from rankveil.partitions.looking import (
    MOST,
    Digest,
    Look,
    Seen,
    digest,
    has_labels,
    labelled,
    look_at,
    merge_labels,
)
from rankveil.partitions.parquet import Array, Source
from rankveil.partitions.roles import Roles
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Each
from rankveil.schema import NAMING_ROLES, Schema
from rankveil.table import Table

_TOLD = "told"
"""Numbers by which masked cells are told apart, whatever they are worth."""


@dataclass(frozen=True, eq=False)
class Compared:
    """Two tables as columns of numbers that mean the same in both."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    categories: tuple[Categories | None, ...]
    temporal: tuple[Any, ...]
    original: Encoded
    masked: Encoded
    gaps: Mapping[str, frozenset[str]]
    """The columns of the original (x) and of the masked table (y) that have missing cells."""
    notes: tuple[str, ...]
    roles: Roles


def compared(
    each: Each,
    original: Source,
    masked: Source,
    *,
    columns: Sequence[str] | None,
    schema: Schema,
    aside: Sequence[str] = (),
    bounds: Mapping[str, tuple[int, ...]],
    scratch: Scratch,
) -> Compared:
    """Look at both tables, and tell what is compared; columns `aside` say which record is which."""
    seen, looks = _looked(each, original, masked, columns, schema, aside, bounds, scratch)
    first, second = (digest(looks[side], seen[side]) for side in "xy")
    notes: list[str] = []
    said = _Said()
    with said:
        alike = read_alike(first, second)
        names = common_columns(first, alike, columns, aside, notes)
    names = _without_too_many(names, seen, chosen=columns is not None, notes=notes)
    _refuse_infinite([name for name in names if first.cells(name).kind != "nominal"], seen)
    readers: dict[str, dict[str, Reader]] = {"x": {}, "y": {}}
    gaps: dict[str, set[str]] = {"x": set(), "y": set()}
    shared = []
    for name in names:
        with said:
            categories = shared_categories(first, alike, name)
            values = {"x": first.values(name), "y": masked_values(first, alike, name, categories, notes)}
        shared.append(categories)
        for side, table in (("x", first), ("y", alike)):
            readers[side][name], missing = _reader(looks[side], seen[side][name], table, first, name, values[side])
            if missing:
                gaps[side].add(name)
    notes += said_of_rankings(names, shared)
    return Compared(
        names,
        tuple(first.cells(name).kind for name in names),
        tuple(shared),
        tuple(first.cells(name).temporal for name in names),
        Encoded(original, readers["x"], scratch),
        Encoded(masked, readers["y"], scratch),
        {side: frozenset(some) for side, some in gaps.items()},
        tuple(notes),
        _roles(first, alike, looks["y"], seen["y"], said),
    )


def _roles(original: Digest, masked: Table, look: Look, seen: Mapping[str, Seen], said: _Said) -> Roles:
    """What the columns stand for that were given the role of a quasi-identifier or a confidential one."""
    with said:
        known = known_of(original, masked)[1]
    readers: dict[str, Reader] = {}
    too_many = []
    for name, values in {**known.quasi, **known.confidential}.items():
        different = seen[name].different
        if different is None or different > MOST:
            too_many.append(name)
            continue
        look.scratch.put(values_file("y", name, _TOLD), values[:different])
        readers[name] = Places("y", _TOLD)
    source = Encoded(look.source, readers, look.scratch)
    return Roles(source, look.bounds, tuple(known.quasi), tuple(known.confidential), known.kinds, tuple(too_many))


class _Said:
    """Errors about a column that is known by its different cells alone say that its rows are those of these."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if isinstance(error, TableError) and "(row" in str(error):
            raise TableError(f"{error} (rows are those of its different values, as they first appear)") from None


def _looked(
    each: Each,
    original: Source,
    masked: Source,
    columns: Sequence[str] | None,
    schema: Schema,
    aside: Sequence[str],
    bounds: Mapping[str, tuple[int, ...]],
    scratch: Scratch,
) -> tuple[dict[str, dict[str, Seen]], dict[str, Look]]:
    """What the columns of both tables hold."""
    sources = {"x": original, "y": masked}
    wanted = {side: _wanted(source, columns, aside, schema) for side, source in sources.items()}
    kept = {name for side, source in sources.items() for name in labelled(source, wanted[side], schema)}
    looks = {
        side: Look(side, source, wanted[side], frozenset(kept), schema.only(wanted[side]), bounds[side], scratch)
        for side, source in sources.items()
    }
    items = [(side, p) for side in "xy" for p in range(len(bounds[side]) - 1)]
    found = each(partial(look_at_side, looks), items)
    seen: dict[str, dict[str, Seen]] = {}
    for side in "xy":
        parts = [part for (of, _), part in zip(items, found, strict=True) if of == side]
        seen[side] = {name: reduce(Seen.merged, (part[name] for part in parts)) for name in wanted[side]}
    files = [
        (side, name)
        for side in "xy"
        for name, each_seen in seen[side].items()
        if each_seen.different is not None and each_seen.different <= MOST
    ]
    for (side, name), different in zip(files, each(partial(merge_side, looks), files), strict=True):
        seen[side][name] = replace(seen[side][name], different=different)
    for side, source in sources.items():
        for name, one in seen[side].items():
            if (one.different or 0) > MOST and not has_labels(source, name, schema):  # numbers, as others are
                seen[side][name] = replace(one, different=None)
    return seen, looks


def _wanted(source: Source, columns: Sequence[str] | None, aside: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """The columns of a table that are looked at: those that may be compared, or that were given a role of interest."""
    named = schema.with_role(*NAMING_ROLES)
    if columns is None:
        return tuple(name for name in source.names if name not in aside or name in named)
    return tuple(name for name in source.names if name in columns or name in named)


def look_at_side(looks: Mapping[str, Look], item: tuple[str, int]) -> dict[str, Seen]:
    """A task: look at a partition of one of the tables."""
    side, partition = item
    return look_at(looks[side], partition)


def merge_side(looks: Mapping[str, Look], item: tuple[str, str]) -> int:
    """A task: put the different cells of a column of one of the tables together."""
    side, name = item
    return merge_labels(looks[side], name)


def _without_too_many(
    names: tuple[str, ...], seen: Mapping[str, Mapping[str, Seen]], *, chosen: bool, notes: list[str]
) -> tuple[str, ...]:
    """Without columns of more different cells than can be told apart; chosen ones are refused."""
    many = [name for name in names if any((seen[side][name].different or 0) > MOST for side in "xy")]
    if many and (chosen or len(many) == len(names)):
        raise TableError(
            f"column {listing(many)}: more than {MOST:,} different labels, too many to be measured in parts; "
            "leave it out with --columns"
        )
    if many:
        notes.append(f"not compared, as they have more than {MOST:,} different labels: {listing(many, most=10)}")
    return tuple(name for name in names if name not in many)


def _refuse_infinite(names: Sequence[str], seen: Mapping[str, Mapping[str, Seen]]) -> None:
    for side, what in (("x", "original"), ("y", "masked")):
        for name in names:
            row = seen[side][name].infinite
            if row is not None:
                raise TableError(
                    f"{what} table, column {name}: infinite values (the first in row {row + 1}); "
                    "remove or declare them missing"
                )


def _reader(look: Look, seen: Seen, table: Table, original: Digest, name: str, values: Array) -> tuple[Reader, bool]:
    """How a column of one of the tables is read, and whether some of it is missing."""
    if seen.different is not None:
        own = values[: seen.different]  # rows behind are padding
        look.scratch.put(values_file(look.side, name), own)
        return Places(look.side), bool(np.isnan(own).any())
    assert look.source.schema is not None
    described = metadata.read(look.source.schema.field(name))
    temporal = original.cells(name).temporal if table.cells(name).temporal is not None else None
    return Numbers(temporal, look.schema.missing, described), seen.missing > 0
