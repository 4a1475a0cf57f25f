"""Spearman risk: how far the released ranks still follow the original ones."""

from __future__ import annotations

from rankveil.catalogue import EVERY_KIND, measure
from rankveil.errors import NotApplicableError


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
def spearman_risk(rank_spearman_z: float | None) -> float:
    """Spearman's correlation of X_j and Z_j for every attribute, the largest on top: the higher, the more risk.

    rho_j = Cov(rank X_j, rank Z_j) / (sd(rank X_j) sd(rank Z_j)),  Z the reverse-mapped table
    """
    if rank_spearman_z is None:
        raise NotApplicableError("the column is constant, so ranks say nothing")
    return rank_spearman_z
