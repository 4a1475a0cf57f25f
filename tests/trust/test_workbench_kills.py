"""The workbench killed at random moments: what it shows afterwards is whole, and what was interrupted goes on."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import rankveil as rv
from rankveil import files

PATIENCE = 240.0
SMALL = {"methods": ["mdav", "rank_swap"], "utility": ["um"], "replicates": "2", "points": "4"}


class Workbench:
    """`rankveil serve` as a process that is killed and started again, and a browser that stays."""

    def __init__(self, folder: Path) -> None:
        self.root, self._log = folder / "workspace", folder / "log.txt"
        self._client = httpx.Client(timeout=PATIENCE, trust_env=False)
        self.start()
        self._client.get(self._address)
        self.table = self.post("/data", {"example": "running-example"})
        self.post(f"/data/{self.table}/mask/step", {"method": "rank_swap", "p-p": "50"})

    def start(self) -> None:
        """Start the server on the workspace as it is."""
        command = [sys.executable, "-m", "rankveil", "serve", "--no-browser", "--workspace", str(self.root)]
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("Open "):
                self._address = line.split()[1]
                self._origin = self._address.partition("/?")[0]
                return
        raise AssertionError(self._log.read_text())

    def kill(self) -> None:
        """End the server without a warning, and wait until its work has followed it."""
        self._process.send_signal(signal.SIGKILL)
        self._gone()
        last = time.monotonic() + PATIENCE
        while self._at_work():
            assert time.monotonic() < last, "work goes on without its server"
            time.sleep(0.05)

    def stop(self) -> None:
        """End the server as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)
        self._gone()
        self._client.close()
        assert "Traceback" not in self._log.read_text()

    def _gone(self) -> None:
        self._process.wait(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _at_work(self) -> bool:
        """Whether a process works in this workspace."""
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(self.root).encode() in process.read_bytes():
                    return True
            except OSError:  # it has ended
                continue
        return False

    def get(self, address: str) -> httpx.Response:
        """A page that is there."""
        answer = self._client.get(f"{self._origin}{address}")
        assert answer.status_code == 200, (address, answer.text)
        return answer

    def post(self, address: str, form: dict[str, Any] | None = None) -> str:
        """Send a form; the ID of what came of it."""
        answer = self._client.post(f"{self._origin}{address}", data=form or {}, headers={"Origin": self._origin})
        assert answer.status_code == 303, (address, answer.text)
        return answer.headers["location"].rpartition("/")[2]

    def state(self, run: str) -> str:
        """How a run stands."""
        return str(self.get(f"/runs/{run}/state").json()["status"])

    @property
    def runs(self) -> dict[str, str]:
        """All runs, and how they stand."""
        return {run: self.state(run) for run in sorted(os.listdir(self.root / "runs"))}

    def written(self) -> set[tuple[str, int]]:
        """Every file of the runs, and when it was written last."""
        found = set()
        for folder, _, names in os.walk(self.root / "runs"):
            for name in names:
                try:
                    found.add((f"{folder}/{name}", os.stat(f"{folder}/{name}").st_mtime_ns))
                except FileNotFoundError:
                    continue
        return found

    def kill_after(self, many: int) -> None:
        """Kill the server as soon as so many files have been written, or nothing is left to be done."""
        seen, first = set[tuple[str, int]](), self.written()
        last = time.monotonic() + PATIENCE
        while len(seen) < many and time.monotonic() < last:
            seen |= self.written() - first
            time.sleep(0.002)
            if not {"queued", "running"} & set(self.on_disk().values()):
                break
        self.kill()

    def on_disk(self) -> dict[str, str]:
        """How all runs stand, as the workspace says; a run that is being made has no document yet."""
        found = {}
        for run in os.listdir(self.root / "runs"):
            try:
                found[run] = json.loads((self.root / "runs" / run / "run.json").read_text("utf-8"))["status"]
            except FileNotFoundError:
                continue
        return found


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
    """The command itself, on a workspace with a table and a plan."""
    made = Workbench(tmp_path)
    yield made
    made.stop()


def whole(bench: Workbench, run: str) -> None:
    """All that a run declares is there, and is what it says it is."""
    folder = bench.root / "runs" / run
    for name in json.loads((folder / "result.json").read_text("utf-8"))["outputs"]:
        content = bench.get(f"/runs/{run}/files/{name}").content
        assert content, name
        if name.endswith(".json"):
            json.loads(content)
    if json.loads((folder / "run.json").read_text("utf-8"))["kind"] == "mask":
        original = files.load(bench.root / "data" / bench.table / "table.csv").data
        plan = rv.Plan.from_toml((folder / "plan.toml").read_text("utf-8"))
        secret = rv.Secret.from_json((folder / "secret.json").read_text("utf-8"))
        again = rv.mask(original, plan, seed=secret.seed).published().data
        assert files.load(folder / "masked.csv").data.to_pylist() == again.to_pylist()


def sound(bench: Workbench) -> None:
    """The workspace of a server that has just been started after a kill."""
    bench.get("/")
    for run, status in bench.runs.items():
        page = bench.get(f"/runs/{run}").text
        failed = bench.root / "runs" / run / "failure.json"
        assert status in ("done", "interrupted"), failed.read_text() if failed.exists() else status
        if status == "done":
            whole(bench, run)
        else:
            assert "The server was stopped before this was done." in page
            assert "Resume" in page
    for path in (bench.root, *bench.root.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        if path.is_dir():
            assert mode == 0o700, path
        else:
            assert not path.name.startswith(".") or path.name == ".lock", path
            assert path.suffix not in (".json", ".csv") or mode == 0o600, path


def begin(bench: Workbench) -> None:
    """Something new to do, or what was interrupted."""
    waiting = [run for run, status in bench.runs.items() if status == "interrupted"]
    for run in waiting:
        bench.post(f"/runs/{run}/resume")
    if not waiting:
        bench.post(f"/data/{bench.table}/compare", SMALL)
        bench.post(f"/data/{bench.table}/mask", {"audit": "yes"})


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.thorough)])
def test_a_killed_workbench_loses_nothing(kills: int, workbench: Workbench, tally: Any) -> None:
    moments = random.Random(kills)
    for _ in range(kills):
        begin(workbench)
        workbench.kill_after(moments.randrange(25))
        workbench.start()
        sound(workbench)
        tally("kills survived by the workbench")
    finish(workbench)


