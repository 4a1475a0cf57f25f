"""What is asked of all rows of a table in parts: the answers of memory, whatever the parts and the blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from rankveil import moments
from rankveil.blocks import Splits, blocks_of
from rankveil.kernels.exact import LIMBS, add_exactly
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.together import Part, together
from rankveil.rows import HERE, Rows

Array = NDArray[np.float64]
FEW = settings(max_examples=25, deadline=None)
TIED = st.sampled_from([-3.0, -0.5, -0.0, 0.0, 1.0, 2.0, 1e300, -1e300, 5e-324])
ANY = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def cut_columns(draw: st.DrawFn) -> tuple[Array, NDArray[np.uint64], tuple[int, ...], int]:
    """A column, draws of its rows, where it is cut (parts may be empty or of one row), and the size of blocks."""
    n = draw(st.integers(1, 25))
    x = draw(arrays.arrays(np.float64, n, elements=draw(st.sampled_from([TIED, ANY]))))
    draws = draw(arrays.arrays(np.uint64, n, elements=st.integers(0, 2**64 - 1) | st.integers(0, 2)))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=6)))
    return x, draws, (0, *cuts, n), draw(st.integers(1, 30))


def ask(question: Callable[..., Any], bounds: Sequence[int], slices: Sequence[Array], part: Part, rows: Rows) -> Any:
    start, stop = bounds[part.number : part.number + 2]
    return question(rows, *(each[start:stop] for each in slices))


def asked(question: Callable[..., Any], bounds: Sequence[int], *columns: Any, block: int = 5) -> list[Any]:
    """What every part is answered."""
    parts = [Part(number, start) for number, start in enumerate(bounds[:-1])]
    with TemporaryDirectory() as folder:
        run = partial(ask, question, bounds, columns)
        return together(_each, run, parts, scratch=Scratch(folder), block=block)


def _each(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]


def swap(rows: Rows, x: Array, draws: NDArray[np.uint64]) -> Array:
    return rows.swapped(x, draws, lambda count: [np.arange(count)[::-1].copy()])


IN_ROWS: dict[str, Callable[..., Any]] = {
    "average ranks": lambda rows, x, draws: rows.average_ranks(x),
    "swapped": swap,
    "in order of": lambda rows, x, draws: rows.in_order_of(x, -x, draws),
    "permuted": lambda rows, x, draws: rows.permuted(x, draws),
    "places": lambda rows, x, draws: rows.places(draws),
    "standardised": lambda rows, x, draws: rows.standardised(x)[0],
    "whole": lambda rows, x, draws: rows.whole([x], lambda some: ([np.cumsum(np.tanh(some[0]))], None))[0][0],
    "in blocks": lambda rows, x, draws: rows.in_blocks(
        (draws % 3).astype(np.int64), [x], lambda number: lambda some: ([some[0][::-1] / (number + 1)], None), blocks=3
    )[0][0],
}
FOR_ALL: dict[str, Callable[..., Any]] = {
    "count": lambda rows, x, draws: rows.count(x.size),
    "mean": lambda rows, x, draws: rows.mean(x),
    "standard deviation": lambda rows, x, draws: rows.standard_deviation(x),
    "sums": lambda rows, x, draws: rows.sums([lambda: x / 4, lambda: np.abs(x) / 4]),
    "tally": lambda rows, x, draws: rows.tally((draws % 3).astype(np.intp), 3).tolist(),
    "smallest": lambda rows, x, draws: [rows.smallest(x, place) for place in {0, rows.count(x.size) // 2}],
    "sample": lambda rows, x, draws: rows.sample([x], np.arange(0, rows.count(x.size), 2))[0].tolist(),
    "told by blocks": lambda rows, x, draws: rows.in_blocks(
        (draws % 3).astype(np.int64), [x], lambda number: lambda some: ([], (number, some[0].tolist())), blocks=3
    )[1],
}


@pytest.mark.parametrize("name", IN_ROWS)
@given(cut=cut_columns())
@FEW
def test_answers_for_rows(name: str, cut: tuple[Array, NDArray[np.uint64], tuple[int, ...], int]) -> None:
    x, draws, bounds, block = cut
    expected = IN_ROWS[name](HERE, x, draws)
    found = np.concatenate(asked(IN_ROWS[name], bounds, x, draws, block=block))
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", FOR_ALL)
@given(cut=cut_columns())
@FEW
def test_answers_for_all(name: str, cut: tuple[Array, NDArray[np.uint64], tuple[int, ...], int]) -> None:
    x, draws, bounds, block = cut
    expected = FOR_ALL[name](HERE, x, draws)
    assert all(found == expected for found in asked(FOR_ALL[name], bounds, x, draws, block=block))


def test_ties_that_reach_over_several_blocks() -> None:
    x = np.array([2.0] * 11 + [1.0] * 3 + [3.0] + [2.0] * 9)
    found = asked(lambda rows, some: rows.average_ranks(some), (0, 4, 5, 20, 24), x, block=3)
    by_hand = {1.0: 2.0, 2.0: 13.5, 3.0: 24.0}  # places 1 to 3, 4 to 23, 24
    assert np.concatenate(found).tolist() == [by_hand[value] for value in x]


def test_after_some_rows_are_left_questions_are_about_those() -> None:
    x = np.arange(12.0)

    def of_even(rows: Rows, some: Array) -> Any:
        left = rows.with_only(int(np.count_nonzero(some % 2 == 0)))
        kept = some[some % 2 == 0]
        return left.start, left.count(kept.size), left.mean(kept), left.permuted(kept, (100 - kept).astype(np.uint64))

    found = asked(of_even, (0, 1, 1, 7, 8, 12), x)
    assert [each[0] for each in found] == [0, 1, 1, 4, 4]
    assert {each[1:3] for each in found} == {(6, 5.0)}
    assert np.concatenate([each[3] for each in found]).tolist() == [10.0, 8.0, 6.0, 4.0, 2.0, 0.0]


def test_questions_about_several_columns_are_asked_together() -> None:
    lists: list[str] = []

    def each(function: Any, items: Sequence[Any]) -> list[Any]:
        lists.append(function.func.__name__)
        return [function(item) for item in items]

    def of_two(part: Part, rows: Rows) -> list[float]:
        return rows.each(
            lambda x, own: own.mean(x), {"a": np.array([1.0]), "b": np.array([float(part.number)])}, size=2
        )

    with TemporaryDirectory() as folder:
        assert together(each, of_two, [Part(0, 0), Part(1, 1)], scratch=Scratch(folder)) == [[1.0, 0.5]] * 2
    assert lists == ["attempt", "attempt"]


def test_parts_that_ask_different_questions_are_an_error_and_no_wrong_answer() -> None:
    with pytest.raises(RuntimeError, match="do not ask the same questions"):
        asked(lambda rows, x: rows.mean(x) if x.size > 1 else 0.0, (0, 1, 3), np.arange(3.0))


# ---- sums ----

NUMBERS = arrays.arrays(np.float64, st.integers(0, 30), elements=ANY)


@given(x=NUMBERS)
@FEW
def test_the_kernel_of_exact_sums_adds_exactly(x: Array) -> None:
    limbs = np.zeros(LIMBS, np.int64)
    with np.errstate(over="ignore"):
        add_exactly.plain(x.view(np.uint64), limbs)
    plain = sum(int(limb) << (32 * k) for k, limb in enumerate(limbs.tolist()))
    assert Fraction(plain, 2**1074) == sum(map(Fraction, x.tolist()), Fraction(0))
    compiled = np.zeros(LIMBS, np.int64)
    add_exactly.compiled(x.view(np.uint64), compiled)
    assert np.array_equal(limbs, compiled)
    assert moments.exact(x) == plain


@given(x=NUMBERS, seed=st.integers(0, 2**32 - 1))
@FEW
def test_sums_of_parts_are_the_same_in_any_order(x: Array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(x)
    cuts = np.sort(rng.integers(0, x.size + 1, 3))
    parts = [moments.Summary.of(part) for part in np.split(shuffled, cuts)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merged(part)
    whole = moments.Summary.of_all(x)
    assert (merged.count, merged.low, merged.high, merged.near) == (whole.count, whole.low, whole.high, whole.near)
    assert merged.mean == whole.mean
    try:
        expected = math.fsum(x.tolist())
    except OverflowError:
        return
    assert merged.near == expected == moments.total(shuffled)


def test_many_values_are_added_by_the_compiled_loop_as_few_are() -> None:
    x = np.random.default_rng(3).normal(size=20_000) * 10.0 ** np.random.default_rng(4).integers(-300, 300, 20_000)
    assert moments.exact(x) == sum(moments.exact(part) for part in np.array_split(x, 7))
    assert moments.total(x) == math.fsum(x.tolist())


# ---- blocks of similar records ----


@given(
    points=arrays.arrays(
        np.float64, st.tuples(st.integers(3, 60), st.integers(1, 3)), elements=TIED | st.floats(-9, 9)
    ),
    blocks=st.integers(1, 12),
    least=st.integers(1, 3),
    seed=st.integers(0, 99),
)
@FEW
def test_blocks_have_enough_records_and_do_not_depend_on_parts(
    points: Array, blocks: int, least: int, seed: int
) -> None:
    points = np.clip(points, -9, 9)
    block, count = blocks_of(points, blocks=blocks, least=least, rows=HERE)
    sizes = np.bincount(block, minlength=count)
    assert 1 <= count <= blocks
    assert sizes.size == count
    assert sizes.min() >= min(least, len(points))
    cuts = np.sort(np.random.default_rng(seed).integers(0, len(points) + 1, 3)).tolist()
    found = asked(
        lambda rows, some: blocks_of(some, blocks=blocks, least=least, rows=rows), (0, *cuts, len(points)), points
    )
    assert np.array_equal(np.concatenate([own for own, _ in found]), block)
    assert {many for _, many in found} == {count}


def test_splits_by_hand() -> None:
    points = np.array([[0.0, 0.0], [1.0, 5.0], [2.0, 0.0], [30.0, 1.0], [40.0, 0.0]])
    splits = Splits.of(points, blocks=3)
    # the first coordinate is the widest: its median is 2; then of the three on the left the second, at 0
    assert [(split.block, split.coordinate, split.value) for split in splits.made] == [(0, 0, 2.0), (0, 1, 0.0)]
    assert splits.block_of(points).tolist() == [0, 2, 0, 1, 1]
    assert splits.joined(np.array([2, 2, 1]), least=2).tolist() == [0, 1, 0]
