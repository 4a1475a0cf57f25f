"""Identity: the control with no protection."""

from __future__ import annotations

from rankveil.catalogue import EVERY_KIND, Array, method


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
