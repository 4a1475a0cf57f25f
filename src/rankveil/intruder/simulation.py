"""Releases that the intruder makes himself: the original masked again by the published plan, with draws of his own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil import masking
from rankveil.errors import FileError, RankveilError, listing
from rankveil.intruder.shared import SharedColumns
from rankveil.masking.grid import counted
from rankveil.plans import Plan, Step
from rankveil.seeds import Seed
from rankveil.table import Table

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Simulated:
    """A release whose origin is known."""

    values: Mapping[str, Array]
    origin: Rows
    """The original row of every released record."""

    def __len__(self) -> int:
        return int(self.origin.size)

    def aligned(self, name: str, count: int) -> Array:
        """A column in the order of the original, NaN for records that were left out."""
        made = np.full(count, np.nan)
        made[self.origin] = self.values[name]
        return made

    def present(self, count: int) -> NDArray[np.bool_]:
        """Which originals have a released record."""
        made = np.zeros(count, dtype=bool)
        made[self.origin] = True
        return made


@dataclass(frozen=True, eq=False)
class Told:
    """What a manifest tells of how a release was made."""

    plan: Plan
    grids: Mapping[str, float]
    """The step of each column's grid; numbers of other columns are as they were drawn."""
    weighed_by: Mapping[str, float] = field(default_factory=dict)
    """By what weights were multiplied because records were left out, by column; everybody can undo that."""

    def unweighed(self, values: Mapping[str, Array]) -> Mapping[str, Array]:
        """Released values with the weights that the records had before some were left out."""
        return {name: column / self.weighed_by.get(name, 1.0) for name, column in values.items()}


@dataclass(eq=False)
class Simulator:
    """Masks the original again and again, each number with draws of its own."""

    columns: SharedColumns
    told: Told
    seed: Seed
    """That of the study: nothing of the release's own seed is known here."""

    @property
    def plan(self) -> Plan:
        """The plan of the release."""
        return self.told.plan

    @cached_property
    def table(self) -> Table:
        """The original, of which no column is multiplied as weights where records are left out."""
        original = self.columns.original
        roles = {name: "other" if role == "weight" else role for name, role in (original.schema.roles or {}).items()}
        weights = original.schema.with_role("weight")
        return original.with_schema(replace(original.schema, roles=roles)) if weights else original

    def grid(self, name: str) -> float:
        """The step of a column's grid, in the units of the original; 0 where none is told."""
        told = self.told.grids.get(name)
        return 0.0 if told is None else counted(told, self.table.cells(name).temporal)

    def release(self, number: int) -> Simulated:
        """The release of that number."""
        applied = masking.apply(self.table, self.plan, seed=self._seed(number), grid=self.told.grids)
        frame, _ = self.table.replaced(
            applied.values,
            order=applied.order,
            labels=applied.labels,
            dropped=applied.dropped,
        )
        kept = self.table.schema.only(name for name in self.table.names if name not in applied.dropped)
        values = self.columns.read(Table(frame, schema=kept, decimal=self.table.decimal))
        origin = np.arange(len(self.table)) if applied.order is None else applied.order
        return Simulated(values, origin)

    def before(self, number: int, step: int) -> masking.Applied:
        """The original as it is before a step (from 0) of the plan."""
        return masking.apply(self.table, self.plan, seed=self._seed(number), until=step, grid=False)

    def _seed(self, number: int) -> Seed:
        stream = self.seed.stream("intruder", "simulated", number)
        return Seed(hashlib.sha256(stream.key()).digest())


def told_by(manifest: Mapping[str, Any], table: Table) -> Told:
    """The plan and the grids that a manifest tells, to be applied to the original; an error says what is wrong."""
    return Told(_plan_of(manifest, table), _grids_of(manifest), _weighed_by(manifest))


