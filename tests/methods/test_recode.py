"""Recoding on five records, bands that hold what their labels say, what an audit makes of them, and what it tells."""

from __future__ import annotations

import datetime
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankveil as rv
from rankveil import datasets, orders
from rankveil.catalogue import get_method
from rankveil.categories import Categories, nominal, ordinal
from rankveil.cli import main
from rankveil.matching import masked_places
from rankveil.plans import Plan

recode = get_method("recode")
TREE = [("Ulm", "South", "*"), ("Bonn", "West", "*"), ("Köln", "West", "*")]
LEVELS = ("none", "primary", "secondary", "bachelor", "master")
NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30).map(np.array)


def labels(x: Any, **given_: Any) -> list[str]:
    made = recode(np.array(x, dtype=float), **given_)
    return [made.levels[int(code)] for code in made.values]


def towns(counts: tuple[int, ...] = (3, 1, 1), *, tree: bool = True) -> Categories:
    hierarchy = rv.Hierarchy(TREE) if tree else None
    return nominal(["Ulm", "Bonn", "Köln"], np.array(counts, dtype=float), hierarchy)


def test_five_ages_by_hand() -> None:
    made = recode(np.array([17.0, 18.0, 29.9, 64.0, 65.0]), cuts=("18", "30", "65"))
    assert made.levels == ("(-inf,18)", "[18,30)", "[30,65)", "[65,inf)")
    assert made.values.tolist() == [0, 1, 1, 2, 3]


def test_bands_beyond_the_values_are_not_named_and_empty_ones_between_are() -> None:
    made = recode(np.array([20.0, 70.0]), cuts=("10", "18", "30", "65", "80"))
    assert made.levels == ("[18,30)", "[30,65)", "[65,80)")
    assert made.values.tolist() == [0, 2]


def test_five_towns_by_hand() -> None:
    known = towns()
    x = np.array([known.labels.index(word) for word in ("Ulm", "Ulm", "Bonn", "Ulm", "Köln")], dtype=float)
    assert labels(x, categories=known, level=0) == ["Ulm", "Ulm", "Bonn", "Ulm", "Köln"]
    assert labels(x, categories=known, level=1) == ["South", "South", "West", "South", "West"]
    assert labels(x, categories=known, level=2) == ["*"] * 5
    assert labels(x, categories=known, rare=25) == ["Ulm", "Ulm", "other", "Ulm", "other"]
    assert labels(x, categories=known, rare=20) == ["Ulm", "Ulm", "Bonn", "Ulm", "Köln"], "one of five is 20 percent"


def test_five_levels_by_hand() -> None:
    known = ordinal(LEVELS, np.ones(5))
    x = [4, 0, 1, 2, 3]
    assert labels(x, categories=known, cuts=("secondary", "master")) == [
        "master",
        "none to primary",
        "none to primary",
        "secondary to bachelor",
        "secondary to bachelor",
    ]
    made = recode(np.arange(5.0), categories=known, cuts=("bachelor",))
    assert made.levels == ("none to secondary", "bachelor to master"), "in order"
    assert made.values.tolist() == [0, 0, 0, 1, 1]
    assert labels(x, categories=known, cuts=("none",)) == ["none to master"] * 5


def test_levels_with_a_hierarchy_by_hand() -> None:
    groups = [(level, "low" if level in ("none", "primary") else "high", "*") for level in LEVELS]
    words = ["master", "none", None, "secondary", "primary"]
    schema = rv.Schema(levels={"E": LEVELS}, hierarchies={"E": groups})
    made = rv.mask(pa.table({"E": words}), "recode", level=1, seed=1, schema=schema)
    assert made.data["E"].to_pylist() == ["high", "low", None, "high", "low"]
    twice = Plan.of("recode", columns=["E"], level=1).then("recode", columns=["E"], level=2)
    assert rv.mask(pa.table({"E": words}), twice, seed=1, schema=schema).data["E"].to_pylist()[:3] == ["*", "*", None]


