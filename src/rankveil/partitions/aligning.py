"""Two Parquet tables as a pair in parts: what is compared, and which records belong together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rankveil.errors import PairError
from rankveil.measuring import Settings
from rankveil.partitions.arranging import Arranged, Cut, by_order
from rankveil.partitions.choosing import Base
from rankveil.partitions.comparing import Compared, compared
from rankveil.partitions.keys import Keyed, arranged
from rankveil.partitions.parquet import Readable, Rows, Source
from rankveil.partitions.parted import Aligned, Parted
from rankveil.partitions.records import Work
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.selecting import Selections
from rankveil.partitions.stages import Ask, Each
from rankveil.schema import Schema
from rankveil.seeds import Seed


def parted_tables(
    each: Each,
    original: Source,
    masked: Source,
    *,
    bounds: Mapping[str, tuple[int, ...]],
    scratch: Scratch,
    seed: Seed,
    columns: Sequence[str] | None = None,
    schema: Schema | None = None,
    key: str | None = None,
    mapping: bool = True,
    order: Rows | None = None,
    settings: Settings | None = None,
    ask: Ask | None = None,
    room: float = math.inf,
) -> Parted:
    """Two tables as a pair, cut into partitions at `bounds`; `key`, `mapping` and `order` are as in `pairing.pair`.

    `room` is how many bytes of memory a few columns of all records may take.
    """
    schema, settings = schema or Schema(), settings or {}
    if mapping and key is None and order is None:  # row by row the same partitions
        bounds = {"x": bounds["x"], "y": bounds["x"]}
    aside = () if key is None else (key,)
    tables = compared(
        each, original, masked, columns=columns, schema=schema, aside=aside, bounds=bounds, scratch=scratch
    )
    notes = list(tables.notes)
    if not mapping:
        aligned = Aligned(_own(each, tables, bounds, scratch), None, (len(original), len(masked)))
    elif order is not None:
        aligned = _by_order(each, order, tables, bounds, scratch, notes)
    elif key is None:
        rows = Selections(Base("r", _sources(tables), bounds["x"], tables.gaps), each, scratch)
        aligned = Aligned({"x": rows, "y": rows}, rows, (len(original), len(masked)), len(original))
    else:
        keyed = Keyed(key, {"x": original, "y": masked}, bounds, schema.missing, scratch)
        aligned = _by_key(each, keyed, tables, notes)
    how = "none" if not mapping else "key" if key is not None else "rows" if order is None else "secret"
    made = Parted(tables, tables.names, aligned, how, Work(each, scratch, seed, settings, ask, room), notes)
    made.check()
    return made


def _sources(tables: Compared) -> dict[str, Readable]:
    return {"x": tables.original, "y": tables.masked}


def _own(
    each: Each, tables: Compared, bounds: Mapping[str, tuple[int, ...]], scratch: Scratch
) -> dict[str, Selections]:
    """Selections of each table by itself."""
    sources = _sources(tables)
    return {
        side: Selections(Base(side, {side: sources[side]}, bounds[side], tables.gaps), each, scratch) for side in "xy"
    }


def _by_key(each: Each, keyed: Keyed, tables: Compared, notes: list[str]) -> Aligned:
    """Records that have the same key, in the order of the masked table."""
    x, matched = arranged(each, keyed, tables.original, tables.names, notes)
    return _together(each, x, matched, tables, Cut(keyed.bounds, keyed.scratch))


def _by_order(
    each: Each,
    order: Rows,
    tables: Compared,
    bounds: Mapping[str, tuple[int, ...]],
    scratch: Scratch,
    notes: list[str],
) -> Aligned:
    """Records that belong together by the mapping in a secret, in the order of the masked table."""
    cut, records = Cut(bounds, scratch), len(tables.original)
    if order.size != len(tables.masked) or order.max(initial=-1) >= records:
        raise PairError(f"the secret maps {order.size} records, the files have {records} and {len(tables.masked)}")
    if order.size < records:
        notes.append(f"{records - order.size} of the {records} original records are not in the release")
    return _together(each, by_order(each, cut, tables.original, tables.names, order), order.size, tables, cut)


def _together(each: Each, x: Arranged, matched: int, tables: Compared, cut: Cut) -> Aligned:
    """The original's records beside the masked ones, some of which may have no partner."""
    own = _own(each, tables, cut.bounds, cut.scratch)
    sizes = cut.bounds["x"][-1], cut.bounds["y"][-1]
    everywhere = frozenset(tables.names) if matched < sizes[1] else frozenset()
    gaps = {"x": tables.gaps["x"] | everywhere, "y": tables.gaps["y"]}
    pairs = Selections(Base("k", {"x": x, "y": tables.masked}, cut.bounds["y"], gaps), each, cut.scratch)
    return Aligned(own, pairs, sizes, matched)
