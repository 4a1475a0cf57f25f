"""Estimates of a stated use that are kept: would an analyst of the release come to the same conclusions?

>>> from types import SimpleNamespace
>>> import numpy as np
>>> from rankveil.measures._estimates import Stated
>>> from rankveil.uses import Means
>>> x = np.array([[1.0], [2.0], [3.0], [4.0]])
>>> weights = (SimpleNamespace(survey=None), SimpleNamespace(survey=None))
>>> tables = SimpleNamespace(names=("A",), kinds=("numeric",), categories=(None,), everything=(x, x + 9), known=weights)
>>> use_kept([Stated(Means(("A",)), tables)]).value  # from a mean of 2.5 to one of 11.5
0.0
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from rankveil.catalogue import EVERY_KIND, Range, Value, measure
from rankveil.errors import NotApplicableError, listing
from rankveil.measures._estimates import Estimate, Stated, estimates


@measure(
    title="Estimates of the stated use that are kept",
    source="overlap of intervals: Karr, Kohnen, Oganian, Reiter and Sanil 2006",
    family="utility",
    better="higher",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
    weighted=True,
)
def use_kept(
    use: Sequence[Stated],
    *,
    level: Annotated[float, Range(50, 99.99), "confidence level of intervals and tests, in percent"] = 95.0,
    overlap: Annotated[float, Range(0, 1), "an interval is kept if its overlap is at least this"] = 0.5,
) -> Value:
    """The share of the estimates of the stated use that keep sign, significance and interval.

        kept = estimates whose sign and significance are those of the original and whose
               intervals overlap by at least a half / all estimates of all uses
        overlap of two intervals = (o / l + o / l') / 2

    l and l' are the lengths of the confidence intervals from the original and from the release, o the length that they
    share. Estimates are the slopes of a regression (no intercept), the means of groups and the shares of the cells of a
    table. Sign and significance are those of a slope, of a group's difference from all other records, and of a cell's
    departure from independence in a table of two columns; other means and shares have an interval alone. An estimate
    that is significant in neither table has no sign to keep. What the release cannot give is not kept.
    """
    made, shown, notes = list[Estimate](), list[dict[str, Any]](), list[str]()
    for stated in use:
        try:
            found = estimates(stated, level=level)
        except NotApplicableError as why:
            shown.append({"use": str(stated.use), "estimates": [], "kept": None, "not_applicable": str(why)})
            notes.append(f"{stated.use} left out: {why}")
            continue
        made += found
        if stated.lost:
            notes.append(f"{stated.use}: the release has no {listing(stated.lost)}, so nothing of it is kept")
        share = sum(each.kept(overlap) for each in found) / len(found)
        described = [_described(each, overlap) for each in found]
        shown.append({"use": str(stated.use), "kept": share, "estimates": described})
    if not made:
        raise NotApplicableError(notes[0] if notes else "no use is stated; state some with --use uses.toml")
    kept = [each.kept(overlap) for each in made]
    details = {
        "estimates": len(made),
        "kept": sum(kept),
        "sign_changed": sum(each.sign is False for each in made),
        "significance_changed": sum(each.significance is False for each in made),
        "interval_moved": sum(not each.interval(overlap) for each in made),
        "uses": shown,
    }
    return Value(sum(kept) / len(made), details, tuple(notes))


def _described(each: Estimate, least: float) -> dict[str, Any]:
    return {
        "name": each.name,
        "original": each.original.described(),
        "masked": None if each.masked is None else each.masked.described(),
        "overlap": each.overlap,
        "sign_kept": each.sign,
        "significance_kept": each.significance,
        "interval_kept": each.interval(least),
        "kept": each.kept(least),
    }
