"""Estimates of a stated use from the original and from the release, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array
from rankveil.categories import Categories
from rankveil.errors import NotApplicableError
from rankveil.measures._records import share_interval
from rankveil.measures._regression import regressions
from rankveil.measures.table_cells import limits_of
from rankveil.moments import counted, effective_size
from rankveil.multivariate import standardised
from rankveil.uses import Means, Regression, Tabulation, Term, Use

Codes = NDArray[np.int64]

_VALUES = 50
"""Different numbers up to which each is a group of its own; above, there are classes by quantiles."""
_CLASSES = 5
_LEVELS = 1_000
"""Categories at most that a regression takes or groups that means have."""
_EQUAL = 1e-9
"""Estimates without an interval that differ by less than this part are equal."""


class Tables(Protocol):
    """Original and release in the columns of a use, missing values NaN."""

    names: tuple[str, ...]
    categories: tuple[Categories | None, ...]

    @property
    def everything(self) -> tuple[Array, Array] | None:
        """All records of both."""

    @property
    def known(self) -> tuple[Any, Any]:
        """What is known of them by roles: the weights."""


@dataclass(frozen=True)
class Stated:
    """A use and the tables that it is tried on."""

    use: Use
    tables: Tables
    lost: tuple[str, ...] = ()
    """Columns that the release does not have: the tables are then the original twice."""


@dataclass(frozen=True)
class Side:
    """An estimate from one of the tables."""

    estimate: float
    interval: tuple[float, float] | None
    effect: float | None = None
    """What is tested against 0: the slope, the difference from the other groups, the departure from independence."""
    significant: bool | None = None

    def described(self) -> dict[str, Any]:
        """For JSON; what is too large for a number is none."""
        return {
            "estimate": _finite(self.estimate),
            "interval": None if self.interval is None else [_finite(end) for end in self.interval],
            "significant": self.significant,
        }


@dataclass(frozen=True)
class Estimate:
    """An estimate from both tables."""

    name: str
    original: Side
    masked: Side | None
    """None where the release has none."""
    overlap: float
    """Of the intervals: the mean of the shares that they have in common."""

    @property
    def sign(self) -> bool | None:
        """Whether what is tested has the sign that it had; one that is significant in neither table has none."""
        if self.original.effect is None:
            return None
        if self.masked is None or self.masked.effect is None:
            return False
        if not self.original.significant and not self.masked.significant:
            return True
        return bool(np.sign(self.original.effect) == np.sign(self.masked.effect))

    @property
    def significance(self) -> bool | None:
        """Whether it is significant in both tables or in neither."""
        if self.original.significant is None:
            return None
        return self.masked is not None and self.masked.significant == self.original.significant

    def interval(self, least: float) -> bool:
        """Whether the intervals overlap by so much."""
        return self.masked is not None and self.overlap >= least

    def kept(self, least: float) -> bool:
        """Whether sign, significance and interval are kept, as far as it has them."""
        return self.interval(least) and self.sign is not False and self.significance is not False


@dataclass(frozen=True, eq=False)
class Data:
    """The records of both tables that are complete in the columns of a use."""

    x: Array
    y: Array
    weight_x: Array | None
    weight_y: Array | None
    names: tuple[str, ...]
    categories: tuple[Categories | None, ...]
    level: float

    @classmethod
    def of(cls, stated: Stated, level: float) -> Data:
        """The columns of a use in its order."""
        tables = stated.tables
        assert tables.everything is not None
        places = [tables.names.index(name) for name in stated.use.columns]
        made: list[Any] = []
        for values, known in zip(tables.everything, tables.known, strict=True):
            some = values[:, places]
            there = ~np.isnan(some).any(axis=1)
            weight = None if known.survey is None else known.survey[there]
            made.append(counted(np.asfortranarray(some[there]), weight))
        (x, weight_x), (y, weight_y) = made
        if len(x) == 0:
            raise NotApplicableError("no original record has all the columns that it takes")
        return cls(x, y, weight_x, weight_y, stated.use.columns, tuple(tables.categories[j] for j in places), level)

    def labels(self, j: int) -> dict[float, str]:
        """The words for the values of a column."""
        known = self.categories[j]
        return {} if known is None else dict(zip(known.values.tolist(), known.labels, strict=True))

    def numbers(self, j: int) -> tuple[Array, Array]:
        """A column of both tables as numbers: those that labels are too, if all of them are."""
        labels = self.labels(j)
        if not labels:
            return self.x[:, j], self.y[:, j]
        try:
            worth = {value: float(label) for value, label in labels.items()}
        except ValueError:
            raise NotApplicableError(f"{self.names[j]} has categories that are no numbers") from None
        found = tuple(np.array([worth[value] for value in side[:, j].tolist()]) for side in (self.x, self.y))
        return found[0], found[1]

    def is_numbers(self, j: int) -> bool:
        """Whether a column has numbers, or labels that are such."""
        try:
            self.numbers(j)
        except NotApplicableError:
            return False
        return True

    def groups(self, j: int) -> tuple[Codes, Codes, list[str]]:
        """The groups of a column in both tables, in order: numbers of many values are in classes.

        Those that only the release has come last, without a name.
        """
        x, y = self.x[:, j], self.y[:, j]
        different = np.unique(x)
        if not self.labels(j) and different.size > _VALUES:
            limits = limits_of(x, self.weight_x, classes=_CLASSES)
            codes = [np.searchsorted(limits, side, side="right").astype(np.int64) for side in (x, y)]
            ends = ["-inf", *(f"{limit:.6g}" for limit in limits), "inf"]
            return codes[0], codes[1], [f"[{a}, {b})" for a, b in pairwise(ends)]
        labels = self.labels(j)
        every = np.concatenate((different, np.setdiff1d(y, different)))
        order = np.argsort(every, kind="stable")
        codes = [order[np.searchsorted(every[order], side)].astype(np.int64) for side in (x, y)]
        return codes[0], codes[1], [labels.get(value, f"{value:.6g}") for value in different.tolist()]


def estimates(stated: Stated, *, level: float) -> list[Estimate]:
    """The estimates of a use; the ones that the release cannot give have no other side."""
    data = Data.of(stated, level)
    gone = bool(stated.lost) or len(data.y) == 0
    if gone:
        data = replace(data, y=data.x, weight_y=data.weight_x)
    use = stated.use
    if isinstance(use, Regression):
        made = _regression(use, data)
    elif isinstance(use, Means):
        made = [each for of in use.of for each in _means(of, use, data)]
    else:
        assert isinstance(use, Tabulation)
        made = _table(data)
    if not made:
        raise NotApplicableError("the original has too few records for any estimate")
    return [Estimate(each.name, each.original, None, 0.0) for each in made] if gone else made


# ---- regressions ----


def _regression(use: Regression, data: Data) -> list[Estimate]:
    """The slopes; a category's is its difference from the most frequent one."""
    target = data.numbers(0)
    if np.all(target[0] == target[0][0]):
        raise NotApplicableError(f"{use.target} is constant in the original, so there is nothing to explain")
    columns: list[tuple[Array, Array]] = [target]
    called, besides = [use.target], []
    for j, term in enumerate(use.terms, start=1):
        for name, x, y in _explaining(term, j, data):
            if not name:
                besides.append(len(columns))
            columns.append((x, y))
            called.append(name)
    x, y = (np.asfortranarray(np.column_stack([column[side] for column in columns])) for side in (0, 1))
    rest = np.array([j for j in range(1, len(columns)) if j not in besides], dtype=np.intp)
    made = regressions(
        x,
        y,
        data.weight_x,
        data.weight_y,
        column=0,
        rest=rest,
        besides=np.array(besides, dtype=np.intp),
        level=data.level,
    )
    found = []
    for i, j in enumerate(made.kept, start=1):
        unit = float(made.units[i - 1])
        sides = [_slope(side.middle[i], side.half[i], unit) for side in (made.original, made.masked)]
        assert sides[0] is not None
        found.append(Estimate(called[j], sides[0], sides[1], float(made.overlap[i])))
    return found


