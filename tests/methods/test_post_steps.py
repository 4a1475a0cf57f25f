"""The post-steps on five records: reverse_map, rescale, clip, round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankveil.catalogue import get_method
from rankveil.errors import ParameterError
from rankveil.methods.round import decimals_of
from rankveil.seeds import Seed

X = np.array([10.0, 20.0, 30.0, 40.0, 50.0])
reverse_map, rescale, clip, round_ = (get_method(name) for name in ("reverse_map", "rescale", "clip", "round"))


def test_reverse_map_of_five_records() -> None:
    y = np.array([3.3, 9.0, -1.0, 7.0, 5.0])  # ranks 2, 5, 1, 4, 3
    assert reverse_map(y, X, rng=Seed.of(1).stream("a")).tolist() == [20.0, 50.0, 10.0, 40.0, 30.0]


def test_reverse_map_breaks_ties_in_all_ways() -> None:
    y = np.array([3.0, 9.0, 3.0, 7.0, 5.0])
    made = {tuple(reverse_map(y, X, rng=Seed.of(seed).stream("a")).tolist()) for seed in range(40)}
    assert made == {(10.0, 50.0, 20.0, 40.0, 30.0), (20.0, 50.0, 10.0, 40.0, 30.0)}


def test_rescale_of_five_records() -> None:
    made = rescale(np.array([5.0, 4.0, 3.0, 2.0, 1.0]), X)
    assert np.allclose(made.values, [50.0, 40.0, 30.0, 20.0, 10.0], rtol=1e-14)
    assert made.notes == ()


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=5, max_size=5).filter(lambda y: np.ptp(y) > 1e-3),
    st.sampled_from([1e-12, 1.0, 1e12]),
)
def test_rescale_gives_the_mean_and_the_variance_of_the_original(y: list[float], unit: float) -> None:
    made = rescale(np.array(y), unit * X).values
    assert np.mean(made) == pytest.approx(30 * unit, rel=1e-9)
    assert np.var(made) == pytest.approx(200 * unit**2, rel=1e-6)


def test_rescale_of_a_constant() -> None:
    made = rescale(np.full(5, 0.1), X)
    assert made.values.tolist() == [30.0] * 5
    assert made.notes == ("the masked column is constant: only its mean was restored",)
    assert rescale(X, np.full(5, 0.1)).values.tolist() == [0.1] * 5
    assert rescale(np.full(5, 0.2), np.full(5, 0.1)).notes == ()


def test_clip_of_five_records() -> None:
    y = np.array([5.0, 20.0, 55.0, 40.0, 10.0])
    made = clip(y, X)
    assert made.values.tolist() == [10.0, 20.0, 50.0, 40.0, 10.0]
    assert made.counts == {"clipped": 2}
    assert clip(y, X, lower=0, upper=20).values.tolist() == [5.0, 20.0, 20.0, 20.0, 10.0]
    assert clip(y, X, upper=100).values.tolist() == [10.0, 20.0, 55.0, 40.0, 10.0]
    with pytest.raises(ParameterError, match=r"lower \(60\) is above upper \(none, the original's own\)"):
        clip(y, X, lower=60)


def test_round_of_five_records() -> None:
    y = np.array([1.26, 2.5, -0.04, 149.0, 3.149])
    assert round_(y, X).tolist() == [1.0, 2.0, 0.0, 149.0, 3.0]  # whole numbers, halves to the even one
    assert round_(y, np.array([1.0, 2.5, 3.0, 4.0, 5.0])).tolist() == [1.3, 2.5, 0.0, 149.0, 3.1]
    assert round_(y, X, decimals=2).tolist() == [1.26, 2.5, -0.04, 149.0, 3.15]
    assert round_(y, X, decimals=-2).tolist() == [0.0, 0.0, 0.0, 100.0, 0.0]
    assert not np.signbit(round_(y, X)[2]), "no minus zero"


@pytest.mark.parametrize(
    ("x", "decimals"),
    [
        ([1.0, 2.0], 0),
        ([1.0, 2.25], 2),
        ([1e300, 2.0], 0),
        ([1e300, 0.125], 3),
        ([1e300, 1e-12], 12),
        ([0.1 + 0.2], 12),
        ([123456789012.25, 0.5], 2),
    ],
)
def test_the_decimals_of_the_original(x: list[float], decimals: int) -> None:
    assert decimals_of(np.array(x)) == decimals


@given(st.floats(-1e300, 1e300), st.integers(0, 12))
def test_rounding_moves_a_value_by_half_a_unit_at_most_and_never_overflows(y: float, decimals: int) -> None:
    made = float(round_(np.array([y]), X, decimals=decimals)[0])
    assert abs(made - y) <= 0.5 * 10.0**-decimals * (1 + 1e-9) + np.spacing(abs(y))
    if abs(y) >= 2.0**53 / 10.0**decimals:
        assert made == y
