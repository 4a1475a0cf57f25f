"""Least squares with confidence intervals, in the original's standard deviations: for measures of a stated use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.canonical import DEPENDENT, crossed, orthonormal
from rankveil.catalogue import Array
from rankveil.errors import NotApplicableError
from rankveil.multivariate import FARTHEST, Standardised, standardised, weighted

Rows = NDArray[np.intp]

_EQUAL = DEPENDENT**0.5
"""Coefficients of two exact fits that differ by less than this part are equal: so much rounding may do."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """Confidence intervals: middles and half lengths, in the units of the original; NaN where there is none."""

    middle: Array
    half: Array
    share: float
    """The share of the target's variance that the regression explains."""

    def ends(self, i: int) -> list[float] | None:
        """Interval i as its two ends."""
        if np.isnan(self.middle[i]):
            return None
        return [float(self.middle[i] - self.half[i]), float(self.middle[i] + self.half[i])]


@dataclass(frozen=True, eq=False)
class Regressions:
    """A regression on the original and on the masked table."""

    original: Intervals
    masked: Intervals
    kept: Rows
    """The columns that have a slope in the original; the intervals are those of the intercept and of these."""
    overlap: Array
    """Of the intercept and of each slope."""
    units: Array
    """What one standard deviation of the target per standard deviation of each kept column is in their own units."""


def regressions(
    x: Array,
    y: Array,
    weight_x: Array | None,
    weight_y: Array | None,
    *,
    column: int,
    rest: Rows,
    besides: Rows | None = None,
    level: float,
) -> Regressions:
    """The target `column` explained by the columns `rest`, in both tables; in the masked one also by `besides`.

    Columns that depend on others in the original are left out of both.
    """
    base, other = standardised(x, weight_x), standardised(y, weight_y)
    fit = fit_of(base.z, column, rest, weight_x)
    if fit.there.size < rest.size:  # again without the others, so that equal tables agree to the last digit
        fit = fit_of(base.z, column, fit.there, weight_x)
    kept = fit.there
    if kept.size == 0:
        raise NotApplicableError("all other columns are constant in the original, and explain nothing")
    original = intervals_of(fit, base, base, column, kept, level=level)
    explaining = kept if besides is None else np.append(kept, besides)
    masked = intervals_of(fit_of(other.z, column, explaining, weight_y), other, base, column, kept, level=level)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        units = base.spread[column] / base.spread[kept]
    return Regressions(original, masked, kept, overlaps(original, masked), units)


@dataclass(frozen=True, eq=False)
class Fit:
    """Least squares of the standardised target on standardised columns, without those that are no help."""

    there: Rows
    """The columns that have a slope."""
    slopes: Array
    errors: float
    """The unit of the standard errors below, 0 of an exact fit."""
    of_slopes: Array
    at: Callable[[Array], float]
    """The standard error of the fit for a record so many standard deviations from the means."""
    share: float
    free: int


def fit_of(z: Array, column: int, columns: Rows, weight: Array | None) -> Fit:
    if weight is not None:
        return _weighted_fit(z, column, columns, weight)
    basis = orthonormal(z[:, columns])
    there = columns[list(basis.kept)]
    centred = (z[:, column] - np.mean(z[:, column]))[:, None]
    weights = crossed(basis.q, centred)
    left = float(np.sum((centred - basis.q @ weights) ** 2)) / len(z)
    inverse: Array = np.linalg.inv(crossed(basis.q, np.ascontiguousarray(z[:, there]))).astype(np.float64)
    exact = left <= DEPENDENT  # the rule by which a column depends on others: what is left over is rounding
    free = len(z) - there.size - 1
    errors = 0.0 if exact else (left * len(z) / max(free, 1)) ** 0.5
    share = (1.0 if exact else max(0.0, 1.0 - left)) if centred.any() else 0.0

    def at(away: Array) -> float:
        return float(np.sqrt(1 / len(z) + np.sum((away @ inverse) ** 2)))

    return Fit(there, (inverse @ weights)[:, 0], errors, np.sqrt(np.sum(inverse**2, axis=1)), at, share, free)