def _explaining(term: Term, j: int, data: Data) -> list[tuple[str, Array, Array]]:
    """The columns of a term: one of numbers, or one for each category but the most frequent of the original.

    A column without a name is a category that only the release has.
    """
    if not term.categories and data.is_numbers(j):
        return [(str(term), *data.numbers(j))]
    x, y, labels = data.groups(j) if data.labels(j) else _each_value(data, j)
    if len(labels) > _LEVELS:
        raise NotApplicableError(f"{term.column} has {len(labels):,} categories, more than {_LEVELS:,}")
    most = int(np.argmax(np.bincount(x, weights=data.weight_x)))
    size = max(len(labels), int(y.max(initial=0)) + 1)
    made = []
    for code in range(size):
        if code != most:
            name = f"{term.column}={labels[code]} (against {labels[most]})" if code < len(labels) else ""
            made.append((name, (x == code).astype(np.float64), (y == code).astype(np.float64)))
    return made


def _each_value(data: Data, j: int) -> tuple[Codes, Codes, list[str]]:
    """Numbers as categories, each value one."""
    different = np.unique(data.x[:, j])
    every = np.concatenate((different, np.setdiff1d(data.y[:, j], different)))
    order = np.argsort(every, kind="stable")
    x, y = (order[np.searchsorted(every[order], side[:, j])].astype(np.int64) for side in (data.x, data.y))
    # what only the release has is one category, as no original slope is compared with it
    return x, np.minimum(y, different.size), [f"{value:.6g}" for value in different.tolist()]


