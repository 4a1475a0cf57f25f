"""Without a manifest: what was done to the columns is learned from the two tables alone.

Columns that were left as they are show themselves: their values belong together in the release as in the original.
Released groups of a hierarchy and bands of numbers are computed again. For the rest the parameters are found by
expectation-maximisation: links by the parameters so far, parameters by the links.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rankveil import orders
from rankveil.intruder.bets import bets
from rankveil.intruder.fitting import NormalPart, normal_scores
from rankveil.intruder.functions import functions_of, suppressed
from rankveil.intruder.model import CodePart, MissingPart, Model, Part, Values, equal_codes
from rankveil.intruder.shared import SharedColumns
from rankveil.intruder.simulation import Simulated
from rankveil.likelihood import Points, Term
from rankveil.seeds import Seed

Array = NDArray[np.float64]
Places = NDArray[np.int64]

ROUNDS = 15
_PEOPLE = 5_000
"""People whose links the parameters are learned from, where there are more."""
_START = 0.5
"""The spread that is assumed at first, as a share of a column's own."""
_LEAST, _MOST = 0.1, 3.0
"""Bounds of the first guess from the variances, as shares of a column's own spread."""
_SETTLED = 0.01
"""Parameters that change by less have settled."""
_OUTSIDE = 0.1
"""The share of the links outside the candidates from which on variances alone tell the spread."""
_FEW_LABELS = 200
_HASHED = 4_194_301  # a prime
_LARGEST = 1e140
"""Numbers beyond it, and differences below its inverse, have no squares to be summed."""
_SAME_PERSON = 6.0
"""Standard deviations by which links of equal values must agree better in the other columns than links beside them."""
_EXACT = 1e-6
"""The least spread, as a share of a column's own."""
_SELDOM = 0.02
"""How often a cell that was missing is there, or lost where none needs to be."""
_LEAST_RECORDS = 30
_SHRUNK = 0.25
"""The share of its variance below which a column is in other units."""
_STAR = "*"
_STAYS = 0.7
"""The probability that a category stays, assumed at first."""


@dataclass(eq=False)
class Learned(Model):
    """A model whose parameters were learned."""

    learned: dict[str, float] = field(default_factory=dict)
    """For each column of numbers the standard deviation of what was added, as a share of the column's own."""
    suppressed: dict[str, Array] = field(default_factory=dict)
    """Columns that lost cells and were left as they are otherwise: what every original has there."""

    def simulated(self, released: Mapping[str, Array], seed: Seed, number: int) -> Simulated | None:
        """A release with the learned parameters; None where nothing was learned."""
        if not self.parts:
            return None
        values: dict[str, Array] = dict(self.keys)
        for part in self.parts:
            stream = seed.stream("intruder", "learned", number, *part.names)
            if isinstance(part, _Spread):
                for j, name in enumerate(part.names):
                    made = part.x[:, j] + part.spread[j] * stream.normal(self.count)
                    values[name] = _put_back(made, released[name]) if part.scores else made
            elif isinstance(part, CodePart):
                upto = np.cumsum(np.exp(part.log_matrix), axis=1)
                gone = np.isnan(part.x)
                row = np.where(gone, 0, part.x).astype(int)
                drawn = (stream.random(self.count)[:, None] > upto[row] / upto[row][:, -1:]).sum(axis=1)
                values[part.name] = np.where(gone, np.nan, np.minimum(drawn, upto.shape[1] - 1))
        for part in self.parts:
            if isinstance(part, MissingPart):
                gone = seed.stream("intruder", "learned", number, part.name, "missing").random(self.count)
                lost = gone < np.exp(part.log_matrix[part.x.astype(int), 1])
                values[part.name] = np.where(lost, np.nan, values[part.name])
        order = seed.stream("intruder", "learned", number, "order").order(self.count)
        size = min(len(next(iter(released.values()))), self.count)
        order = order[:size]
        return Simulated({name: column[order] for name, column in values.items()}, order)


