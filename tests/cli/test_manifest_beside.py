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
    more = {"audit": (), "attack": ("--at-most", "1", "--no-manifest"), "certify": ("--d", "0,0,0")}[verb]
    trivial = int(verb == "certify")  # d = 0 says nothing, whatever was drawn
    found = run(verb, *synthetic, *more, "--json", code=trivial).json
    assert found["mapping"] == "none"
    assert NONE in found["notes"]
    said = run(verb, *synthetic, *more, "--no-mapping", "--json", code=trivial).json
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
    run("mask", "original.csv", "-o", "mixed.csv", "--method", "rank_swap", "--then", "record_shuffle")
    code = 0 if verb == "audit" else 1  # all its values stand there
    found = run(verb, "original.csv", "mixed.csv", "--json", code=code).json
    assert found["mapping"] == "secret"
    said = "the mapping was read from the secret beside the release: mixed.csv.secret.json"
    assert said in found["notes"]
    Path("mixed.csv.secret.json").unlink()
    told = refused(verb, "original.csv", "mixed.csv")
    assert told == (
        "mixed.csv: its rows were reordered, as its manifest says; give its secret, as in "
        "--secret mixed.csv.secret.json, or a key column with --key"
    )
    found = run(verb, "original.csv", "mixed.csv", "--no-mapping", "--json", code=code).json
    assert found["mapping"] == "none"


def test_a_manifest_that_does_not_fit_is_said_and_not_used(synthetic: tuple[str, str], example: Path, run: Any) -> None:
    path = example / "synthetic.csv.manifest.json"
    plain = json.loads(path.read_text())
    plain["records"]["out"] = 7
    path.write_text(json.dumps(plain))
    found = run("audit", *synthetic, "--json").json
    assert found["mapping"] == "secret"  # which lies there too, and has a mapping of so many records
    assert any("is the manifest of another release" in note for note in found["notes"])
    path.write_text(json.dumps({**plain, "records": [7]}))
    found = run("audit", *synthetic, "--json").json
    assert any("is the manifest of another release" in note for note in found["notes"])
    path.write_text("no manifest")
    found = run("audit", *synthetic, "--json").json
    assert found["mapping"] == "secret"
    assert "synthetic.csv.manifest.json: this is not a manifest: it is not JSON; it was not used" in found["notes"]
    Path("synthetic.csv.secret.json").unlink()
    assert run("audit", *synthetic, "--json").json["mapping"] == "rows"


@pytest.mark.parametrize("verb", ["audit", "attack", "certify"])
def test_a_secret_beside_that_is_of_another_release_is_refused(
    example: Path, run: Any, refused: Any, verb: str
) -> None:
    run("mask", "original.csv", "-o", "mixed.csv", "--method", "rank_swap", "--then", "record_shuffle")
    run("mask", "original.csv", "-o", "kept.csv", "--method", "rank_swap", "--keep-order")
    Path("kept.csv.secret.json").replace("mixed.csv.secret.json")
    assert refused(verb, "original.csv", "mixed.csv") == (
        "mixed.csv: its rows were reordered, as its manifest says; mixed.csv.secret.json holds no mapping, so it is "
        "that of another release; give its secret, as in --secret mixed.csv.secret.json, or a key column with --key"
    )


def test_the_manifest_that_is_named_tells_the_order_too(example: Path, run: Any, refused: Any) -> None:
    run("mask", "original.csv", "-o", "noisy.csv", "--method", "additive_noise", "--seed", "5")
    Path("noisy.csv.manifest.json").rename("elsewhere.json")
    Path("noisy.csv.secret.json").rename("private.json")
    assert "its rows were reordered, as its manifest says" in refused(
        "attack", "original.csv", "noisy.csv", "--manifest", "elsewhere.json"
    )
    words = ("--manifest", "elsewhere.json", "--secret", "private.json")
    found = run("attack", "original.csv", "noisy.csv", *words, "--json", code=1).json
    assert found["mapping"] == "secret"


def test_an_attack_reads_the_manifest_beside_the_release(example: Path, run: Any, refused: Any) -> None:
    run("mask", "original.csv", "-o", "noisy.csv", "--method", "additive_noise", "--seed", "5")
    told = run("attack", "original.csv", "noisy.csv", "--json", code=1).json
    assert told["evidence"][0]["from"] == "manifest"
    assert "read the manifest beside the release: noisy.csv.manifest.json" in told["notes"]
    assert run("attack", "original.csv", "noisy.csv", "--no-manifest", "--json", code=1).json["learned"]
    path = example / "noisy.csv.manifest.json"
    plain = json.loads(path.read_text())
    path.rename("elsewhere.json")
    named = run("attack", "original.csv", "noisy.csv", "--manifest", "elsewhere.json", "--json", code=1).json
    assert {**named, "notes": None} == {**told, "notes": None}
    assert "give one of --manifest and --no-manifest" in refused(
        "attack", "original.csv", "noisy.csv", "--manifest", "elsewhere.json", "--no-manifest"
    )
    path.write_text(json.dumps(plain | {"records": {"in": 7, "out": 7}}))
    assert refused("attack", "original.csv", "noisy.csv").startswith(
        "noisy.csv.manifest.json: the manifest is that of another release, of another number of records"
    )
    path.write_text("no manifest")
    assert "this is not a manifest" in refused("attack", "original.csv", "noisy.csv")


def test_each_of_several_versions_is_read_with_its_own_manifest(synthetic: tuple[str, str], run: Any) -> None:
    original, made_up = synthetic
    run("mask", original, "-o", "swapped.csv", "--method", "rank_swap")
    found = run("audit", original, "swapped.csv", made_up, "--measures", "cm2,um", "--json").json
    assert NONE in found["notes"]
    assert found["mappings"] == ["secret", "none"]
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
    run("mask", "original.csv", "-o", "mixed.csv", "--method", "rank_swap", "--then", "record_shuffle")
    both = run("audit", "original.csv", "swapped.csv", "mixed.csv", "--measures", "cm2,um", "--json").json
    for name in ("swapped.csv", "mixed.csv"):
        assert f"the mapping was read from the secret beside the release: {name}.secret.json" in both["notes"]
    each = [
        run("audit", "original.csv", name, "--measures", "cm2", "--json").json["measures"]["cm2"]["value"]
        for name in ("swapped.csv", "mixed.csv")
    ]
    assert both["measures"]["cm2"]["details"]["replicates"] == each
    Path("mixed.csv.secret.json").unlink()
    assert refused("audit", "original.csv", "swapped.csv", "mixed.csv") == (
        "mixed.csv: its rows were reordered, as its manifest says; put its secret beside it, or measure it alone with "
        "it, as in --secret mixed.csv.secret.json, or give a key column with --key"
    )
