"""Measures of tables larger than memory, from what the stages found: the same functions as for tables in memory.

A measure names what it works on. What is known of tables in parts is named here, as `rankveil.views` names it for
tables in memory: means, covariances, sorted columns, and the summaries of ranks and values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from rankveil import catalogue
from rankveil.catalogue import Measure, Value, get_measure
from rankveil.errors import NotApplicableError, ParameterError
from rankveil.measures.probabilistic_loss import pil_quantile
from rankveil.measuring import Computed, over_attributes
from rankveil.partitions.measured import Measured
from rankveil.partitions.quantiles import Sorted, SortedTable
from rankveil.partitions.stages import Ranked
from rankveil.summaries.correlations import RankProducts
from rankveil.summaries.movements import is_whole
from rankveil.summaries.pairwise import Array, Sample, Together
from rankveil.views import Column

Settings = Mapping[str, Mapping[str, Any]]

_BY_SIZE = ("um",)
"""Measures that take the tables only to know how many records there are."""

_POWER_MEANS = ("power_mean", "power_mean_loss")


def alphas_of(settings: Settings) -> tuple[float, ...]:
    """The exponents of power means that have to be asked for before the records are gone."""
    given = [float(settings[name]["alpha"]) for name in _POWER_MEANS if "alpha" in settings.get(name, {})]
    return tuple(sorted({alpha for alpha in given if not is_whole(alpha)}))


def ask_order(settings: Settings, x: Sorted, y: Sorted) -> None:
    """Ask a pair of sorted columns what the measures will ask of all."""
    sample = (Sample(len(y), float(len(y)), False),)
    own = {"sorted_x": SortedTable([x]), "sorted_y": SortedTable([y]), "sample_y": sample}
    for entry in (pil_quantile,):
        entry(*(own.get(need) for need in entry.needs), names=("",), **settings.get(entry.id, {}))


class Known(NamedTuple):
    """Moments of a table."""

    mean: Array
    spread: Array
    correlation: Array
    squares: Array
    cubes: Array


class Whole:
    """A table of which nothing is in memory but its size."""

    def __init__(self, records: int, columns: int) -> None:
        self.shape = (records, columns)
        self.size = records * columns

    def __len__(self) -> int:
        return self.shape[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__array__":
            raise AttributeError(name)
        raise NotApplicableError("it needs all records at once, and the table is larger than memory")

    def __getitem__(self, _: object) -> Any:
        raise NotApplicableError("it needs all records at once, and the table is larger than memory")


class Findings(Computed):
    """What was found of two tables, under the names by which measures ask for it, and the measures' values."""

    def __init__(
        self, names: Sequence[str], columns: Sequence[Ranked], measured: Measured, *, settings: Settings | None = None
    ) -> None:
        super().__init__()
        self.names = tuple(names)
        self.settings = settings or {}
        self._sizes = measured.sizes
        self._facts = {**_of_values(columns, measured), **_of_ranks(measured), **_of_pairs(measured)}

    def can(self, name: str) -> bool:
        """Whether a measure can be computed from what was found."""
        known = catalogue.measures()
        given = self._facts.keys() if name in _BY_SIZE else self._facts.keys() - {"x", "y"}
        return all(need in given or (need in known and self.can(need)) for need in get_measure(name).needs)

    def fact(self, need: str) -> Any:
        """What was found, by its name."""
        return self._facts[need]

    def _compute(self, entry: Measure) -> Value:
        if 0 in self._sizes:
            raise NotApplicableError("no record has the values that it needs")
        if not self.can(entry.id):
            raise ParameterError(f"{entry.id} is not a measure of tables larger than memory")
        view = SimpleNamespace(**{need: self._need(need) for need in entry.needs})
        if entry.per == "table":
            return self._run(entry, view)
        return over_attributes(entry, {name: self._attempt(entry, view, j) for j, name in enumerate(self.names)})

    def _need(self, need: str) -> Any:
        return self._facts[need] if need in self._facts else self._part(need)

    def _run(self, entry: Measure, view: Any) -> Value:
        data = (getattr(view, need) for need in entry.needs)
        made = entry(*data, names=self.names, **self.settings.get(entry.id, {}))
        return made if isinstance(made, Value) else Value(float(made))

    def _attempt(self, entry: Measure, view: Any, j: int) -> Value | str:
        """A measure of one attribute, or why it does not apply to it."""
        try:
            return self._run(entry, Column(view, j))
        except NotApplicableError as why:
            return str(why)


def _of_values(columns: Sequence[Ranked], measured: Measured) -> dict[str, Any]:
    """What is known of the values of each table."""
    facts: dict[str, Any] = {f"{fact}_{side}": None for fact in ("weight", "sorted_weight") for side in "xy"}
    facts["sorted_x"] = SortedTable([column.sorted_x for column in columns])
    facts["sorted_y"] = SortedTable([column.sorted_y for column in columns])
    for side, moments, products, records in zip(
        "xy",
        (measured.moments_x, measured.moments_y),
        (measured.products_x, measured.products_y),
        measured.sizes,
        strict=True,
    ):
        facts[side] = Whole(records, len(columns))
        facts[f"mean_{side}"], facts[f"spread_{side}"] = moments.mean, moments.spread
        facts[f"correlation_{side}"] = products.correlation(moments)
        sample = Sample(records, float(records), False)
        facts[f"sample_{side}"] = tuple(sample for _ in columns)
        squares, cubes = products.squares / max(records, 1), products.cubes / max(records, 1)
        known = (moments.mean, moments.spread, facts[f"correlation_{side}"], squares, cubes)
        facts[f"pairs_{side}"] = Together(Known(*known), sample)
    facts["fourth_x"] = np.diag(measured.products_x.squares) / max(measured.sizes[0], 1)
    return facts


def _of_ranks(measured: Measured) -> dict[str, Any]:
    """What is known of the ranks of each table."""
    return {"rank_basis_x": measured.ranks.x, "rank_basis_y": measured.ranks.y}


def _of_pairs(measured: Measured) -> dict[str, Any]:
    """What is known of the records of both tables that belong together, if they do."""
    if not isinstance(measured.ranks, RankProducts):
        return {}
    return {
        "rank_canonical": measured.ranks.canonical,
        "rank_spearman_z": measured.ranks.spearman,
        "rank_movements": measured.movements,
        "rank_powers": measured.powers,
        "rank_within": np.stack([each.within for each in measured.movements], axis=1),
        "value_changes": measured.changes,
        "value_within": np.stack([each.within for each in measured.changes], axis=1),
    }