@dataclass(frozen=True, eq=False)
class _Spread(NormalPart):
    """Independent normal noise whose spread was learned."""

    x: Array = field(default_factory=lambda: np.zeros((0, 0)))
    spread: Array = field(default_factory=lambda: np.zeros(0))

    def term(self, released: Values) -> Term:
        y = np.column_stack([released[name] for name in self.names])
        y = np.column_stack([normal_scores(column) for column in y.T]) if self.scores else y
        weights = 1 / np.maximum(self.spread, 1e-300)
        # a missing cell is no evidence here, which no search tree knows: where cells were lost all pairs are weighed
        rough = bool(np.mean(np.isnan(y)) > np.mean(np.isnan(self.x)))
        return Points(self.x * weights, y * weights, rough=rough)

    @classmethod
    def of(cls, names: Sequence[str], x: Array, spread: Array, *, scores: bool) -> _Spread:
        filled = np.where(np.isnan(x), np.nanmean(x, axis=0), x)
        return cls(tuple(names), filled, np.diag(1 / np.maximum(spread, 1e-300)), scores, x=x, spread=spread)


def _put_back(made: Array, released: Array) -> Array:
    """Scores as values of the column in that order."""
    there = released[~np.isnan(released)]
    if not there.size:
        return np.full(made.size, np.nan)
    ranks = np.argsort(np.argsort(np.where(np.isnan(made), 0.0, made), kind="stable"), kind="stable")
    picked: Array = np.sort(there)[(ranks * there.size) // made.size]
    return np.where(np.isnan(made), np.nan, picked)


def learned_model(shared: SharedColumns, released: Mapping[str, Array], records: int, names: Sequence[str]) -> Learned:
    """The model that the two tables themselves show."""
    count = len(shared.original)
    model = Learned(count)
    original = dict(shared.read(shared.original))
    for name in names:
        grouped = _grouped(shared, name, original[name], released[name])
        if grouped is not None and (records > count or _multiset(grouped, released[name])):
            model.keys[name] = grouped
            model.notes.append(f"column {name}: its released values are groups or bands of the original's")
    comparable = [name for name in names if name not in model.keys and shared.comparable(name)]
    for name in _untouched(comparable, original, released):
        model.keys[name] = original[name]
    if records == count:
        open_ = {name: original[name] for name in comparable if name not in model.keys and name in shared.numeric}
        for name, fit in functions_of(open_, released, kept=model.keys).items():
            model.keys[name] = fit
            if not _multiset(original[name], released[name]):
                model.notes.append(f"column {name}: its released values are a function of the original's")
    left = [name for name in comparable if name not in model.keys]
    numeric = [name for name in left if name in shared.numeric and _varies(original[name])]
    # columns that still have the original's values were swapped: their ranks say more than their values; so they do
    # where values are too large or too near each other to be squared
    swapped = [
        name
        for name in numeric
        if _multiset(original[name], released[name])
        or _extreme(original[name])
        or _extreme(released[name])
        or _rescaled(original[name], released[name])
    ]
    plain = [name for name in numeric if name not in swapped]
    coded = [name for name in left if name not in shared.numeric and 1 < len(shared.labels(name)) <= _FEW_LABELS]
    exact = suppressed({name: original[name] for name in [*numeric, *coded]}, released, kept=model.keys)
    model.suppressed = {name: original[name] for name in left if name in exact}
    silent = [name for name in names if name not in model.keys and name not in numeric and name not in coded]
    model.silent += silent
    blocks = [(block, scores) for block, scores in ((plain, False), (swapped, True)) if block]
    parts: list[Part] = []
    for block, scores in blocks:
        x = np.column_stack([normal_scores(original[name]) if scores else original[name] for name in block])
        first = np.full(len(block), _START)
        if not scores:  # noise adds its variance
            wide = np.array([np.nanvar(released[name]) for name in block]) / np.nanvar(x, axis=0)
            first = np.sqrt(np.clip(wide - 1, _LEAST**2, _MOST**2))
        first[[name in exact for name in block]] = _EXACT
        parts.append(_Spread.of(block, x, first * np.nanstd(x, axis=0), scores=scores))
    released = {**released, **{name: _without_stars(shared, name, released[name]) for name in coded}}
    parts += [_first_matrix(shared, name, original[name], released[name]) for name in coded]
    if not parts:
        return model
    for name in (*numeric, *coded):
        _add_missing(parts, name, original[name], released[name])
    several: Places | None = (
        None if count <= _PEOPLE else np.sort(Seed.of(0).stream("learning").order(count)[:_PEOPLE]).astype(np.int64)
    )
    for _ in range(ROUNDS):
        model.parts = list(parts)
        made = bets(
            model, released, records, people=several, left_out=max(count - records, 0) if several is None else 0
        )
        before, parts = parts, [_again(part, released, *made.evidence) for part in parts]
        if all(_settled(a, b) for a, b in zip(before, parts, strict=True)):
            break
    model.parts = list(parts)
    for part in parts:
        if isinstance(part, _Spread):
            own = np.maximum(np.nanstd(part.x, axis=0), 1e-300)
            model.learned |= dict(zip(part.names, (part.spread / own).tolist(), strict=True))
    return model


def _add_missing(parts: list[Part], name: str, x: Array, y: Array) -> None:
    """Missing cells stay missing, but for a few; of the others as many are lost as the numbers say."""
    before = np.isnan(x)
    if not before.any() and not np.isnan(y).any():
        return
    gone, was = float(np.mean(np.isnan(y))), float(before.mean())
    lost = float(np.clip((gone - was) / max(1 - was, 1e-9), _SELDOM, 1 - _SELDOM))
    chances = np.array([[1 - lost, lost], [_SELDOM, 1 - _SELDOM]])
    parts.append(MissingPart(name, before.astype(float), np.log(chances)))


def _settled(before: Part, after: Part) -> bool:
    """Whether the parameters hardly changed."""
    if isinstance(before, _Spread) and isinstance(after, _Spread):
        return bool(np.all(np.abs(after.spread - before.spread) <= _SETTLED * before.spread))
    if isinstance(before, MissingPart):
        return True
    assert isinstance(before, CodePart)
    assert isinstance(after, CodePart)
    return bool(np.abs(np.exp(after.log_matrix) - np.exp(before.log_matrix)).max(initial=0.0) <= _SETTLED)


def _again(part: Part, released: Mapping[str, Array], rows: Places, columns: Places, weight: Array) -> Part:
    """A part with parameters from the links: variance = sum of P (x - y)^2, matrix = sums of P."""
    if isinstance(part, _Spread):
        spread = np.empty(len(part.names))
        for j, name in enumerate(part.names):
            y = normal_scores(released[name]) if part.scores else released[name]
            apart = part.x[rows, j] - y[columns]
            there = ~np.isnan(apart)
            total = float(weight[there].sum())
            spread[j] = np.sqrt(float(np.sum(weight[there] * apart[there] ** 2)) / max(total, 1e-300))
        if not part.scores:
            spread = _with_variances(part, released, spread, float(weight.sum()))
        least = _EXACT * np.nanstd(part.x, axis=0)
        return _Spread.of(part.names, part.x, np.maximum(spread, least), scores=part.scores)
    if isinstance(part, MissingPart):
        return part
    assert isinstance(part, CodePart)
    counts = np.where(np.isfinite(part.log_matrix), 0.05, 0.0)
    y = released[part.name]
    there = ~np.isnan(part.x[rows]) & ~np.isnan(y[columns])
    np.add.at(counts, (part.x[rows[there]].astype(int), y[columns[there]].astype(int)), weight[there])
    with np.errstate(divide="ignore"):
        return replace(part, log_matrix=np.log(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)))


