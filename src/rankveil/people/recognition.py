"""How probable it is that a released record is hers, for somebody who knows her own record and the release alone.

    P(record a is hers)  proportional to  p(y_a | x) / p0(y_a)

p(y | x) follows from what the manifest tells of each column (`laws`); p0 is the density of the records of others, for
all but one of which she has nothing better than the release itself. It is estimated from the other released records in
coordinates z in which the columns are about normal, with the correlation R among them:

    p0(z) = (1 - e) mean over b of N(z; r z_b, (1 - r^2) R) + e N(z; 0, R)

r is the one of a few that makes the released records likeliest, each left out of its own mean; a category stays with
probability r and is drawn by the released shares otherwise. Of columns that must be equal all candidates have the same
value, so the share of records with that value divides them all alike. The subject's page has the same computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.errors import listing
from rankveil.likelihood import Noise, NoiseTerm
from rankveil.people.laws import MANY, Law, Laws

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

CLOSENESS = (0.0, 0.3, 0.5, 0.7, 0.8)
"""The values that r is chosen from; larger ones fit the records more closely and made the probabilities too high."""
BROAD = 0.05
"""The share e of the part of p0 that looks at no single record."""
REFERENCES, TRIALS = 1000, 300
"""At most so many released records stand for all in p0; so many choose r."""
FEW = 50
"""Records that agree with her in what must be equal are the others of p0 if they are as many as this."""
NEGLIGIBLE = 60.0
"""Records whose log-likelihood is so much less than the best one's are left aside."""
NEARLY = 1e-12
"""Numbers that differ by less, relatively, are equal: they were rounded or read in another way."""
ALIKE = 1e-9
"""Probabilities that differ by less, relatively, are equal."""
NO_MANIFEST = "there is no manifest, which would tell how the release was masked"
NOTHING_TO_COMPUTE = "what was done to these columns depends on records of others"
UNUSED = ("unknown", "silent")
MANY_COLUMNS = f"in trials with more than {MANY} masked columns the probability was too high by up to 6 points of 100"


@dataclass(frozen=True, eq=False)
class Recognition:
    """The probability of the likeliest record, how many could be hers, and the sentence that says it."""

    probability: float | None
    candidates: float | None
    """The effective number of records that could be hers: exp of the entropy of their probabilities."""
    likeliest: tuple[int, ...]
    """The rows (from 0) of the likeliest records; several where they are equally likely."""
    chances: Array | None
    """The probability of every released record."""
    sentence: str
    notes: tuple[str, ...] = ()

    def of(self, row: int) -> float | None:
        """The probability that one released record is hers."""
        return None if self.chances is None else float(self.chances[row])


@dataclass(frozen=True, eq=False)
class Cells:
    """A released column for the computation: its values (codes where it has labels), and what is told of them."""

    name: str
    values: Array
    labelled: bool
    law: Law


