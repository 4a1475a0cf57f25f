"""Additive noise: y = x + e, e normal, independent for every value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from rankveil.catalogue import Array, Range, method
from rankveil.likelihood import Noise
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream


@method(
    title="Additive noise",
    source="Spruill 1983; Kim 1986",
    kinds=("numeric",),
    strength="alpha",
    local_with="sd",
    by_parts=True,
    seed_tells="the noise can be subtracted",
    tells="the variance of a masked column is 1 + alpha^2 times the original's (plus sd^2 where sd was given); "
    "means and covariances are unbiased",
)
def additive_noise(
    x: Array,
    *,
    alpha: Annotated[float, Range(0), "noise standard deviation as a multiple of the column's own"] = 0.1,
    sd: Annotated[float | None, Range(0), "noise standard deviation itself, instead of alpha"] = None,
    rows: Rows = HERE,
    rng: Stream,
) -> Array:
    """Additive noise: y = x + e, e ~ N(0, (alpha sigma)^2), or N(0, sd^2) when `sd` is given.

    With `sd` the noise needs nothing but the value itself, so a subject could add it alone.
    """
    spread = alpha * rows.standard_deviation(x) if sd is None else sd
    return x + spread * rng.normal(x.size)


@additive_noise.corrects
def _(mean: Array, covariance: Array, parameters: Sequence[dict[str, Any]]) -> tuple[Array, Array]:
    """Var(x) = Var(y) / (1 + alpha^2), or Var(y) - sd^2; covariances of different columns are as they are."""
    corrected = covariance.copy()
    for j, given in enumerate(parameters):
        if given["sd"] is None:
            corrected[j, j] = covariance[j, j] / (1 + given["alpha"] ** 2)
        else:
            corrected[j, j] = covariance[j, j] - given["sd"] ** 2
    return mean, corrected


@additive_noise.tells_intruder
def _(x: Array, parameters: Mapping[str, Any], **known: Any) -> Noise:
    """The density of the noise: log p(y | x) = -(y - x)^2 / (2 s^2) - log s, s = alpha sigma or sd."""
    sd = parameters["sd"]
    return Noise("normal", float(parameters["alpha"] * HERE.standard_deviation(x)) if sd is None else float(sd))
