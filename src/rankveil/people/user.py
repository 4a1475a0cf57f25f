"""The user: what was done to these data, and what follows for an analysis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import get_method
from rankveil.errors import ParameterError, TableError, refuse_unknown
from rankveil.manifest import MANIFEST_SCHEMA, Manifest
from rankveil.table import Table, label_counts

Array = NDArray[np.float64]

_HARMLESS = ("round",)
"""Steps that change moments by less than the last digit."""


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

    The steps are undone from the last to the first; a step without a known correction is an error that names it. Of
    masked categories the shares are corrected, the missing cells left out.
    """
    content = _content(manifest)
    refuse_unknown(declared)
    table = Table.of(masked, **declared)
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
    covariance = released.copy()
    if complete.shape[0] < len(table):
        notes.append(f"{len(table) - complete.shape[0]} records have missing values and are left out")
    for step in reversed(content["steps"]):
        entry = get_method(step["method"])
        own = [name for name in step["columns"] if name in names]
        if entry.id in _HARMLESS or entry.works_on in ("records", "names") or not own:
            continue
        if entry.correction is None:
            raise ParameterError(f"there is no correction for {entry.id}: the original's moments do not follow from it")
        at = [names.index(name) for name in own]
        with _believed(entry.id):
            given = [{**step["parameters"], **step.get("per_column", {}).get(name, {})} for name in own]
            mean[at], covariance[np.ix_(at, at)] = entry.correction(mean[at], covariance[np.ix_(at, at)], given)
    smallest = float(np.linalg.eigvalsh(covariance)[0]) if len(names) else 0.0
    if smallest < -1e-9 * float(np.trace(covariance)):
        notes.append("the corrected covariance matrix is not positive semidefinite: the sample is small for this noise")
    return Corrected(tuple(names), mean, covariance, released, complete.shape[0], tuple(notes), shares)


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
