"""What reports open with, from plain data."""

from __future__ import annotations

from typing import Any

import pytest

from rankveil.report.decision import attack_opening, compare_opening, light, limit_of, opening, value_of
from rankveil.report.page import Section, render


def item(**given: Any) -> dict[str, Any]:
    return {"id": "people_found", "value": 0.05, "limit": 0.09, "status": "green", "sentence": "Some."} | given


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, ("GREEN", "5 %", "at most 9 %")),
        ({"id": "certain", "value": 24355, "limit": 0, "status": "red"}, ("RED", "24,355", "none allowed")),
        ({"id": "k_anonymity", "value": 2, "limit": 3, "status": "red"}, ("RED", "2", "at least 3")),
        ({"id": "k_anonymity", "value": 1, "limit": None}, ("-", "1", "no limit")),
        ({"value": None, "status": "amber"}, ("AMBER", "not measured", "at most 9 %")),
        (
            {"id": "worst_utility", "measure": "table_cells", "value": 0.85, "limit": 0.9},
            ("GREEN", "85 %", "at most 90 %"),
        ),
        (
            {"id": "worst_utility", "measure": "mean_shift", "value": 0.2, "limit": 0.1, "status": "red"},
            ("RED", "0.2 sd", "at most 0.1 sd"),
        ),
        ({"id": "guarantees", "value": 0, "limit": 0, "promised": 0}, ("-", "none promised", "")),
        (
            {"id": "guarantees", "value": 1, "limit": 0, "promised": 2, "status": "red"},
            ("RED", "1 refuted", "none allowed"),
        ),
    ],
)
def test_a_number_its_limit_and_its_light(given: dict[str, Any], shown: tuple[str, str, str]) -> None:
    made = item(**given)
    assert (light(made), value_of(made), limit_of(made)) == shown


def test_a_public_page_has_the_light_and_no_commands() -> None:
    content = {
        "status": "red",
        "headline": [item(value=0.3, status="red")],
        "advice": [{"sentence": "Mask.", "command": "rankveil mask people.csv -o out.csv"}],
    }
    pages = [
        render(title="t", lead="", sections=[Section("s", "x")], internal=internal, opening=opening(content))
        for internal in (True, False)
    ]
    assert all("A limit is broken. Do not publish this release as it is." in page for page in pages)
    assert ["rankveil mask people.csv" in page for page in pages] == [True, False]
    assert all(
        page.index('class="verdict red"') < page.index("All measures") < page.index("<h3>s</h3>") for page in pages
    )


def test_an_attack_opens_by_its_verdict() -> None:
    found = {"share": 0.3, "interval": [0.2, 0.4], "right": 3, "of": 10}
    content = {"verdict": "fails", "sentence": "About 1 person in 3.", "found": found, "limit": 0.09, "certain": 0}
    made = attack_opening(content)
    assert (made.status, [row.light for row in made.rows]) == ("red", ["red", "green"])
    assert attack_opening(content | {"verdict": "holds"}).status == "green"
    assert attack_opening({"verdict": None, "sentence": "By distance."}).status == "amber"


def test_a_comparison_opens_by_whether_its_plan_was_confirmed() -> None:
    sure = {"seeds": 10, "held": 10, "found": 0.05, "interval": [0.04, 0.06], "certain": 0}
    content: dict[str, Any] = {"recommendation": "Take mdav.", "at": {"found": 0.09}}

    def status(**confirmed: Any) -> str:
        pick = {"id": "mdav", "parameters": {}, "confirmed": sure | confirmed}
        made = compare_opening(content | {"pick": pick}, limited=True)
        assert made is not None
        return made.status

    assert [status(), status(held=9), status(certain=1)] == ["green", "amber", "amber"]
    none = compare_opening(content | {"pick": None}, limited=True)
    assert none is not None
    assert none.status == "red"
    assert compare_opening(content | {"pick": None}, limited=False) is None