class Recogniser:
    """Finds which released record is somebody's; what does not depend on her is computed once."""

    def __init__(self, columns: Sequence[Cells], laws: Laws | None) -> None:
        self._columns, self._laws = columns, laws
        self._count = columns[0].values.size
        self._densities: dict[bytes, Density] = {}

    def of(self, record: Sequence[float]) -> Recognition:
        """Which record is hers, from her own values in the order of the columns."""
        columns, laws, count = self._columns, self._laws, self._count
        if laws is None:
            return _without_manifest(columns, record)
        if laws.why_not:
            return _untold(laws.why_not)
        notes = [
            f"column {each.name} was not used: {each.law['why']}" for each in columns if each.law["kind"] == "unknown"
        ]
        silent = [each.name for each in columns if each.law["kind"] == "silent"]
        if silent:
            notes.append(f"what was released has nothing to do with your value: {listing(silent)}")
        used = [(each, hers) for each, hers in zip(columns, record, strict=True) if each.law["kind"] not in UNUSED]
        if not used and not silent:
            return _untold(NOTHING_TO_COMPUTE, notes)
        if sum(each.law["kind"] != "equal" for each, _ in used) > MANY:
            notes.append(MANY_COLUMNS)
        if laws.inside < 1:
            notes.append(_inside_note(laws.inside))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # numbers near the largest there are
            weights = self._log_ratios(used)
        chances = _shares(weights, inside=laws.inside, count=count)
        best = float(chances.max())
        likeliest = tuple(np.flatnonzero(chances >= best * (1 - ALIKE)).tolist()) if best > 0 else ()
        there = chances[chances > 0] / (float(chances.sum()) or 1.0)
        candidates = float(np.exp(-np.sum(there * np.log(there)))) if best > 0 else 0.0
        plain = all(each.law["kind"] == "equal" and each.law["untouched"] for each in columns)
        sentence = sentence_of(best, candidates, count, likeliest=len(likeliest), plain=plain, sure=laws.inside == 1)
        unused = [each.name for each in columns if each.law["kind"] == "unknown"]
        if unused:
            sentence += f" {listing(unused)} may tell more, which cannot be computed from your record alone."
        return Recognition(best, candidates, likeliest, chances, sentence, tuple(notes))

    def _log_ratios(self, used: Sequence[tuple[Cells, float]]) -> Array:
        """log p(y_a | x) / p0(y_a) of every released record; -inf where it cannot be hers."""
        equal = [(each, hers) for each, hers in used if each.law["kind"] == "equal"]
        others = [(each, hers) for each, hers in used if each.law["kind"] != "equal"]
        total = _equal_ratios(equal, self._count) if equal else np.zeros(self._count)
        for each, _ in others:
            total[np.isnan(each.values)] = -np.inf  # she has a value there, and masking keeps what is missing
        if not others:
            return total
        pool = np.flatnonzero(total > -np.inf)
        if pool.size < FEW:
            pool = np.flatnonzero(~np.logical_or.reduce([np.isnan(each.values) for each, _ in others]))
        if pool.size == 0:
            return total
        which = pool.tobytes()
        if which not in self._densities:
            self._densities[which] = Density([each for each, _ in others], pool)
        density = self._densities[which]
        for (each, hers), z, log_slope in zip(others, density.coordinates, density.log_slopes, strict=True):
            total += _likelihood(each, hers, z, log_slope, pool)
        for group in _joint_groups(others):
            total += _joint_likelihood(group)
        total[np.isnan(total)] = -np.inf
        made = np.full(self._count, -np.inf)
        near = np.flatnonzero(total > float(total.max()) - NEGLIGIBLE)
        made[near] = total[near] - density.at(near)
        return made


def page_rules(laws: Laws | None) -> dict[str, Any]:
    """What the subject's page needs for the same computation."""
    return {
        "told": laws is not None,
        "why_not": "" if laws is None else laws.why_not,
        "inside": 1.0 if laws is None else laws.inside,
        "inside_note": "" if laws is None else _inside_note(laws.inside),
        "closeness": CLOSENESS,
        "broad": BROAD,
        "references": REFERENCES,
        "trials": TRIALS,
        "few": FEW,
        "negligible": NEGLIGIBLE,
        "nearly": NEARLY,
        "alike": ALIKE,
        "many": MANY,
        "many_columns": MANY_COLUMNS,
        "no_manifest": NO_MANIFEST,
        "nothing_to_compute": NOTHING_TO_COMPUTE,
    }


def _inside_note(inside: float) -> str:
    return f"{inside:.3g} of the people are in the release, which the probability takes into account"


def sentence_of(best: float, candidates: float, count: int, *, likeliest: int, plain: bool, sure: bool) -> str:
    """One honest sentence about a probability."""
    if best == 0:
        return (
            f"By what the manifest tells, none of the {count:,} released records can be yours: you are not among them, "
            "or a value that you gave is not the one in the original."
        )
    if plain and likeliest == 1 and sure:
        return "Your values stand in this release once, unmasked: this record is yours."
    if plain:
        where = "once" if likeliest == 1 else f"in {likeliest:,} records"
        which = "this record is" if likeliest == 1 else "each of them is"
        return f"Your values stand in this release {where}, unmasked: {which} yours with probability {percent(best)}."
    if best >= 0.5:
        return f"With probability {percent(best)} this record is yours."
    return (
        f"Of {count:,} records about {max(1, int(candidates + 0.5)):,} could be yours; the likeliest is yours with "
        f"probability {percent(best)}."
    )


def percent(share: float) -> str:
    """A probability for people.

    >>> percent(0.834), percent(0.9999), percent(1.0), percent(0.0004)
    ('83 %', 'more than 99 %', '100 %', 'less than 1 %')
    """
    whole = int(100 * share + 0.5)
    if share < 1 and whole > 99:
        return "more than 99 %"
    return f"{whole} %" if whole else "less than 1 %"


def _untold(why: str, notes: Sequence[str] = ()) -> Recognition:
    sentence = f"How probable it is that a record is yours cannot be told: {why}."
    return Recognition(None, None, (), None, sentence, tuple(notes))


