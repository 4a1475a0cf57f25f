"""Attributes before and after, beside each other, and against each other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
_MOST_DATES = 24
_HALVES = 2.0**50
"""Numbers below are told from those half a unit away."""
MISSING = "(missing)"

Written = Callable[[float], str]


def marginals(
    name: str,
    x: ArrayLike,
    y: ArrayLike,
    *,
    order: Sequence[str] = (),
    written: Written | None = None,
    title: str | None = None,
) -> Chart:
    """The distribution of one attribute before and after: shares in common bins, or of each value where they are few.

    Words are counted, missing cells too: in their `order` where they have one, otherwise the most frequent first.
    `written` says how a number is written that stands for a date or a time.

    >>> import numpy as np
    >>> chart = marginals("AGE", np.array([20.0, 20.0, 30.0, 40.0]), np.array([20.0, 30.0, 30.0, 40.0]))
    >>> chart.title
    'AGE: before and after differ by 25.0 % of the records; mean 27.5 before, 30 after'
    >>> marginals("SCHOOL", ["low", "high", None], ["low", "low", None], order=("low", "high")).series[1].y
    (0.6666666666666666, 0.0, 0.3333333333333333)
    """
    before, after = _present(x), _present(y)
    if before.size == 0 and after.size == 0:
        raise ParameterError(f"attribute {name}: it has no value before or after; there is nothing to draw")
    numeric = before.dtype.kind == "f" and after.dtype.kind == "f"
    if numeric and (before.size == 0 or after.size == 0):
        raise ParameterError(f"attribute {name}: it has no value before or after; there is nothing to draw")
    left = [f"{given.size - kept.size} {when}" for given, kept, when in _lost(x, y, before, after)]
    note = [f"{before.size} values before, {after.size} after."]
    if left:
        note.append(f"Missing: {', '.join(left)}.")
    series: list[Line] | list[Bars]
    y_label = "Share of values"
    if not numeric:
        gone = [np.asarray(given, dtype=object).size - kept.size for given, kept in ((x, before), (y, after))]
        series, more, differs = _words(before, after, gone, order)
        y_label = "Share of records"
    elif np.union1d(before, after).size <= _MOST_BARS:
        series, more, differs = _frequencies(before, after, written)
    else:
        series, more = _histograms(before, after) if written is None else _dates(before, after, written)
        differs, y_label = _apart(series[0].y, series[1].y), "Share of values per bin"
    told = written or number
    said = f"; mean {told(mean(before))} before, {told(mean(after))} after" if numeric else ""
    return Chart(
        title=title
        if title is not None
        else _marginal_title(name, before, after, differs, said, lost=_lost_share(x, y)),
        x_label=name,
        y_label=y_label,
        series=series,
        note=" ".join([*note, *more]),
        kind="marginals",
    )


def _marginal_title(name: str, before: Any, after: Any, differs: float, said: str, *, lost: tuple[float, float]) -> str:
    """What the picture shows: of the values that are there, and of cells that are missing on one side only."""
    numeric = before.dtype.kind == "f" and after.dtype.kind == "f"
    same = before.size == after.size and np.array_equal(np.sort(before), np.sort(after))
    more = ""
    if numeric and lost[0] != lost[1]:
        more = f"; missing {100 * lost[0]:.1f} % before, {100 * lost[1]:.1f} % after"
    of = "values" if more else "records"
    if differs == 0 and (same or not numeric):
        return f"{name}: the same distribution before and after{more}"
    if differs == 0:
        return f"{name}: the same shares of every bin before and after{said}{more}"
    share = f"{100 * differs:.1f} %" if differs >= 0.0005 else "less than 0.1 %"
    return f"{name}: before and after differ by {share} of the {of}{said}{more}"


def _lost_share(x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """The share of cells that are missing before and after."""
    sizes = [(np.asarray(each).size, _present(each).size) for each in (x, y)]
    before, after = ((size - kept) / max(size, 1) for size, kept in sizes)
    return before, after


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
    edges, cut = _edges(np.concatenate([before, after]), whole=_whole(before) or _whole(after))
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


def _whole_edges(low: float, high: float, width: float, *, most: int) -> Array:
    """Bins around as many whole numbers each, so that no bin has one more than its neighbours.

    >>> _whole_edges(17.0, 66.0, 7.4, most=40).tolist()
    [16.5, 23.5, 30.5, 37.5, 44.5, 51.5, 58.5, 65.5, 72.5]
    """
    first, span = math.floor(low), math.ceil(high) - math.floor(low) + 1
    most = min(most, span)
    bins = int(np.clip(span / width if width > 0 else most, min(_FEWEST_BINS, most), most))
    wide = max(math.ceil(span / bins), 1)
    return first - 0.5 + wide * np.arange(math.ceil(span / wide) + 1, dtype=np.float64)


def _whole(values: Array) -> bool:
    """Whether these are whole numbers, of a size at which halves can be told from them."""
    return bool(values.size) and bool(np.abs(values).max() < _HALVES) and np.array_equal(values, np.floor(values))


def _edges(values: Array, *, most: int = _MOST_BINS, whole: bool = False) -> tuple[Array, bool]:
    """Bins as wide as Freedman and Diaconis have them, between the outermost values or, if these are far, within."""
    # Halves: the span of the largest numbers would overflow.
    low, inner_low, first, third, inner_high, high = np.quantile(values / 2, [0, _TAIL, 0.25, 0.75, 1 - _TAIL, 1])
    cut = bool(inner_high > inner_low and (high - low) / 3 > inner_high - inner_low)
    if cut:
        low, high = inner_low, inner_high
    width = 2 * (third - first) / np.cbrt(values.size)
    if whole:
        return _whole_edges(2 * low, 2 * high, 2 * width, most=most), cut
    bins = int(np.clip((high - low) / width, _FEWEST_BINS, most)) if width > 0 else most
    return 2 * np.linspace(low, high, bins + 1), cut


def _dates(before: Array, after: Array, written: Written) -> tuple[list[Bars], list[str]]:
    """Bars over bins of dates or times, each labelled by its beginning."""
    edges, cut = _edges(np.concatenate([before, after]), most=_MOST_DATES)
    whole = [written(float(edge)) for edge in np.ceil(edges)[:-1]]
    labels = next(short for size in (10, 16, 99) if len(set(short := [text[:size] for text in whole])) == len(whole))
    series = []
    for when, values in (("before", before), ("after", after)):
        counts = np.histogram(np.clip(values, edges[0], edges[-1]), bins=edges)[0]
        series.append(Bars(when, labels, (counts / values.size).tolist()))
    note = [f"{len(labels)} bins of equal width, each labelled by its beginning."]
    if cut:
        note.append("A few values lie far out: they are counted in the first and the last bin.")
    return series, note


def _frequencies(before: Array, after: Array, written: Written | None) -> tuple[list[Bars], list[str], float]:
    """A bar for each number."""
    counts = [Counter(values.tolist()) for values in (before, after)]
    ordered = sorted(set(counts[0]) | set(counts[1]))
    shares = [[each[value] / sum(each.values()) for value in ordered] for each in counts]
    labels = [f"{value:.10g}" if written is None else written(value) for value in ordered]
    return _both(labels, shares), [f"{len(labels)} different values."], _apart(*shares)


def _words(before: Any, after: Any, gone: Sequence[int], order: Sequence[str]) -> tuple[list[Bars], list[str], float]:
    """A bar for each of the most frequent words, the others together, and the missing cells."""
    counts = [Counter(values.tolist()) for values in (before, after)]
    found = set(counts[0]) | set(counts[1])
    # recoding makes words that are not there before, and they are what a person wants to see
    by_count = sorted(found, key=lambda word: (-max(each[word] for each in counts), -counts[0][word], word))
    labels, rest = by_count, list[str]()
    if len(by_count) > _MOST_BARS:
        labels, rest = by_count[: _MOST_BARS - 1], by_count[_MOST_BARS - 1 :]
    if order:
        place = {word: number for number, word in enumerate(order)}
        labels = sorted(labels, key=lambda word: (place.get(word, len(place)), word))
    sizes = [max(sum(each.values()) + lost, 1) for each, lost in zip(counts, gone, strict=True)]
    shares = [[each[word] / size for word in labels] for each, size in zip(counts, sizes, strict=True)]
    differs = _apart(*([each[word] / size for word in by_count] for each, size in zip(counts, sizes, strict=True)))
    note = [f"{len(by_count)} different values{f', the {len(rest)} rarest together' if rest else ''}."]
    if rest:
        labels = [*labels, _new(f"{len(rest)} others", labels)]
        for share, each, size in zip(shares, counts, sizes, strict=True):
            share.append(sum(each[word] for word in rest) / size)
    if any(gone):
        labels = [*labels, _new(MISSING, labels)]
        for share, lost, size in zip(shares, gone, sizes, strict=True):
            share.append(lost / size)
        differs += abs(gone[0] / sizes[0] - gone[1] / sizes[1]) / 2
    return _both(labels, shares), note, differs


def _new(label: str, labels: Sequence[str]) -> str:
    """A label that is not one of the words."""
    return label if label not in labels else _new(f"{label}*", labels)


def _both(labels: Sequence[str], shares: Sequence[Sequence[float]]) -> list[Bars]:
    return [Bars(when, labels, share) for when, share in zip(("before", "after"), shares, strict=True)]


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
    how = "Largest" if heat.name.startswith("change") else "Strongest"
    return f"{how} {heat.name}: {heat.rows[row]} and {heat.columns[column]}, {number(table[row, column])}"


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
