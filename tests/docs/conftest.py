"""What the tests of the documentation share: the builder, one built site, one demo."""

from __future__ import annotations

import contextlib
import fcntl
import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))  # where the builder of the site lies, which is not part of the package


def _once(folder: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that is made by the first worker that needs it and used by all."""
    base = folder.getbasetemp()
    place = (base.parent if base.name.startswith("popen-") else base) / name
    with open(place.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            make(place)
    return place


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    from sitebuilder.site import build

    return _once(tmp_path_factory, "rankveil-site", build)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `rankveil demo` leaves behind, and beside that folder what it says with `--json`."""
    from rankveil.cli import main

    def make(place: Path) -> None:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert main(["demo", "-o", str(place), "--json"]) == 0
        place.with_suffix(".json").write_text(out.getvalue(), encoding="utf-8")

    return _once(tmp_path_factory, "rankveil-demo", make)
