"""A release whose manifest lies beside it: how its records correspond need not be said again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NONE = "synthetic.csv: its manifest says that its records do not correspond to original ones (no mapping)"


@pytest.fixture
def synthetic(example: Path, run: Any) -> tuple[str, str]:
    run("mask", "original.csv", "-o", "synthetic.csv", "--method", "ipso", "--set", "given=X1")
    return "original.csv", "synthetic.csv"


@pytest.mark.parametrize("verb", ["audit", "attack", "certify"])
def test_synthetic_records_are_not_taken_for_the_original_ones(synthetic: tuple[str, str], run: Any, verb: str) -> None:
    found = run(verb, *synthetic, "--json").json
    assert found["mapping"] == "none"
    assert NONE in found["notes"]
    said = run(verb, *synthetic, "--no-mapping", "--json").json
    assert NONE not in said["notes"]
    said["notes"].append(NONE)
    assert sorted(found.pop("notes")) == sorted(said.pop("notes"))
    assert found == said


def test_who_says_how_records_correspond_is_believed(synthetic: tuple[str, str], run: Any) -> None:
    found = run("audit", *synthetic, "--secret", "synthetic.csv.secret.json", "--json").json
    assert found["mapping"] == "secret"  # it tells which record took whose place
    assert NONE not in found["notes"]


@pytest.mark.parametrize("verb", ["audit", "attack", "certify"])
def test_reordered_rows_need_the_secret(example: Path, run: Any, refused: Any, verb: str) -> None:
    run("mask", "original.csv", "-o", "mixed.csv", "--method", "record_shuffle")
    told = refused(verb, "original.csv", "mixed.csv")
    assert told == (
        "mixed.csv: its rows were reordered, as its manifest says; give its secret, as in "
        "--secret mixed.csv.secret.json, or a key column with --key"
    )
    assert run(verb, "original.csv", "mixed.csv", "--no-mapping", "--json").json["mapping"] == "none"


def test_a_manifest_that_does_not_fit_is_said_and_not_used(synthetic: tuple[str, str], example: Path, run: Any) -> None:
    path = example / "synthetic.csv.manifest.json"
    plain = json.loads(path.read_text())
    plain["records"]["out"] = 7
    path.write_text(json.dumps(plain))
    found = run("audit", *synthetic, "--json").json
    assert found["mapping"] == "rows"
    assert any("is the manifest of another release" in note for note in found["notes"])
    path.write_text(json.dumps({**plain, "records": [7]}))
    found = run("audit", *synthetic, "--json").json
    assert any("is the manifest of another release" in note for note in found["notes"])
    path.write_text("no manifest")
    found = run("audit", *synthetic, "--json").json
    assert found["mapping"] == "rows"
    assert "synthetic.csv.manifest.json: this is not a manifest: it is not JSON; it was not used" in found["notes"]


def test_each_of_several_versions_is_read_with_its_own_manifest(synthetic: tuple[str, str], run: Any) -> None:
    original, made_up = synthetic
    run("mask", original, "-o", "swapped.csv", "--method", "rank_swap")
    found = run("audit", original, "swapped.csv", made_up, "--measures", "cm2,um", "--json").json
    assert NONE in found["notes"]
    assert found["mappings"] == ["rows", "none"]
    alone = run("audit", original, "swapped.csv", "--measures", "cm2", "--json").json
    assert found["measures"]["cm2"]["value"] == alone["measures"]["cm2"]["value"]
    assert any(note.startswith("cm2 applies to 1 of the 2 masked versions") for note in found["notes"])
    both = run("audit", original, made_up, made_up, "--json").json
    assert both["mapping"] == "none"
    assert "mappings" not in both
    assert "cm2" in both["not_applicable"]
    assert "mappings" not in run("audit", original, "swapped.csv", made_up, "--no-mapping", "--json").json


def test_a_reordered_version_among_several_is_not_taken_in_its_order(example: Path, run: Any, refused: Any) -> None:
    run("mask", "original.csv", "-o", "swapped.csv", "--method", "rank_swap")
    run("mask", "original.csv", "-o", "mixed.csv", "--method", "record_shuffle")
    assert refused("audit", "original.csv", "swapped.csv", "mixed.csv") == (
        "mixed.csv: its rows were reordered, as its manifest says; measure it alone with its secret, as in "
        "--secret mixed.csv.secret.json, or give a key column with --key"
    )
