"""Every page: what it shows, what its forms do, and the sentences with which they refuse."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rankveil as rv
from rankveil import catalogue
from rankveil.plans import Plan

CSV = "NAME,AGE,LEVEL,PAY\n" + "".join(f"p{i},{20 + i % 50},{'low' if i % 3 else 'high'},{i * i}\n" for i in range(60))


def test_an_upload_becomes_a_table(user: Any) -> None:
    id = user.upload("survey.csv", CSV)
    text = user.get(f"/data/{id}").text
    assert "60 records, 4 columns; 2 would be masked" in text
    assert "looks like an identifier" in text
    assert "survey.csv" in user.get("/").text


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.pdf", "x", "cannot be read"),
        ("a.csv", "", "is empty"),
        ("a.csv", "A,B\n", "the table has no records"),
        ("a.parquet", "no parquet", "the file is not a Parquet file"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(user: Any, name: str, content: str, sentence: str) -> None:
    told = user.told("/data", files={"file": (name, content)})
    assert sentence in told
    assert str(user.bench.workspace.root) not in told
    assert list((user.bench.workspace.root / "data").iterdir()) == []


def test_no_file_is_said(user: Any) -> None:
    assert user.told("/data") == "choose a file first"
    assert user.told("/data", {"example": "nothing"}) == "there is no such example"


def test_a_file_of_the_inbox_can_be_picked(user: Any) -> None:
    (user.bench.workspace.root / "inbox" / "big.csv").write_text(CSV)
    assert "big.csv" in user.get("/").text
    answer = user.post("/data", {"picked": "big.csv"})
    assert "60 records" in user.get(answer.headers["location"]).text


def test_columns_are_declared(user: Any) -> None:
    id = user.upload("survey.csv", CSV)
    given = {
        "kind-2": "ordinal",
        "order-2": "low < high",
        "role-1": "weight",
        "out-0": "yes",
        "missing": "-9",
    }
    user.post(f"/data/{id}", given)
    text = user.get(f"/data/{id}").text
    assert "60 records, 3 columns; 2 would be masked" in text
    assert "Left out of everything, also of the release: NAME." in text
    declared = user.bench.sources.find(id).declared
    assert declared.levels == {"LEVEL": ["low", "high"]}
    assert declared.missing == ["-9"]


def test_a_wrong_declaration_is_told_beside_the_form_and_kept_in_it(user: Any) -> None:
    id = user.upload("survey.csv", CSV)
    answer = user.post(f"/data/{id}", {"kind-2": "numeric", "order-2": "low<high", "missing": "n/a"}, status=400)
    assert "column LEVEL: only an ordinal column has an order" in answer.text
    assert 'value="low&lt;high"' in answer.text
    assert 'value="n/a"' in answer.text
    assert user.bench.sources.find(id).declared.kinds == {}
    assert "level" in user.told(f"/data/{id}", {"kind-2": "ordinal", "order-2": "low<middle"}).lower()
    everything = {f"out-{place}": "yes" for place in range(4)}
    assert user.told(f"/data/{id}", everything) == "every column is left out; keep at least one"


def test_identifiers_are_left_out_by_one_button(user: Any) -> None:
    id = user.upload("survey.csv", CSV)
    user.post(f"/data/{id}/leave-out")
    assert user.bench.sources.find(id).declared.left_out == ["NAME"]
    assert "looks like an identifier" not in user.get(f"/data/{id}").text


def test_names_of_columns_are_escaped(user: Any) -> None:
    id = user.upload("x.csv", "<script>alert(1)</script>,B\n1,2\n3,4\n5,6\n")
    user.post(f"/data/{id}/mask/step", {"method": "rank_swap", "p-p": "100"})
    for tab in ("", "/mask", "/audit", "/attack", "/compare"):
        assert "<script>alert" not in user.get(f"/data/{id}{tab}").text


@pytest.mark.parametrize("method", list(catalogue.methods()))
def test_every_method_of_the_catalogue_has_a_form(settled: Any, method: str) -> None:
    user, id = settled.user, settled.table
    text = user.get(f"/data/{id}/mask/fields?method={method}").text
    for name, parameter in catalogue.get_method(method).parameters.items():
        assert f'name="p-{name}"' in text
        assert parameter.text.split("'")[0] in text
        for choice in parameter.choices:
            assert choice in text
    assert f'value="{method}"' in user.get(f"/data/{id}/mask").text


def test_the_plan_grows_step_by_step_and_is_undone(user: Any) -> None:
    id = user.example()

    def steps() -> list[str]:
        return [step.method for step in user.bench.drafts.get(id).steps]

    def do(what: str) -> None:
        user.post(f"/data/{id}/mask/change", {"do": what})

    user.post(f"/data/{id}/mask/step", {"method": "additive_noise", "p-alpha": "0,5"})
    user.post(f"/data/{id}/mask/step", {"method": "round", "p-decimals": "1"})
    assert user.bench.drafts.get(id).steps[0].parameters["alpha"] == 0.5
    assert steps() == ["additive_noise", "round"]
    do("up-1")
    assert steps() == ["round", "additive_noise"]
    do("remove-0")
    assert steps() == ["additive_noise"]
    do("undo")
    do("undo")
    assert steps() == ["additive_noise", "round"]
    do("redo")
    assert steps() == ["round", "additive_noise"]
    do("undo")
    user.post(f"/data/{id}/mask/step", {"method": "additive_noise", "p-alpha": "2", "edit": "0"})
    assert user.bench.drafts.get(id).steps[0].parameters["alpha"] == 2
    assert not user.bench.drafts.get(id).can_redo
    for _ in range(9):
        do("undo")
    assert steps() == []
    assert "There is no step yet" in user.get(f"/data/{id}/mask").text


def test_each_step_shows_its_effect(user: Any) -> None:
    id = user.example()
    user.post(f"/data/{id}/mask/step", {"method": "permute", "columns": ["X1"]})
    user.post(f"/data/{id}/mask/step", {"method": "permute", "columns": ["X2"]})
    text = user.get(f"/data/{id}/mask").text
    assert "Tried on all 20 records" in text
    assert "moved after 1: permute" in text
    assert "moved after 2: permute" in text
    assert 'data-kind="marginals"' in text
    assert "X2: " in user.get(f"/data/{id}/mask?column=X2").text


def test_a_large_table_is_tried_on_a_stated_sample(user: Any) -> None:
    id = user.upload("long.csv", "A\n" + "".join(f"{i}\n" for i in range(6000)))
    user.post(f"/data/{id}/mask/step", {"method": "rank_swap"})
    assert "a random sample of 5000 of the 6000 records" in user.get(f"/data/{id}/mask").text


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"method": "rank_swap", "p-p": "200"}, "rank_swap: p must be a number from 0 to 100, not '200'"),
        ({"method": "mdav", "p-k": "2.5"}, "mdav: k must be a whole number at least 1, not '2.5'"),
        ({"method": "distance_swap"}, "distance_swap needs d"),
        ({"method": "nothing"}, "there is no method nothing"),
        ({"method": "rank_swap", "columns": ["X9"]}, "rank_swap: it does not take the column X9"),
        ({"method": "mdav", "p-k": "50"}, "k = 50 is larger than the number of records, 20"),
    ],
)
def test_a_wrong_step_is_told_in_one_sentence(user: Any, given: dict[str, Any], sentence: str) -> None:
    id = user.example()
    if given["method"] == "nothing":
        assert sentence in user.get(f"/data/{id}/mask/fields?method=nothing", status=400).text
        return
    assert user.told(f"/data/{id}/mask/step", given).startswith(sentence)
    assert user.bench.drafts.get(id).steps == ()


def test_what_was_entered_stays_in_the_form_after_an_error(user: Any) -> None:
    id = user.example()
    text = user.post(
        f"/data/{id}/mask/step",
        {"method": "additive_noise", "p-alpha": "-3", "columns": ["X2"], "own-0-alpha": "0.7"},
        status=400,
    ).text
    assert 'value="-3"' in text
    assert 'value="0.7"' in text
    assert 'value="X2" checked' in text


def test_single_columns_may_differ(user: Any) -> None:
    id = user.example()
    user.post(f"/data/{id}/mask/step", {"method": "additive_noise", "p-alpha": "0.1", "own-1-alpha": "0.9"})
    assert user.bench.drafts.get(id).steps[0].per_column == {"X2": {"alpha": 0.9}}
    assert Plan.from_toml(user.get(f"/data/{id}/mask/plan.toml").text).steps == user.bench.drafts.get(id).steps


@pytest.mark.parametrize("tab", ["audit", "attack"])
def test_without_a_release_there_is_nothing_to_ask(user: Any, tab: str) -> None:
    id = user.example()
    assert "There is no release yet" in user.get(f"/data/{id}/{tab}").text
    assert user.told(f"/data/{id}/{tab}", {"release": "", "draws": "10"}).startswith("choose a release")
    assert user.told(f"/data/{id}/mask") == "add a step first"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"methods": []}, "tick at least one method"),
        ({"utility": []}, "tick at least one measure of utility or loss"),
        ({"replicates": "0"}, "replicates must be a whole number from 1 to 100, not 0"),
        ({"at": "risk", "value": "much"}, "the value to compare at must be a number, not 'much'"),
        ({"methods": ["dp_microaggregation"]}, "dp_microaggregation needs lower, upper"),
        ({"columns": ["X9"]}, "a column was named that the table does not have"),
    ],
)
def test_a_wrong_comparison_is_told_in_one_sentence(settled: Any, given: dict[str, Any], sentence: str) -> None:
    user, id = settled.user, settled.table
    whole = {"methods": ["mdav"], "utility": ["um"], "replicates": "1", "points": "3", "at": "sweep", "value": "1"}
    assert user.told(f"/data/{id}/compare", whole | given).startswith(sentence)


def test_the_release_can_be_repeated_by_script_and_by_command(user: Any, tmp_path: Path) -> None:
    id = user.example("demo")
    user.post(f"/data/{id}/mask/step", {"method": "rank_swap", "p-p": "20", "columns": ["INCOME", "EDUCATION"]})
    run = user.ask(f"/data/{id}/mask", {"publish": ["permutation_level"]})
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "people.csv").write_bytes((user.bench.workspace.root / "data" / id / "table.csv").read_bytes())
    for name in ("plan.toml", "secret.json", "repeat.py", "masked.csv", "manifest.json"):
        answer = user.get(f"/runs/{run}/files/{name}")
        assert answer.headers["content-disposition"].startswith("attachment")
        called = answer.headers["content-disposition"].partition('filename="')[2].rstrip('"')
        (folder / called).write_bytes(answer.content)
    released = (folder / "people-masked.csv").read_bytes()
    assert b"PERSON" not in released.splitlines()[0]
    manifest = json.loads((folder / "people-masked.csv.manifest.json").read_text())
    assert 0 < manifest["measures"]["permutation_level"] < 0.2
    again = folder / "again-people-masked.csv"

    subprocess.run([sys.executable, "people-repeat.py"], cwd=folder, check=True, timeout=120)
    assert again.read_bytes() == released
    again.unlink()

    command = user.bench.runs.result(user.bench.run(run))["content"]["command"]
    assert user.bench.runs.text(user.bench.run(run), "secret.json") not in command
    python = shlex.quote(sys.executable)
    here = f'python() {{ {python} "$@"; }}\nrankveil() {{ {python} -m rankveil "$@"; }}\n'
    subprocess.run(["bash", "-c", "set -euo pipefail\n" + here + command], cwd=folder, check=True, timeout=120)
    assert again.read_bytes() == released


def test_nothing_but_the_secret_is_marked_public_that_tells_of_single_records(user: Any) -> None:
    id = user.example()
    user.post(f"/data/{id}/mask/step", {"method": "rank_swap", "p-p": "20"})
    run = user.ask(f"/data/{id}/mask", {"audit": "yes", "attack": "yes"})
    for other in user.bench.runs.all(release=run):
        user.wait(other.id, "done")
    certificate = user.get(f"/runs/{run}/files/certificate.json").json()
    assert not {"each", "failing", "record"} & set(certificate)
    text = user.get(f"/runs/{run}").text
    public, private = text.split('id="keep"')[0], text.split('id="keep"')[1].split("What is known of it")[0]
    assert "secret.json" not in public.split("main")[-1]
    assert "secret.json" in private
    assert "internal" not in public.split('id="publish"')[1]
    assert "The audit report" in public
    page = user.get(f"/runs/{run}/files/subject.html")
    assert page.headers["content-type"] == "application/octet-stream"
    assert rv.__version__ in user.get("/").text
