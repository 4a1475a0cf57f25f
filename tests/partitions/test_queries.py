"""Queries that every partition answers give what one search in the whole table gives."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankveil.linkage import Linker
from rankveil.partitions import queries
from rankveil.partitions.layout import Sizes
from rankveil.partitions.queries import Answers, drawn_rows, linked, remove_answers
from rankveil.partitions.samples import sample, sampled
from rankveil.partitions.stages import ranked
from rankveil.ranks import average_ranks
from rankveil.seeds import Seed

TINY = Sizes(interval=8, span=25)
METRICS = ("euclidean", "maximum")


@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_the_nearest_are_those_of_the_whole_table(data: Any, partitioned: Any, each: Any) -> None:
    n = data.draw(st.integers(1, 50))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    levels = data.draw(st.sampled_from([2, 5, 1000]))  # many records at the same place, some, hardly any
    x, y = (rng.integers(0, levels, (n, 2)).astype(float) for _ in range(2))
    rows = np.sort(rng.permutation(n)[: data.draw(st.integers(1, n))])
    cuts = data.draw(st.lists(st.integers(0, n), max_size=5))
    with partitioned(x, y, cuts=cuts, sizes=TINY) as job:
        ranked(job, each)
        found = linked(job, each, rows, METRICS, ties=True)
        short = linked(job, each, rows, METRICS)
        remove_answers(job, each, rows, METRICS)
        assert {name.partition("-")[0] for name in os.listdir(job.scratch.folder)} == {"ranks"}
    for metric in METRICS:
        expected = Linker(average_ranks(y), metric=metric).matches(average_ranks(x)[rows])  # type: ignore[arg-type]
        assert np.array_equal(found[metric].distance, expected.distance)  # type: ignore[index]
        assert np.array_equal(found[metric].count, expected.count)  # type: ignore[index]
        assert np.array_equal(found[metric].row, expected.first)  # type: ignore[index]
        assert np.array_equal(short[metric].distance, expected.distance)  # type: ignore[index]


def test_many_asking_records_go_in_groups(partitioned: Any, each: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "GROUP", 90)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 3))
    y = x + 0.2 * rng.normal(size=x.shape)
    with partitioned(x, y, cuts=[50, 100, 100, 310], sizes=TINY) as job:
        ranked(job, each)
        assert queries._groups(job, np.arange(400)) == [(0, 1), (1, 3), (3, 4), (4, 5)]
        found = linked(job, each, np.arange(400), ["euclidean"], ties=True)["euclidean"]
    expected = Linker(average_ranks(y), metric="euclidean").matches(average_ranks(x))
    assert np.array_equal(found.distance, expected.distance)
    assert np.array_equal(found.row, expected.first)


@given(data=st.data())
def test_answers_can_be_merged_in_any_order(data: Any) -> None:
    size = data.draw(st.integers(1, 6))
    parts = []
    for start in range(0, 40, 10):
        distance = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.5, np.inf]), min_size=size, max_size=size)))
        there = np.isfinite(distance)
        parts.append(Answers(distance, np.where(there, 2, 0), np.where(there, start + np.arange(size), -1)))
    order = data.draw(st.permutations(range(4)))
    one = parts[0].merged(parts[1]).merged(parts[2].merged(parts[3]))
    other = Answers.none(size)
    for which in order:
        other = other.merged(parts[which])
    for name in ("distance", "count", "row"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize(("records", "count"), [(1, 1), (10, 3), (1000, 1000), (5000, 700)])
def test_drawn_rows_are_those_of_an_order_of_all(records: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "_AT_A_TIME", 512)
    stream, whole = (Seed.of(9).stream("subjects") for _ in range(2))
    for call in range(2):
        expected = np.sort(whole.order(records)[:count])
        assert np.array_equal(drawn_rows(stream, records, count, call=call), expected)


def test_a_sample_has_the_values_of_its_rows(partitioned: Any, each: Any) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 100, 3))
    few, every = np.array([0, 49, 50, 99]), np.arange(100)
    wanted = {"few": (few, few), "all": (every, every), "apart": (np.array([3]), np.array([50, 51]))}
    with partitioned(x, y, cuts=[50, 50, 70]) as job:
        sampled(job, each, wanted)
        for name, (rows_x, rows_y) in wanted.items():
            found_x, found_y = sample(job, name)
            assert np.array_equal(found_x, x[rows_x])
            assert np.array_equal(found_y, y[rows_y])


def test_the_compiled_search_keeps_to_what_is_known(partitioned: Any, each: Any) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(24_000, 2))
    y = np.where(rng.random((24_000, 1)) < 0.5, x, x[::-1]) + 0.01 * rng.normal(size=x.shape)
    rows = np.sort(rng.permutation(24_000)[:9_000])  # so many pairs with 12,000 records that code is compiled
    with partitioned(x, y, cuts=[12_000]) as job:
        ranked(job, each)
        found = linked(job, each, rows, METRICS)
    for metric in METRICS:
        expected = Linker(average_ranks(y), metric=metric).distances(average_ranks(x)[rows])  # type: ignore[arg-type]
        assert np.array_equal(found[metric].distance, expected)  # type: ignore[index]
