"""Linear algebra of tables against plain formulas, on singular matrices, and on numbers at the edge."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from rankveil.multivariate import (
    combined,
    correlation,
    covariance,
    fitted,
    gram,
    nearest_correlation,
    normal_draws,
    pseudo_inverse,
    regressors,
    root,
    scattered,
    standardised,
    turned,
)
from rankveil.seeds import Seed

FALSE_ALARM = 1e-6

Array = NDArray[np.float64]


def table(n: int, m: int, *, rank: int | None = None, seed: int = 0) -> Array:
    """Normal columns that span `rank` dimensions."""
    rng = np.random.default_rng(seed)
    rank = m if rank is None else rank
    return np.asfortranarray(rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m)))


def test_standardised_columns_of_any_size() -> None:
    a = np.array([30.0, 10.0, 50.0, 20.0, 40.0])
    x = np.column_stack([a, a * 1e-300, a * 1e300, np.full(5, 0.1), (a - 30) * 8.5e306])
    made = standardised(x)
    for j in (0, 1, 2, 4):
        assert np.allclose(made.z[:, j], (a - 30) / np.sqrt(200), rtol=1e-14, atol=1e-15)
    assert not made.z[:, 3].any()
    assert np.allclose(made.mean, [30, 30e-300, 30e300, 0.1, 0])
    assert np.allclose(made.spread / [1, 1e-300, 1e300, 1, 8.5e306], np.sqrt(200) * np.array([1, 1, 1, 0, 1]))
    assert np.allclose(made.restored(made.z)[x != 0] / x[x != 0], 1)


@given(st.integers(1, 40), st.integers(1, 6), st.integers(0, 10**6))
def test_covariances_products_and_sums_are_those_of_the_formulas(n: int, m: int, seed: int) -> None:
    x, y = table(n, m, seed=seed), table(n, 3, seed=seed + 1)
    assert np.allclose(covariance(x), np.cov(x.T, bias=True), atol=1e-12)
    assert np.allclose(gram(x, y), x.T @ y)
    assert np.array_equal(gram(x, x), gram(x, x).T)
    weights = np.random.default_rng(seed).normal(size=(m, 4))
    assert np.allclose(combined(x, weights), x @ weights)
    stack = np.stack([x, 2 * x])
    assert np.allclose(gram(stack, stack), np.stack([x.T @ x, 4 * x.T @ x]))
    assert np.allclose(combined(stack, np.stack([weights, weights])), stack @ weights)


def test_a_constant_column_correlates_with_nothing() -> None:
    x = np.column_stack([np.arange(5.0), np.full(5, 3.0)])
    assert correlation(standardised(x).z).tolist() == [[1.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("rank", [1, 3, 5])
def test_root_and_inverse_of_a_matrix_that_may_be_singular(rank: int) -> None:
    c = np.cov(table(50, 5, rank=rank), rowvar=False)
    half, inverse = root(c), pseudo_inverse(c)
    assert np.allclose(half @ half, c)
    assert np.array_equal(half, half.T)
    assert np.linalg.matrix_rank(half) == rank
    assert np.allclose(inverse, np.linalg.pinv(c, rcond=1e-10))


def test_root_of_nothing_and_of_zeros() -> None:
    assert root(np.empty((0, 0))).shape == (0, 0)
    assert pseudo_inverse(np.empty((0, 0))).shape == (0, 0)
    assert nearest_correlation(np.empty((0, 0))).shape == (0, 0)
    assert not root(np.zeros((2, 2))).any()
    assert not pseudo_inverse(np.zeros((2, 2))).any()


def test_the_nearest_correlation_matrix_is_the_published_one() -> None:
    # Higham (2002), "Computing the nearest correlation matrix", section 4: to four digits
    c = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    made = nearest_correlation(c)
    assert np.allclose(made, [[1, 0.7607, 0.1573], [0.7607, 1, 0.7607], [0.1573, 0.7607, 1]], atol=5e-5)
    assert np.linalg.eigvalsh(made)[0] > -1e-12
    assert np.diag(made).tolist() == [1.0, 1.0, 1.0]


def test_a_correlation_matrix_is_its_own_nearest() -> None:
    c = np.corrcoef(table(30, 4, rank=2), rowvar=False)
    assert np.array_equal(nearest_correlation(c), c)


@given(st.integers(2, 40), st.integers(0, 6), st.integers(0, 6), st.integers(0, 10**6))
def test_regression_is_least_squares(n: int, m: int, rank: int, seed: int) -> None:
    x, y = table(n, m, rank=rank, seed=seed) * 1e6 + 5, table(n, 2, seed=seed + 1)
    basis = regressors(x)
    assert np.allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    assert basis.shape[1] == min(1 + min(rank, m), n)
    design = np.column_stack([np.ones(n), standardised(x).z])
    assert np.allclose(fitted(y, basis), design @ np.linalg.lstsq(design, y, rcond=1e-10)[0], atol=1e-7)


def test_columns_that_nearly_depend_on_each_other_are_told_apart() -> None:
    a, e = np.random.default_rng(0).normal(size=(2, 1000))
    x = np.column_stack([a, a + 1e-9 * e, 2 * a])
    basis = regressors(x)
    assert basis.shape[1] == 3
    assert np.allclose(basis.T @ basis, np.eye(3), atol=1e-14)


@given(st.integers(2, 30), st.integers(1, 8), st.integers(1, 8), st.integers(0, 10**6))
def test_turned_residuals_have_the_same_covariance_and_stay_orthogonal(n: int, m: int, rank: int, seed: int) -> None:
    e = table(n, m, rank=rank, seed=seed)
    e[:, -1] *= 1e-9  # a short column is as exact as a long one
    basis = regressors(np.empty((n, 0)))
    e = e - fitted(e, basis)
    draws = normal_draws(Seed.of(seed).stream("a"), (n, min(n - 1, m)))
    made = turned(e, draws, basis)
    lengths = np.sqrt(np.sum(e * e, axis=0))
    assert np.allclose(made.T @ made / np.outer(lengths, lengths), e.T @ e / np.outer(lengths, lengths), atol=1e-12)
    assert np.allclose(basis.T @ made / lengths, 0, atol=1e-12)
    stack = turned(np.stack([e, 3 * e]), np.stack([draws, draws]), np.stack([basis, basis]))
    assert np.allclose(stack, [made, 3 * made], atol=1e-9 * np.abs(made).max())


def test_the_direction_of_turned_residuals_is_uniform() -> None:
    # one column of three records: residuals lie on a circle, and no angle is preferred
    e = np.array([[2.0], [-1.0], [-1.0]])
    basis = regressors(np.empty((3, 0)))
    made = np.array([turned(e, normal_draws(Seed.of(k).stream("a"), (3, 1)), basis)[:, 0] for k in range(4_000)])
    angle = np.arctan2(made[:, 1] - made[:, 2], np.sqrt(3) * made[:, 0])
    assert stats.kstest((angle + np.pi) / (2 * np.pi), "uniform").pvalue > FALSE_ALARM


def test_scattered_residuals_have_the_covariance_in_expectation() -> None:
    n = 40_000
    e = table(n, 3, rank=2)
    made = scattered(e, normal_draws(Seed.of(1).stream("a"), (n, 3)))
    wanted = e.T @ e / n
    found = made.T @ made / n
    scale = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    assert np.all(np.abs(found - wanted) / scale < 5.5 * np.sqrt(2 / n))
    assert np.linalg.matrix_rank(made) == 2


def test_draws_are_those_of_the_stream_column_by_column() -> None:
    draws, stream = normal_draws(Seed.of(1).stream("a"), (50, 3)), Seed.of(1).stream("a")
    for j in range(3):
        assert np.array_equal(draws[:, j], stream.normal(50))


BYTES = """
import os, sys
if sys.argv[1] == "1" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import hashlib
import numpy as np
from rankveil.catalogue import get_method
from rankveil.seeds import Seed

rng = np.random.default_rng(0)
x = np.asfortranarray(np.exp(np.einsum("ij,jk", rng.normal(size=(1_500, 70)), rng.normal(size=(70, 70))) / 8))
for name in ("correlated_noise", "hohne_noise", "shuffle", "ipso", "microhybrid", "mdav"):
    method = get_method(name)
    wanted = {"x": x[:, :66], "given": x[:, 66:], "missing": np.isnan(x[:, :66])}
    made = method(*(wanted[need] for need in method.needs), rng=Seed.of(1).stream("a"))
    print(name, hashlib.sha256(np.asarray(getattr(made, "values", made)).tobytes()).hexdigest())
"""


@pytest.mark.thorough
def test_the_number_of_threads_changes_no_byte() -> None:
    made = []
    for threads in ("1", "2"):
        settings = {f"{library}_NUM_THREADS": threads for library in ("OPENBLAS", "MKL", "OMP")}
        run = subprocess.run(
            [sys.executable, "-c", BYTES, threads],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        made.append(run.stdout)
    assert made[0] == made[1]
