"""The compiled loops give what their plain form gives, and what they promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.partitions import loops
from rankveil.partitions.runs import codes_of

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
def test_a_sum_keeps_what_rounding_takes(form: str) -> None:
    total, lost = getattr(loops.sums, form)(np.array([1e16, 1.0, 1.0, -1e16, 0.5]), 1.0)
    assert total + lost == 2.5


@settings(deadline=None)
@given(
    x=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=600).map(lambda each: np.array(each, np.float64))
)
def test_central_sums(x: Any) -> None:
    plain, compiled = (getattr(loops.central_sums, form)(x, 2.0, 0.25, 0.125) for form in FORMS)
    gap = x / 2 - 0.375
    for power, one, other in zip((2, 3, 4), plain, compiled, strict=True):
        size = np.sum(np.abs(gap) ** power)
        assert one == pytest.approx(np.sum(gap**power), rel=1e-12, abs=1e-13 * size)
        assert other == pytest.approx(one, rel=1e-12, abs=1e-13 * size)


ranks = st.lists(st.tuples(st.integers(2, 40), st.integers(2, 40)), min_size=1, max_size=50)


@settings(deadline=None)
@given(pairs=ranks, kind=st.sampled_from([np.uint32, np.uint64]))
def test_distances(pairs: list[tuple[int, int]], kind: Any) -> None:
    x, y = (np.array(each, kind) for each in zip(*pairs, strict=True))
    gaps = [abs(a - b) for a, b in pairs]
    first = [min(max(-(-g * 50 // 20), 1), 11) for g in gaps]  # percent of 20 ranks, rounded up
    for form in FORMS:
        found, total, within = getattr(loops.distances, form)(x, y, 20.0, 10)
        assert found.tolist() == gaps
        assert total == sum(gaps)
        assert within.tolist() == [first.count(p) for p in range(1, 12)]


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_power_sums(form: str, inverse: bool) -> None:
    values = np.random.default_rng(0).uniform(1, 9, 4099)  # three more than a multiple of eight
    found = getattr(loops.power_sums, form)(values, 4, 8.0, inverse)
    share = 8 / values if inverse else values / 8
    assert found == pytest.approx([np.sum(share**k) for k in range(1, 5)], rel=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_change_sums(form: str) -> None:
    x, y = np.array([0.0, 2.0, -4.0, 8.0]), np.array([1.0, 2.0, -3.0, 8.1])
    there, variation, absolute, squared, within = getattr(loops.change_sums, form)(x, y, 2.0, 10.0, 10)
    assert there == 3
    assert variation == pytest.approx(0 + 1 / 4 + 0.1 / 8)
    assert absolute == pytest.approx((1 + 1 + 0.1) / 2)
    assert squared == pytest.approx((1 + 1 + 0.01) / 4)
    assert within.tolist() == [2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0]  # 5, 0, 5 and 0.5 percent of the spread


@pytest.mark.parametrize("form", FORMS)
def test_beside_a_constant_column_only_what_did_not_change_is_caught(form: str) -> None:
    x, y = np.full(3, 7.0), np.array([7.0, 7.0, 7.5])
    within = getattr(loops.change_sums, form)(x, y, 8.0, 0.0, 10)[-1]
    assert within.tolist() == [2] + 9 * [0] + [1]


@settings(deadline=None)
@given(values=st.lists(st.integers(-(2**46), 2**46), min_size=1, max_size=30), centre=st.integers(-5, 5))
def test_digits_make_up_the_number(values: list[int], centre: int) -> None:
    a = np.array(values, np.int64)[:, None]
    for form in FORMS:
        digits = np.empty((3, len(values)))
        getattr(loops.split_digits, form)(a, 0, len(values), float(centre), 3, 65536.0, digits)
        assert np.abs(digits).max() <= 2**15
        made = [int(d[0]) + int(d[1]) * 2**16 + int(d[2]) * 2**32 for d in digits.T]
        assert made == [value - centre for value in values]


@pytest.mark.parametrize("form", FORMS)
def test_missing_values_have_no_code(form: str) -> None:
    values = np.array([1.0, np.nan, -np.nan])
    assert getattr(loops.codes_and_gaps, form)(values, values.view(np.uint64), np.empty(3, np.uint64)) == 2
