"""Losses by generalisation and suppression: how much recoded, grouped and suppressed cells leave open.

>>> import numpy as np
>>> discernibility({"AGE": np.array([30.0, 30.0, 40.0])}).value  # 2 * 2 + 1
5.0
>>> average_class_size({"AGE": np.array([30.0, 30.0, 40.0])}).value
1.5
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from rankveil.catalogue import EVERY_KIND, Value, measure
from rankveil.errors import NotApplicableError, listing
from rankveil.measures._classes import Columns, classes_of, told


class Generality(Protocol):
    """How much the released cells of a column leave open."""

    @property
    def name(self) -> str:
        """The column."""

    @property
    def quasi(self) -> bool:
        """Whether it is a quasi-identifier."""

    @property
    def ncp(self) -> float | None:
        """Its penalty; None where it is not known."""

    @property
    def there(self) -> float:
        """Released cells that are there."""

    @property
    def suppressed(self) -> float:
        """Released cells that were suppressed."""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Labels of which it is not known what they stand for."""


@measure(
    title="Normalised certainty penalty",
    source="Xu, Wang, Pei, Wang, Shi and Fu 2006; over a table Ghinita, Karras, Kalnis and Mamoulis 2007",
    family="loss",
    better="lower",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
)
def ncp(released: Sequence[Generality]) -> Value:
    """How much of a column's range or categories a released cell leaves open, the mean over cells and columns.

        ncp of a cell = (high - low) / (max - min)   for a band of numbers or dates, by the original's range
                      = leaves under it / leaves     for a group of categories, 0 for a category of its own
                      = 1                            for a suppressed cell (missing, or *)

    Over the quasi-identifiers where there are some, otherwise over all columns that are compared. Numbers that are
    released as numbers leave nothing open, however much they were changed.
    """
    some = [each for each in released if each.quasi] or list(released)
    found = {each.name: each.ncp for each in some if each.ncp is not None}
    unknown = {each.name: each.unknown for each in some if each.ncp is None and each.unknown}
    notes = tuple(
        f"column {name} left out: what {listing(labels)} stands for is not known; give its hierarchy (--hierarchy)"
        for name, labels in unknown.items()
    )
    if not found:
        raise NotApplicableError(notes[0] if notes else "no column has a cell")
    details = {"per_attribute": found, "quasi_identifiers": any(each.quasi for each in some)}
    return Value(math.fsum(found.values()) / len(found), details, notes)


@measure(
    title="Share of suppressed cells",
    source="Sweeney 2002",
    family="loss",
    better="lower",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
)
def suppressed_share(released: Sequence[Generality]) -> Value:
    """The share of the cells that were suppressed, over all columns that are compared and all quasi-identifiers.

        share = suppressed cells / cells that were there in the original

    A cell is suppressed if it is missing, or `*`, in the release. Of the missing ones as many were so already as the
    original's share of missing cells makes of the released records. Records that were left out whole are not counted:
    they may as well not have been drawn.
    """
    cells = math.fsum(each.there + each.suppressed for each in released)
    if cells == 0:
        raise NotApplicableError("no column has a cell")
    per = {
        each.name: each.suppressed / (each.there + each.suppressed) for each in released if each.there + each.suppressed
    }
    details = {"per_attribute": per, "suppressed": math.fsum(each.suppressed for each in released), "cells": cells}
    return Value(math.fsum(each.suppressed for each in released) / cells, details)


@measure(
    title="Discernibility",
    source="Bayardo and Agrawal 2005",
    family="loss",
    better="lower",
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
)
def discernibility(quasi_y: Columns) -> Value:
    """The number of pairs of records that cannot be told apart, each record with itself too.

        DM = sum over the equivalence classes E of |E|^2 + n * (records whose quasi-identifiers are all suppressed)

    From n, where all records differ, to n^2. `per_record` is DM / n: from how many records each cannot be told.
    """
    classes, gone = classes_of(quasi_y), _suppressed(quasi_y)
    n = gone.size
    kept = np.bincount(classes.number[~gone], minlength=len(classes))
    square = sum(int(size) ** 2 for size in kept.tolist())
    value = square + int(gone.sum()) * n
    details = {**told(quasi_y, classes), "suppressed": int(gone.sum()), "per_record": value / n, "without": square}
    return Value(float(value), details)


@measure(
    title="Average size of the equivalence classes",
    source="LeFevre, DeWitt and Ramakrishnan 2006",
    family="loss",
    better="lower",
    bounds=(1.0, math.inf),
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
)
def average_class_size(quasi_y: Columns) -> Value:
    """The mean number of records of an equivalence class.

        size = n / number of classes

    Records whose quasi-identifiers are all suppressed are one class. LeFevre et al. divide it by the k that was asked
    for: 1 is then the least that k-anonymity allows.
    """
    classes = classes_of(quasi_y)
    n = classes.number.size
    details: dict[str, Any] = {**told(quasi_y, classes), "suppressed": int(_suppressed(quasi_y).sum())}
    details["over_smallest"] = n / len(classes) / int(classes.sizes.min())
    return Value(n / len(classes), details)


def _suppressed(quasi: Columns) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The records of which no quasi-identifier is there."""
    gone: np.ndarray[Any, np.dtype[np.bool_]] = np.all([np.isnan(column) for column in quasi.values()], axis=0)
    return gone
