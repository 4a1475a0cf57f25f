"""Records that belong together by a key: the original's are brought into the order of the masked table.

The keys of both tables are spread over buckets by a hash of their text, so that equal ones meet, and are compared
there as they are. Every original record then goes to the partition that its masked record lies in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rankveil import columns as reading
from rankveil import metadata
from rankveil.errors import PairError, listing
from rankveil.partitions.arranging import Arranged, Cut, brought, put_matches
from rankveil.partitions.parquet import Readable, Rows, Source
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Each

_BUCKET = 2**18
"""Keys that a task compares at a time, about."""

_LISTED = 5
"""Rows with the same key that are told."""

_WHAT = {"x": "original", "y": "masked"}
_WHOLE = r"^[+-]?[0-9]+[.,]0*$"


@dataclass(frozen=True)
class Keyed:
    """Two tables that have a key, and how they are cut into partitions."""

    key: str
    sources: Mapping[str, Source]
    bounds: Mapping[str, tuple[int, ...]]
    missing: tuple[str, ...]
    """Texts that stand for a missing cell."""
    scratch: Scratch

    def cells(self, side: str, partition: int) -> reading.Cells:
        """The keys of a partition."""
        source, bounds = self.sources[side], self.bounds[side]
        (cells,) = source.cells([self.key], bounds[partition], bounds[partition + 1])
        assert source.schema is not None
        return reading.read(
            nw.from_native(pa.chunked_array([cells]), series_only=True),
            name=self.key,
            missing=self.missing,
            decimal=".",
            kind=None if pa.types.is_nested(cells.type) else "nominal",
            levels=None,
            described=metadata.read(source.schema.field(self.key)),
        )

    @property
    def parts(self) -> list[tuple[str, int]]:
        """The partitions of both tables."""
        return [(side, p) for side in "xy" for p in range(len(self.bounds[side]) - 1)]

    @property
    def buckets(self) -> int:
        """How many the keys are spread over."""
        return max(1, -(-max(bounds[-1] for bounds in self.bounds.values()) // _BUCKET))


def arranged(
    each: Each, keyed: Keyed, original: Readable, names: tuple[str, ...], notes: list[str]
) -> tuple[Arranged, int]:
    """Some columns of the original in the order of the masked table, and how many records have a partner."""
    for side, source in keyed.sources.items():
        if keyed.key not in source.names:
            raise PairError(f"the {_WHAT[side]} table has no key column {keyed.key}")
    looked = dict(zip(keyed.parts, each(partial(look_at_keys, keyed), keyed.parts), strict=True))
    whole = {side: all(of_part.whole for (of, _), of_part in looked.items() if of == side) for side in "xy"}
    each(partial(spread_keys, keyed, whole), keyed.parts)
    met = each(partial(match_bucket, keyed), range(keyed.buckets))
    for side in "xy":
        _refuse_missing(keyed, side, [part for (of, _), part in looked.items() if of == side])
        _refuse_twice(keyed, side, [bucket.twice[side] for bucket in met])
    matched = sum(bucket.matched for bucket in met)
    if not matched:
        raise PairError(f"key {keyed.key}: no value stands in both tables")
    cut = Cut(keyed.bounds, keyed.scratch)
    made = brought(each, cut, original, names, [bucket.edges for bucket in met])
    each(partial(remove_keys, keyed), [0])
    for side, what in _WHAT.items():
        alone = keyed.bounds[side][-1] - matched
        if alone:
            notes.append(f"{alone} {what} records have no partner with the same {keyed.key} and are left out")
    return made, matched


@dataclass(frozen=True)
class Looked:
    """What the keys of a partition are like."""

    missing: int | None
    """The first row without one."""
    whole: bool
    """Whether all of them are whole numbers written as decimals, which are the same without their zeros."""
    nested: str = ""
    """What stands there, if that is nothing to compare."""


def look_at_keys(keyed: Keyed, item: tuple[str, int]) -> Looked:
    """A task: see what the keys of a partition are like."""
    side, partition = item
    cells = keyed.cells(side, partition)
    gone = np.flatnonzero(cells.missing)
    row = keyed.bounds[side][partition] + int(gone[0]) if gone.size else None
    if pa.types.is_nested(cells.cells.type):
        return Looked(row, False, cells.why or "its values")
    if pa.types.is_floating(cells.cells.type):
        values = cells.present.to_numpy(zero_copy_only=False)
        return Looked(row, bool(np.all((values == np.rint(values)) & (np.abs(values) < reading.EXACT))))
    text = cells.present.cast(pa.string())
    return Looked(row, bool(pc.all(pc.match_substring_regex(text, _WHOLE), min_count=0).as_py()))


def _refuse_missing(keyed: Keyed, side: str, parts: Sequence[Looked]) -> None:
    rows = [part.missing for part in parts if part.missing is not None]
    if rows:
        raise PairError(f"key {keyed.key}: missing in row {min(rows) + 1} of the {_WHAT[side]} table")
    nested = [part.nested for part in parts if part.nested]
    if nested:
        raise PairError(f"key {keyed.key}: {nested[0]}; a key is a number or a text")


@dataclass(frozen=True)
class Twice:
    """Keys of a table that are there more than once: how many, and the rows of the one that comes first."""

    keys: int = 0
    rows: tuple[int, ...] = ()
    count: int = 0
    """How many rows that one has; not all are listed."""


def _refuse_twice(keyed: Keyed, side: str, buckets: Sequence[Twice]) -> None:
    number = sum(bucket.keys for bucket in buckets)
    if not number:
        return
    first = min((bucket for bucket in buckets if bucket.keys), key=lambda bucket: bucket.rows)
    rows = listing([*(row + 1 for row in first.rows), *range(first.count - len(first.rows))], most=len(first.rows))
    many = "1 value stands" if number == 1 else f"{number} values stand"
    raise PairError(
        f"key {keyed.key}: {many} more than once in the {_WHAT[side]} table (the first in rows {rows}); "
        "a key must be unique"
    )


def spread_keys(keyed: Keyed, whole: Mapping[str, bool], item: tuple[str, int]) -> None:
    """A task: write the keys of a partition and their rows, bucket after bucket."""
    side, partition = item
    found = keyed.cells(side, partition)
    if pa.types.is_nested(found.cells.type):
        return
    rows = np.flatnonzero(~found.missing)  # that others are missing is said in its turn
    text = reading.label_text(found.present) if whole[side] else found.present.cast(pa.string())
    bucket = (hashes(text) % np.uint64(keyed.buckets)).astype(np.intp)
    order = np.argsort(bucket, kind="stable")
    table = pa.record_batch({"key": text.take(pa.array(order)), "row": rows[order] + keyed.bounds[side][partition]})
    ends = np.concatenate(([0], np.cumsum(np.bincount(bucket, minlength=keyed.buckets)))).tolist()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        for start, stop in pairwise(ends):
            writer.write_batch(table.slice(start, stop - start))
    keyed.scratch.put(_keys_file(side, partition), np.frombuffer(sink.getvalue(), np.uint8))


def hashes(text: pa.Array) -> NDArray[np.uint64]:
    """Numbers that are the same for equal texts, and spread evenly.

    >>> one, other, same = hashes(pa.array(["a", "b", "a"])) == hashes(pa.array(["a", "a", "a"]))
    >>> bool(one), bool(other), bool(same)
    (True, False, True)
    """
    text = text.cast(pa.large_string()).fill_null("")
    _, offsets, data = text.buffers()
    ends = np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1]
    letters = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else np.empty(0, np.uint8)
    ends = ends - ends[0]
    lengths = np.diff(ends)
    powers = np.cumprod(np.full(int(lengths.max(initial=0)), 0x9E3779B97F4A7C15, np.uint64))
    place = np.arange(letters.size) - np.repeat(ends[:-1], lengths)
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum((letters + np.uint64(1)) * powers[place])))
    mixed = (sums[ends[1:]] - sums[ends[:-1]]) * np.uint64(0xBF58476D1CE4E5B9)
    found: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return found


@dataclass(frozen=True, eq=False)
class Met:
    """What was found in a bucket."""

    twice: Mapping[str, Twice]
    matched: int
    edges: Rows
    """Where the matches of each partition of the original begin, and where the last ones end."""


def match_bucket(keyed: Keyed, bucket: int) -> Met:
    """A task: write which rows of both tables have the same key in a bucket."""
    keys, rows, twice = {}, {}, {}
    for side in "xy":
        batches = [_batch(keyed, side, p, bucket) for of, p in keyed.parts if of == side]
        table = pa.Table.from_batches([batch for batch in batches if batch is not None], schema=_SCHEMA)
        keys[side] = table.column("key").combine_chunks()
        rows[side] = table.column("row").to_numpy()
        twice[side] = _twice(keys[side], rows[side])
    found = pc.index_in(keys["y"], value_set=keys["x"])
    there = pc.is_valid(found).to_numpy(zero_copy_only=False)
    of_x = rows["x"][found.drop_null().to_numpy(zero_copy_only=False)]
    edges = put_matches(Cut(keyed.bounds, keyed.scratch), bucket, of_x, rows["y"][there])
    return Met(twice, int(there.sum()), edges)


_SCHEMA = pa.schema({"key": pa.string(), "row": pa.int64()})


def _batch(keyed: Keyed, side: str, partition: int, bucket: int) -> pa.RecordBatch | None:
    path = keyed.scratch.path(_keys_file(side, partition))
    try:
        with pa.memory_map(path) as source, pa.ipc.open_file(source) as file:
            batch = file.get_batch(bucket)
            return pa.record_batch([batch.column(0).cast(pa.string()), batch.column(1)], schema=_SCHEMA)
    except FileNotFoundError:  # keys that cannot be compared: somebody says so
        return None


def _twice(keys: pa.Array, rows: Rows) -> Twice:
    counted = pc.value_counts(keys)
    many = counted.filter(pc.greater(counted.field("counts"), 1))
    if len(many) == 0:
        return Twice()
    first = np.flatnonzero(pc.is_in(keys, value_set=many.field("values")).to_numpy(zero_copy_only=False))
    earliest = keys[int(first[np.argmin(rows[first])])]
    own = np.sort(rows[pc.equal(keys, earliest).to_numpy(zero_copy_only=False)])
    return Twice(len(many), tuple(own[:_LISTED].tolist()), own.size)


def remove_keys(keyed: Keyed, _: int) -> None:
    """A task: leave the scratch folder without the keys."""
    keyed.scratch.remove(*(_keys_file(*part) for part in keyed.parts))


def _keys_file(side: str, partition: int) -> str:
    return f"keys-{side}-{partition}"