def _without_manifest(columns: Sequence[Cells], record: Sequence[float]) -> Recognition:
    """Records that have all her values as she gave them."""
    same = np.logical_and.reduce(
        [_equal(each.values, hers, labelled=each.labelled) for each, hers in zip(columns, record, strict=True)]
    )
    many = int(same.sum())
    if many == 0:
        return _untold(NO_MANIFEST)
    if many == 1:
        sentence = (
            "Your values stand in this release once, exactly as you gave them: unless it was masked, this record is "
            "yours."
        )
    else:
        sentence = (
            f"Your values stand in {many:,} records exactly as you gave them; unless the release was masked, each of "
            f"them is yours with probability {percent(1 / many)}."
        )
    rows = tuple(np.flatnonzero(same).tolist())
    return Recognition(1 / many, float(many), rows, same / many, sentence, (NO_MANIFEST,))


def _shares(weights: Array, *, inside: float, count: int) -> Array:
    """Probabilities from log ratios, with that of not being in the release where records were left out."""
    top = float(weights.max())
    if top == -np.inf:
        return np.zeros(count)
    shares = np.exp(weights - top)
    outside = 0.0 if inside >= 1 else np.exp(np.log((1 - inside) / inside * count) - top)
    made: Array = shares / (shares.sum() + outside)
    return made


def _equal(values: Array, hers: float, *, labelled: bool) -> NDArray[np.bool_]:
    with np.errstate(over="ignore"):
        made: NDArray[np.bool_] = np.abs(values - hers) <= (0.0 if labelled else NEARLY * abs(hers))
    return made


def own_value(hers: float, steps: Sequence[Sequence[Any]]) -> float:
    """Her value after the steps that need nothing but it."""
    for kind, *given in steps:
        if kind == "round":
            hers = float(np.round(hers, given[0])) if abs(hers) < 2.0**53 / 10.0 ** max(given[0], 0) else hers
        else:
            low, high = given
            hers = hers if low is None else max(hers, low)
            hers = hers if high is None else min(hers, high)
    return hers


def _equal_ratios(columns: Sequence[tuple[Cells, float]], count: int) -> Array:
    """Of columns that must be equal: -log of the share of records that are, by which of the cells are there."""
    same, there = np.ones(count, dtype=bool), []
    for each, hers in columns:
        gone = np.isnan(each.values)
        agrees = _equal(each.values, own_value(hers, each.law["own"]), labelled=each.labelled)
        same &= agrees | (gone if each.law["hides"] else False)
        there.append((agrees, gone))
    made = np.full(count, -np.inf)
    rows = np.flatnonzero(same)
    patterns = np.column_stack([gone[rows] for _, gone in there])
    for pattern in np.unique(patterns, axis=0):
        alike, complete = np.ones(count, dtype=bool), np.ones(count, dtype=bool)
        for (agrees, gone), missing in zip(there, pattern, strict=True):
            if not missing:
                alike &= agrees
                complete &= ~gone
        made[rows[(patterns == pattern).all(axis=1)]] = np.log(complete.sum()) - np.log(alike.sum())
    return made


