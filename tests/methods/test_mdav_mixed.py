"""Microaggregation of tables of every kind of column: distances, centres, k-anonymity; and swapping of categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
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
from rankveil import files
from rankveil.catalogue import get_method
from rankveil.categories import Categories, nominal, ordinal
from rankveil.cli import main
from rankveil.hierarchy import Hierarchy
from rankveil.microaggregation import centroids, embedded, plain_mdav

WEST = ("Bonn", "Essen", "Hagen", "Köln")
REGIONS = Hierarchy([("Ulm", "South", "*"), ("Jena", "East", "*"), *((city, "West", "*") for city in WEST)])
LEVELS = ("low", "middle", "high")


def coded(labels: list[str], tree: Hierarchy | None = None) -> tuple[np.ndarray, Categories]:
    counts = Counter(labels)
    known = nominal(list(counts), np.array([float(count) for count in counts.values()]), tree)
    return np.array([float(known.labels.index(label)) for label in labels]), known


def centres(labels: list[str], groups: list[int], how: str, tree: Hierarchy | None = None) -> list[str]:
    """What stands for the group of every value."""
    codes, known = coded(labels, tree)
    made = centroids(
        codes[:, None],
        np.array(groups),
        np.zeros((len(labels), 1), bool),
        kinds=("nominal",),
        categories=(known,),
        nominal=how,
    )
    return [known.labels[int(code)] for code in made[:, 0]]


def same_counts(data: pa.Table, names: list[str]) -> list[int]:
    """How many records share their values with each record's."""
    records = list(zip(*(data[name].to_pylist() for name in names), strict=True))
    counted = Counter(records)
    return [counted[record] for record in records]


def test_worked_on_five_records() -> None:
    data = pa.table(
        {
            "PAY": [1.0, 2.0, 3.0, 4.0, 100.0],
            "JOB": ["cook", "judge", "cook", "cook", "judge"],
            "SCHOOL": ["low", "high", "middle", "low", "high"],
        }
    )
    # By pay alone record 4 is nearest to 5. The variance of PAY is 1522: (100 - 4)^2 / 1522 = 6.06, (100 - 2)^2 / 1522
    # = 6.31. The variance of JOB is half the mean of d^2 over all pairs: (1 - 0.6^2 - 0.4^2) / 2 = 0.24; two jobs are
    # 1 / 0.24 = 4.17 apart, so record 2, which has the same job, is nearer.
    schema = rv.Schema(levels={"SCHOOL": LEVELS}, roles={"JOB": "quasi-identifier"})
    made = rv.mask(data.select(["PAY", "JOB"]), "mdav", k=2, schema=schema.only(["JOB"])).data
    assert made["PAY"].to_pylist() == pytest.approx([8 / 3, 51, 8 / 3, 8 / 3, 51])
    assert made["JOB"].to_pylist() == ["cook", "judge", "cook", "cook", "judge"]
    made = rv.mask(data, "mdav", k=2, schema=schema)
    assert made.data["SCHOOL"].to_pylist() == ["low", "high", "low", "low", "high"]  # the median of low, middle, low
    assert made.manifest["guarantees"] == [
        "every record shares its values of PAY, JOB, SCHOOL with at least 1 others (k-anonymity)"
    ]


def test_the_lower_median_of_levels() -> None:
    values = np.array([[0.0], [2.0], [2.0], [0.0], [1.0], [2.0], [7.0]])
    groups = np.array([0, 0, 0, 0, 1, 1, 1])
    known = ordinal([str(level) for level in range(8)], np.ones(8))
    missing = np.zeros((7, 1), bool)
    missing[6] = True
    made = centroids(values, groups, missing, kinds=("ordinal",), categories=(known,), nominal="mode")
    assert made[:, 0].tolist() == [0, 0, 0, 0, 1, 1, 7]  # a missing cell is in no median and left alone
    plain = centroids(values, groups, missing, kinds=("ordinal",), categories=(None,), nominal="mode")
    assert np.array_equal(plain, made)  # levels that are numbers


