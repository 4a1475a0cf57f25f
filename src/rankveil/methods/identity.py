"""Identity: the control with no protection."""

from __future__ import annotations

from typing import Any

from rankveil.catalogue import EVERY_KIND, Array, method
from rankveil.likelihood import Recomputed


@method(
    title="Identity",
    source="control",
    kinds=EVERY_KIND,
    marginals="kept",
    local=True,
    by_parts=True,
    tells="nothing was changed",
)
def identity(x: Array) -> Array:
    """The original itself, y = x: the control with no protection."""
    return x.copy()


@identity.corrects
def _(mean: Array, covariance: Array, parameters: object) -> tuple[Array, Array]:
    """Moments are the original's."""
    return mean, covariance


@identity.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Recomputed:
    """He applies the step to the original himself."""
    return Recomputed()
