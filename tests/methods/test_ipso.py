"""IPSO on five records, what each variant keeps, few records, and dependent columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyarrow import csv
from scipy import stats
from scipy.special import ndtri

import rankveil as rv
from rankveil import masking
from rankveil.catalogue import get_method
from rankveil.errors import ParameterError
from rankveil.plans import Plan
from rankveil.seeds import CommonSeed, Seed
from rankveil.table import Table

FALSE_ALARM = 1e-6

Array = NDArray[np.float64]

ipso = get_method("ipso")
G = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
X = np.array([[2.0], [4.0], [5.0], [4.0], [5.0]])  # regression: 2.2 + 0.6 g, residuals -.8 .6 1 -.6 -.2, squares 2.4


def synthetic(x: Array, given: Array, *, seed: int = 1, **parameters: Any) -> Array:
    made: Array = ipso(x, given, rng=Seed.of(seed).stream("a"), **parameters).values
    return made


def relative(found: Array, wanted: Array) -> float:
    """The largest error of covariances, in parts of the standard deviations."""
    scale = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    return float(np.max(np.abs(found - wanted)[scale > 0] / scale[scale > 0], initial=0.0))


def test_five_records_by_hand() -> None:
    e = ndtri(Seed.of(1).stream("a").random(5))
    line = 2.2 + 0.6 * G[:, 0]
    sd = np.sqrt(2.4 / 5)
    g = G[:, 0] - 3  # the sum of its squares is 10
    rest = e - e.mean() - g * np.sum(g * e) / 10
    assert np.allclose(synthetic(X, G, variant="A")[:, 0], line + sd * e, rtol=1e-12)
    assert np.allclose(synthetic(X, G, variant="B")[:, 0], line + sd * rest, rtol=1e-12)
    assert np.allclose(synthetic(X, G)[:, 0], line + rest * np.sqrt(2.4 / np.sum(rest**2)), rtol=1e-12)


@drawn(
    n=st.integers(3, 40),
    m=st.integers(1, 6),
    rank=st.integers(1, 6),
    given=st.integers(0, 4),
    seed=st.integers(0, 10**6),
)
def test_c_keeps_means_and_covariances_even_with_few_records(n: int, m: int, rank: int, given: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.integers(-6, 6, m + given)
    whole = (rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m + given)) + 3) * sizes
    x, s = whole[:, :m], whole[:, m:]
    if n - min(rank, given) - 1 < 2:
        with pytest.raises(ParameterError, match="degrees of freedom"):
            synthetic(x, s)
        return
    made = np.hstack([synthetic(x, s, seed=seed), s])
    spread = whole.std(axis=0)
    # what numbers of the size of the column can tell apart
    digits = np.finfo(float).eps * np.max(np.abs(whole) / np.where(spread > 0, spread, 1.0))
    assert np.max(np.abs(made.mean(axis=0) - whole.mean(axis=0)) / np.abs(whole).max(axis=0)) < 1e-12
    assert (
        relative(np.atleast_2d(np.cov(made.T, bias=True)), np.atleast_2d(np.cov(whole.T, bias=True)))
        < 1e-10 + 100 * digits
    )


@pytest.mark.parametrize("given", ["", "AGI,FICA", "PTOTVAL", "PTOTVAL,POTHVAL"])
def test_c_keeps_means_and_covariances_of_singular_data(given: str, reference_data: Callable[[str], Path]) -> None:
    data, plan = csv.read_csv(reference_data("census")), Plan.of("ipso", given=given)
    drawn = masking.apply(Table(data), plan, seed=Seed.of(1), grid=False).values
    before = np.column_stack([data[name].to_numpy() for name in data.column_names]).astype(float)
    after = np.column_stack([drawn.get(name, column) for name, column in zip(data.column_names, before.T, strict=True)])
    assert np.allclose(after.mean(axis=0), before.mean(axis=0), rtol=1e-12)
    assert np.allclose(np.cov(after.T, bias=True), np.cov(before.T, bias=True), rtol=1e-9, atol=0)
    columns = [name for name in data.column_names if name not in given.split(",")]  # all: AFNLWGT reads as a weight
    release = rv.mask(data, Plan.of("ipso", given=given, columns=columns), seed=CommonSeed.of(1))
    assert release.manifest["mapping"] == "none"
    # released as whole numbers in another order, each at most half a unit from what was drawn
    released = np.column_stack([release.data[name].to_numpy() for name in data.column_names])
    assert np.array_equal(released, np.rint(released))
    assert np.max(np.abs(np.sort(released, axis=0) - np.sort(after, axis=0))) <= 0.5


def test_b_keeps_the_regression_and_not_the_residual_covariance() -> None:
    rng = np.random.default_rng(0)
    s = rng.normal(size=(200, 2))
    x = s @ rng.normal(size=(2, 3)) + rng.normal(size=(200, 3))
    design = np.column_stack([np.ones(200), s])
    wanted = np.linalg.lstsq(design, x, rcond=None)[0]
    for variant, keeps in (("A", False), ("B", True), ("C", True)):
        made = synthetic(x, s, variant=variant)
        assert np.allclose(np.linalg.lstsq(design, made, rcond=None)[0], wanted, atol=1e-12) is keeps
        assert np.allclose(np.cov(made.T), np.cov(x.T), rtol=1e-9) is (variant == "C")


@pytest.mark.parametrize("variant", ["A", "B", "C"])
def test_residuals_are_normal_with_the_residual_covariance_and_tell_nothing_of_the_original(variant: str) -> None:
    rng = np.random.default_rng(1)
    n = 30_000
    s = rng.normal(size=(n, 1))
    x = s @ np.array([[1.0, -2.0]]) + rng.exponential(size=(n, 2)) @ np.array([[1.0, 0.7], [0.0, 0.5]])
    design = np.column_stack([np.ones(n), s])
    line = design @ np.linalg.lstsq(design, x, rcond=None)[0]
    old, new = x - line, synthetic(x, s, variant=variant) - line
    limit = stats.norm.isf(FALSE_ALARM / 8)
    assert np.all(
        np.abs(old.T @ new / np.outer(np.linalg.norm(old, axis=0), np.linalg.norm(new, axis=0))) < limit / n**0.5
    )
    assert relative(new.T @ new / n, old.T @ old / n) < limit * np.sqrt(2 / n)
    for j in range(2):
        assert stats.kstest(new[:, j] / np.sqrt(np.mean(old[:, j] ** 2)), "norm").pvalue > FALSE_ALARM


def test_a_column_that_follows_from_the_given_ones_stays_and_is_counted() -> None:
    rng = np.random.default_rng(2)
    s = rng.normal(size=(50, 2))
    x = np.column_stack([s[:, 0] + s[:, 1], rng.normal(size=50), np.full(50, 0.1)])
    made = ipso(x, s, rng=Seed.of(1).stream("a"))
    assert np.array_equal(made.values[:, [0, 2]], x[:, [0, 2]])
    assert not np.any(made.values[:, 1] == x[:, 1])
    assert made.counts["unchanged"].tolist() == [50, 0, 0]
    assert made.notes == ("columns that follow from the given ones exactly and stay as they are: 1",)


@pytest.mark.parametrize(("n", "given", "variant"), [(1, 0, "A"), (1, 0, "C"), (2, 0, "C"), (4, 3, "B"), (5, 3, "C")])
def test_too_few_records_are_refused(n: int, given: int, variant: str) -> None:
    rng = np.random.default_rng(3)
    with pytest.raises(ParameterError, match="name fewer given columns or mask more records"):
        synthetic(rng.normal(size=(n, 2)), rng.normal(size=(n, given)), variant=variant)


def test_few_records_are_said_to_be_few() -> None:
    rng = np.random.default_rng(4)
    made = ipso(rng.normal(size=(4, 6)), np.empty((4, 0)), rng=Seed.of(1).stream("a"))
    assert made.notes == ("4 records leave only 3 degrees of freedom for 6 columns: little of them is hidden",)