def test_widths_by_hand() -> None:
    assert labels([0, 9.99, 10, -0.5], width=10) == ["[0,10)", "[0,10)", "[10,20)", "[-10,0)"]
    assert labels([2, 3, 8], width=5, origin=3) == ["[-2,3)", "[3,8)", "[8,13)"]
    # 0.3 / 0.1 is a little less than 3, and 3 * 0.1 a little more than 0.3
    assert labels([0.3, 0.1, 0.25], width=0.1) == ["[0.3,0.4)", "[0.1,0.2)", "[0.2,0.3)"]
    assert labels([1e15, 1e15 + 1], width=1) == [
        "[1000000000000000,1000000000000001)",
        "[1000000000000001,1000000000000002)",
    ]


@given(
    x=NUMBERS, width=st.sampled_from([0.1, 0.3, 1.0, 7.0, 1000.0, 12345.678]), origin=st.sampled_from([0.0, 0.05, -3.0])
)
def test_a_band_holds_what_its_label_says(x: Any, width: float, origin: float) -> None:
    x = x[np.abs(x) < 4_000 * width]
    if x.size == 0:
        return
    for value, label in zip(x, labels(x, width=width, origin=origin), strict=True):
        low, high = orders.ends(label) or (0, 0)
        assert low <= value < high
        assert high - low == pytest.approx(width, rel=1e-6)


@given(x=NUMBERS, cuts=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6, unique=True).map(sorted))
def test_cuts_are_kept_to_the_last_digit(x: Any, cuts: list[float]) -> None:
    made = recode(x, cuts=tuple(map(repr, cuts)))
    for value, code in zip(x, made.values, strict=True):
        low, high = orders.ends(made.levels[int(code)]) or (0, 0)
        assert low <= value < high
        assert {low, high} <= {-np.inf, np.inf, *cuts}
    assert list(made.levels) == list(dict.fromkeys(made.levels))
    ends = [orders.ends(label) for label in made.levels]
    assert all(a[1] == b[0] for a, b in itertools.pairwise(ends))  # type: ignore[index]


@given(
    counts=st.lists(st.integers(0, 20), min_size=1, max_size=8).filter(any),
    rare=st.sampled_from([0.0, 5.0, 20.0, 50.0, 100.0]),
)
def test_what_is_named_is_not_rare_and_what_is_rare_is_not_named(counts: list[int], rare: float) -> None:
    known = nominal([f"t{i}" for i in range(len(counts))], np.array(counts, dtype=float))
    x = np.repeat(np.arange(len(known)), known.counts.astype(int)).astype(float)
    made = recode(x, categories=known, rare=rare)
    released = [made.levels[int(code)] for code in made.values]
    for label, count in zip(known.labels, known.counts, strict=True):
        named = bool(count > 0 and count >= rare / 100 * x.size)
        assert (label in released) is named
        assert (label in made.levels) is named, "not even as a level that no record has"
    together = released.count("other")
    told = (f"'other' is itself below {rare:g} percent",)
    assert made.notes == (told if 0 < together < rare / 100 * x.size else ())


def test_a_category_that_is_called_other_takes_the_rare_ones_in() -> None:
    known = nominal(["other", "a", "b"], np.array([5.0, 4.0, 1.0]))
    x = np.repeat(np.arange(3.0), [5, 4, 1])
    assert labels(x, categories=known, rare=20) == ["other"] * 5 + ["a"] * 4 + ["other"]


