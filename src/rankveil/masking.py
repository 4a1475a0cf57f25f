"""What a plan makes of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Outcome
from rankveil.errors import ParameterError, TableError, listing
from rankveil.execute import in_threads
from rankveil.moments import mean
from rankveil.plans import Plan, Step
from rankveil.seeds import Seed, Stream
from rankveil.table import Table, require_columns


@dataclass(frozen=True, eq=False)
class Applied:
    """What the steps of a plan did."""

    values: Mapping[str, Array]
    """The masked columns, by name."""
    order: NDArray[np.intp] | None
    """The original row of each released row, when rows were reordered."""
    columns: tuple[tuple[str, ...], ...]
    """The columns that each step worked on."""
    counts: tuple[Mapping[str, Mapping[str, int]], ...]
    """For each step and column, how many values were clipped, clamped and so on."""
    notes: tuple[str, ...]

    @property
    def masked(self) -> tuple[str, ...]:
        """All columns that some step worked on."""
        return tuple(self.values)


def apply(table: Table, plan: Plan, *, seed: Seed, replicate: int = 0) -> Applied:
    """Run the steps one after the other; the table itself stays as it is."""
    values: dict[str, Array] = {}
    order: NDArray[np.intp] | None = None
    columns: list[tuple[str, ...]] = []
    counts: list[Mapping[str, Mapping[str, int]]] = []
    notes: list[str] = []
    for number, step in enumerate(plan.steps):
        chosen = _columns_for(step, table, masked=tuple(values))
        columns.append(chosen)
        entry = step.entry
        if entry.works_on == "records":
            shuffled = entry(len(table), rng=seed.stream("mask", number, entry.id, replicate), **step.bound())
            values = {name: masked[shuffled] for name, masked in values.items()}
            order = shuffled if order is None else order[shuffled]
            counts.append({})
            continue
        given = tuple(step.parameters.get("given", ()))
        current = {name: _current(table, name, values, order) for name in (*chosen, *given)}
        if entry.works_on == "columns":
            stream = seed.stream("mask", number, entry.id, replicate)
            outcomes = _on_columns(step, chosen, given, current, stream, notes)
        else:
            tasks = []
            for name in chosen:
                stream = seed.stream("mask", number, entry.id, name, replicate)
                tasks.append(partial(_on_column, step, name, current[name], table.values(name), stream, len(chosen)))
            outcomes = in_threads(lambda task: task(), tasks, size=len(table) * len(chosen))
        for name, outcome in zip(chosen, outcomes, strict=True):
            values[name] = outcome.values
            notes += [f"{entry.id}, column {name}: {note}" for note in outcome.notes]
        counts.append({name: out.counts for name, out in zip(chosen, outcomes, strict=True) if out.counts})
    in_place = {name: values[name] for name in table.names if name in values}
    return Applied(in_place, order, tuple(columns), tuple(counts), tuple(notes))


def _current(table: Table, name: str, values: Mapping[str, Array], order: NDArray[np.intp] | None) -> Array:
    if name in values:
        return values[name]
    original = table.values(name)
    return original if order is None else original[order]


def _on_columns(
    step: Step,
    chosen: Sequence[str],
    given: Sequence[str],
    current: Mapping[str, Array],
    rng: Stream,
    notes: list[str],
) -> list[Outcome]:
    """Columns that are masked together; a missing cell stands at its column's mean meanwhile, and is missing again."""
    entry = step.entry
    x, missing = _filled([current[name] for name in chosen], rows=current[chosen[0]].size)
    conditions, unknown = _filled([current[name] for name in given], rows=len(x))
    gaps = int(missing.sum() + unknown.sum())
    if gaps:
        notes.append(f"{entry.id}: {gaps} missing cells stood at their column's mean while the columns were masked")
    wanted = {"given": conditions, "missing": missing}
    arguments = [wanted.get(need, x) for need in entry.needs]
    with np.errstate(over="ignore", invalid="ignore"):
        made = entry.run(*arguments, rng=rng, attributes=len(chosen), names=tuple(chosen), bound=step.bound_for(chosen))
    outcome = made if isinstance(made, Outcome) else Outcome(made)
    notes += [f"{entry.id}: {note}" for note in outcome.notes]
    masked = np.where(missing, np.nan, outcome.values)
    results = []
    for j, name in enumerate(chosen):
        _refuse_infinite(entry.id, name, np.where(missing[:, j], 0.0, masked[:, j]), np.arange(len(x)))
        own = {what: int(np.broadcast_to(count, len(chosen))[j]) for what, count in outcome.counts.items()}
        results.append(Outcome(np.ascontiguousarray(masked[:, j]), own))
    return results


