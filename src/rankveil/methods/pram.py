"""PRAM, post-randomisation: a category is exchanged for another with known probabilities.

>>> import numpy as np
>>> from rankveil.categories import nominal
>>> from rankveil.seeds import Seed
>>> towns = nominal(["a", "b"], np.array([2.0, 1.0]))
>>> pram(np.array([0.0, 0.0, 1.0]), categories=towns, p=1.0, rng=Seed.of(1).stream("towns"))
array([1., 1., 0.])
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Range, method
from rankveil.categories import Categories
from rankveil.errors import ParameterError, suggestion
from rankveil.seeds import Stream

Codes = NDArray[np.intp]


@method(
    title="Post-randomisation (PRAM)",
    source="Gouweleeuw, Kooiman, Willenborg and de Wolf 1998",
    kinds=("ordinal", "nominal"),
    strength="p",
    tells="the probabilities of exchange are known, so counts can be corrected by the inverse of their matrix; "
    "invariant PRAM keeps the expected share of every category, and counts need no correction",
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
    rng: Stream,
) -> Array:
    """Every category k becomes l with probability P(k, l), each record by itself.

    P has 1 - p on its diagonal and p spread over the other categories, or is given. The invariant form is P P* with
    P*(k, l) = f_l P(l, k) / sum_m f_m P(m, k), f the shares in the original: f P P* = f.
    """
    code = x.astype(np.intp)
    share = np.bincount(code, minlength=len(categories)) / max(x.size, 1)
    if matrix is not None:
        table = _read(matrix, categories)
        made = _drawn(code, table, rng.random(x.size))
        if invariant:
            back = (table * share[:, None]).T
            made = _drawn(made, back / np.maximum(back.sum(axis=1, keepdims=True), 1e-300), rng.random(x.size))
        return made.astype(np.float64)
    weight = np.ones(len(categories)) if to == "uniform" else share
    if np.count_nonzero(weight) < 2:
        rng.random(x.size)
        return x.copy()
    made = _exchanged(code, np.full(x.size, p), weight, rng.random(x.size), rng.random(x.size))
    if invariant:
        away = p * weight / (weight.sum() - weight)  # l leaves for a given other one so often, per weight of the other
        gone = share * away
        moved = (gone.sum() - gone) * weight  # what comes to k from all others
        stay = share * (1 - p)
        total = stay + moved
        leave = np.divide(moved, total, out=np.zeros_like(total), where=total > 0)
        made = _exchanged(made, leave[made], gone, rng.random(x.size), rng.random(x.size))
    return made.astype(np.float64)


def _exchanged(code: Codes, chance: Array, weight: Array, first: Array, second: Array) -> Codes:
    """With that chance another category, in proportion to the weights of the others."""
    upto = np.concatenate(([0.0], np.cumsum(weight)))
    own = weight[code]
    place = second * (upto[-1] - own)
    place += np.where(place >= upto[code], own, 0.0)  # one's own stretch is left out
    other = np.clip(np.searchsorted(upto, place, side="right") - 1, 0, weight.size - 1)
    made: Codes = np.where(first < chance, other, code)
    return made


def _drawn(code: Codes, table: Array, uniform: Array) -> Codes:
    """A category for each record from the row of its own."""
    upto = np.cumsum(table, axis=1)
    upto[:, -1] = 1.0
    made = np.empty(code.size, dtype=np.intp)
    for k in range(len(table)):
        rows = np.flatnonzero(code == k)
        made[rows] = np.searchsorted(upto[k], uniform[rows], side="right")
    found: Codes = np.minimum(made, len(table) - 1)
    return found


def _read(text: str, categories: Categories) -> Array:
    """`a>b:0.1;a>c:0.2`: what is not said stays as it is."""
    place = {label: code for code, label in enumerate(categories.labels)}
    table = np.zeros((len(place), len(place)))
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        labels, _, number = part.rpartition(":")
        source, sign, target = (word.strip() for word in labels.partition(">"))
        for label in (source, target):
            if not sign or label not in place:
                raise ParameterError(f"pram: matrix names {label!r}, no category here{suggestion(label, list(place))}")
        try:
            table[place[source], place[target]] = float(number)
        except ValueError:
            raise ParameterError(f"pram: matrix reads like 'a>b:0.1;a>c:0.2', not {part!r}") from None
    np.fill_diagonal(table, 0.0)
    away = table.sum(axis=1)
    if np.any(table < 0) or np.any(away > 1 + 1e-12):
        raise ParameterError("pram: the probabilities of leaving a category must be 0 or more and at most 1 together")
    np.fill_diagonal(table, np.maximum(1 - away, 0.0))
    return table
