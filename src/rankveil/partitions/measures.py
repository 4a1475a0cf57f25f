"""Measures of tables larger than memory, from what the stages found: the same values as those of tables in memory.

A measure that needs means, covariances, sorted columns or other measures runs as it is. One that needs the records
themselves has its own short form here, from summaries of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankveil import catalogue
from rankveil.canonical import EXACT, largest_by_chance
from rankveil.catalogue import Measure, Value, get_measure
from rankveil.errors import NotApplicableError, ParameterError
from rankveil.measures.information_loss import Errors, Numbers
from rankveil.measures.probabilistic_loss import pil_quantile
from rankveil.measuring import checked
from rankveil.partitions.changes import Changes
from rankveil.partitions.correlations import RankBasis, RankProducts
from rankveil.partitions.movements import HIGHEST, Movements, is_whole, share_caught
from rankveil.partitions.quantiles import Sorted, SortedTable
from rankveil.partitions.stages import Measured, Ranked

Array = NDArray[np.float64]
Settings = Mapping[str, Mapping[str, Any]]

_BY_SIZE = ("pil", "pil_mean", "pil_variance", "pil_covariance", "pil_correlation", "um")
"""Measures that take the tables only to know how many records there are."""

_USUAL = (-1.0, 2.0)
"""Exponents of power means that every one of them shows."""


def alphas_of(settings: Settings) -> tuple[float, ...]:
    """The exponents of power means that have to be asked for before the records are gone."""
    given = [float(settings[name]["alpha"]) for name in _POWER_MEANS if "alpha" in settings.get(name, {})]
    return tuple(sorted({alpha for alpha in given if not is_whole(alpha)}))


def ask_order(settings: Settings, x: Sorted, y: Sorted) -> None:
    """Ask a pair of sorted columns what the measures will ask of all."""
    own = {"sorted_x": SortedTable([x]), "sorted_y": SortedTable([y])}
    for entry in (pil_quantile,):
        entry(*(own.get(need) for need in entry.needs), names=("",), **settings.get(entry.id, {}))


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


class Findings:
    """What was found of two tables, under the names by which measures ask for it, and the measures' values."""

    def __init__(
        self, names: Sequence[str], columns: Sequence[Ranked], measured: Measured, *, settings: Settings | None = None
    ) -> None:
        self.names = tuple(names)
        self.settings = settings or {}
        self.ranks: RankProducts = measured.ranks
        self.movements: tuple[Movements, ...] = measured.movements
        self.changes: tuple[Changes, ...] = measured.changes
        self._facts = self._named(columns, measured)
        self._done: dict[str, Value | str] = {}

    def _named(self, columns: Sequence[Ranked], measured: Measured) -> dict[str, Any]:
        records, m = self.ranks.records, len(self.names)
        facts: dict[str, Any] = {"weight_x": None, "weight_y": None, "sorted_weight_x": None, "sorted_weight_y": None}
        facts |= {name: Whole(records, m) for name in ("x", "y")}
        facts |= {"rank_basis_x": self.ranks.x, "rank_basis_y": self.ranks.y}
        facts["sorted_x"] = SortedTable([column.sorted_x for column in columns])
        facts["sorted_y"] = SortedTable([column.sorted_y for column in columns])
        for side, moments, products in (
            ("x", measured.moments_x, measured.products_x),
            ("y", measured.moments_y, measured.products_y),
        ):
            facts[f"mean_{side}"], facts[f"spread_{side}"] = moments.mean, moments.spread
            facts[f"correlation_{side}"] = products.correlation(moments)
        facts["squares_x"] = measured.products_x.squares / max(records, 1)
        facts["cubes_x"] = measured.products_x.cubes / max(records, 1)
        return facts

    def can(self, name: str) -> bool:
        """Whether a measure can be computed from what was found."""
        known = catalogue.measures()
        given = self._facts.keys() if name in _BY_SIZE else self._facts.keys() - {"x", "y"}
        return name in _OF_SUMMARIES or all(
            need in given or (need in known and self.can(need)) for need in get_measure(name).needs
        )

    def value(self, name: str) -> Value:
        """The value of a measure, or an error that says why it does not apply."""
        if name not in self._done:
            entry = get_measure(name)
            try:
                self._done[name] = checked(entry, self._with_notes(entry, self._compute(entry)))
            except NotApplicableError as why:
                self._done[name] = str(why)
            except (ArithmeticError, np.linalg.LinAlgError) as error:
                self._done[name] = f"it could not be computed for these values ({error})"
        found = self._done[name]
        if isinstance(found, str):
            raise NotApplicableError(found)
        return found

    def all(self, names: Sequence[str]) -> tuple[dict[str, Value], dict[str, str]]:
        """The values of some measures, and why others of them do not apply."""
        values, not_applicable = {}, {}
        for name in names:
            try:
                values[name] = self.value(name)
            except NotApplicableError as why:
                not_applicable[name] = str(why)
        return values, not_applicable

    def _compute(self, entry: Measure) -> Value:
        if self.ranks.records == 0:
            raise NotApplicableError("no record has the values that it needs")
        given = entry.bind(self.settings.get(entry.id, {}))
        if entry.id in _OF_SUMMARIES:
            make = _OF_SUMMARIES[entry.id]
            if entry.per == "table":
                return make(self, **given)
            return self._per_attribute(entry, lambda j: make(self, j, **given))
        if not self.can(entry.id):
            raise ParameterError(f"{entry.id} is not a measure of tables larger than memory")
        made = entry(*(self._need(need) for need in entry.needs), names=self.names, **self.settings.get(entry.id, {}))
        return made if isinstance(made, Value) else Value(float(made))

    def _need(self, need: str) -> Any:
        if need in self._facts:
            return self._facts[need]
        try:
            return self.value(need).value
        except NotApplicableError as why:
            raise NotApplicableError(f"{need} does not apply: {why}") from None

    def _with_notes(self, entry: Measure, made: Value) -> Value:
        """With what the measures that it is made of had to say."""
        parts = [need for need in entry.needs if need in catalogue.measures()]
        said = [f"{part}: {note}" for part in parts for note in self.value(part).notes]
        return Value(made.value, made.details, tuple(dict.fromkeys((*made.notes, *said))))

    def _per_attribute(self, entry: Measure, make: Callable[[int], Value]) -> Value:
        """Every attribute by itself; the headline is their mean, maximum or minimum."""
        done: dict[str, Value] = {}
        skipped: dict[str, str] = {}
        for j, name in enumerate(self.names):
            try:
                done[name] = make(j)
            except NotApplicableError as why:
                skipped[name] = str(why)
        if not done:
            raise NotApplicableError(f"in no column: {next(iter(skipped.values()))}")
        numbers = [value.value for value in done.values()]
        headline = {"mean": math.fsum(numbers) / len(numbers), "max": max(numbers), "min": min(numbers)}[entry.headline]
        details: dict[str, Any] = {"per_attribute": {name: value.value for name, value in done.items()}}
        for key in next(iter(done.values())).details:
            details[key] = {name: value.details[key] for name, value in done.items()}
        if skipped:
            details["not_applicable"] = skipped
        return Value(headline, details, tuple(f"column {name} left out: {why}" for name, why in skipped.items()))


