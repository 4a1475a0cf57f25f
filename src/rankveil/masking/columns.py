"""A step on one column, or on several together; where it needs all rows of a table in parts, in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankveil import metadata
from rankveil.catalogue import Array, Outcome
from rankveil.errors import ParameterError, listing, row_listing
from rankveil.masking.account import RowNumbers
from rankveil.masking.working import Current, Households, Work
from rankveil.plans import Step
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream
from rankveil.table import Table


def on_columns(
    step: Step,
    chosen: Sequence[str],
    before: Mapping[str, Current],
    rng: Stream,
    work: Work,
    *,
    grouped: bool,
) -> dict[str, Outcome]:
    """Columns that are masked together; a missing cell stands at its column's mean meanwhile, and is missing again."""
    entry = step.entry
    if not entry.by_parts and not work.rows.alone:
        return _on_columns_of_all(step, chosen, before, rng, work)
    given = tuple(step.parameters.get("given", ()))
    groups = work.groups if grouped else None
    columns = [before[name] for name in chosen]
    x, missing = filled(columns, groups, size=len(work), everywhere=work.rows)
    conditions, unknown = filled([work.current(name) for name in given], groups, size=len(work), everywhere=work.rows)
    many = work.rows.count(int(missing.sum() + unknown.sum()))
    # a method that is told where they are and changes the pattern fills nothing in
    if many and not entry.changes_missing:
        work.notes.append(
            f"{entry.id}: {many} missing cells stood at their column's mean (a nominal one's most frequent category) "
            "while the columns were masked"
        )
    wanted = {"given": conditions, "missing": missing}
    arguments = [wanted.get(need, x) for need in entry.needs]
    absent = [each.values if groups is None else each.values[groups.leads(each.values)] for each in columns]
    gaps = np.column_stack([metadata.gap_numbers(column) for column in absent]) if entry.changes_missing else None
    with np.errstate(over="ignore", invalid="ignore"):
        made = entry.run(
            *arguments,
            gaps=gaps,
            rng=rng.at(start=work.rows.start) if groups is None else rng.at(groups.first),
            rows=work.rows,
            attributes=len(chosen),
            names=tuple(chosen),
            bound=step.bound_for(chosen),
            kinds=tuple(before[name].kind for name in chosen),
            categories=tuple(before[name].categories for name in chosen),
            temporal=tuple(before[name].temporal for name in chosen),
        )
    outcome = made if isinstance(made, Outcome) else Outcome(made)
    work.notes += [f"{entry.id}: {note}" for note in outcome.notes]
    gone = missing if outcome.missing is None else outcome.missing
    if outcome.missing is None:
        left = np.column_stack(absent)
    else:
        left = metadata.numbered_gaps(np.zeros_like(missing, dtype=np.int64) if outcome.gaps is None else outcome.gaps)
    masked = np.where(gone, left, outcome.values)
    results = {}
    for j, name in enumerate(chosen):
        rows_here = np.arange(len(x)) + work.rows.start
        _refuse_infinite(entry.id, name, np.where(gone[:, j], 0.0, masked[:, j]), rows_here)
        own = {what: int(np.broadcast_to(count, len(chosen))[j]) for what, count in outcome.counts.items()}
        column = np.ascontiguousarray(masked[:, j])
        if groups is not None:
            column = groups.spread(column, columns[j].values, keep=outcome.missing is None)
        results[name] = Outcome(column, own)
    return results


def filled(
    columns: Sequence[Current], groups: Households | None, *, size: int, everywhere: Rows
) -> tuple[Array, NDArray[np.bool_]]:
    """A matrix of the columns, missing cells at the column's mean or most frequent category, and where they are."""
    x = np.empty((size if groups is None else groups.first.size, len(columns)), order="F")
    for j, column in enumerate(columns):
        x[:, j] = column.values if groups is None else column.values[groups.leads(column.values)]
    missing = np.isnan(x)
    if not everywhere.count(int(missing.sum())):
        return x, missing

    def middle(j: int, rows: Rows) -> float:
        there = x[~missing[:, j], j]
        if columns[j].kind != "nominal":
            return rows.mean(there)
        counts = rows.tally(there.astype(np.intp), len(columns[j].categories or ()))
        return float(np.argmax(counts)) if counts.size else 0.0

    middles = everywhere.each(middle, {str(j): j for j in range(len(columns))}, size=x.size)
    for j, value in enumerate(middles):
        x[missing[:, j], j] = value
    return x, missing


