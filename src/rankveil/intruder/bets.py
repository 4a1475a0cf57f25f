"""Posterior links, and the best bet for every person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankveil.intruder.all_pairs import MORE_PAIRS, PAIRS, all_weights, best_pairs
from rankveil.intruder.candidates import CANDIDATES, Classes, classes, likely_links, nearest
from rankveil.intruder.low_bits import LowBitsTerm
from rankveil.intruder.model import Model, Values
from rankveil.likelihood import Term
from rankveil.matchings import CandidateGraph, Posterior, link_posterior

Array = NDArray[np.float64]
Beliefs = NDArray[np.float32]
Places = NDArray[np.int64]

_EQUAL = 1e-6
"""Beliefs that differ by less, relatively, are a tie."""
_WIDTHS = (0.7, 1.0, 1.5, 2.2, 3.2)
"""Widths of the kernel that are tried, in standard deviations of the noise."""
_DENSE = 30
"""Released records from which on their density is estimated."""
_FARTHEST = 10.0
"""How much less likely than most the record of somebody whom he does not know may be."""
_ROUNDS = 6
"""How often the weight of having no partner is corrected."""


@dataclass(frozen=True, eq=False)
class Bets:
    """For every person whom the intruder knows his best bet, and how sure he is."""

    person: Places
    """The original rows of the people."""
    record: Places
    """A released record that he bets on: the first of those that he cannot tell apart; -1 where there is none."""
    belief: Array
    """The probability that he gives to this one record."""
    alike: Array
    """How many released records have the same probability."""
    candidates: Array
    """The effective number of candidates: exp of the entropy of the person's links."""
    group: Places
    """For each released record its class: records in one class cannot be told apart."""
    best: tuple[Places, Places]
    """Places in `person` and classes: all the classes that a person's best bet may be, ties included."""
    links: tuple[CandidateGraph, Beliefs, Classes, Classes]
    """The links, what he believes of each, and the classes that they join."""
    settled: bool = True

    @property
    def evidence(self) -> tuple[Places, Places, Array]:
        """Links as (an original row, a released row, how many links of equal records with their probability)."""
        graph, belief, left, right = self.links
        many = belief.astype(np.float64) * left.sizes[graph.rows] * right.sizes[graph.columns]
        return left.first[graph.rows], right.first[graph.columns], many

    def right(self, truth: Places) -> Array:
        """The chance that each bet is right: 1 / size where the true record is among those bet on, otherwise 0.

        `truth` has the original row of every released record, or -1.
        """
        count = int(max(self.person.max(initial=-1), truth.max(initial=-1))) + 1
        own = np.full(count + 1, -1, dtype=np.int64)
        known = truth >= 0
        own[truth[known]] = self.group[known]
        made = np.zeros(self.person.size)
        place, group = self.best
        hit = (own[self.person[place]] == group) & (group >= 0)
        made[place[hit]] = 1.0 / self.alike[place[hit]]
        return made


def bets(
    model: Model,
    released: Values,
    count: int,
    *,
    people: Places | None = None,
    left_out: int = 0,
    extra: Sequence[Term] = (),
) -> Bets:
    """The best bet for each of the people (all, unless some are given) among `count` released records.

    `left_out`: how many of the people have no released record. Released records without a person among them are as
    many as the numbers say.
    """
    person = np.arange(model.count) if people is None else people
    key_x, key_y = model.key_codes(released, count)
    terms = [*model.terms(released), *extra]
    left = classes(key_x, [term.values[0] for term in terms], person)
    right = classes(key_y, [term.values[1] for term in terms], np.arange(count))
    last = [term for term in terms if isinstance(term, LowBitsTerm)]
    pairs = left.first.size * right.first.size
    if any(term.rough for term in terms) and pairs <= (MORE_PAIRS if last else PAIRS):
        first = [term for term in terms if not isinstance(term, LowBitsTerm)]
        weights = all_weights(first, left.first, right.first, key_x, key_y, last)
        graph, weight = best_pairs(weights, left.sizes, right.sizes, CANDIDATES)
    else:
        graph, weight, left, right = likely_links(terms, key_x, key_y, left, right)
    if model.whole:  # groups as wholes: each is one
        ones = replace(graph, row_sizes=np.ones_like(graph.row_sizes), column_sizes=np.ones_like(graph.column_sizes))
        gone = round(left_out * left.sizes.size / max(person.size, 1))
        posterior = _posterior(ones, weight, np.zeros(right.sizes.size), left.sizes.size, right.sizes.size, gone)
        posterior = replace(posterior, belief=(posterior.belief / right.sizes[graph.columns]).astype(np.float32))
    else:
        spare = count > person.size - left_out
        nobody = _density(terms, right, graph, weight, left) if spare else np.zeros(right.sizes.size)
        posterior = _posterior(graph, weight, nobody, person.size, count, left_out)
    return _best(graph, posterior, left, right, person)


