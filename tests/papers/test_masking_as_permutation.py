"""The published values of Muralidhar and Domingo-Ferrer (2015)."""

from __future__ import annotations

import numpy as np
import pytest

from rankveil.papers import Reproduction, Row, masking_as_permutation
from rankveil.papers.masking_as_permutation import Trials


@pytest.fixture(scope="module")
def made() -> Reproduction:
    return masking_as_permutation.run()


@pytest.fixture(scope="module")
def trials() -> Trials:
    return Trials.of(20)


def rows(made: Reproduction, name: str) -> dict[str, Row]:
    return next({row.item: row for row in table.rows} for table in made.tables if table.name == name)


def test_everything_agrees(made: Reproduction) -> None:
    assert made.ok
    assert all(row.ok for row in made.rows)
    assert {table.name: len(table.rows) for table in made.tables} == {
        "Table 1": 50,
        "Table 2": 12,
        "Figure 1": 3,
        "Figure 2": 3,
        "Figure 3": 1,
    }


def test_the_slips_are_named(made: Reproduction) -> None:
    assert masking_as_permutation.ROUNDED_FACTORS in made.remarks
    assert masking_as_permutation.TWO_RANGES in made.remarks
    assert masking_as_permutation.DISTRIBUTIONS in made.remarks
    second = rows(made, "Table 1")["observation 2, masked data set 1 by the printed factor"]
    assert (second.published, second.computed, second.ok) == (9.981, 9.977, True)
    assert round(917.356 / 1011, 6) == 0.907375


def test_ranks_of_table_1(made: Reproduction) -> None:
    table = rows(made, "Table 1")
    found = [table[f"observation {i}, ranks in masked data sets 1 and 2"].computed for i in range(1, 11)]
    assert found == list(zip(range(1, 11), (7, 1, 4, 5, 10, 8, 2, 6, 3, 9), strict=True))


def test_largest_rank_changes_are_those_of_other_seeds(trials: Trials) -> None:
    """Other seeds gave 39 to 53, 892 to 939, 337 to 393, and 431 to 613: the means lie well inside."""
    first, second, third = trials.multiplied.mean(axis=0)
    assert 41 < first < 51
    assert 900 < second < 931
    assert 345 < third < 385
    assert 450 < trials.added[:, 0].mean() < 590


def test_the_moments_are_those_of_the_named_distributions(trials: Trials) -> None:
    means, variances = trials.moments[:, :, 0].mean(axis=0), trials.moments[:, :, 1].mean(axis=0)
    # false-alarm rate 1e-6: 4.9 standard errors of 20000 draws
    error = 4.9 / np.sqrt(20 * masking_as_permutation.RECORDS)
    assert means == pytest.approx([1, 1000, 50], abs=5 * error)
    assert variances[0] == pytest.approx(1, abs=np.sqrt(8) * error)
    assert variances[1:] == pytest.approx([25, 25], abs=25 * np.sqrt(2) * error + 0.05)


@pytest.mark.parametrize(
    ("name", "printed", "wrong", "items"),
    [
        ("TABLE_1", "917.356 2 1", "917.356 2 2", {"observation 2, ranks in masked data sets 1 and 2"}),
        (
            "TABLE_1",
            "0.907 9.981",
            "0.907 9.991",
            {"observation 2, masked data set 1", "observation 2, masked data set 1 by the printed factor"},
        ),
        ("TABLE_2", "2 1000 25 980", "2 1002 25 980", {"attribute 2, mean"}),
        ("TABLE_2", "1 1 1 0 10", "1 1 1 0 20", {"attribute 1, maximum"}),
    ],
)
def test_a_wrong_published_value_is_found(
    name: str, printed: str, wrong: str, items: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = getattr(masking_as_permutation, name)
    assert text.count(printed) == 1
    monkeypatch.setattr(masking_as_permutation, name, text.replace(printed, wrong))
    made = masking_as_permutation.run()
    assert not made.ok
    assert {row.item for row in made.rows if not row.explained} == items


def test_figures_show_the_paper_s_order(made: Reproduction) -> None:
    curves = {line.name: max(line.y) for line in made.figures["Figure 1"].series}
    assert curves["attribute 1"] < curves["attribute 3"] < curves["attribute 2"]
    second = {line.name: max(line.y) for line in made.figures["Figure 2"].series}
    third = {line.name: max(line.y) for line in made.figures["Figure 3"].series}
    assert second["additive noise, attribute 1"] > second["multiplicative noise, attribute 1"]
    assert third["additive noise, attribute 2"] < third["multiplicative noise, attribute 2"]
