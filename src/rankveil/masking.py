"""What a plan makes of a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil import categories as categorising
from rankveil.catalogue import Array, Method, Outcome
from rankveil.categories import Categories
from rankveil.errors import ParameterError, TableError, listing
from rankveil.execute import in_threads
from rankveil.moments import mean
from rankveil.plans import Plan, Step
from rankveil.seeds import Seed, Stream
from rankveil.table import UNMASKED_ROLES, Table, require_columns

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Applied:
    """What the steps of a plan did."""

    values: Mapping[str, Array]
    """The masked columns, by name."""
    order: Rows | None
    """The original row of each released row, when rows were reordered or some left out."""
    columns: tuple[tuple[str, ...], ...]
    """The columns that each step worked on."""
    counts: tuple[Mapping[str, Mapping[str, int]], ...]
    """For each step and column, how many values were clipped, clamped and so on."""
    notes: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    """What the values of a column are places of now, where that is no longer what it was."""
    dropped: tuple[str, ...]
    """The columns that are not in the release."""
    emptied: frozenset[str]
    """The columns in which other cells are missing than were."""
    of_groups: tuple[frozenset[str], ...]
    """For each step the columns that were masked on one record of each group."""

    def apart(self, number: int) -> bool:
        """Whether columns of groups and of records were masked apart from each other by a step."""
        return 0 < len(self.of_groups[number]) < len(self.columns[number])

    @property
    def masked(self) -> tuple[str, ...]:
        """All columns that some step worked on."""
        return tuple(self.values)


@dataclass(frozen=True, eq=False)
class _Current:
    """A column as the steps so far have left it."""

    values: Array
    kind: str
    categories: Categories | None
    """What its values are places of; None for numbers."""

    @property
    def has_hierarchy(self) -> bool:
        return self.categories is not None and self.categories.hierarchy is not None


class _Work:
    """A table while the steps of a plan are at work on it; the table itself stays as it is."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.changed: dict[str, _Current] = {}
        self.relabelled: set[str] = set()
        self.order: Rows | None = None
        self.dropped: list[str] = []
        self.emptied: set[str] = set()
        self.notes: list[str] = []

    def __len__(self) -> int:
        return len(self.table) if self.order is None else self.order.size

    def current(self, name: str, *, as_labels: bool = False) -> _Current:
        """A column as it is now; `as_labels` makes labels of numbers."""
        found = self.changed.get(name)
        if found is None:
            cells = self.table.cells(name)
            if as_labels and cells.kind != "nominal" and not cells.levels:
                known = self.table.categories(name)
                kind = "ordinal" if cells.kind == "ordinal" else "nominal"
                return _Current(self.taken(self.table.codes(name, known)), kind, known)
            values = self.taken(self.table.values(name))
            if cells.kind != "nominal" and not cells.levels:
                return _Current(values, cells.kind, None)
            known = self.table.categories(name)
            hierarchy = (self.table.schema.hierarchies or {}).get(name)
            return _Current(values, cells.kind, replace(known, hierarchy=hierarchy))  # levels too may have groups
        if as_labels and found.categories is None:
            different, codes = np.unique(found.values, return_inverse=True)
            places = np.where(np.isnan(found.values), np.nan, codes)
            words = tuple(f"{value:.17g}" for value in different[~np.isnan(different)])
            counts = np.bincount(codes, minlength=different.size)[: len(words)].astype(float)
            return _Current(places, "nominal", categorising.ordinal(words, counts))
        return found

    def taken(self, values: Array) -> Array:
        """What belongs to the original rows, in the rows that there are now."""
        return values if self.order is None else values[self.order]

    def put(self, name: str, outcome: Outcome, before: _Current) -> None:
        """The column with what a method made of it."""
        if outcome.levels is None:
            self.changed[name] = _Current(outcome.values, before.kind, before.categories)
            if before.categories is not None and not self.table.labels(name):  # numbers that were taken as labels
                self.relabelled.add(name)
            return
        self.relabelled.add(name)
        there = ~np.isnan(outcome.values)
        counts = np.bincount(outcome.values[there].astype(np.intp), minlength=len(outcome.levels)).astype(float)
        hierarchy = before.categories.hierarchy if before.categories else None
        if before.kind != "nominal":
            levels = replace(categorising.ordinal(outcome.levels, counts), hierarchy=hierarchy)
            self.changed[name] = _Current(outcome.values, "ordinal", levels)
            return
        made = categorising.nominal(outcome.levels, counts, hierarchy)
        place = {label: code for code, label in enumerate(made.labels)}
        moved = np.array([place[label] for label in outcome.levels], dtype=float)
        values = outcome.values.copy()
        values[there] = moved[values[there].astype(np.intp)]
        self.changed[name] = _Current(values, "nominal", made)

    def take(self, rows: Rows) -> None:
        """Some rows, in another order."""
        self.changed = {
            name: _Current(each.values[rows], each.kind, each.categories) for name, each in self.changed.items()
        }
        self.order = rows if self.order is None else self.order[rows]
        self.__dict__.pop("groups", None)

    @cached_property
    def groups(self) -> tuple[NDArray[np.int64], Rows, Rows] | None:
        """The number of each record's group, the first record of each group, and which of those each record has."""
        codes = self.table.group
        if codes is None:
            return None
        codes = codes if self.order is None else codes[self.order]
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        places = np.argsort(first)  # streams are read from the first row on
        back = np.empty_like(places)
        back[places] = np.arange(places.size)
        return codes, first[places], back[inverse]

    def of_groups(self, names: Iterable[str]) -> set[str]:
        """The columns whose values are the same for all records of every group."""
        if self.groups is None or self.groups[1].size == len(self):
            return set()
        _, first, inverse = self.groups
        same = set()
        for name in names:
            values = self.current(name).values
            spread = values[first][inverse]
            if np.all((values == spread) | (np.isnan(values) & np.isnan(spread))):
                same.add(name)
        return same


