"""Sampling: a random part of the records, or of the groups, is released.

>>> from rankveil.seeds import Seed
>>> sample(8, share=0.5, rng=Seed.of(1).stream("example")).size
4
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import EVERY_KIND, Range, method
from rankveil.errors import ParameterError
from rankveil.likelihood import Records
from rankveil.ranks import Order
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream


@method(
    title="Sampling",
    source="Skinner, Marsh, Openshaw and Wymer 1994",
    works_on="records",
    kinds=EVERY_KIND,
    strength="share",
    stronger="lower",
    instead=("size",),
    mapping="reordered",
    leaves_out=True,
    by_parts=True,
    tells="every record (every group, where there are groups) was as likely as any other to be released: totals are "
    "those of the release divided by the share; a column of weights was divided by it already",
)
def sample(
    records: int,
    *,
    share: Annotated[float | None, Range(0, 1, above=True), "which part of the records is released"] = None,
    size: Annotated[int | None, Range(1), "how many (groups, where there are groups) instead of a share"] = None,
    groups: NDArray[np.int64] | None = None,
    rows: Rows = HERE,
    rng: Stream,
) -> Order:
    """A simple random sample without replacement; records keep their order, and groups stay whole.

        m = max(1, round(share n)) of n records, every m of them as likely;  w' = w n / m

    A share of n records is the nearest whole number of them, and one at least. Where a column has the role weight, the
    released weights are multiplied by n / m when m of n records (of n groups, where there are groups) are released, so
    that they stand for the same population; whole weights become decimals only where that makes some.
    """
    if (share is None) == (size is None):
        raise ParameterError("sample needs the share of the records or their number, one of the two: --set share=0.1")
    if groups is None:
        wanted = _wanted(rows.count(records), share, size, "records")
        return np.flatnonzero(rows.places(rng.bits(records)) < wanted)
    different, number = np.unique(groups, return_inverse=True)
    wanted = _wanted(different.size, share, size, "groups")
    taken = np.zeros(different.size, dtype=bool)
    taken[rng.order(different.size)[:wanted]] = True
    return np.flatnonzero(taken[number])


def _wanted(there: int, share: float | None, size: int | None, what: str) -> int:
    """How many are to be drawn."""
    if size is not None:
        if size > there:
            raise ParameterError(f"sample: size is {size}, and there are {there} {what}")
        return size
    assert share is not None
    return max(1, int(np.floor(share * there + 0.5)))


@sample.tells_intruder
def _(x: Any, parameters: Any, **known: Any) -> Records:
    """Who is in the release is not told; those who are have their values."""
    return Records()
