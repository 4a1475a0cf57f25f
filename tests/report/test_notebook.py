"""Results in a notebook: words, still pictures and tables, with no script and no network."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import rankveil as rv

PEOPLE = rv.datasets.demo(120).select(["AGE", "INCOME", "TAX"])


def results() -> dict[str, Any]:
    release = rv.mask(PEOPLE, "rank_swap", p=20, seed=1)
    return {
        "release": release,
        "audit": rv.audit(PEOPLE, release.data, measures=["cm2", "permutation_level", "loss_values_mse"]),
        "attack": rv.attack(PEOPLE, release.data, draws=500),
        "certificate": rv.certify(PEOPLE, release.data),
        "verification": rv.verify(release.data, {"AGE": 44.0}),
        "comparison": rv.compare(
            PEOPLE, ["rank_swap"], at={"risk": 0.1}, risk="permutation_level", utility=["um"], replicates=1, workers=1
        ),
    }


@pytest.mark.parametrize("name", ["release", "audit", "attack", "certificate", "verification", "comparison"])
def test_a_result_shows_itself(name: str) -> None:
    shown = results()[name]._repr_html_()
    assert shown.startswith("<p>")
    assert "<table>" in shown
    assert "<script" not in shown
    assert "http://" not in shown.replace("http://www.w3.org", "")
    assert ("data:image/svg+xml" in shown) == (name in ("audit", "attack", "comparison"))


def test_names_stay_text() -> None:
    odd = pa.table({"<b>A</b>": [1.0, 2.0, 4.0, 3.0], "B": [1.0, 5.0, 2.0, 3.0]})
    shown = rv.audit(odd, odd, measures=["permutation_level"])._repr_html_()
    assert "<b>A</b>" not in shown.replace("<p><b>", "")
    assert "&lt;b&gt;A&lt;/b&gt;" in shown
