"""MDAV: multivariate microaggregation, every record replaced by the mean of a group of at least k."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Range, method
from rankveil.microaggregation import Groups, group_means, groups_in_order, mdav_groups, standardised


@method(
    title="Microaggregation (MDAV)",
    source="Domingo-Ferrer and Mateo-Sanz 2002; Domingo-Ferrer and Torra 2005",
    works_on="columns",
    kinds=("numeric",),
    strength="k",
    survives="value-wise",
    tells="means are exact; variances and covariances are those between groups, smaller than the original's",
)
def mdav(
    x: Array,
    missing: NDArray[np.bool_],
    *,
    k: Annotated[int, Range(1), "the least number of records in a group"] = 5,
    block: Annotated[int, Range(0), "how many columns are grouped together, in order; 0 for all, 1 for each alone"] = 0,
    by: Annotated[
        Literal["distance", "first_component", "z_sum"],
        "group by distance (MDAV), or in order of the first principal component or of the sum of z-scores",
    ] = "distance",
) -> Array:
    """Every value becomes its group's mean; groups have k to 2k - 1 records, on standardised columns.

    With `block`, columns are grouped a few at a time in their order; a remainder of one joins the last block. Only with
    all masked columns in one block are records k-anonymous on them.
    """
    masked = np.empty(x.shape, order="F")
    for columns in blocks(x.shape[1], block):
        part = x[:, columns]
        masked[:, columns] = group_means(part, _groups(part, k=k, by=by), missing[:, columns])
    return masked


def _groups(x: Array, *, k: int, by: str) -> Groups:
    if by == "distance":
        return mdav_groups(x, k=k)
    z = standardised(x)
    if by == "first_component" and z.shape[1]:
        weights = np.linalg.eigh(np.einsum("ni,nj->ij", z, z))[1][:, -1]
        # the sign of an eigenvector is arbitrary: its largest weight counts as positive
        weights *= np.sign(weights[np.argmax(np.abs(weights))])
        score = np.zeros(len(z))
        for j, weight in enumerate(weights):  # column by column: a matrix product may depend on the number of threads
            score += weight * z[:, j]
    else:
        score = z.sum(axis=1)
    return groups_in_order(score, k=k)


def blocks(columns: int, size: int) -> list[slice]:
    """The columns in blocks of `size`, a remainder of one in the last block; 0 is one block of all.

    >>> blocks(13, 3)
    [slice(0, 3, None), slice(3, 6, None), slice(6, 9, None), slice(9, 13, None)]
    >>> blocks(2, 5), blocks(3, 1)
    ([slice(0, 2, None)], [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None)])
    """
    if size == 0 or size >= columns:
        return [slice(0, columns)]
    starts = list(range(0, columns, size))
    if size > 1 and columns - starts[-1] == 1:
        starts.pop()
    return [slice(start, end) for start, end in zip(starts, [*starts[1:], columns], strict=True)]


@mdav.guarantees
def _(parameters: Mapping[str, Mapping[str, Any]], counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """k-anonymity when all masked columns are in one block; k = 1 promises nothing."""
    names, given = list(parameters), next(iter(parameters.values()))
    if given["k"] == 1 or len(blocks(len(names), given["block"])) > 1:
        return []
    return [f"every record shares its values of {', '.join(names)} with at least {given['k'] - 1} others (k-anonymity)"]
