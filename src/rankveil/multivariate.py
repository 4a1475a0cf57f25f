"""Linear algebra of tables: covariances, square roots, regression, for columns that may depend on each other exactly.

Columns are brought to mean 0 and standard deviation 1 first, so that 1e300 beside 1e-12 neither overflows nor hides
anything, and small matrices are taken apart by their eigenvalues: a singular covariance is nothing special. Sums over
the records are exact and not those of a linear algebra library, whose last digits depend on how many threads it runs:
the same seed must give the same bytes everywhere, also where `rows` are only a part of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rankveil.execute import in_threads
from rankveil.moments import counted, mean, scale_of, standard_deviation
from rankveil.rows import HERE, Rows
from rankveil.seeds import Stream

Array = NDArray[np.float64]

NEGLIGIBLE = 1e-12
"""Eigenvalues, and lengths of what a regression leaves over, below this part of the largest are rounding."""

FARTHEST = 1e100
"""Standard deviations beyond which values are as good as infinitely far away; their squares can still be added."""

_ROUNDS = 100
"""Of an iteration that converges long before."""


@dataclass(frozen=True, eq=False)
class Standardised:
    """Columns with mean 0 and standard deviation 1 (constant ones are 0), and what brings them back."""

    z: Array
    mean: Array
    spread: Array

    def applied(self, values: Array) -> Array:
        """Values of other records in the same units; 0 in a constant column, and never beyond `FARTHEST`."""

        def column(j: int) -> Array:
            if self.spread[j] == 0:
                return np.zeros(len(values))
            scale = max(scale_of(values[:, j]), scale_of(self.mean[j : j + 1]), scale_of(self.spread[j : j + 1]))
            width = self.spread[j] / scale
            with np.errstate(over="ignore", divide="ignore"):
                moved = (values[:, j] / scale - self.mean[j] / scale) / (width if width > 0 else np.nextafter(0, 1))
            found: Array = np.clip(moved, -FARTHEST, FARTHEST)
            return found

        return by_column(column, shape=values.shape)

    def restored(self, z: Array) -> Array:
        """Standardised values as values of the columns."""
        return by_column(lambda j: self.mean[j] + self.spread[j] * z[:, j], shape=z.shape)


def standardised(x: Array, weight: Array | None = None, *, rows: Rows = HERE) -> Standardised:
    """(x - mean) / sd for every column, with population moments, weighted when there are weights.

    >>> standardised(np.array([[1.0, 7.0], [3.0, 7.0]])).z
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    counts, weights = counted(x, weight)
    if counts is not x:
        made = standardised(counts, weights)
        return Standardised(made.applied(x), made.mean, made.spread)
    if weight is not None:
        return _standardised_by_weight(x, weight)
    columns = {str(j): x[:, j] for j in range(x.shape[1])}
    found = rows.each(lambda column, own: own.standardised(column), columns, size=x.size)
    z = np.empty(x.shape, order="F")
    for j, (column, _, _) in enumerate(found):
        z[:, j] = column
    return Standardised(z, np.array([mean for _, mean, _ in found]), np.array([spread for *_, spread in found]))


def _standardised_by_weight(x: Array, weight: Array) -> Standardised:
    centre, spread = np.empty(x.shape[1]), np.empty(x.shape[1])

    def column(j: int) -> Array:
        scale = scale_of(x[:, j])  # the difference of two numbers near the largest would overflow
        scaled = x[:, j] / scale
        middle, width = mean(scaled, weight), standard_deviation(scaled, weight)
        centre[j], spread[j] = middle * scale, width * scale
        return (scaled - middle) / width if width > 0 else np.zeros(x.shape[0])

    return Standardised(by_column(column, shape=x.shape), centre, spread)


def by_column(make: Callable[[int], Array], *, shape: tuple[int, ...]) -> Array:
    """A table whose column j is make(j), on all cores."""
    table = np.empty(shape, order="F")

    def put(j: int) -> None:
        table[:, j] = make(j)

    in_threads(put, range(shape[1]), size=table.size)
    return table


def normal_draws(rng: Stream, shape: tuple[int, ...]) -> Array:
    """Standard normal draws for the cells of a table, one call of the stream for each column."""
    from scipy.special import ndtri

    draws = np.empty(shape, order="F")
    for j in range(shape[1]):
        draws[:, j] = rng.random(shape[0])
    return by_column(lambda j: ndtri(draws[:, j]), shape=shape)


def gram(a: Array, b: Array, *, rows: Rows = HERE) -> Array:
    """a'b: the sum of products for each column of a and each of b; of stacks, one matrix for each table."""
    if a.ndim > 2:
        stack: Array = np.einsum("...ki,...kj->...ij", a, b)
        return stack
    pairs = [(i, j) for i in range(a.shape[1]) for j in range(i if a is b else 0, b.shape[1])]
    products = np.zeros((a.shape[1], b.shape[1]))
    made = rows.sums([partial(_product, a[:, i], b[:, j]) for i, j in pairs], size=len(pairs) * a.shape[0])
    for (i, j), found in zip(pairs, made, strict=True):
        products[i, j] = found
        if a is b:
            products[j, i] = found
    return products


