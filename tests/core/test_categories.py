"""Categories in the order that gives them ranks: marginality by brute force, points at their distances, strangers."""

from __future__ import annotations

from collections import Counter
from math import log2

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankveil as rv
from rankveil.categories import Categories, nominal, ordinal
from rankveil.hierarchy import Hierarchy

TREE = Hierarchy(
    [
        ("apple", "pome", "fruit", "*"),
        ("pear", "pome", "fruit", "*"),
        ("plum", "stone", "fruit", "*"),
        ("leek", "bulb", "green", "*"),
        ("onion", "bulb", "green", "*"),
        ("kale", "leaf", "green", "*"),
        ("egg", "egg", "egg", "*"),
    ],
    name="food",
)
LEAVES = TREE.leaves
INNER = ("pome", "fruit", "bulb", "*")


def of(values: list[str], tree: Hierarchy | None = None, *, unused: tuple[str, ...] = ()) -> Categories:
    counts = Counter(values)
    labels = [*counts, *unused]
    return nominal(labels, np.array([float(counts[label]) for label in labels]), tree)


def distance(a: str, b: str, tree: Hierarchy | None) -> float:
    """From sets of nodes, each known by its level."""
    if a == b or tree is None:
        return float(a != b)
    mine, yours = (set(enumerate(reversed(tree.path(label)))) for label in (a, b))
    return log2(1 + len(mine ^ yours) / len(mine | yours))


VALUES = st.lists(st.sampled_from(LEAVES + INNER), min_size=1, max_size=30)


def test_worked_by_hand_on_five_values() -> None:
    # without a hierarchy: 5 - 2 = 3 for apple and leek, of which apple is first by its label, and 4 for plum
    plain = of(["leek", "apple", "plum", "leek", "apple"])
    assert plain.labels == ("apple", "leek", "plum")
    assert plain.marginality is not None
    assert plain.marginality.tolist() == [3, 3, 4]
    assert plain.variance == pytest.approx((2 * 3 + 2 * 3 + 4) / 5)
    # with it, fruits share 2 of 6 nodes (log2(5/3)), a fruit and a leek 1 of 7 (log2(13/7))
    tree = of(["leek", "apple", "plum", "leek", "apple"], TREE)
    near, far = log2(1 + 4 / 6), log2(1 + 6 / 7)
    assert tree.labels == ("apple", "leek", "plum")
    assert tree.marginality == pytest.approx(np.array([near + 2 * far, 3 * far, 2 * near + 2 * far]))
    assert tree.variance == pytest.approx((2 * (near + 2 * far) + 2 * 3 * far + 2 * near + 2 * far) / 5)
    assert tree.ranking == "marginality by the hierarchy food"
    assert plain.ranking == "marginality by equal or different (the most frequent category first)"


@settings(max_examples=150, deadline=None)
@given(VALUES, st.sampled_from([None, TREE]))
def test_marginality_is_the_sum_of_distances_to_all_values(values: list[str], tree: Hierarchy | None) -> None:
    made = of(values, tree)
    assert made.marginality is not None
    wanted = [sum(distance(label, value, tree) for value in values) for label in made.labels]
    assert made.marginality == pytest.approx(np.array(wanted), abs=1e-9)
    assert made.variance == pytest.approx(sum(wanted[made.labels.index(value)] for value in values) / len(values))
    assert np.all(np.diff(np.round(wanted, 6)) >= 0)  # the most central first
    assert made.distances == pytest.approx(np.array([[distance(a, b, tree) for b in made.labels] for a in made.labels]))
    assert of(values[::-1], tree).labels == made.labels  # whatever the order of the rows


def test_equal_marginality_is_ordered_by_the_hierarchy_and_then_by_the_label() -> None:
    once = of(list(LEAVES))
    assert once.labels == tuple(sorted(LEAVES))
    pairs = of(["plum", "leek", "kale", "apple"], TREE)  # two fruits of two groups, two greens of two groups
    assert pairs.labels == ("apple", "plum", "leek", "kale")  # fruit: pome, stone; green: bulb, leaf
    assert len({float(value) for value in pairs.values}) == 4


def test_the_order_does_not_depend_on_the_last_digits_of_sums() -> None:
    # as many of each: all leaves of one shape have the same marginality, however it is summed
    rows = [(f"{group}{leaf}", group, "*") for group in "zyx" for leaf in range(7)]
    tree = Hierarchy(rows)
    labels = [row[0] for row in rows]
    for copies in (1, 3, 977, 123_457):
        made = nominal(labels, np.full(len(labels), float(copies)), tree)
        assert made.labels == tuple(sorted(labels))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(LEAVES), min_size=1, max_size=20), st.sampled_from([None, TREE]))
def test_points_of_leaves_are_at_their_distances(values: list[str], tree: Hierarchy | None) -> None:
    made = of(values, tree)
    points = made.coordinates()
    apart = np.sqrt(np.sum((points[:, None, :] - points[None, :, :]) ** 2, axis=2))
    assert apart == pytest.approx(made.distances, abs=1e-12)


