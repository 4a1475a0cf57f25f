"""The house itself: its public names, what it imports and when, its rooms, its scripts, its text."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import rankveil

ROOT = Path(__file__).resolve().parents[1]

# A folder that only one machine has; URLs and relative paths that contain such a name are fine.
MACHINE_PATH = re.compile(
    r"(?:(?<![\w.~/}-])|(?<=file://))/(?:home|mnt|opt|private|root|srv|tmp|Users|var|work)/\w"
    r"|\b[A-Za-z]:\\+(?:Users|Temp)\\"
)


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def loaded_after(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after the code."""
    listing = "import sys; print(); print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = run(sys.executable, "-c", f"{code}\n{listing}")
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def project_files() -> list[Path]:
    """The files of the checkout that git keeps or would keep."""
    # The checkout may belong to someone else than who runs the tests, which git refuses by default.
    done = run("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    assert done.returncode == 0, done.stderr
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_public_names_are_sorted_and_resolve() -> None:
    assert rankveil.__all__ == sorted(set(rankveil.__all__))
    for name in rankveil.__all__:
        assert getattr(rankveil, name) is not None, name
    assert set(rankveil.__all__) <= set(dir(rankveil))


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        rankveil.no_such_name  # noqa: B018


def test_no_module_hides_a_public_name() -> None:
    # Importing rankveil.audit makes the module an attribute of the package, where the function should be.
    everything = (
        "import importlib, pkgutil, types, rankveil\n"
        "for found in pkgutil.walk_packages(rankveil.__path__, 'rankveil.'):\n"
        "    if not found.name.endswith('.__main__'):\n"
        "        importlib.import_module(found.name)\n"
        "names = set(rankveil.__all__) - {'catalogue', 'datasets'}  # public as modules\n"
        "hidden = [name for name in names if isinstance(getattr(rankveil, name), types.ModuleType)]\n"
        "assert not hidden, hidden"
    )
    done = run(sys.executable, "-c", everything)
    assert done.returncode == 0, done.stderr


def test_import_loads_no_heavy_library() -> None:
    loaded = loaded_after("import rankveil")
    assert "rankveil" in loaded
    assert not loaded & {"jinja2", "matplotlib", "numba", "pandas", "plotly", "polars", "scipy"}


def test_help_loads_no_numpy() -> None:
    asked = (
        "import sys\n"
        "sys.argv = ['rankveil', '--help']\n"
        "from rankveil.cli import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code"
    )
    loaded = loaded_after(asked)
    assert "rankveil" in loaded
    assert not loaded & {"matplotlib", "numba", "numpy", "pandas", "plotly", "polars", "pyarrow", "scipy"}


def test_imports_go_down_the_rooms_only() -> None:
    done = run(
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as lint; lint(['--no-logo', '--no-cache'])",
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rooms_are_described_in_their_order() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [contract] = project["tool"]["importlinter"]["contracts"]
    layers = [set(re.findall(r"\w+", layer)) - {"__main__", "_version"} for layer in reversed(contract["layers"])]
    told = re.findall(r"^\| (`.*?) \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [set(re.findall(r"\w+", rooms)) for rooms in told] == [layer for layer in layers if layer]


@pytest.mark.parametrize("script", ["scripts/setup", "scripts/check", "scripts/test", "scripts/demo", ".ci/run"])
def test_script_can_be_run(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK)
    assert run("bash", "-n", path).returncode == 0


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a git checkout knows its files")
def test_text_names_no_machine_path() -> None:
    files = project_files()
    assert Path(__file__).resolve() in files
    found = []
    for path in files:
        content = path.read_bytes()
        if b"\0" in content:
            continue
        lines = content.decode("utf-8", errors="replace").splitlines()
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
            for number, line in enumerate(lines, start=1)
            if MACHINE_PATH.search(line)
        ]
    assert not found, "\n".join(found)


# Written with | for / and ! for \\, lest this file fail its own test.
@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("|home|ada|data.csv", True),
        ("see (|tmp|x) or `|opt|x`", True),
        ("file:|||srv|index", True),
        ("C:!Users!ada", True),
        ("https:||example.org|home|x", False),
        ("..|root|x and src|var|x", False),
        ("|usr|bin|env bash", False),
        ("|tmp", False),
    ],
)
def test_a_machine_path_is_recognised(text: str, is_one: bool) -> None:
    assert bool(MACHINE_PATH.search(text.replace("|", "/").replace("!", "\\"))) is is_one
