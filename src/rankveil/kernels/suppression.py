"""Which cells to suppress so that every record shares what is left of it with at least k - 1 others, at little cost.

A set of columns is a number whose bit j stands for column j. A record's class is what is left of it: the places where
cells are missing, suppressed or from the start, and the values in the other places. Its key is the exclusive or of one
random-looking number for each value that is left (`z`), so that suppressing a cell takes its number out of the key. Two
classes have the same key once in 2^63 / pairs; who calls checks the result.

Records wait until they have a class. From the cheapest sets of columns to the dearest, waiting records that agree in
all other columns become a class when they are k or more, the largest such class first (as in greedy set cover). What
cannot be had for less than a price is tried by borrowing: a few waiting records open a class with others that have one
already, where that costs less than the price of those who waited. The price rises until nobody waits.
"""

# numba finds the types itself
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False
# mypy: check-untyped-defs=False

from __future__ import annotations

from collections import namedtuple

import numpy as np

from rankveil.kernels.compiler import numba

_njit = numba.njit(cache=True, nogil=True, error_model="numpy")

_NEVER = 2**62
_NEXT_BEST = 0.85
"""Classes of at least this part of the largest elsewhere are opened in the same turn."""

_FEW = 256
"""When fewer than one record in so many waits, borrowing is tried at every other price."""

State = namedtuple("State", "z absent weights mask cost home table size head after before work")
"""The records and the class of each.

z[i, j] is the number of the cell, 0 where it is missing; absent[i] is the set of columns that were missing from the
start. mask[i] is the set of columns suppressed, cost[i] what they weigh, home[i] the place of its class in `table`
(-1 while it waits). table[c] is a key (0 where there is none), size[c] how many records the class has, head[c] the
first of them; after[i] and before[i] are the next and the last one of the same class. work[0] counts keys computed.
"""

Groups = namedtuple("Groups", "table place key first count following")
"""Waiting records by key: group g has `count[g]` records, first[g], following[first[g]], ... down to -1."""


@_njit
def begin(z, absent, weights):
    """Every record waits."""
    n = len(z)
    places = _power_above(8 * n)
    return State(
        z,
        absent,
        weights,
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.full(n, -1, np.int64),
        np.zeros(places, np.int64),
        np.zeros(places, np.int64),
        np.full(places, -1, np.int64),
        np.full(n, -1, np.int64),
        np.full(n, -1, np.int64),
        np.zeros(2, np.int64),
    )


@_njit
def restart(state, masks):
    """Give every waiting record the class that it has with these sets of columns suppressed."""
    for i in range(len(state.z)):
        key = _key(state, i, _others(masks[i], state.z.shape[1]))
        _enter(state, i, _home_of(state, key), masks[i] & ~state.absent[i])


@_njit
def covered(state, rows, masks, k, groups):
    """For each set of columns how many of the rows, all without it, have at least k like them."""
    found = np.zeros(masks.size, np.int64)
    for m in range(masks.size):
        number = _gather(state, rows, rows.size, _others(masks[m], state.z.shape[1]), groups)
        for g in range(number):
            if groups.count[g] >= k:
                found[m] += groups.count[g]
        _scatter(groups, number, rows.size)
    return found


@_njit
def construct(state, rows, masks, prices, k, eager, groups, lists):
    """Give each of the waiting `rows` a class; only they are lent to others. Returns how many could not have one.

    `masks` are the sets of columns from the cheapest to the dearest; `prices` rise, and are where borrowing is tried.
    `eager` takes classes of k as they come, not the largest first.
    """
    waiting, count = rows.copy(), rows.size
    worth = np.empty(masks.size, np.int64)
    for i in range(masks.size):
        worth[i] = weight_of(masks[i], state.weights)
    done = 0
    for number in range(prices.size):
        price = prices[number]
        while done < masks.size and worth[done] < price:
            end = done
            while end < masks.size and worth[end] == worth[done]:
                end += 1
            count = _open_largest(state, waiting, count, masks[done:end], k, eager, groups)
            count = _join(state, waiting, count, masks[:end], k)
            done = end
        if count < rows.size // _FEW and number % 2 and number < prices.size - 1:
            continue  # looking through all for a few takes as long as for many
        for i in range(done):
            if count == 0:
                return 0
            count = _borrow(state, waiting, count, rows, masks[i], price, groups, lists, k)
    return count


