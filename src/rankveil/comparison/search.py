"""Which strength gives a wanted value: a search with few evaluations, for curves that rise or fall with chance in them.

A search is a generator: it yields the strengths that it wants evaluated and is sent their points, so that many searches
can share the cores of a machine and the answer depends on nothing but the points.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rankveil.catalogue import Parameter

WIDE = 1000.0
"""An end of a range that is open is tried this many times above or below the default."""
_PERCENT = 5.0
"""Where to begin with a strength whose default goes by the number of columns, as percentages do."""
_CLOSE = 1e-3
"""Strengths that differ by less than this part are not told apart."""
_MOST = 40
"""Evaluations of one search at most; about ten are usual."""
_HALVINGS = 8
"""Steps toward an end of the range that cannot be evaluated."""
_STEP = math.log(2.0)
"""The first step of a search for the least strength."""
_LEAST_APART = 0.02
"""Strengths nearer than this (in logarithms) are the least strength both."""
_SPARED = 0.01
"""A value that spares so small a part of the limit is near enough to it."""
_NO_SHARE = 1e-4
"""Shares nearer to 0 and 1 are taken as so near."""
_SAME = 0.002
"""A value this part of the target away is the target."""


@dataclass(frozen=True)
class Point:
    """A strength that was evaluated: the value, and how far chance may have moved it."""

    strength: float
    value: float
    error: float = 0.0
    unmasked: bool = False
    """Whether nothing is changed there."""
    shown: float | None = None
    """What is told of it, where a search looks at something else: at the safe end of an interval."""

    @property
    def told(self) -> float:
        """The value that is told."""
        return self.value if self.shown is None else self.shown


@dataclass(frozen=True)
class Found:
    """Where a search ended."""

    best: Point | None
    """The point nearest to the target; None when no strength could be evaluated."""
    reached: bool
    points: tuple[Point, ...]
    """All that were evaluated, from the smallest strength to the largest."""
    meets: tuple[float, float] | None = None
    """The strengths between which the curve meets the target within its error."""

    @property
    def attainable(self) -> tuple[float, float] | None:
        """The smallest and the largest value that came out."""
        values = [point.told for point in self.points]
        return (min(values), max(values)) if values else None


Search = Generator[list[float], Sequence[Point | None], Found]
Evaluating = Generator[list[float], Sequence[Point | None], None]


@dataclass(frozen=True)
class Scale:
    """The strengths that a method may have, from weak to strong, and where to begin."""

    weak: float
    strong: float
    start: float
    whole: bool = False

    @classmethod
    def of(cls, parameter: Parameter, *, stronger: str, most: int) -> Scale:
        """The range that a parameter declares; a whole strength is at most `most`, as k is the number of records."""
        within = parameter.range
        start = _PERCENT if parameter.default is None else 1.0
        start = float(parameter.default) if isinstance(parameter.default, int | float) else start
        low = within.low if within is not None and math.isfinite(within.low) else start / WIDE
        high = within.high if within is not None and math.isfinite(within.high) else start * WIDE
        whole = parameter.type is int
        if whole:
            high = min(high, float(most))
            low = low + 1 if within is not None and within.above else low
        elif low <= 0.0:
            low = start / WIDE
        start = min(max(start, low), high)
        return cls(low, high, start, whole) if stronger == "higher" else cls(high, low, start, whole)

    def place(self, strength: float) -> float:
        """Where a strength lies, so that equal factors are equal steps."""
        return math.log(strength) if min(self.weak, self.strong) > 0 else strength

    def at(self, place: float) -> float:
        """The strength that lies there."""
        strength = math.exp(place) if min(self.weak, self.strong) > 0 else place
        low, high = sorted((self.weak, self.strong))
        strength = min(max(strength, low), high)
        return float(round(strength)) if self.whole else strength

    def between(self, a: float, b: float) -> float:
        """The middle of two strengths."""
        return self.at((self.place(a) + self.place(b)) / 2)

    def apart(self, a: float, b: float) -> bool:
        """Whether there is a strength worth trying between the two."""
        if self.whole:
            return abs(a - b) > 1
        return abs(self.place(a) - self.place(b)) > _CLOSE


def for_value(target: float, scale: Scale) -> Search:
    """The strength at which the value is the target: the first from the weak end where the curve passes it.

    The ends and the default first, then between the two that enclose the target, by interpolation kept away from the
    ends (Illinois), until the value is met or the strengths cannot be told apart.
    """
    points: dict[float, Point] = {}
    yield from _evaluate(points, [scale.weak, scale.start, scale.strong])
    yield from _toward_the_ends(points, scale, target)
    if not _enclosing(points, scale, target):
        middles = [scale.between(scale.weak, scale.start), scale.between(scale.start, scale.strong)]
        yield from _evaluate(points, middles)
    lean = 0
    while len(points) < _MOST:
        best, enclosing = _nearest(points, target), _enclosing(points, scale, target)
        if best is None or enclosing is None or abs(best.value - target) <= _slack(points, target) / 2:
            break
        a, b = enclosing
        if not scale.apart(a.strength, b.strength):
            break
        tried = len(points)
        share = (target - a.value) / (b.value - a.value) if b.value != a.value else 0.5
        if abs(lean) >= 2:  # one end has stayed where it is for too long
            share, lean = 0.5, 0
        share = min(max(share, 0.1), 0.9)
        place = scale.place(a.strength) + share * (scale.place(b.strength) - scale.place(a.strength))
        wanted = scale.at(place)
        if wanted in points:
            wanted = scale.between(a.strength, b.strength)
        if wanted in points:
            wanted = next(
                w for w in (min(a.strength, b.strength) + 1, max(a.strength, b.strength) - 1) if w not in points
            )
        yield from _evaluate(points, [wanted])
        if len(points) == tried:  # it cannot be evaluated there
            break
        inside = points[wanted]
        lean += 1 if (inside.value < target) == (a.value < target) else -1
    return _found(points, scale, target)


def _toward_the_ends(points: dict[float, Point], scale: Scale, target: float) -> Evaluating:
    """Where an end cannot be evaluated, as near to it as can be, unless the target is enclosed before."""
    for end in (scale.strong, scale.weak):
        failed = end
        if failed in points or scale.start not in points:
            continue
        known = scale.start
        for _ in range(_HALVINGS):
            if _enclosing(points, scale, target) or not scale.apart(known, failed):
                break
            middle = scale.between(known, failed)
            yield from _evaluate(points, [middle])
            known, failed = (middle, failed) if middle in points else (known, middle)


def for_least(scale: Scale, *, most: float = 0.0, start: float | None = None) -> Search:
    """The weakest strength whose value is at most so large and which no stronger one tried contradicts.

    From `start` (that of the scale, unless given) in growing steps toward the end where the answer lies, until it is
    enclosed; then by interpolation between the last strength that fails and the first that does not.
    """
    points: dict[float, Point] = {}
    begin = scale.start if start is None else scale.at(scale.place(start))
    yield from _evaluate(points, [begin])
    yield from _outwards(points, scale, most, begin)
    same = 0
    while len(points) < _MOST:
        order = _in_order(points, scale)
        first = _first_within(order, most)
        if first is None or first == 0:
            break
        fails, holds = order[first - 1], order[first]
        if not _worth_trying(fails, holds, scale, most):
            break
        wanted = scale.at(_between(fails, holds, scale, most, halve=same >= 2))
        if wanted in points:
            wanted = scale.between(fails.strength, holds.strength)
        if wanted in points and scale.whole:
            low, high = sorted((fails.strength, holds.strength))
            wanted = next((each for each in (low + 1, high - 1) if each not in points), wanted)
        tried = len(points)
        yield from _evaluate(points, [wanted])
        if len(points) == tried:
            break
        moved = _first_within(_in_order(points, scale), most)
        same = same + 1 if moved == first + 1 else 0  # the same strength is still the first that holds
    order = _in_order(points, scale)
    first = _first_within(order, most)
    nearest = min(reversed(order), key=lambda point: point.value, default=None)
    best = nearest if first is None else order[first]
    return Found(best, first is not None, tuple(sorted(order, key=lambda point: point.strength)))


def _first_within(order: Sequence[Point], most: float) -> int | None:
    """Where the points begin, in order of strength, that all hold."""
    return next((i for i in range(len(order)) if all(point.value <= most for point in order[i:])), None)


def _outwards(points: dict[float, Point], scale: Scale, most: float, begin: float) -> Evaluating:
    """From where a search begins toward the end where its answer lies, in growing steps, until it is enclosed."""
    if begin not in points:
        yield from _evaluate(points, [scale.weak, scale.strong])
        yield from _evaluate(points, [scale.between(begin, scale.weak), scale.between(begin, scale.strong)])
        return
    holds = points[begin].value <= most
    end = scale.weak if holds else scale.strong
    step, last, failed = _STEP, begin, 0
    while last != end and len(points) < _MOST and (points[last].value <= most) == holds:
        left = scale.place(end) - scale.place(last)
        wanted = end if abs(left) <= 1.5 * step else scale.at(scale.place(last) + math.copysign(step, left))
        if wanted in points:
            wanted = last + math.copysign(1, left) if scale.whole else end
        yield from _evaluate(points, [wanted])
        if wanted in points:
            last, step = wanted, 2 * step
            continue
        failed += 1
        step = abs(scale.place(wanted) - scale.place(last)) / 2
        if failed > _HALVINGS or not scale.apart(last, wanted):
            break


def _worth_trying(fails: Point, holds: Point, scale: Scale, most: float) -> bool:
    """Whether there is a strength between the two that is worth an evaluation."""
    if not scale.apart(fails.strength, holds.strength):
        return False
    if math.isinf(fails.value):  # it changes nothing: about the least strength that does will do
        return abs(scale.place(fails.strength) - scale.place(holds.strength)) > _STEP
    if scale.whole:
        return True
    near = abs(scale.place(fails.strength) - scale.place(holds.strength)) < _LEAST_APART
    return not near and not 0 < most - holds.value <= _SPARED * abs(most)


def _between(fails: Point, holds: Point, scale: Scale, most: float, *, halve: bool) -> float:
    """The place where the limit lies, were the values (of shares their log-odds) straight between the two points."""
    low, high = scale.place(fails.strength), scale.place(holds.strength)
    values = [fails.value, most * (1 - _SPARED / 2) if most > 0 else most, holds.value]
    if all(0 <= value <= 1 for value in values):
        inside = [min(max(value, _NO_SHARE), 1 - _NO_SHARE) for value in values]
        values = [math.log(value / (1 - value)) for value in inside]
    if halve or not all(map(math.isfinite, values)) or values[0] == values[2]:
        return (low + high) / 2
    share = min(max((values[1] - values[0]) / (values[2] - values[0]), 0.1), 0.9)
    return low + share * (high - low)


def spread_out(scale: Scale, *, count: int) -> Search:
    """About `count` strengths whose values lie evenly: the widest gap between two values is halved next."""
    points: dict[float, Point] = {}
    yield from _evaluate(points, [scale.weak, scale.start, scale.strong])
    while len(points) < count:
        order = _in_order(points, scale)
        gaps = [(abs(a.value - b.value), a, b) for a, b in pairwise(order) if scale.apart(a.strength, b.strength)]
        if not gaps:
            break
        _, a, b = max(gaps, key=lambda gap: gap[0])
        tried = len(points)
        yield from _evaluate(points, [scale.between(a.strength, b.strength)])
        if len(points) == tried:
            break
    order = _in_order(points, scale)
    return Found(None, True, tuple(sorted(order, key=lambda point: point.strength)))


def alone(strength: float = 0.0) -> Search:
    """A method without a strength is one point."""
    points: dict[float, Point] = {}
    yield from _evaluate(points, [strength])
    return Found(points.get(strength), bool(points), tuple(points.values()))


def _evaluate(points: dict[float, Point], wanted: Sequence[float]) -> Evaluating:
    new = [strength for strength in dict.fromkeys(wanted) if strength not in points]
    if new:
        for point in (yield new):
            if point is not None:
                points[point.strength] = point


def _in_order(points: dict[float, Point], scale: Scale) -> list[Point]:
    """From the weakest to the strongest."""
    return sorted(points.values(), key=lambda point: point.strength, reverse=scale.weak > scale.strong)


def _enclosing(points: dict[float, Point], scale: Scale, target: float) -> tuple[Point, Point] | None:
    """The first two neighbours from the weak end on different sides of the target."""
    for a, b in pairwise(_in_order(points, scale)):
        if min(a.value, b.value) <= target <= max(a.value, b.value):
            return a, b
    return None


def _nearest(points: dict[float, Point], target: float) -> Point | None:
    return min(points.values(), key=lambda point: abs(point.value - target), default=None)


def _slack(points: dict[float, Point], target: float) -> float:
    values = [point.value for point in points.values()]
    return _SAME * max(abs(target), 0.05 * (max(values) - min(values)))


def _found(points: dict[float, Point], scale: Scale, target: float) -> Found:
    order = tuple(sorted(points.values(), key=lambda point: point.strength))
    masked = {strength: point for strength, point in points.items() if not point.unmasked}
    best = _nearest(masked or points, target)
    if best is None:
        return Found(None, False, order)
    reached = _enclosing(points, scale, target) is not None or abs(best.value - target) <= _slack(points, target)
    return Found(best, reached, order, _meets(order, scale, target, best) if reached else None)


def _meets(order: Sequence[Point], scale: Scale, target: float, best: Point) -> tuple[float, float]:
    """The strengths around the best one where the curve, straight between its points, stays within the error."""
    error = max(best.error, abs(best.value - target))
    at = order.index(best)

    def edge(step: int) -> float:
        i = at
        while 0 <= i + step < len(order) and abs(order[i + step].value - target) <= error:
            i += step
        if not 0 <= i + step < len(order):
            return order[i].strength
        inside, outside = order[i], order[i + step]
        limit = target + math.copysign(error, outside.value - target)
        if outside.value == inside.value:
            return inside.strength
        share = min(max((limit - inside.value) / (outside.value - inside.value), 0.0), 1.0)
        a, b = scale.place(inside.strength), scale.place(outside.strength)
        if scale.whole:  # between whole strengths there is none
            return inside.strength
        return scale.at(a + share * (b - a))

    return edge(-1), edge(1)
