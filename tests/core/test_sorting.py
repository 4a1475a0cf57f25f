"""Sorting by digits is sorting, and numpy gives the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.kernels import sorting as loops
from rankveil.sorting import Sorter, codes_of, in_order, order_of, quickly

FORMS = ("plain", "compiled")

words = st.lists(
    st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 5), st.integers(2**63, 2**63 + 9)), max_size=80
).map(lambda each: np.array(each, np.uint64))


def sort_places(form: str, codes: Any) -> tuple[Any, Any]:
    ordered, words, spare = (np.empty(codes.size, np.uint64) for _ in range(3))
    places = np.empty(codes.size, np.uint32)
    getattr(loops.sort_places, form)(codes, ordered, places, words, spare)
    return ordered, places


@pytest.mark.parametrize("form", FORMS)
@settings(deadline=None)  # the first call compiles
@given(codes=words)
def test_codes_are_sorted_stably(form: str, codes: Any) -> None:
    ordered, places = sort_places(form, codes)
    order = np.argsort(codes, kind="stable")
    assert np.array_equal(places, order)
    assert np.array_equal(ordered, codes[order])


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(size=20_000),
        np.random.default_rng(1).integers(0, 50, 20_000).astype(float),
        # nearly everything has the same upper half: the second round
        np.append(1e300, 1 + 1e-9 * np.random.default_rng(2).random(19_999)),
        # some thousand values close together, and small groups elsewhere
        np.append(np.zeros(5000), 1.7e9 + np.random.default_rng(3).random(15_000)),
        np.full(20_000, -3.5),
    ],
    ids=["normal", "ties", "clustered", "zeros and times", "constant"],
)
def test_many_codes_are_sorted_stably(values: Any) -> None:
    codes = codes_of(values)
    ordered, places = sort_places("compiled", codes)
    order = np.argsort(codes, kind="stable")
    assert np.array_equal(places, order)
    assert np.array_equal(ordered, codes[order])


@pytest.mark.parametrize("form", FORMS)
def test_ranks_of_ties_are_averages_doubled(form: str) -> None:
    codes = np.array([4, 4, 7, 9, 9, 9], np.uint64)
    places = np.array([5, 0, 1, 4, 2, 3], np.uint32)
    ranks = np.zeros(6, np.uint32)
    assert getattr(loops.spread_ranks, form)(codes, places, 10, ranks) == 3
    # ten smaller ones elsewhere: ranks 11.5, 13 and 15
    assert ranks.tolist() == [23, 26, 30, 30, 30, 23]


@pytest.mark.parametrize("form", FORMS)
def test_missing_values_have_no_code(form: str) -> None:
    values = np.array([1.0, np.nan, -np.nan])
    assert getattr(loops.codes_and_gaps, form)(values, values.view(np.uint64), np.empty(3, np.uint64)) == 2


@pytest.mark.parametrize("n", [0, 1, 4_999, 5_000, 30_000])
@pytest.mark.parametrize("different", [3, 10**9])
def test_the_order_of_few_and_of_many_values(n: int, different: int) -> None:
    x = np.random.default_rng(n).integers(-different, different, n) / 7
    order = order_of(x)
    assert order.dtype == np.intp
    assert np.array_equal(np.sort(order), np.arange(n))
    assert np.array_equal(x[order], np.sort(x))
    assert np.array_equal(in_order(x), np.sort(x))
    assert (quickly(x) is None) == (n < 20_000)


def test_missing_values_come_last() -> None:
    x = np.random.default_rng(0).normal(size=30_000)
    x[[5, 29_000]] = np.nan
    assert np.array_equal(x[order_of(x)], np.sort(x), equal_nan=True)
    assert np.array_equal(in_order(x), np.sort(x), equal_nan=True)


def test_words_are_sorted_as_they_are() -> None:
    words = np.random.default_rng(1).integers(0, 2**64, 30_000, dtype=np.uint64)
    assert np.array_equal(words[order_of(words)], np.sort(words))
    turned = words[::-1]  # not one after the other in memory
    assert np.array_equal(turned[order_of(turned)], np.sort(words))


def test_a_sorter_sorts_again_and_again() -> None:
    sort = Sorter(6_000)
    rng = np.random.default_rng(2)
    for n in (6_000, 10, 0, 5_500):
        codes = rng.integers(0, 50, n, dtype=np.uint64)
        ordered, places = sort(codes)
        assert np.array_equal(places, np.argsort(codes, kind="stable"))
        assert np.array_equal(ordered, np.sort(codes))
    with pytest.raises(ValueError, match="2\\^32"):
        Sorter(2**32)
