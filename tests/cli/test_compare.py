"""rankveil compare: words, JSON, the plan, a report, and a comparison that is stopped and taken up again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rankveil import datasets, files

FAST = ("--risk", "permutation_level", "--utility", "um,pil", "--replicates", "2", "--workers", "1")


@pytest.fixture
def people(here: Path) -> str:
    files.save(datasets.demo(200).select(["AGE", "INCOME", "TAX"]), "people.csv")
    return "people.csv"


def test_compare(people: str, run: Any) -> None:
    words = ("compare", people, "--methods", "rank_swap,mdav", "--at", "risk=0.1", *FAST)
    found = run(*words, "--json").json
    assert (found["schema"], found["at"]) == ("rankveil/compare/1", {"risk": 0.1})
    assert {one["id"] for one in found["methods"]} == {"rank_swap", "mdav"}
    said = run(*words, "--write-plan", "plan.toml", "--report", "page.html").out
    assert found["recommendation"] in said
    assert "report: page.html (for internal use)" in said
    assert "INTERNAL: not for release" in Path("page.html").read_text(encoding="utf-8")
    masked = run("mask", people, "--plan", "plan.toml", "-o", "release.csv", "--json").json
    assert list(masked["changed"]) == ["AGE", "INCOME", "TAX"]
    left = {path.name for path in Path().iterdir()}
    assert not any("state" in name for name in left)


def test_the_map_and_a_pick(people: str, run: Any, refused: Any) -> None:
    words = ("compare", people, "--methods", "rank_swap,mdav", "--sweep", "--points", "4", *FAST)
    found = run(*words, "--json").json
    assert all(one["points"] for one in found["methods"])
    assert "not beaten" in run(*words).out
    run(*words, "--write-plan", "plan.toml", "--pick", "mdav=7", "--set", "mdav.block=2")
    assert "k = 7" in Path("plan.toml").read_text()
    assert "block = 2" in Path("plan.toml").read_text()
    assert "give both" in refused(*words, "--pick", "mdav=7")
    assert "permute is not among" in refused(*words, "--pick", "permute=7", "--write-plan", "p.toml")
    assert "name it, as in --pick mdav=7" in refused(*words, "--write-plan", "p.toml")
    run(*words, "--columns", "AGE,TAX", "--write-plan", "plan.toml", "--pick", "mdav=7")
    assert 'columns = [\n    "AGE",' in Path("plan.toml").read_text() or '"AGE"' in Path("plan.toml").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--at", "risk=much"], "much is not a number"),
        (["--at", "risk"], "the target risk needs a value, as in --at risk=0.45"),
        (["--at", "k_anonymity"], "the target k_anonymity needs a value, as in --at k_anonymity=5"),
        (["--at", "claims=0"], "the target claims is retired"),
        (["--at", "claims"], "as in --at found=0.09"),
        (["--at", "people_fond=0.1"], "did you mean people_found?"),
        (["--at", "spearman_risk=2"], "spearman_risk lies between -1 and 1"),
        ([], "say where to compare"),
        (["--at", "risk=1", "--sweep"], "say where to compare"),
        (["--at", "risk=1", "--public"], "--public is about the page of --report"),
        (["--at", "risk=1", "--workers", "0"], "--workers must be at least 1"),
        (["--sweep", "--points", "1"], "at least 3 points"),
        (["--at", "risk=1", "--set", "block=3"], "as in mdav.block=3"),
        (["--at", "risk=1", "--set", "mdav.bloc=3"], "did you mean block?"),
        (["--at", "risk=1", "--set", "um.basis=x"], "basis must be ranks or values"),
        (["--at", "risk=1", "--report", "people.csv"], "would overwrite the original"),
        (["--at", "risk=1", "--columns", "NOPE"], "no column NOPE"),
        (["--at", "risk=1", "--target", "NOPE"], "the target NOPE is not among the columns"),
    ],
)
def test_wrong_usage(people: str, refused: Any, words: list[str], sentence: str) -> None:
    assert sentence in refused("compare", people, "--methods", "mdav", *words)


def test_stopped_and_taken_up_again(people: str, run: Any) -> None:
    words = ["compare", people, "--methods", "rank_swap,additive_noise,mdav", "--at", "risk=0.2", *FAST]
    words[words.index("--replicates") + 1] = "20"
    whole = run(*words, "--json").out
    state = Path("people.csv.compare-state")
    work = subprocess.Popen(
        [sys.executable, "-m", "rankveil", *words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 60
    while not (state.exists() and len(state.read_text().splitlines()) > 5) and time.monotonic() < until:
        time.sleep(0.01)
    work.send_signal(signal.SIGINT)
    out, err = work.communicate(timeout=60)
    assert (work.returncode, out) == (130, "")
    assert "people.csv.compare-state: the same command with --resume goes on" in err
    kept = len(state.read_text().splitlines())
    assert kept > 5
    again = run(*words, "--resume", "--json").out
    assert json.loads(again) == json.loads(whole)
    assert not state.exists()


@pytest.mark.parametrize(
    ("original", "state"),
    [
        ("people.csv", "people.csv"),
        ("more/people.csv", "people.csv"),
        ("more/", "more"),
        ("sqlite:///more/s.db?table=main.people", "s.db.main.people"),
        ("duckdb:///s.db?table=people", "s.db.people"),
        ("postgresql://me:sesame@127.0.0.1:1/db?table=s.people", "s.people"),
    ],
)
def test_the_state_is_named_after_the_table(here: Path, refused: Any, original: str, state: str) -> None:
    (here / "more").mkdir()
    (here / f"{state}.compare-state").mkdir()  # which is in the way
    told = refused("compare", original, "--methods", "mdav", "--at", "risk=0.1")
    assert told == f"{state}.compare-state: is a folder; give the name of a file"


def test_a_table_that_nothing_reads_names_no_state(here: Path, refused: Any) -> None:
    told = refused("compare", "mysql://me:sesame@host/db", "--methods", "mdav", "--at", "risk=0.1")
    assert told.startswith("mysql://: the format mysql:// cannot be read; use one of ")


def test_a_limit_and_what_no_method_reaches(people: str, run: Any) -> None:
    limit = ("compare", people, "--utility", "um", "--replicates", "2", "--workers", "1", "--write-plan", "plan.toml")
    found = run(*limit, "--methods", "mdav,identity", "--at", "found", "--json").json
    assert (found["at"], found["risk"], found["pick"]["id"]) == ({"found": 0.09}, "people_found", "mdav")
    assert found["pick"]["confirmed"]["held"] == found["pick"]["confirmed"]["seeds"] == 10
    assert found["recommendation"].startswith("Take mdav with k = ")
    assert "method" in Path("plan.toml").read_text(encoding="utf-8")
    Path("plan.toml").unlink()
    words = (*limit, "--methods", "identity", "--at", "found=0.09")
    found = run(*words, "--json", code=1).json
    assert (found["pick"], found["methods"][0]["satisfied"]) == (None, False)
    assert "plan.toml was not written: no method reached the target" in found["notes"]
    assert "No method reaches found of at most 0.09. The nearest of each: identity" in run(*words, code=1).out
    assert not Path("plan.toml").exists()
