"""The inventory says of every method what is secret, and the methods behave so."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sitebuilder import inventory
from sitebuilder.reference import EXAMPLES

import rankveil as rv
from rankveil import catalogue

METHODS = sorted(catalogue.methods())


def released(method: str, seed: int) -> pa.Table:
    """What a method alone makes of the demo: without named columns others would be exchanged beside it."""
    named = catalogue.get_method(method).works_on in ("column", "columns")
    own = {"columns": ["INCOME", "TAX", "SAVINGS"]} if named else {}
    return rv.mask(rv.datasets.demo(), method, seed=seed, **{**own, **EXAMPLES.get(method, {})}).data


def test_every_method_is_in_it_with_a_reason() -> None:
    assert sorted(inventory.WHY) == METHODS


def test_what_is_withheld_is_said() -> None:
    assert set(inventory.IN_PART) < set(METHODS)
    for name in inventory.IN_PART:
        method = catalogue.get_method(name)
        assert inventory.verdict(method) == "in part"
        assert f" in part | {inventory.secret_of(method)} | " in inventory.table(random=method.random)
    # what a method notes for the protector alone is one of these
    release = rv.mask(rv.datasets.demo(), "distribution_distortion", columns=["INCOME"], seed=1)
    assert "computed from the original" in " ".join(release.notes)
    assert "log_mean" in " ".join(release.notes)
    assert "log_mean" not in release.manifest.to_json()
    told = catalogue.get_method("pram").disclosure
    assert told is not None
    assert told({"to": "frequency", "invariant": False, "matrix": None})
    assert told({"to": "uniform", "invariant": False, "matrix": None}) == {}


def test_every_method_is_in_one_of_the_tables() -> None:
    for name, method in catalogue.methods().items():
        rows = [f"[{name}](" in inventory.table(random=random) for random in (True, False)]
        assert rows == [method.random, not method.random]


@pytest.mark.parametrize("method", [name for name in METHODS if not catalogue.get_method(name).post])
def test_a_method_without_a_secret_can_be_done_again_by_whoever_has_the_original(method: str) -> None:
    same = released(method, 1).equals(released(method, 2))
    assert same is (inventory.secret_of(catalogue.get_method(method)) == "nothing")
