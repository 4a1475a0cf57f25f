"""Top and bottom coding on five records, limits by percent against a plain reference, and what it tells of the data."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankveil as rv
from rankveil.catalogue import get_method
from rankveil.categories import ordinal
from rankveil.cli import main
from rankveil.plans import Plan

top_bottom_code = get_method("top_bottom_code")
X = np.array([30.0, 10.0, 50.0, 20.0, 40.0])
LEVELS = ("low", "middle", "high")
VALUES = st.lists(st.integers(-5, 5), min_size=1, max_size=40).map(lambda some: np.array(some, dtype=float))
PERCENT = st.sampled_from([0.0, 1e-9, 2.5, 10.0, 20.0, 100 / 3, 49.9, 50.0])


def coded(x: Any = X, **parameters: Any) -> Any:
    return top_bottom_code(x, **parameters)


def test_five_records_by_hand() -> None:
    made = coded(top=35, bottom=15)
    assert made.values.tolist() == [30, 15, 35, 20, 35]
    assert made.counts == {"top_coded": 2, "bottom_coded": 1}
    assert made.notes == ()


def test_five_records_by_percent_by_hand() -> None:
    # 20 percent of five is one record at each end
    made = coded(top_percent=20, bottom_percent=20)
    assert made.values.tolist() == [30, 20, 40, 20, 40]
    assert made.counts == {"top_coded": 1, "bottom_coded": 1}
    assert coded(top_percent=19.9).values.tolist() == X.tolist()
    assert coded(top_percent=40).values.tolist() == [30, 10, 30, 20, 30]


def test_five_records_to_the_mean_by_hand() -> None:
    made = coded(top=35, bottom=15, replace="mean")
    assert made.values.tolist() == [30, 10, 45, 20, 45]
    assert made.values.mean() == X.mean()
    assert made.notes == (
        "only 2 values were coded at the top: their mean tells of each",
        "only 1 value was coded at the bottom: its mean is the value itself",
    )
    assert coded(top=15, replace="mean").notes == ()


def test_a_limit_itself_is_not_beyond_it_and_wins_over_a_percentage() -> None:
    made = coded(top=50, bottom=10, top_percent=40)
    assert made.values.tolist() == X.tolist()
    assert made.counts == {"top_coded": 0, "bottom_coded": 0}
    assert coded(top=45, top_percent=40).values.tolist() == [30, 10, 45, 20, 40]


def test_a_limit_beyond_all_values_codes_all_or_none() -> None:
    assert coded(bottom=60).values.tolist() == [60.0] * 5
    assert coded(top=5).values.tolist() == [5.0] * 5
    assert coded(top=60, bottom=5).values.tolist() == X.tolist()


@given(x=VALUES, top_percent=PERCENT, bottom_percent=PERCENT)
def test_limits_by_percent_are_the_nearest_that_code_no_more(x: Any, top_percent: float, bottom_percent: float) -> None:
    if top_percent + bottom_percent >= 100:
        return
    made = coded(x, top_percent=top_percent, bottom_percent=bottom_percent)

    def reference(values: list[float], percent: float) -> float:
        """The least value that no more than so many percent exceed."""
        return min(v for v in values if sum(w > v for w in values) <= len(values) * percent / 100 * (1 + 1e-9))

    high = reference(list(x), top_percent) if top_percent else np.inf
    low = -reference(list(-x), bottom_percent) if bottom_percent else -np.inf
    assert low <= high
    assert made.values.tolist() == np.clip(x, low, high).tolist()
    assert made.counts["top_coded"] <= x.size * top_percent / 100 + 1e-9
    assert made.counts["bottom_coded"] <= x.size * bottom_percent / 100 + 1e-9
    assert made.counts == {"top_coded": int(np.sum(x > high)), "bottom_coded": int(np.sum(x < low))}


@given(x=VALUES, top=st.integers(0, 5), bottom=st.integers(-5, 0))
def test_means_keep_the_mean_and_the_order(x: Any, top: int, bottom: int) -> None:
    made = coded(x, top=top, bottom=bottom, replace="mean").values
    assert made.mean() == pytest.approx(x.mean(), abs=1e-12)
    order = np.argsort(x, kind="stable")
    assert np.all(np.diff(made[order]) >= -1e-12)
    inside = (x >= bottom) & (x <= top)
    assert np.array_equal(made[inside], x[inside])


def test_one_value_and_equal_values() -> None:
    for x in (np.array([3.0]), np.full(7, 3.0)):
        made = coded(x, top_percent=50, bottom_percent=49)
        assert made.values.tolist() == x.tolist()
        assert made.counts == {"top_coded": 0, "bottom_coded": 0}


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ({"top": 10, "bottom": 20}, "^the bottom 20 is above the top 10"),
        ({"top_percent": 50, "bottom_percent": 50}, "^its bottom is above its top"),
        ({"top": 5, "bottom_percent": 10}, "^its bottom is above its top"),
        ({"top": "high"}, "top must be a number"),
        ({"top_percent": 51}, "from 0 to 50"),
        ({"replace": "median"}, "limit or mean"),
    ],
    ids=str,
)
def test_what_cannot_be(given_: dict[str, Any], text: str) -> None:
    with pytest.raises(rv.ParameterError, match=text) as caught:
        coded(np.array([17.0, 23.0, 29.0, 31.0]), **given_)
    assert not any(value in str(caught.value) for value in ("17", "23", "29", "31")), "no value of the data"


def test_ordered_categories_by_percent_only() -> None:
    levels = ordinal(LEVELS, np.array([2.0, 2.0, 1.0]))
    x = np.array([0.0, 1, 2, 0, 1])
    assert coded(x, categories=levels, top_percent=20).values.tolist() == [0, 1, 1, 0, 1]
    for given_ in ({"top": 1}, {"bottom": 1}, {"replace": "mean"}):
        with pytest.raises(rv.ParameterError, match="neither numbers as limits nor means"):
            coded(x, categories=levels, **given_)
    data = pa.table({"G": [LEVELS[int(code)] for code in x], "AGE": X})
    made = rv.mask(data, "top_bottom_code", top_percent=20, seed=1, schema=rv.Schema(levels={"G": LEVELS}))
    assert made.data["G"].to_pylist() == ["low", "middle", "middle", "low", "middle"]
    assert made.data["AGE"].to_pylist() == [30, 10, 40, 20, 40]


DAYS = [datetime.date(1930, 1, 1), datetime.date(1990, 5, 5), None, datetime.date(1960, 2, 2)]
BORN = pa.table({"BORN": pa.array(DAYS, pa.date32()), "X": [1.0, 2.0, 3.0, 4.0]})


def test_dates_by_percent() -> None:
    made = rv.mask(BORN, "top_bottom_code", columns=["BORN"], bottom_percent=34, seed=1)
    assert made.data["BORN"].to_pylist() == [DAYS[3], DAYS[1], None, DAYS[3]]


@pytest.mark.parametrize(
    "top", ["1970-01-31", "31.01.1970", datetime.date(1970, 1, 31), datetime.datetime(1970, 1, 31)], ids=str
)
@pytest.mark.parametrize(
    "kind", [pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns"), pa.string()], ids=str
)
def test_dates_as_limits_of_dates(top: Any, kind: pa.DataType) -> None:
    data = pa.table({"BORN": BORN["BORN"].cast(kind)})
    made = rv.mask(data, "top_bottom_code", top=top, bottom="1950-01-01", seed=1)
    assert made.data["BORN"].type == kind
    assert [str(day)[:10] for day in made.data["BORN"].to_pylist()] == [
        "1950-01-01",
        "1970-01-31",
        "None",
        "1960-02-02",
    ]
    assert made.manifest["steps"][0]["counts"] == {"BORN": {"top_coded": 1, "bottom_coded": 1}}
    assert made.manifest["steps"][0]["parameters"]["top"][:10] in ("1970-01-31", "31.01.1970")
    assert made.manifest["disclosive_parameters"] == []


def test_times_of_day_and_durations_as_limits() -> None:
    times = pa.array([0, 43_200, 86_399], pa.int32()).cast(pa.time32("s"))
    made = rv.mask(pa.table({"T": times}), "top_bottom_code", top="13:30", bottom=datetime.time(6), seed=1)
    assert made.data["T"].to_pylist() == [datetime.time(6), datetime.time(12), datetime.time(13, 30)]
    stays = pa.table({"STAY": pa.array([60, 3_600, 90_000]).cast(pa.duration("s"))})
    made = rv.mask(stays, "top_bottom_code", top=7_200, seed=1)
    assert made.data["STAY"].cast(pa.int64()).to_pylist() == [60, 3_600, 7_200]


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        (
            {"top": 60},
            "column BORN: dates and times have no numbers as limits: top must be like 1970-01-01, not a number",
        ),
        ({"bottom": "13:30"}, "bottom must be like 1970-01-01, not 13:30"),
        ({"top": "1970-02-30"}, "top must be like 1970-01-01, not 1970-02-30"),
        (
            {"top": "1950-01-01", "bottom": "1960-01-01"},
            "column BORN: the bottom 1960-01-01 is above the top 1950-01-01",
        ),
        ({"top.X": "1950-01-01"}, "column X: top 1950-01-01 is a date or time, and the column holds numbers"),
        ({"top": "1950-01-01"}, "give it to the column that it is meant for, as in --set top.NAME=1950-01-01"),
    ],
    ids=str,
)
def test_limits_of_another_kind_than_the_column(given_: dict[str, Any], text: str) -> None:
    with pytest.raises(rv.ParameterError, match=text):
        rv.mask(BORN, "top_bottom_code", seed=1, **given_)


def test_dates_as_limits_on_the_command_line_and_in_a_plan(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("BORN,X\n1930-01-01,1\n1990-05-05,2\nNA,3\n", encoding="utf-8")
    arguments = ["mask", str(tmp_path / "in.csv"), "-o", str(tmp_path / "out.csv"), "--seed", "1", "--keep-order"]
    assert main([*arguments, "--method", "top_bottom_code", "--set", "top.BORN=1970-01-31", "--set", "top.X=2"]) == 0
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").split() == [
        "BORN,X",
        "1930-01-01,1",
        "1970-01-31,2",
        "NA,2",
    ]
    text = """
