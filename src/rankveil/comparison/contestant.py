"""A method in a comparison: its strengths, its tasks, its search, and what it has where the search ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rankveil import masking
from rankveil.catalogue import Method, get_measure, get_method
from rankveil.comparison import search
from rankveil.comparison.result import Contender, Place, Spread
from rankveil.comparison.running import Job, Runner
from rankveil.comparison.search import Found, Point, Scale
from rankveil.comparison.study import FOUND, Result, Study, Task
from rankveil.errors import ParameterError
from rankveil.moments import of_replicates
from rankveil.plans import Plan, Step

LEVEL = "permutation_level"


@dataclass(frozen=True)
class Asked:
    """What a comparison is about."""

    at: Mapping[str, float]
    risk: str
    utilities: tuple[str, ...]
    points: int

    @property
    def measure(self) -> str:
        """What a search brings to its target."""
        if "utility" in self.at:
            return self.utilities[0]
        if "found" in self.at:
            return FOUND
        return LEVEL if "level" in self.at else self.risk

    @property
    def all(self) -> tuple[str, ...]:
        """The measures of every place that is shown."""
        return tuple(dict.fromkeys((self.risk, *self.utilities)))


@dataclass(frozen=True)
class Contestant:
    """A method, its fixed parameters, and the strengths it may have."""

    method: Method
    fixed: Mapping[str, Any]
    study: Mapping[str, Any]
    """Fixed parameters and those that make a study repeatable."""
    scale: Scale | None
    replicates: int
    columns: tuple[str, ...] | None

    @classmethod
    def of(
        cls,
        name: str,
        study: Study,
        *,
        fixed: Mapping[str, Any],
        replicates: int,
        columns: Sequence[str] | None,
    ) -> Contestant:
        """Read the method's facts."""
        method = get_method(name)
        if method.post:
            raise ParameterError(f"{name} is a step after a masking, not a method to compare")
        fixed = {given: method.parameter(given).check(value, owner=name) for given, value in fixed.items()}
        scale = None
        if method.strength is not None and fixed.keys().isdisjoint((method.strength, *method.instead, *method.told)):
            most = _most(method, study)
            scale = Scale.of(method.parameter(method.strength), stronger=method.stronger, most=most)
        repeat = {method.reproducible_with: True} if method.reproducible_with else {}
        made = cls(method, dict(fixed), {**fixed, **repeat}, scale, replicates if method.random else 1, None)
        if method.works_on in ("records", "names") or columns is None:
            return made
        # the others stay as they are; where it can work on none, the masking says why
        return replace(made, columns=masking.suited(made._step, study.table, study.names) or tuple(study.names))

    @property
    def _step(self) -> Step:
        return self.plan(self.scale.start if self.scale else 0.0).steps[0]

    def masked(self, study: Study) -> tuple[str, ...]:
        """The columns that the method masks; an error says why it can mask none."""
        return masking.columns_of(self._step, study.table)

    def masks(self, study: Study) -> tuple[str, ...]:
        """Those of the study's columns that the method masks."""
        masked = set(self.masked(study))
        return tuple(name for name in study.names if name in masked)

    def parameters(self, strength: float, *, study: bool = False) -> dict[str, Any]:
        """The parameters at a strength."""
        own: dict[str, Any] = dict(self.study if study else self.fixed)
        if self.scale is not None and self.method.strength is not None:
            own[self.method.strength] = int(strength) if self.scale.whole else strength
        return own

    def plan(self, strength: float, *, study: bool = False) -> Plan:
        """The masking at a strength."""
        return Plan((Step(self.method.id, self.parameters(strength, study=study), columns=self.columns),))

    def tasks(self, strength: float, asked: Sequence[str]) -> list[Task]:
        """One task for each replicate."""
        plan = self.plan(strength, study=True)
        return [Task(plan, replicate, tuple(asked)) for replicate in range(self.replicates)]


def _most(method: Method, study: Study) -> int:
    """The largest whole strength: a level that all hierarchies have, otherwise the number of records."""
    heights = [each.height for each in (study.table.schema.hierarchies or {}).values()]
    return min(heights) if method.strength == "level" and heights else len(study.table)


def job_of(one: Contestant, asked: Asked) -> Job:
    """The search of a method."""
    everything = _sought(asked)
    if one.scale is None:
        finding = search.alone()
    elif not asked.at:
        finding = search.spread_out(one.scale, count=asked.points)
    elif "found" in asked.at:
        finding = search.for_least(one.scale, most=asked.at["found"])
    else:
        finding = search.for_value(next(iter(asked.at.values())), one.scale)
    measure = asked.measure

    def point(strength: float, results: Sequence[Result]) -> Point | None:
        made = [result.values[measure] for result in results if measure in result.values]
        if len(made) < len(results):
            return None
        if measure == FOUND:  # of the worst replicate; where somebody is certain no share is small enough
            return Point(strength, max(1.0 if each["certain"] else each["share"] for each in made))
        values = [float(each) for each in made]
        mean, _, error = of_replicates(values)
        return Point(strength, mean, error)

    return Job(one.method.id, finding, lambda strength: one.tasks(strength, everything), point)


