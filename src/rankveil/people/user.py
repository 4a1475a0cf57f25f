"""The user: what was done to these data, and what follows for an analysis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import get_method
from rankveil.deciding import decided_table
from rankveil.errors import ParameterError, TableError, listing, refuse_unknown
from rankveil.manifest import MANIFEST_SCHEMA, Manifest
from rankveil.methods.round import decimals_of
from rankveil.table import Table, label_counts

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Corrected:
    """Means, covariances and shares of categories of the original, as far as they follow from the manifest."""

    names: tuple[str, ...]
    mean: Array
    covariance: Array
    released_covariance: Array
    records: int
    notes: tuple[str, ...]
    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The share of every category of a masked column, by column and label."""

    @property
    def correlation(self) -> Array:
        """The corrected correlations; 0 where a variance is 0."""
        spread = np.sqrt(np.diag(self.covariance))
        scale = np.outer(spread, spread)
        safe = np.where(scale > 0, scale, 1.0)
        return np.where(scale > 0, np.clip(self.covariance / safe, -1.0, 1.0), 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "columns": list(self.names),
            "records": self.records,
            "mean": self.mean.tolist(),
            "covariance": self.covariance.tolist(),
            "correlation": self.correlation.tolist(),
            "released_covariance": self.released_covariance.tolist(),
            "shares": {name: dict(shares) for name, shares in self.shares.items()},
            "notes": list(self.notes),
        }


def correct(masked: Any, manifest: Manifest | Mapping[str, Any] | str, **declared: Any) -> Corrected:
    """Means and covariances of the released columns, corrected for the noise that the manifest describes.

    The steps are undone from the last to the first; a step without a known correction is an error that names it. What
    was rounded to multiples of h after noise has a variance larger by h^2 / 12 (Sheppard), which is taken off once, for
    the coarsest of units that follow each other; a variance that comes out below 0 is 0, and a note names its column.
    Of masked categories the shares are corrected, the missing cells left out.
    """
    content = _content(manifest)
    refuse_unknown(declared)
    table = decided_table(Table.of(masked, **declared), concluded=False, manifest=content)
    kinds = {column["name"]: column["kind"] for column in content["columns"] if column["masked"]}
    names = [name for name, kind in kinds.items() if kind == "numeric"]
    labelled = [name for name in kinds if name not in names]
    lost = [name for name in (*names, *labelled) if name not in table.names]
    if lost or not (names or labelled):
        raise TableError(f"the table has no column {lost[0]}" if lost else "the manifest names no masked column")
    notes: list[str] = []
    shares = {name: _shares(table, name, content["steps"], notes, alone=not names) for name in labelled}
    shares = {name: found for name, found in shares.items() if found}
    if not names:
        nothing = np.empty((0, 0))
        return Corrected((), np.empty(0), nothing, nothing, len(table), tuple(notes), shares)
    values = np.column_stack([table.values(name) for name in table.usable(names)])
    complete = values[~np.isnan(values).any(axis=1)]
    if complete.shape[0] == 0:
        raise TableError("no record is complete in the masked columns")
    with np.errstate(over="ignore", invalid="ignore"):
        mean = complete.mean(axis=0)
        released = np.atleast_2d(np.cov(complete, rowvar=False, bias=True))
        squares = np.diag(released) + mean**2
    if not np.all(np.isfinite(squares)):
        beyond = names[int(np.argmin(np.isfinite(squares)))]
        raise TableError(f"column {beyond}: its variance is too large for a number; divide its values first")
    if complete.shape[0] < len(table):
        notes.append(f"{len(table) - complete.shape[0]} records have missing values and are left out")
    mean, covariance = _undone(content, names, mean, released, complete, notes)
    smallest = float(np.linalg.eigvalsh(covariance)[0]) if len(names) else 0.0
    if smallest < -1e-9 * float(np.trace(covariance)):
        notes.append("the corrected covariance matrix is not positive semidefinite: the sample is small for this noise")
    return Corrected(tuple(names), mean, covariance, released, complete.shape[0], tuple(notes), shares)


def _undone(
    content: Mapping[str, Any], names: Sequence[str], mean: Array, released: Array, values: Array, notes: list[str]
) -> tuple[Array, Array]:
    """The moments before the first step, from those of the release."""
    mean, covariance = mean.copy(), released.copy()
    grid = np.array([_grid(content["columns"], name) for name in names])
    unit = np.zeros(len(names))  # the coarsest to which values were rounded since the last noise
    worked_on = [set(step["columns"]) for step in content["steps"] if _on_values(step)]
    for step in reversed(content["steps"]):
        own = [name for name in step["columns"] if name in names]
        if not _on_values(step) or not own:
            continue
        entry, at = get_method(step["method"]), [names.index(name) for name in own]
        worked_on.pop()
        with _believed(entry.id):
            given = [{**step["parameters"], **step.get("per_column", {}).get(name, {})} for name in own]
        if entry.id == "round":
            for j, each in zip(at, given, strict=True):
                finer = any(names[j] in columns for columns in worked_on)
                with _believed(entry.id):
                    unit[j] = max(unit[j], _unit(each["decimals"], values[:, j], grid[j], finer=finer))
            continue
        if entry.correction is None:
            raise ParameterError(f"there is no correction for {entry.id}: the original's moments do not follow from it")
        undone = partial(entry.corrected, given=given, attributes=len(step["columns"]))
        if entry.random:
            with _believed(entry.id):
                noise = np.diag(covariance)[at] - np.diag(undone(mean[at], covariance[np.ix_(at, at)])[1])
            rounded = np.where(noise > 0, grid[at], 0.0)  # without noise the values stay as they were
            unit[at] = np.maximum(unit[at], rounded)
        _off(covariance, unit, at)
        noisy = np.diag(covariance).copy()
        with _believed(entry.id):
            mean[at], covariance[np.ix_(at, at)] = undone(mean[at], covariance[np.ix_(at, at)])
        _note_coarse(names, at, unit, noisy - np.diag(covariance), "of the noise", notes)
        unit[at] = 0.0
        _cut(names, covariance, notes)
    everywhere = list(range(len(names)))
    _note_coarse(names, everywhere, unit, np.diag(covariance), "of the values", notes)
    _off(covariance, unit, everywhere)
    _cut(names, covariance, notes)
    return mean, covariance


