"""Population risk: how likely it is that a released record is found again in the population it was drawn from.

A class with f records in the sample stands for an estimated F records of the population, the sum of their weights.
How many there truly are is not known; with p = f / F it follows a negative binomial distribution, and the risk of a
record is the mean of 1 / F under it (Benedetti and Franconi 1998, the individual risk of mu-Argus).

>>> import numpy as np
>>> quasi = {"AGE": np.array([30.0, 30.0, 40.0])}
>>> population_risk(quasi, np.array([1.0, 1.0, 1.0])).value
0.6666666666666666
>>> round(population_risk(quasi, np.array([10.0, 10.0, 10.0])).value, 4)
0.1404
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import EVERY_KIND, Array, Range, Value, measure
from rankveil.errors import NotApplicableError, row_listing
from rankveil.measures._classes import Columns, classes_of, listed, quasi_notes, told

_FEW = 32
"""From so many records of a class on the series needs no more terms than this, whatever the weights."""

_MOST_TERMS = 64
"""Of the series, where F is less than twice f: its terms fall at least by half."""


@measure(
    title="Population risk",
    source="Benedetti and Franconi 1998; Polettini 2003",
    family="risk",
    better="lower",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    kinds=EVERY_KIND,
    weighted=True,
)
def population_risk(
    quasi_y: Columns,
    survey_y: Array | None,
    *,
    threshold: Annotated[float, Range(0, 1), "records with a greater risk are counted"] = 0.1,
    missing: Annotated[
        Literal["own", "any"], "a missing cell is a value of its own, or agrees with any (as sdcMicro counts)"
    ] = "own",
) -> Value:
    """The mean over released records of E(1 / F | f): expected re-identifications in the population, per record.

    E(1 / F | f) = (p^f / f) 2F1(f, f; f + 1; 1 - p), with p = f / (sum of weights of the class). Weights that sum to
    less than f count as f: such a class is the whole population of its kind, and its risk is 1 / f.
    """
    classes = classes_of(quasi_y, missing=missing)
    weights = _checked(survey_y)
    population = classes.totals(weights)
    risk = individual_risk(classes.agreeing, population)
    expected = float(risk @ classes.sizes)
    per_record = risk[classes.number]
    above = np.flatnonzero(per_record > threshold)
    worst = above[np.argsort(-per_record[above], kind="stable")]
    details = {
        **told(quasi_y, classes),
        "expected_reidentifications": expected,
        "largest": float(risk.max()),
        "threshold": threshold,
        "records_above_threshold": int(above.size),
        "population": float(weights.sum()),
        "rows": listed(worst),
    }
    few = int(np.count_nonzero(population < classes.agreeing))
    notes = [*quasi_notes(quasi_y, missing=missing)]
    if few:
        notes.append(f"the weights of {few} of {len(classes)} classes sum to less than their records: counted as them")
    return Value(expected / classes.number.size, details, tuple(notes))


def _checked(weights: Array | None) -> Array:
    if weights is None:
        raise NotApplicableError("there are no weights; name the column of weights with --role COLUMN=weight")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if wrong.size:
        were = "1 weight is" if wrong.size == 1 else f"{wrong.size} weights are"
        raise NotApplicableError(
            f"{were} missing, zero or negative ({row_listing(wrong + 1)}); every record needs a weight above 0"
        )
    return weights


def individual_risk(sample: NDArray[np.int64], population: Array) -> Array:
    """E(1 / F | f) for each class of f records in the sample and an estimated F in the population.

    It is the integral of u^(f-1) / (1 + a u) over u from 0 to 1, with a = (1 - p) / p. So f = 1 gives log(1 + a) / a,
    and risk(f + 1) = (1 / f - risk(f)) / a, the closed forms for f = 2, 3 among them. That is stable for a >= 1. For
    a < 1, and for many records, the same function is (p / f) sum over k of q^k k! / ((f + 1) ... (f + k)), q = 1 - p:
    all terms are positive and fall fast.

    >>> individual_risk(np.array([1, 2, 3]), np.array([2.0, 4.0, 6.0]))
    array([0.69314718, 0.30685282, 0.19314718])
    """
    f = np.asarray(sample, dtype=np.float64)
    p = f / np.maximum(f, population)
    risk = np.empty(f.size)
    steps = (p <= 0.5) & (f < _FEW)
    risk[steps] = _by_steps(f[steps], p[steps])
    risk[~steps] = _by_series(f[~steps], p[~steps])
    return risk


def _by_steps(f: Array, p: Array) -> Array:
    odds = p / (1 - p)
    risk = -np.log(p) * odds
    for step in range(1, _FEW - 1):
        further = f > step
        risk[further] = (1 / step - risk[further]) * odds[further]
    return risk


def _by_series(f: Array, p: Array) -> Array:
    q = 1 - p
    term = np.ones(f.size)
    total = np.ones(f.size)
    for k in range(1, _MOST_TERMS):
        term *= q * (k / (f + k))
        total += term
    return p / f * total
