"""Hierarchies: the layout of ARX, distances by shared ancestors, and files that are no trees."""

from __future__ import annotations

from math import log2
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil.hierarchy import Hierarchy

CITIES = (("Ulm", "South", "*"), ("Bonn", "West", "*"), ("Köln", "West", "*"))


def refused(rows: object) -> str:
    with pytest.raises(rv.ParameterError) as caught:
        Hierarchy.of(rows, name="regions")
    return str(caught.value)


def table(labels: list[str | None], rows: object = CITIES) -> rv.Table:
    return rv.Table(pa.table({"CITY": pa.array(labels, pa.string())}), schema=rv.Schema(hierarchies={"CITY": rows}))


def test_distances_by_hand() -> None:
    # Bonn and Köln: 2 of 4 nodes shared (West, *), so log2(1 + 2/4); Bonn and Ulm: 1 of 5, so log2(1 + 4/5)
    made = Hierarchy(CITIES).distances(["Bonn", "Köln", "Ulm"])
    near, far = log2(1.5), log2(1.8)
    assert made == pytest.approx(np.array([[0, near, far], [near, 0, far], [far, far, 0]]), abs=1e-15)
    # West has the nodes West and *: Bonn has one more; Ulm shares * alone, 1 of 4 nodes in all
    inner = Hierarchy(CITIES).distances(["West", "*"], ["Bonn", "Ulm"])
    assert inner == pytest.approx(np.array([[log2(1 + 1 / 3), log2(1.75)], [log2(1 + 2 / 3)] * 2]), abs=1e-15)


def test_a_stranger_is_as_far_as_can_be_from_all_but_itself() -> None:
    made = Hierarchy(CITIES).distances(["Oslo", "Bonn"], ["Oslo", "Rome", "Bonn"])
    assert made.tolist() == [[0, 1, 1], [1, 1, 0]]
    assert Hierarchy(CITIES).distances([], ["Bonn"]).shape == (0, 1)
    assert Hierarchy(CITIES).missing(["Bonn", "Oslo", "West"]) == ["Oslo"]
    assert Hierarchy(CITIES).path("Oslo") == ()


def test_levels_of_leaves_and_of_groups() -> None:
    regions = Hierarchy(CITIES)
    assert [regions.level("Bonn", level) for level in range(3)] == ["Bonn", "West", "*"]
    assert [regions.level("West", level) for level in range(3)] == ["West", "West", "*"]
    assert regions.path("West") == ("West", "*")
    assert (regions.height, regions.leaves) == (2, ("Ulm", "Bonn", "Köln"))
    assert "South" in regions
    with pytest.raises(rv.ParameterError, match="it has levels 0 to 2, not 3"):
        regions.level("Bonn", 3)
    with pytest.raises(rv.ParameterError, match="'Bon' is not in the hierarchy; did you mean Bonn"):
        regions.level("Bon", 1)


def test_a_short_branch_repeats_its_labels() -> None:
    made = Hierarchy([("a", "a", "*"), ("b", "B", "*"), ("c", "B", "*")])
    # a stands on two levels of its own: with b it shares 1 of 5 nodes
    assert made.distances(["a"], ["b"]).tolist() == [[pytest.approx(log2(1.8))]]
    assert [made.level("a", level) for level in range(3)] == ["a", "a", "*"]
    assert made.path("a") == ("a", "a", "*")
    # and a group may be one of its own leaves
    assert Hierarchy([("a", "a", "*"), ("b", "a", "*")]).distances(["a"], ["b"]).tolist() == [
        [pytest.approx(log2(1.5))]
    ]


@pytest.mark.parametrize("sign", [";", "\t", ","])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_files_of_every_form(tmp_path: Path, sign: str, end: str, mark: str) -> None:
    path = tmp_path / "regions.csv"
    lines = [sign.join(row) for row in CITIES]
    path.write_bytes((mark + end.join([*lines, "", " "])).encode())
    made = Hierarchy.of(path)
    assert made.rows == CITIES
    assert made.name == str(path)