def _product(a: Array, b: Array) -> Array:
    return a * b


def combined(a: Array, weights: Array) -> Array:
    """a times weights: every new column is a weighted sum of those of a; of stacks, table by table."""
    if a.ndim > 2:
        stack: Array = np.einsum("...ki,...ij->...kj", a, weights)
        return stack

    def column(j: int) -> Array:
        total = np.zeros(a.shape[0])
        for i in np.flatnonzero(weights[:, j]):
            total += a[:, i] * weights[i, j]
        return total

    return by_column(column, shape=(a.shape[0], weights.shape[1]))


def correlation(z: Array, weight: Array | None = None, *, rows: Rows = HERE) -> Array:
    """The correlations of standardised columns; those of a constant column, with itself too, are 0."""
    if weight is None:
        means = gram(z, z, rows=rows) / max(rows.count(z.shape[0]), 1)
    else:
        weighed = weighted(z, weight)
        means = gram(weighed, weighed)
    found: Array = np.clip(means, -1.0, 1.0)
    np.fill_diagonal(found, np.diag(means) > 0)
    return found


def weighted(z: Array, weight: Array) -> Array:
    """Every record times the root of its share of all weight: sums of products become weighted means of them."""
    unit = weight / scale_of(weight)
    factor = np.sqrt(unit / np.sum(unit))
    return by_column(lambda j: z[:, j] * factor, shape=z.shape)


def covariance(x: Array) -> Array:
    """The population covariances of columns.

    >>> covariance(np.array([[1.0, 2.0], [3.0, 8.0]]))
    array([[1., 3.],
           [3., 9.]])
    """
    table = standardised(x)
    return np.outer(table.spread, table.spread) * correlation(table.z)


def root(c: Array) -> Array:
    """The symmetric square root of a positive semidefinite matrix, singular or not.

    >>> root(np.array([[1.0, 1.0], [1.0, 1.0]])) * np.sqrt(2)
    array([[1., 1.],
           [1., 1.]])
    """
    values, vectors = _eigen(c)
    return _rebuilt(np.sqrt(values), vectors)


def pseudo_inverse(c: Array) -> Array:
    """The Moore-Penrose inverse of a positive semidefinite matrix: negligible eigenvalues stay 0."""
    values, vectors = _eigen(c)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
    return _rebuilt(inverse, vectors)


def _eigen(c: Array) -> tuple[Array, Array]:
    """Eigenvalues, negative and negligible ones as 0, and eigenvectors."""
    values, vectors = np.linalg.eigh(c)
    least = NEGLIGIBLE * np.max(values, axis=-1, keepdims=True, initial=0.0)
    return np.where(values > least, values, 0.0), vectors


def _rebuilt(values: Array, vectors: Array) -> Array:
    """The symmetric matrix of these eigenvalues and eigenvectors."""
    made: Array = np.einsum("...ij,...kj->...ik", vectors * values[..., None, :], vectors)
    return (made + np.swapaxes(made, -1, -2)) / 2