def _on_values(step: Mapping[str, Any]) -> bool:
    """Whether a step may have changed values."""
    return step["method"] != "identity" and get_method(step["method"]).works_on not in ("records", "names")


def _grid(columns: Sequence[Mapping[str, Any]], name: str) -> float:
    """The unit of which the noise's step left whole multiples in a column, as the manifest says; 0 for none."""
    told = next((column.get("grid") for column in columns if column["name"] == name), None)
    if told is None:
        return 0.0
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 <= told < np.inf:
        raise ParameterError(f"the manifest is damaged: the grid of column {name} is no number of 0 or more")
    return float(told)


def _unit(decimals: int | None, values: Array, grid: float, *, finer: bool) -> float:
    """The unit of a rounding; with the original's own decimals it changes nothing where no step was before it."""
    if decimals is not None:
        return float(10.0**-decimals)
    return max(grid, 10.0 ** -decimals_of(values)) if finer else 0.0


def _off(covariance: Array, unit: Array, at: Sequence[int]) -> None:
    """Take off what rounding to a unit adds to the variances."""
    covariance[at, at] -= unit[at] ** 2 / 12


def _cut(names: Sequence[str], covariance: Array, notes: list[str]) -> None:
    """No variance below 0; the columns that would have one are named."""
    below = [j for j in range(len(names)) if covariance[j, j] < 0]
    covariance[below, below] = 0.0
    if below:
        which = listing([names[j] for j in below])
        notes.append(
            f"the corrected variance came out below 0 and is given as 0: {which}; the noise is as large as that"
        )


def _note_coarse(
    names: Sequence[str], at: Sequence[int], unit: Array, variance: Array, what: str, notes: list[str]
) -> None:
    """Say where a unit is more than twice the spread that it rounds: then h^2 / 12 is not what it adds."""
    coarse = [names[j] for j in at if unit[j] > 0 and 4 * variance[j] < unit[j] ** 2]
    if coarse:
        notes.append(
            f"rounded to a unit of more than twice the standard deviation {what}, so that what it adds is not known "
            f"and the corrected variance is rough: {listing(coarse)}"
        )


def _shares(
    table: Table, name: str, steps: Sequence[Mapping[str, Any]], notes: list[str], *, alone: bool
) -> dict[str, float]:
    """The corrected shares of a column's categories; nothing and a note where they do not follow.

    Where categories are all that was masked, that is an error.
    """
    labels, counts = label_counts(table.cells(name))
    shares = {label: float(count / counts.sum()) for label, count in sorted(zip(labels, counts, strict=True))}
    try:
        for step in reversed(steps):
            entry = get_method(step["method"])
            if name not in step["columns"] or entry.works_on in ("records", "names") or entry.marginals == "kept":
                continue
            if entry.share_correction is None:
                raise ParameterError(f"there is no correction for {entry.id}: the original's shares do not follow")
            with _believed(entry.id):
                given = {**step["parameters"], **step.get("per_column", {}).get(name, {})}
                shares = entry.share_correction(shares, given, step["counts"][name])
    except ParameterError as why:
        if alone:
            raise ParameterError(f"column {name}: {why}") from None
        notes.append(f"column {name}: {why}")
        return {}
    if min(shares.values(), default=0.0) < 0:
        notes.append(f"column {name}: some corrected shares are below 0: there are few records for this masking")
    return shares


def _content(manifest: Manifest | Mapping[str, Any] | str) -> Mapping[str, Any]:
    if isinstance(manifest, str):
        manifest = Manifest.from_json(manifest)
    content = manifest.content if isinstance(manifest, Manifest) else manifest
    if content.get("schema") != MANIFEST_SCHEMA:
        raise ParameterError(f"this is not a manifest: its schema is not {MANIFEST_SCHEMA}")
    if not all(isinstance(content.get(part), list) for part in ("columns", "steps")):
        raise ParameterError("the manifest is damaged: it does not list its columns and steps")
    if not all(_has(each, name=str, kind=str, masked=bool) for each in content["columns"]):
        raise ParameterError("the manifest is damaged: it does not say what its columns are")
    if not all(_has(each, method=str, columns=list, parameters=dict) for each in content["steps"]):
        raise ParameterError("the manifest is damaged: it does not say what its steps were")
    return content


def _has(given: Any, **wanted: type) -> bool:
    """Whether plain data are a table with these entries, each of its type."""
    return isinstance(given, Mapping) and all(isinstance(given.get(name), kind) for name, kind in wanted.items())


@contextmanager
def _believed(method: str) -> Iterator[None]:
    """What a manifest says of a step is used as it is; what cannot be used is damage."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise ParameterError(f"the manifest is damaged: the parameters of {method} cannot be used") from None