@_njit
def improve(state, sequence, masks, prices, k, block, turn, most, groups, lists):
    """Take the classes of about `block` records that follow each other in `sequence` apart and make them anew.

    Sets of columns that cost the same are tried in another order in each `turn`, and what costs more than before is
    put back. Returns how much was saved; stops when `most` keys were computed.
    """
    n = len(state.z)
    seen = np.zeros(n, np.bool_)
    rows, kept_mask, kept_home = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    chosen = np.empty_like(masks)
    saved, at, number = 0, 0, 0
    while at < sequence.size and state.work[0] < most and state.work[1] < state.table.size // 2:
        count, dearest, before, missing = 0, 0, 0, 0
        while at < sequence.size and count < block:
            first = sequence[at]
            at += 1
            if seen[first] or (state.cost[first] == 0 and state.size[state.home[first]] >= 2 * k):
                continue
            i = state.head[state.home[first]]
            while i >= 0:
                rows[count], kept_mask[count], kept_home[count] = i, state.mask[i], state.home[i]
                seen[i] = True
                before += state.cost[i]
                dearest = max(dearest, state.cost[i])
                missing |= state.absent[i]
                count += 1
                i = state.after[i]
        if before == 0:
            continue
        number += 1
        for t in range(count):
            _leave(state, rows[t])
        upto = 0
        for mask in masks:  # what costs more than any of them did would not pay
            if weight_of(mask & ~missing, state.weights) <= dearest:
                chosen[upto] = mask
                upto += 1
        some = _mixed(chosen[:upto], state.weights, 31 * turn + number)
        left = construct(state, rows[:count].copy(), some, prices, k, turn % 3 == 2, groups, lists)
        now = 0
        for t in range(count):
            now += state.cost[rows[t]]
        if left == 0 and now <= before:
            saved += before - now
            continue
        for t in range(count):
            if state.home[rows[t]] >= 0:
                _leave(state, rows[t])
        for t in range(count):
            _enter(state, rows[t], kept_home[t], kept_mask[t])
    return saved


@_njit
def weight_of(mask, weights):
    """What the cells of a set of columns weigh."""
    total, j = 0, 0
    while mask:
        if mask & 1:
            total += weights[j]
        mask >>= 1
        j += 1
    return total


@_njit
def _power_above(n):
    size = 16
    while size < n:
        size *= 2
    return size


@_njit
def no_groups(rows, n):
    places = _power_above(2 * rows)
    return Groups(
        np.zeros(places, np.int64),
        np.empty(places, np.int64),
        np.empty(rows, np.int64),
        np.empty(rows, np.int64),
        np.empty(rows, np.int64),
        np.empty(n, np.int64),
    )


@_njit
def _key(state, i, columns):
    """What is left of a record in these columns; never 0, which stands for no key."""
    key = 0
    for j in columns:
        key ^= state.z[i, j]
    return key if key != 0 else 1


@_njit
def _place(table, key):
    """Where a key is in a table, or would be."""
    last = table.size - 1
    at = (key ^ (key >> 31)) & last
    while table[at] != 0 and table[at] != key:
        at = (at + 1) & last
    return at


@_njit
def _others(mask, columns):
    """The columns that are not in a set."""
    found, count = np.empty(columns, np.int64), 0
    for j in range(columns):
        if not (mask >> j) & 1:
            found[count] = j
            count += 1
    return found[:count]


@_njit
def _enter(state, i, home, mask):
    """Give a record a class."""
    if state.table[home] == 0:
        raise ValueError("a class must have a key")
    state.mask[i] = mask
    state.cost[i] = weight_of(mask, state.weights)
    state.home[i] = home
    first = state.head[home]
    state.after[i], state.before[i] = first, -1
    if first >= 0:
        state.before[first] = i
    state.head[home] = i
    state.size[home] += 1


