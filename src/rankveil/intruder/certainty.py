"""Links that hold in every feasible matching."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rankveil.intruder.model import Model
from rankveil.matchings import forced_links

Array = NDArray[np.float64]
Places = NDArray[np.int64]

PAIRS = 20_000_000
"""Feasible pairs up to which links that follow from all of them are searched."""


def certain_links(
    model: Model, released: Mapping[str, Array], records: int, *, people: Places | None, left_out: int
) -> tuple[Places, Places]:
    """People and released records whose links follow from what is possible at all.

    Records that agree in all that he recomputes form a group, and links are possible within it alone; where some
    likelihood makes links impossible too, all pairs of the group are looked at.
    """
    person = np.arange(model.count) if people is None else people
    key_x, key_y = model.key_codes(released, records)
    bounded = [term for term in model.terms(released) if term.bounded]
    groups = max(int(key_x.max(initial=-1)), int(key_y.max(initial=-1))) + 1
    many_x = np.bincount(key_x[person], minlength=groups)
    many_y = np.bincount(key_y[key_y >= 0], minlength=groups)
    if not bounded or not model.count:
        # somebody left out might have been the only one; somebody unknown might have the record only if there are two
        sure = (many_x == 1) & (many_y == 1) if left_out == 0 else np.zeros(groups, dtype=bool)
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


def _pairs(key_x: Places, key_y: Places, groups: int) -> tuple[Places, Places]:
    """All pairs with the same key."""
    order_x, order_y = np.argsort(key_x, kind="stable"), np.argsort(key_y, kind="stable")
    starts_y = np.searchsorted(key_y[order_y], np.arange(groups + 1))
    number = np.diff(starts_y)[key_x[order_x]]
    rows = np.repeat(order_x, number)
    ahead = np.arange(rows.size) - np.repeat(np.cumsum(number) - number, number)
    columns = order_y[np.repeat(starts_y[key_x[order_x]], number) + ahead]
    return rows.astype(np.int64), columns.astype(np.int64)
