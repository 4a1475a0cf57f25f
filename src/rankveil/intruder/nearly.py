"""Columns that repeating the plan leaves as they are computed, while draws changed some cells of the release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankveil.intruder.model import Model, Values, equal_codes

Array = NDArray[np.float64]
Places = NDArray[np.int64]

_ELSE = np.log(1e-3)
"""The weight of a cell that is not what was computed, where that came in no repetition."""
_APART = 4.0
"""Between one value and the next, in coordinates."""


@dataclass(frozen=True, eq=False)
class NearlyTerm:
    """Equal codes are likely, others are not impossible."""

    x: Array
    y: Array
    bounded: bool = False
    rough: bool = True

    @property
    def values(self) -> tuple[Array, Array]:
        return self.x[:, None], self.y[:, None]

    @property
    def coordinates(self) -> tuple[Array, Array]:
        return _APART * self.x[:, None], _APART * self.y[:, None]

    def weights(self, rows: Places, columns: Places) -> Array:
        return np.where(self.x[rows] == self.y[columns], 0.0, _ELSE)


@dataclass(frozen=True, eq=False)
class NearlyPart:
    """A column of values that are mostly those that were computed."""

    name: str
    x: Array

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def term(self, released: Values) -> NearlyTerm:
        first, second = equal_codes(self.x, released[self.name])
        return NearlyTerm(first.astype(np.float64), second.astype(np.float64))


def loosen(model: Model, released: Values) -> None:
    """Columns that draws may have changed are no keys where the release has other cells than were computed."""
    for name in sorted(model.likely):
        x = model.keys[name]
        first, second = equal_codes(x, released[name])
        size = int(max(first.max(initial=0), second.max(initial=0))) + 1
        many = np.bincount(second[second >= 0], minlength=size)
        if np.any(second < 0) or np.any(many > np.bincount(first, minlength=size)):
            model.likely.discard(name)
            model.parts.append(NearlyPart(name, model.keys.pop(name)))
