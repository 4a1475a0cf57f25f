"""What the tests of the workbench share: a server on an empty workspace, and ways to use it."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from rankveil.web.app import make_app

TOKEN = "the-token-of-the-tests"
LIMIT = 300_000
_PATIENCE = 60.0


class Server:
    """The workbench on a free port of this machine, as `rankveil serve` runs it, in a thread."""

    def __init__(self, workspace: Path, **more: Any) -> None:
        self.app = make_app(workspace, **({"token": TOKEN, "limit": LIMIT} | more))
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        self._server = uvicorn.Server(uvicorn.Config(self.app, log_level="error", access_log=False, ws="none"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._clients: list[httpx.Client] = []
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def client(self, **more: Any) -> httpx.Client:
        """A browser without a session."""
        made = httpx.Client(base_url=self.origin, timeout=60, trust_env=False, **more)
        self._clients.append(made)
        return made

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


@dataclass
class User:
    """A browser of the tests: it keeps its cookie and sends its Origin with every form."""

    server: Server
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


Start = Callable[..., Server]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the workbench on a workspace; at the end of the test it is stopped."""
    started: list[Server] = []

    def make(workspace: Path | None = None, **more: Any) -> Server:
        started.append(Server(workspace or tmp_path / "workspace", **more))
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
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settled]:
    """One for all tests of a module."""
    server = Server(tmp_path_factory.mktemp("settled") / "workspace")
    user = User(server, server.client())
    user.get(f"/?token={TOKEN}")
    table = user.example()
    user.post(f"/data/{table}/mask/step", {"method": "rank_swap", "p-p": "50"})
    yield Settled(user, table, user.ask(f"/data/{table}/mask"))
    server.stop()
