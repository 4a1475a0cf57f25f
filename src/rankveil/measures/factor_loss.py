"""Information loss of principal components: the last three rows of the table that `information_loss` begins.

The components are those of the correlations. Component j is the one with the j-th largest variance l_j, in the original
and in the masked table, v_ij its direction and w_j its share of the original variance. What the table leaves open:

- A direction has two ends; the one that agrees with the other table's is taken. Components of equal variance are not
  determined by the data; of all that there could be, those nearest to the other table's are compared.
- A component with a variance below 1e-12 of the largest is rounding: its correlations and coefficients are 0. Where
  mean variation divides, so is an entry below 1e-12.
- A constant column has no correlations, so they count as 0, and it adds nothing to the components.

>>> import numpy as np
>>> x, y = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
>>> loss_commonalities_mae = losses[4]
>>> loss_commonalities_mae(x, y).value  # the first component explains 3/4 of both attributes, then 1/2
0.25
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

import numpy as np

from rankveil.catalogue import Array, Range, Value
from rankveil.errors import NotApplicableError
from rankveil.measures.information_loss import (
    Errors,
    Kind,
    Names,
    Numbers,
    Quantity,
    cells_of,
    constant_note,
    errors_of,
    named,
)
from rankveil.multivariate import NEGLIGIBLE

_EQUAL = 1e-9
"""Variances of components closer than this part of the largest are equal."""


class Components(NamedTuple):
    """The principal components of correlations, the one with the largest variance first."""

    variances: Array
    vectors: Array

    @classmethod
    def of(cls, correlation: Array) -> Components:
        """Those of a matrix of correlations; negligible variances are 0."""
        values, vectors = np.linalg.eigh(correlation)
        values = np.where(values > NEGLIGIBLE * np.max(values), values, 0.0)
        return cls(values[::-1], vectors[:, ::-1])

    def turned(self, other: Components) -> Components:
        """The same components in the direction of the other's; those of equal variance as near to them as can be."""
        vectors = self.vectors.copy()
        gaps = -np.diff(self.variances) > _EQUAL * self.variances[0]
        for group in np.split(np.arange(len(self.variances)), np.flatnonzero(gaps) + 1):
            u, _, v = np.linalg.svd(vectors[:, group].T @ other.vectors[:, group])
            vectors[:, group] = vectors[:, group] @ (u @ v)
        return Components(self.variances, vectors)

    @property
    def correlations(self) -> Array:
        """Of attributes (rows) with components: v_ij sqrt(l_j)."""
        return self.vectors * np.sqrt(self.variances)

    @property
    def scores(self) -> Array:
        """What standardised attributes are multiplied with to give standardised components: v_ij / sqrt(l_j)."""
        there = self.variances > 0
        inverse = np.divide(1.0, np.sqrt(self.variances), out=np.zeros_like(self.variances), where=there)
        return self.vectors * inverse


def _components(correlation_x: Array, correlation_y: Array) -> tuple[Components, Components]:
    """The components of both tables, in agreeing directions."""
    if not correlation_x.any():
        raise NotApplicableError("every original column is constant, so there are no components")
    x = Components.of(correlation_x)
    if np.array_equal(correlation_x, correlation_y):
        return x, x
    y = Components.of(correlation_y).turned(x)
    return x.turned(y), y


def _factor_errors(kind: Kind, x: Components, of_x: Array, of_y: Array) -> Errors:
    """Errors of an attribute-by-component matrix, components weighted by their share of the original variance."""
    share = x.variances / x.variances.sum()
    zero = np.abs(of_x) <= NEGLIGIBLE
    return errors_of(kind, Numbers.of(of_x), Numbers.of(of_y), zero=zero, weights=share)


def _factor_correlations(kind: Kind) -> Callable[..., Value]:
    def loss(correlation_x: Array, correlation_y: Array, *, names: Names) -> Value:
        names = named(names, len(correlation_x))
        x, y = _components(correlation_x, correlation_y)
        errors = _factor_errors(kind, x, x.correlations, y.correlations)
        notes = constant_note(names, correlation_x, correlation_y)
        return errors.value("correlations with components", names=names, notes=notes)

    return loss


def _commonalities(kind: Kind) -> Callable[..., Value]:
    def loss(
        correlation_x: Array,
        correlation_y: Array,
        *,
        components: Annotated[int, Range(1), "how many of the first components explain; all if there are fewer"] = 1,
        names: Names,
    ) -> Value:
        names = named(names, len(correlation_x))
        x, y = (
            np.minimum(np.sum(each.correlations[:, :components] ** 2, axis=1), 1.0)
            for each in _components(correlation_x, correlation_y)
        )
        errors = errors_of(kind, Numbers.of(x), Numbers.of(y), zero=x <= NEGLIGIBLE)
        return errors.value("commonalities", names=names, notes=constant_note(names, correlation_x, correlation_y))

    return loss


def _factor_scores(kind: Kind) -> Callable[..., Value]:
    def loss(
        correlation_x: Array,
        correlation_y: Array,
        *,
        scores: Annotated[
            Literal["standardised", "projection"], "coefficients of components of variance 1, or of projections"
        ] = "standardised",
        names: Names,
    ) -> Value:
        names = named(names, len(correlation_x))
        x, y = _components(correlation_x, correlation_y)
        both = (x.scores, y.scores) if scores == "standardised" else (x.vectors, y.vectors)
        notes = constant_note(names, correlation_x, correlation_y)
        return _factor_errors(kind, x, *both).value("factor score coefficients", names=names, notes=notes)

    return loss


_WEIGHTED = "over the p^2 entries, each times w_j = l_j / (l_1 + ... + l_p) of the original"
_COMPONENTS = (
    "The components are those of the correlations: l_j is the j-th largest eigenvalue and v_ij its eigenvector, with "
    "the sign that agrees with the other table's"
)

losses = cells_of(
    {
        "factor_correlations": Quantity(
            make=_factor_correlations,
            title="the correlations of attributes with principal components",
            entry="rf_ij",
            mean=_WEIGHTED,
            defined=f"rf_ij = v_ij sqrt(l_j) is the correlation of attribute i with component j. {_COMPONENTS}",
            highest=2.0,
            unit=False,
        ),
        "commonalities": Quantity(
            make=_commonalities,
            title="the parts of attributes that the first principal component explains",
            entry="c_i",
            mean="over the attributes i",
            defined="c_i = rf_i1^2 (with more `components`, the sum of so many) is the part of attribute i that the "
            "first component explains, rf_ij = v_ij sqrt(l_j) the correlation of attribute i with component j. "
            f"{_COMPONENTS}",
            highest=1.0,
            unit=False,
        ),
        "factor_scores": Quantity(
            make=_factor_scores,
            title="the factor score coefficients of principal components",
            entry="f_ij",
            mean=_WEIGHTED,
            defined="f_ij = v_ij / sqrt(l_j) (or v_ij, with `scores` = projection) is what standardised attribute i is "
            f"multiplied with to give component j. {_COMPONENTS}",
            unit=False,
        ),
    }
)
