"""What the tests of the workbench share: a server on an empty workspace, and ways to use it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from rankveil.web import work

TOKEN = "the-token-of-the-tests"
LIMIT = 300_000
_PATIENCE = 60.0


@dataclass
class User:
    """A browser of the tests: it keeps its cookie and sends its Origin with every form."""

    server: Any
    client: httpx.Client

    @property
    def bench(self) -> Any:
        return self.server.app.state.bench

    def get(self, address: str, *, status: int = 200) -> Any:
        answer = self.client.get(address)
        assert answer.status_code == status, answer.text
        return answer

    def post(self, address: str, data: dict[str, Any] | None = None, *, status: int = 303, **more: Any) -> Any:
        answer = self.client.post(address, data=data or {}, headers={"Origin": self.server.origin}, **more)
        assert answer.status_code == status, answer.text
        return answer

    def told(self, address: str, data: dict[str, Any] | None = None, **more: Any) -> str:
        """The sentence with which a form is refused."""
        found = re.search(r'role="alert"><p>(.*?)</p>', self.post(address, data, status=400, **more).text, re.DOTALL)
        assert found is not None
        return unescape(found[1])

    def example(self, which: str = "running-example") -> str:
        """Take an example; the ID of its table."""
        return str(self.post("/data", {"example": which}).headers["location"]).rpartition("/")[2]

    def upload(self, name: str, content: str | bytes) -> str:
        """Upload a file; the ID of its table."""
        answer = self.post("/data", files={"file": (name, content)})
        return str(answer.headers["location"]).rpartition("/")[2]

    def ask(self, address: str, data: dict[str, Any] | None = None, *, end: str = "done") -> str:
        """Begin some work and wait until it has ended in that way; the ID of the run."""
        id = str(self.post(address, data).headers["location"]).rpartition("/")[2]
        self.wait(id, end)
        return id

    def do(self, address: str, data: dict[str, Any] | None = None, *, end: str = "done", **more: Any) -> str:
        """Begin some work and do it here instead of in a process of its own, which costs seconds; the ID of the run."""
        runs, dispatcher = self.bench.runs, self.bench.dispatcher
        held, dispatcher._at_once = dispatcher._at_once, 0  # nothing starts by itself
        try:
            id = str(self.post(address, data, **more).headers["location"]).rpartition("/")[2]
            run = runs.keep(replace(self.bench.run(id), status="running", started=time.time()))
            ended = dispatcher._ended(run, work.main(runs.folder(run)))
            runs.keep(replace(run, status=ended, ended=time.time()))
        finally:
            dispatcher._at_once = held
        self.wait(id, end)
        return id

    def wait(self, id: str, *ends: str) -> dict[str, Any]:
        """How a run stands when it stands in one of these ways."""
        last = time.monotonic() + _PATIENCE
        while time.monotonic() < last:
            state: dict[str, Any] = self.get(f"/runs/{id}/state").json()
            if state["status"] in ends:
                return state
            assert state["status"] in ("queued", "running"), (state, self.get(f"/runs/{id}").text)
            time.sleep(0.05)
        raise AssertionError(f"{state} and not {ends}")


Start = Callable[..., Any]


@pytest.fixture
def start(serving: Start, tmp_path: Path) -> Iterator[Start]:
    """Start the workbench on a workspace; at the end of the test it is stopped."""
    started: list[Any] = []

    def make(workspace: Path | None = None, **more: Any) -> Any:
        started.append(serving(workspace or tmp_path / "workspace", **({"token": TOKEN, "limit": LIMIT} | more)))
        return started[-1]

    yield make
    for server in started:
        server.stop()


@pytest.fixture
def enter(start: Start) -> Callable[..., User]:
    """Start the workbench and come in by the token."""

    def make(workspace: Path | None = None) -> User:
        server = start(workspace)
        client = server.client()
        assert client.get(f"/?token={TOKEN}").status_code == 200
        return User(server, client)

    return make


@pytest.fixture
def user(enter: Callable[..., User]) -> User:
    """Somebody who came in by the token, on an empty workspace."""
    return enter()


@dataclass
class Settled:
    """Somebody at a workbench where the running example was masked: for tests that only look."""

    user: User
    table: str
    run: str


@pytest.fixture(scope="module")
def settled(serving: Start, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settled]:
    """One for all tests of a module."""
    server = serving(tmp_path_factory.mktemp("settled") / "workspace", token=TOKEN, limit=LIMIT)
    user = User(server, server.client())
    user.get(f"/?token={TOKEN}")
    table = user.example()
    user.post(f"/data/{table}/mask/step", {"method": "rank_swap", "p-p": "50"})
    yield Settled(user, table, user.do(f"/data/{table}/mask"))
    server.stop()
