"""How sure an intruder is of his links."""

from __future__ import annotations

import itertools

import numpy as np

from rankveil.errors import ParameterError
from rankveil.report.chart import Array, Bars, Chart

_EDGES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


def link_probabilities(probability: Array, right: Array | None, *, title: str | None = None) -> Chart:
    """How many people have a best link of each probability, and how many of these links are right where that is known.

    >>> chart = link_probabilities(np.array([0.97, 0.02, 1.0]), np.array([1.0, 0.0, 1.0]))
    >>> chart.title
    'The best link of 2 of 3 people is more likely right than wrong'
    >>> [series.y[-1] for series in chart.series]
    [2.0, 2.0]
    """
    n = probability.size
    if n == 0:
        raise ParameterError("link probabilities: there is nobody to draw; give at least one person")
    place = np.clip(np.searchsorted(_EDGES, probability, side="right") - 1, 0, len(_EDGES) - 2)
    labels = [f"{100 * a:g} to {100 * b:g} %" for a, b in itertools.pairwise(_EDGES)]
    counts = np.bincount(place, minlength=len(labels)).astype(float)
    series = [Bars("people", labels, counts.tolist())]
    if right is not None:
        series.append(Bars("of them found", labels, np.bincount(place, weights=right, minlength=len(labels)).tolist()))
    likely = int(np.sum(probability > 0.5))
    return Chart(
        title=title or f"The best link of {likely:,} of {n:,} people is more likely right than wrong",
        x_label="The intruder's probability for his best link",
        y_label="People",
        series=series,
        note=f"{n:,} people whom he knows; equal released records share a link.",
        kind="link_probabilities",
    )
