"""What tests of all rooms share."""

from __future__ import annotations

import datetime
import os
import platform
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

REFERENCE = Path(__file__).resolve().parents[2] / "shared" / "data"

# `scripts/test` draws a few examples, the same every time; `scripts/test --full` many, always new ones
settings.register_profile("few", max_examples=25, derandomize=True, deadline=None, print_blob=True)
settings.register_profile("full", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile("few")  # for pytest alone too: the first example may have to wait for a compiler


TRIED = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="run the tests that take long too: scripts/test --full")
    parser.addoption("--tried-to", type=Path, help="the page whose counts are written anew when all tests pass")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "thorough: takes long, and what it tries is tried in small elsewhere")
    config.stash[TRIED] = Counter()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--thorough"):
        for item in items:
            if item.get_closest_marker("thorough"):
                item.add_marker(pytest.mark.skip(reason="takes long: scripts/test --full"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the counts of a worker process over to the process that started it."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["tried"] = dict(session.config.stash[TRIED])
        # a worker may be killed before its end: what `scripts/coverage` has seen in it is written now
        measured = "coverage" in sys.modules and sys.modules["coverage"].Coverage.current()
        if measured:
            measured.save()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the counts of a worker process over."""
    node.config.stash[TRIED].update(getattr(node, "workeroutput", {}).get("tried", {}))


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """Tell what was tried, and write it on the page of trust where that was asked for and nothing failed."""
    tried = config.stash[TRIED]
    for what, many in sorted(tried.items()):
        terminalreporter.write_line(f"{many:9,} {what}")
    page: Path | None = config.getoption("--tried-to")
    if page is None:
        return
    if exitstatus:
        terminalreporter.write_line(f"The counts of {page} stay as they were: not all tests passed.")
        return
    ended = {how: len(terminalreporter.stats.get(how, [])) for how in ("passed", "skipped", "xfailed")}
    before, begin, rest = page.read_text(encoding="utf-8").partition("<!-- counts: written by the tests -->\n")
    _, end, after = rest.partition("<!-- end of counts -->")
    page.write_text(before + begin + counts(tried, ended) + end + after, encoding="utf-8")


def counts(tried: Counter[str], ended: dict[str, int]) -> str:
    """What was tried, as a table, with the versions it was tried on."""
    import numpy

    rows = "".join(f"| {what} | {many:,} |\n" for what, many in sorted(tried.items()))
    return (
        f"\nOn {datetime.date.today()}, Python {platform.python_version()}, numpy {numpy.__version__}: "
        f"{ended['passed']:,} tests passed, none failed, {ended['skipped']} were skipped, "
        f"{ended['xfailed']} are expected to fail.\n\n"
        f"| tried | how often |\n|---|---:|\n{rows}\n"
    )


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The user's state directory, with the key of journals: not that of the person who runs the tests."""
    folder = tmp_path_factory.mktemp("state")
    os.environ["XDG_STATE_HOME"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Callable[..., None]:
    """Counts what was tried, by what it is: `tally("kills survived by mask")`; docs/trust.md shows the counts."""

    def count(what: str, many: int = 1) -> None:
        pytestconfig.stash[TRIED][what] += many

    return count


@pytest.fixture(scope="session")
def unmeasured() -> dict[str, str]:
    """The environment of a process with little room for files: `scripts/coverage` could not write what it saw there."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}


@pytest.fixture(scope="session")
def reference_data() -> Callable[[str], Path]:
    """The file of a reference data set (census, eia); a test that needs one that is not there is skipped."""

    def find(name: str) -> Path:
        path = REFERENCE / f"{name}.csv"
        if not path.exists():
            pytest.skip(f"the reference data {name}.csv do not lie in ../shared/data beside the project")
        return path

    return find


class Server:
    """The workbench on a free port of this machine, as `rankveil serve` runs it, in a thread."""

    def __init__(self, workspace: Path, **more: Any) -> None:
        import uvicorn

        from rankveil.web.app import make_app

        self.app = make_app(workspace, **more)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        self._server = uvicorn.Server(uvicorn.Config(self.app, log_level="error", access_log=False, ws="none"))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._clients: list[Any] = []
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def client(self, **more: Any) -> Any:
        """A browser without a session."""
        import httpx

        made = httpx.Client(base_url=self.origin, timeout=60, trust_env=False, **more)
        self._clients.append(made)
        return made

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


@pytest.fixture(scope="session")
def serving() -> type[Server]:
    """The workbench in a thread, for tests that need no process of its own: it starts without imports."""
    return Server
