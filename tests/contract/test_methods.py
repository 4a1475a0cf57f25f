"""The contract of a masking method, run over every one in the catalogue with every parameter tried."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil import masking
from rankveil.catalogue import Outcome
from rankveil.plans import Plan
from rankveil.seeds import CommonSeed, Seed
from rankveil.table import Table


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Whether the columns are the same to the last bit."""
    return all(a[name].tobytes() == b[name].tobytes() for name in a)


def values_of(made: Any) -> Any:
    """The masked values, whether or not there is more to say about them."""
    return made.values if isinstance(made, Outcome) else made


def attempt(variant: Any, columns: Any) -> rv.Release | None:
    """The release, or nothing when the method refuses the table in one sentence."""
    try:
        return variant.mask(columns)
    except rv.RankveilError as error:
        text = str(error)
    assert len(text) > 10
    assert "\n" not in text
    assert "Error" not in text
    return None


def test_the_frame_given_stays_as_it_is(variant: Any, table: Any) -> None:
    frame = pd.DataFrame({name: column.copy() for name, column in table.items()})
    frame["T"] = pd.Categorical(["low", "high"] * 30, categories=["low", "high"], ordered=True)
    for name in table:
        frame[name].to_numpy().flags.writeable = False
    before = frame.copy(deep=True)
    plan = Plan(tuple(rv.Step(s.method, s.parameters, columns=tuple(table)) for s in variant.plan.steps))
    if variant.method.works_on == "records":
        plan = variant.plan
    made = rv.mask(frame, plan, seed=1).data
    pd.testing.assert_frame_equal(frame, before)
    assert made is not frame
    assert list(made.columns) == list(frame.columns)
    assert len(made) == len(frame)


@pytest.mark.only(where=lambda variant: variant.method.works_on == "column")
def test_the_arrays_given_stay_as_they_are(variant: Any, table: Any) -> None:
    x = table["A"].copy()
    original = table["B"].copy()
    given = {"original": original}
    arguments = [given.get(need, x) for need in variant.method.needs]
    for array in (x, original):
        array.setflags(write=False)
    before = [array.tobytes() for array in (x, original)]
    made = values_of(variant.method(*arguments, rng=Seed.of(1).stream("a"), **variant.given))
    assert [array.tobytes() for array in (x, original)] == before
    assert not np.shares_memory(made, x)
    assert made.shape == x.shape
    assert made.dtype == np.float64


@pytest.mark.only(where=lambda variant: variant.facts["reproducible"])
def test_same_seed_same_bytes(variant: Any, table: Any) -> None:
    assert same(variant.run(table, seed=7), variant.run(table, seed=7))


@pytest.mark.only(where=lambda variant: not variant.facts["reproducible"])
def test_what_does_not_repeat_itself_draws_anew(variant: Any, table: Any) -> None:
    assert not same(variant.run(table, seed=7), variant.run(table, seed=7))


@pytest.mark.only(where=lambda base: base.method.random)
def test_another_seed_or_replicate_gives_another_release(base: Any, table: Any) -> None:
    if base.method.post:  # it may draw for ties only
        call = [
            values_of(base.method(np.zeros(60), table["A"], rng=Seed.of(k).stream("a"), **base.given)) for k in (1, 2)
        ]
        assert call[0].tobytes() != call[1].tobytes()
        return
    first = base.run(table, seed=1)
    other = base.run(table, seed=2)
    again = rv.mask(pd.DataFrame(table), base.plan, seed=CommonSeed.of(1), replicate=1).data
    for name in table:
        assert first[name].tobytes() != other[name].tobytes()
        assert first[name].tobytes() != again[name].to_numpy(np.float64).tobytes()


def draws_by_column(method: Any) -> bool:
    """Whether every column has draws of its own."""
    return bool(method.random and method.works_on == "column" and not method.post)


@pytest.mark.only(where=lambda base: draws_by_column(base.method))
def test_two_columns_with_the_same_values_are_masked_apart(base: Any, table: Any) -> None:
    made = base.run({"A": table["A"], "B": table["A"]})
    assert made["A"].tobytes() != made["B"].tobytes()


@pytest.mark.only(where=lambda variant: not variant.method.random)
def test_without_randomness_the_seed_changes_nothing(variant: Any, table: Any) -> None:
    if variant.method.works_on == "column":
        data = [table["B" if need == "original" else "A"] for need in variant.method.needs]
        made = [values_of(variant.method(*data, rng=rng, **variant.given)) for rng in (None, Seed.of(5).stream("a"))]
        assert made[0].tobytes() == made[1].tobytes()
    if not variant.method.post:
        assert same(variant.run(table, seed=1), variant.run(table, seed=2))


@pytest.mark.only(where=lambda variant: variant.facts["marginals"] == "kept")
def test_marginals_are_kept_where_it_says_so(variant: Any, table: Any) -> None:
    release = variant.mask(table)
    for name, masked in variant.run(table).items():
        assert np.array_equal(np.sort(masked), np.sort(table[name])), name
    assert release.manifest["marginals"] == "kept"


