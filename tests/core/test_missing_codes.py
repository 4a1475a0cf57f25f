"""Missing codes: n/a, -9 and .a are told apart in a release, counted so, and go with the cell that is missing."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil import metadata
from rankveil.comparison.study import Study
from rankveil.files import load, save
from rankveil.measuring import Measuring
from rankveil.metadata import Described, gap_numbers, numbered_gaps, tagged, tags_of
from rankveil.seeds import CommonSeed, Seed
from rankveil.table import Table

MARKERS = ("n/a", "refused")
QUASI = rv.Schema(roles={"TOWN": "quasi-identifier"}, missing=MARKERS)


def described(columns: dict[str, Any], said: dict[str, Described]) -> pa.Table:
    plain = pa.table(columns)
    fields = [metadata.write(field, said.get(field.name, Described())) for field in plain.schema]
    return pa.Table.from_arrays(plain.columns, schema=pa.schema(fields))


def written(values: Any) -> list[Any]:
    """Numbers as they are, missing ones by their letter."""
    numbers = values.to_numpy(zero_copy_only=False) if hasattr(values, "to_numpy") else np.asarray(values)
    letters = tags_of(numbers.astype(np.float64))
    return [
        f".{letter}" if letter else None if math.isnan(x) else x for x, letter in zip(numbers, letters, strict=True)
    ]


# Which code a cell has


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (pa.array(["a", "n/a", None, "refused", "n/a", ""]), [-1, 1, 0, 2, 1, 3]),
        (pa.array([1.0, tagged("a"), None, tagged("b"), tagged("a"), 2.0]), [-1, 1, 0, 2, 1, -1]),
        (pa.array([1, 2, None, 3, None, 4]), [-1, -1, 0, -1, 0, -1]),
    ],
    ids=["text", "letters", "none"],
)
def test_cells_that_are_written_differently_have_different_numbers(cells: pa.Array, numbers: list[int]) -> None:
    table = Table(pa.table({"X": cells}), schema=rv.Schema(missing=MARKERS))
    assert gap_numbers(table.values("X")).tolist() == numbers
    assert np.isnan(table.values("X")).tolist() == [number >= 0 for number in numbers]


def test_codes_that_a_file_declares() -> None:
    said = Described(missing_codes=(-9,), missing_ranges=((90, math.inf),), program="spss")
    table = Table(described({"X": pa.array([1.0, -9.0, 97.0, 98.0, 97.0, None])}, {"X": said}))
    assert gap_numbers(table.values("X")).tolist() == [-1, 1, 2, 3, 2, 0]


def test_a_number_survives_copies() -> None:
    gaps = numbered_gaps(np.array([0, 7, 70_000]))
    for made in (gaps.copy(), gaps[[0, 1, 2]], np.where([True] * 3, gaps, 0.0), np.column_stack([gaps, gaps])[:, 1]):
        assert gap_numbers(made).tolist() == [0, 7, 70_000]


# Counted


def test_an_audit_tells_missing_codes_apart() -> None:
    data = pa.table({"TOWN": ["x"] * 5 + ["n/a"] * 2 + ["refused"] * 3 + [None] * 4, "WAGE": np.arange(14.0)})
    schema = rv.Schema(roles={"TOWN": "quasi-identifier", "WAGE": "confidential"}, missing=MARKERS)
    made = rv.audit(data, data, schema=schema, measures=["k_anonymity", "l_diversity", "sample_uniques"])
    assert made["k_anonymity"] == 2
    assert made.values["k_anonymity"].details["sizes"] == {"2": 1, "3": 1, "4": 1, "5": 1}
    assert made["l_diversity"] == 2
    (note,) = made.values["k_anonymity"].notes
    assert note == (
        "column TOWN: 9 of 14 cells are missing and agree with each other only, each of 3 missing codes by itself"
    )
    settings = {"k_anonymity": {"missing": "any"}}
    assert rv.audit(data, data, schema=schema, measures=["k_anonymity"], settings=settings)["k_anonymity"] == 14


def test_letters_and_codes_of_statistical_files_are_told_apart() -> None:
    ages = pa.array([30.0] * 3 + [tagged("a")] * 2 + [tagged("b")] + [-9.0] * 2)
    data = described({"AGE": ages}, {"AGE": Described(missing_codes=(-9,))})
    made = rv.audit(data, data, schema=rv.Schema(roles={"AGE": "quasi-identifier"}), measures=["k_anonymity"])
    assert made.values["k_anonymity"].details["sizes"] == {"1": 1, "2": 2, "3": 1}


def test_a_confidential_code_is_a_value_of_its_own() -> None:
    data = pa.table({"TOWN": ["x"] * 3, "ILL": ["n/a", "refused", None]})
    schema = rv.Schema(roles={"TOWN": "quasi-identifier", "ILL": "confidential"}, missing=MARKERS)
    assert rv.audit(data, data, schema=schema, measures=["l_diversity"], columns=["TOWN"])["l_diversity"] == 3


def people(n: int = 400) -> dict[str, list[Any]]:
    rng = np.random.default_rng(1)
    words = ["a", "b", "c", "d", "n/a", "refused", None]
    return {
        "TOWN": [words[i] for i in rng.choice(7, n, p=[0.3, 0.3, 0.2, 0.1, 0.04, 0.03, 0.03])],
        "WORK": [words[i] for i in rng.choice(7, n, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.03, 0.02])],
        "SEX": [words[i] for i in rng.choice(2, n)],
    }


@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])
def test_suppress_reaches_k_as_an_audit_counts_and_says_which_codes_went(library: str) -> None:
    plain = people()
    data = {"pyarrow": pa.table, "pandas": pd.DataFrame, "polars": pl.DataFrame}[library](plain)
    schema = rv.Schema(roles=dict.fromkeys(plain, "quasi-identifier"), missing=MARKERS)
    assert rv.audit(data, data, schema=schema, measures=["k_anonymity"])["k_anonymity"] < 5
    release = rv.mask(data, "suppress", k=5, seed=1, schema=schema)
    made = rv.audit(data, release.data, schema=schema, measures=["k_anonymity"])
    assert made["k_anonymity"] >= 5
    counts = release.manifest["steps"][0]["counts"]
    coded = {name: sum(word in MARKERS for word in plain[name]) for name in ("TOWN", "WORK")}
    assert {name: counts[name]["codes_emptied"] for name in coded} == coded
    assert "codes_emptied" not in counts["SEX"]
    (note,) = [note for note in release.notes if "had a code of their own" in note]
    assert all(f"{name} ({many})" in note for name, many in coded.items())
    assert release.changed["TOWN"] == coded["TOWN"] + counts["TOWN"]["suppressed"]
    assert not any("code of their own" in note for note in rv.mask(data, "suppress", k=5, columns=["SEX"]).notes)


def test_a_comparison_counts_as_an_audit_of_the_release() -> None:
    data = pa.table({**people(), "WAGE": np.arange(400.0)})
    schema = rv.Schema(roles=dict.fromkeys(people(), "quasi-identifier"), missing=MARKERS)
    for plan in (rv.Plan.of("pram", columns=["TOWN"]), rv.Plan.of("missing_swap", columns=["TOWN", "WORK"])):
        release = rv.mask(data, plan, seed=CommonSeed.of(1), schema=schema)
        study = Study(Table(data, schema=schema), ["TOWN", "WAGE"], seed=Seed.of(1))
        inside = Measuring(study.pair(plan, 0), settings={}, target=None).value("k_anonymity")
        outside = rv.audit(data, release.data, schema=schema, measures=["k_anonymity"]).values["k_anonymity"]
        assert inside.details["sizes"] == outside.details["sizes"]


# Moved and kept


@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])
def test_a_missing_code_moves_with_the_gap(library: str) -> None:
    towns = ["a", "n/a", "b", "refused", "c", None, "d", "n/a", "e", "f"]
    build = {"pyarrow": pa.table, "pandas": pd.DataFrame, "polars": pl.DataFrame}[library]
    release = rv.mask(build({"TOWN": towns}), "missing_swap", columns=["TOWN"], seed=1, schema=QUASI)
    made = Table(release.data).frame.get_column("TOWN").to_list()
    made = [None if cell is None or cell != cell else cell for cell in made]
    assert sorted(map(str, made)) == sorted(map(str, towns))
    for before, after in zip(towns, made, strict=True):
        assert (before in (*MARKERS, None)) != (after in (*MARKERS, None)) or before == after
    assert made[1] not in MARKERS


def test_categories_and_row_labels_move_too() -> None:
    towns = pd.Categorical(["a", "n/a", "b", "refused", "a", "b", "a", "b"])
    frame = pd.DataFrame({"TOWN": towns}, index=list("stuvwxyz"))
    made = rv.mask(frame, "missing_swap", columns=["TOWN"], seed=1, schema=QUASI).data
    assert made["TOWN"].value_counts().to_dict() == frame["TOWN"].value_counts().to_dict()
    assert made.index.equals(frame.index)
    assert not set(made["TOWN"][["t", "v"]]) & set(MARKERS)


def test_letters_move_and_outlive_the_record_that_they_came_from() -> None:
    data = pa.table({"AGE": pa.array([1.0, tagged("a"), 2.0, tagged("b"), 3.0, None, 4.0, 5.0] * 5)})
    release = rv.mask(data, "missing_swap", seed=CommonSeed.of(1))
    made = written(release.data["AGE"])
    assert sorted(map(str, made)) == sorted(map(str, written(data["AGE"])))
    plan = rv.Plan.of("missing_swap").then("sample", share=0.3)
    part = rv.mask(data, plan, seed=CommonSeed.of(1))
    whole = [made[row] for row in part.secret.order]
    assert written(part.data["AGE"]) == whole
    assert any(isinstance(cell, str) for cell in whole)


def test_different_codes_within_a_household_stay_and_its_values_are_the_same() -> None:
    homes = pa.array([1, 1, 2, 2, 3, 3, 4, 4])
    towns = ["a", "a", "n/a", "refused", "b", "b", "a", "a"]
    data = pa.table({"HOME": homes, "TOWN": towns})
    schema = rv.Schema(roles={"HOME": "group"}, missing=MARKERS)
    release = rv.mask(data, "permute", columns=["TOWN"], seed=1, schema=schema)
    made = release.data["TOWN"].to_pylist()
    assert made[2:4] == towns[2:4]
    assert made[::2] == [*made[1:2], towns[2], *made[5::2]]
    assert any("the same within every group" in note for note in release.notes)


def survey(program: Any) -> pa.Table:
    """An age and a region, with missing codes or letters as SPSS and Stata have them."""
    regions = ((1, "north"), (2, "south"), (3, "east"))
    if program == "spss":
        return described(
            {
                "age": pa.array([17.0, 20.0, -9.0, 70.0, -8.0, None]),
                "region": pa.array([1.0, 2.0, 3.0, 3.0, -9.0, 1.0]),
            },
            {
                "age": Described(
                    label="Age", value_labels=((-9, "refused"),), missing_codes=(-9, -8), level="scale", program="spss"
                ),
                "region": Described(
                    value_labels=(*regions, (-9, "refused")), missing_codes=(-9,), level="nominal", program="spss"
                ),
            },
        )
    return described(
        {
            "age": pa.array([17.0, 20.0, tagged("a"), 70.0, tagged("b"), None]),
            "region": pa.array([1.0, 2.0, 3.0, 3.0, tagged("a"), 1.0]),
        },
        {
            "age": Described(label="Age", value_labels=((".a", "refused"),), program="stata", storage="byte"),
            "region": Described(value_labels=(*regions, (".a", "refused")), program="stata", storage="byte"),
        },
    )


FILES = [("spss", ".sav", ["-9", "-8"]), ("stata", ".dta", [".a", ".b"])]


@pytest.mark.parametrize(("program", "ending", "codes"), FILES)
def test_bands_keep_the_missing_codes_in_a_file(program: str, ending: str, codes: list[str], tmp_path: Path) -> None:
    pytest.importorskip("pyreadstat")
    save(survey(program), str(tmp_path / f"in{ending}"))
    data = load(str(tmp_path / f"in{ending}")).data
    release = rv.mask(data, "recode", columns=["age"], cuts=("18", "65"))
    low, high = codes
    expected = ["(-inf,18)", "[18,65)", low, "[65,inf)", high]
    assert release.data["age"].to_pylist()[:5] == expected
    save(release.data, str(tmp_path / f"out{ending}"))
    again = load(str(tmp_path / f"out{ending}")).data
    assert again["age"].to_pylist()[:5] == expected
    table = Table(again)
    assert table.cells("age").missing.tolist() == [False, False, True, False, True, True]
    assert metadata.read(again.schema.field("age")).label == "Age"
    made = rv.audit(data, again, columns=["age"], measures=["permutation_level"])
    assert made.values["permutation_level"].details["per_attribute"] == {"age": 0.0}  # of the three that have an age
    if program == "spss":
        assert metadata.read(again.schema.field("age")).labels == {"-9": "refused"}


@pytest.mark.parametrize(("program", "ending", "codes"), FILES)
def test_groups_keep_the_codes_and_the_labels_of_what_stays(
    program: str, ending: str, codes: list[str], tmp_path: Path
) -> None:
    pytest.importorskip("pyreadstat")
    schema = rv.Schema(hierarchies={"region": rv.Hierarchy([("1", "1"), ("2", "9"), ("3", "9")], name="region")})
    release = rv.mask(survey(program), "recode", columns=["region"], level=1, schema=schema)
    gap = -9.0 if program == "spss" else ".a"
    save(release.data, str(tmp_path / f"out{ending}"))
    for made in (release.data, load(str(tmp_path / f"out{ending}")).data):
        assert written(made["region"].cast(pa.float64())) == [1.0, 9.0, 9.0, 9.0, gap, 1.0]
        said = metadata.read(made.schema.field("region"))
        assert said.labels == {1: "north", -9 if program == "spss" else ".a": "refused"}
        assert Table(made).cells("region").missing.tolist() == [False] * 4 + [True, False]


# Categories that no released record has


def categories(series: Any) -> list[str]:
    if isinstance(series, pd.Series):
        return [str(word) for word in series.cat.categories]
    if isinstance(series, pl.Series):
        return [str(word) for word in series.dtype.categories]  # type: ignore[attr-defined]
    return [str(word) for chunk in series.chunks for word in chunk.dictionary.to_pylist()]


LEAVES_OUT = CommonSeed.of(2)
"""A seed with which the last record is not drawn."""
TOWNS = ["b", "a", "b", "a", "b", "a", "b", "a", "b", "rare"]
WORDS = ["never", "b", "rare", "a"]
MAKERS = {
    "pyarrow": lambda: pa.table(
        {"TOWN": pa.DictionaryArray.from_arrays([WORDS.index(word) for word in TOWNS], WORDS, ordered=True)}
    ),
    "pandas": lambda: pd.DataFrame({"TOWN": pd.Categorical(TOWNS, categories=WORDS, ordered=True)}),
    "polars": lambda: pl.DataFrame({"TOWN": pl.Series(TOWNS, dtype=pl.Enum(WORDS))}),
}


@pytest.mark.parametrize("library", MAKERS)
@pytest.mark.parametrize(
    "plan",
    [
        rv.Plan.of("sample", size=5),
        rv.Plan.of("suppress", columns=["TOWN"], k=3),
        rv.Plan.of("pram", columns=["TOWN"], matrix="rare>a:1"),
    ],
    ids=lambda plan: str(plan.steps[0].method),
)
def test_categories_that_were_lost_are_not_told_and_the_others_keep_their_order(library: str, plan: rv.Plan) -> None:
    data: Any = MAKERS[library]()
    made = rv.mask(data, plan, seed=LEAVES_OUT).data["TOWN"]
    assert "rare" not in (made.to_pylist() if library == "pyarrow" else made.to_list())
    assert categories(made) == ["b", "a"]
    if library == "pyarrow":
        assert made.type.ordered
    if library == "pandas":
        assert made.cat.ordered
    kept = rv.mask(data, "identity", columns=["TOWN"]).data["TOWN"]
    assert categories(kept) == ["b", "rare", "a"]  # whose label it was that no record has cannot be told


def test_what_a_library_notes_of_lost_categories_goes_too() -> None:
    data, key = MAKERS["polars"]().to_arrow(), b"_PL_ENUM_VALUES2"
    noted = data.cast(pa.schema([data.schema.field("TOWN").with_metadata({key: b"5;never1;b4;rare1;a"})]))
    release = rv.mask(noted, "suppress", columns=["TOWN"], k=3, seed=1)
    assert b"rare" not in str(release.data.schema.field("TOWN").metadata).encode()
    same = rv.mask(noted, "identity", columns=["TOWN"], seed=1)
    assert same.data.schema.field("TOWN").metadata == {key: b"1;b4;rare1;a"}
    seen = pl.from_arrow(same.data)
    assert isinstance(seen, pl.DataFrame)
    assert seen.schema["TOWN"] in (pl.Enum(["b", "rare", "a"]), pl.Categorical)  # older versions do not know the key
