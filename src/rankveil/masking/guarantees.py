"""What the steps of a plan guarantee of its release, and of which columns other steps have made it void."""

from __future__ import annotations

from collections.abc import Sequence

from rankveil.masking.account import Account
from rankveil.plans import Plan, Step
from rankveil.table import Table


def guarantees(table: Table, plan: Plan, applied: Account) -> list[str]:
    """What holds of the released columns whatever the data, as far as no other step has made it void."""
    released = [name for name in table.names if name not in applied.dropped]
    told = []
    for number, step in enumerate(plan.steps):
        entry, columns = step.entry, applied.columns[number]
        if entry.guarantee is None:
            continue
        if entry.works_on == "columns" and (applied.apart(number) or _gaps(table, plan, applied, number)):
            continue
        standing = [name for name in columns if _stands(plan, applied, number, name)]
        if entry.works_on == "columns" and len(standing) < len(columns):
            continue
        names = [name for name in standing if name in released]
        if not names:
            continue
        bound = {name: step.bound(name) for name in columns}
        beside = [name for name in released if name not in names] if entry.survives == "data-free" else []
        grouped = [name for name in names if name in applied.of_groups[number]]
        more = _not_covered(beside) + (_of_groups(grouped) if entry.survives == "data-free" else "")
        told += [f"{sentence}{more}" for sentence in entry.guarantee(bound, applied.counts[number], names)]
    return told


def said_of_others(table: Table, plan: Plan, applied: Account, number: int) -> str:
    """To be said after what a step tells users: which other steps changed its columns, so that it is not all."""
    step = plan.steps[number]
    own = {*applied.columns[number], *step.parameters.get("given", ())}
    others = []
    for k, other in enumerate(plan.steps):
        if k == number or step.entry.works_on in ("records", "names"):
            continue
        if other.entry.leaves_out and applied.released < len(table):
            others.append(f"{other.method} (records left out)")
        if other.entry.works_on in ("records", "names") or other.method == "identity":
            continue
        if k < number and "original" in step.entry.needs:
            continue  # whatever came before: it compares with the original
        shared = [name for name in applied.columns[k] if name in own]
        if shared:
            others.append(f"{other.method} ({', '.join(shared)})")
    if not others:
        return ""
    return f"; said of this step alone, as others changed what is released of its columns: {', '.join(others)}"


def _not_covered(beside: Sequence[str]) -> str:
    """The released columns that a private step did not work on."""
    if not beside:
        return ""
    return f"; released beside and not covered: {', '.join(beside)}"


def _of_groups(names: Sequence[str]) -> str:
    if not names:
        return ""
    return (
        f"; the same within every group, which is published as it is, so that a record is a whole group: "
        f"{', '.join(names)}"
    )


def _gaps(table: Table, plan: Plan, applied: Account, number: int) -> bool:
    """Whether a step that takes columns together met missing cells that it left missing.

    Such a cell stood at its column's mean, which every record changes, and it shows in its group.
    """
    if plan.steps[number].entry.changes_missing:
        return False
    columns = applied.columns[number]
    if any(table.columns[name].missing for name in columns):
        return True
    for step, worked_on in zip(plan.steps[:number], applied.columns[:number], strict=True):
        if step.entry.changes_missing and any(applied.missing.get(n, 1) for n in worked_on if n in columns):
            return True  # of a column that was dropped since nobody has counted them
    return False


def _stands(plan: Plan, applied: Account, number: int, name: str) -> bool:
    """Whether what a step guarantees of a column survives the other steps that work on it."""
    survives = plan.steps[number].entry.survives
    for k, other in enumerate(plan.steps):
        if k > number and other.entry.leaves_out and survives != "data-free":
            return (
                False  # who shared their values with a record may be left out, and ranks are among those that are left
            )
        if k == number or name not in applied.columns[k] or other.entry.works_on in ("records", "names"):
            continue
        if k < number and not _may_come_first(other, name, survives):
            return False
        if k > number and not _leaves_standing(other, name, survives):
            return False
        if k > number and survives == "data-free" and other.entry.works_on == "columns":
            together = {*applied.columns[k], *other.parameters.get("given", ())}
            if not together <= set(applied.columns[number]):
                return False  # it brings in columns that are not covered
    return True


def _may_come_first(earlier: Step, name: str, survives: str) -> bool:
    """Whether what is guaranteed of the later step's input holds of the original too."""
    if survives == "data-free":  # one record of the original must be one record of what the earlier step made
        return bool(earlier.entry.facts(earlier.bound(name))["local"])
    return survives == "value-wise"  # otherwise: the distance is to what the earlier step made, not to the original


def _leaves_standing(later: Step, name: str, survives: str) -> bool:
    entry = later.entry
    if survives == "data-free":
        # what looks at the values that it gets and at nothing else cannot weaken what holds of them
        return "original" not in entry.needs or (bool(entry.from_data) and not entry.taken(later.bound(name)))
    return survives == "value-wise" and entry.post and entry.id != "reverse_map"
