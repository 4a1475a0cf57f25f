"""Dropping columns: they are not in the release, and nothing that follows stumbles over that."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.methods.drop import drop

NAMES = rv.Schema(roles={"PERSON": "identifier"})


def test_the_columns_named_are_those_dropped() -> None:
    assert drop(("A", "B")) == ("A", "B")


@pytest.mark.parametrize("kind", ["pyarrow", "pandas", "polars"])
def test_identifiers_go(kind: str) -> None:
    data: Any = rv.datasets.demo(20)
    if kind != "pyarrow":
        data = data.to_pandas() if kind == "pandas" else pytest.importorskip("polars").from_arrow(data)
    release = rv.mask(data, "drop", schema=NAMES)
    names = list(rv.datasets.demo(5).column_names)
    left = list(release.data.column_names if kind == "pyarrow" else release.data.columns)
    assert left == [name for name in names if name != "PERSON"]
    assert type(release.data) is type(data)
    assert not any("identifier" in note for note in release.notes)
    told = {column["name"]: column["dropped"] for column in release.manifest["columns"]}
    assert [name for name, gone in told.items() if gone] == ["PERSON"]


def test_identifiers_must_be_named_or_given_the_role() -> None:
    numbers = rv.datasets.demo(20).select(["AGE", "INCOME"])
    with pytest.raises(rv.ParameterError, match="no column was given the role identifier"):
        rv.mask(numbers, "drop")
    with pytest.raises(rv.TableError, match="there is no column PERSONS"):
        rv.mask(rv.datasets.demo(20), "drop", columns=["PERSONS"])


def test_with_other_steps_and_an_audit() -> None:
    data = rv.datasets.demo(60)
    plan = rv.Plan.of("rank_swap", p=10).then("drop", columns=["PERSON", "TAX"])
    assert rv.Plan.from_toml(plan.to_toml()) == plan
    release = rv.mask(data, plan, seed=1)
    assert "TAX" not in release.data.column_names
    assert "TAX" not in release.changed
    with pytest.raises(rv.PairError, match="the masked one has no TAX"):
        rv.audit(data, release.data)
    audit = rv.audit(data, release.data, columns=["AGE", "INCOME"], measures=["cm3"])
    assert audit["cm3"] >= 0
    # an identifier that was declared one is not compared, so it may be gone
    gone = rv.mask(data, "drop", schema=NAMES).data
    kept = rv.audit(rv.Table(data, schema=NAMES), rv.Table(gone), measures=["cm3"])
    assert "PERSON" not in kept.attributes
    with pytest.raises(rv.ParameterError, match="column TAX was dropped by an earlier step"):
        rv.mask(data, plan.then("rank_swap", columns=["TAX"]), seed=1)


def test_a_pipeline_keeps_its_columns() -> None:
    with pytest.raises(rv.ParameterError, match="drop leaves columns out, and a pipeline does that"):
        rv.Masker("drop", columns=["AGE"]).fit(rv.datasets.demo(20).to_pandas())


def test_every_column_cannot_go() -> None:
    with pytest.raises(rv.ParameterError, match="it would drop every column"):
        rv.mask(rv.datasets.demo(5), "drop", columns=rv.datasets.demo(5).column_names)


def test_a_column_that_is_named_twice_is_said() -> None:
    with pytest.raises(rv.TableError, match="column A is named twice"):
        rv.mask(pa.table({"A": [1.0], "B": [2.0]}), "drop", columns=["A", "A"])