def test_the_mode_and_its_ties() -> None:
    assert centres(["b", "a", "a", "c", "b", "c"], [0, 0, 0, 1, 1, 1], "mode") == ["a"] * 3 + ["c"] * 3
    # 1 of each in the first group: c is the most frequent in the column; then a, by its label
    assert centres(["a", "b", "c", "c", "c"], [0, 0, 0, 1, 1], "mode") == ["c"] * 5
    assert centres(["b", "a", "c", "d"], [0, 0, 1, 1], "mode") == ["a", "a", "c", "c"]
    assert centres(["b", "a", "a", "b"], [1, 0, 1, 0], "marginality") == ["a"] * 4  # without a hierarchy the same


def test_the_most_central_category_of_a_hierarchy() -> None:
    # Bonn and Köln are 0.585 apart and 0.848 from Ulm, which is the mode of the column but not central here
    labels = ["Ulm", "Bonn", "Köln", "Ulm", "Ulm"]
    assert centres(labels, [0, 0, 0, 1, 1], "mode", REGIONS) == ["Ulm"] * 5
    assert centres(labels, [0, 0, 0, 1, 1], "marginality", REGIONS) == ["Bonn"] * 3 + ["Ulm"] * 2
    # West is 0.415 from each of its four cities (1.66 in all), each of them 0.585 from the three others (1.75);
    # it stands in no record of the group
    cities = [*WEST, "West", "Ulm"]
    assert centres(cities, [0, 0, 0, 0, 1, 1], "marginality", REGIONS)[:4] == ["West"] * 4
    assert centres(cities, [0, 0, 0, 0, 1, 1], "mode", REGIONS)[:4] == ["Bonn"] * 4


LABELS = st.sampled_from([*WEST, "Ulm", "Jena"])
TABLES = st.integers(2, 40).flatmap(
    lambda n: st.fixed_dictionaries(
        {
            "PAY": st.lists(st.integers(0, 9).map(float), min_size=n, max_size=n),
            "CITY": st.lists(LABELS, min_size=n, max_size=n),
            "JOB": st.lists(st.sampled_from("abcde"), min_size=n, max_size=n),
            "SCHOOL": st.lists(st.sampled_from(LEVELS), min_size=n, max_size=n),
        }
    )
)
SCHEMA = rv.Schema(
    levels={"SCHOOL": LEVELS},
    roles={"CITY": "quasi-identifier", "JOB": "quasi-identifier"},
    hierarchies={"CITY": REGIONS},
)


def columns_of(table: dict[str, list[Any]]) -> tuple[np.ndarray, dict[str, Any]]:
    city, cities = coded(table["CITY"], REGIONS)
    job, jobs = coded(table["JOB"])
    school = np.array([float(LEVELS.index(word)) for word in table["SCHOOL"]])
    x = np.asfortranarray(np.column_stack([table["PAY"], city, job, school]))
    kinds = ("numeric", "nominal", "nominal", "ordinal")
    return x, {"kinds": kinds, "categories": (None, cities, jobs, ordinal(LEVELS, np.ones(3)))}


@settings(max_examples=80, deadline=None)
@given(TABLES)
def test_points_are_as_far_apart_as_records(table: dict[str, list[Any]]) -> None:
    x, known = columns_of(table)
    points = embedded(x, **known)
    found = np.sum((points[:, None, :] - points[None, :, :]) ** 2, axis=2)
    wanted = np.zeros_like(found)
    for j, (kind, categories) in enumerate(zip(known["kinds"], known["categories"], strict=True)):
        apart = np.abs(x[:, j][:, None] - x[:, j][None, :])
        if kind == "nominal":
            code = x[:, j].astype(int)
            apart = categories.distances[np.ix_(code, code)]
        variance = np.mean(apart**2) / 2  # of any column: half the mean squared distance of two records
        if variance > 0:
            wanted += apart**2 / variance
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(TABLES, st.integers(2, 6), st.sampled_from(["mode", "marginality"]))
def test_any_table_is_k_anonymous(table: dict[str, list[Any]], k: int, how: str) -> None:
    data = pa.table(table)
    if k > len(data):
        return
    release = rv.mask(data, "mdav", k=k, nominal=how, schema=SCHEMA, columns=data.column_names)
    assert min(same_counts(release.data, data.column_names)) >= k
    assert len(release.manifest["guarantees"]) == 1
    assert sum(release.data["PAY"].to_pylist()) == pytest.approx(sum(table["PAY"]))
    for name in ("CITY", "JOB", "SCHOOL"):
        assert set(release.data[name].to_pylist()) <= set(table[name])


