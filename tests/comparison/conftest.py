"""A small original for comparisons."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest


@pytest.fixture(scope="session")
def original() -> pa.Table:
    rng = np.random.default_rng(4)
    z = rng.normal(size=(120, 3)) @ np.array([[1.0, 0.6, 0.2], [0.0, 0.8, 0.3], [0.0, 0.0, 0.9]])
    return pa.table({"A": 50 + 5 * z[:, 0], "B": np.exp(z[:, 1]), "C": np.round(100 * z[:, 2])})
