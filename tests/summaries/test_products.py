"""Products of whole numbers are exact, and so is what is made of them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.canonical import crossed, orthonormal, squared_correlations
from rankveil.ranks import average_ranks
from rankveil.summaries.correlations import RankBasis, RankCanonical, RankProducts, rank_products, spearman
from rankveil.summaries.products import cross_products, paired_products


def in_python(a: Any, b: Any, centre: int) -> list[list[int]]:
    rows = [
        ([int(v) - centre for v in left], [int(v) - centre for v in right]) for left, right in zip(a, b, strict=True)
    ]
    return [[sum(left[i] * right[j] for left, right in rows) for j in range(b.shape[1])] for i in range(a.shape[1])]


tables = st.integers(0, 12).flatmap(
    lambda n: st.tuples(
        *(
            st.lists(st.lists(st.integers(-(2**40), 2**40), min_size=3, max_size=3), min_size=n, max_size=n)
            for _ in range(2)
        )
    )
)


@settings(deadline=None)
@given(both=tables, centre=st.integers(-(2**40), 2**40))
def test_products_are_exact(both: Any, centre: int) -> None:
    a, b = (np.array(each, np.int64).reshape(-1, 3) for each in both)
    assert cross_products(a, b, centre=centre).tolist() == in_python(a, b, centre)
    assert cross_products(a, centre=centre).tolist() == in_python(a, a, centre)
    assert paired_products(a, b, centre=centre).tolist() == [in_python(a, b, centre)[j][j] for j in range(3)]


def test_sums_beyond_64_bits_are_exact() -> None:
    a = np.random.default_rng(0).integers(0, 2**32, (20_000, 2), dtype=np.uint32)
    found = cross_products(a, centre=2**31)
    assert found[0, 0] > 2**63
    assert found.tolist() == in_python(a, a, 2**31)


def test_sums_of_very_many_ranks_are_exact() -> None:
    """Ranks of ten million records, of which some thousand are here: too large for sums of products, so digits."""
    n = 10_000_000
    rng = np.random.default_rng(4)
    ranks = rng.integers(1, n + 1, (7_000, 2)) / 1.0
    rows = rng.permutation(7_000)
    doubled = (2 * ranks).astype(np.int64)
    wanted = in_python(doubled, doubled[rows], n + 1)
    assert cross_products(ranks, ranks, times=2, centre=n + 1, rows=rows, reach=n).tolist() == wanted
    assert cross_products(doubled, doubled[rows], centre=n + 1).tolist() == wanted
    own = cross_products(ranks, times=2, centre=n + 1, reach=n)
    assert own.tolist() == in_python(doubled, doubled, n + 1)
    assert own[0, 0] > 2**53


@pytest.mark.parametrize("n", [70_000, 250_000])  # several tasks, and several sums in each
def test_products_of_many_ranks(n: int) -> None:
    rng = np.random.default_rng(n)
    ranks = np.column_stack([rng.permutation(n) + 1.0 for _ in range(2)])
    found = rank_products(np.asfortranarray(ranks))
    assert found[0, 0] == found[1, 1] == n * (n * n - 1) // 3
    halves = (ranks - (n + 1) / 2).astype(np.longdouble)
    assert float(found[0, 1]) == pytest.approx(float(4 * np.sum(halves[:, 0] * halves[:, 1])), rel=1e-9)
    differences = ((ranks[:, 0] - ranks[:, 1]).astype(np.int64) ** 2).sum()
    assert found[0, 1] == found[0, 0] - 2 * int(differences)  # Spearman's formula


def test_products_of_parts_add_up_in_any_order() -> None:
    rng = np.random.default_rng(1)
    ranks = np.column_stack([rng.permutation(30_000) for _ in range(3)]) * 2 + 2
    whole = cross_products(ranks, centre=30_001)
    parts = [cross_products(part, centre=30_001) for part in np.split(ranks, [10, 9_000, 29_000])]
    for order in ((0, 1, 2, 3), (3, 1, 0, 2)):
        assert (sum((parts[k] for k in order[1:]), parts[order[0]]) == whole).all()


def test_other_layouts_and_types_give_the_same() -> None:
    a = np.random.default_rng(2).integers(0, 1000, (6_000, 3))
    wanted = cross_products(a)
    for other in (np.asfortranarray(a), a.astype(np.uint32), a.astype(np.int32), a[::1]):
        assert (cross_products(other) == wanted).all()
    assert (cross_products(np.repeat(a, 2, axis=0)[::2]) == wanted).all()


def test_numbers_that_cannot_be_exact_are_refused() -> None:
    with pytest.raises(ValueError, match="2\\^53"):
        cross_products(np.array([[2**60]]))
    with pytest.raises(ValueError, match="as many"):
        cross_products(np.ones((2, 1), int), np.ones((3, 1), int))


def ranks_of(n: int, *, seed: int, constant: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 9, (n, 3)).astype(float)
    x = np.column_stack((x, x[:, 0]))  # the last one depends on the first
    y = np.round(x + rng.normal(size=x.shape))
    if constant:
        x[:, 1], y[:, 2] = 1.0, 2.0
    return average_ranks(x), average_ranks(y)


def doubled(ranks: Any) -> Any:
    return np.rint(2 * ranks).astype(np.int64)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_canonical_correlations_are_those_of_the_records(seed: int, constant: bool) -> None:
    x, y = ranks_of(300, seed=seed, constant=constant)
    found = RankProducts.of(doubled(x), doubled(y), records=300)
    first, second = orthonormal(x), orthonormal(y)
    assert found.x.kept == first.kept
    assert found.y.kept == second.kept
    assert found.x.dropped == first.dropped
    assert found.canonical.squared == pytest.approx(squared_correlations(crossed(first.q, second.q)), abs=1e-12)
    for basis, wanted in ((found.x, first), (found.y, second)):
        assert basis.spread == pytest.approx(wanted.spread, rel=1e-13)
        assert np.abs(basis.r) == pytest.approx(np.abs(wanted.r), abs=1e-7)
        assert basis.r.T @ basis.r == pytest.approx(basis.correlation, abs=1e-13)
        assert basis.correlation == pytest.approx(wanted.r.T @ wanted.r, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_tables_in_memory_and_in_parts_give_the_same_bits(seed: int) -> None:
    x, y = ranks_of(300, seed=seed)
    parts = [
        RankProducts.of(doubled(a), doubled(b), records=300)
        for a, b in zip(np.split(x, [7, 200]), np.split(y, [7, 200]), strict=True)
    ]
    found, wanted = parts[2].merged(parts[0]).merged(parts[1]).canonical, RankCanonical.of_ranks(x, y)
    assert np.array_equal(found.squared, wanted.squared)
    for one, other in ((found.x, wanted.x), (found.y, wanted.y)):
        assert np.array_equal(one.covariance, other.covariance)
        assert np.array_equal(one.r, other.r)


def test_the_covariance_is_in_units_of_the_largest_spread() -> None:
    ranks = average_ranks(np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 1.0], [2.0, 3.0]]))
    # centred: -1, -1, 1, 1 and -1, 0.5, -1, 1.5
    assert RankBasis.of_ranks(ranks).covariance == pytest.approx(np.array([[4.0, 1.0], [1.0, 4.5]]) / 4.5, abs=1e-15)
    assert not RankBasis.of_ranks(np.full((4, 2), 2.5)).covariance.any()


few = st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=2, max_size=15).map(
    lambda rows: average_ranks(np.asfortranarray(rows, dtype=np.float64))
)


@given(few, st.integers(0, 2))
def test_without_a_column_is_a_basis_of_the_others(ranks: Any, j: int) -> None:
    basis, others = RankBasis.of_ranks(ranks), RankBasis.of_ranks(np.delete(ranks, j, axis=1))
    weights = basis.without(j)
    assert weights.shape[1] == len(others.kept)
    assert weights.T @ weights == pytest.approx(np.eye(weights.shape[1]), abs=1e-12)
    rest = np.delete(basis.r, j, axis=1)
    assert weights @ (weights.T @ rest) == pytest.approx(rest, abs=1e-7)


@given(few)
def test_a_table_correlates_with_itself(ranks: Any) -> None:
    both = RankCanonical.of_ranks(ranks, ranks)
    assert both.products == pytest.approx(np.eye(len(both.x.kept)), abs=1e-14)
    assert both.squared == pytest.approx(np.ones(len(both.x.kept)), abs=1e-14)


def test_columns_that_nearly_depend_on_each_other_lose_no_digits() -> None:
    """One swap of neighbours among n ranks: 1 - rho^2 is about 12 / n^3, far below the rounding of a correlation."""
    n = 2_000
    x = np.arange(1, n + 1)
    y = x.copy()
    y[[0, 1]] = y[[1, 0]]
    found = RankProducts.of(2 * x[:, None], 2 * y[:, None], records=n)
    rho = 1 - Fraction(6 * 2, n * (n * n - 1))  # Spearman's formula
    assert found.canonical.squared[0] == pytest.approx(float(rho**2), abs=1e-15)
    both = RankProducts.of(2 * np.column_stack((x, y)), 2 * np.column_stack((x, y)), records=n)
    # what is left of y beside x is 1 - rho^2 of it, more than 1e-10: it stays in the basis
    assert both.x.kept == (0, 1)
    assert both.x.r[1, 1] == pytest.approx(math.sqrt(1 - rho**2), rel=1e-12)


def test_spearman_of_reverse_mapped_ranks() -> None:
    x, y = ranks_of(200, seed=9, constant=True)
    z = np.random.default_rng(0).permuted(x, axis=0)
    found = RankProducts.of(doubled(x), doubled(y), {j: doubled(z)[:, j] for j in (0, 1, 3)}, records=200)
    assert found.spearman[1] is None
    for j in (0, 3):
        assert found.spearman[j] == pytest.approx(np.corrcoef(x[:, j], z[:, j])[0, 1], abs=1e-14)
    in_memory = spearman(x, z)
    assert [in_memory[j] for j in (0, 1, 3)] == [found.spearman[j] for j in (0, 1, 3)]
    assert spearman(x[:, :1], x[:, :1]) == (1.0,)
    turned = average_ranks(np.arange(1001.0))[:, None]
    assert spearman(turned, 1002 - turned) == (-1.0,)


@pytest.mark.parametrize("cuts", [[], [1], [50, 120, 121]])
def test_products_of_partitions_are_those_of_the_table(cuts: list[int]) -> None:
    x, y = (doubled(each) for each in ranks_of(150, seed=3))
    whole = RankProducts.of(x, y, {0: y[:, 1]}, records=150)
    parts = [
        RankProducts.of(a, b, {0: b[:, 1]}, records=150)
        for a, b in zip(np.split(x, cuts), np.split(y, cuts), strict=True)
    ]
    merged = parts[-1]
    for part in parts[:-1]:
        merged = merged.merged(part)
    assert (merged.products == whole.products).all()
    assert (merged.reversed == whole.reversed).all()
    with pytest.raises(ValueError, match="same ranking"):
        whole.merged(RankProducts.of(x, y, records=151))