def test_the_mapping_is_what_it_says(variant: Any, table: Any) -> None:
    release = variant.mask(table)
    order, declared = release.secret.order, variant.facts["mapping"]
    assert release.manifest["mapping"] == declared
    if declared != "reordered":
        assert order is None
        return
    assert np.array_equal(np.sort(order), np.arange(len(table["A"])))
    if variant.method.works_on == "records":
        released = variant.run(table)
        assert all(np.array_equal(released[name], table[name][order]) for name in table)


@pytest.mark.only(where=lambda variant: variant.facts["local"] and variant.facts["reproducible"])
def test_a_local_method_looks_at_one_record_only(variant: Any, table: Any) -> None:
    assert variant.method.works_on == "column"
    elsewhere = {name: np.where(np.arange(column.size) == 17, column, 3 * column + 1) for name, column in table.items()}
    # the grid, which is the same for all records and published, comes after
    here, there = (
        masking.apply(Table(pa.table(each)), variant.plan, seed=Seed.of(1), grid=False).values
        for each in (table, elsewhere)
    )
    for name in here:
        assert here[name][17] == there[name][17]


def by_column(method: Any) -> bool:
    """Whether a column is masked as if it were alone: neither with others nor by how many there are."""
    return method.works_on != "columns" and "attributes" not in inspect.signature(method.function).parameters


@pytest.mark.only(where=lambda variant: by_column(variant.method) and variant.facts["reproducible"])
def test_a_column_does_not_depend_on_the_others(variant: Any, table: Any) -> None:
    whole = variant.run(table)
    for names in (["C", "A"], ["B"], ["C", "B", "A"]):
        part = variant.run({name: table[name] for name in names})
        assert list(part) == names
        assert same(part, whole)


@pytest.mark.only(where=lambda base: by_column(base.method))
def test_threads_and_compiled_loops_change_nothing(base: Any, large: Any) -> None:
    together = base.run(large)  # on all cores
    for name, column in large.items():  # one column: no threads
        assert same(base.run({name: column}), together), name


def test_missing_cells_stay_missing_and_shift_nothing(variant: Any, table: Any) -> None:
    holes = {name: column.copy() for name, column in table.items()}
    holes["A"][[0, 5, 59]] = np.nan
    holes["B"][5] = np.nan
    release = attempt(variant, holes)
    if release is None:  # fewer values may be too few for it
        return
    order = release.secret.order
    made = variant.run(holes)
    for name, column in holes.items():
        gone = np.isnan(column if order is None else column[order])
        assert np.array_equal(np.isnan(made[name]), gone), name
        if variant.facts["marginals"] == "kept":
            assert np.array_equal(np.sort(made[name][~gone]), np.sort(column[~np.isnan(column)]))
    if not variant.facts["reproducible"]:
        return
    whole = variant.run(table)
    if variant.method.works_on != "columns":  # several columns together look at each other's cells
        assert np.array_equal(made["C"], whole["C"])
    if variant.facts["local"] and order is None:
        for name in table:
            there = ~np.isnan(holes[name])
            assert np.array_equal(made[name][there], whole[name][there]), name


def test_degenerate_tables_give_a_release_or_a_clear_refusal(variant: Any, degenerate: Any) -> None:
    release = attempt(variant, degenerate)
    if release is None:
        return
    made = variant.run(degenerate)
    order = release.secret.order
    for name, column in degenerate.items():
        before = column if order is None else column[order]
        assert np.array_equal(np.isnan(made[name]), np.isnan(before))
        assert not np.isinf(made[name]).any()
        if variant.facts["marginals"] == "kept":
            assert np.array_equal(np.sort(made[name]), np.sort(column), equal_nan=True)
    json.loads(release.manifest.to_json())


def test_an_empty_table_is_refused(base: Any) -> None:
    with pytest.raises(rv.RankveilError, match="no records"):
        base.run({"A": np.empty(0), "B": np.empty(0)})


def test_the_manifest_says_what_was_done_and_not_how_it_was_drawn(variant: Any, table: Any) -> None:
    seed = "5eed0123456789abcdef5eed0123456789abcdef5eed0123456789abcdef5eed"
    release = variant.mask(table, seed=seed)
    text = release.manifest.to_json()
    step = json.loads(text)["steps"][-1]
    assert step["method"] == variant.method.id
    made = masking.settled(variant.plan, Table(pa.table(table)))  # a strength left open is told as a number
    used = variant.method.used(made.steps[-1].bound())
    assert step["parameters"] == json.loads(json.dumps(used))  # JSON has no tuples
    assert step["facts"] == variant.facts
    assert seed not in text
    assert release.secret.fingerprint not in text
    others = text.replace(release.manifest["digest"], "")
    assert not re.search(r"[0-9a-fA-F]{24,}", others), "no key and no hash of any kind but that of the release"
    for secret_repr in (repr(release), repr(release.secret), str(release.secret.seed)):
        assert seed not in secret_repr


def test_the_strength_is_a_parameter(base: Any) -> None:
    method = base.method
    for name in (method.strength, method.local_with, *method.from_data):
        assert name is None or name in method.parameters
    if method.strength:
        assert method.parameters[method.strength].type in (int, float)
    assert method.kinds
    assert set(method.kinds) <= {"numeric", "ordinal", "nominal", "hierarchy"}