def _with_variances(part: _Spread, released: Mapping[str, Array], spread: Array, seen: float) -> Array:
    """Spreads, where some links lie outside the candidates, with those that the variances of the columns tell.

    Links outside are the longer ones: without them the spread comes out too small. Var(y) - Var(x) has no such bias.
    """
    size = min(len(next(iter(released.values()))), len(part.x))
    outside = float(np.clip((1 - seen / max(size, 1)) / _OUTSIDE, 0.0, 1.0))
    made = spread.copy()
    for j, name in enumerate(part.names):
        own = float(np.nanvar(part.x[:, j]))
        added = float(np.nanvar(released[name])) - own
        if added > _LEAST**2 * own and spread[j] > 0:
            made[j] = spread[j] ** (1 - outside) * np.sqrt(added) ** outside
    return made


def _first_matrix(shared: SharedColumns, name: str, x: Array, y: Array) -> Part:
    """The first guess: most categories stay; or, where a hierarchy explains all that is released, any level of it."""
    labels = shared.labels(name)
    size = len(labels)
    hierarchy = (shared.original.schema.hierarchies or {}).get(name)
    if hierarchy is not None:
        allowed = np.zeros((size, size), dtype=bool)
        place = {label: code for code, label in enumerate(labels)}
        leaves = set(hierarchy.leaves)
        for code in np.unique(x[~np.isnan(x)]).astype(int):
            if labels[code] not in leaves:
                continue
            for level in range(hierarchy.height + 1):
                group = labels[code] if level == 0 else hierarchy.level(labels[code], level)
                if group in place:
                    allowed[code, place[group]] = True
        present = np.unique(y[~np.isnan(y)]).astype(int)
        if allowed[:, present].any(axis=0).all():
            share = allowed / np.maximum(allowed.sum(axis=1, keepdims=True), 1)
            with np.errstate(divide="ignore"):
                return CodePart(name, x, np.log(share))
    matrix = np.full((size, size), (1 - _STAYS) / max(size - 1, 1))
    np.fill_diagonal(matrix, _STAYS)
    return CodePart(name, x, np.log(matrix))


