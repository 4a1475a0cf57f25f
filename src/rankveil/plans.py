"""A plan: the steps of a masking, as data that can be saved and read."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankveil.catalogue import Method, get_method
from rankveil.errors import ParameterError, TableError, listing, suggestion

PLAN_SCHEMA = "rankveil/plan/1"


@dataclass(frozen=True)
class Step:
    """One method with its parameters, for some columns or for all that it can take."""

    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    per_column: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    columns: Sequence[str] | None = None

    def __post_init__(self) -> None:
        entry = get_method(self.method)
        checked = {name: entry.parameter(name).check(value, owner=entry.id) for name, value in self.parameters.items()}
        own = {
            column: {
                name: entry.parameter(name).check(value, owner=entry.id, column=column) for name, value in given.items()
            }
            for column, given in self.per_column.items()
        }
        object.__setattr__(self, "parameters", checked)
        object.__setattr__(self, "per_column", own)
        if self.columns is not None:
            # one name is one column, not its letters
            names = (self.columns,) if isinstance(self.columns, str) else tuple(self.columns)
            if not names:
                raise ParameterError(f"{entry.id}: no column is named; leave columns out to mask all that it takes")
            object.__setattr__(self, "columns", names)

    @property
    def entry(self) -> Method:
        """The method in the catalogue."""
        return get_method(self.method)

    def bound(self, column: str | None = None) -> dict[str, Any]:
        """All parameters with their values, for one column when it is named.

        Where a method must be told one of several things, what is said of a column stands instead of what is said of
        all: cuts of AGE although there is a level for the others.
        """
        own = self.per_column.get(column or "", {})
        instead = self.entry.told if any(name in self.entry.told for name in own) else ()
        return self.entry.bind({**{k: v for k, v in self.parameters.items() if k not in instead}, **own})

    def bound_for(self, columns: Sequence[str]) -> dict[str, Any]:
        """All parameters for columns that are masked together: one number for each column where it may differ."""
        each = [self.bound(column) for column in columns]
        bound = each[0]
        for name, parameter in self.entry.parameters.items():
            if parameter.each:
                values = [given[name] for given in each]
                if parameter.dated:  # numbers and texts
                    bound[name] = values
                else:
                    bound[name] = None if all(value is None for value in values) else np.array(values, dtype=np.float64)
            elif any(given[name] != bound[name] for given in each):
                raise ParameterError(f"{self.method}: {name} is one for all columns, because they are masked together")
        return bound

    def to_dict(self) -> dict[str, Any]:
        """Plain data, what is not set left out."""
        plain: dict[str, Any] = {"method": self.method}
        if self.columns is not None:
            plain["columns"] = list(self.columns)
        if self.parameters:
            plain["parameters"] = _written(self.parameters)
        if self.per_column:
            plain["per_column"] = {column: _written(given) for column, given in self.per_column.items()}
        return plain


def _written(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """TOML has no null: a parameter that was set to none says so in words."""
    words = {None: "none"}
    return {
        name: list(value) if isinstance(value, tuple) else words.get(value, value) for name, value in parameters.items()
    }


@dataclass(frozen=True)
class Plan:
    """The steps of a masking, one after the other; saved and read as TOML or JSON.

    >>> plan = Plan.of("additive_noise", alpha=0.2).then("round")
    >>> Plan.from_toml(plan.to_toml()) == plan
    True
    """

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise ParameterError("a plan needs at least one step")
        object.__setattr__(self, "steps", tuple(self.steps))

    @classmethod
    def of(cls, method: str | Step | Plan, *, columns: Sequence[str] | None = None, **parameters: Any) -> Plan:
        """A plan of one step; a plan that is one already stays as it is."""
        if isinstance(method, Plan | Step):
            if parameters or columns is not None:
                raise ParameterError("a plan has its own parameters and columns; give them there")
            return method if isinstance(method, Plan) else cls((method,))
        return cls((make_step(method, parameters, columns=columns),))

    def then(self, method: str | Step, *, columns: Sequence[str] | None = None, **parameters: Any) -> Plan:
        """The plan with one more step."""
        return Plan((*self.steps, *Plan.of(method, columns=columns, **parameters).steps))

    @property
    def synthetic(self) -> bool:
        """Whether some step makes records that belong to nobody."""
        return any(step.entry.mapping == "none" for step in self.steps)

    @property
    def reorders(self) -> bool:
        """Whether some step puts the records in another order."""
        return any(step.entry.mapping == "reordered" and not step.entry.leaves_out for step in self.steps)

    def in_random_order(self, *, published: bool = False) -> Plan:
        """The plan with synthetic or `published` records shuffled at its end, unless a step of it reorders them anyway.

        Synthetic records belong to nobody, but the columns beside them do: in the original's order a place would tell
        whose. What is published in that order tells the values of a column by which it is sorted, however it is masked.

        >>> [step.method for step in Plan.of("ipso").in_random_order().steps]
        ['ipso', 'record_shuffle']
        >>> [step.method for step in Plan.of("mdav").in_random_order(published=True).steps]
        ['mdav', 'record_shuffle']
        """
        wanted = (self.synthetic or published) and not self.reorders
        return self.then("record_shuffle") if wanted else self

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"schema": PLAN_SCHEMA, "steps": [step.to_dict() for step in self.steps]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Plan:
        """A plan from plain data."""
        steps = plain.get("steps") if isinstance(plain, Mapping) else None
        if not isinstance(steps, list) or plain.get("schema", PLAN_SCHEMA) != PLAN_SCHEMA:
            raise ParameterError(f"this is not a plan: it needs schema = {PLAN_SCHEMA!r} and a list of steps")
        return cls(tuple(_read_step(given, number) for number, given in enumerate(steps, start=1)))

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_toml(self) -> str:
        """As TOML."""
        import tomli_w

        return tomli_w.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """From JSON."""
        try:
            plain = plain_json(text)
        except ValueError as error:
            raise ParameterError(f"the plan is not JSON: {error}") from None
        return cls.from_dict(plain)

    @classmethod
    def from_toml(cls, text: str) -> Plan:
        """From TOML."""
        try:
            plain = tomllib.loads(text)
        except ValueError as error:  # also for a number of thousands of digits
            raise ParameterError(f"the plan is not TOML: {error}") from None
        except RecursionError:
            raise ParameterError("the plan is not TOML: it is nested too deeply") from None
        return cls.from_dict(plain)


def plain_json(text: str) -> Any:
    """What a JSON text says; a ValueError for what is none, and for what could not be written down again."""
    try:
        plain = json.loads(text)
        json.dumps(plain, ensure_ascii=False).encode("utf-8")  # half a character, as \\ud800 is, cannot be shown
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return plain


def _read_step(given: Any, number: int) -> Step:
    """A step from plain data, which may hold anything."""
    where = f"step {number} of the plan"
    if not isinstance(given, Mapping):
        raise ParameterError(f"{where}: it must be a table with a method, not {given!r}")
    unknown = set(given) - {"method", "columns", "parameters", "per_column"}
    if unknown:
        raise ParameterError(f"{where}: it does not know {listing(sorted(unknown))}")
    if not isinstance(given.get("method"), str):
        raise ParameterError(f"{where}: it names no method")
    columns, parameters, own = given.get("columns"), given.get("parameters", {}), given.get("per_column", {})
    if columns is not None and not (isinstance(columns, list) and all(isinstance(name, str) for name in columns)):
        raise ParameterError(f"{where}: columns must be a list of names")
    for name, each in (("parameters", parameters), ("per_column", own)):
        if not isinstance(each, Mapping):
            raise ParameterError(f"{where}: [steps.{name}] must be a table of names and values")
    for column, each in own.items():
        _check_own(given["method"], column, each, where=where)
    try:
        return Step(given["method"], parameters, own, columns)
    except ParameterError as error:
        raise ParameterError(f"{where}: {error}") from None


def _check_own(method: str, column: str, given: Any, *, where: str) -> None:
    """What a plan says of one column; a mistake is shown by the heading that it stands under in the file."""
    where = f"{where}: {_heading(column)}"
    if not isinstance(given, Mapping):
        raise ParameterError(f"{where} must be a table of names and values, as in alpha = 0.3")
    get_method(method)
    try:
        Step(method, {}, {column: given})
    except ParameterError as error:
        raise ParameterError(f"{where}: {error}") from None


def _heading(column: str) -> str:
    """The heading in a file below which stands what a step says of a column."""
    bare = column and all(sign.isascii() and (sign.isalnum() or sign in "_-") for sign in column)
    return f"[steps.per_column.{column if bare else json.dumps(column, ensure_ascii=False)}]"


def check_headings(plan: Plan, names: Sequence[str]) -> None:
    """Every heading of a column in a plan's file names one of the table."""
    for number, step in enumerate(plan.steps, start=1):
        for column in step.per_column:
            if column not in names:
                where = f"step {number} of the plan: {_heading(column)}"
                raise TableError(f"{where}: there is no column {column}{suggestion(column, names)}")


def make_step(method: str, given: Mapping[str, Any], *, columns: Sequence[str] | None = None) -> Step:
    """A step from flat parameters, where `alpha.INCOME` is the alpha of one column.

    >>> make_step("additive_noise", {"alpha": 0.1, "alpha.INCOME": "0.3"}).per_column
    {'INCOME': {'alpha': 0.3}}
    """
    given = dict(given)
    if "columns" in given and "columns" not in get_method(method).parameters:  # --then 'drop:columns=A,B'
        named = given.pop("columns")
        columns = [word.strip() for word in named.split(",")] if isinstance(named, str) else named
    everywhere: dict[str, Any] = {}
    own: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        parameter, dot, column = name.partition(".")
        if isinstance(value, Mapping) and value:  # sd={"INCOME": 5.0}
            for each, number in value.items():
                own.setdefault(each, {})[name] = number
        elif dot:
            own.setdefault(column, {})[parameter] = value
        else:
            everywhere[parameter] = value
    return Step(method, everywhere, own, columns)
