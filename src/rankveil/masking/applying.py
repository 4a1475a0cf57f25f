"""The steps of a plan, one after the other."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from rankveil import metadata
from rankveil.catalogue import Array, Outcome
from rankveil.errors import ParameterError, listing
from rankveil.masking.account import Applied
from rankveil.masking.choosing import as_labels, columns_for
from rankveil.masking.columns import on_column, on_columns
from rankveil.masking.grid import on_grids
from rankveil.masking.working import Current, Work
from rankveil.plans import Plan, Step
from rankveil.rows import HERE, Rows
from rankveil.seeds import Seed, Stream
from rankveil.table import Table

_EMPTIED = "codes_emptied"
"""Under this name it is counted how many cells lost their missing code."""


def apply(
    table: Table,
    plan: Plan,
    *,
    seed: Seed,
    pseudonyms: Seed | None = None,
    replicate: int = 0,
    rows: Rows = HERE,
    until: int | None = None,
    grid: bool | Mapping[str, float] = True,
) -> Applied:
    """Run the steps one after the other; the table itself stays as it is, and may be a part of one, with its rows.

    `until` is the number of the step, from 0, before which to stop. Methods that draw a key draw it from `pseudonyms`
    where that is given: the same for a column of that name in every table, plan and replicate. What was computed from
    draws is put on its grid (`masking.grid`) at the end, or on the grids that a manifest tells; with `grid=False` it
    stays as it was drawn, for studies and never for a release.
    """
    work = Work(table, rows)
    if not rows.alone and table.schema.with_role("group"):
        raise ParameterError(f"column {table.schema.with_role('group')[0]}: groups are not for a table in parts")
    if table.schema.with_role("weight") and len(table):
        _ = table.weight  # or an error that says what is wrong with the weights
    columns: list[tuple[str, ...]] = []
    counts: list[Mapping[str, Mapping[str, int]]] = []
    of_groups: list[frozenset[str]] = []
    weighed_by: list[float] = []
    for number, step in enumerate(plan.steps[:until]):
        entry = step.entry
        weighed_by.append(1.0)
        chosen = columns_for(step, work)
        columns.append(chosen)
        of_groups.append(frozenset())
        if entry.works_on == "names":
            work.dropped += entry(chosen, **step.bound())
            if set(work.dropped) == set(table.names):
                raise ParameterError(f"{entry.id}: it would drop every column, so that nothing is left to release")
            work.changed = {name: each for name, each in work.changed.items() if name not in work.dropped}
            counts.append({})
        elif entry.works_on == "records":
            groups = None if work.groups is None else work.groups.codes
            stream = seed.stream("mask", number, entry.id, replicate)
            if not entry.by_parts and not rows.alone:
                raise ParameterError(f"{entry.id} is not for a table in parts")
            before, here = work.units, work.rows
            stream = stream.at(start=here.start)
            work.take(entry.run(len(work), rng=stream, attributes=1, bound=step.bound(), groups=groups, rows=here))
            # the inverse of the probability with which a record, or its group, was drawn
            weighed_by[-1] = before / max(work.units, 1)
            counts.append({})
        else:
            stream_name = ("mask", number, entry.id)
            drawing = _Drawing(seed, stream_name, replicate)
            if entry.keyed and pseudonyms is not None:
                drawing = _Drawing(pseudonyms, (entry.id,))
            made, of_groups[-1] = _on_values(step, chosen, work, drawing)
            counts.append({name: out.counts for name, out in made.items() if out.counts})
    grids = on_grids(work, plan.steps[:until], columns, told=None if grid is True else grid or {})
    in_place = {name: work.changed[name].values for name in table.names if name in work.changed}
    labels = {
        name: categories.labels
        for name in in_place
        if name in work.relabelled and (categories := work.changed[name].categories) is not None
    }
    weights = _weighed(work, math.prod(weighed_by))
    return Applied(
        values=in_place,
        order=work.order,
        columns=tuple(columns),
        counts=tuple(counts),
        notes=tuple(dict.fromkeys(work.notes)),
        labels=labels,
        dropped=tuple(work.dropped),
        of_groups=tuple(of_groups),
        weights=weights,
        weighed_by=tuple(weighed_by if weights else [1.0] * len(weighed_by)),
        grids=grids,
    )


@dataclass(frozen=True)
class _Drawing:
    """Where the streams of a step come from."""

    seed: Seed
    named: tuple[str | int, ...]
    replicate: int | None = None
    """None for draws that are the same in all of them."""

    def stream(self, *more: str) -> Stream:
        """The stream of the step, or of a part of it."""
        return self.seed.stream(*self.named, *more, *(() if self.replicate is None else (self.replicate,)))


def _weighed(work: Work, factor: float) -> dict[str, Array]:
    """The weights of the records that are left, so that they stand for the same population."""
    named = [name for name in work.table.schema.with_role("weight") if name not in work.dropped]
    if factor == 1 or not named:
        return {}
    name = named[0]
    before = work.current(name).values
    made = before * factor
    broken = [work.rows.count(int(np.count_nonzero(each != np.rint(each)))) for each in (before, made)]
    whole = not broken[0] and bool(broken[1])
    decimals = "; whole weights became decimals" if whole else ""
    what = "records" if work.groups is None else "groups"
    work.notes.append(
        f"weights ({name}) were multiplied by {factor:.6g}, the inverse of the share of {what} released, so that they "
        f"stand for the same population{decimals}"
    )
    return {name: made}


def _on_values(
    step: Step, chosen: Sequence[str], work: Work, drawing: _Drawing
) -> tuple[dict[str, Outcome], frozenset[str]]:
    """A step on columns; those of groups, which are told too, on one record of each group."""
    entry = step.entry
    before = {name: work.current(name, as_labels=as_labels(entry)) for name in chosen}
    of_groups = work.of_groups(chosen)
    made: dict[str, Outcome] = {}
    if entry.whole_records and 0 < len(of_groups) < len(chosen):
        made = _until_groups_agree(step, chosen, before, drawing.stream(), work, of_groups)
        made = {name: _with_emptied(work, name, before[name], made[name]) for name in chosen}
        _say_emptied(entry.id, work, made)
        for name in chosen:
            work.put(name, made[name], before[name])
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
                stream = drawing.stream(*own)
                made |= on_columns(step, part, before, stream, work, grouped=grouped)
    else:
        tasks = {}
        for name in chosen:
            if "original" in entry.needs and name in work.relabelled:
                raise ParameterError(
                    f"column {name}: an earlier step gave it labels that the original does not have, so {entry.id} "
                    "cannot put the original's values in their places; let it come before, or name other columns"
                )
            stream = drawing.stream(name)
            original = work.taken(work.table.values(name)) if "original" in entry.needs else before[name].values
            groups = work.groups if name in of_groups else None
            tasks[name] = partial(on_column, step, name, before[name], original, stream, len(chosen), groups)
        outcomes = work.rows.each(lambda task, rows: task(rows), tasks, size=len(work) * len(chosen))
        made = dict(zip(chosen, outcomes, strict=True))
        for name, outcome in made.items():
            work.notes += [f"{entry.id}, column {name}: {note}" for note in outcome.notes]
    if entry.changes_missing:
        made = {name: _with_emptied(work, name, before[name], made[name]) for name in chosen}
        _say_emptied(entry.id, work, made)
    for name in chosen:
        work.put(name, made[name], before[name])
    return made, frozenset(of_groups)


def _with_emptied(work: Work, name: str, before: Current, made: Outcome) -> Outcome:
    """The outcome with how many cells had a missing code (n/a, -9, .a) and are empty now, where there are any."""
    words = np.array([word is not None for word in work.table.cells(name).gap_words()])
    numbers = metadata.gap_numbers(before.values)
    coded = (numbers > 0) & words[np.maximum(numbers, 0)]
    emptied = int(np.count_nonzero(coded & (metadata.gap_numbers(made.values) == 0)))
    return replace(made, counts={**made.counts, _EMPTIED: emptied}) if emptied else made


def _say_emptied(method: str, work: Work, made: Mapping[str, Outcome]) -> None:
    many = {name: work.rows.count(out.counts.get(_EMPTIED, 0)) for name, out in made.items()}
    told = [f"{name} ({count})" for name, count in many.items() if count]
    if told:
        work.notes.append(
            f"{method}: missing cells must look alike, so those that had a code of their own are empty now: "
            f"{listing(told, most=10)}"
        )


def _until_groups_agree(
    step: Step,
    chosen: Sequence[str],
    before: Mapping[str, Current],
    rng: Stream,
    work: Work,
    of_groups: Collection[str],
) -> dict[str, Outcome]:
    """A step that suppresses cells of whole records: what one of a group lost in a column of groups all of it lose.

    That may leave others alone with their values, so the step runs again until nothing is lost any more.
    """
    assert work.groups is not None
    first, inverse = work.groups.first, work.groups.of
    current = dict(before)
    said = len(work.notes)
    while True:
        del work.notes[said:]  # what the last round says holds
        made = on_columns(step, chosen, current, rng.at(), work, grouped=False)
        spread = False
        for name in chosen:
            gone = np.isnan(made[name].values)
            if name in of_groups:
                lost = np.bincount(inverse, weights=gone, minlength=first.size)[inverse] > 0
                spread |= bool(np.any(lost & ~gone))
                gone = lost
            values = np.where(gone, metadata.EMPTY, before[name].values)
            current[name] = replace(before[name], values=values)
        if not spread:
            break
    work.notes.append(f"{step.method}: what one of a group lost all of it lost: {listing(of_groups, most=10)}")
    lost_now = {name: int(np.sum(np.isnan(current[name].values) & ~np.isnan(before[name].values))) for name in chosen}
    return {name: Outcome(current[name].values, {"suppressed": lost_now[name]}) for name in chosen}