def test_what_is_rare_is_what_is_rare_now() -> None:
    data = pa.table({"T": ["a"] * 90 + ["b"] * 10})
    plan = Plan.of("pram", p=0.5, columns=["T"]).then("recode", rare=20, columns=["T"])
    made = rv.mask(data, plan, seed=1).data["T"].to_pylist()
    assert set(made) == {"a", "b"}, "b has more than 20 of 100 after pram"


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ({}, "recode needs one of level, cuts, width and rare, not nothing"),
        ({"cuts": ("1",), "width": 2}, "not width and cuts"),
        ({"level": 1}, "level is for categories; give numbers cuts or a width"),
        ({"rare": 5}, "rare is for categories"),
        ({"cuts": ("18", "young")}, "cuts must be numbers, not 'young'"),
        ({"cuts": ("18", "inf")}, "cuts must be numbers"),
        ({"cuts": ("30", "18")}, "cuts must rise: 30, 18"),
        ({"cuts": ("18", "18.0")}, "cuts must rise"),
        ({"width": 1e-9}, "makes more than 10000 bands"),
        ({"width": 1e308}, "makes bands that end beyond all numbers; choose a smaller one"),
        ({"width": 0}, "above 0"),
        ({"level": 1.5}, "whole number"),
        ({"rare": 101}, "from 0 to 100"),
    ],
    ids=str,
)
def test_what_numbers_cannot_be(given_: dict[str, Any], text: str) -> None:
    with pytest.raises(rv.ParameterError, match=text):
        recode(np.array([1.0, 20.0, 300.0]), **given_)


def test_widths_that_numbers_have_no_digits_for() -> None:
    for x in ([1e300, 1e300], [1.7e308, -1.7e308], [1e17, 1e17 + 32]):
        with pytest.raises(rv.ParameterError, match=r"too small for numbers of this size|more than 10000 bands"):
            recode(np.array(x), width=1)
    assert labels([1e300, 1e300], cuts=("1e299",)) == ["[1e+299,inf)"] * 2


@pytest.mark.parametrize(
    ("known", "given_", "text"),
    [
        (towns(tree=False), {"level": 1}, "level needs a hierarchy: --hierarchy NAME=file.csv"),
        (towns(), {"level": 3}, "it has levels 0 to 2, not 3"),
        (towns(), {"cuts": ("Ulm",)}, "cuts need an order"),
        (towns(), {"width": 1}, "width is for numbers"),
        (
            ordinal(LEVELS, np.ones(5)),
            {"cuts": ("bachlor",)},
            "'bachlor' is not one of its levels; did you mean bachelor?",
        ),
        (ordinal(LEVELS, np.ones(5)), {"rare": 5}, "in which 'other' has no place; give it cuts"),
        (ordinal(LEVELS, np.ones(5)), {"level": 1}, "level needs a hierarchy"),
    ],
)
def test_what_categories_cannot_be(known: Categories, given_: dict[str, Any], text: str) -> None:
    with pytest.raises(rv.ParameterError, match=text):
        recode(np.zeros(2), categories=known, **given_)


BORN = [datetime.date(1959, 12, 31), datetime.date(1960, 1, 1), None, datetime.date(2001, 2, 3)]


def test_dates_by_iso_cuts() -> None:
    for data in (pa.table({"B": pa.array(BORN, pa.date32())}), pa.table({"B": [str(day or "") for day in BORN]})):
        made = rv.mask(data, "recode", seed=1, **{"cuts.B": "1960-01-01,1990-01-01"})
        words = ["(-inf,1960-01-01)", "[1960-01-01,1990-01-01)", None, "[1990-01-01,inf)"]
        assert [word or None for word in made.data["B"].to_pylist()] == words
        with pytest.raises(rv.ParameterError, match="column B: cuts must be like 1970-01-01, not '1960'"):
            rv.mask(data, "recode", seed=1, **{"cuts.B": "1960"})
    given_ = rv.mask(data, "recode", seed=1, cuts={"B": [datetime.date(1960, 1, 1)]})
    assert given_.data["B"].to_pylist()[1] == "[1960-01-01,inf)"