# ---- from the products of ranks ----


def _cm1(found: Findings) -> Value:
    squared, (n, p, q) = _squared(found.ranks), _sizes(found.ranks)
    largest = largest_by_chance(n, p, q)
    chance = 1.0 if q == 0 else None if largest is None else 1 - largest
    return _canonical(1 - float(squared.max(initial=0.0)), squared, chance, found)


def _cm2(found: Findings) -> Value:
    squared, (n, p, q) = _squared(found.ranks), _sizes(found.ranks)
    return _canonical(float(np.prod(1 - squared)), squared, math.exp(-p * q / n), found)


def _mutual_information(found: Findings) -> Value:
    squared, (n, p, q) = _squared(found.ranks), _sizes(found.ranks)
    if squared.max(initial=0.0) >= 1 - EXACT:
        raise NotApplicableError("it is infinite: a combination of the original ranks is disclosed exactly (cm2 is 0)")
    return _canonical(-float(np.sum(np.log1p(-squared))), squared, p * q / n, found)


def _squared(ranks: RankProducts) -> Array:
    n, p, q = _sizes(ranks)
    if p == 0:
        raise NotApplicableError("every original column is constant: there is nothing to hide")
    if q > 0 and p + q > n - 1:
        raise NotApplicableError(
            f"{p} and {q} independent columns correlate perfectly in {n} records whatever they are: it needs more "
            f"than {p + q} records"
        )
    return ranks.squared


def _sizes(ranks: RankProducts) -> tuple[int, int, int]:
    """How many records, and how many independent columns on either side."""
    return ranks.records, len(ranks.x.kept), len(ranks.y.kept)


def _canonical(value: float, squared: Array, chance: float | None, found: Findings) -> Value:
    details: dict[str, Any] = {"canonical_correlations": np.sqrt(squared).tolist()}
    if chance is not None:
        details["chance"] = chance
    notes = _dropped(found, details)
    if not found.ranks.y.kept:
        notes = ("every masked column is constant: it tells nothing of the original",)
    return Value(value, details, notes)


