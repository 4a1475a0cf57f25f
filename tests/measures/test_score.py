"""The scores: their weights, and what they are made of in an audit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import rankveil as rv
from rankveil.catalogue import get_measure

score, score_pil = get_measure("score"), get_measure("score_pil")


def test_the_weights() -> None:
    made = score(40.0, 0.2, 0.1, 0.6)
    assert made.value == pytest.approx(0.5 * 40 + 0.125 * 20 + 0.125 * 10 + 0.25 * 60)
    assert made.details["parts"] == {
        "il": 20.0,
        "distance_linkage": pytest.approx(2.5),
        "probabilistic_linkage": pytest.approx(1.25),
        "interval_disclosure": pytest.approx(15.0),
    }
    assert score_pil(100.0, 1.0, 1.0, 1.0).value == 100.0
    assert score_pil(0.0, 0.0, 0.0, 0.0).value == 0.0


def test_nothing_done_is_all_risk_and_no_loss() -> None:
    # all records are linked by distance and all values lie in their intervals: 12.5 + 25, and up to 12.5 more
    table = pd.DataFrame(np.random.default_rng(0).normal(5.0, 1.0, size=(40, 3)), columns=["A", "B", "C"])
    made = rv.audit(table, table, measures=["score", "score_pil", "probabilistic_linkage"])
    expected = 12.5 + 25 + 12.5 * made["probabilistic_linkage"]
    assert made["score"] == pytest.approx(expected)
    assert made["score_pil"] == pytest.approx(expected)


def test_an_audit_puts_the_score_together_from_the_other_measures() -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(5.0, 1.0, size=(60, 3)), columns=["A", "B", "C"])
    masked = rv.mask(table, "additive_noise", alpha=0.3, seed=1).data
    names = ["il", "pil", "distance_linkage", "probabilistic_linkage", "interval_disclosure", "score", "score_pil"]
    made = rv.audit(table, masked, measures=names)
    risk = 12.5 * (made["distance_linkage"] + made["probabilistic_linkage"]) + 25 * made["interval_disclosure"]
    assert made["score"] == pytest.approx(0.5 * made["il"] + risk)
    assert made["score_pil"] == pytest.approx(0.5 * made["pil"] + risk)


def test_without_a_mapping_there_is_no_score() -> None:
    table = pd.DataFrame({"A": [1.0, 2.0, 3.0], "B": [2.0, 1.0, 5.0]})
    made = rv.audit(table, table, measures=["score"], mapping=False)
    assert "which masked record" in made.not_applicable["score"]
