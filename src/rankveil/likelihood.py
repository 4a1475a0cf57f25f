"""What a masking method tells an intruder who knows the original, and the likelihood of a link that follows from it.

A method's file states one of the `Statement`s below. The intruder makes a `Term` of it: from the original's values and
the released ones the log-likelihood log p(y | x) of any link, and coordinates in which it is about -distance^2 / 2, so
that a search tree finds the most likely links.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Recomputed:
    """A function of the original alone: he applies the step himself and looks for equal values."""


@dataclass(frozen=True)
class Unrelated:
    """The released value says nothing about whose it is."""


@dataclass(frozen=True)
class Simulated:
    """No closed form: he repeats the step with draws of his own and learns from the results."""

    why: str


@dataclass(frozen=True)
class Records:
    """Records are left out or reordered, columns left out; values stay as they are."""


@dataclass(frozen=True)
class Noise:
    """y = x + e, or y = x + |x| e for `relative`; e has this law, scale its standard deviation's unit."""

    law: Literal["normal", "laplace", "uniform"]
    scale: float
    relative: bool = False
    lower: float = -np.inf
    """Values are clamped to this and to `upper` before the noise."""
    upper: float = np.inf


@dataclass(frozen=True, eq=False)
class JointNoise:
    """Y = X + E, E normal with this covariance over the columns of the step."""

    covariance: Array


@dataclass(frozen=True, eq=False)
class Exchange:
    """A category k becomes l with probability matrix[k, l]; the labels of its rows and columns."""

    matrix: Array
    sources: tuple[str, ...]
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Displacement:
    """Values change places; a rank moves by at least `least` and at most `most`."""

    least: int
    most: int
    pairs: bool
    """Whether values change places in pairs, which undoes itself over several columns."""


@dataclass(frozen=True)
class RankNoise:
    """Values stand in the order of their ranks plus independent draws of this law."""

    law: Literal["normal", "uniform"]
    scale: float
    """In ranks: the standard deviation of normal draws; uniform ones lie between minus and plus it."""


@dataclass(frozen=True, eq=False)
class JointScores:
    """Values stand in the order of shrunk normal scores of their ranks plus normal draws of the columns together.

    With z the scores of the ranks, the order is that of `kept` z + e, e normal with this covariance.
    """

    kept: float
    covariance: Array


@dataclass(frozen=True)
class KeptRanks:
    """Values are drawn anew, in the order of the original: ranks stay, ties apart."""


@dataclass(frozen=True, eq=False)
class SignedNoise:
    """y = (x (1 + sign |e|) - centre) factor + mean, e normal; the sign is one for all values of a record."""

    scale: Array
    """For each column the standard deviation of e."""


@dataclass(frozen=True, eq=False)
class Turned:
    """Within each group the deviations from its mean are turned by a random rotation."""

    group: Rows


@dataclass(frozen=True, eq=False)
class SharedNoise:
    """All records of a group get its centre with one draw of Laplace noise for each column."""

    group: Rows
    centre: Array
    """A row for each group."""
    scale: Array


Statement = (
    Recomputed
    | Unrelated
    | Simulated
    | Records
    | Noise
    | JointNoise
    | Exchange
    | Displacement
    | RankNoise
    | JointScores
    | KeptRanks
    | SignedNoise
    | Turned
    | SharedNoise
)


class Term(Protocol):
    """A part of the evidence: some columns of both tables."""

    @property
    def values(self) -> tuple[Array, Array]:
        """What it looks at, a row for each record of the original and of the release: equal rows are alike to it."""

    @property
    def coordinates(self) -> tuple[Array, Array]:
        """Points of both tables between which the log-likelihood is about -distance^2 / 2."""

    @property
    def bounded(self) -> bool:
        """Whether it makes some links impossible."""

    @property
    def rough(self) -> bool:
        """Whether the coordinates say so little that all pairs are weighed where records are few."""

    def weights(self, rows: Rows, columns: Rows) -> Array:
        """log p(released record | original record) for links, but for what is the same for all; -inf if impossible."""


@dataclass(frozen=True, eq=False)
class Points:
    """Normal with a common covariance: points of both tables, whitened."""

    x: Array
    y: Array
    bounded: bool = False
    rough: bool = False

    @property
    def values(self) -> tuple[Array, Array]:
        return self.x, self.y

    @property
    def coordinates(self) -> tuple[Array, Array]:
        return _filled(self.x), _filled(self.y)

    def weights(self, rows: Rows, columns: Rows) -> Array:
        total = np.zeros(rows.size)
        for j in range(self.x.shape[1]):
            apart = self.x[rows, j] - self.y[columns, j]
            total -= np.where(np.isnan(apart), 0.0, apart * apart / 2)
        return total


