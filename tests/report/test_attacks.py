"""An attack in words, its page, and the matches that the paper's test lists."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.people.chance import by_guessing
from rankveil.report.attacks import attack_page, attack_sections, attack_words, evidence_rows, most_exposed


def attacked(**matching: Any) -> rv.Attack:
    """Twenty records of three attributes, of which only the first ten keep their values."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(20, 3))
    y = x.copy()
    y[10:] = rng.permuted(x[10:], axis=0)
    tables = [pa.table({f"A{j}": values[:, j] for j in range(3)}) for values in (x, y)]
    return rv.attack(*tables, **matching)


def judged(**changed: Any) -> str:
    """An attack on 1,080 records in words, with what is changed of it."""
    found = {"share": 0.3, "right": 324, "expected": 318.2, "of": 1080, "interval": [0.27, 0.33], "guessing": 1 / 1080}
    content = {"verdict": "fails", "limit": 0.09, "found": found, "certain": 0, "claims": 200, "claims_right": 191}
    return attack_words({**content, "sentence": "About 1 person in 3 can be found.", **changed})


def test_an_attack_in_words_says_who_is_found_then_the_verdict() -> None:
    made = attacked()
    content = made.to_dict()
    said = attack_words(content)
    assert made.found >= 0.5
    assert said.startswith(f"{made.sentence} The release FAILS (at most 9 % found, nobody with certainty): ")
    assert "more people are found than that" in said
    assert f"Found are {100 * made.found:g} % of 20 people (measured; 95 % interval " in said
    assert "blind guessing finds 5 %." in said


def test_what_is_claimed_and_what_is_certain_is_said() -> None:
    assert "He can claim 200 links and expects at most 5 % of them to be wrong; 191 right." in judged()
    assert "There is no set of links that he can claim" in judged(claims=0, claims_right=0)
    sure = judged(certain=143)
    assert "more people are found than that and 143 links are certain." in sure
    few = {"share": 0.002, "right": 2, "expected": 2.0, "of": 1080, "interval": [0.0, 0.01], "guessing": 1 / 1080}
    assert "nobody with certainty): 2 links are certain." in judged(found=few, certain=2)


def test_nothing_reassuring_stands_above_a_verdict_that_fails() -> None:
    few = {"share": 0.05, "right": 54, "expected": 50.0, "of": 1080, "interval": [0.04, 0.07], "guessing": 1 / 1080}
    holds = judged(found=few, verdict="holds")
    assert "The release holds against this intruder by the limit asked for (at most 9 % found" in holds
    assert "FAILS" not in holds
    assert "holds" not in judged()


def test_a_worst_case_stands_beside_the_scenario() -> None:
    made = attacked(knows=["A0"])
    said = attack_words(made.to_dict())
    assert made.worst is not None
    assert said.endswith(f"Somebody who knows all originals finds {100 * made.worst.share:.4g} %: the worst case.")
    [grid] = [grid for grid in attack_sections(made.to_dict(), made.pictures())[0].tables if grid.columns[0] == "who"]
    assert [row[:2] for row in grid.rows] == [
        ("the scenario", "A0; everybody"),
        ("knows all originals", "A0, A1, A2; everybody"),
    ]


def test_without_a_mapping_no_words_say_what_is_right() -> None:
    content = attacked(mapping=False).to_dict()
    said = attack_words(content)
    assert "(as he expects; 95 % interval " in said
    assert "which links are right is not known here" in said
    assert "% of them to be wrong." in said or "no set of links" in said
    assert {row[1] for row in evidence_rows(content)} == {"not known"}


def test_every_kind_of_evidence_has_its_line() -> None:
    made = attacked().to_dict()
    rows = evidence_rows(made)
    assert [row[0] for row in rows][:2] == [
        "the probability of the released values, learned from the two tables",
        "what follows from values that change places in pairs",
    ]
    assert rows[0][1] == f"{100 * made['evidence'][0]['found']:g} %"


def test_the_papers_test_stands_below_under_its_own_name() -> None:
    made = attacked()
    titles = [section.title for section in attack_sections(made.to_dict(), made.pictures())]
    assert titles[:3] == ["How people are found", "The paper's own test", "Which attributes moved least"]
    page = attack_page(made.to_dict(), made.pictures())
    assert page.index("How people are found") < page.index("The paper&#39;s own test")
    assert "withstand" not in page


def test_the_document_tells_how_often_guesses_are_right() -> None:
    made = attacked(subsets=True).to_dict()
    n, claims, right = 20, made["chance"]["claims"], made["chance"]["claims_right"]
    assert 0 < claims < 20
    exact = sum(comb(claims, k) * (1 / n) ** k * (1 - 1 / n) ** (claims - k) for k in range(right, claims + 1))
    assert made["chance"]["claims_right_by_guessing"] == pytest.approx(exact, rel=1e-9)
    best = made["subsets"]["best"]
    own = by_guessing(best["claims_right"], claims=best["claims"], records=n)
    assert best["claims_right_by_guessing"] == pytest.approx(7 * own, rel=1e-9)
    assert attacked(mapping=False).to_dict()["chance"]["claims_right_by_guessing"] is None


def test_the_papers_words_tell_its_counts_and_no_verdict() -> None:
    made = attacked(subsets=True)
    content = made.to_dict()
    section = attack_sections(content, made.pictures())[1]
    counts, chance = content["counts"], content["chance"]
    assert f"{counts['correct']} have their own released record as their only nearest one" in section.text
    assert f"Nearer than chance explains are {chance['claims']} matches, {chance['claims_right']} of them right." in (
        section.text
    )
    assert "With the best of 7 subsets of attributes" in section.text
    assert "this is no verdict" in section.text
    blind = attacked(mapping=False)
    [told] = [part.text for part in attack_sections(blind.to_dict(), blind.pictures()) if "paper's" in part.title][:1]
    assert "of them right" not in told


def test_the_most_exposed_are_the_claimed_ones() -> None:
    made = attacked().plaintext
    assert made is not None
    exposed = most_exposed(made.links(), claims=made.claims)
    assert {link["original"] for link in exposed} == set((np.flatnonzero(made.claimed) + 1).tolist())
    assert most_exposed(made.links(), claims=0) == []
