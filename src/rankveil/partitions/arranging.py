"""The original's records in the order of the masked table, which they belong to by a key or by the secret's mapping.

Every record of the original goes to the partition that its masked record lies in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from rankveil.partitions.parquet import Array, Readable, Rows
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Each


@dataclass(frozen=True)
class Cut:
    """How two tables are cut into partitions, and where what passes between them lies."""

    bounds: Mapping[str, tuple[int, ...]]
    scratch: Scratch


@dataclass(frozen=True)
class Arranged:
    """The original's records in the order of the masked table; a row without a partner is missing everywhere."""

    path: str
    names: tuple[str, ...]
    bounds: tuple[int, ...]
    scratch: Scratch

    def __len__(self) -> int:
        return self.bounds[-1]

    def read(self, columns: Sequence[str], start: int, stop: int) -> list[Array]:
        """The numbers of some columns in the records from start to before stop; missing ones are NaN."""
        found: list[list[Array]] = [[] for _ in columns]
        for p, begin, end in self._over(start, stop):
            size = self.bounds[p + 1] - self.bounds[p]
            for column, name in zip(found, columns, strict=True):
                at = self.names.index(name) * size
                column.append(self.scratch.take(_arranged_file(p), np.float64, start=at + begin, stop=at + end))
        return [each[0] if len(each) == 1 else np.concatenate([*each, np.empty(0)]) for each in found]

    def rows(self, start: int, stop: int) -> Rows:
        """The rows of the original that these records stand in; -1 where there is none."""
        parts = [
            self.scratch.take(f"{_arranged_file(p)}-rows", np.int64, start=begin, stop=end)
            for p, begin, end in self._over(start, stop)
        ]
        return np.concatenate([*parts, np.empty(0, np.int64)])

    def _over(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """Partitions, and where the records from start to before stop begin and end in each."""
        ends = [(max(start, a) - a, min(stop, b) - a) for a, b in pairwise(self.bounds)]
        return [(p, begin, end) for p, (begin, end) in enumerate(ends) if begin < end]


def by_order(each: Each, cut: Cut, original: Readable, names: tuple[str, ...], order: Rows) -> Arranged:
    """Some columns of the original in the order of the masked table; `order` has the original row of each record."""
    edges = put_matches(cut, 0, order, np.arange(order.size, dtype=np.int64))
    return brought(each, cut, original, names, [edges])


def put_matches(cut: Cut, bucket: int, rows: Rows, to: Rows) -> Rows:
    """Leave rows of the original and those of their masked records; where each partition of the original begins."""
    order = np.argsort(rows, kind="stable")
    cut.scratch.put(_match_file(bucket), np.stack((rows[order], to[order])).astype(np.int64, copy=False))
    return np.searchsorted(rows[order], cut.bounds["x"]).astype(np.int64)


def brought(each: Each, cut: Cut, original: Readable, names: tuple[str, ...], edges: Sequence[Rows]) -> Arranged:
    """The original's records where their masked ones are; `edges` are those of the buckets of matches."""
    before, after = (range(len(cut.bounds[side]) - 1) for side in "xy")
    sent = each(partial(send_partition, cut, original, names, edges), before)
    each(partial(arrange_partition, cut, len(names), sent), after)
    each(partial(remove_passing, cut, len(edges)), [0])
    return Arranged(original.path, names, cut.bounds["y"], cut.scratch)


def send_partition(cut: Cut, original: Readable, names: tuple[str, ...], edges: Sequence[Rows], partition: int) -> Rows:
    """A task: write the records of a partition in the order of their masked ones; where each of its parts begins."""
    pieces = []
    for bucket, cuts in enumerate(edges):
        file, total = _match_file(bucket), int(cuts[-1])
        start, stop = int(cuts[partition]), int(cuts[partition + 1])
        own = [cut.scratch.take(file, np.int64, start=at + start, stop=at + stop) for at in (0, total)]
        pieces.append(np.stack(own))
    rows, to = np.concatenate(pieces, axis=1)
    order = np.argsort(to, kind="stable")
    begin, end = cut.bounds["x"][partition], cut.bounds["x"][partition + 1]
    values = [column[rows[order] - begin] for column in original.read(names, begin, end)]
    cut.scratch.put(_sent_file(partition), np.concatenate([*values, np.empty(0)]))
    cut.scratch.put(f"{_sent_file(partition)}-rows", np.stack((rows[order], to[order])))
    return np.searchsorted(to[order], cut.bounds["y"]).astype(np.int64)


def arrange_partition(cut: Cut, columns: int, sent: Sequence[Rows], partition: int) -> None:
    """A task: put the records of the original to the masked ones of a partition."""
    begin, end = cut.bounds["y"][partition], cut.bounds["y"][partition + 1]
    values = np.full((columns, end - begin), np.nan)
    rows = np.full(end - begin, -1, np.int64)
    for q, cuts in enumerate(sent):
        start, stop, total = int(cuts[partition]), int(cuts[partition + 1]), int(cuts[-1])
        if start == stop:
            continue
        file = f"{_sent_file(q)}-rows"
        of_x = cut.scratch.take(file, np.int64, start=start, stop=stop)
        at = cut.scratch.take(file, np.int64, start=total + start, stop=total + stop) - begin
        rows[at] = of_x
        for j in range(columns):
            own = cut.scratch.take(_sent_file(q), np.float64, start=j * total + start, stop=j * total + stop)
            values[j, at] = own
    cut.scratch.put(_arranged_file(partition), values)
    cut.scratch.put(f"{_arranged_file(partition)}-rows", rows)


def remove_passing(cut: Cut, buckets: int, _: int) -> None:
    """A task: leave the scratch folder with the arranged records alone."""
    files = [_match_file(bucket) for bucket in range(buckets)]
    files += [name for p in range(len(cut.bounds["x"]) - 1) for name in (_sent_file(p), f"{_sent_file(p)}-rows")]
    cut.scratch.remove(*files)


def _match_file(bucket: int) -> str:
    return f"match-{bucket}"


def _sent_file(partition: int) -> str:
    return f"sent-to-masked-{partition}"


def _arranged_file(partition: int) -> str:
    return f"arranged-{partition}"
