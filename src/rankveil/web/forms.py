"""Forms made from the catalogue: a parameter becomes a field, and what a person enters becomes a step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rankveil.catalogue import Entry, Method, Parameter, get_method
from rankveil.errors import ParameterError
from rankveil.masking import takes
from rankveil.plans import Step
from rankveil.report.look import number
from rankveil.table import Table

GIVEN = "given"
"""The parameter that names columns."""
_BETWEEN = ", "
"""What stands between the parts of a list in one field."""


class Given(Protocol):
    """What a form sent: names, each with one or several texts."""

    def get(self, key: str, /) -> Any:
        """The last text of that name."""

    def getlist(self, key: str, /) -> list[Any]:
        """All texts of that name."""


@dataclass(frozen=True)
class Field:
    """One field of a form."""

    name: str
    label: str
    sort: str
    """number, select, check, columns or text."""
    help: str
    value: Any = None
    required: bool = False
    choices: tuple[str, ...] = ()
    least: str = ""
    most: str = ""
    step: str = "any"
    placeholder: str = ""

    @property
    def id(self) -> str:
        """For the label that belongs to it."""
        return f"field-{self.name}"


def field_of(
    parameter: Parameter, *, name: str, value: Any = None, columns: Sequence[str] = (), blank: bool = False
) -> Field:
    """The field of a parameter; a `blank` one shows the default as a hint instead of holding it."""
    sort = _sort(parameter)
    default = None if parameter.required else parameter.default
    if value is None and not blank:
        value = default
    limits = parameter.range
    hint = "none" if default is None and parameter.optional else _written(default) if blank else ""
    return Field(
        name=name,
        label=parameter.name,
        sort=sort,
        help=_help(parameter),
        value=value if sort in ("check", "columns") else _written(value),
        required=parameter.required and not blank,
        choices=tuple(columns) if sort == "columns" else parameter.choices,
        least=f"{limits.low:g}" if limits and math.isfinite(limits.low) else "",
        most=f"{limits.high:g}" if limits and math.isfinite(limits.high) else "",
        step="1" if parameter.type is int else "any",
        placeholder=hint,
    )


def _sort(parameter: Parameter) -> str:
    if parameter.choices:
        return "select"
    if parameter.type in (int, float) and not parameter.dated:
        return "number"
    if parameter.type is bool:
        return "check"
    return "columns" if parameter.name == GIVEN else "text"


def _help(parameter: Parameter) -> str:
    told = [parameter.text] if parameter.text else []
    if parameter.range is not None:
        told.append(str(parameter.range))
    if parameter.type is tuple and parameter.name != GIVEN:
        told.append("with commas between them")
    if parameter.optional:
        told.append("may stay empty")
    return "; ".join(told)


def _written(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple | list):
        return _BETWEEN.join(map(str, value))
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def read_parameters(
    entry: Entry[Any], given: Given, *, prefix: str, names: Iterable[str] | None = None, blank: bool = False
) -> dict[str, Any]:
    """What was entered for the parameters of an entry; what stayed empty is left out."""
    found: dict[str, Any] = {}
    for name, parameter in entry.parameters.items():
        if names is not None and name not in names:
            continue
        sort, key = _sort(parameter), f"{prefix}{name}"
        if sort == "check":
            ticked = given.get(key) is not None
            if ticked or not blank:
                found[name] = ticked
        elif sort == "columns":
            chosen = [str(each) for each in given.getlist(key)]
            if chosen:
                found[name] = tuple(chosen)
        else:
            text = str(given.get(key) or "").strip()
            if text:
                found[name] = parameter.check(_dotted(text, parameter), owner=entry.id)
    return found


def _dotted(text: str, parameter: Parameter) -> str:
    """A decimal comma is a decimal point."""
    return text.replace(",", ".") if parameter.type in (int, float) else text


@dataclass(frozen=True)
class StepForm:
    """The form of one step: its method, its fields, its columns, and fields for single columns."""

    method: Method
    fields: tuple[Field, ...]
    columns: tuple[str, ...]
    """Those that the method can take."""
    chosen: tuple[str, ...]
    own: tuple[tuple[str, tuple[Field, ...]], ...]
    """For each column the fields in which it may differ."""

    @property
    def own_given(self) -> bool:
        """Whether some column differs."""
        return any(field.value for _, fields in self.own for field in fields)


def step_form(method: str, table: Table, *, step: Step | None = None, given: Given | None = None) -> StepForm:
    """The form of a method for a table, filled from a step, or from what was entered before."""
    entry = get_method(method)
    able = columns_for(entry, table)
    values: dict[str, Any] = dict(step.parameters) if step else {}
    fields = []
    for name, parameter in entry.parameters.items():
        value = _kept(given, f"p-{name}", parameter) if given else values.get(name)
        fields.append(field_of(parameter, name=f"p-{name}", value=value, columns=able, blank=given is not None))
    own = []
    for place, column in enumerate(able):
        mine = dict(step.per_column.get(column, {})) if step else {}
        made = []
        for name, parameter in _own_parameters(entry).items():
            key = f"own-{place}-{name}"
            value = _kept(given, key, parameter) if given else mine.get(name)
            made.append(field_of(parameter, name=key, value=value, blank=True))
        if made:
            own.append((column, tuple(made)))
    chosen = tuple(map(str, given.getlist("columns"))) if given else tuple((step.columns or ()) if step else ())
    return StepForm(entry, tuple(fields), able, chosen, tuple(own))


def _kept(given: Given | None, key: str, parameter: Parameter) -> Any:
    """What was entered, so that an error does not lose it."""
    assert given is not None
    sort = _sort(parameter)
    if sort == "check":
        return given.get(key) is not None
    return tuple(given.getlist(key)) if sort == "columns" else given.get(key)


def columns_for(entry: Method, table: Table) -> tuple[str, ...]:
    """The columns of a table that a method can take."""
    if entry.works_on == "records":
        return ()
    hierarchies = table.schema.hierarchies or {}
    return tuple(
        name
        for name in table.names
        if entry.works_on == "names" or takes(entry, table.cells(name).kind, hierarchy=name in hierarchies)
    )


def _own_parameters(entry: Method) -> dict[str, Parameter]:
    """The parameters that may be another for each column."""
    if entry.works_on == "records":
        return {}
    return {
        name: parameter
        for name, parameter in entry.parameters.items()
        if (_sort(parameter) in ("number", "text") and entry.works_on == "column") or parameter.each
    }


def read_step(given: Given, table: Table) -> Step:
    """The step that was entered, checked as far as it can be without masking."""
    entry = get_method(str(given.get("method") or ""))
    able = columns_for(entry, table)
    own: dict[str, dict[str, Any]] = {}
    for place, column in enumerate(able):
        mine = read_parameters(entry, given, prefix=f"own-{place}-", names=_own_parameters(entry), blank=True)
        if mine:
            own[column] = mine
    chosen = [str(name) for name in given.getlist("columns")]
    strangers = [name for name in chosen if name not in able]
    if strangers:
        raise ParameterError(f"{entry.id}: it does not take the column {strangers[0]}")
    step = Step(entry.id, read_parameters(entry, given, prefix="p-"), own, chosen or None)
    for column in (chosen or able) if own else ():
        step.bound(column)
    if not own:
        step.bound()
    return step


def step_words(step: Step) -> str:
    """A step in one line.

    >>> step_words(Step("rank_swap", {"p": 10.0}, columns=["INCOME"]))
    'p = 10; INCOME'
    """
    said = [f"{name} = {_shown(value)}" for name, value in step.parameters.items() if value not in ((), None)]
    for column, own in step.per_column.items():
        said += [f"{name} of {column} = {_shown(value)}" for name, value in own.items()]
    where = "whole records" if step.entry.works_on == "records" else ", ".join(step.columns or ())
    if not where:
        where = "the columns masked so far" if step.entry.post else "all columns that it takes"
    return "; ".join([", ".join(said), where] if said else [where])


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return number(value) if isinstance(value, float) else str(value)


def read_number(given: Given, name: str, *, whole: bool = False, least: float, most: float, what: str) -> float:
    """A number of a form, within its limits."""
    text = str(given.get(name) or "").strip().replace(",", ".")
    try:
        value = float(text)
    except ValueError:
        raise ParameterError(f"{what} must be a number, not {text!r}") from None
    if not least <= value <= most or (whole and value != int(value)):
        sort = "a whole number" if whole else "a number"
        raise ParameterError(f"{what} must be {sort} from {least:g} to {most:g}, not {text}")
    return value


def read_place(text: str) -> int | None:
    """The number of a step or of a place on a map, from 0; None when it is none."""
    return int(text) if text.isdecimal() and len(text) < 6 else None


def read_settings(entries: Mapping[str, Entry[Any]], given: Given, *, prefix: str) -> dict[str, dict[str, Any]]:
    """Parameters of several entries, those that were entered, by id."""
    found = {}
    for id, entry in entries.items():
        mine = read_parameters(entry, given, prefix=f"{prefix}{id}-", blank=True)
        if mine:
            found[id] = mine
    return found
