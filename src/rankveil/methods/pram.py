"""PRAM, post-randomisation: a category is exchanged for another with known probabilities.

>>> import numpy as np
>>> from rankveil.categories import nominal
>>> from rankveil.seeds import Seed
>>> towns = nominal(["a", "b"], np.array([2.0, 1.0]))
>>> pram(np.array([0.0, 0.0, 1.0]), categories=towns, p=1.0, rng=Seed.of(1).stream("towns")).values
array([1., 1., 0.])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Outcome, Range, method
from rankveil.categories import Categories
from rankveil.errors import ParameterError, suggestion
from rankveil.likelihood import Exchange as Exchanged
from rankveil.likelihood import Simulated
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream

Codes = NDArray[np.intp]


@method(
    title="Post-randomisation (PRAM)",
    source="Gouweleeuw, Kooiman, Willenborg and de Wolf 1998",
    kinds=("ordinal", "nominal"),
    strength="p",
    instead=("matrix",),
    by_parts=True,
    seed_tells="it can be told which categories are the true ones",
    tells="counts are corrected by the inverse of the matrix P of the exchange, which is 1 - p on its diagonal and "
    "p / (c - 1) elsewhere for c categories (see counts), or given; with to = frequency P(k, l) is p f_l / (1 - f_k), "
    "f the original shares, which are not published; invariant PRAM keeps the expected share of every category, so its "
    "counts need no correction, and for cross tables the released shares stand for f in its matrix",
)
def pram(
    x: Array,
    *,
    p: Annotated[float, Range(0, 1), "the probability that a category is exchanged for another"] = 0.1,
    to: Annotated[
        Literal["uniform", "frequency"], "for which other: each as likely, or as likely as it is frequent"
    ] = "uniform",
    invariant: Annotated[bool, "exchange a second time, so that the expected shares of the categories stay"] = False,
    matrix: Annotated[str | None, "the probabilities themselves instead: 'a>b:0.1;a>c:0.2;b>a:0.3'"] = None,
    categories: Categories,
    rows: Rows = HERE,
    rng: Stream,
) -> Outcome:
    """Every category k becomes l with probability P(k, l), each record by itself.

    P has 1 - p on its diagonal and p spread over the other categories, those that no record has too, or it is given.
    The invariant form is P P* with P*(k, l) = f_l P(l, k) / sum_m f_m P(m, k), f the original shares: f P P* = f.
    """
    code = x.astype(np.intp)
    counts = rows.tally(code, len(categories)).astype(np.float64)
    told = {"categories": len(categories)}
    if matrix is not None:
        table = read_matrix(matrix, categories.labels)
        made = drawn(code, table, rng.random(x.size))
        if invariant:
            made = drawn(made, bayes(table, counts), rng.random(x.size))
        return Outcome(made.astype(np.float64), told)
    first = exchange(counts, p=p, to=to)
    if first is None:
        return Outcome(x.copy(), told, ("there is one category only, so nothing was exchanged",))
    made = first.drawn(code, rng.random(x.size), rng.random(x.size))
    if invariant:
        made = first.back(counts).drawn(made, rng.random(x.size), rng.random(x.size))
    return Outcome(made.astype(np.float64), told, _too_strong(p, len(categories)))


@pram.discloses
def _(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Probabilities that depend on the shares of the categories."""
    if not parameters["invariant"] and (parameters["to"] == "uniform" or parameters["matrix"] is not None):
        return {}
    return {"a part of the probabilities": "the shares of its categories, which the release tells nearly as well"}


@pram.corrects_shares
def _(shares: Mapping[str, float], parameters: Mapping[str, Any], counts: Mapping[str, int]) -> dict[str, float]:
    """f from the released shares, whose expectation is f P."""
    if parameters["invariant"]:
        return dict(shares)
    matrix, number = parameters["matrix"], counts["categories"]
    if matrix is not None:
        named = [label for source, target, _ in _entries(matrix, list(shares)) for label in (source, target)]
        labels = list(dict.fromkeys([*shares, *named]))
        released = np.array([shares.get(label, 0.0) for label in labels])
        table = read_matrix(matrix, labels)
        if np.linalg.cond(table) > 1e12:
            raise ParameterError("pram: its matrix has no inverse, so the original shares do not follow from it")
        return dict(zip(labels, np.linalg.solve(table.T, released).tolist(), strict=True))
    p = parameters["p"]
    if number < 2 or p == 0:
        return dict(shares)
    if parameters["to"] == "frequency":
        raise ParameterError("pram to = frequency has probabilities that are not published; invariant keeps the shares")
    other = p / (number - 1)
    if abs(1 - p - other) < 1e-12:
        raise ParameterError(f"pram: with p = {p:g} all categories become equally likely: no share can be told")
    return {label: (share - other) / (1 - p - other) for label, share in shares.items()}


