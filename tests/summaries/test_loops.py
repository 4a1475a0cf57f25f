"""The compiled loops of summaries give what their plain form gives, and what they promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.kernels import summing as loops

FORMS = ("plain", "compiled")

ranks = st.lists(st.tuples(st.integers(2, 40), st.integers(2, 40)), min_size=1, max_size=50)


@settings(deadline=None)
@given(pairs=ranks, kind=st.sampled_from([np.uint32, np.uint64]))
def test_distances(pairs: list[tuple[int, int]], kind: Any) -> None:
    x, y = (np.array(each, kind) for each in zip(*pairs, strict=True))
    gaps = [abs(a - b) for a, b in pairs]
    first = [min(max(-(-g * 50 // 20), 1), 11) for g in gaps]  # percent of 20 ranks, rounded up
    for form in FORMS:
        found, total, within = getattr(loops.distances, form)(x, y, 1.0, 20.0, 10)
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
@given(values=st.lists(st.integers(-(2**45), 2**45), min_size=1, max_size=30), centre=st.integers(-5, 5))
def test_digits_make_up_the_number(values: list[int], centre: int) -> None:
    a = np.array(values, np.int64)[:, None]
    for form in FORMS:
        digits = np.empty((3, len(values)))
        getattr(loops.split_digits, form)(a, 2.0, float(centre), 3, 65536.0, digits)
        assert np.abs(digits).max() <= 2**15
        made = [int(d[0]) + int(d[1]) * 2**16 + int(d[2]) * 2**32 for d in digits.T]
        assert made == [2 * value - centre for value in values]


@pytest.mark.parametrize("form", FORMS)
def test_changes_of_numbers_near_the_largest(form: str) -> None:
    x, y = np.array([1.5e308, 1.0]), np.array([-1.5e308, 1.0])
    found = getattr(loops.change_sums, form)(x, y, 2.0**1023, 1.0, 10)
    assert found[2] == pytest.approx(2 * (1.5e308 / 2**1023))
    assert found[4].tolist() == [1] + 9 * [0] + [1]
