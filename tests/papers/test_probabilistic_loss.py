"""The published values of Mateo-Sanz, Domingo-Ferrer and Sebé (2005)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rankveil.comparison.study import Study
from rankveil.errors import FileError
from rankveil.execute import in_workers
from rankveil.papers import Row, census_maskings, probabilistic_loss, reproduce
from rankveil.papers.census_losses import ASKED, IDS, KERNEL, Losses, correlation, measured, tasks_of
from rankveil.papers.census_maskings import ATTRIBUTES, Masking, census, maskings, study_of
from rankveil.papers.probabilistic_loss import (
    DENSITY_REACH,
    NOT_WITHOUT,
    UNTOLD,
    Ties,
    far_case,
    methods,
    remark_4_2,
    scatters,
    section_5,
    table_2,
    table_3,
    tied,
)
from rankveil.papers.published import probabilistic_loss as paper
from rankveil.plans import Plan
from rankveil.table import Table

DRAWS = 4


@pytest.fixture(scope="module")
def study(reference_data: Callable[[str], Path]) -> Study:
    return study_of(census(reference_data("census").parent))


@pytest.fixture(scope="module")
def seven(study: Study) -> Losses:
    made = [measured(study, task) for task in tasks_of(methods(), DRAWS)]
    return Losses.of(methods(), made, replicates=DRAWS)


@pytest.fixture(scope="module")
def ties(study: Study) -> Ties:
    return tied(study.table, orders=3)


@pytest.fixture(scope="module")
def few(study: Study) -> Losses:
    """Some of the 109 maskings: two of each family."""
    names = ("Noise4", "Noise20", "Distr", "Resamp1", "Mic1mul3", "Mic4mul9", "Rankswap2", "Rankswap15", "JPEG5")
    grid = [each for each in maskings() if each.name in names]
    return Losses.of(grid, [measured(study, task) for task in tasks_of(grid, 2)], replicates=2)


def made_up(values: Mapping[str, list[float]]) -> Losses:
    """Losses of maskings that draw nothing, 0 where none are given."""
    count = len(next(iter(values.values())))
    grid = [Masking("microaggregation", f"case {i}", Plan.of("mdav", k=3)) for i in range(count)]
    own = {IDS.get(name, name): losses for name, losses in values.items()}
    made = [{name: own[name][i] if name in own else 0.0 for name in (*ASKED, KERNEL)} for i in range(count)]
    return Losses.of(grid, made, replicates=1)


def by_item(rows: list[Row]) -> dict[str, Row]:
    return {row.item: row for row in rows}


def test_the_109_maskings_are_those_of_the_study() -> None:
    names = [each.name for each in maskings()]
    assert len(names) == len(set(names)) == 109
    families = {family: sum(each.family == family for each in maskings()) for family in {e.family for e in maskings()}}
    assert families == {
        **{"noise": 10, census_maskings.BY_RANK: 4, "microaggregation": 56, "rank swapping": 20, "JPEG": 19}
    }
    plans = {each.name: each.plan.steps[0] for each in maskings()}
    assert plans["Noise16"].parameters == {"alpha": 0.16}
    assert plans["Mic3mul7"].parameters == {"k": 7, "block": 3}
    assert plans["Micpcp4"].parameters == {"k": 4, "by": "first_component"}
    assert plans["JPEG95"].parameters == {"quality": 95}
    assert {each.name for each in methods()} == {words.split()[0] for words in paper.TABLE_3.strip().splitlines()}


def test_maskings_that_draw_nothing_come_out_as_published(seven: Losses) -> None:
    """Table 3 but for PIL(Q); the covariances of Mic3mul7 hang on ties, see below."""
    for words in paper.TABLE_3.strip().splitlines():
        name, _, *published = words.split()
        if "Mic" in name:
            found = [seven.of_masking(name, part)[0] for part in ("PIL(m1)", "PIL(m2)", "PIL(m11)", "PIL(r)")]
            assert found == pytest.approx([float(value) for value in published], abs=0.002)


def test_table_3_agrees_but_for_quantiles(seven: Losses, ties: Ties) -> None:
    rows = by_item(table_3(seven, ties))
    assert len(rows) == 42
    off = {item for item, row in rows.items() if not row.ok}
    assert off == {item for item in rows if "PIL(Q)" in item and "Rankswap7" not in item}
    assert {rows[item].remark for item in off} == {UNTOLD}
    random = rows["Noise16, PIL(m11)"]
    assert random.sd is not None
    assert random.sd > 0
    assert rows["Micmul3, PIL(m2)"].sd is None


def test_what_ties_leave_open_is_told_and_moves_no_variance(ties: Ties) -> None:
    assert (ties.different, ties.block) == (460, ("PEARNVAL", "FICA", "WSALVAL", "ERNVAL"))
    assert ties.told("Mic3mul7", "PIL(m2)") is None
    assert ties.told("Micmul3", "PIL(m11)") is None
    said = ties.told("Mic3mul7", "PIL(m11)")
    assert said is not None
    assert "460" in said
    assert 0.299 < ties.values["Mic3mul7", "PIL(m11)"].min() < ties.values["Mic3mul7", "PIL(m11)"].max() < 0.306


def test_the_text_s_statements_and_its_slip(seven: Losses) -> None:
    rows = section_5(seven)
    assert [row.ok for row in rows] == [True, True, True, False]
    assert rows[-1].remark == NOT_WITHOUT
    assert rows[-1].computed == "Micmul3, PIL(m11): +0.1785"


@pytest.mark.parametrize(
    ("right", "wrong", "item"),
    [
        ("0.7004 0.1846 0.5341", "0.7204 0.1846 0.5341", "Micmul3, PIL(m2)"),
        ("0.4540 0.5933", "0.9540 0.5933", "Rankswap7, PIL(m11)"),
        ("0.4987 0", "0.9987 0", "Micmul3, PIL(Q), simple density"),
    ],
)
def test_a_wrong_published_value_is_found(
    right: str, wrong: str, item: str, seven: Losses, ties: Ties, monkeypatch: pytest.MonkeyPatch
) -> None:
    squeezed = "\n".join(" ".join(line.split()) for line in paper.TABLE_3.splitlines())
    assert squeezed.count(right) == 1
    monkeypatch.setattr(paper, "TABLE_3", squeezed.replace(right, wrong))
    rows = table_3(seven, ties)
    assert item in {row.item for row in rows if not row.explained}


def test_table_2_of_few_maskings(few: Losses) -> None:
    rows = by_item(table_2(few))
    assert len(rows) == 13
    means = rows["PIL(m1) with IL2, Spearman"]
    assert means.ok
    assert means.computed == pytest.approx(1.0, abs=0.05)
    swapped = rows["PIL(Q) with IL1, Spearman"]
    assert swapped.computed < 1
    assert few.without("rank swapping").correlations("PIL(Q)", "IL1", ranks=True).shape == (2,)
    assert remark_4_2(few).ok


def test_replicates_differ_only_where_there_is_chance(few: Losses) -> None:
    for each in few.grid:
        first, second = few.of_masking(each.name, "IL1")
        assert (first != second) == each.random


def test_figures_show_every_masking(few: Losses) -> None:
    charts = scatters(few)
    assert list(charts) == [f"Table 2 {of}" for of in probabilistic_loss.OF.values()]
    for chart in charts.values():
        assert sum(len(series.x) for series in chart.series) == len(few.grid)
    found = few.correlations("PIL(m1)", "IL2", ranks=True)[0]
    assert f"PIL(m1) and IL2 rank 9 maskings alike (Spearman {found:.2f})" in charts["Table 2 means"].title


def test_correlations_by_hand() -> None:
    a, b = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 1.0, 4.0, 2.0])
    assert correlation(a, b, ranks=False) == pytest.approx(4.5 / np.sqrt(5 * 8.75))
    assert correlation(a, b, ranks=True) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert correlation(a, np.exp(a), ranks=True) == 1.0


def test_rounding_is_no_loss() -> None:
    """1e-12 and 3e-12 would be two ranks; both are 0."""
    losses = made_up({"PIL(m1)": [1e-12, 3e-12, 0.5, 0.7], "IL2": [3e-12, 1e-12, 1.0, 2.0]})
    assert losses.of_measure("PIL(m1)")[0].tolist() == [0.0, 0.0, 0.5, 0.7]
    assert losses.correlations("PIL(m1)", "IL2", ranks=True).tolist() == [1.0]


def test_the_case_that_would_explain_a_pearson_correlation() -> None:
    loss, classical = np.array([0.0, 0.2, 0.4, 0.6, 0.8]), np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    needed = far_case(loss, classical, wanted=0.8)
    assert needed is not None
    moved = np.append(classical[:-1], needed)
    assert correlation(loss, moved, ranks=False) == pytest.approx(0.8)
    assert needed > 0.4
    assert far_case(loss, classical, wanted=0.2) is None  # ten times as far is not enough
    assert far_case(loss, 1 - classical, wanted=0.5) is None


def test_a_far_pearson_correlation_is_explained_only_by_such_a_case() -> None:
    loss = [0.0, 0.2, 0.4, 0.6, 0.8]
    losses = {f"PIL({part})": loss for part in ("Q", "m1", "m2", "m11", "r")} | {"PIL": loss}
    risen = made_up({**losses, **_lines(), "IL3": [0.0, 0.1, 0.45, 0.3, 0.4]})
    row = by_item(table_2(risen))["PIL(m2) with IL3, Pearson"]
    assert not row.ok
    assert row.remark is not None
    assert "case 2 has IL3 from 0.45 to 0.45" in row.remark
    turned = made_up({**losses, **_lines(), "IL3": [0.4, 0.3, 0.2, 0.1, 0.0]})
    assert not by_item(table_2(turned))["PIL(m2) with IL3, Pearson"].explained


def _lines() -> dict[str, list[float]]:
    line = [0.0, 1.0, 2.0, 3.0, 4.0]
    return dict.fromkeys(("IL1", "IL2", "IL4", "IL5", "IL", KERNEL), line)


def test_a_density_explains_only_so_much() -> None:
    near, far = (
        probabilistic_loss._quantile("Q", "0.5000", np.array([0.5 + away])) for away in (0.1, DENSITY_REACH + 0.01)
    )
    assert (near.ok, near.explained, far.explained) == (False, True, False)


@pytest.mark.thorough
def test_numbers_do_not_depend_on_the_workers() -> None:
    rng = np.random.default_rng(0)
    study = study_of(Table(pd.DataFrame(rng.lognormal(size=(120, 3)), columns=list("ABC"))))
    grid = [each for each in maskings() if each.name in ("Noise8", "Rankswap9", "Mic2mul4")]
    seen: list[tuple[int, int]] = []
    tasks = tasks_of(grid, 2)
    one, two = (
        in_workers(measured, study, tasks, workers=count, progress=lambda done, total: seen.append((done, total)))
        for count in (1, 2)
    )
    assert one == two
    assert seen == 2 * [(done, 5) for done in range(1, 6)]


def test_without_the_data_it_says_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"probabilistic-loss needs census\.csv; give the folder .* with --data"):
        reproduce("probabilistic-loss")
    with pytest.raises(FileError, match=r"needs census\.csv"):
        reproduce("probabilistic-loss", data=tmp_path)
    with pytest.raises(FileError, match=r"census\.csv by --data"):
        probabilistic_loss.run()


def test_other_data_of_that_name_are_refused(tmp_path: Path) -> None:
    names = [name for name in ATTRIBUTES if name != "FICA"]
    pd.DataFrame(np.ones((3, 12)), columns=names).to_csv(tmp_path / "census.csv", index=False)
    with pytest.raises(FileError, match="FICA"):
        census(tmp_path)
