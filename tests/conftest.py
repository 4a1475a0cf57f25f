"""What tests of all rooms share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

REFERENCE = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def reference_data() -> Callable[[str], Path]:
    """The file of a reference data set (census, eia); a test that needs one that is not there is skipped."""

    def find(name: str) -> Path:
        path = REFERENCE / f"{name}.csv"
        if not path.exists():
            pytest.skip(f"the reference data {name}.csv do not lie in ../shared/data beside the project")
        return path

    return find