def whitened(covariance: Array, *, least: float = 1e-10) -> Array:
    """W with |(x - y) W|^2 = (x - y)' C^-1 (x - y) on the directions in which C has some spread."""
    spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1.0), 0.0)
    values, vectors = np.linalg.eigh(covariance * np.outer(scale, scale))
    kept = values > least * max(float(values.max(initial=0.0)), 1e-300)
    made: Array = scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])
    return made


@dataclass(frozen=True, eq=False)
class NoiseTerm:
    """One column with noise of a known law, on a grid of released numbers where there is one, clipped or not."""

    x: Array
    y: Array
    noise: Noise
    grid: float = 0.0
    """Released numbers are multiples of it; 0 for real numbers."""
    clip: tuple[float, float] = (-np.inf, np.inf)
    """Released numbers beyond were moved to these ends."""

    @property
    def values(self) -> tuple[Array, Array]:
        return self.x[:, None], self.y[:, None]

    @property
    def bounded(self) -> bool:
        return self.noise.law == "uniform"

    @property
    def rough(self) -> bool:
        return self.noise.relative or np.isfinite(self.clip[0]) or np.isfinite(self.clip[1])

    @property
    def coordinates(self) -> tuple[Array, Array]:
        spread = {"normal": 1.0, "laplace": 1.3, "uniform": 0.6}[self.noise.law] * self.noise.scale
        spread = float(np.hypot(spread, self.grid / 4)) if not self.noise.relative else spread
        if not self.noise.relative:
            return _filled(self._centre / spread)[:, None], _filled(self.y / spread)[:, None]
        there = np.abs(self.x[(self.x != 0) & ~np.isnan(self.x)])
        unit = float(np.quantile(there, 0.01)) / 10 if there.size else 1.0
        return tuple(_filled(np.arcsinh(each / unit) / spread)[:, None] for each in (self.x, self.y))  # type: ignore[return-value]

    @property
    def _centre(self) -> Array:
        return np.clip(self.x, self.noise.lower, self.noise.upper)

    def weights(self, rows: Rows, columns: Rows) -> Array:
        x, y = self._centre[rows], self.y[columns]
        scale = self.noise.scale * (np.abs(x) if self.noise.relative else 1.0)
        made = _log_density(y, x, np.broadcast_to(np.asarray(scale, dtype=np.float64), x.shape), self)
        return np.where(np.isnan(x) | np.isnan(y), 0.0, made)


def _log_density(y: Array, x: Array, scale: Array, term: NoiseTerm) -> Array:
    """log p(y | x): a density on real numbers, the probability of the cell of a grid, of a tail at a clipped end."""
    law, (low, high), half = term.noise.law, term.clip, term.grid / 2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        flat = scale == 0
        unit = np.where(flat, 1.0, scale)
        z = (y - x) / unit
        if law == "normal":
            density = -z * z / 2 - np.log(unit) - np.log(2 * np.pi) / 2
        elif law == "laplace":
            density = -np.abs(z) - np.log(2 * unit)
        else:  # rounding may move a value past the end, by half a step
            density = np.where(np.abs(z) <= 1 + 1e-9 + half / unit, -np.log(2 * unit), -np.inf)
        if half > 0:
            coarse = half > unit * (1e-6 if law == "uniform" else 0.05)
            if np.any(coarse):
                cell = _log_between(law, (y - half - x) / unit, (y + half - x) / unit)
                density = np.where(coarse, cell - np.log(2 * half), density)
        if np.isfinite(low) or np.isfinite(high):
            width = np.log(2 * half) if half > 0 else 0.0
            density = np.where(y <= low, _log_below(law, (low + half - x) / unit) - width, density)
            density = np.where(y >= high, _log_below(law, (x + half - high) / unit) - width, density)
        sure = -np.log(2 * half) if half > 0 else 0.0
        return np.where(flat, np.where(np.abs(y - x) <= half * (1 + 1e-9), sure, -np.inf), density)


def _log_below(law: str, z: Array) -> Array:
    """log P(e <= z) of a standard variable."""
    if law == "normal":
        from scipy.special import log_ndtr

        return np.asarray(log_ndtr(z))
    if law == "laplace":
        return np.where(z < 0, z - np.log(2), np.log1p(-np.exp(-np.abs(z)) / 2))
    return np.log(np.clip((z + 1) / 2, 0.0, 1.0))


