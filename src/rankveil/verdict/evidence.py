"""Which columns of a release tell most about who is who."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.stats import rankdata

from rankveil.errors import RankveilError
from rankveil.pairs import Pair
from rankveil.table import Table

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Told:
    """What a column tells."""

    name: str
    bits: float
    """By how many halvings it narrows down the records among which a person is looked for."""
    untouched: bool
    """Whether every value is released as it is."""


def columns_told(original: Table, released: Table, pair: Pair, names: Sequence[str]) -> list[Told]:
    """The columns by what they tell, the most telling first; none where it is not known which record is whose.

    untouched: the entropy of the column, otherwise at most -log2(1 - r^2) / 2 with r the rank correlation
    """
    if pair.mapping == "none":
        return []
    made = []
    for name in names:
        try:
            before, after = _texts(original, name, pair.original), _texts(released, name, pair.masked)
        except RankveilError:
            continue
        entropy = _entropy(before)
        if np.array_equal(before, after):
            made.append(Told(name, entropy, untouched=True))
            continue
        made.append(Told(name, min(_narrowed(pair, name, before, after), entropy), untouched=False))
    return sorted(made, key=lambda told: -told.bits)


def _texts(table: Table, name: str, rows: NDArray[np.intp]) -> NDArray[Any]:
    """The cells as numbers or words that can be compared, missing ones alike."""
    cells = table.cells(name)
    if cells.kind == "numeric":
        return np.nan_to_num(table.values(name), nan=math.inf)[rows]
    return np.asarray(pc.fill_null(cells.labels(), "").to_numpy(zero_copy_only=False)).astype(str)[rows]


def _entropy(values: NDArray[Any]) -> float:
    _, counts = np.unique(values, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def _narrowed(pair: Pair, name: str, before: NDArray[Any], after: NDArray[Any]) -> float:
    """From the rank correlation of numbers and of ordered words, otherwise from how often words are the same."""
    if name in pair.names:
        column = pair.columns[pair.names.index(name)]
        if len(column) > 2:
            r = _correlation(rankdata(column.x), rankdata(column.y))
            return -0.5 * math.log2(max(1 - r * r, 1e-12))
        return 0.0
    return _entropy(before) * float(np.mean(before == after))


def _correlation(a: Array, b: Array) -> float:
    a, b = a - a.mean(), b - b.mean()
    spread = math.sqrt(float(a @ a) * float(b @ b))
    return 0.0 if spread == 0 else float(a @ b) / spread