@settings(max_examples=25, deadline=None)
@given(TABLES, st.integers(1, 5))
def test_the_compiled_search_sees_the_same_ties(table: dict[str, list[Any]], k: int) -> None:
    from rankveil.kernels.mdav import mdav

    x, known = columns_of(table)
    points = np.ascontiguousarray(embedded(x, **known))
    if points.shape[1] and k <= len(points):
        assert np.array_equal(mdav(points, k), plain_mdav(points, k))


def people(n: int) -> pa.Table:
    rng = np.random.default_rng(n)
    job = rng.zipf(1.5, n) % 30
    return pa.table(
        {
            "PAY": rng.lognormal(size=n).round(2),
            "AGE": rng.integers(18, 80, n),
            "JOB": pa.array([f"job {each}" for each in job], mask=rng.random(n) < 0.05),
            "CITY": [(*WEST, "Ulm", "Jena")[each] for each in rng.integers(0, 6, n)],
            "SCHOOL": pa.array([LEVELS[each] for each in rng.integers(0, 3, n)], mask=rng.random(n) < 0.05),
        }
    )


def test_the_compiled_search_agrees_on_thousands_of_mixed_records() -> None:
    from rankveil.kernels.mdav import mdav

    table = rv.Table(people(3000), schema=SCHEMA)
    x = np.nan_to_num(np.column_stack([table.values(name) for name in table.names]))
    kinds = tuple(table.cells(name).kind for name in table.names)
    categories = tuple(table.categories(name) if table.labels(name) else None for name in table.names)
    points = np.ascontiguousarray(embedded(x, kinds=kinds, categories=categories))
    assert points.shape[1] > 30
    assert np.array_equal(mdav(points, 5), plain_mdav(points, 5))


def test_missing_cells_are_in_no_centre_and_stay_missing() -> None:
    data = pa.table(
        {
            **{name: [1.0, 1.0, 1.0, 9.0, 9.0, 9.0] for name in ("PAY", "TAX", "RENT")},  # these decide
            "JOB": ["cook", None, "cook", None, "judge", "judge"],
            "SCHOOL": ["low", "low", None, "high", None, "middle"],
        }
    )
    release = rv.mask(data, "mdav", k=3, schema=rv.Schema(levels={"SCHOOL": LEVELS}, roles={"JOB": "confidential"}))
    assert release.data["JOB"].to_pylist() == ["cook", None, "cook", None, "judge", "judge"]
    assert release.data["SCHOOL"].to_pylist() == ["low", "low", None, "middle", None, "middle"]
    assert any("4 missing cells stood at" in note for note in release.notes)
    assert release.manifest["guarantees"] == []


def test_a_nominal_column_that_is_all_missing_changes_nothing() -> None:
    x = np.column_stack([np.arange(6.0), np.zeros(6)])
    missing = np.column_stack([np.zeros(6, bool), np.ones(6, bool)])
    nothing = nominal([], np.zeros(0))
    made = get_method("mdav")(x, missing, k=3, kinds=("numeric", "nominal"), categories=(None, nothing))
    assert made[:, 0].tolist() == [1, 1, 1, 4, 4, 4]
    assert made[:, 1].tolist() == [0] * 6


def test_blocks_of_one_column_are_microaggregated_alone() -> None:
    data = people(200)
    release = rv.mask(data, "mdav", k=4, block=1, schema=SCHEMA)
    for name in ("PAY", "AGE", "CITY"):
        assert min(Counter(release.data[name].to_pylist()).values()) >= 4
    assert release.manifest["guarantees"] == []


