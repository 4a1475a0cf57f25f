"""Ranks of the reverse-mapped values z (`View.z`) of a column: the original's ranks in the order of the masked values.

The rank of the original's k-th value goes to the row of the masked column's k-th. Masked values that are tied stand in
the order of their draws. So a span of the masked column needs the original's ranks at the same places of the order, and
the draws of its rows. Where neither column has ties, z has the ranks of the masked column and nothing is to be done.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankveil.partitions.layout import Cuts, Layout
from rankveil.partitions.ranking import (
    Ranks,
    kind_of_ranks,
    ordered_file,
    places_of,
    read_pieces,
    scatter,
    span_file,
)
from rankveil.partitions.runs import draw_file, settled
from rankveil.partitions.scratch import Scratch
from rankveil.sorting import Sorter


@dataclass(frozen=True, eq=False)
class Ordered:
    """The doubled ranks of an original column in the order of its values: place k has the rank of the k-th value."""

    column: str
    layout: Layout
    tied: tuple[bool, ...]
    """Which spans have ties."""

    def constant(self, start: int, stop: int) -> int | None:
        """The doubled rank that all places from start to before stop have, if they lie in a constant interval."""
        k = int(np.searchsorted(self.layout.positions, start, side="right")) - 1
        inside = k < self.layout.constant.size and self.layout.constant[k] and stop <= self.layout.positions[k + 1]
        return self.layout.doubled_rank(k) if inside else None

    def take(self, scratch: Scratch, start: int, stop: int) -> Ranks:
        """The doubled ranks of the places from start to before stop."""
        ranks = np.empty(stop - start, kind_of_ranks(self.layout.count))
        positions = self.layout.positions
        for first, last, span in self.layout.parts():
            begin, end = max(start, int(positions[first])), min(stop, int(positions[last]))
            if begin >= end:
                continue
            here = slice(begin - start, end - start)
            if span is None:
                ranks[here] = self.layout.doubled_rank(first)
            elif self.tied[span]:
                scratch.take_into(ordered_file(self.column, span), ranks[here], start=begin - int(positions[first]))
            else:
                ranks[here] = 2 * np.arange(begin + 1, end + 1)
        return ranks


def reversed_file(column: str, span: int) -> str:
    """The reverse-mapped ranks of a span of a masked column, run after run."""
    return f"reversed-{column}-{span}"


def reverse_span(scratch: Scratch, column: str, layout: Layout, span: int, *, original: Ordered, tied: bool) -> None:
    """The ranks that reverse mapping gives to a span of a masked column, `tied` if it has ties."""
    first, last = layout.spans[span]
    start, stop = int(layout.positions[first]), int(layout.positions[last])
    to = original.take(scratch, start, stop)
    ranks: Ranks = scratch.take(span_file(column, span), to.dtype)
    if not tied:
        scratch.put(reversed_file(column, span), to[ranks // 2 - (start + 1)])
        return
    draws = read_pieces(scratch, draw_file, column, layout.edges[:, [first, last]])
    found = np.empty_like(ranks)
    sort = Sorter(layout.largest(first, last))
    for k in range(first, last):
        where = places_of(layout, k, first, last)
        if not where:
            continue
        mine, drawn = (np.concatenate([these[each] for each in where]) for these in (ranks, draws))
        below = int(layout.positions[k])
        # pieces of one rank come from run after run, each in the order of draws, then rows
        order = settled(mine - mine.dtype.type(2 * below), drawn, then=np.arange(mine.size), sort=sort)
        placed = np.empty_like(mine)
        placed[order] = to[below - start : below - start + mine.size]
        scatter(placed, found, where)
    scratch.put(reversed_file(column, span), found)


def share_file(column: str, interval: int, share: int) -> str:
    """The reverse-mapped ranks of a share of a constant interval, run after run."""
    return f"share-{column}-{interval}-{share}"


def cut_file(column: str, interval: int) -> str:
    """Where the runs' shares of a constant interval begin and end."""
    return f"cuts-{column}-{interval}"


def cut_constant(scratch: Scratch, column: str, layout: Layout, interval: int, *, size: int) -> int:
    """Cut a constant interval of a masked column by its draws into shares of about `size` rows; how many they are.

    Draws are uniform, so that equal ranges of them hold about as many rows.
    """
    count = int(layout.positions[interval + 1] - layout.positions[interval])
    parts = max(-(-count // size), 1)
    cut_at = np.array([k * 2**64 // parts for k in range(1, parts)], np.uint64)
    cuts = np.empty((len(layout.edges), parts + 1), np.int64)
    for run, edges in enumerate(layout.edges):
        begin, end = int(edges[interval]), int(edges[interval + 1])
        draws = scratch.glance(draw_file(column, run), np.uint64)[begin:end]
        cuts[run, 0], cuts[run, -1] = begin, end
        cuts[run, 1:-1] = begin + np.searchsorted(draws, cut_at, side="left")
    scratch.put(cut_file(column, interval), cuts)
    return parts


def _cuts(scratch: Scratch, column: str, layout: Layout, interval: int) -> Cuts:
    cuts: Cuts = scratch.take(cut_file(column, interval), np.int64).reshape(len(layout.edges), -1)
    return cuts


def reverse_share(
    scratch: Scratch, column: str, layout: Layout, interval: int, share: int, *, original: Ordered
) -> None:
    """The ranks that reverse mapping gives to a share of a constant interval."""
    cuts = _cuts(scratch, column, layout, interval)
    draws = read_pieces(scratch, draw_file, column, cuts[:, [share, share + 1]])
    _, places = Sorter(draws.size)(draws)
    start = int(layout.positions[interval] + (cuts[:, share] - cuts[:, 0]).sum())
    found = np.empty(draws.size, kind_of_ranks(layout.count))
    found[places] = original.take(scratch, start, start + draws.size)
    scratch.put(share_file(column, interval, share), found)


def reversed_in_run(scratch: Scratch, column: str, layout: Layout, partition: int, *, original: Ordered) -> Ranks:
    """The doubled ranks of the reverse-mapped values of a partition's run."""
    edges = layout.edges[partition]
    ranks = np.empty(int(edges[-1]), kind_of_ranks(layout.count))
    for first, last, span in layout.parts():
        here = slice(int(edges[first]), int(edges[last]))
        if here.stop == here.start:
            continue
        if span is not None:
            scratch.take_into(reversed_file(column, span), ranks[here], start=layout.piece(first, last, partition))
            continue
        constant = original.constant(int(layout.positions[first]), int(layout.positions[last]))
        if constant is not None:
            ranks[here] = constant
            continue
        cuts = _cuts(scratch, column, layout, first)
        for share in range(cuts.shape[1] - 1):
            mine = slice(int(cuts[partition, share]), int(cuts[partition, share + 1]))
            before = int((cuts[:partition, share + 1] - cuts[:partition, share]).sum())
            scratch.take_into(share_file(column, first, share), ranks[mine], start=before)
    return ranks
