"""What is advised: the manifest's masking as a command, stronger or weaker, and what tells most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import rankveil as rv
from rankveil import strengths
from rankveil.pairing import pair_tables
from rankveil.table import Table
from rankveil.verdict.advice import NEW, ORIGINAL, RELEASE, Advice
from rankveil.verdict.evidence import columns_told
from rankveil.verdict.remasking import Masking, masking_of, stronger, weaker

SEED = "c" * 32


def people() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame({"A": rng.normal(size=64), "B": rng.normal(size=64), "C": np.repeat([1.0, 2, 3, 4], 16)})


def test_a_manifest_is_told_as_a_command() -> None:
    plan = rv.Plan.of("additive_noise", columns=["A", "B"], alpha=0.25).then("round", decimals=1)
    made = masking_of(rv.mask(people(), plan, seed=SEED).manifest.content)
    assert made is not None
    assert made.words == (
        *("--method", "additive_noise", "--set", "alpha=0.25", "--columns", "A,B", "--then", "round:decimals=1"),
    )


def test_categories_that_mask_exchanges_by_itself_are_left_to_it() -> None:
    steps: list[dict[str, Any]] = [
        {"method": "copula_swap", "columns": ["A", "B"], "parameters": {"p": 20.0}, "per_column": {}},
        {"method": "pram", "columns": ["C"], "parameters": {"invariant": True}, "per_column": {"C": {"p": 0.2}}},
        {"method": "record_shuffle", "columns": ["A", "B", "C"], "parameters": {}},
    ]
    made = masking_of({"steps": steps})
    assert made is not None
    assert (made.words, made.masked) == (("--method", "copula_swap", "--set", "p=20"), 2)
    steps[1]["parameters"] = {"invariant": False}  # somebody chose that one
    assert masking_of({"steps": steps}) is None


def test_what_a_command_cannot_say_is_no_command() -> None:
    assert masking_of(None) is None
    own = {"method": "additive_noise", "columns": ["A"], "parameters": {}, "per_column": {"A": {"alpha": 0.1}}}
    assert masking_of({"steps": [own]}) is None
    assert masking_of({"steps": [{"method": "of another version", "columns": ["A"]}]}) is None
    assert masking_of({"steps": [{"method": "identity", "columns": ["A"], "parameters": {}}]}) is None


def test_as_strong_as_the_table_of_strengths_says() -> None:
    weak = Masking("copula_swap", {"p": 10.0}, masked=5)
    found = stronger(weak, columns=5, share=0.9, limit=0.09)
    assert found is not None
    made, expected = found
    assert made.value == strengths.strength_for("copula_swap", 5)
    assert expected is not None
    assert expected <= 0.09
    back = weaker(made.with_strength(60.0), columns=5)
    assert back is not None
    assert back[0].value == made.value
    assert weaker(weak, columns=5) is None
    assert stronger(weak.with_strength(70.7), columns=5, share=0.2, limit=0.09) is None


def test_groups_of_so_many_that_one_of_them_is_below_the_limit() -> None:
    found = stronger(Masking("mdav", {"k": 3}), columns=5, share=0.3, limit=0.09)
    assert found is not None
    assert found[0].value == 12
    assert stronger(Masking("mdav", {}), columns=5, share=0.3, limit=0.09) is None


def test_what_is_released_as_it_is_tells_its_entropy() -> None:
    table = people()
    masked = table.assign(A=np.roll(np.asarray(table["A"]), 13))
    told = columns_told(Table.of(table), Table.of(masked), pair_tables(table, masked), ["A", "B", "C"])
    assert [(each.name, each.untouched) for each in told] == [("B", True), ("C", True), ("A", False)]
    assert [round(each.bits, 9) for each in told[:2]] == [6, 2]
    assert told[2].bits < 1
    assert columns_told(Table.of(table), Table.of(masked), pair_tables(table, masked, mapping=False), ["A"]) == []


def test_files_are_named_and_what_was_declared_of_them() -> None:
    made = Advice("Leave out A.", ("rankveil", "mask", ORIGINAL, "-o", NEW, "--role", "A=identifier"))
    named = made.of_files("people 1.csv", "out/release.parquet", reading=["--role", "A=other", "--missing", "-9"])
    assert named.command == "rankveil mask 'people 1.csv' -o out/release-2.parquet --role A=identifier --missing -9"
    assert (
        Advice("", ("rankveil", "audit", ORIGINAL, RELEASE)).of_files("a", "b.csv").command == "rankveil audit a b.csv"
    )
