"""Measures against strengths, and methods against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rankveil.errors import ParameterError, listing
from rankveil.report.chart import Array, Chart, Line, Points
from rankveil.report.look import number

Better = Literal["higher", "lower"]
Curves = Mapping[str, tuple[Sequence[float] | Array, Sequence[float] | Array]]


def risk_utility_map(
    points: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    risk: str,
    utility: str,
    risk_better: Better,
    utility_better: Better,
    title: str | None = None,
) -> Chart:
    """Every method at every strength: its risk across, its utility upwards, the points that no other beats filled.

    Each point is a mapping: `risk`, `utility`, whether it is on the `front`, and where they are known the `label` of
    its strength and the ends `low` and `high` of the interval of its utility.

    >>> points = {
    ...     "mdav": [{"risk": 0.2, "utility": 0.9, "front": True}, {"risk": 0.1, "utility": 0.6, "front": True}],
    ...     "noise": [{"risk": 0.3, "utility": 0.5, "front": False}],
    ... }
    >>> risk_utility_map(points, risk="linkage", utility="um", risk_better="lower", utility_better="higher").title
    'Only mdav is on the front: every point of noise is beaten'
    """
    kept = {name: [point for point in given if _known(point)] for name, given in points.items()}
    without = sum(map(len, points.values())) - sum(map(len, kept.values()))
    if not any(kept.values()):
        raise ParameterError("risk-utility map: no point has both a risk and a utility; give at least one")
    front = sorted((point["risk"], point["utility"]) for given in kept.values() for point in given if point["front"])
    series: list[Line | Points] = [_method(name, given) for name, given in kept.items() if given]
    if len(front) > 1:
        series.append(Line("front", [at for at, _ in front], [height for _, height in front], guide=True))
    return Chart(
        title=_map_title(kept) if title is None else title,
        x_label=f"{risk} ({risk_better} is better)",
        y_label=f"{utility} ({utility_better} is better)",
        series=series,
        note=_map_note(kept, without=without),
        kind="risk_utility_map",
        y_from_zero=False,
    )


def _known(point: Mapping[str, Any]) -> bool:
    return all(point[what] is not None and np.isfinite(point[what]) for what in ("risk", "utility"))


def _method(name: str, given: Sequence[Mapping[str, Any]]) -> Points:
    spread = any(point.get("low") is not None for point in given)
    return Points(
        name,
        x=[point["risk"] for point in given],
        y=[point["utility"] for point in given],
        labels=[point.get("label", "") for point in given] if any(point.get("label") for point in given) else (),
        marked=[point["front"] for point in given],
        low=[_end(point, "low") for point in given] if spread else (),
        high=[_end(point, "high") for point in given] if spread else (),
    )


def _end(point: Mapping[str, Any], which: str) -> float:
    return float("nan") if point.get(which) is None else float(point[which])


def _map_title(kept: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    counts = {name: sum(bool(point["front"]) for point in given) for name, given in kept.items() if given}
    ahead = sorted((name for name in counts if counts[name]), key=lambda name: -counts[name])
    behind = [name for name in counts if not counts[name]]
    beaten = _together(behind)
    if not ahead:
        return f"Risk and utility of {_together(behind)}"
    if len(counts) == 1:
        return f"{ahead[0]}: {counts[ahead[0]]} of {len(kept[ahead[0]])} points are on the front"
    if len(ahead) == 1:
        return f"Only {ahead[0]} is on the front: every point of {beaten} is beaten"
    shared = _together([f"{name} ({counts[name]})" for name in ahead])
    return f"On the front: {shared}" + (f"; every point of {beaten} is beaten" if behind else "")


def _map_note(kept: Mapping[str, Sequence[Mapping[str, Any]]], *, without: int) -> str:
    everything = [point for given in kept.values() for point in given]
    parts = [
        f"{_counted(len(everything), 'point')} of {_counted(len(kept), 'method')}.",
        "Large and filled, joined by the dotted line: no other point is better in one and as good in the other.",
    ]
    if any(point.get("low") is not None for point in everything):
        parts.append("Upright bars: intervals of the mean.")
    if without:
        parts.append(f"{without} left out: risk or utility is not known there.")
    return " ".join(parts)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _together(names: Sequence[str]) -> str:
    """Names in a title: A, B and C; of many only the first."""
    if not 1 < len(names) <= 4:
        return listing(names, most=3)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def strength_curves(
    curves: Curves,
    *,
    strength: str,
    measure: str,
    log_x: bool = False,
    title: str | None = None,
    note: str = "",
) -> Chart:
    """A measure against the strength of a method, one curve per method or per number of attributes.

    Each curve is a pair of strengths and values. Source: figures 2 to 5 of general-metrics, figure 1 of equal-risk.

    >>> curves = {"2 attributes": ([2, 5, 10], [0.1, 0.3, 0.4]), "4 attributes": ([2, 5, 10], [0.3, 0.6, 0.8])}
    >>> strength_curves(curves, strength="k", measure="cm1").title
    'cm1 rises with k in every curve, between 0.1 and 0.8'
    """
    ordered = _ordered(curves, what="strength curves")
    strengths = np.unique(np.concatenate([x for x, _ in ordered.values()]))
    said = [f"{strength} from {number(strengths[0])} to {number(strengths[-1])}, {strengths.size} values."]
    gaps = sum(int(np.isnan(y).sum()) for _, y in ordered.values())
    if gaps:
        said.append(f"{gaps} {'value is' if gaps == 1 else 'values are'} not known: there is a gap.")
    return Chart(
        title=_strength_title(ordered, strength=strength, measure=measure) if title is None else title,
        x_label=f"{strength} (logarithmic)" if log_x else strength,
        y_label=measure,
        series=[Line(name, x.tolist(), y.tolist()) for name, (x, y) in ordered.items()],
        note=" ".join([*said, note]).strip(),
        kind="strength_curves",
        log_x=log_x,
        y_from_zero=False,
    )


def _ordered(curves: Curves, *, what: str) -> dict[str, tuple[Array, Array]]:
    """The curves by rising x, those values that are not finite as gaps."""
    made = {}
    for name, (xs, ys) in curves.items():
        x, y = np.asarray(xs, dtype=float), np.asarray(ys, dtype=float)
        if x.shape != y.shape or x.ndim != 1 or not np.isfinite(x).all():
            raise ParameterError(f"{what}: {name} needs a value for each position, and every position a number")
        order = np.argsort(x, kind="stable")
        made[name] = (x[order], np.where(np.isfinite(y), y, np.nan)[order])
    if not any(np.isfinite(y).any() for _, y in made.values()):
        raise ParameterError(f"{what}: there is no value to draw; give at least one")
    return made


def _strength_title(curves: Mapping[str, tuple[Array, Array]], *, strength: str, measure: str) -> str:
    places = [(float(y), float(x), name) for name, (xs, ys) in curves.items() for x, y in zip(xs, ys, strict=True)]
    places = [place for place in places if not np.isnan(place[0])]
    (low, low_at, lowest), (high, high_at, highest) = min(places), max(places)
    where = " in every curve" if len(curves) > 1 else ""
    steps = [np.diff(y[~np.isnan(y)]) for _, y in curves.values()]
    if low == high:
        return f"{measure} is {number(low)} whatever {strength} is"
    if all((step >= 0).all() and step.any() for step in steps):
        return f"{measure} rises with {strength}{where}, between {number(low)} and {number(high)}"
    if all((step <= 0).all() and step.any() for step in steps):
        return f"{measure} falls as {strength} grows{where}, between {number(high)} and {number(low)}"
    up = f"{highest}, {strength} = {number(high_at)}" if len(curves) > 1 else f"{strength} = {number(high_at)}"
    down = f"{lowest}, {strength} = {number(low_at)}" if len(curves) > 1 else f"{strength} = {number(low_at)}"
    return f"{measure} is highest, {number(high)}, at {up}, and lowest, {number(low)}, at {down}"


def dominance_curves(curves: Curves, *, title: str | None = None) -> Chart:
    """Power means J(alpha) of the rank changes of several releases or attributes against alpha.

    Each curve is a pair of alphas and values. A release whose curve is the highest for every alpha up to 1 protects
    better, however much one minds the worst case (dominance). Source: section 5 of general-metrics, after Ruiz 2018.

    >>> dominance_curves({"A": ([-1, 1, 2], [0, 2, 3]), "B": ([-1, 1, 2], [1, 3, 4])}).title
    'B protects better than the others for every alpha up to 1'
    """
    ordered = _ordered(curves, what="dominance curves")
    largest = max(float(np.nanmax(y)) for _, y in ordered.values() if np.isfinite(y).any())
    series = [Line(name, x.tolist(), y.tolist()) for name, (x, y) in ordered.items()]
    if any(x[0] < 1 < x[-1] for x, _ in ordered.values()):
        series.append(Line("alpha = 1: the mean", [1, 1], [0, largest], guide=True))
    note = [
        "To the left the smallest rank changes weigh most, and a higher curve is safer; to the right the largest, "
        "and a higher curve costs more."
    ]
    if any((y[x <= 0] == 0).any() for x, y in ordered.values()):
        note.append("A curve is 0 for alpha up to 0 when a value keeps its rank.")
    return Chart(
        title=_dominance_title(ordered) if title is None else title,
        x_label="alpha",
        y_label="Power mean of the rank changes",
        series=series,
        note=" ".join(note),
        kind="dominance_curves",
    )


def _dominance_title(curves: Mapping[str, tuple[Array, Array]]) -> str:
    if len(curves) == 1:
        [(name, (x, y))] = curves.items()
        ends = [f"{number(y[place])} at alpha = {number(x[place])}" for place in (0, -1)]
        return f"{name}: the power mean goes from {ends[0]} to {ends[1]}"
    shared = set.intersection(*(set(x[(x <= 1) & ~np.isnan(y)].tolist()) for x, y in curves.values()))
    table = np.array([y[np.isin(x, sorted(shared))] for x, y in curves.values()])
    # Sums of powers differ in the last digits; that is no dominance.
    highest = np.isclose(table, table.max(axis=0, initial=0.0), rtol=1e-9, atol=0.0)
    first = highest.all(axis=1)
    if shared and first.all():
        return f"All {len(curves)} protect alike for every alpha up to 1"
    if shared and first.any():
        best = _together([name for name, wins in zip(curves, first, strict=True) if wins])
        return f"{best} {'protects' if first.sum() == 1 else 'protect'} better than the others for every alpha up to 1"
    return "Which protects best depends on alpha: no curve is the highest for every alpha up to 1"