def test_points_of_groups_stand_beside_their_leaves() -> None:
    made = of(["pome", "apple", "leek", "fruit"], TREE)
    points = dict(zip(made.labels, made.coordinates(), strict=True))

    def apart(a: str, b: str) -> float:
        return float(np.linalg.norm(points[a] - points[b]))

    assert apart("pome", "apple") == pytest.approx(distance("apple", "pear", TREE))
    assert apart("fruit", "apple") == pytest.approx(distance("apple", "plum", TREE))
    assert apart("pome", "leek") == pytest.approx(distance("apple", "leek", TREE))


def test_points_of_levels_are_their_places() -> None:
    made = ordinal(("low", "middle", "high"), np.array([5.0, 0.0, 1.0]))
    assert made.coordinates().tolist() == [[0], [1], [2]]
    assert made.distances.tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    assert made.values.tolist() == [0, 1, 2]
    assert made.extended(["none"]) is made
    assert made.ranking == "the order of its levels"
    with pytest.raises(ValueError, match="variance of their places"):
        _ = made.variance


@settings(max_examples=150, deadline=None)
@given(VALUES, st.sets(st.sampled_from([*LEAVES, *INNER, "salt", "zinc"])), st.sampled_from([None, TREE]))
def test_strangers_stand_where_their_marginality_puts_them(
    values: list[str], others: set[str], tree: Hierarchy | None
) -> None:
    known = of(values, tree)
    strangers = sorted(others - set(values))
    made = known.extended(strangers)
    assert set(made.labels) == set(values) | set(strangers)
    place = dict(zip(made.labels, made.values.tolist(), strict=True))
    assert [place[label] for label in known.labels] == known.values.tolist()
    assert np.all(np.diff(made.values) > 0)  # nobody shares a place
    assert made.marginality is not None
    wanted = [sum(distance(label, value, tree) for value in values) for label in made.labels]
    if not {"salt", "zinc"} & others or tree is None:
        assert made.marginality == pytest.approx(np.array(wanted), abs=1e-9)
    assert np.all(np.diff(np.round(made.marginality, 6)) >= 0)
    assert made.variance == pytest.approx(known.variance)  # they have no values
    assert known.extended([]) is known


def test_strangers_of_the_worked_example() -> None:
    known = of(["leek", "apple", "plum", "leek", "apple"])  # apple 3, leek 3, plum 4
    made = known.extended(["beet", "ham"])  # 5, both: at the end, by their labels
    assert made.labels == ("apple", "leek", "plum", "beet", "ham")
    assert made.values.tolist() == pytest.approx([0, 1, 2, 2 + 1 / 3, 2 + 2 / 3])
    tree = of(["leek", "leek", "leek", "plum"], TREE).extended(["onion"])
    # leek: one at 0.893 (1 of 7 nodes shared); onion: three at 0.485 (3 of 5) and that one; plum: three at 0.893
    assert tree.labels == ("leek", "onion", "plum")
    assert tree.values.tolist() == [0, 0.5, 1]


def test_a_column_is_places_of_its_categories_and_back() -> None:
    food = pa.array(["plum", None, "leek", "leek", "NA", "apple"])
    table = rv.Table(pa.table({"FOOD": food}), schema=rv.Schema(hierarchies={"FOOD": TREE}))
    assert table.labels("FOOD") == ("leek", "apple", "plum")
    assert table.values("FOOD").tolist() == pytest.approx([2, np.nan, 0, 0, np.nan, 1], nan_ok=True)
    again, notes = table.replaced({"FOOD": table.values("FOOD")})
    assert again["FOOD"].to_pylist() == food.to_pylist()
    assert notes == []


def test_both_tables_of_a_pair_are_scored_with_the_originals_marginalities() -> None:
    schema = rv.Schema(roles={"FOOD": "confidential"})
    original = pa.table({"FOOD": ["leek", "leek", "plum", "plum", "plum", "apple"]})
    masked = pa.table({"FOOD": ["apple", "apple", "apple", "apple", "leek", "rice"]})
    both = rv.audit(original, masked, measures=["spearman_risk"], schema=schema)
    assert both.to_dict()["rankings"] == {
        "FOOD": "marginality by equal or different (the most frequent category first)"
    }
    from rankveil.pairing import pair_tables

    pair = pair_tables(original, masked, schema=schema)
    # in the original plum (3), leek (4), apple (5): so apple is last, though most frequent in the masked table
    assert pair.x[:, 0].tolist() == [1, 1, 0, 0, 0, 2]
    assert pair.y[:5, 0].tolist() == [2, 2, 2, 2, 1]
    assert pair.y[5, 0] > 2
    assert "column FOOD: categories only in the masked table: rice" in pair.notes
