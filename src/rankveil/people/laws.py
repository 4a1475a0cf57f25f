"""What a manifest tells a subject of each released column: how her own value became what was released.

A law is plain data, so that the subject's page has the same ones. Its kind is one of

- `equal`: the released cell is her own value, rounded and limited as `own` says; with `hides` it may be missing;
- `noise`: her value with noise of a known scale, then rounded to a `grid` and limited to `low` and `high`;
- `joint`: normal noise drawn together with that of other columns;
- `ranks`: her value changed places with one at a rank from `least` to `most` away;
- `codes`: her category became another with probability matrix[hers][released];
- `silent`: the released value has nothing to do with hers;
- `unknown`: what was released depends on values that she does not have, or nothing is told of the column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Method, get_method
from rankveil.errors import ParameterError, RankveilError
from rankveil.likelihood import Displacement, Exchange, JointNoise, Noise, Unrelated
from rankveil.masking.grid import counted, put
from rankveil.methods.round import decimals_of
from rankveil.table import Table

Array = NDArray[np.float64]
Law = dict[str, Any]

MANY = 5
"""Of more masked columns than this a probability is said to be too high, as it was in trials."""
_SYNTHETIC = "the manifest says that the released records do not correspond to people"


def unknown(why: str) -> Law:
    """A column that says nothing which she could compute."""
    return {"kind": "unknown", "why": why}


class Laws:
    """What a manifest tells of a release: a law for each column, and the share of the people who are in it."""

    def __init__(self, manifest: Mapping[str, Any], table: Table) -> None:
        try:
            self._steps = [_Step(each) for each in manifest["steps"]]
            self._masked = {str(each["name"]): bool(each["masked"]) for each in manifest["columns"]}
            self._grids = {str(each["name"]): float(each.get("grid", 0.0)) for each in manifest["columns"]}
            entered, released = int(manifest["records"]["in"]), int(manifest["records"]["out"])
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ParameterError(
                "the manifest is damaged: steps, columns or records cannot be read; leave it out"
            ) from None
        except RankveilError as error:
            raise _unusable(error) from None
        if released != len(table):
            raise ParameterError(
                f"the manifest is of another release: it tells of {released} records, the table has {len(table)}"
            )
        self.inside = released / entered if entered > released else 1.0
        """The probability that somebody of the original is in the release."""
        self.why_not = _SYNTHETIC if manifest.get("mapping") == "none" else ""
        """Why no record is anybody's, if so."""
        self._table = table

    def law(self, name: str) -> Law:
        """What is told of a column."""
        if name not in self._masked:
            return unknown("the manifest does not tell of it")
        steps = [step for step in self._steps if step.changes(name)]
        if not steps:
            if self._masked[name]:
                return unknown("the manifest does not tell how it was masked")
            return {"kind": "equal", "own": [], "untouched": True, "hides": False}
        try:
            return self._on_grid(name, self._composed(name, steps))
        except RankveilError as error:
            raise _unusable(error) from None
        except (ArithmeticError, LookupError, TypeError, ValueError):
            raise ParameterError(
                f"the manifest is damaged: what it says of column {name} cannot be used; leave it out (--no-manifest)"
            ) from None

    def _on_grid(self, name: str, law: Law) -> Law:
        """What is told of a column, with the grid of what was computed from draws."""
        grid = counted(self._grids[name], self._table.cells(name).temporal) if self._grids[name] > 0 else 0.0
        if grid and law["kind"] == "noise":
            ends = {
                end: None if law[end] is None else float(put(np.array([law[end]]), grid)[0]) for end in ("low", "high")
            }
            return {**law, **ends, "grid": max(law["grid"], grid)}
        if grid and law["kind"] == "joint":  # rounding adds to the variance of the noise
            return {**law, "with": {**law["with"], name: law["with"][name] + grid**2 / 12}}
        return law

    def _composed(self, name: str, steps: Sequence[_Step]) -> Law:
        """Steps of her own value, one that draws at most, then a grid and limits."""
        values = self._table.values(name)
        numeric = not self._table.labels(name)
        untouched = all(step.entry.id == "identity" for step in steps)
        law: Law = {"kind": "equal", "own": [], "untouched": untouched, "hides": False}
        for step in steps:
            method, bound = step.entry.id, step.bound(name)
            drawn = law["kind"] != "equal"
            if method in ("identity", "record_shuffle"):
                continue
            if method == "recode" and bound["rare"] is None and not drawn:
                continue  # her value is looked up among the released bands or groups
            if method == "suppress":
                if drawn:
                    return unknown("cells were suppressed after values were drawn")
                law["hides"] = True
                continue
            if method in ("round", "clip", "top_bottom_code") and numeric:
                if not _limited(law, method, bound, values, step.entry):
                    return unknown(f"{method} depends on all records")
                continue
            if drawn or law["hides"]:
                return unknown(f"{step.entry.title.lower()} after other steps depends on all records")
            law = self._drawn(name, step, law)
            if law["kind"] == "unknown":
                return law
        return law

    def _drawn(self, name: str, step: _Step, law: Law) -> Law:
        """The law of a step that draws, as its method states it, with what the release tells of the original."""
        entry, bound = step.entry, step.bound(name)
        why = f"{entry.title.lower()} depends on all records"
        if entry.intruder is None or (entry.works_on == "column" and bound.get("bounds") == "data"):
            return unknown(why)
        if entry.works_on == "columns":
            return self._joint(name, step, law, why)
        stood_for, labels = self._original(name, step), self._table.labels(name)
        said = entry.intruder(
            stood_for[~np.isnan(stood_for)],
            bound,
            attributes=len(step.columns),
            labels=labels,
            categories=self._table.categories(name) if labels else None,
        )
        if isinstance(said, Unrelated):
            return {"kind": "silent"}
        if isinstance(said, Noise) and not labels:
            clamped = [["limit", _finite(said.lower), _finite(said.upper)]]
            own = [*law["own"], *(clamped if clamped[0][1:] != [None, None] else [])]
            made = {"kind": "noise", "own": own, "law": said.law, "scale": said.scale, "relative": said.relative}
            return {**made, "grid": 0.0, "low": None, "high": None}
        if isinstance(said, Displacement) and (not labels or self._table.categories(name).ordered):
            return {"kind": "ranks", "own": law["own"], "least": said.least, "most": said.most}
        if isinstance(said, Exchange) and labels:
            return {"kind": "codes", "matrix": _by_labels(said, labels).tolist()}
        return unknown(why)

    def _joint(self, name: str, step: _Step, law: Law, why: str) -> Law:
        others = [step.changes_alone(self._steps, each) and not self._table.labels(each) for each in step.columns]
        if not all(others) or law["own"] or any(each not in self._table.names for each in step.columns):
            return unknown(why)
        bounds = [step.bound(each) for each in step.columns]
        values = np.column_stack([self._table.values(each) for each in step.columns])
        if np.isnan(values).any() or step.entry.correction is None:
            return unknown(why)
        mean = values.mean(axis=0)
        released = np.cov(values, rowvar=False, bias=True).reshape(len(bounds), -1)
        _, covariance = step.entry.corrected(mean, released, bounds, attributes=len(bounds))
        spread = values.std(axis=0)
        shrink = np.sqrt(np.maximum(np.diag(covariance), 0.0)) / np.where(spread > 0, spread, 1.0)
        said = step.entry.intruder(  # type: ignore[misc]
            mean + (values - mean) * shrink, bounds, attributes=len(bounds), labels=(), categories=None
        )
        if isinstance(said, Unrelated):
            return {"kind": "silent"}
        if not isinstance(said, JointNoise):
            return unknown(why)
        row = said.covariance[step.columns.index(name)]
        return {"kind": "joint", "own": [], "with": dict(zip(step.columns, row.tolist(), strict=True))}

    def _original(self, name: str, step: _Step) -> Array:
        """Values that stand for the original ones in what a method says of itself: of their spread, of their shares."""
        values, labels = self._table.values(name), self._table.labels(name)
        there = values[~np.isnan(values)]
        if labels or there.size == 0 or step.entry.correction is None:
            return values
        mean, variance = np.array([there.mean()]), np.array([[there.var()]])
        _, before = step.entry.corrected(mean, variance, [step.bound(name)], attributes=len(step.columns))
        shrink = math.sqrt(max(float(before[0, 0]), 0.0) / float(variance[0, 0])) if variance[0, 0] > 0 else 0.0
        made: Array = mean[0] + (values - mean[0]) * shrink
        return made


