"""Laplace noise on five records, its scale, its bounds, and what is guaranteed and when."""

from __future__ import annotations

import datetime as dt
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

import rankveil as rv
from rankveil.catalogue import get_method
from rankveil.errors import ParameterError
from rankveil.methods.laplace_dp import mechanism, widest
from rankveil.plans import Plan
from rankveil.seeds import Seed

FALSE_ALARM = 1e-6
SIGMAS = 4.9  # two-sided, a false alarm in a million

laplace_dp = get_method("laplace_dp")
X = np.array([30.0, 10.0, 50.0, 20.0, 40.0])


def masked(x: Any, *, attributes: int = 1, seed: int = 1, **parameters: Any) -> Any:
    return laplace_dp(x, rng=Seed.of(seed).stream("a"), attributes=attributes, **parameters)


def has_scale(noise: Any, scale: float) -> bool:
    """Whether it is Laplace noise of that scale: the whole distribution, and the sum of sizes, which is gamma."""
    size = float(np.sum(np.abs(noise))) / scale
    tails = stats.gamma.cdf(size, noise.size), stats.gamma.sf(size, noise.size)
    return bool(stats.kstest(noise / scale, "laplace").pvalue > FALSE_ALARM and 2 * min(tails) > FALSE_ALARM)


def test_five_records_by_hand() -> None:
    # between 15 and 45, two columns in the step: the scale is 2 * 30 / 4 = 15; 10 and 50 are clamped
    made = masked(X, epsilon=4.0, lower=15.0, upper=45.0, fast=True, attributes=2)
    u = Seed.of(1).stream("a").random(5)
    assert np.allclose(made.values, np.array([30.0, 15, 45, 20, 40]) + 15 * stats.laplace.ppf(u), rtol=1e-13)
    assert made.counts == {"clamped": 2}
    assert made.notes == ("for studies: floating-point noise, no guarantee against floating-point attacks",)


def test_with_much_budget_the_clamped_values_are_left() -> None:
    made = masked(X, epsilon=1e13, lower=15.0, upper=45.0)
    assert np.allclose(made.values, [30, 15, 45, 20, 40], atol=1e-9)
    assert made.counts == {"clamped": 2}
    assert made.notes == ()


@pytest.mark.parametrize("fast", [True, False])
def test_noise_is_laplace_with_the_declared_scale(fast: bool) -> None:
    x = np.random.default_rng(0).exponential(5.0, 20_000)
    made = masked(x, epsilon=0.5, lower=-2.0, upper=8.0, attributes=3, fast=fast)
    assert made.counts == {"clamped": int(np.sum(x > 8))}
    noise = made.values - np.clip(x, -2, 8)
    assert has_scale(noise, 3 * 10 / 0.5)
    assert not has_scale(noise, 3 * 10 / 0.5 * 1.08)  # eleven standard deviations: opendp draws anew each time
    assert abs(np.corrcoef(noise, x)[0, 1]) < SIGMAS / np.sqrt(x.size)


@pytest.mark.parametrize("fast", [True, False])
def test_the_budget_is_shared_by_the_columns_of_the_step(fast: bool) -> None:
    zeros = pa.table({name: np.zeros(8_000) for name in "ABC"})
    given: dict[str, Any] = {"epsilon": 2.0, "lower": 0.0, "upper": 1.0, "upper.B": 7.0, "epsilon.C": 0.25}
    made = rv.mask(zeros, "laplace_dp", columns=["A", "B", "C"], seed=1, fast=fast, **given).data
    noise = {name: made[name].to_numpy() for name in "ABC"}
    for name, scale in {"A": 3 * 1 / 2.0, "B": 3 * 7 / 2.0, "C": 3 * 1 / 0.25}.items():
        assert has_scale(noise[name], scale)
    assert abs(np.corrcoef(noise["A"], noise["B"])[0, 1]) < SIGMAS / np.sqrt(8_000)
    alone = rv.mask(zeros, "laplace_dp", columns=["A"], seed=1, epsilon=2.0, lower=0.0, upper=1.0, fast=fast)
    assert has_scale(alone.data["A"].to_numpy(), 1 / 2.0)


