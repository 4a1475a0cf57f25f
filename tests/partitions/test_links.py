"""The intruder's links in tables that are cut into parts are those in the whole tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.linkage import LISTED, Linker
from rankveil.pairing import pair_tables
from rankveil.partitions import links as linking
from rankveil.partitions.layout import Sizes
from rankveil.partitions.links import links, released_columns, wanted
from rankveil.partitions.stages import ranked
from rankveil.people.chance import Chance, Distribution, by_chance
from rankveil.seeds import Seed

TINY = Sizes(interval=8, span=25)


def in_memory(x: Any, y: Any) -> Any:
    one, two = (pa.table({f"V{j}": each[:, j] for j in range(each.shape[1])}) for each in (x, y))
    return pair_tables(one, two, seed=0).table


def check(job: Any, each: Any, x: Any, y: Any, rows: Any, *, draws: int) -> None:
    view, released = in_memory(x, y), released_columns(ranked(job, each))
    tried = Chance.of(len(x), x.shape[1], draws=draws, rng=Seed.of(0).stream("chance"))
    found, distance = links(job, each, released, rows, tried)
    linker = Linker(view.rank_z)
    expected = linker.matches(view.rank_x[rows])
    assert np.array_equal(found.answers.distance, expected.distance)
    assert np.array_equal(found.answers.count, expected.count)
    assert np.array_equal(found.answers.row, expected.first)
    listed = found.of(np.arange(rows.size))
    assert np.array_equal(np.concatenate([each for each, _ in listed]), expected.rows)
    apart = np.abs(np.repeat(view.rank_x[rows], np.diff(expected.starts), axis=0) - view.rank_z[expected.rows])
    assert np.array_equal(np.concatenate([each for _, each in listed]) / 2, apart)
    assert (found.listed, [total / 2 for total in found.total]) == (len(apart), apart.sum(axis=0).tolist())
    null = by_chance(view.rank_x, linker, draws=draws, rng=Seed.of(0).stream("chance"))
    made = Distribution.of(distance, exhaustive=tried.exhaustive)
    assert made.to_dict() == null.to_dict()
    assert made.exhaustive == null.exhaustive
    assert np.array_equal(wanted(job, each, released, found), expected.wanted_by)


@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_links_are_those_of_the_whole_table(data: Any, partitioned: Any, each: Any) -> None:
    n, m = data.draw(st.integers(1, 50)), data.draw(st.integers(1, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    levels = data.draw(st.sampled_from([1, 2, 5, 1000]))  # all records at one place, many, some, hardly any
    x, y = (rng.integers(0, levels, (n, m)).astype(float) for _ in range(2))
    rows = np.sort(rng.permutation(n)[: data.draw(st.integers(1, n))])
    cuts = data.draw(st.lists(st.integers(0, n), max_size=5))
    with partitioned(x, y, cuts=cuts, sizes=TINY) as job:
        check(job, each, x, y, rows, draws=40)


def test_random_records_are_a_sample_when_there_are_too_many(partitioned: Any, each: Any) -> None:
    rng = np.random.default_rng(4)
    x = np.round(rng.normal(size=(400, 3)), 1)
    y = x + 0.3 * rng.normal(size=x.shape)
    with partitioned(x, y, cuts=[100, 100, 310], sizes=TINY) as job:
        check(job, each, x, y, np.arange(0, 400, 3), draws=200)


def test_more_records_than_a_task_holds(partitioned: Any, each: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "GROUP", 70)
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 3))
    y = x + 0.2 * rng.normal(size=x.shape)
    with partitioned(x, y, cuts=[90, 200], sizes=TINY) as job:
        check(job, each, x, y, np.arange(300), draws=200)


def test_more_equally_near_records_than_are_listed(partitioned: Any, each: Any) -> None:
    x = np.repeat([[0.0, 1.0], [1.0, 0.0]], 2 * LISTED, axis=0)
    with partitioned(x, x, cuts=[70, 150, 333], sizes=TINY) as job:
        check(job, each, x, x, np.arange(0, 4 * LISTED, 7), draws=50)


def test_the_compiled_search_keeps_to_what_is_known(partitioned: Any, each: Any) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(24_000, 2))
    y = np.where(rng.random((24_000, 1)) < 0.5, x, x[::-1]) + 0.01 * rng.normal(size=x.shape)
    rows = np.sort(rng.permutation(24_000)[:9_000])  # so many pairs with 12,000 records that code is compiled
    with partitioned(x, y, cuts=[12_000]) as job:
        check(job, each, x, y, rows, draws=300)
