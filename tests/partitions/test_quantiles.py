"""A sorted column on disk answers as a sorted array does."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from rankveil.errors import NotApplicableError
from rankveil.partitions.layout import Layout, Sizes, cut_runs
from rankveil.partitions.quantiles import Runs, Sorted, SortedTable
from rankveil.partitions.runs import write_run
from rankveil.partitions.scratch import Scratch
from rankveil.sorting import Sorter


@pytest.fixture
def column(tmp_path: Any) -> tuple[Any, Sorted]:
    rng = np.random.default_rng(0)
    values = np.concatenate((rng.normal(size=300), np.zeros(200), rng.integers(-2, 3, 100)))
    rng.shuffle(values)
    scratch, sizes = Scratch(str(tmp_path)), Sizes(interval=32, span=100)
    parts = np.split(values, [50, 50, 333])
    for p, part in enumerate(parts):
        write_run(scratch, "x0", p, part, every=sizes.every(4), sort=Sorter(part.size))
    cut: Layout = cut_runs(scratch, "x0", [part.size for part in parts], sizes=sizes)
    return np.sort(values), Sorted(600, Runs(scratch, "x0", cut))


def test_places(column: tuple[Any, Sorted]) -> None:
    wanted, found = column
    assert (len(found), found.shape, found.size) == (600, (600,), 600)
    for which in ([0, -1], np.arange(600), np.array([599, 3, 3, 250]), slice(0, 1), slice(595, None)):
        assert np.array_equal(found[which], wanted[which])
    assert found[-1] == wanted[-1]
    assert np.ndim(found[0]) == 0


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(column: tuple[Any, Sorted], side: Any) -> None:
    wanted, found = column
    points = np.array([-np.inf, -2.0, -0.0, 0.0, 0.1, 2.0, np.inf, wanted[17]])
    assert np.array_equal(np.searchsorted(found, points, side=side), np.searchsorted(wanted, points, side=side))
    assert np.searchsorted(found, 0.5) == np.searchsorted(wanted, 0.5)


def test_what_was_asked_is_remembered_without_the_runs(column: tuple[Any, Sorted]) -> None:
    wanted, found = column
    found[[5, 100]], np.searchsorted(found, [0.25])
    alone = pickle.loads(pickle.dumps(found.alone()))
    assert alone.runs is None
    assert np.array_equal(alone[[100, 5]], wanted[[100, 5]])
    assert np.searchsorted(alone, [0.25]) == np.searchsorted(wanted, [0.25])
    with pytest.raises(NotApplicableError, match="more of the sorted column"):
        alone[[300]]
    with pytest.raises(NotApplicableError, match="more of the sorted column"):
        np.searchsorted(alone, [0.75])


def test_the_whole_column_cannot_be_had(column: tuple[Any, Sorted]) -> None:
    for use in (lambda: np.asarray(column[1]), lambda: column[1] / 2.0):
        with pytest.raises(NotApplicableError, match="larger than memory"):
            use()
    with pytest.raises(TypeError):
        np.sum(column[1])


def test_a_table_is_taken_column_by_column(column: tuple[Any, Sorted]) -> None:
    table = SortedTable([column[1], column[1]])
    assert (table.shape, table.size, len(table)) == ((600, 2), 1200, 600)
    assert table[:, 1] is column[1]
    with pytest.raises(IndexError, match="column by column"):
        table[:5, 1]
