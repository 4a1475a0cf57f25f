"""l-diversity: how many different confidential values stand in each equivalence class, counted in three ways.

Several confidential columns are judged one by one, and the least diverse counts (pycanon's `gen=True`). Machanavajjhala
and others would also count the other confidential columns as quasi-identifiers: name them so to ask that.

A missing confidential cell is a value of its own, as in pycanon's `l_diversity`; cells that are missing by different
codes (empty, n/a) are different values.

>>> import numpy as np
>>> quasi = {"AGE": np.array([30.0, 30.0, 30.0, 40.0, 40.0])}
>>> illness = {"ILLNESS": np.array([0.0, 1.0, 2.0, 1.0, 2.0])}
>>> l_diversity(quasi, illness).value
2.0
>>> entropy_l_diversity(quasi, illness).details["exact"]
2.0
>>> recursive_l_diversity(quasi, illness, c=2.0).value
2.0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import EVERY_KIND, Array, Range, Value, measure
from rankveil.classes import Classes, joined, numbered
from rankveil.measures._classes import (
    Columns,
    checked_confidential,
    classes_of,
    listed,
    missing_notes,
    quasi_notes,
    told,
)

Counts = NDArray[np.int64]

_ROUNDING = 1e-9
"""By so much exp(entropy) may fall short of a whole number and still be it."""

_SOURCE = "Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam 2007"


@measure(
    title="l-diversity",
    source=_SOURCE,
    family="risk",
    better="higher",
    bounds=(1.0, float("inf")),
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
)
def l_diversity(
    quasi_y: Columns,
    confidential_y: Columns,
    *,
    limit: Annotated[int, Range(1), "the l asked for: records in less diverse classes are counted"] = 2,
    c: Annotated[float, Range(0, above=True), "c of recursive (c,l)-diversity, for the details"] = 3.0,
) -> Value:
    """The least number of different confidential values in an equivalence class of the release.

        l = min over classes and confidential columns of the number of different values

    The details have entropy l-diversity and recursive (c,l)-diversity beside it, for each confidential column.
    """
    classes, diverse = _diversities(quasi_y, confidential_y)
    per_class = {name: one.distinct.astype(np.float64) for name, one in diverse.items()}
    more = {
        "entropy": {name: float(np.exp(one.entropy.min())) for name, one in diverse.items()},
        "recursive": {name: int(one.recursive(c).min()) for name, one in diverse.items()},
        "c": c,
    }
    return _value(quasi_y, confidential_y, classes, per_class, limit=limit, more=more)


@measure(
    title="Entropy l-diversity",
    source=_SOURCE,
    family="risk",
    better="higher",
    bounds=(1.0, float("inf")),
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
)
def entropy_l_diversity(
    quasi_y: Columns,
    confidential_y: Columns,
    *,
    limit: Annotated[float, Range(1), "the l asked for: records in less diverse classes are counted"] = 2.0,
) -> Value:
    """The largest whole l with entropy >= log l in every equivalence class, for the values of each confidential column.

        entropy = - sum over the values v of p_v log p_v,  p_v the share of v in the class

    The details have exp(least entropy) itself. pycanon cuts off its decimals after rounding errors: two values
    in equal shares can come out as l = 1 there; here what is whole up to 1e-9 counts as whole.
    """
    classes, diverse = _diversities(quasi_y, confidential_y)
    exact = {name: np.exp(one.entropy) for name, one in diverse.items()}
    least = min(float(of.min()) for of in exact.values())
    # compared with the limit as they are, but a rounding error decides nothing
    near = {name: np.where(np.abs(of - np.rint(of)) < _ROUNDING, np.rint(of), of) for name, of in exact.items()}
    made = _value(quasi_y, confidential_y, classes, near, limit=limit, more={"exact": least})
    return Value(float(np.floor(made.value)), made.details, made.notes)


@measure(
    title="Recursive (c,l)-diversity",
    source=_SOURCE,
    family="risk",
    better="higher",
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
)
def recursive_l_diversity(
    quasi_y: Columns,
    confidential_y: Columns,
    *,
    c: Annotated[float, Range(0, above=True), "how often the most frequent value may outweigh the rare ones"] = 3.0,
    limit: Annotated[int, Range(1), "the l asked for: records in less diverse classes are counted"] = 2,
) -> Value:
    """The largest l with r_1 < c (r_l + ... + r_m) in every class, r_1 >= r_2 >= ... >= r_m the counts of its m values.

    0 when not even l = 1 holds, which takes a c of at most 1. The details have the least whole c for which the l of
    `l_diversity` holds. pycanon returns that pair, but sorts the counts upwards: its c compares the rarest value with
    the most frequent ones and is 1 or 2 whatever the data, mostly too small. With its sort turned round it gives ours.
    """
    classes, diverse = _diversities(quasi_y, confidential_y)
    per_class = {name: one.recursive(c).astype(np.float64) for name, one in diverse.items()}
    distinct = min(int(one.distinct.min()) for one in diverse.values())
    more: dict[str, Any] = {"c": c, "distinct": distinct}
    if distinct > 1:
        more["least_c"] = max(one.least_c(distinct) for one in diverse.values())
    return _value(quasi_y, confidential_y, classes, per_class, limit=limit, more=more)


@dataclass(frozen=True, eq=False)
class _Diversity:
    """The values of one confidential column in each class: for each two of class and value one count, largest first."""

    of: Counts
    """The class of each count; the counts of a class stand together."""
    counts: Counts
    sizes: Counts

    @property
    def distinct(self) -> Counts:
        """The different values in each class."""
        return np.bincount(self.of, minlength=self.sizes.size)

    @property
    def entropy(self) -> Array:
        """log n - sum c log c / n over the counts c of each class of n records."""
        summed = np.bincount(self.of, weights=self.counts * np.log(self.counts), minlength=self.sizes.size)
        entropy = np.maximum(np.log(self.sizes) - summed / self.sizes, 0.0)
        return np.where(self.distinct == 1, 0.0, entropy)

    @property
    def _starts(self) -> Counts:
        return np.concatenate(([0], np.cumsum(self.distinct)[:-1]))

    @property
    def _rest(self) -> Counts:
        """r_l + ... + r_m at the place of each r_l."""
        before = np.cumsum(self.counts) - self.counts
        return np.asarray(self.sizes[self.of] - (before - before[self._starts][self.of]))

    def recursive(self, c: float) -> Counts:
        """The largest l of each class; as the rest falls with l, it is the number of places where it is enough."""
        enough = self.counts[self._starts][self.of] < c * self._rest
        return np.bincount(self.of[enough], minlength=self.sizes.size)

    def least_c(self, least: int) -> int:
        """The least whole c for which l = `least` holds in all classes: r_1 < c (r_l + ... + r_m)."""
        return int((self.counts[self._starts] // self._rest[self._starts + least - 1]).max()) + 1


def _diversities(quasi: Columns, confidential: Columns) -> tuple[Classes, dict[str, _Diversity]]:
    classes = classes_of(quasi)
    return classes, {name: _counted(classes, column) for name, column in checked_confidential(confidential).items()}


def _counted(classes: Classes, column: Array) -> _Diversity:
    values, count = numbered(column)
    codes, counts = np.unique(joined(classes.number, len(classes), values, count)[0], return_counts=True)
    of = codes // count
    order = np.lexsort((-counts, of))
    return _Diversity(of[order], counts[order], classes.sizes)


def _value(
    quasi: Columns,
    confidential: Columns,
    classes: Classes,
    per_class: dict[str, Array],
    *,
    limit: float,
    more: dict[str, Any],
) -> Value:
    """The least diversity of all classes and columns, and the records of classes below the limit."""
    least = np.min(list(per_class.values()), axis=0)
    below = np.flatnonzero((least < limit)[classes.number])
    details = {
        "per_attribute": {name: float(each.min()) for name, each in per_class.items()},
        **more,
        **told(quasi, classes),
        "limit": limit,
        "records_below_limit": int(below.size),
        "rows": listed(below),
    }
    notes = (*quasi_notes(quasi), *missing_notes(confidential, how="count as one value of their own", apart=True))
    return Value(float(least.min()), details, notes)
