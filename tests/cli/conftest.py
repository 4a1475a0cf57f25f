"""What the tests of the command line share: a way to run it, and the running example as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rankveil import datasets, files
from rankveil.cli import main


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process; it must end with the expected code, and nothing unexpected on standard error."""

    def command(*argv: str | Path, code: int = 0) -> Ran:
        capsys.readouterr()
        ended = main([str(word) for word in argv])
        said = capsys.readouterr()
        assert ended == code, said.err or said.out
        if code in (0, 1):
            assert said.err == ""
        return Ran(ended, said.out, said.err)

    return command


@pytest.fixture
def refused(run: Run, tmp_path: Path) -> Callable[..., str]:
    """Run a command that must be refused: one sentence, no traceback, no output, no file left or changed."""

    def command(*argv: str | Path, code: int = 2) -> str:
        before = _contents(tmp_path)
        ran = run(*argv, code=code)
        assert ran.out == ""
        assert ran.err.startswith("rankveil: ")
        assert ran.err.endswith("\n")
        assert ran.err.count("\n") == 1, ran.err
        assert _contents(tmp_path) == before
        return ran.err.removeprefix("rankveil: ").rstrip("\n")

    return command


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.stat().st_size < 1e6
    }


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def example(here: Path) -> Path:
    """The running example as original.csv and masked.csv in the working directory."""
    original, masked = datasets.running_example()
    files.save(original, "original.csv")
    files.save(masked, "masked.csv")
    return here


@pytest.fixture
def write(here: Path) -> Callable[[str, str], str]:
    """Write a small file into the working directory."""

    def make(name: str, text: str) -> str:
        (here / name).write_text(text, encoding="utf-8")
        return name

    return make