def test_times_of_all_types_by_cuts() -> None:
    moments = [datetime.datetime(2024, 1, 31, hour) for hour in (1, 12, 23)]
    for kind, cut, label in (
        (pa.timestamp("s"), "2024-01-31 12:00", "[2024-01-31 12:00:00,inf)"),
        (pa.timestamp("us"), "2024-01-31 12:00:00", "[2024-01-31 12:00:00.000000,inf)"),
        (pa.timestamp("ms", tz="UTC"), "2024-01-31 12:00Z", "[2024-01-31 12:00:00.000Z,inf)"),
        (pa.date64(), "2024-01-31", "[2024-01-31,inf)"),
    ):
        data = pa.table({"T": pa.array(moments, kind)})
        made = rv.mask(data, "recode", seed=1, **{"cuts.T": cut}).data["T"].to_pylist()
        assert made[1:] == [label] * 2, kind
    clock = pa.table({"T": pa.array([datetime.time(8), datetime.time(20)], pa.time32("s"))})
    assert rv.mask(clock, "recode", seed=1, **{"cuts.T": "12:00:00"}).data["T"].to_pylist()[1] == "[12:00:00,inf)"
    lasting = pa.table({"T": pa.array([5, 500], pa.duration("s"))})
    assert rv.mask(lasting, "recode", seed=1, **{"cuts.T": "60"}).data["T"].to_pylist() == ["(-inf,60)", "[60,inf)"]
    for table, example in ((clock, "like 23:59:00"), (lasting, "like 3600, a number of s")):
        with pytest.raises(rv.ParameterError, match=f"cuts must be {example}"):
            rv.mask(table, "recode", seed=1, **{"cuts.T": "soon"})


def test_dates_by_whole_days() -> None:
    for kind in (pa.date32(), pa.date64()):
        data = pa.table({"B": pa.array([datetime.date(1970, 1, 1), datetime.date(1970, 1, 11)], kind)})
        made = rv.mask(data, "recode", seed=1, width=10, columns=["B"]).data["B"].to_pylist()
        assert made == ["[1970-01-01,1970-01-11)", "[1970-01-11,1970-01-21)"]
        with pytest.raises(rv.ParameterError, match="in whole days for dates"):
            rv.mask(data, "recode", seed=1, width=0.5, columns=["B"])
    moments = pa.table({"B": pa.array([datetime.datetime(1970, 1, 1)], pa.timestamp("s"))})
    with pytest.raises(rv.ParameterError, match="give times cuts"):
        rv.mask(moments, "recode", seed=1, width=10, columns=["B"])


def people(n: int = 300) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "TOWN": np.array(["Ulm", "Bonn", "Köln"])[rng.integers(0, 3, n)],
            "EDUCATION": pa.array(np.array(LEVELS)[rng.integers(0, 5, n)], mask=rng.random(n) < 0.05),
            "AGE": rng.integers(1, 90, n),
            "BORN": pa.array(rng.integers(-15_000, 15_000, n).astype(np.int32)).cast(pa.date32()),
            "JOB": np.array(["cook", "baker", "smith", "duke"])[rng.choice(4, n, p=[0.5, 0.3, 0.19, 0.01])],
        }
    )


def schema(**roles: str) -> rv.Schema:
    given_ = {"TOWN": "quasi-identifier", "AGE": "quasi-identifier", "JOB": "confidential"}
    return rv.Schema(levels={"EDUCATION": LEVELS}, hierarchies={"TOWN": TREE}, roles={**given_, **roles})


def test_one_parameter_for_all_is_for_the_columns_that_it_fits() -> None:
    made = rv.mask(people(), "recode", level=1, seed=1, schema=schema())
    assert list(made.changed) == ["TOWN"]
    assert "recode leaves columns as they are that it is not told of: EDUCATION, AGE, BORN, JOB" in made.notes
    assert list(rv.mask(people(), "recode", rare=5, seed=1, schema=schema()).changed) == ["TOWN", "JOB"]
    assert list(rv.mask(people(), "recode", width=1000, seed=1, schema=schema()).changed) == ["AGE", "BORN"]
    with pytest.raises(rv.TableError, match="no usable column: level of recode fits none"):
        rv.mask(people().select(["AGE"]), "recode", level=1, seed=1)
    with pytest.raises(rv.ParameterError, match="recode needs level, cuts, width or rare of some column"):
        rv.mask(people(), "recode", seed=1, schema=schema())
    with pytest.raises(
        rv.ParameterError, match="column AGE: recode needs one of level, cuts, width and rare, not nothing"
    ):
        rv.mask(people(), "recode", columns=["AGE"], seed=1)


