"""With a real server: what the commands print and write about its tables, and never its password."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

from rankveil import files
from rankveil.cli import main

PASSWORD = "correct horse hunter2"
"""With blanks, which an address may hold as they are."""


@pytest.fixture
def people(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A user of the server with a table, in an empty folder: a function from a table's name to its address."""
    monkeypatch.chdir(tmp_path)
    server.sql(f"CREATE ROLE test_owner LOGIN PASSWORD '{PASSWORD}'")
    server.sql("GRANT ALL ON SCHEMA public TO test_owner")

    def address(table: str, *, blanks: bool = True) -> str:
        given = server.url(table, user="test_owner", password=PASSWORD)
        return str(given.replace(quote(PASSWORD, safe=""), PASSWORD)) if blanks else str(given)

    data = {"AGE": [20 + i * 7 % 40 for i in range(40)], "PAY": [float(i * 13 % 37) for i in range(40)]}
    files.save(pa.table({"ID": list(range(40)), **data}), address("people"))
    files.save(pa.table({"original": range(1, 41), "masked": range(40, 0, -1)}), address("links"))
    return address


@pytest.mark.parametrize("blanks", [True, False])
def test_no_password_in_anything_that_is_written(
    people: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], blanks: bool
) -> None:
    original, released, links = (people(name, blanks=blanks) for name in ("people", "released", "links"))
    pair = [original, released, "--key", "ID", "--columns", "AGE,PAY"]
    masking = [
        "mask",
        original,
        "--method",
        "rank_swap",
        "--release-identifier",
        "ID",
        "--publish",
        "permutation_level",
    ]
    masking += ["--role", "ID=identifier", "--seed", "5eed"]  # the exit codes below are those of one draw
    compared = ["compare", original, "--columns", "AGE,PAY", "--methods", "rank_swap", "--sweep"]
    compared += ["--utility", "um", "--replicates", "1", "--workers", "1", "--points", "3", "--pick", "rank_swap=10"]
    said: dict[str, str] = {}
    for name, words in {
        "inspect": ["inspect", original],
        "mask": [*masking, "-o", released],
        "mask again": [*masking, "-o", released],  # which replaces a table
        "audit": ["audit", *pair, "--measures", "um", "--report", "audit.html"],
        "audit for all": ["audit", *pair, "--measures", "um", "--report", "public.html", "--public"],
        "attack": ["attack", *pair, f"--links={links}", "--draws", "50", "--report", "attack.html"],
        "certify": ["certify", *pair],
        "verify": ["verify", released, "--record", "AGE=30", "--manifest", "released.manifest.json"],
        "subject-page": ["subject-page", released, "-o", "page.html", "--columns", "AGE,PAY"],
        "compare": [*compared, "--report", "compare.html", "--write-plan", "plan.toml"],
    }.items():
        for more in ([], ["--json"]):
            # people are found again, which an attack says with its exit code, and a certificate that it is trivial
            assert main([*words, *more]) == (1 if name in ("attack", "certify") else 0), capsys.readouterr().err
            told = capsys.readouterr()
            said[name] = told.out
            for secret in (PASSWORD, quote(PASSWORD, safe=""), "hunter2"):
                assert secret not in told.out + told.err, words
    for path in tmp_path.iterdir():
        assert "hunter2" not in path.name
        assert b"hunter2" not in path.read_bytes(), path.name
    shown = files.shown(original)
    assert ":***@" in shown
    assert json.loads(said["inspect"])["file"] == shown
    assert json.loads(said["mask"])["output"] == files.shown(released)
    for page in ("audit.html", "attack.html", "compare.html"):
        assert "test_owner:***@127.0.0.1" in (tmp_path / page).read_text(encoding="utf-8"), page


def test_what_is_wrong_with_a_table_of_links_is_said_without_its_password(
    people: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    files.save(pa.table({"original": [0, 2], "masked": [2, 1]}), people("wrong"))
    pair = [people("people"), people("people"), "--columns", "AGE,PAY"]
    for table, sentence in {
        "wrong": "row 1 does not hold two row numbers from 1",
        "people": "there is no column original",
    }.items():
        assert main(["attack", *pair, "--links", people(table)]) == 2
        assert capsys.readouterr().err.startswith(f"rankveil: {files.shown(people(table))}: {sentence}")


def test_rows_that_were_reordered_are_said_without_the_password(
    people: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    masking = ["--method", "additive_noise", "--columns", "AGE,PAY", "--then", "record_shuffle"]
    assert main(["mask", people("people"), "-o", people("mixed"), *masking]) == 0
    capsys.readouterr()
    Path("mixed.secret.json").rename("elsewhere.json")
    assert main(["audit", people("people"), people("mixed"), "--columns", "AGE,PAY"]) == 2
    told = f"rankveil: {files.shown(people('mixed'))}: its rows were reordered, as its manifest says; give its secret"
    said = capsys.readouterr().err
    assert said.startswith(told)
    assert "--secret mixed.secret.json" in said
