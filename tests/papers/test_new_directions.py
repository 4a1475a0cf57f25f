"""The published values of Domingo-Ferrer and Muralidhar (2016)."""

from __future__ import annotations

import pytest

from rankveil.papers import Reproduction, Row, new_directions
from rankveil.papers.published import new_directions as published

FEW = 12
"""Replicates that are enough for the random tables and quick."""


@pytest.fixture(scope="module")
def made() -> Reproduction:
    return new_directions.run()


def table(made: Reproduction, name: str) -> dict[str, Row]:
    return next({row.item: row for row in each.rows} for each in made.tables if each.name == name)


def test_everything_agrees_but_for_the_named_slips(made: Reproduction) -> None:
    assert made.ok
    assert {row.item: row.remark for row in made.rows if not row.ok} == {
        "record 9, d1, d2, d3 and d": new_directions.SECOND_MATCH,
        "masked records matched by several originals": new_directions.MATCHED_TWICE,
        "links correct, multiple, wrong": new_directions.WRONG_COUNTS,
        "noise of X1, X2, X3 in standard deviations": new_directions.SAME_NOISE,
    }
    assert [row.item for row in made.rows if row.ok and row.remark] == [
        "chance of a distance of at most 5 for a random record"
    ]
    named = {row.remark for row in made.rows if row.remark}
    assert named <= set(made.remarks)


def test_every_cell_of_the_tables_is_compared(made: Reproduction) -> None:
    values = {
        each.name: sum(len(row.published) if isinstance(row.published, tuple) else 1 for row in each.rows)
        for each in made.tables
    }
    assert values["Table 1"] == 20 * 15
    assert values["Table 2"] == 20 * 15
    assert values["Table 3"] == 20 * 9
    assert values["Table 4"] == 24 + 20 * 4  # four records have two matches
    assert values["Table 5"] == 11 * 2
    assert values["Table 6"] == 16 * 2
    counts = {each.name: len(each.rows) for each in made.tables}
    assert [counts[f"Table {number}"] for number in range(1, 7)] == [100, 100, 60, 40, 22, 32]
    assert all(len({row.item for row in each.rows}) == len(each.rows) for each in made.tables)


def test_numbers_of_the_running_example(made: Reproduction) -> None:
    third = table(made, "Section 4")
    assert third["record 3, nearest masked values"].computed == (100.41, 903.25, 5087.9)
    assert third["record 3, their ranks"].computed == (8, 2, 16)
    assert third["record 3, the subject's f(x)"].computed == 10
    assert third["record 3, d for the subject"].computed == (4, 1, 4)
    assert third["record 3, d for the protector"].computed == (5, 1, 9)
    assert third["record 3, variances of S1(4), S2(1), S3(4)"].computed == pytest.approx(
        (24.70, 155.00, 20167.78), abs=0.005
    )
    correlations = table(made, "Section 2")["Spearman correlation of X and Z"].computed
    assert correlations == pytest.approx((0.722, 0.844, 0.776), abs=5e-4)
    null = [table(made, "Table 5")[f"distance {d}, A"].computed for d in range(9)]
    assert null == [0.0025, 0.058625, 0.189875, 0.301375, 0.2595, 0.12875, 0.04275, 0.01425, 0.002375]
    random = {item.partition("), ")[2]: row.computed for item, row in table(made, "Section 5.2").items()}
    assert (random["its match"], random["d1, d2, d3"], random["d"]) == (2, (0, 1, 2), 2)


def test_table_6_is_the_published_one_up_to_chance(made: Reproduction) -> None:
    rows = table(made, "Table 6")
    for name in ("X", "A"):
        own = [row for item, row in rows.items() if item.endswith(name)]
        for value in ("published", "computed"):
            assert sum(getattr(row, value) for row in own) == pytest.approx(1, abs=1e-6)
    assert all(row.sd is not None for row in rows.values())


@pytest.mark.parametrize(
    ("name", "printed", "wrong", "item"),
    [
        ("TABLE_1", "14 7 5 108.21", "14 7 6 108.21", "record 1, ranks of Y"),
        ("TABLE_1", "108.21 980.97 4893.50", "108.22 980.97 4893.50", "record 1, Z"),
        ("TABLE_2", "-0.03 -8.35 -16.77", "-0.03 -8.36 -16.77", "record 1, E' = Y - Z"),
        ("TABLE_3", "14 7 5 6 5 11", "14 7 5 6 5 12", "record 1, rank distances"),
        ("TABLE_4", "2 4 0 3 1 3", "2 5 0 3 1 3", "record 2, matches"),
        ("TABLE_4", "9 7,9 3 0 1 3", "9 7,8 3 0 1 3", "record 9, matches"),
        ("TABLE_5", "3 0.4000 0.3014", "3 0.4000 0.3015", "distance 3, A"),
        ("TABLE_6", "1 0.2670 0.0000", "1 0.4670 0.0000", "distance 1, X"),
        ("TABLE_6", "8 0.0040 0.0012", "8 0.0040 0.0120", "distance 8, A"),
    ],
)
def test_a_wrong_published_value_is_found(
    name: str, printed: str, wrong: str, item: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = getattr(published, name)
    assert text.count(f"{printed}") == 1
    monkeypatch.setattr(published, name, text.replace(printed, wrong))
    made = new_directions.run(replicates=FEW)
    assert not made.ok
    assert [row.item for row in made.rows if not row.explained] == [item]


def test_the_same_numbers_every_time() -> None:
    assert new_directions.run(replicates=2).to_dict() == new_directions.run(replicates=2).to_dict()


def test_progress_goes_to_the_end() -> None:
    seen: list[tuple[int, int]] = []
    new_directions.run(replicates=3, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
