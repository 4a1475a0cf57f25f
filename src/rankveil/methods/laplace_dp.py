"""Laplace noise for differential privacy: y = clamp(x) + Laplace, between bounds that do not come from the data.

For a release opendp draws the noise: on exact numbers, rounded once at the end, so that the last digits of a released
value say nothing about the original. With `fast` it is computed in floating point from the seed, for studies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np

from rankveil import dates
from rankveil.catalogue import DATED, Array, Outcome, Range, method
from rankveil.errors import ParameterError
from rankveil.likelihood import Noise, Simulated
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream

_BEYOND_THE_MAXIMUM = 1.5
STUDY = "for studies: floating-point noise, no guarantee against floating-point attacks"


@method(
    title="Laplace noise for differential privacy",
    source="Dwork, McSherry, Nissim and Smith 2006",
    kinds=("numeric",),
    strength="epsilon",
    stronger="lower",
    local_with="upper",
    reproducible_with="fast",
    by_parts=True,
    survives="data-free",
    from_data={"bounds": "no guarantee holds, because the size of the noise gives the maximum away"},
    seed_tells="the noise can be subtracted",
    tells="every value was clamped between lower and upper, and Laplace noise of scale m (upper - lower) / epsilon was "
    "added, m the number of columns of the step: the variance of a masked column is 2 scale^2 more than that of the "
    "clamped values, whose means and covariances are unbiased",
)
def laplace_dp(
    x: Array,
    *,
    epsilon: Annotated[float, Range(0, above=True), "the privacy budget of the step, all its columns together"],
    lower: Annotated[float | None, DATED, "values below become this; chosen without looking at the data"] = None,
    upper: Annotated[float | None, DATED, "values above become this; chosen without looking at the data"] = None,
    bounds: Annotated[Literal["given", "data"], "data for 0 to 1.5 times the maximum: a study, no guarantee"] = "given",
    fast: Annotated[bool, "noise from the seed, in floating point: for studies"] = False,
    temporal: Any = None,
    rows: Rows = HERE,
    rng: Stream,
    attributes: int,
) -> Outcome:
    """Laplace noise: y = clamp(x, lower, upper) + Laplace(m (upper - lower) / epsilon), m columns in the step.

    One record changed moves each clamped value of that record by at most upper - lower, so each of the m columns
    spends epsilon / m, and the step epsilon. A column with an epsilon of its own spends that epsilon / m.
    """
    least, largest = dates.limit("lower", lower, temporal), dates.limit("upper", upper, temporal)
    if least is not None and largest is not None and least >= largest and temporal is not None:
        raise ParameterError(f"laplace_dp: lower ({lower}) must be before upper ({upper})")
    low, high = _bounds_of(x, lower=least, upper=largest, bounds=bounds, rows=rows)
    clamped = np.clip(x, low, high)
    counts = {"clamped": int(np.sum(clamped != x))}
    notes = [STUDY] if fast else []
    notes += ["no guarantee: the bounds were taken from the data"] if bounds == "data" else []
    if low == high:  # a column of zeros with bounds=data
        return Outcome(clamped, counts, (*notes, "all values are 0, so its bounds leave no room for noise"))
    width = widest(low, high)
    scale = finite_scale("laplace_dp", attributes * width / epsilon)
    if fast:
        return Outcome(clamped + scale * laplace(rng.random(x.size)), counts, tuple(notes))
    share = Fraction(epsilon) / attributes
    return Outcome(safe_laplace("laplace_dp", clamped, scale, sensitivity=width, epsilon=share), counts, tuple(notes))


@laplace_dp.scales
def _(parameters: Mapping[str, Any], *, attributes: int, temporal: Any) -> float | None:
    """That of the noise, from the bounds; numbers of opendp stay as they are: its grid of 2^-1074 is free of data."""
    if not parameters["fast"]:
        return 0.0
    if parameters["bounds"] == "data":
        return None  # nothing is guaranteed
    ends = {end: dates.limit(end, parameters[end], temporal) for end in ("lower", "upper")}
    low, high = _bounds_of(np.empty(0), **ends, bounds="given", rows=HERE)
    return attributes * widest(low, high) / float(parameters["epsilon"])


@laplace_dp.corrects
def _(mean: Array, covariance: Array, parameters: Sequence[dict[str, Any]], *, attributes: int) -> tuple[Array, Array]:
    """Var(clamped x) = Var(y) - 2 scale^2; means and covariances of different columns are as they are."""
    corrected = covariance.copy()
    for j, given in enumerate(parameters):
        if given["bounds"] == "data":
            raise ParameterError("there is no correction for laplace_dp with bounds=data: the bounds are not published")
        if isinstance(given["upper"], str):
            raise ParameterError("there is no correction for laplace_dp of dates and times: leave those columns out")
        scale = attributes * (given["upper"] - given["lower"]) / given["epsilon"]
        corrected[j, j] = covariance[j, j] - 2 * scale**2
    return mean, corrected


@laplace_dp.guarantees
def _(
    parameters: Mapping[str, Mapping[str, Any]], counts: Mapping[str, Mapping[str, int]], names: Sequence[str]
) -> list[str]:
    """Differential privacy of the columns whose bounds were given; each spends its epsilon / m."""
    covered = {name: parameters[name] for name in names if parameters[name]["bounds"] == "given"}
    if not covered:
        return []
    spent = math.fsum(given["epsilon"] for given in covered.values()) / len(parameters)
    return [sentence(list(covered), spent, fast=any(given["fast"] for given in covered.values()))]


def sentence(columns: Sequence[str], epsilon: float, *, fast: bool, what: str = "", besides: str = "") -> str:
    """What is guaranteed, for which neighbours, and what is not."""
    names = f"column{'s' if len(columns) > 1 else ''} {', '.join(columns)}"
    label = f" ({STUDY})" if fast else ""
    return (
        f"{names}: {what}differential privacy with epsilon = {epsilon:.12g} in all, between tables of as many records "
        f"that differ in one record{label}; which cells are missing and how many values were clamped is published as "
        f"it is and not covered{besides}; the epsilons of several steps or releases on the same records add up"
    )


def _bounds_of(x: Array, *, lower: float | None, upper: float | None, bounds: str, rows: Rows) -> tuple[float, float]:
    if bounds == "given":
        lacking = " and ".join(name for name, end in (("lower", lower), ("upper", upper)) if end is None)
        if lower is None or upper is None:
            raise ParameterError(
                f"laplace_dp needs {lacking}, known without looking at the data: "
                "--set lower.COLUMN=0 --set upper.COLUMN=200000, for example (or bounds=data for a study)"
            )
        require_order("laplace_dp", lower, upper)
        return lower, upper
    if lower is not None or upper is not None:
        raise ParameterError("laplace_dp: bounds=data takes the bounds from the data; leave lower and upper out")
    ends = rows.summary(x)
    if ends.low < 0:
        raise ParameterError("laplace_dp: bounds=data is for columns without negative values; give lower and upper")
    return 0.0, finite_scale("laplace_dp", _BEYOND_THE_MAXIMUM * ends.high)


def require_order(owner: str, lower: float, upper: float) -> None:
    """An error unless lower is below upper."""
    if lower >= upper:
        raise ParameterError(
            f"{owner}: lower ({lower:.12g}) must be below upper ({upper:.12g}): "
            "--set lower.COLUMN=0 --set upper.COLUMN=200000, for example"
        )


def widest(lower: float, upper: float) -> float:
    """The difference upper - lower, never rounded down.

    >>> widest(0.0, 3.0), widest(-1e-30, 1.0)
    (3.0, 1.0000000000000002)
    """
    width = upper - lower
    if math.isfinite(width) and Fraction(width) < Fraction(upper) - Fraction(lower):
        width = math.nextafter(width, math.inf)
    return width


def finite_scale(owner: str, scale: float) -> float:
    """The scale of the noise, or an error when there is no such number."""
    if not math.isfinite(scale):
        raise ParameterError(f"{owner}: the noise would be too large for a number; raise epsilon or narrow the bounds")
    return scale


def laplace(u: Array) -> Array:
    """Standard Laplace draws from uniform ones, by inversion: F^-1(u) = log(2 u) below the middle, -log(2 - 2 u) above.

    >>> laplace(np.array([0.25, 0.5, 0.75]))
    array([-0.69314718,  0.        ,  0.69314718])
    """
    tail = np.log(2 * np.minimum(u, 1 - u))
    draws: Array = np.where(u < 0.5, tail, -tail)
    return draws


def safe_laplace(owner: str, values: Array, scale: float, *, sensitivity: float, epsilon: Fraction) -> Array:
    """The values with Laplace noise from opendp; `sensitivity` bounds the sum of their changes between neighbours."""
    return np.array(
        mechanism(owner, scale, sensitivity=sensitivity, epsilon=epsilon)(values.tolist()), dtype=np.float64
    )


def mechanism(owner: str, scale: float, *, sensitivity: float, epsilon: Fraction) -> Any:
    """opendp's Laplace measurement: noise in whole multiples of 2^-1074, the least positive number, added exactly.

    At that granularity the input is not rounded, so its privacy map is sensitivity / scale. The scale grows by a last
    digit until the map grants epsilon: a quotient that was rounded down would spend a trifle more. It grows by twice as
    much each time, because an epsilon near 0 has few digits and the map is rounded up to one of them.
    """
    try:
        import opendp.prelude as dp
    except ImportError:
        raise ParameterError(
            f"{owner} draws the noise of a release with opendp, which is not installed: "
            "pip install 'rankveil[dp]', or fast=true for a study"
        ) from None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    made: Any = dp.m.make_laplace(*space, scale=scale)
    more = math.ulp(scale)
    while not _grants(made.map(sensitivity), epsilon):
        scale, more = finite_scale(owner, scale + more), 2 * more
        made = dp.m.make_laplace(*space, scale=scale)
    return made


def _grants(spent: float, epsilon: Fraction) -> bool:
    return math.isfinite(spent) and Fraction(spent) <= epsilon


@laplace_dp.tells_intruder
def _(x: Array, parameters: Mapping[str, Any], *, attributes: int, **known: Any) -> Noise | Simulated:
    """log p(y | x) = -|y - clamp(x)| / s - log 2 s, s = m (upper - lower) / epsilon."""
    if isinstance(parameters["lower"], str) or isinstance(parameters["upper"], str):
        return Simulated("bounds are dates")
    low, high = _bounds_of(
        x, lower=parameters["lower"], upper=parameters["upper"], bounds=parameters["bounds"], rows=HERE
    )
    return Noise("laplace", attributes * (high - low) / parameters["epsilon"], lower=low, upper=high)
