"""The digest of a table: the same in every format and order of rows, however it is cut; another for other content."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankveil import files
from rankveil.columns import to_arrow
from rankveil.digests import RowSum, codes_of, digest_of, is_comparable
from rankveil.table import Table

N = 40


def people() -> pa.Table:
    """Cells of every kind that all formats can hold."""
    rng = np.random.default_rng(5)
    gone = np.arange(N) % 7 == 3
    days = [dt.date(1950, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 25_000, N)]
    moments = [dt.datetime(2024, 1, 1) + dt.timedelta(seconds=int(each)) for each in rng.integers(0, 10**7, N)]
    return pa.table(
        {
            "ID": [f"person {k} ü" for k in range(N)],
            "CODE": [f"{k:03}" for k in range(N)],
            "AGE": pa.array(rng.integers(0, 99, N), mask=gone),
            "INCOME": pa.array(rng.lognormal(10, 1, N), mask=gone),
            "WHOLE": np.round(rng.normal(size=N) * 1e6),
            "SINGLE": pa.array(rng.normal(size=N).astype(np.float32)),
            "WRITTEN": [f"{value:.3f}" for value in rng.normal(size=N)],
            "TOWN": pa.array(rng.choice(["Bonn", "Ulm", ""], N)),
            "BORN": pa.array(days, mask=gone),
            "SEEN": pa.array(moments, pa.timestamp("us"), mask=gone),
            "AT": [dt.time(7, 30, k) for k in range(N)],
            "OWNER": pa.array(rng.integers(0, 2, N) == 1, mask=gone),
        }
    )


def of_file(path: str) -> str:
    loaded = files.load(path)
    return digest_of(Table(loaded.data, decimal=loaded.dialect.decimal if loaded.dialect else "."))


PLACES = ["csv", "parquet", "feather", "xlsx", "dta", "sav", "sqlite:///{}/a.db?table=t", "duckdb:///{}/b.db?table=t"]


@pytest.mark.parametrize("place", PLACES)
def test_every_format_has_the_same_digest_and_a_changed_cell_another(place: str, tmp_path: Path) -> None:
    path = place.format(tmp_path) if "://" in place else f"{tmp_path}/a.{place}"
    told = digest_of(Table(people()))
    assert is_comparable(told)
    files.save(people(), path)
    assert of_file(path) == told
    shuffled = people().take(pa.array(np.random.default_rng(1).permutation(N)))
    files.save(shuffled, path)
    assert of_file(path) == told
    for name in ("INCOME", "TOWN", "BORN", "AGE"):
        cells = people()[name].to_pylist()
        row = next(k for k, cell in enumerate(cells) if cell and cell != "Bonn")
        if name == "INCOME":
            cells[row] = float(np.nextafter(cells[row], np.inf))
        else:
            cells[row] = next(cell for cell in cells if cell and cell != cells[row])
        other = people().set_column(people().column_names.index(name), name, pa.array(cells, people()[name].type))
        assert cells != people()[name].to_pylist()
        files.save(other, path)
        assert of_file(path) != told, name


def test_libraries_and_spellings_of_numbers_make_no_difference() -> None:
    data = pa.table({"A": [1, 2, None], "B": ["x", None, "y"], "C": [0.5, 7.0, None]})
    told = digest_of(Table(data))
    same: list[Any] = [
        data.to_pandas(),
        pl.from_arrow(data),
        data.select(["C", "A", "B"]),
        pa.table({"A": ["1", "2.0", ""], "B": ["x", "", "y"], "C": ["5e-1", "7", "NA"]}),
        pa.table({"A": [1.0, 2.0, float("nan")], "B": pa.array(["x", None, "y"]).dictionary_encode(), "C": data["C"]}),
        pd.DataFrame({"A": [1, 2, None], "B": pd.Categorical(["x", None, "y"]), "C": [0.5, 7.0, None]}),
    ]
    assert [digest_of(Table(each)) for each in same] == [told] * len(same)
    comma = pa.table({"A": ["1", "2", ""], "B": ["x", "", "y"], "C": ["0,5", "7,0", ""]})
    assert digest_of(Table(comma, decimal=",")) == told
    others = [
        data.rename_columns(["A", "B", "D"]),
        data.slice(1),
        pa.concat_tables([data, data]),
        data.append_column("D", pa.nulls(3)),
        data.set_column(0, "A", pa.array([2, 1, None])),  # the same cells in every column, other records
        data.set_column(0, "A", pa.array(["01", "2", None])),
    ]
    assert len({told, *(digest_of(Table(each)) for each in others)}) == len(others) + 1


TEXTS = st.sampled_from(
    ["", "1", "1.0", "-0", "007", "+4", "1e3", "x", "2024-02-30", "2024-02-29", "11:30", "true", "é"]
)


@given(cells=st.lists(st.one_of(st.none(), TEXTS), max_size=30), cut=st.integers(0, 30))
def test_cells_have_the_same_codes_however_a_column_is_cut(cells: list[str | None], cut: int) -> None:
    whole = codes_of(pa.array(cells, pa.string()))
    parts = [codes_of(pa.array(some, pa.string())) for some in (cells[:cut], cells[cut:])]
    assert np.array_equal(whole, np.concatenate(parts))
    alone = [codes_of(pa.array([cell], pa.string()))[0] for cell in cells]
    assert np.array_equal(whole, np.array(alone, dtype=np.uint64).reshape(-1, 2))


def test_parts_are_added_up() -> None:
    data = people()
    cuts = [0, 1, 1, 17, N]
    total = RowSum.of(Table(data.slice(0, 0)))
    for start, end in pairwise(cuts):
        total = total.merged(RowSum.of(Table(data.slice(start, end - start))))
    assert total.digest == digest_of(Table(data))
    assert total.merged(RowSum.of(Table(data.slice(0, 1)))).digest != digest_of(Table(data))


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([b"\xff", b"a", None]),
        pa.array([[1], [], None]),
        pa.array([{"a": 1}, None]),
        pa.array([2**64 - 1, 1], pa.uint64()),
        pa.array([2**31 - 1, None], pa.date32()),
        pa.array([1, 2], pa.timestamp("ns")),
        pa.array([1, None], pa.duration("s")),
        pa.array(["a", None], pa.large_string()),
        pa.nulls(2),
    ],
    ids=lambda cells: str(cells.type),
)
def test_every_type_has_codes(cells: pa.Array) -> None:
    codes = codes_of(cells)
    assert codes.shape == (len(cells), 2)
    assert len(np.unique(codes[: cells.null_count or None], axis=0)) >= 1
    assert not codes[cells.is_null().to_numpy(zero_copy_only=False)].any()
    assert codes[cells.is_valid().to_numpy(zero_copy_only=False)].any(axis=1).all()


def test_a_column_without_any_value_is_read_at_once() -> None:
    """Unsigned numbers are compared with the largest signed one, of which an empty column has none."""
    for kind in (pa.uint64(), pa.int64(), pa.float64(), pa.date32(), pa.string()):
        for cells in (pa.nulls(3, kind), pa.array([], kind)):
            assert not codes_of(cells).any()
    large = codes_of(pa.array([2**63, None, 2**64 - 1, 7], pa.uint64()))
    assert np.array_equal(large[3], codes_of(pa.array([7]))[0])
    assert not np.array_equal(large[0], large[2])


def test_many_digits_count() -> None:
    data = pa.table({"A": [2**60, 2**60 + 1]})
    other = pa.table({"A": [2**60, 2**60 + 2]})
    assert digest_of(Table(data)) != digest_of(Table(other))
    assert digest_of(Table(data.cast(pa.schema([("A", pa.string())])))) == digest_of(Table(data))
    assert codes_of(to_arrow(Table(data).frame.get_column("A"))).shape == (2, 2)
