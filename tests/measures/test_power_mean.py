"""Power means of permutation distances: by hand, against the definition, and their curves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankveil as rv
from rankveil.catalogue import Value, get_measure
from rankveil.summaries.movements import Distances, Powers

power_mean, power_mean_loss = get_measure("power_mean"), get_measure("power_mean_loss")

RANKS = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
MOVED = np.array([2.0, 1.0, 5.0, 3.0, 4.0])  # by 1, 1, 2, 1, 1


def moved(x: np.ndarray, y: np.ndarray, *, records: int | None = None) -> Powers:
    found = Distances.of(x, y, records=records or x.size, times=2)
    return Powers.of(found, later=lambda: found.doubled)


def curve(made: Value) -> dict[float, float]:
    return {point["alpha"]: point["value"] for point in made.details["curve"]}


def test_five_records() -> None:
    made = power_mean(moved(RANKS, MOVED))
    assert made.value == pytest.approx(5 / 4.5)  # harmonic
    assert power_mean(moved(RANKS, MOVED), alpha=0.5).value == pytest.approx(((4 + 2**0.5) / 5) ** 2)
    assert power_mean(moved(RANKS, MOVED), alpha=-1).value == pytest.approx(5 / 4.5)  # harmonic
    assert power_mean(moved(RANKS, MOVED), alpha=0).value == pytest.approx(2 ** (1 / 5))  # geometric
    assert power_mean(moved(RANKS, MOVED), alpha=1).value == pytest.approx(6 / 5)
    assert power_mean_loss(moved(RANKS, MOVED)).value == pytest.approx((8 / 5) ** 0.5)  # root mean square
    assert made.details["usual"] == [
        {"alpha": -1.0, "value": pytest.approx(5 / 4.5)},
        {"alpha": 2.0, "value": pytest.approx((8 / 5) ** 0.5)},
    ]
    assert (made.details["smallest"], made.details["largest"], made.details["unmoved"]) == (1.0, 2.0, 0.0)


def test_one_value_that_stays_makes_it_zero_for_alpha_up_to_zero() -> None:
    stays = np.array([1.0, 3.0, 2.0, 5.0, 4.0])
    made = power_mean(moved(RANKS, stays))
    assert made.details["unmoved"] == 0.2
    assert all((value == 0) == (alpha <= 0) for alpha, value in curve(made).items())
    assert power_mean(moved(RANKS, stays), alpha=0).value == 0.0
    assert power_mean(moved(RANKS, RANKS)).value == power_mean_loss(moved(RANKS, RANKS)).value == 0.0


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=30))
def test_curves_rise_between_the_smallest_and_the_largest_and_agree_with_the_formula(doubled: list[int]) -> None:
    distances = np.array(doubled) / 2
    found = curve(power_mean(moved(np.zeros(distances.size), distances, records=2000)))
    for alpha, value in found.items():
        direct = np.exp(np.log(distances).mean()) if alpha == 0 else np.mean(distances**alpha) ** (1 / alpha)
        assert value == pytest.approx(direct, rel=1e-9)
    rising = [found[alpha] for alpha in sorted(found)]
    assert all(low <= high * (1 + 1e-12) for low, high in pairwise(rising))
    assert distances.min() * (1 - 1e-12) <= rising[0]
    assert rising[-1] <= distances.max() * (1 + 1e-12)


def test_distances_of_a_million_records_do_not_overflow() -> None:
    far = np.array([0.5, 1e6, 1e6])
    assert power_mean(moved(np.zeros(3), far, records=1_000_000), alpha=-100).value == pytest.approx(
        0.5 * 3 ** (1 / 100)
    )
    assert power_mean_loss(moved(np.zeros(3), far, records=1_000_000), alpha=100).value == pytest.approx(
        1e6 * (2 / 3) ** (1 / 100)
    )


def test_swapping_over_larger_distances_dominates() -> None:
    table = pa.table({"A": np.random.default_rng(1).normal(size=400)})
    near, far = (
        curve_of("A", rv.audit(table, rv.mask(table, "distance_swap", seed=1, **reach).data, measures=["power_mean"]))
        for reach in ({"d": 1, "p": 2}, {"d": 10, "p": 20})
    )
    assert all(low < high for low, high in zip(near, far, strict=True))
    assert near[0] >= 1
    assert far[0] >= 10


def curve_of(column: str, made: rv.Audit) -> list[float]:
    return [point["value"] for point in made.values["power_mean"].details["curve"][column]]
