"""The order of the rows: synthetic records belong to nobody, so their places must not tell whose they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rankveil as rv
from rankveil import catalogue, files
from rankveil.cli import main
from rankveil.plans import Plan

Tally = Callable[..., None]

FALSE_ALARM = 1e-6
RECORDS = 400

SYNTHETIC = [name for name, entry in catalogue.methods().items() if entry.mapping == "none"]


def people(seed: int = 0, records: int = RECORDS) -> pa.Table:
    """A register in the order of its numbers; the town passes unmasked, as what is not confidential does."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, records).astype(float)
    return pa.table(
        {
            "NUMBER": np.arange(records),
            "TOWN": [f"town {k}" for k in rng.integers(0, 9, records)],
            "AGE": age,
            "INCOME": 300 * age + rng.normal(scale=4000, size=records),
            "RENT": rng.lognormal(6, 0.5, records),
        }
    )


def synthetic(method: str, table: Any, **how: Any) -> rv.Release:
    """Income and rent drawn anew; what is beside them passes."""
    own = {"given": ["AGE"]} if "given" in catalogue.get_method(method).parameters else {}
    return rv.mask(table, method, columns=["INCOME", "RENT"], release_identifiers=["NUMBER"], **own, **how)


@pytest.mark.parametrize("method", SYNTHETIC)
def test_places_tell_nothing(method: str, tally: Tally) -> None:
    stayed, related = [], []
    for seed in range(8):
        release = synthetic(method, people(seed), seed=seed)
        numbers = release.data["NUMBER"].to_numpy()
        stayed.append(int(np.sum(numbers == np.arange(RECORDS))))
        related.append(stats.spearmanr(numbers, np.arange(RECORDS)).statistic)
    tally("synthetic releases whose order was compared with the original's", 8)
    # the records at their own place are one on average, and 8 releases add up to a Poisson count
    assert stats.poisson.sf(sum(stayed) - 1, 8) > FALSE_ALARM
    standard = np.abs(related) * np.sqrt(RECORDS - 1)
    assert standard.max() < stats.norm.isf(FALSE_ALARM / 2 / len(related))


@pytest.mark.parametrize("method", SYNTHETIC)
def test_in_the_originals_order_a_place_would_tell_everything(method: str) -> None:
    """The control: who knows the tenth of the register would read the tenth record's town and age in the release."""
    table = people()
    release = synthetic(method, table, seed=1, shuffled=False)
    assert release.data["NUMBER"].equals(table["NUMBER"])
    warned = "warning: the synthetic records stand in the original's order, so that a place tells whose it was"
    assert warned in release.notes


@pytest.mark.parametrize("method", SYNTHETIC)
def test_records_travel_whole_and_the_secret_knows_where(method: str) -> None:
    table = people()
    kept, shuffled = (synthetic(method, table, seed=1, shuffled=choice) for choice in (False, True))
    order = shuffled.secret.order
    assert order is not None
    assert shuffled.data.equals(kept.data.take(pa.array(order)))
    assert kept.secret.order is None
    assert [step["method"] for step in shuffled.manifest["steps"]] == [method, "record_shuffle"]
    assert shuffled.manifest["mapping"] == "none"
    assert "the synthetic records stand in random order, so that no place tells whose it was" in shuffled.notes


def test_labels_of_rows_stay_behind() -> None:
    frame = people().to_pandas()
    frame.index = [f"person {k}" for k in range(RECORDS)]
    release = synthetic("ipso", frame, seed=1)
    assert release.data.index.tolist() == list(range(RECORDS))


def as_arrow(words: list[str]) -> Any:
    return pa.table({"WORD": pa.array(words).dictionary_encode(), "A": np.arange(float(len(words)))})


def as_pandas(words: list[str]) -> Any:
    return as_arrow(words).to_pandas()  # the categories in the order in which they came


def as_pandas_of_arrow(words: list[str]) -> Any:
    return as_arrow(words).to_pandas(types_mapper=pd.ArrowDtype)


def as_polars(words: list[str]) -> Any:
    return pl.DataFrame({"WORD": pl.Series(words, dtype=pl.Categorical), "A": np.arange(float(len(words)))})


def words_of(frame: Any) -> Any:
    """The column of words as it would be written to a file, with its dictionary."""
    if isinstance(frame, pd.DataFrame):
        frame = pa.Table.from_pandas(frame, preserve_index=False)
    table = frame.to_arrow() if isinstance(frame, pl.DataFrame) else frame
    column = table["WORD"].combine_chunks()
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