def _filled(columns: Sequence[Array], *, rows: int) -> tuple[Array, NDArray[np.bool_]]:
    """A matrix of the columns, missing cells at the column's mean, and where they are."""
    x = np.empty((rows, len(columns)), order="F")
    missing = np.zeros(x.shape, dtype=bool, order="F")
    for j, column in enumerate(columns):
        gone = np.isnan(column)
        x[:, j], missing[:, j] = column, gone
        if gone.any():
            x[gone, j] = mean(column[~gone]) if not gone.all() else 0.0
    return x, missing


def _refuse_infinite(method: str, name: str, values: Array, rows: NDArray[np.intp]) -> None:
    if not np.all(np.isfinite(values)):
        bad = rows[~np.isfinite(values)] + 1
        raise ParameterError(f"column {name}: {method} makes values too large (rows {listing(bad)}); weaken it")


def _on_column(step: Step, name: str, current: Array, original: Array, rng: Stream, attributes: int) -> Outcome:
    entry = step.entry
    rows = np.flatnonzero(~np.isnan(current))
    if rows.size == 0:
        return Outcome(current)
    whole = rows.size == current.size
    # what is read only may be the caller's own memory; a method gets its own copy only when cells are missing
    data = current if whole else current[rows]
    needs = {"original": original if whole else original[~np.isnan(original)]}
    arguments = [needs.get(need, data) for need in entry.needs]
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            made = entry.run(
                *arguments, rng=rng.at(None if whole else rows), attributes=attributes, bound=step.bound(name)
            )
    except ParameterError as error:
        raise ParameterError(f"column {name}: {error}") from None
    outcome = made if isinstance(made, Outcome) else Outcome(made)
    _refuse_infinite(entry.id, name, outcome.values, rows)
    if whole:
        return outcome
    masked = np.full(current.size, np.nan)
    masked[rows] = outcome.values
    return Outcome(masked, outcome.counts, outcome.notes)


def _columns_for(step: Step, table: Table, *, masked: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a step: those it names, else (for a post-step) those masked so far, else all that it takes."""
    entry = step.entry
    require_columns(step.per_column, table.names, where=f"{entry.id}: the parameter of column")
    if entry.works_on == "records":
        if len(table) == 0:
            raise TableError("the table has no records")
        return table.names
    given = tuple(step.parameters.get("given", ()))
    for name in table.usable(given) if given else ():
        if table.cells(name).kind not in entry.kinds:
            raise TableError(f"column {name}: given columns must be {' or '.join(entry.kinds)}")
    takes = f"{entry.id} takes {' and '.join(entry.kinds)} columns"
    if step.columns is None:
        candidates = masked if entry.post and masked else table.usable()
        chosen = tuple(name for name in candidates if table.cells(name).kind in entry.kinds and name not in given)
        if not chosen and given:
            raise ParameterError(f"{entry.id}: given names all columns, so there is none left to mask")
        if not chosen:
            raise TableError(f"no usable column: {takes}, and there is none")
    else:
        chosen = table.usable(step.columns)
        for name in chosen:
            if name in given:
                raise ParameterError(f"{entry.id}: column {name} cannot be both given and masked")
            if table.cells(name).kind not in entry.kinds:
                raise TableError(f"column {name}: {takes}, and this one is {table.cells(name).kind}")
    for name in step.per_column:
        if name not in chosen:
            raise ParameterError(f"{entry.id}: column {name} has its own parameter but is not masked by this step")
    for name in chosen:
        step.bound(name)
    return chosen