def test_a_release_draws_its_own_noise_and_says_so() -> None:
    data = pa.table({"A": X})
    given: dict[str, Any] = {"epsilon": 1.0, "lower": 0.0, "upper": 60.0, "seed": 1}
    one, other = (rv.mask(data, "laplace_dp", **given) for _ in range(2))
    assert not one.data.equals(other.data)
    assert one.manifest["steps"][0]["facts"]["reproducible"] is False
    study, again = (rv.mask(data, "laplace_dp", fast=True, **given) for _ in range(2))
    assert study.data.equals(again.data)
    assert study.manifest["steps"][0]["facts"]["reproducible"] is True
    assert any("for studies" in note for note in study.notes)


POSITIVE = st.floats(1e-6, 1e6)


@given(POSITIVE, POSITIVE, st.integers(1, 40))
def test_opendp_grants_each_column_its_share_and_not_a_digit_more(width: float, epsilon: float, columns: int) -> None:
    share, scale = Fraction(epsilon) / columns, columns * width / epsilon
    granted = mechanism("laplace_dp", scale, sensitivity=width, epsilon=share).map(width)
    assert Fraction(granted) <= share
    assert granted > float(share) * (1 - 1e-14), "the noise is not larger than it must be"


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_the_width_of_the_bounds_is_never_rounded_down(lower: float, upper: float) -> None:
    assume(lower < upper)
    exact = Fraction(upper) - Fraction(lower)
    assert exact <= Fraction(widest(lower, upper)) <= exact * (1 + Fraction(1, 2**50))


def test_missing_cells_do_not_shift_the_noise_of_the_others() -> None:
    rows = np.array([0, 1, 4])
    whole = masked(X, epsilon=1.0, lower=0.0, upper=60.0, fast=True).values
    stream = Seed.of(1).stream("a").at(rows)
    part = laplace_dp(X[rows], rng=stream, epsilon=1.0, lower=0.0, upper=60.0, fast=True).values
    assert np.array_equal(part, whole[rows])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, r"^column INCOME: laplace_dp needs lower and upper, known without looking at the data: --set lower\."),
        ({"lower": 0}, "^column INCOME: laplace_dp needs upper, .*--set lower.COLUMN=0 --set upper.COLUMN=200000"),
        ({"upper": 9}, "^column INCOME: laplace_dp needs lower,"),
        ({"lower": 200000, "upper": 0}, r"^column INCOME: laplace_dp: lower \(200000\) must be below upper \(0\)"),
        ({"lower": 5, "upper": 5}, "must be below"),
        ({"lower": -1.7e308, "upper": 1.7e308}, "^column INCOME: laplace_dp: the noise would be too large"),
        ({"lower": 0, "upper": 1, "epsilon": 1e-320}, "too large for a number; raise epsilon or narrow the bounds"),
        ({"lower": 0, "upper": 9, "epsilon": 0}, "^laplace_dp: epsilon must be a number above 0, not 0"),
        ({"lower": 0, "bounds": "data"}, "^column INCOME: .* leave lower and upper out"),
        ({"bounds": "guessed"}, "given or data"),
    ],
    ids=str,
)
def test_what_cannot_be_masked_is_said_with_its_remedy(given: dict[str, Any], text: str) -> None:
    with pytest.raises(rv.ParameterError, match=text):
        rv.mask(pa.table({"INCOME": X}), "laplace_dp", **{"epsilon": 1.0, **given})


def test_one_column_without_bounds_is_named() -> None:
    data = pa.table({"AGE": X, "INCOME": X})
    with pytest.raises(rv.ParameterError, match=r"^column INCOME: laplace_dp needs upper"):
        rv.mask(data, "laplace_dp", epsilon=1.0, lower=0.0, upper={"AGE": 60.0})


