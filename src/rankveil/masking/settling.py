"""The plan with what goes by the table at hand: strengths that depend on how many columns a step masks."""

from __future__ import annotations

from dataclasses import replace

from rankveil import strengths
from rankveil.masking.choosing import columns_for
from rankveil.masking.working import Work
from rankveil.plans import Plan, Step
from rankveil.table import Table


def settled(plan: Plan, table: Table) -> Plan:
    """The plan with a number for every strength that was left to the number of columns.

    So the manifest says it, and whoever repeats the plan on another table repeats what was done to this one.
    """
    if not any(step.entry.by_columns for step in plan.steps):
        return plan
    work = Work(table)
    steps = []
    for step in plan.steps:
        if step.entry.works_on == "names":
            work.dropped += columns_for(step, work)
        steps.append(_settled(step, work) if step.entry.by_columns else step)
    return Plan(tuple(steps))


def _settled(step: Step, work: Work) -> Step:
    name = step.entry.strength
    assert name is not None
    chosen = columns_for(step, work)
    left = [column for column in chosen if step.bound(column)[name] is None]
    if not left:
        return step
    strength = strengths.strength_for(step.method, len(chosen))
    if step.parameters.get(name) is None:
        own = {column: dict(given) for column, given in step.per_column.items()}
        for column in own:
            if column in left:
                own[column].pop(name, None)
        own = {column: given for column, given in own.items() if given}
        return replace(step, parameters={**step.parameters, name: strength}, per_column=own)
    # of some columns it was said to go by their number, of the others how strong
    own = {column: {**step.per_column.get(column, {}), name: strength} for column in left}
    return replace(step, per_column={**step.per_column, **own})