def test_quoted_words_and_spaces_around_them(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text('"cook; chef" ; food ;*\nbaker;food;*\n', encoding="utf-8")
    assert Hierarchy.from_csv(path).rows == (("cook; chef", "food", "*"), ("baker", "food", "*"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(rv.FileError, match=r"no\.csv: the hierarchy cannot be read: no such file"):
        Hierarchy.of(tmp_path / "no.csv")
    latin = tmp_path / "latin.csv"
    latin.write_bytes("Köln;West\n".encode("latin-1"))
    with pytest.raises(rv.FileError, match="it is not UTF-8 text"):
        Hierarchy.of(latin)
    endless = tmp_path / "endless.csv"
    endless.write_text("a;" + "b" * 200_000, encoding="utf-8")
    with pytest.raises(rv.FileError, match="field larger than field limit"):
        Hierarchy.of(endless)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "regions: the hierarchy has no lines"),
        ([("a", "*"), ("b", "B", "*")], "regions: line 2 has 3 levels, the first has 2"),
        ([("a", "*"), ("b", " ")], "regions: line 2 has an empty level"),
        ([("a",), ("b",)], "regions: a hierarchy needs a level above its leaves: leaf;level1;..."),
        ([("a", "A", "*"), ("a", "B", "*")], "regions: 'a' has two parents, 'A' (line 1) and 'B' (line 2)"),
        ([("a", "A", "*"), ("b", "A", "+")], "regions: 'A' has two parents, '*' (line 1) and '+' (line 2)"),
        ([("a", "b", "*"), ("b", "c", "*")], "regions: 'b' has two parents, '*' (line 1) and 'c' (line 2)"),
        ([("a", "b", "*"), ("b", "a", "*")], "regions: 'a' is above itself (through 'b'): a cycle"),
        ([("a", "b", "c"), ("c", "d", "b")], "regions: 'b' is above itself (through 'd'): a cycle"),
        (["a;A;*"], "regions: a line of a hierarchy is (leaf, level 1, ...), not one text"),
        ({"a": "A"}, "regions: a hierarchy is a file or rows of (leaf, level 1, ...), not {'a': 'A'}"),
        (7, "regions: a hierarchy is a file or rows of (leaf, level 1, ...), not 7"),
    ],
)
def test_what_is_no_tree_is_refused(rows: object, sentence: str) -> None:
    assert refused(rows) == sentence


def test_a_line_may_stand_twice() -> None:
    assert Hierarchy([*CITIES, CITIES[0]]).leaves == ("Ulm", "Bonn", "Köln")


def test_a_column_with_a_value_that_its_hierarchy_misses() -> None:
    with pytest.raises(rv.TableError) as caught:
        table(["Ulm", None, "Bon", "Oslo", "Bon"]).values("CITY")
    said = "column CITY: its hierarchy CITY misses 'Bon', which stands in row 3 (and 1 more); add a line for it"
    assert str(caught.value) == f"{said}; did you mean Bonn?"


def test_groups_may_be_values() -> None:
    assert table(["Ulm", "West", "West"]).labels("CITY") == ("West", "Ulm")


def test_a_hierarchy_of_a_column_that_there_is_not() -> None:
    with pytest.raises(rv.TableError, match="there is no column REGION"):
        rv.Table(pa.table({"A": [1]}), schema=rv.Schema(hierarchies={"REGION": CITIES}))


TREES = st.integers(1, 3).flatmap(
    lambda height: st.lists(
        st.tuples(*[st.integers(0, 2) for _ in range(height)]), min_size=1, max_size=12, unique=True
    ).map(
        lambda paths: [
            tuple("/".join(map(str, path[: len(path) - level])) or "*" for level in range(len(path) + 1))
            for path in paths
        ]
    )
)


@settings(max_examples=100, deadline=None)
@given(TREES)
def test_distances_are_those_of_sets_of_nodes(rows: list[tuple[str, ...]]) -> None:
    tree = Hierarchy(rows)
    labels = sorted({word for row in rows for word in row})
    above = {word: set(tree.path(word)) for word in labels}  # labels of different levels are different here
    wanted = [[log2(1 + len(above[a] ^ above[b]) / len(above[a] | above[b])) for b in labels] for a in labels]
    made = tree.distances(labels)
    assert made == pytest.approx(np.array(wanted), abs=1e-15)
    assert np.array_equal(made, made.T)
    assert np.array_equal(tree.distances(labels[::2], labels[1:]), made[::2, 1:])