def _log_between(law: str, low: Array, high: Array) -> Array:
    """log P(low < e <= high) of a standard variable, from the nearer tail."""
    turned = low > 0
    a, b = np.where(turned, -high, low), np.where(turned, -low, high)
    less, more = _log_below(law, a), _log_below(law, b)
    return np.where(more > less, more + np.log1p(-np.exp(np.minimum(less - more, -1e-300))), -np.inf)


@dataclass(frozen=True, eq=False)
class RankTerm:
    """One column whose values were displaced by ranks: the distribution of how far, ties taken as intervals of ranks.

    p(y | x) is the mean over the ranks of x of the probability of landing among those of y.
    """

    x: Array
    """For each original the first and the last of its strict ranks, from 0."""
    y: Array
    """For each released record those of its value among the original's values."""
    gaps: Array
    """The probability of each displacement, from -(n - 1) to n - 1."""
    bounded: bool = True
    rough: bool = True
    _twice: Array = field(init=False)

    def __post_init__(self) -> None:
        once = np.concatenate(([0.0], np.cumsum(self.gaps)))
        object.__setattr__(self, "_twice", np.concatenate(([0.0], np.cumsum(once))))

    @property
    def values(self) -> tuple[Array, Array]:
        return self.x, self.y

    @property
    def coordinates(self) -> tuple[Array, Array]:
        n = (self.gaps.size + 1) // 2
        apart = np.arange(-(n - 1), n)
        spread = max(float(np.sqrt(np.sum(self.gaps * apart * apart))), 0.5)
        return tuple(_filled(each.mean(axis=1) / spread)[:, None] for each in (self.x, self.y))  # type: ignore[return-value]

    def weights(self, rows: Rows, columns: Rows) -> Array:
        gone = np.isnan(self.x[rows, 0]) | np.isnan(self.y[columns, 0])
        x: Rows = np.where(gone[:, None], 0, self.x[rows]).astype(np.int64)
        y: Rows = np.where(gone[:, None], 0, self.y[columns]).astype(np.int64)
        n = (self.gaps.size + 1) // 2

        def upto(gap: Rows) -> Array:  # the sum of the cumulated probabilities of displacements up to `gap`
            return self._twice[np.clip(gap + n, -1, 2 * n - 1) + 1] + np.maximum(gap - n + 1, 0)

        # sum over r in x of P(y_first - r <= gap <= y_last - r)
        whole = upto(y[:, 1] - x[:, 0]) - upto(y[:, 1] - x[:, 1] - 1)
        below = upto(y[:, 0] - 1 - x[:, 0]) - upto(y[:, 0] - x[:, 1] - 2)
        share = np.maximum(whole - below, 0.0) / (x[:, 1] - x[:, 0] + 1)
        with np.errstate(divide="ignore"):
            made = np.log(np.where(share > 1e-15, share, 0.0))
        # a released value that c records have is as likely for each of them
        return np.where(gone, 0.0, made - np.log(y[:, 1] - y[:, 0] + 1))


@dataclass(frozen=True, eq=False)
class CodeTerm:
    """One column of categories: the logarithm of the probability that code k becomes code l."""

    x: Array
    y: Array
    log_matrix: Array

    @property
    def values(self) -> tuple[Array, Array]:
        return self.x[:, None], self.y[:, None]

    @property
    def bounded(self) -> bool:
        return bool(np.any(np.isneginf(self.log_matrix)))

    @property
    def rough(self) -> bool:
        return True

    @property
    def coordinates(self) -> tuple[Array, Array]:
        matrix = self.log_matrix
        held = np.where(np.isfinite(matrix), matrix, -20.0)
        count = max(matrix.shape)
        gain = float(np.mean(held.max(axis=1) - np.median(held, axis=1))) if held.size else 0.0
        place = _apart(count) * np.sqrt(max(gain, 0.0))
        likely = np.argmax(held, axis=1)  # where a category most likely goes
        first = np.where(np.isnan(self.x)[:, None], 0.0, place[likely[_codes(self.x)]])
        second = np.where(np.isnan(self.y)[:, None], 0.0, place[_codes(self.y)])
        return first, second

    def weights(self, rows: Rows, columns: Rows) -> Array:
        x, y = self.x[rows], self.y[columns]
        gone = np.isnan(x) | np.isnan(y)
        return np.where(gone, 0.0, self.log_matrix[_codes(x), _codes(y)])


