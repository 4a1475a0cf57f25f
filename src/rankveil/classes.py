"""Equivalence classes: the records that agree in all quasi-identifiers, among which nobody can be told apart.

A missing cell is a value of its own, which agrees with missing cells of the same code only: who sees n/a here and an
empty cell there can tell them apart. With `missing="any"` it agrees with everything, as sdcMicro counts: then agreement
is no longer transitive, and what a class has is the number of records that agree with its records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankveil import metadata
from rankveil.errors import ParameterError

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]
Missing = Literal["own", "any"]

_LARGEST = 2**62
"""Codes of combined columns stay below this."""

_TABLE = 4
"""Codes up to so many times the number of records are looked up in a table; larger ones are sorted."""

_PER_PAIR = 50_000
"""Cells that can be compared in the time that two patterns of missing cells take."""

_AT_ONCE = 2**22
"""Cells that are compared at a time."""


@dataclass(frozen=True, eq=False)
class Classes:
    """Which class each record belongs to, and how large the classes are.

    >>> ages, sexes = np.array([30.0, 30.0, 40.0, np.nan]), np.array([0.0, 0.0, 1.0, 1.0])
    >>> classes = Classes.of({"AGE": ages, "SEX": sexes})
    >>> classes.number, classes.sizes
    (array([0, 0, 1, 2]), array([2, 1, 1]))
    >>> Classes.of({"AGE": ages, "SEX": sexes}, missing="any").frequency
    array([2, 2, 2, 2])
    """

    number: Rows
    """The class of each record, from 0, in the order of their values."""
    sizes: Codes
    """How many records each class has."""
    missing: Missing = "own"
    _keys: Codes | None = None
    """With missing="any": the codes of each class, one column for each quasi-identifier, -1 where it is missing."""

    @classmethod
    def of(cls, columns: Mapping[str, Array], *, missing: Missing = "own") -> Classes:
        """The classes of the records with these quasi-identifiers: numbers or codes, NaN where there is none."""
        if not columns:
            raise ParameterError("equivalence classes need at least one quasi-identifier")
        coded = [_coded(np.asarray(column, dtype=np.float64)) for column in columns.values()]
        number, count = _compressed(*_combined(coded))
        sizes = np.bincount(number, minlength=count)
        if missing == "own" or not any(np.isnan(column).any() for column in columns.values()):
            return cls(number, sizes, missing)
        first = np.empty(count, dtype=np.intp)
        first[number[::-1]] = np.arange(number.size - 1, -1, -1)
        keys = [
            np.where(np.isnan(column[first]), -1, codes[first])
            for column, (codes, _) in zip(columns.values(), coded, strict=True)
        ]
        return cls(number, sizes, missing, np.column_stack(keys))

    def __len__(self) -> int:
        return int(self.sizes.size)

    @cached_property
    def agreeing(self) -> Codes:
        """For each class how many records agree with its records: its size, or more where missing agrees with all."""
        if self._keys is None:
            return self.sizes
        return np.rint(_agreeing(self._keys, self.sizes.astype(np.float64))).astype(np.int64)

    @cached_property
    def frequency(self) -> Codes:
        """For each record how many agree with it, itself among them."""
        return np.asarray(self.agreeing[self.number])

    def totals(self, amounts: Array) -> Array:
        """For each class the sum of an amount (a weight) over the records that agree with its records."""
        own = np.asarray(np.bincount(self.number, weights=amounts, minlength=len(self)), dtype=np.float64)
        return own if self._keys is None else _agreeing(self._keys, own)

    def below(self, limit: float) -> Rows:
        """The records (from 0) with which fewer than `limit` agree."""
        return np.flatnonzero(self.frequency < limit)

    def distribution(self) -> dict[int, int]:
        """How many classes there are of each size that occurs, from the smallest."""
        sizes, counts = np.unique(self.agreeing, return_counts=True)
        return dict(zip(sizes.tolist(), counts.tolist(), strict=True))


def numbered(column: Array) -> tuple[Codes, int]:
    """The different values of a column numbered from 0 in their order, missing last, one number for each missing code.

    And how many numbers there are.

    >>> numbered(np.array([2.5, np.nan, 1.0, 2.5]))
    (array([1, 2, 0, 1]), 3)
    """
    return _compressed(*_coded(np.asarray(column, dtype=np.float64)))


def joined(number: Codes, count: int, other: Codes, of: int) -> tuple[Codes, int]:
    """Two numberings as one, by the first and then by the second; it fits 64 bits as long as count * of does."""
    return number * of + other, count * of


def _coded(column: Array) -> tuple[Codes, int]:
    """Whole numbers in the order of the values, missing ones the largest, and a bound that they stay below."""
    absent = np.isnan(column)
    there = column if not absent.any() else column[~absent]
    gaps = np.maximum(metadata.gap_numbers(column[absent]), 0)  # a missing value without a number is an empty cell
    kinds, gap = np.unique(gaps, return_inverse=True)
    if there.size == 0:
        return gap.astype(np.int64), max(kinds.size, 1)
    low, high = float(there.min()), float(there.max())
    codes = np.empty(column.size, dtype=np.int64)
    if high - low < _TABLE * column.size and low == np.floor(low) and np.array_equal(there, np.floor(there)):
        bound = int(high - low) + 1
        codes[~absent] = (there - low).astype(np.int64)
    else:
        values, codes[~absent] = np.unique(there, return_inverse=True)
        bound = values.size
    codes[absent] = bound + gap
    return codes, bound + kinds.size


def _combined(coded: Sequence[tuple[Codes, int]]) -> tuple[Codes, int]:
    """One code for several: equal where all are equal, in the order of the first, then the second, and so on."""
    total, bound = coded[0]
    for codes, count in coded[1:]:
        if bound * count >= _LARGEST:
            total, bound = _compressed(total, bound)
        total, bound = joined(total, bound, codes, count)
    return total, bound


def _compressed(codes: Codes, bound: int) -> tuple[Codes, int]:
    """The codes that occur numbered from 0, in the same order."""
    if bound > max(_TABLE * codes.size, 1):
        found, number = np.unique(codes, return_inverse=True)
        return number, int(found.size)
    there = np.zeros(bound, dtype=bool)
    there[codes] = True
    if there.all():
        return codes, bound
    return (np.cumsum(there) - 1)[codes], int(np.count_nonzero(there))


# Where a missing cell agrees with everything, two keys agree when they are equal in the columns that both have. Keys
# with the same pattern of missing cells are compared together: for each two patterns one sum over their common columns.


def _agreeing(keys: Codes, amounts: Array) -> Array:
    """For each key the sum of the amounts of the keys that agree with it."""
    absent = keys < 0
    pattern, count = _compressed(*_combined([(column.astype(np.int64), 2) for column in absent.T]))
    incomplete = np.flatnonzero(absent.any(axis=1))
    if count * count * _PER_PAIR < incomplete.size * keys.size:
        return _by_pattern(keys, absent, pattern, count, amounts)
    return _one_by_one(keys, absent, incomplete, amounts)


def _by_pattern(keys: Codes, absent: Flags, pattern: Codes, count: int, amounts: Array) -> Array:
    order = np.argsort(pattern, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(pattern, minlength=count))[:-1])
    patterns = np.array([absent[rows[0]] for rows in members])
    # by the columns that one of the two lacks: those of the same are compared in the same columns
    pairs: defaultdict[bytes, list[tuple[int, int]]] = defaultdict(list)
    for one in range(count):
        for other, either in enumerate(patterns[one] | patterns):
            pairs[either.tobytes()].append((one, other))
    totals = np.zeros(len(keys))
    for lacking, both in pairs.items():
        common = ~np.frombuffer(lacking, dtype=bool)
        partners: defaultdict[int, list[int]] = defaultdict(list)
        for one, other in both:
            partners[one].append(other)
        rows = np.concatenate([members[one] for one in partners])
        codes, bound = _projected(keys[np.ix_(rows, common)])
        ends = np.cumsum([members[one].size for one in partners])
        at = dict(zip(partners, np.split(codes, ends[:-1]), strict=True))
        for one, others in partners.items():
            theirs = np.concatenate([at[other] for other in others])
            weights = np.concatenate([amounts[members[other]] for other in others])
            totals[members[one]] += np.bincount(theirs, weights=weights, minlength=bound)[at[one]]
    return totals


def _projected(keys: Codes) -> tuple[Codes, int]:
    """The different rows of some columns numbered; of no columns at all, every row is the same."""
    if keys.shape[1] == 0:
        return np.zeros(len(keys), dtype=np.int64), 1
    return _compressed(*_combined([(column, int(column.max()) + 1) for column in keys.T]))


def _one_by_one(keys: Codes, absent: Flags, incomplete: Rows, amounts: Array) -> Array:
    """Every incomplete key beside every key; two complete ones agree only when they are the same."""
    totals = amounts.copy()
    complete = ~absent.any(axis=1)
    step = max(_AT_ONCE // len(keys), 1)
    for start in range(0, incomplete.size, step):
        some = incomplete[start : start + step]
        agree = np.ones((some.size, len(keys)), dtype=bool)
        for j in range(keys.shape[1]):
            agree &= (keys[some, j, None] == keys[:, j]) | absent[some, j, None] | absent[:, j]
        totals[some] = agree @ amounts
        totals[complete] += amounts[some] @ agree[:, complete]
    return totals
