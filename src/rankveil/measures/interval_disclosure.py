"""Interval disclosure: how many original values lie close to the masked ones, by ranks and by standard deviations.

>>> import numpy as np
>>> all_within_one_percent = np.array([4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
>>> interval_disclosure(all_within_one_percent, all_within_one_percent).value
1.0
"""

from __future__ import annotations

from rankveil.catalogue import Value, measure
from rankveil.summaries.movements import Counts, share_caught


@measure(
    title="Interval disclosure",
    source="Domingo-Ferrer and Torra 2001; Mateo-Sanz, Sebe and Domingo-Ferrer 2004",
    family="risk",
    better="lower",
    bounds=(0.0, 1.0),
    per="column",
    weighted=True,
)
def interval_disclosure(rank_within: Counts, value_within: Counts) -> Value:
    """Share of original values inside an interval around their masked value, for half-widths of p = 1, ..., 10 percent.

    By rank: |rank(x_i) - rank(y_i)| <= p n / 100. By deviation: |x_i - y_i| <= p sd(x) / 100. Each is the mean over
    p, the value is the mean of the two. Where the original is constant, only an unchanged value is inside. With weights
    it is the share of the subjects that the records stand for; ranks are those of the records.
    """
    by_rank, by_deviation = share_caught(rank_within), share_caught(value_within)
    return Value((by_rank + by_deviation) / 2, details={"by_rank": by_rank, "by_deviation": by_deviation})
