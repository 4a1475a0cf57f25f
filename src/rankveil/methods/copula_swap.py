"""Copula swapping: ranks move towards a draw that has the same dependence, and values are put back in that order.

>>> import numpy as np
>>> from rankveil.seeds import Seed
>>> x = np.array([[3.0], [1.0], [2.0]])
>>> y = copula_swap(x, np.isnan(x), p=10.0, rng=Seed.of(1).stream("order")).values
>>> np.sort(y, axis=0).ravel()
array([1., 2., 3.])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from rankveil import strengths
from rankveil.catalogue import Array, Outcome, Range, method
from rankveil.likelihood import JointScores
from rankveil.multivariate import combined, copula_of, in_drawn_order, normal_draws, root
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream

STRONGEST = 70.7
"""The strength at which nothing of a record's own ranks is left."""


@method(
    title="Copula swapping",
    source="after Sarathy, Muralidhar and Parsa 2002",
    works_on="columns",
    kinds=("numeric", "ordinal", "hierarchy"),
    strength="p",
    by_columns=True,
    marginals="kept",
    by_parts=True,
    seed_tells="the draws can be subtracted from the scores, which tells about where every value was",
    tells="every column's distribution is exactly the original's, and rank correlations are about the original's; how "
    "far values moved in ranks follows from p",
)
def copula_swap(
    x: Array,
    missing: NDArray[np.bool_],
    *,
    p: Annotated[
        float | None,
        Range(0, STRONGEST, above=True),
        "how far values move, in percent of the records (70.7 draws ranks anew); none goes by how many columns",
    ] = None,
    rows: Rows = HERE,
    rng: Stream,
) -> Outcome:
    """Copula swapping: normal scores of the ranks move towards a draw with their own correlations.

        z' = rho z + sqrt(1 - rho^2) e,   e ~ N(0, R),   rho = 2 sin(pi (1 - 2 (p / 100)^2) / 6)

    z are the normal quantiles of rank / (n + 1), ties at their mean rank, and R = 2 sin(pi Spearman / 6), made positive
    semidefinite. The j-th smallest value of a column goes to the record with the j-th smallest z' there, among those
    whose value is not missing. So z' has the correlations of z, whatever p: what changes is who has which values. A
    rank's correlation with its old one is about 1 - 2 (p / 100)^2; at p = 70.7 it is 0, and ranks are drawn anew, as by
    `shuffle`. Dependence that is not that of a normal copula is replaced by it as p grows.
    """
    n, m = x.shape
    kept = correlation_kept(strengths.strength_for("copula_swap", m) if p is None else p)
    ranks = rows.average_ranks(x)
    copula = copula_of(ranks, rows=rows)
    drawn = combined(normal_draws(rng, x.shape), root(copula))
    keys = kept * scores(ranks, count=rows.count(n)) + np.sqrt(1 - kept * kept) * drawn
    return Outcome(in_drawn_order(x, missing, keys, rows=rows, rng=rng))


def correlation_kept(p: float) -> float:
    """rho: the correlation of normal scores at which ranks correlate by 1 - 2 (p / 100)^2."""
    return float(2 * np.sin(np.pi / 6 * max(1 - 2 * (p / 100) ** 2, 0.0)))


def scores(ranks: Array, *, count: int) -> Array:
    """Normal quantiles of rank / (n + 1)."""
    from scipy.special import ndtri

    made: Array = np.asfortranarray(ndtri(ranks / (count + 1)))
    return made


@copula_swap.tells_intruder
def _(x: Array, parameters: Sequence[Any], **known: Any) -> JointScores:
    """The scores of a record are normal about the shrunk ones of its original."""
    p = parameters[0]["p"]
    kept = correlation_kept(strengths.strength_for("copula_swap", x.shape[1]) if p is None else p)
    return JointScores(kept, (1 - kept * kept) * copula_of(HERE.average_ranks(x)))
