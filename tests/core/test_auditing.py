"""Audits: what is asked for, what does not apply, gates, and how a result shows itself."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.auditing import Gate
from rankveil.errors import NotApplicableError, ParameterError


@pytest.fixture
def pair() -> tuple[pa.Table, pa.Table]:
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    original = {"A": x, "B": 10 * x, "K": np.full(5, 7.0)}
    return pa.table(original), pa.table({**original, "A": x[[1, 0, 3, 2, 4]]})


def test_every_measure_is_there_unless_some_are_asked_for(pair: Any) -> None:
    assert set(rv.audit(*pair)) == set(rv.catalogue.measures())
    some = rv.audit(*pair, measures=["permutation_level", "permutation_level"])
    assert list(some) == ["permutation_level"]
    with pytest.raises(ParameterError, match="spearman_risk was not asked for; this audit has permutation_level"):
        some["spearman_risk"]
    with pytest.raises(ParameterError, match="there is no measure permutation; did you mean permutation_level"):
        some["permutation"]
    with pytest.raises(ParameterError, match="there is no measure"):
        rv.audit(*pair, measures=["cm99"])


def test_the_document_has_the_form_of_the_interface(pair: Any) -> None:
    made = json.loads(json.dumps(rv.audit(*pair, fail_if=["permutation_level<0.05"]).to_dict(), allow_nan=False))
    assert set(made) == {
        *("schema", "records", "attributes", "mapping", "measures", "not_applicable", "gates", "notes"),
    }
    assert (made["schema"], made["records"], made["mapping"]) == ("rankveil/audit/1", 5, "rows")
    assert made["attributes"] == ["A", "B", "K"]
    level = made["measures"]["permutation_level"]
    assert level == {
        "value": pytest.approx(0.8 / 4 / 3),
        "family": "confidentiality",
        "better": "higher",
        "bounds": [0, 1],
        "details": level["details"],
    }
    assert level["details"]["per_attribute"] == {"A": pytest.approx(0.2), "B": 0, "K": 0}
    assert level["details"]["maximum"] == {"A": 0.25, "B": 0, "K": 0}
    assert made["gates"] == [{"rule": "permutation_level<0.05", "value": level["value"], "ok": True}]


def test_a_column_without_meaning_is_left_out_and_named(pair: Any) -> None:
    made = rv.audit(*pair)
    assert made["spearman_risk"] == 1.0
    assert made.values["spearman_risk"].details["per_attribute"] == {"A": pytest.approx(0.8), "B": 1.0}
    assert "K" in made.values["spearman_risk"].details["not_applicable"]
    assert any(note.startswith("spearman_risk: column K left out: ") for note in made.notes)
    constant = rv.audit(pair[0].select(["K"]), pair[1].select(["K"]))
    assert set(constant.not_applicable) >= {"spearman_risk", "difference_variance"}
    with pytest.raises(NotApplicableError, match="spearman_risk: in no column"):
        constant["spearman_risk"]


@pytest.mark.parametrize(
    ("rule", "ok"),
    [
        ("spearman_risk>0.9", False),
        ("spearman_risk > 1.0", True),
        ("spearman_risk>=1", False),
        ("spearman_risk<1e0", True),
        ("spearman_risk<=1", False),
        ("permutation_level<0.05", True),
        ("permutation_level<-.5", True),
    ],
)
def test_gates_fail_when_their_rule_comes_true(pair: Any, rule: str, ok: bool) -> None:
    made = rv.audit(*pair, fail_if=[rule])
    assert made.ok is ok
    assert made.gates[0]["ok"] is ok


def test_a_gate_on_a_measure_that_does_not_apply_fails(pair: Any) -> None:
    made = rv.audit(pair[0].select(["K"]), pair[1].select(["K"]), fail_if=["spearman_risk>0.9"])
    assert made.gates == [{"rule": "spearman_risk>0.9", "value": None, "ok": False}]
    assert not made.ok


def test_a_gate_brings_its_measure_along(pair: Any) -> None:
    made = rv.audit(*pair, measures=["permutation_level"], fail_if=["difference_variance<0.1"])
    assert list(made) == ["permutation_level", "difference_variance"]


@pytest.mark.parametrize(
    "rule", ["", "cm2", "permutation_level=0.5", "permutation_level<", "permutation_level<1e", "<1"]
)
def test_a_gate_that_cannot_be_read_is_refused(rule: str) -> None:
    with pytest.raises(ParameterError, match="a gate reads like"):
        Gate.parse(rule)


def test_a_gate_on_an_unknown_measure_is_refused() -> None:
    with pytest.raises(ParameterError, match="did you mean spearman_risk"):
        Gate.parse("spearman_rsk<1")


def test_an_audit_shows_itself_as_a_frame_and_in_a_notebook(pair: Any) -> None:
    made = rv.audit(*pair)
    frame = made.to_frame()
    assert list(frame.index) == list(made)
    assert frame.loc["spearman_risk", "value"] == 1.0
    assert "<td>spearman_risk</td>" in made._repr_html_()


def test_an_audit_tells_itself_in_short_and_without_values(pair: Any) -> None:
    shown = repr(rv.audit(*pair, columns=["A", "B"], measures=["spearman_risk"]))
    assert shown == "Audit(5 records, spearman_risk 1)"
