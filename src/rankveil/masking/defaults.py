"""What a release does beyond the steps that somebody named: the decisions on the columns, as steps of the plan.

Identifiers are dropped. Where no step names the columns to mask, group ids become pseudonyms, and categories that the
steps do not take are exchanged (PRAM), for untouched they would be the main leak.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rankveil.deciding import decided_table
from rankveil.errors import ParameterError, RankveilError, TableError, listing
from rankveil.masking.choosing import as_labels, columns_for, taken
from rankveil.masking.working import Work
from rankveil.plans import Plan, Step
from rankveil.schema import NAMING_ROLES, require_columns
from rankveil.table import Table, label_counts

_TOLD = 0.1
"""How much all exchanged columns together may tell: the squares of the shares that stay, added up."""
_MOST = 1000
"""Categories at most that a default step exchanges; a column with more needs a coarser grouping."""


@dataclass(frozen=True)
class Defended:
    """A table read as it was decided, and a plan that says what is done to every column."""

    table: Table
    plan: Plan
    notes: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    """Identifiers that are released because somebody said so."""


def defended(
    plan: Plan,
    table: Table,
    *,
    release_identifiers: Sequence[str] = (),
    pipeline: bool = False,
    in_parts: bool = False,
) -> Defended:
    """The plan with a step for every decision that it leaves open; naming an identifier to be released is refused.

    In a `pipeline` a table keeps its columns, so that an identifier is refused. Of a table `in_parts`, for which the
    given one stands, nothing is masked by groups, and no record counts by a weight, unless a person said so.
    """
    if len(table) == 0:
        raise TableError("the table has no records")
    require_columns(release_identifiers, table.names, where="release_identifiers:")
    masking = [step for step in plan.steps if masks(step)]
    valued = [step for step in plan.steps if step.entry.works_on in ("column", "columns")]
    valued = [step for step in valued if step.entry.role != "identifier"]
    named = {name for step in valued for name in step.columns or (step.per_column if step.entry.told else ())}
    numbers = {name for step in masking if not as_labels(step.entry) for name in step.per_column}
    open_ = [step for step in masking if step.columns is None]
    made = decided_table(
        table,
        named=named,
        numbers=numbers,
        concluded=bool(open_) or all(step.columns is None for step in plan.steps),
        released=release_identifiers,
        alone=in_parts,
    )
    decisions = made.schema.decisions or {}
    identifiers = [name for name, each in decisions.items() if each.role == "identifier"]
    _refuse_named(made, [name for name in identifiers if name in named and name not in release_identifiers])
    steps, notes = list(plan.steps), list[str]()
    cared = {name for step in plan.steps if step.entry.role == "identifier" for name in _meant_for(step, made)}
    if open_:
        left, idle = _left(plan, made, cared)
        exchange = [name for name in left if made.cells(name).kind != "numeric" and len(made.categories(name)) <= _MOST]
        if exchange and any(_moves(step) for step in open_):
            if len(idle) < len(steps):
                steps = _before_the_end(steps, _exchange(made, exchange))
            else:
                steps = [_exchange(made, exchange)]
            steps = [step for step in steps if step not in idle]
            what = f"categories, which {' and '.join(dict.fromkeys(step.method for step in open_))} does not take"
            notes.append(f"{what}, are exchanged by pram: {listing(exchange, most=10)}")
            notes += [f"{step.method} takes none of the columns, so it was left out" for step in idle]
        groups = [name for name, each in decisions.items() if each.role == "group" and name not in cared | named]
        if groups:
            steps = _before_the_end(steps, Step("pseudonymise", {}, {}, groups))
    gone = [name for name in identifiers if name not in {*cared, *named, *release_identifiers}]
    if gone and pipeline:
        raise ParameterError(
            f"column {listing(gone)}: an identifier ({_lower(decisions[gone[0]].reason)}), and a pipeline keeps every "
            "column; leave it out before, or name it in release_identifiers="
        )
    if len(gone) == len(table.names):
        raise TableError(f"every column is an identifier ({listing(gone)}), so that nothing is left to release")
    if gone:
        steps = _before_the_end(steps, Step("drop", {}, {}, gone))
        notes.append(f"left out as identifiers: {listing(gone, most=10)} (--release-identifier NAME lets one through)")
    gaps = [f'"{each}"' for each in made.schema.missing if each not in table.schema.given.missing]
    if gaps:
        notes.append(f"read as missing cells: {listing(gaps, most=10)}")
    released = tuple(name for name in release_identifiers if name in identifiers)
    if released:
        notes.append(f"warning: identifiers are released because it was asked for: {listing(released)}")
    return Defended(made, Plan(tuple(steps)), tuple(notes), released)


def besides(step: Step, table: Table) -> tuple[Step, ...]:
    """The steps by which a step that names no columns is completed; none that leaves columns out."""
    try:
        made = defended(Plan((step,)), table).plan.steps
    except RankveilError:  # it can mask none, which is said where it masks
        return ()
    return tuple(each for each in made if each is not step and each.entry.works_on != "names") if step in made else ()


def masks(step: Step) -> bool:
    """Whether a step masks values, and not what earlier steps masked."""
    entry = step.entry
    return entry.works_on in ("column", "columns") and entry.role != "identifier" and not entry.post


def _moves(step: Step) -> bool:
    """Whether a step masks whatever it takes: neither a control nor one that is told what to make coarser."""
    return step.method != "identity" and not step.entry.told and step.entry.role is None


def _refuse_named(table: Table, names: Sequence[str]) -> None:
    if names:
        reason = _lower((table.schema.decisions or {})[names[0]].reason)
        raise ParameterError(
            f"column {names[0]} is an identifier ({reason}) and is named to be released: leave it out, replace it by "
            f"pseudonyms (pseudonymise), say that it is none (--role {names[0]}=confidential), or release it with "
            f"--release-identifier {names[0]}"
        )


def _lower(reason: str) -> str:
    return reason[:1].lower() + reason[1:]


def _meant_for(step: Step, table: Table) -> Collection[str]:
    if step.columns is not None:
        return step.columns
    return table.schema.meant("identifier")


def _left(plan: Plan, table: Table, cared: Collection[str]) -> tuple[list[str], list[Step]]:
    """Columns that should be masked and that no step of the plan masks, and steps that take none."""
    work, idle = Work(table), list[Step]()
    masked = set(cared)
    roles = table.schema.roles or {}
    wanted = [name for name in table.names if roles.get(name, "confidential") in NAMING_ROLES]
    for step in plan.steps:
        if step.entry.works_on == "names":
            work.dropped += columns_for(step, work)
        elif masks(step):
            if step.columns is not None:
                masked |= set(step.columns)
            elif step.entry.told or step.per_column or any(taken(step.entry, work, name) for name in wanted):
                masked |= set(columns_for(step, work))
            else:
                idle.append(step)
    gone = {*masked, *work.dropped}
    return [name for name in wanted if name in roles and name not in gone and not table.cells(name).missing.all()], idle


def _exchange(table: Table, names: Sequence[str]) -> Step:
    """PRAM by which a share of the cells is drawn anew, the more the more columns tell of a record.

    Invariant PRAM exchanges twice, so of k columns each keeps a share (1 - s)^2 beyond chance, and what an intruder
    learns grows with the sum of its squares: k (1 - s)^4 is the same for all k. The p of c categories is s (c - 1) / c.
    """
    share = 1 - (_TOLD / len(names)) ** 0.25
    own = {}
    for name in names:
        many = len(table.categories(name))
        own[name] = {"p": round(share * (many - 1) / max(many, 1), 3)}
    return Step("pram", {"invariant": True}, own, names)


def _before_the_end(steps: Sequence[Step], step: Step) -> list[Step]:
    """The steps with one more, before a last one that puts the records in another order."""
    if steps[-1].entry.mapping == "reordered":
        return [*steps[:-1], step, steps[-1]]
    return [*steps, step]


def untouched(table: Table, masked: Collection[str], dropped: Collection[str]) -> list[str]:
    """Columns that the decisions would mask and that are released as they are."""
    decisions = table.schema.decisions or {}
    return [
        name for name, each in decisions.items() if each.action == "mask" and name not in masked and name not in dropped
    ]


def telling_weights(table: Table, names: Collection[str]) -> list[str]:
    """Weights among some columns that identify people, with the remedy."""
    told = []
    for name, each in (table.schema.decisions or {}).items():
        if each.role != "weight" or name not in names:
            continue
        counts = label_counts(table.cells(name))[1]
        alone = int((counts == 1).sum())
        if alone:
            told.append(
                f"warning: {alone} of {len(table)} records have a weight ({name}) that no other record has, by which "
                f"who knows it finds them: release coarser weights (--then round:columns={name},decimals=0), or leave "
                f"them out (--role {name}=identifier)"
            )
    return told
