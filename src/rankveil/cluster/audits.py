"""The measures of two Parquet tables of any size: exact where parts can be put together, else of a stated sample."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil import memory
from rankveil.catalogue import Measure, Value, get_measure
from rankveil.cluster.engine import Engine
from rankveil.cluster.tables import Given, rows_at_a_time
from rankveil.cluster.work import RANKING, Progress, Work
from rankveil.errors import NotApplicableError, ParameterError
from rankveil.linkage import Metric
from rankveil.measures._codes import Tally
from rankveil.measures._records import mean_interval, share_interval
from rankveil.measures.canonical_correlation import without_mapping
from rankveil.measures.emd import Ends, distance
from rankveil.measuring import Settings, checked
from rankveil.moments import of_replicates
from rankveil.partitions.beside import SideBySide
from rankveil.partitions.measures import ask_order
from rankveil.partitions.parted import MeasuringParts, Parted, Special
from rankveil.partitions.quantiles import Sorted
from rankveil.partitions.queries import Answers, drawn_rows, linked
from rankveil.partitions.records import PartedView
from rankveil.partitions.samples import sample, sampled
from rankveil.partitions.scratch import Scratch, room
from rankveil.partitions.stages import Each, Job, Ranked
from rankveil.partitions.tallies import tallied
from rankveil.seeds import Seed

Array = NDArray[np.float64]

SUBJECTS = 10_000
"""Subjects whose nearest masked record is looked for, unless more or all are asked for."""

CARRIED = 200_000
"""Records of which the earth mover's distance is computed."""

_CELLS = 2_000_000
"""Values of these at most, where there are many columns."""

_SORTING, _KEYED = 20, 16
"""Bytes of scratch that each value needs besides when records are put side by side for cm3, or matched by a key."""

_OF_FREE = 0.5
"""The share of the free memory here that quasi-identifiers of all records may take."""

_PARTS = 5
"""Parts of the sample whose earth mover's distances tell how much it varies."""

_LINKED: dict[str, Metric] = {"rank_linkage": "euclidean", "permutation_linkage": "maximum"}
_SAMPLED = ("emd", "propensity")
_COUNTED = ("contingency", "cramers_v", "total_variation")


@dataclass(frozen=True, eq=False)
class Found:
    """The measures of two tables."""

    records: int
    attributes: tuple[str, ...]
    values: dict[str, Value]
    not_applicable: dict[str, str]
    notes: tuple[str, ...]
    mapping: str = "rows"
    rankings: Mapping[str, str] = field(default_factory=dict)
    """By what the categories of columns are ordered."""


