"""How far records moved, and how near an intruder comes to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import ParameterError
from rankveil.report.chart import Array, Bars, Chart, Line
from rankveil.report.look import number

_MOST_RECORDS = 2000
_DRAWN_POINTS = 1001
_MOST_BARS = 30
_BINS = 40
_LEVEL_BINS = 20
_REACHES = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Where the axis of a public curve may end, in per cent: it must not end at somebody's own rank change."""

PUBLIC = 10
"""The fewest records that a point or a bar of a public page stands for."""


def permutation_level(levels: Mapping[str, Array], *, n: int, title: str | None = None, public: bool = False) -> Chart:
    """Per attribute the rank changes |rank(x_i) - rank(y_i)| of its records, sorted.

    Source: figures 1 to 3 of masking-as-permutation. The default title names the attributes
    that moved most and least, their mean as a percentage of n - 1, n the records that have the attribute.
    A `public` one tells no single record's rank change: its curves go through the ends of bins.

    >>> import numpy as np
    >>> permutation_level({"A": np.array([2.0, 0.0, 2.0]), "B": np.zeros(3)}, n=3).title
    'A moved most: mean rank change 66.7 % of n - 1; B least: 0.0 %'
    """
    if not levels:
        raise ParameterError("permutation level: there is no attribute to draw; give at least one")
    curves = {name: _distances(values, what=f"attribute {name}") for name, values in levels.items()}
    if public:
        return _public_level(curves, n=n, title=title)
    series = []
    for name, curve in curves.items():
        drawn = _positions(curve.size)
        series.append(Line(name, x=(drawn + 1).tolist(), y=curve[drawn].tolist()))
    return Chart(
        title=_level_title(curves) if title is None else title,
        x_label="Records, sorted by rank change",
        y_label="Rank change |rank(x) - rank(y)|",
        series=series,
        note=_level_note(curves, n=n),
        kind="permutation_level",
    )


def _public_level(curves: Mapping[str, Array], *, n: int, title: str | None) -> Chart:
    told = f"A curve goes from bin to bin and ends before the last one; every bin holds at least {PUBLIC} records."
    return Chart(
        title=_level_title(curves) if title is None else title,
        x_label="Share of the records, sorted by rank change (%)",
        y_label="Rank change at most, % of n - 1",
        series=[_through_bins(name, curve) for name, curve in curves.items()],
        note=f"{_level_sizes(curves, n=n)} {told}",
        kind="permutation_level",
    )


def _through_bins(name: str, curve: Array) -> Line:
    """How many records moved by at most so much, at the ends of bins; where the last bin ends is not told."""
    if not curve.any():
        return Line(name, x=[0.0, 100.0], y=[0.0, 0.0])
    moved = 100 * curve / max(curve.size - 1, 1)
    reach = next(end for end in _REACHES if moved[-min(PUBLIC, moved.size)] <= end)
    ends = reach * np.arange(_LEVEL_BINS + 1) / _LEVEL_BINS
    counts = np.searchsorted(moved, ends, side="right")
    cuts = _cuts(counts, total=curve.size)
    return Line(name, x=[0.0, *(100 * counts[cuts] / curve.size)], y=[0.0, *ends[cuts]])


def _cuts(counts: NDArray[np.intp], *, total: int) -> list[int]:
    """Where to cut records of whom so many lie before each place: enough of them between two cuts and at the ends."""
    cuts: list[int] = []
    before = 0
    for place, count in enumerate(counts.tolist()):
        if count - before >= PUBLIC and total - count >= PUBLIC:
            cuts.append(place)
            before = count
    return cuts


def _positions(size: int) -> NDArray[np.int64]:
    """Which points of a sorted curve are drawn: all, or evenly spaced ones with both ends."""
    if size <= _MOST_RECORDS:
        return np.arange(size)
    return np.round(np.linspace(0, size - 1, _DRAWN_POINTS)).astype(np.int64)


def _level_title(curves: Mapping[str, Array]) -> str:
    if not any(curve.any() for curve in curves.values()):
        return "No record changed its rank"
    # of the attribute's own records, as the measure has it: some may be missing
    means = {name: float(curve.mean()) / max(curve.size - 1, 1) for name, curve in curves.items()}
    shares = {name: f"{100 * mean:.1f} %" for name, mean in means.items()}
    most, least = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    if len(curves) == 1:
        return f"{most}: mean rank change {shares[most]} of n - 1"
    if shares[most] == shares[least]:
        return f"All {len(curves)} attributes moved alike: mean rank change {shares[most]} of n - 1"
    return f"{most} moved most: mean rank change {shares[most]} of n - 1; {least} least: {shares[least]}"


