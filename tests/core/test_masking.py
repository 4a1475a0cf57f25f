"""Plans: written, read back, refused, and what their steps do to a table."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankveil as rv
from rankveil import catalogue, masking
from rankveil.catalogue import Parameter
from rankveil.errors import ParameterError, RankveilError, TableError
from rankveil.plans import Plan, Step, make_step
from rankveil.seeds import CommonSeed, Seed
from rankveil.table import Table


def values_for(parameter: Parameter) -> st.SearchStrategy[Any]:
    """Whatever a parameter may be."""
    if parameter.choices:
        made: st.SearchStrategy[Any] = st.sampled_from(parameter.choices)
    elif parameter.type is bool:
        made = st.booleans()
    elif parameter.type is tuple:
        made = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), max_size=3).map(tuple)
    elif parameter.type is str:
        made = st.text(min_size=1).filter(lambda text: text.lower() != "none")
    else:
        low = max(parameter.range.low, -1e9) if parameter.range else -1e9
        high = min(parameter.range.high, 1e9) if parameter.range else 1e9
        above = bool(parameter.range and parameter.range.above)
        if parameter.type is int:
            made = st.integers(int(low) + above, int(high))
        else:
            made = st.floats(low, high, exclude_min=above)
    return made | st.none() if parameter.optional else made


@st.composite
def steps(draw: Any) -> Step:
    entry = draw(st.sampled_from(list(catalogue.methods().values())))
    some = st.fixed_dictionaries({}, optional={name: values_for(p) for name, p in entry.parameters.items()})
    names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
    columns = draw(st.none() | st.lists(names, min_size=1, max_size=3, unique=True).map(tuple))
    return Step(entry.id, draw(some), draw(st.dictionaries(names, some, max_size=2)), columns)


@given(st.lists(steps(), min_size=1, max_size=4).map(tuple).map(Plan))
def test_a_plan_comes_back_from_toml_and_json_as_it_was(plan: Plan) -> None:
    assert Plan.from_toml(plan.to_toml()) == plan
    assert Plan.from_json(plan.to_json()) == plan
    assert Plan.from_dict(plan.to_dict()) == plan


def test_a_plan_as_a_person_writes_it() -> None:
    plan = Plan.from_toml("""
        [[steps]]
        method = "additive_noise"
        columns = ["INCOME", "TAX"]
        parameters = { alpha = 1 }
        per_column."INCOME" = { sd = 5 }

        [[steps]]
        method = "round"
    """)
    assert plan == Plan.of("additive_noise", columns=["INCOME", "TAX"], alpha=1.0, sd={"INCOME": 5.0}).then("round")
    assert plan.steps[0].bound("INCOME") == {"alpha": 1.0, "sd": 5.0}
    assert plan.steps[0].bound("TAX") == {"alpha": 1.0, "sd": None}


BAD: list[tuple[Any, str]] = [
    ([], "not a plan"),
    ("text", "not a plan"),
    (None, "not a plan"),
    ({}, "not a plan"),
    ({"steps": {}}, "not a plan"),
    ({"steps": "identity"}, "not a plan"),
    ({"schema": "rankveil/plan/2", "steps": []}, "not a plan"),
    ({"steps": []}, "at least one step"),
    ({"steps": ["identity"]}, "step 1 of the plan: it must be a table"),
    ({"steps": [{"method": "identity"}, 3]}, "step 2 of the plan: it must be a table"),
    ({"steps": [{}]}, "step 1 of the plan: it names no method"),
    ({"steps": [{"method": "permute", "per_column": 3}]}, "step 1 of the plan: [steps.per_column] must be a table"),
    (
        {"steps": [{"method": "additive_noise", "per_column": {"A": 3}}]},
        "step 1 of the plan: [steps.per_column.A] must be a table",
    ),
    (
        {"steps": [{"method": "permute"}, {"method": "additive_noise", "per_column": {"B": {}, "A": {"alpha": -1}}}]},
        "step 2 of the plan: [steps.per_column.A]: additive_noise: alpha of column A must be",
    ),
    (
        {"steps": [{"method": "additive_noise", "per_column": {"A b": {"alhpa": 1}}}]},
        'step 1 of the plan: [steps.per_column."A b"]: additive_noise has no parameter alhpa',
    ),
    ({"steps": [{"method": ["identity"]}]}, "step 1 of the plan: it names no method"),
    ({"steps": [{"method": "identiti"}]}, "step 1 of the plan: there is no method identiti; did you mean identity?"),
    ({"steps": [{"method": "identity", "colums": ["A"]}]}, "it does not know colums"),
    ({"steps": [{"method": "identity", "columns": "AB"}]}, "columns must be a list of names"),
    ({"steps": [{"method": "identity", "columns": [1]}]}, "columns must be a list of names"),
    ({"steps": [{"method": "identity", "columns": []}]}, "no column is named"),
    ({"steps": [{"method": "rank_swap", "parameters": [5]}]}, "[steps.parameters] must be a table"),
    ({"steps": [{"method": "rank_swap", "per_column": {"A": 5}}]}, "[steps.per_column.A] must be a table"),
    ({"steps": [{"method": "rank_swap", "parameters": {"q": 5}}]}, "rank_swap has no parameter q"),
    ({"steps": [{"method": "rank_swap", "parameters": {"p": 500}}]}, "rank_swap: p must be a number from 0 to 100"),
    ({"steps": [{"method": "rank_swap", "per_column": {"A": {"p": "x"}}}]}, "p of column A must be a number"),
    ({"steps": [{"method": "rank_swap", "parameters": {"p": {"A": 1}}}]}, "rank_swap: p must be"),
]


@pytest.mark.parametrize(("plain", "message"), BAD, ids=[message for _, message in BAD])
def test_a_bad_plan_is_refused_in_one_sentence(plain: Any, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Plan.from_json(json.dumps(plain))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("read", "text"), [(Plan.from_json, "{"), (Plan.from_toml, "steps = ["), (Plan.from_json, "")])
def test_what_is_no_json_or_toml_is_refused(read: Any, text: str) -> None:
    with pytest.raises(ParameterError, match="the plan is not"):
        read(text)


def test_plans_are_made_in_several_ways() -> None:
    one = Plan.of("rank_swap", p=10)
    assert Plan.of(one) is one
    assert Plan.of(one.steps[0]) == one
    assert one.then("round", decimals=1).then(Step("clip")).to_dict()["steps"] == [
        {"method": "rank_swap", "parameters": {"p": 10.0}},
        {"method": "round", "parameters": {"decimals": 1}},
        {"method": "clip"},
    ]
    with pytest.raises(ParameterError, match="has its own parameters"):
        Plan.of(one, p=5)
    with pytest.raises(ParameterError, match="has its own parameters"):
        Plan.of(one, columns=["A"])
    with pytest.raises(ParameterError, match="at least one step"):
        Plan(())


def test_one_name_is_one_column() -> None:
    assert Plan.of("rank_swap", columns="INCOME").steps[0].columns == ("INCOME",)


def test_flat_parameters_with_a_column_in_their_name() -> None:
    step = make_step("additive_noise", {"alpha": "0.2", "alpha.INCOME": 0.3, "sd.NET.TAX": "none", "sd": {"AGE": 1}})
    assert step.parameters == {"alpha": 0.2}
    assert step.per_column == {"INCOME": {"alpha": 0.3}, "NET.TAX": {"sd": None}, "AGE": {"sd": 1.0}}


@pytest.fixture
def table() -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {"A": rng.normal(size=50), "B": rng.normal(size=50), "C": rng.normal(size=50), "T": ["x", "y"] * 25}
    )


def column(data: Any, name: str) -> Any:
    return data[name].to_numpy()


def test_parameters_of_one_column(table: pa.Table) -> None:
    plan = Plan.of("additive_noise", columns=["A", "B", "C"], **{"sd": 2.0, "sd.B": 0.0, "sd.C": 4.0})
    made = masking.apply(Table(table), plan, seed=Seed.of(1), grid=False).values
    noise = {name: Seed.of(1).stream("mask", 0, "additive_noise", name, 0).normal(50) for name in "ABC"}
    assert np.array_equal(made["A"], column(table, "A") + 2.0 * noise["A"])
    assert np.array_equal(made["B"], column(table, "B"))
    assert np.array_equal(made["C"], column(table, "C") + 4.0 * noise["C"])


def test_none_for_one_column_overrides_what_holds_for_all(table: pa.Table) -> None:
    plan = Plan.from_toml(Plan.of("additive_noise", **{"sd": 0.0, "sd.B": "none", "alpha": 0.5}).to_toml())
    made = rv.mask(table, plan, seed=1).data
    assert np.array_equal(column(made, "A"), column(table, "A"))
    assert not np.array_equal(column(made, "B"), column(table, "B"))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"p.D": 5}, "rank_swap: the parameter of column D: there is no column D"),
        ({"columns": ["A", "B"], "p.T": 5}, "rank_swap: column T has its own parameter but is not masked by this step"),
        ({"columns": ["A"], "p.B": 5}, "column B has its own parameter but is not masked"),
        ({"columns": ["Z"]}, "there is no column Z"),
        ({"columns": ["A", "A"]}, "column A is named twice"),
        ({"columns": ["T"]}, "column T: "),
    ],
)
def test_columns_that_do_not_fit_are_refused(table: pa.Table, plan: dict[str, Any], message: str) -> None:
    with pytest.raises(RankveilError) as caught:
        rv.mask(table, "rank_swap", **plan)
    assert message in str(caught.value)


def test_a_method_refuses_kinds_that_it_does_not_take(table: pa.Table) -> None:
    levels = rv.Schema(levels={"T": ["x", "y"]})
    ordinal = Table(table, schema=levels)
    assert masking.apply(ordinal, Plan.of("rank_swap"), seed=Seed.of(1)).masked == ("A", "B", "C", "T")
    assert masking.apply(ordinal, Plan.of("additive_noise"), seed=Seed.of(1)).masked == ("A", "B", "C")
    with pytest.raises(TableError, match="column T: additive_noise takes numeric columns, and this one is ordinal"):
        masking.apply(ordinal, Plan.of("additive_noise", columns=["T"]), seed=Seed.of(1))
    only_text = Table(table.select(["T"]), schema=levels)
    with pytest.raises(TableError, match="no usable column: additive_noise takes numeric columns"):
        masking.apply(only_text, Plan.of("additive_noise"), seed=Seed.of(1))


def test_post_steps_act_on_what_was_masked_only(table: pa.Table) -> None:
    noisy = Plan.of("additive_noise", columns=["B"], alpha=1.0)
    for post in ("round", "reverse_map", "rescale", "clip"):
        applied = masking.apply(Table(table), noisy.then(post), seed=Seed.of(1))
        assert applied.columns == (("B",), ("B",)), post
        assert applied.masked == ("B",)
    both = noisy.then("permute", columns=["C"]).then("round", decimals=1)
    assert masking.apply(Table(table), both, seed=Seed.of(1)).columns[-1] == ("B", "C")
    chosen = noisy.then("round", columns=["A"], decimals=1)
    assert masking.apply(Table(table), chosen, seed=Seed.of(1)).masked == ("A", "B")


def test_a_post_step_alone_acts_on_all(table: pa.Table) -> None:
    made = rv.mask(table, "round", decimals=0, seed=1).data
    assert np.array_equal(column(made, "A"), np.round(column(table, "A")))
    assert np.array_equal(column(made, "C"), np.round(column(table, "C")))


def test_a_post_step_sees_the_original_and_what_the_steps_before_made(table: pa.Table) -> None:
    plan = Plan.of("additive_noise", columns=["A"], alpha=2.0).then("record_shuffle").then("reverse_map")
    release = rv.mask(table, plan, seed=CommonSeed.of(1))
    order = release.secret.order
    assert order is not None
    noisy = rv.mask(table, Plan((plan.steps[0],)), seed=CommonSeed.of(1)).data
    z, y = column(release.data, "A"), column(noisy, "A")[order]
    assert np.array_equal(np.sort(z), np.sort(column(table, "A")))
    assert np.array_equal(np.argsort(z), np.argsort(y))
    assert np.array_equal(column(release.data, "C"), column(table, "C")[order])
    assert release.data["T"].to_pylist() == [table["T"].to_pylist()[i] for i in order]


def test_shuffled_twice_the_mapping_still_leads_back(table: pa.Table) -> None:
    plan = Plan.of("identity", columns=["A"]).then("record_shuffle").then("record_shuffle")
    release = rv.mask(table, plan, seed=1)
    order = release.secret.order
    assert order is not None
    assert release.data.to_pylist() == table.take(pa.array(order)).to_pylist(), "records stay whole"
    assert not np.array_equal(order, rv.mask(table, "record_shuffle", seed=1).secret.order)


def test_noise_after_a_shuffle_goes_by_released_row_with_missing_cells(table: pa.Table) -> None:
    holes = column(table, "A").copy()
    holes[[3, 40]] = np.nan
    data = table.set_column(0, "A", pa.array(holes))
    plan = Plan.of("record_shuffle").then("additive_noise", columns=["A"], sd=1.0)
    made = masking.apply(Table(data), plan, seed=Seed.of(1), grid=False)
    assert made.order is not None
    noise = Seed.of(1).stream("mask", 1, "additive_noise", "A", 0).normal(50)
    assert np.array_equal(made.values["A"], holes[made.order] + noise, equal_nan=True)


def test_each_step_draws_from_its_own_stream(table: pa.Table) -> None:
    once = rv.mask(table, Plan.of("additive_noise", columns=["A"], sd=1.0), seed=CommonSeed.of(1)).data
    twice = rv.mask(
        table, Plan.of("additive_noise", columns=["A"], sd=1.0).then("additive_noise", sd=1.0), seed=CommonSeed.of(1)
    ).data
    first = column(once, "A") - column(table, "A")
    second = column(twice, "A") - column(once, "A")
    assert not np.allclose(first, second)


def test_values_too_large_to_write_are_refused_with_their_rows() -> None:
    data = pa.table({"A": [1.0, 1e308, -1.0, -1e308]})
    with pytest.raises(ParameterError, match=r"column A: multiplicative_noise makes values too large .*\(rows 2, 4\)"):
        rv.mask(data, "multiplicative_noise", beta=1e3, seed=1)


def test_counts_and_notes_are_handed_on(table: pa.Table) -> None:
    plan = Plan.of("additive_noise", columns=["A", "B"], alpha=1.0).then("clip", **{"lower": -0.5, "lower.B": -1e9})
    applied = masking.apply(Table(table), plan, seed=Seed.of(1))
    assert applied.counts[0] == {}
    low = int(np.sum(np.isclose(applied.values["A"], -0.5)))
    assert applied.counts[1]["A"]["clipped"] >= low > 0
    made = masking.apply(Table(table), Plan.of("rank_swap", columns=["A"], p=1), seed=Seed.of(1))
    assert made.notes == (
        "rank_swap, column A: p = 1 percent of 50 records is less than one rank: hardly a value moves",
    )