def apply(table: Table, plan: Plan, *, seed: Seed, replicate: int = 0) -> Applied:
    """Run the steps one after the other; the table itself stays as it is."""
    work = _Work(table)
    if table.schema.with_role("weight") and len(table):
        _ = table.weight  # or an error that says what is wrong with the weights
    columns: list[tuple[str, ...]] = []
    counts: list[Mapping[str, Mapping[str, int]]] = []
    of_groups: list[frozenset[str]] = []
    for number, step in enumerate(plan.steps):
        entry = step.entry
        chosen = _columns_for(step, work)
        columns.append(chosen)
        of_groups.append(frozenset())
        if entry.works_on == "names":
            work.dropped += entry(chosen, **step.bound())
            if set(work.dropped) == set(table.names):
                raise ParameterError(f"{entry.id}: it would drop every column, so that nothing is left to release")
            work.changed = {name: each for name, each in work.changed.items() if name not in work.dropped}
            counts.append({})
        elif entry.works_on == "records":
            groups = None if work.groups is None else work.groups[0]
            stream = seed.stream("mask", number, entry.id, replicate)
            bound = step.bound()
            before = len(work)
            work.take(entry.run(before, rng=stream, attributes=1, bound=bound, groups=groups))
            if len(work) < before and table.weight is not None:
                work.notes.append(
                    f"{entry.id}: weights are as they were; multiply {table.schema.with_role('weight')[0]} by "
                    f"{before / max(len(work), 1):.6g} so that they stand for the same population"
                )
            counts.append({})
        else:
            stream_name = ("mask", number, entry.id)
            made, of_groups[-1] = _on_values(step, chosen, work, seed=seed, named=stream_name, replicate=replicate)
            counts.append({name: out.counts for name, out in made.items() if out.counts})
    in_place = {name: work.changed[name].values for name in table.names if name in work.changed}
    labels = {
        name: categories.labels
        for name in in_place
        if name in work.relabelled and (categories := work.changed[name].categories) is not None
    }
    return Applied(
        in_place,
        work.order,
        tuple(columns),
        tuple(counts),
        tuple(dict.fromkeys(work.notes)),
        labels,
        tuple(work.dropped),
        frozenset(work.emptied) & in_place.keys(),
        tuple(of_groups),
    )


