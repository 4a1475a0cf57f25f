"""Numbers that were computed from draws are released on a grid: which, of what, and what is told of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankveil as rv
from rankveil import catalogue, masking
from rankveil.manifest import describe
from rankveil.masking.grid import OF_DECIMALS, OF_REALS, power_of_two, put
from rankveil.methods.round import decimals_of
from rankveil.plans import Plan, Step
from rankveil.seeds import CommonSeed, Seed
from rankveil.table import Table

RECORDS = 60
GIVEN: dict[str, dict[str, Any]] = {
    "laplace_dp": {"epsilon": 1.0, "lower": -1e3, "upper": 1e13, "fast": True},
    "dp_microaggregation": {"epsilon": 1.0, "lower": -1e3, "upper": 1e13, "fast": True},
}
"""What methods must be told; all others run as they are."""
COMPUTING = sorted(name for name, method in catalogue.methods().items() if method.computes)
FROM_DATA = [name for name in COMPUTING if name not in GIVEN]


def table() -> pd.DataFrame:
    """Numbers of every size and with every number of decimals, ties, a constant, missing cells."""
    rng = np.random.default_rng(3)
    skewed = rng.lognormal(0.0, 1.0, RECORDS)
    return pd.DataFrame(
        {
            "WHOLE": rng.integers(0, 30_000, RECORDS),
            "CENTS": np.round(1000 * skewed, 2),
            "REAL": rng.normal(50.0, 8.0, RECORDS),
            "HUGE": np.rint(1e12 * rng.lognormal(0.0, 1.0, RECORDS)),
            "TINY": 1e-12 * rng.lognormal(0.0, 1.0, RECORDS),
            "CONSTANT": np.full(RECORDS, 0.3),
            "TIED": rng.integers(1, 6, RECORDS),
            "GAPS": np.where(np.arange(RECORDS) % 7 == 3, np.nan, np.round(skewed, 1)),
        }
    )


def multiples(values: Any, step: float) -> bool:
    """Whether all values are multiples of a step, those of 10^-d as the doubles nearest to the decimal."""
    there = np.asarray(values, dtype=np.float64)
    there = there[~np.isnan(there)]
    decimals = next((d for d in range(13) if float(f"1e-{d}") == step), None)
    if decimals is not None:
        return all(float(f"{value:.{decimals}f}") == value for value in there.tolist())
    return bool(np.all(np.fmod(there, step) == 0))


def grids(release: rv.Release) -> dict[str, float]:
    return {each["name"]: each["grid"] for each in release.manifest["columns"] if "grid" in each}


@pytest.mark.parametrize("name", COMPUTING)
def test_released_numbers_are_multiples_of_the_grid_that_the_manifest_tells(name: str) -> None:
    original = table()
    release = rv.mask(original, name, columns=[*original], seed=5, **GIVEN.get(name, {}))
    told = grids(release)
    assert {"WHOLE", "CENTS", "REAL", "HUGE", "TINY", "TIED", "GAPS"} <= set(told)
    for column, step in told.items():
        assert multiples(release.data[column], step), column
    assert any("grid^2 / 12" in said and "WHOLE, CENTS" in said for said in release.manifest["for_users"])


@pytest.mark.parametrize("name", FROM_DATA)
def test_whole_numbers_stay_whole_decimals_are_kept_and_real_numbers_have_a_power_of_two(name: str) -> None:
    original = table()
    release = rv.mask(original, name, columns=[*original], seed=5)
    told, data = grids(release), release.data
    assert (told["WHOLE"], told["CENTS"], told["TIED"], told["GAPS"]) == (1.0, 0.01, 1.0, 0.1)
    assert data["WHOLE"].dtype == data["TIED"].dtype == np.int64
    assert data["HUGE"].dropna().eq(np.rint(data["HUGE"])).all()
    assert data["GAPS"].isna().sum() == original["GAPS"].isna().sum()
    assert data["CONSTANT"].eq(0.3).all()
    for column, step in told.items():
        released, before = data[column].to_numpy(float), original[column].to_numpy(float)
        apart = released if name == "ipso" else released - before
        scale, last = float(np.nanstd(apart)), float(np.spacing(np.nanmax(np.abs(released))))
        assert step >= OF_DECIMALS * scale * (1 - 1e-12), column
        assert step >= last, column
        if column in ("REAL", "TINY"):
            assert math.frexp(step)[0] == 0.5, column
            assert step / 2 < max(OF_REALS * scale, last) * (1 + 1e-9) <= step * (1 + 1e-8), column


def test_before_the_grid_numbers_have_all_their_bits() -> None:
    """The control: what the grid does is not there without it."""
    for name in FROM_DATA:
        if name == "resample":
            continue  # whose values are the original's
        made = masking.apply(Table(table()), Plan.of(name), seed=Seed.of(5), grid=False)
        assert made.grids == {}
        assert not multiples(made.values["WHOLE"], 1.0), name
        assert decimals_of(made.values["CENTS"]) > 2, name


@pytest.mark.parametrize("name", sorted(set(catalogue.methods()) - set(COMPUTING)))
def test_what_is_moved_or_recomputed_stays_as_it_is(name: str) -> None:
    method = catalogue.get_method(name)
    if method.works_on == "names" or "numeric" not in method.kinds or method.relabels:
        return
    given: dict[str, Any] = {"distance_swap": {"d": 3}, "sample": {"share": 0.5}, "recode": {"width": 10.0}}.get(
        name, {}
    )
    columns = None if method.works_on == "records" else ["WHOLE", "CENTS", "REAL"]
    release = rv.mask(table(), Plan((Step(name, given, columns=columns),)), seed=CommonSeed.of(5))
    assert grids(release) == {}
    plan = masking.settled(Plan((Step(name, given, columns=columns),)), Table(table()))
    plain = masking.apply(Table(table()), plan, seed=Seed.of(5), grid=False)
    for column, values in plain.values.items():
        if column not in plain.labels:
            np.testing.assert_array_equal(release.data[column].to_numpy(float), values)


def test_reverse_mapping_gives_the_original_values_back_and_no_grid() -> None:
    original = table()
    release = rv.mask(original, Plan.of("additive_noise").then("reverse_map"), seed=5)
    assert grids(release) == {}
    assert sorted(release.data["REAL"]) == sorted(original["REAL"])
    again = rv.mask(original, Plan.of("additive_noise").then("reverse_map").then("additive_noise"), seed=5)
    assert "REAL" in grids(again)


def test_noise_that_swaps_follow_is_on_its_grid() -> None:
    release = rv.mask(table(), Plan.of("additive_noise").then("rank_swap"), seed=5)
    assert grids(release)["CENTS"] == 0.01
    assert multiples(release.data["CENTS"], 0.01)


@pytest.mark.parametrize(("decimals", "whole", "cents", "real"), [(1, 1.0, 0.1, 0.1), (-2, 100.0, 100.0, 100.0)])
def test_a_step_that_rounds_makes_the_grid_coarser_and_never_finer(
    decimals: int, whole: float, cents: float, real: float
) -> None:
    plan = Plan((Step("additive_noise", {"alpha": 1.0}), Step("round", {"decimals": decimals})))
    release = rv.mask(table()[["WHOLE", "CENTS", "REAL"]], plan, seed=CommonSeed.of(5))
    assert grids(release) == {"WHOLE": whole, "CENTS": cents, "REAL": real}
    assert multiples(release.data["REAL"], real)
    rounded = masking.apply(Table(table()[["CENTS"]]), plan, seed=Seed.of(5), grid=False).values["CENTS"]
    assert np.array_equal(release.data["CENTS"].to_numpy(), rounded) == (decimals <= 2)


def test_differential_privacy_gets_a_grid_from_its_bounds_or_none() -> None:
    """Whatever the data are: the grid of a column with a guarantee must not tell of them."""
    for name in GIVEN:
        bounds: dict[str, Any] = {"epsilon": 1.0, "lower": 0.0, "upper": 1000.0}
        told = []
        for factor in (1.0, 0.37):
            data = pd.DataFrame({"A": factor * (np.arange(40.0) + 0.5), "B": np.arange(40.0) + 0.5})
            told.append(grids(rv.mask(data, name, seed=1, fast=True, **bounds)))
        assert told[0] == told[1]
        assert math.frexp(told[0]["A"])[0] == 0.5


def test_noise_of_opendp_stays_as_it_is() -> None:
    pytest.importorskip("opendp")
    data = pd.DataFrame({"A": np.arange(40.0) + 0.5})
    release = rv.mask(data, "laplace_dp", epsilon=1.0, lower=0.0, upper=40.0)
    assert grids(release) == {}
    assert decimals_of(release.data["A"].to_numpy()) == 12


def test_dates_and_times_keep_their_own_unit() -> None:
    rng = np.random.default_rng(1)
    seconds = np.datetime64("2020-01-01T00:00:00") + rng.integers(0, 10**7, RECORDS).astype("timedelta64[s]")
    data = pd.DataFrame(
        {
            "DAY": seconds.astype("datetime64[D]").astype("datetime64[ns]"),
            "MINUTE": seconds.astype("datetime64[m]").astype("datetime64[us]"),
            "SECOND": seconds.astype("datetime64[ns]"),
        }
    )
    release = rv.mask(data, "additive_noise", alpha=0.5, seed=1)
    assert grids(release) == {
        "DAY": 1.0,
        "MINUTE": pytest.approx(1 / 1440),
        "SECOND": pytest.approx(1 / 86_400),
    }
    for name, unit in (("DAY", "D"), ("MINUTE", "min"), ("SECOND", "s")):
        assert release.data[name].eq(release.data[name].dt.floor(unit)).all(), name
        assert not release.data[name].eq(data[name]).all(), name
    days = pa.table({"DAY": pa.array(seconds.astype("datetime64[D]"))})
    assert grids(rv.mask(days, "additive_noise", alpha=0.5, seed=1)) == {"DAY": 1.0}


def test_columns_without_values_and_single_records() -> None:
    data = pa.table({"EMPTY": pa.array([None, None], pa.float64()), "A": [1.25, 7.5], "B": [None, 3.5]})
    release = rv.mask(data, "additive_noise", alpha=2.0, columns=["A", "B"], seed=1)
    assert grids(release) == {"A": 0.01, "B": 0.1}
    assert release.data["EMPTY"].to_pylist() == [None, None]
    alone = rv.mask(pa.table({"A": [0.1 + 0.2]}), "additive_noise", alpha=2.0, columns=["A"], seed=1)
    assert alone.data["A"].to_pylist() == [0.1 + 0.2]


def test_a_column_that_rounding_puts_back_is_named() -> None:
    rng = np.random.default_rng(2)
    data = pd.DataFrame({"YES": rng.integers(0, 2, 200), "INCOME": rng.integers(0, 10**5, 200)})
    both = ["YES", "INCOME"]  # yes and no as numbers, since somebody asks for it
    release = rv.mask(data, "additive_noise", alpha=0.2, columns=both, seed=1)
    said = [note for note in release.notes if "hardly masked" in note]
    assert len(said) == 1
    assert said[0].startswith("warning: column YES is hardly masked: rounding to its grid, multiples of 1, put 200 of ")
    assert "rank_swap" in said[0]
    assert not [
        note for note in rv.mask(data, "additive_noise", alpha=3.0, columns=both, seed=1).notes if "hardly" in note
    ]
    assert not [note for note in rv.mask(data, "rank_swap", columns=both, seed=1).notes if "hardly" in note]


def test_a_told_grid_is_used_and_no_other() -> None:
    plan, original = Plan.of("additive_noise", alpha=1.0), Table(table()[["WHOLE", "REAL"]])
    made = masking.apply(original, plan, seed=Seed.of(1), grid={"WHOLE": 5.0})
    assert made.steps == {"WHOLE": 5.0}
    assert multiples(made.values["WHOLE"], 5.0)
    drawn = masking.apply(original, plan, seed=Seed.of(1), grid=False)
    np.testing.assert_array_equal(made.values["REAL"], drawn.values["REAL"])
    assert "grid" not in describe(original, plan, drawn.account(original), digest="")["columns"][0]


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
    st.one_of(st.integers(0, 11).map(lambda d: float(f"1e-{d}")), st.integers(-1000, 1000).map(lambda k: 2.0**k)),
)
def test_put_rounds_to_the_nearest_multiple_and_stays_there(numbers: list[float], step: float) -> None:
    x = np.array(numbers)
    if math.ulp(float(np.abs(x).max())) > step:
        return
    made = put(x, step)
    assert np.all(np.isfinite(made))
    assert np.all(np.abs(made / 2 - x / 2) <= step * 0.25 * (1 + 1e-9) + math.ulp(float(np.abs(x).max())))
    assert put(made, step).tobytes() == made.tobytes()
    assert not np.any(np.signbit(made) & (made == 0))


def test_missing_codes_survive_rounding() -> None:
    data = pa.table({"A": ["1.5", "n/a", "2.5", "", "9.5"]})
    release = rv.mask(data, "additive_noise", alpha=1.0, seed=1, schema=rv.Schema(missing=("n/a", "")))
    assert [cell for cell in release.data["A"].to_pylist() if cell in ("n/a", "", None)] == ["n/a", ""]


@given(st.floats(min_value=5e-324, max_value=1e308))
def test_power_of_two_is_the_smallest_that_is_large_enough(least: float) -> None:
    found = power_of_two(least)
    assert math.frexp(found)[0] == 0.5
    assert found >= min(least, 2.0**1023)
    assert found / 2 < least
