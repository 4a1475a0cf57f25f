"""Gates on the headline."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankveil as rv
from rankveil.schema import Schema
from rankveil.verdict.gates import Gate

TABLE = pd.DataFrame({"A": np.arange(12.0) ** 2, "C": [*"aaaabbbbccdd"]})
QUASI = Schema(roles={"C": "quasi-identifier"})


@pytest.mark.parametrize(
    ("rule", "value", "ok"),
    [
        ("people_found>0.09", 1.0, False),
        ("people_found>=1.1", 1.0, True),
        ("certain>0", 12, False),
        ("certain>12", 12, True),
        ("k_anonymity<3", 2, False),
        ("k_anonymity<2", 2, True),
        ("guarantees>0", 0, True),
        ("red", "red", False),
        ("status=red", "red", False),
        ("amber", "red", False),
    ],
)
def test_a_gate_on_every_number(rule: str, value: Any, ok: bool) -> None:
    made = rv.audit(TABLE, TABLE, measures=["um"], fail_if=[rule], schema=QUASI)
    assert made.gates == [{"rule": rule, "value": value, "ok": ok}]
    assert made.ok is ok


def test_red_does_not_fail_what_is_amber_and_amber_does() -> None:
    alike = pd.DataFrame({"A": [1.0] * 50, "B": [2.0] * 50})
    made = rv.audit(alike, alike, fail_if=["red", "amber"])
    assert [(gate["value"], gate["ok"]) for gate in made.gates] == [("amber", True), ("amber", False)]


def test_a_gate_brings_the_measures_that_it_needs() -> None:
    assert Gate.parse("certain>0").needs == ("people_found",)
    assert "people_found" in Gate.parse("red").needs
    assert Gate.parse("guarantees>0").needs == ()


@pytest.mark.parametrize("rule", ["green", "certain", "certain=0", "cm9<1", "status=grey"])
def test_what_is_no_gate_is_refused(rule: str) -> None:
    with pytest.raises(rv.ParameterError):
        Gate.parse(rule)