@dataclass(frozen=True, eq=False)
class SignedTerm:
    """Columns whose values all grow or all shrink by a share that is half-normal, then are shifted and scaled back.

    Shift and scale depend on all draws; they are taken at their expected values, and `slack` is how far, in units of a
    column, they may be off.
    """

    x: Array
    y: Array
    """Released values with the expected shift and scale undone."""
    scale: Array
    slack: Array
    """Standard deviations, for each released value."""
    bounded: bool = False
    rough: bool = True

    @classmethod
    def of(cls, x: Array, y: Array, scale: Array, *, grid: Array) -> SignedTerm:
        """From the values as they are released, rounded to multiples of `grid`.

        For one column x (1 + sign |e|) is x + s x N, N standard normal: the mean has variance s^2 mean(x^2) / n, and
        the variance V, to which scaling back refers, one of mean(4 d^2 a^2 + 2 a^4) / n, d = x - mean, a = s x.
        """
        n = max(len(x), 1)
        mean, square = x.mean(axis=0), (x * x).mean(axis=0)
        apart, added = x - mean, scale * x
        variance = (apart * apart).mean(axis=0)
        noisy = np.maximum(variance + (added * added).mean(axis=0), 1e-300)
        factor = np.sqrt(variance / noisy)
        restored = (y - mean) / np.where(factor > 0, factor, 1.0) + mean
        with np.errstate(over="ignore", invalid="ignore"):
            ratio = np.sqrt((4 * apart**2 * added**2 + 2 * added**4).mean(axis=0) / n) / (2 * noisy)
        shift = np.maximum(scale * np.sqrt(square / n), 1e-12 * np.sqrt(square) + 1e-300)
        rounding = grid / np.sqrt(12) / np.where(factor > 0, factor, 1.0)
        return cls(x, restored, scale, np.hypot(np.hypot(shift, rounding), ratio * (restored - mean)))

    @property
    def values(self) -> tuple[Array, Array]:
        return self.x, self.y

    @property
    def coordinates(self) -> tuple[Array, Array]:
        # the logarithm would send values that shrink to almost nothing too far away
        unit = np.maximum(self.slack.min(axis=0) / np.maximum(self.scale, 1e-12), 1e-300)
        unit = np.maximum(unit, 0.3 * np.median(np.abs(self.x), axis=0))
        first, second = (np.arcsinh(each / unit) / np.maximum(self.scale, 1e-12) for each in (self.x, self.y))
        return first, second

    def weights(self, rows: Rows, columns: Rows) -> Array:
        from scipy.special import log_ndtr

        up, down = np.zeros(rows.size), np.zeros(rows.size)
        for j in range(self.x.shape[1]):
            x, apart = self.x[rows, j], self.y[columns, j] - self.x[rows, j]
            slack = self.slack[columns, j]
            width = np.hypot(self.scale[j] * x, slack)
            density = -0.5 * (apart / width) ** 2 - np.log(width)
            grown = np.where(x == 0, 0.0, apart * np.sign(x)) / slack
            up += density + log_ndtr(grown)
            down += density + log_ndtr(-grown)
        return np.logaddexp(up, down)