def nearest_correlation(c: Array) -> Array:
    """The positive semidefinite matrix with unit diagonal nearest to c (Higham 2002: alternating projections).

    >>> nearest_correlation(np.array([[1.0, 0.5], [0.5, 1.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    if c.size == 0 or np.linalg.eigvalsh(c)[0] >= -NEGLIGIBLE:
        return c
    nearest, step = c, np.zeros_like(c)
    for _ in range(_ROUNDS):
        start = nearest - step
        values, vectors = _eigen(start)
        within = _rebuilt(values, vectors)
        step = within - start
        nearest = within.copy()
        np.fill_diagonal(nearest, 1.0)
        if np.max(np.abs(nearest - within)) < NEGLIGIBLE:
            break
    values, vectors = _eigen(nearest)
    within = _rebuilt(values, vectors)
    scale = np.sqrt(np.diag(within))
    found: Array = within / np.outer(scale, scale)
    np.fill_diagonal(found, 1.0)
    return found


def copula_of(ranks: Array, *, rows: Rows = HERE) -> Array:
    """The correlations of normal scores whose ranks have the Spearman correlations of these columns of average ranks.

        R = 2 sin(pi rho / 6), made positive semidefinite

    >>> np.round(copula_of(np.array([[1.0, 1.0], [2.0, 3.0], [3.0, 2.0]])), 4)
    array([[1.    , 0.5176],
           [0.5176, 1.    ]])
    """
    copula = 2 * np.sin(np.pi / 6 * correlation(standardised(ranks, rows=rows).z, rows=rows))
    np.fill_diagonal(copula, 1.0)
    return nearest_correlation(copula)


def in_drawn_order(x: Array, missing: NDArray[np.bool_], keys: Array, *, rows: Rows = HERE, rng: Stream) -> Array:
    """The values of each column in the order of its keys, ties of keys at random; missing cells stay what they are.

    A missing cell only stands at its column's mean meanwhile: that is no value to hand on.
    """
    ties = [rng.bits(x.shape[0]) for _ in range(x.shape[1])]

    def put_back(j: int, rows: Rows) -> Array:
        there = ~missing[:, j]
        column = x[:, j].copy()
        column[there] = rows.in_order_of(x[there, j], keys[there, j], ties[j][there])
        return column

    made = rows.each(put_back, {str(j): j for j in range(x.shape[1])}, size=x.size)
    return np.asfortranarray(np.column_stack(made))


def regressors(given: Array, *, rows: Rows = HERE) -> Array:
    """Orthonormal columns that span 1 and the given columns; what depends on others adds none.

    Gram-Schmidt, the column with the longest rest next, each twice: as exact as singular values, sums as above.
    """
    here = given.shape[0]
    n = rows.count(here)
    basis = [np.full(here, n**-0.5)]
    left = list(standardised(given, rows=rows).z.T)
    while left and len(basis) < n:
        left = _without(left, basis[-1], rows)
        lengths = _lengths(left, rows)
        longest = int(np.argmax(lengths))
        if lengths[longest] <= NEGLIGIBLE * n**0.5:
            break
        again = [left.pop(longest) / lengths[longest]]
        for each in basis:
            again = _without(again, each, rows)
        basis.append(again[0] / _lengths(again, rows)[0])
    return np.asfortranarray(np.column_stack(basis))


def _without(columns: list[Array], unit: Array, rows: Rows) -> list[Array]:
    """Columns less what they have of a column of length 1."""
    shares = rows.sums([partial(_product, column, unit) for column in columns], size=len(columns) * unit.size)
    return [column - share * unit for column, share in zip(columns, shares, strict=True)]


def _lengths(columns: list[Array], rows: Rows) -> list[float]:
    squares = rows.sums([partial(_product, column, column) for column in columns], size=sum(map(len, columns)))
    return [float(np.sqrt(each)) for each in squares]


def fitted(y: Array, basis: Array, *, rows: Rows = HERE) -> Array:
    """What regression on the orthonormal columns makes of y; y minus it are the residuals."""
    return combined(basis, gram(basis, y, rows=rows))


def turned(residuals: Array, draws: Array, basis: Array, *, rows: Rows = HERE) -> Array:
    """Random residuals with exactly the products (covariances) of the given ones, orthogonal to the basis too.

    With E'E = F'F and O orthonormal, orthogonal to the basis and uniformly distributed, it is O F: E in a random
    rotation that leaves the basis alone. `draws` are as many standard normal columns as F needs rows: as many as E
    has columns, but no more than the records leave free. Stacks of tables are turned table by table.
    """
    factor = _factor(residuals, needed=draws.shape[-1], rows=rows)
    return combined(_frame(draws, basis, rows), factor)


def scattered(residuals: Array, draws: Array, *, rows: Rows = HERE) -> Array:
    """Normal residuals with the population covariance of the given ones in expectation; draws as for `turned`."""
    factor = _factor(residuals, needed=draws.shape[-1], rows=rows)
    return combined(draws, factor / rows.count(residuals.shape[-2]) ** 0.5)


def _factor(residuals: Array, *, needed: int, rows: Rows) -> Array:
    """F with F'F = E'E: the symmetric root, or one with fewer rows where the records leave no more free."""
    squares = gram(residuals, residuals, rows=rows)
    lengths: Array = np.sqrt(np.diagonal(squares, axis1=-2, axis2=-1))[..., None, :]
    unit = residuals / np.where(lengths > 0, lengths, 1.0)
    values, vectors = _eigen(gram(unit, unit, rows=rows))
    if needed == residuals.shape[-1]:
        return _rebuilt(np.sqrt(values), vectors) * lengths
    # an eigenvector has no sign of its own: its first entry of some size is made positive, whatever the library gives
    sizeable = np.abs(vectors) > 0.5 * vectors.shape[-1] ** -0.5
    first = np.take_along_axis(vectors, np.argmax(sizeable, axis=-2, keepdims=True), axis=-2)
    factor = np.swapaxes(vectors * np.sign(first) * np.sqrt(values)[..., None, :], -1, -2)
    return factor[..., -needed:, :] * lengths


def _frame(draws: Array, basis: Array, rows: Rows) -> Array:
    """The orthonormal columns nearest to the draws and orthogonal to the basis: of normal draws, uniformly distributed.

    The inverse root of their products comes close; Newton's step O (3 - O'O) / 2 takes away what rounding left.
    """
    rest = draws - fitted(draws, basis, rows=rows)
    values, vectors = np.linalg.eigh(gram(rest, rest, rows=rows))
    least = NEGLIGIBLE * values[..., -1:]
    inverse = 1 / np.sqrt(np.maximum(values, np.where(least > 0, least, 1.0)))
    frame = combined(rest, _rebuilt(inverse, vectors))
    unit = np.eye(draws.shape[-1])
    for _ in range(_ROUNDS):
        frame = frame - fitted(frame, basis, rows=rows)
        products = gram(frame, frame, rows=rows)
        if np.max(np.abs(products - unit), initial=0.0) < 1e-14 * len(unit):
            break
        frame = combined(frame, 1.5 * unit - 0.5 * products)
    return frame
