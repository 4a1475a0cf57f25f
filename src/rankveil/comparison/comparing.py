"""Methods at equal risk, equal utility, the least strength that protects enough people, or over the whole map."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankveil.auditing import decided_original
from rankveil.comparison.confirming import FEW, confirm, levelled
from rankveil.comparison.contestant import DRAWN, MANY, Contestant, contender_of, job_of, measure_places
from rankveil.comparison.level import at_level
from rankveil.comparison.ranking import mark_front, rank
from rankveil.comparison.reach import OF_RISK, OF_UTILITY, why_not_applicable
from rankveil.comparison.result import Comparison, Contender
from rankveil.comparison.running import Journal, Progress, Runner
from rankveil.comparison.study import FOUND, Study, columns_compared
from rankveil.comparison.target import Asked, check_family, default_utilities, risk_of, target_of
from rankveil.errors import ParameterError, listing, refuse_unknown
from rankveil.execute import PATIENCE, Pool, Workers, cores
from rankveil.manifest import fingerprint
from rankveil.measuring import Settings
from rankveil.schema import listed
from rankveil.seeds import Seed

if TYPE_CHECKING:
    from rankveil.cluster.engine import Engine

REPLICATES, MANY_REPLICATES = 5, 2
"""Maskings of each random method, and those of tables with more than 50,000 records."""
SWEEP_POINTS = 9

_SMALL = 10_000
"""Records below which one masking takes so little time that it may be made before other processes start."""


def compare(
    original: Any,
    methods: Sequence[str],
    *,
    at: Mapping[str, float] | str | None = None,
    sweep: bool = False,
    risk: str | None = None,
    utility: Sequence[str] | None = None,
    replicates: int | None = None,
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
    """Which method serves these data best, each at the least strength that protects: `at={"found": 0.09}`.

    `found` is the share of people whom somebody who uses everything finds, nobody with certainty; any measure of risk
    or confidentiality may stand there with its limit, which is one on the safe side whichever way the measure goes, and
    for a limit of utility or loss the greatest strength is taken. What is recommended holds on seeds that the search
    did not see. `at` may also name what is made equal, as in the papers: `risk` (with `rank_linkage` unless another
    `risk` is named), `utility` (the first one) or `level` (the permutation level of each attribute); `sweep` gives
    the whole map of risk and utility instead. `parameters` fixes parameters of methods,
    `settings` those of measures. `state` names a file that keeps finished work, so that a stopped comparison can be
    taken up again with `resume`.

    Maskings are made and measured by so many `workers` of this machine, or by those of a `cluster`: "local:4", or the
    address of a Dask scheduler, such as "tcp://host:8786". The table goes to them once, through the folder `scratch`
    that all of them see; `memory` is what local ones may use together. The answers are the same. A table may be given
    by the path of its file too.
    """
    refuse_unknown(declared)
    table = decided_original(original, declared, columns=columns)
    study = Study(table, columns_compared(table, columns), seed=Seed.of(seed), settings=settings, target=target)
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
    at: Mapping[str, float] | str | None = None,
    sweep: bool = False,
    risk: str | None = None,
    utility: Sequence[str] | None = None,
    replicates: int | None = None,
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
    confirmed: bool = True,
) -> Comparison:
    """The comparison on a study that is made already; without fresh seeds where nothing is to be recommended."""
    wanted = target_of(at, sweep=sweep)
    if points < 3:
        raise ParameterError(f"a map needs at least 3 points of each method, not {points}")
    if replicates is None:
        replicates = MANY_REPLICATES if len(study.table) > MANY else REPLICATES
    if replicates < 1:
        raise ParameterError(f"replicates must be at least 1, not {replicates}")
    risk = risk_of(wanted, risk)
    utilities = default_utilities() if utility is None else tuple(dict.fromkeys(listed(utility)))
    check_family(risk, "risk", OF_RISK)
    for name in utilities:
        check_family(name, "utility", OF_UTILITY)
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
        made = _compare(contestants, asked, runner, confirmed=confirmed)
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


def _compare(everybody: Sequence[Contestant], asked: Asked, runner: Runner, *, confirmed: bool) -> Comparison:
    study = runner.study
    why = {one.method.id: why_not_applicable(one, study, asked) for one in everybody}
    contestants = [one for one in everybody if why[one.method.id] is None]
    if "level" in asked.at:
        methods = at_level(contestants, asked, runner)
    else:
        expected = sum((10 if one.scale else 1) * one.replicates for one in contestants)
        found = runner.run([job_of(one, asked, study) for one in contestants], expected=expected)
        methods = [contender_of(one, found[one.method.id], asked, runner) for one in contestants]
        if asked.at:
            measure_places(contestants, methods, asked, runner)
            levelled(contestants, methods, asked, runner)
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
        notes=_notes(study, contestants, asked),
    )
    if asked.at and confirmed:
        confirm(contestants, made, asked, runner)
    elif asked.at:
        rank(made)
    mark_front(made)
    made.notes += _said(methods)
    return made


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


def _notes(study: Study, contestants: Sequence[Contestant], asked: Asked) -> list[str]:
    notes = []
    if asked.limit is not None and asked.measure == FOUND and len(study.table) > MANY:
        notes.append(
            f"strengths were searched with {DRAWN:,} people who were drawn, each looked for among all "
            f"{len(study.table):,} records, and corrected by one attack with everybody; {FEW} fresh seeds, attacked "
            "with everybody, confirm what is recommended"
        )
    others = [name for name in study.table.names if name not in study.names]
    if others:
        notes.append(f"not compared: {listing(others, most=10)}")
    if study.identifiers:
        said = "not evidence for whoever looks for people, because identifiers are to be dropped"
        notes.append(f"{said}: {listing(study.identifiers, most=10)}")
    incomplete = len(study.table) - int(study.base.complete.sum())
    if incomplete:
        notes.append(f"{incomplete} of {len(study.table)} records have missing values, left out where those are needed")
    if any(study.left_by(one.changed(study)) for one in contestants):
        notes.append("columns that are not masked are evidence for whoever looks for people, compared or not")
    for one in contestants:
        changed = one.changed(study)
        left = [name for name in study.names if name not in changed]
        if left:
            notes.append(f"{one.method.id} leaves as they are: {listing(left, most=10)}")
        for step in one.besides:
            notes.append(f"beside {one.method.id}, {step.method} masks {listing(step.columns or (), most=10)}")
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
