"""A file dropped into the catalogue is discovered and under contract with no other edit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONTRACT = Path(__file__).parent

HONEST = '''
"""Turning round: the largest value becomes the smallest."""
from typing import Annotated
from rankveil.catalogue import Array, Range, method

@method(title="Turning round", source="a test", tells="the order is turned round")
def turned_round(x: Array, *, by: Annotated[float, Range(0, 10, above=True), "the factor"]) -> Array:
    """y = -by x."""
    return -by * x
'''

LYING = '''
"""A method that says that it keeps the marginals and does not."""
from rankveil.catalogue import Array, method

@method(title="Doubling", source="a test", marginals="kept")
def doubled(x: Array) -> Array:
    """y = 2 x."""
    return 2 * x
'''

MEASURE = '''
"""The share of values that changed."""
import numpy as np
from rankveil.catalogue import Array, measure

@measure(title="Share changed", source="a test", family="confidentiality", bounds=(0.0, 1.0), per="column")
def share_changed(x: Array, y: Array) -> float:
    """How many values are different now."""
    return float(np.mean(x != y))
'''

PLUGIN = """
import rankveil.measures, rankveil.methods
rankveil.methods.__path__.append({methods!r})
rankveil.measures.__path__.append({measures!r})
"""


@pytest.mark.thorough
def test_a_new_file_is_under_contract_at_once(tmp_path: Path) -> None:
    for name, text in (("methods/turned.py", HONEST), ("methods/doubled.py", LYING), ("measures/share.py", MEASURE)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    plugin = PLUGIN.format(methods=str(tmp_path / "methods"), measures=str(tmp_path / "measures"))
    (tmp_path / "dropped_in_files.py").write_text(plugin)
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    options = ["-q", "-rf", "-p", "dropped_in_files", "-p", "no:cacheprovider", "-p", "no:xdist"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", CONTRACT, *options, "-k", "turned_round- or doubled or share_changed"],
        env={**os.environ, "PYTHONPATH": paths, "PYTEST_ADDOPTS": ""},
        cwd=CONTRACT.parents[1],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    failed = [line for line in run.stdout.splitlines() if line.startswith("FAILED")]
    assert run.returncode == 1, run.stdout + run.stderr
    assert failed, run.stdout
    assert all("doubled" in line for line in failed), run.stdout
    assert any("test_marginals_are_kept_where_it_says_so[doubled]" in line for line in failed)
    assert int(run.stdout.rpartition(" passed")[0].split()[-1]) > 60, run.stdout
