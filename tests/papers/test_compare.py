"""The rules of agreement between a printed value and a computed one."""

from __future__ import annotations

import numpy as np
import pytest

from rankveil.papers.compare import decimals, lines, misprint, printed, replicated, statement
from rankveil.papers.result import PaperTable, Reproduction, Row


@pytest.mark.parametrize(
    ("published", "computed", "ok"),
    [
        ("24.70", 24.698, True),
        ("24.70", 24.7051, False),
        ("24.70", 24.6949, False),
        ("0.1288", 0.12875, True),  # halfway may be rounded either way
        ("0.1287", 0.12875, True),
        ("8", 8, True),
        ("8", 9, False),
        ("-0.03", 108.18 - 108.21, True),
        ("-0.03", 0.03, False),
    ],
)
def test_half_a_unit_of_the_last_digit(published: str, computed: float, ok: bool) -> None:
    assert printed("value", published, computed).ok is ok


def test_several_numbers_agree_only_together() -> None:
    row = printed("ranks", "8 2 16", [8, 2, 17])
    assert not row.ok
    assert row.published == (8, 2, 16)
    assert row.computed == (8, 2, 17)
    assert row.difference == 1


@pytest.mark.parametrize("computed", [[8, 2], [8, 2, 16, 3], []])
def test_another_number_of_values_is_a_disagreement_without_a_difference(computed: list[int]) -> None:
    row = printed("ranks", "8 2 16", computed)
    assert not row.ok
    assert row.difference is None


def test_one_published_value_beside_several_computed_ones() -> None:
    row = printed("matches", "4", [4, 7])
    assert not row.ok
    assert row.computed == (4, 7)


def test_computed_values_lose_float_dust_but_no_difference() -> None:
    row = printed("noise", "-0.03", 108.18 - 108.21)
    assert row.computed == -0.03
    assert row.difference == 0
    assert printed("share", "0.0586", 0.058625).computed == 0.058625
    assert str(printed("zero", "0.00", -1e-13).computed) == "0.0"


def test_a_misprint_is_explained_only_while_the_correction_comes_out() -> None:
    known = misprint("counts", "5 4 11", [6, 4, 10], corrected="6 4 10", remark="miscounted")
    assert (known.ok, known.remark, known.explained) == (False, "miscounted", True)
    broken = misprint("counts", "5 4 11", [7, 4, 9], corrected="6 4 10", remark="miscounted")
    assert (broken.ok, broken.remark, broken.explained) == (False, None, False)


def test_a_random_value_agrees_within_four_deviations_of_the_replicates() -> None:
    replicates = np.array([9.0, 10.0, 11.0, 10.0])
    reach = 4 * replicates.std(ddof=1) * np.sqrt(1.25) + 0.05
    assert replicated("value", f"{10 + reach - 0.1:.1f}", replicates).ok
    assert not replicated("value", f"{10 + reach + 0.1:.1f}", replicates).ok
    row = replicated("value", "10.5", replicates)
    assert (row.computed, row.difference) == (10.0, 0.5)
    assert row.sd == pytest.approx(0.8165, abs=1e-5)


def test_a_rare_share_has_at_least_its_binomial_error() -> None:
    never = np.zeros(10)
    assert not replicated("share", "0.001", never).ok
    assert replicated("share", "0.001", never, size=1000).ok
    assert not replicated("share", "0.020", never, size=1000).ok


def test_a_remark_does_not_excuse_a_random_value_that_disagrees() -> None:
    replicates = np.array([9.0, 10.0, 11.0, 10.0])
    assert replicated("value", "10.5", replicates, remark="a slip of words").remark == "a slip of words"
    assert not replicated("value", "99.0", replicates, remark="a slip of words").explained


def test_a_statement_has_no_difference() -> None:
    row = statement("claims", "none", 3, ok=False)
    assert row.difference is None
    assert not row.explained


def test_words_and_digits_of_print() -> None:
    assert lines("\n1 2.0\n3 4\n") == [["1", "2.0"], ["3", "4"]]
    assert [decimals(word) for word in ("1", "1.5", "0.0025")] == [0, 1, 4]


def test_a_row_as_plain_data() -> None:
    row = Row("d", (4, 1), (4, 1), np.True_, 0.0)  # type: ignore[arg-type]
    assert row.to_dict() == {"item": "d", "published": [4, 1], "computed": [4, 1], "difference": 0.0, "ok": True}
    assert row.to_dict()["ok"] is True
    assert Row("d", 1, 2, False, 1.0, remark="slip", sd=0.5).to_dict() == {
        "item": "d",
        "published": 1,
        "computed": 2,
        "difference": 1.0,
        "ok": False,
        "sd": 0.5,
        "remark": "slip",
    }


def test_a_reproduction_is_ok_when_every_row_is_explained() -> None:
    good, slip, bad = Row("a", 1, 1, True), Row("b", 1, 2, False, remark="slip"), Row("c", 1, 2, False)
    made = Reproduction("paper", tables=(PaperTable("Table 1", [good, slip]),), remarks=("another",))
    assert made.ok
    assert made.remarks == ("slip", "another")
    assert not Reproduction("paper", tables=(PaperTable("Table 1", [good, slip, bad]),)).ok
    assert not Reproduction("all", papers=(made, Reproduction("x", tables=(PaperTable("Table 1", [bad]),)))).ok
