"""The compiled loops give what their plain form gives, and what they promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.partitions import loops

FORMS = ("plain", "compiled")


@pytest.mark.parametrize("form", FORMS)
def test_a_sum_keeps_what_rounding_takes(form: str) -> None:
    total, lost = getattr(loops.sums, form)(np.array([1e16, 1.0, 1.0, -1e16, 0.5]), 1.0)
    assert total + lost == 2.5


@settings(deadline=None)
@given(
    x=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=600).map(lambda each: np.array(each, np.float64))
)
def test_central_sums(x: Any) -> None:
    plain, compiled = (getattr(loops.central_sums, form)(x, 2.0, 0.25, 0.125) for form in FORMS)
    gap = x / 2 - 0.375
    for power, one, other in zip((2, 3, 4), plain, compiled, strict=True):
        size = np.sum(np.abs(gap) ** power)
        assert one == pytest.approx(np.sum(gap**power), rel=1e-12, abs=1e-13 * size)
        assert other == pytest.approx(one, rel=1e-12, abs=1e-13 * size)
