"""k-anonymity: the fewest released records that agree in all quasi-identifiers.

>>> import numpy as np
>>> ages = {"AGE": np.array([30.0, 30.0, 30.0, 40.0, 40.0])}
>>> k_anonymity(ages).value
2.0
>>> k_anonymity(ages, limit=3).details["rows"]
[4, 5]
"""

from __future__ import annotations

from typing import Annotated, Literal

from rankveil.catalogue import EVERY_KIND, Range, Value, measure
from rankveil.measures._classes import Columns, classes_of, listed, quasi_notes, told


@measure(
    title="k-anonymity",
    source="Samarati and Sweeney 1998",
    family="risk",
    better="higher",
    bounds=(1.0, float("inf")),
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
)
def k_anonymity(
    quasi_y: Columns,
    *,
    limit: Annotated[int, Range(1), "the k asked for: records with fewer like them are counted"] = 5,
    missing: Annotated[
        Literal["own", "any"], "a missing cell is a value of its own, or agrees with any (as sdcMicro counts)"
    ] = "own",
) -> Value:
    """The number of released records in the smallest equivalence class: those that agree in all quasi-identifiers.

        k = min over the classes of their number of records

    A missing cell is a value of its own, and another for each missing code (empty, n/a, -9, .a); pycanon leaves records
    with missing quasi-identifiers out. With missing=any it agrees with every value, and k is the least number of
    records that agree with a record.
    """
    classes = classes_of(quasi_y, missing=missing)
    below = classes.below(limit)
    details = {
        **told(quasi_y, classes),
        "limit": limit,
        "records_below_limit": int(below.size),
        "rows": listed(below),
    }
    return Value(float(classes.agreeing.min()), details, quasi_notes(quasi_y, missing=missing))
