"""Multiplicative noise: y = x u, u uniform around 1, independent for every value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from rankveil.catalogue import Array, Range, method
from rankveil.likelihood import Noise
from rankveil.seeds import Stream


@method(
    title="Multiplicative noise",
    source="Muralidhar and Domingo-Ferrer 2015",
    kinds=("numeric",),
    strength="beta",
    local=True,
    by_parts=True,
    seed_tells="the noise can be divided out",
    tells="the mean square of a masked column is 1 + beta^2 / 3 times the original's; "
    "means and covariances are unbiased",
)
def multiplicative_noise(
    x: Array,
    *,
    beta: Annotated[float, Range(0), "the factor lies between 1 - beta and 1 + beta"] = 0.1,
    rng: Stream,
) -> Array:
    """Multiplicative noise: y = x u, u ~ Uniform(1 - beta, 1 + beta)."""
    return x * (1 + beta * (2 * rng.random(x.size) - 1))


@multiplicative_noise.corrects
def _(mean: Array, covariance: Array, parameters: Sequence[dict[str, Any]]) -> tuple[Array, Array]:
    """E x^2 = E y^2 / (1 + beta^2 / 3), so Var(x) follows; covariances of different columns are as they are."""
    corrected = covariance.copy()
    for j, given in enumerate(parameters):
        square = (covariance[j, j] + mean[j] ** 2) / (1 + given["beta"] ** 2 / 3)
        corrected[j, j] = square - mean[j] ** 2
    return mean, corrected


@multiplicative_noise.tells_intruder
def _(x: Array, parameters: Mapping[str, Any], **known: Any) -> Noise:
    """Uniform on the values within beta |x| of x, and nowhere else."""
    return Noise("uniform", float(parameters["beta"]), relative=True)
