"""Hohne's noise on five records, what it keeps, and its distribution."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.special import ndtri

from rankveil import masking
from rankveil.catalogue import get_method
from rankveil.plans import Plan
from rankveil.seeds import Seed
from rankveil.table import Table

FALSE_ALARM = 1e-6

hohne_noise = get_method("hohne_noise")
X = np.column_stack([[30.0, 10.0, 50.0, 20.0, 40.0], [1.0, -2.0, 4.0, 0.0, 2.0]])


def test_five_records_by_hand() -> None:
    stream = Seed.of(1).stream("a")
    sign = np.array([1.0 if word >= 2**63 else -1.0 for word in stream.bits(5).tolist()])
    made = hohne_noise(X, np.isnan(X), s=0.2, rng=Seed.of(1).stream("a")).values
    for j in range(2):
        noisy = X[:, j] * (1 + sign * np.abs(0.2 * ndtri(stream.random(5))))
        wanted = (noisy - noisy.mean()) * X[:, j].std() / noisy.std() + X[:, j].mean()
        assert np.allclose(made[:, j], wanted, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e290])
def test_means_and_variances_are_kept(scale: float) -> None:
    rng = np.random.default_rng(0)
    x = np.asfortranarray(rng.lognormal(size=(500, 3)) - [0.0, 1.0, 0.0]) * scale
    made = hohne_noise(x, np.isnan(x), s=0.7, rng=Seed.of(1).stream("a")).values / scale
    assert np.allclose(made.mean(axis=0), (x / scale).mean(axis=0), rtol=1e-12)
    assert np.allclose(made.var(axis=0), (x / scale).var(axis=0), rtol=1e-12)


def test_all_values_of_a_record_go_the_same_way_by_the_declared_amounts() -> None:
    n, s = 40_000, 0.1
    x = np.random.default_rng(0).uniform(1.0, 2.0, (n, 2))
    x[0] = 0.0  # stays 0 before shifting, so that it tells the shift
    made = hohne_noise(x, np.isnan(x), s=s, rng=Seed.of(3).stream("a")).values
    factor = (made[1:] - made[0]) / x[1:]  # 1 + sign |e|, which is N(1, s^2), times the scaling
    relative = factor / factor.mean(axis=0) - 1
    for column in relative.T:
        assert stats.kstest(column / column.std(), "norm").pvalue > FALSE_ALARM
        assert abs(column.std() / s - 1) < stats.norm.isf(FALSE_ALARM / 2) * np.sqrt(1 / (2 * n) + s**2 / n)
    up = relative > 0
    assert np.mean(up[:, 0] == up[:, 1]) > 0.98  # all but those whose factor is 1 to the accuracy of its mean
    assert stats.binomtest(int(up[:, 0].sum()), n - 1).pvalue > FALSE_ALARM
    amounts = np.corrcoef(np.abs(relative).T)[0, 1]
    assert abs(amounts) < stats.norm.isf(FALSE_ALARM / 2) / np.sqrt(n)


def test_constant_columns_and_single_records_stay_and_say_so() -> None:
    x = np.column_stack([X[:, 0], np.full(5, 0.1)])
    made = hohne_noise(x, np.isnan(x), rng=Seed.of(1).stream("a"))
    assert made.values[:, 1].tolist() == [0.1] * 5
    assert made.notes == ("constant columns, which stay as they are because their mean is kept: 1",)
    assert hohne_noise(X, np.isnan(X), rng=Seed.of(1).stream("a")).notes == ()
    assert hohne_noise(X[:1], np.isnan(X[:1]), rng=Seed.of(1).stream("a")).values.tolist() == X[:1].tolist()


def test_no_noise_is_the_original_and_columns_have_their_own() -> None:
    data = pa.table({"A": X[:, 0], "B": X[:, 1]})
    plan = Plan.of("hohne_noise", s={"A": 0.0, "B": 0.5})
    made = masking.apply(Table(data), plan, seed=Seed.of(1), grid=False).values
    assert made["A"].tolist() == X[:, 0].tolist()
    assert made["B"].tolist() != X[:, 1].tolist()


def test_missing_cells_are_in_no_mean_or_variance() -> None:
    x = np.random.default_rng(2).lognormal(size=(40, 2))
    data = pa.table({"A": [None if i % 4 == 0 else x[i, 0] for i in range(40)], "B": x[:, 1]})
    made = masking.apply(Table(data), Plan.of("hohne_noise", s=0.5), seed=Seed.of(1), grid=False).values
    for name in data.column_names:
        before, after = np.array(data[name].drop_null().to_pylist()), made[name][~np.isnan(made[name])]
        assert before.size == after.size
        assert np.allclose([after.mean(), after.var()], [before.mean(), before.var()], rtol=1e-12)


def test_noise_beyond_the_largest_number_is_scaled_back_like_any_other() -> None:
    large, larger = (hohne_noise(X, np.isnan(X), s=s, rng=Seed.of(1).stream("a")).values for s in (1e300, 1.7e308))
    assert np.allclose(larger, large, rtol=1e-12)
