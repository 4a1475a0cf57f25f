"""Without a manifest: columns that are a rising or falling function of the original's values.

Other units, logarithms, standardised values, rounding, top codes, years of dates and ranks all keep the order. Such a
function can be read off any column, because it only matches order statistics; that the values are those of the same
people shows where two columns keep them together: a pair of columns that were drawn anew would have the same pairs of
values with a probability that is known exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.int64]
_Fitted = tuple[Array, tuple[Places, Places]]
"""What every original would have, and the codes of that and of the released values."""

CHANCE = 1e-6
"""Probability below which it is no accident that two columns have the same pairs of values."""


def functions_of(
    original: Mapping[str, Array], released: Mapping[str, Array], *, kept: Mapping[str, Array]
) -> dict[str, Array]:
    """For each column that is a function of the original's, what every original has there.

    `kept` are columns that are known to be as they are computed: they are partners, but not in the result.
    """
    fitted: dict[str, list[_Fitted]] = {}
    for name, x in original.items():
        fits = [_fit(x, released[name], falling=falling) for falling in (False, True)]
        fitted[name] = [(fit, _codes(fit, released[name])) for fit in fits if fit is not None]
    partners = [_codes(x, released[name]) for name, x in kept.items()]
    if partners:
        return {name: fit for name, choices in fitted.items() for fit in _first(choices, partners)}
    names = sorted(fitted, key=lambda name: -max((int(codes[0].max()) for _, codes in fitted[name]), default=0))
    best: dict[str, Array] = {}
    for number, name in enumerate(names):
        if len(names) - number <= len(best):
            break  # no larger group is left
        for fit, codes in fitted[name]:
            group, held = {name: fit}, [codes]
            for other in names[number + 1 :]:
                for second, more in fitted[other]:
                    if other not in group and all(_together(more, each) for each in held):
                        group[other] = second
                        held.append(more)
            best = max(best, group, key=len)
    return best if len(best) > 1 else {}


def suppressed(original: Mapping[str, Array], released: Mapping[str, Array], *, kept: Mapping[str, Array]) -> set[str]:
    """Columns that lost cells and were left as they are otherwise: the pairs of values that remain are originals'."""
    codes = {name: _codes(x, released[name]) for name, x in original.items()}
    lost = [
        name
        for name, (x, y) in codes.items()
        if np.sum(y == 0) > np.sum(x == 0) and np.isin(y[y > 0], x).all() and np.unique(y).size > 2
    ]
    partners = {**{name: codes[name] for name in lost}, **{name: _codes(x, released[name]) for name, x in kept.items()}}
    return {
        name
        for name in lost
        if any(_still_together(codes[name], each) for other, each in partners.items() if other != name)
    }


def _still_together(a: tuple[Places, Places], b: tuple[Places, Places]) -> bool:
    """Whether the pairs of values that are left are originals', and values in random order would not be."""
    size = int(max(b[0].max(initial=0), b[1].max(initial=0))) + 1
    pairs, seen = (each[0] * size + each[1] for each in ((a[0], b[0]), (a[1], b[1])))
    both = np.unique(pairs[(a[0] > 0) & (b[0] > 0)])
    left = seen[(a[1] > 0) & (b[1] > 0)]
    if not left.size or not np.isin(left, both).all():
        return False
    shares = [np.bincount(each) / each.size for each in (a[0], b[0])]
    accident = float(np.sum(shares[0][both // size] * shares[1][both % size]))
    return bool(left.size * np.log(max(accident, 1e-300)) < np.log(CHANCE))


def _first(choices: Sequence[_Fitted], partners: Sequence[tuple[Places, Places]]) -> list[Array]:
    """The first of the choices that stands together with the partners that can tell."""
    for fit, codes in choices:
        chances = [_log_chance(codes, each) for each in partners]
        if -np.inf not in chances and min(chances) < np.log(CHANCE):
            return [fit]
    return []


def _fit(x: Array, y: Array, *, falling: bool) -> Array | None:
    """The released value of every original, if the order is kept (or turned round); None where ties contradict it.

    >>> _fit(np.array([3.0, 1.0, 2.0, np.nan]), np.array([np.nan, 10.0, 10.0, 20.0]), falling=False)
    array([20., 10., 10., nan])
    >>> _fit(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0]), falling=False) is None
    True
    """
    there = np.flatnonzero(~np.isnan(x))
    values = np.sort(y[~np.isnan(y)])
    if x.size != y.size or values.size != there.size or values.size < 2 or values[0] == values[-1]:
        return None
    if falling:
        values = values[::-1]
    order = there[np.argsort(x[there], kind="stable")]
    if np.any((x[order][1:] == x[order][:-1]) & (values[1:] != values[:-1])):
        return None
    made = np.full(x.size, np.nan)
    made[order] = values
    return made


def _codes(x: Array, y: Array) -> tuple[Places, Places]:
    """Equal codes for equal values, 0 for missing ones."""
    both = np.concatenate((x, y))
    gone = np.isnan(both)
    codes = np.zeros(both.size, dtype=np.int64)
    codes[~gone] = np.unique(both[~gone], return_inverse=True)[1] + 1
    return codes[: x.size], codes[x.size :]


def _together(a: tuple[Places, Places], b: tuple[Places, Places]) -> bool:
    return bool(-np.inf < _log_chance(a, b) < np.log(CHANCE))


def _log_chance(a: tuple[Places, Places], b: tuple[Places, Places]) -> float:
    """The logarithm of the probability that two columns in random order have the originals' pairs of values.

    log P = sum log r! + sum log c! - log n! - sum log n_rc!; minus infinity where the release has other pairs.

    >>> same = np.array([0, 0, 1, 1])
    >>> round(float(np.exp(_log_chance((same, same), (same, same)))), 4)
    0.1667
    >>> _log_chance((same, same), (same, same[::-1]))
    -inf
    """
    from scipy.special import gammaln

    size = int(max(b[0].max(initial=0), b[1].max(initial=0))) + 1
    first, second = a[0] * size + b[0], a[1] * size + b[1]
    if not np.isin(second[:20], first).all():  # quickly seen
        return -np.inf
    values, many = np.unique(first, return_counts=True)
    others, number = np.unique(second, return_counts=True)
    if not (np.array_equal(values, others) and np.array_equal(many, number)):
        return -np.inf
    rows, columns = (gammaln(np.bincount(each[0]) + 1.0).sum() for each in (a, b))
    return float(rows + columns - gammaln(first.size + 1.0) - gammaln(many + 1.0).sum())
