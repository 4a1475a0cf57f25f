"""Ranks, ties, reverse mapping and the nearest released value, against slow references."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rankveil import ranks
from rankveil.ranks import SortedColumn
from rankveil.seeds import Seed

FALSE_ALARM = 1e-6

tied = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=40)
anything = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40)
columns = (tied | anything).map(np.array)


@st.composite
def two_columns(draw: Any) -> tuple[Any, Any]:
    x = draw(columns)
    y = draw(st.lists(st.integers(-3, 3).map(float) | st.floats(-1e6, 1e6), min_size=x.size, max_size=x.size))
    return x, np.array(y)


def words(n: int, seed: int = 0) -> Any:
    return Seed.of(seed).stream("ties").bits(n)


@given(columns)
def test_average_ranks_are_those_of_scipy(x: Any) -> None:
    assert np.array_equal(ranks.average_ranks(x), stats.rankdata(x))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=30))
def test_a_table_is_ranked_column_by_column(rows: list[tuple[int, int]]) -> None:
    table = np.array(rows, dtype=np.float64)
    assert np.array_equal(ranks.average_ranks(table), stats.rankdata(table, axis=0))


def test_a_large_table_is_ranked_in_threads_alike() -> None:
    table = np.random.default_rng(0).integers(0, 5_000, (12_000, 4)).astype(np.float64)
    assert np.array_equal(ranks.average_ranks(table), stats.rankdata(table, axis=0))


@given(columns, st.integers(0, 5))
def test_strict_ranks_are_a_bijection_that_respects_the_values(x: Any, seed: int) -> None:
    strict = ranks.strict_ranks(x, ties=words(x.size, seed))
    assert sorted(strict) == list(range(1, x.size + 1))
    by_rank = x[np.argsort(strict)]
    assert np.all(by_rank[1:] >= by_rank[:-1])
    order = ranks.strict_order(x, ties=words(x.size, seed))
    assert np.array_equal(strict[order], np.arange(1, x.size + 1))
    slow = sorted(range(x.size), key=lambda i: (x[i], words(x.size, seed)[i], i))
    assert order.tolist() == slow


def test_equal_draws_go_by_row() -> None:
    order = ranks.strict_order(np.array([1.0, 0.0, 1.0, 1.0]), ties=np.zeros(4, dtype=np.uint64))
    assert order.tolist() == [1, 0, 2, 3]


def test_minus_zero_is_a_tie_with_zero() -> None:
    x = np.array([0.0, -0.0, 0.0])
    assert ranks.average_ranks(x).tolist() == [2.0, 2.0, 2.0]
    orders = {tuple(ranks.strict_order(x, ties=words(3, seed)).tolist()) for seed in range(60)}
    assert len(orders) == 6


def test_ties_are_broken_uniformly() -> None:
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(6_000):
        drawn = tuple(ranks.strict_ranks(np.array([7.0, 7.0, 1.0, 7.0]), ties=words(4, seed)).tolist())
        counts[drawn] = counts.get(drawn, 0) + 1
    assert len(counts) == 6
    assert all(drawn[2] == 1 for drawn in counts)
    assert stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM


@given(two_columns())
def test_reverse_mapping_has_the_values_of_x_in_the_order_of_y(both: tuple[Any, Any]) -> None:
    x, y = both
    z = ranks.reverse_map(x, y, rng=Seed.of(1).stream("z"))
    assert np.array_equal(np.sort(z), np.sort(x))
    strict = ranks.strict_ranks(y, ties=Seed.of(1).stream("z").bits(y.size))
    assert np.array_equal(z, np.sort(x)[strict - 1])
    # the ranks of Z are those of Y: strictly where x has no ties, and never the other way round
    if np.unique(x).size == x.size:
        assert np.array_equal(ranks.strict_ranks(z, ties=words(z.size)), strict)
    assert np.all(np.diff(z[np.argsort(strict)]) >= 0)


@given(columns)
def test_reverse_mapping_of_the_original_is_the_original(x: Any) -> None:
    assert np.array_equal(ranks.reverse_map(x, x, rng=Seed.of(1).stream("z")), x)


def test_a_table_is_reverse_mapped_column_by_column_with_draws_of_their_own() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12_000, 3)), rng.integers(0, 9, (12_000, 3)).astype(np.float64)
    y[:, 1] = y[:, 0]
    z = ranks.reverse_map(x, y, rng=Seed.of(1).stream("z"))
    stream = Seed.of(1).stream("z")
    for j in range(3):
        assert np.array_equal(z[:, j], ranks.reverse_map(x[:, j], y[:, j], rng=stream))
    assert not np.array_equal(ranks.average_ranks(z[:, 0]), ranks.average_ranks(z[:, 1]))


def test_reverse_mapping_needs_as_many_values() -> None:
    with pytest.raises(ValueError, match="as many"):
        ranks.reverse_map(np.zeros(3), np.zeros(4), rng=Seed.of(1).stream("z"))


def test_rank_changes_by_hand() -> None:
    assert ranks.rank_changes(np.array([1.0, 2.5, 2.5]), np.array([3.0, 1.0, 2.0])).tolist() == [2.0, 1.5, 0.5]


@given(tenths=st.integers(0, 1000), n=st.integers(1, 10_000))
def test_percents_are_rounded_down_exactly(tenths: int, n: int) -> None:
    assert ranks.ranks_within(tenths / 10, n=n) == int(Fraction(tenths, 1000) * n)


quarters = st.integers(-40, 40).map(lambda k: k / 4)


@given(st.lists(quarters, min_size=1, max_size=20), st.lists(quarters, min_size=1, max_size=20))
def test_the_nearest_value_is_the_closest_and_the_smaller_of_two(values: list[float], asked: list[float]) -> None:
    column = SortedColumn(np.array(values))
    found = column.distinct[column.nearest(np.array(asked))]
    assert found.tolist() == [min(set(values), key=lambda value: (abs(value - x), value)) for x in asked]
    average = dict(zip(values, stats.rankdata(values), strict=True))
    assert column.ranks.tolist() == [average[value] for value in sorted(set(values))]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_a_value_that_is_there_is_nearest_to_itself(values: list[float]) -> None:
    column = SortedColumn(np.array(values))
    assert np.array_equal(column.distinct[column.nearest(np.array(values))], np.array(values))


def test_values_a_hairs_breadth_apart_are_told_apart_when_they_are_there() -> None:
    column = SortedColumn(np.array([0.3, 0.1 + 0.2]))
    assert column.nearest(np.array([0.3, 0.1 + 0.2])).tolist() == [0, 1]


@pytest.mark.parametrize("unit", [1e-12, 0.1, 1.0, 1e12, 1e300])
def test_decimals_as_they_are_typed_are_equally_close(unit: float) -> None:
    for k in range(1, 400):
        column = SortedColumn(np.array([(k - 1) * unit, (k + 1) * unit]))
        assert column.nearest(np.array([k * unit])).tolist() == [0], k


@pytest.mark.parametrize("middle", [10.0, 1e12, 4e15, 2.0**52])
def test_the_nearest_whole_number_is_exact(middle: float) -> None:
    near_above, near_below = SortedColumn(middle + np.array([-2.0, 1.0])), SortedColumn(middle + np.array([-1.0, 2.0]))
    assert near_above.nearest(np.array([middle])).tolist() == [1]
    assert near_below.nearest(np.array([middle])).tolist() == [0]
    assert SortedColumn(middle + np.array([-1.0, 1.0])).nearest(np.array([middle])).tolist() == [0]


def test_nearest_at_the_ends_of_the_numbers() -> None:
    column = SortedColumn(np.array([-1.7e308, 1.7e308]))
    assert column.nearest(np.array([-1e308, 0.0, 1.0, 1.79e308, -1.79e308])).tolist() == [0, 0, 0, 1, 0]
    assert column.nearest(np.array([1e300])).tolist() == [1]


halves = st.integers(-4, 60).map(lambda k: k / 2)


@given(
    st.lists(st.integers(0, 6).map(float), min_size=1, max_size=25),
    st.lists(st.tuples(halves, halves.map(abs)), min_size=1, max_size=10),
)
def test_the_window_holds_the_values_whose_rank_is_within_reach(values: list[float], asked: list[Any]) -> None:
    column = SortedColumn(np.array(values))
    rank, reach = np.array(asked).T
    first, last = column.window(rank, reach)
    of = dict(zip(values, stats.rankdata(values), strict=True))
    for k in range(rank.size):
        slow = [value for value in sorted(of) if abs(of[value] - rank[k]) <= reach[k]]
        assert column.distinct[first[k] : max(first[k], last[k])].tolist() == slow


def test_tie_blocks_of_nothing() -> None:
    starts, ends = ranks.tie_blocks(np.empty(0))
    assert starts.size == ends.size == 0
    assert ranks.average_ranks(np.empty(0)).size == 0
    assert ranks.strict_order(np.empty(0), ties=words(0)).size == 0


@pytest.mark.parametrize("different", [50, 10**9])
def test_ranks_of_many_values(different: int) -> None:
    x = np.random.default_rng(different).integers(-different, different, (30_000, 2)) / 7.0
    order, found = ranks.orders_and_ranks(x)
    assert np.array_equal(found, stats.rankdata(x, axis=0))
    assert np.array_equal(ranks.average_ranks(x), found)
    assert np.array_equal(np.take_along_axis(x, order, axis=0), np.sort(x, axis=0))


def test_ranks_of_many_values_with_missing_ones_among_them() -> None:
    x = np.random.default_rng(0).normal(size=30_000)
    x[7] = np.nan
    assert np.array_equal(np.delete(ranks.average_ranks(x), 7), stats.rankdata(np.delete(x, 7)))