@pytest.mark.parametrize("by", ["first_component", "z_sum"])
def test_scores_need_columns_with_an_order(by: str) -> None:
    with pytest.raises(rv.ParameterError, match=rf"by={by} needs columns with an order.*\(JOB, CITY\) do not have"):
        rv.mask(people(20), "mdav", by=by, schema=SCHEMA)
    made = rv.mask(people(20), "mdav", by=by, columns=["PAY", "SCHOOL"], schema=SCHEMA)
    assert set(made.changed) == {"PAY", "SCHOOL"}


def test_a_column_with_as_many_labels_as_records() -> None:
    few = pa.table({"NAME": [f"n{i}" for i in range(12)], "X": np.arange(12.0)})
    made = rv.mask(few, "mdav", k=3, columns=["NAME", "X"], release_identifiers=["NAME", "X"])
    assert min(same_counts(made.data, ["NAME", "X"])) >= 3
    many = pa.table({"NAME": [f"n{i}" for i in range(10_001)], "X": np.arange(10_001.0)})
    with pytest.raises(rv.ParameterError, match="column NAME has 10001 categories, too many to group 10001 records by"):
        rv.mask(many, "mdav", columns=["NAME", "X"], release_identifiers=["NAME", "X"])


def test_k_larger_than_the_table_and_one_record() -> None:
    with pytest.raises(rv.ParameterError, match="k = 5 is larger than the number of records, 3"):
        rv.mask(people(3), "mdav", schema=SCHEMA)
    one = people(1)
    assert rv.mask(one, "mdav", k=1, schema=SCHEMA).data.equals(one)


def test_eia_with_its_states_and_utilities(reference_data: Callable[[str], Path]) -> None:
    data = files.load(reference_data("eia")).data
    names = ["STATE", "UTILNAME", "RESREVENUE", "RESSALES", "TOTREVENUE", "TOTSALES"]
    release = rv.mask(data, "mdav", k=5, columns=names, release_identifiers=["UTILNAME"])
    assert min(same_counts(release.data, names)) >= 5
    assert set(release.data["STATE"].to_pylist()) <= set(data["STATE"].to_pylist())
    # the utility says more than its numbers: most records keep it
    assert release.changed["UTILNAME"] < len(data) / 4


def test_libraries_files_and_the_command_line_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = people(150)
    made = rv.mask(data, "mdav", k=3, nominal="marginality", schema=SCHEMA).data
    frame = rv.mask(data.to_pandas(), "mdav", k=3, nominal="marginality", schema=SCHEMA).data
    assert pa.Table.from_pandas(frame, preserve_index=False)["CITY"].to_pylist() == made["CITY"].to_pylist()
    polars = rv.mask(pl.from_arrow(data), "mdav", k=3, nominal="marginality", schema=SCHEMA).data
    files.save(data, "people.csv")
    (tmp_path / "regions.csv").write_text("\n".join(";".join(row) for row in REGIONS.rows), encoding="utf-8")
    words = [
        "mask",
        "people.csv",
        "-o",
        "masked.csv",
        "--method",
        "mdav",
        "--set",
        "k=3",
        "--set",
        "nominal=marginality",
        "--keep-order",
    ]
    words += ["--role", "JOB=quasi-identifier", "--role", "CITY=quasi-identifier", "--hierarchy", "CITY=regions.csv"]
    assert main([*words, "--kind", "SCHOOL=ordinal:low<middle<high"]) == 0
    read = pd.read_csv("masked.csv", keep_default_na=False)
    for name in ("JOB", "CITY", "SCHOOL"):
        wanted = made[name].to_pylist()
        assert polars[name].to_list() == wanted
        assert [None if pd.isna(cell) else cell for cell in frame[name]] == wanted
        assert [cell or None for cell in read[name]] == wanted
    assert read["PAY"].to_numpy() == pytest.approx(made["PAY"].to_numpy())


