"""The contract of methods for categories, labels, identifiers, missing cells and samples, over the whole catalogue."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.catalogue import Method

SEED = "5eed0123456789abcdef5eed0123456789abcdef5eed0123456789abcdef5eed"
HIERARCHY = [(place, place[0], "*") for place in ("na", "nb", "sa", "sb", "sc")]
GIVEN: dict[str, dict[str, Any]] = {
    "distance_swap": {"d": 3},
    "recode": {"level.TOWN": 1},
    "sample": {"share": 0.5},
    "suppress": {"k": 2},  # with more, no age of these few records is left to measure
}
"""What a method must be told before it can do anything."""
LOCAL: dict[str, list[dict[str, Any]]] = {
    "randomized_response": [{"columns": ["TOWN"], "domain": ("na", "nb", "sa", "sb", "sc", "sd")}],
    "recode": [{"level.TOWN": 1}, {"cuts.AGE": "30,50", "cuts.GRADE": "middle"}, {"width.INCOME": 1000.0}],
}
"""With what a method is local that is not always so."""


def frame(n: int = 60, *, draw: int = 4) -> pa.Table:
    """Towns with a hierarchy, grades in order, ages, incomes, households, some cells missing."""
    rng = np.random.default_rng(draw)
    towns = np.array([row[0] for row in HIERARCHY])[rng.integers(0, 5, n)]
    grades = np.array(["low", "middle", "high"])[rng.integers(0, 3, n)]
    return pa.table(
        {
            "PERSON": [f"P{i:03d}" for i in range(n)],
            "TOWN": pa.array(towns, mask=rng.random(n) < 0.1),
            "GRADE": pa.array(grades, mask=rng.random(n) < 0.1),
            "AGE": rng.integers(18, 70, n),
            "INCOME": pa.array(rng.lognormal(10, 1, n).round(), mask=rng.random(n) < 0.1),
            "HOUSE": [f"H{i // 3}" for i in range(n)],
        }
    )


def schema(**roles: str) -> rv.Schema:
    given = {"PERSON": "identifier", "TOWN": "quasi-identifier", "AGE": "quasi-identifier", "HOUSE": "other"}
    return rv.Schema(
        kinds={"GRADE": "ordinal"}, roles={**given, **roles}, hierarchies={"TOWN": rv.Hierarchy(HIERARCHY)}
    )


def release(method: Method, data: Any, *, seed: Any = SEED, **roles: str) -> rv.Release:
    return rv.mask(data, method.id, seed=seed, schema=schema(**roles), **GIVEN.get(method.id, {}))


def test_the_frame_given_stays_as_it_is_and_the_same_seed_gives_the_same_release(other: Method) -> None:
    data = frame().to_pandas()
    before = data.copy(deep=True)
    first, again = release(other, data), release(other, data)
    pd.testing.assert_frame_equal(data, before)
    pd.testing.assert_frame_equal(first.data, again.data)
    if other.random:
        assert not first.data.equals(release(other, data, seed="ab" * 32).data)


def test_columns_that_it_did_not_work_on_pass_untouched(other: Method) -> None:
    data = frame()
    made = release(other, data)
    order = made.secret.order
    for name in made.passed_through:
        expected = data[name] if order is None else data[name].take(pa.array(order))
        assert made.data[name].to_pylist() == expected.to_pylist(), name
    released = [*made.passed_through, *made.changed]
    assert sorted(released) == sorted(made.data.column_names)
    assert len(made.data) == made.manifest["records"]["out"]


def test_missing_cells_stay_missing_unless_it_says_that_it_changes_them(other: Method) -> None:
    data = frame()
    made = release(other, data)
    order = made.secret.order if made.secret.order is not None else np.arange(len(data))
    for name in made.changed:
        gone = [data[name].to_pylist()[row] is None for row in order]
        now = [cell is None or cell == "" for cell in made.data[name].to_pylist()]
        assert other.changes_missing or now == gone, name


def test_labels_are_the_columns_own_and_as_many_of_each_where_marginals_are_kept(other: Method) -> None:
    data = frame()
    made = release(other, data)
    for name in made.changed if other.marginals == "kept" else ():
        before, after = data[name].to_pylist(), made.data[name].to_pylist()
        assert sorted(map(shown, after)) == sorted(map(shown, before)), name


def test_the_manifest_is_json_and_tells_no_secret(other: Method) -> None:
    made = release(other, frame())
    text = made.manifest.to_json()
    # identifiers are dropped before rows are put in another order, and where nothing takes their place
    dropped = [] if other.role == "identifier" else ["drop"]
    assert {each["method"] for each in json.loads(text)["steps"]} >= {other.id, *dropped}
    assert SEED not in text
    others = text.replace(made.manifest["digest"], "")
    assert not re.search(r"[0-9a-fA-F]{24,}", others), "no key and no hash of any kind but that of the release"


@pytest.mark.parametrize("kind", ["pandas", "polars", "csv"])
def test_libraries_agree(other: Method, kind: str) -> None:
    data = frame()
    if kind == "csv":  # every cell as text, missing ones empty
        texts = {
            name: ["" if cell is None else str(cell) for cell in data[name].to_pylist()] for name in data.schema.names
        }
        converted: Any = pa.table(texts)
    else:
        converted = data.to_pandas() if kind == "pandas" else __import__("polars").from_arrow(data)
    made, plain = release(other, converted), release(other, data)
    assert made.changed == plain.changed
    for name in plain.data.column_names:
        ours = plain.data[name].to_pylist()
        theirs = made.data[name].to_pylist() if isinstance(made.data, pa.Table) else made.data[name].to_list()
        assert [shown(cell) for cell in theirs] == [shown(cell) for cell in ours], name


def shown(cell: Any) -> str:
    if cell is None or cell == "" or cell is pd.NA or cell != cell:
        return ""
    try:
        return f"{float(cell):g}"
    except ValueError:
        return str(cell)


def test_columns_of_groups_stay_the_same_within_a_group(other: Method) -> None:
    data = frame()
    towns = [data["TOWN"].to_pylist()[3 * (row // 3)] for row in range(len(data))]
    ages = [data["AGE"].to_pylist()[3 * (row // 3)] for row in range(len(data))]
    data = data.set_column(1, "TOWN", [towns]).set_column(3, "AGE", [ages])
    made = release(other, data, HOUSE="group")
    for name in ("TOWN", "AGE"):
        seen: dict[str, set[str]] = {}
        for house, cell in zip(made.data["HOUSE"].to_pylist(), made.data[name].to_pylist(), strict=True):
            seen.setdefault(house, set()).add(shown(cell))
        assert all(len(cells) == 1 for cells in seen.values()), name


def test_values_of_groups_stay_the_same_where_some_cells_of_a_group_are_missing(other: Method) -> None:
    data = frame()
    houses = data["HOUSE"].to_pylist()
    first = {house: row for row, house in reversed(list(enumerate(houses)))}
    for place, name in ((1, "TOWN"), (3, "AGE")):
        shared = [data[name].to_pylist()[first[house]] for house in houses]
        gaps = [None if row % 7 == 3 else cell for row, cell in enumerate(shared)]
        assert any(gap != cell for gap, cell in zip(gaps, shared, strict=True))
        data = data.set_column(place, name, pa.array(gaps, data.schema.field(name).type))
    made = release(other, data, HOUSE="group").data
    for name in ("TOWN", "AGE"):
        seen: dict[str, set[str]] = {}
        for house, cell in zip(made["HOUSE"].to_pylist(), made[name].to_pylist(), strict=True):
            seen.setdefault(house, set()).add(shown(cell))
        assert all(len(cells - {""}) <= 1 for cells in seen.values()), name


def test_one_record_and_constant_columns_give_a_release_or_a_clear_refusal(other: Method) -> None:
    whole = frame()
    for data in (whole.slice(0, 1), pa.concat_tables([whole.slice(0, 1)] * 4)):
        said = ""
        try:
            made = release(other, data)
        except rv.RankveilError as error:
            said = str(error)
        else:
            json.loads(made.manifest.to_json())
        assert not said or (len(said) > 10 and "\n" not in said)


def test_it_can_be_audited(other: Method) -> None:
    data = frame()
    made = release(other, data)
    kept = schema()
    if set(made.data.column_names) < set(data.column_names):
        kept = rv.Schema(kinds=kept.kinds, roles=kept.roles, hierarchies=kept.hierarchies).only(made.data.column_names)
    masked = rv.Table(made.data, schema=kept)
    audit = rv.audit(rv.Table(data, schema=schema()), masked, secret=made.secret)
    assert not any("could not be computed" in why for why in audit.not_applicable.values()), audit.not_applicable
    assert audit["k_anonymity"] >= 1
    json.dumps(audit.to_dict(), allow_nan=False)


def may_be_local(method: Method) -> bool:
    return bool(method.local or method.local_with or method.locality)


@pytest.mark.only(where=may_be_local)
def test_where_it_is_local_a_cell_depends_on_its_own_record_alone(other: Method) -> None:
    here, elsewhere, row = frame(), frame(draw=9), 17
    mixed = pa.concat_tables([elsewhere.slice(0, row), here.slice(row, 1), elsewhere.slice(row + 1)])
    for given in LOCAL.get(other.id, [{}]):
        one, two = (rv.mask(data, other.id, seed=SEED, schema=schema(), **given) for data in (here, mixed))
        assert one.manifest["steps"][0]["facts"]["local"] is True
        assert list(one.changed) == list(two.changed) != []
        for name in one.changed:
            assert one.data[name][row].as_py() == two.data[name][row].as_py() is not None, name
