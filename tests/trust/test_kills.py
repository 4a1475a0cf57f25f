"""Killed with SIGKILL at any moment: the whole old state or the whole new one, and work that can be taken up."""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rankveil import files
from rankveil.errors import FileError
from rankveil.masking.register import REGISTER


def write_original(folder: Path) -> None:
    rng = np.random.default_rng(0)
    table = {"A": rng.integers(0, 1000, 400), "B": rng.normal(50, 9, 400).round(2), "C": rng.lognormal(3, 1, 400)}
    files.save(pa.table(table), folder / "original.csv")


KILLED = -signal.SIGKILL
SEEDS = {"old": "0" * 31 + "1", "new": "0" * 31 + "2"}
REACH = {"old": 5.0, "new": 20.0}
OUTS = ["out.csv", "out.parquet", "out.xlsx", "sqlite:///out.db?table=people"]


def mask_command(out: str, state: str) -> list[str]:
    how = ["--method", "rank_swap", "--set", f"p={REACH[state]}", "--seed", SEEDS[state], "--json"]
    return ["mask", "original.csv", "-o", out, *how]


COMPARE = ["compare", "original.csv", "--methods", "rank_swap,additive_noise", "--at", "risk=0.3", "--utility", "um"]
COMPARE += ["--replicates", "2", "--workers", "1", "--write-plan", "plan.toml", "--json"]