def _grids_of(manifest: Mapping[str, Any]) -> dict[str, float]:
    """The grids of a manifest; an older one, or that of another program, has none."""
    columns = manifest.get("columns")
    told = [each for each in columns if isinstance(each, Mapping)] if isinstance(columns, list) else []
    grids = {str(each["name"]): each["grid"] for each in told if "name" in each and "grid" in each}
    for name, step in grids.items():
        if isinstance(step, bool) or not isinstance(step, int | float) or not 0 < step < float("inf"):
            raise FileError(f"column {name}: the manifest is damaged, its grid is no number above 0; use --no-manifest")
    return {name: float(step) for name, step in grids.items()}


def _weighed_by(manifest: Mapping[str, Any]) -> dict[str, float]:
    """By what the steps of a manifest multiplied weights, by column."""
    made: dict[str, float] = {}
    for told in (step["weights"] for step in manifest["steps"] if step.get("weights") is not None):
        name, factor = (told.get("column"), told.get("multiplied_by")) if isinstance(told, Mapping) else (None, None)
        readable = isinstance(name, str) and isinstance(factor, int | float) and not isinstance(factor, bool)
        if not readable or not 0 < float(factor or 0) < float("inf"):
            raise FileError("the manifest is damaged: by what weights were multiplied is not told; use --no-manifest")
        made[str(name)] = made.get(str(name), 1.0) * float(factor or 0)
    return made


def _plan_of(manifest: Mapping[str, Any], table: Table) -> Plan:
    steps = manifest.get("steps")
    if not isinstance(steps, list) or not steps:
        raise FileError("the manifest names no steps; leave it out with --no-manifest")
    made = []
    kinds = _kinds(manifest)
    for number, given in enumerate(steps, start=1):
        where = f"step {number} of the manifest"
        try:
            step = Step(str(given["method"]), _known(given["parameters"]), _own(given.get("per_column")), None)
            if step.entry.works_on == "records":  # of whatever columns there are, as what it may be
                made.append(_quick(step))
                continue
            columns = [str(name) for name in given.get("columns", ())] or None
            unknown = [name for name in columns or () if name not in table.names]
            if unknown:
                raise FileError(
                    f"{where} masks {listing(unknown)}, which the original does not have: it is the manifest of "
                    "another table; give the right one with --manifest, or --no-manifest"
                )
            for name in columns or ():
                own = table.cells(name).kind
                if kinds.get(name, own) != own:
                    levels = ":low<middle<high, with its own levels in their order" if kinds[name] == "ordinal" else ""
                    raise FileError(
                        f"column {name}: the manifest says that it was masked as {kinds[name]}, and here it is {own}; "
                        f"declare it as it was, as in --kind {name}={kinds[name]}{levels}"
                    )
            step = Step(step.method, step.parameters, step.per_column, columns)
        except FileError:
            raise
        except RankveilError as error:
            raise FileError(
                f"{where} cannot be repeated: {error}; it may be of another version of rankveil (--no-manifest learns "
                "from the two tables instead)"
            ) from None
        except (AttributeError, KeyError, TypeError, ValueError):
            raise FileError(f"{where} is damaged; leave the manifest out with --no-manifest") from None
        made.append(_quick(step))
    return Plan(tuple(made))


def _kinds(manifest: Mapping[str, Any]) -> dict[str, str]:
    """As what the columns were masked, as far as the manifest says so."""
    columns = manifest.get("columns")
    told = [each for each in columns if isinstance(each, Mapping)] if isinstance(columns, list) else []
    return {str(each["name"]): str(each["kind"]) for each in told if "name" in each and "kind" in each}


def _known(parameters: Any) -> dict[str, Any]:
    return {str(name): _plain(value) for name, value in parameters.items()}


def _own(given: Any) -> dict[str, dict[str, Any]]:
    return {str(column): _known(parameters) for column, parameters in (given or {}).items()}


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _quick(step: Step) -> Step:
    """Noise of its own randomness in its quick form, which has the same distribution."""
    quick = step.entry.reproducible_with
    if quick is None:
        return step
    return Step(step.method, {**step.parameters, quick: True}, step.per_column, step.columns)