schema = "rankveil/plan/1"
[[steps]]
method = "top_bottom_code"
columns = ["BORN"]
parameters = {top = 1970-01-31}
"""
    plan = Plan.from_toml(text)
    assert rv.mask(BORN, plan, seed=1).data["BORN"].to_pylist()[1] == datetime.date(1970, 1, 31)
    assert Plan.from_toml(plan.to_toml()).steps[0].parameters == plan.steps[0].parameters


def test_clipping_of_dates() -> None:
    plan = Plan.of("identity").then("clip", columns=["BORN"], lower="1950-01-01", upper=datetime.date(1970, 1, 31))
    made = rv.mask(BORN.select(["BORN"]), plan, seed=1).data["BORN"].to_pylist()
    assert made == [datetime.date(1950, 1, 1), datetime.date(1970, 1, 31), None, DAYS[3]]
    wrong = Plan.of("identity").then("clip", columns=["BORN"], lower=3)
    with pytest.raises(
        rv.ParameterError, match="column BORN: dates and times have no numbers as limits: lower must be"
    ):
        rv.mask(BORN.select(["BORN"]), wrong, seed=1)


def manifest(**given_: Any) -> Any:
    return rv.mask(pa.table({"A": X, "B": 2 * X}), "top_bottom_code", seed=1, **given_).manifest


QUANTILE = "was taken from the original in A, B: a quantile of the original"


@pytest.mark.parametrize(
    ("given_", "flags", "local"),
    [
        ({}, [], True),
        ({"top": 35}, [], True),
        ({"top": 35, "bottom": 5}, [], True),
        ({"top": 35, "top_percent": 5}, [], True),
        ({"top_percent": 5}, [f"top_bottom_code: top {QUANTILE}"], False),
        ({"bottom_percent": 5}, [f"top_bottom_code: bottom {QUANTILE}"], False),
        ({"top": 35, "bottom_percent": 5}, [f"top_bottom_code: bottom {QUANTILE}"], False),
        (
            {"top_percent": 20, "bottom_percent": 5},
            [f"top_bottom_code: top {QUANTILE}", f"top_bottom_code: bottom {QUANTILE}"],
            False,
        ),
        ({"replace": "mean"}, [], False),
    ],
    ids=str,
)
def test_what_is_taken_from_the_data_is_flagged_and_nothing_else(
    given_: dict[str, Any], flags: list[str], local: bool
) -> None:
    made = manifest(**given_)
    assert made["disclosive_parameters"] == flags
    assert made["steps"][0]["facts"]["local"] is local
    assert made["guarantees"] == []


def test_means_and_own_limits_are_flagged_by_column() -> None:
    made = manifest(**{"top.A": 35, "top_percent.B": 20, "replace.A": "mean"})
    assert made["disclosive_parameters"] == [
        "top_bottom_code: the mean of the coded values was taken from the original in A: it is exact, and that of a "
        "single value is the value",
        "top_bottom_code: top was taken from the original in B: a quantile of the original",
    ]
    assert made["steps"][0]["counts"] == {
        "A": {"top_coded": 2, "bottom_coded": 0},
        "B": {"top_coded": 1, "bottom_coded": 0},
    }
    assert made["steps"][0]["facts"]["local"] is False
    assert manifest(**{"top.A": 35, "bottom.B": 20})["steps"][0]["facts"]["local"] is True


def test_a_local_step_before_a_differentially_private_one_leaves_its_guarantee() -> None:
    data = pa.table({"A": X})

    def guarantees(plan: Plan) -> list[str]:
        made: list[str] = rv.mask(data, plan, seed=1).manifest["guarantees"]
        return made

    private: dict[str, Any] = {"epsilon": 1, "lower": 0, "upper": 60, "fast": True}
    alone = guarantees(Plan.of("laplace_dp", **private))
    assert len(alone) == 1
    assert guarantees(Plan.of("top_bottom_code", top=35, bottom=5).then("laplace_dp", **private)) == alone
    assert guarantees(Plan.of("top_bottom_code", top_percent=20).then("laplace_dp", **private)) == []
    # after it any coding sees the noisy values only
    assert guarantees(Plan.of("laplace_dp", **private).then("top_bottom_code", top_percent=20)) == alone


def test_missing_cells_count_for_nothing() -> None:
    data = pa.table({"A": [None, 30.0, 10.0, None, 50.0, 20.0, 40.0]})
    made = rv.mask(data, "top_bottom_code", top_percent=20, seed=1)
    assert made.data["A"].to_pylist() == [None, 30, 10, None, 40, 20, 40]
    assert made.manifest["steps"][0]["counts"] == {"A": {"top_coded": 1, "bottom_coded": 0}}


def test_whole_numbers_stay_whole_and_a_mean_may_not() -> None:
    data = pa.table({"A": [1, 2, 3, 10, 13]})
    assert rv.mask(data, "top_bottom_code", top=3, seed=1).data["A"].to_pylist() == [1, 2, 3, 3, 3]
    made = rv.mask(data, "top_bottom_code", top=3, replace="mean", seed=1)
    assert made.data["A"].to_pylist() == [1, 2, 3, 11.5, 11.5]
    assert any("whole numbers became decimals" in note for note in made.notes)
    assert any("only 2 values were coded at the top" in note for note in made.notes)


def test_households_are_coded_once() -> None:
    data = pa.table({"HOUSE": ["a", "a", "a", "b", "c"], "RENT": [900.0, 900, 900, 500, 400]})
    schema = rv.Schema(roles={"HOUSE": "group"})
    made = rv.mask(data, "top_bottom_code", top_percent=34, seed=1, schema=schema)
    assert made.data["RENT"].to_pylist() == [500, 500, 500, 500, 400]
    assert made.manifest["steps"][0]["counts"] == {"RENT": {"top_coded": 1, "bottom_coded": 0}}


def test_plan_files_and_the_command_line(tmp_path: Path) -> None:
    plan = Plan.of("top_bottom_code", **{"top.AGE": 60, "bottom": None, "replace.AGE": "mean"})
    assert Plan.from_toml(plan.to_toml()) == plan == Plan.from_json(plan.to_json())
    source, out = tmp_path / "people.csv", tmp_path / "out.csv"
    source.write_text("AGE,INCOME\n" + "".join(f"{age},{age * 100}\n" for age in (90, 20, 30, 40, 75)))
    arguments = ["mask", str(source), "-o", str(out), "--method", "top_bottom_code", "--seed", "ab" * 16]
    arguments.append("--keep-order")
    assert main([*arguments, "--set", "top.AGE=60,bottom.AGE=25", "--set", "top_percent.INCOME=20"]) == 0
    lines = out.read_text().splitlines()[1:]
    assert lines == ["60,7500", "25,2000", "30,3000", "40,4000", "60,7500"]
    published = json.loads((tmp_path / "out.csv.manifest.json").read_text())
    assert published["disclosive_parameters"] == [
        "top_bottom_code: top was taken from the original in INCOME: a quantile of the original"
    ]