def finish(bench: Workbench) -> None:
    """What was interrupted goes on, and gives what it would have given."""
    last = time.monotonic() + PATIENCE
    for run, status in bench.runs.items():
        if status == "interrupted":
            bench.post(f"/runs/{run}/resume")
    while set(bench.runs.values()) != {"done"}:
        assert time.monotonic() < last, bench.runs
        assert "failed" not in bench.runs.values()
        time.sleep(0.2)
    original = rv.Table(files.load(bench.root / "data" / bench.table / "table.csv").data)
    expected = rv.compare(original, SMALL["methods"], sweep=True, utility=["um"], replicates=2, points=4).to_dict()
    kinds = set()
    for run in bench.runs:
        whole(bench, run)
        folder = bench.root / "runs" / run
        asked = json.loads((folder / "run.json").read_text("utf-8"))
        kinds.add(asked["kind"])
        if asked["kind"] == "compare":
            made = json.loads((folder / "compare.json").read_text("utf-8"))
            assert made["methods"] == json.loads(json.dumps(expected["methods"]))
        if asked["kind"] == "audit":
            masked = rv.Table(files.load(bench.root / "runs" / asked["release"] / "masked.csv").data)
            measures = json.loads((folder / "audit.json").read_text("utf-8"))["measures"]
            made = bench.root / "runs" / asked["release"]
            manifest, secret = ((made / f"{name}.json").read_text("utf-8") for name in ("manifest", "secret"))
            again = rv.audit(original, masked, manifest=json.loads(manifest), secret=rv.Secret.from_json(secret))
            assert measures == json.loads(json.dumps(again.to_dict()["measures"]))
    assert kinds == {"mask", "audit", "compare"}
