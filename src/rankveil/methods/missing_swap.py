"""Swapping of missing cells: who has no value is hidden, how many have none is not.

>>> import numpy as np
>>> from rankveil.seeds import Seed
>>> x, gone = np.array([[1.0], [2.0], [0.0]]), np.array([[False], [False], [True]])
>>> made = missing_swap(x, gone, rng=Seed.of(1).stream("example"))
>>> made.missing.ravel(), np.sort(made.values[~made.missing])
(array([ True, False, False]), array([1., 2.]))
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import EVERY_KIND, Array, Outcome, Range, method
from rankveil.errors import listing
from rankveil.likelihood import Recomputed, Simulated
from rankveil.seeds import Stream


@method(
    title="Swapping of missing cells",
    source="after Dalenius and Reiss 1982",
    works_on="columns",
    kinds=EVERY_KIND,
    changes_missing=True,
    marginals="kept",
    seed_tells="most of those whose cells traded places can be told",
    tells="as many cells are missing in every column, by each missing code, as in the original, and its values are "
    "exactly the original's; "
    "those that traded places tell nothing of who had no value, nor of what that depends on",
)
def missing_swap(
    x: Array,
    missing: NDArray[np.bool_],
    *,
    share: Annotated[float, Range(0, 1), "which part of the missing cells trade places"] = 1.0,
    names: tuple[str, ...] = (),
    gaps: NDArray[np.int64] | None = None,
    rng: Stream,
) -> Outcome:
    """In every column each missing cell trades places with one that has a value, drawn at random, nobody twice.

        (y_i, y_j) = (x_j, x_i),  x_i missing,  x_j a value

    Values go to the record whose cell was missing, and its missing code (n/a, -9, .a; see `gaps`) goes the other way.
    Where more cells are missing than there are values, as many trade places as there are values.
    """
    made, gone = x.copy(order="F"), missing.copy(order="F")
    codes = np.where(missing, 0, -1) if gaps is None else gaps.copy()
    swapped = np.zeros(x.shape[1], dtype=np.int64)
    for j in range(x.shape[1]):
        order = rng.order(len(x))
        empty, full = order[missing[order, j]], order[~missing[order, j]]
        count = min(int(np.floor(share * empty.size + 0.5)), full.size)
        empty, full = empty[:count], full[:count]
        made[empty, j] = x[full, j]
        gone[empty, j], gone[full, j] = False, True
        codes[full, j], codes[empty, j] = codes[empty, j], -1
        swapped[j] = count
    whole = [name for name, column in zip(names, missing.T, strict=False) if not column.any()]
    notes = (f"no cell is missing, so nothing was swapped, in {listing(whole, most=10)}",) if whole else ()
    return Outcome(made, {"swapped": swapped}, notes, missing=gone, gaps=codes)


@missing_swap.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Simulated | Recomputed:
    """Missing cells change places between records; where there are none, or no share of them, nothing does."""
    share = max(given["share"] for given in parameters)
    return Simulated("missing cells change places") if share > 0 and np.isnan(x).any() else Recomputed()