def test_what_is_said_of_a_column_stands_instead() -> None:
    made = rv.mask(people(), "recode", seed=1, schema=schema(), level=1, **{"cuts.AGE": (18, 65), "level.TOWN": 2})
    assert set(made.data["TOWN"].to_pylist()) == {"*"}
    assert set(made.data["AGE"].to_pylist()) == {"(-inf,18)", "[18,65)", "[65,inf)"}
    (step,) = made.manifest["steps"]
    assert step["per_column"] == {
        "TOWN": {"level": 2, "cuts": ()},
        "AGE": {"level": None, "cuts": ("18", "65")},
    }


def test_a_column_with_a_parameter_of_its_own_needs_no_role() -> None:
    made = rv.mask(people(), "recode", seed=1, **{"rare.JOB": 5, "cuts.AGE": "18"})
    assert list(made.changed) == ["AGE", "JOB"]


def test_recoding_is_local_but_for_what_is_rare() -> None:
    for given_, local in (
        ({"level.TOWN": 1}, True),
        ({"cuts.AGE": "18,65", "width.BORN": 1000, "cuts.EDUCATION": "secondary"}, True),
        ({"rare.JOB": 5}, False),
        ({"rare.JOB": 5, "cuts.AGE": "18"}, False),
    ):
        made = rv.mask(people(), "recode", seed=1, schema=schema(), **given_)
        assert made.manifest["steps"][0]["facts"]["local"] is local
        flags = made.manifest["disclosive_parameters"]
        if local:
            assert flags == []
        else:
            assert flags == [
                "recode: which categories are rare was taken from the original in JOB: those that the release names "
                "have at least that share in the original"
            ]


@pytest.mark.parametrize("library", ["pandas", "pandas ordered", "polars", "arrow", "arrow enum"])
def test_nothing_of_a_release_names_what_was_hidden(library: str) -> None:
    words = ["cook"] * 50 + ["baker"] * 30 + ["other"] * 15 + ["duke"] * 5
    kinds = ["baker", "cook", "duke", "other"]
    if library.startswith("pandas"):
        data: Any = pd.DataFrame({"JOB": pd.Categorical(words, categories=kinds, ordered=library.endswith("ordered"))})
    elif library == "arrow":
        data = pa.table({"JOB": pa.array(words).dictionary_encode()})
    else:
        pl = pytest.importorskip("polars")
        data = pl.DataFrame({"JOB": pl.Series(words, dtype=pl.Enum(kinds))})
        data = data.to_arrow() if library == "arrow enum" else data
    made = rv.mask(data, "recode", seed=1, schema=rv.Schema(kinds={"JOB": "nominal"}), **{"rare.JOB": 10})
    assert "duke" not in made.manifest.to_json()
    assert not any("duke" in note for note in made.notes)
    released = made.data["JOB"]
    if library.startswith("pandas"):
        assert list(released.cat.categories) == ["baker", "cook", "other"]
        assert not released.cat.ordered, "other has no place in an order"
    elif library == "polars":
        assert released.dtype.categories.to_list() == ["baker", "cook", "other"]
    else:
        assert released.combine_chunks().dictionary.to_pylist() == ["baker", "cook", "other"]
        assert "duke" not in str(made.data.schema.field("JOB").metadata)
    listed = released.to_pylist() if isinstance(made.data, pa.Table) else released.to_list()
    assert listed == ["cook"] * 50 + ["baker"] * 30 + ["other"] * 20