def test_without_opendp_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(rv.ParameterError, match=r"not installed: pip install 'rankveil\[dp\]', or fast=true"):
        masked(X, epsilon=1.0, lower=0.0, upper=60.0)
    assert masked(X, epsilon=1.0, lower=0.0, upper=60.0, fast=True).values.shape == X.shape


def test_bounds_from_the_data_are_for_studies_and_give_no_guarantee() -> None:
    x = np.random.default_rng(0).uniform(0.0, 10.0, 10_000)
    release = rv.mask(pa.table({"A": x}), "laplace_dp", epsilon=2.0, bounds="data", fast=True, seed=1)
    assert has_scale(release.data["A"].to_numpy() - x, 1.5 * x.max() / 2.0)
    assert release.manifest["guarantees"] == []
    (flag,) = release.manifest["disclosive_parameters"]
    assert flag.startswith("laplace_dp: bounds was taken from the original in A: no guarantee holds")
    assert release.manifest["steps"][0]["facts"]["local"] is False
    assert str(x.max()) not in release.manifest.to_json()
    with pytest.raises(rv.ParameterError, match=r"^column A: .* columns without negative values; give lower and upper"):
        rv.mask(pa.table({"A": x - 1}), "laplace_dp", epsilon=2.0, bounds="data")
    with pytest.raises(rv.ParameterError, match=r"^there is no correction for laplace_dp with bounds=data"):
        rv.correct(release.data, release.manifest)
    zeros = masked(np.zeros(4), epsilon=1.0, bounds="data")
    assert zeros.values.tolist() == [0.0] * 4
    assert "no room for noise" in zeros.notes[-1]


def guarantees(plan: Plan, **columns: Any) -> list[str]:
    data = pa.table(columns or {"A": X, "B": 2 * X})
    made: list[str] = rv.mask(data, plan, seed=1).manifest["guarantees"]
    return made


def test_the_guarantee_names_budget_neighbours_and_what_is_left_out() -> None:
    plan = Plan.of("laplace_dp", epsilon=1.5, lower=0, upper=100)
    assert guarantees(plan) == [
        "columns A, B: differential privacy with epsilon = 1.5 in all, between tables of as many records that differ "
        "in one record; which cells are missing and how many values were clamped is published as it is and not "
        "covered; the epsilons of several steps or releases on the same records add up"
    ]
    (study,) = guarantees(Plan.of("laplace_dp", epsilon=1.5, lower=0, upper=100, fast=True))
    assert "(for studies: floating-point noise, no guarantee against floating-point attacks)" in study
    # A spends 1 / 2 and B 3 / 2
    (both,) = guarantees(Plan.of("laplace_dp", **{"epsilon.A": 1, "epsilon.B": 3, "lower": 0, "upper": 100}))
    assert "epsilon = 2 in all" in both
    part = {"epsilon": 1, "lower.A": 0, "upper.A": 100, "bounds.B": "data"}
    (one,) = guarantees(Plan.of("laplace_dp", **part))
    assert one.startswith("column A: differential privacy")


def test_later_steps_that_look_at_the_original_undo_it() -> None:
    plan = Plan.of("laplace_dp", epsilon=1, lower=0, upper=100)
    for later in (
        plan.then("round", decimals=0),
        plan.then("clip", lower=0, upper=100),
        plan.then("record_shuffle"),
        plan.then("permute"),
    ):
        assert guarantees(later) == guarantees(plan)
    for later in (plan.then("reverse_map"), plan.then("rescale"), plan.then("clip"), plan.then("round")):
        assert guarantees(later) == []
    (rest,) = guarantees(plan.then("reverse_map", columns=["A"]))
    assert rest.startswith("column B: ")