class _Step:
    """A step of a manifest."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.entry: Method = get_method(str(given["method"]))
        self.columns = [str(name) for name in given["columns"]]
        self._parameters = {str(key): _plain(value) for key, value in given["parameters"].items()}
        self._own = {
            str(name): {str(key): _plain(value) for key, value in each.items()}
            for name, each in (given.get("per_column") or {}).items()
        }

    def changes(self, name: str) -> bool:
        """Whether it works on the cells of a column."""
        return self.entry.works_on in ("column", "columns") and name in self.columns

    def changes_alone(self, steps: Sequence[_Step], name: str) -> bool:
        """Whether no other step works on the cells of a column."""
        return not any(step.changes(name) for step in steps if step is not self)

    def bound(self, name: str) -> dict[str, Any]:
        """Its parameters for a column."""
        return dict(self.entry.bind({**self._parameters, **self._own.get(name, {})}))


def _unusable(error: RankveilError) -> ParameterError:
    return ParameterError(
        f"the manifest cannot be used: {error}; it may be of another version of rankveil; leave it out (--no-manifest)"
    )


def _limited(law: Law, method: str, bound: Mapping[str, Any], values: Array, entry: Method) -> bool:
    """Adds rounding or limits to a law: to her own value, or to what noise made of it."""
    if law["kind"] not in ("equal", "noise"):
        return False
    if method == "round":
        decimals = bound["decimals"]
        if law["kind"] == "noise":
            decimals = decimals_of(values[~np.isnan(values)]) if decimals is None else decimals
            law["grid"] = 10.0**-decimals
            law |= {end: None if law[end] is None else round(law[end], decimals) for end in ("low", "high")}
        elif decimals is not None:  # otherwise as many as the original has, which are hers
            law["own"] = [*law["own"], ["round", decimals]]
        return True
    names = ("bottom", "top") if method == "top_bottom_code" else ("lower", "upper")
    low, high = (bound[name] for name in names)
    if isinstance(low, str) or isinstance(high, str):
        return False
    if method == "top_bottom_code" and not entry.facts(bound)["local"]:
        return False
    if law["kind"] == "noise":
        if method == "clip":  # what it takes from the original are the ends of the release
            low = float(np.nanmin(values)) if low is None else low
            high = float(np.nanmax(values)) if high is None else high
        law["low"], law["high"] = low, high
    else:  # limits that the original has itself leave her value as it is
        law["own"] = [*law["own"], ["limit", low, high]]
    return True


def _by_labels(said: Exchange, labels: Sequence[str]) -> Array:
    """The matrix of an exchange from and to the labels of the release."""
    rows = {label: place for place, label in enumerate(said.sources)}
    columns = {label: place for place, label in enumerate(said.targets)}
    made = np.zeros((len(labels), len(labels)))
    for k, source in enumerate(labels):
        for j, target in enumerate(labels):
            if source in rows and target in columns:
                made[k, j] = said.matrix[rows[source], columns[target]]
    return made


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
