"""A method in a comparison: its strengths, its tasks, its search, and what it has where the search ended."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rankveil import masking, strengths
from rankveil.catalogue import Method, get_measure, get_method
from rankveil.comparison import search
from rankveil.comparison.result import Contender, Place, Spread
from rankveil.comparison.running import Job, Runner
from rankveil.comparison.search import Found, Point, Scale
from rankveil.comparison.study import CHANGED, FOUND, Result, Study, Task
from rankveil.comparison.target import RISK, Asked
from rankveil.errors import ParameterError
from rankveil.intruder.calibration import wilson
from rankveil.moments import of_replicates
from rankveil.plans import Plan, Step

MANY = 50_000
"""Records above which a search looks for some of the people, among all records."""
DRAWN = 3_000
"""So many of them."""
_NUMBERS = re.compile(r"\d[\d.,]*")
_ENOUGH = 20_000
"""People who are looked for, in all maskings of a strength together, beyond which no further masking is made."""


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
    besides: tuple[Step, ...] = ()
    """What a release does besides where no columns are named: categories that the method does not take, groups."""

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
        if columns is None and study.table.schema.decisions is not None:
            return replace(made, besides=masking.besides(made._step, study.table))
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

    def changed(self, study: Study) -> tuple[str, ...]:
        """The columns that a release changes: those that the method masks, and what is done besides."""
        return (*self.masked(study), *(name for step in self.besides for name in step.columns or ()))

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
        step = Step(self.method.id, self.parameters(strength, study=study), columns=self.columns)
        return Plan((step, *self.besides))

    def tasks(self, strength: float, asked: Sequence[str]) -> list[Task]:
        """One task for each replicate."""
        plan = self.plan(strength, study=True)
        return [Task(plan, replicate, tuple(asked)) for replicate in range(self.replicates)]

    def sought(self, strength: float, asked: Asked, *, records: int) -> list[Task]:
        """The tasks of a search: of large tables fewer maskings, and some of the people."""
        tasks = self.tasks(strength, sought_by(asked))
        if asked.limit is None or asked.measure != FOUND:
            return tasks
        people = min(DRAWN / records, 1.0) if records > MANY else 1.0
        return [replace(task, people=people) for task in tasks[: max(-(-_ENOUGH // records), 1)]]

    def start(self, asked: Asked, study: Study) -> float | None:
        """Where a search for few people found begins, if anything is known of it."""
        if asked.limit is None or asked.measure != FOUND:
            return None
        if self.method.id == "mdav":  # one of each group is found
            return math.ceil(1 / asked.limit)
        if self.method.by_columns:
            return strengths.strength_for(self.method.id, len(self.masks(study)))
        return None


def _most(method: Method, study: Study) -> int:
    """The largest whole strength: a level that all hierarchies have, otherwise the number of records."""
    heights = [each.height for each in (study.table.schema.hierarchies or {}).values()]
    return min(heights) if method.strength == "level" and heights else len(study.table)


def job_of(one: Contestant, asked: Asked, study: Study, *, limit: float | None = None) -> Job:
    """The search of a method; with a `limit` of its own where the asked one was not sharp enough."""
    scale = one.scale
    if asked.limit is not None and asked.of_user and scale is not None:  # the greatest strength that users can bear
        scale = replace(scale, weak=scale.strong, strong=scale.weak)
    if scale is None:
        finding = search.alone()
    elif not asked.at:
        finding = search.spread_out(scale, count=asked.points)
    elif asked.limit is not None:
        most = asked.turned * asked.limit if limit is None else limit
        finding = search.for_least(scale, most=most, start=one.start(asked, study))
    else:
        finding = search.for_value(next(iter(asked.at.values())), scale)

    def tasks(strength: float) -> list[Task]:
        return one.sought(strength, asked, records=len(study.table))

    def point(strength: float, results: Sequence[Result]) -> Point | None:
        return point_of(strength, results, asked, random=one.method.random)

    return Job(one.method.id, finding, tasks, point)


def point_of(strength: float, results: Sequence[Result], asked: Asked, *, random: bool) -> Point | None:
    """What a search sees of a strength: the value, or for a limit what it may be for all that the maskings tell.

    A masking that changes nothing holds no limit, whatever it measures.
    """
    measure = asked.measure
    made = [result.values[measure] for result in results if measure in result.values]
    if not made or len(made) < len(results):
        return None
    unmasked = any(result.values.get(CHANGED) == 0 for result in results)
    barred = unmasked and not asked.of_user  # for users nothing is better
    if measure == FOUND and asked.limit is not None:
        sure = any(each["certain"] for each in made)
        share = 1.0 if sure else mean_share(made)
        worst = max(each["share"] for each in made)
        value = 1.0 if sure else max(worst, interval_of_shares(made, random=random)[1])
        return Point(strength, math.inf if barred else value, unmasked=unmasked, shown=share)
    values = [float(each) for each in made]
    mean, _, error = of_replicates(values)
    if asked.limit is None:
        return Point(strength, mean, error, unmasked)
    worst = max(asked.turned * value for value in values)
    value = max(worst, asked.turned * mean + error)
    return Point(strength, math.inf if barred else value, error, unmasked, shown=mean)


def mean_share(found: Sequence[Mapping[str, float]]) -> float:
    """The share of people found in all maskings together."""
    return math.fsum(each["share"] * each["of"] for each in found) / max(math.fsum(each["of"] for each in found), 1)


def interval_of_shares(found: Sequence[Mapping[str, float]], *, random: bool) -> tuple[float, float]:
    """The 95 % interval of the share found over all maskings: Wilson's, wider where they differ more than chance does.

    A method without chance has the same release for every seed, and nothing is uncertain.
    """
    share, people = mean_share(found), math.fsum(each["of"] for each in found)
    if not random:
        return min(each["share"] for each in found), max(each["share"] for each in found)
    low, high = wilson(share * people, int(people))
    expected = share * (1 - share) * len(found) / max(people, 1)
    spread = math.fsum((each["share"] - share) ** 2 for each in found) / max(len(found) - 1, 1)
    wider = math.sqrt(max(spread / expected, 1.0)) if expected > 0 else 1.0
    return max(share - wider * (share - low), 0.0), min(share + wider * (high - share), 1.0)


def contender_of(
    one: Contestant, found: Found, asked: Asked, runner: Runner, *, sought: tuple[str, ...] = ()
) -> Contender:
    """A method with what its search found; `sought` is what its tasks were asked for, unless the target itself."""
    left = runner.study.left_by(one.changed(runner.study))
    made = Contender(one.method.id, found.reached, None, found.attainable, len(found.points), passed_through=left)
    if not asked.at:
        made.points = [
            place_of(one, point.strength, runner.results(one.tasks(point.strength, asked.all)), asked.all)
            for point in found.points
        ]
        made.reached = bool(made.points)
    best = found.best
    if best is not None:
        made.attained, made.meets = best.told, found.meets
        made.place = Place(one.plan(best.strength), one.parameters(best.strength), {})
        if one.scale is None and asked.at:
            wanted = next(iter(asked.at.values()))
            made.reached = abs(best.value - wanted) <= 0.002 * abs(wanted)
            if asked.limit is not None:
                made.reached = best.value <= asked.turned * asked.limit
    if made.reached and one.scale is not None and one.scale.whole and _off(made.attained, asked):
        made.note = (
            f"{one.method.strength} is a whole number: {asked.measure} {made.attained:.4g} is the nearest to "
            f"{next(iter(asked.at.values())):g} that it can give"
        )
    within = asked.limit is not None and all(point.value <= asked.turned * asked.limit for point in found.points)
    if made.reached and within:
        made.note = _safer(one, asked)
    if not found.points:
        made.note = _why_not(one, sought or sought_by(asked), runner)
    elif not made.reached and asked.at:
        made.note = _not_reached(found, asked)
    return made


def _safer(one: Contestant, asked: Asked) -> str | None:
    """That every strength of a method is within the limit."""
    if one.scale is None:
        return None
    if asked.of_user:
        return "within the limit at every strength: this is its strongest setting"
    return "safer than asked at every strength: this is its gentlest setting"


def _not_reached(found: Found, asked: Asked) -> str:
    """How near a method came to the target."""
    value = next(iter(asked.at.values()))
    if all(math.isinf(point.value) for point in found.points):
        return "it changes nothing, and unmasked data are never recommended"
    low, high = found.attainable or (0.0, 0.0)
    if asked.limit is None:
        return f"it attains {asked.measure} from {low:.4g} to {high:.4g}, not {value:g}"
    sure = " (1 where somebody is certain)" if asked.measure == FOUND else ""
    side = "at least" if asked.turned < 0 else "at most"
    near = f"{high if asked.turned < 0 else low:.4g}"
    return f"it attains {asked.measure} from {low:.4g} to {high:.4g}{sure}, not {side} {value:g}: {near} is the nearest"


def _off(attained: float | None, asked: Asked) -> bool:
    """Whether a method ended visibly beside the target."""
    if attained is None or not asked.at or asked.limit is not None:
        return False
    wanted = next(iter(asked.at.values()))
    return abs(attained - wanted) > 0.02 * abs(wanted)


def sought_by(asked: Asked) -> tuple[str, ...]:
    """What the tasks of a search are asked for."""
    return (asked.measure, CHANGED) if asked.at else asked.all


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
    said: dict[str, str] = {}  # each note once, whatever numbers the replicates have in it
    for note in (f"{name}: {note}" for result in results for name in names for note in result.notes.get(name, ())):
        said.setdefault(_NUMBERS.sub("#", note), note)
    return Place(one.plan(strength), one.parameters(strength), values, without, tuple(said.values()))


def measure_places(
    contestants: Sequence[Contestant], methods: Sequence[Contender], asked: Asked, runner: Runner
) -> None:
    """Risk and utilities where the searches ended; people found are those that the search found there."""
    known = asked.limit is not None and asked.measure == FOUND
    names = tuple(name for name in asked.all if not (known and name == RISK))
    able = [(one, made) for one, made in zip(contestants, methods, strict=True) if made.place is not None]
    run_tasks(runner, [task for one, made in able for task in one.tasks(strength_of(one, made), (*names, CHANGED))])
    for one, made in able:
        strength = strength_of(one, made)
        results = runner.results(one.tasks(strength, (*names, CHANGED)))
        place = place_of(one, strength, results, names)
        if known:
            searched = runner.results(one.sought(strength, asked, records=len(runner.study.table)))
            shares = [result.values[FOUND] for result in searched if FOUND in result.values]
            if shares:
                spread = spread_of(shares, random=one.method.random)
                place = replace(place, values={**place.values, RISK: spread})
        made.place = place
        if made.reached and any(result.values.get(CHANGED) == 0 for result in results):
            made.reached = False
            made.note = "it changes nothing there, and unmasked data are never recommended"


def spread_of(shares: Sequence[Mapping[str, float]], *, random: bool) -> Spread:
    """The share of people found over maskings."""
    _, sd, _ = of_replicates([each["share"] for each in shares])
    return Spread(mean_share(shares), sd, interval_of_shares(shares, random=random))


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
