"""Local suppression: k is always reached, and never with more cells than the greedy ways that are in use."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil.kernels import agreement
from rankveil.methods.suppress import suppress
from rankveil.suppression import EVERY_SET, MOST_COLUMNS, _apart, _numbers, _Search, fewest, frequencies, made_safe

GONE = -1


def table_of(*rows: str) -> Any:
    """Records as words of one letter for each column; a dot is a missing cell."""
    return np.array([[GONE if letter == "." else ord(letter) - ord("a") for letter in row] for row in rows])


def run(codes: Any, *, importance: Any = 1.0, **given: Any) -> Any:
    bound = {**suppress.bind(given), "importance": importance}
    return suppress.run(np.where(codes < 0, 0.0, codes), codes < 0, rng=None, attributes=codes.shape[1], bound=bound)


def released(codes: Any, made: Any) -> list[tuple[int, ...]]:
    return [tuple(row) for row in np.where(made.missing, GONE, codes).tolist()]


# Baselines, written for themselves


def least_like(rows: list[tuple[int, ...]]) -> int:
    """The smallest class, a missing cell being a value of its own."""
    return min(Counter(rows).values())


def agreeing(rows: list[tuple[int, ...]], row: tuple[int, ...]) -> int:
    """How many agree with a record, a missing cell agreeing with everything."""
    return sum(all(GONE in pair or pair[0] == pair[1] for pair in zip(row, other, strict=True)) for other in rows)


def blanked(row: tuple[int, ...], columns: Any) -> tuple[int, ...]:
    return tuple(GONE if j in columns else value for j, value in enumerate(row))


def filled_up(rows: list[tuple[int, ...]], k: int) -> list[tuple[int, ...]]:
    """Records without any value that are fewer than k take in the next ones, until nobody is short."""
    rows, empty = list(rows), (GONE,) * len(rows[0])
    while True:
        size = Counter(rows)
        few = [i for i, row in enumerate(rows) if size[row] < k]
        if not few:
            return rows
        chosen = [i for i in few if rows[i] != empty]
        if not chosen:
            chosen = [i for i, row in enumerate(rows) if row != empty][: k - len(few)]
        for i in chosen:
            rows[i] = empty


def cell_by_cell(codes: Any, k: int) -> int:
    """In rounds, every record that is too few loses the one cell after which most are like it."""
    rows = [tuple(row) for row in codes.tolist()]
    columns = range(len(rows[0]))
    while True:
        size = Counter(rows)
        few = [i for i, row in enumerate(rows) if size[row] < k and any(value != GONE for value in row)]
        if not few:
            break
        choice: dict[int, tuple[int, int]] = {}
        for j in columns:
            then = Counter(blanked(row, {j}) if size[row] < k else row for row in rows)
            for i in few:
                if rows[i][j] != GONE and then[blanked(rows[i], {j})] > choice.get(i, (0, 0))[0]:
                    choice[i] = then[blanked(rows[i], {j})], j
        for i, (_, j) in choice.items():
            rows[i] = blanked(rows[i], {j})
    return cells(codes, filled_up(rows, k))


def one_set_for_all(codes: Any, k: int) -> int:
    """The same columns in all records that are too few, everything in those that still are; the best such columns."""
    original = [tuple(row) for row in codes.tolist()]
    size, best = Counter(original), codes.size
    for count in range(codes.shape[1] + 1):
        for columns in combinations(range(codes.shape[1]), count):
            rows = [blanked(row, columns) if size[row] < k else row for row in original]
            best = min(best, cells(codes, filled_up(rows, k)))
    return best


def one_record_after_the_other(codes: Any, k: int) -> int:
    """With missing cells that agree with everything: each record loses the cell that helps it most, until k agree."""
    rows = [tuple(row) for row in codes.tolist()]
    for i in range(len(rows)):
        while agreeing(rows, rows[i]) < k:
            left = [j for j, value in enumerate(rows[i]) if value != GONE]
            rows[i] = max((blanked(rows[i], {j}) for j in left), key=lambda row: agreeing(rows, row))
    return cells(codes, rows)


def cells(codes: Any, rows: list[tuple[int, ...]]) -> int:
    return int(np.sum((np.array(rows) == GONE) & (codes != GONE)))


def optimum(codes: Any, k: int) -> int:
    """The least number of cells, over all partitions into groups of k to 2 k - 1 records."""

    def cost(group: tuple[int, ...]) -> int:
        return sum(int((part >= 0).sum()) for part in codes[list(group)].T if len(set(part.tolist())) > 1)

    @cache
    def least(left: tuple[int, ...]) -> float:
        if not left:
            return 0
        if len(left) < k:
            return np.inf
        first, others = left[0], left[1:]
        return min(
            cost((first, *rest)) + least(tuple(i for i in others if i not in rest))
            for size in range(k - 1, min(2 * k - 1, len(left)))
            for rest in combinations(others, size)
        )

    return int(least(tuple(range(len(codes)))))


@st.composite
def tables(draw: Any, most: int = 14) -> tuple[Any, int]:
    n, columns = draw(st.integers(1, most)), draw(st.integers(1, 4))
    values = draw(st.lists(st.integers(-1, 2), min_size=n * columns, max_size=n * columns))
    return np.array(values).reshape(n, columns), draw(st.integers(1, min(n, 5)))


def people(n: int, columns: int, *, draw: int = 0, values: tuple[int, ...] = (2, 5, 8, 12, 3)) -> Any:
    """Categories that depend on each other."""
    rng = np.random.default_rng(draw)
    common = rng.normal(size=(n, 2))
    made = []
    for j in range(columns):
        scale = common @ rng.normal(size=2) / 2 + rng.normal(size=n)
        made.append((np.clip((scale + 3) / 6, 0, 0.9999) * values[j % len(values)]).astype(int))
    return np.column_stack(made)


# Worked


def test_one_of_a_large_class_joins_who_is_alone() -> None:
    codes = table_of("aa", "aa", "aa", "ab", "bb", "bb")
    made = run(codes, k=2)  # ab joins one of aa as a., and leaves two of aa; or one of bb, were there three
    assert made.counts["suppressed"].tolist() == [0, 2]
    assert sorted(Counter(released(codes, made)).values()) == [2, 2, 2]
    assert np.array_equal(made.values[~made.missing], codes[~made.missing])


def test_the_cheaper_column_goes_and_a_dear_one_stays() -> None:
    codes = table_of("aa", "ab", "ba", "bb")
    first = run(codes, k=2, importance=np.array([1.0, 3.0]))
    second = run(codes, k=2, importance=np.array([3.0, 1.0]))
    assert first.counts["suppressed"].tolist() == [4, 0]
    assert second.counts["suppressed"].tolist() == [0, 4]
    # a column of no importance still is not given for nothing
    nothing = run(table_of("aa", "aa", "bb", "bb"), k=2, importance=np.array([0.0, 1.0]))
    assert nothing.counts["suppressed"].tolist() == [0, 0]
    assert run(codes, k=2, importance=np.zeros(2)).counts["suppressed"].sum() == 4


def test_a_cell_that_was_missing_is_like_one_that_was_suppressed() -> None:
    codes = table_of("a.", "ab", "cc", "cc")
    assert run(codes, k=2).missing.tolist() == [[False, True], [False, True], [False, False], [False, False]]
    assert run(codes, k=2, missing_is="any").counts["suppressed"].tolist() == [0, 0]


def test_missing_cells_that_agree_with_everything() -> None:
    codes = table_of("aa", "aa", "ab", "bb", "bb")
    made = run(codes, k=2, missing_is="any")  # ab without either cell agrees with aa or bb, which stay
    assert made.counts["suppressed"].sum() == 1
    assert made.missing[2].sum() == 1


def test_records_without_any_value_are_told() -> None:
    made = run(table_of("ab", "cd", "ef"), k=3)
    assert made.missing.all()
    assert made.notes == ("3 records have none of these values left",)
    assert run(table_of("ab", "cd", "ef"), k=1).notes == ()


def test_too_few_records_or_too_many_columns_are_refused() -> None:
    with pytest.raises(rv.ParameterError, match="need 3 records, and there are 2"):
        run(table_of("ab", "ab"), k=3)
    with pytest.raises(rv.ParameterError, match=f"at most {MOST_COLUMNS} columns, not {MOST_COLUMNS + 1}"):
        run(np.zeros((4, MOST_COLUMNS + 1), dtype=np.int64), k=2)
    with pytest.raises(ValueError, match="at least k records"):
        fewest(table_of("a"), k=2, importance=np.ones(1))


# What always holds


@settings(deadline=None, max_examples=150)  # the first call compiles
@given(tables())
def test_everybody_has_k_like_her_and_greedy_ways_take_no_fewer_cells(drawn: tuple[Any, int]) -> None:
    codes, k = drawn
    made = run(codes, k=k)
    assert least_like(released(codes, made)) >= k
    assert np.array_equal(made.missing & (codes < 0), codes < 0)
    many = int(made.counts["suppressed"].sum())
    assert many == np.sum(made.missing & (codes >= 0))
    assert many <= cell_by_cell(codes, k)
    assert many <= one_set_for_all(codes, k)


@settings(deadline=None, max_examples=100)
@given(tables())
def test_k_agree_with_everybody_and_greedy_ways_take_no_fewer_cells(drawn: tuple[Any, int]) -> None:
    codes, k = drawn
    made = run(codes, k=k, missing_is="any")
    rows = released(codes, made)
    assert min(agreeing(rows, row) for row in rows) >= k
    assert made.counts["suppressed"].sum() <= one_record_after_the_other(codes, k)


@settings(deadline=None, max_examples=60)
@given(tables(most=8))
def test_it_is_near_the_least(drawn: tuple[Any, int]) -> None:
    codes, k = drawn
    many, least = int(run(codes, k=k).counts["suppressed"].sum()), optimum(codes, k)
    assert least <= many <= 1.5 * least + 1


def test_on_average_it_is_within_three_percent_of_the_least() -> None:
    totals = np.zeros(2)
    for draw in range(40):
        rng = np.random.default_rng(draw)
        codes, k = rng.integers(0, 3, (9, 3)), 2 + draw % 2
        totals += [run(codes, k=k).counts["suppressed"].sum(), optimum(codes, k)]
    assert totals[1] <= totals[0] <= 1.03 * totals[1]


@pytest.mark.parametrize(("n", "columns", "k"), [(300, 4, 3), (400, 6, 5), (120, 8, 2), (150, 3, 20)])
def test_larger_tables(n: int, columns: int, k: int) -> None:
    codes = people(n, columns)
    codes[np.random.default_rng(1).random(codes.shape) < 0.02] = GONE
    made = run(codes, k=k)
    rows = released(codes, made)
    assert least_like(rows) >= k
    assert made.counts["suppressed"].sum() < 0.95 * min(cell_by_cell(codes, k), one_set_for_all(codes, k))
    assert np.array_equal(run(codes, k=k).missing, made.missing)
    loose = run(codes, k=k, missing_is="any")
    rows = released(codes, loose)
    assert min(agreeing(rows, row) for row in rows) >= k
    assert loose.counts["suppressed"].sum() < 0.95 * one_record_after_the_other(codes, k)


@pytest.mark.parametrize("missing", ["own", pytest.param("any", marks=pytest.mark.thorough)])
def test_many_columns(missing: Any) -> None:
    codes = people(300, EVERY_SET + 4, values=(2, 3, 4))
    made = run(codes, k=3, missing_is=missing)
    assert frequencies(codes, made.missing, missing=missing).min() >= 3
    assert f"of more than {EVERY_SET} columns not every set" in made.notes[0]
    greedy = cell_by_cell(codes, 3) if missing == "own" else one_record_after_the_other(codes, 3)
    assert made.counts["suppressed"].sum() < 0.95 * greedy


def test_large_classes_lend_and_stay() -> None:
    codes = np.vstack([np.zeros((5000, 2), dtype=np.int64), table_of("ab"), np.full((4000, 2), 2)])
    made = run(codes, k=10)
    assert made.counts["suppressed"].sum() == 10  # nine of the first class and who is alone
    assert least_like(released(codes, made)) == 10


# Parts


def test_whole_records_are_the_last_resort() -> None:
    codes = table_of("aa", "ab", "cc", "cc", "cc")
    nothing = np.zeros(codes.shape, dtype=bool)
    safe, forced = made_safe(codes, nothing, k=2, missing="own")
    assert forced == 2
    assert safe.tolist() == [[True, True]] * 2 + [[False, False]] * 3
    # one alone without values takes in the next ones, and who was left by them
    safe, forced = made_safe(table_of("ab", "cc", "cc"), np.zeros((3, 2), dtype=bool), k=2, missing="own")
    assert forced == 3
    assert safe.all()


def test_values_have_numbers_of_their_own() -> None:
    codes = np.array([[0, 0, GONE], [1, 0, 0], [0, 1, 0]])
    z = _numbers(codes)
    assert z[0, 2] == 0
    assert z[0, 0] == z[2, 0] != z[1, 0]
    many = _numbers(np.column_stack([np.arange(50_000)] * 4))
    assert np.unique(many).size == many.size


def test_columns_that_tell_neighbours_apart() -> None:
    codes = table_of("aaa", "aab", "aac")
    assert set(_apart(codes, 2).tolist()) == {4}
    assert set(_apart(codes, 1).tolist()) == {4}
    assert set(_apart(table_of("aaa", "bab"), 2).tolist()) == {5}


@settings(deadline=None, max_examples=40)
@given(tables())
def test_every_way_reaches_k_and_an_improvement_costs_no_more(drawn: tuple[Any, int]) -> None:
    codes, k = drawn
    search = _Search(codes, k, np.array([3, 1, 2, 5], dtype=np.int64)[: codes.shape[1]])
    for masks in (search.constructed(), search.one_set(), search.greedy()):
        for made in (masks, search.improved(masks)):
            flags = (made[:, None] >> np.arange(codes.shape[1]) & 1).astype(bool)
            assert not np.any(flags & (codes < 0))
            assert frequencies(codes, flags, missing="own").min() >= k
        assert search.cost(search.improved(masks)) <= search.cost(masks)


@settings(deadline=None, max_examples=40)
@given(tables(), st.sampled_from([np.int16, np.int64]))
def test_the_loops_keep_count_of_who_agrees(drawn: tuple[Any, int], kind: Any) -> None:
    codes, k = drawn
    columns = codes.shape[1]
    bits = (1 << np.arange(columns)).astype(kind)
    absent = ((codes < 0) @ bits).astype(kind)
    weights = np.array([3, 1, 2, 5], dtype=np.int64)[:columns]
    order = np.arange(len(codes))
    for stepwise in (False, True):
        before = frequencies(codes, np.zeros(codes.shape, dtype=bool), missing="any")
        values = np.ascontiguousarray(codes.T.astype(np.int16))  # the type for which the loops are compiled anyway
        state = agreement.State(values, bits, absent, np.zeros_like(absent), absent.copy(), before.copy(), weights)
        if stepwise:
            spent = agreement.protect_stepwise(state, order, k, k % 2 == 0, 10**9)
        else:
            agreement.protect(state, order, k)
            spent = cost_of(state)
        for back in (agreement.give_back_cells, agreement.give_back):
            assert state.frequency.tolist() == counted(codes, state)
            assert state.frequency.min() >= k
            assert cost_of(state) == spent
            spent -= back(state, order, k)
        assert state.frequency.tolist() == counted(codes, state)
        assert state.frequency.min() >= k
        assert cost_of(state) == spent


def cost_of(state: Any) -> int:
    return sum(int(((state.mask >> j) & 1).sum() * weight) for j, weight in enumerate(state.weights))


def counted(codes: Any, state: Any) -> list[int]:
    flags = (state.mask[:, None].astype(np.int64) >> np.arange(codes.shape[1]) & 1).astype(bool)
    rows = [tuple(row) for row in np.where(flags, GONE, codes).tolist()]
    return [agreeing(rows, row) for row in rows]


# In a release

ROLES = {"AGE": "quasi-identifier", "SEX": "quasi-identifier", "REGION": "quasi-identifier"}


def test_a_release_is_k_anonymous_by_the_measure_and_says_so() -> None:
    data = rv.datasets.demo(500)
    release = rv.mask(data, "suppress", k=4, seed=1, schema=rv.Schema(roles=ROLES), publish=["k_anonymity"])
    assert release.manifest["measures"]["k_anonymity"] >= 4
    assert release.manifest["guarantees"] == [
        "every record shares its values of AGE, SEX, REGION with at least 3 others (k-anonymity)"
    ]
    counts = release.manifest["steps"][0]["counts"]
    for name in ROLES:
        before, after = data[name].to_pylist(), release.data[name].to_pylist()
        gone = sum(now is None and then is not None for then, now in zip(before, after, strict=True))
        assert counts[name]["suppressed"] == gone
        assert release.changed[name] == gone
        assert all(now is None or now == then for then, now in zip(before, after, strict=True))
    loose = rv.mask(data, "suppress", k=4, missing_is="any", seed=1, schema=rv.Schema(roles=ROLES))
    assert "where a missing cell agrees with any value" in loose.manifest["guarantees"][0]
    assert sum(loose.changed.values()) < sum(release.changed.values())
    assert rv.mask(data, "suppress", k=1, seed=1, schema=rv.Schema(roles=ROLES)).manifest["guarantees"] == []


def test_what_comes_later_may_void_the_guarantee() -> None:
    schema = rv.Schema(roles=ROLES)
    first = rv.Plan.of("suppress", k=3)
    sampled = rv.mask(rv.datasets.demo(300), first.then("sample", share=0.5), seed=1, schema=schema)
    assert sampled.manifest["guarantees"] == []  # who was like her may be left out
    before = rv.Plan.of("sample", share=0.5).then("suppress", k=3)
    assert len(rv.mask(rv.datasets.demo(300), before, seed=1, schema=schema).manifest["guarantees"]) == 1
    shuffled = rv.mask(rv.datasets.demo(300), first.then("record_shuffle"), seed=1, schema=schema)
    assert len(shuffled.manifest["guarantees"]) == 1


def test_columns_need_a_role_or_a_name_and_keep_their_types() -> None:
    frame = rv.datasets.census(400).to_pandas()
    with pytest.raises(rv.ParameterError, match="no column was given the role quasi-identifier"):
        rv.mask(frame[["INCOME", "TAX"]], "suppress")
    names = ["AGE", "EDUCATION", "BIRTH", "REGION"]
    frame["BIRTH"] = pd.to_datetime(frame["BIRTH"]).dt.to_period("Y").dt.to_timestamp()
    made = rv.mask(frame, "suppress", columns=names, k=2, seed=1).data
    assert made["EDUCATION"].dtype == frame["EDUCATION"].dtype
    assert made["BIRTH"].dtype == frame["BIRTH"].dtype
    for name in names:
        there = made[name].notna()
        assert (made.loc[there, name] == frame.loc[there, name]).all()
    assert made[names].groupby(names, dropna=False, observed=True).size().min() >= 2


def test_households_and_persons_together_reach_k_and_households_agree() -> None:
    data, roles = rv.datasets.census(2_000), {"HOUSEHOLD": "group", "REGION": "quasi-identifier"}
    schema = rv.Schema(
        roles={**roles, "SEX": "quasi-identifier", "AGE": "quasi-identifier"},
        hierarchies=rv.datasets.census_hierarchies(),
    )
    plan = rv.Plan(
        (rv.Step("recode", {}, {"AGE": {"width": 20}, "REGION": {"level": 1}}), rv.Step("suppress", {"k": 5}))
    )
    release = rv.mask(data, plan, schema=schema, seed=1)
    made = release.data.to_pandas()
    assert made.groupby(["REGION", "SEX", "AGE"], dropna=False).size().min() >= 5
    assert (made.groupby("HOUSEHOLD")["REGION"].nunique(dropna=False) == 1).all()
    assert made["REGION"].isna().any()  # otherwise this would show nothing
    counts = release.manifest["steps"][1]["counts"]
    assert {name: counts[name]["suppressed"] for name in counts} == made[list(counts)].isna().sum().to_dict()
    assert "(k-anonymity)" in release.manifest["guarantees"][0]


def test_suppressed_cells_look_like_those_that_were_missing_and_lost_categories_are_not_told() -> None:
    towns = pd.Categorical(["a", "a", "b", "c", "n/a", "a"], categories=["a", "b", "c", "n/a"])
    frame = pd.DataFrame({"TOWN": towns, "TEXT": ["x", "x", "y", "z", "n/a", "x"]})
    schema = rv.Schema(missing=("n/a",))
    made = rv.mask(frame, "suppress", columns=["TOWN", "TEXT"], k=3, seed=1, schema=schema).data
    assert made["TOWN"].cat.categories.tolist() == ["a"]
    for name, kept in (("TOWN", "a"), ("TEXT", "x")):
        assert [None if pd.isna(cell) else cell for cell in made[name]] == [kept, kept, None, None, None, kept]


def test_a_column_of_categories_without_a_cell_left() -> None:
    words = pa.array(["a", "b", "c", "d"]).dictionary_encode()
    schema = rv.Schema(roles={"A": "quasi-identifier"})
    made = rv.mask(pa.table({"A": words, "B": [1.0, 2.0, 3.0, 4.0]}), "suppress", k=2, schema=schema).data
    assert made["A"].to_pylist() == [None] * 4
    assert made["A"].combine_chunks().dictionary.to_pylist() == []


def test_a_quasi_identifier_without_any_value_stays_so() -> None:
    data = pa.table({"A": pa.array([None] * 4, pa.string()), "B": [1, 1, 2, 2]})
    schema = rv.Schema(kinds={"A": "numeric"}, roles={"A": "quasi-identifier", "B": "quasi-identifier"})
    assert rv.mask(data, "suppress", k=2, schema=schema).data.equals(data)


@pytest.mark.parametrize("kind", ["int8[pyarrow]", "Int8"])
def test_a_column_of_whole_numbers_that_may_be_missing_keeps_its_type(kind: str) -> None:
    data = pd.DataFrame({"A": pd.array([1, 1, 2], dtype=kind)})
    made = rv.mask(data, "suppress", k=2, schema=rv.Schema(roles={"A": "quasi-identifier"})).data
    assert str(made["A"].dtype) == kind
    assert made["A"].isna().any()