@pytest.mark.parametrize("made", [as_arrow, as_pandas, as_pandas_of_arrow, as_polars])
@pytest.mark.parametrize("columns", [["A"], ["WORD"]])
def test_categories_do_not_tell_which_record_came_first(made: Any, columns: list[str]) -> None:
    """A dictionary is made in the order of the records: were it released so, it would give the order back."""
    words = [f"word {k:03d}" for k in np.random.default_rng(5).permutation(200)]
    schema = {"roles": {"WORD": "other", "A": "confidential"}}
    release = rv.mask(made(words), "permute", columns=columns, then="record_shuffle", seed=1, schema=schema)
    order = release.secret.order
    assert order is not None
    column = words_of(release.data)
    if columns == ["A"]:
        assert column.to_pylist() == [words[row] for row in order]
    assert sorted(column.to_pylist()) == sorted(words)
    assert words_of(made(words)).dictionary.to_pylist() == words  # as it came
    assert column.dictionary.to_pylist() in (sorted(words), column.to_pylist())


def test_an_order_that_means_something_stays() -> None:
    kind = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
    frame = pd.DataFrame({"LEVEL": pd.Categorical(["high", "low", "middle", "low"] * 5, dtype=kind), "A": range(20)})
    release = rv.mask(frame, "permute", columns=["A"], then="record_shuffle", seed=1, release_identifiers=["A"])
    assert release.data["LEVEL"].dtype == kind


def test_measures_that_pair_records_are_not_published_of_synthetic_ones() -> None:
    release = synthetic("ipso", people(), seed=1, publish=["um", "cm1"])
    assert list(release.manifest["measures"]) == ["um"]
    assert any(note.startswith("cm1 is not published: ") for note in release.notes)


STEPS = ["ipso", "rank_swap", "additive_noise", "round", "rescale", "reverse_map", "record_shuffle", "permute"]


@given(names=st.lists(st.sampled_from(STEPS), min_size=1, max_size=5), sampled=st.booleans())
def test_every_plan_with_a_synthetic_step_shuffles_once(names: list[str], sampled: bool) -> None:
    plan = Plan.of(names[0])
    for name in names[1:]:
        plan = plan.then(name)
    if sampled:  # leaves records out, and keeps the order of the others
        plan = plan.then("sample", share=0.5)
    made = plan.in_random_order()
    assert made.in_random_order() == made
    assert made.steps[: len(plan.steps)] == plan.steps
    added = [step.method for step in made.steps[len(plan.steps) :]]
    needed = "ipso" in names and "record_shuffle" not in names
    assert added == (["record_shuffle"] if needed else [])


@pytest.mark.parametrize("records", [4, 7])
def test_no_place_of_a_small_table_is_certain(records: int, tally: Tally) -> None:
    """Over many seeds every record comes to the first place."""
    table = people(records=records)
    made = [
        rv.mask(table, "ipso", columns=["INCOME"], seed=seed, release_identifiers=["NUMBER"]).data
        for seed in range(120)
    ]
    first = {each["NUMBER"][0].as_py() for each in made}
    tally("synthetic releases whose order was compared with the original's", 120)
    assert first == set(range(records))  # misses one with a chance of 7 (6/7)^120 < 1e-7


def test_a_pipeline_gives_a_row_for_every_row() -> None:
    """A target stands beside a pipeline's table, so there the records stay in their places."""
    frame = people().to_pandas()[["AGE", "INCOME"]]
    made = rv.Masker("ipso", columns=["INCOME"], given=["AGE"], seed=1).fit_transform(frame)
    assert made["AGE"].equals(frame["AGE"])


def test_the_command_shuffles_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files.save(people(), tmp_path / "people.csv")
    words = ["--method", "ipso", "--columns", "INCOME,RENT", "--set", "given=AGE", "--release-identifier", "NUMBER"]
    assert main(["mask", str(tmp_path / "people.csv"), "-o", str(tmp_path / "out.csv"), *words]) == 0
    assert "masked by ipso, then record_shuffle" in capsys.readouterr().out
    numbers = files.load(tmp_path / "out.csv").data["NUMBER"].to_pylist()
    assert sorted(numbers, key=int) == [str(k) for k in range(RECORDS)]
    assert numbers != sorted(numbers, key=int)
