"""The subject's own check."""

from __future__ import annotations

import datetime as dt
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil.cli import main
from rankveil.ranks import average_ranks


def third() -> dict[str, Any]:
    original, _ = rv.datasets.running_example()
    return dict(original.slice(2, 1).to_pylist()[0])


def test_record_3_of_the_running_example() -> None:
    _, masked = rv.datasets.running_example()
    found = rv.verify(masked, third())
    assert found.nearest == (100.41, 903.25, 5087.90)
    plain = found.to_dict()
    assert plain["ranks"] == [8, 2, 16]
    assert (plain["record"], plain["records"], plain["d"]) == (10, [10], [4, 1, 4])
    assert plain["diversity"]["variance"] == pytest.approx([24.70, 155.00, 20167.78], abs=0.005)
    assert plain["diversity"]["distinct"] == [9, 3, 9]
    assert plain["diversity"]["entropy"] == pytest.approx(np.log([9, 3, 9]).tolist())
    assert plain["chance"]["distance"] == 4
    assert plain["chance"]["exhaustive"]
    assert plain["chance"]["approximate"]
    assert any("approximate" in note for note in plain["notes"])
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_the_protectors_record() -> None:
    _, masked = rv.datasets.running_example()
    for f in (3, "3"):
        found = rv.verify(masked, third(), f=f)
        assert (found.record, found.records, found.d.tolist()) == (3, (3,), [5, 1, 9])
    for wrong in (0, 21, -1):
        with pytest.raises(rv.ParameterError, match=f"no complete released record {wrong}"):
            rv.verify(masked, third(), f=wrong)
    with pytest.raises(rv.ParameterError, match="f must be minimax, euclidean or the number"):
        rv.verify(masked, third(), f="nearest")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(*[st.sampled_from([0, 1, 2, 2.5, 9])] * 2), min_size=1, max_size=8),
    st.tuples(*[st.sampled_from([-5, 0, 1.5, 2, 4, 50])] * 2),
)
def test_by_hand_with_ties_and_values_outside(rows: list[tuple[float, float]], mine: tuple[float, float]) -> None:
    y = np.array(rows, dtype=float)
    ranks = average_ranks(y)
    nearest = [min(set(y[:, j].tolist()), key=lambda each: (abs(each - mine[j]), each)) for j in range(2)]
    target = np.array([ranks[y[:, j] == nearest[j], j][0] for j in range(2)])
    apart = np.abs(ranks - target)
    frame = pa.table({"a": y[:, 0], "b": y[:, 1]})
    record = dict(zip("ab", mine, strict=True))
    found = rv.verify(frame, record, permutation=True)
    assert list(found.nearest) == nearest
    assert found.ranks.tolist() == target.tolist()
    best = apart.max(axis=1).min()
    assert list(found.records) == (np.flatnonzero(apart.max(axis=1) == best) + 1).tolist()
    row = min(range(len(y)), key=lambda i: (apart[i].max(), apart[i].sum(), i))
    assert (found.record, found.d.tolist(), found.distance) == (row + 1, apart[row].tolist(), best)
    # a pure permutation: chance is every combination of released values against the released records, exactly
    every = np.array(list(product(ranks[:, 0], ranks[:, 1])))
    null = np.abs(every[:, None, :] - ranks[None, :, :]).max(axis=2).min(axis=1)
    assert not found.approximate
    assert found.p_value == pytest.approx(np.mean(null <= best))
    assert found.null.to_dict() == pytest.approx({f"{value:g}": np.mean(null == value) for value in np.unique(null)})
    squares = (apart**2).sum(axis=1)
    euclidean = rv.verify(frame, record, f="euclidean")
    assert list(euclidean.records) == (np.flatnonzero(squares == squares.min()) + 1).tolist()
    assert euclidean.record == euclidean.records[0]


def test_ties_are_all_reported() -> None:
    frame = pa.table({"a": [1.0, 1.0, 5.0], "b": [2.0, 2.0, 7.0]})
    found = rv.verify(frame, {"a": 1.0, "b": 2.0})
    assert (found.record, found.records, found.d.tolist()) == (1, (1, 2), [0.0, 0.0])
    assert found.to_dict()["ranks"] == [1.5, 1.5]


def test_values_outside_the_range_take_the_ends() -> None:
    _, masked = rv.datasets.running_example()
    found = rv.verify(masked, {"X1": 1e6, "X2": -1e6})
    assert found.nearest == (123.37, 882.92)
    assert found.ranks.tolist() == [20.0, 1.0]


def test_only_the_columns_that_she_gives() -> None:
    _, masked = rv.datasets.running_example()
    found = rv.verify(masked, {"X3": 5108.54, "X1": 100.87})
    assert found.names == ("X3", "X1")
    assert found.nearest == (5087.90, 100.41)
    assert len(found.d) == 2


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
def test_every_library(make: Any) -> None:
    found = rv.verify(make({"n": [1, 5, 9], "x": [1.0, 5.0, 9.0]}), {"n": "6", "x": 6})
    assert found.nearest == (5, 5.0)
    assert isinstance(found.nearest[0], int)
    assert found.record == 2