def _slope(middle: float, half: float, unit: float) -> Side | None:
    if math.isnan(middle):
        return None
    ends = (middle - half) * unit, (middle + half) * unit
    significant = abs(middle) > max(half, _EQUAL if half == 0 else 0.0)
    return Side(float(middle * unit), (float(ends[0]), float(ends[1])), float(middle), bool(significant))


# ---- means ----


@dataclass(frozen=True)
class _Mean:
    """A mean in the original's standard deviations, with its variance and degrees of freedom."""

    mean: float
    variance: float
    free: float

    def half(self, level: float) -> float:
        """Half the confidence interval."""
        return _quantile(self.free, level) * math.sqrt(self.variance)

    def difference(self, other: _Mean, level: float) -> tuple[float, bool]:
        """The difference from another mean, and whether it is significant (Welch 1947)."""
        apart, variance = self.mean - other.mean, self.variance + other.variance
        if variance == 0:
            return apart, abs(apart) > _EQUAL
        parts = sum(each.variance**2 / each.free for each in (self, other))
        free = variance**2 / parts if parts > 0 else self.free + other.free
        return apart, abs(apart) > _quantile(free, level) * math.sqrt(variance)


def _means(of: str, use: Means, data: Data) -> list[Estimate]:
    j = use.columns.index(of)
    x, y = data.numbers(j)
    base = standardised(x[:, None], data.weight_x)
    centre, width = float(base.mean[0]), float(base.spread[0])
    if width == 0:
        z = x - centre, np.sign(y - centre)
        width = 1.0
    else:
        z = base.z[:, 0], base.applied(y[:, None])[:, 0]
    codes: tuple[Codes, Codes] = np.zeros(x.size, np.int64), np.zeros(y.size, np.int64)
    labels = [""]
    if use.by is not None:
        first, second, labels = data.groups(use.columns.index(use.by))
        codes = first, second
        if len(labels) > _LEVELS:
            raise NotApplicableError(f"{use.by} has {len(labels):,} groups, more than {_LEVELS:,}")
    weights = data.weight_x, data.weight_y
    found = []
    for code, label in enumerate(labels):
        sides = []
        for side in (0, 1):
            group, others = (
                _mean_of(z[side][some], None if weights[side] is None else weights[side][some])  # type: ignore[index]
                for some in (codes[side] == code, codes[side] != code)
            )
            sides.append(None if group is None else _mean_side(group, others, centre, width, data.level, use.by))
        if sides[0] is not None:
            overlap = 0.0 if sides[1] is None else interval_overlap(sides[0][1], sides[1][1])
            name = f"mean of {of}" + (f", {use.by}={label}" if use.by is not None else "")
            found.append(Estimate(name, sides[0][0], None if sides[1] is None else sides[1][0], overlap))
    return found


