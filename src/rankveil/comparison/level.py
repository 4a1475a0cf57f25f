"""Each attribute's own strength, so that every attribute has the same permutation level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankveil.comparison import search
from rankveil.comparison.contestant import (
    Contestant,
    contender_of,
    job_of,
    measure_places,
    place_of,
    run_tasks,
)
from rankveil.comparison.result import Contender, Place
from rankveil.comparison.running import Job, Runner
from rankveil.comparison.search import Found, Point
from rankveil.comparison.study import LEVELS, Result, Task
from rankveil.comparison.target import LEVEL, Asked
from rankveil.moments import of_replicates
from rankveil.plans import Plan, Step

_SLACK = 0.005
"""A level this near to the wanted one is reached."""


def at_level(contestants: Sequence[Contestant], asked: Asked, runner: Runner) -> list[Contender]:
    """The methods, each attribute tuned where the method allows it, the mean level where it does not."""
    names = {one.method.id: one.masks(runner.study) for one in contestants}
    jobs: list[Job] = []
    for one in contestants:
        own = [_job(one, name, asked.at["level"]) for name in names[one.method.id]] if _own_strengths(one) else []
        jobs += own or [_mean_job(one, names[one.method.id], asked, runner)]
    found = runner.run(jobs, expected=sum(10 * one.replicates * len(names[one.method.id]) for one in contestants))
    made = []
    for one in contestants:
        if _own_strengths(one) and names[one.method.id]:
            own_found = {name: found[f"{one.method.id}.{name}"] for name in names[one.method.id]}
            made.append(_levelled(one, own_found, asked, runner))
            continue
        contender = contender_of(one, found[one.method.id], asked, runner, sought=(LEVELS,))
        measure_places([one], [contender], asked, runner)
        told = "one strength for all attributes: the mean level is tuned" if one.scale else "it has no strength to tune"
        contender.note = contender.note or told
        made.append(contender)
    return made


def _own_strengths(one: Contestant) -> bool:
    """Whether each attribute can have a strength of its own."""
    if one.scale is None or one.method.strength is None:
        return False
    return one.method.works_on == "column" or one.method.parameter(one.method.strength).each


def _job(one: Contestant, name: str, level: float) -> Job:
    """The search for one attribute's strength, masked alone: its level does not depend on the others."""
    assert one.scale is not None

    def tasks(strength: float) -> list[Task]:
        plan = Plan((Step(one.method.id, one.parameters(strength, study=True), columns=(name,)),))
        return [replace(task, plan=plan) for task in one.tasks(strength, (LEVELS,))]

    def point(strength: float, results: Sequence[Result]) -> Point | None:
        values = [float(result.values[LEVELS][name]) for result in results if LEVELS in result.values]
        if len(values) < len(results):
            return None
        mean, _, error = of_replicates(values)
        return Point(strength, mean, error)

    return Job(f"{one.method.id}.{name}", search.for_value(level, one.scale), tasks, point)


def _mean_job(one: Contestant, names: Sequence[str], asked: Asked, runner: Runner) -> Job:
    """The search for one strength by the mean level of the attributes that the method masks."""

    def point(strength: float, results: Sequence[Result]) -> Point | None:
        levels = [result.values[LEVELS] for result in results if LEVELS in result.values]
        if len(levels) < len(results):
            return None
        mean, _, error = of_replicates([_mean(each, names) for each in levels])
        return Point(strength, mean, error)

    return replace(job_of(one, asked, runner.study), tasks=lambda strength: one.tasks(strength, (LEVELS,)), point=point)


def _mean(levels: Mapping[str, float], names: Sequence[str]) -> float:
    """The mean level of some attributes; one that cannot be ranked has none."""
    known = [levels[name] for name in names if name in levels]
    return math.fsum(known) / len(known) if known else 0.0


def _levelled(one: Contestant, own: Mapping[str, Found], asked: Asked, runner: Runner) -> Contender:
    """A method whose attributes have their own strengths, all masked together and measured."""
    evaluations = max(len(each.points) for each in own.values())
    best = {name: each.best for name, each in own.items() if each.best is not None}
    assert one.scale is not None
    assert one.method.strength is not None
    if len(best) < len(own):
        return Contender(one.method.id, False, None, None, evaluations, note="it could not be evaluated")
    strength, whole = one.method.strength, one.scale.whole
    strengths = {name: int(point.strength) if whole else point.strength for name, point in best.items()}
    per_column = {name: {strength: value} for name, value in strengths.items()}

    def plan(fixed: Mapping[str, Any]) -> Plan:
        return Plan((Step(one.method.id, fixed, per_column, tuple(own)),))

    everything = tuple(dict.fromkeys((*asked.all, LEVEL, LEVELS)))
    results = run_tasks(runner, [Task(plan(one.study), replicate, everything) for replicate in range(one.replicates)])
    place = place_of(one, one.scale.start, results, tuple(dict.fromkeys((*asked.all, LEVEL))))
    levels = {
        name: of_replicates([result.values[LEVELS][name] for result in results if LEVELS in result.values] or [0.0])[0]
        for name in own
    }
    off = [name for name, level in levels.items() if abs(level - asked.at["level"]) > _SLACK]
    seen = [each.attainable for each in own.values() if each.attainable is not None]
    return Contender(
        one.method.id,
        not off,
        _mean(levels, list(own)),
        (max(low for low, _ in seen), min(high for _, high in seen)),
        evaluations,
        Place(plan(one.fixed), {**one.fixed, strength: strengths}, place.values, place.without, place.notes),
        attributes={name: {"strength": strengths[name], "level": levels[name]} for name in own},
        passed_through=runner.study.left_by(own),
        note=f"these attributes do not come to that level: {', '.join(off)}" if off else None,
    )
