"""Local suppression: the fewest cells that must go so that no record is alone with its values.

A missing cell is a value of its own (`own`), so that a record with suppressed cells needs k - 1 others with the same
cells missing and the same values left; or it agrees with everything (`any`), as sdcMicro and mu-Argus count. The least
number of cells is NP-hard to find (Meyerson and Williams 2004), so several ways are tried and the best is taken: the
greedy ones that are in use, and those of `kernels.suppression` and `kernels.agreement`, which are then improved.

With `any`, k - 1 records without any value would do for everybody. That is not sought: a record only ever takes what it
needs itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.classes import Classes, Missing

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]

EVERY_SET = 10
"""With so many columns every set of them is considered as the cells to suppress; with more, those that look useful."""
MOST_COLUMNS = 60

_SETS = 1 << EVERY_SET
_UNIT = 1_000_000
"""What a cell of the most important column weighs; a column of no importance weighs 1, or it would go for nothing."""
_LENT = 3
"""Of a class that is large enough, so many times k records at most take part."""
_KEYS = 60_000_000
"""How many keys are computed in the improvement at most: a second or two."""
_PER_RECORD = 30
"""How many keys could be computed while a record is put into its class."""
_CELLS = 2_000_000_000
"""How many records are compared in the improvement at most, where a missing cell agrees with everything."""
_TRIED = 200_000
"""Records that are gone through while sets of columns are tried for all records alike."""
_BLOCKS = (6, 12, 24, 48)
"""Classes of about so many times k records are made anew together."""
_IN_VAIN = 24
"""So many turns without any saving are the last."""


@dataclass(frozen=True)
class Suppressed:
    """Which cells are suppressed."""

    cells: Flags
    every_set: bool
    """Whether every set of columns was considered."""
    forced: int = 0
    """How many records lost all their values because there was no other way to protect everybody."""


def fewest(codes: Codes, *, k: int, importance: Array, missing: Missing = "own") -> Suppressed:
    """The cells to suppress so that every record has k - 1 others like it; codes are -1 where cells are missing.

    There must be at least k records, and at most `MOST_COLUMNS` columns.

    >>> codes = np.array([[0, 0], [0, 0], [0, 0], [0, 1], [1, 1], [1, 1]])
    >>> fewest(codes, k=2, importance=np.ones(2)).cells.sum(axis=0)
    array([0, 2])
    """
    n, columns = codes.shape
    if n < k or columns > MOST_COLUMNS:
        raise ValueError("there must be at least k records and not too many columns")
    weights = np.maximum(np.rint(importance / max(importance.max(), 1e-300) * _UNIT), 1).astype(np.int64)
    masks = _with_own_value(codes, k, weights) if missing == "own" else _agreeing(codes, k, weights)
    cells = _bits(masks, columns)
    cells, forced = made_safe(codes, cells, k=k, missing=missing)
    return Suppressed(cells, columns <= EVERY_SET, forced)


def frequencies(codes: Codes, cells: Flags, *, missing: Missing) -> Codes:
    """How many records are like each record, itself among them, with some cells suppressed."""
    left = np.where(cells | (codes < 0), np.nan, codes)
    return Classes.of({str(j): column for j, column in enumerate(left.T)}, missing=missing).frequency


def made_safe(codes: Codes, cells: Flags, *, k: int, missing: Missing) -> tuple[Flags, int]:
    """The cells, and all those of records that have too few like them; and how many records that were.

    Records without values may be too few themselves; then the next ones lose theirs too, until there are k of them.
    """
    cells, forced = cells.copy(), 0
    while (below := np.flatnonzero(frequencies(codes, cells, missing=missing) < k)).size:
        valued: Flags = np.asarray(~(cells | (codes < 0)).all(axis=1))
        chosen = below[valued[below]]
        if chosen.size == 0:
            chosen = np.flatnonzero(valued)[: k - below.size]
        cells[chosen] = codes[chosen] >= 0
        forced += chosen.size
    return cells, forced


def _bits(masks: Codes, columns: int) -> Flags:
    """Sets of columns as flags."""
    flags: Flags = (masks[:, None] >> np.arange(columns) & 1).astype(bool)
    return flags


def _sets(flags: Flags) -> Codes:
    """Flags of columns as sets."""
    sets: Codes = (flags.astype(np.int64) << np.arange(flags.shape[1])).sum(axis=1)
    return sets


def _worth(masks: Codes, weights: Codes) -> Codes:
    """What the cells of each set of columns weigh."""
    worth: Codes = _bits(masks, weights.size) @ weights
    return worth


# Where a missing cell is a value of its own


def _with_own_value(codes: Codes, k: int, weights: Codes) -> Codes:
    """The columns to suppress in each record, as sets."""
    classes = Classes.of({str(j): column.astype(np.float64) for j, column in enumerate(codes.T)})
    if (classes.sizes >= k).all():
        return np.zeros(len(codes), dtype=np.int64)
    # of a large class only some are needed: those who may be borrowed
    order = np.argsort(classes.number, kind="stable")
    starts = np.cumsum(classes.sizes) - classes.sizes
    place = np.empty(len(codes), dtype=np.int64)
    place[order] = np.arange(len(codes)) - np.repeat(starts, classes.sizes)
    some = np.flatnonzero(place < _LENT * k)
    masks = np.zeros(len(codes), dtype=np.int64)
    masks[some] = _Search(codes[some], k, weights).best()
    return masks


class _Search:
    """Ways to a set of cells, and their improvement."""

    def __init__(self, codes: Codes, k: int, weights: Codes) -> None:
        from rankveil.kernels import suppression

        self.loops: Any = suppression
        self.codes, self.k, self.weights = codes, k, weights
        self.z = _numbers(codes)
        self.absent = _sets(codes < 0)
        self.masks = _useful_sets(codes, k, weights)
        self.full = int(weights.sum())
        steps = np.ceil(self.full * np.arange(1, weights.size + 1) / weights.size).astype(np.int64)
        far = self.full * np.array([1, 2, 4, 2 * k + 1]) + 1
        self.prices = np.unique(np.concatenate((steps, far)))
        n = len(codes)
        self.rows = np.arange(n)
        self.groups = self.loops.no_groups(n, n)
        self.lists = self.loops.no_lists(n, self.loops.begin(self.z, self.absent, weights).table.size, n)

    def best(self) -> Codes:
        """The best way, improved."""
        ways = [self.constructed(), self.one_set(), self.greedy()]
        return self.improved(min(ways, key=self.cost))

    def cost(self, masks: Codes) -> int:
        """What the cells weigh."""
        return int(_worth(masks, self.weights).sum())

    def constructed(self) -> Codes:
        """From the cheapest sets of columns to the dearest, the largest classes first."""
        state = self.loops.begin(self.z, self.absent, self.weights)
        self.loops.construct(state, self.rows, self.masks, self.prices, self.k, False, self.groups, self.lists)
        return self._safe(state.mask)

    def one_set(self) -> Codes:
        """The same set of columns in all records that are too few, and everything in those that still are (as ARX)."""
        state = self.loops.begin(self.z, self.absent, self.weights)
        few = frequencies(self.codes, np.zeros(self.codes.shape, dtype=bool), missing="own") < self.k
        covered = self.loops.covered(state, np.flatnonzero(few), self.masks, self.k, self.groups)
        cost = covered * _worth(self.masks, self.weights) + (np.count_nonzero(few) - covered) * self.full
        # missing cells cost nothing, and those who are still too few may need others: several sets are tried
        tried = self.masks[np.argsort(cost, kind="stable")[: np.clip(_TRIED // len(few), 1, 64)]]
        return min((self._safe(np.where(few, one, 0)) for one in tried), key=self.cost)

    def greedy(self) -> Codes:
        """In rounds, each record that is too few loses the cell after which most are like it, for its weight."""
        keys, masks = np.bitwise_xor.reduce(self.z, axis=1), np.zeros(len(self.z), dtype=np.int64)
        while True:
            _, number, counts = np.unique(keys, return_inverse=True, return_counts=True)
            few = np.flatnonzero(counts[number] < self.k)
            gone = (masks | self.absent)[few]
            left = gone != (1 << self.weights.size) - 1
            if not left.any():
                break
            best, chosen = np.zeros(few.size), np.full(few.size, -1)
            for j, weight in enumerate(self.weights):
                moved = keys.copy()
                moved[few] ^= np.where(gone >> j & 1, 0, self.z[few, j])
                _, number, counts = np.unique(moved, return_inverse=True, return_counts=True)
                score = np.where(gone >> j & 1, 0.0, counts[number[few]] / weight)
                better = score > best
                best[better], chosen[better] = score[better], j
            few, chosen = few[left], chosen[left]
            keys[few] ^= self.z[few, chosen]
            masks[few] |= np.int64(1) << chosen
        return self._safe(masks)

    def _safe(self, masks: Codes) -> Codes:
        """With everything in those who are still too few."""
        cells = _bits(masks, self.weights.size) & (self.codes >= 0)
        return _sets(made_safe(self.codes, cells, k=self.k, missing="own")[0])

    def improved(self, masks: Codes) -> Codes:
        """Made anew in parts, as long as that saves something."""
        worth = _worth(self.masks, self.weights)
        vain = turn = done = 0
        while vain < _IN_VAIN and done < _KEYS and masks.any():
            state = self.loops.begin(self.z, self.absent, self.weights)
            self.loops.restart(state, masks)
            # neighbours agree outside a set that costs about what records cost now
            usual = state.cost[state.cost > 0].mean()
            near = np.flatnonzero((worth >= usual - _UNIT) & (worth <= usual + _UNIT))
            among = near if near.size else np.arange(worth.size)
            apart = _bits(self.masks[among[turn * 7919 % among.size]][None], self.weights.size)[0]
            sequence = np.argsort(np.bitwise_xor.reduce(self.z[:, ~apart], axis=1), kind="stable")
            block = _BLOCKS[turn % len(_BLOCKS)] * self.k
            saved = self.loops.improve(
                state, sequence, self.masks, self.prices, self.k, block, turn, _KEYS - done, self.groups, self.lists
            )
            masks, done = state.mask.copy(), done + int(state.work[0]) + _PER_RECORD * len(masks)
            vain = 0 if saved else vain + 1
            turn += 1
        return masks


def _numbers(codes: Codes) -> Codes:
    """A number for each cell that looks random, the same for the same value of a column; 0 where it is missing.

    SplitMix64 (Steele, Lea and Flood 2014) of the column and the value.
    """
    column = np.arange(1, codes.shape[1] + 1, dtype=np.uint64) << np.uint64(40)
    word = (codes.astype(np.uint64) + column) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ word >> np.uint64(shift)) * np.uint64(factor)
    word ^= word >> np.uint64(31)
    return np.ascontiguousarray(np.where(codes < 0, 0, word.view(np.int64)))


def _useful_sets(codes: Codes, k: int, weights: Codes) -> Codes:
    """Sets of columns from the cheapest to the dearest: all of them, or with many columns those that look useful.

    Useful are the sets of up to two columns, those that tell k neighbours apart when records are sorted by some
    columns first (the most frequent ones), and those of the columns with the most values.
    """
    columns = weights.size
    if columns <= EVERY_SET:
        chosen = np.arange(1 << columns)
    else:
        one = np.int64(1) << np.arange(columns)
        simple = np.concatenate(([0], one, (one[:, None] | one).ravel()))
        values = [np.unique(column).size for column in codes.T]
        nested = np.bitwise_or.accumulate(one[np.argsort(values)[::-1]])
        found, counts = np.unique(_apart(codes, k), return_counts=True)
        often = found[np.argsort(-counts, kind="stable")][:_SETS]
        chosen = np.unique(np.concatenate((simple, nested, often)))
    return chosen[np.lexsort((chosen, _worth(chosen, weights)))]


def _apart(codes: Codes, k: int) -> Codes:
    """The columns in which k records that follow each other differ, by every column sorted first."""
    columns = codes.shape[1]
    found = []
    for first in range(columns):
        order = np.lexsort([codes[:, (first + j) % columns] for j in range(columns)])
        steps = _sets(codes[order][1:] != codes[order][:-1])
        reach = min(k - 1, steps.size)
        windows = np.lib.stride_tricks.sliding_window_view(steps, reach) if reach else steps[:, None]
        found.append(np.bitwise_or.reduce(windows, axis=1))
    return np.concatenate(found)


# Where a missing cell agrees with everything


def _agreeing(codes: Codes, k: int, weights: Codes) -> Codes:
    """The columns to suppress in each record, as sets: the best of several ways, improved."""
    from rankveil.kernels import agreement

    columns, n = weights.size, len(codes)
    exact = columns <= EVERY_SET
    before = frequencies(codes, np.zeros(codes.shape, dtype=bool), missing="any")
    rows, fewest_first = np.arange(n), np.argsort(before, kind="stable")

    def begin() -> Any:
        kind = np.int16 if exact else np.int64
        absent = _sets(codes < 0).astype(kind)
        bits = (np.int64(1) << np.arange(columns)).astype(kind)
        values = np.ascontiguousarray(codes.T.astype(np.int16 if codes.max() < 2**15 else np.int64))
        return agreement.State(values, bits, absent, np.zeros_like(absent), absent.copy(), before.copy(), weights)

    def improved(state: Any) -> tuple[int, Codes]:
        give_back = agreement.give_back if exact else agreement.give_back_cells
        vain = turn = work = 0
        while vain < 2 and (turn == 0 or work < _CELLS):
            order = rows if turn % 2 else rows[::-1].copy()
            work += int(np.count_nonzero(state.mask)) * n
            vain = 0 if give_back(state, order, k) else vain + 1
            turn += 1
        masks = np.asarray(state.mask, dtype=np.int64)
        return int(_worth(masks, weights).sum()), masks

    best, masks = np.iinfo(np.int64).max, rows
    for order in (fewest_first, rows) if exact else ():
        if order is fewest_first or n * n < _CELLS:
            state = begin()
            agreement.protect(state, order, k)
            best, masks = min((best, masks), improved(state), key=lambda way: way[0])
    for ahead in (False, True):
        state = begin()
        # what is dearer already may still become cheaper, which is tried where it takes little time
        limit = best if n * n >= _CELLS else np.iinfo(np.int64).max
        if agreement.protect_stepwise(state, rows, k, ahead, limit) <= limit:
            best, masks = min((best, masks), improved(state), key=lambda way: way[0])
    return masks