def _level_note(curves: Mapping[str, Array], *, n: int) -> str:
    parts = [_level_sizes(curves, n=n)]
    if len(curves) <= 6:
        largest = "; ".join(f"{name}: {number(float(curve[-1]))}" for name, curve in curves.items())
        parts.append(f"Largest rank change: {largest}.")
    if max(curve.size for curve in curves.values()) > _MOST_RECORDS:
        parts.append(
            f"Curves of more than {_MOST_RECORDS} records are drawn at {_DRAWN_POINTS} of them, evenly "
            "spaced in the sorted order, smallest and largest included."
        )
    return " ".join(parts)


def _level_sizes(curves: Mapping[str, Array], *, n: int) -> str:
    sizes = {name: curve.size for name, curve in curves.items()}
    if set(sizes.values()) == {n}:
        return f"n = {n} records."
    return f"n = {n} records. Records compared: " + "; ".join(f"{name}: {size}" for name, size in sizes.items()) + "."


def match_distances(
    observed: Array,
    null: Mapping[float, float] | tuple[Array, Array],
    *,
    n: int,
    draws: int,
    claims: int,
    withstands: bool,
    title: str | None = None,
    public: bool = False,
) -> Chart:
    """The match distances of the real records beside those of random records.

    `observed` holds a distance per record; `null` the share of the random records at each
    distance, as a mapping or as (distances, shares). Source: figures 1 to 3 of new-directions.
    A `public` one tells no single record's distance: it shows how many lie within some distances.

    >>> import numpy as np
    >>> null = {0.0: 0.25, 1.0: 0.75}
    >>> chart = match_distances(np.array([0.0, 1.0]), null, n=2, draws=4, claims=0, withstands=True)
    >>> chart.title
    "The paper's test: of 2 matches none is nearer than records of independent values come"
    >>> [series.y for series in chart.series]
    [(0.5, 0.5), (0.25, 0.75)]
    """
    if withstands != (claims == 0):
        raise ParameterError(f"claims {claims}: a release withstands exactly when there is no claim")
    real = _distances(observed, what="observed distances")
    at, shares = _null(null)
    names = (f"real records ({real.size})", f"random records ({draws})")
    real_at, counts = np.unique(real, return_counts=True)
    support = np.union1d(real_at, at)
    note = [f"n = {n} real records, {draws} random records."]
    if real.size != n:
        note.append(f"A match distance is known for {real.size} of the real records.")
    series: list[Bars] | list[Line]
    if public:
        series = _public_curves(names, real, at, shares)
        note.append(
            "The curve of the real records goes from bin to bin and ends before the last one; "
            f"every bin holds at least {PUBLIC} of them."
        )
        y_label = "Share of records at most so far"
    elif support.size <= _MOST_BARS:
        ticks, complete = _ticks(support)
        labels = [f"{tick:.10g}" for tick in ticks]
        heights = (_spread(ticks, real_at, counts / real.size), _spread(ticks, at, shares))
        series = [Bars(name, x=labels, y=height.tolist()) for name, height in zip(names, heights, strict=True)]
        if not complete:
            note.append("Distances that do not occur are left out, so the axis is not to scale.")
        y_label = "Share of records"
    else:
        edges = _edges(support)
        binned = (_binned(edges, real_at, counts / real.size), _binned(edges, at, shares))
        series = [
            # From zero up at the first edge and down to zero at the last.
            Line(name, x=[edges[0], *edges.tolist()], y=[0.0, *share.tolist(), 0.0], step=True)
            for name, share in zip(names, binned, strict=True)
        ]
        note.append(f"Shares in {edges.size - 1} common bins of width {number(float(edges[1] - edges[0]))}.")
        y_label = "Share of records per bin"
    return Chart(
        title=_match_title(n=n, claims=claims) if title is None else title,
        x_label="Distance to the nearest masked record (largest rank change)",
        y_label=y_label,
        series=series,
        note=" ".join(note),
        kind="match_distances",
    )


