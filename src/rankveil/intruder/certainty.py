"""Links that hold in every feasible matching."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rankveil.intruder.model import Model, equal_codes
from rankveil.matchings import forced_links

Array = NDArray[np.float64]
Places = NDArray[np.int64]

PAIRS = 20_000_000
"""Feasible pairs up to which links that follow from all of them are searched."""
PATTERNS = 1_000
"""Patterns of missing cells that are looked at, the most frequent ones first."""


def certain_links(
    model: Model, released: Mapping[str, Array], records: int, *, people: Places | None, left_out: int
) -> tuple[Places, Places]:
    """People and released records whose links follow from what is possible at all.

    Records that agree in all that he recomputes form a group, and links are possible within it alone; where some
    likelihood makes links impossible too, all pairs of the group are looked at.
    """
    person = np.arange(model.count) if people is None else people
    key_x, key_y = model.key_codes(released, records, sure=True)
    bounded = [term for term in model.terms(released) if term.bounded]
    groups = max(int(key_x.max(initial=-1)), int(key_y.max(initial=-1))) + 1
    many_x = np.bincount(key_x[person], minlength=groups)
    many_y = np.bincount(key_y[key_y >= 0], minlength=groups)
    if not bounded or not model.count:
        # of somebody unknown there may be the record, where others were left out; who knows everybody excludes that
        alone = people is None or left_out == 0
        sure = (many_x == 1) & (many_y == 1) if alone else np.zeros(groups, dtype=bool)
        owner = np.full(groups, -1, dtype=np.int64)
        owner[key_y[key_y >= 0]] = np.flatnonzero(key_y >= 0)
        found = person[sure[key_x[person]]]
        return found, owner[key_x[found]]
    if float(np.sum(many_x.astype(float) * many_y)) > PAIRS:
        model.notes.append(
            f"links that follow by logic were not searched: more than {PAIRS:,} pairs of records are to be compared"
        )
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    rows, columns = _pairs(key_x[person], key_y, groups)
    possible = np.ones(rows.size, dtype=bool)
    for term in bounded:
        left = np.flatnonzero(possible)
        possible[left] = np.isfinite(term.weights(person[rows[left]], columns[left]))
    made = forced_links(rows[possible], columns[possible], (person.size, records), rows_may_lack=left_out > 0)
    if made is None:
        model.notes.append("no one-to-one link of all records is possible under the manifest; nothing is certain")
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    return person[made[0]], made[1].astype(np.int64)


def links_by_what_is_left(
    keys: Mapping[str, Array], suppressed: Mapping[str, Array], released: Mapping[str, Array]
) -> tuple[Places, Places]:
    """Links of released records whose remaining cells only one original has; for somebody who knows all originals.

    >>> x, y = np.array([1.0, 1.0, 2.0]), np.array([5.0, 6.0, 6.0])
    >>> links_by_what_is_left({}, {"A": x, "B": y}, {"A": np.array([np.nan, 1.0]), "B": np.array([5.0, np.nan])})
    (array([0]), array([0]))
    """
    fixed, lossy = ([equal_codes(x, released[name]) for name, x in each.items()] for each in (keys, suppressed))
    gone = np.column_stack([y == 0 for _, y in lossy])
    patterns, of, many = np.unique(gone, axis=0, return_inverse=True, return_counts=True)
    people, records = [], []
    for number in np.argsort(-many)[:PATTERNS]:
        rows = np.flatnonzero(of.reshape(-1) == number)
        there = [codes for codes, lost in zip(lossy, patterns[number], strict=True) if not lost]
        if not there:
            continue
        code = np.zeros(lossy[0][0].size + rows.size, dtype=np.int64)
        for x, y in (*fixed, *there):
            values = np.concatenate((x, y[rows])) + 1
            code = np.unique(code * (int(values.max()) + 1) + values, return_inverse=True)[1]
        first, second = code[: -rows.size], code[-rows.size :]
        owners = np.bincount(first, minlength=int(code.max()) + 1)
        owner = np.zeros(owners.size, dtype=np.int64)
        owner[first] = np.arange(first.size)
        alone = owners[second] == 1
        people.append(owner[second[alone]])
        records.append(rows[alone])
    if not people:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    person, record = np.concatenate(people), np.concatenate(records)
    once = np.bincount(person, minlength=1)[person] == 1  # two records of one person contradict each other
    return person[once], record[once]


def _pairs(key_x: Places, key_y: Places, groups: int) -> tuple[Places, Places]:
    """All pairs with the same key."""
    order_x, order_y = np.argsort(key_x, kind="stable"), np.argsort(key_y, kind="stable")
    starts_y = np.searchsorted(key_y[order_y], np.arange(groups + 1))
    number = np.diff(starts_y)[key_x[order_x]]
    rows = np.repeat(order_x, number)
    ahead = np.arange(rows.size) - np.repeat(np.cumsum(number) - number, number)
    columns = order_y[np.repeat(starts_y[key_x[order_x]], number) + ahead]
    return rows.astype(np.int64), columns.astype(np.int64)
