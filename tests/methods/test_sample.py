"""Sampling: how many, who, whole groups, and what the secret and an audit make of a release with fewer records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

import rankveil as rv
from rankveil.comparison.study import Study
from rankveil.manifest import Secret
from rankveil.measuring import Measuring
from rankveil.methods.sample import sample
from rankveil.seeds import CommonSeed, Seed
from rankveil.table import Table

FALSE_ALARM = 1e-6


def rows(records: int, *, seed: int = 1, groups: Any = None, **given: Any) -> Any:
    stream = Seed.of(seed).stream("sample")
    return sample.run(records, rng=stream, attributes=1, bound=sample.bind(given), groups=groups)


def test_as_many_as_asked_in_their_own_order() -> None:
    for given, many in (({"size": 3}, 3), ({"share": 0.6}, 3), ({"share": 0.5}, 3), ({"share": 1.0}, 5)):
        chosen = rows(5, **given)
        assert chosen.size == many
        assert np.all(np.diff(chosen) > 0)
        assert set(chosen) <= set(range(5))
    assert rows(5, share=1e-6).size == 1  # a release has one record at least
    assert rows(5, size=5).tolist() == [0, 1, 2, 3, 4]


def test_groups_stay_whole() -> None:
    houses = np.array([7, 7, 3, 3, 3, 9])
    for seed in range(20):
        chosen = rows(6, seed=seed, groups=houses, size=2)
        there = set(houses[chosen])
        assert len(there) == 2
        assert chosen.tolist() == [i for i in range(6) if houses[i] in there]
    with pytest.raises(rv.ParameterError, match="size is 4, and there are 3 groups"):
        rows(6, groups=houses, size=4)


def test_one_of_share_and_size_is_needed() -> None:
    for given in ({}, {"share": 0.1, "size": 2}):
        with pytest.raises(rv.ParameterError, match="the share of the records or their number, one of the two"):
            rows(9, **given)
    with pytest.raises(rv.ParameterError, match="size is 10, and there are 9 records"):
        rows(9, size=10)


def test_every_record_and_every_pair_is_as_likely_as_any_other() -> None:
    n, size, times = 12, 4, 3000
    seen = np.zeros((n, n))
    for seed in range(times):
        chosen = rows(n, seed=seed, size=size)
        seen[np.ix_(chosen, chosen)] += 1
    pairs = seen[np.triu_indices(n, 1)]
    expected = times * size * (size - 1) / (n * (n - 1))
    for found, mean, chance in (
        (np.diag(seen), times * size / n, size / n),
        (pairs, expected, expected / times),
    ):
        worst = np.abs(found - mean).max()
        limit = stats.norm.isf(FALSE_ALARM / found.size / 2) * np.sqrt(times * chance * (1 - chance))
        assert worst < limit


def test_a_release_with_fewer_records() -> None:
    data = rv.datasets.demo(200)
    release = rv.mask(
        data, rv.Plan.of("sample", share=0.25).then("rank_swap", p=10), seed=1, release_identifiers=["PERSON"]
    )
    order = release.secret.order
    assert order is not None
    assert len(release.data) == order.size == 50
    assert release.manifest["records"] == {"in": 200, "out": 50, "left_out": 150}
    assert release.manifest["mapping"] == "reordered"
    assert release.manifest["marginals"] == "changed"
    assert release.data["PERSON"].to_pylist() == data["PERSON"].take(pa.array(order)).to_pylist()
    assert "divided by the share" in release.manifest["for_users"][0]
    assert str(order.tolist()[:5])[1:-1] not in " ".join(release.manifest.to_json().split())  # who was taken is secret
    again = Secret.from_json(release.secret.to_json())
    assert np.array_equal(again.order, order)
    audit = rv.audit(data, release.data, secret=again)
    assert audit.records == 50
    assert audit.mapping == "secret"
    assert any("150 of the 200 original records are not in the release" in note for note in audit.notes)
    with pytest.raises(rv.PairError, match="200 records and the masked table 50"):
        rv.audit(data, release.data)
    with pytest.raises(rv.PairError, match="the secret maps 50 records"):
        rv.audit(data, data, secret=again)
    without = rv.audit(data, release.data, mapping=False, measures=["cm3"])
    assert without["cm3"] >= 0


def test_labels_of_rows_do_not_tell_who_was_taken() -> None:
    frame = rv.datasets.demo(40).to_pandas().set_index("PERSON")
    made = rv.mask(frame, "sample", size=4, seed=1).data
    assert made.index.equals(pd.RangeIndex(4))


def test_households_of_a_census_are_whole() -> None:
    census = rv.datasets.census(400)
    release = rv.mask(census, "sample", share=0.5, seed=1, schema=rv.Schema(roles={"HOUSEHOLD": "group"}))
    homes = census["HOUSEHOLD"].to_pylist()
    there = set(release.data["HOUSEHOLD"].to_pylist())
    assert len(there) == int(len(set(homes)) / 2 + 0.5)
    assert len(release.data) == sum(home in there for home in homes)


def test_a_comparison_can_sample() -> None:
    best = rv.compare(
        rv.datasets.demo(120), ["sample"], sweep=True, columns=["AGE", "INCOME"], utility=["um"], points=4
    )
    shares = [place.parameters["share"] for place in best.methods[0].points]
    assert len(shares) > 1
    assert min(shares) < 0.5


def test_a_pipeline_needs_a_row_for_every_row() -> None:
    masker = rv.Masker("sample", share=0.5)
    with pytest.raises(rv.ParameterError, match="sample leaves records out, and a pipeline needs a row for every row"):
        masker.fit(np.arange(12.0).reshape(6, 2))


WEIGHTED = rv.Schema(roles={"W": "weight", "AGE": "quasi-identifier"})


def weighted(n: int = 40, weight: Any = 3) -> pa.Table:
    return pa.table({"AGE": np.arange(n) % 8, "W": pa.array(np.broadcast_to(weight, n))})


def test_weights_stand_for_the_same_population() -> None:
    release = rv.mask(weighted(), "sample", size=10, seed=1, schema=WEIGHTED)
    assert release.data["W"].to_pylist() == [12] * 10
    assert release.data["W"].type == pa.int64()
    assert release.manifest["steps"][0]["weights"] == {"column": "W", "multiplied_by": 4.0}
    (note,) = [note for note in release.notes if "weights (W) were multiplied by 4" in note]
    assert "decimals" not in note
    assert "weights" in release.manifest["for_users"][0]
    assert "W" not in release.passed_through


def test_whole_weights_become_decimals_only_where_they_must() -> None:
    release = rv.mask(weighted(), "sample", size=16, seed=1, schema=WEIGHTED)
    assert release.data["W"].to_pylist() == [7.5] * 16
    assert sum(release.data["W"].to_pylist()) == sum(weighted()["W"].to_pylist())
    assert [note for note in release.notes if "decimals" in note] == [
        "weights (W) were multiplied by 2.5, the inverse of the share of records released, so that they stand for the "
        "same population; whole weights became decimals"
    ]


def test_the_sum_of_weights_is_right_on_average() -> None:
    rng, times = np.random.default_rng(1), 400
    data = weighted(weight=rng.exponential(10.0, 40))
    total = np.sum(data["W"].to_numpy())
    sums = [
        np.sum(rv.mask(data, "sample", size=10, seed=seed, schema=WEIGHTED).data["W"].to_numpy())
        for seed in range(times)
    ]
    variance = 40**2 * (1 - 10 / 40) * np.var(data["W"].to_numpy(), ddof=1) / 10 / times
    assert abs(np.mean(sums) - total) < stats.norm.isf(FALSE_ALARM / 2) * np.sqrt(variance)


def test_of_groups_the_share_is_that_of_groups() -> None:
    data = pa.table({"HOME": [1, 1, 1, 2, 3, 3], "W": [1.0] * 6, "AGE": [1, 2, 3, 4, 5, 6]})
    schema = rv.Schema(roles={"HOME": "group", "W": "weight"})
    sums = []
    for seed in range(30):
        release = rv.mask(data, "sample", size=1, seed=seed, schema=schema)
        assert set(release.data["W"].to_pylist()) == {3.0}  # one home of three, however large
        sums.append(len(release.data))
    assert set(sums) == {1, 2, 3}


def test_two_samples_multiply_and_a_dropped_weight_is_not_told_of() -> None:
    plan = rv.Plan.of("sample", size=20).then("sample", size=5)
    release = rv.mask(weighted(), plan, seed=1, schema=WEIGHTED)
    assert release.data["W"].to_pylist() == [24] * 5
    assert [step["weights"]["multiplied_by"] for step in release.manifest["steps"]] == [2.0, 4.0]
    swapped = rv.mask(
        weighted(), rv.Plan.of("sample", size=10).then("round", columns=["AGE"], decimals=-1), seed=1, schema=WEIGHTED
    )
    assert swapped.data["W"].to_pylist() == [12] * 10  # a post-step does not take the weights for masked values
    without = rv.mask(weighted(), plan.then("drop", columns=["W"]), seed=1, schema=WEIGHTED)
    assert not any("weights" in note for note in without.notes)
    assert all("weights" not in step for step in without.manifest["steps"])
    shuffled = rv.mask(weighted(), "record_shuffle", seed=1, schema=WEIGHTED)
    assert shuffled.data["W"].to_pylist() == [3] * 40
    assert "weights" not in shuffled.manifest["steps"][0]


def test_the_population_risk_of_a_sample_is_that_of_its_population() -> None:
    data = weighted(4000, weight=5)
    release = rv.mask(data, "sample", share=0.1, seed=CommonSeed.of(1), schema=WEIGHTED)
    made = rv.audit(data, release.data, secret=release.secret, schema=WEIGHTED, measures=["population_risk"])
    assert made.values["population_risk"].details["population"] == 20_000
    unscaled = release.data.set_column(1, "W", pa.array([5] * 400))
    wrong = rv.audit(data, unscaled, secret=release.secret, schema=WEIGHTED, measures=["population_risk"])
    assert made["population_risk"] < wrong["population_risk"] / 5
    study = Study(Table(data, schema=WEIGHTED), ["AGE"], seed=Seed.of(1))
    inside = Measuring(study.pair(rv.Plan.of("sample", share=0.1), 0), settings={}, target=None)
    assert inside.value("population_risk").value == made["population_risk"]  # a comparison sees the same weights