def _on_values(
    step: Step, chosen: Sequence[str], work: _Work, *, seed: Seed, named: tuple[str | int, ...], replicate: int
) -> tuple[dict[str, Outcome], frozenset[str]]:
    """A step on columns; those of groups, which are told too, on one record of each group."""
    entry = step.entry
    # ordered numbers are labels to a method that has no use for numbers
    as_labels = entry.takes == "labels" or "numeric" not in entry.kinds
    before = {name: work.current(name, as_labels=as_labels) for name in chosen}
    of_groups = work.of_groups(chosen)
    made: dict[str, Outcome] = {}
    if entry.whole_records and 0 < len(of_groups) < len(chosen):
        made = _until_groups_agree(step, chosen, before, seed.stream(*named, replicate), work, of_groups)
        for name in chosen:
            work.put(name, made[name], before[name])
        work.emptied |= set(chosen)
        return made, frozenset()
    if of_groups:
        work.notes.append(
            f"{entry.id}: the same within every group, so masked on one record of each and the same again: "
            f"{listing([name for name in chosen if name in of_groups], most=10)}"
        )
    if entry.works_on == "columns" and 0 < len(of_groups) < len(chosen):
        work.notes.append(
            f"{entry.id}: those columns were masked apart from the others, so what it does for columns together "
            f"{'(k-anonymity) ' if 'k' in step.bound() else ''}does not hold of all of them"
        )
    if entry.works_on == "columns":
        parts = [[name for name in chosen if (name in of_groups) is grouped] for grouped in (False, True)]
        for grouped, part in zip((False, True), parts, strict=True):
            if part:
                own = ("groups",) if grouped and parts[0] else ()
                stream = seed.stream(*named, *own, replicate)
                made |= _on_columns(step, part, before, stream, work, grouped=grouped)
    else:
        tasks = []
        for name in chosen:
            if "original" in entry.needs and name in work.relabelled:
                raise ParameterError(
                    f"column {name}: an earlier step gave it labels that the original does not have, so {entry.id} "
                    "cannot put the original's values in their places; let it come before, or name other columns"
                )
            stream = seed.stream(*named, name, replicate)
            original = work.taken(work.table.values(name)) if "original" in entry.needs else before[name].values
            temporal = None if before[name].categories else work.table.cells(name).temporal
            run = partial(_on_column, step, name, before[name], original, stream, len(chosen), temporal)
            tasks.append(partial(run, work.groups if name in of_groups else None))
        outcomes = in_threads(lambda task: task(), tasks, size=len(work) * len(chosen))
        made = dict(zip(chosen, outcomes, strict=True))
        for name, outcome in made.items():
            work.notes += [f"{entry.id}, column {name}: {note}" for note in outcome.notes]
    for name in chosen:
        work.put(name, made[name], before[name])
    work.emptied |= set(chosen) if entry.changes_missing else set()
    return made, frozenset(of_groups)


def _until_groups_agree(
    step: Step,
    chosen: Sequence[str],
    before: Mapping[str, _Current],
    rng: Stream,
    work: _Work,
    of_groups: Collection[str],
) -> dict[str, Outcome]:
    """A step that suppresses cells of whole records: what one of a group lost in a column of groups all of it lose.

    That may leave others alone with their values, so the step runs again until nothing is lost any more.
    """
    assert work.groups is not None
    _, first, inverse = work.groups
    current = dict(before)
    said = len(work.notes)
    while True:
        del work.notes[said:]  # what the last round says holds
        made = _on_columns(step, chosen, current, rng.at(), work, grouped=False)
        spread = False
        for name in chosen:
            gone = np.isnan(made[name].values)
            if name in of_groups:
                lost = np.bincount(inverse, weights=gone, minlength=first.size)[inverse] > 0
                spread |= bool(np.any(lost & ~gone))
                gone = lost
            values = np.where(gone, np.nan, before[name].values)
            current[name] = _Current(values, before[name].kind, before[name].categories)
        if not spread:
            break
    work.notes.append(f"{step.method}: what one of a group lost all of it lost: {listing(of_groups, most=10)}")
    lost_now = {name: int(np.sum(np.isnan(current[name].values) & ~np.isnan(before[name].values))) for name in chosen}
    return {name: Outcome(current[name].values, {"suppressed": lost_now[name]}) for name in chosen}


