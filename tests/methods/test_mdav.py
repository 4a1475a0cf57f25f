"""Microaggregation: the groups of the plain algorithm, the published losses, and what it guarantees."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import rankveil as rv
from rankveil import files
from rankveil.errors import ParameterError
from rankveil.methods import mdav as method
from rankveil.microaggregation import group_means, groups_in_order, mdav_groups, plain_mdav, standardised


def literal(z: np.ndarray, k: int) -> np.ndarray:
    """MDAV word by word: exact means, sorted lists, no running sums."""
    groups, left, number = np.full(len(z), -1), list(range(len(z))), 0

    def apart(a: np.ndarray, b: np.ndarray) -> float:
        return sum((float(u) - float(v)) ** 2 for u, v in zip(a, b, strict=True))

    def take(row: int) -> None:
        nonlocal left, number
        for near in sorted(left, key=lambda i: (apart(z[i], z[row]), i))[:k]:
            groups[near] = number
        number += 1
        left = [i for i in left if groups[i] < 0]

    while len(left) >= 2 * k:
        both = len(left) >= 3 * k
        centre = np.array([math.fsum(z[left, j]) / len(left) for j in range(z.shape[1])])
        row = max(left, key=lambda i: (apart(z[i], centre), -i))
        take(row)
        if not both:
            break
        take(max(left, key=lambda i: (apart(z[i], z[row]), -i)))
    groups[left] = number
    return groups


def mdav(x: np.ndarray, **given: object) -> np.ndarray:
    return method.mdav(x, np.isnan(x), **given)


def compiled(z: np.ndarray, k: int) -> np.ndarray:
    from rankveil.kernels.mdav import mdav as kernel

    return kernel(z, k)


TABLES = st.tuples(st.integers(2, 70), st.integers(1, 5)).flatmap(
    lambda shape: st.one_of(
        arrays(float, shape, elements=st.integers(0, 3).map(float)),  # heavy ties
        arrays(float, shape, elements=st.floats(-1e6, 1e6, width=32)),
        arrays(float, shape, elements=st.floats(0, 12).map(math.exp)),
    )
)


@settings(max_examples=150, deadline=None)
@given(TABLES, st.integers(1, 9))
def test_groups_are_those_of_the_algorithm_as_written(x: np.ndarray, k: int) -> None:
    z = np.ascontiguousarray(standardised(x))
    if z.shape[1] == 0 or k > len(z):
        return
    wanted = literal(z, k)
    assert np.array_equal(plain_mdav(z, k), wanted)
    assert np.array_equal(compiled(z, k), wanted)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("k", [3, 10])
def test_the_compiled_search_agrees_on_thousands_of_records(k: int, scale: float) -> None:
    rng = np.random.default_rng(7)
    x = np.exp(rng.normal(size=(4000, 6)) @ rng.normal(size=(6, 6))) * scale
    x[::7] = np.round(x[::7] / scale, 1) * scale  # duplicates and ties in the bulk
    x[1000:1200] = x[1000]
    z = np.ascontiguousarray(standardised(x))
    assert np.array_equal(compiled(z, k), plain_mdav(z, k))


def _spheres(rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(size=(9000, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True) * rng.integers(1, 3, size=(9000, 1))


SHAPES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "a lattice, all distances tied": lambda rng: np.stack(np.meshgrid(*[np.arange(10.0)] * 4), axis=-1).reshape(-1, 4),
    "two places": lambda rng: np.tile([[0.0, 0.0], [1.0, 1.0]], (5000, 1)),
    "one record far out": lambda rng: np.vstack([rng.normal(size=(8999, 3)), [[1e9, -1e9, 0.0]]]),
    "heavy tails": lambda rng: rng.standard_cauchy(size=(9000, 4)),
    "spheres around the mean": _spheres,
    "one attribute": lambda rng: rng.normal(size=(9000, 1)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_compiled_search_agrees_where_bounds_say_little(shape: str) -> None:
    z = np.ascontiguousarray(standardised(SHAPES[shape](np.random.default_rng(8))))
    assert np.array_equal(compiled(z, 7), plain_mdav(z, 7))


@pytest.mark.parametrize("name", ["census", "eia"])
def test_the_compiled_search_agrees_on_the_reference_data(name: str, reference_data: Callable[[str], Path]) -> None:
    table = rv.Table(files.load(reference_data(name)).data)
    z = np.ascontiguousarray(standardised(np.column_stack([table.values(each) for each in table.usable()])))
    for k in (2, 5):
        assert np.array_equal(compiled(z, k), plain_mdav(z, k))


@pytest.mark.parametrize(("k", "published"), [(3, 5.692186), (5, 9.088435)])
def test_census_loses_what_the_literature_says(k: int, published: float, reference_data: Callable[[str], Path]) -> None:
    original = files.load(reference_data("census")).data
    masked = rv.mask(original, "mdav", k=k, columns=original.column_names).data  # AFNLWGT too, which reads as a weight
    x, y = (
        np.column_stack([rv.Table(table).values(name) for name in original.column_names])
        for table in (original, masked)
    )
    spread = x.std(axis=0)
    loss = np.sum(((x - y) / spread) ** 2) / np.sum(((x - x.mean(axis=0)) / spread) ** 2)
    assert round(100 * loss, 6) == published


def test_worked_on_five_records() -> None:
    # far from the mean is 100; its nearest is 4; with fewer than 2k left the other three are one group
    masked = mdav(np.array([[1.0], [2.0], [3.0], [4.0], [100.0]]), k=2)
    assert masked.ravel().tolist() == [2.0, 2.0, 2.0, 52.0, 52.0]


def test_blocks_group_a_few_columns_at_a_time() -> None:
    x = np.random.default_rng(1).normal(size=(40, 5))
    masked = mdav(x, k=4, block=2)
    for columns in (slice(0, 2), slice(2, 5)):  # a remainder of one joins the last block
        part = x[:, columns]
        assert np.array_equal(masked[:, columns], group_means(part, mdav_groups(part, k=4)))
    alone = mdav(x, k=4, block=1)
    assert np.array_equal(alone[:, 3], mdav(x[:, 3:4], k=4)[:, 0])


@pytest.mark.parametrize("by", ["first_component", "z_sum"])
def test_groups_by_a_score_are_runs_of_it(by: str) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(23, 1)) @ np.array([[1.0, 2.0, 3.0]]) + 0.01 * rng.normal(size=(23, 3))
    masked = mdav(x, k=5, by=by)
    wanted = group_means(x, groups_in_order(x[:, 0], k=5))
    assert np.corrcoef(masked[:, 0], wanted[:, 0])[0, 1] > 0.99
    assert sorted(np.unique(masked[:, 0], return_counts=True)[1].tolist()) == [5, 5, 5, 8]


def test_groups_keep_means_and_hold_k_records() -> None:
    x = np.random.default_rng(3).lognormal(size=(101, 3))
    masked = mdav(x, k=7)
    assert np.allclose(masked.mean(axis=0), x.mean(axis=0), rtol=1e-12)
    assert np.unique(masked, axis=0, return_counts=True)[1].min() >= 7


def test_equal_records_keep_their_values_to_the_last_digit() -> None:
    x = np.tile([[0.1, 1e12], [0.3, 1e-12]], (10, 1))
    assert np.array_equal(mdav(x, k=5), x)


def test_constant_columns_one_group_and_one_record() -> None:
    x = np.column_stack([np.full(9, 4.0), np.arange(9.0)])
    assert np.all(mdav(x, k=3)[:, 0] == 4.0)
    assert np.array_equal(mdav(x[:, :1], k=3), x[:, :1])
    assert np.all(mdav(x, k=5)[:, 1] == 4.0)
    assert mdav(np.array([[3.0, 4.0]]), k=1).tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize("offset", [1e6, 1e12, 1e15])
def test_small_differences_of_large_values_make_the_same_groups(offset: float) -> None:
    x = np.asfortranarray(np.random.default_rng(1).integers(0, 50, size=(300, 2)).astype(float))
    assert mdav_groups(x + offset, k=4).tolist() == mdav_groups(x, k=4).tolist()


def test_k_larger_than_the_table_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"k = 5 is larger than the number of records, 4"):
        rv.mask(pa.table({"A": [1.0, 2.0, 3.0, 4.0]}), "mdav", k=5)


def test_the_manifest_promises_k_anonymity_only_where_it_holds() -> None:
    table = pa.table({name: np.random.default_rng(4).normal(size=30) for name in "ABC"})

    def promised(plan: rv.Plan) -> list[str]:
        return rv.mask(table, plan).manifest["guarantees"]

    (sentence,) = promised(rv.Plan.of("mdav", k=3))
    assert "A, B, C with at least 2 others" in sentence
    assert promised(rv.Plan.of("mdav", k=3).then("round")) == [sentence]
    assert promised(rv.Plan.of("mdav", k=3, block=1)) == []
    assert promised(rv.Plan.of("mdav", k=1)) == []
    assert promised(rv.Plan.of("mdav", k=3).then("additive_noise")) == []
    assert promised(rv.Plan.of("mdav", k=3).then("reverse_map")) == []


def test_missing_cells_are_in_no_mean_and_void_the_promise() -> None:
    table = pa.table({"A": [1.0, 2.0, None, 10.0, 11.0, 12.0], "B": [1.0, 2.0, 3.0, 10.0, 11.0, 12.0]})
    release = rv.mask(table, "mdav", k=3)
    assert release.data["A"].to_pylist() == [1.5, 1.5, None, 11.0, 11.0, 11.0]
    assert release.data["B"].to_pylist() == [2.0, 2.0, 2.0, 11.0, 11.0, 11.0]
    assert release.manifest["guarantees"] == []


def test_k_of_one_column_is_refused_because_columns_are_masked_together() -> None:
    table = pa.table({"A": [1.0, 2.0, 3.0], "B": [1.0, 5.0, 2.0]})
    with pytest.raises(ParameterError, match="k is one for all columns"):
        rv.mask(table, "mdav", **{"k.A": 2})


def test_a_block_of_records_without_a_value_of_some_column() -> None:
    near = [0.0] * 10 + [100.0] * 10
    gone = pa.array([None] * 10 + [float(i) for i in range(10)], pa.float64())
    made = rv.mask(pa.table({"A": near, "B": gone}), "mdav", k=5, kd_blocks=2, seed=1).data
    assert made["B"].null_count == 10


def test_a_value_that_is_alone_in_its_group_is_told() -> None:
    near = [1.0, 2.0, 3.0, 10.0, 11.0, 12.0]
    table = pa.table({"A": near, "B": [7.5, None, None, 1.0, 2.0, 3.0], "C": ["x", None, None, None, "y", "y"]})
    release = rv.mask(table, "mdav", k=3, columns=["A", "B", "C"])
    assert release.data["B"].to_pylist() == [7.5, None, None, 2.0, 2.0, 2.0]
    assert any("stay as they were (column and how many): B (1), C (1)" in note for note in release.notes)
    whole = rv.mask(table.select(["A"]), "mdav", k=3)
    assert not any("stay as they were" in note for note in whole.notes)


def test_blocks_of_columns_are_warned_of() -> None:
    """The groups of several blocks are together a key."""
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.normal(size=60) for name in "ABCD"})
    release = rv.mask(table, "mdav", k=3, block=2, seed=1)
    assert any(note.startswith("warning: mdav: block = 2 groups the columns in 2 blocks") for note in release.notes)
    (warned,) = release.manifest["warnings"]
    assert "a key that few or no others have" in warned
    assert "1,080 of 1,080" in warned
    assert release.manifest["guarantees"] == []
    for block in (0, 4):
        whole = rv.mask(table, "mdav", k=3, block=block, seed=1)
        assert "warnings" not in whole.manifest.content
        assert not any("block" in note for note in whole.notes)
