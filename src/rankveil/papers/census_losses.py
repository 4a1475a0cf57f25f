"""What maskings of the Census data lose, by the probabilistic measures and by the classical ones beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankveil.comparison.study import Study, Task
from rankveil.measuring import Measuring
from rankveil.papers.census_maskings import Masking
from rankveil.ranks import average_ranks

Array = NDArray[np.float64]
Values = Mapping[str, float]

IDS = {
    **{"PIL(Q)": "pil_quantile", "PIL(m1)": "pil_mean", "PIL(m2)": "pil_variance", "PIL(m11)": "pil_covariance"},
    **{"PIL(r)": "pil_correlation", "PIL": "pil", "IL1": "il1", "IL2": "il2", "IL3": "il3", "IL4": "il4", "IL5": "il5"},
    "IL": "il",
}
"""The paper's names of the measures, and ours."""
KERNEL = "PIL(Q), kernel density"
EXPRESSION_6 = "correlation_half_mae"
ASKED = (*IDS.values(), EXPRESSION_6)
NOTHING = 1e-9
"""A loss below this is rounding and counts as 0 before ranking."""


def tasks_of(grid: Sequence[Masking], replicates: int) -> list[Task]:
    """Each masking once, the random ones as often as asked for."""
    return [Task(each.plan, k, ASKED) for each in grid for k in range(replicates if each.random else 1)]


def measured(study: Study, task: Task) -> dict[str, float]:
    """What is asked of a masking, and its loss of quantiles by the kernel density beside that by the simple one."""
    pair = study.pair(task.plan, task.replicate)
    simple = Measuring(pair)
    kernel = Measuring(pair, settings={"pil_quantile": {"density": "kernel"}})
    values = {name: simple.value(name).value for name in task.asked}
    return {**values, KERNEL: kernel.value("pil_quantile").value}


@dataclass(frozen=True, eq=False)
class Losses:
    """What every replicate of every masking lost."""

    grid: tuple[Masking, ...]
    values: Mapping[str, Array]
    """By measure: a row for each replicate, a column for each masking; one that draws nothing is the same in all."""

    @classmethod
    def of(cls, grid: Sequence[Masking], made: Sequence[Values], *, replicates: int) -> Losses:
        """From the results of `tasks_of`."""
        results = iter(made)
        found = []
        for each in grid:
            some = [next(results) for _ in range(replicates if each.random else 1)]
            found.append(some if each.random else some * replicates)
        values = {}
        for name in (*ASKED, KERNEL):
            raw = np.array([[one[name] for one in some] for some in found], dtype=np.float64).T
            values[name] = np.where(np.abs(raw) < NOTHING, 0.0, raw)
        return cls(tuple(grid), values)

    @property
    def replicates(self) -> int:
        """How many there are."""
        return len(self.values[KERNEL])

    def of_measure(self, name: str) -> Array:
        """The losses by the paper's name of a measure."""
        return self.values[IDS.get(name, name)]

    def of_masking(self, masking: str, name: str) -> Array:
        """One masking's losses, one for each replicate."""
        place = [each.name for each in self.grid].index(masking)
        found: Array = self.of_measure(name)[:, place]
        return found

    def without(self, family: str) -> Losses:
        """The others."""
        kept = [place for place, each in enumerate(self.grid) if each.family != family]
        values = {name: values[:, kept] for name, values in self.values.items()}
        return Losses(tuple(self.grid[place] for place in kept), values)

    def correlations(self, one: str, other: str, *, ranks: bool) -> Array:
        """Pearson's correlation of two measures over the maskings, or Spearman's, for each replicate."""
        both = zip(self.of_measure(one), self.of_measure(other), strict=True)
        return np.array([correlation(a, b, ranks=ranks) for a, b in both])


def correlation(a: Array, b: Array, *, ranks: bool) -> float:
    """Pearson's correlation, or Spearman's.

    >>> correlation(np.array([1.0, 2.0, 9.0]), np.array([1.0, 8.0, 9.0]), ranks=True)
    1.0
    """
    both = np.column_stack([a, b])
    found = np.asarray(np.corrcoef((average_ranks(both) if ranks else both).T))
    return round(float(found[0, 1]), 12)  # 1 rather than 0.9999999999999998