def _on_columns(
    step: Step,
    chosen: Sequence[str],
    before: Mapping[str, _Current],
    rng: Stream,
    work: _Work,
    *,
    grouped: bool,
) -> dict[str, Outcome]:
    """Columns that are masked together; a missing cell stands at its column's mean meanwhile, and is missing again."""
    entry = step.entry
    given = tuple(step.parameters.get("given", ()))
    rows = work.groups[1] if grouped and work.groups is not None else None
    x, missing = _filled([before[name] for name in chosen], rows, size=len(work))
    conditions, unknown = _filled([work.current(name) for name in given], rows, size=len(work))
    gaps = int(missing.sum() + unknown.sum())
    # a method that is told where they are and changes the pattern fills nothing in
    if gaps and not entry.changes_missing:
        work.notes.append(
            f"{entry.id}: {gaps} missing cells stood at their column's mean (a nominal one's most frequent category) "
            "while the columns were masked"
        )
    wanted = {"given": conditions, "missing": missing}
    arguments = [wanted.get(need, x) for need in entry.needs]
    with np.errstate(over="ignore", invalid="ignore"):
        made = entry.run(
            *arguments,
            rng=rng if rows is None else rng.at(rows),
            attributes=len(chosen),
            names=tuple(chosen),
            bound=step.bound_for(chosen),
            kinds=tuple(before[name].kind for name in chosen),
            categories=tuple(before[name].categories for name in chosen),
        )
    outcome = made if isinstance(made, Outcome) else Outcome(made)
    work.notes += [f"{entry.id}: {note}" for note in outcome.notes]
    gone = missing if outcome.missing is None else outcome.missing
    masked = np.where(gone, np.nan, outcome.values)
    back = None if rows is None or work.groups is None else work.groups[2]
    results = {}
    for j, name in enumerate(chosen):
        _refuse_infinite(entry.id, name, np.where(gone[:, j], 0.0, masked[:, j]), np.arange(len(x)))
        own = {what: int(np.broadcast_to(count, len(chosen))[j]) for what, count in outcome.counts.items()}
        column = np.ascontiguousarray(masked[:, j])
        results[name] = Outcome(column if back is None else column[back], own)
    return results


def _filled(columns: Sequence[_Current], rows: Rows | None, *, size: int) -> tuple[Array, NDArray[np.bool_]]:
    """A matrix of the columns, missing cells at the column's mean or most frequent category, and where they are."""
    x = np.empty((size if rows is None else rows.size, len(columns)), order="F")
    missing = np.zeros(x.shape, dtype=bool, order="F")
    for j, column in enumerate(columns):
        values = column.values if rows is None else column.values[rows]
        gone = np.isnan(values)
        x[:, j], missing[:, j] = values, gone
        if gone.all():
            x[:, j] = 0.0
        elif gone.any():
            there = values[~gone]
            frequent = float(np.argmax(np.bincount(there.astype(np.intp)))) if column.kind == "nominal" else None
            x[gone, j] = mean(there) if frequent is None else frequent
    return x, missing


def _refuse_infinite(method: str, name: str, values: Array, rows: Rows) -> None:
    if not np.all(np.isfinite(values)):
        bad = rows[~np.isfinite(values)] + 1
        raise ParameterError(f"column {name}: {method} makes values too large (rows {listing(bad)}); weaken it")