@_njit
def _leave(state, i):
    """Take a record out of its class."""
    home, after, before = state.home[i], state.after[i], state.before[i]
    if before >= 0:
        state.after[before] = after
    else:
        state.head[home] = after
    if after >= 0:
        state.before[after] = before
    state.size[home] -= 1
    state.home[i] = -1
    state.cost[i] = 0


@_njit
def _home_of(state, key):
    """The place of a class, made when it is new."""
    home = _place(state.table, key)
    if state.table[home] == 0:
        state.table[home] = key
        state.work[1] += 1
    return home


@_njit
def _gather(state, waiting, count, columns, groups):
    """Waiting records that agree in these columns; returns how many groups there are. `_scatter` undoes it."""
    number = 0
    state.work[0] += count
    table = groups.table[: _power_above(2 * count)]  # as small as may be: it stays near the processor
    for t in range(count):
        i = waiting[t]
        key = _key(state, i, columns)
        at = _place(table, key)
        if table[at] == 0:
            table[at], groups.place[at] = key, number
            groups.key[number], groups.first[number], groups.count[number] = key, -1, 0
            number += 1
        g = groups.place[at]
        groups.following[i], groups.first[g] = groups.first[g], i
        groups.count[g] += 1
    return number


@_njit
def _scatter(groups, number, count):
    table = groups.table[: _power_above(2 * count)]
    # all places are found before any is emptied: a search ends at the first empty one
    for g in range(number):
        groups.key[g] = _place(table, groups.key[g])
    for g in range(number):
        table[groups.key[g]] = 0


@_njit
def _settle(state, group, mask, groups):
    """The records of a group get their class."""
    home = _home_of(state, groups.key[group])
    i = groups.first[group]
    while i >= 0:
        _enter(state, i, home, mask & ~state.absent[i])
        i = groups.following[i]


@_njit
def _still(state, waiting, count):
    """Those who still wait, moved to the front."""
    left = 0
    for t in range(count):
        if state.home[waiting[t]] < 0:
            waiting[left] = waiting[t]
            left += 1
    return left


@_njit
def _open_largest(state, waiting, count, masks, k, eager, groups):
    """Classes of k or more waiting records, the largest of all these sets of columns first."""
    largest = np.full(masks.size, count, np.int64)
    known = np.zeros(masks.size, np.bool_)  # before it is counted the bound is that all agree
    while count >= k:
        best, second = -1, 0
        for m in range(masks.size):
            if best < 0 or largest[m] > largest[best]:
                second = largest[best] if best >= 0 else 0
                best = m
            elif largest[m] > second:
                second = largest[m]
        if largest[best] < k:
            break
        least = k if eager else max(k, int(_NEXT_BEST * second)) if known[best] else max(k, second)
        number = _gather(state, waiting, count, _others(masks[best], state.z.shape[1]), groups)
        largest[best], known[best] = 0, True
        for g in range(number):
            if groups.count[g] >= least:
                _settle(state, g, masks[best], groups)
            else:
                largest[best] = max(largest[best], groups.count[g])
        _scatter(groups, number, count)
        count = _still(state, waiting, count)
    return count


@_njit
def _join(state, waiting, count, masks, k):
    """Waiting records enter the cheapest class that there is for them."""
    if count == 0:
        return 0
    for m in range(masks.size):
        columns = _others(masks[m], state.z.shape[1])
        state.work[0] += count
        for t in range(count):
            home = _place(state.table, _key(state, waiting[t], columns))
            if state.table[home] != 0 and state.size[home] >= k:
                _enter(state, waiting[t], home, masks[m] & ~state.absent[waiting[t]])
        count = _still(state, waiting, count)
    return count


Lists = namedtuple("Lists", "first following loss budget present taken total")
"""Who could be borrowed: for each group the first record, for each record the next, and what it would lose.

budget[g] is what a class for group g may cost others; 0 when it needs none. For classes, by their place: how many of
its records agree with the group, how many are taken, what all would lose.
"""