def test_ordered_words_and_decimal_commas() -> None:
    levels = ["low", "middle", "high"]
    frame = pd.DataFrame({"g": pd.Categorical(["low", "high", "high"], categories=levels, ordered=True)})
    found = rv.verify(frame, {"g": "middle"})
    assert found.nearest == ("low",)
    with pytest.raises(rv.ParameterError, match="column g: 'hihg' is not among its categories low, middle, high"):
        rv.verify(frame, {"g": "hihg"})
    commas = rv.verify(pa.table({"x": ["1,5", "2,5"]}), {"x": "2,4"}, decimal=",")
    assert (commas.nearest, commas.record) == ((2.5,), 2)


def test_bad_records_are_refused() -> None:
    _, masked = rv.datasets.running_example()
    with pytest.raises(rv.TableError, match="no column x1; did you mean X1"):
        rv.verify(masked, {"x1": 1})
    with pytest.raises(rv.TableError, match="no column AGE; known: X1, X2, X3"):
        rv.verify(masked, {"AGE": 1})
    with pytest.raises(rv.ParameterError, match="give at least one value"):
        rv.verify(masked, {})
    for wrong in ("abc", None, float("nan"), float("inf"), ""):
        with pytest.raises(rv.ParameterError, match=r"column X1: .* is not a number"):
            rv.verify(masked, {"X1": wrong})
    with pytest.raises(rv.ParameterError, match="column w: 'c' is not among its categories a, b"):
        rv.verify(pa.table({"w": ["a", "b"]}), {"w": "c"})
    for few in (0, -1, 10.5, "10", True):
        with pytest.raises(rv.ParameterError, match="draws must be a whole number of at least 1"):
            rv.verify(masked, {"X1": 1.0}, draws=few)  # type: ignore[arg-type]
        with pytest.raises(rv.ParameterError, match="draws must be a whole number of at least 1"):
            rv.attack(masked, masked, draws=few)  # type: ignore[arg-type]
    for row in (3.7, "nearest", None, ""):
        with pytest.raises(rv.ParameterError, match="f must be minimax, euclidean or the number"):
            rv.verify(masked, {"X1": 1.0}, f=row)  # type: ignore[arg-type]
    with pytest.raises(rv.ParameterError, match="no complete released record 21"):
        rv.verify(masked, {"X1": 1.0}, f=21)
    with pytest.raises(rv.ParameterError, match="by the name of its column"):
        rv.verify(masked, [1.0, 2.0])  # type: ignore[arg-type]


def test_released_records_with_missing_values_keep_their_numbers() -> None:
    frame = pa.table({"a": [None, 1.0, 2.0, 3.0], "b": [1.0, 1.0, None, 3.0]})
    found = rv.verify(frame, {"a": 3.0, "b": 3.0})
    assert (found.record, found.ranks.tolist()) == (4, [2.0, 2.0])
    assert any("2 released records have missing values" in note for note in found.notes)
    assert rv.verify(frame, {"b": 1.0}).records == (1, 2)
    with pytest.raises(rv.ParameterError, match="no complete released record 3"):
        rv.verify(frame, {"a": 1.0, "b": 1.0}, f=3)
    with pytest.raises(rv.TableError, match="no released record has all the columns"):
        rv.verify(pa.table({"a": [None, 1.0], "b": [1.0, None]}), {"a": 1.0, "b": 1.0})


def test_a_sample_of_chance_is_seeded() -> None:
    frame = pa.table({name: np.random.default_rng(j).normal(size=200) for j, name in enumerate("abc")})
    record = {"a": 0.0, "b": 0.0, "c": 0.0}
    one, again, other = (rv.verify(frame, record, draws=300, seed=seed) for seed in (1, 1, 2))
    assert one.to_dict() == again.to_dict()
    assert one.null.to_dict() != other.null.to_dict()
    assert any("seeded sample of 300" in note for note in one.notes)
    assert one.p_value * 301 == pytest.approx(round(one.p_value * 301))


def test_one_released_record() -> None:
    found = rv.verify(pa.table({"a": [4.0]}), {"a": 7.0}, permutation=True)
    assert (found.record, found.d.tolist(), found.p_value, found.plausible) == (1, [0.0], 1.0, True)
    assert found.diversity == {"variance": [0.0], "distinct": [1.0], "entropy": [0.0], "closeness": [0.0]}


def test_an_unchanged_record_is_not_plausible_as_chance() -> None:
    rng = np.random.default_rng(3)
    frame = pa.table({name: rng.normal(size=90) for name in "abc"})
    mine = dict(frame.slice(10, 1).to_pylist()[0])
    found = rv.verify(frame, mine, permutation=True)
    assert (found.record, found.distance) == (11, 0.0)
    assert found.p_value == pytest.approx(90 / 90**3)
    assert not found.plausible


