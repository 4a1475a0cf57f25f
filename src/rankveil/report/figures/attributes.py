"""Attributes before and after, beside each other, and against each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankveil.errors import ParameterError
from rankveil.moments import mean
from rankveil.report.chart import Array, Bars, Chart, Heat, Line
from rankveil.report.look import number

_MOST_BARS = 30
_FEWEST_BINS, _MOST_BINS = 8, 40
_TAIL = 0.005  # the share of values beyond each end of the bins when a few lie far out


def marginals(name: str, x: ArrayLike, y: ArrayLike, *, title: str | None = None) -> Chart:
    """The distribution of one attribute before and after: shares in common bins, or of each value where they are few.

    >>> import numpy as np
    >>> chart = marginals("AGE", np.array([20.0, 20.0, 30.0, 40.0]), np.array([20.0, 30.0, 30.0, 40.0]))
    >>> chart.title
    'AGE: before and after differ by 25.0 % of the records; mean 27.5 before, 30 after'
    """
    before, after = _present(x), _present(y)
    if before.size == 0 or after.size == 0:
        raise ParameterError(f"attribute {name}: it has no value before or after; there is nothing to draw")
    left = [f"{given.size - kept.size} {when}" for given, kept, when in _lost(x, y, before, after)]
    note = [f"{before.size} values before, {after.size} after."]
    if left:
        note.append(f"Missing: {', '.join(left)}.")
    numeric = before.dtype.kind == "f" and after.dtype.kind == "f"
    series: list[Line] | list[Bars]
    if numeric and np.union1d(before, after).size > _MOST_BARS:
        series, more = _histograms(before, after)
        differs, y_label = _apart(series[0].y, series[1].y), "Share of values per bin"
    else:
        series, more, differs = _frequencies(before, after)
        y_label = "Share of values"
    said = f"; mean {number(mean(before))} before, {number(mean(after))} after" if numeric else ""
    alike = f"{name}: the same distribution before and after"
    found = f"{name}: before and after differ by {100 * differs:.1f} % of the records{said}"
    return Chart(
        title=title if title is not None else alike if differs == 0 else found,
        x_label=name,
        y_label=y_label,
        series=series,
        note=" ".join([*note, *more]),
        kind="marginals",
    )


def _present(values: ArrayLike) -> Any:
    """The values that are there: floats, or texts for anything but numbers."""
    given = np.asarray(values)
    if given.dtype.kind in "biuf":
        numbers = given.astype(float).ravel()
        return numbers[np.isfinite(numbers)]
    # A missing value is None or, as the only one, differs from itself.
    return np.array([str(value) for value in given.ravel() if value is not None and value == value], dtype=str)


def _lost(x: ArrayLike, y: ArrayLike, before: Any, after: Any) -> list[tuple[Any, Any, str]]:
    pairs = ((np.asarray(x), before, "before"), (np.asarray(y), after, "after"))
    return [(given, kept, when) for given, kept, when in pairs if given.size != kept.size]


def _apart(one: Sequence[float], other: Sequence[float]) -> float:
    """Half the sum of differences: the share of records that would have to go elsewhere."""
    return float(np.abs(np.subtract(one, other)).sum()) / 2


def _histograms(before: Array, after: Array) -> tuple[list[Line], list[str]]:
    edges, cut = _edges(np.concatenate([before, after]))
    series = []
    for when, values in (("before", before), ("after", after)):
        counts = np.histogram(np.clip(values, edges[0], edges[-1]), bins=edges)[0]
        # From zero up at the first edge and down to zero at the last.
        shares = [0.0, *(counts / values.size).tolist(), 0.0]
        series.append(Line(when, x=[edges[0], *edges.tolist()], y=shares, step=True))
    note = [f"{edges.size - 1} common bins of width {number(float(edges[1] - edges[0]))}."]
    if cut:
        note.append("A few values lie far out: they are counted in the first and the last bin.")
    return series, note


def _edges(values: Array) -> tuple[Array, bool]:
    """Bins as wide as Freedman and Diaconis have them, between the outermost values or, if these are far, within."""
    # Halves: the span of the largest numbers would overflow.
    low, inner_low, first, third, inner_high, high = np.quantile(values / 2, [0, _TAIL, 0.25, 0.75, 1 - _TAIL, 1])
    cut = bool(inner_high > inner_low and (high - low) / 3 > inner_high - inner_low)
    if cut:
        low, high = inner_low, inner_high
    width = 2 * (third - first) / np.cbrt(values.size)
    bins = int(np.clip((high - low) / width, _FEWEST_BINS, _MOST_BINS)) if width > 0 else _MOST_BINS
    return 2 * np.linspace(low, high, bins + 1), cut


def _frequencies(before: Any, after: Any) -> tuple[list[Bars], list[str], float]:
    counts = [Counter(values.tolist()) for values in (before, after)]
    found = set(counts[0]) | set(counts[1])
    if before.dtype.kind == after.dtype.kind == "f":
        ordered = sorted(found)
    else:
        ordered = sorted(found, key=lambda value: (-counts[0][value], -counts[1][value], str(value)))
    shares = [[each[value] / sum(each.values()) for value in ordered] for each in counts]
    differs = _apart(*shares)
    labels = [f"{value:.10g}" if isinstance(value, float) else str(value) for value in ordered]
    note = [f"{len(labels)} different values."]
    if len(labels) > _MOST_BARS:
        rest = len(labels) - _MOST_BARS + 1
        labels = [*labels[: _MOST_BARS - 1], f"{rest} others"]
        shares = [[*share[: _MOST_BARS - 1], sum(share[_MOST_BARS - 1 :])] for share in shares]
        note = [f"{rest + _MOST_BARS - 1} different values, the {rest} rarest before together."]
    return [Bars(when, labels, share) for when, share in zip(("before", "after"), shares, strict=True)], note, differs


def matrix_heat(
    labels: Sequence[str],
    values: ArrayLike,
    *,
    what: str = "correlation",
    columns: Sequence[str] | None = None,
    signed: bool | None = None,
    most: float | None = None,
    title: str | None = None,
    note: str = "",
) -> Chart:
    """A matrix as coloured cells: correlations, their differences, or how measures agree.

    `columns` names the columns where they are not the rows; `most` fixes the darkest colour, so that two matrices can
    be compared; the matrix is `signed` when it has a negative value, or when that is said.

    >>> matrix_heat(["A", "B"], [[1.0, -0.8], [-0.8, 1.0]]).title
    'Strongest correlation: A and B, -0.8'
    """
    table = np.atleast_2d(np.asarray(values, dtype=float))
    below = bool((table < 0).any()) if signed is None else signed
    across = labels if columns is None else columns
    heat = Heat(what, labels, across, table.tolist(), signed=below, most=most)
    said = [f"{len(heat.rows)} x {len(heat.columns)} cells."]
    if below:
        said.append("Blue above zero, orange below; the darker, the farther from it.")
    if np.isnan(table).any():
        said.append("A dash: not known.")
    return Chart(
        title=_heat_title(heat, table, square=columns is None) if title is None else title,
        x_label="",
        y_label="",
        series=[heat],
        note=" ".join([*said, note]).strip(),
        kind="matrix_heat",
    )


def _heat_title(heat: Heat, table: Array, *, square: bool) -> str:
    sizes = np.where(np.isfinite(table), np.abs(table), -1.0)
    if square and len(heat.rows) > 1:
        np.fill_diagonal(sizes, -1.0)
    row, column = divmod(int(np.argmax(sizes)), len(heat.columns))
    if sizes[row, column] < 0:
        return f"No {heat.name} is known"
    if sizes[row, column] == 0:
        return f"Every {heat.name} is 0"
    return f"Strongest {heat.name}: {heat.rows[row]} and {heat.columns[column]}, {number(table[row, column])}"


def loss_per_attribute(losses: Mapping[str, Mapping[str, float]], *, title: str | None = None) -> Chart:
    """What each attribute lost, a bar for each measure; sorted by the first measure, the largest loss first.

    `losses` holds for each measure its value by attribute.

    >>> loss_per_attribute({"il1s": {"AGE": 0.1, "INCOME": 0.4}}).title
    'INCOME has the largest il1s, 0.4; AGE the smallest, 0.1'
    """
    if not losses or not any(losses.values()):
        raise ParameterError("loss per attribute: there is no value to draw; give at least one measure and attribute")
    first, *_ = losses
    attributes = list(dict.fromkeys(name for given in losses.values() for name in given))
    known = {name: float(value) for name, value in losses[first].items() if value is not None and np.isfinite(value)}
    ordered = sorted(attributes, key=lambda name: -known.get(name, -np.inf))
    drawn = ordered[:_MOST_BARS]
    note = [f"{len(attributes)} {'attribute' if len(attributes) == 1 else 'attributes'}, sorted by {first}."]
    if len(drawn) < len(ordered):
        note.append(f"The {len(drawn)} with the largest {first} are drawn.")
    gaps = sum(_loss(given, name) != _loss(given, name) for given in losses.values() for name in drawn)
    if gaps:
        note.append(f"{gaps} {'value is' if gaps == 1 else 'values are'} not known: there is no bar.")
    return Chart(
        title=_loss_title(first, known, ordered) if title is None else title,
        x_label="Attribute",
        y_label="Loss" if len(losses) > 1 else first,
        series=[Bars(measure, drawn, [_loss(given, name) for name in drawn]) for measure, given in losses.items()],
        note=" ".join(note),
        kind="loss_per_attribute",
    )


def _loss(given: Mapping[str, float], name: str) -> float:
    value = given.get(name)
    return float("nan") if value is None or not np.isfinite(value) else float(value)


def _loss_title(measure: str, known: Mapping[str, float], ordered: Sequence[str]) -> str:
    there = [name for name in ordered if name in known]
    if not there:
        return f"{measure} is known for no attribute"
    most, least = there[0], there[-1]
    if len(there) == 1:
        return f"{most}: {measure} {number(known[most])}"
    if known[most] == known[least]:
        return f"All {len(there)} attributes have the same {measure}, {number(known[most])}"
    return f"{most} has the largest {measure}, {number(known[most])}; {least} the smallest, {number(known[least])}"
