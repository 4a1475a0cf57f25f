"""An attack in words, and the records it exposes."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankveil as rv
from rankveil.people.chance import by_guessing
from rankveil.report.attacks import attack_words, most_exposed


def attacked(**matching: Any) -> rv.Attack:
    """Twenty records of three attributes, of which only the first ten keep their values."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(20, 3))
    y = x.copy()
    y[10:] = rng.permuted(x[10:], axis=0)
    tables = [pa.table({f"A{j}": values[:, j] for j in range(3)}) for values in (x, y)]
    return rv.attack(*tables, **matching)


def test_an_attack_in_words_tells_claims_and_verdict() -> None:
    made = attacked()
    assert 0 < made.claims < 20
    said = attack_words(made.to_dict())
    told = f"can claim {made.claims} of 20 matches as closer than chance explains, {made.claims_right} of them rightly."
    assert told in said
    assert said.endswith("The release does NOT withstand the known-plaintext attack.")


def judged(claims: int, right: int | None, **more: Any) -> str:
    """The verdict on an attack on 500 records with so many claims."""
    content = {**attacked().to_dict(), "records": 500, "claims": claims, "claims_right": right, "withstands": False}
    guessed = by_guessing(right, claims=claims, records=500)
    return attack_words({**content, "claims_right_by_guessing": guessed, **more})


def test_one_wrong_claim_is_not_told_as_a_person_found() -> None:
    said = judged(1, 0)
    assert "does NOT withstand" not in said
    assert "By the strict rule, no claim at all, the release does not withstand the known-plaintext attack." in said
    assert "blind guesses are right as often with probability 1, so these claims do not show that anybody" in said
    assert said.endswith("5 % of attacks would still end with some claim.")


def test_claims_that_are_right_more_often_than_guesses_are_told_as_such() -> None:
    for claims, right in ((1, 1), (40, 2), (3, None)):
        assert judged(claims, right).endswith("The release does NOT withstand the known-plaintext attack.")
    best = {"attributes": ["A0"], "claims": 9, "claims_right": 9, "claims_right_by_guessing": 1e-9}
    said = judged(1, 0, subsets={"tried": 7, "every_subset": True, "draws": 10_000, "best": best})
    assert said.endswith("The release does NOT withstand the known-plaintext attack.")


def test_the_document_tells_how_often_guesses_are_right() -> None:
    made = attacked(subsets=True).to_dict()
    n, claims, right = 20, made["claims"], made["claims_right"]
    exact = sum(comb(claims, k) * (1 / n) ** k * (1 - 1 / n) ** (claims - k) for k in range(right, claims + 1))
    assert made["claims_right_by_guessing"] == pytest.approx(exact, rel=1e-9)
    best = made["subsets"]["best"]
    own = by_guessing(best["claims_right"], claims=best["claims"], records=n)
    assert best["claims_right_by_guessing"] == pytest.approx(7 * own, rel=1e-9)
    assert attacked(mapping=False).to_dict()["claims_right_by_guessing"] is None


def test_without_a_mapping_no_words_say_what_is_right() -> None:
    said = attack_words(attacked(mapping=False).to_dict())
    assert "as closer than chance explains." in said
    assert "rightly" not in said


def test_without_claims_the_release_withstands() -> None:
    original, masked = rv.datasets.running_example()
    said = attack_words(rv.attack(original, masked).to_dict())
    assert "the intruder can claim none" in said
    assert said.endswith("The release withstands the known-plaintext attack.")


def test_the_most_exposed_are_the_claimed_ones() -> None:
    made = attacked()
    exposed = most_exposed(made.links(), claims=made.claims)
    assert {link["original"] for link in exposed} == set((np.flatnonzero(made.claimed) + 1).tolist())
    assert most_exposed(made.links(), claims=0) == []
