"""MDAV: multivariate microaggregation, every record replaced by the centre of a group of at least k.

>>> x = np.array([[1.0], [2.0], [3.0], [4.0], [100.0]])
>>> mdav(x, np.isnan(x), k=2).ravel()
array([ 2.,  2.,  2., 52., 52.])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil.blocks import blocks_of
from rankveil.catalogue import EVERY_KIND, Array, Outcome, Range, method
from rankveil.categories import Categories
from rankveil.errors import ParameterError, listing
from rankveil.likelihood import Recomputed
from rankveil.microaggregation import centroids, embedded, groups_in_order, groups_of_points
from rankveil.rows import HERE, Rows, Work


@method(
    title="Microaggregation (MDAV)",
    source="Domingo-Ferrer and Mateo-Sanz 2002; Domingo-Ferrer and Torra 2005",
    works_on="columns",
    kinds=EVERY_KIND,
    strength="k",
    survives="value-wise",
    by_parts=True,
    tells="means of numbers are exact; variances and covariances are those between groups, smaller than the "
    "original's; an ordinal value is the median of its group, a nominal one its most frequent or most central category",
)
def mdav(
    x: Array,
    missing: NDArray[np.bool_],
    *,
    k: Annotated[int, Range(1), "the least number of records in a group"] = 5,
    block: Annotated[int, Range(0), "how many columns are grouped together, in order; 0 for all, 1 for each alone"] = 0,
    kd_blocks: Annotated[
        int, Range(1), "how many blocks of similar records are grouped each by itself: for tables too large for one"
    ] = 1,
    by: Annotated[
        Literal["distance", "first_component", "z_sum"],
        "group by distance (MDAV), or in order of the first principal component or of the sum of z-scores",
    ] = "distance",
    nominal: Annotated[
        Literal["mode", "marginality"],
        "nominal values become the most frequent category of the group, or the one nearest to all by the hierarchy",
    ] = "mode",
    names: tuple[str, ...] = (),
    kinds: tuple[str, ...] = (),
    categories: tuple[Categories | None, ...] = (),
    rows: Rows = HERE,
) -> Array | Outcome:
    """Every value becomes its group's centre; groups have k to 2k - 1 records, near each other in all columns.

        while 3k or more records are left:
            c = mean of those left
            r = the record farthest from c;  group: r and the k - 1 nearest to it
            s = of those left, the record farthest from r;  group: s and the k - 1 nearest to it
        with 2k to 3k - 1 left: r and the k - 1 nearest to it, and a group of the rest
        with fewer than 2k left: one group of them

    Distances are Euclidean, and of records at equal distances the lower row is taken. k larger than n is refused.

    Columns count alike: numbers and levels are standardised, the distances of a nominal column (of its hierarchy, or 1
    between different categories) scaled to a variance of 1. The centre is the mean of numbers, the (lower) median of
    levels, and the mode of categories, or the category of the column with the least sum of distances to the group's.

    With `block`, columns are grouped a few at a time in their order; a remainder of one joins the last block. Only with
    all masked columns in one block are records k-anonymous on them: of several blocks the groups together are a key.

    MDAV takes time that grows with the square of the records. With `kd_blocks`, records are first cut into so many
    blocks of about the same size (k-d splits at medians of the widest coordinate, from at most 50,000 records at equal
    distances in the table), and each block is grouped exactly. Records are as k-anonymous as without; the groups are
    those of the blocks, a little wider, and which is the block of a record follows from the table alone.
    """
    m = x.shape[1]
    kinds, categories = kinds or ("numeric",) * m, categories or (None,) * m
    names = names or tuple(f"{j + 1} of {m}" for j in range(m))
    if by != "distance" and "nominal" in kinds:
        unordered = [name for name, kind in zip(names, kinds, strict=True) if kind == "nominal"]
        raise ParameterError(
            f"mdav: by={by} needs columns with an order, which nominal ones ({listing(unordered)}) do not have; "
            "group by distance, or leave them out"
        )
    masked = np.empty(x.shape, order="F")
    notes, left = [], []
    for columns in blocks(m, block):
        known: dict[str, Any] = {"kinds": kinds[columns], "categories": categories[columns]}
        work = partial(_grouped, k=k, by=by, nominal=nominal, names=names[columns], **known)
        carried = [*x[:, columns].T, *missing[:, columns].T.astype(np.float64)]
        if kd_blocks == 1:
            made, told = rows.whole(carried, work)
            alone = told
        else:
            points = embedded(x[:, columns], **known, names=names[columns], rows=rows)
            parts, count = blocks_of(points, blocks=kd_blocks, least=k, rows=rows)
            made, told = rows.in_blocks(parts, [*carried, *points.T], partial(_of_block, work), blocks=count)
            alone = np.sum(told, axis=0)
            notes.append(f"grouped in {count} blocks of similar records, each by itself")
        masked[:, columns] = np.column_stack(made)
        left += [f"{name} ({many})" for name, many in zip(names[columns], alone, strict=True) if many and k > 1]
    if left:
        notes.append(
            "warning: values that are the only ones of their group, whose other cells are missing, stay as they were "
            f"(column and how many): {listing(left, most=10)}; suppress them, or leave such columns out"
        )
    return Outcome(masked, notes=tuple(dict.fromkeys(notes))) if notes else masked


def _of_block(work: Work, _: int) -> Work:
    """What is done with a block, whichever it is."""
    return work


def _grouped(
    carried: Sequence[Array],
    *,
    k: int,
    by: str,
    nominal: str,
    names: tuple[str, ...],
    kinds: tuple[str, ...],
    categories: tuple[Categories | None, ...],
) -> tuple[list[Array], list[int]]:
    """The centres of the groups of some records, and how many values of each column are alone in their group.

    Given are their values, which are missing, and their points if known.
    """
    m = len(kinds)
    x, missing = np.asfortranarray(np.column_stack(carried[:m])), np.column_stack(carried[m : 2 * m]) > 0
    known: dict[str, Any] = {"kinds": kinds, "categories": categories}
    points = np.column_stack(carried[2 * m :]) if len(carried) > 2 * m else embedded(x, **known, names=names)
    groups = groups_of_points(points, k=k) if by == "distance" else groups_in_order(_score(points, by=by), k=k)
    made = centroids(x, groups, missing, **known, nominal=nominal)
    alone = [int(np.sum(np.bincount(groups[~missing[:, j]]) == 1)) for j in range(m)]
    return list(made.T), alone


def _score(z: Array, *, by: str) -> Array:
    """What records are sorted by: their first principal component, or the sum of their z-scores."""
    if by == "z_sum" or not z.shape[1]:
        total: Array = z.sum(axis=1)
        return total
    weights = np.linalg.eigh(np.einsum("ni,nj->ij", z, z))[1][:, -1]
    # the sign of an eigenvector is arbitrary: its largest weight counts as positive
    weights *= np.sign(weights[np.argmax(np.abs(weights))])
    score = np.zeros(len(z))
    for j, weight in enumerate(weights):  # column by column: a matrix product may depend on the number of threads
        score += weight * z[:, j]
    return score


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
def _(
    parameters: Mapping[str, Mapping[str, Any]], counts: Mapping[str, Mapping[str, int]], names: Sequence[str]
) -> list[str]:
    """k-anonymity when all columns that are released are of one block; k = 1 promises nothing."""
    columns, given = list(parameters), next(iter(parameters.values()))
    if given["k"] == 1 or not any(set(names) <= set(columns[b]) for b in blocks(len(columns), given["block"])):
        return []
    return [f"every record shares its values of {', '.join(names)} with at least {given['k'] - 1} others (k-anonymity)"]


@mdav.cautions
def _(parameters: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Groups of several blocks are together a key."""
    names, given = list(parameters), next(iter(parameters.values()))
    many = len(blocks(len(names), given["block"]))
    if many < 2:
        return []
    return [
        f"block = {given['block']} groups the columns in {many} blocks, and a record's groups in all of them together "
        "are a key that few or no others have: whoever knows the originals finds nearly everybody (1,080 of 1,080 "
        "people of the Census table with k = 3 and block = 2), and records are k-anonymous on each block alone"
    ]


@mdav.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Recomputed:
    """He applies the step to the original himself."""
    return Recomputed()
