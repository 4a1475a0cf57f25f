"""Tables as people have them, and worse, through every method: a release that is whole, or one sentence."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import rankveil as rv
from rankveil import catalogue
from rankveil.plans import Plan

METHODS = sorted(catalogue.methods())
LIBRARIES: dict[str, Callable[[pa.Table], Any]] = {
    "pyarrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "pandas, an index": lambda table: table.to_pandas().set_index(np.arange(len(table))[::-1] * 7),
    "pandas, types of its own": lambda table: table.to_pandas().convert_dtypes(),
    "pandas, types of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
}
KINDS = [None] * 12 + ["numeric", "ordinal", "nominal"]
ROLES = [None] * 4 + ["quasi-identifier"] * 3 + ["confidential", "identifier", "other"]


def some(share: int) -> settings:
    """A part of the examples that the profile gives to one test, for a test that runs once for every method."""
    return settings(max_examples=max(settings.default.max_examples // share, 1))


@st.composite
def schemas(draw: st.DrawFn, table: pa.Table) -> rv.Schema:
    """What somebody may declare of the columns, right or wrong."""
    names = table.column_names[:6]
    if not names or draw(st.booleans()):
        return rv.Schema()
    kinds = {name: kind for name in names if (kind := draw(st.sampled_from(KINDS)))}
    roles = {name: role for name in names if (role := draw(st.sampled_from(ROLES)))}
    for role in ("weight", "group"):
        if draw(st.integers(0, 9)) == 9:
            roles[draw(st.sampled_from(names))] = role
    grouped = {}
    for name, column in zip(names, table.columns, strict=False):
        if pa.types.is_string(column.type) and draw(st.booleans()):
            labels = {str(cell).strip() for cell in column.drop_null().to_pylist()} - {""}
            grouped[name] = [(label, label[:1], "*") for label in sorted(labels)] or [("low", "*")]
    missing = draw(st.sampled_from([(), ("-9", "n/a"), ("0",)]))
    return rv.Schema(kinds=kinds, roles=roles, missing=missing, hierarchies=grouped)


def masked(data: Any, plan: Plan, schema: rv.Schema) -> rv.Release | str:
    """The release, or the sentence by which it was refused; whatever else is raised is a mistake."""
    try:
        release = rv.mask(data, plan, schema=schema, seed=1)
    except rv.RankveilError as error:
        said = str(error)
        assert len(said.split()) > 2, f"a sentence: {said!r}"
        assert not any(mark in said for mark in "\n\r\0"), f"one line: {said!r}"
        assert "Error" not in said, f"words of a person, not of Python: {said!r}"
        assert "Traceback" not in said
        assert "object at 0x" not in said
        return said
    return release


def cells_of(data: Any) -> dict[str, list[Any]]:
    """The cells of every column, the missing ones of every library as None."""
    if isinstance(data, pa.Table):
        return {name: data[name].to_pylist() for name in data.column_names}
    return {
        name: [None if cell is pd.NA or cell is pd.NaT else cell for cell in data[name].to_list()]
        for name in data.columns
    }


def there(cells: list[Any]) -> NDArray[np.bool_]:
    """Which cells hold a finite number, or whatever else is not missing."""
    gone = (None, math.inf, -math.inf)
    return np.array([isinstance(cell, np.ndarray) or (cell == cell and cell not in gone) for cell in cells], dtype=bool)


def look_whole(release: rv.Release, data: Any, plan: Plan) -> None:
    """As many records and columns as the manifest says, no number lost, and nothing that JSON cannot hold."""
    assert type(release.data) is type(data)
    json.dumps(json.loads(release.manifest.to_json(), parse_constant=pytest.fail))
    json.loads(release.secret.to_json())
    before, after = cells_of(data), cells_of(release.data)
    dropped = {column["name"] for column in release.manifest["columns"] if column["dropped"]}
    assert list(after) == [name for name in before if name not in dropped], "the columns in their order"
    rows = np.arange(len(data)) if release.secret.order is None else release.secret.order
    assert len(release.data) == len(rows) == release.manifest["records"]["out"]
    assert len(data) == release.manifest["records"]["in"]
    changed = {name for step in plan.steps if step.entry.changes_missing for name in release.changed}
    for name in after.keys() - changed:
        lost = np.flatnonzero(there(before[name])[rows] & ~there(after[name]))
        assert not lost.size, f"column {name}: cells were lost in rows {lost}"
    for name in release.passed_through:
        kept = [before[name][row] for row in rows]
        assert all(one is two or one == two or one != one for one, two in zip(kept, after[name], strict=True)), name


def in_library(table: pa.Table, library: str) -> Any:
    """The table as a frame of a library, or as it is where that cannot hold it."""
    try:
        return LIBRARIES[library](table)
    except (pa.ArrowException, pl.exceptions.PolarsError, ValueError, OverflowError):
        return table


def check(frame: Any, plan: Plan, schema: rv.Schema) -> None:
    """One frame through a plan, which leaves it as it is."""
    copied = copy.deepcopy(frame)
    made = masked(frame, plan, schema)
    if isinstance(frame, pd.DataFrame):
        pd.testing.assert_frame_equal(frame, copied, check_exact=True)
    elif isinstance(frame, pl.DataFrame):
        assert frame.equals(copied), "the frame given was changed"
    if isinstance(made, rv.Release):
        look_whole(made, frame, plan)


@pytest.mark.parametrize("method", METHODS)
@some(4)
@given(data=st.data())
def test_a_whole_release_or_one_sentence(
    method: str, data: st.DataObject, tables: Any, plans: Any, content: Any, tally: Any
) -> None:
    table = data.draw(tables(wide=False), label="table")
    plan = data.draw(plans(catalogue.get_method(method), table.column_names[:9]), label="plan")
    schema = data.draw(schemas(table), label="schema")
    frame = in_library(table, data.draw(st.sampled_from(sorted(LIBRARIES)), label="library"))
    before = content(table)
    check(frame, plan, schema)
    assert content(table) == before, "the table given was changed"
    tally("tables through methods")


@some(5)
@given(data=st.data())
def test_hundreds_of_columns(data: st.DataObject, tables: Any, plans: Any, content: Any, tally: Any) -> None:
    few = data.draw(
        tables(most=12, wide=False, plain_names=True).filter(lambda table: table.num_columns), label="table"
    )
    names = [f"V{j}" for j in range(500)]
    table = pa.table([few.column(j % few.num_columns) for j in range(500)], names=names)
    method = catalogue.get_method(data.draw(st.sampled_from(METHODS), label="method"))
    before = content(table)
    check(table, data.draw(plans(method, names[:9]), label="plan"), rv.Schema())
    assert content(table) == before, "the table given was changed"
    tally("tables of 500 columns through methods")


@pytest.mark.parametrize("method", METHODS)
@some(12)
@given(data=st.data())
def test_no_sentence_tells_a_value(method: str, data: st.DataObject, plans: Any, tally: Any) -> None:
    n = data.draw(st.integers(1, 12), label="records")
    scale = data.draw(st.sampled_from([1.0, 1e-9, -1.0, 1e290]), label="scale")
    whole, labels = [73519284600 + i for i in range(n)], [f"quokka {i}" for i in range(n)]
    table = pa.table({"V0": [scale * number for number in whole], "V1": whole, "V2": labels})
    plan = data.draw(plans(catalogue.get_method(method), table.column_names), label="plan")
    schema = data.draw(schemas(table), label="schema")
    made = masked(table, plan, schema)
    told = made if isinstance(made, str) else made.manifest.to_json()
    marks = ["735192846", "735193", "quokka"]  # the number as it is, the first digits of it, the label
    assume(not any(mark in repr(plan).replace(".", "") for mark in marks))
    assume("the domain misses" not in told)  # a label that is not where somebody listed all of them is named
    assert not any(mark in told.replace(".", "") for mark in marks), told
    tally("sentences and manifests searched for values")