@_njit
def no_lists(n, places, rows):
    return Lists(
        np.full(rows, -1, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.zeros(rows, np.int64),
        np.zeros(places, np.int64),
        np.zeros(places, np.int64),
        np.zeros(places, np.int64),
    )


@_njit
def _borrow(state, waiting, count, rows, mask, price, groups, lists, k):
    """Fewer than k waiting records open a class with others, where that costs less than a price for each of them."""
    columns = _others(mask, state.z.shape[1])
    number = _gather(state, waiting, count, columns, groups)
    wanted = False
    for g in range(number):
        lists.first[g], lists.budget[g] = -1, 0
        home = _place(state.table, groups.key[g])
        if groups.count[g] >= k or (state.table[home] != 0 and state.size[home] >= k):
            _settle(state, g, mask, groups)
            continue
        wanted = True
        i = groups.first[g]
        while i >= 0:
            lists.budget[g] += price - weight_of(mask & ~state.absent[i], state.weights)
            i = groups.following[i]
    if wanted:
        _find_lenders(state, rows, mask, columns, groups.table[: _power_above(2 * count)], groups, lists)
        for g in range(number):
            if lists.first[g] >= 0:
                _open_with_others(state, g, mask, groups, lists, k)
    _scatter(groups, number, count)
    return _still(state, waiting, count)


@_njit
def _find_lenders(state, rows, mask, columns, table, groups, lists):
    """The records with a class that agree with a group."""
    weight = weight_of(mask, state.weights)
    state.work[0] += rows.size
    for i in rows:
        if state.home[i] < 0:
            continue
        at = _place(table, _key(state, i, columns))
        if table[at] == 0:
            continue
        g = groups.place[at]
        loss = weight - weight_of(mask & state.absent[i], state.weights) - state.cost[i]
        if loss < lists.budget[g]:
            lists.loss[i] = loss
            lists.following[i], lists.first[g] = lists.first[g], i


@_njit
def _open_with_others(state, group, mask, groups, lists, k):
    """Open a class for a group with those who lose least, or with a whole class, if it pays."""
    need, many = k - groups.count[group], 0
    i = lists.first[group]
    while i >= 0:
        home = state.home[i]
        lists.present[home] += 1
        lists.total[home] += lists.loss[i]
        many += 1
        i = lists.following[i]
    who, loss = np.empty(many, np.int64), np.empty(many, np.int64)
    t = 0
    i = lists.first[group]
    while i >= 0:
        who[t], loss[t] = i, lists.loss[i]
        t += 1
        i = lists.following[i]
    order = np.argsort(loss, kind="mergesort")
    singly, chosen = 0, 0
    for t in order:
        home = state.home[who[t]]
        if chosen < need and lists.taken[home] < state.size[home] - k:
            lists.taken[home] += 1
            chosen += 1
            singly += loss[t]
    if chosen < need:
        singly = _NEVER
    whole, which = _NEVER, -1
    for t in range(many):
        home = state.home[who[t]]
        if lists.present[home] == state.size[home] and lists.total[home] < whole:
            whole, which = lists.total[home], home
    if min(singly, whole) < lists.budget[group]:
        _settle(state, group, mask, groups)
        home = state.home[groups.first[group]]
        for t in order:
            i, old = who[t], state.home[who[t]]
            if singly <= whole:
                moves = lists.taken[old] > 0
                lists.taken[old] -= moves
            else:
                moves = old == which
            lists.present[old] = lists.total[old] = 0
            if moves:
                _leave(state, i)
                _enter(state, i, home, mask & ~state.absent[i])
            elif singly > whole:
                lists.taken[old] = 0
        if which >= 0:
            lists.taken[which] = 0
        return
    for t in range(many):
        old = state.home[who[t]]
        lists.present[old] = lists.taken[old] = lists.total[old] = 0


@_njit
def _mixed(masks, weights, turn):
    """Sets of columns in another order among those of the same weight."""
    mixed = masks.copy()
    word = turn * 2654435761 + 12345
    start = 0
    while start < mixed.size:
        end = start
        while end < mixed.size and weight_of(mixed[end], weights) == weight_of(mixed[start], weights):
            end += 1
        for t in range(end - 1, start, -1):
            word = (word * 1103515245 + 12345) & 0x7FFFFFFF
            other = start + (word >> 8) % (t - start + 1)
            mixed[t], mixed[other] = mixed[other], mixed[t]
        start = end
    return mixed