def _dropped(found: Findings, details: dict[str, Any]) -> tuple[str, ...]:
    """Say which columns added nothing, in the details too."""
    sides: tuple[tuple[str, RankBasis], ...] = (("original", found.ranks.x), ("masked", found.ranks.y))
    dropped = {side: [found.names[j] for j in basis.dropped] for side, basis in sides}
    if any(dropped.values()):
        details["dropped"] = dropped
    return tuple(
        f"columns of the {side} table dropped because they are constant or depend on others: {', '.join(which)}"
        for side, which in dropped.items()
        if which
    )


def _spearman_risk(found: Findings, j: int) -> Value:
    correlation = found.ranks.spearman[j]
    if correlation is None:
        raise NotApplicableError("the column is constant, so ranks say nothing")
    return Value(min(max(correlation, -1.0), 1.0))


# ---- from the movements of records ----


def _permutation_level(found: Findings, j: int) -> Value:
    moved = found.movements[j]
    farthest = 2 * max(moved.count - 1, 1)
    mean = moved.total / moved.count / farthest
    return Value(mean, details={"mean": mean, "maximum": moved.largest / farthest})


def _power_mean(found: Findings, j: int, *, alpha: float) -> Value:
    moved = found.movements[j]
    curve = [{"alpha": float(k), "value": moved.power_mean(float(k))} for k in range(-HIGHEST, HIGHEST + 1)]
    details = {
        "alpha": alpha,
        "usual": [point for point in curve if point["alpha"] in _USUAL],
        "unmoved": moved.unmoved / moved.count,
        "smallest": moved.smallest / 2,
        "largest": moved.largest / 2,
        "curve": curve,
    }
    return Value(moved.power_mean(alpha), details)


def _interval_disclosure(found: Findings, j: int) -> Value:
    by_rank, by_deviation = share_caught(found.movements[j].within), share_caught(found.changes[j].within)
    return Value((by_rank + by_deviation) / 2, details={"by_rank": by_rank, "by_deviation": by_deviation})


# ---- from the changes of values ----


def _mean_variation(found: Findings) -> Value:
    there = np.array([each.there for each in found.changes], np.float64)
    mean = np.array([each.variation / max(each.there, 1) for each in found.changes])
    left_out = sum(each.count - each.there for each in found.changes)
    return Errors(Numbers.of(mean), there, left_out).value("values", names=found.names)


def _mean_absolute(found: Findings) -> Value:
    return _mean_change(found, [each.absolute for each in found.changes], power=1).value("values", names=found.names)


def _mean_square(found: Findings) -> Value:
    return _mean_change(found, [each.squared for each in found.changes], power=2).value("values", names=found.names)


def _mean_change(found: Findings, sums: Sequence[float], *, power: int) -> Errors:
    count = found.ranks.records
    exponent = np.array([power * (math.frexp(each.unit)[1] - 1) for each in found.changes])
    return Errors(Numbers.of(np.array(sums) / count, exponent), np.full(len(sums), float(count)))


def _il1s(found: Findings) -> Value:
    spread: Array = found._need("spread_x")
    varies = spread > 0
    if not varies.any():
        raise NotApplicableError("every original column is constant, so there is no spread to compare with")
    change = _mean_change(found, [each.absolute for each in found.changes], power=1)
    unit = Numbers.of(spread).times(Numbers.of(np.sqrt(np.full(spread.size, 2.0))))
    ratio = change.size.over(unit, where=varies)
    left_out = [name for name, kept in zip(found.names, varies, strict=True) if not kept]
    notes = (f"constant in the original and left out: {', '.join(left_out)}",) if left_out else ()
    return Errors(Numbers.of(ratio), change.counts * varies).value("values", names=found.names, notes=notes)


_POWER_MEANS = ("power_mean", "power_mean_loss")

_OF_SUMMARIES: dict[str, Callable[..., Value]] = {
    "cm1": _cm1,
    "cm2": _cm2,
    "mutual_information": _mutual_information,
    "spearman_risk": _spearman_risk,
    "permutation_level": _permutation_level,
    **dict.fromkeys(_POWER_MEANS, _power_mean),
    "interval_disclosure": _interval_disclosure,
    "il1": _mean_variation,
    "loss_values_mv": _mean_variation,
    "loss_values_mae": _mean_absolute,
    "loss_values_mse": _mean_square,
    "il1s": _il1s,
}
"""Measures that need the records themselves, from summaries of them."""
