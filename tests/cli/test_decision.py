"""The page that decides, as a terminal shows it, and the commands that it advises."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rankveil import files

SEED = "b" * 32


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of people, and a release that hides too little of them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    income = np.round(rng.lognormal(10, 0.5, size=80))
    table = {"INCOME": income, "TAX": np.round(income * 0.2 + rng.normal(size=80) * 50)}
    table["TOWN"] = [*"abcdefgh"] * 10
    files.save(pa.table(table), "people.csv")
    return tmp_path


def released(run: Any, *more: str) -> None:
    command = "mask people.csv -o out.csv --method copula_swap --set p=5 --columns INCOME,TAX --seed"
    run(*command.split(), SEED, *more)


def test_the_page_fits_a_screen(folder: Path, run: Any) -> None:
    released(run)
    said = run("audit", "people.csv", "out.csv").out.splitlines()
    assert said[0] == "RED: a limit is broken. Do not publish this release as it is."
    assert len(said) <= 30
    assert all(len(line) <= 100 for line in said if "rankveil " not in line)
    for name in ("Re-identification rate: ", "Certain re-identifications: ", "Largest loss of utility: "):
        assert any(name in line for line in said)
    assert "What to do about it" in said
    assert not any("spearman_risk" in line for line in said)


def test_all_prints_every_measure_with_its_meaning(folder: Path, run: Any) -> None:
    released(run)
    said = run("audit", "people.csv", "out.csv", "--all").out
    assert "What an intruder gains (risk)" in said
    assert "The share of people whose best link is right, for an intruder who uses everything that is public." in said


def test_measures_that_were_named_are_printed(folder: Path, run: Any) -> None:
    released(run)
    said = run("audit", "people.csv", "out.csv", "--measures", "um").out
    assert said.startswith("AMBER: ")
    assert "Utility by eigenvalues of the covariances" in said


def test_every_command_that_is_advised_runs(folder: Path, run: Any) -> None:
    released(run)
    found = run("audit", "people.csv", "out.csv", "--role", "TOWN=quasi-identifier", "--json").json
    assert found["status"] == "red"
    assert 1 <= len(found["advice"]) <= 3
    masked = 0
    for each in found["advice"]:
        words = shlex.split(each["command"])
        assert words[0] == "rankveil"
        assert {"people.csv", "--role"} <= {*words}
        if words[1] == "mask":
            masked += 1
            run(*words[1:], "--json")
            assert (folder / "out-2.csv").is_file()
    assert masked


def test_a_red_audit_alone_ends_well_and_a_gate_does_not(folder: Path, run: Any) -> None:
    released(run)
    assert run("audit", "people.csv", "people.csv", "--json").json["status"] == "red"
    assert run("audit", "people.csv", "people.csv", "--fail-if", "red", "--json", code=1).json["gates"] == [
        {"rule": "red", "value": "red", "ok": False}
    ]
    assert run("audit", "people.csv", "out.csv", "--fail-if", "certain>80", "--json").json["gates"][0]["ok"] is True


def test_a_scenario_on_the_command_line(folder: Path, run: Any) -> None:
    released(run)
    words = ("audit", "people.csv", "out.csv", "--knows", "TOWN", "--people", "0.5", "--measures", "um", "--json")
    item = run(*words).json["headline"][0]
    assert item["id"] == "people_found"
    assert item["scenario"]["people"] == 40
    assert item["scenario"]["knows"] == {"columns": ["TOWN"], "people": 0.5, "chosen": True}


def test_a_report_opens_with_what_decides(folder: Path, run: Any) -> None:
    released(run)
    run("audit", "people.csv", "out.csv", "--report", "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    place = page.index
    assert place("Do not publish this release as it is.") < place("What to do about it") < place("All measures")
    assert "rankveil mask people.csv -o out-2.csv" in page
    run("audit", "people.csv", "out.csv", "--report", "public.html", "--public")
    public = Path("public.html").read_text(encoding="utf-8")
    assert "Do not publish this release as it is." in public
    assert "people.csv" not in public


def test_classes_where_suppression_lets_missing_agree_with_any(folder: Path, run: Any) -> None:
    rng = np.random.default_rng(5)
    table = {
        "A": rng.choice([*"xy"], size=40),
        "B": rng.choice([*"pqrst"], size=40),
        "C": rng.choice([*"uvw"], size=40),
    }
    files.save(pa.table(table), "codes.csv")
    command = "mask codes.csv -o less.csv --method suppress --set k=3,missing_is=any --columns A,B,C --seed"
    run(*command.split(), SEED)
    roles = "A=quasi-identifier,B=quasi-identifier,C=quasi-identifier"
    found = run("audit", "codes.csv", "less.csv", "--role", roles, "--json").json
    item = next(each for each in found["headline"] if each["id"] == "k_anonymity")
    assert (item["limit"], item["status"]) == (3, "green")
    assert item["value"] == found["measures"]["k_anonymity"]["value"] >= 3
