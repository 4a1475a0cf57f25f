"""Every measure on every pair of tables: a number within its bounds, a reason why there is none, or one sentence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil.catalogue import Measure, Parameter, measures
from rankveil.schema import Kind, Role

MANY = settings.default.max_examples


def slow(measure: Measure) -> bool:
    """Whether it trains models."""
    return "folds" in measure.parameters


@st.composite
def weights(draw: st.DrawFn, n: int) -> pa.Array:
    """A column of weights: mostly such as surveys have, else what may stand in their place."""
    how = draw(st.sampled_from(["survey", "survey", "survey", "some zero", "huge", "tiny", "negative", "zero"]))
    spread = np.random.default_rng(draw(st.integers(0, 99))).uniform(0.5, 40.0, n)
    made = {
        "survey": spread,
        "some zero": np.where(spread < 20, 0.0, spread),
        "huge": spread * 1e306,
        "tiny": spread * 5e-324,
        "negative": spread - 1.0,
        "zero": 0.0 * spread,
    }
    return pa.array(made[how])


def can_be_ranked(column: pa.ChunkedArray) -> bool:
    """Whether a person would name the column: it holds numbers, dates or texts, and some of them."""
    kind = column.type
    fit = (pa.types.is_floating, pa.types.is_integer, pa.types.is_temporal, pa.types.is_string, pa.types.is_dictionary)
    return column.null_count < len(column) and any(fits(kind) for fits in fit)


@st.composite
def schemas(draw: st.DrawFn, names: list[str], *, odd: bool) -> dict[str, dict[str, str]]:
    """What somebody may declare of the columns: roles, and if it is to be odd such as do not fit, and kinds."""
    if draw(st.integers(0, 2)) == 0:
        return {"roles": {}, "kinds": {}}
    role = st.sampled_from([None, *get_args(Role)] if odd else [None, "confidential", "quasi-identifier"])
    kind = st.sampled_from([None, None, *get_args(Kind)] if odd else [None])
    given = {what: {name: draw(word) for name in names} for what, word in (("roles", role), ("kinds", kind))}
    return {what: {name: word for name, word in words.items() if word} for what, words in given.items()}


@st.composite
def audits(
    draw: st.DrawFn, tables: Any, released: Any, *, aimed: bool = False
) -> tuple[pa.Table, pa.Table, dict[str, Any]]:
    """Two tables, and how somebody says that they belong together; one time in four as nobody should.

    With `aimed`, a column is named that the others explain.
    """
    odd = draw(st.integers(0, 3)) == 0
    table = draw(tables(wide=False, plain_names=not odd))
    release = draw(released(table))
    names = [name for name in table.column_names if odd or can_be_ranked(table[name])]
    told = draw(schemas(names, odd=odd))
    how = draw(st.sampled_from(["rows", "rows", "rows", "key", "none", "none", "nearest"]))
    asked: dict[str, Any] = {"seed": draw(st.integers(0, 3)), "mapping": how not in ("none", "nearest")}
    if how == "nearest":
        asked["pair"] = "nearest"
    if how == "key":
        asked["key"] = "K"
        table, release = (each.append_column("K", pa.array(range(each.num_rows))) for each in (table, release))
        release = release.take(np.random.default_rng(1).permutation(release.num_rows))
    if draw(st.integers(0, 3)) == 0:
        told["roles"]["W"] = "weight"
        table = table.append_column("W", draw(weights(table.num_rows)))
        if draw(st.booleans()):
            release = release.append_column("W", draw(weights(release.num_rows)))
    if names and draw(st.booleans()):
        asked["columns"] = draw(st.lists(st.sampled_from(names), min_size=1, max_size=5, unique=True))
    if names and draw(st.integers(0, 4)) == 0:
        asked["by"] = draw(st.sampled_from(names))
    if names and (aimed or draw(st.integers(0, 2)) == 0):
        asked["target"] = draw(st.sampled_from(asked.get("columns", names)))
    schema = rv.Schema(**told)
    return table, release, {**asked, "schema": schema}


def values_of(parameter: Parameter) -> st.SearchStrategy[Any]:
    """Values that a parameter may have, the ends of its range among them."""
    if parameter.choices:
        return st.sampled_from(parameter.choices)
    if parameter.type is bool:
        return st.booleans()
    assert parameter.range is not None
    low, high = parameter.range.low, min(parameter.range.high, parameter.range.low + 200)
    ends = [high] if parameter.range.above else [low, high]
    if parameter.type is int:
        return st.one_of(st.sampled_from([int(end) for end in ends]), st.integers(int(low) + 1, int(high)))
    return st.one_of(st.sampled_from(ends), st.floats(low, high, exclude_min=True))


@st.composite
def one_set(draw: st.DrawFn, asked: Mapping[str, Measure]) -> dict[str, dict[str, Any]]:
    """Some parameters of one of the measures set."""
    measure = draw(st.sampled_from([each for each in asked.values() if each.parameters]))
    some = {name: draw(values_of(each)) for name, each in measure.parameters.items() if draw(st.booleans())}
    return {measure.id: some}


def check(made: rv.Audit, asked: Mapping[str, Measure]) -> None:
    """Every measure has a number within its bounds or a reason."""
    json.dumps(made.to_dict(), allow_nan=False)
    assert made.values.keys() | made.not_applicable.keys() == asked.keys()
    for name, why in made.not_applicable.items():
        # a reason like that is a mistake of the measure that the audit survives
        assert why.strip(), name
        assert "could not be computed" not in why, (name, why)
    for name, value in made.values.items():
        low, high = asked[name].bounds
        assert type(value.value) is float, name
        assert math.isfinite(value.value), name
        assert low <= value.value <= high, name
        for each in value.details.get("per_attribute", {}).values():
            assert low - 1e-9 <= each <= high + 1e-9, name
        for part in value.details.get("by", {}).values():
            assert "could not be computed" not in part.get("not_applicable", ""), (name, part)


@pytest.fixture
def tried(tables: Any, released: Any, content: Callable[[pa.Table], bytes], tally: Any) -> Callable[..., None]:
    """Takes a pair of tables through some measures."""

    def take(data: Any, asked: Mapping[str, Measure], *, aimed: bool = False) -> None:
        table, release, how = data.draw(audits(tables, released, aimed=aimed))
        how["settings"] = data.draw(one_set(asked))
        before = content(table), content(release)
        tally("pairs of tables given to measures")
        try:
            made = rv.audit(table, release, measures=list(asked), **how)
        except rv.RankveilError as error:
            assert str(error).strip()  # noqa: PT017 - it need not be refused
        else:
            check(made, asked)
            tally("measures of such pairs, each a value within its bounds or a reason", len(asked))
        assert (content(table), content(release)) == before

    return take


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_measure_has_a_value_within_its_bounds_or_a_reason(data: Any, tried: Any) -> None:
    tried(data, {name: each for name, each in measures().items() if not slow(each)})


@settings(max_examples=max(MANY // 10, 1), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_measures_that_train_models_have_a_value_or_a_reason(data: Any, tried: Any) -> None:
    tried(data, {name: each for name, each in measures().items() if slow(each)}, aimed=True)


@pytest.mark.thorough
@pytest.mark.parametrize("records", [1, 6])
def test_tables_of_500_columns_have_every_measure_or_a_reason(records: int, tally: Any) -> None:
    x, y = np.random.default_rng(records).normal(size=(2, 500, records))
    pair = (pa.table({f"V{j}": column for j, column in enumerate(side)}) for side in (x, y))
    check(rv.audit(*pair, target="V0"), measures())
    tally("pairs of tables given to measures")
    tally("measures of such pairs, each a value within its bounds or a reason", len(measures()))