def _weighted_fit(z: Array, column: int, columns: Rows, weight: Array) -> Fit:
    """Weighted least squares, with standard errors from the errors of the records as they are.

    b varies as the sum of w_i e_i d_i (D'WD)^-1 over independent records does, d_i = (1, z_i): the "sandwich" of survey
    regression (Fuller 1975; Binder 1983), times n / (n - coefficients).
    """
    rooted = weighted(z, weight)
    there = columns[_independent(rooted[:, columns])]
    target, given = rooted[:, column], rooted[:, there]
    q, r = np.linalg.qr(given)
    slopes = np.linalg.solve(r, q.T @ target)
    left = target - given @ slopes
    exact = float(np.sum(left**2)) <= DEPENDENT
    free = len(z) - there.size - 1
    unit = weighted(np.ones((len(z), 1)), weight)  # the root of each record's share
    influence = np.column_stack((unit, np.linalg.solve(r, q.T).T)) * left[:, None]
    covariance = influence.T @ influence * (len(z) / max(free, 1))
    explained = (1.0 if exact else max(0.0, 1.0 - float(np.sum(left**2)))) if target.any() else 0.0

    def at(away: Array) -> float:
        record = np.append(1.0, away)
        return float(np.sqrt(record @ covariance @ record))

    of_slopes = np.sqrt(np.diag(covariance)[1:])
    return Fit(there, slopes, 0.0 if exact else 1.0, of_slopes, at, explained, free)


def _independent(given: Array) -> Rows:
    """The columns of length 1 of whose variance the others leave something unexplained, in their order."""
    from scipy.linalg import qr

    if given.shape[1] == 0:
        return np.empty(0, dtype=np.intp)
    r, order = qr(given, mode="r", pivoting=True)
    return np.sort(order[: np.count_nonzero(np.diag(r) ** 2 > DEPENDENT)])


def intervals_of(
    fit: Fit, own: Standardised, base: Standardised, column: int, kept: Rows, *, level: float
) -> Intervals:
    """Intervals of the intercept and the slopes of `kept`, from the table's own units brought into those of base."""
    from scipy.special import stdtrit

    if fit.free < 1:
        raise NotApplicableError("a table has no more records than the regression has coefficients")
    reach = float(stdtrit(fit.free, 0.5 + level / 200)) * fit.errors
    asked = np.isin(fit.there, kept)
    there = fit.there[asked]
    places = 1 + np.searchsorted(kept, there)
    rate = _log_ratio(own.spread[column], base.spread[column])
    change = _bounded_exp(rate - _log_ratio(own.spread[there], base.spread[there]))
    middle, half = np.full(kept.size + 1, np.nan), np.full(kept.size + 1, np.nan)
    middle[places] = change * fit.slopes[asked]
    half[places] = change * reach * fit.of_slopes[asked]
    away = own.applied(base.mean[None, :])[0, fit.there]  # the record with the original's means
    shift = base.applied(own.mean[None, :])[0, column]
    middle[0] = shift + _bounded_exp(rate) * np.sum(away * fit.slopes)
    half[0] = _bounded_exp(rate) * reach * fit.at(away)
    return Intervals(middle, half, fit.share)


def _log_ratio(a: Any, b: Any) -> Any:
    """The logarithm of a / b, because 1e300 / 1e-300 is no number."""
    least = np.nextafter(0.0, 1.0)
    return np.log(np.maximum(a, least)) - np.log(np.maximum(b, least))


def _bounded_exp(exponent: Any) -> Any:
    """The exponential, between 1 / FARTHEST and FARTHEST."""
    most = np.log(FARTHEST)
    return np.exp(np.clip(exponent, -most, most))


def overlaps(a: Intervals, b: Intervals) -> Array:
    """For each coefficient the mean of the shares that the two intervals have in common, 0 where one is missing."""
    apart = np.abs(a.middle - b.middle)
    # from half lengths, not from ends: beside a large coefficient the ends of a short interval are one number
    common = np.maximum(np.minimum(2 * np.minimum(a.half, b.half), a.half + b.half - apart), 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shared = (common / (2 * a.half) + common / (2 * b.half)) / 2
    equal = apart <= _EQUAL * np.maximum(1.0, np.abs(a.middle))
    points = (a.half == 0) & (b.half == 0)
    found: Array = np.where(points, equal, np.where((a.half > 0) & (b.half > 0), shared, 0.0)).astype(np.float64)
    return found
