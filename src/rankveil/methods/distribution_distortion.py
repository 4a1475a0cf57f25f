"""Distribution distortion: draws from a fitted distribution in place of the values of the same rank."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankveil.catalogue import Array, Outcome, method
from rankveil.errors import ParameterError
from rankveil.likelihood import KeptRanks
from rankveil.moments import mean, standard_deviation
from rankveil.ranks import strict_order
from rankveil.seeds import Stream

_NARROW = 1e-3
"""Standard deviation over mean below which gamma and lognormal are normal, and their likelihoods lose their digits."""
_KNOTS = 2_000
"""Where the gamma quantile is computed; between them it is interpolated, to eleven digits."""
_SAMPLE = 20_000
"""Values on which the search for the Weibull shape begins."""


@dataclass(frozen=True)
class Fit:
    """A distribution fitted by maximum likelihood."""

    family: str
    parameters: dict[str, float]
    loglikelihood: float
    quantiles: Callable[[Array], Array]
    """Values at sorted probabilities."""

    @property
    def aic(self) -> float:
        """Akaike's criterion: 2 (number of parameters) - 2 log likelihood."""
        return 2 * len(self.parameters) - 2 * self.loglikelihood

    def __str__(self) -> str:
        return f"{self.family} ({', '.join(f'{name} {value:.6g}' for name, value in self.parameters.items())})"


@method(
    title="Distortion by probability distribution",
    source="Liew, Choi and Liew 1985",
    kinds=("numeric",),
    tells="values of a column are draws from a distribution fitted to it (normal, lognormal, gamma, exponential or "
    "Weibull), and the order of the records in each column is the original's",
)
def distribution_distortion(x: Array, *, rng: Stream) -> Outcome:
    """Distribution distortion: n draws from the distribution that fits x best take the places of x by rank.

    Best is the least AIC = 2 p - 2 log L among normal, lognormal, gamma, exponential and Weibull (p parameters,
    fitted by maximum likelihood; none has a location but the normal). Exponential needs values of 0 or more, and
    lognormal, gamma and Weibull positive ones, with a standard deviation of at least a thousandth of the mean: below
    that they cannot be told from the normal. Draws are made by inversion; ties in x take their ranks at random.
    A constant column stays as it is.
    """
    fits = fitted(x)
    if not fits:
        return Outcome(x.copy(), notes=("the column is constant: nothing can be fitted, and it stays as it is",))
    best = min(fits, key=lambda fit: fit.aic)
    order = strict_order(x, ties=rng.bits(x.size))
    with np.errstate(over="ignore"):
        drawn = best.quantiles(np.sort(rng.random(x.size)))
    if not np.all(np.isfinite(drawn)):
        raise ParameterError(
            f"distribution_distortion: draws from the fitted {best.family} distribution are too large for a number; "
            "write the column in a larger unit (divide it)"
        )
    masked = np.empty_like(x)
    masked[order] = drawn
    behind = [f"{fit.family} +{fit.aic - best.aic:.4g}" for fit in sorted(fits, key=lambda fit: fit.aic)[1:]]
    note = f"drawn from {best}, computed from the original, so publishing it tells of the original"
    note += f"; AIC of the others: {', '.join(behind)}" if behind else ""
    return Outcome(masked, notes=(note,))


def fitted(x: Array) -> list[Fit]:
    """The distributions that the values allow and whose parameters are numbers; none for a constant column."""
    centre, spread, least = mean(x), standard_deviation(x), float(x.min())
    if spread == 0.0:
        return []
    fits = [_normal(x.size, centre, spread)]
    if least > 0.0 and spread >= _NARROW * centre:
        logs = np.log(x)
        fits += [_lognormal(logs), _gamma(centre, logs)]
    if least >= 0.0:
        fits.append(_exponential(x.size, centre))
    if least > 0.0 and spread >= _NARROW * centre:
        fits.append(_weibull(logs))
    return [fit for fit in fits if all(map(math.isfinite, fit.parameters.values()))]


def _normal(n: int, centre: float, spread: float) -> Fit:
    """Mean and population standard deviation."""
    from scipy.special import ndtri

    likelihood = -n * (math.log(spread) + (math.log(2 * math.pi) + 1) / 2)
    return Fit("normal", {"mean": centre, "sd": spread}, likelihood, lambda u: centre + spread * ndtri(u))


def _lognormal(logs: Array) -> Fit:
    """Mean and population standard deviation of the logarithms."""
    from scipy.special import ndtri

    of_logs = _normal(logs.size, mean(logs), standard_deviation(logs))
    centre, spread = of_logs.parameters.values()
    return Fit(
        "lognormal",
        {"log_mean": centre, "log_sd": spread},
        of_logs.loglikelihood - float(np.sum(logs)),
        lambda u: np.exp(centre + spread * ndtri(u)),
    )