def test_what_a_file_says_of_labels_goes_with_the_labels() -> None:
    words = pa.array(["cook"] * 9 + ["duke"]).dictionary_encode()
    field = pa.field("JOB", words.type, metadata={"_PL_ENUM_VALUES2": "4;cook4;duke"})
    data = pa.table([words], schema=pa.schema([field]))
    hidden = rv.mask(data, "recode", seed=1, **{"rare.JOB": 20}).data
    assert set(hidden["JOB"].to_pylist()) == {"cook", "other"}
    assert "duke" not in str(hidden.schema.field("JOB").metadata)
    for method, given_ in (("recode", {"rare.JOB": 5}), ("pram", {})):
        kept = rv.mask(data, method, seed=1, **given_).data
        assert kept.schema.field("JOB").metadata == field.metadata


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_markers_of_missing_cells_stay_categories(library: str) -> None:
    words = ["cook"] * 6 + ["duke", "refused", None, "refused"]
    frame = pd.DataFrame({"JOB": pd.Categorical(words)})
    data: Any = frame if library == "pandas" else pa.Table.from_pandas(frame, preserve_index=False)
    if library == "polars":
        data = pytest.importorskip("polars").from_arrow(data)
    made = rv.mask(data, "recode", seed=1, schema=rv.Schema(missing=("refused",)), **{"rare.JOB": 20})
    released = made.data["JOB"]
    listed = released.to_pylist() if library == "arrow" else [None if x != x else x for x in released.to_list()]
    assert listed == ["cook"] * 6 + ["other", "refused", None, "refused"]
    assert made.changed == {"JOB": 1}


def test_levels_of_a_pandas_column_stay_ordered_levels() -> None:
    frame = people().to_pandas()
    frame["EDUCATION"] = pd.Categorical(frame["EDUCATION"], categories=LEVELS, ordered=True)
    made = rv.mask(frame, "recode", seed=1, **{"cuts.EDUCATION": "secondary,master"}).data["EDUCATION"]
    assert list(made.cat.categories) == ["none to primary", "secondary to bachelor", "master"]
    assert made.cat.ordered
    assert made.isna().equals(frame["EDUCATION"].isna())


GIVEN = {"level.TOWN": 1, "cuts.AGE": "18,65", "cuts.EDUCATION": "secondary", "cuts.BORN": "1960-01-01"}


@pytest.mark.parametrize("declared", [False, True])
def test_an_audit_takes_bands_and_groups_for_what_they_are(declared: bool) -> None:
    data = people()
    known = schema(EDUCATION="quasi-identifier")
    made = rv.mask(data, "recode", seed=1, schema=known, **GIVEN)
    if declared:  # the same file of roles for both tables
        known = rv.Schema(
            kinds={"AGE": "numeric"}, levels=known.levels, hierarchies=known.hierarchies, roles=known.roles
        )
    audit = rv.audit(rv.Table(data, schema=known), rv.Table(made.data, schema=known))
    assert "column EDUCATION: groups of levels stand at the mean place of their levels" in audit.notes
    for name in ("AGE", "BORN"):
        assert f"column {name}: the masked values are bands, taken at their middles" in audit.notes
    assert not any("could not be computed" in why for why in audit.not_applicable.values())
    # classes by hand: town, age and education as released, a missing education a value of its own
    keys = list(zip(*(made.data[name].to_pylist() for name in ("TOWN", "AGE", "EDUCATION")), strict=True))
    assert audit["k_anonymity"] == min(keys.count(key) for key in keys)


def test_open_bands_reach_to_the_ends_of_the_original_and_are_told_apart() -> None:
    data = pa.table({"AGE": [10, 20, 70, 80, 15, 75] * 5, "BORN": pa.array(range(30), pa.int32()).cast(pa.date32())})
    table = rv.Table(data)
    assert masked_places(table, "AGE", ["(-inf,65)", "[65,inf)"]) == {"(-inf,65)": 37.5, "[65,inf)": 72.5}
    days = ["(-inf,1970-01-16)", "[1970-01-16,inf)"]
    assert masked_places(table, "BORN", days) == dict(zip(days, (7.5, 22.0), strict=True))
    assert masked_places(table, "AGE", ["[65,inf)", "old"]) is None
    made = rv.mask(data, "recode", seed=1, **{"cuts.AGE": "65"})
    audit = rv.audit(data, made.data, columns=["AGE"])
    assert "spearman_risk" not in audit.not_applicable, "not one value for all"


def test_a_label_that_is_no_group_of_levels_is_refused() -> None:
    data = pa.table({"E": ["none", "primary", "master", "bachelor"] * 5})
    other = pa.table({"E": ["none to bachelr", "primary", "master", "bachelor"] * 5})
    known = rv.Schema(levels={"E": LEVELS})
    with pytest.raises(rv.TableError, match=r"column E: 'none to bachelr' \(row 1\) is not one of its levels"):
        rv.audit(rv.Table(data, schema=known), rv.Table(other))


