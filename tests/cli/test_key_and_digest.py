"""The key of pseudonyms on the command line, and the digest by which a release is known to be what is described."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rankveil import files
from rankveil.cli import main
from rankveil.digests import digest_of
from rankveil.table import Table

KEY = "0123456789abcdef" * 3
OTHER = "release is not the table that its manifest describes"


def notes(*verb: str) -> list[str]:
    """The notes of a verb, whatever its verdict."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main([*verb, "--json"]) in (0, 1)
    found: list[str] = json.loads(said.getvalue())["notes"]
    return found


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    names = [f"person {k}" for k in range(60)]
    numbers = {name: np.round(rng.normal(50, 9, 60), 3) for name in "ABC"}
    day = [["31.12.1999", "1.5.2004", "12.6.1980"][k % 3] for k in range(60)]
    files.save(pa.table({"PERSON": names, "DAY": day, **numbers}), "one.csv")
    files.save(pa.table({"PERSON": names[:5], "Z": np.arange(5.0), "DAY": day[:5]}), "two.csv")
    Path("key").write_text(KEY[:20] + "\n" + KEY[20:] + "\n")
    return tmp_path


def test_a_key_file_keeps_pseudonyms_over_waves_and_shows_nowhere(people: Path, run: Any) -> None:
    names = []
    for wave in ("one", "two", "one"):
        more = ["--method", "pseudonymise", "--columns", "PERSON", "--key-file", "key", "--json"]
        ran = run("mask", f"{wave}.csv", "-o", "out.csv", *more)
        loaded = files.load("out.csv").data
        released = dict(zip(loaded["DAY"].to_pylist(), loaded["PERSON"].to_pylist(), strict=True))
        assert len(released) == 3
        names.append(set(loaded["PERSON"].to_pylist()))
        secret, manifest = (Path(f"out.csv.{what}.json").read_text() for what in ("secret", "manifest"))
        assert json.loads(secret)["pseudonyms"] == "a key of their own"
        for text in (ran.out, secret, manifest, Path("rankveil-register.json").read_text()):
            assert KEY not in text
    assert names[0] == names[2]
    assert names[1] < names[0]
    run("mask", "two.csv", "-o", "out.csv", "--method", "pseudonymise", "--columns", "PERSON")
    assert not set(files.load("out.csv").data["PERSON"].to_pylist()) & names[0]


def test_what_is_no_key_is_refused(people: Path, refused: Any) -> None:
    command = ("mask", "one.csv", "-o", "out.csv", "--columns", "PERSON", "--method", "pseudonymise")
    Path("short").write_text("abc")
    assert "the key file must hold at least 32 hexadecimal digits" in refused(*command, "--key-file", "short")
    assert "the key file cannot be read" in refused(*command, "--key-file", "nothing")
    assert "one of seed and key" in refused(*command, "--key-file", "-", "--seed-file", "-")
    noise = ("mask", "one.csv", "-o", "out.csv", "--columns", "A", "--method", "additive_noise")
    assert "no step of the plan makes any" in refused(*noise, "--key-file", "key")


@pytest.mark.parametrize("out", ["r.csv", "r.parquet", "r.xlsx", "r.dta", "r.sav", "duckdb:///r.db?table=t"])
def test_the_digest_in_the_manifest_is_that_of_the_file(out: str, people: Path, run: Any) -> None:
    """Also where its cells are converted: dates that a CSV writes in its own way, text that a spreadsheet would run."""
    run("mask", "one.csv", "-o", out, "--method", "additive_noise", "--columns", "A,B")
    loaded = files.load(out)
    manifest = json.loads(Path(f"{files.companion(out)}.manifest.json").read_text())
    assert digest_of(Table(loaded.data)) == manifest["digest"]


@pytest.mark.parametrize("cluster", [False, True])
def test_every_verb_says_when_a_release_is_another_table(cluster: bool, people: Path, run: Any) -> None:
    numbers = files.load("one.csv").data.select(["A", "B"])
    files.save(pa.table({name: numbers[name].cast(pa.float64()) for name in "AB"}), "one.parquet")
    where = ("--cluster", "local:1") if cluster else ()
    out = "r" if cluster else "r.parquet"
    if cluster:
        pytest.importorskip("distributed")
    run("mask", "one.parquet", "-o", out, "--method", "additive_noise", "--set", "alpha=1", *where)

    def said() -> list[bool]:
        verbs = [
            ("audit", "one.parquet", out, "--measures", "um"),
            ("certify", "one.parquet", out, "--f", "minimax", "--d", "0"),
            ("attack", "one.parquet", out, "--at-most", "1"),
            ("verify", out, "--record", "A=50"),
        ]
        return [any(OTHER in note for note in notes(*verb)) for verb in verbs]

    assert said() == [False] * 4
    table = files.load(out).data
    shuffled = table.take(pa.array(np.random.default_rng(0).permutation(60)))
    place = Path(out)
    if cluster:
        shutil.rmtree(place)
        place.mkdir()
        place = place / "part-00000.parquet"
    files.save(shuffled, place)
    assert not any(OTHER in note for note in notes("verify", out, "--record", "A=50"))
    cells = [51.25, *table["A"].to_pylist()[1:]]
    files.save(table.set_column(0, "A", pa.array(cells)), place)
    assert said() == [True] * 4