def measure_tables(
    engine: Engine,
    given: Given,
    *,
    names: Sequence[str],
    asked: Collection[str] | None = None,
    settings: Settings | None = None,
    seed: Seed,
    subjects: int | None = SUBJECTS,
    rows: int | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Found:
    """Some measures of two tables; `subjects` is how many of them linkage looks for, None for all.

    `asked` are those that somebody named: some that take long are computed for them alone. `rows` is how many a
    partition has at most, unless Parquet's row groups are larger.
    """
    settings = settings or {}
    for name, parameters in settings.items():
        get_measure(name).bind(parameters)
    if subjects is not None and subjects < 2:
        raise ParameterError("subjects must be 2 or more, or all")
    engine.check_seen(given.files)
    sorting = "cm3" in (names if asked is None else asked) or not given.mapping
    if not resume:
        Scratch(engine.scratch).check_free(_scratch_needed(given, sorting=sorting))
    of = {"audit": given.identity(), "measures": list(names), "settings": settings, "subjects": subjects}
    rows = rows or rows_at_a_time(given.original.names, engine.memory)
    kept = {"x": given.original.bounds(rows=rows), "y": given.masked.bounds(rows=rows)}
    with Work(engine, of=of, kept=kept, private=seed.reveal(), resume=resume, progress=progress) as work:
        work.plan(_plan(given.width, names))
        parted = given.parted(
            work,
            seed=seed,
            settings=settings,
            ask=partial(ask_quietly, settings),
            room=memory.available() * _OF_FREE,
        )
        measuring = MeasuringParts(
            parted,
            special=_special(parted, work, names, names if asked is None else asked, subjects),
            weighted=bool(given.schema.with_role("weight")),
        )
        values, not_applicable = measuring.all(names)
        count = len(work.kept["x"]) - 1
        parts = f"measured in {count} part{'s' if count > 1 else ''} on the cluster {engine.address.text}"
        resumed = ("what an earlier run had done was taken up",) if work.resumed else ()
    return Found(
        parted.records,
        parted.names,
        values,
        not_applicable,
        (*engine.notes, *parted.notes, parts, *resumed, *given.notes),
        parted.mapping,
        parted.rankings,
    )


def _scratch_needed(given: Given, *, sorting: bool) -> int:
    """Bytes of scratch that an audit may need, as far as the footers tell."""
    records, m = max(len(given.original), len(given.masked)), max(given.width, 1)
    again = m if given.original.gaps or given.masked.gaps else 0  # ranks among the records that have a column
    need = room(records=records, attributes=m, together=2) + room(records=records, attributes=again, together=0)
    wide = 1 if records < 2**31 else 2
    brought = given.key is not None or given.order is not None
    return need + records * wide * ((_SORTING * m + 32 if sorting else 0) + (_KEYED * m + 64 if brought else 0))


def _plan(width: int, names: Sequence[str]) -> list[tuple[str, float, int]]:
    """How much work is to come: a first look, columns ranked some at a time, then all is looked at together."""
    m = max(width, 1)
    times = -(-m // 2)
    lists = [("look_at_side", 2.0 * m, 1), *((name, share * 2, times) for name, share in RANKING)]
    lists.append(("measure_partition", 4.0 * m, 1))
    if any(name in _LINKED for name in names):
        lists.append(("answer_asking", 6.0 * m, 1))
    if any(name in _SAMPLED for name in names):
        lists += [("take_rows", 2.0 * m, 1), ("measure_sample", 2.0 * m, 1)]
    return lists


def ask_quietly(settings: Settings, x: Sorted, y: Sorted) -> None:
    """Ask sorted columns what measures will ask; one that asks too much will say so itself, later."""
    with suppress(NotApplicableError):
        ask_order(settings, x, y)


def _special(
    parted: Parted, each: Each, names: Collection[str], asked: Collection[str], subjects: int | None
) -> dict[str, Special]:
    """Measures that are not put together from summaries; some of the `names` were `asked` for."""
    linking = partial(_linkage, each, [name for name in _LINKED if name in names], subjects, {})
    sampling = partial(_from_sample, each, parted.work.settings)
    beside = partial(_by_place, each, "cm3" in asked or parted.mapping == "none")
    counting = partial(_by_counts, each)
    special: dict[str, Special] = {**dict.fromkeys(_LINKED, linking), **dict.fromkeys(_SAMPLED, sampling)}
    return {**special, **dict.fromkeys(_COUNTED, counting), "cm3": beside}


def _by_counts(each: Each, entry: Measure, parted: Parted, view: PartedView) -> Value:
    """A measure of categories from the numbers of their combinations."""
    job = replace(view.records.job, names=view.names)
    (x, of_x), (y, of_y) = tallied(job, each).values()
    categories = tuple(parted.categories[parted.names.index(name)] for name in view.names)
    if entry.per == "column":
        x, y = x[:, 0], y[:, 0]
    given = parted.work.settings.get(entry.id, {})
    made: Value = entry(x, y, Tally(of_x), Tally(of_y), names=view.names, categories=categories, **given)
    sizes = {"records": [int(of_x.sum()), int(of_y.sum())]} if "records" in made.details else {}
    return Value(made.value, {**made.details, **sizes}, made.notes)


def _by_place(each: Each, wanted: bool, entry: Measure, parted: Parted, view: PartedView) -> Value:
    """Records side by side by their places in the order of each attribute: a shuffle of all records for each."""
    if not wanted:
        raise NotApplicableError("not on a cluster unless it is asked for: it sorts all records by each attribute")
    stream = parted.seed.stream("measure", entry.id, "table")
    tied = any(column.tied for column in view.records.columns)
    tables = SideBySide(view.job, each, tied, stream)
    made = without_mapping(view.rank_basis_x, view.rank_basis_y, tables, names=view.names)
    tables.close()
    return made


# ---- linkage ----


class _Answered:
    """Takes the part of the records that a measure asks: the distances are known."""

    def __init__(self, distance: Array) -> None:
        self._distance = distance

    def distances(self, _: Array, *, upto: Array | None = None) -> Array:
        """What was found."""
        return self._distance


def _linkage(
    each: Each,
    wanted: Sequence[str],
    subjects: int | None,
    known: dict[Metric, Answers],
    entry: Measure,
    parted: Parted,
    view: PartedView,
) -> Value:
    """Linkage of some subjects, drawn by the seed, with all masked records; the first one asks for all others too."""
    job = view.job
    count = job.records if subjects is None else min(subjects, job.records)
    rows = drawn_rows(job.seed.stream("measure", "linkage", "subjects"), job.records, count)
    if not known:
        known |= linked(job, each, rows, [_LINKED[name] for name in dict.fromkeys((entry.id, *wanted))])
    answers = known[_LINKED[entry.id]]
    m, n = len(job.names), job.records
    nothing = np.zeros((rows.size, m))  # the measure looks at its shape alone
    made: Value = entry(nothing, nothing, _Answered(answers.distance), False, rows_of(job, "x", rows) + 1, None)
    if rows.size == n:
        return made
    interval = mean_interval(np.log1p(answers.distance) / m, population=n)
    details = {
        "subjects": rows.size,
        "of": n,
        "interval": interval,
        "interval_method": "mean of a sample without replacement, 95 %",
        "twins_interval": share_interval(made.details["twins"], of=rows.size),
    }
    note = f"for {rows.size} of {n} subjects, drawn by the seed, each against all masked records ({_between(interval)})"
    return Value(made.value, {**made.details, **details}, (*made.notes, note))


def rows_of(job: Job, side: str, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of a table in which records stand that are given by their places, in order, among those of a job."""
    bounds = job.bounds_of(side)
    cuts = np.searchsorted(places, bounds)
    found = [
        job.source(side).rows(*job.ends(side, p))[places[cuts[p] : cuts[p + 1]] - bounds[p]]
        for p in range(len(bounds) - 1)
        if cuts[p] < cuts[p + 1]
    ]
    return np.concatenate([*found, np.empty(0, np.int64)])


# ---- samples ----


def _from_sample(each: Each, settings: Settings, entry: Measure, parted: Parted, view: PartedView) -> Value:
    """A measure on records of both tables that the seed draws, the same rows of both where they correspond."""
    columns = [view.records.columns[view.job.names.index(name)] for name in view.names]
    job = replace(view.job, names=view.names)
    given = entry.bind(settings.get(entry.id, {}))
    most = given["most"] if entry.id == "propensity" else min(CARRIED, max(_CELLS // len(job.names), _PARTS))
    sizes = len(view.sides["x"]), len(view.sides["y"])
    sampled(job, each, {entry.id: _drawn(job, entry.id, sizes, most)})
    parts: list[int | None] = [None]
    if entry.id == "emd" and max(sizes) > most:
        parts += list(range(_PARTS))
    done = each(partial(measure_sample, job, entry.id, given, _ends(columns), parted.kinds), parts)
    made = dict(zip(parts, done, strict=True))
    return _of_sample(entry.id, made, sizes, most)


def _drawn(job: Job, name: str, sizes: tuple[int, int], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The records to look at, as a measure that draws by itself in memory draws them."""
    stream = job.seed.stream("measure", name, "table")
    x = drawn_rows(stream, sizes[0], most)
    return x, x if sizes[0] == sizes[1] else drawn_rows(stream, sizes[1], most, call=int(sizes[0] > most))


def _ends(columns: Sequence[Ranked]) -> Ends:
    """The extremes of all columns of both whole tables."""
    sides = [[getattr(column, f"moments_{side}") for column in columns] for side in "xy"]
    ends = [np.concatenate([getattr(each, end) for each in side]) for side in sides for end in ("low", "high")]
    return Ends(*ends)


def measure_sample(
    job: Job, name: str, given: Mapping[str, Any], ends: Ends, kinds: tuple[str, ...], part: int | None
) -> Value | str:
    """A task: a measure of a sample, or of a part of it."""
    x, y = sample(job, name)
    entry = get_measure(name)
    try:
        if name == "emd":
            return checked(entry, _carried(job, x, y, given, ends, part))
        rng = job.seed.stream("measure", name, "table")
        return checked(entry, entry(x, y, rng=rng, names=job.names, kinds=kinds, **given))
    except NotApplicableError as why:
        return str(why)
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        return f"it could not be computed for these values ({error})"


def _carried(job: Job, x: Array, y: Array, given: Mapping[str, Any], ends: Ends, part: int | None) -> Value:
    """The earth mover's distance of a sample, or of one of its parts on the same clusters."""
    only = None if part is None else job.seed.stream("measure", "emd", "parts").order(min(len(x), len(y)))[part::_PARTS]
    found = distance(x, y, None, None, ends=ends, names=job.names, only=only, **given)
    return Value(found.value, {"records": [len(x), len(y)], **found.details}, found.notes)


def _of_sample(name: str, made: Mapping[int | None, Value | str], sizes: tuple[int, int], most: int) -> Value:
    """With what is to be said of a sample."""
    value = made[None]
    if isinstance(value, str):
        raise NotApplicableError(value)
    if max(sizes) <= most:
        return value
    records = sizes[0] if sizes[0] == sizes[1] else list(sizes)
    details = {**value.details, "sample": most, "of": records}
    if name == "emd":
        parts = [each.value for part in range(_PARTS) if isinstance(each := made[part], Value)]
        details["interval"] = _carried_interval(value.value, parts)
        details["interval_method"] = f"spread over {_PARTS} parts of the sample, and how much more they have, 95 %"
    between = _between(details["interval"])
    drawn = (
        f"on {most} of {sizes[0]} records of each table, drawn by the seed, the same rows of both"
        if sizes[0] == sizes[1]
        else f"on at most {most} of {sizes[0]} original and {sizes[1]} masked records, drawn by the seed"
    )
    return Value(value.value, details, (*value.notes, f"{drawn} ({between})"))


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
