"""Which cells to suppress so that k records agree with every record, where a missing cell agrees with everything.

A set of columns is a number whose bit j stands for column j. Two records differ in the columns where both have a value
and the values are not the same; they agree when there is no such column. Suppressing cells can only make more records
agree, also for the others: so a record takes the cheapest cells with which k agree, counting what others have
suppressed before it, and later gives back what nobody needs any more.
"""

# numba finds the types itself
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: check-untyped-defs=False

from __future__ import annotations

from collections import namedtuple

import numpy as np

from rankveil.kernels.compiler import numba

_njit = numba.njit(cache=True, nogil=True, error_model="numpy")

_TILE = 2048
"""Records compared at a time, so that they stay near the processor."""

State = namedtuple("State", "codes bits absent mask gone frequency weights")
"""The records and what agrees with them.

codes[j, i] is the value of record i in column j, and bits[j] the set of that column alone. absent[i] is the set of
columns that record i never had, mask[i] the set suppressed, gone[i] both; frequency[i] is how many agree with it,
itself among them; weights[j] is what a cell of column j costs.
"""


@_njit
def protect(state, order, k):
    """Each record in `order` with which fewer than k agree takes the cheapest set of cells with which k do.

    Among sets of the same cost it takes the one that most others who are short of k agree with.
    """
    differ, counts, helps, worth = _room(state)
    limit = 2 * state.weights.max()
    for i in order:
        if state.frequency[i] >= k:
            continue
        _differences(state, i, differ)
        own = worth.size - 1 & ~state.absent[i]
        # what costs more than the cells taken at last is counted only when there is nothing cheaper
        for most in (limit, worth[-1]):
            _count(state, differ, k, worth, most, counts, helps)
            best = _cheapest(own, 0, own, worth, most, counts, helps, k)
            if counts[best] >= k:
                break
        limit = min(worth[best] + state.weights.max(), worth[-1])
        _change(state, differ, i, best)


@_njit
def give_back(state, order, k):
    """Each record in `order` takes the cheapest set of cells with which k agree with it and with all who need it.

    Returns how much was saved.
    """
    differ, counts, helps, worth = _room(state)
    saved = 0
    for i in order:
        if state.mask[i] == 0:
            continue
        _differences(state, i, differ)
        needed = 0
        for t in range(differ.size):
            if differ[t] & ~state.mask[i] == 0 and state.frequency[t] <= k and t != i:
                needed |= differ[t]
        most = worth[state.mask[i]]
        _count(state, differ, k + 1, worth, most, counts, helps)
        own = worth.size - 1 & ~state.absent[i]
        best = _cheapest(own, needed, state.mask[i], worth, most, counts, helps, k)
        if best != state.mask[i]:
            saved += worth[state.mask[i]] - worth[best]
            _change(state, differ, i, best)
    return saved


@_njit
def protect_stepwise(state, order, k, ahead, most):
    """Each record in `order` with which fewer than k agree takes one cell after the other: the one that helps most.

    That is the one after which most records agree, for its cost; among equals the first, or when looking `ahead` the
    one after which most lack one more cell. Returns what was spent, and stops where that is above `most`.
    """
    spent = 0
    columns = len(state.codes)
    differ = np.empty_like(state.mask)
    next_to, second = np.empty(columns, np.int64), np.empty(columns, np.int64)
    for i in order:
        if spent > most:
            break
        if state.frequency[i] >= k:
            continue
        _differences(state, i, differ)
        taken, count = state.mask[i], state.frequency[i]
        while count < k:
            next_to[:] = 0
            second[:] = 0
            for t in range(differ.size):
                rest = np.int64(differ[t] & ~taken)
                few = rest & rest - 1
                if rest == 0 or few & few - 1:
                    continue
                for j in range(columns):
                    if rest >> j & 1:
                        next_to[j] += few == 0
                        second[j] += few != 0
            best = -1
            for j in range(columns):
                if state.absent[i] >> j & 1 or taken >> j & 1:
                    continue
                if best < 0:
                    best = j
                    continue
                one, other = next_to[j] * state.weights[best], next_to[best] * state.weights[j]
                if one == other and ahead:
                    one, other = second[j] * state.weights[best], second[best] * state.weights[j]
                if one > other:
                    best = j
            if best < 0:
                break
            taken |= state.bits[best]
            count += next_to[best]
            spent += state.weights[best]
        _change(state, differ, i, taken)
    return spent


