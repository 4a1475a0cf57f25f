"""Original and masked side by side: which record belongs to which, and what is computed from them only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil.categories import Categories
from rankveil.errors import PairError, ParameterError, listing, refuse_unknown, row_listing
from rankveil.levels import at_released_level, generalities, released_labels
from rankveil.matching import (
    common_columns,
    domains,
    known_of,
    masked_values,
    match_key,
    matrix,
    read_alike,
    shared_categories,
    stacked,
)
from rankveil.pairs import Mapping_, Pair, none_complete, said_of_gaps, take_rows, unpaired
from rankveil.schema import Schema
from rankveil.seeds import Seed
from rankveil.table import Table

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

Level = Literal["original", "released"]

_MATCHING = ("columns", "key", "mapping", "secret", "by", "seed")
"""What people say of how tables belong together."""


def pair(
    original: Table,
    masked: Table,
    *,
    columns: Sequence[str] | None = None,
    key: str | None = None,
    mapping: bool = True,
    order: Rows | None = None,
    by: str | None = None,
    seed: Seed | int = 0,
    beside: Pair | None = None,
    level: Level = "original",
) -> Pair:
    """Match records by row, by `key`, by the secret's `order`, or (mapping=False) not at all.

    `by` names a column of subdomains; `beside` is a pair of the same original with another masked table. With
    level="released" columns that were recoded are compared at the level at which they were released.
    """
    mapping = checked_mapping(mapping)
    seed = Seed.of(seed)
    notes: list[str] = []
    if sum((key is not None, order is not None, not mapping)) > 1:
        raise PairError("give one of key, secret and no mapping: they contradict each other")
    masked = read_alike(original, masked)
    aside = [key] if key is not None else []
    if by is not None and by not in masked.names:
        aside.append(by)
    names = common_columns(original, masked, columns, aside, notes)
    grouped = None if by is None else domains(original, masked, by, mapping=mapping)
    shared = tuple(shared_categories(original, masked, name) for name in names)
    of_masked = [
        partial(masked_values, original, masked, name, categories, notes)
        for name, categories in zip(names, shared, strict=True)
    ]
    y = stacked(of_masked, rows=len(masked), what="masked")
    what: dict[str, Any] = {
        "kinds": tuple(original.cells(name).kind for name in names),
        "categories": shared,
        "temporal": tuple(original.cells(name).temporal for name in names),
        "known": known_of(original, masked),
    }
    notes += said_of_rankings(names, shared)
    rows_x, rows_y = np.arange(len(original)), np.arange(len(masked))
    at_level = partial(_at_level, original, masked, names, shared) if level == "released" else None
    if not mapping:
        x = matrix(original, names, what="original")
        if at_level is not None:
            x, more = at_level((x, y), None, notes)
            what |= more
        made = unpaired(names, x, y, rows_x, rows_y, seed=seed, notes=notes, by=grouped, known=what["known"])
        if what["known"][0].survey is not None and what["known"][1].survey is None:
            notes.append("the masked table has no weights: its records count once each")
        return replace(made, **what)
    how: Mapping_ = "rows"
    if key is not None:
        how = "key"
        rows_x, rows_y = match_key(original, masked, key, notes)
    elif order is not None:
        how = "secret"
        if order.size != len(masked) or order.max(initial=-1) >= len(original):
            raise PairError(f"the secret maps {order.size} records, the files have {len(original)} and {len(masked)}")
        rows_x = order
        if order.size < len(original):
            notes.append(f"{len(original) - order.size} of the {len(original)} original records are not in the release")
    elif len(original) != len(masked):
        raise PairError(
            f"the original has {len(original)} records and the masked table {len(masked)}; "
            "name a key column with --key, or say --no-mapping for synthetic data"
        )
    if beside is not None and (beside.names != names or not np.array_equal(beside.original, rows_x)):
        beside = None
    kept = None if beside is None else beside.everything
    all_x = matrix(original, names, what="original") if kept is None else kept[0]
    if at_level is not None:
        at_own = all_x
        all_x, more = at_level((all_x, y), (rows_x, rows_y), notes)
        what |= more
        beside = None if more["bands"] or all_x is not at_own else beside
    x = beside.x if beside is not None else take_rows(all_x, rows_x)
    first, second = what["known"]
    if first.survey is not None and second.survey is None:  # a masked record has its original's weight
        weight = np.zeros(len(masked))
        weight[rows_y] = first.survey[rows_x]
        what["known"] = (first, replace(second, survey=weight))
    what |= {"by": grouped, "beside": beside, "everything": (all_x, y)}
    made = Pair(names, x, take_rows(y, rows_y), rows_x, rows_y, how, seed, notes, **what)
    incomplete = len(made) - int(made.complete.sum())
    if not any(len(column) for column in made.columns):
        raise none_complete()
    if incomplete:
        notes.append(said_of_gaps(incomplete, len(made)))
    return made


def _at_level(
    original: Table,
    masked: Table,
    names: tuple[str, ...],
    shared: Sequence[Categories | None],
    tables: tuple[Array, Array],
    links: tuple[Rows, Rows] | None,
    notes: list[str],
) -> tuple[Array, dict[str, Any]]:
    """The original's values at the level at which they were released, and what else a pair knows of that."""
    labels = {name: released_labels(masked, name) for name in names}
    made, bands, coarse = at_released_level(original, names, shared, labels, tables, links)
    if coarse:
        notes.append(f"compared at the level at which they were released, in groups: {listing(coarse, most=10)}")
    if bands:
        notes.append(f"ranks are those of the bands in which they were released: {listing(bands, most=10)}")
    return made, {"bands": bands, "released": partial(generalities, original, masked, names, links)}


