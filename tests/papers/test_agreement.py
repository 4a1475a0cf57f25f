"""Which measures say the same thing: the arithmetic on made-up verdicts, and a small study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from rankveil import catalogue
from rankveil.comparison.study import Result, Task, measure
from rankveil.errors import FileError
from rankveil.papers import agreement, reproduce
from rankveil.papers.agreement import (
    LINKAGE,
    PROTECTING,
    USE,
    USEFUL,
    Verdicts,
    bars,
    claims,
    distinct,
    findings,
    group_rows,
    heat,
    linkage_rows,
    rank_correlations,
    turned,
    use_rows,
)
from rankveil.papers.census_maskings import Masking, maskings, study_of
from rankveil.plans import Plan
from rankveil.table import Table


def verdicts(values: Mapping[str, Sequence[float | None]]) -> Verdicts:
    """Verdicts on made-up maskings; None where a measure does not apply."""
    names = tuple(values)
    count = len(next(iter(values.values())))
    results = [
        Result(
            {name: values[name][i] for name in names if values[name][i] is not None},
            {name: "it is infinite" for name in names if values[name][i] is None},
        )
        for i in range(count)
    ]
    grid = [Masking("none", f"case {i}", Plan.of("identity")) for i in range(count)]
    return Verdicts.of(grid, names, results)


RISING = [0.1, 0.2, 0.3, 0.4, 0.5]
FALLING = RISING[::-1]
OTHER = [0.3, 0.1, 0.5, 0.2, 0.4]
RISK = {
    "distance_linkage": FALLING,  # the records are better protected from masking to masking
    "probabilistic_linkage": [0.9, 0.8, 0.7, 0.5, 0.6],
    "cm1": OTHER,
    "cm2": RISING,
    "permutation_level": [0.2, 0.4, 0.6, 0.7, 0.9],
    "rank_linkage": FALLING,  # and this measure says the opposite
}


@pytest.fixture(scope="module")
def small() -> Verdicts:
    """A real study of few records, maskings and measures."""
    rng = np.random.default_rng(3)
    common = rng.normal(size=(150, 1))
    table = pd.DataFrame(np.exp(common + 0.6 * rng.normal(size=(150, 4))), columns=["FEDTAX", "AGI", "FICA", "INTVAL"])
    study = study_of(Table(table), target="FEDTAX")
    names = (*LINKAGE, USE, "cm1", "cm2", "permutation_level", "rank_linkage", "pil_covariance", "il5", "um")
    wanted = ("Noise2", "Noise8", "Noise20", "Mic1mul3", "Mic2mul5", "Micmul3", "Micmul9", "Rankswap2", "Rankswap15")
    grid = [each for each in maskings() if each.name in wanted]
    return Verdicts.of(grid, names, [measure(study, Task(each.plan, 0, names)) for each in grid])


def test_a_measure_under_two_names_stands_once() -> None:
    names, twins = distinct(catalogue.measures())
    assert twins["loss_values_mv"] == "il1"
    assert twins["loss_correlations_mae"] == "il5"
    assert set(names) | set(twins) == set(catalogue.measures())
    assert not set(names) & set(twins)
    assert {*LINKAGE, USE, "cm1", "cm2", "pil", "um"} <= set(names)


def test_more_is_better_in_every_measure() -> None:
    values = np.array([0.2, 0.5])
    assert turned(values, "cm1").tolist() == [0.2, 0.5]
    assert turned(values, "distance_linkage").tolist() == [-0.2, -0.5]
    assert turned(values, "rank_linkage").tolist() == [0.2, 0.5]  # more distance, less risk
    assert turned(values, "pil").tolist() == [-0.2, -0.5]


def test_rounding_is_no_loss_but_small_confidentiality_counts() -> None:
    assert turned(np.array([1e-15, 3e-16, 5.0]), "il2").tolist() == [0.0, 0.0, -5.0]
    assert turned(np.array([1e-30, 1e-20, 0.5]), "cm2").tolist() == [1e-30, 1e-20, 0.5]


def test_rank_correlations_are_spearman_s_over_common_maskings() -> None:
    values = np.random.default_rng(1).integers(0, 6, (30, 4)).astype(float)
    assert rank_correlations(values) == pytest.approx(spearmanr(values).statistic)
    values[:7, 2] = np.nan
    assert rank_correlations(values)[1, 2] == pytest.approx(spearmanr(values[7:, 1], values[7:, 2]).statistic)
    values[:, 3] = 1.0
    assert np.isnan(rank_correlations(values)[:, 3]).all()


def test_groups_by_hand() -> None:
    risk = verdicts(RISK).within(PROTECTING)
    assert set(risk.names) == set(RISK)
    assert risk.between("distance_linkage", "cm2") == 1.0
    assert risk.between("distance_linkage", "rank_linkage") == -1.0
    assert risk.between("distance_linkage", "probabilistic_linkage") == pytest.approx(0.9)
    [group] = risk.groups()
    assert set(group) == {"distance_linkage", "probabilistic_linkage", "cm2", "permutation_level"}
    assert set(risk.alone()) == {"cm1", "rank_linkage"}
    [row] = group_rows(risk)
    assert row.computed == pytest.approx(0.9)
    assert row.published is None


def test_every_two_of_a_group_agree() -> None:
    """b is near to a and to c, but a and c are not near to each other: no group of three."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=400)
    near, far = base + 0.4 * rng.normal(size=400), base + 0.4 * rng.normal(size=400)
    made = verdicts({"cm1": near.tolist(), "cm2": base.tolist(), "permutation_level": far.tolist()})
    assert made.between("cm1", "cm2") > 0.9 < made.between("cm2", "permutation_level")
    assert made.between("cm1", "permutation_level") < 0.9
    assert [len(group) for group in made.groups()] == [2]


