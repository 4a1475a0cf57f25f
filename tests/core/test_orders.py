"""The order that labels tell themselves: bands of numbers and well-known scales, and what has none."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankveil as rv
from rankveil.orders import detected, ends, middle


@pytest.mark.parametrize(
    ("label", "band"),
    [
        ("20-29", (20, 29)),
        ("20 \u2013 29", (20, 29)),
        ("20 to 29", (20, 29)),
        ("20..29", (20, 29)),
        ("[18,30)", (18, 30)),
        ("(18, 30]", (18, 30)),
        ("]18;30]", (18, 30)),
        ("(-inf,18)", (-inf, 18)),
        ("[65,inf)", (65, inf)),
        ("[65, +\u221e)", (65, inf)),
        ("-5--1", (-5, -1)),
        ("0.5-1.5", (0.5, 1.5)),
        ("1e3-2e3", (1000, 2000)),
        ("65+", (65, inf)),
        ("65 and over", (65, inf)),
        ("5 or more", (5, inf)),
        (">= 65", (65, inf)),
        ("over 65", (65, inf)),
        ("\u2265 65", (65, inf)),
        ("<18", (-inf, 18)),
        ("\u2264 18", (-inf, 18)),
        ("Under 18", (-inf, 18)),
        ("up to 18", (-inf, 18)),
        ("29-20", None),
        ("2024-01", None),
        ("7", None),
        ("Ulm", None),
        ("a-b", None),
        ("1-2-3", None),
        ("", None),
        ("-", None),
        ("+", None),
    ],
)
def test_ends_of_bands(label: str, band: tuple[float, float] | None) -> None:
    assert ends(label) == band


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (["20-29", "<20", "40+", "30-39"], ("<20", "20-29", "30-39", "40+")),
        (["[10,20)", "[9,10)"], ("[9,10)", "[10,20)")),
        (["5-9", "0", "1-4", "10+"], ("0", "1-4", "5-9", "10+")),  # a number among bands is a band of one
        (["(0,5]", "(5,10]"], ("(0,5]", "(5,10]")),
        (["High", "LOW", "very  low"], ("very  low", "LOW", "High")),
        (["good", "excellent", "fair"], ("fair", "good", "excellent")),
        (["agree", "strongly agree", "neutral", "disagree"], ("disagree", "neutral", "agree", "strongly agree")),
        (["low", "high", "low"], ("low", "high")),
        (["low"], None),
        ([], None),
        (["low", "high", "unknown"], None),
        (["low", "Low", "high"], None),  # which of the two comes first?
        (["0-10", "5-15"], None),  # they overlap
        ([">5", "5+"], None),
        (["1", "2", "3"], None),  # numbers are no bands
        (["1", "2", "3-4"], None),
        (["10-19", "20-29", "retired"], None),
        (["good", "sometimes"], None),  # of two scales
    ],
)
def test_what_the_labels_tell(labels: list[str], order: tuple[str, ...] | None) -> None:
    assert detected(labels) == order


@given(st.lists(st.integers(-1000, 1000), min_size=3, max_size=12, unique=True), st.randoms())
def test_bands_between_any_cuts_come_out_in_order(cuts: list[int], chance: object) -> None:
    cuts.sort()
    bands = [f"(-inf,{cuts[0]})", *(f"[{a},{b})" for a, b in pairwise(cuts)), f"[{cuts[-1]},inf)"]
    shuffled = bands.copy()
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert detected(shuffled) == tuple(bands)
    assert all(a <= middle(f"[{a},{b})") <= b for a, b in pairwise(cuts))  # type: ignore[operator]


def test_middles() -> None:
    assert [middle(label) for label in ("[18,30)", "65+", "<18", "7", " 7.5 ", "(-inf,inf)", "Ulm")] == [
        24,
        65,
        18,
        7,
        7.5,
        None,
        None,
    ]
    assert middle("-1.7e308-1.7e308") == 0  # the sum of the ends would be too large


def table(labels: list[str], **schema: object) -> rv.Table:
    return rv.Table(pa.table({"BAND": labels}), schema=rv.Schema(**schema))  # type: ignore[arg-type]


def test_an_order_that_is_told_is_taken_when_asked_for_and_mentioned_otherwise() -> None:
    labels = ["20-29", "<20", "30+", "20-29"]
    asked = table(labels, kinds={"BAND": "ordinal"})
    assert asked.labels("BAND") == ("<20", "20-29", "30+")
    assert asked.values("BAND").tolist() == [1, 0, 2, 1]
    found = table(labels).columns["BAND"]
    assert found.kind == "nominal"
    assert found.why == "its labels look ordered (<20 < 20-29 < 30+): --kind BAND=ordinal ranks them so"
    given_ = table(labels, levels={"BAND": ("30+", "20-29", "<20")})  # a person knows better
    assert given_.values("BAND").tolist() == [1, 2, 0, 1]
    with pytest.raises(rv.TableError, match="the order of its values is not known"):
        table(["Ulm", "Bonn"], kinds={"BAND": "ordinal"}).values("BAND")


def test_masked_bands_are_compared_with_numbers_at_their_middles() -> None:
    original = pa.table({"AGE": [12, 25, 28, 70]})
    masked = pa.table({"AGE": ["<20", "[20,30)", "[20,30)", "65+"]})
    made = rv.audit(original, masked, measures=["um"])
    assert any(note.startswith("column AGE") and "at their middles" in note for note in made.to_dict()["notes"])
    # ranks 1, 2, 3, 4 and 1, 2.5, 2.5, 4
    assert made["um"] > 0.8
