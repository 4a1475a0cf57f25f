"""Two tables in parts are compared on the same records as in memory: missing values, categories, keys, no mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankveil as rv
from rankveil.errors import PairError, TableError
from rankveil.measures.canonical_correlation import without_mapping
from rankveil.partitions import beside, looking, permuting
from rankveil.partitions.aligning import parted_tables
from rankveil.partitions.beside import SideBySide
from rankveil.partitions.measures import ask_order
from rankveil.partitions.parquet import survey
from rankveil.partitions.parted import MeasuringParts, Parted
from rankveil.partitions.scratch import Scratch
from rankveil.seeds import Seed

Made = Callable[..., Parted]

BY_RANKS = ("cm1", "cm2", "mutual_information", "um", "spearman_risk", "permutation_level")
BY_VALUES = ("power_mean", "il", "il1s", "pil", "interval_disclosure", "loss_factor_scores_mse", "correlation_half_mae")
N = 240


@pytest.fixture
def parted(tmp_path: Path, each: Any) -> Made:
    """Two tables as Parquet folders, the masked one cut elsewhere, and the pair that they are in parts."""

    def made(x: pa.Table, y: pa.Table, *, rows: int = 70, **how: Any) -> Parted:
        sources, place = {}, Path(mkdtemp(dir=tmp_path))
        for side, table, step in (("x", x, rows), ("y", y, rows // 2 + 1)):
            folder = place / side
            folder.mkdir()
            for start in range(0, len(table), step):
                pq.write_table(table.slice(start, step), folder / f"{start:05d}.parquet")
            sources[side] = survey(str(folder))
        (place / "scratch").mkdir()
        return parted_tables(
            each,
            sources["x"],
            sources["y"],
            bounds={side: source.bounds(rows=rows) for side, source in sources.items()},
            scratch=Scratch(str(place / "scratch")),
            seed=Seed.of(3),
            ask=partial(ask_order, {}),
            **how,
        )

    return made


def numbers(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 3)) @ (np.eye(3) + 0.4)
    x[:, 1], x[:, 2] = np.round(x[:, 1], 1), rng.integers(0, 4, N)
    y = x + 0.4 * rng.normal(size=x.shape)
    y[:, 1], y[:, 2] = np.round(y[:, 1], 1), np.round(y[:, 2])
    return x, y


def with_gaps(values: Any, seed: int) -> Any:
    made = values.copy()
    made[np.random.default_rng(seed).random(values.shape) < 0.06] = np.nan
    return made


def table(values: Any, **more: Any) -> pa.Table:
    return pa.table({**{f"V{j}": values[:, j] for j in range(values.shape[1])}, **more})


def same_gaps() -> Any:
    x, y = numbers()
    x = with_gaps(x, 1)
    y[np.isnan(x)] = np.nan
    return table(x), table(y), {}


def other_gaps() -> Any:
    x, y = numbers()
    return table(with_gaps(x, 1)), table(with_gaps(y, 2)), {}


def categories() -> Any:
    """Text, levels, truth values, dictionaries, dates, times, codes for missing cells, and all of it with gaps."""
    rng = np.random.default_rng(4)
    sides = []
    for place, values in enumerate(numbers()):
        words = np.array(["north", "south", "east", "west", " south"])[rng.integers(0, 5 - place, N)]
        levels = [
            None if rng.random() < 0.05 else word for word in np.array(["low", "middle", "high"])[rng.integers(0, 3, N)]
        ]
        days = np.datetime64("2020-01-01") + rng.integers(0, 300, N)
        times = (np.datetime64("2020-01-01T00:00:00") + rng.integers(0, 10**6, N)).astype("datetime64[ms]")
        codes = rng.integers(0, 50, N)
        codes[rng.random(N) < 0.05] = -9
        grades = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 3, N)), ["c", "b", "a"], ordered=True)
        more = {"WORD": pa.array(words), "LEVEL": pa.array(levels), "YES": pa.array(rng.random(N) < 0.3)}
        more |= {"DAY": pa.array(days), "TIME": pa.array(times), "CODE": pa.array(codes), "GRADE": grades}
        sides.append(table(with_gaps(values, place), **more))
    schema = rv.Schema(
        kinds={"LEVEL": "ordinal", "CODE": "numeric"},
        roles={"WORD": "quasi-identifier", "YES": "confidential", "V2": "other", "CODE": "confidential"},
        missing=("-9", "west"),
    )
    return *sides, {"schema": schema}


def a_hierarchy() -> Any:
    rng = np.random.default_rng(5)
    x, y = numbers()
    groups = [["a", "vowel"], ["e", "vowel"], ["b", "consonant"], ["c", "consonant"]]
    words = [np.array(["a", "b", "c", "e"])[rng.integers(0, 4, N)] for _ in range(2)]
    made = [table(values, LETTER=pa.array(word)) for values, word in zip((x, y), words, strict=True)]
    return *made, {"schema": rv.Schema(hierarchies={"LETTER": groups})}


def a_key() -> Any:
    x, y = numbers()
    order = np.random.default_rng(6).permutation(N)
    keys = pa.array([f"k{i % 100}-{i}" for i in range(N)])
    return table(x, ID=keys), table(y, ID=keys).take(order), {"key": "ID"}


def a_key_of_some() -> Any:
    x, y = numbers()
    order = np.random.default_rng(6).permutation(N)[:200]
    first = table(with_gaps(x, 1), ID=pa.array(np.arange(N, dtype=float)))
    second = table(with_gaps(y, 2), ID=pa.array(range(5, N + 5))).take(order)
    return first, second, {"key": "ID"}


def no_mapping() -> Any:
    x, y = numbers()
    return table(x), table(y), {"mapping": False}


def no_mapping_and_fewer() -> Any:
    x, y = numbers()
    return table(with_gaps(x, 1)), table(with_gaps(y[:171], 2)), {"mapping": False}


CASES = (
    same_gaps,
    other_gaps,
    categories,
    a_hierarchy,
    a_key,
    a_key_of_some,
    no_mapping,
    no_mapping_and_fewer,
)


def alike(found: Any, wanted: Any, *, near: float) -> None:
    if isinstance(wanted, Mapping):
        assert found.keys() == wanted.keys()
        for key in wanted:
            alike(found[key], wanted[key], near=near)
    elif isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            alike(a, b, near=near)
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=near, abs=near)
    else:
        assert found == wanted


@pytest.mark.parametrize("case", CASES)
def test_what_is_compared_is_what_is_compared_in_memory(case: Any, parted: Made) -> None:
    x, y, how = case()
    pair = parted(x, y, **how)
    names = [*BY_RANKS, *BY_VALUES]
    values, why = MeasuringParts(pair, special={}).all(names)
    memory = rv.audit(x, y, measures=names, seed=3, **how)
    assert pair.names == memory.attributes
    assert pair.records == memory.records
    assert pair.mapping == memory.mapping
    assert pair.rankings == memory.to_dict()["rankings"]
    assert pair.notes == memory.notes[: len(pair.notes)]
    assert why == memory.not_applicable
    assert values.keys() == memory.values.keys()
    for name, value in values.items():
        expected = memory.values[name]
        near = 1e-12 if name in BY_RANKS else 1e-9
        assert value.value == pytest.approx(expected.value, rel=near, abs=0), name
        assert value.notes == expected.notes
        assert value.used == expected.used, name
        alike(value.details, expected.details, near=1e-9)


@pytest.mark.parametrize("case", [same_gaps, categories, a_key_of_some, no_mapping_and_fewer])
def test_records_side_by_side_by_their_places(case: Any, parted: Made, each: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(beside, "BUCKET", 37)
    monkeypatch.setattr(beside, "_SAMPLES", 9)
    monkeypatch.setattr(permuting, "_RANGE", 50)
    x, y, how = case()
    pair = parted(x, y, **how)
    view = pair.table
    tied = any(column.tied for column in view.records.columns)
    tables = SideBySide(view.job, each, tied, pair.seed.stream("measure", "cm3", "table"))
    made = without_mapping(view.rank_basis_x, view.rank_basis_y, tables, names=view.names)
    tables.close()
    expected = rv.audit(x, y, measures=["cm3"], seed=3, **how).values["cm3"]
    assert made.value == expected.value  # sums of products are exact
    assert made.details == expected.details
    assert made.notes == expected.notes
    left = {path.name.split("-", 1)[1].partition("-")[0] for path in Path(view.job.scratch.folder).glob("v[0-9]*")}
    assert left == {"ranks"}


def test_many_equal_records_are_one_in_a_bucket(parted: Made, each: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(beside, "BUCKET", 20)
    rng = np.random.default_rng(1)
    x, y = (table(rng.integers(0, 2, (N, 3)).astype(float)) for _ in range(2))
    pair = parted(x, y)
    view = pair.table
    tables = SideBySide(view.job, each, True, pair.seed.stream("measure", "cm3", "table"))
    made = without_mapping(view.rank_basis_x, view.rank_basis_y, tables, names=view.names)
    expected = rv.audit(x, y, measures=["cm3"], columns=list(view.names), seed=3).values["cm3"]  # as numbers
    assert made.details == expected.details


def test_some_records_are_read_from_any_place(parted: Made) -> None:
    x, y, _ = other_gaps()
    pair = parted(x, y)
    source = pair.table.job.original
    values = np.column_stack([x.column(name).to_numpy() for name in x.column_names])
    masked = np.column_stack([y.column(name).to_numpy() for name in y.column_names])
    kept = np.flatnonzero(~(np.isnan(values) | np.isnan(masked)).any(axis=1))
    assert len(source) == kept.size
    for start, stop in ((0, kept.size), (3, 3), (5, 90), (60, 61)):
        assert np.array_equal(source.rows(start, stop), kept[start:stop])
        found = np.column_stack(source.read(pair.names, start, stop))
        assert np.array_equal(found, values[kept[start:stop]])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1, 2, 2, 4, 5, 2, 4], [1, 2, 3, 4, 5, 6, 7]),
        ([1, 2, 3, 4, 5, 6, 7], ["a", "b", "b", "c", "d", "e", "f"]),
        ([1, 2, None, 4, None, 6, 7], [1, 2, 3, 4, 5, 6, 7]),
        ([1, 2, 3, 4, 5, 6, 7], ["1", "2", "NA", "4", "5", "6", "7"]),
        ([1, 2, 3, 4, 5, 6, 7], [11, 12, 13, 14, 15, 16, 17]),
    ],
)
def test_keys_that_are_none_are_refused_as_in_memory(first: Sequence[Any], second: Sequence[Any], parted: Made) -> None:
    x, y = (pa.table({"ID": pa.array(keys), "A": np.arange(7.0)}) for keys in (first, second))
    with pytest.raises(PairError) as expected:
        rv.audit(x, y, key="ID")
    with pytest.raises(PairError) as found:
        parted(x, y, rows=3, key="ID")
    assert str(found.value) == str(expected.value)


def test_a_key_is_no_list(parted: Made) -> None:
    x = pa.table({"ID": pa.array([[1], [2], [3]]), "A": np.arange(3.0)})
    with pytest.raises(PairError, match=r"key ID: it holds values of type list.*; a key is a number or a text"):
        parted(x, x, rows=2, key="ID")
    with pytest.raises(PairError, match="the original table has no key column NUMBER"):
        parted(x.drop_columns("ID"), x, rows=2, key="NUMBER")


def test_keys_are_the_same_however_numbers_are_written(parted: Made) -> None:
    x = pa.table({"ID": pa.array([3.0, 1.0, 2.0, 5.0]), "A": [3.0, 1.0, 2.0, 5.0]})
    y = pa.table({"ID": pa.array(["1.0", "2.0", "3.", "5.00"]), "A": [1.5, 2.5, 3.5, 5.5]})
    pair = parted(x, y, rows=2, key="ID")
    (found,) = pair.table.job.original.read(["A"], 0, 4)
    assert found.tolist() == [1.0, 2.0, 3.0, 5.0]
    assert pair.table.job.original.rows(0, 4).tolist() == [1, 2, 0, 3]


def test_a_column_with_too_many_labels(parted: Made, monkeypatch: Any) -> None:
    monkeypatch.setattr(looking, "MOST", 5)
    monkeypatch.setattr("rankveil.partitions.comparing.MOST", 5)
    words = [f"w{i % 9}" for i in range(30)]
    x = pa.table({"A": np.arange(30.0), "WORD": words, "FEW": [w if w < "w4" else "w9" for w in words]})
    pair = parted(x, x, rows=8, schema=rv.Schema(roles={"WORD": "quasi-identifier", "FEW": "confidential"}))
    assert pair.names == ("A", "FEW")
    assert pair.notes[0] == "not compared, as they have more than 5 different labels: WORD"
    with pytest.raises(TableError, match="column WORD: more than 5 different labels, too many to be measured in parts"):
        parted(x, x, rows=8, columns=["A", "WORD"])


def test_what_is_wrong_with_a_column_of_text_names_its_different_values(parted: Made) -> None:
    x = pa.table({"A": ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "n/a"] * 3})
    with pytest.raises(TableError, match=r"1 value is not a number .*--missing n/a \(rows are those of its different"):
        parted(x, x, rows=9)


def test_records_that_nobody_has_complete(parted: Made) -> None:
    x = pa.table({"A": pa.array([None, None, 3.0]), "B": pa.array([1.0, 2.0, None])})
    y = pa.table({"A": pa.array([1.0, 2.0, None]), "B": pa.array([None, None, 3.0])})
    with pytest.raises(PairError, match="no record is complete in all the columns; choose others with --columns"):
        parted(x, y, rows=2)
