"""Ctrl-C and SIGTERM at awkward moments: the exit code is the one that the command has, and there is no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BEGINNING = """
import atexit, os, signal, sys
from rankveil.cli import failures

def press():
    os.kill(os.getpid(), signal.SIGINT)
"""


def ran(folder: Path, text: str, *, module: bool) -> tuple[int, str]:
    """How a program ended that a person starts by `python -m` or as a script, and what it said."""
    (folder / "stopping.py").write_text(BEGINNING + text)
    how = ["-m", "stopping"] if module else ["stopping.py"]
    made = subprocess.run([sys.executable, *how], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    return made.returncode, made.stderr


@pytest.mark.parametrize("module", [True, False])
def test_in_code_that_a_library_made_from_a_text(tmp_path: Path, module: bool) -> None:
    text = """
def work(argv):
    exec("press()")
    return 0

sys.exit(failures.ended(lambda: failures.guarded(work, [])))
"""
    assert ran(tmp_path, text, module=module) == (130, "rankveil: stopped; nothing was written\n")


@pytest.mark.parametrize("module", [True, False])
def test_after_the_work_is_done(tmp_path: Path, module: bool) -> None:
    text = """
atexit.register(press)
code = failures.ended(lambda: failures.guarded(lambda argv: 1, []))
press()
sys.exit(code)
"""
    assert ran(tmp_path, text, module=module) == (1, "")


@pytest.mark.parametrize("module", [True, False])
def test_again_while_the_first_is_told(tmp_path: Path, module: bool) -> None:
    text = """
class Told:
    def write(self, words):
        sys.__stderr__.write(words)
        press()

def work(argv):
    press()
    return 0

sys.stderr = Told()
code = failures.ended(lambda: failures.guarded(work, []))
sys.stderr = sys.__stderr__
sys.exit(code)
"""
    code, said = ran(tmp_path, text, module=module)
    assert code == 130
    assert said.strip() == "rankveil: stopped; nothing was written"


@pytest.mark.parametrize("module", [True, False])
def test_sigterm_is_like_control_c_but_for_the_exit_code(tmp_path: Path, module: bool) -> None:
    text = """
def work(argv):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)  # again while it cleans up
        print("cleaned up", file=sys.stderr)
    return 0

sys.exit(failures.ended(lambda: failures.guarded(work, [])))
"""
    assert ran(tmp_path, text, module=module) == (143, "cleaned up\nrankveil: stopped; nothing was written\n")


@pytest.mark.parametrize(("sent", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_in_code_that_cannot_fail(tmp_path: Path, sent: str, code: int) -> None:
    text = f"""
import time

class Left:
    def __del__(self):
        os.kill(os.getpid(), signal.{sent})
        time.sleep(0.001)

def work(argv):
    left = Left()
    del left
    for _ in range(3000):  # one long sleep would begin before the signal is looked at
        time.sleep(0.01)
    return 0

sys.exit(failures.ended(lambda: failures.guarded(work, [])))
"""
    assert ran(tmp_path, text, module=False) == (code, "rankveil: stopped; nothing was written\n")