def _public_curves(names: tuple[str, str], real: Array, at: Array, shares: Array) -> list[Line]:
    """The shares of real and of random records up to some distances; those are the random ones' distances."""
    order = np.argsort(at)
    at, upto = at[order], np.cumsum(shares[order])
    counts = np.searchsorted(real, at, side="right")
    cuts = _cuts(counts, total=real.size)
    cuts = cuts[:: len(cuts) // _BINS + 1]
    drawn = np.unique(np.linspace(0, at.size - 1, min(at.size, _BINS)).round().astype(np.intp))
    return [
        Line(names[0], x=[0.0, *at[cuts]], y=[0.0, *(counts[cuts] / real.size)]),
        Line(names[1], x=[0.0, *at[drawn]], y=[0.0, *upto[drawn]]),
    ]


def _match_title(*, n: int, claims: int) -> str:
    if claims == 0:
        return f"The paper's test: of {n} matches none is nearer than records of independent values come"
    return f"The paper's test: {claims} of {n} matches are nearer than records of independent values come"


def _null(null: Mapping[float, float] | tuple[Array, Array]) -> tuple[Array, Array]:
    if isinstance(null, Mapping):
        null = (np.array(list(null.keys()), dtype=float), np.array(list(null.values()), dtype=float))
    at, shares = np.asarray(null[0], dtype=float), np.asarray(null[1], dtype=float)
    if at.shape != shares.shape:
        raise ParameterError(f"null distribution: {at.size} distances but {shares.size} shares; give one for each")
    _distances(at, what="null distribution")
    if np.any(shares < 0) or not np.isclose(shares.sum(), 1.0, atol=1e-6):
        raise ParameterError(f"null distribution: its shares sum to {shares.sum():g}; they must sum to 1")
    return at, shares


def _distances(values: Array, *, what: str) -> Array:
    """Sorted, and certainly distances: finite and not negative."""
    distances = np.sort(np.asarray(values, dtype=float).ravel())
    if distances.size == 0:
        raise ParameterError(f"{what}: there is no record to draw; give at least one")
    if not np.isfinite(distances).all() or distances[0] < 0:
        raise ParameterError(f"{what}: a distance is negative, missing or infinite; leave such records out")
    return distances


def _step(support: Array) -> float | None:
    """The spacing that ranks give distances: 1, or a half with shared ranks; None for others."""
    doubled = 2 * support
    if not np.array_equal(doubled, np.round(doubled)):
        return None
    return 1.0 if np.array_equal(support, np.round(support)) else 0.5


def _ticks(support: Array) -> tuple[Array, bool]:
    """The labels of the bars, and whether they are all the possible distances in their range."""
    step = _step(support)
    if step is not None:
        possible = round(float(support[-1] - support[0]) / step) + 1
        if possible <= _MOST_BARS:
            return support[0] + step * np.arange(possible), True
    return support, False


def _edges(support: Array) -> Array:
    low, span, step = support[0], support[-1] - support[0], _step(support)
    if step is None:
        return np.linspace(low, low + span, _BINS + 1)
    # Every bin holds equally many possible distances; otherwise a smooth curve looks like a comb.
    width = step * int(np.ceil((span / step + 1) / _BINS))
    bins = int(np.floor(span / width)) + 1
    return np.asarray(low + width * np.arange(bins + 1), dtype=float)


def _spread(ticks: Array, at: Array, shares: Array) -> Array:
    heights = np.zeros(ticks.size)
    np.add.at(heights, np.searchsorted(ticks, at), shares)
    return heights


def _binned(edges: Array, at: Array, shares: Array) -> Array:
    inside = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, edges.size - 2)
    return np.bincount(inside, weights=shares, minlength=edges.size - 1).astype(float)


def most_exposed(
    records: Sequence[Mapping[str, Any]],
    *,
    usual: float | None = None,
    most: int = _MOST_BARS,
    title: str | None = None,
) -> Chart:
    """The match distances of exposed records, the most exposed first, as they are given.

    Each record is a mapping with its number (`original`) and its `distance`; `usual` is the distance to compare with,
    such as the median of the random records. No more than `most` are drawn, all are counted.

    >>> most_exposed([{"original": 17, "distance": 0}, {"original": 3, "distance": 2}], usual=5).title
    'Record 17 is the most exposed of 2: a released record lies at rank distance 0'
    """
    if not records:
        raise ParameterError("exposed records: there is none to draw; give at least one")
    distances = [float(record["distance"]) for record in records]
    _distances(np.array(distances), what="exposed records")
    labels = [str(record["original"]) for record in records[:most]]
    series: list[Bars | Line] = [Bars("exposed records", labels, distances[:most])]
    if usual is not None:
        series.append(Line("usual for random records", [0, len(labels) - 1], [usual] * 2, guide=True))
    return Chart(
        title=_exposed_title(str(records[0]["original"]), distances) if title is None else title,
        x_label="Original record, the most exposed first",
        y_label="Distance to the nearest masked record",
        series=series,
        note=_exposed_note(distances, drawn=len(labels), usual=usual),
        kind="most_exposed",
    )


def _exposed_title(first: str, distances: Sequence[float]) -> str:
    lies = f"a released record lies at rank distance {number(distances[0])}"
    if len(distances) == 1:
        return f"Record {first} alone is exposed: {lies}"
    return f"Record {first} is the most exposed of {len(distances)}: {lies}"


def _exposed_note(distances: Sequence[float], *, drawn: int, usual: float | None) -> str:
    parts = [f"{len(distances)} exposed {'record' if len(distances) == 1 else 'records'}."]
    if usual is not None:
        parts.append(f"Usual distance of random records: {number(usual)}.")
    if drawn < len(distances):
        parts.append(f"The first {drawn} are drawn.")
    if 0.0 in distances[:drawn]:
        parts.append("No bar: a released record has exactly the same ranks.")
    return " ".join(parts)
