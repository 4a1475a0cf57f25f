"""Tables as people have them, and worse: every method, measure and verb takes or refuses them in one sentence."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

NAMES = [
    *"ABCDE", "INCOME", "age", "id", "Weight", "household", "", " ", "a,b", 'say "x"', "two\nlines", "tab\there",
    "Größe", "收入", "e\u0301", "\u202eright to left", "=1+1", "1", "nan", "null", "__proto__", "a.b", "a=b",
    "A:numeric", "x" * 300, "<b>bold</b>", "{{ 7 }}", "../up", "%s", "-o", "row",
]  # fmt: skip

LABELS = [
    "low", "middle", "high", "yes", "no", "", " ", "NA", "n/a", "-9", "0", "1", "1.5", "1,5", "1e3", "0x10", "١٢", "½",
    "∞", "true", "2024-02-30", "2024-02-29", "06.07.2025", "11:34", "Ä", "ä", "a\u0308", "ß", "\u0000", "\ud7ff",
    "\U0001f9ff", "'", '"', ",", ";", "=cmd|' /C calc'!A0", "+1", "@SUM(A1)", "\tx", "\r", "\n",
    "<script>alert(1)</script>", "y" * 500,
]  # fmt: skip

MAGNITUDES = [1e-300, 1e-12, 1.0, 1e3, 1e12, 1e300]


def _cells(values: st.SearchStrategy[Any], kind: pa.DataType, n: int) -> st.SearchStrategy[pa.Array]:
    """A column of that type: a handful of values, each in many cells or one, and empty cells among them.

    Only the handful is drawn cell by cell, the rest by a number: a table takes a millisecond so.
    """

    def filled(pool: list[Any], gaps: float, seed: int) -> pa.Array:
        rng = np.random.default_rng(seed)
        chosen = rng.integers(0, len(pool), n)
        return pa.array([None if rng.random() < gaps else pool[k] for k in chosen], kind)

    pools = st.lists(values, min_size=1, max_size=6)
    return st.builds(filled, pools, st.sampled_from([0.0, 0.0, 0.0, 0.2, 0.8]), st.integers(0, 999))


def _numbers(n: int) -> st.SearchStrategy[pa.Array]:
    """Numbers spread at random, of one magnitude, around some centre: most columns of real tables."""

    def spread(seed: int, scale: float, centre: float, decimals: int | None) -> pa.Array:
        values = np.random.default_rng(seed).lognormal(size=n) * scale + centre * scale
        return pa.array(values if decimals is None else np.round(values, decimals))

    centres = st.sampled_from([0.0, -1.0, 1e6, 1e15])
    return st.builds(
        spread, st.integers(0, 999), st.sampled_from(MAGNITUDES), centres, st.sampled_from([None, None, 0, 1])
    )


@cache
def _column(n: int) -> st.SearchStrategy[pa.Array]:
    """One column of n cells of any kind."""

    def of(values: st.SearchStrategy[Any], kind: pa.DataType) -> st.SearchStrategy[pa.Array]:
        return _cells(values, kind, n)

    whole = st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1), st.integers(2**53 - 2, 2**53 + 2))
    real = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, 5e-324, 1.7e308]))
    moments = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
    near = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))
    long = datetime.timedelta(days=100_000)
    labels = st.one_of(st.sampled_from(LABELS), st.text(max_size=5))
    return st.one_of(
        _numbers(n),
        _numbers(n),
        of(real, pa.float64()),
        of(st.floats(), pa.float64()),
        of(whole, pa.int64()),
        of(st.integers(0, 2**64 - 1), pa.uint64()),
        of(st.integers(-128, 127), pa.int8()),
        of(st.floats(width=32), pa.float32()),
        of(st.booleans(), pa.bool_()),
        of(labels, pa.string()),
        of(labels, pa.large_string()),
        of(st.integers(0, 9).map(str), pa.string()),
        of(labels, pa.string()).map(lambda array: array.dictionary_encode()),
        of(st.dates(), pa.date32()),
        of(moments, pa.timestamp("us")),
        of(near, pa.timestamp("ns")),
        of(near, pa.timestamp("s", tz="Europe/Rome")),
        of(st.times(), pa.time64("us")),
        of(st.timedeltas(-long, long), pa.duration("us")),
        of(st.decimals(-1000, 1000, places=2).map(decimal.Decimal), pa.decimal128(10, 2)),
        of(st.binary(max_size=3), pa.binary()),
        of(st.lists(st.integers(0, 3), max_size=2), pa.list_(pa.int64())),
        st.just(pa.nulls(n)),
        st.just(pa.array([1.5] * n, pa.float64())),
        st.just(pa.array(["same"] * n, pa.string())),
    )


@st.composite
def _tables(draw: st.DrawFn, *, most: int = 40, wide: bool = True, plain_names: bool = False) -> pa.Table:
    """A table of up to so many rows, rarely of 500 columns; names may be odd, empty or given twice."""
    n = draw(st.one_of(st.integers(0, 3), st.integers(4, most), st.integers(4, most)))
    if wide and draw(st.integers(0, 19)) == 0:
        columns: Sequence[pa.Array] = draw(st.lists(_column(n), min_size=1, max_size=4))
        return pa.table([columns[j % len(columns)] for j in range(500)], names=[f"V{j}" for j in range(500)])
    columns = draw(st.lists(_column(n), min_size=0 if draw(st.integers(0, 19)) == 0 else 1, max_size=6))
    if plain_names or draw(st.booleans()):
        return pa.table(columns, names=[f"V{j}" for j in range(len(columns))])
    return pa.table(columns, names=[draw(st.sampled_from(NAMES)) for _ in columns])


@st.composite
def _released(draw: st.DrawFn, table: pa.Table) -> pa.Table:
    """What somebody may hand in as the release of a table: the table itself, or one that has nothing to do with it."""
    how = draw(st.sampled_from(["same", "order", "order", "other", "other", "fewer", "names", "types", "nothing"]))
    n = table.num_rows
    if how == "same" or not table.num_columns:
        return table
    if how == "order":  # every column in an order of its own
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        return pa.table(
            [column.take(pa.array(rng.permutation(n))) for column in table.columns], names=table.column_names
        )
    if how == "other":  # the same columns, other values of the same type
        drawn = pa.array(np.random.default_rng(draw(st.integers(0, 99))).integers(0, max(n, 1), n))
        numbers = draw(_numbers(n))
        made = [numbers if column.type == pa.float64() else column.take(drawn) for column in table.columns]
        return pa.table(made, names=table.column_names)
    if how == "fewer":
        return table.slice(0, draw(st.integers(0, n)))
    if how == "names":
        return table.rename_columns([f"{name}'" if draw(st.booleans()) else name for name in table.column_names])
    if how == "types":
        return pa.table([draw(_column(n)) for _ in table.columns], names=table.column_names)
    return table.select([])


@pytest.fixture(scope="session")
def tables() -> Callable[..., st.SearchStrategy[pa.Table]]:
    """Tables of every kind: `tables(most=40, wide=True, plain_names=False)`."""
    return _tables


@pytest.fixture(scope="session")
def released() -> Callable[[pa.Table], st.SearchStrategy[pa.Table]]:
    """What may be handed in as the release of a table."""
    return _released


@pytest.fixture(scope="session")
def content() -> Callable[[pa.Table], bytes]:
    """The bytes of a table, to see that it was not changed."""

    def of(table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue().to_pybytes()

    return of
