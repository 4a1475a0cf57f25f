"""A census goes from CSV through every format and database and back, and is measured alike; what cannot go is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rankveil import datasets, files, metadata
from rankveil.metadata import Described, DescribedTable

SEED = "00112233445566778899aabbccddeeff"
MEASURES = "permutation_level,spearman_risk,um,k_anonymity,t_closeness,total_variation,cm2,difference_variance"
ROLES = """
[columns.PERSON]
role = "identifier"
[columns.HOUSEHOLD]
role = "group"
[columns.REGION]
role = "quasi-identifier"
hierarchy = "region.csv"
[columns.OCCUPATION]
role = "confidential"
hierarchy = "occupation.csv"
[columns.SEX]
role = "quasi-identifier"
[columns.INCOME]
role = "confidential"
[columns.EDUCATION]
kind = "ordinal"
levels = ["none", "primary", "lower secondary", "upper secondary", "bachelor", "master or higher"]
[columns.WEIGHT]
role = "weight"
"""
PACKAGES = {".xlsx": "openpyxl", ".dta": "pyreadstat", ".sav": "pyreadstat", "duckdb:": "duckdb"}
OUTS = [
    "out.parquet",
    "out.feather",
    "out.dta",
    "out.sav",
    "out.xlsx",
    "sqlite:///out.db?table=people",
    "duckdb:///out.db?table=people",
]
FORGETFUL = ["out.csv", "out.xlsx", "sqlite:///out.db?table=people", "duckdb:///out.db?table=people"]

Write = Callable[[str, str], str]


def need(out: str) -> None:
    """Skip where the library of a format is not installed."""
    for mark, package in PACKAGES.items():
        if mark in out:
            pytest.importorskip(package)


@pytest.fixture
def census(write: Write, here: Path) -> str:
    files.save(datasets.census(400), "census.csv")
    for name, rows in datasets.census_hierarchies().items():
        write(f"{name.lower()}.csv", "".join(";".join(row) + "\n" for row in rows))
    write("roles.toml", ROLES)
    return "census.csv"


def audited(run: Any, original: str, masked: str, *more: str) -> dict[str, Any]:
    found = run("audit", original, masked, "--measures", MEASURES, *more, "--json").json
    return {name: found[name] for name in ("attributes", "mapping", "rankings", "measures", "not_applicable")}


@pytest.fixture(scope="module")
def as_csv() -> dict[tuple[str, ...], Any]:
    """What is measured in a release that is a CSV file, by its method, once it was."""
    return {}


@pytest.mark.parametrize(
    "method",
    [
        ("rank_swap",),
        ("additive_noise", "--then", "round:decimals=1"),
        ("recode", "--columns", "AGE", "--set", "cuts=18,30,65"),
        ("recode", "--columns", "REGION,OCCUPATION", "--set", "level=1"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("out", OUTS)
def test_the_census_is_measured_alike_in_every_format(
    census: str, run: Any, out: str, method: tuple[str, ...], as_csv: dict[tuple[str, ...], Any]
) -> None:
    need(out)
    words = ("mask", census, "--method", *method, "--roles", "roles.toml", "--seed", SEED)
    if method not in as_csv:
        run(*words, "-o", "plain.csv")
        as_csv[method] = audited(run, census, "plain.csv", "--roles", "roles.toml")
    assert len(as_csv[method]["measures"]) == len(MEASURES.split(","))
    run(*words, "-o", out)
    assert audited(run, census, out, "--roles", "roles.toml") == as_csv[method]


@pytest.mark.parametrize("out", OUTS)
def test_numbers_and_dates_are_such_where_types_are_known(census: str, run: Any, out: str) -> None:
    need(out)
    run("mask", census, "-o", out, "--method", "rank_swap", "--roles", "roles.toml", "--seed", SEED)
    types = {field.name: field.type for field in files.load(out).data.schema}
    for name in ("AGE", "INCOME", "WEIGHT"):
        assert pa.types.is_integer(types[name]) or pa.types.is_floating(types[name]), name
    assert pa.types.is_temporal(types["BIRTH"])
    for name in ("REGION", "EDUCATION", "SEX"):
        assert types[name] in (pa.string(), pa.large_string()), name


@pytest.fixture
def visits(write: Write) -> str:
    """Dates, moments without seconds, decimal commas and codes with zeros, some of them missing."""
    lines = ["CODE;PAY;DAY;AT;LEVEL"]
    for i in range(28):
        pay = "n/a" if i % 7 == 3 else f"{i * 37 % 41},5"
        day = "" if i % 5 == 2 else f"2020-{1 + i % 12:02d}-{1 + i:02d}"
        at = "n/a" if i % 9 == 4 else f"2021-03-{1 + i * 5 % 28:02d}T{i % 24:02d}:30"
        lines.append(f"{i:03d};{pay};{day};{at};{'low' if i % 3 else 'high'}")
    return write("visits.csv", "\n".join(lines) + "\n")


@pytest.mark.parametrize("out", OUTS)
def test_missing_dates_and_other_units_of_time(visits: str, run: Any, out: str) -> None:
    need(out)
    declared = ("--missing", "n/a", "--kind", "LEVEL=ordinal:low<high", "--role", "CODE=quasi-identifier")
    words = ("mask", visits, "--method", "permute", *declared, "--seed", SEED)
    run(*words, "-o", "plain.csv")
    run(*words, "-o", out)
    assert audited(run, visits, out, *declared) == audited(run, visits, "plain.csv", *declared)
    Path("plain.csv").rename("alone.csv")  # the secret beside it tells of another original
    assert audited(run, out, "alone.csv", *declared)["measures"]["permutation_level"]["value"] == 0
    data = files.load(out).data
    for name, missing in (("DAY", 6), ("AT", 3)):
        assert pa.types.is_temporal(data.schema.field(name).type)
        assert data.column(name).null_count == missing


def test_several_releases_in_other_units_of_time(visits: str, run: Any) -> None:
    declared = ("--missing", "n/a", "--columns", "AT")
    outs = ("plain.csv", "out.parquet", "sqlite:///out.db?table=people")
    for out in outs:
        run("mask", visits, "-o", out, "--method", "permute", *declared, "--seed", SEED)
    found = run("audit", visits, *outs, "--measures", "permutation_level", *declared, "--json").json
    alone = run("audit", visits, outs[0], "--measures", "permutation_level", *declared, "--json").json
    mean = found["measures"]["permutation_level"]
    assert mean["value"] == pytest.approx(alone["measures"]["permutation_level"]["value"])


def test_a_date_that_there_is_not_stays_text(write: Write, run: Any) -> None:
    days = [f"2020-02-{1 + i:02d}" for i in range(20)] + ["2020-02-31"]
    write("days.csv", "A,DAY\n" + "".join(f"{i},{day}\n" for i, day in enumerate(days)))
    named = ("--columns", "A", "--role", "A=confidential")
    run("mask", "days.csv", "-o", "out.parquet", "--method", "permute", *named, "--keep-order")
    assert files.load("out.parquet").data.column("DAY").to_pylist() == days


@pytest.fixture
def described(here: Path) -> str:
    """A table with labels, labels of values, codes and letters of missing cells."""
    x = np.arange(30) + 0.5
    x[[3, 5]] = metadata.tagged("a"), metadata.tagged("b")
    about = {
        "AGE": (pa.array(range(30)), Described(label="Age in years", level="scale")),
        "REGION": (pa.array([i % 4 for i in range(30)]), Described(value_labels=((0, "North"),), level="nominal")),
        "INCOME": (pa.array([-9 if i == 4 else i for i in range(30)]), Described(missing_codes=(-9,))),
        "SAT": (pa.array([99 if i == 7 else i % 5 for i in range(30)]), Described(missing_ranges=((90, 99),))),
        "X": (pa.array(x), Described()),
        "PLAIN": (pa.array(range(30)), Described()),
    }
    schema = pa.schema([metadata.write(pa.field(name, cells.type), said) for name, (cells, said) in about.items()])
    schema = metadata.write_table(schema, DescribedTable(label="Survey of May"))
    files.save(pa.Table.from_arrays([cells for cells, _ in about.values()], schema=schema), "in.parquet")
    return "in.parquet"


@pytest.mark.parametrize("out", FORGETFUL)
def test_what_a_format_cannot_hold_is_told(described: str, run: Any, out: str) -> None:
    need(out)
    notes = run("mask", described, "-o", out, "--method", "permute", "--seed", SEED, "--json").json["notes"]
    letters = "" if out.startswith("duckdb:") else ", letters of missing cells (X)"
    whole = "" if out.endswith(".xlsx") else ", label and notes of the table"
    assert [note for note in notes if note.startswith(f"{out}: c")] == [
        f"{out}: cannot hold labels (AGE), labels of values (REGION), levels of measurement (AGE, REGION)"
        f"{letters}{whole} of the original; .parquet keeps them",
        f"{out}: codes for missing cells are values like all others there, so tell its users which they are: "
        "INCOME -9, SAT 90 to 99",
    ]


@pytest.mark.parametrize("out", ["out.parquet", "out.feather"])
def test_what_a_format_holds_needs_no_note(described: str, run: Any, out: str) -> None:
    notes = run("mask", described, "-o", out, "--method", "permute", "--seed", SEED, "--json").json["notes"]
    assert not [note for note in notes if note.startswith(out)]
    kept = metadata.described_columns(files.load(out).data.schema)
    assert (kept["AGE"].label, kept["INCOME"].missing_codes) == ("Age in years", (-9,))


def test_a_table_of_which_nothing_is_said_needs_no_note(example: Path, run: Any) -> None:
    files.save(files.load("original.csv").data, "original.xlsx")
    for original in ("original.csv", "original.xlsx"):
        for out in ("out.csv", "out.xlsx", "sqlite:///out.db?table=people"):
            notes = run("mask", original, "-o", out, "--method", "permute", "--seed", SEED, "--json").json["notes"]
            assert not [note for note in notes if note.startswith(out)]


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_the_manifest_beside_a_table_of_a_database(example: Path, run: Any, refused: Any, scheme: str) -> None:
    need(f"{scheme}:")
    (example / "more").mkdir()
    address = f"{scheme}:///more/s.db?table=mixed"
    run("mask", "original.csv", "-o", address, "--method", "rank_swap", "--then", "record_shuffle")
    beside = "the mapping was read from the secret beside the release: more/s.db.mixed.secret.json"
    assert beside in run("audit", "original.csv", address, "--measures", "um", "--json").json["notes"]
    Path("more/s.db.mixed.secret.json").rename("private.json")
    assert refused("audit", "original.csv", address) == (
        f"{address}: its rows were reordered, as its manifest says; give its secret, as in "
        "--secret more/s.db.mixed.secret.json, or a key column with --key"
    )
    found = run("audit", "original.csv", address, "--secret", "private.json", "--measures", "um", "--json").json
    assert found["mapping"] == "secret"
    synthetic = f"{scheme}:///more/s.db?table=synthetic"
    run("mask", "original.csv", "-o", synthetic, "--method", "ipso", "--set", "given=X1")
    found = run("audit", "original.csv", synthetic, "--json").json
    assert found["mapping"] == "none"
    told = "its manifest says that its records do not correspond to original ones (no mapping)"
    assert f"{synthetic}: {told}" in found["notes"]


def test_the_manifest_beside_a_workbook_whose_sheet_is_named(example: Path, run: Any, refused: Any) -> None:
    need(".xlsx")
    run("mask", "original.csv", "-o", "mixed.xlsx", "--method", "rank_swap", "--then", "record_shuffle")
    name = metadata.read_table(files.load("mixed.xlsx").data.schema).label
    sheet = f"mixed.xlsx#{name}"
    assert run("audit", "original.csv", sheet, "--measures", "um", "--json").json["mapping"] == "secret"
    Path("mixed.xlsx.secret.json").unlink()
    told = refused("audit", "original.csv", sheet)
    assert told.startswith(f"{sheet}: its rows were reordered")
    assert "--secret mixed.xlsx.secret.json" in told