def test_recoding_reaches_k() -> None:
    data = people(400)
    known = schema(EDUCATION="other", BORN="other")
    coarse = rv.mask(data, "recode", seed=1, schema=known, **{"level.TOWN": 2, "cuts.AGE": "18,65"})
    before, after = (
        rv.audit(rv.Table(data, schema=known), rv.Table(each, schema=known))["k_anonymity"]
        for each in (data, coarse.data)
    )
    assert before == 1
    keys = list(zip(coarse.data["TOWN"].to_pylist(), coarse.data["AGE"].to_pylist(), strict=True))
    assert after == min(keys.count(key) for key in keys) > 20


def test_what_recoding_leaves_unsafe_is_suppressed() -> None:
    data, known = people(), schema(EDUCATION="quasi-identifier")
    plan = Plan.of("recode", **{"level.TOWN": 1, "cuts.AGE": "18,65", "cuts.EDUCATION": "secondary"})
    made = rv.mask(data, plan.then("suppress", k=7), seed=1, schema=known)
    keys = list(zip(*(made.data[name].to_pylist() for name in ("TOWN", "AGE", "EDUCATION")), strict=True))
    audit = rv.audit(rv.Table(data, schema=known), rv.Table(made.data, schema=known))
    assert audit["k_anonymity"] == min(keys.count(key) for key in keys) >= 7
    assert len(made.manifest["guarantees"]) == 1
    cells = sum(counts["suppressed"] for counts in made.manifest["steps"][1]["counts"].values())
    alone = rv.mask(data, "suppress", k=7, seed=1, schema=known).manifest["steps"][0]["counts"]
    assert 0 < cells < sum(counts["suppressed"] for counts in alone.values()), "fewer than without recoding"


def test_bands_can_be_masked_again() -> None:
    plan = Plan.of("recode", **{"cuts.AGE": "18,65", "level.TOWN": 1}).then("pram", columns=["AGE", "TOWN"], p=0.3)
    made = rv.mask(people(), plan, seed=1, schema=schema())
    assert set(made.data["AGE"].to_pylist()) == {"(-inf,18)", "[18,65)", "[65,inf)"}
    assert set(made.data["TOWN"].to_pylist()) == {"South", "West"}
    again = Plan.of("recode", **{"cuts.AGE": "18,65,80"}).then("recode", **{"cuts.AGE": "[65,80)"})
    assert set(rv.mask(people(), again, seed=1).data["AGE"].to_pylist()) == {
        "(-inf,18) to [18,65)",
        "[65,80) to [80,inf)",
    }


def test_the_census_by_every_parameter() -> None:
    data = datasets.census(800)
    known = rv.Schema(
        hierarchies=datasets.census_hierarchies(),
        roles={
            "PERSON": "identifier",
            "HOUSEHOLD": "group",
            "REGION": "quasi-identifier",
            "AGE": "quasi-identifier",
            "OCCUPATION": "confidential",
            "WEIGHT": "weight",
        },
    )
    given_ = {
        "level.REGION": 2,
        "width.AGE": 20,
        "cuts.EDUCATION": "lower secondary,bachelor",
        "cuts.BIRTH": "1960-01-01",
        "rare.OCCUPATION": 5,
    }
    made = rv.mask(data, "recode", seed=1, schema=known, **given_)
    homes: dict[str, set[str]] = {}
    for home, region in zip(made.data["HOUSEHOLD"].to_pylist(), made.data["REGION"].to_pylist(), strict=True):
        homes.setdefault(home, set()).add(region)
    assert all(len(regions) == 1 for regions in homes.values())
    there = known.only(made.data.column_names)
    audit = rv.audit(rv.Table(data, schema=known), rv.Table(made.data, schema=there))
    assert audit["k_anonymity"] > 1
    assert not any("could not be computed" in why for why in audit.not_applicable.values())


