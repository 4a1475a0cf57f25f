"""Measures of categories from the numbers of equal records are those of the records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.catalogue import get_measure
from rankveil.errors import NotApplicableError
from rankveil.measures._codes import Tally
from rankveil.partitions import tallies
from rankveil.partitions.tallies import tallied


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_values_are_those_of_the_records(data: Any, partitioned: Any, each: Any) -> None:
    n = data.draw(st.integers(2, 60))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    x, y = (rng.integers(0, 4, (n, 3)) / 2 for _ in range(2))  # places of strangers are no whole numbers
    with partitioned(x, y, cuts=data.draw(st.lists(st.integers(0, n), max_size=4))) as job:
        (some_x, of_x), (some_y, of_y) = tallied(job, each).values()
    assert (of_x.sum(), of_y.sum()) == (n, n)
    assert np.array_equal(np.repeat(some_x, of_x, axis=0), x[np.lexsort(x.T[::-1])])
    for name in ("contingency", "cramers_v"):
        entry = get_measure(name)
        try:
            expected = entry(x, y)
        except NotApplicableError as why:
            with pytest.raises(NotApplicableError, match=str(why)):
                entry(some_x, some_y, Tally(of_x), Tally(of_y))
            continue
        found = entry(some_x, some_y, Tally(of_x), Tally(of_y))
        assert found.value == expected.value
        assert {**found.details, "records": None} == {**expected.details, "records": None}
    entry = get_measure("total_variation")
    one = entry(some_x[:, 0], some_y[:, 0], Tally(of_x), Tally(of_y))
    assert one.value == entry(x[:, 0], y[:, 0]).value
    assert one.details == entry(x[:, 0], y[:, 0]).details


def test_too_many_combinations_are_refused(partitioned: Any, each: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tallies, "MOST", 10)
    x = np.arange(40.0).reshape(20, 2)
    with (
        partitioned(x, x, cuts=[7]) as job,
        pytest.raises(NotApplicableError, match="more than 10 different combinations"),
    ):
        tallied(job, each)
