"""Confidentiality by canonical correlations of the ranks: how far a masked table still follows the original one.

With rho_1 >= rho_2 >= ... the canonical correlations of the two rank matrices, `cm1` looks at the largest, `cm2` and
`mutual_information` at all, and `cm3` at all after both tables were sorted by one attribute: it needs no mapping.

>>> import numpy as np
>>> from rankveil.summaries.correlations import RankCanonical
>>> original, masked = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]]), np.array([[2.0], [1.0], [4.0], [3.0], [5.0]])
>>> round(cm2(RankCanonical.of_ranks(original, masked)).value, 12)  # Spearman's correlation is 0.8
0.36

Sums of products of ranks are exact, so the values do not depend on the order in which records are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankveil.canonical import EXACT, by_digits, largest_by_chance, settled, squared_correlations
from rankveil.catalogue import EVERY_KIND, Array, Value, measure
from rankveil.errors import NotApplicableError
from rankveil.execute import in_threads
from rankveil.seeds import Stream
from rankveil.summaries.correlations import RankBasis, RankCanonical, centred_ranks, products_beside
from rankveil.summaries.products import Exact

Rows = NDArray[np.intp]

_SOURCE = "Domingo-Ferrer, Muralidhar and Bras-Amoros 2021"


@measure(
    title="Confidentiality by the largest canonical correlation (CM1)",
    source=_SOURCE,
    family="confidentiality",
    better="higher",
    bounds=(0.0, 1.0),
    kinds=EVERY_KIND,
)
def cm1(rank_canonical: RankCanonical, *, names: tuple[str, ...] = ()) -> Value:
    """cm1 = 1 - rho_1^2, rho_1 the largest canonical correlation of the ranks: 0 when some combination is disclosed.

    `chance` in the details is about what two independent tables give. A masked table that is constant tells nothing
    of the original, so it gives 1.
    """
    squared = _squared(rank_canonical)
    n, p, q = _sizes(rank_canonical)
    largest = largest_by_chance(n, p, q)
    chance = 1.0 if q == 0 else None if largest is None else 1 - largest
    return _value(1 - float(squared.max(initial=0.0)), squared, chance, rank_canonical, names)


@measure(
    title="Confidentiality by all canonical correlations (CM2)",
    source=_SOURCE,
    family="confidentiality",
    better="higher",
    bounds=(0.0, 1.0),
    kinds=EVERY_KIND,
)
def cm2(rank_canonical: RankCanonical, *, names: tuple[str, ...] = ()) -> Value:
    """The product over the canonical correlations of the ranks: 1 when neither tells of the other.

        cm2 = (1 - rho_1^2) (1 - rho_2^2) ... (1 - rho_m^2)

    `chance` in the details is exp(-m^2 / n), about what two independent tables of n records and m attributes give.
    A masked table that is constant tells nothing of the original, so it gives 1.
    """
    squared = _squared(rank_canonical)
    n, p, q = _sizes(rank_canonical)
    return _value(float(np.prod(1 - squared)), squared, math.exp(-p * q / n), rank_canonical, names)


@measure(
    title="Mutual information of the ranks",
    source=f"{_SOURCE}; Kay 1992",
    family="risk",
    better="lower",
    bounds=(0.0, math.inf),
    kinds=EVERY_KIND,
)
def mutual_information(rank_canonical: RankCanonical, *, names: tuple[str, ...] = ()) -> Value:
    """mi = -ln(cm2), the sum of -ln(1 - rho_i^2): how much the masked ranks tell of the original ones, 0 when nothing.

    It is the paper's expression (4); the information of normal variables in nats is half of that.
    `chance` in the details is m^2 / n, about what two independent tables of n records and m attributes give.
    """
    squared = _squared(rank_canonical)
    if squared.max(initial=0.0) >= 1 - EXACT:
        raise NotApplicableError("it is infinite: a combination of the original ranks is disclosed exactly (cm2 is 0)")
    n, p, q = _sizes(rank_canonical)
    return _value(-float(np.sum(np.log1p(-squared))), squared, p * q / n, rank_canonical, names)


@measure(
    title="Confidentiality without a mapping (CM3)",
    source=_SOURCE,
    family="confidentiality",
    better="higher",
    bounds=(0.0, 1.0),
    mapping=False,
    kinds=EVERY_KIND,
)
def cm3(
    rank_x: Array,
    rank_y: Array,
    order_x: Rows,
    order_y: Rows,
    rank_basis_x: RankBasis,
    rank_basis_y: RankBasis,
    *,
    names: tuple[str, ...] = (),
    rng: Stream,
) -> Value:
    """The least cm2, over the attributes, of the others after both tables were sorted by that one.

        cm3 = min over j of cm2(X without j, sorted by X_j;  Y without j, sorted by Y_j)

    Records that are tied in it stand in the order of the sum of their ranks, then of the ranks in the order of the
    columns' names, so that a table with its records in another order gives 0. With heavy ties such an order makes
    unrelated tables look alike: `chance` in the details is the same number for the masked table with each column
    permuted by itself. A column that is constant in one of the tables cannot be sorted by and is left out.
    """
    names = _named(names, rank_x.shape[1])
    sequence = tuple(sorted(range(len(names)), key=lambda j: names[j]))
    return without_mapping(
        rank_basis_x, rank_basis_y, _Records(rank_x, rank_y, order_x, order_y, sequence, rng), names=names
    )


Between = Callable[[int], Exact]
"""For each column the sums of products of ranks, records of the same place in its order side by side."""


class ByPlace(Protocol):
    """Two tables whose records stand side by side when they have the same place in the order of a column."""

    @property
    def tied(self) -> bool:
        """Whether a column of one of the tables has ties."""

    def between(self, j: int) -> Exact:
        """Sums of products of centred doubled ranks, both tables sorted by column j."""

    def permuted(self) -> tuple[RankBasis, Between]:
        """The masked table with each column permuted by itself, and the same sums for it."""


def without_mapping(x: RankBasis, y: RankBasis, tables: ByPlace, *, names: tuple[str, ...]) -> Value:
    """`cm3` of two tables whose records can be put side by side."""
    if len(names) == 1:
        raise NotApplicableError("there is one attribute, and it needs another one to sort by")
    if not x.kept:
        raise NotApplicableError("every original column is constant: there is nothing to hide")
    if not y.kept:
        return Value(1.0, notes=("every masked column is constant: it tells nothing of the original",))
    values, skipped = _one_left_out(x, y, tables.between)
    if not values:
        j, why = next(iter(skipped.items()))
        raise NotApplicableError(f"there is no column to sort by ({names[j]}: {why})")
    chance, _ = _one_left_out(x, *tables.permuted())
    details: dict[str, Any] = {"per_attribute": {names[j]: value for j, value in values.items()}}
    notes = [f"column {names[j]} is not sorted by: {why}" for j, why in skipped.items()]
    if chance:
        details["chance"] = min(chance.values())
        details["chance_per_attribute"] = {names[j]: value for j, value in chance.items()}
        if tables.tied:
            notes.append(f"tied records are sorted to look alike: permuted columns give {details['chance']:.3g}")
    notes.extend(_dropped(x, y, names, details))
    return Value(min(values.values()), details, tuple(notes))


def _one_left_out(x: RankBasis, y: RankBasis, between: Between) -> tuple[dict[int, float], dict[int, str]]:
    """For each column cm2 of the others, rows of the same place in its order side by side, or why there is none."""
    values, skipped = {}, {}
    varies = (x.spread > 0) & (y.spread > 0)
    for j in range(varies.size):
        if not varies[j]:
            skipped[j] = "it is constant in one of the tables"
            continue
        ours, theirs = x.without(j), y.without(j)
        try:
            _check(x.records, ours.shape[1], theirs.shape[1])
        except NotApplicableError as why:
            skipped[j] = f"without it, {why}"
            continue
        both = RankCanonical(x, y, between(j))
        values[j] = float(np.prod(1 - squared_correlations(ours.T @ both.products @ theirs)))
    return values, skipped


@dataclass(frozen=True, eq=False)
class _Records:
    """The ranks of two tables, and for each column the order of the rows."""

    rank_x: Array
    rank_y: Array
    order_x: Rows
    order_y: Rows
    sequence: tuple[int, ...]
    """The columns in the order of their names."""
    rng: Stream

    @cached_property
    def _settled(self) -> tuple[Rows, Rows]:
        return (
            settled(self.rank_x, self.order_x, sequence=self.sequence),
            settled(self.rank_y, self.order_y, sequence=self.sequence),
        )

    @property
    def tied(self) -> bool:
        """Whether a column of one of the tables has ties."""
        return self._settled[0] is not self.order_x or self._settled[1] is not self.order_y

    def between(self, j: int) -> Exact:
        """Sums of products of centred doubled ranks, both tables sorted by column j."""
        return self._as_they_are(j)

    @cached_property
    def _as_they_are(self) -> Between:
        return self._products(self.rank_y, self._settled[1])

    def permuted(self) -> tuple[RankBasis, Between]:
        """The masked table with each column permuted by itself, and the same sums for it."""
        ranks, order = _permuted(self.rank_y, self.order_y, self.rng)
        return RankBasis.of_ranks(ranks), self._products(ranks, settled(ranks, order, sequence=self.sequence))

    def _products(self, rank_y: Array, order_y: Rows) -> Between:
        beside = _beside(self._settled[0], order_y)
        centred = centred_ranks(rank_y)
        return lambda j: products_beside(self._centred, centred, beside[:, j])

    @cached_property
    def _centred(self) -> Array:
        return centred_ranks(self.rank_x)


def _beside(order_x: Rows, order_y: Rows) -> Rows:
    """For each column and each row of x the row of y that has the same place in the column's order."""
    rows = np.empty_like(order_x)

    def put(j: int) -> None:
        rows[order_x[:, j], j] = order_y[:, j]

    in_threads(put, range(order_x.shape[1]), size=order_x.size)
    return rows


