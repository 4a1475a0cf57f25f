"""Differentially private microaggregation: groups that one record hardly changes, then noise on their means.

Ordinary MDAV is sensitive: one record changed may change every group. Here the groups are runs of a fixed total order,
so that one record changed takes at most one record out of each group and puts one in:

    order   record a comes before b when a is nearer to the corner (lower_1, ..., lower_m),
            distances measured with each attribute as a fraction of its bounds;
            of two at the same distance, the one in the lower row
    groups  the k nearest to the corner, the k farthest, the k nearest of those left,
            and so on while 2k or more are left; the last group has k to 2k - 1 records

Why it is insensitive: a distance depends on its own record and the bounds alone, so that the order of two records does
not depend on the others. Take record r out of the ordered list and put r' in: what lies between the two places moves by
one place, all in the same direction, and nothing else moves. A group is a run of places, and which places it has
depends on n and k alone. So each group loses at most one record and gains at most one, and its sum of attribute j
changes by at most upper_j - lower_j. The page on guarantees says what follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from rankveil import dates
from rankveil.catalogue import DATED, EACH, Array, Outcome, Range, method
from rankveil.errors import ParameterError
from rankveil.likelihood import SharedNoise, Simulated
from rankveil.methods.laplace_dp import STUDY, finite_scale, laplace, require_order, safe_laplace, sentence
from rankveil.seeds import Stream

_EXACT_BITS = 53
"""A sum of whole numbers below 2^53 is exact in floating point, in whatever order it is made."""

_ORDER = (
    "; because a row's place tells its group, the rows must be shuffled (record_shuffle) and stand alone, without "
    "other columns; and no cell may be missing, because it would stand at a mean of the data"
)


@method(
    title="Differentially private microaggregation",
    source="Soria-Comas, Domingo-Ferrer, Sanchez and Martinez 2014",
    works_on="columns",
    kinds=("numeric",),
    strength="epsilon",
    stronger="lower",
    reproducible_with="fast",
    survives="data-free",
    seed_tells="the noise can be subtracted from the means of the groups",
    tells="records are means of groups of k or more with Laplace noise; values were clamped between lower and upper "
    "first, and the noise of a group of g records has scale (groups m (upper - lower)) / (g epsilon), m the number of "
    "columns: records with equal values are of one group and have the same noise",
)
def dp_microaggregation(
    x: Array,
    *,
    k: Annotated[int, Range(1), "how many records a group has at least"] = 10,
    epsilon: Annotated[float, Range(0, above=True), "the privacy budget of the step, all its columns together"],
    lower: Annotated[float, "values below become this; chosen without looking at the data", EACH, DATED],
    upper: Annotated[float, "values above become this; chosen without looking at the data", EACH, DATED],
    fast: Annotated[bool, "noise from the seed, in floating point: for studies"] = False,
    names: tuple[str, ...] = (),
    temporal: tuple[Any, ...] = (),
    rng: Stream,
) -> Outcome:
    """Insensitive MDAV, then Laplace noise on the group means.

        y_j = mean of x_j in the group + Laplace(scale)
        scale = G m (upper_j - lower_j) / (g epsilon)

    With G groups, one record changed moves the means of attribute j by at most G (upper_j - lower_j) / k in all, which
    is the paper's (n / k) (Delta / k) for n a multiple of k; each of the m attributes spends epsilon / m. The noise is
    drawn for the sums of the groups, so a last group of g > k records has the smaller noise that its mean needs.
    """
    n, m = x.shape
    names = names or tuple(f"{j + 1} of {m}" for j in range(m))
    if k > n:
        raise ParameterError(f"dp_microaggregation: k = {k} is more than the {n} records; choose a smaller k")
    low, high = _limits("lower", lower, names, temporal), _limits("upper", upper, names, temporal)
    for j in range(m):
        if temporal and not dates.has_zero(temporal[j]):
            if low[j] >= high[j]:
                raise ParameterError(f"dp_microaggregation, column {names[j]}: lower must be before upper")
        else:
            require_order(f"dp_microaggregation, column {names[j]}", low[j], high[j])
        finite_scale("dp_microaggregation", high[j] - low[j])
    clamped = np.clip(x, low, high)
    group = insensitive_groups(corner_distance(clamped, low, high), k)
    sizes = np.bincount(group).astype(np.float64)
    steps = 2.0 ** (_EXACT_BITS - int(sizes.max()).bit_length())
    scale = finite_scale("dp_microaggregation", sizes.size * m * steps / epsilon)
    masked = np.empty_like(x)
    for j in range(m):
        # whole numbers from 0 to `steps`: their sums, and so the bound on how they change, are exact
        width = high[j] - low[j]
        place = np.rint((clamped[:, j] - low[j]) / width * steps)
        sums = np.bincount(group, weights=place).astype(np.float64)
        if fast:
            noisy = sums + scale * laplace(rng.loose(sizes.size))
        else:
            share, change = Fraction(epsilon) / m, sizes.size * steps
            noisy = safe_laplace("dp_microaggregation", sums, scale, sensitivity=change, epsilon=share)
        masked[:, j] = (low[j] + noisy / (sizes * steps) * width)[group]
    return Outcome(masked, counts={"clamped": np.sum(clamped != x, axis=0)}, notes=(STUDY,) if fast else ())


@dp_microaggregation.scales
def _(parameters: Mapping[str, Any], *, attributes: int, temporal: Any) -> float:
    """The width of the bounds over epsilon, as for one record; numbers of opendp stay as they are."""
    if not parameters["fast"]:
        return 0.0
    (low,), (high,) = (_limits(end, parameters[end], ["?"], [temporal]) for end in ("lower", "upper"))
    return attributes * (high - low) / (float(parameters["k"]) * float(parameters["epsilon"]))


@dp_microaggregation.guarantees
def _(
    parameters: Mapping[str, Mapping[str, Any]], counts: Mapping[str, Mapping[str, int]], names: Sequence[str]
) -> list[str]:
    """Differential privacy of the noisy means, and what a release of records needs besides."""
    given = next(iter(parameters.values()))
    what = "the set of the records, without their order, has "
    return [sentence(names, given["epsilon"], fast=given["fast"], what=what, besides=_ORDER)]


def _limits(name: str, given: Any, names: Sequence[str], temporal: Sequence[Any]) -> list[float]:
    """The bound of each column, dates and times as the numbers behind them."""
    each = [given] * len(names) if np.ndim(given) == 0 else list(given)
    limits = []
    for column, value, kind in zip(names, each, temporal or [None] * len(names), strict=True):
        try:
            limit = dates.limit(name, value, kind)
        except ParameterError as error:
            raise ParameterError(f"column {column}: dp_microaggregation: {error}") from None
        assert limit is not None
        limits.append(limit)
    return limits


def corner_distance(clamped: Array, lower: list[float], upper: list[float]) -> Array:
    """The squared distance of each record from the corner of the lower bounds, each attribute as a fraction."""
    distance = np.zeros(len(clamped))
    for j in range(clamped.shape[1]):
        distance += ((clamped[:, j] - lower[j]) / (upper[j] - lower[j])) ** 2
    return distance


def insensitive_groups(distance: Array, k: int) -> NDArray[np.intp]:
    """The group of each record: runs of k from both ends of the order in turn, the rest in the middle.

    Groups are numbered along the order.

    >>> insensitive_groups(np.array([0.5, 0.1, 0.9, 0.2, 0.8, 0.4, 0.3]), 2)
    array([1, 0, 2, 0, 2, 1, 1])
    """
    n = distance.size
    groups = n // k
    # those after the last group, the one in the middle that may be longer, are counted from the far end
    places = np.arange(n)
    last = groups // 2
    after = groups - 1 - (n - 1 - places) // k
    numbered = np.where(places // k < last, places // k, np.maximum(after, last))
    group = np.empty(n, dtype=np.intp)
    group[np.argsort(distance, kind="stable")] = numbered
    return group


@dp_microaggregation.tells_intruder
def _(x: Array, parameters: Sequence[Mapping[str, Any]], **known: Any) -> SharedNoise | Simulated:
    """The groups follow from the original, their centres carry Laplace noise: G m (upper - lower) / (g epsilon)."""
    given = parameters[0]
    if any(isinstance(each[end], str) for each in parameters for end in ("lower", "upper")):
        return Simulated("bounds are dates")
    low, high = (np.array([float(each[end]) for each in parameters]) for end in ("lower", "upper"))
    clamped = np.clip(x, low, high)
    group = insensitive_groups(corner_distance(clamped, low.tolist(), high.tolist()), given["k"])
    sizes = np.bincount(group).astype(np.float64)
    centre = np.column_stack([np.bincount(group, weights=column) / sizes for column in clamped.T])
    scale = sizes.size * x.shape[1] / given["epsilon"] * (high - low) / sizes[:, None]
    return SharedNoise(group.astype(np.int64), centre, scale)
