"""Total variation: the share of the records that would have to change category to turn one column into the other.

>>> import numpy as np
>>> total_variation(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 0.0, 0.0, 1.0])).value
0.25
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankveil.catalogue import Array, Value, measure
from rankveil.categories import Categories
from rankveil.measures._codes import apart, coded, positive, shares

_LISTED = 5
"""Categories whose shares are told, the largest changes first."""


@measure(
    title="Total variation distance of categories",
    source="Gibbs and Su 2002",
    family="utility",
    better="lower",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    kinds=("ordinal", "nominal"),
    weighted=True,
    per="column",
)
def total_variation(
    x: Array,
    y: Array,
    weight_x: Array | None = None,
    weight_y: Array | None = None,
    *,
    categories: tuple[Categories | None, ...] = (),
) -> Value:
    """Half the sum of the changes of the shares of the categories.

        distance = 1/2 sum over the categories c of |p_c - p'_c|

    p_c is the share of c in the original, p'_c in the masked table.

    0: every category is as frequent as before; 1: no category of the one table is in the other. `expected` is about
    the value that two columns of independent records from one distribution would have. A column that is empty in the
    release is lost: 1.
    """
    first, second = positive(weight_x), positive(weight_y)
    codes = coded(x, y)
    found = apart(codes, first, second)
    before, after = shares(codes.x, codes.size, first), shares(codes.y, codes.size, second)
    labels = {} if not categories or categories[0] is None else _labels(categories[0])

    def described(code: int) -> dict[str, Any]:
        there = x[codes.x == code] if before[code] > 0 else y[codes.y == code]
        label = labels.get(float(there[0]), f"{there[0]:g}")
        return {"category": label, "original": float(before[code]), "masked": float(after[code])}

    changes = np.abs(before - after)
    most = np.argsort(-changes, kind="stable")[:_LISTED]
    details = {
        "expected": found.expected,
        "categories": int(np.count_nonzero(before)),
        "lost": int(np.count_nonzero((before > 0) & (after == 0))),
        "new": int(np.count_nonzero((after > 0) & (before == 0))),
        "largest_changes": [described(int(code)) for code in most if changes[code] > 0],
    }
    return Value(found.distance, details)


def _labels(categories: Categories) -> dict[float, str]:
    return dict(zip(categories.values.tolist(), categories.labels, strict=True))
