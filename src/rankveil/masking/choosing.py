"""The columns that a step works on: those it names, or those meant for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rankveil.catalogue import Method
from rankveil.errors import ParameterError, TableError, listing
from rankveil.masking.working import Work
from rankveil.plans import Step
from rankveil.schema import UNMASKED_ROLES, require_columns
from rankveil.table import Table


def as_labels(entry: Method) -> bool:
    """Whether a method takes numbers as labels: ordered ones too, when it has no use for numbers."""
    return entry.takes == "labels" or "numeric" not in entry.kinds


def takes(entry: Method, kind: str, *, hierarchy: bool) -> bool:
    """Whether a method takes a column of that kind."""
    return kind in entry.kinds or (kind == "nominal" and hierarchy and "hierarchy" in entry.kinds)


def said_of_kinds(entry: Method) -> str:
    """Which columns a method takes, in words."""
    words = ["nominal (with a hierarchy)" if kind == "hierarchy" else kind for kind in entry.kinds]
    return f"{entry.id} takes {' and '.join(words)} columns"


def columns_for(step: Step, work: Work) -> tuple[str, ...]:
    """The columns of a step: those it names, else those meant for it."""
    entry, table = step.entry, work.table
    require_columns(step.per_column, table.names, where=f"{entry.id}: the parameter of column")
    if len(table) == 0:
        raise TableError("the table has no records")
    if entry.works_on == "records":
        return tuple(name for name in table.names if name not in work.dropped)
    given = tuple(step.parameters.get("given", ()))
    for name in table.usable(given) if given else ():
        if not taken(entry, work, name):
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
            if entry.works_on != "names" and not taken(entry, work, name):
                raise TableError(f"column {name}: {said_of_kinds(entry)}, and this one is {work.current(name).kind}")
    for name in step.per_column:
        if name not in chosen:
            raise ParameterError(f"{entry.id}: column {name} has its own parameter but is not masked by this step")
    for name in chosen:
        step.bound(name)
    return chosen


def taken(entry: Method, work: Work, name: str) -> bool:
    kind = work.changed[name].kind if name in work.changed else work.table.cells(name).kind
    hierarchy = name in (work.table.schema.hierarchies or {})
    return takes(entry, kind, hierarchy=hierarchy)


def _meant(step: Step, work: Work, given: Sequence[str]) -> tuple[str, ...]:
    """The columns of a step that names none: by role, those masked so far, or all that the method takes."""
    entry, table = step.entry, work.table
    candidates: Iterable[str]
    if entry.role is not None:
        candidates = table.schema.meant(entry.role)
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
    chosen = tuple(name for name in candidates if entry.works_on == "names" or taken(entry, work, name))
    if not chosen and given:
        raise ParameterError(f"{entry.id}: given names all columns, so there is none left to mask")
    if not chosen:
        raise TableError(f"no usable column: {said_of_kinds(entry)}, and there is none")
    if "hierarchy" in entry.kinds:
        left = [name for name in candidates if name not in chosen and table.cells(name).kind == "nominal"]
        if left:
            work.notes.append(f"{entry.id} leaves nominal columns without a hierarchy as they are: {listing(left)}")
    return chosen


def _told_columns(step: Step, work: Work) -> list[str]:
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
    return columns_for(step, Work(table))


def suited(step: Step, table: Table, names: Iterable[str]) -> tuple[str, ...]:
    """Those of some columns that a step can work on: it takes their kind, and is told what to do with them."""
    work = Work(table)
    fitting = (name for name in names if taken(step.entry, work, name))
    return tuple(name for name in fitting if not step.entry.told or _is_told(step, work, name))


def _is_told(step: Step, work: Work, name: str) -> bool:
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
    return column.kind != "numeric" and column.missing < table.records
