"""What `rankveil verify` says on a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rankveil import datasets, files


def grid(out: str) -> list[list[str]]:
    """The cells of the table that was printed, the heading first."""
    lines = out.splitlines()
    first = next(number for number, line in enumerate(lines) if line.lstrip().startswith("attribute"))
    rows = [line.split() for line in lines[first + 1 :]]
    return [lines[first].split(), *rows[: rows.index([]) if [] in rows else None]]


def test_the_values_of_the_matched_record_stand_beside_hers(example: Path, run: Any) -> None:
    mine = ("verify", "masked.csv", "--record", "X1=4,X2=1,X3=4")
    record = run(*mine, "--json").json["record"]
    _, masked = datasets.running_example()
    released = masked.to_pylist()[record - 1]
    heading, *rows = grid(run(*mine).out)
    assert f"record {record} has" in " ".join(heading)
    assert {row[0]: row[4] for row in rows if row[0] in released} == {name: str(released[name]) for name in released}


def test_they_are_as_the_file_has_them(write: Callable[[str, str], str], run: Any) -> None:
    write("out.csv", "LEVEL;PAY\nlow;1,50\nhigh;7,25\nlow;9,00\n")
    _, *rows = grid(run("verify", "out.csv", "--kind", "LEVEL=ordinal:low<high", "--record", "LEVEL=high,PAY=7").out)
    assert [row[4] for row in rows[:2]] == ["high", "7,25"]


def people(run: Any) -> tuple[str, str]:
    """A release of which income was left as it is, and one person's own values."""
    table = datasets.demo(200).select(["AGE", "INCOME"]).drop_null()
    files.save(table, "people.csv")
    run("mask", "people.csv", "-o", "out.csv", "--method", "rank_swap", "--columns", "AGE")
    mine = table.to_pylist()[7]
    return "out.csv", f"AGE={mine['AGE']},INCOME={mine['INCOME']}"


def test_the_manifest_beside_the_release_is_read(example: Path, run: Any, refused: Any) -> None:
    release, mine = people(run)
    words = ("verify", release, "--record", mine)
    found = run(*words, "--json").json
    incomes = files.load(release).data.column("INCOME").to_pylist()
    row = [str(income) for income in incomes].index(
        mine.rpartition("=")[2]
    ) + 1  # which was left as it is, and is unique
    assert (found["probability"], found["likeliest"]) == (1, [row])
    told = "With probability 100 % this record is yours. AGE may tell more, which cannot be computed from your record"
    assert run(*words).out.startswith(f"{told} alone.\nLikeliest: record {row}.\n")
    assert found == run(*words, "--manifest", f"{release}.manifest.json", "--json").json
    unmasked = run("verify", release, "--record", mine.split(",")[1]).out
    assert unmasked.startswith("Your values stand in this release once, unmasked: this record is yours.")
    without = run("verify", release, "--record", mine.split(",")[1], "--no-manifest", "--json").json
    assert without["sentence"].endswith("unless it was masked, this record is yours.")
    told = refused(*words, "--manifest", f"{release}.manifest.json", "--no-manifest")
    assert told.startswith("--manifest names a manifest and --no-manifest asks for none")


def test_a_manifest_of_another_release(example: Path, run: Any, refused: Any) -> None:
    release, mine = people(run)
    path = example / f"{release}.manifest.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "records": {"in": 7, "out": 7, "left_out": 0}}), encoding="utf-8")
    found = run("verify", release, "--record", mine, "--json").json
    assert any("there is no manifest" in said for said in (found["sentence"], *found["notes"]))
    assert any("is the manifest of another release" in note for note in found["notes"])
    told = refused("verify", release, "--record", mine, "--manifest", str(path))
    assert "it tells of 7 records, the table has" in told
    path.write_text("no manifest", encoding="utf-8")
    assert any("it was not used" in note for note in run("verify", release, "--record", mine, "--json").json["notes"])


def test_a_unique_record_of_a_real_table_is_said_to_be_hers(run: Any) -> None:
    path = Path(__file__).parents[3] / "shared/data/peers/rdatasets/CPS1988.csv"
    if not path.exists():
        pytest.skip("the real tables are not here")
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    head, body = [word.strip('"') for word in rows[0]], rows[1:]
    body = [[word.strip('"') for word in row] for row in body]
    alone = next(row for row in body if body.count(row) == 1)
    mine = ",".join(f"{name}={value}" for name, value in zip(head, alone, strict=True) if name != "rownames")
    said = run("verify", path, "--record", mine, "--draws", "100").out
    assert "unless it was masked, this record is yours" in " ".join(said.split())
    assert "nobody can be sure" not in said
