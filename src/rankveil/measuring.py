"""The measures of one pair of tables, each computed once: a value, or the reason why it does not apply.

What a measure works on is named by its positional arguments: something that a view has (`rank_x`, `correlation_y`), or
another measure, whose value it then gets.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from rankveil import catalogue
from rankveil.catalogue import Measure, Used, Value, get_measure, least_used
from rankveil.errors import NotApplicableError, ParameterError, listing
from rankveil.execute import in_threads
from rankveil.pairs import Pair
from rankveil.views import Beside, Column, View

_SLACK = 1e-9
"""By so much a value may leave its bounds: rounding."""

_OF_ROLES = tuple(f"{fact}_{side}" for fact in ("quasi", "confidential", "survey") for side in ("x", "y"))
"""What measures can ask of the roles that were given, for all records of a table; also `confidential_kinds`."""

_INTRUDER = "intruder"
"""What a measure asks for that is about who is found: both tables whole, not the columns that are compared."""

_USE = "use"
"""What a measure asks for that is about a stated use: both tables in the columns that it takes."""

_RELEASED = "released"
"""What a measure asks for that is about how general the released cells are."""

Settings = Mapping[str, Mapping[str, Any]]

_CATEGORIES = ("ordinal", "nominal")

_EMPTIED = "it is empty in the release"


class Computed(ABC):
    """Measures by id, each computed once: a value, or the reason why it does not apply."""

    def __init__(self) -> None:
        self._done: dict[str, Value | str] = {}

    @abstractmethod
    def _compute(self, entry: Measure) -> Value:
        """A measure, without what the measures that it is made of have to say."""

    def value(self, name: str) -> Value:
        """The value of a measure, or an error that says why it does not apply."""
        if name not in self._done:
            entry = get_measure(name)
            try:
                self._done[name] = checked(entry, self._with_parts(entry, self._compute(entry)))
            except NotApplicableError as why:
                self._done[name] = str(why)
            except (ArithmeticError, np.linalg.LinAlgError) as error:
                self._done[name] = f"it could not be computed for these values ({error})"
        found = self._done[name]
        if isinstance(found, str):
            raise NotApplicableError(found)
        return found

    def all(self, names: Sequence[str]) -> tuple[dict[str, Value], dict[str, str]]:
        """The values of some measures, and why others of them do not apply."""
        values, not_applicable = {}, {}
        for name in names:
            try:
                values[name] = self.value(name)
            except NotApplicableError as why:
                not_applicable[name] = str(why)
        return values, not_applicable

    def _part(self, need: str) -> float:
        """The value of a measure that another one is made of."""
        try:
            return self.value(need).value
        except NotApplicableError as why:
            raise NotApplicableError(f"{need} does not apply: {why}") from None

    def _with_parts(self, entry: Measure, made: Value) -> Value:
        """With what its parts say and it does not say itself, each note once with all whose it is."""
        own = dict.fromkeys(made.notes)
        whose: dict[str, list[str]] = {}
        for part in (need for need in entry.needs if need in catalogue.measures()):
            for note in self.value(part).notes:
                if note not in own:
                    whose.setdefault(note, []).append(part)
        said = (f"{', '.join(names)}: {note}" for note, names in whose.items())
        return replace(made, notes=(*own, *said), used=made.used or self._used_by_parts(entry))

    def _used_by_parts(self, entry: Measure) -> Used | None:
        """The fewest and the most records that its parts rest on."""
        parts = [self.value(need).used for need in entry.needs if need in catalogue.measures()]
        return least_used([used for used in parts if used is not None])


class Measuring(Computed):
    """The measures of a pair; `settings` are parameters of measures by id."""

    def __init__(
        self,
        pair: Pair,
        *,
        settings: Settings | None = None,
        target: str | None = None,
        nearest: bool = False,
        intruder: Callable[[], Any] | None = None,
        use: Callable[[], Any] | None = None,
    ) -> None:
        if target is not None and target not in pair.names:
            raise ParameterError(f"the target {target} is not among the columns compared: {', '.join(pair.names)}")
        for name, given in (settings or {}).items():
            get_measure(name).bind(given)
        super().__init__()
        self.pair = pair
        self._settings = settings or {}
        self._target = target
        released = getattr(pair, "released", None)
        self._released = None if released is None else cache(released)
        self._nearest = nearest and pair.mapping == "none"
        self._intruder = intruder
        self._use = use

    def _compute(self, entry: Measure) -> Value:
        pair, notes = self._pair(entry)
        if entry.kinds == _CATEGORIES and entry.per == "table" and not entry.equal:
            pair, said = self._with_emptied(pair)
            notes = (*notes, *said)
        view, more = self._view(entry, pair)
        if entry.per == "table" and entry.records != "together" and pair.gaps and view is not self._by_nearest(pair):
            made = self._as_far_as_there(entry, pair)
            return replace(made, notes=(*notes, *more, *made.notes))
        more = (*more, *self._lost(entry, pair))
        if entry.per == "table":
            made = self._run(entry, pair, view, "table")
            spans = made.details["records"] if entry.pairwise and "records" in made.details else None
            used = self._used(entry, pair, spans or [(len(view.sides["x"]), len(view.sides["y"]))])
        else:
            columns = self._columns(entry, pair, view)
            made = self._per_attribute(entry, pair, columns)
            used = self._used(entry, pair, [each.sizes for each in columns if min(each.sizes)])
        return replace(made, notes=(*notes, *more, *made.notes), used=made.used or used)

    def _by_nearest(self, pair: Pair) -> View | None:
        """The records that are paired with the nearest, where that was asked for."""
        return pair.nearest if self._nearest else None

    def _used(self, entry: Measure, pair: Pair, sizes: Sequence[tuple[int, int]]) -> Used | None:
        """How many records of both tables a measure takes: of each column or pair of columns, or of all together."""
        if any(need in (_INTRUDER, _USE, _RELEASED) for need in entry.needs) or all(
            need in catalogue.measures() for need in entry.needs
        ):
            return None
        asked = [need for need in entry.needs if need in _OF_ROLES]
        if asked:  # of all records, complete or not
            side = asked[0][-1]
            every = pair.known[side == "y"].records
            return Used(every, every, every)
        if not sizes:
            return Used(0, 0, pair.sizes[0])
        first, second = (
            Used(min(some), max(some), of) for some, of in zip(zip(*sizes, strict=True), pair.sizes, strict=True)
        )
        return first if entry.equal or first == second else replace(first, masked=second)

    def _as_far_as_there(self, entry: Measure, pair: Pair) -> Value:
        """A measure column by column, or pair by pair, each on the records that have it."""
        columns = pair.columns if entry.equal else pair.whole_columns
        kept = [name for name, column in zip(pair.names, columns, strict=True) if min(column.sizes)]
        gone = emptied(pair)
        pairs = entry.records == "by pair" and entry.kinds != _CATEGORIES
        if pairs and len(kept) < 2 <= len(kept) + len(gone):
            if entry.emptied == "lost":
                worst = Value(entry.bounds[entry.better == "lower"], used=Used(0, 0, pair.sizes[0]))
                return replace(worst, notes=tuple(_counted_as_lost(entry, gone)))
            raise NotApplicableError(_nobody(pair))
        if not kept:
            raise NotApplicableError(_nobody(pair))
        part = pair.only(kept)
        if entry.records == "by column":
            there = [column for column in columns if min(column.sizes)]
            made = self._run(entry, part, Beside(there), "table")
            used = self._used(entry, pair, [column.sizes for column in there])
        else:
            made = self._run(entry, part, part.every, "table")
            used = self._used(entry, pair, _shared(part))
        made = replace(made, used=made.used or used)
        bare = [name for name in pair.names if name not in kept and name not in gone]
        notes = (*made.notes, *(f"column {name} left out: no record has it" for name in bare))
        if entry.emptied == "left out":
            notes = (*notes, *(f"column {name} left out: {_EMPTIED}" for name in gone))
            return replace(made, notes=notes)
        return replace(_with_lost(entry, made, kept, gone), notes=(*notes, *_counted_as_lost(entry, gone)))

    def _pair(self, entry: Measure) -> tuple[Pair, tuple[str, ...]]:
        """The columns that a measure takes, and which others were left out."""
        pair = self.pair.of_kinds(entry.kinds)
        if pair is None:
            raise NotApplicableError(f"it needs a column that is {' or '.join(entry.kinds)}, and there is none")
        notes: tuple[str, ...] = ()
        if pair is not self.pair:
            left = [name for name in self.pair.names if name not in pair.names]
            notes = (f"it takes {' and '.join(entry.kinds)} columns; left out: {listing(left, most=10)}", *pair.notes)
        return self._moments(entry, pair, notes)

    def _moments(self, entry: Measure, pair: Pair, notes: tuple[str, ...]) -> tuple[Pair, tuple[str, ...]]:
        """The pair with dates and times as the measure takes them."""
        if entry.moments == "as numbers":
            return pair, notes
        if entry.moments == "in days":
            return pair.in_days(), notes
        part = pair.with_zeros()
        if part is None:
            raise NotApplicableError("it divides by values, and dates and times of day have no 0 that means nothing")
        if part is pair:
            return pair, notes
        left = [name for name in pair.names if name not in part.names]
        said = f"dates and times have no 0 that means nothing, and it divides by values; left out: {listing(left)}"
        return part, (*notes, said, *part.notes)

    def _view(self, entry: Measure, pair: Pair) -> tuple[View, tuple[str, ...]]:
        if entry.mapping and pair.mapping == "none":
            if not (self._nearest and entry.family == "loss"):
                raise NotApplicableError("it needs to know which masked record derives from which original one")
            return pair.nearest, ("each masked record is paired with the nearest original one",)
        if entry.pairwise:
            return pair.available, ()
        if entry.equal or pair.mapping == "none":
            return (pair.table if entry.equal else pair.whole), ()
        return pair.whole, ()

    def _lost(self, entry: Measure, pair: Pair) -> tuple[str, ...]:
        """What is said where a measure of distributions looks at all records of both tables."""
        if (
            entry.equal
            or pair.mapping == "none"
            or any(need in (*_OF_ROLES, _INTRUDER, _USE, _RELEASED) for need in entry.needs)
        ):
            return ()
        if entry.needs and all(need in catalogue.measures() for need in entry.needs):
            return ()  # its parts say it
        if entry.pairwise and entry.per == "table" and pair.available is not pair.whole:
            return ("each number over all original and all masked records that have what it takes",)
        if entry.per == "column":
            apart = [
                name for name, a, b in zip(pair.names, pair.columns, pair.whole_columns, strict=True) if a is not b
            ]
            said = f"over all original and all masked values, of which some are missing: {listing(apart, most=5)}"
            return (said,) if apart else ()
        if pair.whole is pair.table:
            return ()
        sizes = len(pair.whole.sides["x"]), len(pair.whole.sides["y"])
        return (f"over all records that are complete on their own side: {sizes[0]} original and {sizes[1]} masked",)

    def _columns(self, entry: Measure, pair: Pair, view: View) -> Sequence[Column]:
        if not self._nearest and entry.equal is False and (view is pair.whole or entry.pairwise):
            return pair.whole_columns
        if view is pair.table:
            return pair.columns
        return [Column(view, j) for j in range(len(pair.names))]

    def _with_emptied(self, pair: Pair) -> tuple[Pair, tuple[str, ...]]:
        """Columns that are empty in the release as one category there, which no original record has."""
        gone = emptied(pair) if _held(pair) and len(pair.table) == 0 else ()
        if not gone:
            return pair, ()
        said = f"empty in the release, which counts as a category that no original record has: {listing(gone, most=10)}"
        return pair.with_category_in(gone), (said,)

    def _run(self, entry: Measure, pair: Pair, view: View | Column | Beside, name: str) -> Value:
        # what is asked of the roles is asked of all records, complete or not
        own = (*_OF_ROLES, "confidential_kinds", _INTRUDER, _USE, _RELEASED, *catalogue.measures())
        if len(view) == 0 and not all(need in own for need in entry.needs):
            raise NotApplicableError(_nobody(pair))
        data = [self._need(need, view) for need in entry.needs]
        target = self._target if entry.aims else None
        if target is not None and target not in pair.names:
            raise NotApplicableError(f"the target {target} is not a column that it takes")
        places = range(len(pair.names)) if entry.per == "table" else [pair.names.index(name)]
        made = entry(
            *data,
            rng=pair.seed.stream("measure", entry.id, name),
            names=pair.names,
            target=None if target is None else pair.names.index(target),
            kinds=tuple(pair.kinds[j] for j in places),
            categories=tuple(pair.categories[j] for j in places),
            **self._settings.get(entry.id, {}),
        )
        return made if isinstance(made, Value) else Value(float(made))

    def _need(self, need: str, view: View | Column | Beside) -> Any:
        if need == _INTRUDER:
            if self._intruder is None:
                raise NotApplicableError("it needs both tables whole, with all their columns")
            return self._intruder()
        if need == _RELEASED:
            if self._released is None:
                raise NotApplicableError("it needs both tables whole, with the labels of their cells")
            return self._released()
        if need == _USE:
            if self._use is None:
                raise NotApplicableError("state what the release is to be used for with --use uses.toml")
            return self._use()
        if need == "confidential_kinds":
            return self.pair.known[0].kinds
        if need in _OF_ROLES:
            fact, _, side = need.rpartition("_")
            return getattr(self.pair.known[side == "y"], fact)
        return self._part(need) if need in catalogue.measures() else getattr(view, need)

    def _prepare(self, entry: Measure, column: Column) -> None:
        """Compute what all columns share before threads ask for it."""
        for need in entry.needs:
            self._need(need, column)

    def _per_attribute(self, entry: Measure, pair: Pair, columns: Sequence[Column]) -> Value:
        """Every attribute on its own records; the headline is their mean, maximum or minimum."""
        names = pair.names
        there = [column for column in columns if min(column.sizes)]
        gone = emptied(pair) if len(there) < len(columns) else ()

        def attempt(j: int) -> Value | str:
            if names[j] in gone:
                return _without_release(entry, names[j])
            try:
                return self._run(entry, pair, columns[j], names[j])
            except NotApplicableError as why:
                return str(why)

        if there:
            self._prepare(entry, there[0])
        made = in_threads(attempt, range(len(names)), size=pair.x.size)
        found: dict[str, Value | str] = dict(zip(names, made, strict=True))
        lengths = {name: len(column) for name, column in zip(names, columns, strict=True)}
        paired = pair.mapping != "none" and all(a is b for a, b in zip(columns, pair.columns, strict=True))
        if paired and any(length != len(pair) for length in lengths.values()):
            left_out = {name: len(pair) - length for name, length in lengths.items()}
            return over_attributes(entry, found, records=lengths, left_out=left_out)
        used = {name: list(column.sizes) for name, column in zip(names, columns, strict=True)} if entry.pairwise else {}
        return over_attributes(entry, found, **({"records": used} if used else {}))


def _shared(pair: Pair) -> list[tuple[int, int]]:
    """How many records of both tables have both of two columns, for every two; of a single column, how many have it."""
    every = pair.every
    x, y = every.shared_x, every.shared_y
    places = np.triu_indices(len(x), k=1) if len(x) > 1 else np.diag_indices(1)
    return list(zip(x[places].tolist(), y[places].tolist(), strict=True))


def _with_lost(entry: Measure, made: Value, kept: Sequence[str], gone: Sequence[str]) -> Value:
    """A mean over columns, or over pairs of them, with the columns that are empty in the release at its worst."""
    if not gone:
        return made
    sizes = len(kept), len(kept) + len(gone)
    there, every = sizes if entry.records == "by column" else (math.comb(size, 2) for size in sizes)
    worst = entry.bounds[entry.better == "lower"]
    value = (made.value * there + worst * (every - there)) / every
    details = dict(made.details)
    if "per_attribute" in details:
        details["per_attribute"] = {**details["per_attribute"], **dict.fromkeys(gone, worst)}
    return replace(made, value=value, details=details)


def _counted_as_lost(entry: Measure, gone: Sequence[str]) -> list[str]:
    worst = entry.bounds[entry.better == "lower"]
    return [f"column {name} is empty in the release: it counts as lost ({worst:g})" for name in gone]


def emptied(pair: Pair) -> tuple[str, ...]:
    """The columns that have values in the original and none in the release."""
    bare = [j for j, column in enumerate(pair.whole_columns) if not min(column.sizes)]
    if not _held(pair):
        return tuple(pair.names[j] for j in bare)  # every column of an original in parts has values
    x = pair.x if pair.everything is None else pair.everything[0]
    return tuple(pair.names[j] for j in bare if not np.isnan(x[:, j]).all())


def _held(pair: Pair) -> bool:
    """Whether the values are in memory; what stands in for a pair of tables in parts has none."""
    return pair.x.ndim == 2


def _without_release(entry: Measure, name: str) -> Value | str:
    """What a measure makes of a column that is empty in the release: a distribution is lost, pairs are not there."""
    worst = entry.bounds[entry.better == "lower"]
    if entry.equal or math.isinf(worst):
        return _EMPTIED
    return Value(worst, notes=tuple(_counted_as_lost(entry, [name])))


def _nobody(pair: Pair) -> str:
    """Why there is no record to be measured."""
    gone = emptied(pair)
    if not gone:
        return "no record has the values that it needs"
    are = f"column {gone[0]} is" if len(gone) == 1 else f"columns {listing(gone, most=10)} are"
    return f"{are} empty in the release, and no record has the values that it needs; name others with --columns"


def over_attributes(entry: Measure, found: Mapping[str, Value | str], **more: Any) -> Value:
    """One value from those of the attributes, their mean, maximum or minimum; `more` is said in the details."""
    done = {name: value for name, value in found.items() if isinstance(value, Value)}
    skipped = {name: value for name, value in found.items() if isinstance(value, str)}
    if not done:
        raise NotApplicableError(f"in no column: {next(iter(skipped.values()))}")
    numbers = [value.value for value in done.values()]
    mean = math.fsum(number / len(numbers) for number in numbers)  # the sum of large ones may be too large
    headline = {"mean": mean, "max": max(numbers), "min": min(numbers)}[entry.headline]
    details: dict[str, Any] = {"per_attribute": {name: value.value for name, value in done.items()}}
    for key in dict.fromkeys(key for value in done.values() for key in value.details):
        details[key] = {name: value.details[key] for name, value in done.items() if key in value.details}
    details |= more
    if skipped:
        details["not_applicable"] = skipped
    notes = [f"column {name} left out: {why}" for name, why in skipped.items()]
    said = {note: None for value in done.values() for note in value.notes}
    return Value(headline, details, (*notes, *said))


def checked(entry: Measure, value: Value) -> Value:
    """A number within the declared bounds: anything else is a mistake of the measure, not a result."""
    low, high = entry.bounds
    if not (low - _SLACK <= value.value <= high + _SLACK) or math.isinf(value.value):
        raise ArithmeticError(f"it came to {value.value}, outside its bounds {low} to {high}")
    if not _finite(value.details):
        raise ArithmeticError("some of its details are not numbers")
    return replace(value, value=min(max(value.value, low), high))


def _finite(details: Any) -> bool:
    if isinstance(details, Mapping):
        return all(_finite(each) for each in details.values())
    if isinstance(details, list | tuple):
        return all(_finite(each) for each in details)
    return not isinstance(details, float) or math.isfinite(details)
