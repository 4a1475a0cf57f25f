"""The subject's check on files with codes: labels stand for values, and missing codes are no values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import rankveil as rv
from rankveil import metadata
from rankveil.errors import ParameterError
from rankveil.metadata import Described

SAID = {
    "age": Described(missing_ranges=((900, 999),), program="spss"),
    "region": Described(
        value_labels=((1, "North"), (2, "South"), (-9, "Refused")), missing_codes=(-9,), level="nominal", program="spss"
    ),
    "work": Described(value_labels=((1, "Other"), (2, "Other")), level="nominal", program="spss"),
}


@pytest.fixture
def released() -> pa.Table:
    plain = pa.table({"age": [20.0, 40.0, 60.0, 999.0], "region": [1, 2, 1, -9], "work": [1, 2, 2, 1]})
    fields = [metadata.write(field, SAID[field.name]) for field in plain.schema]
    return pa.Table.from_arrays(plain.columns, schema=pa.schema(fields))


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"age": "999"}, "column age: 999 is a missing code and no value; leave age out"),
        ({"age": 950.0}, "column age: 950.0 is a missing code and no value; leave age out"),
        ({"region": "-9"}, "column region: -9 is a missing code and no value; leave region out"),
        ({"region": "Refused"}, "column region: Refused is a missing code and no value; leave region out"),
        ({"region": "East"}, r"column region: 'East' is not among its categories 1 \(North\), 2 \(South\)"),
        ({"work": "Other"}, "column work: Other is the label of 1, 2; give the one that is meant"),
    ],
)
def test_what_is_no_value_of_the_file_is_refused(released: pa.Table, record: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        rv.verify(released, record)


def test_a_marker_that_was_declared_missing_is_no_value() -> None:
    data = pa.table({"A": [1, 2, 3, 99]})
    with pytest.raises(ParameterError, match="99 is a missing code and no value; leave A out"):
        rv.verify(data, {"A": 99}, schema=rv.Schema(missing=("99",)))


def test_a_label_stands_for_its_value(released: pa.Table) -> None:
    named, coded = (rv.verify(released, {"region": given, "age": 38}) for given in ("South", "2"))
    assert (named.nearest, named.record, named.d.tolist()) == (coded.nearest, coded.record, coded.d.tolist())
    assert named.nearest[0] == "2"
    assert "column region: South is the label of 2" in named.notes
    assert "column region: the nearest released value 2 stands for South" in coded.notes


def test_the_subjects_page_tells_what_codes_stand_for(released: pa.Table) -> None:
    page = rv.subject_page(released, columns=["region"])
    assert ">1 (North)</option>" in page
    assert ">2 (South)</option>" in page
    assert "Refused" not in page, "a missing code is no choice"
