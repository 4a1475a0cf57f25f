"""What was found with some draws is tried with others: the best of many looks better than it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankveil.catalogue import get_measure
from rankveil.comparison.contestant import (
    MANY,
    Contestant,
    contender_of,
    interval_of_shares,
    job_of,
    mean_share,
    measure_places,
    point_of,
    run_tasks,
    spread_of,
    strength_of,
)
from rankveil.comparison.ranking import rank
from rankveil.comparison.result import Comparison, Contender, Pick
from rankveil.comparison.running import Runner
from rankveil.comparison.search import Point
from rankveil.comparison.study import CHANGED, FOUND, Result, Task
from rankveil.comparison.target import RISK, Asked
from rankveil.moments import of_replicates
from rankveil.plans import Plan

SEEDS, FEW = 10, 3
"""Fresh seeds of a table, and of one with more than 50,000 records."""
_FRESH = 1_000_000
"""The first of their replicates: those of searches and measures are below."""
_ROUNDS = 12
"""Times that a strength is made larger until its method counts as unconfirmed."""
_SLACK = 0.01
"""How much further than needed a limit is lowered, as a part of it."""


def levelled(contestants: Sequence[Contestant], methods: list[Contender], asked: Asked, runner: Runner) -> None:
    """What was searched with some of the people, searched on with everybody where that is not the same.

    One masking at each method's strength says how many more are found among all; the search then goes on with a limit
    that is lower by as much.
    """
    records = len(runner.study.table)
    if asked.limit is None or asked.measure != FOUND or records <= MANY:
        return
    able = [place for place, made in enumerate(methods) if made.reached and made.place is not None]
    tasks = {place: _whole(contestants[place], methods[place]) for place in able}
    run_tasks(runner, list(tasks.values()))
    for place in able:
        one, made = contestants[place], methods[place]
        seen = point_of(0.0, runner.results([tasks[place]]), asked, random=one.method.random)
        if seen is not None:
            _searched_on(one, made, seen, asked, runner, stronger=False)


def confirm(contestants: Sequence[Contestant], made: Comparison, asked: Asked, runner: Runner) -> None:
    """Rank, and try the first with fresh seeds and everybody; a strength that does not hold there is made larger.

    Then all are ranked anew, until the first of the ranking is one that holds.
    """
    rounds: dict[str, int] = {}
    done: dict[str, Mapping[str, Any]] = {}
    while True:
        rank(made)
        best = made.best
        if best is None or best.place is None:
            return
        if best.id in done:
            made.pick = Pick(best, done[best.id])
            return
        one = next(each for each in contestants if each.method.id == best.id)
        number = rounds[best.id] = rounds.get(best.id, 0) + 1
        results = _fresh(one, best, asked, runner, number)
        told, holds = _seen(results, asked, random=one.method.random)
        if holds:
            done[best.id] = told
            if number > 1:
                best.note = f"{best.note}; {_raised(number)}" if best.note else _raised(number)
            if asked.measure == FOUND and asked.limit is not None:
                shares = [result.values[FOUND] for result in results]
                spread = spread_of(shares, random=one.method.random)
                best.place = replace(best.place, values={**best.place.values, RISK: spread})
                best.attained = spread.mean
            continue
        seen = point_of(0.0, results, asked, random=one.method.random)
        if number >= _ROUNDS or seen is None or not _searched_on(one, best, seen, asked, runner, stronger=True):
            best.reached = False
            best.note = f"not confirmed: {_failed(told, asked, results)}"


def _raised(number: int) -> str:
    """That a strength was raised, in words."""
    times = "once" if number == 2 else f"{number - 1} times"
    return f"its first strength did not hold on fresh seeds, so it was strengthened {times}"


def _failed(told: Mapping[str, Any], asked: Asked, results: Sequence[Result]) -> str:
    for result in results:
        if result.error or result.without:
            return result.error or next(iter(result.without.values()))
    return f"on fresh seeds {told['held']} of {told['seeds']} hold {asked.measure} {asked.limit:g}"


def fresh_plan(one: Contestant, made: Contender) -> Plan:
    """The plan at its strength, with the parameters that make a study repeatable."""
    assert made.place is not None
    step, *besides = made.place.plan.steps
    return Plan((replace(step, parameters={**step.parameters, **one.study}), *besides))


def _whole(one: Contestant, made: Contender) -> Task:
    """The first masking, and everybody looked for."""
    return Task(fresh_plan(one, made), 0, (FOUND, CHANGED))


def _fresh(one: Contestant, made: Contender, asked: Asked, runner: Runner, number: int) -> list[Result]:
    """The maskings of fresh seeds, other ones in every round, attacked with everybody."""
    seeds = FEW if len(runner.study.table) > MANY else SEEDS
    wanted = (FOUND, CHANGED) if asked.limit is None else tuple(dict.fromkeys((FOUND, CHANGED, asked.measure)))
    first = _FRESH + number * SEEDS
    plan = fresh_plan(one, made)
    return run_tasks(runner, [Task(plan, first + k, wanted) for k in range(seeds)])


def _seen(results: Sequence[Result], asked: Asked, *, random: bool) -> tuple[dict[str, Any], bool]:
    """What fresh seeds say, and whether the target holds on them: on each, and with the interval of all together."""
    told: dict[str, Any] = {"seeds": len(results)}
    found = [result.values[FOUND] for result in results if FOUND in result.values]
    if len(found) == len(results):
        told["found"] = mean_share(found)
        told["interval"] = list(interval_of_shares(found, random=random))
        told["certain"] = max(each["certain"] for each in found)
    if asked.limit is None:
        return told, True
    values = [result.values[asked.measure] for result in results if asked.measure in result.values]
    if asked.measure == FOUND:
        held = [each["share"] <= asked.limit and not each["certain"] for each in values]
    else:
        held = [get_measure(asked.measure).within(value, asked.limit) for value in values]
        if len(values) == len(results):
            mean, _, error = of_replicates([float(value) for value in values])
            told["value"], told["value_interval"] = mean, [mean - error, mean + error]
    told["held"] = sum(held)
    point = point_of(0.0, results, asked, random=random)
    return told, point is not None and all(held) and point.value <= asked.turned * asked.limit


def _searched_on(
    one: Contestant, made: Contender, seen: Point, asked: Asked, runner: Runner, *, stronger: bool
) -> bool:
    """Search on with a limit that is sharper by what was seen at the strength; whether there is another strength.

    With `stronger` the new one must lie beyond the old one.
    """
    if one.scale is None or made.place is None or asked.limit is None or math.isinf(seen.value):
        return False
    before, most = strength_of(one, made), asked.turned * asked.limit
    searched = runner.results(one.sought(before, asked, records=len(runner.study.table)))
    point = point_of(before, searched, asked, random=one.method.random)
    if point is None:
        return False
    if asked.measure == FOUND:  # shares: in proportion
        limit = most * min(point.value / max(seen.value, 1e-12), 1.5)
    else:
        limit = most - (seen.value - point.value)
    for _ in range(_ROUNDS):
        found = runner.run([job_of(one, asked, runner.study, limit=limit)], expected=4)[one.method.id]
        if not found.reached or found.best is None:
            return False
        if not stronger or _beyond(one, found.best.strength, before, asked):
            break
        limit -= _SLACK * max(abs(most), abs(limit))
    else:
        return False
    if found.best.strength != before:
        fresh = contender_of(one, replace(found, reached=True), asked, runner)
        made.place, made.attained, made.evaluations = fresh.place, fresh.attained, fresh.evaluations
        made.attainable = fresh.attainable
        measure_places([one], [made], asked, runner)
    return made.reached


def _beyond(one: Contestant, strength: float, before: float, asked: Asked) -> bool:
    """Whether a strength is on the safe side of another one."""
    assert one.scale is not None
    up = (one.scale.strong > one.scale.weak) != asked.of_user
    return strength > before if up else strength < before
