"""Data shuffling: the original values, in an order drawn from the dependence of the ranks alone.

>>> import numpy as np
>>> from rankveil.seeds import Seed
>>> x = np.array([[3.0], [1.0], [2.0]])
>>> y = shuffle(x, x[:, :0], np.isnan(x), rng=Seed.of(1).stream("order")).values
>>> np.sort(y, axis=0).ravel()
array([1., 2., 3.])
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Outcome, method
from rankveil.likelihood import Simulated
from rankveil.multivariate import (
    combined,
    copula_of,
    in_drawn_order,
    normal_draws,
    pseudo_inverse,
    root,
)
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream

_DETERMINED = 1e-9
"""A conditional variance of scores below which a column follows from the given ones."""


@method(
    title="Data shuffling",
    source="Muralidhar and Sarathy 2006",
    works_on="columns",
    kinds=("numeric", "ordinal", "hierarchy"),
    marginals="kept",
    by_parts=True,
    tells="every column's distribution is exactly the original's; rank correlations, with the given columns too, are "
    "about the original's; given those columns, who has which value is drawn anew",
)
def shuffle(x: Array, given: Array, missing: NDArray[np.bool_], *, rows: Rows = HERE, rng: Stream) -> Outcome:
    """Data shuffling: draw normal scores given those of the non-confidential columns, put back values in their order.

    The score of a rank is the normal quantile of rank / (n + 1), ties at their mean rank. With Spearman's correlations
    rho of all columns, the scores have the Gaussian-copula correlations R = 2 sin(pi rho / 6), made positive
    semidefinite. Scores of the confidential columns are drawn from N(R_xs R_ss^+ s, R_xx - R_xs R_ss^+ R_sx), with s
    the scores of the given columns of the same record; without given columns from N(0, R_xx). The j-th smallest
    original value goes to the record with the j-th smallest draw, among those whose value is not missing.
    """
    from scipy.special import ndtri

    n, m = x.shape
    ranks = rows.average_ranks(np.asfortranarray(np.hstack([x, given])))
    copula = copula_of(ranks, rows=rows)
    weights = np.einsum("ij,jk->ik", pseudo_inverse(copula[m:, m:]), copula[m:, :m])
    left = copula[:m, :m] - np.einsum("ji,jk->ik", copula[m:, :m], weights)
    draws = combined(normal_draws(rng, x.shape), root((left + left.T) / 2))
    if given.shape[1]:
        draws += combined(np.asfortranarray(ndtri(ranks[:, m:] / (rows.count(n) + 1))), weights)
    known = int(np.sum(np.diag(left) < _DETERMINED))
    note = f"columns whose ranks follow from the given ones, so that nothing is drawn anew in them: {known}"
    made = in_drawn_order(x, missing, draws, rows=rows, rng=rng)
    return Outcome(made, notes=(note,) if known else ())


@shuffle.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Simulated:
    """A draw of the ranks given the other columns: what it says he learns from repeating it."""
    return Simulated("ranks are drawn anew")
