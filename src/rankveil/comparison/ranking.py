"""Ranks by the measure that decides, and the places that no other beats."""

from __future__ import annotations

from dataclasses import replace

from rankveil.catalogue import get_measure
from rankveil.comparison.result import Comparison, Contender, Place


def rank(made: Comparison) -> None:
    """By the deciding measure; methods whose intervals overlap with the first of a rank share it."""
    for one in made.methods:
        one.rank = None
    by = made.ranked_by
    if by is None:
        return
    able = [one for one in made.methods if one.reached and one.place is not None and by in one.place.values]
    sign = -1.0 if get_measure(by).better == "higher" else 1.0
    able.sort(key=lambda one: sign * one.place.values[by].mean if one.place else 0.0)
    leader: Contender | None = None
    for position, one in enumerate(able, start=1):
        assert one.place is not None
        if leader is not None and leader.place is not None and leader.place.values[by].overlaps(one.place.values[by]):
            one.rank = leader.rank
        else:
            one.rank, leader = position, one
    for one in made.methods:  # to which the measure does not apply, which is nothing in their favour
        if one.reached and one.rank is None:
            one.rank = len(able) + 1


def mark_front(made: Comparison) -> None:
    """Mark the places that no other beats in risk and in the first utility."""
    if not made.utilities:
        return
    names = (made.risk, made.utilities[0])
    signs = [1.0 if get_measure(name).better == "higher" else -1.0 for name in names]

    def value(place: Place) -> tuple[float, ...] | None:
        if not all(name in place.values for name in names):
            return None
        return tuple(sign * place.values[name].mean for sign, name in zip(signs, names, strict=True))

    everywhere = [place for one in made.methods for place in (*one.points, one.place) if place is not None]
    seen = [found for found in map(value, everywhere) if found is not None]

    def marked(place: Place) -> Place:
        own = value(place)
        beaten = own is None or any(
            all(a >= b for a, b in zip(other, own, strict=True)) and other != own for other in seen
        )
        return replace(place, front=not beaten)

    for one in made.methods:
        one.points = [marked(point) for point in one.points]
        one.place = None if one.place is None else marked(one.place)
