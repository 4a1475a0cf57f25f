"""Every record counts: measures take the records that have what they need, and say how many those are."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import erf

import rankveil as rv
from rankveil.catalogue import Used
from rankveil.report.audits import audit_grids
from rankveil.summaries.pairwise import PairSums, Pairwise
from rankveil.views import Side

NAN = float("nan")


def table(**columns: list[float | None]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.float64()) for name, values in columns.items()})


def test_an_untouched_column_loses_nothing_when_another_is_suppressed() -> None:
    x = table(A=[1.0, 2.0, 3.0, 4.0, 5.0, 16.0], B=[1.0, 3.0, 2.0, 4.0, 6.0, 5.0])
    y = table(A=[1.0, 2.0, 3.0, 4.0, 5.0, 16.0], B=[1.0, 3.0, 2.0, None, None, None])
    made = rv.audit(x, y, measures=["pil_mean", "pil_variance", "pil_quantile", "il1", "il2", "il3", "il1s"])
    for name in ("pil_mean", "pil_variance", "pil_quantile", "il1", "il2", "il3", "il1s"):
        assert made.values[name].details["per_attribute"]["A"] == 0.0, name
    # the mean of B fell from 21 / 6 to 2, of variance 35 / 12, in 3 records
    wanted = erf(1.5 / math.sqrt(35 / 12) * math.sqrt(3 / 2))
    assert made.values["pil_mean"].details["per_attribute"]["B"] == pytest.approx(wanted)
    assert made["il2"] == pytest.approx((0 + 1.5 / 3.5) / 2)
    assert made["il1"] == 0.0  # every value that is there is as it was
    assert made.to_dict()["measures"]["pil_mean"]["records"] == {
        "used": 6,
        "most": 6,
        "of": 6,
        "masked": {"used": 3, "most": 6, "of": 6},
    }
    assert made.to_dict()["measures"]["il1"]["records"] == {"used": 3, "most": 6, "of": 6}


def test_a_pair_of_columns_has_the_records_that_have_both() -> None:
    """Three columns, of which no record has all: planned skips."""
    x = table(A=[1, 2, 3, 4, None, None], B=[1, 3, None, None, 2, 5], C=[None, None, 2, 1, 1, 4])
    y = table(A=[1, 2, 3, 4, None, None], B=[3, 1, None, None, 2, 5], C=[None, None, 2, 1, 1, 4])
    made = rv.audit(x, y, measures=["il5", "correlation_half_mae", "um", "il4"], mapping=False)
    # A and B have records 1 and 2 in common: their correlation was 1 and is -1; the others are as they were
    assert made["il5"] == pytest.approx(2 / 3)
    assert made["correlation_half_mae"] == pytest.approx(1 / 3)
    assert made["il4"] == pytest.approx(2 / 3)
    assert str(made.values["il5"].used) == "2 of 6"
    assert "no record has the values that it needs" in made.not_applicable["um"]


def test_pairs_that_no_record_has_are_left_out_and_said() -> None:
    x = table(A=[1, 2, 3, None, None, None], B=[1, 3, 2, 4, 5, 7], C=[None, None, None, 1, 4, 2])
    made = rv.audit(x, x, measures=["il5", "pil_correlation"])
    assert made["il5"] == made["pil_correlation"] == 0.0
    said = "1 of 3 pairs of columns have fewer than two records in common and are left out"
    assert any(note.endswith(said) for note in made.notes)
    assert made.values["pil_correlation"].details["pairs"] == 2


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_pairs_are_those_of_the_records_that_have_both(weighted: bool) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(200, 4)) ** 2 + [0.0, 5.0, 1e6, -3.0]
    values[rng.random(values.shape) < 0.3] = NAN
    weight = rng.integers(1, 5, 200).astype(float) if weighted else None
    found = Side(values, weight=weight).pairs
    for a, b in [(0, 1), (1, 0), (2, 3), (3, 1)]:
        there = ~np.isnan(values[:, [a, b]]).any(axis=1)
        own = Side(values[there][:, [a, b]], weight=None if weight is None else weight[there])
        wanted = own.pairs
        assert found.records[a, b] == there.sum()
        assert found.size[a, b] == pytest.approx(own.sample[0].size)
        for fact in ("mean", "spread", "correlation", "squares", "cubes", "fourth"):
            assert getattr(found, fact)[a, b] == pytest.approx(getattr(wanted, fact)[0, 1], rel=1e-9), fact


def test_a_column_that_is_constant_where_another_is_there_has_no_correlation_with_it() -> None:
    values = np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0], [7.0, NAN], [3.0, NAN]])
    found = Side(values).pairs
    assert found.spread[0, 1] == 0.0
    assert found.correlation[0, 1] == found.squares[0, 1] == found.cubes[0, 1] == 0.0
    assert found.spread[0, 0] > 0


def test_sums_of_parts_are_those_of_the_whole() -> None:
    z = np.random.default_rng(1).normal(size=(50, 3))
    z[::7, 1] = z[::5, 2] = NAN
    whole, parts = (Pairwise(each, np.zeros(3), np.ones(3)) for each in (
        PairSums.of(z), PairSums.of(z[:20]).merged(PairSums.of(z[20:]))
    ))  # fmt: skip
    assert np.array_equal(whole.records, parts.records)
    assert parts.cubes == pytest.approx(whole.cubes, rel=1e-12)


def test_tables_of_categories_take_the_records_that_have_their_columns() -> None:
    x = pa.table(
        {"S": ["a", "a", "b", "b", None, None], "T": ["u", "u", "v", "v", "u", "v"], "U": [*"pqpq", None, "p"]}
    )
    y = pa.table(
        {"S": ["a", "b", "a", "b", None, None], "T": ["u", "u", "v", "v", "u", "v"], "U": [*"pqpq", None, "p"]}
    )
    made = rv.audit(x, y, columns=["S", "T", "U"], measures=["contingency", "cramers_v"], mapping=False)
    # S and T: two cells of 1/2 became four of 1/4, and V fell from 1 to 0; T and U over 5 records are as they were
    of = {tuple(each["columns"]): each["value"] for each in made.values["contingency"].details["worst"]}
    assert of["S", "T"] == 0.5
    assert of["T", "U"] == of["T",] == 0.0
    assert made.values["contingency"].used == Used(4, 6, 6)
    by = {(each["a"], each["b"]): each["value"] for each in made.values["cramers_v"].details["per_pair"]}
    assert by["S", "T"] == pytest.approx(1.0)
    assert by["T", "U"] == 0.0
    assert str(made.values["cramers_v"].used) == "4 to 5 of 6"


def test_the_number_of_records_stands_beside_the_number() -> None:
    x = table(A=[1, 2, 3, 4, 5, 6], B=[1, 3, 2, None, None, None])
    made = rv.audit(
        x,
        x,
        measures=[
            "difference_variance",
            "rank_linkage",
            "spearman_risk",
            "pil_mean",
            "loss_means_mse",
            "loss_means_mae",
        ],
    )
    assert made.to_dict()["measures"]["rank_linkage"]["records"] == {"used": 3, "most": 3, "of": 6}
    frame = made.to_frame()
    assert frame["records"]["rank_linkage"] == "3 of 6"
    assert frame["records"]["spearman_risk"] == "3 to 6 of 6"
    grids = {
        caption: (headings, rows) for caption, headings, rows in audit_grids(json.loads(json.dumps(made.to_dict())))
    }
    headings, rows = next(grid for caption, grid in grids.items() if "(confidentiality)" in caption)
    assert dict(zip(headings, rows[0], strict=True))["records"] == "3 to 6 of 6"
    headings, rows = next(grid for caption, grid in grids.items() if "information-loss table" in caption)
    assert rows[0][headings.index("records")] == "3 to 6 of 6"


def test_without_a_complete_record_columns_are_still_measured() -> None:
    x = table(A=[1, 2, 3, None, None, None], B=[None, None, None, 4, 5, 7])
    made = rv.audit(x, x, measures=["pil_mean", "rank_linkage"], mapping=False)
    assert made["pil_mean"] == 0.0
    assert str(made.values["pil_mean"].used) == "3 of 6"
    assert "no record has the values that it needs" in made.not_applicable["rank_linkage"]
