"""A plan of steps, and what it makes of a table."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Method, Outcome, get_method
from rankveil.errors import ParameterError, TableError, listing
from rankveil.execute import in_threads
from rankveil.seeds import Seed
from rankveil.table import Table, require_columns

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
        """All parameters with their values, for one column when it is named."""
        return self.entry.bind({**self.parameters, **self.per_column.get(column or "", {})})

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
    return {name: "none" if value is None else value for name, value in parameters.items()}


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
            return cls.from_dict(json.loads(text))
        except json.JSONDecodeError as error:
            raise ParameterError(f"the plan is not JSON: {error}") from None

    @classmethod
    def from_toml(cls, text: str) -> Plan:
        """From TOML."""
        try:
            return cls.from_dict(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise ParameterError(f"the plan is not TOML: {error}") from None


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
    tables = [parameters, own, *(own.values() if isinstance(own, Mapping) else ())]
    if not all(isinstance(each, Mapping) for each in tables):
        raise ParameterError(f"{where}: parameters and per_column must be tables of names and values")
    try:
        return Step(given["method"], parameters, own, columns)
    except ParameterError as error:
        raise ParameterError(f"{where}: {error}") from None


def make_step(method: str, given: Mapping[str, Any], *, columns: Sequence[str] | None = None) -> Step:
    """A step from flat parameters, where `alpha.INCOME` is the alpha of one column.

    >>> make_step("additive_noise", {"alpha": 0.1, "alpha.INCOME": "0.3"}).per_column
    {'INCOME': {'alpha': 0.3}}
    """
    everywhere: dict[str, Any] = {}
    own: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        parameter, dot, column = name.partition(".")
        if isinstance(value, Mapping):  # sd={"INCOME": 5.0}
            for each, number in value.items():
                own.setdefault(each, {})[name] = number
        elif dot:
            own.setdefault(column, {})[parameter] = value
        else:
            everywhere[parameter] = value
    return Step(method, everywhere, own, columns)


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
        tasks = []
        for name in chosen:
            original = table.values(name)
            current = values.get(name, original if order is None else original[order])
            stream = seed.stream("mask", number, entry.id, name, replicate)
            tasks.append(partial(_on_column, step, name, current, original, stream))
        outcomes = in_threads(lambda task: task(), tasks, size=len(table) * len(chosen))
        for name, outcome in zip(chosen, outcomes, strict=True):
            values[name] = outcome.values
            notes += [f"{entry.id}, column {name}: {note}" for note in outcome.notes]
        counts.append({name: out.counts for name, out in zip(chosen, outcomes, strict=True) if out.counts})
    in_place = {name: values[name] for name in table.names if name in values}
    return Applied(in_place, order, tuple(columns), tuple(counts), tuple(notes))


def _on_column(step: Step, name: str, current: Array, original: Array, rng: Any) -> Outcome:
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
            made = entry(*arguments, rng=rng.at(None if whole else rows), **step.bound(name))
    except ParameterError as error:
        raise ParameterError(f"column {name}: {error}") from None
    outcome = made if isinstance(made, Outcome) else Outcome(made)
    if not np.all(np.isfinite(outcome.values)):
        bad = rows[~np.isfinite(outcome.values)] + 1
        raise ParameterError(f"column {name}: {entry.id} makes values too large (rows {listing(bad)}); weaken it")
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
    takes = f"{entry.id} takes {' and '.join(entry.kinds)} columns"
    if step.columns is None:
        candidates = masked if entry.post and masked else table.usable()
        chosen = tuple(name for name in candidates if table.cells(name).kind in entry.kinds)
        if not chosen:
            raise TableError(f"no usable column: {takes}, and there is none")
    else:
        chosen = table.usable(step.columns)
        for name in chosen:
            if table.cells(name).kind not in entry.kinds:
                raise TableError(f"column {name}: {takes}, and this one is {table.cells(name).kind}")
    for name in step.per_column:
        if name not in chosen:
            raise ParameterError(f"{entry.id}: column {name} has its own parameter but is not masked by this step")
    for name in chosen:
        step.bound(name)
    return chosen
