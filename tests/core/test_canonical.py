"""Orthonormal bases, canonical correlations and the order of tied records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.canonical import (
    by_digits,
    crossed,
    largest_by_chance,
    orthonormal,
    settled,
    squared_correlations,
)
from rankveil.ranks import average_ranks


def unit(x: Any) -> Any:
    """Columns around their means at length 1; a constant one is 0."""
    centred = x - x.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    return np.divide(centred, length, out=np.zeros_like(centred), where=length > 1e-12 * np.abs(x).max())


def tables(columns: int) -> Any:
    return st.lists(st.tuples(*[st.integers(0, 5)] * columns), min_size=2, max_size=15).map(
        lambda rows: np.asfortranarray(rows, dtype=np.float64)
    )


@given(tables(4))
def test_a_basis_is_orthonormal_and_gives_the_columns_back(x: Any) -> None:
    basis = orthonormal(x)
    k = len(basis.kept)
    assert np.allclose(basis.q.T @ basis.q, np.eye(k), atol=1e-13)
    assert np.allclose(basis.q.sum(axis=0), 0.0, atol=1e-12)
    assert np.allclose(basis.q @ basis.r, unit(x), atol=1e-7)
    assert k == np.linalg.matrix_rank(unit(x), tol=1e-6)
    assert sorted(basis.kept + basis.dropped) == [0, 1, 2, 3]


def test_columns_that_nearly_depend_on_each_other_still_give_an_orthonormal_basis() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(500, 1))
    x = np.hstack([a, a + 3e-5 * rng.normal(size=(500, 3)), 1e300 * rng.normal(size=(500, 1))])
    basis = orthonormal(x)
    assert basis.kept == (0, 1, 2, 3, 4)
    assert np.abs(basis.q.T @ basis.q - np.eye(5)).max() < 1e-13


def test_what_is_constant_or_depends_is_dropped() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 40))
    basis = orthonormal(np.column_stack([a, np.full(40, 0.1), b, a + 2 * b, -1e-200 * a]))
    assert len(basis.kept) == 2
    assert 1 in basis.dropped
    assert basis.spread[1] == 0.0


@pytest.mark.parametrize("n", [1, 100, 140_000])  # one part, and several on all cores
def test_products_are_summed_over_the_records(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b, rows = rng.normal(size=(n, 3)), rng.normal(size=(n, 4)), rng.permutation(n)
    assert np.allclose(crossed(a, b), a.T @ b, atol=1e-9)
    assert np.allclose(crossed(a, b, rows), a.T @ b[rows], atol=1e-9)
    assert crossed(a, b, np.arange(n)).tobytes() == crossed(a, b).tobytes()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_squared_correlations_solve_the_papers_equation(seed: int) -> None:
    # Domingo-Ferrer, Muralidhar and Bras-Amoros 2021, equations (1)
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(50, 3))
    y = x @ rng.normal(size=(3, 3)) + rng.normal(size=(50, 3))
    c = np.cov(x.T, y.T)
    solved = np.linalg.inv(c[:3, :3]) @ c[:3, 3:] @ np.linalg.inv(c[3:, 3:]) @ c[3:, :3]
    found = squared_correlations(crossed(orthonormal(x).q, orthonormal(y).q))
    assert np.allclose(found, sorted(np.linalg.eigvals(solved).real, reverse=True), atol=1e-8)


@pytest.mark.parametrize(("n", "p", "q"), [(60, 3, 3), (60, 2, 5), (200, 1, 4), (100, 13, 13)])
def test_the_largest_correlation_by_chance(n: int, p: int, q: int) -> None:
    rng = np.random.default_rng(p)
    drawn = []
    for _ in range(200):
        x, y = (orthonormal(np.argsort(rng.random((n, k)), axis=0) + 1.0) for k in (p, q))
        drawn.append(squared_correlations(crossed(x.q, y.q))[0])
    # 4.9 standard errors are broken once in a million; the approximation itself is good to about 0.005
    assert largest_by_chance(n, p, q) == pytest.approx(
        np.mean(drawn), abs=4.9 * float(np.std(drawn)) / 200**0.5 + 0.005
    )


def test_no_level_where_the_approximation_breaks_down() -> None:
    assert largest_by_chance(5, 2, 2) is None
    assert largest_by_chance(50, 2, 0) is None


@given(tables(3), st.permutations([0, 1, 2]))
def test_ties_are_settled_by_the_sum_of_ranks_then_by_the_ranks(x: Any, sequence: list[int]) -> None:
    rank = average_ranks(x)
    order = np.asfortranarray(np.argsort(rank, axis=0))
    made = settled(rank, order, sequence=sequence)
    for j in range(3):
        keys = [rank[:, k] for k in reversed(sequence)]
        expected = np.lexsort((*keys, rank.sum(axis=1), rank[:, j]))
        assert sorted(made[:, j]) == list(range(len(x)))
        assert np.array_equal(rank[made[:, j]], rank[expected])  # equal rows may stand in any order


def test_without_ties_the_order_is_the_one_given() -> None:
    rank = average_ranks(np.random.default_rng(0).normal(size=(30, 2)))
    order = np.argsort(rank, axis=0)
    assert settled(rank, order, sequence=(0, 1)) is order


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3), max_size=30))
def test_sorting_by_digits_is_sorting(words: list[int]) -> None:
    found = by_digits(np.arange(len(words)), np.array(words, dtype=np.uint64))
    assert list(found) == sorted(range(len(words)), key=lambda i: words[i])
