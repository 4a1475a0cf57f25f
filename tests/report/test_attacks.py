"""An attack in words, and the records it exposes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import rankveil as rv
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
