"""The register beside the secrets: how many releases of a table there are, and an attack on all of them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil import files
from rankveil.files import user_key
from rankveil.masking import register

NAME = "rankveil-register.json"
NOISE = ("--method", "additive_noise", "--set", "alpha=0.5")


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    files.save(pa.table({name: np.round(rng.normal(50, 9, 150), 3) for name in "ABCD"}), "people.csv")
    return tmp_path


def release(run: Any, out: str, *more: str) -> Any:
    return run("mask", "people.csv", "-o", out, *NOISE, *more, "--json").json


def said(notes: list[str]) -> list[str]:
    return [note for note in notes if "release of this table" in note]


def release_three(run: Any, *more: str) -> list[Any]:
    """Three releases of one table, each by a seed of its own that is always the same."""
    seeds = zip(("one", "two", "three"), ("a1", "b2", "c3"), strict=True)
    return [release(run, f"{name}.csv", "--seed", digits * 16, *more) for name, digits in seeds]


def found_by(attacked: dict[str, Any]) -> dict[str, float]:
    """The share of people found by each evidence alone."""
    return {each["id"]: each["found"] for each in attacked["evidence"]}


def test_the_third_release_is_said_to_be_one_and_all_together_tell_more(people: Path, run: Any) -> None:
    made = release_three(run, "--keep-order")  # so that the values of a person can be averaged
    assert [each["releases_of_this_table"] for each in made] == [1, 2, 3]
    assert said(made[0]["notes"]) == []
    (note,) = said(made[2]["notes"])
    assert note.startswith("this is the third release of this table, after one.csv (")
    assert f"rankveil attack ORIGINAL --register {NAME}" in note
    assert oct((people / NAME).stat().st_mode)[-3:] == "600"
    before = (people / NAME).read_bytes()
    alone = run("attack", "people.csv", "one.csv", "--json", code=1).json
    every = run("attack", "people.csv", "--register", NAME, "--json", code=1).json
    assert every["notes"][0].startswith(f"attacked together, from the register {NAME}: one.csv (")
    assert found_by(every)["likelihood"] > found_by(alone)["likelihood"] + 10 / 150
    assert found_by(every)["row_order"] == found_by(alone)["row_order"] == 1
    named = run("attack", "people.csv", "one.csv", "two.csv", "three.csv", "--json", code=1).json
    assert (named["found"], named["evidence"]) == (every["found"], every["evidence"])
    assert (people / NAME).read_bytes() == before


def test_releases_in_orders_of_their_own_are_attacked_one_by_one(people: Path, run: Any) -> None:
    """Whose rows stand where is told by none of them, so nothing is averaged: a person counts by the surest bet."""
    assert [each["releases_of_this_table"] for each in release_three(run)] == [1, 2, 3]
    each = [run("attack", "people.csv", f"{name}.csv", "--json", code=1).json for name in ("one", "two", "three")]
    every = run("attack", "people.csv", "--register", NAME, "--json", code=1).json
    assert found_by(every) == {f"release {k + 1}": one["found"]["share"] for k, one in enumerate(each)}
    assert every["found"]["expected"] > max(one["found"]["expected"] for one in each)
    named = run("attack", "people.csv", "one.csv", "two.csv", "three.csv", "--json", code=1).json
    assert (named["found"], named["evidence"]) == (every["found"], every["evidence"])


def test_an_entry_tells_what_is_needed_and_no_secret(people: Path, run: Any) -> None:
    Path("private").mkdir()
    release(run, "out.csv", "--secret", "private/s.json", "--manifest", "m.json")
    (entry,) = register.read(f"private/{NAME}")
    secret, manifest = (json.loads(Path(path).read_text()) for path in ("private/s.json", "m.json"))
    assert entry.fingerprint == secret["original_fingerprint"]
    assert (entry.digest, entry.date) == (manifest["digest"], manifest["date"])
    assert (entry.release, entry.manifest, entry.secret) == ("../out.csv", "../m.json", "s.json")
    assert rv.Plan.from_dict(entry.plan).steps[0].method == "additive_noise"
    assert secret["seed"] not in Path(f"private/{NAME}").read_text()
    assert not Path(NAME).exists()


def test_other_tables_and_the_same_release_again_are_not_counted(people: Path, run: Any) -> None:
    Path("seed").write_text("5a" * 16)
    for out in ("one.csv", "again.csv"):
        assert release(run, out, "--seed-file", "seed")["releases_of_this_table"] == 1
    (entry,) = register.read(NAME)
    assert entry.release == "again.csv"
    other = files.load("people.csv").data.slice(1)
    files.save(other, "people.csv")
    assert release(run, "two.csv")["releases_of_this_table"] == 1
    assert len(register.read(NAME)) == 2
    files.save(pa.table({name: other[name].cast(pa.float64()) for name in "ABCD"}), "people.parquet")
    found = run("mask", "people.parquet", "-o", "three.parquet", *NOISE, "--json").json
    assert found["releases_of_this_table"] == 2, "the same table in another format"


def test_what_is_gone_or_another_table_now_is_told_and_the_rest_attacked(people: Path, run: Any, refused: Any) -> None:
    for name in ("one", "two", "three", "four"):
        release(run, f"{name}.csv")
    os.unlink("one.csv")
    shutil.copy("people.csv", "two.csv")
    release(run, "sqlite:///a.db?table=t")
    found = run("attack", "people.csv", "--register", NAME, "--json", code=1).json
    assert "three.csv" in found["notes"][0]
    assert "four.csv" in found["notes"][0]
    lost = [note for note in found["notes"] if "was not attacked" in note]
    assert len(lost) == 3
    assert "there is no such file" in lost[0]
    assert "holds another table now" in lost[1]
    assert "opened only where the command names it" in lost[2]
    for name in ("three", "four"):
        os.unlink(f"{name}.csv")
    assert "no release that it names can be read" in refused("attack", "people.csv", "--register", NAME)


def test_flags_that_contradict_a_register_are_refused(people: Path, run: Any, refused: Any) -> None:
    release(run, "one.csv")
    attack = ("attack", "people.csv")
    assert "leave out MASKED" in refused(*attack, "one.csv", "--register", NAME)
    assert "of one release" in refused(*attack, "--register", NAME, "--secret", "one.csv.secret.json")
    assert "MASKED... is missing: name a release, or --register F" in refused(*attack)
    assert "names no release of this original" in refused("attack", "one.csv", "--register", NAME)
    assert "cannot be read" in refused(*attack, "--register", "nothing.json")


def forged(folder: Path) -> str:
    """A register that somebody else made: in the right form, with a seal that is none."""
    entry = register.Entry("ab" * 32, "2026-01-01", {}, "1:" + "cd" * 32, "one.csv", None, None)
    made = json.loads(register._sealed(str(folder), [entry]))
    return json.dumps({**made, "seal": "ef" * 32})


@pytest.mark.parametrize("what", ["forged", "copied", "damaged", "changed", "no list", "a link"])
def test_a_register_from_others_is_refused_by_name_and_a_release_is_not_lost(
    what: str, people: Path, run: Any, refused: Any
) -> None:
    release(run, "one.csv")
    good = Path(NAME).read_text()
    if what == "copied":
        (people / "other").mkdir()
        shutil.copy("people.csv", "other")
        os.chdir("other")
    kinds: dict[str, Callable[[], str]] = {
        "forged": lambda: forged(people),
        "copied": lambda: good,
        "damaged": lambda: good[: len(good) // 2],
        "changed": lambda: good.replace("one.csv", "../x.csv"),
        "no list": lambda: json.dumps({"schema": "rankveil/register/1", "releases": 5, "seal": "ab"}),
        "a link": lambda: good,
    }
    if what == "a link":
        os.rename(NAME, "moved.json")
        os.symlink("moved.json", NAME)
    else:
        Path(NAME).write_text(kinds[what]())
    planted = Path(NAME).read_bytes()
    told = refused("attack", "people.csv", "--register", NAME)
    assert NAME in told
    found = release(run, "two.csv")
    (note,) = [note for note in found["notes"] if "not in the register" in note]
    assert NAME in note
    assert "releases_of_this_table" not in found
    assert Path(NAME).read_bytes() == planted
    assert len(files.load("two.csv").data) == 150
    Path(NAME).unlink()
    assert release(run, "three.csv")["releases_of_this_table"] == 1


def test_without_a_key_that_is_kept_no_later_program_believes_it(
    people: Path, run: Any, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    assert release(run, "one.csv")["releases_of_this_table"] == 1
    assert release(run, "two.csv")["releases_of_this_table"] == 2, "of one process"
    user_key._of_this_process.cache_clear()
    assert any("not in the register" in note for note in release(run, "three.csv")["notes"])


def test_a_register_that_cannot_be_written_costs_no_release(people: Path, run: Any) -> None:
    Path(NAME).mkdir()
    found = release(run, "one.csv")
    assert any("not in the register" in note for note in found["notes"])
    assert Path("one.csv.secret.json").exists()
    assert not list(people.glob(".rankveil*"))


def test_parts_are_entered_too(people: Path, run: Any) -> None:
    pytest.importorskip("distributed")
    data = files.load("people.csv").data
    files.save(pa.table({name: data[name].cast(pa.float64()) for name in "ABCD"}), "people.parquet")
    first = run("mask", "people.parquet", "-o", "parts", *NOISE, "--cluster", "local:1", "--json").json
    assert first["releases_of_this_table"] == 1
    assert release(run, "two.csv")["releases_of_this_table"] == 2
    assert [each.release for each in register.read(NAME)] == ["parts", "two.csv"]
