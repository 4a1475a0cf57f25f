"""The measures of two Parquet tables of any size: exact where parts can be put together, else of a stated sample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil import catalogue
from rankveil.catalogue import Measure, Value, get_measure
from rankveil.cluster.engine import Engine
from rankveil.cluster.tables import Tables, rows_at_a_time
from rankveil.cluster.work import Progress, Work
from rankveil.errors import NotApplicableError, ParameterError
from rankveil.linkage import Metric
from rankveil.measures._records import mean_interval, share_interval
from rankveil.measures.emd import Ends, distance
from rankveil.measuring import Settings, checked
from rankveil.moments import of_replicates
from rankveil.partitions.measures import Findings, alphas_of, ask_order
from rankveil.partitions.quantiles import Sorted
from rankveil.partitions.queries import Answers, drawn_rows, linked
from rankveil.partitions.samples import sample, sampled
from rankveil.partitions.scratch import Scratch
from rankveil.partitions.stages import Each, Job, Ranked, measured, ranked
from rankveil.seeds import Seed

Array = NDArray[np.float64]

SUBJECTS = 10_000
"""Subjects whose nearest masked record is looked for, unless more or all are asked for."""

CARRIED = 200_000
"""Records of which the earth mover's distance is computed."""

_CELLS = 2_000_000
"""Values of these at most, where there are many columns."""

_PARTS = 5
"""Parts of the sample whose earth mover's distances tell how much it varies."""

_LINKED: dict[str, Metric] = {"rank_linkage": "euclidean", "permutation_linkage": "maximum"}
_SAMPLED = ("emd", "propensity")

_LISTS = (
    ("sort_partition", 8.0),
    ("rank_part", 3.0),
    ("settle_part", 1.0),
    ("reverse_part", 1.0),
    ("return_ranks", 3.0),
)
"""How much work the lists of tasks are that some columns at a time need, beside each other."""


@dataclass(frozen=True, eq=False)
class Found:
    """The measures of two tables."""

    records: int
    attributes: tuple[str, ...]
    values: dict[str, Value]
    not_applicable: dict[str, str]
    notes: tuple[str, ...]


