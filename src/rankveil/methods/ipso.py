"""IPSO: synthetic data from the regression on given columns, which keeps what the regression says.

>>> import numpy as np
>>> from rankveil.seeds import Seed
>>> x = np.array([[30.0, 1.0], [10.0, 2.0], [50.0, 7.0], [20.0, 4.0], [40.0, 3.0]])
>>> y = ipso(x, x[:, :0], rng=Seed.of(1).stream("synthetic")).values
>>> np.allclose(y.mean(axis=0), x.mean(axis=0)), np.allclose(np.cov(y.T), np.cov(x.T))
(True, True)
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

import numpy as np

from rankveil.catalogue import Array, Outcome, method
from rankveil.errors import ParameterError
from rankveil.likelihood import Simulated
from rankveil.multivariate import fitted, normal_draws, regressors, scattered, standardised, turned
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream

_DETERMINED = 1e-9
"""A residual below this part of the column's standard deviation is rounding."""


@method(
    title="IPSO synthetic data",
    source="Burridge 2003",
    works_on="columns",
    kinds=("numeric",),
    mapping="none",
    by_parts=True,
    tells="means and covariances, with the given columns too, are exactly the original's with variant C; B keeps the "
    "regression on the given columns, and A keeps both in expectation only",
)
def ipso(
    x: Array,
    given: Array,
    *,
    variant: Annotated[
        Literal["A", "B", "C"], "A plain; B keeps the regression exactly; C also the residual covariance"
    ] = "C",
    rows: Rows = HERE,
    rng: Stream,
) -> Outcome:
    """Synthetic x = fitted values of the regression on (1, given) + random residuals.

    A: residuals from N(0, S), S the population covariance of the original's residuals.
    B: those of A, regressed on (1, given) and only what is left of them kept: the coefficients are the original's.
    C: those of B, scaled so that their covariance is S exactly: a random rotation of the original's residuals that
    leaves (1, given) alone. So means and covariances of (given, x) are kept, singular or not, whatever n and m are.

    A column that follows from the given ones exactly has no residuals: it stays as it is, and is counted. With n
    records and r independent columns in (1, given), n - r residuals are free: with none of them the release would be
    the original, and with one C could only turn the sign of all residuals, so both are refused.
    """
    n, m = rows.count(x.shape[0]), x.shape[1]
    basis = regressors(given, rows=rows)
    free = n - basis.shape[1]
    if free < (2 if variant == "C" else 1):
        raise ParameterError(
            f"ipso: {n} records leave {max(free, 0)} degrees of freedom after the regression on {given.shape[1]} given "
            "columns, so that the original itself would be released; name fewer given columns or mask more records"
        )
    table = standardised(x, rows=rows)
    expected = fitted(table.z, basis, rows=rows)
    residuals = table.z - expected
    lengths = rows.sums([partial(np.square, column) for column in residuals.T], size=residuals.size)
    known = np.array(lengths) <= n * _DETERMINED**2
    residuals[:, known] = 0.0
    draws = normal_draws(rng, (x.shape[0], min(free, m)))
    if variant == "C":
        noise = turned(residuals, draws, basis, rows=rows)
    else:
        noise = scattered(residuals, draws, rows=rows)
        noise -= fitted(noise, basis, rows=rows) if variant == "B" else 0.0
    made = table.restored(expected + noise)
    unchanged = known & (table.spread > 0)
    made[:, known] = x[:, known]
    notes = []
    if unchanged.any():
        notes.append(f"columns that follow from the given ones exactly and stay as they are: {unchanged.sum()}")
    if free <= m:
        notes.append(f"{n} records leave only {free} degrees of freedom for {m} columns: little of them is hidden")
    return Outcome(made, counts={"unchanged": x.shape[0] * unchanged} if unchanged.any() else {}, notes=tuple(notes))


@ipso.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Simulated:
    """A draw given the other columns: what it says about a person he learns from repeating it."""
    return Simulated("values are drawn anew from a regression")
