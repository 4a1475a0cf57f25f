"""The controls: identity, permute, record_shuffle."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from scipy import stats

import rankveil as rv
from rankveil.catalogue import get_method
from rankveil.seeds import CommonSeed, Seed

FALSE_ALARM = 1e-6

X = np.array([30.0, 10.0, 50.0, 20.0, 40.0])


def test_identity_of_five_records_is_another_array_with_the_same_values() -> None:
    made = get_method("identity")(X)
    assert made.tolist() == [30.0, 10.0, 50.0, 20.0, 40.0]
    assert made is not X


def test_permute_puts_five_records_in_the_order_of_their_draws() -> None:
    order = np.argsort(Seed.of(1).stream("a").bits(5))
    assert get_method("permute")(X, rng=Seed.of(1).stream("a")).tolist() == [X[i] for i in order]


def test_all_permutations_of_four_records_are_equally_likely() -> None:
    permute = get_method("permute")
    counts: dict[tuple[float, ...], int] = {}
    for seed in range(6_000):
        made = tuple(permute(X[:4], rng=Seed.of(seed).stream("a")).tolist())
        counts[made] = counts.get(made, 0) + 1
    assert len(counts) == 24
    assert stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM


def test_permuted_columns_are_independent_of_each_other_and_of_the_original() -> None:
    n = 20_000
    x = np.random.default_rng(0).normal(size=n)
    made = rv.mask(pa.table({"A": x, "B": x}), "permute", seed=1).data
    a, b = made["A"].to_numpy(), made["B"].to_numpy()
    for one, other in ((a, b), (a, x), (b, x)):
        assert stats.spearmanr(one, other).pvalue > FALSE_ALARM


def test_record_shuffle_moves_five_records_whole() -> None:
    data = pa.table({"A": X, "T": ["a", "b", "c", "d", "e"], "N": [1, None, 3, 4, 5]})
    release = rv.mask(data, "record_shuffle", seed=CommonSeed.of(1))
    order = np.argsort(Seed.of(1).stream("mask", 0, "record_shuffle", 0).bits(5))
    assert release.data.to_pylist() == [data.to_pylist()[i] for i in order]
    assert np.array_equal(release.secret.order, order)  # type: ignore[arg-type]
    assert release.data.schema == data.schema
    assert release.manifest["mapping"] == "reordered"
