"""Information loss: what changed between the original table X and the masked one X', and statistics of both.

Table 1 of Mateo-Sanz, Domingo-Ferrer and Sebé (2005) compares eight quantities in three ways. Five of them are here,
`loss_values_mse` to `loss_correlations_mv`; those of principal components are in `factor_loss`. `il1` to `il5` are five
cells of the table, and `il` is 100 times their mean. What the table leaves open:

- Mean variation divides by the original entry. Entries whose original is 0 are left out of the mean and counted. A mean
  below 1e-12 standard deviations of its column is 0, and so is a correlation (and its covariance) below 1e-12: what is
  left of it is rounding.
- A constant column has no correlations, so they count as 0.
- Dates and times of day have no 0 that means nothing, so there is no relative change of them or of their means: where
  mean variation divides by those they are left out. Differences of dates and times are in days, whatever their unit.
- Weights, where records have some, weigh the means over the records and the statistics: a record of weight w counts
  as w equal ones. Of two values side by side the weight is that of the original record.

>>> import numpy as np
>>> from rankveil.summaries.changes import Changes
>>> x, y = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0])
>>> il1((Changes.of(x, y, spread=x.std()),)).value  # 0, 1/2 and 1/2
0.333
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankveil.catalogue import Array, Measure, Value, measure
from rankveil.errors import NotApplicableError
from rankveil.multivariate import NEGLIGIBLE
from rankveil.summaries.changes import Changes
from rankveil.summaries.pairwise import PairMoments

Kind = Literal["mse", "mae", "mv"]
Names = tuple[str, ...]

_SOURCE = "Mateo-Sanz, Domingo-Ferrer and Sebé 2005, Table 1"
_KINDS: dict[Kind, str] = {"mse": "Mean square error", "mae": "Mean absolute error", "mv": "Mean variation"}
_PAIRS_SHOWN = 20
_OF_ZERO = -30_000
"""The exponent of 0: below that of any product of numbers."""


class Numbers(NamedTuple):
    """mantissa * 2^exponent: the variance of values like 1e300 is no float, but its relative change is one."""

    mantissa: Array
    exponent: NDArray[np.intc]

    @classmethod
    def of(cls, mantissa: Array, exponent: Any = 0) -> Numbers:
        """Mantissas of at least a half, except that of 0."""
        fraction, power = np.frexp(mantissa)
        return cls(fraction, np.where(fraction == 0, _OF_ZERO, power + exponent).astype(np.intc))

    def times(self, other: Numbers) -> Numbers:
        """The products."""
        return Numbers.of(self.mantissa * other.mantissa, self.exponent + other.exponent)

    def change(self, other: Numbers) -> Numbers:
        """|self - other|."""
        top = np.maximum(self.exponent, other.exponent)
        parts = (np.ldexp(each.mantissa, each.exponent - top) for each in (self, other))
        return Numbers.of(np.abs(np.subtract(*parts)), top)

    def over(self, other: Numbers, *, where: Any = True) -> Array:
        """self / other, infinite where that is too large for a number, 1 where it is not asked for."""
        shape = np.broadcast_shapes(self.mantissa.shape, other.mantissa.shape)
        ratio = np.divide(self.mantissa, other.mantissa, out=np.ones(shape), where=where)
        with np.errstate(over="ignore"):
            found: Array = np.where(where, np.ldexp(ratio, self.exponent - other.exponent), 1.0)
        return found

    def mean(self, counts: Array, *, axis: int | None = None) -> Numbers:
        """The mean of numbers that count for so many."""
        top = np.max(self.exponent)
        total = np.sum(np.ldexp(self.mantissa, self.exponent - top) * counts, axis=axis)
        number = np.sum(counts, axis=axis)
        return Numbers.of(total / np.where(number > 0, number, 1.0), top)

    def floats(self) -> Array:
        """As floats, if they can be written as such."""
        with np.errstate(over="ignore"):
            found: Array = np.ldexp(self.mantissa, self.exponent)
        if not np.isfinite(found).all():
            raise NotApplicableError("it is too large to be written as a number")
        return found


class Errors(NamedTuple):
    """The errors of entries, or of means of entries, and of how many."""

    size: Numbers
    counts: Array
    """How many entries each stands for, or the sum of their weights."""
    left_out: int = 0
    """Entries whose original is 0, where one would divide by it."""
    entries: int | None = None
    """How many entries there are in all; what the counts add up to unless they are sums of weights."""

    def value(self, what: str, *, names: Names, pairs: bool = False, notes: tuple[str, ...] = ()) -> Value:
        """Their mean; `what` the entries are, which stand for attributes (or for rows of them) or for their pairs."""
        entries = int(self.counts.sum()) if self.entries is None else self.entries
        if entries == 0:
            raise NotApplicableError(f"every one of the original {what} is 0, so there is nothing to divide by")
        mean = self.size.mean(self.counts)
        headline = float(mean.floats())
        if headline == 0 < mean.mantissa:
            raise NotApplicableError("it is too small to be written as a number")
        per_row = self.size.mean(self.counts, axis=1) if self.counts.ndim > 1 else self.size
        counts = self.counts.sum(axis=1) if self.counts.ndim > 1 else self.counts
        found = per_row.floats()
        if pairs:
            details: dict[str, Any] = {"per_pair": _worst_pairs(found, counts, names)}
        else:
            shown = zip(names, found.tolist(), counts.tolist(), strict=True)
            details = {"per_attribute": {name: value for name, value, count in shown if count}}
        if self.left_out:
            details["zeros_left_out"] = self.left_out
            notes = (*notes, f"{self.left_out} of the {entries + self.left_out} original {what} are 0 and left out")
        return Value(headline, details, notes)


def _worst_pairs(values: Array, counts: Array, names: Names) -> list[dict[str, Any]]:
    first, second = _pairs(len(names))
    worst = [k for k in np.argsort(-values, kind="stable") if counts[k]][:_PAIRS_SHOWN]
    return [{"a": names[first[k]], "b": names[second[k]], "value": float(values[k])} for k in worst]


def _pairs(attributes: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Every two columns, once."""
    if attributes < 2:
        raise NotApplicableError("it compares pairs of columns, and there is only one")
    first, second = np.triu_indices(attributes, 1)
    return first, second


