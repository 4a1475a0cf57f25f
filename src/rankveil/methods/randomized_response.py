"""Randomised response: the true category with a known probability, otherwise one drawn at random.

>>> import numpy as np
>>> from rankveil.categories import nominal
>>> from rankveil.seeds import Seed
>>> answers = nominal(["no", "yes"], np.array([2.0, 1.0]))
>>> randomized_response(np.array([0.0, 0.0, 1.0]), categories=answers, p=1.0, rng=Seed.of(1).stream("q")).values
array([0., 0., 1.])
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from rankveil.catalogue import Array, Outcome, Range, method
from rankveil.categories import Categories
from rankveil.errors import ParameterError, listing
from rankveil.likelihood import Exchange
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream

_GRAIN = 2.0**-50
"""Draws are multiples of 2^-53: a probability is met to less than this."""


@method(
    title="Randomised response",
    source="Warner 1965; Kairouz, Bonawitz and Ramage 2016",
    kinds=("ordinal", "nominal"),
    strength="p",
    stronger="lower",
    instead=("epsilon",),
    local_with="domain",
    relabels=True,
    by_parts=True,
    survives="data-free",
    from_data={"domain": "which categories the original column has"},
    seed_tells="it can be told which answers are the true ones",
    tells="with k categories (see counts) and the truth kept with probability p, the share of a category is estimated "
    "by (observed share - (1 - p) / k) / p; where epsilon is given, p is (e^epsilon - 1) / (e^epsilon + k - 1)",
)
def randomized_response(
    x: Array,
    *,
    p: Annotated[float, Range(0, 1), "the probability that the true category is kept"] = 0.8,
    epsilon: Annotated[float | None, Range(0, above=True), "the privacy of one answer, instead of p"] = None,
    domain: Annotated[tuple[str, ...] | None, "all categories that there can be; none for those that there are"] = None,
    categories: Categories,
    rows: Rows = HERE,
    rng: Stream,
) -> Outcome:
    """The truth with probability p, otherwise a category drawn uniformly from all of the domain, the true one too.

    That is local differential privacy with e^epsilon = 1 + p k / (1 - p); given epsilon,
    p = (e^epsilon - 1) / (e^epsilon + k - 1). The domain of a column with an order is given in that order.
    """
    labels, code = categories.labels if domain is None else domain, x.astype(np.intp)
    if domain is not None:
        _check(
            domain,
            categories,
            present=[categories.labels[i] for i in np.flatnonzero(rows.tally(code, len(categories)))],
        )
    kept = p if epsilon is None else truth(epsilon, len(labels))
    place = {label: code for code, label in enumerate(labels)}
    true = np.array([place.get(label, -1) for label in categories.labels], dtype=np.float64)[code]
    draws, other = rng.random(x.size), rng.integers(x.size, below=len(labels)).astype(np.float64)
    values = np.where(draws < kept, true, other)
    return Outcome(values, {"categories": len(labels)}, levels=domain)


def truth(epsilon: float, number: int) -> float:
    """The probability that the truth is kept, rounded so that no more than epsilon is spent.

    >>> truth(math.log(3), 2)  # e^epsilon = 3: the true one of two is told three times as often as the other
    0.5
    """
    # the rest, 1 - p = k / (e^epsilon + k - 1), is what must not be too small
    rest = number / (math.expm1(min(epsilon, 700.0)) + number)
    return max(0.0, 1.0 - rest * (1 + number * _GRAIN) - _GRAIN)


def _check(domain: tuple[str, ...], categories: Categories, *, present: Sequence[str]) -> None:
    """A domain has each category of the column once, in the order of the column where it has one."""
    if not domain or len(set(domain)) < len(domain):
        raise ParameterError("randomized_response: a domain is a list of different categories")
    strangers = [label for label in present if label not in set(domain)]
    if strangers:
        raise ParameterError(f"randomized_response: the domain misses {listing(strangers)}")
    if categories.ordered:
        known = set(categories.labels)
        common = [label for label in domain if label in known]
        if common != sorted(common, key=categories.labels.index):
            order = listing(categories.labels, most=20)
            raise ParameterError(f"randomized_response: give the domain in the order of the column: {order}")


@randomized_response.corrects_shares
def _(shares: Mapping[str, float], parameters: Mapping[str, Any], counts: Mapping[str, int]) -> dict[str, float]:
    """f = (observed share - (1 - p) / k) / p."""
    k, epsilon = counts["categories"], parameters["epsilon"]
    p = parameters["p"] if epsilon is None else truth(epsilon, k)
    if p == 0:
        raise ParameterError("randomized_response: with p = 0 the release tells nothing of the original")
    labels = dict.fromkeys([*shares, *(parameters["domain"] or ())])
    return {label: (shares.get(label, 0.0) - (1 - p) / k) / p for label in labels}


@randomized_response.guarantees
def _(
    parameters: Mapping[str, Mapping[str, Any]], counts: Mapping[str, Mapping[str, int]], names: Sequence[str]
) -> list[str]:
    """Only where the domain was given: otherwise the release tells which categories somebody has."""
    told = []
    for name in names:
        given = parameters[name]
        if given["domain"] is None or (given["epsilon"] is None and given["p"] == 1):
            continue
        told.append(
            f"column {name}: local differential privacy with epsilon = {_spent(given):.6g} for each value that is "
            "there (that of a whole group where the column is the same within groups); which cells are missing is "
            "published as it is and not covered; the epsilons of several columns, steps or releases add up"
        )
    return told


def _spent(given: Mapping[str, Any]) -> float:
    """The epsilon of a column, rounded up to six digits."""
    if given["epsilon"] is not None:
        epsilon = float(given["epsilon"])
    else:
        epsilon = math.log1p(given["p"] * len(given["domain"]) / (1 - given["p"])) + 1e-9 * (given["p"] > 0)
    written = float(f"{epsilon:.6g}")
    return written if written >= epsilon else written + 10.0 ** (math.floor(math.log10(epsilon)) - 5)


@randomized_response.tells_intruder
def _(x: Array, parameters: Mapping[str, Any], *, labels: tuple[str, ...], **known: Any) -> Exchange:
    """The truth with probability p, otherwise any category of the domain."""
    targets, epsilon = parameters["domain"] or labels, parameters["epsilon"]
    kept = parameters["p"] if epsilon is None else truth(epsilon, len(targets))
    table = np.full((len(labels), len(targets)), (1 - kept) / len(targets))
    place = {label: code for code, label in enumerate(targets)}
    for code, label in enumerate(labels):
        if label in place:
            table[code, place[label]] += kept
    return Exchange(table, labels, tuple(targets))