def _coordinates(column: Cells, pool: Rows) -> tuple[Array, Array]:
    """Coordinates in which a column is about normal, and log |dz / dy| (of ranks: times the number of records)."""
    y, law = column.values, column.law
    if law["kind"] == "codes":
        return y, np.zeros(y.size)
    if law["kind"] == "ranks":
        low, high = _rank_interval(y, np.sort(y[~np.isnan(y)]))
        u = (low + high + 1) / (2 * np.sum(~np.isnan(y)))
        with np.errstate(invalid="ignore"):
            return 4.91 * (u**0.14 - (1 - u) ** 0.14), np.log(4.91 * 0.14 * (u**-0.86 + (1 - u) ** -0.86))
    z, log_slope, origin, unit = y, np.zeros(y.size), 0.0, 0.0
    if law.get("relative"):  # amounts that differ by factors
        sizes = np.sort(np.abs(y[pool]))
        sizes = sizes[sizes > 0]
        unit = float(sizes[sizes.size // 20]) if sizes.size else 1.0
    elif law.get("law") == "laplace":  # whose tails are longer than normal ones
        origin, unit = float(np.sort(y[pool])[pool.size // 2]), law["scale"]
    if unit > 0:
        z = np.arcsinh((y - origin) / unit)
        log_slope = -np.log(unit) - np.log1p(((y - origin) / unit) ** 2) / 2
    middle, spread = float(z[pool].mean()), float(z[pool].std()) or 1.0
    return (z - middle) / spread, log_slope - np.log(spread)


def _likelihood(column: Cells, given: float, z: Array, log_slope: Array, pool: Rows) -> Array:
    """log p(y | x) of one column in its coordinates; of categories over the released share."""
    law, y = column.law, column.values
    hers = own_value(given, law.get("own", ()))
    if law["kind"] == "codes":
        return _exchanged(law["matrix"], y, hers, pool)
    if law["kind"] == "ranks":
        return _displaced(law, y, hers) - log_slope
    if law["kind"] == "joint":
        return -log_slope
    scale = law["scale"] * (abs(hers) if law["relative"] else 1.0)
    low, high = (-np.inf if law["low"] is None else law["low"]), (np.inf if law["high"] is None else law["high"])
    term = NoiseTerm(np.array([hers]), y, Noise(law["law"], scale), law["grid"], (low, high))
    rows = np.arange(y.size)
    made = term.weights(np.zeros(y.size, dtype=np.int64), rows) - log_slope
    # values that many records have exactly, as limits are: the share of the records there stands for a density
    for end in {low, high} if scale > 0 else {hers}:
        at = np.abs(y - end) <= (NEARLY * abs(end) if scale > 0 else law["grid"] / 2 * (1 + NEARLY) + NEARLY * abs(end))
        if np.isfinite(end) and at.any():
            mass = term.weights(np.zeros(1, dtype=np.int64), np.flatnonzero(at)[:1])[0]
            mass += np.log(law["grid"]) if law["grid"] > 0 else 0.0
            made[at] = mass - np.log(np.mean(at[pool]) or 1.0) - z[at] ** 2 / 2 - np.log(2 * np.pi) / 2
    return made


def _exchanged(matrix: Sequence[Sequence[float]], y: Array, hers: float, pool: Rows) -> Array:
    shares = _released_shares(y, pool, len(matrix))
    # a category that nobody in the release has became any of the others
    row = np.asarray(matrix[int(hers)]) if hers < len(matrix) else np.ones(len(matrix))
    with np.errstate(divide="ignore"):
        ratios = np.log(row) - np.log(shares)
    made: Array = ratios[np.where(np.isnan(y), 0, y).astype(np.int64)]
    return made


def _released_shares(y: Array, pool: Rows, size: int) -> Array:
    """The shares of the categories, none of them 0."""
    counts = np.bincount(y[pool].astype(np.int64), minlength=size) + 0.5
    made: Array = counts / counts.sum()
    return made


def _rank_interval(values: Array, ordered: Array) -> tuple[Array, Array]:
    """The first and the last rank (from 0) of values among released ones; next to its place if it is not one."""
    low = np.searchsorted(ordered, values, side="left")
    high = np.searchsorted(ordered, values, side="right") - 1
    low = np.minimum(low, ordered.size - 1)
    return low.astype(np.float64), np.maximum(low, high).astype(np.float64)


def _displaced(law: Law, y: Array, hers: float) -> Array:
    """log p of taking a record's place, relative to 1 / n: pairs of ranks that are near enough, over ties."""
    ordered = np.sort(y[~np.isnan(y)])
    y0, y1 = _rank_interval(y, ordered)
    (x0,), (x1,) = _rank_interval(np.array([hers]), ordered)

    def upto(gap: int) -> Array:  # pairs (s, r), s in [y0, y1], r in [x0, x1], with s - r <= gap
        def triangle(k: Array) -> Array:
            return np.where(k > 0, k * (k + 1) / 2, 0.0)

        return (
            triangle(gap - y0 + x1 + 1)
            - triangle(gap - y1 + x1)
            - triangle(gap - y0 + x0)
            + triangle(gap - y1 + x0 - 1)
        )

    least, most = law["least"], law["most"]
    pairs = upto(most) - upto(-most - 1)
    if least >= 1:
        pairs = pairs - (upto(least - 1) - upto(-least))
    if least <= 1:  # who finds no partner keeps his value
        pairs = pairs + (1e-6 if most >= least else 1.0) * (upto(0) - upto(-1)) * (least >= 1)
    share = np.where(np.isnan(y), 0.0, pairs / (y1 - y0 + 1))
    with np.errstate(divide="ignore"):
        made: Array = np.log(share / (share.sum() or 1.0)) + np.log(ordered.size)
    return made


def _joint_groups(columns: Sequence[tuple[Cells, float]]) -> list[list[tuple[Cells, float]]]:
    """Columns that got their noise together."""
    found: dict[tuple[str, ...], list[tuple[Cells, float]]] = {}
    for each, hers in columns:
        if each.law["kind"] == "joint":
            found.setdefault(tuple(each.law["with"]), []).append((each, hers))
    return list(found.values())


def _joint_likelihood(group: Sequence[tuple[Cells, float]]) -> Array:
    """The normal density of noise that was drawn for several columns together."""
    columns = [each for each, _ in group]
    spread = np.sqrt([max(each.law["with"][each.name], 1e-300) for each in columns])
    correlation = np.array([[each.law["with"][other.name] for other in columns] for each in columns]) / np.outer(
        spread, spread
    )
    lower = _lower(correlation)
    apart = np.column_stack([each.values - hers for each, hers in group]) / spread
    z = _solved(lower, apart)
    made: Array = -(z**2).sum(axis=1) / 2 - np.log(spread).sum() - np.log(np.diag(lower)).sum()
    made = made - len(columns) * np.log(2 * np.pi) / 2
    return np.where(np.isnan(made), -np.inf, made)


def _lower(correlation: Array) -> Array:
    """The Cholesky factor of a correlation matrix; columns that follow from others keep a little spread."""
    size = len(correlation)
    made = np.zeros((size, size))
    for i in range(size):
        for j in range(i + 1):
            rest = correlation[i, j] - float(made[i, :j] @ made[j, :j])
            made[i, j] = np.sqrt(max(rest, 1e-9)) if i == j else rest / made[j, j]
    return made


def _solved(lower: Array, points: Array) -> Array:
    """Each row times the inverse of a lower triangular matrix."""
    made = np.zeros_like(points)
    for i in range(len(lower)):
        made[:, i] = (points[:, i] - made[:, :i] @ lower[i, :i]) / lower[i, i]
    return made


def _spaced(rows: Rows, most: int) -> Rows:
    """At most so many of the rows, evenly spaced."""
    step = max(1, -(-rows.size // most))
    return rows[::step]


class Density:
    """p0: the density of others' records, from the released ones."""

    def __init__(self, columns: Sequence[Cells], pool: Rows) -> None:
        both = [_coordinates(each, pool) for each in columns]
        self.coordinates, self.log_slopes = [z for z, _ in both], [log_slope for _, log_slope in both]
        plain = [z for each, z in zip(columns, self.coordinates, strict=True) if each.law["kind"] != "codes"]
        coded = [each for each in columns if each.law["kind"] == "codes"]
        self._codes = [np.where(np.isnan(each.values), 0, each.values).astype(np.int64) for each in coded]
        self._shares = [_released_shares(each.values, pool, len(each.law["matrix"])) for each in coded]
        self._size = len(plain)
        self._points, self._constant = np.zeros((columns[0].values.size, 0)), 0.0
        if plain:
            points = np.column_stack(plain)
            points -= points[pool].mean(axis=0)
            lower = _lower(points[pool].T @ points[pool] / pool.size)
            self._points = _solved(lower, points)
            self._constant = -np.log(np.diag(lower)).sum() - self._size * np.log(2 * np.pi) / 2
        self._references = _spaced(pool, REFERENCES)
        trials = _spaced(self._references, TRIALS)
        scores = [float(self._mixed(trials, r).mean()) for r in CLOSENESS]
        self._r = CLOSENESS[int(np.argmax(scores))]
        self._known = np.full(columns[0].values.size, np.nan)

    def at(self, rows: Rows) -> Array:
        """log p0 of some records in their coordinates; of categories over their released shares."""
        new = rows[np.isnan(self._known[rows])]
        self._known[new] = self._mixed(new, self._r)
        made: Array = self._known[rows]
        return made

    def _mixed(self, rows: Rows, r: float) -> Array:
        broad = self._constant - (self._points[rows] ** 2).sum(axis=1) / 2
        made: Array = broad
        if r == 0 or self._references.size < 2:
            return made
        made = np.logaddexp(np.log(1 - BROAD) + self._kernel(rows, r), np.log(BROAD) + broad)
        return made

    def _kernel(self, rows: Rows, r: float) -> Array:
        """log mean over the references, but for the record itself."""
        made = np.empty(rows.size)
        ahead = 2**20 // max(self._references.size, 1) + 1
        for start in range(0, rows.size, ahead):
            part = rows[start : start + ahead]
            width = 1 - r * r
            logs = np.full((part.size, self._references.size), self._constant - self._size * np.log(width) / 2)
            for j in range(self._size):
                apart = self._points[part, j][:, None] - r * self._points[self._references, j]
                logs -= apart * apart / (2 * width)
            for codes, shares in zip(self._codes, self._shares, strict=True):
                alike = codes[part][:, None] == codes[self._references]
                logs += np.log(np.where(alike, r / shares[codes[part]][:, None] + 1 - r, 1 - r))
            own = part[:, None] == self._references
            logs[own] = -np.inf
            top = logs.max(axis=1)
            top = np.where(np.isfinite(top), top, 0.0)
            with np.errstate(divide="ignore"):
                made[start : start + ahead] = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
            made[start : start + ahead] -= np.log(self._references.size - own.any(axis=1))
        return made
