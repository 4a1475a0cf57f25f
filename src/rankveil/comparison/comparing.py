"""Methods at equal risk, equal utility, the least strength that protects enough people, or over the whole map."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankveil.auditing import decided_original
from rankveil.catalogue import get_measure
from rankveil.comparison.contestant import Asked, Contestant, contender_of, job_of, measure_places, run_tasks
from rankveil.comparison.level import at_level
from rankveil.comparison.reach import OF_RISK, OF_UTILITY, why_not_applicable
from rankveil.comparison.result import Comparison, Contender, Place
from rankveil.comparison.running import Journal, Progress, Runner
from rankveil.comparison.study import FOUND, Study, Task
from rankveil.errors import ParameterError, listing, refuse_unknown, suggestion
from rankveil.execute import PATIENCE, Pool, Workers, cores
from rankveil.manifest import fingerprint
from rankveil.measuring import Settings
from rankveil.plans import Plan
from rankveil.schema import listed
from rankveil.seeds import Seed

if TYPE_CHECKING:
    from rankveil.cluster.engine import Engine

TARGETS = ("found", "risk", "utility", "level")
UTILITY = ("emd", "propensity", "um")
SWEEP_POINTS = 9

_SMALL = 10_000
"""Records below which one masking takes so little time that it may be made before other processes start."""


def compare(
    original: Any,
    methods: Sequence[str],
    *,
    at: Mapping[str, float] | None = None,
    sweep: bool = False,
    risk: str = "rank_linkage",
    utility: Sequence[str] = UTILITY,
    replicates: int = 5,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Settings | None = None,
    target: str | None = None,
    columns: Sequence[str] | None = None,
    seed: Seed | int = 0,
    points: int = SWEEP_POINTS,
    workers: int | None = None,
    state: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    cluster: str | Engine | None = None,
    scratch: str | os.PathLike[str] | None = None,
    memory: str | int | None = None,
    **declared: Any,
) -> Comparison:
    """Which method serves these data best, all at the same risk: `at={"risk": 0.45}`.

    `at` may also name a utility (the first of `utility`), `found` (0.09: the least strength with which no more than
    that share of the people is found and nobody with certainty) or `level` (the permutation level that each attribute
    is tuned to); `sweep` gives the whole map of risk and utility instead. `parameters` fixes parameters of methods,
    `settings` those of measures. `state` names a file that keeps finished work, so that a stopped comparison can be
    taken up again with `resume`.

    Maskings are made and measured by so many `workers` of this machine, or by those of a `cluster`: "local:4", or the
    address of a Dask scheduler, such as "tcp://host:8786". The table goes to them once, through the folder `scratch`
    that all of them see; `memory` is what local ones may use together. The answers are the same. A table may be given
    by the path of its file too.
    """
    refuse_unknown(declared)
    table = decided_original(original, declared, columns=columns)
    study = Study(table, table.usable(columns), seed=Seed.of(seed), settings=settings, target=target)
    return compare_on(
        study,
        methods,
        at=at,
        sweep=sweep,
        risk=risk,
        utility=utility,
        replicates=replicates,
        parameters=parameters,
        columns=columns,
        points=points,
        workers=workers,
        state=state,
        resume=resume,
        progress=progress,
        cluster=cluster,
        scratch=scratch,
        memory=memory,
    )


def compare_on(
    study: Study,
    methods: Sequence[str],
    *,
    at: Mapping[str, float] | None = None,
    sweep: bool = False,
    risk: str = "rank_linkage",
    utility: Sequence[str] = UTILITY,
    replicates: int = 5,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    columns: Sequence[str] | None = None,
    points: int = SWEEP_POINTS,
    workers: int | None = None,
    state: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    cluster: str | Engine | None = None,
    scratch: str | os.PathLike[str] | None = None,
    memory: str | int | None = None,
) -> Comparison:
    """The comparison on a study that is made already."""
    wanted = _wanted(at, sweep=sweep, replicates=replicates, points=points)
    utilities = tuple(dict.fromkeys(listed(utility)))
    _check_family(risk, "risk", OF_RISK)
    for name in utilities:
        _check_family(name, "utility", OF_UTILITY)
    if "utility" in wanted and not utilities:
        raise ParameterError("a comparison at equal utility needs the utility's name")
    contestants = [
        Contestant.of(name, study, fixed=(parameters or {}).get(name, {}), replicates=replicates, columns=columns)
        for name in dict.fromkeys(listed(methods))
    ]
    if not contestants:
        raise ParameterError("name at least one method to compare")
    for name in parameters or {}:
        if name not in {one.method.id for one in contestants}:
            raise ParameterError(f"parameters are given for {name}, which is not compared")
    journal = Journal(None if state is None else Path(state), of=_of(study), resume=resume)
    asked = Asked(wanted, risk, utilities, points=points)
    with (
        _pool(study, workers=workers, cluster=cluster, scratch=scratch, memory=memory) as (pool, said),
        Runner(study, journal, pool=pool, progress=progress) as runner,
    ):
        made = _compare(contestants, asked, runner)
    made.replicates = replicates
    made.notes += said
    if resume and not journal.found:
        made.notes.append("there was no state to take up: everything was computed anew")
    return made


@contextmanager
def _pool(
    study: Study,
    *,
    workers: int | None,
    cluster: str | Engine | None,
    scratch: str | os.PathLike[str] | None,
    memory: str | int | None,
) -> Iterator[tuple[Pool[Study], list[str]]]:
    """Who does the tasks, and what is to be said about that."""
    if cluster is None:
        small = workers is None and len(study.table) < _SMALL
        yield Workers(study, count=workers or cores(), patience=PATIENCE if small else 0.0), []
        return
    from rankveil.cluster.places import engine_at

    if workers is not None:
        raise ParameterError("workers are those of this machine; on a cluster there are as many as it has")
    with engine_at(cluster, memory=memory, scratch=scratch) as engine:
        yield engine.holding(study), [*engine.notes, f"computed on the cluster {engine.address.text}"]


def _check_family(name: str, what: str, families: Sequence[str]) -> None:
    """A measure in a role that is not its own would turn the search or the ranking round."""
    family = get_measure(name).family
    if family not in families:
        raise ParameterError(
            f"{what} must be a measure of {' or '.join(families)}, and {name} is one of {family}; see rankveil measures"
        )


def _compare(everybody: Sequence[Contestant], asked: Asked, runner: Runner) -> Comparison:
    study = runner.study
    why = {one.method.id: why_not_applicable(one, study, asked) for one in everybody}
    contestants = [one for one in everybody if why[one.method.id] is None]
    if "level" in asked.at:
        methods = at_level(contestants, asked, runner)
    else:
        expected = sum((10 if one.scale else 1) * one.replicates for one in contestants)
        found = runner.run([job_of(one, asked) for one in contestants], expected=expected)
        methods = [contender_of(one, found[one.method.id], asked, runner) for one in contestants]
        if asked.at:
            measure_places(contestants, methods, asked, runner)
    methods += [
        Contender(name, False, None, None, 0, note=reason, applicable=False)
        for name, reason in why.items()
        if reason is not None
    ]
    methods.sort(key=lambda one: list(why).index(one.id))
    made = Comparison(
        dict(asked.at),
        asked.risk,
        asked.utilities,
        len(study.table),
        study.names,
        replicates=0,
        methods=methods,
        complete=int(study.base.complete.sum()),
        notes=_notes(study, contestants),
    )
    made.notes += _said(methods)
    _mark_front(made)
    if not asked.at:
        return made
    _rank(made)
    if made.best is not None:
        one = next(each for each in contestants if made.best is not None and each.method.id == made.best.id)
        _attack_best(one, made.best, runner)
    return made


def _attack_best(one: Contestant, best: Contender, runner: Runner) -> None:
    """Whom somebody who uses everything finds in the recommended masking."""
    assert best.place is not None
    step = best.place.plan.steps[0]
    plan = Plan((replace(step, parameters={**step.parameters, **one.study}),))
    results = run_tasks(runner, [Task(plan, replicate, (FOUND,)) for replicate in range(one.replicates)])
    if all(FOUND in result.values for result in results):
        best.place = replace(best.place, found=[result.values[FOUND] for result in results])


def _said(methods: Sequence[Contender]) -> list[str]:
    """What measures said at the places that are shown, each note once, with the methods that it is about."""
    about: dict[str, list[str]] = {}
    for one in methods:
        for place in (*one.points, one.place):
            for note in place.notes if place is not None else ():
                named = about.setdefault(note, [])
                if one.id not in named:
                    named.append(one.id)
    return [f"{note} ({', '.join(named)})" for note, named in about.items()]


def _rank(made: Comparison) -> None:
    """By the deciding measure; methods whose intervals overlap with the first of a rank share it."""
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


def _mark_front(made: Comparison) -> None:
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


def _wanted(at: Mapping[str, float] | None, *, sweep: bool, replicates: int, points: int) -> dict[str, float]:
    if sweep == bool(at):
        raise ParameterError('say where to compare, as in at={"risk": 0.45}, or sweep the whole map')
    if points < 3:
        raise ParameterError(f"a map needs at least 3 points of each method, not {points}")
    if replicates < 1:
        raise ParameterError(f"replicates must be at least 1, not {replicates}")
    wanted = dict(at or {})
    if len(wanted) > 1:
        raise ParameterError(f"compare at one target, not at {', '.join(wanted)}")
    for what, value in wanted.items():
        if what == "claims":
            raise ParameterError(
                "the target claims is retired: it never said who is found; name the largest share of people found that "
                "you accept, as in --at found=0.09"
            )
        if what not in TARGETS:
            raise ParameterError(f"there is no target {what}{suggestion(what, TARGETS)}")
        if (
            not isinstance(value, int | float)
            or isinstance(value, bool)
            or value != value
            or abs(value) == float("inf")
        ):
            raise ParameterError(f"the target {what} must be a number, not {value!r}")
        if what == "found" and not 0 < value < 1:
            raise ParameterError(f"the share of people found lies between 0 and 1, as in found=0.09, not {value:g}")
        if what == "level" and not 0 < value < 1:
            raise ParameterError("a permutation level lies between 0 and 1")
    return wanted


def _notes(study: Study, contestants: Sequence[Contestant]) -> list[str]:
    notes = []
    others = [name for name in study.table.names if name not in study.names]
    if others:
        notes.append(f"not compared: {listing(others, most=10)}")
    if study.identifiers:
        said = "not evidence for whoever looks for people, because identifiers are to be dropped"
        notes.append(f"{said}: {listing(study.identifiers, most=10)}")
    incomplete = len(study.table) - int(study.base.complete.sum())
    if incomplete:
        notes.append(f"{incomplete} of {len(study.table)} records have missing values, left out where those are needed")
    for one in contestants:
        left = [name for name in study.names if name not in one.masks(study)]
        if left:
            notes.append(f"{one.method.id} leaves as they are: {listing(left, most=10)}")
        if one.study != one.fixed:
            notes.append(
                f"{one.method.id} was studied with {one.method.reproducible_with}=true, which repeats itself; "
                "the plan for a release leaves that out"
            )
        if one.method.mapping == "none":
            notes.append(f"{one.method.id} makes synthetic records: measures that need the mapping do not apply to it")
    return notes


def _of(study: Study) -> str:
    """What a state file must have been made for: these data, columns, seed and settings."""
    told = [fingerprint(study.table), *study.names, str(study.seed.stream("compare").bits(2).tolist())]
    told += [repr(sorted((name, sorted(given.items())) for name, given in study.settings.items())), str(study.target)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()