@dataclass(frozen=True, eq=False)
class TurnedTerm:
    """Groups whose deviations from their mean were turned at random.

    A row of a random rotation is uniform on the sphere: with a group of k records whose deviations D have rank r, and
    s = (y - mean)' (D'D)^-1 (y - mean) k / (k - 1), the density of y is proportional to (1 - s)^((k - 1 - r) / 2 - 1)
    inside the ellipsoid s <= 1; it lies on its surface where r = k - 1, and always in the space of the deviations.
    All that holds up to rounding, whose standard deviation is the unit of each column here.
    """

    group: Rows
    x: Array
    y: Array
    grid: Array
    """Released numbers are multiples of it, column by column; 0 for those as they were computed."""
    bounded: bool = False
    rough: bool = True
    _means: Array = field(init=False)
    _spread: Array = field(init=False)
    _unit: Array = field(init=False)

    def __post_init__(self) -> None:
        sizes = np.maximum(np.bincount(self.group), 1)
        means = np.column_stack([np.bincount(self.group, weights=self.x[:, j]) / sizes for j in range(self.x.shape[1])])
        apart = self.x - means[self.group]
        spread = np.sqrt((apart * apart).mean(axis=0))
        object.__setattr__(self, "_means", means)
        spread = np.where(spread > 0, spread, np.abs(self.x).max(axis=0) * 1e-9 + 1e-300)
        object.__setattr__(self, "_spread", spread)
        object.__setattr__(self, "_unit", np.hypot(_EXACT * spread, self.grid / np.sqrt(12)))

    @property
    def values(self) -> tuple[Array, Array]:
        return self.group[:, None].astype(np.float64), self.y

    @property
    def coordinates(self) -> tuple[Array, Array]:
        return self._means[self.group] / self._spread, self.y / self._spread

    def weights(self, rows: Rows, columns: Rows) -> Array:
        made = np.empty(rows.size)
        group = self.group[rows]
        order = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        members = np.argsort(self.group, kind="stable")
        bounds = np.searchsorted(self.group[members], np.arange(self._means.shape[0] + 1))
        for begin, end in zip(starts, [*starts[1:], order.size], strict=True):
            number = group[order[begin]]
            own = self.x[members[bounds[number] : bounds[number + 1]]]
            places = order[begin:end]
            made[places] = self._of_group(own, self.y[columns[places]])
        return made

    def _of_group(self, own: Array, y: Array) -> Array:
        from scipy.special import gammaln

        k = len(own)
        centre = own.mean(axis=0)
        apart = (own - centre) / self._unit
        _, size, axes = np.linalg.svd(apart, full_matrices=False)
        kept = size > np.maximum(_EXACT * float(size.max(initial=0.0)), 1.0)  # the others are not told from rounding
        kept[k - 1 :] = False
        size, axes = size[kept], axes[kept]
        rank = size.size
        deviation = (y - centre) / self._unit
        along = deviation @ axes.T
        off = deviation - along @ axes
        made: Array = -np.minimum(np.sum(off * off, axis=1) / 2, 100.0)
        square = np.sum((along / size) ** 2, axis=1) * k / max(k - 1, 1)
        # what rounding by one unit in every direction does to it
        blur = np.sqrt(4 * np.sum(along**2 / size**4, axis=1) + 2 * np.sum(size**-4.0)) * k / max(k - 1, 1)
        blur = np.hypot(blur, _EXACT)
        made -= np.log(size).sum()
        if rank == k - 1:
            made -= np.minimum(((square - 1) / blur) ** 2 / 2, 100.0) + np.log(blur)
            return made
        free = k - 1 - rank
        made += gammaln((k - 1) / 2) - gammaln(free / 2) - rank / 2 * np.log(np.pi * (k - 1) / k)
        inside = np.maximum(1 - square, blur)
        made += (free / 2 - 1) * np.log(inside)
        made -= np.minimum((np.maximum(square - 1, 0.0) / blur) ** 2 / 2, 100.0)
        return made


_EXACT = 1e-7
"""How far, relative to a column's spread, what is computed twice in floating point may be apart."""


@dataclass(frozen=True, eq=False)
class SharedNoiseTerm:
    """Groups whose centres carry Laplace noise; all records of a group have the same values."""

    group: Rows
    centre: Array
    scale: Array
    y: Array
    whole: bool
    """Whether groups are linked as wholes; otherwise each record has its share of the evidence."""
    bounded: bool = False
    rough: bool = True

    @property
    def values(self) -> tuple[Array, Array]:
        return self.group[:, None].astype(np.float64), self.y

    @property
    def coordinates(self) -> tuple[Array, Array]:
        unit = 1.3 * np.median(self.scale, axis=0)
        return self.centre[self.group] / unit, self.y / unit

    def weights(self, rows: Rows, columns: Rows) -> Array:
        group = self.group[rows]
        total = np.zeros(rows.size)
        for j in range(self.y.shape[1]):
            scale = self.scale[group, j]
            total -= np.abs(self.y[columns, j] - self.centre[group, j]) / scale + np.log(scale)
        return total if self.whole else total / np.bincount(self.group)[group]


def _apart(count: int) -> Array:
    """Points for so many categories, at a distance of sqrt(2) from each other, or about so where they are many."""
    if count <= 8:
        return np.eye(count)
    points = np.random.default_rng(0).normal(size=(count, 8))
    made: Array = points / np.linalg.norm(points, axis=1, keepdims=True)
    return made


def _codes(values: Array) -> Rows:
    return np.where(np.isnan(values), 0, values).astype(np.int64)


def _filled(values: Array) -> Array:
    """Missing cells at the mean, where they are as near to everybody as can be."""
    gone = np.isnan(values)
    if not gone.any():
        return values
    if values.ndim == 1:
        middle = float(values[~gone].mean()) if not gone.all() else 0.0
        return np.where(gone, middle, values)
    return np.column_stack([_filled(values[:, j]) for j in range(values.shape[1])])