def said_of_rankings(names: Sequence[str], shared: Sequence[Categories | None]) -> list[str]:
    """By what nominal columns are ranked: those ranked alike together."""
    by: dict[str, list[str]] = {}
    for name, categories in zip(names, shared, strict=True):
        if categories is not None and not categories.ordered:
            by.setdefault(categories.ranking, []).append(name)
    return [f"ranked by {ranking}: {listing(some, most=10)}" for ranking, some in by.items()]


def reverse_map(original: Any, masked: Any, **matching: Any) -> Any:
    """Z: the masked table with each value replaced by the original value of the same rank (Algorithm 1).

    Sorted columns of Z and of the original are equal; ranks of Z and of the masked table are. A masked value whose
    record has no original one cannot be replaced, and is an error.
    """
    declared = {name: matching.pop(name) for name in ("schema", "decimal") if name in matching}
    refuse_unknown(matching, known=_MATCHING)
    first = Table.of(original, **declared)
    table = read_alike(first, released_table(masked, **declared))
    both = pair_tables(first, table, **matching)
    if both.mapping == "none" and len(both) != len(table):
        raise PairError("reverse mapping needs as many original records as masked ones")
    replaced = {}
    for name, view in zip(both.names, both.columns, strict=True):
        y, z = table.cells(name).missing, np.full(len(table), np.nan)
        z[view.masked] = view.z
        alone = np.flatnonzero(np.isnan(z) & ~y)
        if alone.size:
            has, them = ("has", "it") if alone.size == 1 else ("have", "them")
            raise PairError(
                f"column {name}: masked {row_listing(alone + 1)} {has} no original value to take a rank's place from; "
                f"leave {them} out"
            )
        replaced[name] = z
    return table.replaced(replaced, labels={name: first.labels(name) for name in both.names})[0]


def pair_tables(
    original: object,
    masked: object,
    *,
    columns: Sequence[str] | None = None,
    key: str | None = None,
    mapping: bool = True,
    secret: object = None,
    by: str | None = None,
    seed: Seed | int = 0,
    beside: Pair | None = None,
    level: Level = "original",
    **declared: Any,
) -> Pair:
    """`pair` for frames as people have them; `secret` gives the order of a release, `declared` goes to `Table.of`."""
    refuse_unknown(declared, known=_MATCHING)
    if secret is not None and not hasattr(secret, "order"):
        raise PairError("secret must be the secret of a release, as in release.secret or Secret.from_json(text)")
    return pair(
        Table.of(original, **declared),
        released_table(masked, **declared),
        columns=columns,
        key=key,
        mapping=mapping,
        order=getattr(secret, "order", None),
        by=by,
        seed=seed,
        beside=beside,
        level=level,
    )


def released_table(masked: object, *, schema: Schema | None = None, decimal: str | None = None) -> Table:
    """The masked table; what is declared of a column that the release dropped is not held against it."""
    if isinstance(masked, Table) or schema is None:
        return Table.of(masked, schema=schema, decimal=decimal)
    there = Table.of(masked, decimal=decimal)
    return Table.of(masked, schema=Schema.of(schema).only(there.names), decimal=decimal)


def checked_mapping(mapping: object) -> bool:
    """Whether the records correspond; a word like "none", which Python takes for true, is refused."""
    if not isinstance(mapping, bool | np.bool_):
        raise ParameterError(
            f"mapping must be True or False, not {mapping!r}: False where no record belongs to another; where rows "
            "were reordered, the secret tells which (secret=)"
        )
    return bool(mapping)


def true_links(
    original: Table, masked: Table, *, key: str | None, mapping: bool, secret: Any, notes: list[str]
) -> tuple[NDArray[np.int64] | None, str]:
    """The original row of every released record (-1 for none), and how that is known; None where it is not."""
    mapping = checked_mapping(mapping)
    if secret is not None and not hasattr(secret, "order"):
        raise PairError("secret must be the secret of a release, as in release.secret or Secret.from_json(text)")
    order = getattr(secret, "order", None)
    if sum((key is not None, order is not None, not mapping)) > 1:
        raise PairError("give one of key, secret and no mapping: they contradict each other")
    if not mapping:
        return None, "none"
    if key is not None:
        rows_x, rows_y = match_key(original, read_alike(original, masked), key, notes)
        truth = np.full(len(masked), -1, dtype=np.int64)
        truth[rows_y] = rows_x
        return truth, "key"
    if order is not None:
        if order.size != len(masked) or order.max(initial=-1) >= len(original):
            raise PairError(f"the secret maps {order.size} records, the files have {len(original)} and {len(masked)}")
        return order.astype(np.int64), "secret"
    if len(original) != len(masked):
        raise PairError(
            f"the original has {len(original)} records and the masked table {len(masked)}; "
            "name a key column with --key, or say --no-mapping for synthetic data"
        )
    return np.arange(len(masked), dtype=np.int64), "rows"
