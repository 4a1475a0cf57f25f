"""People found: the share of people whom somebody who uses everything that is public finds in the release."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import EVERY_KIND, Value, measure


class Finding(Protocol):
    """What an intruder found."""

    @property
    def share(self) -> float:
        """The share of people found."""

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95 % interval."""

    @property
    def guessing(self) -> float:
        """The share that blind guessing finds."""

    @property
    def count(self) -> int:
        """Over how many people."""

    @property
    def expected(self) -> float:
        """How many he expects to have found."""

    @property
    def found(self) -> float | None:
        """How many he has found, where that is known."""

    @property
    def certain(self) -> NDArray[np.bool_]:
        """Who is certain."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What he could not use, and why."""


@measure(
    title="People found",
    source="rankveil; the threshold 0.09 is that of the European Medicines Agency and of Health Canada",
    family="risk",
    better="lower",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
)
def people_found(intruder: Finding) -> Value:
    """The share of people whose best link is right, for an intruder who uses everything that is public.

        found = (1 / n) sum over people i of [ argmax over a of P(a is i | both tables, manifest) is right ]

    P over all one-to-one links; equal records share a link (1 / size). Where it is not known which links are right it
    is the share that he expects himself.
    """
    details = {
        "certain": int(intruder.certain.sum()),
        "interval": list(intruder.interval),
        "guessing": intruder.guessing,
        "people": intruder.count,
        "right": intruder.found,
    }
    if intruder.found is None:
        details["expected"] = intruder.expected
    return Value(intruder.share, details, intruder.notes)
