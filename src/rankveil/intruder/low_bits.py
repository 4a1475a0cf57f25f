"""Low bits: which doubles can be released for an original at all.

A draw of a stream is one of 2^52 uniform numbers, and the released double a formula of it. Where fewer than about one
of those numbers falls on each released double, most doubles cannot be reached from a given original, and one that was
released tells which originals it may come from: however much noise there is. Rounded numbers have no such bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankveil.intruder.model import NoisePart, Part, Values
from rankveil.intruder.simulation import Simulated
from rankveil.likelihood import Noise

Array = NDArray[np.float64]
Places = NDArray[np.int64]

DRAWS = 2.0**52
_NEIGHBOURS = (0, 1, -1, 2, -2, 3, -3)
"""Draws that are tried around the one that inverting the formula gives, in floating point that is off by one or two."""
_MANY = 1.5
"""Draws for each double above which a double says nothing."""
_LEAST = 0.02
"""Evidence of a true link, in nats, below which a column is not worth the work."""
_DECIMALS = 6
"""Decimals down to which released numbers are looked at as rounded ones."""


def reached(x: Array, y: Array, noise: Noise) -> Array:
    """log(draws that give y from x / draws that would on average); minus infinity for none, 0 where it says nothing.

    >>> noise = Noise("normal", 5.0)
    >>> made = reached(np.array([1.0, 1.0]), 1.0 + 5.0 * np.array([0.0, 1e-17]), noise)
    >>> made.shape
    (2,)
    """
    with np.errstate(all="ignore"):
        return _normal(x, y, noise.scale) if noise.law == "normal" else _factor(x, y)


def _normal(x: Array, y: Array, spread: float) -> Array:
    """y = x + spread ndtri(u), u = (k + 1/2) / 2^52."""
    from scipy.special import ndtr, ndtri

    z = (y - x) / spread
    number = np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * np.abs(np.spacing(y)) / spread * DRAWS
    asked = np.flatnonzero((number <= _MANY) & (number > 0))
    made = np.zeros(x.size)
    a, b = x[asked], y[asked]
    middle = np.floor(ndtr(z[asked]) * DRAWS)
    count = np.zeros(asked.size)
    for away in _NEIGHBOURS:
        k = middle + away
        u = (k + 0.5) / DRAWS
        count += (a + spread * ndtri(u) == b) & (k >= 0) & (k < DRAWS)
    made[asked] = np.log(count) - np.log(number[asked])
    return made


def _factor(x: Array, y: Array) -> Array:
    """y = x f, f a double near 1."""
    f = y / x
    number = np.abs(np.spacing(y)) / (np.abs(x) * np.where(f < 1, 2.0**-53, 2.0**-52))
    asked = np.flatnonzero((number <= _MANY) & (number > 0) & np.isfinite(f) & (f > 0.5) & (f < 2))
    made = np.zeros(x.size)
    a, b, near = x[asked], y[asked], f[asked]
    count = np.zeros(asked.size)
    step = np.where(near < 1, 2.0**-53, 2.0**-52)
    for away in _NEIGHBOURS[:5]:
        count += a * (near + away * step) == b
    made[asked] = np.log(count) - np.log(number[asked])
    return made


@dataclass(frozen=True, eq=False)
class LowBitsTerm:
    """Which links the last bits of some columns allow."""

    x: Array
    y: Array
    noise: tuple[Noise, ...]
    bounded: bool = True
    rough: bool = True

    @property
    def values(self) -> tuple[Array, Array]:
        return self.x, self.y

    @property
    def coordinates(self) -> tuple[Array, Array]:
        return np.zeros((len(self.x), 0)), np.zeros((len(self.y), 0))

    def weights(self, rows: Places, columns: Places) -> Array:
        total = np.zeros(rows.size)
        alive = np.arange(rows.size)
        for j, noise in enumerate(self.noise):
            x, y = self.x[rows[alive], j], self.y[columns[alive], j]
            told = reached(x, y, noise)
            total[alive] += np.where(np.isnan(x) | np.isnan(y), 0.0, told)
            alive = alive[np.isfinite(total[alive])]
        return total


@dataclass(frozen=True, eq=False)
class LowBitsPart:
    """Columns of noise whose last bits say something."""

    parts: tuple[NoisePart, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts)

    def term(self, released: Values) -> LowBitsTerm:
        return LowBitsTerm(
            np.column_stack([part.x for part in self.parts]),
            np.column_stack([released[part.name] for part in self.parts]),
            tuple(part.noise for part in self.parts),
        )


def low_bits(parts: Sequence[Part], released: Values, simulated: Sequence[Simulated]) -> LowBitsPart | None:
    """The columns whose last bits are evidence: the formula gives every released number of simulated releases."""
    told: list[tuple[float, NoisePart]] = []
    for part in parts:
        if not isinstance(part, NoisePart) or not _open(part, released):
            continue
        mine = [reached(part.x[each.origin], each.values[part.name], part.noise) for each in simulated[:1]]
        gain = float(np.mean([np.nanmean(each) for each in mine])) if mine else -np.inf
        if np.isfinite(gain) and gain >= _LEAST:
            told.append((gain, part))
    # what excludes most comes first: the others are asked of what is left
    return LowBitsPart(tuple(part for _, part in sorted(told, key=lambda each: -each[0]))) if told else None


def _open(part: NoisePart, released: Mapping[str, Array]) -> bool:
    """Whether the numbers are as the noise left them."""
    noise = part.noise
    plain = (noise.law == "normal" and not noise.relative) or (noise.law == "uniform" and noise.relative)
    if not plain or part.grid or np.isfinite(part.clip).any() or noise.scale <= 0:
        return False
    y = released[part.name]
    y = y[~np.isnan(y)]
    return bool(y.size and np.mean(np.round(y, _DECIMALS) == y) < 0.5)
