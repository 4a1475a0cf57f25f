"""Average ranks over all partitions of a column, span by span, and back to the rows of each partition.

A span's file holds the doubled ranks of its codes, run after run, so that each partition finds its own in one piece.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rankveil.kernels.sorting import spread_ranks
from rankveil.partitions.layout import Cuts, Layout
from rankveil.partitions.runs import code_file, row_file, settled_file
from rankveil.partitions.scratch import Scratch
from rankveil.sorting import Codes, Sorter

Ranks = NDArray[np.unsignedinteger]


def kind_of_ranks(records: int) -> type[np.uint32] | type[np.uint64]:
    """The type that holds doubled ranks of so many records."""
    return np.uint32 if records < 2**31 else np.uint64


def span_file(column: str, span: int) -> str:
    """The doubled ranks of a span, run after run."""
    return f"span-{column}-{span}"


def ordered_file(column: str, span: int) -> str:
    """The doubled ranks of a span in the order of its values, kept where there are ties."""
    return f"ordered-{column}-{span}"


def rank_file(column: str, partition: int) -> str:
    """The doubled ranks of a partition, in the order of its rows."""
    return f"ranks-{column}-{partition}"


def rank_span(scratch: Scratch, column: str, layout: Layout, span: int, *, ordered: bool = False) -> bool:
    """Rank the codes of a span; whether there are ties.

    `ordered` keeps the ranks in the order of the values too, for reverse mapping.
    """
    first, last = layout.spans[span]
    within = read_pieces(scratch, code_file, column, layout.edges[:, [first, last]])
    ranks = np.empty(within.size, kind_of_ranks(layout.count))
    in_order = np.empty_like(ranks)
    sort = Sorter(layout.largest(first, last))
    different = 0
    for k in range(first, last):
        where = places_of(layout, k, first, last)
        below = int(layout.positions[k])
        codes, places = sort.gathered([within[each] for each in where])
        found = np.empty_like(ranks, shape=codes.size)
        different += spread_ranks(codes, places, below, found)
        scatter(found, ranks, where)
        if ordered:
            begin = below - int(layout.positions[first])
            in_order[begin : begin + codes.size] = found[places]
    scratch.put(span_file(column, span), ranks)
    ties = different < within.size
    if ordered and ties:
        scratch.put(ordered_file(column, span), in_order)
    return ties


def read_pieces(scratch: Scratch, file: Callable[[str, int], str], column: str, ends: Cuts) -> Codes:
    """What the files of the runs hold from place to place, run after run."""
    starts = np.concatenate(([0], np.cumsum(ends[:, 1] - ends[:, 0]))).tolist()
    found = np.empty(starts[-1], np.uint64)
    for run, begin in enumerate(ends[:, 0].tolist()):
        if starts[run + 1] > starts[run]:
            scratch.take_into(file(column, run), found[starts[run] : starts[run + 1]], start=begin)
    return found


def places_of(layout: Layout, k: int, first: int, last: int) -> list[slice]:
    """Where interval k lies in what is read of the intervals from first to before last."""
    starts = layout.pieces(first, last)[:-1] - layout.edges[:, first]
    begins, ends = starts + layout.edges[:, k], starts + layout.edges[:, k + 1]
    return [slice(int(begin), int(end)) for begin, end in zip(begins, ends, strict=True) if begin < end]


def scatter(found: Ranks, ranks: Ranks, where: list[slice]) -> None:
    """Put what was gathered back to its places."""
    begin = 0
    for each in where:
        end = begin + each.stop - each.start
        ranks[each] = found[begin:end]
        begin = end


def ranks_in_run(scratch: Scratch, column: str, layout: Layout, partition: int) -> Ranks:
    """The doubled ranks of a partition's run, from its smallest value to its largest."""
    edges = layout.edges[partition]
    ranks = np.empty(int(edges[-1]), kind_of_ranks(layout.count))
    for first, last, span in layout.parts():
        here = slice(int(edges[first]), int(edges[last]))
        if span is None:
            ranks[here] = layout.doubled_rank(first)
        elif here.stop > here.start:
            scratch.take_into(span_file(column, span), ranks[here], start=layout.piece(first, last, partition))
    return ranks


def by_row(scratch: Scratch, column: str, partition: int, in_run: Ranks, *, settled: bool = False) -> Ranks:
    """Ranks of a run at the rows of its partition; `settled` when its ties stand in the order of their draws."""
    ranks = np.empty_like(in_run)
    ranks[scratch.take((settled_file if settled else row_file)(column, partition), np.uint32)] = in_run
    return ranks
