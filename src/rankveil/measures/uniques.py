"""Sample uniques: released records that no other agrees with in all quasi-identifiers.

>>> import numpy as np
>>> sample_uniques({"AGE": np.array([30.0, 30.0, 40.0, 50.0])}).value
0.5
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from rankveil.catalogue import EVERY_KIND, Value, measure
from rankveil.measures._classes import Columns, classes_of, listed, quasi_notes, told


@measure(
    title="Sample uniques",
    source="Skinner and Elliot 2002",
    family="risk",
    better="lower",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
)
def sample_uniques(
    quasi_y: Columns,
    *,
    missing: Annotated[
        Literal["own", "any"], "a missing cell is a value of its own, or agrees with any (as sdcMicro counts)"
    ] = "own",
) -> Value:
    """The share of released records that are alone in their equivalence class.

        share = (number of classes of one record) / n

    Alone in the sample is not yet alone in the population: `population_risk` estimates that from weights.
    """
    classes = classes_of(quasi_y, missing=missing)
    alone = np.flatnonzero(classes.frequency == 1)
    details = {**told(quasi_y, classes), "uniques": int(alone.size), "rows": listed(alone)}
    return Value(alone.size / classes.number.size, details, quasi_notes(quasi_y, missing=missing))
