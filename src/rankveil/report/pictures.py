"""What the figures of an audit are drawn from, of a pair of tables: labels as labels, dates as dates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankveil import dates
from rankveil.catalogue import NUMBERS
from rankveil.categories import Categories
from rankveil.pairs import Pair
from rankveil.report.audits import AuditPictures, Marginal
from rankveil.report.chart import Array


def pictures_of(pair: Pair, *, levels: Mapping[str, Array]) -> AuditPictures:
    """The pictures of a pair; `levels` are the rank changes of each attribute."""
    marginals = {name: _marginal(pair, j, pair.temporal[j]) for j, name in enumerate(pair.names)}
    numbers = pair.of_kinds(NUMBERS)
    if numbers is None or not all(len(side) for side in numbers.every.sides.values()):
        return AuditPictures(levels, marginals)
    both = numbers.every.pairs_x.correlation, numbers.every.pairs_y.correlation  # of the records that have both columns
    return AuditPictures(levels, marginals, both, numbers.names)


def _marginal(pair: Pair, j: int, kind: Any) -> Marginal:
    """A column before and after, missing cells too."""
    x, y = (each[:, j] for each in (pair.everything or (pair.x, pair.y)))
    categories = pair.categories[j]
    if categories is not None:
        order = categories.labels if categories.ordered else ()
        return Marginal(labels_of(x, categories), labels_of(y, categories), order)
    return Marginal(x, y, written=None if kind is None else lambda value: str(dates.written(value, kind)))


def labels_of(values: Array, categories: Categories) -> Any:
    """The labels that values stand for, None where one is missing; a value between two labels is said so.

    >>> from rankveil.categories import nominal
    >>> labels_of(np.array([1.0, np.nan, 0.5]), nominal(["b", "a"], np.array([2.0, 1.0]))).tolist()
    ['a', None, 'between b and a']
    """
    there = np.flatnonzero(~np.isnan(values))
    known, names = categories.values, np.array(categories.labels, dtype=object)
    place = np.clip(np.searchsorted(known, values[there]), 0, max(known.size - 1, 0))
    made = np.full(values.size, None, dtype=object)
    made[there] = names[place]
    for row, at in zip(there, place, strict=True):
        if known[at] != values[row]:
            made[row] = f"between {names[max(at - 1, 0)]} and {names[at]}"
    return made