def test_the_correction_is_the_inverse_of_what_the_noise_does() -> None:
    assert laplace_dp.correction is not None
    given = [
        {"epsilon": 2.0, "lower": 0.0, "upper": 5.0, "bounds": "given"},
        {"epsilon": 1.0, "lower": -1.0, "upper": 1.0, "bounds": "given"},
    ]
    released = np.array([[4.0 + 2 * 5.0**2, 1.0], [1.0, 9.0 + 2 * 4.0**2]])  # scales 2 * 5 / 2 and 2 * 2 / 1
    mean, corrected = laplace_dp.correction(np.array([1.0, 2.0]), released, given, attributes=2)
    assert mean.tolist() == [1.0, 2.0]
    assert np.allclose(corrected, [[4.0, 1.0], [1.0, 9.0]])
    _, below = laplace_dp.correction(np.zeros(2), np.eye(2), given, attributes=2)
    assert np.diag(below).tolist() == [1 - 50.0, 1 - 32.0]  # rv.correct says so and gives 0


def test_correct_recovers_the_moments_of_the_clamped_values() -> None:
    n = 20_000
    rng = np.random.default_rng(1)
    a = rng.normal(10.0, 2.0, n)
    b = 0.5 * a + rng.exponential(1.0, n)
    release = rv.mask(pa.table({"A": a, "B": b}), "laplace_dp", epsilon=20.0, lower=0.0, upper=12.0, fast=True, seed=2)
    made = rv.correct(release.data, release.manifest)
    clamped = np.clip([a, b], 0, 12)
    truth, scale = np.cov(clamped, bias=True), 2 * 12 / 20
    noise = 2 * scale**2
    for j in range(2):  # the variance of a squared Laplace variable is 20 scale^4
        spread = np.sqrt((4 * truth[j, j] * noise + 20 * scale**4) / n)
        assert abs(made.covariance[j, j] - truth[j, j]) < SIGMAS * spread
        assert abs(made.released_covariance[j, j] - truth[j, j]) > 5 * SIGMAS * spread
    cross = np.sqrt((truth[0, 0] * noise + truth[1, 1] * noise + noise**2) / n)
    assert abs(made.covariance[0, 1] - truth[0, 1]) < SIGMAS * cross
    assert np.all(np.abs(made.mean - clamped.mean(axis=1)) < SIGMAS * np.sqrt(noise / n))


def test_bounds_of_dates_are_dates() -> None:
    days = pa.array([dt.date(1950, 1, 1), dt.date(1990, 6, 1), dt.date(2020, 1, 1)])
    data = pa.table({"BORN": days})
    how: dict[str, Any] = {"epsilon": 1e9, "fast": True, "seed": 1}
    made = rv.mask(data, "laplace_dp", lower="1960-01-01", upper="2000-01-01", **how)
    assert made.data["BORN"].to_pylist() == [dt.date(1960, 1, 1), dt.date(1990, 6, 1), dt.date(2000, 1, 1)]
    with pytest.raises(ParameterError, match="dates and times have no numbers as limits: lower must be like"):
        rv.mask(data, "laplace_dp", lower=0, upper=20_000, **how)
    with pytest.raises(ParameterError, match=r"lower \(2000-01-01\) must be before upper \(1960-01-01\)"):
        rv.mask(data, "laplace_dp", lower="2000-01-01", upper="1960-01-01", **how)
    with pytest.raises(ParameterError, match="lower 1960-01-01 is a date or time, and the column holds numbers"):
        rv.mask(pa.table({"A": [1.0, 2.0]}), "laplace_dp", lower="1960-01-01", upper="2000-01-01", **how)
    with pytest.raises(ParameterError, match="no correction for laplace_dp of dates and times"):
        rv.correct(made.data, made.manifest)


@pytest.mark.parametrize("epsilon", [5e-324, 1.5e-323, 1e-310])
def test_an_epsilon_of_few_digits_ends(epsilon: float) -> None:
    # two columns share it: half of 5e-324 is no number, half of 1.5e-323 is one only when rounded
    data = pa.table({"A": [0.0, 1e-300], "B": [0.0, 1e-300]})
    how: dict[str, Any] = {"epsilon": epsilon, "lower": 0.0, "upper": 1e-300, "seed": 1}
    if epsilon > 5e-324:
        assert np.isfinite(rv.mask(data, "laplace_dp", **how).data["A"].to_numpy()).all()
    else:
        with pytest.raises(ParameterError, match="the noise would be too large"):
            rv.mask(data, "laplace_dp", **how)