def measure_tables(
    engine: Engine,
    tables: Tables,
    *,
    names: Sequence[str],
    settings: Settings | None = None,
    seed: Seed,
    subjects: int | None = SUBJECTS,
    rows: int | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Found:
    """Some measures of two tables; `subjects` is how many of them linkage looks for, None for all.

    `rows` is how many a partition has at most, unless Parquet's row groups are larger.
    """
    settings = settings or {}
    for name, given in settings.items():
        get_measure(name).bind(given)
    if subjects is not None and subjects < 2:
        raise ParameterError("subjects must be 2 or more, or all")
    engine.check_seen(tables.files)
    job = Job(tables.original, tables.masked, tables.names, (), Scratch(engine.scratch), seed)
    if not resume:
        job.scratch.check_room(records=len(tables), attributes=len(tables.names), together=job.together)
    of = {"audit": tables.identity(), "measures": list(names), "settings": settings, "subjects": subjects}
    kept = {"bounds": tables.original.bounds(rows=rows or rows_at_a_time(tables.names, engine.memory))}
    with Work(engine, of=of, kept=kept, private=seed.reveal(), resume=resume, progress=progress) as work:
        job = replace(job, bounds=tuple(work.kept["bounds"]), scratch=work.scratch)
        work.plan(_plan(job, names))
        values, not_applicable = _measured(job, work, names, settings, subjects)
        count = len(job.partitions)
        parts = f"measured in {count} part{'s' if count > 1 else ''} on the cluster {engine.address.text}"
        resumed = ("what an earlier run had done was taken up",) if work.resumed else ()
    notes = (*engine.notes, *tables.notes, parts, *resumed)
    return Found(len(tables), tables.names, values, not_applicable, notes)


def _plan(job: Job, names: Sequence[str]) -> list[tuple[str, float, int]]:
    """How much work is to come: columns are ranked some at a time, then all is looked at together."""
    m = len(job.names)
    times = -(-m // job.together)
    lists = [(name, share * job.together, times) for name, share in _LISTS]
    lists.append(("measure_partition", 4.0 * m, 1))
    if any(name in _LINKED for name in names):
        lists.append(("answer_asking", 6.0 * m, 1))
    if any(name in _SAMPLED for name in names):
        lists += [("take_rows", 2.0 * m, 1), ("measure_sample", 2.0 * m, 1)]
    return lists


def _measured(
    job: Job, each: Each, names: Sequence[str], settings: Settings, subjects: int | None
) -> tuple[dict[str, Value], dict[str, str]]:
    """The values of measures, and why others do not apply, in the order in which they were asked for."""
    columns = ranked(job, each, ask=partial(ask_quietly, settings))
    found = Findings(job.names, columns, measured(job, each, columns, alphas=alphas_of(settings)), settings=settings)
    made: dict[str, Value | str] = _linkages(job, each, [name for name in names if name in _LINKED], subjects)
    made |= _from_samples(job, each, [name for name in names if name in _SAMPLED], settings, columns)
    for name in names:
        if name not in made:
            made[name] = _value_or_why(found, name)
    values = {name: value for name in names if isinstance(value := made[name], Value)}
    return values, {name: why for name in names if isinstance(why := made[name], str)}


def ask_quietly(settings: Settings, x: Sorted, y: Sorted) -> None:
    """Ask sorted columns what measures will ask; one that asks too much will say so itself, later."""
    with suppress(NotApplicableError):
        ask_order(settings, x, y)


def _value_or_why(found: Findings, name: str) -> Value | str:
    if not found.can(name):
        return _why_not(found, get_measure(name))
    try:
        return found.value(name)
    except NotApplicableError as why:
        return str(why)


def _why_not(found: Findings, entry: Measure) -> str:
    """Why a measure is not computed from parts of a table."""
    if not set(entry.kinds) & {"numeric"}:
        return f"it needs a column that is {' or '.join(entry.kinds)}, and there is none"
    parts = [need for need in entry.needs if need in catalogue.measures() and not found.can(need)]
    if parts:
        return f"{parts[0]} does not apply: {_why_not(found, get_measure(parts[0]))}"
    if any(need.startswith(("quasi_", "confidential_")) for need in entry.needs):
        return "not on a cluster: it needs the quasi-identifiers of all records at once"
    return "not on a cluster: it needs all records at once"


# ---- linkage ----


class _Answered:
    """Takes the part of the records that a measure asks: the distances are known."""

    def __init__(self, distance: Array) -> None:
        self._distance = distance

    def distances(self, _: Array, *, upto: Array | None = None) -> Array:
        """What was found."""
        return self._distance


def _linkages(job: Job, each: Each, names: Sequence[str], subjects: int | None) -> dict[str, Value | str]:
    """Linkage of some subjects, drawn by the seed, with all masked records."""
    if not names:
        return {}
    count = job.records if subjects is None else min(subjects, job.records)
    rows = drawn_rows(job.seed.stream("measure", "linkage", "subjects"), job.records, count)
    answers = linked(job, each, rows, [_LINKED[name] for name in names])
    return {name: _linkage(get_measure(name), answers[_LINKED[name]], rows, job) for name in names}


def _linkage(entry: Measure, answers: Answers, rows: NDArray[np.int64], job: Job) -> Value:
    m, n = len(job.names), job.records
    nothing = np.zeros((rows.size, m))  # the measure looks at its shape alone
    made: Value = entry(nothing, nothing, _Answered(answers.distance), False, rows + 1, None)
    if rows.size == n:
        return checked(entry, made)
    interval = mean_interval(np.log1p(answers.distance) / m, population=n)
    details = {
        "subjects": rows.size,
        "of": n,
        "interval": interval,
        "interval_method": "mean of a sample without replacement, 95 %",
        "twins_interval": share_interval(made.details["twins"], of=rows.size),
    }
    note = f"for {rows.size} of {n} subjects, drawn by the seed, each against all masked records ({_between(interval)})"
    return checked(entry, Value(made.value, {**made.details, **details}, (*made.notes, note)))


# ---- samples ----


def _from_samples(
    job: Job, each: Each, names: Sequence[str], settings: Settings, columns: Sequence[Ranked]
) -> dict[str, Value | str]:
    """Measures on records of both tables that the seed draws, the same rows of both."""
    if not names:
        return {}
    given = {name: get_measure(name).bind(settings.get(name, {})) for name in names}
    carried = min(CARRIED, max(_CELLS // len(job.names), _PARTS))
    sizes = {name: given[name]["most"] if name == "propensity" else carried for name in names}
    # a measure that draws by itself in memory draws the same here
    streams = {name: job.seed.stream("measure", name, "table") for name in names}
    sampled(job, each, {name: drawn_rows(streams[name], job.records, sizes[name]) for name in names})
    parts: list[tuple[str, int | None]] = [(name, None) for name in names]
    if "emd" in names and job.records > carried:
        parts += [("emd", part) for part in range(_PARTS)]
    done = each(partial(measure_sample, job, given, _ends(columns)), parts)
    made = dict(zip(parts, done, strict=True))
    return {name: _of_sample(name, made, job.records, sizes[name]) for name in names}


def _ends(columns: Sequence[Ranked]) -> Ends:
    """The extremes of all columns of both whole tables."""
    sides = [[getattr(column, f"moments_{side}") for column in columns] for side in "xy"]
    ends = [np.concatenate([getattr(each, end) for each in side]) for side in sides for end in ("low", "high")]
    return Ends(*ends)


def measure_sample(
    job: Job, given: Mapping[str, Mapping[str, Any]], ends: Ends, item: tuple[str, int | None]
) -> Value | str:
    """A task: a measure of a sample, or of a part of it."""
    name, part = item
    x, y = sample(job, name)
    entry = get_measure(name)
    try:
        if name == "emd":
            return checked(entry, _carried(job, x, y, given[name], ends, part))
        rng = job.seed.stream("measure", name, "table")
        return checked(entry, entry(x, y, rng=rng, names=job.names, kinds=("numeric",) * len(job.names), **given[name]))
    except NotApplicableError as why:
        return str(why)
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        return f"it could not be computed for these values ({error})"


def _carried(job: Job, x: Array, y: Array, given: Mapping[str, Any], ends: Ends, part: int | None) -> Value:
    """The earth mover's distance of a sample, or of one of its parts on the same clusters."""
    only = None if part is None else job.seed.stream("measure", "emd", "parts").order(len(x))[part::_PARTS]
    found = distance(x, y, None, None, ends=ends, names=job.names, only=only, **given)
    return Value(found.value, {"records": [len(x), len(y)], **found.details}, found.notes)


def _of_sample(name: str, made: Mapping[tuple[str, int | None], Value | str], records: int, size: int) -> Value | str:
    """With what is to be said of a sample."""
    value = made[name, None]
    if isinstance(value, str) or records <= size:
        return value
    details = {**value.details, "sample": size, "of": records}
    if name == "emd":
        parts = [each.value for part in range(_PARTS) if isinstance(each := made[name, part], Value)]
        details["interval"] = _carried_interval(value.value, parts)
        details["interval_method"] = f"spread over {_PARTS} parts of the sample, and how much more they have, 95 %"
    between = _between(details["interval"])
    note = f"on {size} of {records} records of each table, drawn by the seed, the same rows of both ({between})"
    return Value(value.value, details, (*value.notes, note))


def _carried_interval(value: float, parts: Sequence[float]) -> list[float]:
    """Where the distance of the whole tables lies, from that of a sample and those of its parts.

    Chance makes samples differ, so their distance is too large: by c / sqrt(size) for tables that are alike, and by
    less for others. So the parts, which are smaller, tell how far down the interval must reach.
    """
    mean, _, reach = of_replicates(parts)
    too_much = max(mean - value, 0.0) / (math.sqrt(len(parts)) - 1)
    return [max(value - too_much - reach, 0.0), value + reach]


def _between(interval: Sequence[float]) -> str:
    """An interval in words.

    >>> _between([0.12345678, 0.5])
    '95 % interval 0.1235 to 0.5'
    """
    return f"95 % interval {interval[0]:.4g} to {interval[1]:.4g}"
