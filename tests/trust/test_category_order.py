"""The order of categories tells nothing: not who came first, nor what a pseudonym stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv

WORDS = ["zurich", "bern", "milan", "aarau"]
PLANS = {
    "pram": rv.Plan.of("pram", p=0.5, columns=["TOWN"]),
    "permute": rv.Plan.of("permute", columns=["TOWN"]),
    "randomised": rv.Plan.of("randomized_response", p=0.5, columns=["TOWN"]),
    "suppressed": rv.Plan.of("suppress", k=2, columns=["TOWN"]),
    "sampled": rv.Plan.of("sample", share=0.7),
    "left beside a sample": rv.Plan.of("additive_noise", columns=["A"]).then("sample", size=40),
}


def towns() -> list[str]:
    """The four, then others at random: a dictionary made of them begins with the first records' towns."""
    return [*WORDS, *np.random.default_rng(0).choice(WORDS, 76)]


@pytest.mark.parametrize("plan", PLANS.values(), ids=list(PLANS))
@pytest.mark.parametrize("kind", ["pandas", "arrow", "pandas of arrow"])
def test_dictionaries_do_not_tell_who_came_first(plan: rv.Plan, kind: str) -> None:
    table: Any = pa.table({"A": np.arange(80.0), "TOWN": pa.array(towns()).dictionary_encode()})
    assert table["TOWN"].chunk(0).dictionary.to_pylist() == WORDS
    if kind == "pandas":
        table = pd.DataFrame({"A": np.arange(80.0), "TOWN": pd.Categorical(towns(), WORDS)})
    elif kind == "pandas of arrow":
        table = table.to_pandas(types_mapper=pd.ArrowDtype)
    released = rv.mask(table, plan, seed=1, shuffled=False, schema={"roles": {"A": "confidential"}}).data
    if kind == "pandas":
        words = released["TOWN"].cat.categories.tolist()
    elif kind == "arrow":
        words = released["TOWN"].combine_chunks().dictionary.to_pylist()
    else:
        words = pa.array(released["TOWN"]).dictionary.to_pylist()
    assert words == sorted(words)
    assert set(words) == set(WORDS)


def test_levels_keep_their_order() -> None:
    table = pd.DataFrame({"A": np.arange(80.0), "TOWN": pd.Categorical(towns(), WORDS, ordered=True)})
    assert rv.mask(table, PLANS["pram"], seed=1).data["TOWN"].cat.categories.tolist() == WORDS


def test_parts_have_the_same_dictionaries(tmp_path: Path) -> None:
    table = pa.table({"A": np.arange(80.0), "TOWN": pa.array(towns()).dictionary_encode()})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=20)
    for name, plan in (("pram", PLANS["pram"]), ("sample", PLANS["sampled"])):
        out = tmp_path / name
        made = rv.mask(tmp_path / "in.parquet", plan, seed=1, cluster="local:1", output=out)
        assert made.manifest["records"]["in"] == 80
        for part in out.glob("*.parquet"):
            words = pq.read_table(part)["TOWN"].combine_chunks().dictionary.to_pylist()
            assert words == sorted(words)


def test_pseudonyms_of_levels_are_in_no_order_of_theirs() -> None:
    levels = [f"step {number}" for number in range(12)]
    table = pd.DataFrame({"A": np.arange(60.0), "STEP": pd.Categorical(levels * 5, levels, ordered=True)})
    released = rv.mask(table, "pseudonymise", columns=["STEP"], seed=1).data["STEP"]
    words = released.cat.categories.tolist()
    assert words == sorted(words)
    known = dict(zip(table["STEP"], released, strict=True))
    assert len(set(known.values())) == 12  # and every level has its own, everywhere
    assert [known[level] for level in table["STEP"]] == released.tolist()
    assert [known[level] for level in levels] != words
