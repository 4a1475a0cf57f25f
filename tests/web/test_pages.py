"""Every page: what it shows, what its forms do, and the sentences with which they refuse."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil import catalogue
from rankveil.plans import Plan

CSV = "NAME,AGE,LEVEL,PAY\n" + "".join(f"p{i},{20 + i % 50},{'low' if i % 3 else 'high'},{i * i}\n" for i in range(60))


def test_an_upload_becomes_a_table(user: Any) -> None:
    id = user.upload("survey.csv", CSV)
    text = user.get(f"/data/{id}").text
    assert "60 records, 4 columns; 3 would be masked" in text
    assert "AGE, LEVEL, PAY.</p>" in text
    assert "NAME looks like an identifier" in text
    assert "survey.csv" in user.get("/").text


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.pdf", "x", "cannot be read"),
        ("a.csv", "", "a.csv: is empty"),
        ("a.csv", "A,B\n", "the table has no records"),
        ("a.csv", "A,B,A\n1,2,3\n", "a.csv: several columns are named A; give each its own name"),
        ("a.parquet", "no parquet", "a.parquet: is not a Parquet file"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(user: Any, name: str, content: str, sentence: str) -> None:
    told = user.told("/data", files={"file": (name, content)})
    assert sentence in told
    assert str(user.bench.workspace.root) not in told
    assert list((user.bench.workspace.root / "data").iterdir()) == []


def test_what_was_assumed_in_reading_names_the_file_as_its_owner_does(user: Any) -> None:
    id = user.upload("old.csv", "NAME,PAY\nJosé,1\nAnne,2\n".encode("cp1252"))
    text = user.get(f"/data/{id}").text
    assert "<li>old.csv: is not UTF-8; read as windows-1252</li>" in text
    assert str(user.bench.workspace.root) not in text


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


def test_what_keeps_a_table_from_being_masked_is_said_with_its_remedy(user: Any) -> None:
    ages = [float(i) for i in range(20)]
    written = io.BytesIO()
    pq.write_table(pa.table({"AGE": [*ages, float("inf")], "PAY": [*ages, 20.5]}), written)
    id = user.upload("a.parquet", written.getvalue())
    text = user.get(f"/data/{id}").text
    assert "This table cannot be masked yet" in text
    remedy = "remove them, or enter how they are written (such as inf) under “What stands for a missing cell”"
    assert f"column AGE: infinite values (row 21); {remedy}" in text
    assert "not yet: see above" in text
    assert user.told(f"/data/{id}/mask/step", {"method": "rank_swap"}).startswith("column AGE: ")
    user.post(f"/data/{id}", {"missing": "inf"})
    assert "cannot be masked yet" not in user.get(f"/data/{id}").text
    user.post(f"/data/{id}/mask/step", {"method": "rank_swap"})


@pytest.mark.parametrize("cell", ["n/a", "??"])
def test_text_among_declared_numbers_is_said_with_its_remedy(user: Any, cell: str) -> None:
    id = user.upload("a.csv", "AGE,PAY\n" + "".join(f"{i},{i}\n" for i in range(20)) + f"{cell},20\n")
    numbers = {"kind-0": "numeric", "role-0": "confidential"}
    told = user.told(f"/data/{id}", numbers)
    assert f'column AGE: 1 value is not a number (row 21: "{cell}"); declare it missing: enter {cell} under' in told
    user.post(f"/data/{id}", {**numbers, "missing": cell})
    assert "cannot be masked yet" not in user.get(f"/data/{id}").text
    user.post(f"/data/{id}/mask/step", {"method": "rank_swap"})


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


def test_every_method_of_the_catalogue_can_be_chosen(settled: Any) -> None:
    text = settled.user.get(f"/data/{settled.table}/mask").text
    assert [method for method in catalogue.methods() if f'value="{method}"' not in text] == []


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
    id = user.upload("long.csv", "A\n" + "".join(f"{i * i % 4999}\n" for i in range(6000)))
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


def test_words_without_an_order_are_masked_where_they_are_ticked(user: Any) -> None:
    id = user.upload("survey.csv", CSV)
    user.post(f"/data/{id}/mask/step", {"method": "pram", "columns": ["LEVEL"]})
    text = user.get(f"/data/{id}/mask").text
    assert "LEVEL: " in text  # the picture
    assert ">low<" in text or '"low"' in text
    run = user.do(f"/data/{id}/mask")
    assert list(user.bench.runs.result(user.bench.run(run))["content"]["changed"]) == ["LEVEL"]
    audit = user.do(f"/data/{id}/audit", {"release": f"run:{run}", "columns": ["LEVEL"]})
    assert user.get(f"/runs/{audit}/files/audit.json").json()["attributes"] == ["LEVEL"]


@pytest.mark.parametrize("form", ["toml", "json"])
def test_a_plan_is_loaded_from_a_file(user: Any, form: str) -> None:
    id = user.example()
    user.post(f"/data/{id}/mask/step", {"method": "mdav", "p-k": "3"})
    plan = Plan.of("additive_noise", columns=["X2"], alpha=0.4).then("round")
    text = plan.to_toml() if form == "toml" else plan.to_json()
    user.post(f"/data/{id}/mask/plan", files={"plan": (f"mine.{form}", text)})
    assert user.bench.drafts.get(id).steps == plan.steps
    assert "moved after 2: round" in user.get(f"/data/{id}/mask").text
    user.post(f"/data/{id}/mask/change", {"do": "undo"})
    assert [step.method for step in user.bench.drafts.get(id).steps] == ["mdav"]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("p.toml", "x = ", "p.toml: the plan is not TOML: "),
        ("p.json", "{", "p.json: the plan is not JSON: "),
        ("p.json", "[" * 100_000, "p.json: the plan is not JSON: it is nested too deeply"),
        ("p.toml", "a = " + "[" * 100_000, "p.toml: the plan is not TOML: it is nested too deeply"),
        ("p.toml", "a = " + "9" * 5000, "p.toml: the plan is not TOML: Exceeds the limit"),
        ("p.json", "9" * 5000, "p.json: the plan is not JSON: Exceeds the limit"),
        ("p.json", '{"steps": [{"method": "\\ud800"}]}', "p.json: the plan is not JSON: 'utf-8' codec can't encode"),
        ("p.toml", "a = 1", "p.toml: this is not a plan: "),
        ("p.toml", b"\xff\xfe", "p.toml: is not UTF-8 text"),
        ("p.toml", Plan.of("mdav", k=50).to_toml(), "k = 50 is larger than the number of records, 20"),
        ("p.toml", Plan.of("mdav", columns=["Y"]).to_toml(), "there is no column Y"),
        ("../p.toml", Plan.of("mdav").to_toml(), "the name of a file must not be a path"),
    ],
)
def test_a_file_that_is_no_plan_for_the_table_is_refused(
    settled: Any, name: str, content: str | bytes, sentence: str
) -> None:
    user, id = settled.user, settled.table
    before = user.bench.drafts.get(id).history
    assert sentence in user.told(f"/data/{id}/mask/plan", files={"plan": (name, content)})
    assert user.told(f"/data/{id}/mask/plan") == "choose a file first"
    assert user.bench.drafts.get(id).history == before


def test_a_list_is_entered_with_commas(user: Any) -> None:
    id = user.upload("survey.csv", CSV)
    user.post(f"/data/{id}/mask/step", {"method": "recode", "p-cuts": "30, 45", "columns": ["AGE"]})
    assert user.bench.drafts.get(id).steps[0].parameters["cuts"] == ("30", "45")
    assert 'value="30, 45"' in user.get(f"/data/{id}/mask?edit=0").text
    user.post(f"/data/{id}/mask/step", {"method": "recode", "own-1-cuts": "30", "edit": "0"})
    assert user.bench.drafts.get(id).steps[0].per_column == {"AGE": {"cuts": ("30",)}}


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
    run = user.do(f"/data/{id}/mask", {"publish": ["permutation_level"]})
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


def wide(columns: int) -> str:
    """A table of many columns, C0 to the last, and two records."""
    return ",".join(f"C{j}" for j in range(columns)) + "\n" + "\n".join(",".join([str(i)] * columns) for i in (1, 2))


def test_many_columns_are_shown_in_parts(user: Any) -> None:
    id = user.upload("wide.csv", wide(250))
    text = user.get(f"/data/{id}").text
    assert "250 columns; 250 would be masked" in text
    assert "and 220 more" in text
    assert "Columns 1 to 100 of 250." in text
    assert text.count('aria-label="Kind of C') == text.count('<th scope="col">C') == 100
    last = user.get(f"/data/{id}?part=3").text
    assert "Columns 201 to 250 of 250." in last
    assert 'aria-label="Kind of C249"' in last
    assert user.get(f"/data/{id}?part=99").text == last
    found = user.get(f"/data/{id}?find=c24&part=x").text
    assert "Columns 1 to 11 of 11 whose name holds “c24”." in found
    assert "No column whose name holds" in user.get(f"/data/{id}?find=zzz").text
    assert "Columns whose name holds" not in user.get(f"/data/{user.upload('few.csv', wide(100))}").text


def test_what_is_said_of_one_part_leaves_the_others_as_they_were(user: Any) -> None:
    id = user.upload("wide.csv", wide(250))
    user.post(f"/data/{id}", {"shown": ["0", "1"], "role-0": "weight", "out-1": "yes", "kind-0": "numeric"})
    answer = user.post(f"/data/{id}?find=C2&part=2", {"shown": ["249"], "role-249": "other", "kind-0": "nominal"})
    assert answer.headers["location"] == f"/data/{id}?find=C2&part=2"
    declared = user.bench.sources.find(id).declared
    assert declared.roles == {"C0": "weight", "C249": "other"}
    assert declared.kinds == {"C0": "numeric"}
    assert declared.left_out == ["C1"]
    user.post(f"/data/{id}", {"shown": ["0", "1"]})
    assert user.bench.sources.find(id).declared.roles == {"C249": "other"}
