"""rankveil mask: plans from flags and files, what is written, and what is never written."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil import files

SEED = "00112233445566778899aabbccddeeff"
OUTPUTS = ("out.csv", "out.csv.manifest.json", "out.csv.secret.json")


def manifest(name: str = "out.csv.manifest.json") -> Any:
    return json.loads(Path(name).read_text(encoding="utf-8"))


def test_json(example: Path, run: Any) -> None:
    found = run("mask", "original.csv", "-o", "out.csv", "--method", "rank_swap", "--json").json
    assert found["schema"] == "rankveil/mask/1"
    assert found["records"] == 20
    assert list(found["changed"]) == ["X1", "X2", "X3"]
    assert found["passed_through"] == []
    assert (found["output"], found["manifest"], found["secret"]) == OUTPUTS
    assert all(Path(name).exists() for name in OUTPUTS)


def test_the_secret_is_private_and_the_manifest_is_not(example: Path, run: Any) -> None:
    old = os.umask(0o022)
    try:
        run(
            "mask", "original.csv", "-o", "out.csv", "--method", "permute", "--manifest", "m.json", "--secret", "s.json"
        )
    finally:
        os.umask(old)
    assert stat.S_IMODE(Path("s.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(Path("m.json").stat().st_mode) == 0o644
    assert not Path("out.csv.secret.json").exists()
    assert manifest("m.json")["marginals"] == "kept"


def test_words(example: Path, run: Any) -> None:
    said = run("mask", "original.csv", "-o", "out.csv", "--method", "additive_noise", "--then", "round").out
    assert "20 records masked by additive_noise, then round, then record_shuffle." in said
    assert "out.csv.secret.json (keep it" in said


def test_set_for_all_and_for_one_column(example: Path, run: Any) -> None:
    given = ("--set", "alpha=0.2", "--set", "alpha.X2=0.5,sd.X3=7")
    run("mask", "original.csv", "-o", "out.csv", "--method", "additive_noise", *given)
    step = manifest()["steps"][0]
    assert step["per_column"]["X2"]["alpha"] == 0.5
    assert step["per_column"]["X3"]["sd"] == 7


def test_a_list_of_columns_is_a_parameter(example: Path, run: Any) -> None:
    for given in (("given=X1,X2", "variant=B"), ("given=X1,X2,variant=B",), ("variant=B,given=X1,X2",)):
        words = [word for text in given for word in ("--set", text)]
        run("mask", "original.csv", "-o", "out.csv", "--method", "ipso", *words)
        step = manifest()["steps"][0]
        assert step["columns"] == ["X3"]
        assert (step["parameters"]["given"], step["parameters"]["variant"]) == (["X1", "X2"], "B")
    run("mask", "original.csv", "-o", "out.csv", "--method", "identity", "--then", "shuffle:given=X1,X2")
    assert manifest()["steps"][1]["parameters"]["given"] == ["X1", "X2"]


def test_then_with_parameters(example: Path, run: Any) -> None:
    steps = ("--then", "clip:lower=90,upper=110", "--then", "round:decimals=0", "--columns", "X1")
    run("mask", "original.csv", "-o", "out.csv", "--method", "additive_noise", *steps)
    made = manifest()["steps"]
    assert [step["method"] for step in made] == ["additive_noise", "clip", "round", "record_shuffle"]
    assert [step["columns"] for step in made[:3]] == [["X1"]] * 3
    values = [float(row) for row in files.load("out.csv").data["X1"].to_pylist()]
    assert min(values) >= 90
    assert max(values) <= 110
    assert all(value == int(value) for value in values)


def test_columns_hold_for_a_second_masking_too(example: Path, run: Any) -> None:
    chosen = ("--columns", "X1", "--then", "rank_swap:p=50")
    found = run("mask", "original.csv", "-o", "out.csv", "--method", "additive_noise", *chosen, "--json").json
    assert list(found["changed"]) == ["X1"]
    assert found["passed_through"] == ["X2", "X3"]


@pytest.mark.parametrize("form", ["toml", "json"])
def test_plan_from_a_file(example: Path, run: Any, refused: Any, form: str) -> None:
    plan = rv.Plan.of("rank_swap", p=30, columns=["X1"]).then("round", decimals=1)
    Path(f"plan.{form}").write_text(plan.to_toml() if form == "toml" else plan.to_json(), encoding="utf-8")
    run("mask", "original.csv", "-o", "out.csv", "--plan", f"plan.{form}")
    assert [step["method"] for step in manifest()["steps"]] == ["rank_swap", "round", "record_shuffle"]
    run("mask", "original.csv", "-o", "out.csv", "--plan", f"plan.{form}", "--then", "permute")
    assert [step["method"] for step in manifest()["steps"]] == ["rank_swap", "round", "permute", "record_shuffle"]
    for more in (("--method", "permute"), ("--set", "p=3"), ("--columns", "X1")):
        assert "--plan holds" in refused("mask", "original.csv", "-o", "o.csv", "--plan", f"plan.{form}", *more)


def test_bad_plans(example: Path, write: Callable[[str, str], str], refused: Any) -> None:
    command = ("mask", "original.csv", "-o", "out.csv", "--plan")
    assert refused(*command, write("a.toml", "steps = [")).startswith("a.toml: the plan is not TOML")
    assert refused(*command, write("a.json", "{")).startswith("a.json: the plan is not JSON")
    assert refused(*command, write("b.toml", "x = 1")).startswith("b.toml: this is not a plan")
    assert refused(*command, "c.toml") == "c.toml: the plan cannot be read: no such file or directory"


def test_publish(example: Path, run: Any, refused: Any) -> None:
    run("mask", "original.csv", "-o", "out.csv", "--method", "permute", "--publish", "spearman_risk,permutation_level")
    assert set(manifest()["measures"]) == {"spearman_risk", "permutation_level"}
    assert "did you mean spearman_risk?" in refused(
        "mask", "original.csv", "-o", "new.csv", "--method", "permute", "--publish", "spearman_rsk"
    )


def test_same_seed_same_release(example: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    Path("seed.txt").write_text(SEED[:16] + "\n" + SEED[16:].upper() + "\n")
    released = []
    for given in (("--seed", SEED), ("--seed-file", "seed.txt"), ("--seed-file", "-"), ()):
        monkeypatch.setattr("sys.stdin", io.StringIO(f"0x{SEED}"))
        run("mask", "original.csv", "-o", "out.csv", "--method", "additive_noise", *given)
        released.append(Path("out.csv").read_bytes())
    assert released[0] == released[1] == released[2] != released[3]
    assert json.loads(Path("out.csv.secret.json").read_text())["seed"] != SEED


def test_the_seed_shows_nowhere_but_in_the_secret(example: Path, run: Any, refused: Any) -> None:
    for more in (("--json",), ()):
        ran = run("mask", "original.csv", "-o", "out.csv", "--method", "additive_noise", "--seed", SEED, *more)
        assert SEED not in ran.out + ran.err
    holding = [path.name for path in example.iterdir() if SEED in path.read_text(encoding="utf-8").lower()]
    assert holding == ["out.csv.secret.json"]
    command = ("mask", "original.csv", "-o", "new.csv", "--method", "permute")
    for wrong in (
        ("--seed", SEED + "x"),
        ("--seed-file", SEED),
        ("--seed", SEED, "--seed-file", "f"),
        (SEED,),
        ("--sed", SEED),
        (f"--sed={SEED}",),
        (f"--{SEED}",),
    ):
        assert SEED[:16] not in refused(*command, *wrong)


def test_a_short_seed(example: Path, run: Any, refused: Any, write: Callable[[str, str], str]) -> None:
    write("short.txt", "abcdef")
    write("words.txt", "x" * 40)
    command = ("mask", "original.csv", "-o", "out.csv", "--method", "permute")
    for name in ("short.txt", "words.txt"):
        assert "at least 32 hexadecimal digits" in refused(*command, "--seed-file", name)
    assert refused(*command, "--seed-file", "none.txt") == "the seed file cannot be read: no such file or directory"
    assert "fewer than 128 bits" in run(*command, "--seed", "abc").out


def test_a_release_is_written_as_its_original(write: Callable[[str, str], str], run: Any) -> None:
    rows = "".join(f"p{i};{i},5;{'' if i == 4 else i * i}\r\n" for i in range(12))
    Path("in.csv").write_bytes(f"WHO;A;B\r\n{rows}".encode("cp1252"))
    words = ("--method", "rank_swap", "--set", "p=50", "--columns", "A,B", "--keep-order", "--json")
    found = run("mask", "in.csv", "-o", "out.csv", *words).json
    assert found["passed_through"] == ["WHO"]
    assert any("no step masks WHO" in note for note in found["notes"])
    lines = Path("out.csv").read_bytes().decode("cp1252").split("\r\n")
    assert lines[0] == "WHO;A;B"
    assert sorted(line.split(";")[1] for line in lines[1:13]) == sorted(f"{i},5" for i in range(12))
    assert [line.split(";")[0] for line in lines[1:13]] == [f"p{i}" for i in range(12)]
    assert lines[5].endswith(";")


def test_text_in_and_types_out(write: Callable[[str, str], str], run: Any) -> None:
    rows = "".join(f"00{i % 10},{i},{i}.5,{'NA' if i == 3 else i},{'low' if i % 2 else 'high'},x\n" for i in range(12))
    write("in.csv", f"ZIP,A,B,C,L,T\n{rows}")
    order = ("--kind", "L=ordinal:low<high", "--columns", "A,B,L")
    run("mask", "in.csv", "-o", "out.parquet", "--method", "rank_swap", "--set", "p=50", "--keep-order", *order)
    made = pq.read_table("out.parquet")
    assert {name: str(made.schema.field(name).type) for name in made.column_names} == {
        "ZIP": "string",
        "A": "int64",
        "B": "double",
        "C": "int64",
        "L": "string",
        "T": "string",
    }
    assert made["C"].to_pylist()[2:5] == [2, None, 4]
    assert sorted(made["B"].to_pylist()) == [i + 0.5 for i in range(12)]
    run("mask", "out.parquet", "-o", "again.feather", "--method", "rank_swap", "--set", "p=50", "--columns", "A")
    assert files.load("again.feather").data.schema.field("A").type == made.schema.field("A").type


def test_an_untouched_column_that_is_not_clean_stays_text(write: Callable[[str, str], str], run: Any) -> None:
    write("in.csv", "A,B\n" + "".join(f"{i},{'?' if i == 5 else i}\n" for i in range(20)))
    run("mask", "in.csv", "-o", "out.parquet", "--method", "rank_swap", "--columns", "A", "--keep-order")
    assert pq.read_table("out.parquet")["B"].to_pylist()[4:7] == ["4", "?", "6"]


def test_outputs_never_meet_inputs_or_each_other(example: Path, refused: Any) -> None:
    Path("soft.csv").symlink_to("original.csv")
    Path("hard.csv").hardlink_to("original.csv")
    Path("plan.toml").write_text(rv.Plan.of("permute").to_toml())
    command = ("mask", "original.csv", "--method", "permute", "-o")
    for name in ("original.csv", "./original.csv", "soft.csv", "hard.csv"):
        assert "the release would overwrite the input" in refused(*command, name)
    assert "the manifest would overwrite the release" in refused(*command, "out.csv", "--manifest", "out.csv")
    assert "the secret would overwrite the manifest" in refused(
        *command, "out.csv", "--manifest", "m.json", "--secret", "./m.json"
    )
    assert "the secret would overwrite the input" in refused(*command, "out.csv", "--secret", "original.csv")
    planned = ("mask", "original.csv", "-o", "out.csv", "--plan", "plan.toml")
    assert "the manifest would overwrite the plan" in refused(*planned, "--manifest", "plan.toml")


def test_outputs_are_checked_before_the_input_is_read(refused: Any, here: Path) -> None:
    Path("folder.csv").mkdir()
    command = ("mask", "nothing.csv", "--method", "permute", "-o")
    assert refused(*command, "no/out.csv") == "no/out.csv: there is no folder no; make it first"
    assert "is a folder" in refused(*command, "folder.csv")
    assert "out.xyz" in refused(*command, "out.xyz")
    assert "there is no folder" in refused(*command, "out.csv", "--secret", "no/s.json")
    assert "there is no such file" in refused(*command, "out.csv")


def test_an_existing_release_is_replaced(example: Path, run: Any) -> None:
    Path("out.csv").write_text("old")
    run("mask", "original.csv", "-o", "out.csv", "--method", "rank_swap", "--keep-order")
    assert files.load("out.csv").data.column_names == files.load("original.csv").data.column_names


NEEDS = {
    "drop": ("--columns", "X1"),
    "pram": ("--kind", "X1=nominal", "--columns", "X1"),
    "pseudonymise": ("--columns", "X1"),
    "randomized_response": ("--kind", "X1=nominal", "--columns", "X1"),
    "recode": ("--set", "width=50"),
    "sample": ("--set", "size=20"),
    "suppress": ("--role", "X1=quasi-identifier"),
}
"""What a method must be told beside the parameters that it always needs."""

NOTHING = {
    *("identity", "missing_swap", "record_shuffle", "rescale", "reverse_map", "round", "sample", "top_bottom_code"),
}
"""Methods that by themselves change none of these twenty records of whole numbers: their result is no release."""


@pytest.mark.parametrize("method", sorted(rv.catalogue.methods()))
def test_every_method_runs_from_the_command_line(example: Path, run: Any, refused: Any, method: str) -> None:
    ends = {"lower": "50", "upper": "200"}
    parameters = rv.catalogue.methods()[method].parameters
    needed = [name for name, given in parameters.items() if given.required or name in ends]
    given = [word for name in needed for word in ("--set", f"{name}={ends.get(name, '2')}")]
    given += NEEDS.get(method, ())
    command = ("mask", "original.csv", "-o", "out.csv", "--method", method, *given, "--json")
    if method in NOTHING:
        assert f"the plan ({method}) changes no value" in refused(*command)
        assert not (example / "out.csv").exists()
        return
    assert run(*command).json["records"] == 20


def test_a_mistake_about_a_column_is_shown_where_it_stands_in_the_plan(example: Path, write: Any, refused: Any) -> None:
    text = '[[steps]]\nmethod = "permute"\n[[steps]]\nmethod = "additive_noise"\n[steps.per_column.{}]\nalpha = {}\n'
    command = ("mask", "original.csv", "-o", "out.csv", "--plan", "plan.toml")
    write("plan.toml", text.format("X1", -1))
    assert refused(*command).startswith(
        "plan.toml: step 2 of the plan: [steps.per_column.X1]: additive_noise: alpha of"
    )
    write("plan.toml", text.format('"X 9"', 1))
    told = 'plan.toml: step 2 of the plan: [steps.per_column."X 9"]: there is no column X 9; '
    assert refused(*command).startswith(told)


def test_what_is_decided_is_done_and_said(write: Callable[[str, str], str], run: Any, refused: Any) -> None:
    rows = "".join(
        f"P{1000 + i},{i // 2},{1 + i % 2},{20 + 7 * i % 50},{1000 + 37 * (i * i % 23)}.5,{1 + i / 8}\n"
        for i in range(60)
    )
    write("in.csv", f"person_id,household_id,sex,age,income,sampling_weight\n{rows}")
    command = ("mask", "in.csv", "-o", "out.csv", "--method", "copula_swap", "--keep-order")
    found = run(*command, "--json").json
    assert found["passed_through"] == ["sampling_weight"]
    assert any("60 of 60 records have a weight (sampling_weight) that no other" in note for note in found["notes"])
    before, after = files.load("in.csv").data, files.load("out.csv").data
    assert after.column_names == before.column_names[1:]
    assert after["sampling_weight"].to_pylist() == before["sampling_weight"].to_pylist()
    assert set(after["sex"].to_pylist()) == {"1", "2"}
    homes = after["household_id"].to_pylist()
    assert all(len(home) == 16 for home in homes)
    assert [home == homes[i - 1] for i, home in enumerate(homes) if i] == [i % 2 == 1 for i in range(1, 60)]
    manifest = json.loads(Path("out.csv.manifest.json").read_text(encoding="utf-8"))
    assert {column["name"]: column["action"] for column in manifest["columns"]} == {
        "person_id": "leave out",
        "household_id": "pseudonymise",
        "sex": "mask",
        "age": "mask",
        "income": "mask",
        "sampling_weight": "keep",
    }
    assert "its name or label reads as a weight" in run(*command).out.lower()
    assert "--release-identifier person_id" in refused(*command, "--columns", "person_id")
    run(*command, "--release-identifier", "person_id")
    manifest = json.loads(Path("out.csv.manifest.json").read_text(encoding="utf-8"))
    assert manifest["released_identifiers"] == ["person_id"]
    assert files.load("out.csv").data["person_id"].to_pylist() == before["person_id"].to_pylist()
    attributes = run("audit", "in.csv", "out.csv", "--measures", "um", "--json").json["attributes"]
    assert attributes == ["sex", "age", "income"]
