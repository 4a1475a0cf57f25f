"""The workbench against its own OpenAPI description: whatever is sent, a page or a sentence comes back."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.python.asgi import get_client
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from rankveil.web import work
from rankveil.web.app import make_app
from rankveil.web.bench import Bench
from rankveil.web.workspace import Workspace

TOKEN, HERE = "the-token-of-the-tests", "http://127.0.0.1:8000"
LIMIT = 100_000
ROOMS = ("data", "plans", "runs", "inbox")
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
MANY = max(3, settings.default.max_examples // 10)  # requests to every page
load_all_checks()


class Api:
    """The workbench without a server, on a workspace where everything has been done once and can be had again."""

    def __init__(self, folder: Path) -> None:
        self.root, self._kept = folder / "workspace", folder / "kept"
        self.app = make_app(self.root, token=TOKEN, limit=LIMIT)
        self.bench: Bench = self.app.state.bench
        self.stranger, self.client = get_client(self.app), get_client(self.app)
        self.client.headers["Origin"] = HERE
        assert self.client.get(f"{HERE}/?token={TOKEN}").status_code == 200
        self.schema = schemathesis.openapi.from_dict(self.client.get(f"{HERE}/openapi.json").json())
        self.schema.app = self.app
        self._fill()
        shutil.copytree(self.root, self._kept)

    def _fill(self) -> None:
        """A table, a plan, a masking with its audit, and a comparison that is done; something in the inbox."""
        self.table = self._post("/data", {"example": "running-example"})
        self.other = self._post("/data", {"example": "running-example"})
        self._post(f"/data/{self.table}/mask/step", {"method": "rank_swap", "p-p": "50"})
        self.mask = self._done(f"/data/{self.table}/mask", {})
        self.certify = self._done(f"/runs/{self.mask}/certify", {})
        few = {"methods": ["mdav"], "utility": ["um"], "replicates": "1", "points": "3"}
        self.compare = self._done(f"/data/{self.table}/compare", few)
        self.waiting = self._post(f"/data/{self.table}/attack", {"release": f"run:{self.mask}", "draws": "50"})
        (self.root / "inbox" / "more.csv").write_text("A,B\n1,2\n3,4\n")

    def _post(self, address: str, form: dict[str, Any]) -> str:
        answer = self.client.post(f"{HERE}{address}", data=form, allow_redirects=False)
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"]).rpartition("/")[2]

    def _done(self, address: str, form: dict[str, Any]) -> str:
        """Do some work here and now."""
        run = self.bench.run(self._post(address, form))
        assert work.main(self.bench.runs.folder(run)) == 0
        self.bench.runs.keep(replace(run, status="done", ended=time.time()))
        return run.id

    def again(self) -> None:
        """The workspace as it was at first."""
        for room in ROOMS:
            shutil.rmtree(self.root / room)
            shutil.copytree(self._kept / room, self.root / room)

    @property
    def real(self) -> dict[str, list[str]]:
        """What exists, by the fields that name it."""
        columns = ["X1", "X2", "X3"]
        return {
            "release": [f"run:{self.mask}", f"data:{self.other}", f"run:{self.certify}"],
            **dict.fromkeys(("columns", "by", "target", "key", "column", "p-given"), columns),
            "picked": ["more.csv"],
            "place": ["0", "1"],
            "edit": ["0"],
            "fail_if": ["um<0.1", "cm2<2"],
            "name": ["secret.json", "masked.csv", "app.js"],
        }

    def ids(self, path: str) -> list[str]:
        """The IDs that an address may hold."""
        runs = [self.mask, self.certify, self.compare, self.waiting]
        return [self.table, self.other] if path.startswith("/data") else runs

    def ask(self, data: st.DataObject, operation: str) -> None:
        """Send a request to a page; the answer must be one of those that are described."""
        case = self.case(data, operation)
        case.validate_response(case.call(base_url=HERE, session=self.client, allow_redirects=False), checks=CHECKS)

    def case(self, data: st.DataObject, name: str) -> Any:
        """A request to a page, rarely one against its description; much of what names something names what exists."""
        method, path = name.split()
        operation = self.schema[path][method]
        against = "{" in path and data.draw(st.integers(0, 3)) == 0
        mode = GenerationMode.NEGATIVE if against else GenerationMode.POSITIVE
        case = data.draw(operation.as_strategy(generation_mode=mode))
        if "id" in (case.path_parameters or {}) and data.draw(st.sampled_from([True, True, True, False])):
            case.path_parameters["id"] = data.draw(st.sampled_from(self.ids(operation.path)))
        for given_ in (case.path_parameters, case.query, case.body):
            for name in self.real.keys() & (given_ if isinstance(given_, dict) else {}).keys():
                if data.draw(st.booleans()):
                    value = data.draw(st.sampled_from(self.real[name]))
                    given_[name] = [value] if isinstance(given_[name], list) else value
        return case


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """One for all: every example begins with the same workspace. At the end it loads, and nothing else was touched."""
    folder = tmp_path_factory.mktemp("api")
    beside = folder / "beside"
    beside.mkdir()
    (beside / "table.csv").write_text("A,B\n1,2\n")
    was = os.getcwd()
    os.chdir(beside)
    try:
        made = Api(folder)
        yield made
    finally:
        os.chdir(was)
    assert [path.name for path in beside.iterdir()] == ["table.csv"]
    assert (beside / "table.csv").read_text() == "A,B\n1,2\n"
    assert sorted(path.name for path in folder.iterdir()) == ["beside", "kept", "workspace"]
    loads(made.root)


def loads(root: Path) -> None:
    """Everything that is kept can be read by a server that starts now, and by nobody else."""
    bench = Bench(Workspace(root), LIMIT)
    assert len(bench.sources.all()) == len(os.listdir(root / "data"))
    assert len(bench.runs.all()) == len(os.listdir(root / "runs"))
    for source in bench.sources.all():
        bench.opened(source)
        bench.drafts.get(source.id).plan  # noqa: B018
    for path in root.rglob("*.json"):
        json.loads(path.read_text("utf-8"))


@cache
def operations() -> list[str]:
    """Every page of the workbench."""
    with tempfile.TemporaryDirectory() as folder:
        paths = make_app(folder, token=TOKEN).openapi()["paths"]
    return [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]


@pytest.mark.parametrize("operation", operations())
@settings(max_examples=MANY, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_page_answers_as_it_is_described(operation: str, api: Api, data: st.DataObject, tally: Any) -> None:
    if operation.startswith("POST"):
        api.again()
    api.ask(data, operation)
    tally("requests to the workbench")


@settings(max_examples=MANY, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_is_done_one_after_the_other_the_workspace_loads(api: Api, data: st.DataObject, tally: Any) -> None:
    api.again()
    for operation in data.draw(st.lists(st.sampled_from(operations()), min_size=2, max_size=6)):
        api.ask(data, operation)
        tally("requests to the workbench")
    loads(api.root)


@settings(phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_without_a_session_nothing_is_told_and_nothing_done(api: Api, data: st.DataObject, tally: Any) -> None:
    api.again()
    before = everything(api.root)
    case = api.case(data, data.draw(st.sampled_from(operations())))
    answer = case.call(base_url=HERE, session=api.stranger, allow_redirects=False)
    case.validate_response(answer, checks=CHECKS)
    assert answer.status_code in (400, 403)
    assert answer.text.startswith("Refused: ")
    assert everything(api.root) == before
    tally("requests to the workbench without its token")


def everything(root: Path) -> dict[str, bytes]:
    """All files of a workspace."""
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}