def _on_column(
    step: Step,
    name: str,
    before: _Current,
    original: Array,
    rng: Stream,
    attributes: int,
    temporal: Any,
    groups: tuple[Any, Rows, Rows] | None,
) -> Outcome:
    """One column, its missing cells left out, one record for each group where it belongs to groups."""
    entry = step.entry
    records = np.arange(before.values.size) if groups is None else groups[1]
    there = records[~np.isnan(before.values[records])]
    if there.size == 0:
        return Outcome(before.values)
    whole = there.size == before.values.size
    # what is read only may be the caller's own memory; a method gets its own copy only when cells are missing
    data = before.values if whole else before.values[there]
    first = original if groups is None else original[records]
    needs = {"original": first if whole else first[~np.isnan(first)]}
    arguments = [needs.get(need, data) for need in entry.needs]
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            made = entry.run(
                *arguments,
                rng=rng.at(None if whole else there),
                attributes=attributes,
                names=(name,),
                bound=step.bound(name),
                kinds=(before.kind,),
                categories=before.categories,
                temporal=temporal,
            )
    except ParameterError as error:
        raise ParameterError(f"column {name}: {error}") from None
    outcome = made if isinstance(made, Outcome) else Outcome(made)
    _refuse_infinite(entry.id, name, outcome.values, there)
    if whole:
        return outcome
    masked = np.full(before.values.size, np.nan)
    masked[there] = outcome.values
    if groups is not None:
        masked = masked[groups[1]][groups[2]]
    return Outcome(masked, outcome.counts, outcome.notes, levels=outcome.levels)


def takes(entry: Method, kind: str, *, hierarchy: bool) -> bool:
    """Whether a method takes a column of that kind."""
    return kind in entry.kinds or (kind == "nominal" and hierarchy and "hierarchy" in entry.kinds)


def said_of_kinds(entry: Method) -> str:
    """Which columns a method takes, in words."""
    words = ["nominal (with a hierarchy)" if kind == "hierarchy" else kind for kind in entry.kinds]
    return f"{entry.id} takes {' and '.join(words)} columns"


def _columns_for(step: Step, work: _Work) -> tuple[str, ...]:
    """The columns of a step: those it names, else those meant for it."""
    entry, table = step.entry, work.table
    require_columns(step.per_column, table.names, where=f"{entry.id}: the parameter of column")
    if len(table) == 0:
        raise TableError("the table has no records")
    if entry.works_on == "records":
        return tuple(name for name in table.names if name not in work.dropped)
    given = tuple(step.parameters.get("given", ()))
    for name in table.usable(given) if given else ():
        if not _taken(entry, work, name):
            raise TableError(f"column {name}: given columns must be {' or '.join(entry.kinds)}")
    if step.columns is None:
        chosen = _meant(step, work, given)
    else:
        require_columns(step.columns, table.names)
        chosen = tuple(step.columns) if entry.works_on == "names" else table.usable(step.columns)
        for name in chosen:
            if name in work.dropped:
                raise ParameterError(f"{entry.id}: column {name} was dropped by an earlier step")
            if name in given:
                raise ParameterError(f"{entry.id}: column {name} cannot be both given and masked")
            if entry.works_on != "names" and not _taken(entry, work, name):
                raise TableError(f"column {name}: {said_of_kinds(entry)}, and this one is {work.current(name).kind}")
    for name in step.per_column:
        if name not in chosen:
            raise ParameterError(f"{entry.id}: column {name} has its own parameter but is not masked by this step")
    for name in chosen:
        step.bound(name)
    return chosen


def _taken(entry: Method, work: _Work, name: str) -> bool:
    kind = work.changed[name].kind if name in work.changed else work.table.cells(name).kind
    hierarchy = name in (work.table.schema.hierarchies or {})
    return takes(entry, kind, hierarchy=hierarchy)


