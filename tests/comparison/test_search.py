"""Searches on curves that are known: few evaluations, the right strength, honest ends."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.catalogue import get_method
from rankveil.comparison import search
from rankveil.comparison.search import Found, Point, Scale, Search


def run(searching: Search, curve: Callable[[float], float | None], *, error: float = 0.0) -> tuple[Found, list[float]]:
    """A search to its end, and every strength that it asked for."""
    asked: list[float] = []
    try:
        wanted = next(searching)
        while True:
            asked += wanted
            values = [curve(strength) for strength in wanted]
            wanted = searching.send(
                [None if v is None else Point(s, v, error) for s, v in zip(wanted, values, strict=True)]
            )
    except StopIteration as end:
        return end.value, asked


WIDE = Scale(weak=0.001, strong=1000.0, start=1.0)


@pytest.mark.parametrize("curve", [lambda s: math.atan(s), lambda s: s / (1 + s), lambda s: 1 - math.exp(-3 * s)])
@pytest.mark.parametrize("target", [0.1, 0.45, 0.8])
def test_it_finds_the_strength_with_few_evaluations(curve: Callable[[float], float], target: float) -> None:
    found, asked = run(search.for_value(target, WIDE), curve)
    assert found.reached
    assert found.best is not None
    assert found.best.value == pytest.approx(target, rel=0.002)
    assert len(asked) == len(set(asked)) == len(found.points) <= 16
    assert [point.strength for point in found.points] == sorted(asked)


@given(
    steep=st.floats(0.2, 5.0),
    centre=st.floats(-3.0, 3.0),
    target=st.floats(0.05, 0.95),
    falling=st.booleans(),
)
@settings(deadline=None, max_examples=80)
def test_any_monotone_curve_is_met_whichever_way_it_goes(
    steep: float, centre: float, target: float, falling: bool
) -> None:
    def curve(strength: float) -> float:
        risen = 1 / (1 + math.exp(-steep * (math.log(strength) - centre)))
        return 1 - risen if falling else risen

    found, asked = run(search.for_value(target, WIDE), curve)
    assert len(asked) <= 40
    low, high = sorted((curve(WIDE.weak), curve(WIDE.strong)))
    assert found.reached == (low <= target <= high) or abs(found.best.value - target) <= 0.002  # type: ignore[union-attr]
    if low <= target <= high:
        assert abs(found.best.value - target) <= 0.002 * max(target, 0.05) + 0.002 * steep  # type: ignore[union-attr]


def test_whole_strengths_take_the_nearer_neighbour() -> None:
    scale = Scale(weak=1.0, strong=1000.0, start=5.0, whole=True)
    found, asked = run(search.for_value(0.31, scale), lambda k: k / 100)
    assert found.best == Point(31.0, 0.31)
    found, asked = run(search.for_value(0.316, scale), lambda k: k / 100)
    assert found.best == Point(32.0, 0.32)
    assert all(strength == int(strength) for strength in asked)
    assert len(asked) <= 16


def test_what_cannot_be_reached_says_what_can() -> None:
    found, _ = run(search.for_value(2.0, WIDE), lambda s: s / (1 + s))
    assert not found.reached
    assert found.best is not None
    assert found.best.strength == 1000.0
    assert found.attainable == (pytest.approx(0.001, rel=0.01), pytest.approx(0.999, rel=0.01))


def test_of_two_crossings_the_weaker_strength_is_taken() -> None:
    found, _ = run(search.for_value(0.5, WIDE), lambda s: math.exp(-(math.log(s) ** 2)))
    assert found.best is not None
    assert found.best.strength == pytest.approx(math.exp(-math.sqrt(math.log(2))), rel=0.01)


def test_a_peak_between_the_ends_is_looked_for() -> None:
    def hump(s: float) -> float:
        return math.exp(-((math.log(s) - math.log(30)) ** 2) / 4)

    found, _ = run(search.for_value(0.8, WIDE), hump)
    assert found.reached


def test_a_flat_curve_gives_the_strengths_that_meet_the_target() -> None:
    def curve(s: float) -> float:
        return 0.45 + 0.01 * math.log(s)

    found, _ = run(search.for_value(0.45, WIDE), curve, error=0.02)
    assert found.meets is not None
    assert found.meets[0] == pytest.approx(math.exp(-2), rel=0.02)
    assert found.meets[1] == pytest.approx(math.exp(2), rel=0.02)


def test_strengths_that_cannot_be_evaluated_are_left_out() -> None:
    found, _ = run(search.for_value(0.5, WIDE), lambda s: None if s > 100 else s / (1 + s))
    assert found.best is None or not found.reached or found.best.strength <= 100
    nothing, _ = run(search.for_value(0.5, WIDE), lambda s: None)
    assert nothing == Found(None, False, ())
    assert nothing.attainable is None


def test_the_least_strength_without_claims() -> None:
    found, asked = run(search.for_least(WIDE), lambda s: max(0.0, math.floor(100 - 20 * s)))
    assert found.reached
    assert found.best is not None
    assert found.best.value == 0
    assert found.best.strength == pytest.approx(4.95, rel=0.03)
    assert found.best.strength >= 4.95
    assert len(asked) <= 15
    never, _ = run(search.for_least(WIDE), lambda s: 3.0)
    assert not never.reached
    always, asked = run(search.for_least(WIDE), lambda s: 0.0)
    assert always.best == Point(0.001, 0.0)
    assert len(asked) == 5
    # a lucky weak strength below one that fails does not count
    lucky, _ = run(search.for_least(WIDE), lambda s: 0.0 if s < 0.01 or s > 50 else 5.0)
    assert lucky.best is not None
    assert lucky.best.strength == pytest.approx(50, rel=0.03)


def test_a_map_has_its_points_where_the_values_change() -> None:
    found, asked = run(search.spread_out(WIDE, count=9), lambda s: 1 / (1 + math.exp(-math.log(s))))
    values = [point.value for point in found.points]
    assert len(asked) == 9
    assert sum(0.05 < value < 0.95 for value in values) >= 3
    whole = Scale(weak=1.0, strong=4.0, start=2.0, whole=True)
    assert sorted(run(search.spread_out(whole, count=9), lambda k: k)[1]) == [1.0, 2.0, 3.0, 4.0]


def test_scales_come_from_what_methods_declare() -> None:
    def scale(name: str, records: int = 500) -> Scale:
        method = get_method(name)
        return Scale.of(method.parameter(method.strength or ""), stronger=method.stronger, most=records)

    assert scale("mdav") == Scale(1.0, 500.0, 5.0, whole=True)
    assert (scale("rank_swap").weak, scale("rank_swap").strong) == (0.005, 100.0)
    assert scale("laplace_dp").weak > scale("laplace_dp").strong  # a small epsilon is strong
    assert scale("lossy_compression").weak > scale("lossy_compression").strong
