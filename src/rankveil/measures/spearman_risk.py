"""Spearman risk: how far the released ranks still follow the original ones."""

from __future__ import annotations

from rankveil.catalogue import EVERY_KIND, Array, measure
from rankveil.errors import NotApplicableError
from rankveil.ranks import rank_correlation


@measure(
    title="Rank correlation of original and reverse-mapped values",
    source="Domingo-Ferrer and Muralidhar 2016",
    family="risk",
    better="lower",
    bounds=(-1.0, 1.0),
    per="column",
    headline="max",
    kinds=EVERY_KIND,
)
def spearman_risk(rank_x: Array, rank_z: Array) -> float:
    """Spearman's correlation of X_j and Z_j for every attribute, the largest on top: the higher, the more risk."""
    correlation = rank_correlation(rank_x, rank_z)
    if correlation is None:
        raise NotApplicableError("the column is constant, so ranks say nothing")
    return correlation
