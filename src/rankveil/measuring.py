"""The measures of one pair of tables, each computed once: a value, or the reason why it does not apply.

What a measure works on is named by its positional arguments: something that a view has (`rank_x`, `correlation_y`), or
another measure, whose value it then gets.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankveil import catalogue
from rankveil.catalogue import Measure, Value, get_measure
from rankveil.errors import NotApplicableError, ParameterError
from rankveil.execute import in_threads
from rankveil.pairing import Pair
from rankveil.views import Column, View

_SLACK = 1e-9
"""By so much a value may leave its bounds: rounding."""

Settings = Mapping[str, Mapping[str, Any]]


class Measuring:
    """The measures of a pair; `settings` are parameters of measures by id."""

    def __init__(
        self, pair: Pair, *, settings: Settings | None = None, target: str | None = None, nearest: bool = False
    ) -> None:
        if target is not None and target not in pair.names:
            raise ParameterError(f"the target {target} is not among the columns compared: {', '.join(pair.names)}")
        for name, given in (settings or {}).items():
            get_measure(name).bind(given)
        self.pair = pair
        self._settings = settings or {}
        self._target = None if target is None else pair.names.index(target)
        self._nearest = nearest and pair.mapping == "none"
        self._done: dict[str, Value | str] = {}

    def value(self, name: str) -> Value:
        """The value of a measure, or an error that says why it does not apply."""
        if name not in self._done:
            entry = get_measure(name)
            try:
                self._done[name] = checked(entry, self._compute(entry))
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

    def _compute(self, entry: Measure) -> Value:
        view, notes = self._view(entry)
        if entry.per == "table":
            made = self._run(entry, view, "table")
        else:
            made = self._per_attribute(entry, self._columns(view))
        parts = [need for need in entry.needs if need in catalogue.measures()]
        said = [f"{part}: {note}" for part in parts for note in self.value(part).notes]
        everything = tuple(dict.fromkeys((*notes, *made.notes, *said)))
        return Value(made.value, made.details, everything)

    def _view(self, entry: Measure) -> tuple[View, tuple[str, ...]]:
        if entry.mapping and self.pair.mapping == "none":
            if not (self._nearest and entry.family == "loss"):
                raise NotApplicableError("it needs to know which masked record derives from which original one")
            return self.pair.nearest, ("each masked record is paired with the nearest original one",)
        return (self.pair.table if entry.equal else self.pair.whole), ()

    def _columns(self, view: View) -> Sequence[Column]:
        if view is self.pair.table:
            return self.pair.columns
        return [Column(view, j) for j in range(len(self.pair.names))]

    def _run(self, entry: Measure, view: View | Column, name: str) -> Value:
        if len(view) == 0:
            raise NotApplicableError("no record has the values that it needs")
        data = [self._need(need, view) for need in entry.needs]
        made = entry(
            *data,
            rng=self.pair.seed.stream("measure", entry.id, name),
            names=self.pair.names,
            target=self._target,
            **self._settings.get(entry.id, {}),
        )
        return made if isinstance(made, Value) else Value(float(made))

    def _need(self, need: str, view: View | Column) -> Any:
        if need not in catalogue.measures():
            return getattr(view, need)
        try:
            return self.value(need).value
        except NotApplicableError as why:
            raise NotApplicableError(f"{need} does not apply: {why}") from None

    def _per_attribute(self, entry: Measure, columns: Sequence[Column]) -> Value:
        """Every attribute on its own records; the headline is their mean, maximum or minimum."""
        names = self.pair.names

        def attempt(j: int) -> Value | str:
            try:
                return self._run(entry, columns[j], names[j])
            except NotApplicableError as why:
                return str(why)

        for need in entry.needs:  # what all columns share is computed before threads ask for it
            if need not in catalogue.measures() and len(columns[0]):
                getattr(columns[0], need)
        made = in_threads(attempt, range(len(names)), size=self.pair.x.size)
        done = {name: value for name, value in zip(names, made, strict=True) if isinstance(value, Value)}
        skipped = {name: value for name, value in zip(names, made, strict=True) if isinstance(value, str)}
        if not done:
            raise NotApplicableError(f"in no column: {next(iter(skipped.values()))}")
        numbers = [value.value for value in done.values()]
        headline = {"mean": math.fsum(numbers) / len(numbers), "max": max(numbers), "min": min(numbers)}[entry.headline]
        details: dict[str, Any] = {"per_attribute": {name: value.value for name, value in done.items()}}
        for key in next(iter(done.values())).details:
            details[key] = {name: value.details[key] for name, value in done.items()}
        lengths = {name: len(column) for name, column in zip(names, columns, strict=True)}
        if self.pair.mapping != "none" and any(length != len(self.pair) for length in lengths.values()):
            details["records"] = lengths
            details["left_out"] = {name: len(self.pair) - length for name, length in lengths.items()}
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
    return Value(min(max(value.value, low), high), value.details, value.notes)


def _finite(details: Any) -> bool:
    if isinstance(details, Mapping):
        return all(_finite(each) for each in details.values())
    if isinstance(details, list | tuple):
        return all(_finite(each) for each in details)
    return not isinstance(details, float) or math.isfinite(details)
