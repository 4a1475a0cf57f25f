"""(d, v, f)-permuted privacy: Definitions 1 and 2 against their own words."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import rankveil as rv
from rankveil.people.diversity import CRITERIA, Criterion
from rankveil.ranks import average_ranks

Array = NDArray[np.float64]


def table(values: Any) -> pa.Table:
    return pa.table({f"A{j}": column for j, column in enumerate(np.asarray(values, dtype=float).T)})


def nearest_rank(y: Array, value: float) -> float:
    """The rank in y of its value closest to `value`, the smaller one of two equally close."""
    closest = min(sorted(set(y.tolist())), key=lambda each: (abs(each - value), each))
    return float(average_ranks(y)[y == closest][0])


def diversity_of(criterion: Criterion, y: Array, rank: float, reach: float) -> float:
    window = y[np.abs(average_ranks(y) - rank) <= reach]
    every = np.unique(y)
    here = np.array([np.mean(window == value) for value in every])
    there = np.array([np.mean(y == value) for value in every])
    if criterion == "variance":
        return float(np.var(window))
    if criterion == "distinct":
        return float(np.unique(window).size)
    if criterion == "entropy":
        return float(-sum(share * np.log(share) for share in here if share > 0))
    return float(np.abs(np.cumsum(here - there)).sum() / max(every.size - 1, 1))


def chosen(f: str, i: int, targets: Array, rank_y: Array) -> int:
    apart = np.abs(rank_y - targets[i])
    if f == "mapping":
        return i
    if f == "minimax":
        return min(range(len(apart)), key=lambda row: (apart[row].max(), apart[row].sum(), row))
    return min(range(len(apart)), key=lambda row: ((apart[row] ** 2).sum(), row))


def by_hand(x: Array, y: Array, f: str) -> tuple[Array, Array]:
    """For every record its distances d_j(f(x)), and the ranks r*_j."""
    n, m = x.shape
    targets = np.array([[nearest_rank(y[:, j], x[i, j]) for j in range(m)] for i in range(n)])
    rank_y = average_ranks(y)
    d = np.array([np.abs(rank_y[chosen(f, i, targets, rank_y)] - targets[i]) for i in range(n)])
    return d, targets


def test_running_example() -> None:
    original, masked = rv.datasets.running_example()
    certificate = rv.certify(original, masked)
    third = certificate.record(3)
    assert third["d"] == [5, 1, 9]
    assert certificate.holds
    assert certificate.to_dict()["failing"] == []
    # the subject's own f in the paper's worked example, record 3 with record 10
    own = rv.certify(original, masked, f="minimax").record(3)
    assert own["d"] == [4, 1, 4]
    assert own["v"] == pytest.approx([24.70, 155.00, 20167.78], abs=0.005)
    plain = certificate.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["schema"] == "rankveil/certify/1"


rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8)


@settings(max_examples=50, deadline=None)
@given(rows, st.data(), st.sampled_from(CRITERIA), st.sampled_from(["mapping", "minimax", "euclidean"]))
def test_by_hand_with_ties(values: list[tuple[int, int]], data: st.DataObject, criterion: Criterion, f: Any) -> None:
    x = np.array(values, dtype=float)
    y = np.array(
        data.draw(st.lists(st.tuples(*[st.sampled_from([0, 1, 1.5, 4, 7])] * 2), min_size=len(x), max_size=len(x)))
    )
    y = y.astype(float)
    record_d, targets = by_hand(x, y, f)
    largest = rv.certify(table(x), table(y), columns=["A0", "A1"], diversity=criterion, f=f)
    assert largest.holds
    assert np.array_equal(largest.record_d, record_d)
    assert np.array_equal(largest.largest_d, record_d.min(axis=0))
    worst = max if criterion == "closeness" else min
    v = [
        worst(diversity_of(criterion, y[:, j], targets[i, j], record_d[:, j].min()) for i in range(len(x)))
        for j in range(2)
    ]
    assert largest.largest_v.tolist() == pytest.approx(v, abs=1e-9)
    d = [float(data.draw(st.sampled_from([0, 0.5, 1, 2, 3]))) for _ in range(2)]
    wanted = [float(data.draw(st.sampled_from([0, 0.1, 0.3, 0.5, 1, 2]))) for _ in range(2)]
    asked = rv.certify(table(x), table(y), columns=["A0", "A1"], d=d, v=wanted, diversity=criterion, f=f)
    failing = []
    for i in range(len(x)):
        around = [diversity_of(criterion, y[:, j], targets[i, j], d[j]) for j in range(2)]
        enough = [
            a <= w + 1e-12 if criterion == "closeness" else a >= w - 1e-12 for a, w in zip(around, wanted, strict=True)
        ]
        if not (all(record_d[i] >= d) and all(enough)):
            failing.append(i + 1)
    assert asked.to_dict()["failing"] == failing
    assert asked.holds == (not failing)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("f", ["mapping", "minimax", "euclidean"])
def test_the_largest_holds_and_nothing_larger_does(criterion: Criterion, f: Any) -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(40, 3))
    original, masked = table(x), table(x + rng.normal(size=x.shape))
    best = rv.certify(original, masked, diversity=criterion, f=f)
    said = best.to_dict()["largest"]
    assert rv.certify(original, masked, d=said["d"], v=said["v"], diversity=criterion, f=f).holds
    for j in range(3):
        further = best.record_d[:, j][best.record_d[:, j] > best.largest_d[j]].min()
        d = best.largest_d.copy()
        d[j] = further
        assert not rv.certify(original, masked, d=d.tolist(), diversity=criterion, f=f).holds
        v = best.largest_v.copy()
        v[j] *= 1 - 1e-6 if criterion == "closeness" else 1 + 1e-6
        if best.largest_v[j] != 0:
            assert not rv.certify(original, masked, d=said["d"], v=v.tolist(), diversity=criterion, f=f).holds


@pytest.mark.parametrize("n", [10, 31, 200])
@pytest.mark.parametrize("d", [1, 3, 5])
def test_distance_swapping_keeps_its_promise(n: int, d: int) -> None:
    original = table(np.random.default_rng(n).normal(size=(n, 3)))
    for seed in range(3):
        masked = rv.mask(original, "distance_swap", d=d, seed=seed).data
        certificate = rv.certify(original, masked, d=d)
        assert certificate.holds
        assert np.all(certificate.largest_d >= d)


def test_a_pure_permutation_is_judged_by_its_rank_changes() -> None:
    original = table(np.random.default_rng(2).normal(size=(50, 2)))
    noisy = rv.mask(original, "additive_noise", alpha=1.0, then=["reverse_map"], seed=3).data
    certificate = rv.certify(original, noisy)
    ranks = [
        average_ranks(np.column_stack([frame[name].to_numpy() for name in frame.column_names]))
        for frame in (original, noisy)
    ]
    assert np.array_equal(certificate.record_d, np.abs(ranks[0] - ranks[1]))


def test_equally_near_values_take_the_smaller() -> None:
    # 2 is as near to 1 as to 3; 1.2 to 1.1 as to 1.3, though not in binary
    certificate = rv.certify(pa.table({"x": [2.0, 9.0]}), pa.table({"x": [3.0, 1.0]}))
    assert certificate.record_d[0].tolist() == [1.0]
    assert rv.verify(pa.table({"x": [1.3, 1.1]}), {"x": 1.2}).nearest == (1.1,)
    assert rv.verify(pa.table({"x": [0.3, 0.1]}), {"x": 0.2}).nearest == (0.1,)
    assert rv.verify(pa.table({"x": [3, 1]}), {"x": 2.001}).nearest == (3,)


def test_failing_rows_are_numbered_as_in_the_original_file() -> None:
    original = pa.table({"key": [11, 12, 13, 14, 15], "x": [1.0, None, 3.0, 4.0, 5.0]})
    masked = pa.table({"key": [15, 14, 13, 12, 11], "x": [5.0, 3.0, 4.0, 9.0, 1.0]})
    certificate = rv.certify(original, masked, d=1, key="key")
    # complete: 1, 3, 4, 5 by original row; 3 and 4 changed places, 1 and 5 stayed
    assert certificate.to_dict()["failing"] == [1, 5]
    assert certificate.record(3)["d"] == [1]
    assert certificate.record(3)["ok"]
    assert not certificate.record(5)["ok"]
    with pytest.raises(rv.ParameterError, match="no complete original record 2"):
        certificate.record(2)
    assert any("1 of 5 records have missing values" in note for note in certificate.notes)


def test_d_and_v_by_attribute() -> None:
    original, masked = rv.datasets.running_example()
    d = rv.certify(original, masked, d=0.0).record_d
    named = rv.certify(original, masked, d={"X2": 1.0})
    assert named.d.tolist() == [0.0, 1.0, 0.0]
    assert named.to_dict()["failing"] == (np.flatnonzero(d[:, 1] < 1) + 1).tolist()
    everywhere = rv.certify(original, masked, d=1)
    assert everywhere.d.tolist() == [1.0, 1.0, 1.0]
    # what is not named is not asked for, also where smaller is better
    close = rv.certify(original, masked, d=0, v={"X1": 1.0}, diversity="closeness")
    assert close.holds
    for wrong, said in (
        ([1, 2], "one number for each of the 3"),
        ({"X9": 1}, "no attribute X9"),
        ({"X2": "four"}, "d must be numbers of 0 or more"),
        (-1, "0 or more"),
        (float("nan"), "0 or more"),
    ):
        with pytest.raises(rv.ParameterError, match=said):
            rv.certify(original, masked, d=wrong)
    with pytest.raises(rv.ParameterError, match="d must be numbers of 0 or more, not 'four'"):
        rv.certify(original, masked, d="four")  # type: ignore[arg-type]
    with pytest.raises(rv.ParameterError, match="diversity must be variance or distinct"):
        rv.certify(original, masked, diversity="spread")  # type: ignore[arg-type]
    with pytest.raises(rv.ParameterError, match="f must be"):
        rv.certify(original, masked, f="mine")  # type: ignore[arg-type]


def test_without_a_mapping_f_is_the_subjects_own() -> None:
    original, masked = rv.datasets.running_example()
    certificate = rv.certify(original, masked, mapping=False)
    assert certificate.f == "minimax"
    assert any("mapping is not known" in note for note in certificate.notes)
    with pytest.raises(rv.ParameterError, match="f cannot be the mapping"):
        rv.certify(original, masked, mapping=False, f="mapping")


def test_an_unchanged_release_protects_nobody() -> None:
    original, _ = rv.datasets.running_example()
    certificate = rv.certify(original, original)
    assert certificate.largest_d.tolist() == [0.0, 0.0, 0.0]
    assert certificate.largest_v.tolist() == [0.0, 0.0, 0.0]
    asked = rv.certify(original, original, d=1)
    assert asked.to_dict()["failing"] == list(range(1, 21))


@pytest.mark.parametrize(
    "values", [[[3.0]], np.ones((5, 2)), np.repeat([[1.0, 2.0]], 4, axis=0)], ids=["one record", "ties", "copies"]
)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_degenerate_tables(values: Any, criterion: Criterion) -> None:
    certificate = rv.certify(table(values), table(values), diversity=criterion)
    assert certificate.holds
    assert certificate.largest_d.tolist() == [0.0] * certificate.largest_d.size
    assert certificate.largest_v.tolist() == [1.0 if criterion == "distinct" else 0.0] * certificate.largest_v.size


def test_ordered_words() -> None:
    levels = ["low", "middle", "high"]
    frame = pd.DataFrame({"g": pd.Categorical(["low", "middle", "high", "high"], categories=levels, ordered=True)})
    masked = pd.DataFrame({"g": ["high", "middle", "low", "high"]})
    # ranks of the masked words: high 3.5, middle 2, low 1
    assert rv.certify(frame, masked).record_d[:, 0].tolist() == [2.5, 0.0, 2.5, 0.0]


def test_variances_too_large_for_a_number() -> None:
    x = np.array([[-1e300], [0.0], [1e300]])
    certificate = rv.certify(table(x), table(np.roll(x, 1, axis=0)))
    assert certificate.holds
    plain = certificate.to_dict()
    assert plain["largest"]["v"] == [None]
    json.dumps(plain, allow_nan=False)


def test_the_promise_of_distance_swap_holds_where_cells_are_missing() -> None:
    rng = np.random.default_rng(1)
    values = rng.permutation(200).reshape(100, 2).astype(float)
    values[rng.random(100) < 0.3, 0] = np.nan
    values[rng.random(100) < 0.3, 1] = np.nan
    data = pa.table({"A": pa.array(values[:, 0], from_pandas=True), "B": pa.array(values[:, 1], from_pandas=True)})
    release = rv.mask(data, "distance_swap", d=20, seed=1)
    assert release.manifest["guarantees"] == [
        f"column {name}: every value is at permutation distance 20 or more among all values of the column"
        for name in ("A", "B")
    ]
    made = rv.certify(data, release.data, d=20)
    assert 0 < len(made.pair.table) < 100
    assert made.holds
    assert made.largest_d.min() >= 20
    assert any("ranks are those among all released values of a column" in note for note in made.notes)
    assert not any("ranks are those" in note for note in rv.certify(data.drop_null(), data.drop_null()).notes)
    # without the mapping the subject compares complete records, as `verify` does
    own = rv.certify(data, release.data, f="minimax")
    assert own.record_d.max() < len(made.pair.table)
