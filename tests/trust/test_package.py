"""What is shipped: the wheel and the sdist, the lock file, and a program that asks nobody anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rankveil

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text()


def run(*command: str | Path, cwd: Path = ROOT, timeout: float = 120, **more: str) -> str:
    """What a command prints, which must end well."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--target", "wheel", "--directory", folder)
    return folder


def source() -> set[str]:
    """The files of the package as they lie in the project."""
    found = (path.relative_to(ROOT / "src") for path in (ROOT / "src" / "rankveil").rglob("*") if path.is_file())
    return {path.as_posix() for path in found if "__pycache__" not in path.parts}


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names, licence = set(wheel.namelist()), (ROOT / "LICENSE").read_bytes()
        info = f"rankveil-{rankveil.__version__}.dist-info"
        assert {name for name in names if not name.startswith(info)} == source()
        assert wheel.read(f"{info}/licenses/LICENSE") == licence
        commands = wheel.read(f"{info}/entry_points.txt").decode()
    assert "rankveil = rankveil.cli:main" in commands
    assert "rankveil/py.typed" in names
    for kind in (".html", ".css", ".js"):  # pages of the workbench and of reports
        assert any(name.endswith(kind) for name in names), kind


def test_the_sdist_gives_the_same_wheel(built: Path, tmp_path: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path, cwd=unpacked)
    assert next(tmp_path.glob("*.whl")).read_bytes() == next(built.glob("*.whl")).read_bytes()
    assert not [path for path in unpacked.rglob("*") if path.name.startswith(".venv") or path.name == "__pycache__"]


def locked() -> dict[str, list[Requirement]]:
    """The requirements of the lock by their names: one for each Python, where they differ."""
    found: dict[str, list[Requirement]] = {}
    for line in re.findall(r"^(\w[^\\#\n]*)", LOCK, re.MULTILINE):
        requirement = Requirement(line.strip())
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def wanted() -> list[Requirement]:
    """All that pyproject.toml asks for, with its extras, and what the package is built with."""
    extras = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"], *(each for name in extras if name != "benchmarks" for each in extras[name])]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    return [one for one in map(Requirement, [*asked, *build]) if one.name != PROJECT["name"]]


@pytest.mark.parametrize("asked", wanted(), ids=lambda asked: asked.name)
def test_the_lock_has_what_the_project_asks_for(asked: Requirement) -> None:
    found = locked().get(canonicalize_name(asked.name))
    assert found, "run scripts/lock"
    for one in found:
        (version,) = one.specifier
        assert version.operator == "=="
        assert asked.specifier.contains(version.version, prereleases=True), "run scripts/lock"


def test_the_lock_names_digests_and_no_place() -> None:
    parts = re.split(r"\n(?=\w)", LOCK)[1:]
    assert len(parts) > 80
    assert all("--hash=sha256:" in part for part in parts)
    assert not re.search(r"://|index-url|find-links|(?:^|\s)/", LOCK)


def test_the_version_is_told() -> None:
    assert run(sys.executable, "-m", "rankveil", "--version") == f"rankveil {rankveil.__version__}\n"


# No dependency phones home

MODULES = {"scikit-learn": "sklearn", "pot": "ot", "pillow": "PIL"}
"""What a dependency is called when it is imported, where that is not its name."""

OFFLINE = """
import os, sys

def refuse(event, arguments):
    if event == "socket.getaddrinfo":
        place = arguments[0]
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        place = arguments[1]
        place = place[0] if isinstance(place, tuple) else None  # else a file of this machine
    else:
        return
    if place not in (None, "", b"", "localhost", b"localhost", "127.0.0.1", b"127.0.0.1", "::1", "0.0.0.0"):
        with open(os.environ["ASKED"], "a") as file:
            print(event, place, file=file)
        raise OSError(f"{place} was asked")

sys.addaudithook(refuse)
"""
"""What every process does first: whoever asks for another machine is written down, and refused."""

PROGRAM = """
import importlib, runpy, sys
for name in [*sys.argv[1:], "rankveil.web.app"]:
    importlib.import_module(name)
sys.argv = ["rankveil", "demo", "-o", "shown"]
runpy.run_module("rankveil", run_name="__main__")
"""


def _offline(folder: Path) -> tuple[list[str], dict[str, str]]:
    """The words before a command that cut it off from all networks where that can be done, and its environment."""
    (folder / "sitecustomize.py").write_text(OFFLINE)
    cut = ["unshare", "--map-root-user", "--net"]
    able = sys.platform == "linux" and subprocess.run([*cut, "true"], capture_output=True, check=False).returncode == 0
    return cut if able else [], {"PYTHONPATH": str(folder), "ASKED": str(folder / "asked")}


def test_nothing_is_asked_of_another_machine(tmp_path: Path, tally: Callable[..., None]) -> None:
    """Every dependency is loaded, the workbench too, and the demo run: it masks, audits, attacks, compares, reports."""
    before, env = _offline(tmp_path)
    refused = subprocess.run(
        [sys.executable, "-c", "import socket; socket.create_connection(('192.0.2.1', 9))"],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "192.0.2.1 was asked" in refused.stderr, "the lookout does not work"
    (tmp_path / "asked").unlink()
    extras = PROJECT["optional-dependencies"]
    asked = {Requirement(each).name for name in extras if name not in ("benchmarks", "dev") for each in extras[name]}
    asked |= {Requirement(each).name for each in PROJECT["dependencies"]}
    libraries = sorted(MODULES.get(name, name.replace("-", "_")) for name in asked - {PROJECT["name"]})
    done = run(*before, sys.executable, "-c", PROGRAM, *libraries, cwd=tmp_path, **env)
    assert "report.html" in done
    assert "</html>" in (tmp_path / "shown" / "report.html").read_text().lower()
    assert not (tmp_path / "asked").exists(), (tmp_path / "asked").read_text()
    tally("dependencies loaded without a network", len(libraries))


@pytest.mark.thorough
def test_wheel_and_sdist_run_the_demo_in_an_environment_of_their_own(tmp_path: Path) -> None:
    """scripts/build installs each in an empty environment, with the versions of the lock, and runs the demo from it."""
    done = run(ROOT / "scripts" / "build", tmp_path, timeout=1800)
    assert done.splitlines() == [f"rankveil {rankveil.__version__}"] * 2
    assert len(list(tmp_path.glob("rankveil-*"))) == 2
