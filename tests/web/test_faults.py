"""Damaged uploads, odd names, several browsers at once, and what a killed server leaves."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import rankveil as rv
from rankveil import catalogue
from rankveil.web import work
from rankveil.web.workspace import Workspace, write_json

CSV = b"A,B\n1,2\n3,4\n"
PARQUET = b"PAR1" + b"\0" * 40 + b"PAR1"
ZIP = b"PK\x03\x04" + b"\0" * 60


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b""),
        ("a.csv", b"\0\0\0\0"),
        ("a.csv", b"\xff\xfe\x00A"),
        ("a.csv", b'A,B\n"1,2\n3'),
        ("a.csv", b"A,B\n1\n2,3,4\n"),
        ("a.parquet", PARQUET),
        ("a.parquet", CSV),
        ("a.feather", b"ARROW1\0\0" + b"\xff" * 50),
        ("a.arrow", b"ARROW1"),
        ("a.xlsx", ZIP),
        ("a.xlsx", CSV),
        ("a.dta", b"<stata_dta><header><release>118</release>"),
        ("a.sav", b"$FL2@(#)" + b"\0" * 100),
        ("a.sas7bdat", b"\0" * 300),
        ("a.xpt", b"HEADER RECORD*******LIBRARY HEADER"),
        ("a.exe", CSV),
        ("a", CSV),
    ],
)
def test_a_damaged_upload_is_refused_and_leaves_nothing(settled: Any, name: str, content: bytes) -> None:
    user = settled.user
    assert len(user.told("/data", files={"file": (name, content)})) > 10
    assert os.listdir(user.bench.workspace.root / "data") == [settled.table]


@pytest.mark.parametrize("name", ["x" * 300 + ".csv", "../x.csv", "..csv", ".csv", " .csv", "\u202e", "\n"])
def test_an_odd_name_is_refused(settled: Any, name: str) -> None:
    assert settled.user.told("/data", files={"file": (name, CSV)})


@pytest.mark.parametrize(
    "name", ["CON.csv", "aux.CSV", "ä\u0308收入.csv", "a\0b.csv", "-o.csv", "a b;c'd.csv", "%s.csv"]
)
def test_a_strange_name_is_only_a_name(user: Any, name: str) -> None:
    id = user.upload(name, CSV)
    assert sorted(os.listdir(user.bench.workspace.root / "data" / id)) == ["meta.json", f"table.{name[-3:].lower()}"]
    assert user.get(f"/data/{id}").status_code == 200
    assert "\0" not in user.bench.source(id).name


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        ("[" * 100_000, "this is not a manifest: it is not JSON"),
        ('{"schema": "\\ud800"}', "this is not a manifest: it is not JSON"),
        ('{"schema": "rankveil/manifest/1", "records": [1]}', "this is not a manifest: it does not tell how records"),
        ('{"schema": "rankveil/manifest/1", "records": [1], "mapping": "kept"}', "the manifest of another release"),
    ],
)
def test_a_damaged_manifest_is_refused(settled: Any, manifest: str, sentence: str) -> None:
    files = {"file": ("a.csv", CSV), "manifest": ("a.csv.manifest.json", manifest.encode())}
    assert sentence in settled.user.told("/data", files=files)


@pytest.mark.parametrize("charset", ["unicode_escape", "utf-7", "undefined", "utf-16", "nonsense"])
def test_a_form_in_another_encoding_is_refused(settled: Any, charset: str) -> None:
    user, address = settled.user, f"/data/{settled.table}/mask/step"
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data; boundary=b"):
        body = b'--b\r\nContent-Disposition: form-data; name="method"\r\n\r\n\\ud800\r\n--b--\r\n'
        headers = {"Origin": user.server.origin, "Content-Type": f"{kind}; charset={charset}"}
        answer = user.client.post(address, content=body, headers=headers)
        assert answer.status_code == 400
        assert "A form must be sent in UTF-8." in answer.text


def test_only_a_release_is_certified(settled: Any) -> None:
    user = settled.user
    run = user.bench.runs.new("compare", settled.table, {}, declared={})
    assert "choose a release that is done" in user.post(f"/runs/{run.id}/certify", status=400).text
    user.bench.runs.remove(run)


def test_a_number_of_many_digits_is_no_place(settled: Any) -> None:
    user = settled.user
    run = user.bench.runs.new("compare", settled.table, {}, declared={})
    assert "no such place" in user.post(f"/runs/{run.id}/take", {"place": "9" * 5000}, status=400).text
    user.bench.runs.remove(run)
    assert user.told(f"/data/{settled.table}/mask/change", {"do": "remove-" + "9" * 5000})


@pytest.mark.parametrize("field", ["missing", "order-0", "kind-0", "role-0"])
def test_a_huge_field_is_answered(settled: Any, field: str) -> None:
    user = settled.user
    answer = user.client.post(
        f"/data/{settled.table}", data={field: "<" * 90_000}, headers={"Origin": user.server.origin}
    )
    assert answer.status_code in (303, 400)
    user.get(f"/data/{settled.table}")
    user.post("/data", {"address": "x" * 400_000}, status=413)


def test_an_answer_says_which_methods_there_are(settled: Any) -> None:
    answer = settled.user.client.put("/data", headers={"Origin": settled.user.server.origin})
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


def together(*deeds: Callable[[], Any]) -> list[Any]:
    """Do several things at the same time; what each gave."""
    gave: list[Any] = [None] * len(deeds)
    ready = threading.Barrier(len(deeds))

    def do(place: int) -> None:
        ready.wait()
        gave[place] = deeds[place]()

    threads = [threading.Thread(target=do, args=(place,)) for place in range(len(deeds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return gave


def test_several_browsers_delete_and_use_the_same_table(user: Any) -> None:
    headers = {"Origin": user.server.origin}
    for _ in range(5):
        id = user.example()
        user.post(f"/data/{id}/mask/step", {"method": "rank_swap"})

        def post(address: str, form: dict[str, str] | None = None, id: str = id) -> int:
            return int(user.client.post(f"/data/{id}{address}", data=form or {}, headers=headers).status_code)

        def get(address: str, id: str = id) -> int:
            return int(user.client.get(f"/data/{id}{address}").status_code)

        answers = together(
            lambda post=post: post("/delete"),
            lambda post=post: post("/delete"),
            lambda get=get: get(""),
            lambda get=get: get("/mask"),
            lambda post=post: post("", {"missing": "n/a"}),
            lambda post=post: post("/mask/change", {"do": "undo"}),
        )
        assert set(answers) <= {200, 303, 400, 404}, answers
        assert 303 in answers[:2]
        root = user.bench.workspace.root
        assert [os.listdir(root / room) for room in ("data", "plans", "runs")] == [[], [], []]


def test_nothing_is_begun_on_a_table_that_is_gone(user: Any) -> None:
    source = user.bench.source(user.example())
    user.bench.delete_table(source)
    with pytest.raises(Exception, match="no such table"):
        user.bench.ask("compare", source, {})
    with pytest.raises(rv.FileError, match="not in the workspace any more"):
        user.bench.drafts.change(source.id, lambda draft: draft.moved(-1))
    assert os.listdir(user.bench.workspace.root / "runs") == []
    assert os.listdir(user.bench.workspace.root / "plans") == []


def test_a_run_that_is_asked_for_again_does_not_keep_its_old_result(settled: Any) -> None:
    """Otherwise one that is killed half-way would be shown as done, with the files of two maskings."""
    bench = settled.user.bench
    run = bench.ask("mask", bench.source(settled.table), {"plan": {"steps": []}})
    bench.dispatcher.cancel(run)
    folder = bench.runs.folder(run)
    write_json(folder / "result.json", {"content": {}, "outputs": {}})
    assert work.main(folder) == 1
    assert not (folder / "result.json").exists()


def test_what_a_killed_server_left_is_swept_away(tmp_path: Path) -> None:
    root = tmp_path / "w"
    workspace = Workspace(root)
    table, half, run, begun = ("0123456789abcde" + digit for digit in "0123")
    for folder in (f"data/{table}", f"data/{half}", f"runs/{run}", f"runs/{begun}", "data/mine"):
        (root / folder).mkdir()
    write_json(root / "data" / table / "meta.json", {})
    write_json(root / "runs" / run / "run.json", {})
    for plan in (table, half):
        write_json(root / "plans" / f"{plan}.json", {})
    for left in (
        ".a.tmp",
        "plans/.b.tmp",
        f"data/{table}/.c.tmp",
        f"runs/{run}/.rankveil-d.tmp",
        f"data/{half}/table.csv",
    ):
        (root / left).write_text("half of it")
    (root / "runs" / run / ".lock").touch()
    workspace.hold()
    workspace.release()
    there = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    assert there == [
        ".lock",
        f"data/{table}/meta.json",
        f"plans/{table}.json",
        f"runs/{run}/.lock",
        f"runs/{run}/run.json",
        "workspace.json",
    ]
    assert sorted(os.listdir(root / "data")) == [table, "mine"]
    assert os.listdir(root / "runs") == [run]


def test_every_field_of_every_form_is_described(settled: Any) -> None:
    user, id, run = settled.user, settled.table, settled.run
    paths = user.get("/openapi.json").json()["paths"]

    class Forms(HTMLParser):
        """The forms of a page: where they go, and the names of their fields."""

        def __init__(self) -> None:
            super().__init__()
            self.found: list[tuple[str, str]] = []
            self._to = ""

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            told = dict(attrs)
            if tag == "form" and told.get("method") == "post":
                self._to = re.split("[?#]", told["action"] or "")[0]
            elif tag in ("input", "select", "button") and told.get("name") and self._to:
                self.found.append((self._to, str(told["name"])))

        def handle_endtag(self, tag: str) -> None:
            self._to = "" if tag == "form" else self._to

    reader = Forms()
    tabs = [f"/data/{id}{tab}" for tab in ("", "/mask", "/audit", "/attack", "/compare", "/release")]
    methods = [f"/data/{id}/mask?method={method}" for method in catalogue.methods()]
    for address in ("/", *tabs, *methods, f"/runs/{run}"):
        reader.feed(user.get(address).text)
    asked = {(to.replace(id, "{id}").replace(run, "{id}"), name) for to, name in reader.found}
    assert len(asked) > 100
    for to, name in asked:
        schema = paths[to]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
        known = name in schema["properties"] or any(re.match(pattern, name) for pattern in schema["patternProperties"])
        assert known, (to, name)