def test_chance_is_approximate_where_records_are_left_out() -> None:
    frame = pa.table({"a": [1.0, 2.0, None, 4.0], "b": [4.0, 3.0, 2.0, 1.0]})
    found = rv.verify(frame, {"a": 1.0, "b": 4.0}, permutation=True)
    assert found.approximate
    assert "the chance check is approximate: the released records that are left out have values too" in found.notes
    assert not rv.verify(frame, {"b": 4.0}, permutation=True).approximate


def test_values_of_households_that_changed_places_are_no_pure_permutation() -> None:
    household = np.repeat(np.arange(8), [1, 4, 2, 1, 3, 1, 5, 2])
    rng = np.random.default_rng(1)
    data = {"H": household, "RENT": rng.normal(size=8)[household], "AGE": rng.normal(size=household.size)}
    schema = rv.Schema(roles={"H": "group"})
    for columns, kept in ((["RENT", "AGE"], False), (["AGE"], True)):
        release = rv.mask(pa.table(data), "permute", columns=columns, schema=schema, seed=1)
        same = all(np.array_equal(np.sort(release.data[name]), np.sort(data[name])) for name in columns)
        assert (release.manifest["marginals"] == "kept") is kept is same


AGES = ("[18,30)", "[30,40)", "[40,65)", "[65,inf)")


def banded(labels: Any, **declared: Any) -> rv.Table:
    words = [labels[i % len(labels)] for i in range(12)]
    return rv.Table(pa.table({"AGE": words, "PAY": np.arange(12.0)}), schema=rv.Schema(**declared))


@pytest.mark.parametrize(
    ("labels", "value", "band"),
    [
        (AGES, "34", "[30,40)"),
        (AGES, 34, "[30,40)"),
        (AGES, "40", "[40,65)"),
        (AGES, 99, "[65,inf)"),
        (("under 18", "18-64", "65+"), 17.5, "under 18"),
        (("under 18", "18-64", "65+"), 64, "18-64"),
        (("under 18", "18-64", "65+"), 65, "65+"),
        (("<=20", ">20"), 20, "<=20"),
        (("(0,10]", "(10,20]"), 10, "(0,10]"),
        (("0", "1-4", "5 or more"), 0.0, "0"),
        (("(-inf,2000-01-01)", "[2000-01-01,2010-01-01)"), "2003-05-06", "[2000-01-01,2010-01-01)"),
        (("(-inf,2000-01-01)", "[2000-01-01,2010-01-01)"), dt.date(1999, 12, 31), "(-inf,2000-01-01)"),
        (("[06:00,12:00)", "[12:00,inf)"), "13:30", "[12:00,inf)"),
        (("low to middle", "high"), "low", "low to middle"),
        (("low to middle", "high"), "middle", "low to middle"),
    ],
    ids=str,
)
def test_ones_own_value_belongs_to_the_band_that_contains_it(labels: Any, value: Any, band: str) -> None:
    for declared in ({}, {"levels": {"AGE": labels}}):
        mine, as_band = (rv.verify(banded(labels, **declared), {"AGE": each, "PAY": 3}) for each in (value, band))
        assert mine.nearest[0] == band
        assert mine.notes[0] == f"column AGE: the value given lies in {band}, which was released"
        assert {**mine.to_dict(), "notes": as_band.notes} == as_band.to_dict()


def test_a_value_in_no_band_or_in_two() -> None:
    with pytest.raises(rv.ParameterError, match="column AGE: 17 is not among its categories"):
        rv.verify(banded(AGES), {"AGE": 17})
    with pytest.raises(rv.ParameterError, match=r"column AGE: 30 lies in 20-30, 30-40; give the one that is meant"):
        rv.verify(banded(("20-30", "30-40")), {"AGE": 30})


def test_ones_own_category_belongs_to_its_group_of_the_hierarchy() -> None:
    tree = [("Ulm", "South", "*"), ("Bonn", "West", "*"), ("Essen", "West", "*"), ("Kiel", "North", "*")]
    table = banded(("South", "West", "North"), hierarchies={"AGE": tree})
    found = rv.verify(table, {"AGE": "Essen"})
    assert found.nearest == ("West",)
    assert found.notes[0] == "column AGE: the value given lies in West, which was released"
    assert rv.verify(banded(("*", "West"), hierarchies={"AGE": tree}), {"AGE": "Ulm"}).nearest == ("*",)
    ordered = banded(("South", "West", "North"), hierarchies={"AGE": tree}, levels={"AGE": ("South", "West", "North")})
    assert rv.verify(ordered, {"AGE": "Essen"}).nearest == ("West",)


def test_bands_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.csv"
    path.write_text('AGE,PAY\n"[18,30)",1\n"[30,40)",2\n"[30,40)",3\n', encoding="utf-8")
    assert main(["verify", str(path), "--record", "AGE=34,PAY=2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nearest"] == ["[30,40)", 2]
    assert main(["verify", str(path), "--record", "AGE=34,PAY=2"]) == 0
    assert "[30,40)" in capsys.readouterr().out
