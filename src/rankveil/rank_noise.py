"""The likelihood of values that were put back in the order of their ranks plus independent draws.

Record r of n (ranks from 0) draws the key r + e, e normal with standard deviation s, or uniform on (-h, h), and gets
the value whose rank r' is that of its key. So r' / n is about G(k), G the mean distribution of all keys, and

    log p(r' | r) = log f(k - r) - log(n G'(k)),    k = G^-1(r' / n),

f the density of e. How many other keys lie below k varies too, by about the mean of F (1 - F): that is added to f as a
normal draw of its own. Values that several records have are intervals of ranks on both sides; the mean over the ranks
of x of the probability of landing between the ends of y is a difference of integrals of F, in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Law = Literal["normal", "uniform"]

_WIDE = 9.0
"""Standard deviations beyond which there is nothing."""
_NODES = 4001
"""Points at each end of the ranks between which the distribution of the keys is taken as straight."""
_BINS = 100
"""Multiples in a width of normal keys at which their centres are gathered, where there are more of these."""
_AT_ONCE = 500
"""Nodes, and centres, whose distances are in memory at a time."""
_NARROW = 0.5
"""Intervals are short up to this share of the finest width of the law."""
_LEAST = 1e-11
"""Probabilities below it are taken from the tail of a normal distribution, not from differences."""


def _density(z: Array) -> Array:
    made: Array = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    return made


def _once(z: Array) -> Array:
    """The integral of Phi up to z."""
    made: Array = z * ndtr(z) + _density(z)
    return made


def _twice(z: Array) -> Array:
    """The integral of that."""
    made: Array = ((z * z + 1) * ndtr(z) + z * _density(z)) / 2
    return made


def integral_of_noise(x: Array, law: Law, scale: float, jitter: float = 0.0) -> Array:
    """The integral up to x of the distribution of a draw, of standard deviation s or on (-h, h), plus a normal one.

    >>> bool(np.isclose(integral_of_noise(np.array([9.0]), "uniform", 2.0)[0], 9.0))
    True
    """
    if law == "normal":
        width = float(np.hypot(scale, jitter))
        return width * _once(x / width)
    if jitter <= 0:
        return np.where(x >= scale, x, np.maximum(x + scale, 0.0) ** 2 / (4 * scale))
    return jitter * jitter / (2 * scale) * (_twice((x + scale) / jitter) - _twice((x - scale) / jitter))


def keys_at(count: int, law: Law, scale: float) -> Array:
    """For t from 0 to n the key below which t of n keys lie on average; the ends are as far out as there are keys.

    >>> np.round(keys_at(1000, "normal", 5.0)[[500, 501]], 6)
    array([499.5, 500.5])
    """
    far = _WIDE * scale if law == "normal" else scale
    middle = (count - 1) / 2
    reach = min(far, middle)
    nodes = np.linspace(-far - 0.5, reach, _NODES)
    below = integral_of_noise(nodes + 0.5, law, scale) - integral_of_noise(nodes + 0.5 - count, law, scale)
    # between the ends the keys are as dense as the ranks
    nodes = np.concatenate((nodes, [middle])) if reach < middle else nodes
    below = np.concatenate((below, [count / 2])) if below.size < nodes.size else below
    wanted = np.arange(count // 2 + 1)
    half = np.interp(wanted, np.maximum.accumulate(below), nodes)
    half[0] = -far - 0.5
    mirrored = count - 1 - half[: (count + 1) // 2][::-1]
    return np.concatenate((half, mirrored))


def _gathered(centres: Array, step: float) -> tuple[Array, Array]:
    """Centres in order and how many there are of each; many of them as shares of the two nearest multiples of a step.

    The shares keep the mean of every centre, so a distribution about them is off by (step / 8 widths)^2 at most.
    """
    values, counts = np.unique(centres, return_counts=True)
    many = counts.astype(np.float64)
    if values.size <= (values[-1] - values[0]) / step + 2:
        return values, many
    place = (values - values[0]) / step
    low = np.floor(place).astype(np.int64)
    upper = many * (place - low)
    size = int(low[-1]) + 2
    made = np.zeros(size)
    made += np.bincount(low, weights=many - upper, minlength=size)
    made += np.bincount(low + 1, weights=upper, minlength=size)
    return values[0] + step * np.arange(size), made


def _keys_below(nodes: Array, centres: Array, many: Array, width: float) -> Array:
    """How many keys lie below each node on average, of keys that are normal about ordered centres."""
    first = np.searchsorted(centres, nodes - _WIDE * width)  # all that lie before are below
    last = np.searchsorted(centres, nodes + _WIDE * width)
    below = np.concatenate(([0.0], np.cumsum(many)))[first]
    for start in range(0, nodes.size, _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        low, high = int(first[some].min()), int(last[some].max())
        for begin in range(low, high, _AT_ONCE):
            part = slice(begin, min(begin + _AT_ONCE, high))
            shares = ndtr((nodes[some, None] - centres[part]) / width)
            shares[np.arange(part.start, part.stop) < first[some, None]] = 0.0  # counted
            below[some] += shares @ many[part]
    return below


def middle_keys(centres: Array, width: float, ranks: Array) -> Array:
    """The mean of the keys that get a value, of all keys that are normal about these centres with this width.

    `ranks` has the first and the last rank (from 0) of each value; NaN gives NaN.
    """
    count = centres.size
    nodes = np.linspace(centres.min() - _WIDE * width, centres.max() + _WIDE * width, _NODES)
    below = _keys_below(nodes, *_gathered(centres, width / _BINS), width)
    # the sum of the keys up to a place, as an integral over the places
    places = np.linspace(0, count, 1 + count)
    keys = np.interp(places[:-1] + 0.5, np.maximum.accumulate(below), nodes)
    upto = np.concatenate(([0.0], np.cumsum(keys)))
    gone = np.isnan(ranks[:, 0])
    ends = np.where(gone[:, None], 0, ranks).astype(np.int64)
    made = (upto[ends[:, 1] + 1] - upto[ends[:, 0]]) / (ends[:, 1] + 1 - ends[:, 0])
    return np.where(gone, np.nan, made)


@dataclass(frozen=True, eq=False)
class RankNoiseTerm:
    """One column whose values were put back in the order of noisy ranks, ties taken as intervals of ranks."""

    x: Array
    """For each original the first and the last of its strict ranks, from 0."""
    y: Array
    """For each released record those of its value among the original's values."""
    count: int
    """How many ranks there are."""
    law: Law
    scale: float
    """The standard deviation of normal draws; uniform ones lie between minus and plus it."""
    rough: bool = field(init=False)
    _keys: Array = field(init=False)
    _jitter: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_keys", keys_at(self.count, self.law, self.scale))
        # the mean of F (1 - F) over the keys beside one in the middle: s / sqrt(pi), h / 3
        spread = self.scale / np.sqrt(np.pi) if self.law == "normal" else self.scale / 3
        object.__setattr__(self, "_jitter", float(np.sqrt(spread)))
        widest = max((float(np.nanmax(np.ptp(each, axis=1), initial=0.0)) for each in (self.x, self.y)), default=0.0)
        object.__setattr__(self, "rough", self.bounded or widest > self._width)

    @property
    def bounded(self) -> bool:
        """Whether draws have ends, so that some displacements are impossible."""
        return self.law == "uniform"

    @property
    def _width(self) -> float:
        return float(np.hypot(self.scale if self.law == "normal" else self.scale / np.sqrt(3), self._jitter))

    @property
    def _finest(self) -> float:
        """How far one must go for the density to change."""
        return self._width if self.law == "normal" else self._jitter

    @property
    def values(self) -> tuple[Array, Array]:
        return self.x, self.y

    @property
    def coordinates(self) -> tuple[Array, Array]:
        ends = np.where(np.isnan(self.y), 0, self.y).astype(np.int64)
        inner = np.clip(np.stack((self._keys[ends[:, 0]], self._keys[ends[:, 1] + 1])), *self._keys[[1, -2]])
        middle = np.where(np.isnan(self.y[:, 0]), np.nan, inner.mean(axis=0))
        return tuple(_filled(each / self._width)[:, None] for each in (self.x.mean(axis=1), middle))  # type: ignore[return-value]

    def weights(self, rows: Rows, columns: Rows) -> Array:
        x, y = self.x[rows], self.y[columns]
        gone = np.isnan(x[:, 0]) | np.isnan(y[:, 0])
        x, y = (np.where(gone[:, None], 0.0, each) for each in (x, y))
        low, high = self._keys[y[:, 0].astype(np.int64)], self._keys[y[:, 1].astype(np.int64) + 1]
        first, last = x[:, 0] - 0.5, x[:, 1] + 0.5
        made = self._near_middle(low, high, first, last)
        wide = np.flatnonzero(np.maximum(high - low, last - first) > _NARROW * self._finest)
        if wide.size:
            made[wide] = self._over_intervals(low[wide], high[wide], first[wide], last[wide])
        if self.bounded:
            apart = np.maximum(np.maximum(y[:, 0] - x[:, 1], x[:, 0] - y[:, 1]), 0.0)
            made = np.where(apart <= farthest(self.scale), made, -np.inf)
        # a released value that c records have is as likely for each of them
        return np.where(gone, 0.0, made - np.log(y[:, 1] - y[:, 0] + 1))

    def _near_middle(self, low: Array, high: Array, first: Array, last: Array) -> Array:
        """log P of short intervals: the density between their middles."""
        apart = (low + high - first - last) / 2
        with np.errstate(divide="ignore"):
            if self.law == "normal":
                z = apart / self._width
                made: Array = -z * z / 2 - np.log(self._width * np.sqrt(2 * np.pi)) + np.log(high - low)
                return made
            near = -np.abs(apart)
            share = ndtr((near + self.scale) / self._jitter) / (2 * self.scale)
            share = share - ndtr((near - self.scale) / self._jitter) / (2 * self.scale)
            made = np.log(np.maximum(share * (high - low), _LEAST**2))
            return made

    def _over_intervals(self, low: Array, high: Array, first: Array, last: Array) -> Array:
        """log P of intervals, from the nearer tail, so that nothing is lost in differences of numbers near 1."""
        turned = low - last > first - high
        low, high = np.where(turned, -high, low), np.where(turned, -low, high)
        first, last = np.where(turned, -last, first), np.where(turned, -first, last)
        integral = partial(integral_of_noise, law=self.law, scale=self.scale, jitter=self._jitter)
        within = integral(high - first) - integral(high - last) - integral(low - first) + integral(low - last)
        share = within / (last - first)
        # beyond what differences can tell: a normal tail at the nearest ends
        tail = log_ndtr(np.minimum(high - first, 0.0) / self._width) + np.log(_LEAST)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(share > _LEAST, np.log(share), tail))


def farthest(reach: float) -> int:
    """How many ranks a value can move at most when keys move by less than `reach`.

    Whoever is passed started less than twice the reach away.
    """
    return int(2 * reach * (1 + 1e-12))


def _filled(values: Array) -> Array:
    """Missing cells at the mean."""
    gone = np.isnan(values)
    middle = float(values[~gone].mean()) if not gone.all() else 0.0
    return np.where(gone, middle, values)
