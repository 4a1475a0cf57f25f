"""Local suppression: the fewest cells that must go so that no record is alone with its quasi-identifiers.

>>> import numpy as np
>>> sexes, towns = [0.0, 0.0, 0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
>>> made = suppress(np.column_stack([sexes, towns]), np.zeros((6, 2), dtype=bool), k=2)
>>> made.missing[:, 1].astype(int), made.counts["suppressed"]  # the fourth is alone; one of the first joins her
(array([0, 1, 0, 1, 0, 0]), array([0, 2]))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import EACH, EVERY_KIND, Array, Outcome, Range, method
from rankveil.errors import ParameterError
from rankveil.likelihood import Recomputed
from rankveil.suppression import EVERY_SET, MOST_COLUMNS, fewest


@method(
    title="Local suppression",
    source="Sweeney 2002; Hundepool et al. 2012",
    works_on="columns",
    kinds=EVERY_KIND,
    takes="labels",
    role="quasi-identifier",
    changes_missing=True,
    whole_records=True,
    strength="k",
    survives="value-wise",
    tells="values that are there are the original's; rare combinations of values lost some of them, so records with "
    "missing cells are not like the others, and what is computed without them is biased",
)
def suppress(
    x: Array,
    missing: NDArray[np.bool_],
    *,
    k: Annotated[int, Range(1), "the least number of records that share their values"] = 5,
    importance: Annotated[float, Range(0), "what a suppressed cell of the column costs beside others", EACH] = 1.0,
    missing_is: Annotated[
        Literal["own", "any"], "a missing cell is a value of its own, or agrees with any (as sdcMicro counts)"
    ] = "own",
) -> Outcome:
    """Suppress cells, as few as can be found, until every record shares what is left with at least k - 1 others.

        least sum of importance_j over the suppressed cells (i, j),
        so that every record i has f_i >= k, with f_i = the number of records like it

    With `importance` it is the sum of the cells' importances that is small. The least is NP-hard to find: the cells are
    the best of several ways, two greedy ones among them, improved part by part. With missing_is=any a record that lost
    cells makes others safe that stay as unique as they were among the complete records: own is the safer count.
    """
    n, columns = x.shape
    if n < k:
        raise ParameterError(f"suppress: {k} records that share their values (k) need {k} records, and there are {n}")
    if columns > MOST_COLUMNS:
        raise ParameterError(f"suppress takes at most {MOST_COLUMNS} columns, not {columns}; name fewer")
    codes = np.where(missing, -1.0, x).astype(np.int64)
    weights = np.broadcast_to(np.asarray(importance, dtype=np.float64), columns)
    made = fewest(codes, k=k, importance=weights, missing=missing_is)
    gone = missing | made.cells
    notes = []
    if not made.every_set:
        notes.append(f"of more than {EVERY_SET} columns not every set of cells to suppress was considered")
    whole = int(np.count_nonzero(gone.all(axis=1) & made.cells.any(axis=1)))
    if whole:
        notes.append(f"{whole} records have none of these values left")
    return Outcome(x.copy(), {"suppressed": made.cells.sum(axis=0)}, tuple(notes), missing=gone)


@suppress.guarantees
def _(
    parameters: Mapping[str, Mapping[str, Any]], counts: Mapping[str, Mapping[str, int]], names: Sequence[str]
) -> list[str]:
    """k-anonymity, by the count that was asked for; k = 1 promises nothing."""
    given = next(iter(parameters.values()))
    if given["k"] == 1:
        return []
    counted = ", where a missing cell agrees with any value" if given["missing_is"] == "any" else ""
    others = given["k"] - 1
    return [
        f"every record shares its values of {', '.join(names)} with at least {others} others (k-anonymity{counted})"
    ]


@suppress.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Recomputed:
    """He applies the step to the original himself."""
    return Recomputed()