def _meant(step: Step, work: _Work, given: Sequence[str]) -> tuple[str, ...]:
    """The columns of a step that names none: by role, those masked so far, or all that the method takes."""
    entry, table = step.entry, work.table
    candidates: Iterable[str]
    if entry.role is not None:
        candidates = table.schema.with_role(entry.role)
        if not candidates:
            raise ParameterError(
                f"{entry.id}: no column was given the role {entry.role}: --role NAME={entry.role}, or name the columns"
            )
        candidates = [name for name in table.names if name in candidates]
    elif entry.post and work.changed:
        candidates = work.changed
    elif "numeric" not in entry.kinds:
        candidates = [name for name in table.names if _is_category(table, name)]
    elif entry.told:
        candidates = _told_columns(step, work)
    else:
        candidates = table.usable()
    candidates = [name for name in candidates if name not in work.dropped and name not in given]
    chosen = tuple(name for name in candidates if entry.works_on == "names" or _taken(entry, work, name))
    if not chosen and given:
        raise ParameterError(f"{entry.id}: given names all columns, so there is none left to mask")
    if not chosen:
        raise TableError(f"no usable column: {said_of_kinds(entry)}, and there is none")
    if "hierarchy" in entry.kinds:
        left = [name for name in candidates if name not in chosen and table.cells(name).kind == "nominal"]
        if left:
            work.notes.append(f"{entry.id} leaves nominal columns without a hierarchy as they are: {listing(left)}")
    return chosen


def _told_columns(step: Step, work: _Work) -> list[str]:
    """The columns that a step says what to do with: those with a parameter of their own, or that one for all fits."""
    entry, table = step.entry, work.table
    own = [name for name, given in step.per_column.items() if any(parameter in entry.told for parameter in given)]
    named = set(table.usable(own)) if own else set()
    everywhere = [parameter for parameter in entry.told if step.parameters.get(parameter) not in (None, ())]
    if not named and not everywhere:
        raise ParameterError(f"{entry.id} needs {', '.join(entry.told[:-1])} or {entry.told[-1]} of some column")
    candidates = [name for name in table.names if name in named or (everywhere and name in table.usable())]
    left = [name for name in candidates if not _is_told(step, work, name)]
    if len(left) == len(candidates):
        raise TableError(f"no usable column: {' and '.join(everywhere)} of {entry.id} fits none")
    if left:
        work.notes.append(f"{entry.id} leaves columns as they are that it is not told of: {listing(left, most=10)}")
    return [name for name in candidates if name not in left]


def columns_of(step: Step, table: Table) -> tuple[str, ...]:
    """The columns that a step would work on, were it the first."""
    return _columns_for(step, _Work(table))


def suited(step: Step, table: Table, names: Iterable[str]) -> tuple[str, ...]:
    """Those of some columns that a step can work on: it takes their kind, and is told what to do with them."""
    work = _Work(table)
    taken = (name for name in names if _taken(step.entry, work, name))
    return tuple(name for name in taken if not step.entry.told or _is_told(step, work, name))


def _is_told(step: Step, work: _Work, name: str) -> bool:
    """Whether a step says what to do with a column; a level is for those that have a hierarchy."""
    if any(parameter in step.per_column.get(name, {}) for parameter in step.entry.told):
        return True
    everywhere = [parameter for parameter in step.entry.told if step.parameters.get(parameter) not in (None, ())]
    kind = work.changed[name].kind if name in work.changed else work.table.cells(name).kind
    hierarchy = name in (work.table.schema.hierarchies or {}) and kind != "numeric"
    has = {"level": hierarchy, "width": kind == "numeric", "cuts": kind != "nominal", "rare": kind == "nominal"}
    return any(has[parameter] for parameter in everywhere)


def _is_category(table: Table, name: str) -> bool:
    """Whether a method for categories works on a column unasked: not on an identifier, nor on none's business."""
    column = table.columns[name]
    if (table.schema.roles or {}).get(name) in UNMASKED_ROLES or table.cells(name).doubtful:
        return False
    named = (table.schema.roles or {}).get(name) is not None
    return column.kind != "numeric" and (named or not column.looks_like_identifier) and column.missing < len(table)
