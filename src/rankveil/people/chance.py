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

DRAWS = 10_000
"""Random records drawn unless another number is asked for."""
EXHAUSTIVE = 1_000_000
"""Up to this many possible records, all of them are tried instead of a sample."""
_FINE = 50
"""With more different distances than this, two distributions are compared on this many common bins."""

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


def by_chance(
    ranks: Array, linker: Linker, *, draws: int, rng: Stream, progress: Progress | None = None
) -> Distribution:
    """The distribution of the distance from a record of independent values to the nearest of the linker's records.

    All n^m such records are tried when there are at most a million; otherwise `draws` of them, by the stream.
    """
    n, m = ranks.shape
    exhaustive = n**m <= EXHAUSTIVE
    total = n**m if exhaustive else draws
    picks = [np.empty(0, dtype=np.int64)] * m if exhaustive else [rng.integers(draws, below=n) for _ in range(m)]
    found = np.empty(total)
    step = 100_000
    for start in range(0, total, step):
        stop = min(start + step, total)
        if exhaustive:
            number, rows = np.arange(start, stop), []
            for _ in range(m):
                number, row = np.divmod(number, n)
                rows.append(row)
        else:
            rows = [pick[start:stop] for pick in picks]
        records = np.column_stack([ranks[row, j] for j, row in enumerate(rows)])
        found[start:stop] = linker.distances(records)
        if progress:
            progress(stop, total)
    return Distribution.of(found, exhaustive=exhaustive)


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
