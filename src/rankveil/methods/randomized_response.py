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
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from rankveil.catalogue import Array, Outcome, Range, method
from rankveil.categories import Categories
from rankveil.errors import ParameterError, listing
from rankveil.seeds import Stream


@method(
    title="Randomised response",
    source="Warner 1965; Kairouz, Bonawitz and Ramage 2016",
    kinds=("ordinal", "nominal"),
    strength="p",
    stronger="lower",
    local_with="domain",
    relabels=True,
    survives="data-free",
    from_data={"domain": "which categories the original column has"},
    tells="with k categories and the truth kept with probability p, the share of a category is estimated by "
    "(observed share - (1 - p) / k) / p",
)
def randomized_response(
    x: Array,
    *,
    p: Annotated[float, Range(0, 1), "the probability that the true category is kept"] = 0.8,
    epsilon: Annotated[float | None, Range(0, above=True), "the privacy of one answer, instead of p"] = None,
    domain: Annotated[tuple[str, ...] | None, "all categories that there can be; none for those that there are"] = None,
    categories: Categories,
    rng: Stream,
) -> Outcome:
    """The truth with probability p, otherwise a category drawn uniformly from all of the domain, the true one too.

    That is local differential privacy with e^epsilon = 1 + p k / (1 - p); given epsilon,
    p = (e^epsilon - 1) / (e^epsilon + k - 1).
    """
    labels = categories.labels if domain is None else domain
    if len(set(labels)) < len(labels):
        raise ParameterError("randomized_response: a category of the domain stands there twice")
    strangers = [label for label in categories.labels if label not in set(labels)]
    if strangers:
        raise ParameterError(f"randomized_response: the domain misses {listing(strangers)}")
    k = len(labels)
    kept = p if epsilon is None else math.expm1(epsilon) / (math.exp(epsilon) + k - 1) if epsilon < 700 else 1.0
    place = {label: code for code, label in enumerate(labels)}
    true = np.array([place[label] for label in categories.labels], dtype=np.float64)[x.astype(np.intp)]
    draws, other = rng.random(x.size), rng.integers(x.size, below=max(k, 1)).astype(np.float64)
    values = np.where(draws < kept, true, other)
    return Outcome(values, levels=labels if labels != categories.labels else None)


@randomized_response.guarantees
def _(parameters: Mapping[str, Mapping[str, Any]], counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Only where the domain was given: otherwise the release tells which categories somebody has."""
    told = []
    for name, given in parameters.items():
        if given["domain"] is None or (given["epsilon"] is None and given["p"] == 1):
            continue
        epsilon = given["epsilon"]
        if epsilon is None:
            epsilon = math.log1p(given["p"] * len(given["domain"]) / (1 - given["p"]))
        told.append(f"{name}: {epsilon:.4g}-local differential privacy for its cells that are not missing")
    return told