@dataclass(frozen=True, eq=False)
class Exchange:
    """Category k is left with a probability of its own, for another in proportion to the weights of the others."""

    leave: Array
    weight: Array

    def matrix(self) -> Array:
        """P(k, l), the probability that k becomes l."""
        others = self.weight.sum() - self.weight
        made: Array = self.leave[:, None] * self.weight / np.where(others > 0, others, 1.0)[:, None]
        np.fill_diagonal(made, 1 - self.leave)
        return made

    def back(self, share: Array) -> Exchange:
        """P*(k, l): from which l a k has come, when l has that share (Bayes)."""
        others = self.weight.sum() - self.weight
        # l leaves for a given other category so often, per weight of that one
        gone = share * self.leave / np.where(others > 0, others, 1.0)
        moved = (gone.sum() - gone) * self.weight
        total = share * (1 - self.leave) + moved
        leave = np.divide(moved, total, out=np.zeros_like(total), where=total > 0)
        return Exchange(np.where(np.count_nonzero(gone) - (gone > 0) > 0, leave, 0.0), gone)

    def drawn(self, code: Codes, first: Array, second: Array) -> Codes:
        """A category for each record from two uniform draws: whether it is left, and for which other."""
        able = np.flatnonzero(self.weight)
        if able.size < 2 and not np.any(self.leave):
            return code.copy()
        upto = np.concatenate(([0.0], np.cumsum(self.weight)))
        own = self.weight[code]
        place = second * (upto[-1] - own)
        place += np.where(place >= upto[code], own, 0.0)  # one's own stretch is left out
        # a draw next to 1 may be rounded beyond the last stretch
        last = np.where((code == able[-1]) & (able.size > 1), able[max(able.size - 2, 0)], able[-1])
        other = np.minimum(np.searchsorted(upto, place, side="right") - 1, last)
        made: Codes = np.where(first < self.leave[code], other, code)
        return made


def exchange(counts: Array, *, p: float, to: str) -> Exchange | None:
    """The exchange by strength; None where there is no other category."""
    weight = np.ones(counts.size) if to == "uniform" else counts
    if np.count_nonzero(weight) < 2:
        return None
    return Exchange(np.full(counts.size, p), weight)


def bayes(table: Array, share: Array) -> Array:
    """P* of a matrix P: P*(k, l) = f_l P(l, k) / sum_m f_m P(m, k)."""
    back = (table * share[:, None]).T
    total = back.sum(axis=1, keepdims=True)
    return np.where(total > 0, back / np.where(total > 0, total, 1.0), np.eye(len(table)))


def drawn(code: Codes, table: Array, uniform: Array) -> Codes:
    """A category for each record from the row of its own."""
    upto = np.cumsum(table, axis=1)
    made = np.empty(code.size, dtype=np.intp)
    for k in range(len(table)):
        rows = np.flatnonzero(code == k)
        # rows sum to 1 but for rounding: what lies beyond belongs to the last category that can be drawn
        last = np.flatnonzero(table[k])[-1]
        made[rows] = np.minimum(np.searchsorted(upto[k], uniform[rows], side="right"), last)
    return made


def read_matrix(text: str, labels: Sequence[str]) -> Array:
    """P from `a>b:0.1;a>c:0.2`: what is not said stays as it is."""
    place = {label: code for code, label in enumerate(labels)}
    table = np.zeros((len(place), len(place)))
    said: set[tuple[str, str]] = set()
    for source, target, number in _entries(text, labels):
        for label in (source, target):
            if label not in place:
                raise ParameterError(f"pram: matrix names {label!r}, no category here{suggestion(label, list(place))}")
        if source == target:
            raise ParameterError(f"pram: matrix: {source!r} stays with what is left of its probabilities; leave it out")
        if (source, target) in said:
            raise ParameterError(f"pram: matrix says twice how often {source!r} becomes {target!r}")
        said.add((source, target))
        table[place[source], place[target]] = number
    away = table.sum(axis=1)
    if not said or not np.all(table >= 0) or not np.all(away <= 1 + 1e-12):
        raise ParameterError("pram: the probabilities of leaving a category must be 0 or more and at most 1 together")
    np.fill_diagonal(table, np.maximum(1 - away, 0.0))
    return table


def _entries(text: str, labels: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    """Who becomes whom how often; a label may have the signs > and : itself."""
    known = set(labels)
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        pair, _, number = part.rpartition(":")
        splits = [(pair[:i].strip(), pair[i + 1 :].strip()) for i, sign in enumerate(pair) if sign == ">"]
        best = max(splits, key=lambda two: known.issuperset(two), default=None)
        try:
            if best is None:
                raise ValueError
            yield *best, float(number)
        except ValueError:
            raise ParameterError(f"pram: matrix reads like 'a>b:0.1;a>c:0.2', not {part!r}") from None


def _too_strong(p: float, number: int) -> tuple[str, ...]:
    """Beyond (c - 1) / c a category is the less likely the truer it is, which tells of it again."""
    if p <= (number - 1) / number:
        return ()
    return (f"p is above {(number - 1) / number:.4g}, where nothing of the categories is left: more of it tells more",)


@pram.tells_intruder
def _(x: Array, parameters: Mapping[str, Any], *, labels: tuple[str, ...], **known: Any) -> Exchanged | Simulated:
    """The matrix of the exchange, with the original shares where it depends on them."""
    counts = np.bincount(x.astype(np.intp), minlength=len(labels)).astype(np.float64)
    if parameters["matrix"] is not None:
        table = read_matrix(parameters["matrix"], labels)
        table = table @ bayes(table, counts) if parameters["invariant"] else table
        return Exchanged(table, labels, labels)
    first = exchange(counts, p=parameters["p"], to=parameters["to"])
    if first is None:
        return Simulated("there is one category only")
    table = first.matrix()
    table = table @ first.back(counts).matrix() if parameters["invariant"] else table
    return Exchanged(table, labels, labels)