def _permuted(rank: Array, order: Rows, rng: Stream) -> tuple[Array, Rows]:
    """Each column in a random order of its own, and the new orders; the first stays, as the others move beside it."""
    n, m = rank.shape
    draws = [rng.bits(n) for _ in range(1, m)]
    ranks, orders = np.empty_like(rank, order="F"), np.empty_like(order, order="F")
    ranks[:, 0], orders[:, 0] = rank[:, 0], order[:, 0]

    def permute(j: int) -> None:
        # half a draw: that a few of a million rows share theirs and do not change places is nothing to a level
        to = by_digits(np.arange(n), draws[j - 1].astype(np.uint32))
        ranks[to, j] = rank[:, j]
        orders[:, j] = to[order[:, j]]

    in_threads(permute, range(1, m), size=rank.size)
    return ranks, orders


def _squared(both: RankCanonical) -> Array:
    """The squared canonical correlations of two tables, or why they say nothing."""
    _check(*_sizes(both))
    return both.squared


def _sizes(both: RankCanonical) -> tuple[int, int, int]:
    """How many records, and how many independent columns on either side."""
    return both.x.records, len(both.x.kept), len(both.y.kept)


def _check(n: int, p: int, q: int) -> None:
    if p == 0:
        raise NotApplicableError("every original column is constant: there is nothing to hide")
    if q > 0 and p + q > n - 1:
        raise NotApplicableError(
            f"{p} and {q} independent columns correlate perfectly in {n} records whatever they are: it needs more "
            f"than {p + q} records"
        )


def _value(value: float, squared: Array, chance: float | None, both: RankCanonical, names: tuple[str, ...]) -> Value:
    details: dict[str, Any] = {"canonical_correlations": np.sqrt(squared).tolist()}
    if chance is not None:
        details["chance"] = chance
    notes = _dropped(both.x, both.y, _named(names, both.x.r.shape[1]), details)
    if not both.y.kept:
        notes = ("every masked column is constant: it tells nothing of the original",)
    return Value(value, details, notes)


def _dropped(x: RankBasis, y: RankBasis, names: tuple[str, ...], details: dict[str, Any]) -> tuple[str, ...]:
    """Say which columns added nothing, in the details too."""
    dropped = {side: [names[j] for j in basis.dropped] for side, basis in (("original", x), ("masked", y))}
    if any(dropped.values()):
        details["dropped"] = dropped
    return tuple(
        f"columns of the {side} table dropped because they are constant or depend on others: {', '.join(which)}"
        for side, which in dropped.items()
        if which
    )


def _named(names: tuple[str, ...], m: int) -> tuple[str, ...]:
    return names or tuple(str(j + 1) for j in range(m))
