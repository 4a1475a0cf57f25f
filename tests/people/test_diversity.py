"""The diversity of the values around a rank, against sums over the window itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rankveil.people.diversity import CRITERIA, Criterion, Diversity
from rankveil.ranks import SortedColumn, average_ranks

Array = NDArray[np.float64]


def exact_variance(values: Array) -> float:
    """In fractions, so that nothing is lost."""
    exact = [Fraction(value) for value in values.tolist()]
    mean = sum(exact, Fraction(0)) / len(exact)
    return float(sum(((value - mean) ** 2 for value in exact), Fraction(0)) / len(exact))


def by_hand(criterion: Criterion, y: Array, rank: float, reach: float) -> float:
    window = y[np.abs(average_ranks(y) - rank) <= reach]
    if criterion == "variance":
        return exact_variance(window)
    different, counts = np.unique(window, return_counts=True)
    if criterion == "distinct":
        return float(different.size)
    if criterion == "entropy":
        shares = counts / counts.sum()
        return float(-(shares * np.log(shares)).sum())
    every = np.unique(y)
    if every.size == 1:
        return 0.0
    here = np.array([np.sum(window == value) for value in every]) / window.size
    there = np.array([np.sum(y == value) for value in every]) / y.size
    return float(np.abs(np.cumsum(here - there)).sum() / (every.size - 1))


def check(y: Array, criterion: Criterion, rows: list[int], reaches: list[float]) -> None:
    column = SortedColumn(y)
    ranks = average_ranks(y)[rows]
    reach = np.array(reaches)
    found = Diversity(column).of(criterion, ranks, reach)
    expected = [by_hand(criterion, y, rank, each) for rank, each in zip(ranks, reach, strict=True)]
    assert found.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12 if criterion != "variance" else 0.0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.0, 10.0]) | st.floats(-1e6, 1e6, width=32), min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(0, 29), st.integers(0, 80)), min_size=1, max_size=8),
)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_every_criterion_by_hand(criterion: Criterion, values: list[float], windows: list[tuple[int, int]]) -> None:
    y = np.array(values)
    check(y, criterion, [row % y.size for row, _ in windows], [reach / 2 for _, reach in windows])


def columns() -> dict[str, Array]:
    rng = np.random.default_rng(1)
    return {
        "1e9 and spread 1e-6": 1e9 + 1e-6 * rng.normal(size=1500),
        "and one far away": np.concatenate(([0.0], 1e9 + 1e-6 * rng.normal(size=1500))),
        "far below": np.concatenate(([-1e15], 1e-3 * rng.normal(size=1500))),
        "two clusters": np.concatenate((1e-6 * rng.normal(size=750), 1e9 + 1e-6 * rng.normal(size=750))),
        "ties": rng.integers(0, 40, 1500).astype(float),
        "tiny": 1e-200 * rng.normal(size=1500),
    }


@pytest.mark.parametrize("name", list(columns()))
@pytest.mark.parametrize("reach", [0.0, 3.0, 255.5, 300.0, 700.0, 5000.0])
def test_variance_keeps_its_digits(name: str, reach: float) -> None:
    y = columns()[name]
    check(y, "variance", [0, 1, 500, 749, 751, 1499], [reach] * 6)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_long_windows_and_windows_beyond_the_ends(criterion: Criterion) -> None:
    y = np.random.default_rng(2).integers(0, 300, 2000).astype(float)
    order = np.argsort(y)
    rows = [int(order[0]), int(order[-1]), int(order[1000]), int(order[3])]
    for reach in (0.0, 600.0, 1000.0, 1e9):
        check(y, criterion, rows, [reach] * 4)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_constant_columns_and_single_values(criterion: Criterion) -> None:
    for y in (np.array([7.0]), np.full(5, 0.1)):
        found = Diversity(SortedColumn(y)).of(criterion, average_ranks(y)[:1], np.array([2.0]))
        assert found.tolist() == [1.0 if criterion == "distinct" else 0.0]


def test_a_variance_too_large_for_a_number_is_infinite_not_an_error() -> None:
    y = np.array([-1e300, 1e300])
    assert Diversity(SortedColumn(y)).of("variance", np.array([1.0]), np.array([1.0])).tolist() == [np.inf]


def test_worked_by_hand_on_five_records() -> None:
    column = Diversity(SortedColumn(np.array([10.0, 20.0, 20.0, 40.0, 50.0])))
    rank, reach = np.array([2.5]), np.array([1.5])  # ranks 1, 2.5, 2.5 and 4: the values 10, 20, 20, 40
    assert column.of("variance", rank, reach).tolist() == pytest.approx([118.75])
    assert column.of("distinct", rank, reach).tolist() == [3.0]
    assert column.of("entropy", rank, reach).tolist() == pytest.approx([1.5 * np.log(2)])
    # shares up to 10, 20, 40, 50: 1/4, 3/4, 1, 1 in the window, 1/5, 3/5, 4/5, 1 in the column
    assert column.of("closeness", rank, reach).tolist() == pytest.approx([(0.05 + 0.15 + 0.2) / 3])