def _density(terms: Sequence[Term], right: Classes, graph: CandidateGraph, weight: Array, left: Classes) -> Array:
    """log p0 of every released class: how dense released records lie there, on the scale of the weights.

    A record of somebody whom he does not know comes from where people are. A kernel estimate from the other released
    records, its width chosen by how well it foretells each from the others.
    """
    n = right.first.size
    if n < _DENSE or not terms:
        return np.zeros(n)
    both = [np.column_stack([term.coordinates[side] for term in terms]) for side in (0, 1)]
    if both[1].shape[1] == 0:
        return np.zeros(n)
    points = both[1][right.first]
    some = min(CANDIDATES, n - 1)
    near, squares = (each[:, 1:] for each in nearest(points, points, some + 1))  # but for itself
    share = np.log(right.sizes[near] / max(int(right.sizes.sum()), 1))
    best, most = np.zeros(n), -np.inf
    for width in _WIDTHS:
        made = np.logaddexp.reduce(share - squares / (2 * width * width), axis=1) - points.shape[1] * np.log(width)
        if float(made.mean()) > most:
            best, most = made, float(made.mean())
    # what weights are above -r^2 / 2 for the links of each record
    apart = np.sum((both[0][left.first[graph.rows]] - points[graph.columns]) ** 2, axis=1)
    number = np.bincount(graph.columns, minlength=n)
    above = np.bincount(graph.columns, weights=weight + apart / 2, minlength=n) / np.maximum(number, 1)
    return best + above


def _posterior(
    graph: CandidateGraph, weight: Array, nobody: Array, people: int, records: int, left_out: int
) -> Posterior:
    """The posterior, with the weights of having no partner such that as many have none as must.

    `nobody` has the logarithm of the density of each released class.
    """
    n = graph.row_sizes.size
    spare = records - (people - left_out)
    if left_out <= 0 and spare <= 0:
        return link_posterior(graph, weight)
    row_level, column_level = 0.0, float(np.log(max(people, 1)))
    # whoever lies far from everybody is somebody all the same
    nobody = np.maximum(nobody, float(np.median(nobody)) - _FARTHEST) if nobody.size else nobody
    made: Posterior | None = None
    for _ in range(_ROUNDS):
        made = link_posterior(
            graph,
            weight,
            row_unmatched=np.full(n, row_level) if left_out > 0 else None,
            column_unmatched=nobody + column_level if spare > 0 else None,
        )
        steps = []
        if left_out > 0:
            expected = float(np.sum(made.unmatched_rows * graph.row_sizes))
            step = np.log(left_out / max(expected, 1e-6)) if expected < people - 1e-6 else -2.0
            row_level += float(np.clip(step, -3, 3))
            steps.append(abs(step))
        if spare > 0:
            expected = float(np.sum(made.unmatched_columns * graph.column_sizes))
            odds = np.log(spare / max(records - spare, 1e-6)) - np.log(
                max(expected, 1e-6) / max(records - expected, 1e-6)
            )
            column_level += float(np.clip(odds, -3, 3))
            steps.append(abs(odds))
        if max(steps) < 0.02:
            break
    assert made is not None
    return made


def _best(graph: CandidateGraph, posterior: Posterior, left: Classes, right: Classes, person: Places) -> Bets:
    n = left.first.size
    rows, columns = graph.rows, graph.columns
    belief = posterior.belief
    starts = np.searchsorted(rows, np.arange(n + 1))
    some = np.flatnonzero(np.diff(starts))
    top = np.zeros(n)
    if some.size:
        top[some] = np.maximum.reduceat(belief, starts[some])
    least = np.where(top > 0, top * (1 - _EQUAL), np.inf)
    tied = np.flatnonzero(belief >= least[rows])
    row, column = rows[tied], columns[tied]
    alike = np.bincount(row, weights=right.sizes[column], minlength=n)
    chosen = np.full(n, -1, dtype=np.int64)
    chosen[row[::-1]] = right.first[column[::-1]]
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(belief > 0, -belief * np.log(belief), 0.0) * right.sizes[columns]
    spread = np.bincount(rows, weights=parts, minlength=n)
    # every person of a class has the bets of the class
    starts = np.searchsorted(row, np.arange(n + 1))
    of = left.of
    number = np.diff(starts)[of]
    place = np.repeat(np.arange(person.size), number)
    ahead = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
    groups = column[np.repeat(starts[of], number) + ahead].astype(np.int64)
    return Bets(
        person=person,
        record=chosen[of],
        belief=top[of],
        alike=np.maximum(alike[of], 1.0),
        candidates=np.exp(spread)[of],
        group=right.of,
        best=(place, groups),
        links=(graph, belief, left, right),
        settled=posterior.change < 0.05,
    )
