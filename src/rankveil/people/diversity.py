"""How different the released values are around a rank: the second condition of permuted privacy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankveil.moments import scale_of
from rankveil.ranks import Order, SortedColumn

Array = NDArray[np.float64]
Criterion = Literal["variance", "distinct", "entropy", "closeness"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)
MEANT: Mapping[Criterion, str] = {
    "variance": "the variance of nominal values is their mean marginality within reach",
    "closeness": "the closeness of nominal values is by the order of their ranks",
}
"""What a criterion is for nominal columns, where that is not what it is for numbers."""


class Diversity:
    """The diversity of S: the values of a released column whose rank is within a reach of a given rank.

    `variance` (population), `distinct` (how many different values), `entropy` (nats), and `closeness`: the earth
    mover's distance, ordered as in t-closeness, between the distribution in S and in the whole column - there
    *smaller* is more diverse.

    The variance of nominal values is their mean marginality: the mean over S of the sum of a value's distances to the
    others in S (Domingo-Ferrer, Sánchez and Rufian-Torrell 2013). Their closeness is by the order of their ranks.
    """

    def __init__(self, column: SortedColumn) -> None:
        self.column = column
        self._counts = (column.ends - column.starts).astype(np.float64)
        self._c_log_c = np.concatenate(([0.0], np.cumsum(self._counts * np.log(self._counts))))
        self._upto = np.concatenate(([0.0], np.cumsum(self._counts)))
        self._upto_sum = np.concatenate(([0.0], np.cumsum(self._upto[1:])))

    def of(self, criterion: Criterion, rank: Array, reach: Array) -> Array:
        """The diversity around every rank."""
        first, last = self.column.window(rank, reach)
        if criterion == "variance":
            nominal = self.column.nominal is not None
            return self._mean_marginality(first, last) if nominal else self._variance(first, last)
        if criterion == "distinct":
            return (last - first).astype(np.float64)
        if criterion == "entropy":
            return self._entropy(first, last)
        return self._closeness(first, last)

    def _entropy(self, first: Order, last: Order) -> Array:
        """log N - sum c log c / N over the counts c of the different values."""
        size = self._upto[last] - self._upto[first]
        entropy = np.log(size) - (self._c_log_c[last] - self._c_log_c[first]) / size
        return np.where(last - first == 1, 0.0, np.maximum(entropy, 0.0))

    def _mean_marginality(self, first: Order, last: Order) -> Array:
        """Sum over pairs of the values of their distance / N; how many pairs have which distance is counted exactly."""
        size: Array = self._upto[last] - self._upto[first]
        apart = self.column.apart()
        if apart is None:  # 1 for all pairs of different categories
            alike = np.concatenate(([0.0], np.cumsum(self._counts**2)))
            found: Array = size - (alike[last] - alike[first]) / size
            return found
        pairs: Array = np.outer(self._counts, self._counts)
        total: Array = np.zeros(first.size)
        upto = np.zeros((self._counts.size + 1,) * 2)
        for distance in np.unique(apart):  # a few: they depend on the levels alone
            upto[1:, 1:] = np.cumsum(np.cumsum(np.where(apart == distance, pairs, 0.0), axis=0), axis=1)
            total += distance * (upto[last, last] - upto[first, last] - upto[last, first] + upto[first, first])
        return total / size

    def _variance(self, first: Order, last: Order) -> Array:
        """From stretches of 1, 2, 4, ... values: each window is made of at most two of each length.

        Running sums would be shorter, and wrong for a window of values that are alike in a column that is not.
        """
        scale = scale_of(self.column.values)
        start, stop = self._upto[first].astype(np.intp), self._upto[last].astype(np.intp)
        size = stop - start
        stretches = _stretches(self.column.values / scale)
        left, right = _stretches(np.zeros(size.size), count=0), _stretches(np.zeros(size.size), count=0)
        while (open_ := start < stop).any():
            odd = np.flatnonzero(open_ & (start % 2 == 1))
            left[:, odd] = _joined(left[:, odd], stretches[:, start[odd]])
            start[odd] += 1
            odd = np.flatnonzero(open_ & (stop % 2 == 1))
            stop[odd] -= 1
            right[:, odd] = _joined(stretches[:, stop[odd]], right[:, odd])
            start, stop = start // 2, stop // 2
            if stretches.shape[1] % 2:
                stretches = np.column_stack((stretches, _stretches(np.zeros(1), count=0)))
            stretches = _joined(stretches[:, ::2], stretches[:, 1::2])
        with np.errstate(over="ignore"):
            variance: Array = _joined(left, right)[3] / size * scale * scale
        return variance

    def _closeness(self, first: Order, last: Order) -> Array:
        """sum over values of |F_S - F_Y| / (k - 1), F the shares up to each of the column's k different values.

        Below the window F_S is 0, above it is 1, and within it F_S - F_Y rises from below 0 to above 0, so running
        sums and one search for the change of sign give the sum.
        """
        k, n = self._counts.size, self._upto[-1]
        if k == 1:
            return np.zeros(first.size)
        size = self._upto[last] - self._upto[first]
        below = self._upto_sum[first] / n
        above = (k - last) - (self._upto_sum[k] - self._upto_sum[last]) / n
        # F_S - F_Y at value i is C_i (1/size - 1/n) - C_first/size, C the running counts: 0 where C_i = root
        slope = 1 / size - 1 / n
        root = np.where(slope > 0, self._upto[first] / size / np.where(slope > 0, slope, 1.0), np.inf)
        turn = np.clip(np.searchsorted(self._upto[1:], root, side="left"), first, last)
        left = (turn - first) * self._upto[first] / size - (self._upto_sum[turn] - self._upto_sum[first]) * slope
        right = (self._upto_sum[last] - self._upto_sum[turn]) * slope - (last - turn) * self._upto[first] / size
        within = np.where(slope > 0, left + right, 0.0)
        total: Array = np.maximum(below + within + above, 0.0)
        return total / (k - 1)


def _stretches(values: Array, *, count: int = 1) -> Array:
    """Stretches of one value each (or none): count, first value, mean above it, sum of squared deviations."""
    nothing = np.zeros(values.size)
    return np.stack((np.full(values.size, float(count)), values, nothing, nothing))


def _joined(a: Array, b: Array) -> Array:
    """Stretches a and the ones b that follow them in sorted order as one (Chan, Golub and LeVeque 1983).

    Means are kept above the first value, so that values at 1e9 that differ by 1e-6 lose nothing.
    """
    count = a[0] + b[0]
    there = a[0] > 0
    above = np.where(there, b[1] - a[1], 0.0) + b[2]
    apart, share = above - a[2], b[0] / np.maximum(count, 1)
    return np.stack(
        (count, np.where(there, a[1], b[1]), a[2] + apart * share, a[3] + b[3] + apart * apart * a[0] * share)
    )