def _mean_side(
    group: _Mean, others: _Mean | None, centre: float, width: float, level: float, by: str | None
) -> tuple[Side, tuple[float, float]]:
    """A mean in the column's units, and its interval in standard deviations."""
    half = group.half(level)
    ends = group.mean - half, group.mean + half
    effect, significant = (None, None) if by is None or others is None else group.difference(others, level)
    interval = centre + width * ends[0], centre + width * ends[1]
    return Side(centre + width * group.mean, interval, effect, significant), ends


def _mean_of(z: Array, weight: Array | None) -> _Mean | None:
    """A mean, or None where there are fewer than two records."""
    if z.size < 2:
        return None
    share = np.full(z.size, 1 / z.size) if weight is None else weight / weight.sum()
    mean = float(np.sum(share * z))
    spread = float(np.sum(np.square(share * (z - mean))))
    return _Mean(mean, 0.0 if np.all(z == z[0]) else spread * z.size / (z.size - 1), z.size - 1.0)


def _quantile(free: float, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(free, 0.5 + level / 200))


# ---- tables ----


def _table(data: Data) -> list[Estimate]:
    """The shares of the cells that an original record is in."""
    groups = [data.groups(j) for j in range(len(data.names))]
    sizes = [max(len(labels), int(y.max(initial=0)) + 1) for _, y, labels in groups]
    sides: list[tuple[dict[tuple[int, ...], float], list[Array], float]] = []
    for side, weight in ((0, data.weight_x), (1, data.weight_y)):
        cells = np.column_stack([group[side] for group in groups])
        found, where = np.unique(cells, axis=0, return_inverse=True)
        counts = np.bincount(where.reshape(-1), weights=weight)
        shares = dict(zip(map(tuple, found.tolist()), (counts / counts.sum()).tolist(), strict=True))
        margins = []
        for group, size in zip(groups, sizes, strict=True):
            margin = np.bincount(group[side], weights=weight, minlength=size)
            margins.append(margin / margin.sum())
        sides.append((shares, margins, effective_size(cells, weight)))
    made = []
    for cell in sides[0][0]:
        before, after = (_cell(cell, *side, level=data.level) for side in sides)
        words = [f"{name}={group[2][code]}" for name, group, code in zip(data.names, groups, cell, strict=True)]
        assert before.interval is not None
        assert after.interval is not None
        overlap = interval_overlap(before.interval, after.interval)
        made.append(Estimate(f"share of {', '.join(words)}", before, after, overlap))
    return made


def _cell(cell: tuple[int, ...], shares: Any, margins: Sequence[Array], size: float, *, level: float) -> Side:
    """A share with Wilson's interval; in a table of two columns with its departure from independence.

    That is the adjusted residual of Haberman 1973, which is about standard normal where the columns are independent.
    """
    from scipy.special import ndtri

    share = min(shares.get(cell, 0.0), 1.0)
    low, high = share_interval(share, of=size, level=level)
    if len(cell) != 2:
        return Side(share, (low, high))
    a, b = (float(margin[code]) for margin, code in zip(margins, cell, strict=True))
    spread = math.sqrt(max(a * (1 - a) * b * (1 - b), 0.0) / size)
    if spread == 0:
        return Side(share, (low, high), 0.0, False)
    effect = (share - a * b) / spread
    return Side(share, (low, high), effect, bool(abs(effect) > float(ndtri(0.5 + level / 200))))


def interval_overlap(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The mean of the shares that two intervals have in common (Karr et al. 2006), 0 where they are disjoint.

    >>> interval_overlap((0.0, 2.0), (1.0, 2.0))
    0.75
    """
    lengths = a[1] - a[0], b[1] - b[0]
    if lengths[0] == 0 and lengths[1] == 0:
        return float(abs(a[0] - b[0]) <= _EQUAL * max(1.0, abs(a[0])))
    common = max(min(a[1], b[1]) - max(a[0], b[0]), 0.0)
    return sum(common / length for length in lengths) / 2 if min(lengths) > 0 else 0.0


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
