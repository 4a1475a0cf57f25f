"""Difference variance: how large the change of the values is, beside their spread."""

from __future__ import annotations

import math

from rankveil.catalogue import Array, measure
from rankveil.errors import NotApplicableError
from rankveil.moments import counted, is_constant, scale_of, standard_deviation


@measure(
    title="Variance of the difference",
    source="Adam and Wortmann 1989; Muralidhar and Sarathy 1999",
    family="confidentiality",
    better="higher",
    per="column",
    weighted=True,
)
def difference_variance(x: Array, y: Array, weight_x: Array | None = None) -> float:
    """v_j = Var(X_j - Y_j) / Var(X_j), both weighted by the weights of the original records if they have some."""
    (x, weight), (y, _) = counted(x, weight_x), counted(y, weight_x)
    scale = max(scale_of(x), scale_of(y))
    spread, change = standard_deviation(x / scale, weight), standard_deviation(x / scale - y / scale, weight)
    if is_constant(x):
        raise NotApplicableError("the original column is constant, so there is no variance to compare with")
    ratio = change / spread if spread > 0 else math.inf
    if ratio * ratio == math.inf:
        raise NotApplicableError("the change is too large beside the column's own spread to be written as a number")
    return ratio * ratio
