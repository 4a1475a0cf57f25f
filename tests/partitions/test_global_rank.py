"""Ranks over all partitions are the average ranks of the whole column, however it is cut and whatever its ties."""

from __future__ import annotations

import os
import tempfile
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.partitions.layout import Layout, Sizes, cut_runs, splitters
from rankveil.partitions.ranking import by_row, kind_of_ranks, rank_file, rank_span, ranks_in_run
from rankveil.partitions.runs import row_file, settle_run, settled, settled_file, write_run
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Job, ranked, remove_ranks
from rankveil.ranks import average_ranks
from rankveil.seeds import Seed
from rankveil.sorting import Sorter, codes_of, values_of
from rankveil.views import Side, View

TINY = Sizes(interval=4, span=11)

numbers = st.one_of(
    st.integers(-3, 3).map(float), st.floats(allow_nan=False, width=64), st.sampled_from([0.0, -0.0, 5e-324, 1e308])
)


def ranks_of(values: Any, cuts: list[int], sizes: Sizes, folder: str) -> tuple[Any, Layout]:
    """Doubled ranks, partition by partition."""
    scratch = Scratch(folder)
    parts = np.split(values, sorted(cuts))
    for p, part in enumerate(parts):
        write_run(scratch, "x0", p, part, every=sizes.every(len(parts)), sort=Sorter(part.size))
    cut = cut_runs(scratch, "x0", [part.size for part in parts], sizes=sizes)
    cut.save(scratch, "x0")
    cut = Layout.load(scratch, "x0")
    for span in range(len(cut.spans)):
        rank_span(scratch, "x0", cut, span)
    return np.concatenate(
        [by_row(scratch, "x0", p, ranks_in_run(scratch, "x0", cut, p)) for p in range(len(parts))]
    ), cut


@settings(deadline=None)
@given(values=st.lists(numbers, min_size=1, max_size=120), data=st.data())
def test_ranks_are_those_of_the_whole_column(values: list[float], data: Any) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(values)), max_size=6))
    sizes = Sizes(interval=data.draw(st.integers(2, 40)), span=data.draw(st.integers(2, 60)))
    x = np.array(values)
    with tempfile.TemporaryDirectory() as folder:
        found, cut = ranks_of(x, cuts, sizes, folder)
    assert np.array_equal(found, 2 * average_ranks(x))
    assert cut.count == len(values)


@pytest.mark.parametrize("seed", range(3))
def test_many_ranks_are_those_of_the_whole_column(seed: int, tmp_path: Any) -> None:
    rng = np.random.default_rng(seed)
    x = np.concatenate((rng.normal(size=30_000), np.zeros(20_000), np.round(rng.normal(size=10_000), 1)))
    rng.shuffle(x)
    found, cut = ranks_of(x, [7_000, 7_000, 31_000], Sizes(interval=6_000, span=16_000), str(tmp_path))
    assert found.dtype == np.uint32
    assert np.array_equal(found, 2 * average_ranks(x))
    assert cut.has_constants


def test_a_value_that_fills_the_range_is_never_read(tmp_path: Any) -> None:
    x = np.concatenate((np.full(900, 3.0), np.arange(10.0)))
    found, cut = ranks_of(x, [100, 500], Sizes(interval=16, span=32), str(tmp_path))
    assert np.array_equal(found, 2 * average_ranks(x))
    in_spans = sum(int(cut.positions[last] - cut.positions[first]) for first, last in cut.spans)
    assert in_spans == 9