def contender_of(
    one: Contestant, found: Found, asked: Asked, runner: Runner, *, sought: tuple[str, ...] = ()
) -> Contender:
    """A method with what its search found; `sought` is what its tasks were asked for, unless the target itself."""
    left = tuple(name for name in runner.study.names if name not in one.masks(runner.study))
    made = Contender(one.method.id, found.reached, None, found.attainable, len(found.points), passed_through=left)
    if not asked.at:
        made.points = [
            place_of(one, point.strength, runner.results(one.tasks(point.strength, asked.all)), asked.all)
            for point in found.points
        ]
        made.reached = bool(made.points)
    best = found.best
    if best is not None:
        made.attained, made.meets = best.value, found.meets
        made.place = Place(one.plan(best.strength), one.parameters(best.strength), {})
        if one.scale is None and asked.at:
            wanted = next(iter(asked.at.values()))
            made.reached = (
                best.value <= wanted if "found" in asked.at else abs(best.value - wanted) <= 0.002 * abs(wanted)
            )
    if made.reached and one.scale is not None and one.scale.whole and _off(made.attained, asked):
        made.note = (
            f"{one.method.strength} is a whole number: {asked.measure} {made.attained:.4g} is the nearest to "
            f"{next(iter(asked.at.values())):g} that it can give"
        )
    if not found.points:
        made.note = _why_not(one, sought or _sought(asked), runner)
    elif not made.reached and asked.at:
        low, high = found.attainable or (0.0, 0.0)
        sure = " (1 where somebody is certain)" if "found" in asked.at else ""
        made.note = (
            f"it attains {asked.measure} from {low:.4g} to {high:.4g}{sure}, not {next(iter(asked.at.values())):g}"
        )
    return made


def _off(attained: float | None, asked: Asked) -> bool:
    """Whether a method ended visibly beside the target."""
    if attained is None or not asked.at or "found" in asked.at:
        return False
    wanted = next(iter(asked.at.values()))
    return abs(attained - wanted) > 0.02 * abs(wanted)


def _sought(asked: Asked) -> tuple[str, ...]:
    """What the tasks of a search are asked for."""
    return (asked.measure,) if asked.at else asked.all


def _why_not(one: Contestant, sought: Sequence[str], runner: Runner) -> str:
    """Why a method could not be evaluated at all."""
    start = one.scale.start if one.scale else 0.0
    for result in runner.results(one.tasks(start, sought)):
        if result.error:
            return result.error
        for name, why in result.without.items():
            return f"{name} does not apply: {why}"
    return "it could not be evaluated"


def place_of(one: Contestant, strength: float, results: Sequence[Result], names: Sequence[str]) -> Place:
    """A method at a strength, from the results of its replicates."""
    values, without = {}, {}
    for name in names:
        some = [float(result.values[name]) for result in results if name in result.values]
        if len(some) == len(results):
            mean, sd, error = of_replicates(some)
            low, high = get_measure(name).bounds
            values[name] = Spread(mean, sd, (max(mean - error, low), min(mean + error, high)))
        else:
            why = [result.without.get(name) or result.error or "" for result in results if name not in result.values]
            without[name] = why[0]
    said = [f"{name}: {note}" for result in results for name in names for note in result.notes.get(name, ())]
    return Place(one.plan(strength), one.parameters(strength), values, without, tuple(dict.fromkeys(said)))


def measure_places(
    contestants: Sequence[Contestant], methods: Sequence[Contender], asked: Asked, runner: Runner
) -> None:
    """Risk and utilities where the searches ended."""
    able = [(one, made) for one, made in zip(contestants, methods, strict=True) if made.place is not None]
    run_tasks(runner, [task for one, made in able for task in one.tasks(strength_of(one, made), asked.all)])
    for one, made in able:
        strength = strength_of(one, made)
        made.place = place_of(one, strength, runner.results(one.tasks(strength, asked.all)), asked.all)


def run_tasks(runner: Runner, tasks: Sequence[Task]) -> list[Result]:
    """The results of some tasks, each of them a job of one point."""
    jobs = [Job(task.key, search.alone(), partial(_only, task), _nowhere) for task in tasks]
    runner.run(jobs, expected=len(tasks))
    return runner.results(tasks)


def strength_of(one: Contestant, made: Contender) -> float:
    assert made.place is not None
    return float(made.place.parameters[one.method.strength]) if one.scale and one.method.strength else 0.0


def _only(task: Task, strength: float) -> list[Task]:
    return [task]


def _nowhere(strength: float, results: Sequence[Result]) -> Point:
    return Point(strength, 0.0)