def _exponential(n: int, centre: float) -> Fit:
    """The mean."""
    return Fit("exponential", {"mean": centre}, -n * (math.log(centre) + 1), lambda u: -centre * np.log1p(-u))


def _gamma(centre: float, logs: Array) -> Fit:
    """The root of log k - digamma(k) = log mean(x) - mean(log x), by Newton's steps in 1 / k (Minka 2002)."""
    from scipy.special import digamma, gammaln, polygamma

    log_mean, mean_log = math.log(centre), mean(logs)
    s = log_mean - mean_log
    shape = (3 - s + math.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s)
    for _ in range(10):
        step = (-s + math.log(shape) - digamma(shape)) / (shape**2 * (1 / shape - polygamma(1, shape)))
        before, shape = shape, float(1 / (1 / shape + step))
        if abs(shape - before) <= 1e-12 * shape:
            break
    log_scale = log_mean - math.log(shape)
    each = (shape - 1) * mean_log - shape - float(gammaln(shape)) - shape * log_scale
    return Fit(
        "gamma",
        {"shape": shape, "scale": _exponential_of(log_scale)},
        logs.size * each,
        lambda u: np.exp(log_scale + _log_gamma_quantiles(u, shape)),
    )


def _exponential_of(logarithm: float) -> float:
    """The number with that logarithm, infinite where there is none so large."""
    with np.errstate(over="ignore"):
        return float(np.exp(logarithm))


def _log_gamma_quantiles(u: Array, shape: float) -> Array:
    """Logarithms of the quantiles of the gamma distribution of scale 1.

    The inverse of the incomplete gamma function takes most of a microsecond. For many values it is computed at knots,
    equally far apart in the normal score of u, and its logarithm interpolated by cubic pieces with the exact slope.
    """
    from scipy.interpolate import CubicHermiteSpline
    from scipy.special import gammainccinv, gammaincinv, gammaln, ndtr, ndtri

    with np.errstate(divide="ignore"):
        if u.size <= _KNOTS:
            direct: Array = np.log(gammaincinv(shape, u))
            return direct
        z = ndtri(u)
        knots = np.linspace(z[0], z[-1], _KNOTS)
        quantiles = np.where(knots < 0, gammaincinv(shape, ndtr(knots)), gammainccinv(shape, ndtr(-knots)))
        logs = np.log(quantiles)
        if not np.all(np.isfinite(logs)):  # a shape so small that the lowest quantiles are 0
            return np.asarray(np.log(gammaincinv(shape, u)))
    log_density = shape * logs - quantiles - gammaln(shape)  # of log x
    slopes = np.exp(-(knots**2) / 2 - math.log(2 * math.pi) / 2 - log_density)
    interpolated: Array = CubicHermiteSpline(knots, logs, slopes)(z)
    return interpolated


def _weibull(logs: Array) -> Fit:
    """The root of sum(x^k log x) / sum(x^k) - 1/k = mean(log x), by Newton's steps; the left side grows with k."""
    top, mean_log = float(logs.max()), mean(logs)
    shape = math.pi / math.sqrt(6) / standard_deviation(logs)
    if logs.size > 4 * _SAMPLE:  # most steps on a part: what it finds is near
        part = logs[:: logs.size // _SAMPLE] - top
        shape = _weibull_shape(part, float(np.mean(part)), shape)
    below = logs - top
    shape = _weibull_shape(below, mean_log - top, shape)
    log_scale = top + math.log(float(np.mean(np.exp(shape * below)))) / shape
    each = math.log(shape) - shape * log_scale + (shape - 1) * mean_log - 1
    return Fit(
        "Weibull",
        {"shape": shape, "scale": _exponential_of(log_scale)},
        logs.size * each,
        lambda u: np.exp(log_scale + np.log(-np.log1p(-u)) / shape),
    )


def _weibull_shape(below: Array, mean_log: float, shape: float) -> float:
    """Newton's steps from a first shape; `below` are logarithms less the largest, so that no power overflows."""
    for _ in range(50):
        powers = np.exp(shape * below)
        total = float(np.sum(powers))
        powers *= below
        first = float(np.sum(powers)) / total
        second = float(powers @ below) / total
        step = (first - 1 / shape - mean_log) / (second - first**2 + 1 / shape**2)
        before, shape = shape, max(shape - step, shape / 2)
        if abs(shape - before) <= 1e-9 * shape:
            break
    return shape


@distribution_distortion.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> KeptRanks:
    """Ranks stay: a released value tells the rank of the original."""
    return KeptRanks()
