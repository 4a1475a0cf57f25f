"""What the tutorial says of its releases is what the commands give, for the seeds that it names."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rankveil.cli import main
from rankveil.manifest import Manifest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())
ORIGINAL = "rankveil-demo/original.csv"
NUMBERS = ["--columns", "AGE,HOURS,INCOME,TAX,SAVINGS"]
ALL = ["--roles", "roles.toml"]
ROWS = [[float(cell) for cell in row.split("|")[1:-1]] for row in re.findall(r"^\| \d+ \|.*$", PAGE, re.MULTILINE)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, demo: Path) -> Path:
    """The reader's folder, with the files of the page."""
    place = tmp_path_factory.mktemp("tutorial")
    shutil.copytree(demo, place / "rankveil-demo")
    for name, text in re.findall(r"^```toml\n(# (\S+\.toml)\n.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        (place / text).write_text(name, encoding="utf-8")
    return place


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def said(*words: str, code: int = 0) -> dict[str, Any]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([*words, "--json"]) == code
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def measured(release: str, *names: str) -> Mapping[str, Any]:
    measures: dict[str, Any] = said("audit", ORIGINAL, release, *ALL, "--measures", ",".join(names))["measures"]
    return measures


def released(seed: float, *more: str) -> str:
    name = f"release-{seed:g}.csv"
    if not Path(name).exists():
        said("mask", ORIGINAL, "-o", name, "--plan", "plan.toml", *ALL, "--seed", f"{seed:g}")
    return name


def test_eight_seeds_are_told() -> None:
    assert [row[0] for row in ROWS] == list(range(1, 9))
    assert sum(row[1] for row in ROWS) == 26
    assert (
        "In all eight tries 26 of 8,000 people are found, where blind guesses find 8 and the intruder himself "
        "expects 31" in WORDS
    )
    assert sum(row[2] for row in ROWS) == pytest.approx(31, abs=0.5)
    assert "found 26 of 8,000 people, where blind guesses find 8." in WORDS


@pytest.mark.parametrize("row", ROWS, ids=[f"seed {row[0]:g}" for row in ROWS])
def test_the_release_is_attacked_by_all_columns_with_these_counts(row: list[float]) -> None:
    name = released(row[0])
    attack = said("attack", ORIGINAL, name, *ALL)
    assert set(attack["knows"]["columns"]) == set(pd.read_csv(name).columns)
    assert (attack["verdict"], attack["found"]["of"], attack["certain"]) == ("holds", 1000, row[3])
    assert attack["found"]["right"] == pytest.approx(row[1], abs=2)  # of equal bets one may go either way
    assert attack["found"]["expected"] == pytest.approx(row[2], abs=0.5)
    audit = measured(name, "um", "k_anonymity", "permutation_level")
    assert audit["um"]["value"] == pytest.approx(row[4], abs=0.0015)
    assert audit["um"]["value"] > 0.975
    assert audit["k_anonymity"]["value"] >= 5
    assert audit["permutation_level"]["value"] > 0.2


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_it_costs_is_told(seed: int) -> None:
    original, release = pd.read_csv(ORIGINAL), pd.read_csv(released(seed))
    shares = measured(released(seed), "total_variation")["total_variation"]
    by_column = dict(shares["details"]["per_attribute"])
    assert max(by_column.values()) < 0.04  # regions as coast and inland, the level at which they were released
    for number in ("AGE", "HOURS", "INCOME", "TAX", "SAVINGS"):
        assert sorted(original[number].dropna()) == sorted(release[number].dropna())
    before, after = (table.groupby("EDUCATION")["INCOME"].mean() for table in (original, release))
    assert [round(mean, -3) for mean in before] == [22000, 34000, 45000]
    assert (before - after).abs().max() < 4000
    assert 0.905 < release["INCOME"].corr(release["TAX"]) < 0.955
    idle = [(table["SECTOR"] == "none") & (table["HOURS"] > 0) for table in (original, release)]
    assert idle[0].sum() == 68
    assert 224 <= idle[1].sum() <= 261
    none = [table.loc[table["SECTOR"] == "none", "INCOME"].mean() for table in (original, release)]
    assert round(none[0], -3) == 25000
    assert none[1] == pytest.approx(original["INCOME"].mean(), rel=0.05)
    assert 21 <= release[["SEX", "REGION", "SECTOR", "EDUCATION"]].isna().sum().sum() <= 35


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_tries_that_are_not_enough_are_found(seed: str) -> None:
    noise = ["--method", "additive_noise", "--set", "alpha=0.1", "--then", "round", "--then", "drop:columns=PERSON"]
    said("mask", ORIGINAL, "-o", "first.csv", *noise, *NUMBERS, "--seed", seed)
    attack = said("attack", ORIGINAL, "first.csv", *ALL, code=1)
    assert attack["found"]["share"] > 0.95
    assert attack["sentence"].startswith("Nearly everybody can be found")
    audit = measured("first.csv", "um", "permutation_level")
    assert audit["um"]["value"] == pytest.approx(0.999, abs=0.0006)
    assert audit["permutation_level"]["value"] == pytest.approx(0.02, abs=0.005)
    swap = ["--method", "rank_swap", "--set", "p=20", "--set", "scheme=pairs", "--then", "drop:columns=PERSON"]
    said("mask", ORIGINAL, "-o", "second.csv", *swap, *NUMBERS, "--seed", seed)
    attack = said("attack", ORIGINAL, "second.csv", *NUMBERS, code=1)
    assert attack["evidence"][0]["found"] == pytest.approx(0.25, abs=0.05)  # "about a quarter"
    assert (attack["certain"], attack["found"]["share"]) == (1000, 1.0)


def test_her_check_is_exact_though_other_columns_were_changed() -> None:
    name = released(1)
    hers = ["--manifest", f"{name}.manifest.json", "--draws", "50", "--record"]
    assert not said("verify", name, *hers, "AGE=44,HOURS=30,TAX=3000")["chance"]["approximate"]
    unknown = "the chance check is approximate: the release is not known to be a pure permutation"
    with_gaps = said("verify", name, *hers, "AGE=44,INCOME=31000,SAVINGS=9500")
    assert with_gaps["chance"]["approximate"]
    assert unknown not in with_gaps["notes"]
    ordered = ["--kind", "EDUCATION=ordinal:primary<secondary<tertiary"]
    assert unknown in said("verify", name, *hers, "AGE=44,EDUCATION=primary", *ordered)["notes"]


@pytest.mark.parametrize(
    ("changes", "exact"),
    [
        ({}, True),
        ({"marginals": "kept", "steps": []}, True),
        (
            {"steps": [{"method": "sample", "columns": [], "facts": {"works_on": "records", "marginals": "changed"}}]},
            False,
        ),
        ({"columns": [{"name": "AGE", "role": "group"}]}, False),
        ({"columns": []}, False),
        ({"records": {"in": 9, "out": 8, "left_out": 1}}, False),
        ({"records": None}, False),
        ({"steps": [{"method": "round"}]}, False),
        ({"steps": None}, False),
    ],
)
def test_only_the_steps_of_her_columns_count(changes: Mapping[str, Any], exact: bool) -> None:
    noise = {"method": "additive_noise", "columns": ["AGE"], "facts": {"works_on": "column", "marginals": "changed"}}
    back = {"method": "reverse_map", "columns": ["AGE"], "facts": {"works_on": "columns", "marginals": "kept"}}
    other = {**noise, "columns": ["TAX"]}
    manifest = {"marginals": "changed", "columns": [{"name": "AGE", "role": "other"}], "steps": [noise, back, other]}
    manifest["records"] = {"in": 9, "out": 9, "left_out": 0}
    assert Manifest({**manifest, **changes}).permutes(["AGE"]) is exact
