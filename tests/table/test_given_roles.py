"""Weights and groups, by the roles that are given: what they are, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv


def table(values: Any, role: str, **schema: Any) -> rv.Table:
    return rv.Table(pa.table({"W": values, "X": np.arange(len(values))}), schema=rv.Schema(roles={"W": role}, **schema))


@pytest.mark.parametrize("values", [[1.0, 0.0, 2.5], ["1", "0", "2.5"], pa.array([1.0, 0.0, 2.5], pa.float32())])
def test_weights_are_numbers(values: Any) -> None:
    weight = table(values, "weight").weight
    assert weight is not None
    assert weight.tolist() == [1, 0, 2.5]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([1.0, None, 2.0, None], "column W: missing weights (rows 2, 4); a weight is 0 or more"),
        ([1.0, -0.5, 2.0], "column W: a negative weight (row 2); a weight is 0 or more"),
        ([0.0, 0.0], "column W: all weights are 0, so no record counts"),
        (["heavy", "light"], "column W: a weight is a number; give the column another role"),
        (["2024-01-31", "2024-02-01"], "column W: a weight is a number; give the column another role"),
        ([1.0, 1e306, 2.0], "column W: a too large weight (row 2); a weight is at most 1e+100"),
        ([1.0, np.inf], "column W: infinite values (row 2); remove or declare them missing"),
    ],
)
def test_what_is_no_weight(values: Any, sentence: str) -> None:
    with pytest.raises(rv.TableError) as caught:
        _ = table(values, "weight").weight
    assert str(caught.value) == sentence


def test_a_weight_that_is_declared_missing_is_missing() -> None:
    with pytest.raises(rv.TableError, match=r"column W: a missing weight \(row 2\)"):
        _ = table([1, -9, 2], "weight", missing=("-9",)).weight


def test_groups_are_numbered_and_a_missing_one_is_a_group_of_its_own() -> None:
    group = table(["b", None, "a", "b", None, "NA"], "group").group
    assert group is not None
    assert group[0] == group[3]
    assert np.unique(group).size == 5
    seven = table(pa.array([7.0, 7.0, 8.0]), "group").group
    assert seven is not None
    assert seven[0] == seven[1] != seven[2]


def test_without_the_role_there_is_neither() -> None:
    plain = rv.Table(pa.table({"WEIGHT": [1.0], "HOUSEHOLD": ["a"]}))
    assert plain.weight is None
    assert plain.group is None


def test_groups_of_lists_are_refused() -> None:
    with pytest.raises(rv.TableError, match="column W: it holds values of type list"):
        _ = table(pa.array([[1], [2]]), "group").group


@pytest.mark.parametrize("role", ["weight", "group"])
def test_one_column_alone_has_the_role(role: str) -> None:
    with pytest.raises(rv.ParameterError, match=f"only one column can be the {role}, not A, B"):
        rv.Table(pa.table({"A": [1], "B": [1]}), schema=rv.Schema(roles={"A": role, "B": role}))
    with pytest.raises(rv.TableError, match="there is no column C"):
        rv.Table(pa.table({"A": [1], "B": [1]}), schema=rv.Schema(roles={"C": role}))


def test_a_role_that_there_is_not() -> None:
    with pytest.raises(rv.ParameterError, match="column A: there is no role weigth; did you mean weight"):
        rv.Table(pa.table({"A": [1]}), schema=rv.Schema(roles={"A": "weigth"}))


def test_a_hierarchy_declares_the_kind_of_its_column() -> None:
    data = pa.table({"TOWN": ["Ulm", "Bonn", "Ulm"], "OTHER": ["a", "b", "a"]})
    schema = rv.Schema(hierarchies={"TOWN": [("Ulm", "South"), ("Bonn", "West")]})
    seen = rv.inspect(data, schema=schema)
    assert (seen["TOWN"].kind, seen["TOWN"].kind_given) == ("nominal", True)
    assert (seen["OTHER"].kind, seen["OTHER"].kind_given) == ("nominal", False)


@pytest.mark.parametrize("role", ["weight", "identifier", "group"])
def test_a_role_of_a_column_that_the_release_dropped_is_not_held_against_it(role: str) -> None:
    original = pa.table({"A": [1.0, 2.0, 3.0, 4.0], "W": [1.0, 2.0, 1.0, 2.0]})
    masked, schema = original.select(["A"]), rv.Schema(roles={"W": role})
    made = rv.audit(original, masked, measures=["permutation_level"], schema=schema)
    assert made["permutation_level"] == 0
    assert rv.reverse_map(original, masked, schema=schema).equals(masked)


def test_a_wrong_weight_of_the_release_says_so() -> None:
    original = pa.table({"A": [1.0, 2.0], "W": [1.0, 1.0]})
    masked = original.set_column(1, "W", [[1.0, -1.0]])
    with pytest.raises(rv.TableError, match=r"masked table, column W: a negative weight \(row 2\)"):
        rv.audit(original, masked, schema=rv.Schema(roles={"W": "weight"}))


@pytest.mark.parametrize("role", ["quasi-identifier", "confidential"])
def test_a_column_of_missing_labels_is_not_compared_whatever_its_role(role: str) -> None:
    empty = pa.table({"A": [1.0, 2.0, 3.0], "L": ["", "", ""]})
    schema = rv.Schema(roles={"L": role})
    assert rv.audit(empty, empty, measures=["permutation_level"], schema=schema).attributes == ("A",)
    with pytest.raises(rv.TableError, match="column L: all its cells are missing; leave it out"):
        rv.audit(empty, empty, columns=["A", "L"], schema=schema)


def test_a_column_that_is_said_to_be_no_identifier_is_read_as_its_numbers() -> None:
    squares = pa.table({"B": [float(i * i) for i in range(200)]})
    assert rv.inspect(squares)["B"].decision.role == "identifier"
    declared = rv.inspect(squares, schema=rv.Schema(roles={"B": "confidential"}))
    assert declared["B"].decision.kind == "numbers"
