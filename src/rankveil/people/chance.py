"""What chance alone gives: the distance at which a random record finds a match."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import ParameterError
from rankveil.linkage import Linker
from rankveil.seeds import Stream

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

DRAWS = 10_000
"""Random records drawn unless another number is asked for."""
EXHAUSTIVE = 1_000_000
"""Up to this many possible records, all of them are tried instead of a sample."""
_FINE = 50
"""With more different distances than this, two distributions are compared on this many common bins."""

_AT_A_TIME = 100_000
"""Random records that are looked for together."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Distribution:
    """Distances and how often each comes."""

    values: Array
    shares: Array
    draws: int
    exhaustive: bool

    @classmethod
    def of(cls, distances: Array, *, exhaustive: bool = False) -> Distribution:
        """The distribution of some distances."""
        values, counts = np.unique(distances, return_counts=True)
        return cls(values, counts / distances.size, distances.size, exhaustive)

    def at_most(self, distance: Array) -> Array:
        """P(random distance <= distance); (1 + count) / (1 + draws) for a sample."""
        counts = np.rint(np.concatenate(([0.0], np.cumsum(self.shares))) * self.draws)
        below: Array = counts[np.searchsorted(self.values, distance, side="right")]
        return below / self.draws if self.exhaustive else (1 + below) / (1 + self.draws)

    def to_dict(self) -> dict[str, float]:
        """Distance to share, whole distances without decimals."""
        return {str(whole(value)): float(share) for value, share in self._items()}

    def _items(self) -> zip[tuple[float, float]]:
        return zip(self.values.tolist(), self.shares.tolist(), strict=True)


def whole(number: float) -> int | float:
    """A whole number as one, a half as it is."""
    return int(number) if float(number).is_integer() else float(number)


def check_draws(draws: int) -> None:
    """The number of random records is one."""
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 1:
        raise ParameterError(f"draws must be a whole number of at least 1, not {draws!r}")


@dataclass(frozen=True, eq=False)
class Chance:
    """Records of independent values, each value from a record of its own: which rows they take their values from.

    All n^m such records are tried when there are at most a million; otherwise `draws` of them, by the stream.
    """

    records: int
    picks: tuple[Rows, ...]
    """For each attribute the rows that were drawn; nothing when all are tried."""
    attributes: int

    @classmethod
    def of(cls, records: int, attributes: int, *, draws: int, rng: Stream) -> Chance:
        """What is tried."""
        if records**attributes <= EXHAUSTIVE:
            return cls(records, (), attributes)
        return cls(records, tuple(rng.integers(draws, below=records) for _ in range(attributes)), attributes)

    @property
    def exhaustive(self) -> bool:
        """Whether all are tried."""
        return not self.picks

    def __len__(self) -> int:
        return self.records**self.attributes if self.exhaustive else self.picks[0].size

    def rows(self, start: int, stop: int) -> list[Rows]:
        """For each attribute the rows from which the records from start to before stop take their values."""
        if not self.exhaustive:
            return [pick[start:stop] for pick in self.picks]
        number, rows = np.arange(start, stop), []
        for _ in range(self.attributes):
            number, row = np.divmod(number, self.records)
            rows.append(row)
        return rows


def by_chance(
    ranks: Array, linker: Linker, *, draws: int, rng: Stream, progress: Progress | None = None
) -> Distribution:
    """The distribution of the distance from a record of independent values to the nearest of the linker's records."""
    tried = Chance.of(*ranks.shape, draws=draws, rng=rng)
    found = np.empty(len(tried))
    for start in range(0, found.size, _AT_A_TIME):
        stop = min(start + _AT_A_TIME, found.size)
        records = np.column_stack([ranks[row, j] for j, row in enumerate(tried.rows(start, stop))])
        found[start:stop] = linker.distances(records)
        if progress:
            progress(stop, found.size)
    return Distribution.of(found, exhaustive=tried.exhaustive)


def by_guessing(right: int | None, *, claims: int, records: int) -> float | None:
    """P(as many right or more) when each claim names one of the released records blindly; None where nothing is known.

    >>> [by_guessing(right, claims=1, records=4) for right in (0, 1, None)]
    [1.0, 0.25, None]
    """
    if right is None or claims == 0:
        return None
    from scipy.stats import binom

    return float(binom.sf(right - 1, claims, 1 / records))


def hellinger(a: Distribution, b: Distribution) -> tuple[float, int | None]:
    """Hellinger distance of two distributions, and the number of bins when distances had to be grouped."""
    support = np.union1d(a.values, b.values)
    bins = None
    if support.size > _FINE:
        bins = _FINE
        edges = np.linspace(support[0], support[-1], bins + 1)
        p, q = (np.histogram(one.values, bins=edges, weights=one.shares)[0] for one in (a, b))
    else:
        p, q = (_on(support, one) for one in (a, b))
    return float(np.sqrt(max(0.0, 1.0 - float(np.sum(np.sqrt(p * q)))))), bins


def kolmogorov_smirnov(a: Distribution, b: Distribution) -> float:
    """The p-value of the two-sample Kolmogorov-Smirnov test (asymptotic; ties make it conservative)."""
    from scipy.special import kolmogorov

    support = np.union1d(a.values, b.values)
    gap = float(np.max(np.abs(np.cumsum(_on(support, a)) - np.cumsum(_on(support, b)))))
    size = a.draws * b.draws / (a.draws + b.draws)
    return float(kolmogorov(np.sqrt(size) * gap))


def _on(support: Array, one: Distribution) -> Array:
    shares = np.zeros(support.size)
    shares[np.searchsorted(support, one.values)] = one.shares
    return shares