def _on_columns_of_all(
    step: Step, chosen: Sequence[str], before: Mapping[str, Current], rng: Stream, work: Work
) -> dict[str, Outcome]:
    """Columns of a table in parts, masked together by a method that needs all rows at once."""
    if "gaps" in step.entry.accepts:
        _refuse_written_gaps(step.method, {name: before[name].values for name in chosen}, work.rows)
    given = tuple(step.parameters.get("given", ()))
    known = {**before, **{name: work.current(name) for name in given}}
    bare = {name: replace(each, values=np.empty(0)) for name, each in known.items()}
    run = partial(_in_one_place, step, tuple(chosen), bare, rng)
    columns, told = work.rows.whole([each.values for each in known.values()], run)
    notes, counts = told
    work.notes += notes
    first = work.rows.first
    return {name: Outcome(made, counts[name] if first else {}) for name, made in zip(chosen, columns, strict=True)}


def _refuse_written_gaps(method: str, columns: Mapping[str, Array], rows: Rows) -> None:
    """Refuse missing codes that would move from one part of a table to another, as each part numbers its own."""
    written = [partial(np.greater, metadata.gap_numbers(values), 0) for values in columns.values()]
    many = dict(zip(columns, rows.sums(written), strict=True))
    found = [name for name, count in many.items() if count]
    if found:
        raise ParameterError(
            f"column {listing(found)}: missing cells that are written (NaN, or a code) are not moved by {method} in a "
            "table in parts; leave them empty, or the column out"
        )


def _in_one_place(
    step: Step, chosen: tuple[str, ...], bare: Mapping[str, Current], rng: Stream, columns: Sequence[Array]
) -> tuple[list[Array], Any]:
    """All rows of some columns, masked together: the columns, what is to be noted, and what was counted."""
    known = {name: replace(each, values=values) for (name, each), values in zip(bare.items(), columns, strict=True)}
    work = Work(cast(Table, _Nothing(len(columns[0]))))
    work.changed = dict(known)
    made = on_columns(step, chosen, known, rng, work, grouped=False)
    return [made[name].values for name in chosen], (work.notes, {name: made[name].counts for name in chosen})


class _Nothing:
    """In place of a table of which all that matters was read already."""

    group = None

    def __init__(self, records: int) -> None:
        self._records = records

    def __len__(self) -> int:
        return self._records


def _refuse_infinite(method: str, name: str, values: Array, rows: RowNumbers) -> None:
    if not np.all(np.isfinite(values)):
        bad = rows[~np.isfinite(values)] + 1
        raise ParameterError(f"column {name}: {method} makes values too large ({row_listing(bad)}); weaken it")


def on_column(
    step: Step,
    name: str,
    before: Current,
    original: Array,
    rng: Stream,
    attributes: int,
    groups: Households | None,
    rows: Rows,
) -> Outcome:
    """One column, its missing cells left out, one record for each group where it belongs to groups."""
    entry = step.entry
    if not entry.by_parts and not rows.alone:
        bare = replace(before, values=np.empty(0))
        run = partial(_column_in_one_place, step, name, bare, rng, attributes)
        (values,), told = rows.whole([before.values, original], run)
        kept: Outcome = told
        return replace(kept, values=values, counts=kept.counts if rows.first else {})
    records = np.arange(before.values.size) if groups is None else groups.leads(before.values)
    there = records[~np.isnan(before.values[records])]
    if there.size == 0 and rows.alone:
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
                rng=rng.at(None if whole else there, start=rows.start),
                rows=rows,
                attributes=attributes,
                names=(name,),
                bound=step.bound(name),
                kinds=(before.kind,),
                categories=before.categories,
                temporal=before.temporal,
            )
    except ParameterError as error:
        raise ParameterError(f"column {name}: {error}") from None
    outcome = made if isinstance(made, Outcome) else Outcome(made)
    _refuse_infinite(entry.id, name, outcome.values, there + rows.start)
    if whole:
        return outcome
    masked = before.values.copy()
    masked[there] = outcome.values
    if groups is not None:
        masked = groups.spread(masked[records], before.values, keep=True)
    return Outcome(masked, outcome.counts, outcome.notes, levels=outcome.levels)


def _column_in_one_place(
    step: Step, name: str, bare: Current, rng: Stream, attributes: int, columns: Sequence[Array]
) -> tuple[list[Array], Outcome]:
    """All rows of a column, masked by a method that needs them at once."""
    values, original = columns
    before = replace(bare, values=values)
    made = on_column(step, name, before, original, rng, attributes, None, HERE)
    return [made.values], replace(made, values=np.empty(0))