@_njit
def give_back_cells(state, order, k):
    """Each record in `order` gives back one cell after the other, the dearest first, that nobody needs.

    Returns how much was saved.
    """
    columns = len(state.codes)
    differ = np.empty_like(state.mask)
    lost, needed = np.empty(columns, np.int64), np.empty(columns, np.bool_)
    saved = 0
    for i in order:
        if state.mask[i] == 0:
            continue
        _differences(state, i, differ)
        left = state.mask[i]
        while left:
            lost[:] = 0
            needed[:] = False
            count = 0
            for t in range(differ.size):
                if differ[t] & ~left:
                    continue
                count += 1
                for j in range(columns):
                    if differ[t] >> j & 1:
                        lost[j] += 1
                        needed[j] |= state.frequency[t] <= k and t != i
            best = -1
            for j in range(columns):
                if not left >> j & 1 or needed[j] or count - lost[j] < k:
                    continue
                if best < 0 or state.weights[j] > state.weights[best]:
                    best = j
            if best < 0:
                break
            left &= ~state.bits[best]
            saved += state.weights[best]
            _change(state, differ, i, left)
    return saved


@_njit
def _room(state):
    """Working memory, and what every set of columns costs."""
    sets = 1 << len(state.codes)
    worth = np.zeros(sets, np.int64)
    for some in range(1, sets):
        j = 0
        while not some >> j & 1:
            j += 1
        worth[some] = worth[some & some - 1] + state.weights[j]
    return np.empty_like(state.mask), np.empty(sets, np.int64), np.empty(sets, np.int64), worth


@_njit
def _differences(state, i, differ):
    """The columns in which each record differs from record i, were nothing of record i suppressed."""
    for start in range(0, differ.size, _TILE):
        part = differ[start : start + _TILE]
        part[:] = 0
        for j in range(len(state.codes)):
            if state.absent[i] >> j & 1:
                continue
            value, column = state.codes[j, i], state.codes[j, start : start + _TILE]
            bit, none = state.bits[j], state.bits[j] ^ state.bits[j]
            for t in range(part.size):
                part[t] |= bit if column[t] != value else none
        gone = state.gone[start : start + _TILE]
        for t in range(part.size):
            part[t] &= ~gone[t]


@_njit
def _count(state, differ, k, worth, most, counts, helps):
    """For sets of columns that cost at most so much: how many agree outside them, and how many of those lack others."""
    counts[:] = 0
    helps[:] = 0
    for t in range(differ.size):
        if worth[differ[t]] <= most:
            counts[differ[t]] += 1
            helps[differ[t]] += state.frequency[t] < k
    step = 1
    while step < counts.size:
        for some in range(counts.size):
            if some & step:
                counts[some] += counts[some ^ step]
                helps[some] += helps[some ^ step]
        step *= 2


@_njit
def _cheapest(own, needed, best, worth, most, counts, helps, k):
    """The cheapest set of own columns with all that are needed and with which k agree; `best` unless there is one."""
    for some in range(worth.size):
        if worth[some] > most or some & ~own or needed & ~some or counts[some] < k:
            continue
        if counts[best] < k or worth[some] < worth[best] or (worth[some] == worth[best] and helps[some] > helps[best]):
            best = some
    return best


@_njit
def _change(state, differ, i, best):
    """Record i has other cells suppressed: more or fewer agree with it, and it with them."""
    before = state.mask[i]
    count = 0
    for t in range(differ.size):
        now = (differ[t] & ~best) == 0
        count += now
        state.frequency[t] += np.int64(now) - np.int64((differ[t] & ~before) == 0)
    state.mask[i] = best
    state.gone[i] = state.absent[i] | best
    state.frequency[i] = count