def _without_stars(shared: SharedColumns, name: str, y: Array) -> Array:
    """Suppressed cells as missing ones, where neither the original nor a hierarchy knows a star."""
    labels = shared.labels(name)
    if _STAR not in labels or name in (shared.original.schema.hierarchies or {}):
        return y
    code = labels.index(_STAR)
    if np.any(shared.read(shared.original)[name] == code):
        return y
    return np.where(y == code, np.nan, y)


def _multiset(x: Array, y: Array) -> bool:
    """Whether a column has the original's values, or some of them, each no more often."""
    code_x, code_y = equal_codes(x, y)
    if np.any(code_y < 0):
        return False
    size = int(max(code_x.max(initial=0), code_y.max(initial=0))) + 1
    return bool(np.all(np.bincount(code_y, minlength=size) <= np.bincount(code_x, minlength=size)))


def _untouched(names: Sequence[str], original: Mapping[str, Array], released: Mapping[str, Array]) -> list[str]:
    """Columns whose values stand together in the release as in the original: any two of them, as pairs of values."""
    kept = [name for name in names if _multiset(original[name], released[name])]
    if len(kept) < 2:
        if len(names) == 1:
            return kept
        return [name for name in kept if _few(original[name]) or _same_person(name, names, original, released)]
    codes = {name: equal_codes(original[name], released[name]) for name in kept}
    chosen: list[str] = []
    # from the column with the most different values down: it tells the others best
    left = sorted(kept, key=lambda each: -int(codes[each][0].max(initial=0)))
    while len(left) > len(chosen):  # a larger group may still be there
        group = left[:1]
        for name in left[1:]:
            if all(_together(codes[name], codes[other]) for other in group):
                group.append(name)
        chosen = max(chosen, group, key=len)
        left = [name for name in left if name not in group]
    if len(chosen) == 1:
        chosen = [name for name in chosen if _same_person(name, names, original, released)]
    return [name for name in kept if name in chosen]


def _varies(x: Array) -> bool:
    there = x[~np.isnan(x)]
    return bool(there.size and there.min() < there.max())


def _extreme(x: Array) -> bool:
    there = x[~np.isnan(x)]
    return bool(there.size and (np.abs(there).max() > _LARGEST or 0 < np.ptp(there) < 1 / _LARGEST))


