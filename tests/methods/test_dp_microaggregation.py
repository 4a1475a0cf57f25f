"""Differentially private microaggregation on five records, its groups, its insensitivity and its noise."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rankveil as rv
from rankveil.catalogue import get_method
from rankveil.methods.dp_microaggregation import corner_distance, insensitive_groups
from rankveil.plans import Plan
from rankveil.seeds import CommonSeed, Seed

FALSE_ALARM = 1e-6

dp_microaggregation = get_method("dp_microaggregation")
LOW, HIGH = [0.0, -50.0], [10.0, 50.0]
X = np.array([[9.0, 40.0], [1.0, -40.0], [5.0, 60.0], [2.0, -45.0], [4.0, 0.0]])


def masked(x: Any, *, seed: int = 1, **parameters: Any) -> Any:
    bound = {"fast": False, **parameters}
    return dp_microaggregation.run(np.asfortranarray(x), rng=Seed.of(seed).stream("a"), attributes=2, bound=bound)


def noiseless(x: Any, k: int) -> Any:
    """The group of each record, and the means of the groups along the order."""
    clamped = np.clip(x, LOW, HIGH)
    group = insensitive_groups(corner_distance(clamped, LOW, HIGH), k)
    return group, np.array([clamped[group == g].mean(axis=0) for g in range(group.max() + 1)])


def has_scale(noise: Any, scale: float) -> bool:
    """Whether it is Laplace noise of that scale: the whole distribution, and the sum of sizes, which is gamma."""
    size = float(np.sum(np.abs(noise))) / scale
    tails = stats.gamma.cdf(size, noise.size), stats.gamma.sf(size, noise.size)
    return bool(stats.kstest(noise / scale, "laplace").pvalue > FALSE_ALARM and 2 * min(tails) > FALSE_ALARM)


def test_five_records_by_hand() -> None:
    # as fractions of the bounds: (.9, .9), (.1, .1), (.5, 1; 60 is clamped), (.2, .05), (.4, .5); from the corner they
    # come in the order 2, 4, 5, 3, 1, so the first group is 2 and 4, and the last, with 3 < 2k left, is 5, 3 and 1
    made = masked(X, k=2, epsilon=4.0, lower=np.array(LOW), upper=np.array(HIGH), fast=True)
    stream = Seed.of(1).stream("a")
    for j, (width, near, far) in enumerate([(10.0, 1.5, 6.0), (100.0, -42.5, 30.0)]):
        noise = stats.laplace.ppf(stream.loose(2)) * 2 * 2 * width / 4.0  # groups * m * width / epsilon, for the sums
        expected = np.array([near + noise[0] / 2, far + noise[1] / 3])
        assert np.allclose(made.values[:, j], expected[[1, 0, 1, 0, 1]], rtol=1e-12)
    assert made.counts["clamped"].tolist() == [0, 1]
    assert made.notes == ("for studies: floating-point noise, no guarantee against floating-point attacks",)


@pytest.mark.parametrize("fast", [True, False])
def test_with_much_budget_the_means_of_the_groups_are_left(fast: bool) -> None:
    made = masked(X, k=2, epsilon=1e14, lower=np.array(LOW), upper=np.array(HIGH), fast=fast)
    assert np.allclose(made.values, np.array([[1.5, -42.5], [6.0, 30.0]])[[1, 0, 1, 0, 1]], atol=1e-9)
    one = masked(X, k=5, epsilon=1e14, lower=0.0, upper=100.0, fast=fast)
    assert np.allclose(one.values, np.broadcast_to([4.2, 20.0], (5, 2)), atol=1e-9)
    assert one.counts["clamped"].tolist() == [0, 2]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 12))
def test_groups_are_taken_from_both_ends_in_turn(distances: list[int], k: int) -> None:
    k = min(k, len(distances))
    left = sorted(range(len(distances)), key=lambda row: (distances[row], row))
    near, far = [], []
    while len(left) >= 2 * k:
        if len(near) == len(far):
            near.append(left[:k])
            left = left[k:]
        else:
            far.append(left[-k:])
            left = left[:-k]
    assert k <= len(left) < 2 * k
    expected = np.empty(len(distances), dtype=int)
    for number, rows in enumerate([*near, left, *far[::-1]]):
        expected[rows] = number
    made = insensitive_groups(np.array(distances, dtype=np.float64), k)
    assert made.tolist() == expected.tolist()


RECORD = st.tuples(st.sampled_from([-3.0, 0.0, 2.5, 5.0, 10.0, 99.0]), st.integers(-60, 60).map(float))


@given(st.lists(RECORD, min_size=1, max_size=30), RECORD, st.integers(1, 8), st.data())
def test_one_record_changed_moves_no_mean_by_more_than_its_share(records: Any, other: Any, k: int, data: Any) -> None:
    k = min(k, len(records))
    row = data.draw(st.integers(0, len(records) - 1))
    before, after = np.array(records), np.array(records)
    after[row] = other
    (group, means), (new_group, new_means) = noiseless(before, k), noiseless(after, k)
    assert np.bincount(group).tolist() == np.bincount(new_group).tolist(), "sizes depend on n and k alone"
    width = np.subtract(HIGH, LOW)
    assert np.all(np.abs(means - new_means) <= width / k * (1 + 1e-12))
    assert np.all(np.abs(means - new_means).sum(axis=0) <= len(records) / k * width / k * (1 + 1e-12)), "the paper's"
    for g in range(group.max() + 1):
        stayed = set(np.flatnonzero(group == g)) & set(np.flatnonzero(new_group == g)) - {row}
        assert np.sum(group == g) - len(stayed) <= 1, "at most one record leaves a group"


def test_what_moves_is_which_group_a_row_is_in() -> None:
    # the means hardly change when the least of n records becomes the largest, but one row of every group changes its
    # group: a row's place must not be published
    x = np.column_stack([np.arange(100) / 10, np.zeros(100)])
    changed = x.copy()
    changed[0] = 10.0, 0.0
    (group, means), (new_group, new_means) = noiseless(x, 10), noiseless(changed, 10)
    assert np.max(np.abs(means - new_means)) <= 0.1 + 1e-9
    assert int(np.sum(group != new_group)) == 10


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("k", [1, 4])
def test_noise_is_laplace_with_the_declared_scale(k: int, fast: bool) -> None:
    groups, epsilon = 3_000, 0.7
    x = np.random.default_rng(0).uniform([-1.0, -60.0], [11.0, 60.0], (k * groups, 2))
    made = masked(x, k=k, epsilon=epsilon, lower=np.array(LOW), upper=np.array(HIGH), fast=fast)
    group, means = noiseless(x, k)
    first = np.unique(group, return_index=True)[1]
    assert np.array_equal(made.values, made.values[first][group]), "records of a group are the same"
    noise = made.values[first] - means
    for j, width in enumerate([10.0, 100.0]):
        scale = groups * 2 * width / (k * epsilon)
        assert has_scale(noise[:, j], scale)
        assert not has_scale(noise[:, j], scale * 1.2)
    assert abs(np.corrcoef(noise.T)[0, 1]) < 4.9 / np.sqrt(groups)


def test_a_longer_last_group_has_the_smaller_noise_of_its_mean() -> None:
    x = np.zeros((19, 1))
    made = [
        masked(x, k=10, epsilon=1.0, lower=0.0, upper=1.0, fast=True, seed=seed).values[0, 0] for seed in range(900)
    ]
    assert has_scale(np.array(made), 1 / 19)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 99))
def test_every_group_has_k_records_or_more(n: int, k: int, draw: int) -> None:
    x = np.random.default_rng(draw).normal(size=(n, 2))
    if k > n:
        with pytest.raises(rv.ParameterError, match=f"k = {k} is more than the {n} records; choose a smaller k"):
            masked(x, k=k, epsilon=1.0, lower=-1.0, upper=1.0, fast=True)
        return
    made = masked(x, k=k, epsilon=1.0, lower=-1.0, upper=1.0, fast=True).values
    sizes = np.sort(np.unique(made, axis=0, return_counts=True)[1])
    assert sizes.size == n // k
    assert np.all(sizes[:-1] == k)
    assert k <= sizes[-1] < 2 * k


def test_records_far_outside_and_wide_or_narrow_bounds() -> None:
    x = np.array([[1e300, 1e-300], [-1e300, 0.0], [0.0, 5e-324], [3.0, 1.0]])
    made = masked(x, k=2, epsilon=1e14, lower=np.array([-1e6, 0.0]), upper=np.array([1e6, 1e-300]), fast=True)
    # the second and third are nearest to the corner, and none is outside but the first and second, and the fourth's 1
    assert np.allclose(made.values[:, 0] / 1e6, [0.5000015, -0.5, -0.5, 0.5000015], atol=1e-9)
    assert np.allclose(made.values[:, 1] * 1e300, [1.0, 0.0, 0.0, 1.0], atol=1e-9)
    assert made.counts["clamped"].tolist() == [2, 1]
    with pytest.raises(rv.ParameterError, match=r"^dp_microaggregation: the noise would be too large"):
        masked(x, k=2, epsilon=1.0, lower=-1.7e308, upper=1.7e308)


def test_bounds_that_are_inverted_or_missing_are_refused() -> None:
    data = pa.table({"AGE": X[:, 0], "INCOME": X[:, 1]})
    with pytest.raises(rv.ParameterError, match=r"column INCOME: lower \(7\) must be below upper \(3\)"):
        rv.mask(data, "dp_microaggregation", k=2, epsilon=1.0, **{"lower": 0, "lower.INCOME": 7, "upper": 3})
    with pytest.raises(rv.ParameterError, match=r"^dp_microaggregation needs upper"):
        rv.mask(data, "dp_microaggregation", k=2, epsilon=1.0, lower=0, upper={"AGE": 3})
    with pytest.raises(rv.ParameterError, match="epsilon must be a number above 0"):
        rv.mask(data, "dp_microaggregation", k=2, epsilon=0, lower=0, upper=3)
    with pytest.raises(rv.ParameterError, match="epsilon is one for all columns"):
        rv.mask(data, "dp_microaggregation", k=2, lower=0, upper=3, epsilon={"AGE": 1.0, "INCOME": 2.0})


def test_the_guarantee_is_that_of_records_without_their_order() -> None:
    data = pa.table({"A": X[:, 0], "B": X[:, 1]})
    plan = Plan.of("dp_microaggregation", k=2, epsilon=0.5, lower=-100, upper=100)

    def told(plan: Plan) -> list[str]:
        made: list[str] = rv.mask(data, plan, seed=1).manifest["guarantees"]
        return made

    (sentence,) = told(plan)
    assert sentence.startswith(
        "columns A, B: the set of the records, without their order, has differential privacy with epsilon = 0.5 in all"
    )
    for part in ("record_shuffle", "without other columns", "no cell may be missing", "add up"):
        assert part in sentence
    assert told(plan.then("round", decimals=1).then("record_shuffle")) == [sentence]
    assert told(plan.then("reverse_map", columns=["A"])) == []
    (study,) = told(Plan.of("dp_microaggregation", k=2, epsilon=0.5, lower=-100, upper=100, fast=True))
    assert "for studies: floating-point noise" in study
    release = rv.mask(data, plan, seed=1)
    assert release.manifest["steps"][0]["facts"]["reproducible"] is False
    assert not rv.mask(data, plan, seed=1).data.equals(release.data)


def test_bounds_of_dates_are_dates() -> None:
    days = [dt.date(1950, 1, 1), dt.date(1990, 6, 1), dt.date(1990, 6, 3), dt.date(2020, 1, 1)]
    data = pa.table({"AGE": [1.0, 2.0, 2.0, 9.0], "BORN": days})
    how: dict[str, Any] = {"epsilon": 1e9, "k": 2, "fast": True, "seed": CommonSeed.of(1), "lower.AGE": 0}
    how["upper.AGE"] = 8
    dated = {"lower.BORN": "1990-01-01", "upper.BORN": "2000-01-01"}
    made = rv.mask(data, "dp_microaggregation", **how, **dated)
    # groups of the two nearest to the corner (0, 1990-01-01) and the two farthest; 1950 and 2020 are clamped
    first, last = dt.date(1990, 3, 17), dt.date(1995, 3, 18)  # the means, half days rounded to even ones
    assert made.data["BORN"].to_pylist() == [first, first, last, last]
    np.testing.assert_allclose(made.data["AGE"].to_numpy(), [1.5, 1.5, 5.0, 5.0], atol=1e-6)
    with pytest.raises(rv.ParameterError, match=r"column BORN: .* have no numbers as limits: lower must be like"):
        rv.mask(data, "dp_microaggregation", **how, **{"lower.BORN": 0, "upper.BORN": "2000-01-01"})
    with pytest.raises(rv.ParameterError, match="column BORN: lower must be before upper"):
        rv.mask(data, "dp_microaggregation", **how, **{"lower.BORN": "2001-01-01", "upper.BORN": "2000-01-01"})
    with pytest.raises(rv.ParameterError, match=r"column AGE: .*lower 1990-01-01 is a date or time, and the column"):
        rv.mask(data, "dp_microaggregation", **{**how, **dated, "lower.AGE": "1990-01-01"})
