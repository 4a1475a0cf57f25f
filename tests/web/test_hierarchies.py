"""Tables with words in them: hierarchies, roles, and what is made of such a table from upload to release."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rankveil import files, metadata
from rankveil.web.pages.compare import places_of

ROWS = 60
TOWNS = ("Ulm", "Bonn", "Hof", "Kiel")
REGIONS = "Ulm;South;*\nHof;South;*\nBonn;West;*\nKiel;North;*\n"


def _survey() -> str:
    rng = np.random.default_rng(7)
    lines = ["ID,TOWN,BIRTHPLACE,SCHOOL,INCOME,BORN,W"]
    for row in range(ROWS):
        town, place = (TOWNS[int(code)] for code in rng.integers(4, size=2))
        school = ("none", "low", "high")[int(rng.integers(3))] if row % 10 else ""
        born = f"19{50 + row % 40}-0{1 + row % 9}-15"
        lines.append(f"P{row:03d},{town},{place},{school},{1000 + int(rng.integers(900))},{born},{1 + row % 3}")
    return "\n".join(lines) + "\n"


DECLARED = {"role-0": "identifier", "out-0": "yes", "role-1": "quasi-identifier", "role-2": "confidential"}
DECLARED |= {"kind-3": "ordinal", "order-3": "none < low < high", "role-6": "weight"}


def _with(user: Any, **hierarchies: str) -> str:
    """The survey with its columns declared, and hierarchies for columns by their place."""
    id: str = user.upload("survey.csv", _survey())
    sent = {f"hierarchy-{place[1:]}": ("region.csv", content) for place, content in hierarchies.items()}
    user.post(f"/data/{id}", DECLARED, files=sent or None)
    return id


def test_a_hierarchy_is_kept_and_shown(user: Any) -> None:
    id = _with(user, _1=REGIONS)
    source = user.bench.source(id)
    assert source.declared.hierarchies["TOWN"].name == "region.csv"
    text = user.get(f"/data/{id}").text
    assert "region.csv" in text
    assert "4 → 3 → 1" in text
    user.post(f"/data/{id}", {**DECLARED, "without-1": "yes"})
    assert user.bench.source(id).declared.hierarchies == {}


def test_what_a_page_does_not_show_keeps_its_hierarchy(user: Any) -> None:
    id = _with(user, _1=REGIONS)
    user.post(f"/data/{id}", {"shown": ["5"], "role-5": "quasi-identifier"})
    declared = user.bench.source(id).declared
    assert list(declared.hierarchies) == ["TOWN"]
    assert declared.roles["BORN"] == "quasi-identifier"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("Ulm;South;*\nHof;South;*\nBonn;West;*\n", "'Kiel'"),
        ("Ulm;South;*\nHof;South\n", "line 2"),
        (f"{REGIONS}Ulm;North;*\n", "two parents"),
        ("Ulm;Hof\nHof;Ulm\n", "cycle"),
        ("", "no lines"),
    ],
)
def test_a_hierarchy_that_does_not_fit_is_refused_and_not_kept(user: Any, content: str, said: str) -> None:
    id = user.upload("survey.csv", _survey())
    folder = user.bench.sources.folder(user.bench.source(id))
    before = sorted(path.name for path in folder.iterdir())
    told = user.told(f"/data/{id}", DECLARED, files={"hierarchy-1": ("region.csv", content)})
    assert said in told
    assert "region.csv" in told
    assert str(folder) not in told
    assert sorted(path.name for path in folder.iterdir()) == before
    assert user.bench.source(id).declared.hierarchies == {}


def test_numbers_have_no_hierarchy(user: Any) -> None:
    id = user.upload("survey.csv", _survey())
    sent = {"hierarchy-4": ("region.csv", REGIONS)}
    assert "numbers have no hierarchy" in user.told(f"/data/{id}", {"kind-4": "numeric"}, files=sent)
    id = _with(user, _1=REGIONS)
    assert "numbers have no hierarchy" in user.told(f"/data/{id}", {**DECLARED, "kind-1": "numeric"})


def test_two_columns_share_a_hierarchy_or_have_two_names(user: Any) -> None:
    id = _with(user, _1=REGIONS, _2=REGIONS)
    kept = user.bench.source(id).declared.hierarchies
    assert kept["TOWN"] == kept["BIRTHPLACE"]
    other = REGIONS.replace("North", "South")
    user.post(f"/data/{id}", DECLARED, files={"hierarchy-2": ("region.csv", other)})
    kept = user.bench.source(id).declared.hierarchies
    assert {name: each.name for name, each in kept.items()} == {"TOWN": "region.csv", "BIRTHPLACE": "region-2.csv"}


def test_codes_of_missing_cells_are_shown(user: Any, tmp_path: Path) -> None:
    told = metadata.Described(missing_codes=(-9.0,), value_labels=((-9.0, "refused"), (1.0, "yes")), program="spss")
    field = metadata.write(pa.field("ANSWER", pa.float64()), told)
    files.save(pa.table([pa.array([1.0, 2.0, -9.0])], schema=pa.schema([field])), tmp_path / "answers.parquet")
    id = user.upload("answers.parquet", (tmp_path / "answers.parquet").read_bytes())
    assert "-9.0 (refused)" in user.get(f"/data/{id}").text


@pytest.fixture
def released(user: Any) -> tuple[Any, str, str]:
    """The survey, masked with its hierarchies: somebody, the table and the run."""
    id = _with(user, _1=REGIONS, _2=REGIONS)
    user.post(f"/data/{id}/mask/step", {"method": "rank_swap", "p-p": "20"})
    user.post(f"/data/{id}/mask/step", {"method": "pram", "p-p": "0.3", "columns": ["TOWN", "SCHOOL"]})
    return user, id, user.do(f"/data/{id}/mask")


@pytest.mark.thorough
def test_words_go_through_every_page(released: tuple[Any, str, str]) -> None:
    user, id, run = released
    content = user.bench.runs.result(user.bench.run(run))["content"]
    assert list(content["changed"]) == ["TOWN", "BIRTHPLACE", "SCHOOL", "INCOME", "BORN"]
    assert content["certificate"]["attributes"] == list(content["changed"])
    manifest = user.get(f"/runs/{run}/files/manifest.json").json()
    ranked = {column["name"]: column.get("ranked_by", "") for column in manifest["columns"]}
    assert ranked["TOWN"] == "marginality by the hierarchy region.csv"
    audit = user.do(f"/data/{id}/audit", {"release": f"run:{run}", "fail_if": "k_anonymity<2"})
    found = user.get(f"/runs/{audit}/files/audit.json").json()
    assert found["rankings"]["TOWN"] == "marginality by the hierarchy region.csv"
    assert found["measures"]["k_anonymity"]["details"]["quasi_identifiers"] == ["TOWN"]
    attack = user.do(f"/data/{id}/attack", {"release": f"run:{run}", "draws": "200"})
    assert set(user.get(f"/runs/{attack}/files/attack.json").json()["attributes"]) == set(content["changed"])
    compare = user.do(
        f"/data/{id}/compare",
        {"methods": ["mdav", "pram"], "utility": "total_variation", "replicates": "1", "points": "3"},
    )
    methods = {each["method"] for each in places_of(user.bench, user.bench.run(compare))}
    assert methods == {"mdav", "pram"}
    for made in (audit, attack, compare):
        command = user.bench.runs.result(user.bench.run(made))["content"]["command"]
        assert "--hierarchy TOWN=region.csv --hierarchy BIRTHPLACE=region.csv" in command
        assert "--role TOWN=quasi-identifier" in command


@pytest.mark.thorough
def test_the_script_and_the_command_make_the_same_release_with_hierarchies(
    released: tuple[Any, str, str], tmp_path: Path
) -> None:
    user, id, run = released
    outputs = user.bench.runs.result(user.bench.run(run))["outputs"]
    for name, said in outputs.items():
        (tmp_path / said["name"]).write_bytes(user.get(f"/runs/{run}/files/{name}").content)
    assert (tmp_path / "region.csv").read_text() == REGIONS
    (tmp_path / "survey.csv").write_text(_survey())
    subprocess.run([sys.executable, "survey-repeat.py"], cwd=tmp_path, check=True)
    again, masked = tmp_path / "again-survey-masked.csv", (tmp_path / "survey-masked.csv").read_bytes()
    assert again.read_bytes() == masked
    again.unlink()
    command = user.bench.runs.result(user.bench.run(run))["content"]["command"]
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, env={"PATH": path, "HOME": str(tmp_path)})
    assert again.read_bytes() == masked
    audit = user.do(f"/data/{id}/audit", {"release": f"run:{run}", "measures": "permutation_level"})
    command = user.bench.runs.result(user.bench.run(audit))["content"]["command"]
    done = subprocess.run(
        ["sh", "-c", f"{command} --json"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        env={"PATH": path, "HOME": str(tmp_path)},
    )
    assert b'"permutation_level"' in done.stdout
    assert b'"ID"' not in done.stdout


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"method": "suppress", "p-k": "4", "columns": ["BIRTHPLACE", "TOWN"]}, "(missing)"),
        ({"method": "recode", "p-level": "1", "columns": ["TOWN"]}, "South"),
        ({"method": "sample", "p-share": "0.5"}, "rank_swap"),
        ({"method": "drop", "columns": ["SCHOOL"]}, "rank_swap"),
        ({"method": "pseudonymise", "columns": ["BIRTHPLACE"]}, "BIRTHPLACE: before and after differ by 100.0 %"),
    ],
)
def test_steps_for_categories_are_tried_and_undone(user: Any, step: dict[str, Any], said: str) -> None:
    id = _with(user, _1=REGIONS)
    user.post(f"/data/{id}/mask/step", {"method": "rank_swap", "p-p": "20"})
    user.post(f"/data/{id}/mask/step", step)
    column = (step.get("columns") or ["INCOME"])[0]
    text = user.get(f"/data/{id}/mask?column={column}").text
    assert said in text
    assert "What it does" in text
    assert 'class="error"' not in text
    user.post(f"/data/{id}/mask/change", {"do": "undo"})
    assert [each.method for each in user.bench.drafts.get(id).steps] == ["rank_swap"]
    user.post(f"/data/{id}/mask/change", {"do": "redo"})
    run = user.do(f"/data/{id}/mask")
    audit = user.do(f"/data/{id}/audit", {"release": f"run:{run}", "measures": "permutation_level"})
    compared = user.get(f"/runs/{audit}/files/audit.json").json()["attributes"]
    assert ("SCHOOL" in compared) is (step["method"] != "drop")


def test_a_step_that_leaves_no_record_complete_is_tried_all_the_same(user: Any) -> None:
    id = _with(user, _1=REGIONS)
    user.post(f"/data/{id}/mask/step", {"method": "suppress", "p-k": "10", "columns": ["BIRTHPLACE", "TOWN"]})
    assert "What it does" in user.get(f"/data/{id}/mask").text