def named(names: Names, attributes: int) -> Names:
    """The names of the columns, or their numbers from 1 where arrays came without names."""
    return names or tuple(str(j + 1) for j in range(attributes))


def errors_of(
    kind: Kind, x: Numbers, y: Numbers, *, zero: NDArray[np.bool_], weights: Any = 1.0, there: Any = True
) -> Errors:
    """(x - y)^2, |x - y| or |x - y| / |x| for each entry, times its weight; those that are not `there` do not count."""
    counts = np.ones(x.mantissa.shape) * there
    if kind == "mv":
        zero = zero & there
        size = Numbers.of(np.abs(1.0 - y.over(x, where=~zero & there)) * weights)
        return Errors(size, counts * ~zero, int(zero.sum()))
    change = x.change(y)
    size = change if kind == "mae" else change.times(change)
    return Errors(Numbers.of(size.mantissa * weights, size.exponent), counts)


def _value_errors(kind: Kind, changes: Sequence[Changes]) -> Errors:
    """For each column the mean error of its values: there are too many of them to keep every exponent."""
    if kind == "mv":
        sums, counts = [each.variation for each in changes], np.array([each.weight_there for each in changes])
        entries, power = sum(each.there for each in changes), 0
    else:
        sums = [each.absolute if kind == "mae" else each.squared for each in changes]
        counts = np.array([each.weight for each in changes])
        entries, power = sum(each.count for each in changes), 1 if kind == "mae" else 2
    exponent = np.array([power * (math.frexp(each.unit)[1] - 1) for each in changes])
    mean = np.array(sums) / np.where(counts > 0, counts, 1.0)
    return Errors(Numbers.of(mean, exponent), counts, sum(each.count for each in changes) - entries, entries)


def constant_note(names: Names, *correlations: Array) -> tuple[str, ...]:
    """A note on columns that have no correlations."""
    missing = [name for j, name in enumerate(names) if any(each[j, j] == 0 for each in correlations)]
    return (f"constant in one of the tables, so correlations count as 0: {', '.join(missing)}",) if missing else ()


