"""The generated census: what holds in every household, and that it depends on the seed alone."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest

from rankveil import datasets


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return datasets.census().to_pandas()


@pytest.mark.parametrize("records", [0, 1, 2, 3, 7, 500])
def test_exactly_as_many_records_as_asked(records: int) -> None:
    made = datasets.census(records)
    assert made.num_rows == records
    assert len(set(made["PERSON"].to_pylist())) == records


def test_the_same_seed_gives_the_same_census_and_another_another() -> None:
    assert datasets.census(300).equals(datasets.census(300))
    assert not datasets.census(300).equals(datasets.census(300, seed=5))


def test_a_longer_census_begins_with_the_shorter_one() -> None:
    # but for the last household of the shorter one, which is cut to fit
    short, long = datasets.census(300), datasets.census(900)
    last = short["HOUSEHOLD"].to_pylist()[-1]
    same = sum(home != last for home in short["HOUSEHOLD"].to_pylist())
    assert short.slice(0, same).equals(long.slice(0, same))


def test_what_belongs_to_the_household_is_the_same_for_all_in_it(people: pd.DataFrame) -> None:
    for name in ("REGION", "DWELLING", "HOUSEHOLD_INCOME", "WEIGHT"):
        assert (people.groupby("HOUSEHOLD")[name].nunique() == 1).all(), name
        assert people[name].notna().all()
    for name in ("AGE", "OCCUPATION", "INCOME"):
        assert (people.groupby("HOUSEHOLD")[name].nunique() > 1).any(), name
    assert (people["WEIGHT"] > 0).all()
    assert people["WEIGHT"].nunique() > 100


def test_the_income_of_a_household_is_that_of_its_members_and_for_its_children(people: pd.DataFrame) -> None:
    home = people.groupby("HOUSEHOLD")
    complete = home["INCOME"].apply(lambda each: each.notna().all())
    expected = home["INCOME"].sum() + 2400 * home["AGE"].apply(lambda each: (each < 18).sum())
    assert (home["HOUSEHOLD_INCOME"].first()[complete] == expected[complete]).all()


def test_the_day_of_birth_fits_the_age(people: pd.DataFrame) -> None:
    for born, age in zip(people["BIRTH"], people["AGE"], strict=True):
        had_birthday = (born.month, born.day) <= (1, 1)
        assert date(2024, 1, 1).year - born.year - (not had_birthday) == age


def test_missing_cells_are_where_they_are_said_to_be(people: pd.DataFrame) -> None:
    some = people.isna().mean()
    assert set(some[some > 0].index) == {"INCOME", "OCCUPATION", "EDUCATION"}
    assert some[["INCOME", "OCCUPATION", "EDUCATION"]].between(0.02, 0.07).all()


def test_things_depend_on_each_other(people: pd.DataFrame) -> None:
    medians = people[people["HOURS"] > 0].groupby("EDUCATION", observed=True)["INCOME"].median()
    assert medians["none":].loc["lower secondary":].is_monotonic_increasing
    assert np.corrcoef(people.dropna(subset="INCOME")[["INCOME", "TAX"]].T)[0, 1] > 0.9
    adults = people[people["AGE"] >= 18]
    assert (people.loc[people["AGE"] < 16, "MARITAL"] == "never married").all()
    assert adults.loc[adults["MARITAL"] == "widowed", "AGE"].mean() > adults["AGE"].mean() + 15
    rural, town = people["REGION"] == "Waldheim", people["REGION"] == "Kronau City"
    assert (people.loc[town, "DWELLING"] == "flat").mean() > 2 * (people.loc[rural, "DWELLING"] == "flat").mean()


def test_hierarchies_have_every_category_once(people: pd.DataFrame) -> None:
    levels = {"REGION": 4, "OCCUPATION": 3}
    for name, rows in datasets.census_hierarchies().items():
        leaves = [row[0] for row in rows]
        assert set(leaves) == set(people[name].dropna())
        assert len(set(leaves)) == len(leaves)
        assert {len(row) for row in rows} == {levels[name]}
        assert {row[-1] for row in rows} == {"*"}
        for level in range(1, levels[name]):  # one parent each
            parents: dict[str, set[str]] = {}
            for row in rows:
                parents.setdefault(row[level - 1], set()).add(row[level])
            assert all(len(above) == 1 for above in parents.values())


def test_education_has_its_order() -> None:
    kind = datasets.census(10).schema.field("EDUCATION").type
    assert kind.ordered
