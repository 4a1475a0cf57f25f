"""Commands are run in folders that came from others: nothing that lies there is run or sets how others run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EVIL = "import os\nopen(os.environ['LOADED'], 'a').write(__name__)\nraise SystemExit(9)\n"
MODULES = ("json", "loky", "multiprocessing", "numpy", "runpy", "asyncio", "threading", "rankveil", "distributed")


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder with modules in it that Python would take for its own."""
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text(EVIL)
    return tmp_path


def run(program: str, folder: Path) -> str:
    """Run a program as the installed command is run: modules of the working folder are not its own."""
    environment = {**os.environ, "LOADED": str(folder / "loaded")}
    environment.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not (folder / "loaded").exists(), (folder / "loaded").read_text()
    assert done.returncode == 0, done.stderr
    return done.stdout


# safe_path of this interpreter would be handed on by some ways to start another: as the installed command has it not,
# its flag is taken back in what these programs hand on
WORKERS = """
import subprocess
subprocess._args_from_interpreter_flags = lambda: []
from operator import add
from rankveil.execute import in_workers
print(in_workers(add, 1, [1, 2, 3], workers=2))
"""
CLUSTER = """
import subprocess
subprocess._args_from_interpreter_flags = lambda: []
from rankveil import cluster
with cluster.open("local:1", scratch=".") as engine:
    print(engine(abs, [-1, -2]))
"""
WORKBENCH = """
import time
from rankveil.web.dispatch import Dispatcher
from rankveil.web.runs import Runs
from rankveil.web.workspace import Workspace
workspace = Workspace("w")
runs = Runs(workspace)
dispatcher = Dispatcher(runs)
dispatcher.start()
run = runs.new("mask", "0123456789abcdef", {"plan": {"steps": []}}, declared={})
dispatcher.submit(run)
while runs.find(run.id).under_way:
    time.sleep(0.02)
dispatcher.stop()
print(runs.failure(run))
"""


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (WORKERS, "[2, 3, 4]"),
        (CLUSTER, "[1, 2]"),
        (WORKBENCH, "the table is not in the workspace any more"),
    ],
    ids=["workers", "cluster", "workbench"],
)
def test_modules_in_the_working_folder_are_not_imported(planted: Path, program: str, told: str) -> None:
    assert run(program, planted).strip() == told


def test_settings_of_numba_in_the_working_folder_do_not_hold(tmp_path: Path) -> None:
    """They could name a folder of compiled code, which is unpickled."""
    pytest.importorskip("yaml")
    (tmp_path / ".numba_config.yaml").write_text("cache_dir: planted\n")
    program = """
from rankveil.kernels import Kernel, agreement, sorting
kernels = [each for each in vars(sorting).values() if isinstance(each, Kernel)]
compiled = [kernels[0].compiled, *(each for each in vars(agreement).values() if hasattr(each, "stats"))]
print(len(compiled), *(each.stats.cache_path for each in compiled))
"""
    count, *paths = run(program, tmp_path).split()
    assert int(count) == len(paths) > 1
    assert not [path for path in paths if "planted" in path]
    assert not (tmp_path / "planted").exists()
