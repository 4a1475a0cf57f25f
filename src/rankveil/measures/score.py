"""Scores: information loss and disclosure risk in one number, all in percent.

>>> score(20.0, 0.08, 0.04, 0.30).value
19.0
"""

from __future__ import annotations

from rankveil.catalogue import Value, measure

_SOURCE = "Domingo-Ferrer and Torra 2001"


@measure(title="Score of loss and risk", source=_SOURCE, family="risk", better="lower", weighted=True)
def score(il: float, distance_linkage: float, probabilistic_linkage: float, interval_disclosure: float) -> Value:
    """Loss and risk in one number, all parts in percent.

    score = 0.5 IL + 0.125 distance linkage + 0.125 probabilistic linkage + 0.25 interval disclosure
    """
    return _score(il, "il", distance_linkage, probabilistic_linkage, interval_disclosure)


@measure(
    title="Score of probabilistic loss and risk",
    source=f"{_SOURCE}; Mateo-Sanz, Domingo-Ferrer and Sebe 2005",
    family="risk",
    better="lower",
    bounds=(0.0, 100.0),
    weighted=True,
)
def score_pil(pil: float, distance_linkage: float, probabilistic_linkage: float, interval_disclosure: float) -> Value:
    """The score with the bounded probabilistic loss PIL in place of IL, so that it lies between 0 and 100.

    score = 0.5 PIL + 0.125 distance linkage + 0.125 probabilistic linkage + 0.25 interval disclosure
    """
    return _score(pil, "pil", distance_linkage, probabilistic_linkage, interval_disclosure)


def _score(loss: float, named: str, distance: float, probabilistic: float, interval: float) -> Value:
    """Half the loss, and half the risk: a quarter linkage by two ways, a quarter intervals; risks come as shares."""
    parts = {
        named: 0.5 * loss,
        "distance_linkage": 12.5 * distance,
        "probabilistic_linkage": 12.5 * probabilistic,
        "interval_disclosure": 25 * interval,
    }
    return Value(sum(parts.values()), details={"parts": parts})