def test_plan_files_keep_lists_and_take_numbers_and_dates() -> None:
    plan = Plan.of("recode", **{"level.TOWN": 1, "cuts.AGE": (18, 30.5), "cuts.BORN": [datetime.date(1960, 1, 1)]})
    assert plan.steps[0].bound("AGE")["cuts"] == ("18", "30.5")
    assert plan.steps[0].bound("BORN")["cuts"] == ("1960-01-01",)
    assert Plan.from_toml(plan.to_toml()) == plan == Plan.from_json(plan.to_json())
    written = (
        '[[steps]]\nmethod = "recode"\n[steps.per_column]\nAGE = {cuts = [18, 65]}\nBORN = {cuts = [1960-01-01]}\n'
    )
    read = Plan.from_toml(written)
    assert read.steps[0].per_column == {"AGE": {"cuts": ("18", "65")}, "BORN": {"cuts": ("1960-01-01",)}}
    for wrong in ([None], [["18"]], [True], 18, {"a": 1}):
        with pytest.raises(rv.ParameterError, match="cuts of column AGE must be a list"):
            Plan.from_dict({"steps": [{"method": "recode", "per_column": {"AGE": {"cuts": wrong}}}]})


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A table and a hierarchy in the working directory, and what every command is told of them."""
    monkeypatch.chdir(tmp_path)
    rows = [("Ulm", 17, "none"), ("Bonn", 30, "master"), ("Köln", 64, "primary"), ("Ulm", 65, "bachelor")]
    lines = ["TOWN,AGE,EDUCATION", *(f"{town},{age},{education}" for town, age, education in rows)]
    Path("people.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    Path("town.csv").write_text("".join(";".join(row) + "\n" for row in TREE), encoding="utf-8")
    return ["--hierarchy", "TOWN=town.csv", "--kind", f"EDUCATION=ordinal:{'<'.join(LEVELS)}"]


def test_the_command_line_takes_a_parameter_for_each_column(files: list[str]) -> None:
    words = ["--set", "level.TOWN=1", "--set", "cuts.AGE=18,30,65", "--set", "cuts.EDUCATION=secondary"]
    files = [*files, "--keep-order"]
    assert main(["mask", "people.csv", "-o", "out.csv", "--method", "recode", *words, *files]) == 0
    assert Path("out.csv").read_text(encoding="utf-8").splitlines() == [
        "TOWN,AGE,EDUCATION",
        'South,"(-inf,18)",none to primary',
        'West,"[30,65)",secondary to master',
        'West,"[30,65)",none to primary',
        'South,"[65,inf)",secondary to master',
    ]
    published = json.loads(Path("out.csv.manifest.json").read_text(encoding="utf-8"))
    assert published["steps"][0]["per_column"]["AGE"]["cuts"] == ["18", "30", "65"]
    assert published["steps"][0]["facts"]["local"] is True
    own: dict[str, Any] = {"level.TOWN": 1, "cuts.AGE": (18, 30, 65), "cuts.EDUCATION": "secondary"}
    for name, text in (
        ("plan.toml", Plan.of("recode", **own).to_toml()),
        ("plan.json", Plan.of("recode", **own).to_json()),
    ):
        Path(name).write_text(text, encoding="utf-8")
        assert main(["mask", "people.csv", "-o", f"{name}.csv", "--plan", name, *files]) == 0
        assert Path(f"{name}.csv").read_bytes() == Path("out.csv").read_bytes()


def test_a_gate_on_the_command_line(files: list[str]) -> None:
    roles = ["--role", "TOWN=quasi-identifier,AGE=quasi-identifier"]
    for level, code in ((1, 1), (2, 0)):  # two of South and two of West, or all four together
        words = ["--set", f"level.TOWN={level}", "--set", "width.AGE=100"]
        out = f"out{level}.csv"
        assert main(["mask", "people.csv", "-o", out, "--method", "recode", *words, *files]) == 0
        assert main(["audit", "people.csv", out, *files, *roles, "--fail-if", "k_anonymity<3"]) == code
