"""The distance from a random record to the nearest released one, by formula: see docs/theory/null-distribution.md.

n records without ties, m attributes that are independent of each other. A random record has in each attribute a rank
drawn from 1..n. Its distance is the least, over the released records, of the largest difference of ranks.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def reach(d: int, *, n: int) -> NDArray[np.int64]:
    """How many ranks lie within d of each rank 1..n: 2 d + 1 inside, fewer at the edges.

    >>> reach(1, n=4)
    array([2, 3, 3, 2])
    """
    rank = np.arange(1, n + 1)
    return np.minimum(n, rank + d) - np.maximum(1, rank - d) + 1


def without_edges(d: int, *, n: int, m: int) -> float:
    """1 - (1 - w^m)^n with the window of the inside everywhere, w = (2 d + 1) / n."""
    return 1 - (1 - min(1.0, (2 * d + 1) / n) ** m) ** n


def mean_window(d: int, *, n: int, m: int) -> float:
    """1 - (1 - w^m)^n with the mean window, w = ((2 d + 1) n - d (d + 1)) / n^2 for d below n."""
    return 1 - (1 - (float(reach(d, n=n).mean()) / n) ** m) ** n


def averaged(d: int, *, n: int, m: int) -> float:
    """The mean over the places of the random record of 1 - (1 - prod_j w_j)^n, w_j its own window in attribute j."""
    reaches, times = np.unique(reach(d, n=n), return_counts=True)
    boxes: Array = np.ones(1)
    shares: Array = np.ones(1)
    for _ in range(m):
        boxes = np.outer(boxes, reaches / n).ravel()
        shares = np.outer(shares, times / n).ravel()
    return float(1 - np.sum(shares * (1 - boxes) ** n))


def exact(d: int, *, n: int, m: int) -> float:
    """The probability itself: records in the box so far are drawn on, attribute by attribute, without replacement.

    >>> round(exact(0, n=20, m=3), 6)  # 20 records in 20^3 places
    0.0025
    """
    from scipy.stats import hypergeom

    reaches, times = np.unique(reach(d, n=n), return_counts=True)
    most = int(reaches.max())
    inside = np.zeros(most + 1)
    inside[reaches] = times / n
    count = np.arange(most + 1)
    step = np.zeros((most + 1, most + 1))
    for size, share in zip(reaches, times / n, strict=True):
        step += share * hypergeom.pmf(count[None, :], n, count[:, None], size)
    for _ in range(m - 1):
        inside = inside @ step
    return float(1 - inside[0])


def simulated(d: int, *, n: int, m: int, tables: int, rng: np.random.Generator) -> float:
    """The share of random tables in which a random record is within d of the nearest record."""
    near = 0
    for _ in itertools.repeat(None, tables):
        moved = np.abs(np.column_stack([rng.permutation(n) for _ in range(m)]) - rng.integers(n, size=m))
        near += int(moved.max(axis=1).min() <= d)
    return near / tables