@pytest.mark.parametrize(
    ("method", "given_"), [("rank_swap", {"p": 20}), ("distance_swap", {"d": 10}), ("shuffle", {})]
)
def test_swapping_goes_by_marginality_where_there_is_a_hierarchy(method: str, given_: dict[str, Any]) -> None:
    data = people(300)
    release = rv.mask(
        data.drop_columns(["JOB"]), method, seed=1, schema=SCHEMA.only(set(data.column_names) - {"JOB"}), **given_
    )
    assert set(release.changed) == {"PAY", "AGE", "CITY", "SCHOOL"}
    assert Counter(release.data["CITY"].to_pylist()) == Counter(data["CITY"].to_pylist())
    assert release.changed["CITY"] > 50
    assert release.manifest["marginals"] == "kept"
    with_jobs = rv.mask(data, method, seed=1, schema=SCHEMA, **given_)
    assert f"{method} leaves nominal columns without a hierarchy as they are: JOB" in with_jobs.notes
    assert with_jobs.manifest["steps"][1]["method"] == "pram"
    assert with_jobs.manifest["steps"][1]["columns"] == ["JOB"]
    with pytest.raises(
        rv.TableError, match=rf"column JOB: {method} takes .*\(with a hierarchy\).* and this one is nominal"
    ):
        rv.mask(data, method, columns=["JOB"], schema=SCHEMA, **given_)


def test_rank_swap_of_five_categories_by_hand() -> None:
    # Bonn and Köln are 0.585 apart and 0.848 from Ulm: sums of 2.28 for Köln, 2.54 for Ulm and 2.87 for Bonn
    data = pa.table({"CITY": ["Ulm", "Bonn", "Köln", "Köln", "Ulm"]})
    table = rv.Table(data, schema=rv.Schema(hierarchies={"CITY": REGIONS}))
    assert table.labels("CITY") == ("Köln", "Ulm", "Bonn")
    releases = [
        rv.mask(table, "rank_swap", p=40, scheme="pairs", columns=["CITY"], seed=seed).data for seed in range(60)
    ]
    made = {tuple(release["CITY"].to_pylist()) for release in releases}
    # two ranks at most: Bonn, the last, never changes places with a Köln, the first two
    assert all(row[1] in ("Bonn", "Ulm") and {row[2], row[3]} <= {"Köln", "Ulm"} for row in made)
    assert len(made) > 2


def test_controls_take_every_kind() -> None:
    data = people(120)
    same = rv.mask(data, "identity", schema=SCHEMA)
    assert same.data.equals(data)
    mixed = rv.mask(data, "permute", seed=1, schema=SCHEMA)
    for name in data.column_names:
        assert Counter(mixed.data[name].to_pylist()) == Counter(data[name].to_pylist())
        assert mixed.changed[name] > 20
        assert mixed.data[name].is_null().equals(data[name].is_null())
    records = rv.mask(data, "record_shuffle", seed=1, schema=SCHEMA)
    assert records.data.equals(data.take(pa.array(records.secret.order)))


def test_reverse_mapping_gives_the_original_categories_in_the_order_of_the_masked_ones() -> None:
    data = people(200)
    plan = rv.Plan.of("mdav", k=5).then("reverse_map")
    release = rv.mask(data, plan, seed=2, schema=SCHEMA)
    grouped = rv.mask(data, "mdav", k=5, schema=SCHEMA)
    original = rv.Table(data, schema=SCHEMA)
    for name in ("CITY", "JOB", "SCHOOL"):
        assert Counter(release.data[name].to_pylist()) == Counter(data[name].to_pylist())
        before = original.codes(name, original.categories(name))
        masked, back = (
            rv.Table(made.data, schema=SCHEMA).codes(name, original.categories(name)) for made in (grouped, release)
        )
        there = ~np.isnan(before)
        order = np.lexsort((back[there], masked[there]))
        assert np.array_equal(back[there][order], np.sort(before[there]))  # ranks are those of the masked values


def test_reverse_mapping_needs_the_labels_of_the_original() -> None:
    data = people(40)
    for step, parameters in (("recode", {"level.CITY": 1}), ("recode", {"cuts.AGE": "30,60"})):
        plan = rv.Plan.of(step, **parameters).then("reverse_map")
        with pytest.raises(rv.ParameterError, match="an earlier step gave it labels that the original does not have"):
            rv.mask(data, plan, schema=SCHEMA)
    swapped = rv.mask(data, rv.Plan.of("pram", columns=["JOB"], p=0.5).then("reverse_map"), seed=1, schema=SCHEMA)
    assert Counter(swapped.data["JOB"].to_pylist()) == Counter(data["JOB"].to_pylist())
