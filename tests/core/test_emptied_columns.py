"""A column that is empty in the release: lost to measures of distributions, left out of those of ranks and pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv

N = 60
NAMES = ["C", "D", "N", "M"]


@pytest.fixture
def original() -> pa.Table:
    rng = np.random.default_rng(0)
    words = {name: pa.array(rng.choice(list(letters), N)) for name, letters in (("C", "abc"), ("D", "xyz"))}
    return pa.table({**words, "N": rng.normal(size=N), "M": rng.normal(size=N)})


def without(table: pa.Table, name: str) -> pa.Table:
    """The table with nothing in one column."""
    kind = table.schema.field(name).type
    return table.set_column(table.column_names.index(name), name, pa.nulls(N, kind))


def audited(table: pa.Table, name: str, **how: Any) -> rv.Audit:
    return rv.audit(table, without(table, name), columns=NAMES, **how)


def test_categories_that_are_all_suppressed_are_lost(original: pa.Table) -> None:
    made = audited(original, "C", measures=["total_variation", "contingency", "cramers_v"])
    assert made.values["total_variation"].details["per_attribute"] == {"C": 1.0, "D": 0.0}
    assert made["total_variation"] == 0.5
    assert "total_variation: column C is empty in the release: it counts as lost (1)" in made.notes
    worst = {tuple(each["columns"]): each["value"] for each in made.values["contingency"].details["worst"]}
    assert worst == {("C",): 1.0, ("C", "D"): 1.0, ("D",): 0.0}
    association = made.values["cramers_v"].details["per_pair"][0]
    assert (association["masked"], association["value"]) == (0.0, association["original"])
    said = "empty in the release, which counts as a category that no original record has: C"
    assert f"contingency, cramers_v: {said}" in made.notes


def test_numbers_that_are_all_suppressed_are_lost(original: pa.Table) -> None:
    made = audited(original, "N", measures=["density_loss"])
    assert made.values["density_loss"].details["per_attribute"] == {"N": 1.0, "M": 0.0}
    assert made["density_loss"] == 0.5
    assert not any("bands" in note for note in made.notes)


def test_a_release_with_nothing_in_the_only_column_of_categories_has_lost_all_of_it(original: pa.Table) -> None:
    made = rv.audit(original, without(original, "C"), columns=["C", "N"], measures=["total_variation", "contingency"])
    assert (made["total_variation"], made["contingency"]) == (1.0, 1.0)


@pytest.mark.parametrize("name", ["permutation_level", "power_mean_loss", "spearman_risk"])
def test_ranks_have_nothing_to_compare_there_and_say_so(original: pa.Table, name: str) -> None:
    made = audited(original, "C", measures=[name])
    assert "C" not in made.values[name].details["per_attribute"]
    assert f"{name}: column C left out: it is empty in the release" in made.notes


@pytest.mark.parametrize("name", ["um", "emd", "propensity", "rank_linkage"])
def test_measures_of_whole_records_do_not_apply_and_name_the_column(original: pa.Table, name: str) -> None:
    made = audited(original, "N", measures=[name])
    assert made.not_applicable[name].startswith("column N is empty in the release, and no record has the values")


def test_losses_column_by_column_leave_it_out_or_count_it_as_lost(original: pa.Table) -> None:
    names = ["pil_mean", "pil_covariance", "loss_means_mae", "il4"]
    made = audited(original, "N", measures=names)
    assert made.values["pil_mean"].details["per_attribute"] == {"M": 0.0, "N": 1.0}
    assert (made["pil_mean"], made["pil_covariance"], made["loss_means_mae"]) == (0.5, 1.0, 0.0)
    assert "pil_mean, pil_covariance: column N is empty in the release: it counts as lost (1)" in made.notes
    assert "loss_*: column N left out: it is empty in the release" in made.notes
    assert made.not_applicable["il4"].startswith("column N is empty in the release, and no record has the values")


def test_a_column_that_is_empty_in_a_subdomain_of_both_tables_is_not_lost(original: pa.Table) -> None:
    first = np.arange(N) < N // 2
    there = pa.array(np.where(first, "a", None), pa.string())
    table = original.set_column(0, "C", there).append_column("R", pa.array(np.where(first, "one", "two")))
    made = rv.audit(table, table, columns=["C", "D"], by="R", measures=["total_variation"])
    assert made["total_variation"] == 0.0
    assert made.values["total_variation"].details["by"]["two"]["value"] == 0.0
