"""Density loss: how little the densities of an attribute overlap before and after masking.

>>> import numpy as np
>>> x = np.array([1.0, 2.0, 3.0, 4.0])
>>> density_loss(x, np.std(x), x + 100, np.std(x)).value
1.0
"""

from __future__ import annotations

import numpy as np

from rankveil.catalogue import Array, Value, measure
from rankveil.moments import counted, effective_size, is_constant, scale_of

_FEWEST, _MOST = 2**10, 2**17
"""Points of the grid: as many as a step of an eighth of the smaller bandwidth needs, within these."""
_TAIL = 6
"""Bandwidths beyond which a kernel is 0: less than one part in 1e8 of it lies there."""


@measure(
    title="Half the distance of the densities",
    source="Agrawal and Aggarwal 2001; Mateo-Sanz, Domingo-Ferrer and Sebé 2005, Remark 4.3",
    family="loss",
    better="lower",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    per="column",
    weighted=True,
)
def density_loss(
    x: Array,
    spread_x: Array,
    y: Array,
    spread_y: Array,
    weight_x: Array | None = None,
    weight_y: Array | None = None,
) -> Value:
    """Half the L1 distance between kernel density estimates of an attribute in the original and in the masked table:
    0 when they are the same, 1 when they do not overlap.

    Gaussian kernels with Scott's bandwidth h = S n^(-1/5) of each table, by the fast Fourier transform of values
    counted on a grid (Silverman 1982). A constant column has no density: the loss is 0 if both have the same constant,
    else 1. A column that is empty in the release is lost: 1. Records with weights count by them, and n is then the
    effective number (sum w)^2 / sum w^2.
    """
    (x, weight_x), (y, weight_y) = counted(x, weight_x), counted(y, weight_y)
    constant = is_constant(x), is_constant(y)
    if any(constant):
        return Value(0.0 if all(constant) and x[0] == y[0] else 1.0, details={"grid": 0})
    scale = max(scale_of(x), scale_of(y))
    values, weights = (x / scale, y / scale), (weight_x, weight_y)
    sizes = [effective_size(each, weight) for each, weight in zip(values, weights, strict=True)]
    low, high = min(map(np.min, values)), max(map(np.max, values))
    scott = [float(spread / scale) * size**-0.2 for spread, size in zip((spread_x, spread_y), sizes, strict=True)]
    widths = [max(width, 8 * (high - low) / _MOST) for width in scott]  # never less than a step of the largest grid
    length = high - low + 2 * _TAIL * max(widths)  # the transform is periodic: tails must not meet
    points = min(max(2 ** int(np.ceil(np.log2(8 * length / min(widths)))), _FEWEST), _MOST)
    step = length / points
    waves = 2 * np.pi / length * np.arange(points // 2 + 1)
    one, other = (
        np.fft.rfft(_shares(each, weight, start=low - _TAIL * max(widths), step=step, points=points))
        * np.exp(-0.5 * (width * waves) ** 2)
        for each, weight, width in zip(values, weights, widths, strict=True)
    )
    distance = float(np.sum(np.abs(np.fft.irfft(one - other, points)))) / 2
    notes = () if widths == scott else ("the values lie so far apart that the bandwidth is wider than Scott's",)
    return Value(min(distance, 1.0), details={"grid": points}, notes=notes)


def _shares(values: Array, weight: Array | None, *, start: float, step: float, points: int) -> Array:
    """The share of the values at each point of the grid, each value divided between the two points beside it."""
    place = values - start
    place /= step
    below = place.astype(np.intp)
    place -= below
    unit = None if weight is None else weight / weight.max()
    above = np.bincount(below, weights=place if unit is None else place * unit, minlength=points)
    counts = np.bincount(below, weights=unit, minlength=points) - above
    counts[1:] += above[:-1]
    return np.asarray(counts / (values.size if unit is None else unit.sum()))