class Release:
    """A release with its manifest and its secret, in a folder that can be put into any of three states."""

    def __init__(self, commands: Any, room: Path, out: str) -> None:
        self.commands, self.folder = commands, room / "here"
        name = "out.db" if "://" in out else out
        self.out = out
        self.address = str(self.folder / name) if name == out else out.replace("out.db", f"{self.folder}/out.db")
        self.beside = self.folder / (name if name == out else "out.db.people")
        beside = {f"{self.beside.name}.manifest.json", f"{self.beside.name}.secret.json", REGISTER}
        self.visible = {"original.csv", name} | beside
        self.folder.mkdir(parents=True)
        write_original(self.folder)
        self.contents: dict[str, Any] = {}
        self.states = {"none": room / "none"}
        shutil.copytree(self.folder, self.states["none"])
        for state in ("old", "new"):
            made = commands.run(self.folder, *mask_command(out, state))
            assert made.code == 0, made.err
            self.seconds = made.seconds
            self.contents[state] = files.load(self.address).data.to_pydict()
            self.states[state] = room / state
            shutil.copytree(self.folder, self.states[state], ignore=shutil.ignore_patterns(REGISTER))
            assert self.state() == state

    def begin(self, state: str) -> None:
        """Put the folder into a state."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.states[state], self.folder)

    def state(self) -> str:
        """The state of all three, each told by what is in it."""
        found = [self._of_release(), self._of("manifest", REACH, _reach), self._of("secret", SEEDS, _seed)]
        assert len(set(found)) == 1, found
        return found[0]

    def _of_release(self) -> str:
        try:
            content = files.load(self.address).data.to_pydict()
        except FileError as error:
            if "there is no such file" in str(error) or "there is no table" in str(error):
                return "none"
            raise
        [state] = [state for state, known in self.contents.items() if known == content]
        return state

    def _of(self, what: str, known: dict[str, Any], told: Callable[[Any], Any]) -> str:
        path = Path(f"{self.beside}.{what}.json")
        if not path.exists():
            return "none"
        assert path.stat().st_mode & 0o777 == (0o600 if what == "secret" else 0o644)
        [state] = [state for state, value in known.items() if value == told(json.loads(path.read_text()))]
        return state

    def hidden(self) -> list[Path]:
        return [path for path in self.folder.iterdir() if path.name.startswith(".")]

    def bytes(self) -> dict[str, tuple[bytes, int]]:
        return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in self.folder.iterdir()}

    def check_after_a_kill(self, before: str) -> str:
        """All is as before or all is new, at the latest when it is next written; then the next command leaves nothing.

        A reader changes nothing: it finds what is whole, or refuses.
        """
        hidden, private = self.hidden(), {f"{self.beside.name}.secret.json", REGISTER}
        decided = [path for path in hidden if path.suffix == ".journal" and path.stat().st_size]
        assert all(path.name.startswith(".rankveil-") for path in hidden)
        told = [path.read_bytes() for path in self.states[before].iterdir() if path.name not in private]
        for path in hidden:  # what others can read now is what they could read before, unless it is to be the new one
            assert path.stat().st_mode & 0o777 == 0o600 or decided or path.read_bytes() in (b"", *told)
        shown = {path.name for path in self.folder.iterdir()} - {path.name for path in hidden}
        assert shown <= self.visible | {"out.db-journal", "out.db.wal"}
        left = self.bytes()
        with suppress(FileError):
            files.load(self.address)
        assert self.bytes() == left
        files.check_writable(self.address)
        state = self.state()
        assert state in (before, "new")
        assert (self.folder / REGISTER).exists() == (state == "new")  # it is written with the release or not at all
        assert self.commands.run(self.folder, *mask_command(self.out, "old")).code == 0
        assert self.state() == "old"
        assert self.hidden() == []
        return state


def _reach(manifest: Any) -> Any:
    return manifest["steps"][0]["parameters"]["p"]


def _seed(secret: Any) -> Any:
    return f"{int(secret['seed'], 16):032x}"


def kill_at_random(release: Release, *, kills: int, seed: int, tally: Callable[..., None]) -> None:
    rng = random.Random(seed)
    survived = 0
    while survived < kills:
        before = rng.choice(["none", "old"])
        release.begin(before)
        moment = rng.uniform(0, release.seconds)
        if release.commands.run(release.folder, *mask_command(release.out, "new"), after=moment).code != 0:
            release.check_after_a_kill(before)
            survived += 1
            tally("kills survived by mask")


@pytest.fixture(scope="module", params=OUTS, ids=["csv", "parquet", "xlsx", "sqlite"])
def release(request: pytest.FixtureRequest, commands: Any, tmp_path_factory: pytest.TempPathFactory) -> Release:
    for word, package in (("xlsx", "openpyxl"), ("duckdb", "duckdb")):
        if word in request.param:
            pytest.importorskip(package)
    return Release(commands, tmp_path_factory.mktemp("mask"), request.param)


def test_mask_killed_at_random_moments(release: Release, tally: Callable[..., None]) -> None:
    kill_at_random(release, kills=3, seed=1, tally=tally)


@pytest.mark.thorough
def test_mask_killed_at_many_random_moments(release: Release, tally: Callable[..., None]) -> None:
    kill_at_random(release, kills=20, seed=2, tally=tally)


def kill_before_each_deed(release: Release, before: str, tally: Callable[..., None], *, last: int = 1000) -> None:
    """The moments that count are between the renamings, which chance would hardly ever meet."""
    release.begin(before)
    deeds = int(release.commands.run(release.folder, *mask_command(release.out, "new"), deed=10_000).err.split()[-1])
    ends = []
    for deed in range(max(deeds - last, 0) + 1, deeds + 1):
        release.begin(before)
        assert release.commands.run(release.folder, *mask_command(release.out, "new"), deed=deed).code == KILLED
        ends.append(release.check_after_a_kill(before))
        tally("kills survived by mask")
    turned = ends.index("new")
    assert turned >= 1
    assert ends == [before] * turned + ["new"] * (len(ends) - turned)


@pytest.mark.parametrize("release", [OUTS[0], OUTS[-1]], ids=["csv", "sqlite"], indirect=True)
def test_mask_killed_before_each_of_its_last_deeds(release: Release, tally: Callable[..., None]) -> None:
    kill_before_each_deed(release, "old", tally, last=18)


@pytest.mark.thorough
@pytest.mark.parametrize("release", ["duckdb:///out.db?table=people"], ids=["duckdb"], indirect=True)
def test_mask_to_duckdb_killed_before_each_of_its_last_deeds(release: Release, tally: Callable[..., None]) -> None:
    kill_before_each_deed(release, "old", tally, last=20)


@pytest.mark.thorough
@pytest.mark.parametrize("before", ["none", "old"])
def test_mask_killed_before_each_of_its_deeds(release: Release, before: str, tally: Callable[..., None]) -> None:
    kill_before_each_deed(release, before, tally)


@pytest.mark.thorough
@pytest.mark.parametrize("order", [["out.csv", "private/x"], ["private/x", "out.csv"]], ids=["out", "private"])
def test_mask_killed_with_its_secret_elsewhere(
    commands: Any, tmp_path: Path, order: list[str], tally: Callable[..., None]
) -> None:
    """Whoever writes in the folder of the release, or in that of the secret, settles what is there, in any order."""
    folder = tmp_path / "here"
    old = {"out.csv": "old", "out.csv.manifest.json": "old", "private/secret.json": "old"}
    command, ends, deed = [*mask_command("out.csv", "new"), "--secret", "private/secret.json"], [], 0
    while True:
        deed += 1
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "private").mkdir(parents=True)
        write_original(folder)
        for name, text in old.items():
            (folder / name).write_text(text)
        if commands.run(folder, *command, deed=deed).code == 0:
            break
        for path in (*order, *order):
            assert files.settle(folder / path) == ()
        [end] = {(folder / name).read_text() == text for name, text in old.items()}
        ends.append(end)
        tally("kills survived by mask")
        for place in (folder, folder / "private"):
            assert not [path for path in place.iterdir() if path.name.startswith(".")]
    assert ends == sorted(ends, reverse=True)
    assert len(set(ends)) == 2


def kill_comparisons(commands: Any, room: Path, *, kills: int, seed: int, tally: Callable[..., None]) -> None:
    folder = room / "here"
    folder.mkdir(parents=True)
    write_original(folder)
    wanted = commands.run(folder, *COMPARE)
    assert wanted.code == 0, wanted.err
    plan = (folder / "plan.toml").read_bytes()
    rng = random.Random(seed)
    state, survived = folder / "original.csv.compare-state", 0
    while True:
        more = ["--resume"] if state.exists() else []
        moment = rng.uniform(0, wanted.seconds) if survived < kills else None
        made = commands.run(folder, *COMPARE, *more, after=moment)
        if made.code == 0:
            assert made.out == wanted.out
            assert (folder / "plan.toml").read_bytes() == plan
            assert {path.name for path in folder.iterdir()} == {"original.csv", "plan.toml"}
            if moment is None:
                return
        else:
            assert made.code == KILLED, made.err
            survived += 1
            tally("kills survived by compare")
            assert not state.exists() or state.stat().st_mode & 0o777 == 0o600


def test_compare_killed_and_taken_up(commands: Any, tmp_path: Path, tally: Callable[..., None]) -> None:
    kill_comparisons(commands, tmp_path, kills=3, seed=1, tally=tally)


@pytest.mark.thorough
def test_compare_killed_many_times(commands: Any, tmp_path: Path, tally: Callable[..., None]) -> None:
    for seed in range(2, 6):
        kill_comparisons(commands, tmp_path / str(seed), kills=5, seed=seed, tally=tally)
