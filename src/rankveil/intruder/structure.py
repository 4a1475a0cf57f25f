"""Swaps in pairs, undone: over two columns or more they tell who is who.

In a pairwise swap, if released record a is original i, then in every column the original whose value a has is the one
whose released record has i's value. So one link implies a link for each column, and those imply others: a wrong
hypothesis soon contradicts itself, a right one never does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rankveil.intruder.model import Model, RankPart, rank_interval
from rankveil.intruder.shared import SharedColumns
from rankveil.kernels.implied import surviving

Array = NDArray[np.float64]
Places = NDArray[np.int64]
NO_LINKS = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

_HYPOTHESES = 200_000_000
"""Links that are tried at most."""
_WASTED = 20
"""People without a result after whom there is no hope of pairs that nobody told of."""
_HOPELESS, _AT_LEAST = 400_000, 3
"""Links tried without a result, of so many people at least, after which there is none either: in large tables."""
_LARGE = 10
"""Links that must follow from one another before pairs that nobody told of are believed."""


def linked_by_pairs(
    shared: SharedColumns, released: Mapping[str, Array], model: Model, *, people: Places | None
) -> tuple[Places, Places]:
    """Originals and released records whose links follow from pairs of swaps; nothing where there are none.

    Values that several records have imply nothing, those that one has imply who swapped with whom. Where the manifest
    tells of pairs, one hypothesis that survives is a certainty; otherwise it is when many links follow from it.
    """
    count = len(shared.original)
    original = shared.read(shared.original)
    told = {each.name: each for each in model.parts if isinstance(each, RankPart) and each.pairs}
    columns = [
        name
        for name in shared.names
        if name in shared.numeric
        and name in released
        and (name in told or (name not in model.keys and name not in model.silent and not told))
        and _permuted(original[name], released[name])
    ]
    if len(columns) < 2 or people is not None or any(len(released[name]) != count for name in columns):
        return NO_LINKS
    first, second = model.key_codes(released, count)
    return _Search(columns, original, released, first, second, told).run()


def _permuted(x: Array, y: Array) -> bool:
    """Whether a column has all of the original's values, and as often."""
    return x.size == y.size and bool(np.array_equal(np.sort(x), np.sort(y), equal_nan=True))


class _Search:
    """The search for links that survive."""

    def __init__(
        self,
        columns: Sequence[str],
        original: Mapping[str, Array],
        released: Mapping[str, Array],
        key_x: Places,
        key_y: Places,
        told: Mapping[str, RankPart],
    ) -> None:
        n, m = key_x.size, len(columns)
        self.key_x, self.key_y, self.told = key_x, key_y, bool(told)
        self.owner, self.holder = (np.full((n, m), -1, dtype=np.int64) for _ in range(2))
        self.low, self.high = (np.full((n, m), -1, dtype=np.int64) for _ in range(2))
        self.place = np.full((n, 2 * m), -1, dtype=np.int64)
        self.reach = np.full(m, n, dtype=np.int64)
        for j, name in enumerate(columns):
            x, y = original[name], released[name]
            ordered = np.sort(x[~np.isnan(x)])
            ranks_x, ranks_y = rank_interval(x, ordered), rank_interval(y, ordered)
            alone = ranks_x[:, 0] == ranks_x[:, 1], ranks_y[:, 0] == ranks_y[:, 1]
            who = np.full(ordered.size, -1, dtype=np.int64)
            where = who.copy()
            who[ranks_x[alone[0], 0].astype(int)] = np.flatnonzero(alone[0])
            where[ranks_y[alone[1], 0].astype(int)] = np.flatnonzero(alone[1])
            self.owner[alone[1], j] = who[ranks_y[alone[1], 0].astype(int)]
            self.holder[alone[0], j] = where[ranks_x[alone[0], 0].astype(int)]
            there_x, there_y = ~np.isnan(x), ~np.isnan(y)
            self.low[there_x, j], self.high[there_x, j] = ranks_x[there_x].astype(np.int64).T
            self.place[there_y, 2 * j : 2 * j + 2] = ranks_y[there_y].astype(np.int64)
            if name in told:
                self.reach[j] = told[name].reach
        self.link, self.taken = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
        self.seen_x, self.seen_y = np.zeros((n, 2), dtype=np.int64), np.zeros((n, 2), dtype=np.int64)
        self.stack = np.empty((n * m + 2, 2), dtype=np.int64)
        self.epoch = 0

    def _try(self, person: int, tried: Places) -> tuple[int, int]:
        run = surviving.compiled if tried.size > 1 else surviving
        found, first, self.epoch = run(
            tried,
            person,
            self.owner,
            self.holder,
            self.key_x,
            self.key_y,
            self.low,
            self.high,
            self.place,
            self.reach,
            self.link,
            self.taken,
            self.seen_x,
            self.seen_y,
            self.stack,
            self.epoch,
        )
        return int(found), int(first)

    def run(self) -> tuple[Places, Places]:
        """Try one person after the other: what follows from the one link that survives is known at once."""
        order = np.argsort(self.key_y, kind="stable")
        starts = np.searchsorted(self.key_y[order], np.arange(int(self.key_x.max(initial=0)) + 2))
        tried, wasted, believed = 0, 0, self.told
        for again in range(3):
            before = int(np.sum(self.link >= 0))
            for person in range(self.link.size):
                if self.link[person] >= 0:
                    continue
                key = self.key_x[person]
                possible = order[starts[key] : starts[key + 1]]
                possible = possible[self.taken[possible] < 0].astype(np.int64)
                tried += possible.size
                hopeless = wasted > _WASTED or (wasted >= _AT_LEAST and tried > _HOPELESS)
                if tried > _HYPOTHESES or (not believed and hopeless):
                    return self._links()
                found, first = self._try(person, possible)
                if found == 0:
                    if self.told:
                        continue  # what was told is not true of this person
                    wasted += 1
                    continue
                if found == 1:
                    self._try(person, np.array([first], dtype=np.int64))
                    implied = np.flatnonzero(self.seen_x[:, 0] == self.epoch)
                    if believed or implied.size >= _LARGE:
                        believed = True
                        self.link[implied] = self.seen_x[implied, 1]
                        self.taken[self.link[implied]] = implied
                        continue
                wasted += 1
            if int(np.sum(self.link >= 0)) == before or again == 2:
                break
        return self._links()

    def _links(self) -> tuple[Places, Places]:
        found = np.flatnonzero(self.link >= 0)
        return found, self.link[found]