def test_rows_and_sentences_of_linkage() -> None:
    risk = verdicts(RISK).within(PROTECTING)
    rows = linkage_rows(risk)
    assert [row.item for row in rows][-1] == "rank_linkage"
    assert {row.item: row.computed for row in rows}["rank_linkage"] == (-1.0, -0.9)
    assert [row.ok for row in claims(risk)] == [True, True]
    turned_round = {**RISK, "cm1": RISING, "cm2": OTHER}
    assert [row.explained for row in claims(verdicts(turned_round).within(PROTECTING))] == [False, False]
    use = verdicts({USE: RISING, "pil": FALLING, "um": OTHER}).within(USEFUL)
    said = findings(risk, use)
    assert any("rank_linkage (-1.00)" in sentence and "little" in sentence for sentence in said)
    assert any("pil (1.00)" in sentence and "come closest" in sentence for sentence in said)
    assert [row.item for row in use_rows(use)] == ["pil", "um"]


def test_a_measure_that_does_not_apply_everywhere_is_told() -> None:
    made = verdicts({**RISK, "mutual_information": [None, 3.0, 2.0, 1.5, 1.0]})
    assert made.between("mutual_information", "cm2") == 1.0
    [said] = made.remarks()
    assert said.startswith("mutual_information does not apply to 1 of 5 maskings, left out for it: it is infinite")


def test_a_measure_without_any_correlation_is_left_out_of_the_picture() -> None:
    made = verdicts({**RISK, "cm3": [0.5] * 5, "mutual_information": [None] * 5})
    assert set(made.within(PROTECTING).names) == set(RISK)


def test_some_measures_alone() -> None:
    risk = verdicts(RISK)
    some = risk.among(["cm1", "rank_linkage", "unknown"])
    assert set(some.names) == {"cm1", "rank_linkage"}
    assert some.between("cm1", "rank_linkage") == risk.between("cm1", "rank_linkage")


def test_a_masking_that_fails_is_no_result() -> None:
    with pytest.raises(ArithmeticError, match="case 0: too large"):
        Verdicts.of([Masking("none", "case 0", Plan.of("identity"))], ("cm1",), [Result({}, error="too large")])


def test_pictures_show_every_pair() -> None:
    risk = verdicts(RISK).within(PROTECTING)
    chart = heat(risk, "risk")
    [cells] = chart.series
    assert set(cells.rows) == set(RISK)
    where = {name: cells.rows.index(name) for name in ("distance_linkage", "rank_linkage")}
    assert cells.values[where["distance_linkage"]][where["rank_linkage"]] == -1.0
    assert chart.title == "Of 6 measures of risk, 4 fall into 1 group that says one thing"
    first, second = bars(risk, LINKAGE, title="x").series
    assert first.x == second.x
    assert "distance_linkage" not in first.x
    assert dict(zip(first.x, first.y, strict=True))["rank_linkage"] == -1.0


def test_a_small_study(small: Verdicts) -> None:
    risk, use = small.within(PROTECTING), small.within(USEFUL)
    assert np.isfinite(small.values).all()
    assert set(risk.names) | set(use.names) == set(small.names)
    assert risk.between("distance_linkage", "permutation_level") > 0.5  # ranks that moved far are links that fail
    assert use.between("il5", "pil_covariance") > 0.5


def test_without_the_data_it_says_what_is_needed() -> None:
    with pytest.raises(FileError, match=r"agreement needs census\.csv"):
        reproduce("agreement")
    with pytest.raises(FileError, match=r"census\.csv by --data"):
        agreement.run()