@settings(deadline=None)
@given(
    parts=st.lists(st.lists(st.integers(0, 30), max_size=60).map(sorted), min_size=1, max_size=6),
    sizes=st.builds(Sizes, interval=st.integers(2, 20), span=st.integers(2, 30)),
)
def test_no_interval_holds_much_more_than_it_should(parts: list[list[int]], sizes: Sizes) -> None:
    every = sizes.every(len(parts))
    samples = [np.array(part, np.uint64)[every - 1 :: every] for part in parts]
    cut_at = splitters(samples, every=every, interval=sizes.interval)
    everything = np.sort(np.concatenate([np.array(part, np.uint64) for part in parts]))
    ends = np.concatenate(([-1], cut_at.astype(np.int64), [99]))
    between = [np.count_nonzero((everything > a) & (everything < b)) for a, b in pairwise(ends)]
    # what is chosen stands for `step` samples, and each run may hide one less than `every` codes at either end
    step = max(sizes.interval // every, 1)
    assert max(between) <= step * every + len(parts) * every


def test_spans_hold_no_more_than_asked_unless_an_interval_does(tmp_path: Any) -> None:
    x = np.random.default_rng(0).normal(size=5_000)
    _, cut = ranks_of(x, [1_000, 3_000], Sizes(interval=100, span=450), str(tmp_path))
    counts = [int(cut.positions[last] - cut.positions[first]) for first, last in cut.spans]
    assert sum(counts) == 5_000
    assert max(counts) <= 450
    assert len(counts) < 20  # and neighbours are joined


@given(values=st.lists(st.floats(allow_nan=False), min_size=2, max_size=40))
def test_codes_compare_as_values_do(values: list[float]) -> None:
    x = np.array(values)
    codes = codes_of(x)
    assert np.array_equal(codes[:, None] < codes, x[:, None] < x)
    assert np.array_equal(codes[:, None] == codes, x[:, None] == x)
    assert np.array_equal(values_of(codes), x)


def test_a_missing_value_has_no_rank() -> None:
    with pytest.raises(ValueError, match="missing"):
        codes_of(np.array([1.0, np.nan]))


def test_the_type_of_ranks_holds_twice_the_number_of_records() -> None:
    assert kind_of_ranks(2**31 - 1) is np.uint32
    assert kind_of_ranks(2**31) is np.uint64


def test_ties_are_settled_by_draw_then_place_even_when_draws_agree() -> None:
    groups = np.array([1, 0, 1, 1, 0], np.uint32)
    draws = np.array([7, 2**64 - 1, 7, 6, 3], np.uint64)  # below the bits that fit beside the group
    order = settled(groups, draws, then=np.array([9, 8, 2, 1, 0]), sort=Sorter(5))
    assert order.tolist() == [4, 1, 3, 2, 0]


def test_settling_a_run_leaves_it_as_it_is_and_can_be_done_twice(tmp_path: Any) -> None:
    scratch = Scratch(str(tmp_path))
    values = np.random.default_rng(0).integers(0, 3, 50).astype(float)
    write_run(scratch, "y0", 0, values, every=4, sort=Sorter(50))
    before = scratch.take(row_file("y0", 0), np.uint32)
    draws = Seed.of(5).stream("ties", "A").bits(70)[20:]
    for _ in range(2):
        settle_run(scratch, "y0", 0, ties=Seed.of(5).stream("ties", "A").at(start=20))
        assert np.array_equal(scratch.take(settled_file("y0", 0), np.uint32), np.lexsort((draws, values)))
        assert np.array_equal(scratch.take(row_file("y0", 0), np.uint32), before)


@st.composite
def tables(draw: Any) -> tuple[Any, Any, list[int]]:
    """An original and a masked table with ties, and where they are cut."""
    n = draw(st.integers(1, 60))
    kinds = st.sampled_from(["tied", "distinct", "constant", "mixed"])
    made = []
    for kind in (draw(kinds), draw(kinds)):
        rng = np.random.default_rng(draw(st.integers(0, 10_000)))
        column = {
            "tied": lambda rng=rng: rng.integers(0, 4, n).astype(float),
            "distinct": lambda rng=rng: rng.permutation(n).astype(float),
            "constant": lambda: np.full(n, 2.5),
            "mixed": lambda rng=rng: np.where(rng.random(n) < 0.5, 0.0, rng.normal(size=n)),
        }[kind]()
        made.append(column[:, None])
    return made[0], made[1], draw(st.lists(st.integers(1, n), max_size=4))


def view(x: Any, y: Any, names: tuple[str, ...], seed: Seed) -> View:
    rows = np.arange(len(x))
    return View(Side(x), Side(y), names=names, original=rows, masked=rows, paired=True, seed=seed)


def taken(job: Job, column: str) -> Any:
    """The doubled ranks of a column in all partitions."""
    kind = kind_of_ranks(job.records)
    return np.concatenate([job.scratch.take(rank_file(column, p), kind) for p in job.partitions])


@settings(deadline=None, max_examples=40)
@given(table=tables(), sizes=st.sampled_from([TINY, Sizes(interval=2, span=3), Sizes(interval=20, span=50)]))
def test_reverse_mapped_ranks_are_those_of_the_view(table: Any, sizes: Sizes, partitioned: Any, each: Any) -> None:
    x, y, cuts = table
    with partitioned(x, y, cuts=cuts, sizes=sizes, seed=3) as job:
        (column,) = ranked(job, each)
        whole = view(x, y, job.names, job.seed)
        assert np.array_equal(taken(job, "x0"), 2 * whole.rank_x[:, 0])
        assert np.array_equal(taken(job, "y0"), 2 * whole.rank_y[:, 0])
        assert np.array_equal(taken(job, "z0" if column.reversed else "y0"), 2 * whole.rank_z[:, 0])


def test_many_reverse_mapped_ranks_are_those_of_the_view(partitioned: Any, each: Any) -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack((rng.normal(size=40_000), np.round(rng.normal(size=40_000), 1), rng.normal(size=40_000)))
    y = np.column_stack((np.round(x[:, 0], 2), np.round(x[:, 1]), x[:, 2] + rng.normal(size=40_000)))
    y[:15_000, 1] = 0.0
    with partitioned(x, y, cuts=[9_000, 26_000], sizes=Sizes(interval=6_000, span=14_000)) as job:
        columns = ranked(job, each)
        whole = view(x, y, job.names, job.seed)
        assert [column.reversed for column in columns] == [True, True, False]
        for j, column in enumerate(columns):
            assert np.array_equal(taken(job, f"z{j}" if column.reversed else f"y{j}"), 2 * whole.rank_z[:, j])


def test_only_ranks_stay_in_the_scratch_folder(partitioned: Any, each: Any) -> None:
    x = np.random.default_rng(0).integers(0, 9, (60, 3)).astype(float)
    with partitioned(x, np.flip(x, axis=0).copy(), cuts=[10, 30], sizes=TINY) as job:
        ranked(job, each)
        assert {name.partition("-")[0] for name in os.listdir(job.scratch.folder)} == {"ranks"}
        remove_ranks(job, each)
        assert os.listdir(job.scratch.folder) == []