def _same_person(
    name: str, others: Sequence[str], original: Mapping[str, Array], released: Mapping[str, Array]
) -> bool:
    """Whether links of equal values of one column agree in the other columns, better than those of the next values.

    A column that was swapped has near values near each other too, so that dependence alone would look like agreement;
    but then the next value agrees as well as the same one.
    """
    count = original[name].size
    if count < 30 or released[name].size != count or np.isnan(original[name]).any():
        return False
    first, second = (np.argsort(each[name], kind="stable") for each in (original, released))
    ordered = original[name][first]
    alone = np.concatenate(([True], np.diff(ordered) > 0, [True]))
    used = np.flatnonzero(alone[1:] & alone[:-1])
    used = used[(used >= 3) & (used < count - 3)]
    if 2 * used.size < count:
        return False
    total, number = 0.0, 0
    for other in others:
        if other == name or np.isnan(original[other]).any() or np.isnan(released[other]).any():
            continue
        x, y = normal_scores(original[other])[first], normal_scores(released[other])[second]
        beside = np.mean([x[used] * y[used + step] for step in (-3, -2, -1, 1, 2, 3)], axis=0)
        more = x[used] * y[used] - beside
        spread = float(more.std())
        if spread > 0:
            total, number = total + float(more.mean()) / spread * np.sqrt(used.size), number + 1
    return number > 0 and total / np.sqrt(number) > _SAME_PERSON


def _rescaled(x: Array, y: Array) -> bool:
    """Whether a column is in other units: noise around the values moves no mean so far and takes no variance away."""
    x, y = x[~np.isnan(x)], y[~np.isnan(y)]
    if min(x.size, y.size) < _LEAST_RECORDS:
        return False
    apart = abs(float(y.mean()) - float(x.mean())) / max(np.sqrt(x.var() / x.size + y.var() / y.size), 1e-300)
    return bool(apart > _SAME_PERSON or y.var() < _SHRUNK * x.var())


def _few(x: Array) -> bool:
    """Whether there are so few values that a masking would have shown."""
    return bool(np.unique(x[~np.isnan(x)]).size <= 2)


def _together(a: tuple[Places, Places], b: tuple[Places, Places]) -> bool:
    size = int(max(b[0].max(initial=0), b[1].max(initial=0))) + 1
    first, second = a[0] * size + b[0], a[1] * size + b[1]
    seen = np.zeros(_HASHED, dtype=bool)
    seen[first % _HASHED] = True
    if not np.all(seen[second % _HASHED]):  # a pair of values that no original has: quickly seen
        return False
    values, counts = np.unique(first, return_counts=True)
    there, found = np.unique(second, return_counts=True)
    place = np.minimum(np.searchsorted(values, there), values.size - 1)
    return bool(np.all(values[place] == there) and np.all(found <= counts[place]))


def _grouped(shared: SharedColumns, name: str, x: Array, y: Array) -> Array | None:
    """What every original has where the release has groups of a hierarchy or bands; None where it has neither."""
    labels = shared.labels(name)
    present = [labels[int(code)] for code in np.unique(y[~np.isnan(y)])] if name not in shared.numeric else []
    if not present:
        return None
    place = {label: float(code) for code, label in enumerate(labels)}
    if not shared.comparable(name):
        return _banded(x, present, place)
    hierarchy = (shared.original.schema.hierarchies or {}).get(name)
    if hierarchy is None:
        return None
    own = [labels[int(code)] for code in np.unique(x[~np.isnan(x)])]
    for level in range(1, hierarchy.height + 1):
        groups = {label: hierarchy.level(label, level) for label in own}
        if set(present) <= set(groups.values()):
            new = [group for group in groups.values() if group not in place]
            if new:
                continue
            codes = np.full(len(labels), np.nan)
            for label, group in groups.items():
                codes[int(place[label])] = place[group]
            gone = np.isnan(x)
            return np.where(gone, np.nan, codes[np.where(gone, 0, x).astype(int)])
    return None


def _banded(x: Array, present: Sequence[str], place: Mapping[str, float]) -> Array | None:
    """The band that each number lies in, its lower end included, where the bands do not overlap."""
    ends = {label: orders.ends(label) or _single(label) for label in present}
    bands = sorted((low, high, label) for label, found in ends.items() if found is not None for low, high in [found])
    if len(bands) < len(present) or any(b[0] < a[1] for a, b in itertools.pairwise(bands)):
        return None
    made = np.full(x.size, np.nan)
    for low, high, label in bands:
        inside = (x >= low) & ((x < high) | ((low == high) & (x == low)))
        if "-" in label and "," not in label:  # 20-29 holds 29 and, of whole numbers, all before 30
            inside = (x >= low) & (x <= high)
        made[inside] = place[label]
    return made


def _single(label: str) -> tuple[float, float] | None:
    middle = orders.middle(label)
    return None if middle is None else (middle, middle)
