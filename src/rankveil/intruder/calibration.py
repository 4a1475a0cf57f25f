"""How often bets of some confidence are right: learned from releases whose truth the intruder knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BLOCK = 25
"""Bets that at least stand behind a calibrated probability."""
FDR = 0.05


@dataclass(frozen=True, eq=False)
class Calibration:
    """The share of right bets as an increasing function of the belief."""

    least: Array
    """The smallest belief of each block, rising."""
    share: Array
    """The share of right bets of each block, rising."""
    bets: int

    @classmethod
    def of(cls, beliefs: Sequence[Array], right: Sequence[Array]) -> Calibration | None:
        """Isotonic regression: equal beliefs pooled, blocks of at least 25 from the top. None without bets."""
        belief, hit = np.concatenate(list(beliefs)), np.concatenate(list(right))
        if not belief.size:
            return None
        order = np.argsort(-belief, kind="stable")
        belief, hit = belief[order], hit[order]
        ends = np.append(np.flatnonzero(np.diff(belief)) + 1, belief.size)  # where equal beliefs end
        cuts, begun = [], 0
        for end in ends.tolist():
            if end - begun >= BLOCK:
                cuts.append(end)
                begun = end
        if not cuts or cuts[-1] != belief.size:  # what is left at the bottom joins the last block
            cuts = [*cuts[:-1], belief.size] if cuts else [belief.size]
        starts = np.array([0, *cuts[:-1]])
        sizes = np.diff(np.append(starts, belief.size))
        means = np.add.reduceat(hit, starts) / sizes
        from sklearn.isotonic import isotonic_regression

        rising = isotonic_regression(means[::-1], sample_weight=sizes[::-1].astype(np.float64))
        return cls(belief[np.array(cuts) - 1][::-1], np.clip(rising, 0.0, 1.0), int(belief.size))

    def __call__(self, belief: Array) -> Array:
        """The calibrated probability."""
        place = np.maximum(np.searchsorted(self.least, belief, side="right") - 1, 0)
        made: Array = self.share[place]
        return np.where(belief > 0, made, 0.0)


def claims(probability: Array) -> NDArray[np.bool_]:
    """The links that he can claim: the mean of 1 - probability is at most 5 %; whole blocks of equal probability."""
    if not probability.size:
        return np.zeros(0, dtype=bool)
    order = np.argsort(-probability, kind="stable")
    ordered = probability[order]
    wrong = np.cumsum(1 - ordered) / np.arange(1, ordered.size + 1)
    ends = np.append(np.flatnonzero(np.diff(ordered)), ordered.size - 1)
    good = ends[wrong[ends] <= FDR + 1e-12]
    made = np.zeros(probability.size, dtype=bool)
    if good.size:
        made[order[: good[-1] + 1]] = True
    return made


def wilson(right: float, of: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's interval of a share, 95 %.

    >>> low, high = wilson(5, 10)
    >>> round(low, 4), round(high, 4)
    (0.2366, 0.7634)
    >>> wilson(0, 10)[0], wilson(10, 10)[1]
    (0.0, 1.0)
    """
    if of == 0:
        return 0.0, 1.0
    share = right / of
    centre = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * np.sqrt(share * (1 - share) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    # at the ends rounding would leave something of the order of 1e-17
    return (
        max(0.0, float(centre - half)) if right > 0 else 0.0,
        min(1.0, float(centre + half)) if right < of else 1.0,
    )