def in_common(
    x: PairMoments, y: PairMoments, first: NDArray[np.intp], second: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Which pairs of columns have records in common in both tables, and what is said of the others."""
    there = x.there[first, second] & y.there[first, second]
    if not there.any():
        raise NotApplicableError("no two columns have two records in common")
    left = int(np.count_nonzero(~there))
    said = f"{left} of {there.size} pairs of columns have fewer than two records in common and are left out"
    return there, (said,) if left else ()


def _values(kind: Kind) -> Callable[..., Value]:
    def loss(value_changes: Sequence[Changes], *, names: Names) -> Value:
        return _value_errors(kind, value_changes).value("values", names=named(names, len(value_changes)))

    return loss


def _means(kind: Kind) -> Callable[..., Value]:
    def loss(mean_x: Array, spread_x: Array, mean_y: Array, *, names: Names) -> Value:
        zero = np.abs(mean_x) <= NEGLIGIBLE * spread_x
        errors = errors_of(kind, Numbers.of(mean_x), Numbers.of(mean_y), zero=zero)
        return errors.value("means", names=named(names, mean_x.size))

    return loss


def _variances(kind: Kind) -> Callable[..., Value]:
    def loss(spread_x: Array, spread_y: Array, *, names: Names) -> Value:
        x, y = Numbers.of(spread_x), Numbers.of(spread_y)
        errors = errors_of(kind, x.times(x), y.times(y), zero=spread_x == 0)
        return errors.value("variances", names=named(names, spread_x.size))

    return loss


def _covariances(kind: Kind) -> Callable[..., Value]:
    def loss(pairs_x: PairMoments, pairs_y: PairMoments, *, names: Names) -> Value:
        size = len(pairs_x.correlation)
        first, second = _pairs(size)
        there, notes = in_common(pairs_x, pairs_y, first, second)

        def covariance(pairs: PairMoments) -> Numbers:
            one, other = Numbers.of(pairs.spread[first, second]), Numbers.of(pairs.spread[second, first])
            return one.times(other).times(Numbers.of(pairs.correlation[first, second]))

        x, y = covariance(pairs_x), covariance(pairs_y)
        # columns of the smallest numbers there are can correlate and yet have a standard deviation that rounds to 0
        zero = (np.abs(pairs_x.correlation[first, second]) <= NEGLIGIBLE) | (x.mantissa == 0)
        errors = errors_of(kind, x, y, zero=zero, there=there)
        return errors.value("covariances", names=named(names, size), pairs=True, notes=notes)

    return loss


def _correlations(kind: Kind) -> Callable[..., Value]:
    def loss(pairs_x: PairMoments, pairs_y: PairMoments, *, names: Names) -> Value:
        names = named(names, len(pairs_x.correlation))
        pairs = _pairs(len(names))
        there, notes = in_common(pairs_x, pairs_y, *pairs)
        x, y = pairs_x.correlation[pairs], pairs_y.correlation[pairs]
        errors = errors_of(kind, Numbers.of(x), Numbers.of(y), zero=np.abs(x) <= NEGLIGIBLE, there=there)
        notes = (*constant_note(names, pairs_x.correlation, pairs_y.correlation), *notes)
        return errors.value("correlations", names=names, pairs=True, notes=notes)

    return loss


class Quantity(NamedTuple):
    """A row of Table 1."""

    make: Callable[[Kind], Callable[..., Value]]
    title: str
    entry: str
    mean: str
    """How the errors of entries become one number."""
    defined: str
    """What the entry is."""
    highest: float = math.inf
    """What the absolute error can be at most."""
    mapping: bool = False
    origin: bool = False
    """Whether it depends on where 0 lies."""
    unit: bool = True
    """Whether it depends on the units of the columns."""
    records: Literal["together", "by column", "by pair"] = "together"
    """Which records it takes where cells are missing."""


_EVERY_PAIR = "over the p(p - 1)/2 pairs of columns i < j"
_VALUES = "x_ij is the value of attribute j in record i"
_CORRELATION = "r_ij is Pearson's correlation of attributes i and j, and p the number of attributes"
_QUANTITIES = {
    "values": Quantity(
        _values,
        "the values",
        "x_ij",
        "over all records i and attributes j",
        _VALUES,
        mapping=True,
        origin=True,
        records="by column",
    ),
    "means": Quantity(
        _means,
        "the means",
        "m_j",
        "over the attributes j",
        "m_j is the mean of attribute j",
        origin=True,
        records="by column",
    ),
    "covariances": Quantity(
        _covariances,
        "the covariances",
        "v_ij",
        _EVERY_PAIR,
        "v_ij is the covariance of attributes i and j",
        records="by pair",
    ),
    "variances": Quantity(
        _variances,
        "the variances",
        "v_jj",
        "over the attributes j",
        "v_jj is the variance of attribute j",
        records="by column",
    ),
    "correlations": Quantity(
        _correlations, "the correlations", "r_ij", _EVERY_PAIR, _CORRELATION, 2.0, unit=False, records="by pair"
    ),
}


def _cell(name: str, quantity: Quantity, kind: Kind) -> Measure:
    """One cell of Table 1."""
    title, a = f"{_KINDS[kind]} of {quantity.title}", quantity.entry
    error = {"mse": f"({a} - {a}')^2", "mae": f"|{a} - {a}'|", "mv": f"|{a} - {a}'| / |{a}|"}[kind]
    zeros = f"; entries with {a} = 0 are left out" if kind == "mv" else ""
    function = quantity.make(kind)
    function.__doc__ = (
        f"{title}.\n\n    loss = mean of {error}\n           {quantity.mean}\n\n"
        f"{quantity.defined}. Without a prime (') they are the original's, with one the masked table's{zeros}."
    )
    return Measure(
        id=f"loss_{name}_{kind}",
        title=title,
        function=function,
        source=_SOURCE,
        family="loss",
        better="lower",
        bounds=(0.0, {"mse": quantity.highest**2, "mae": quantity.highest, "mv": math.inf}[kind]),
        mapping=quantity.mapping,
        equal=quantity.mapping,
        weighted=True,
        records=quantity.records,
        moments=_moments(quantity, kind),
    )


def _moments(quantity: Quantity, kind: Kind) -> Literal["as numbers", "in days", "left out"]:
    """What becomes of dates and times: a ratio needs a 0 that means nothing, a difference has a unit."""
    if kind == "mv":
        return "left out" if quantity.origin else "as numbers"
    return "in days" if quantity.unit else "as numbers"


def cells_of(rows: Mapping[str, Quantity]) -> tuple[Measure, ...]:
    """The cells of these rows of Table 1."""
    return tuple(_cell(name, quantity, kind) for name, quantity in rows.items() for kind in _KINDS)


losses = cells_of(_QUANTITIES)


def _renamed(id: str, loss: str) -> Measure:
    """The same loss under its name in Domingo-Ferrer and Torra 2001."""
    (entry,) = (each for each in losses if each.id == loss)
    return replace(entry, id=id, title=f"{id.upper()}: {entry.title[0].lower()}{entry.title[1:]}")


il1 = _renamed("il1", "loss_values_mv")
il2 = _renamed("il2", "loss_means_mv")
il3 = _renamed("il3", "loss_variances_mv")
il4 = _renamed("il4", "loss_covariances_mv")
il5 = _renamed("il5", "loss_correlations_mae")


@measure(title="Information loss", source="Domingo-Ferrer and Torra 2001", family="loss", better="lower", weighted=True)
def il(il1: float, il2: float, il3: float, il4: float, il5: float) -> Value:
    """IL: the mean of the losses of values, means, variances, covariances and correlations, in percent.

    il = 100 (il1 + il2 + il3 + il4 + il5) / 5
    """
    parts = {"il1": il1, "il2": il2, "il3": il3, "il4": il4, "il5": il5}
    mean = math.fsum(part / len(parts) for part in parts.values())
    if 100 * mean == math.inf:
        raise NotApplicableError("it is too large to be written as a number")
    return Value(100 * mean, details={"parts": parts})


@measure(
    title="IL1s: change of the values in standard deviations",
    source="Yancey, Winkler and Creecy 2002",
    family="loss",
    better="lower",
    weighted=True,
    records="by column",
)
def il1s(value_changes: Sequence[Changes], spread_x: Array, *, names: Names) -> Value:
    """IL1s: the mean change of a value, in standard deviations.

        il1s = mean of |x_ij - x'_ij| / (sqrt(2) S_j) over all records i and attributes j

    S_j is the standard deviation of attribute j in the original; constant attributes are left out.

    Unlike the mean variation of the values (`il1`), it does not rise sharply where an original value is near 0.
    """
    names = named(names, len(value_changes))
    varies = spread_x > 0
    if not varies.any():
        raise NotApplicableError("every original column is constant, so there is no spread to compare with")
    change = _value_errors("mae", value_changes)
    unit = Numbers.of(spread_x).times(Numbers.of(np.sqrt(np.full(spread_x.size, 2.0))))
    ratio = change.size.over(unit, where=varies)
    left_out = [name for name, kept in zip(names, varies, strict=True) if not kept]
    notes = (f"constant in the original and left out: {', '.join(left_out)}",) if left_out else ()
    errors = Errors(Numbers.of(ratio), change.counts * varies, entries=change.entries)
    return errors.value("values", names=names, notes=notes)


@measure(
    title="Half the mean absolute error of the correlations",
    source="Mateo-Sanz, Domingo-Ferrer and Sebé 2005, expression (6)",
    family="loss",
    better="lower",
    bounds=(0.0, 1.0),
    mapping=False,
    equal=False,
    weighted=True,
    records="by pair",
)
def correlation_half_mae(pairs_x: PairMoments, pairs_y: PairMoments, *, names: Names) -> Value:
    """Half the mean absolute error of the correlations, between 0 and 1.

    loss = (1 / (p(p - 1))) sum of |r_ij - r'_ij| over the pairs of columns i < j
    """
    whole = il5(pairs_x, pairs_y, names=names)
    pairs = [{**pair, "value": pair["value"] / 2} for pair in whole.details["per_pair"]]
    return Value(whole.value / 2, {"per_pair": pairs}, whole.notes)
